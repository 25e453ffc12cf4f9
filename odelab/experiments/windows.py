"""What a method costs on a stretch of a solution: windows, exact states, and the least cost of an error.

Stiffness in practice is a ratio of costs: of an explicit method over an implicit one, on a window [a, b] of a solution,
at an error. A run starts one window earlier, from the exact state and with the first step that the run at the next
looser tolerance took, so that it comes into the window with the steps it would take in a long run.
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from odelab._solve import solve
from odelab.control.controllers import adaptive
from odelab.problem import Problem
from odelab.stiffness.scales import accuracy_step

__all__ = [
    "Run",
    "Window",
    "cut_into_windows",
    "effective_derivative",
    "evaluations_of",
    "least_cost",
    "predicted_ratio",
    "scale_of",
    "warm_run",
]

SMALL = 1e-3  # the scale of a component is its size plus this share of the largest size it ever has
FLOOR = 1e-6  # and a component that is always zero by this share of the largest component
NEAR = 0.9  # of the stability boundary: Julia's AutoSwitch counts steps with h rho above it
POINTS = 8  # Chebyshev points of a window at which the exact solution is known
SHARPEST, FALLBACK = 1e-11, 1e-9  # relative tolerances of the run that exact states come from
LONGEST = 200_000  # attempts of that run; a solution that slides along a jump of its slope takes more


@dataclasses.dataclass(frozen=True, eq=False)
class Window:
    """A stretch of a solution, [start, end], with the exact states that a measurement needs.

    before, start, end   times; `before` is where a run begins that is to enter the window warm
    at_before, at_start, at_end   the exact states there, (n,)
    times, states        Chebyshev points of the window in order, (8,), and the exact states there, (8, n)
    """

    before: float
    start: float
    end: float
    at_before: np.ndarray
    at_start: np.ndarray
    at_end: np.ndarray
    times: np.ndarray
    states: np.ndarray


class Run(NamedTuple):
    """What one run cost on a window.

    attempts     attempted steps within the window; steps that reach beyond it count with the part inside. Infinite for
                 a run that failed, such as one that blew up at a loose tolerance
    error        the scaled root mean square error at the end of the window; NaN where the run did not get there
    first_step   the first step it took, for the next run on the ladder
    rejected     the share of its attempts that were rejected
    flagged      the share of its steps with h rho above the method's real stability boundary, which Hairer and Wanner
                 count; NaN where h rho is not known for free
    near         the share of its steps with h rho above nine tenths of that boundary, the rule of Julia's AutoSwitch
    censored     whether it ran out of attempts; `attempts` then extends the rate of its last half over the window
    """

    attempts: float
    error: float
    first_step: float
    rejected: float
    flagged: float
    near: float
    censored: bool


def scale_of(u) -> np.ndarray:
    """What each component of a solution is measured by: a thousandth of the largest size that it reaches.

    u   states along the solution, (m, n)

    Returns the scale, (n,), positive.

    >>> from odelab.experiments import windows
    >>> windows.scale_of([[1.0, 0.0], [-2.0, 0.0]])
    array([2.e-03, 2.e-09])
    """
    largest = np.abs(np.asarray(u, dtype=float)).max(axis=0)
    return SMALL * np.maximum(largest, max(FLOOR * largest.max(), 1e-300))


def cut_into_windows(
    problem: Problem,
    method,
    sharp,
    count: int = 24,
    rtol: float = 1e-4,
    steps: int = 6,
    even: bool = False,
    engine: str = "auto",
):
    """Cut a solution into windows of a few steps of an implicit method, and find exact states on some of them.

    The steps of the implicit method follow the solution and not its stability, so that windows are never chosen by a
    measure of stiffness.

    problem  the Problem
    method   whose accepted steps at `rtol` measure out the windows, such as odelab.RODAS4
    sharp    the method of the exact states, such as odelab.RODAS5P
    count    at most so many windows, evenly spread over the run; the first is never one, for nothing is before it
    rtol     relative tolerance of the run that is cut
    steps    steps to a window; fewer where the run has less than eight windows of them
    even     True makes as many windows of one length in time instead; False by default
    engine   of all runs, "auto", "python" or "compiled", as in `odelab.solve`

    Returns (scale, windows): what components are measured by, (n,), and a list of `Window`s.

    >>> import odelab as ol
    >>> from odelab.experiments import windows
    >>> scale, found = windows.cut_into_windows(ol.problems.van_der_pol(), ol.RADAU, ol.RADAU, count=2)
    >>> len(found), found[0].before < found[0].start < found[0].end
    (2, True)
    """
    if not problem.t_span[1] > problem.t_span[0]:
        raise ValueError(f"`problem` must run forward in time, got t_span = {problem.t_span} of {problem.name}.")
    size = np.abs(problem.u0).max() or 1.0
    first = solve(problem, method, adaptive(1e-5, 1e-8 * size), engine=engine)
    scale = scale_of(first.step_u)
    guide = solve(problem, method, adaptive(rtol, rtol * scale), engine=engine)
    pace = max(2, min(steps, guide.steps // 8))
    ends = np.append(guide.step_t[: guide.steps - pace + 1 : pace], guide.step_t[-1])
    if even:
        ends = np.linspace(ends[0], ends[-1], len(ends))
    if len(ends) < 3:
        raise ValueError(f"`rtol` = {rtol:g} leaves only {guide.steps} steps of {problem.name}, too few for windows.")
    numbers = np.unique(np.linspace(1, len(ends) - 2, min(count, len(ends) - 2)).astype(int))
    angles = np.pi * (np.arange(POINTS) + 0.5) / POINTS
    inside = {i: ends[i] + 0.5 * (ends[i + 1] - ends[i]) * (1.0 - np.cos(angles)) for i in numbers}
    stops = np.unique(np.concatenate([*inside.values(), *(ends[i - 1 : i + 2] for i in numbers)]))
    exact = exact_states(problem, sharp, scale, stops, engine)

    def window(i) -> Window:
        before, start, end = ends[i - 1 : i + 2]
        states = np.array([exact[t] for t in inside[i]])
        times = (float(before), float(start), float(end))
        return Window(*times, exact[before], exact[start], exact[end], inside[i], states)

    return scale, [window(i) for i in numbers]


def exact_states(problem: Problem, method, scale, times, engine: str = "auto") -> dict:
    """The solution at these times by a run at a sharp tolerance that steps on each of them: {time: state}."""
    t0, t1 = problem.t_span
    if problem.exact is not None:
        return dict(zip(times, np.asarray(problem.exact(times, problem.params)), strict=True))
    stops = times[(times > t0) & (times < t1)]
    for rtol in (SHARPEST, FALLBACK):
        controller, last = adaptive(rtol, rtol * scale), rtol == FALLBACK
        found = solve(problem, method, controller, tstops=stops, max_steps=LONGEST, throw=last, engine=engine)
        if found.ok:
            break
    places = np.searchsorted(found.step_t, times)
    return {t: np.array(found.step_u[i]) for t, i in zip(times, places, strict=True)}


def warm_run(
    problem: Problem,
    method,
    window: Window,
    rtol: float,
    scale,
    first_step: float | None = None,
    most: int = 3000,
    cold: bool = False,
    engine: str = "auto",
) -> Run:
    """Run a method into a window and through it, and count what the window cost.

    problem      the Problem
    method       any method with an error estimate
    window       a `Window` of the problem's solution
    rtol         the relative tolerance; the absolute one of each component is rtol times its scale
    scale        (n,), see `scale_of`
    first_step   where the run begins to look for its step; a quarter of the stretch before the window by default
    most         attempts after which the run is given up and its cost extended; 3,000
    cold         True starts the run where the window starts, with the first step that it finds by itself; False
    engine       "auto", "python" or "compiled", as in `odelab.solve`

    Returns a `Run`.

    >>> import odelab as ol
    >>> from odelab.experiments import windows
    >>> problem = ol.problems.van_der_pol()
    >>> scale, found = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=1)
    >>> run = windows.warm_run(problem, ol.DOPRI5, found[0], 1e-6, scale)
    >>> run.attempts > 1.0, run.error < 1e-4, run.censored
    (True, True, False)
    """
    if first_step is None:
        first_step = 0.25 * (window.start - window.before)
    start, state = (window.start, window.at_start) if cold else (window.before, window.at_before)
    piece = problem.piece(start, window.end, state)
    step = None if cold else min(first_step, window.end - start)
    controller = adaptive(rtol, rtol * scale, first_step=step)
    run = solve(piece, method, controller, max_steps=most, throw=False, engine=engine)
    if not run.steps or (not run.ok and run.status != "max_steps"):  # it failed, say it blew up: no result
        return Run(math.inf, math.nan, first_step, 1.0, math.nan, math.nan, False)
    t, h = np.asarray(run.step_t), np.asarray(run.h).copy()
    tried = 1.0 + run.rejected / run.steps  # attempts per accepted step
    flags = run.h_rho
    known = flags[np.isfinite(flags)]
    boundary = method.real_boundary
    flagged, near = (float(np.mean(known > share * boundary)) if len(known) else math.nan for share in (1.0, NEAR))
    share_rejected = run.rejected / (run.rejected + run.steps)
    if not run.ok:
        late = run.steps // 2
        pace = (run.steps - late) / (t[-1] - t[late])
        cost = tried * pace * (window.end - window.start)
        return Run(cost, math.nan, float(h[0]), share_rejected, flagged, near, True)
    first = float(h[0])
    if run.steps > 1:  # the last step was shortened to land on the end; it counts as the part of a full step that it is
        h[-1] = max(h[-1], h[-2])
    inside = np.clip(np.minimum(t[1:], window.end) - np.maximum(t[:-1], window.start), 0.0, None)
    with np.errstate(over="ignore"):  # the end of an explicit run at a loose tolerance may be of any size
        error = np.sqrt(np.mean(((run.end_u - window.at_end) / (scale + np.abs(window.at_end))) ** 2))
    cost = tried * float(np.sum(inside / h))
    return Run(cost, float(error), first, share_rejected, flagged, near, False)


def least_cost(errors, costs, at: float) -> float:
    """The least cost of an error on a ladder of tolerances, loosest first.

    It is read off at the loosest tolerance from which on every sharper one is exact enough, between that run and the
    one before it, with both axes logarithmic. A method whose loosest run is more exact than asked for is charged that
    run: a run that stability holds back does not become cheaper by asking for less.

    errors   the error of each run, loosest tolerance first; NaN where the run was given up, which is never exact enough
    costs    what each run cost, positive
    at       the error asked about

    Returns the cost; NaN where the sharpest run is not exact enough.

    >>> from odelab.experiments import least_cost
    >>> round(least_cost([1e-2, 1e-4, 1e-6], [10, 100, 1000], at=1e-3), 2)
    31.62
    >>> least_cost([1e-5, 1e-6], [50, 60], at=1e-3)
    50.0
    """
    errors, costs = np.asarray(errors, dtype=float), np.asarray(costs, dtype=float)
    if errors.shape != costs.shape or errors.ndim != 1 or not at > 0.0:
        raise ValueError(
            f"`costs` must hold one number per error and `at` be positive, got shapes {errors.shape} and "
            f"{costs.shape} and at = {at!r}."
        )
    enough = np.where(np.isfinite(errors), errors, np.inf) <= at
    first = len(enough) - int(np.argmin(enough[::-1])) if not enough.all() else 0
    if first == len(enough):
        return float("nan")
    if first == 0 or not np.isfinite(errors[first - 1]):
        return float(costs[first])
    loose, sharp = (math.log(max(errors[i], 1e-300)) for i in (first - 1, first))
    share = float(np.clip((loose - math.log(at)) / (loose - sharp), 0.0, 1.0))
    return float(math.exp((1.0 - share) * math.log(costs[first - 1]) + share * math.log(costs[first])))


def effective_derivative(sizes, order: int) -> float:
    """The one size of a derivative with which a run would take as many steps as with sizes that vary.

    Steps of (tolerance / size)^(1/order) are as many as the mean of size^(1/order) says, whatever the tolerance.

    sizes   scaled sizes of the derivative at times that are evenly spread over the window, at least 0
    order   which derivative, the error order of the method

    Returns the size; 0 where all are.

    >>> from odelab.experiments import windows
    >>> windows.effective_derivative([1.0, 0.0], 2)
    0.25
    """
    sizes = np.asarray(sizes, dtype=float)
    if sizes.size == 0 or not (sizes >= 0.0).all() or order < 1:
        raise ValueError(f"`sizes` must be at least 0 and `order` at least 1, got {sizes!r} and {order!r}.")
    return float(np.mean(sizes ** (1.0 / order)) ** order)


def evaluations_of(method) -> tuple[int, int]:
    """How often a method evaluates the right-hand side, Jacobians not counted.

    method  an explicit Method, whose last stage may be the first of the next step, or one that needs the Jacobian

    Returns (of every attempt, of every state that is kept): what is known at a state is used again after a rejection.

    >>> import odelab as ol
    >>> from odelab.experiments import windows
    >>> windows.evaluations_of(ol.DOPRI5), windows.evaluations_of(ol.RODAS4)
    ((6, 0), (5, 1))
    """
    return method.evaluations, int(not method.fsal)


def predicted_ratio(
    stable: float, derivative: float, other_derivative: float, tolerance: float, explicit, implicit, size: int
) -> float:
    """What theory says of R: evaluations of an explicit method over those of an L-stable one at equal error.

    The explicit method takes steps of min(h_acc, h_stab), the implicit one of its own h_acc; the constants of both
    error estimates are left out.

    stable            h_stab, the largest stable step of the explicit method; see `odelab.largest_stable_step`
    derivative        the scaled size of the solution's derivative of the explicit method's error order
    other_derivative  that of the implicit method's error order
    tolerance         the error, relative to the scale of the derivatives
    explicit          an explicit Method with an error estimate
    implicit          a method that needs the Jacobian, with one
    size              components; a Jacobian counts as so many evaluations

    Returns the ratio.

    >>> import odelab as ol
    >>> from odelab.experiments import windows
    >>> round(windows.predicted_ratio(1e-3, 1.0, 1.0, 1e-4, ol.DOPRI5, ol.RODAS4, size=2), 6)
    75.0
    """
    slow = accuracy_step(other_derivative, tolerance, implicit.error_order)
    fast = min(accuracy_step(derivative, tolerance, explicit.error_order), stable)
    return sum(evaluations_of(explicit)) / (sum(evaluations_of(implicit)) + size) * slow / fast
