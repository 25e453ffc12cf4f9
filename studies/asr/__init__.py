"""ASR, whole: attention as a learned constant, every claim asked of the controls that the paper does not have.

What is trained stands in `design.py`, what a result and a comparison are in `evidence.py`. The claims with their rules,
figures and tables stand in `accuracy.py`, `attention_values.py` and `whole_networks.py`; `__main__.py` gathers evidence
and puts the exhibits into the order of the paper.
"""
