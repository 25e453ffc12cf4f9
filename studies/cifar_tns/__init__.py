"""The main study: stiffness of networks trained on CIFAR-10 and what it says about the first paper's claims.

`__main__.py` tells the story in order; verdicts are computed in `findings.py`, rows in `tables.py`, and everything is
drawn in `figures.py`.
"""
