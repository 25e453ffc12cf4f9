"""What is stiffness? Every index against what an explicit and an implicit method cost.

`__main__.py` tells the story in order; problems and the rules of the analysis are in `design.py`, what is measured on a
window in `measures.py`, costs and how well an index ranks them in `analysis.py`, verdicts in `findings.py`, drawings in
`figures.py`.
"""
