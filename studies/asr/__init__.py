"""ASR, whole: attention as a learned constant, every claim asked of the controls that the paper does not have.

`__main__.py` tells the story in order; the arms and the queue of networks are in `design.py`, training and the files of
its results in `results.py`.
"""
