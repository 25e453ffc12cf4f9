"""Numbers to compare runs by: the cost of an error, the variation of step sizes, the drift of an invariant."""

import numpy as np

from odelab.problem import Problem
from odelab.runs.trajectory import Trajectory

ROUNDING = 1e-12  # an error at the very end of a curve is reached, although its logarithm was rounded

__all__ = ["cost_at_error", "invariant_drift", "step_jitter"]


def cost_at_error(errors, costs, at):
    """The cost of reaching an error, interpolated between the runs of a work-precision curve on logarithmic axes.

    errors  the error of each run, in any order; runs whose error is not positive and finite are left out
    costs   what each run cost, evaluations or seconds, positive
    at      the error asked about, or an array of them

    Returns a number for a number and an array for an array; NaN where fewer than two runs are usable, or where the
    runs do not reach the error on both sides (nothing is extrapolated).

    >>> from odelab.experiments import cost_at_error
    >>> cost_at_error([1e-2, 1e-4, 1e-8], [100, 1000, 4000], 1e-3).round(6)
    np.float64(316.227766)
    >>> cost_at_error([1e-2, 1e-4], [100, 1000], [1e-4, 1e-5]).round(6)
    array([1000.,   nan])
    """
    errors, costs = np.asarray(errors, dtype=float), np.asarray(costs, dtype=float)
    if errors.ndim != 1 or errors.shape != costs.shape:
        raise ValueError(f"`costs` must hold one number per error, {errors.shape}, got shape {costs.shape}.")
    wanted = np.asarray(at, dtype=float)
    if not (wanted > 0.0).all():
        raise ValueError(f"`at` must be a positive error, got {at!r}.")
    usable = (errors > 0.0) & np.isfinite(errors)
    if usable.sum() < 2:
        return np.full(wanted.shape, np.nan)[()]
    order = np.argsort(errors[usable], kind="stable")
    x, y = np.log(errors[usable][order]), np.log(costs[usable][order])
    position = np.log(wanted)
    reached = (position >= x[0] - ROUNDING) & (position <= x[-1] + ROUNDING)
    return np.where(reached, np.exp(np.interp(position, x, y)), np.nan)[()]


def step_jitter(steps, late: float = 0.5) -> float:
    """How restless step sizes are: the standard deviation of log2(h_(n+1) / h_n) over the late part of a run.

    0 is a constant or steadily growing step size; 1 means that neighbours typically differ by a factor of two.

    steps  a Trajectory, or its step sizes in order
    late   the share of the run that counts, from the end; 0.5, its second half, leaves out the initial transient

    The last step is left out, because it is cut to land on the end of the span. Returns NaN where fewer than two
    steps remain.

    >>> from odelab.experiments import step_jitter
    >>> step_jitter([0.1] * 9), step_jitter([0.1, 0.2] * 8, late=1.0) > 0.9
    (0.0, True)
    """
    if not 0.0 < late <= 1.0:
        raise ValueError(f"`late` must be a share of the run above 0 and up to 1, got {late!r}.")
    sizes = np.abs(np.asarray(steps.h if isinstance(steps, Trajectory) else steps, dtype=float))
    changes = np.diff(np.log2(sizes[len(sizes) - int(np.ceil(late * len(sizes))) : -1]))
    return float(np.std(changes)) if changes.size else float("nan")


def invariant_drift(problem: Problem, before, after, invariant: str = "energy"):
    """The relative change |I(after) - I(before)| / |I(before)| of an invariant of a problem between states.

    problem        a Problem with `invariants`, which are evaluated at the start of its span
    before, after  states to compare, (n,) or one per row, (R, n)
    invariant      the name of the invariant, "energy" unless said otherwise

    Returns a number, or one per row, (R,). Raises ValueError when the problem has no invariant of that name.

    >>> import odelab as ol
    >>> from odelab.experiments import invariant_drift
    >>> problem = ol.problems.arenstorf()
    >>> run = ol.solve(problem, ol.DOP853, ol.adaptive(1e-10, 1e-12))
    >>> bool(invariant_drift(problem, problem.u0, run.end_u, "Jacobi constant") < 1e-6)
    True
    """
    known = {one.name: one.function for one in problem.invariants}
    if invariant not in known:
        raise ValueError(
            f"`invariant` must be one of those of {problem.name or 'the problem'}, {sorted(known)}, got {invariant!r}."
        )
    value, t0 = known[invariant], problem.t_span[0]
    before, after = (np.asarray(states, dtype=float) for states in (before, after))
    old, new = (np.asarray(value(t0, states.T, problem.params)) for states in (before, after))
    return np.abs((new - old) / old)[()]
