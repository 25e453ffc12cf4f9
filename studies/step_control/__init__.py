"""Table 4 of the first paper and lottery tickets: what StepNet needs, and on which blocks a controller is worth it.

`__main__.py` tells the story in order; the networks and their order are in `design.py`, training and the files of its
results in `results.py`, verdicts in `findings.py`.
"""
