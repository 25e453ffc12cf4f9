"""Numerical experiments over methods and tolerances: observed order, work against precision, numbers to compare runs by.

The experiments of the papers are in `studies/`; what is here serves any method and problem."""

from odelab.experiments.comparisons import cost_at_error as cost_at_error
from odelab.experiments.comparisons import invariant_drift as invariant_drift
from odelab.experiments.comparisons import step_jitter as step_jitter
