"""TNS put to the three uses that the first paper proposes and does not try: in the loss, before training, for pruning.

What is trained and how it is judged was written down beforehand in `design.py`; `measures.py` trains, measures and
prunes, verdicts are in `findings.py`, drawings in `figures.py`.
"""
