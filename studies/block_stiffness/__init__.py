"""The block-level paper: its tables on trained networks, what their numbers are, and whether they predict anything.

`__main__.py` tells the story in order; measures are `netbridge`'s and `odelab`'s, no formula of numerics stands here.
"""
