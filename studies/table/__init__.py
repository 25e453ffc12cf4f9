"""Tables 1, 2 and 7 of the first paper from whatever networks are there: what is known, what is missing, what it costs.

What the tables print and what their cells need is in `design.py`, what was found on the disk in `networks.py`.
"""
