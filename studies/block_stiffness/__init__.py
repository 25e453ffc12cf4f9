"""The block-level paper: its tables on trained networks, what their numbers are, and whether they predict anything.

`__main__.py` tells the story in order; the measures themselves are in `netbridge` and `odelab`.
"""
