"""What is stiffness? Every index against what an explicit and an implicit method cost.

`runs` has the definition of stiffness, the problems, and what is run and stored; `evidence` makes R, indices, rankings
and powers of it. `indices`, `dependence` and `switches` hold the claims in groups, each with its rule, judgement,
figures and tables; `__main__` puts them in order.
"""
