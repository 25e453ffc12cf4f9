"""Numerical experiments: observed order, work against precision, and the numbers by which runs are compared.

The experiments of the papers are in `studies/`; what is here serves any method and problem."""

from odelab.experiments.at_a_state import state_indices as state_indices
from odelab.experiments.comparisons import cost_at_error as cost_at_error
from odelab.experiments.comparisons import invariant_drift as invariant_drift
from odelab.experiments.comparisons import step_jitter as step_jitter
from odelab.experiments.windows import least_cost as least_cost
