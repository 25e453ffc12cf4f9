"""Table 3 of the first paper: Faster R-CNN over backbones of five controllers, on COCO or on made-up scenes.

What is trained and how it is judged was written down beforehand in `design.py`; `measures.py` trains and measures,
verdicts are in `findings.py`, drawings in `figures.py`.
"""
