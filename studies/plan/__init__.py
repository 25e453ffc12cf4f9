"""Every printed cell of the three papers' tables as a network to train or to look at, or the reason why it is not one.

What a paper prints stands in the study that repeats it; here it is put together with the job that fills the cell.
"""
