"""Numerical experiments over methods and tolerances: observed order and work against precision.

Experiments of the papers are in `studies/`; these two serve any method and problem."""
