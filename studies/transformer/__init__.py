"""Transformers, Appendix G and Table 7 of the first paper: attention as a step size, and step sizes for attention.

`__main__.py` tells the story in order; what is fixed beforehand is in `design.py`, what is measured in `measures.py`,
verdicts are in `findings.py`.
"""
