"""The order a method shows in practice."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from odelab._solve import solve
from odelab.control.controllers import adaptive, fixed
from odelab.methods.dop853 import DOP853
from odelab.methods.interface import StepMethod, answers
from odelab.problem import Problem

MANY = np.array([16, 32, 64, 128, 256, 512])  # steps
FEW = np.array([3, 4, 5, 6, 8, 10])  # of a high order, which leaves rounding only where there are more
ROUNDING = 1e-15  # what each step may add to the relative error by rounding
UNSURE = 0.6  # where the two finest slopes differ by more, they are no order


class ObservedOrder(NamedTuple):
    """An observed order with the data it was fitted to, as `odelab.observed_order` returns it.

    order  the slope of log(error) over log(h); `float(...)` of this tuple is the same number
    h      the step sizes, largest first
    error  the norm of the error at the end of the span for each of them
    """

    order: float
    h: np.ndarray
    error: np.ndarray

    def __float__(self):
        return float(self.order)


def observed_order(method: StepMethod, problem: Problem, h: Any = None, engine: str = "auto") -> ObservedOrder:
    """The order that a method shows in practice: error ~ h^order at the end of the span, over several fixed steps.

    The truth is the problem's exact solution, its reference value at t1, or else a run of DOP853 at rtol 1e-13. Errors
    down at rounding, or at what the truth itself is known to, are left out, and so are steps too large to be in the
    asymptotic range: the order is the median slope over the finer half of the neighbouring pairs. A warning says where
    the two finest slopes differ, so that no order has settled.

    method   a Method, RosenbrockMethod, EsdirkMethod or RKC2, which takes fixed steps here
    problem  a Problem that is smooth over its span
    h        at least three step sizes; by default the span over 16 to 512, over 3 to 10 for orders beyond 5 and
             where that leaves too few errors above rounding
    engine   "auto", "python" or "compiled", as in `odelab.solve`

    Returns an ObservedOrder: (order, h, error); `ol.plot.orders` draws it. Raises ValueError where fewer than three
    errors lie above rounding.

    >>> import odelab as ol
    >>> problem = ol.problems.rigid_body().replace(t_span=(0.0, 4.0))
    >>> round(float(ol.observed_order(ol.RK4, problem, engine="python")), 1)
    4.0
    """
    if not answers(method, "takes_fixed_steps"):
        raise TypeError(
            f"`method` must be one that takes fixed steps, such as odelab.RK4 or odelab.ROS2, got {method!r}."
        )
    t0, t1 = problem.t_span
    if h is None:
        try:
            return observed_order(method, problem, abs(t1 - t0) / (FEW if method.order > 5 else MANY), engine)
        except TooFewErrors:
            if method.order > 5:
                raise
            return observed_order(method, problem, abs(t1 - t0) / FEW, engine)
    sizes = np.asarray(h, dtype=float)
    if sizes.ndim != 1 or sizes.size < 3 or not (sizes > 0).all():
        raise ValueError(f"`h` must hold at least three positive step sizes, got {h!r}.")
    sizes = np.sort(sizes)[::-1]
    truth = known_end(problem)
    if truth is None:
        tight = adaptive(1e-13, 1e-15 * (1.0 + float(np.abs(problem.u0).max())))
        truth = solve(problem, DOP853, tight, engine=engine).step_u[-1]
    ends = [solve(problem, method, fixed(float(size)), engine=engine).step_u[-1] for size in sizes]
    error = np.array([np.linalg.norm(end - truth) for end in ends])
    usable = error > (ROUNDING * np.abs(t1 - t0) / sizes + doubt_of_end(problem)) * (1.0 + np.linalg.norm(truth))
    if usable.sum() < 3:
        raise TooFewErrors(f"`h` leaves fewer than three errors above rounding ({error}); use larger steps.")
    slopes = np.diff(np.log(error[usable])) / np.diff(np.log(sizes[usable]))
    fine = slopes[len(slopes) // 2 :]
    if np.ptp(slopes[-2:]) > UNSURE:
        warnings.warn(
            f"`observed_order`: errors of {method.name} fall with no one power of h here: between neighbouring step "
            f"sizes the slopes are {', '.join(f'{slope:.1f}' for slope in slopes)}. Try other `h`, or another span.",
            RuntimeWarning,
            stacklevel=2,
        )
    return ObservedOrder(float(np.median(fine)), sizes, error)


class TooFewErrors(ValueError):
    """Fewer than three errors lie above rounding, so that no order can be told."""


def doubt_of_end(problem: Problem) -> float:
    """The relative error of the state that errors are measured against."""
    if problem.exact is not None:
        return 0.0
    known = [reference for reference in problem.references if reference.t == problem.t_span[1]]
    return 10.0 ** -known[0].digits if known else 1e-13


def known_end(problem: Problem):
    """The state at t1 from the exact solution or a reference; None where neither is known."""
    t1 = problem.t_span[1]
    if problem.exact is not None:
        return 1.0 * np.asarray(problem.exact(t1, problem.params))
    for reference in problem.references:
        if reference.t == t1:
            return 1.0 * np.asarray(reference.u)
    return None
