"""Training tricks and stiffness: do recipes that raise the accuracy raise TNS, too, and is stiffness hard to train?

`__main__.py` tells the story in order; the recipes and the rules of the analysis are in `design.py`, comparisons in
`analysis.py`, verdicts in `findings.py`, drawings in `figures.py`, tables in `tables.py`.
"""
