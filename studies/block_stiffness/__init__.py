"""The block-level paper: its tables on trained networks, what their numbers are, and whether they predict anything.

Each file is a group of claims: rule, judgement, measure, figure and tables stand together. `measures` looks at one
network, `evidence` holds what is known, `__main__` tells the story in order.
"""
