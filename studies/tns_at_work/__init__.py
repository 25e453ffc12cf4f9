"""Three uses of TNS that follow from the first paper: in the loss, for choosing architectures, and for pruning.

What is trained and how it is judged was written down beforehand in `design.py`; `measures.py` trains, measures and
prunes, verdicts are in `findings.py`, drawings in `figures.py`.
"""
