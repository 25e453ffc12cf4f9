"""Ground-truth trajectories, Definition 3 of the first paper: what can be tested although none is known.

`__main__.py` tells the story in order; rules fixed beforehand are in `design.py`, measurements in `measures.py` and
`importance.py`, verdicts in `findings.py`.
"""
