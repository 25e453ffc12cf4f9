"""What is stiffness? Every index against what an explicit and an implicit method cost.

`__main__.py` tells the story in order. `design.py` has the definition and the rules, `subjects.py` the problems,
`factorial.py` the forced systems, `networks.py` the blocks; `measures.py` says what is measured on a window and
`batch.py` where, `timings.py` how long attempts take, and `yours.py` what a user adds. `observations.py` makes costs
and indices of it, `analysis.py`, `sensitivity.py` and `policies.py` judge them, `findings.py` gives verdicts; `report/`
shows them.
"""
