"""A population of small networks, large enough to decide what eighteen networks of one depth cannot.

`__main__.py` tells the story in order; the networks, their order and the rules of the analysis are in `design.py`,
the numbers in `analysis.py`, verdicts in `findings.py`, drawings in `figures.py`.
"""
