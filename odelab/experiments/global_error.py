"""The error of a run at its end, estimated by repeating the run more exactly, and the tolerance for a wanted error.

Two estimates are compared (R. D. Skeel, Thirteen ways to estimate global error, Numer. Math. 48 (1986) 1-20): the same
steps taken as halves, without a control of errors, and a run at a tenth of the tolerances. Neither is divided by
1 - 2^-p: a method of order p whose order is reduced has another p. Where they agree, the larger one is the answer.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from odelab._solve import USUAL, solve
from odelab.complex_states import joined
from odelab.control.controllers import Controller, adaptive, fixed, listed
from odelab.methods.interface import StepMethod
from odelab.problem import Problem
from odelab.results import Result
from odelab.runs.pieces import window
from odelab.runs.trajectory import Trajectory

TIGHTER = 0.1  # the part of the tolerances with which a run is made again
AGREE = 3.0  # the error is known where the larger estimate is at most so many times the smaller one
NO_DIGITS = 0.1  # from this relative error on, estimates by differences say nothing but that it is large
SAFETY = 1.5  # tolerances are chosen for an error so many times smaller than the goal
LOOSEST = 0.1  # rtol
EPS = float(np.finfo(float).eps)


class Repeat(NamedTuple):
    """A run made again.

    how            in a word
    error          (n,), its difference from the run that is judged; None where it could not be made
    evaluations    how often the right-hand side was evaluated
    trouble        why it could not be made; empty where it could
    """

    how: str
    error: np.ndarray | None
    evaluations: int
    trouble: str = ""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GlobalError(Result, kinds={"components": "odelab.plot.of_results:draw_errors"}):
    """The error of a run at its end, as `odelab.global_error` estimates it; `print` says it in a sentence.

    sol              the run
    known            whether the estimates can be trusted
    end              the relative error: the root mean square of `per_component`; NaN where it is not known
    per_component    (n,), |error| / (|u| + floor), where the floor is atol / rtol of the run; NaN where not known
    error            (n,), the run's state at the end minus the exact one, with its sign; NaN where not known
    estimates        by the name of each repeated run, the relative error that it tells, trusted or not
    agreement        the larger estimate over the smaller; NaN where there is only one
    evaluations      how many evaluations of the right-hand side the estimate has cost
    reason           why the error is not known; empty where it is

    >>> import odelab as ol
    >>> decay = ol.Problem(lambda t, u, params: (-u[0],), [1.0], (0.0, 2.0))
    >>> error = ol.global_error(ol.solve(decay, ol.RK4, ol.fixed(0.1)))
    >>> error
    GlobalError(known=True, end=1.8e-06, agreement=1.1, cost=6)
    >>> error.controller_for(1e-8)
    fixed(h=0.0246976)
    """

    sol: Trajectory
    known: bool
    end: float
    per_component: np.ndarray
    error: np.ndarray
    estimates: dict[str, float]
    agreement: float
    evaluations: int
    reason: str

    def table(self):
        """A row per component."""
        return {"error": self.error, "relative": self.per_component}

    @property
    def cost(self) -> float:
        """What the estimate has cost, in evaluations of the run itself."""
        return self.evaluations / self.sol.evaluations

    def controller_for(self, goal: float) -> Controller:
        """The controller with which the error at the end should be two thirds of `goal`, if it follows the tolerance.

        For an adaptive run this is `odelab.adaptive` with rtol and atol in proportion, no sharper than doubles allow;
        for fixed steps `odelab.fixed`. Raises ValueError where the error is not known.
        """
        if not self.known:
            raise ValueError(f"there is no tolerance for an error that is not known: {self.reason}.")
        factor = checked_goal(goal) / (SAFETY * max(self.end, EPS))
        return sharpened(self.sol.controller, self.sol.method, factor)

    def __repr__(self):
        return (
            f"GlobalError(known={self.known}, end={self.end:.2g}, agreement={self.agreement:.2g}, cost={self.cost:.2g})"
        )

    def __str__(self):
        where = f"error of {self.sol.problem.name} at t = {self.sol.step_t[-1]:g}"
        cost = f"this took {self.cost:.1f} times the evaluations of the run"
        if not self.known:
            return f"{where} not known: {self.reason}; {cost}"
        parts = ""
        if len(self.per_component) > 1:
            with np.printoptions(threshold=8, formatter={"float_kind": lambda x: f"{x:.1g}"}):
                parts = f", by components {self.per_component}"
        seen = f"{' and '.join(self.estimates)} runs agree within {self.agreement:.1f}"
        if len(self.estimates) == 1:
            seen = "told by halved steps alone, which nothing confirms"
        return f"{where} about {self.end:.1g} (relative){parts}: {seen}; {cost}"


def global_error(sol: Trajectory, how: str = "both") -> GlobalError:
    """Estimate the error of a run at its end, by repeating the run more exactly.

    Tolerances bound the error of a step. What has come of all steps at the end may be far larger, and in one of six
    runs of the catalogue is a hundred times the tolerance. Two repeated runs tell it: the same steps as halves, and
    a tenth of the tolerances (quarters of the steps, where the run had no tolerances). The error is known where both
    agree within a factor of three. Then the larger one is reported.

    The run is repeated with its projection, its `tstops`, and its events that change the state, which have to happen
    as often as in the run. Where an event has ended the run, its state is judged at that time, and not the time itself.

    sol    what `odelab.solve` has returned for a method of odelab's own, a run that has reached its end. The states
           between its steps are not needed
    how    "both", the default, or "halved": half the cost, and nothing that shows where it fails

    Returns a GlobalError. Raises TypeError or ValueError where a run cannot be repeated.

    >>> import odelab as ol
    >>> sol = ol.solve(ol.problems.van_der_pol(5.0), ol.DOPRI5, ol.adaptive(1e-6, 1e-9))
    >>> error = ol.global_error(sol)
    >>> error.known, error.end < 1e-5, error.cost < 4.0
    (True, True, True)
    >>> ol.global_error(ol.solve(sol.problem, sol.method, error.controller_for(1e-8))).end < 1e-8
    True
    """
    check(sol, how)
    repeats = [finer(sol, 2)]
    if how == "both":
        repeats.append(finer(sol, 4) if sol.controller.rtol is None else tighter(sol))
    measure = functools.partial(relative, sol)
    sizes = {one.how: norm(measure(one.error)) for one in repeats if one.error is not None}
    trouble = "; ".join(one.trouble for one in repeats if one.trouble)
    agreement, reason = judged(sizes, EPS * math.sqrt(sol.steps), trouble)
    error = max((one.error for one in repeats if one.error is not None), key=lambda e: norm(measure(e)), default=None)
    if reason or error is None:
        error = np.full(sol.problem.size, math.nan)
    evaluations = sum(one.evaluations for one in repeats)
    per_component = measure(error)
    return GlobalError(
        sol, not reason, norm(per_component), per_component, error, sizes, agreement, evaluations, reason
    )


def check(sol, how: str):
    if not isinstance(sol, Trajectory):
        raise TypeError(f"`sol` must be the Trajectory that odelab.solve has returned, got {sol!r}.")
    if how not in ("both", "halved"):
        raise ValueError(f'`how` must be "both" or "halved", got {how!r}.')
    if not sol.ok or not sol.steps:
        raise ValueError(f"`sol` has not come to an end at which there were an error: {sol.message}.")
    if sol.asked is None:
        raise ValueError(
            "`sol` cannot be repeated: odelab.solve has not made it, or it comes from a file, which holds no `project` "
            "and no events that change the state."
        )
    if sol.method.run_by_scipy:
        raise ValueError(
            f"`sol` was made by SciPy's {sol.method.name}, whose steps cannot be taken again one by one; take a "
            "method of odelab's own, such as odelab.RODAS5P."
        )


def judged(sizes: dict[str, float], rounding: float, trouble: str) -> tuple[float, str]:
    """How far the estimates agree, and why they are not to be trusted; empty where they are.

    rounding    the relative error that comes of rounding alone; estimates below are no reason for doubt
    """
    least, most = (f(sizes.values(), default=math.nan) for f in (min, max))
    agreement = max(most, rounding) / max(least, rounding) if len(sizes) > 1 else math.nan
    if trouble:
        return agreement, trouble
    if agreement > AGREE:
        told = " and ".join(f"{size:.1g} ({how})" for how, size in sizes.items())
        return agreement, f"the two estimates, {told}, differ by {agreement:.1g}"
    if most > NO_DIGITS:
        return agreement, f"no digits are right, the estimated error is {most:.1g} of the solution"
    return agreement, ""


def relative(sol: Trajectory, error: np.ndarray) -> np.ndarray:
    """The error of each component, relative to its size and to the floor below which the run did not ask for digits."""
    given = sol.controller if sol.controller.rtol is not None else USUAL
    floor = np.asarray(given.atol) / given.rtol
    if sol.problem.is_complex and floor.ndim:  # one for each part
        floor = np.abs(joined(floor))
    size, unit = np.abs(error), np.abs(sol.end_u) + floor
    return np.divide(size, unit, out=np.where(size == 0.0, 0.0, math.inf), where=unit > 0.0)


def norm(errors: np.ndarray) -> float:
    """The root mean square, of numbers of any size."""
    largest = float(errors.max())
    return largest * float(np.sqrt(np.mean((errors / largest) ** 2))) if 0.0 < largest < math.inf else largest


def sharpened(controller: Controller, method: StepMethod, factor: float) -> Controller:
    """A controller whose error should be `factor` times that of another one."""
    if controller.rtol is None:
        if controller.h is None:
            raise ValueError(f"there is no tolerance to be changed in {controller}.")
        return fixed(controller.h * factor ** (1.0 / method.order))
    rtol = min(max(controller.rtol * factor, method.smallest_rtol), LOOSEST)
    atol = controller.atol * (rtol / controller.rtol)
    return adaptive(rtol, atol, controller.law, controller.first_step, controller.max_step)


def tighter(sol: Trajectory) -> Repeat:
    """The run at a tenth of its tolerances."""
    controller = sharpened(sol.controller, sol.method, TIGHTER)
    if controller.rtol > 0.5 * sol.controller.rtol:
        return Repeat("tighter", None, 0, f"no run can be tighter than rtol = {sol.controller.rtol:g}")
    return compared(sol, "tighter", [(sol.method, sol.step_t[0], sol.step_t[-1], controller)])


def finer(sol: Trajectory, parts: int) -> Repeat:
    """The run with each of its steps divided into equal parts."""
    how = {2: "halved", 4: "quartered"}[parts]
    steps = np.diff(sol.step_t)
    ends = sol.step_t[1:, None] - steps[:, None] * (np.arange(parts)[::-1] / parts)
    _, first = np.unique(ends, return_index=True)  # steps of a few spacings of t cannot be divided
    controller = listed(ends.ravel()[np.sort(first)])
    return compared(sol, how, [(*stretch, controller) for stretch in stretches(sol)])


def stretches(sol: Trajectory) -> Iterator[tuple[StepMethod, float, float]]:
    """(method, from, to) of the steps that one method has taken in a row."""
    took = np.full(sol.steps, sol.method.name) if sol.took is None else sol.took
    members = {method.name: method for method in sol.method.members}
    bounds = [0, *(np.flatnonzero(took[1:] != took[:-1]) + 1), sol.steps]
    for first, last in itertools.pairwise(bounds):
        yield members[took[first]], float(sol.step_t[first]), float(sol.step_t[last])


def compared(sol: Trajectory, how: str, pieces: list[tuple[StepMethod, float, float, Controller]]) -> Repeat:
    """A run made again, piece by piece (method, from, to, controller), and its difference from the first one."""
    u, evaluations, asked = sol.problem.u0, 0, dict(sol.asked or {})
    changing, stops = asked.pop("changing"), asked.pop("tstops")
    if changing and len(pieces) > 1:
        return Repeat(how, None, 0, "a run whose method and whose state were changed cannot be repeated by halves")
    for method, t0, t1, controller in pieces:
        part = sol.problem.piece(t0, t1, u, tuple(map(float, window(t0, t1))) if len(stops) else None)
        inside = stops[(stops - t0) * (stops - t1) < 0.0]
        run = solve(
            *(part, method, controller),
            **asked,
            tstops=inside,
            events=list(changing.values()),
            dense=bool(changing),
            max_steps=max(1_000_000, 100 * (sol.steps + sol.rejected)),
            throw=False,
        )
        evaluations += run.evaluations
        if not run.ok:
            told = f"the {how} run ended before, at t = {run.step_t[-1]:g} ({run.status})"
            return Repeat(how, None, evaluations, told)
        for found, number in zip(run.events, changing, strict=True):
            before, now = len(sol.events[number].t), len(found.t)
            if now != before:
                told = f"the state was changed {before} times in the run and {now} times in the {how} one"
                return Repeat(how, None, evaluations, told)
        u = run.end_u
    return Repeat(how, sol.end_u - u, evaluations)


class SolvedTo(NamedTuple):
    """What `odelab.solve_to` returns.

    sol        the last run
    error      its `GlobalError`
    goal       the relative error that was wanted
    rounds     how many runs were made and judged

    >>> import odelab as ol
    >>> sol, error, goal, rounds = ol.solve_to(ol.problems.lorenz(), ol.DOP853, goal=1e-8)
    >>> error.end < goal, rounds <= 4
    (True, True)
    """

    sol: Trajectory
    error: GlobalError
    goal: float
    rounds: int

    @property
    def reached(self) -> bool:
        """Is the error known, and at most the goal?"""
        return self.error.known and self.error.end <= self.goal

    def __str__(self):
        word = "reached" if self.reached else "not reached"
        runs = f"{self.rounds} run{'s' if self.rounds > 1 else ''}"
        return f"goal {self.goal:g} {word} in {runs}, the last with {self.sol.controller}; {self.error}"


def solve_to(
    problem: Problem,
    method: StepMethod,
    goal: float,
    controller: Controller | None = None,
    *,
    rounds: int = 4,
    **options: Any,
) -> SolvedTo:
    """Solve a problem so that the error at the end is at most `goal`: run, estimate the error, choose new tolerances.

    problem       the `Problem`
    method        a method of odelab's own
    goal          the relative error at the end that is wanted, as `GlobalError.end` measures it
    controller    the first one to try; `ol.adaptive(goal, 1e-3 * goal)` by default
    rounds        how many runs are made at most; 4 by default
    options       further arguments of `odelab.solve`, such as `tstops` or `project`, but not `throw`

    Returns a SolvedTo: the last run that got through, its error, and whether the goal was reached. Raises what
    `odelab.solve` and `odelab.global_error` raise of the first one.

    >>> import odelab as ol
    >>> found = ol.solve_to(ol.problems.oregonator(), ol.RODAS4, goal=1e-6)
    >>> found.reached, found.error.end < 1e-6, found.rounds <= 4
    (True, True, True)
    """
    checked_goal(goal)
    if isinstance(rounds, bool) or not (isinstance(rounds, int | np.integer) and rounds > 0):
        raise ValueError(f"`rounds` must be a positive whole number, got {rounds!r}.")
    chosen = controller or adaptive(max(goal, method.smallest_rtol), 1e-3 * goal)
    seen: list[tuple[float, float]] = []
    for number in range(1, rounds + 1):
        sol = solve(problem, method, chosen, throw=number == 1, **options)
        if not sol.ok:
            break
        error = global_error(sol)
        found = SolvedTo(sol, error, float(goal), number)
        if found.reached:
            break
        factor = TIGHTER
        if error.agreement <= AGREE:
            largest = max(error.estimates.values())
            if error.known:
                seen.append((tolerance_of(sol.controller, method), largest))
            factor = (goal / (SAFETY * largest)) ** (1.0 / power_of_tolerance(seen))
        chosen = sharpened(sol.controller, method, factor)
        if tolerance_of(chosen, method) == tolerance_of(sol.controller, method):
            break
    return found


def tolerance_of(controller: Controller, method: StepMethod) -> float:
    """What the error at the end should be proportional to."""
    return controller.rtol or controller.h**method.order  # type: ignore[operator]


def power_of_tolerance(seen: list[tuple[float, float]]) -> float:
    """The power of the tolerance that the error follows, from the last two (tolerance, error); 1 before that."""
    if len(seen) < 2:
        return 1.0
    (one, first), (other, second) = seen[-2:]
    return min(max(math.log(first / second) / math.log(one / other), 0.5), 1.5)


def checked_goal(goal) -> float:
    if not (isinstance(goal, int | float | np.number) and 0.0 < goal < 1.0):
        raise ValueError(f"`goal` must be a relative error between 0 and 1, got {goal!r}; try 1e-6.")
    return float(goal)
