"""The order a method shows in practice."""

import dataclasses
import warnings
from typing import Any

import numpy as np

from odelab._solve import RunFailed, solve
from odelab.control.controllers import adaptive, fixed
from odelab.methods.dop853 import DOP853
from odelab.methods.implicit import RODAS5P
from odelab.methods.interface import StepMethod, answers
from odelab.problem import Problem
from odelab.results import Result

MANY = np.array([16, 32, 64, 128, 256, 512])  # steps
FEW = np.array([3, 4, 5, 6, 8, 10])  # of a high order, which leaves rounding only where there are more
ROUNDING = 1e-15  # what each step may add to the relative error by rounding
LOST = ("blow_up", "not_finite")  # how a run of steps that are too large may end
UNSURE = 0.6  # where the two finest slopes differ by more, they are no order


@dataclasses.dataclass(frozen=True, eq=False)
class ObservedOrder(Result, kinds={"errors": "odelab.plot.convergence:orders"}):
    """An observed order with the data it was fitted to, as `odelab.observed_order` returns it.

    order  the slope of log(error) over log(h); `float(...)` of this result is the same number
    h      the step sizes, largest first
    error  the norm of the error at the end of the span for each of them
    """

    order: float
    h: np.ndarray
    error: np.ndarray

    def __float__(self):
        return float(self.order)

    def table(self):
        """A row per step size."""
        return {"h": self.h, "error": self.error}


def observed_order(method: StepMethod, problem: Problem, h: Any = None, engine: str = "auto") -> ObservedOrder:
    """The order that a method shows in practice: error ~ h^order at the end of the span, over several fixed steps.

    The truth is the problem's exact solution, its reference value at t1, or else a run of DOP853 at rtol 1e-13 (of
    RODAS5P where there is a mass matrix). Errors down at rounding, or at what the truth itself is known to, are
    left out, and so are steps too large to be in the asymptotic range: the order is the median slope over the finer
    half of the neighbouring pairs. Runs that blew up, or whose error is larger than the solution, are left out with
    a warning. Another one says where the two finest slopes differ, so that no order has settled.

    method   a Method, RosenbrockMethod, EsdirkMethod or RKC2, which takes fixed steps here
    problem  a Problem that is smooth over its span
    h        at least three step sizes; by default the span over 16 to 512, or over 3 to 10 for orders beyond 5, and
             the other of both where that leaves too few errors
    engine   "auto", "python" or "compiled", as in `odelab.solve`

    Returns an ObservedOrder: (order, h, error); `ol.plot.orders` draws it. The error of a run that blew up is infinite.
    Raises ValueError where fewer than three errors lie between rounding and the size of the solution, RunFailed where
    even the smallest step blew up.

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
        first, second = (FEW, MANY) if method.order > 5 else (MANY, FEW)
        try:
            return observed_order(method, problem, abs(t1 - t0) / first, engine)
        except (TooFewErrors, RunFailed):
            return observed_order(method, problem, abs(t1 - t0) / second, engine)
    sizes = np.asarray(h, dtype=float)
    if sizes.ndim != 1 or sizes.size < 3 or not (sizes > 0).all():
        raise ValueError(f"`h` must hold at least three positive step sizes, got {h!r}.")
    sizes = np.sort(sizes)[::-1]
    truth = known_end(problem)
    if truth is None:
        tight = adaptive(1e-13, 1e-15 * (1.0 + float(np.abs(problem.u0).max())))
        sharp = DOP853 if problem.mass is None else RODAS5P
        truth = solve(problem, sharp, tight, engine=engine).step_u[-1]
    runs = [solve(problem, method, fixed(float(size)), engine=engine, throw=False) for size in sizes]
    for run in runs:
        if not run.ok and run.status not in LOST:
            raise RunFailed(run)
    with np.errstate(over="ignore"):
        error = np.array([np.linalg.norm(run.end_u - truth) if run.ok else np.inf for run in runs])
    sensible = error <= max(np.linalg.norm(problem.u0), np.linalg.norm(truth))
    usable = error > (ROUNDING * np.abs(t1 - t0) / sizes + doubt_of_end(problem)) * (1.0 + np.linalg.norm(truth))
    usable &= sensible
    if usable.sum() < 3:
        if not runs[-1].ok:
            raise RunFailed(runs[-1])
        advice = "larger steps" if sensible.all() else "other steps, or another span"
        raise TooFewErrors(
            f"`h` leaves fewer than three errors between rounding and the size of the solution ({error}); use {advice}."
        )
    if not sensible.all():
        warnings.warn(
            f"`observed_order`: runs of {method.name} with h = {', '.join(f'{size:.3g}' for size in sizes[~sensible])} "
            "are left out, as they blew up or their error is larger than the solution.",
            RuntimeWarning,
            stacklevel=2,
        )
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
