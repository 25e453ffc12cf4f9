"""The papers' experiments, one file each: `python -m studies` lists them, `python -m studies.NAME` runs one.

No formula stands here: studies call `odelab` and `netbridge`, draw, and write down what came out.
"""
