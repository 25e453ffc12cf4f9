"""What methods cost on a problem at one error: each is run and timed at the tolerance with which it makes it."""

import dataclasses
import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from odelab._solve import solve
from odelab.control.controllers import Controller, adaptive
from odelab.experiments.clock import measure
from odelab.methods.interface import StepMethod
from odelab.problem import Problem
from odelab.runs.retaking import can_be_retaken
from odelab.runs.trajectory import Trajectory

ALIKE = 1.5  # a run whose error is within this factor of the goal needs no other tolerance
FACTORS = (1e-4, 1e4)  # by which a tolerance is changed at most
SHORT = 2e-2  # seconds of processor time: a shorter run is timed again
LOOSEST = 1e-2  # rtol
AGAIN = 3  # how often
FLOOR = 0.5  # seconds that every run may take at least
FEW, MANY = 3, 10**8  # attempts of a run for compiling, and of one that only the clock ends
WRONG = 0.1  # the relative error from which on runs are compared at one tolerance, as none of them is exact


@dataclasses.dataclass(frozen=True, eq=False)
class Cost:
    """What one method costs on a problem.

    method       the method
    controller   the tolerances with which it makes the error
    seconds      processor time of a run, compiled before; of one that was given up, the time until then
    evaluations  of the right-hand side in a run
    steps        accepted
    error        at the times that are compared, over the tolerance that was asked for, see `Exactness.error`; NaN where
                 the run did not get through
    reached      the share of the span that it covered, 1 for a run that got through
    """

    method: StepMethod
    controller: Controller
    seconds: float
    evaluations: int
    steps: int
    error: float
    reached: float

    @property
    def name(self) -> str:
        return "AUTO" if self.method.switches else self.method.name

    @property
    def finished(self) -> bool:
        return self.reached == 1.0

    def __str__(self):
        if not self.finished:
            return (
                f"{self.name} was given up after {in_words(self.seconds)} at {number(100 * self.reached)} % of the span"
            )
        return f"{self.name} takes {in_words(self.seconds)} ({self.evaluations:,} evaluations)"


def number(value: float) -> str:
    """Two digits, written out where that is short."""
    return f"{float(f'{value:.2g}'):,.0f}" if 10.0 <= value < 1e6 else f"{value:.2g}"


def in_words(seconds: float) -> str:
    """A time in a unit that suits it."""
    unit, size = next(
        pair for pair in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)) if seconds >= 0.1 * pair[1] or pair[1] < 1e-5
    )
    return f"{number(seconds / size)} {unit}"


@dataclasses.dataclass(frozen=True, eq=False)
class Exactness:
    """The solution at a few times, by which errors are judged.

    t, u        (k,) and (k, n): times in the direction of the run, and states far more exact than the tolerance
    rtol, atol  the tolerance: what of a state is small is atol + rtol |u|
    """

    t: np.ndarray
    u: np.ndarray
    rtol: float
    atol: np.ndarray | float

    def error(self, states) -> float:
        """The median over these times of the root mean square error of states, over the tolerance.

        A run that goes through a fast transition a little early is wholly wrong there and right everywhere else, which
        the largest error would not tell from one that is wrong everywhere.
        """
        if len(states) < len(self.t):
            return math.nan
        small = np.maximum(self.atol + self.rtol * np.abs(self.u), np.finfo(float).tiny)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.median(np.sqrt(np.mean(np.abs((states - self.u) / small) ** 2, axis=1))))


def cost(problem: Problem, method: StepMethod, controller: Controller, exact: Exactness, limit: float) -> Cost:
    """Run a method for at most so many seconds, judge its error and time it."""
    judged = run(problem, method, controller, limit, **asked(method, exact))
    reached = float((judged.step_t[-1] - problem.t_span[0]) / (problem.t_span[1] - problem.t_span[0]))
    if not judged.ok:
        return Cost(method, controller, limit, judged.evaluations, judged.steps, math.nan, min(reached, 0.999))
    plain: list[Trajectory] = []
    taken = [measure(lambda: plain.append(run(problem, method, controller)), 1)[1] for _ in range(2)]
    if taken[-1] < SHORT:
        taken += [measure(lambda: run(problem, method, controller), 1)[1] for _ in range(AGAIN)]
    return Cost(method, controller, min(taken), plain[-1].evaluations, plain[-1].steps, exact.error(judged.u), 1.0)


def compile_runs(problem: Problem, method: StepMethod, controller: Controller, exact: Exactness):
    """Begin runs of both kinds that are made of a method, so that what is compiled takes no time later."""
    for how in (asked(method, exact), {}):
        run(problem, method, controller, max_steps=FEW, **how)


def asked(method: StepMethod, exact: Exactness) -> dict[str, Any]:
    return {"t_eval": exact.t, "t_eval_by": "step" if can_be_retaken(method) else "dense"}


def run(problem, method, controller, limit=None, max_steps=MANY, **how) -> Trajectory:
    with np.errstate(all="ignore"):
        return solve(problem, method, controller, throw=False, time_limit=limit, max_steps=max_steps, **how)


def cost_of_error(problem: Problem, method: StepMethod, controller: Controller, exact: Exactness, goal, limit) -> Cost:
    """What a method costs at the tolerance with which it makes an error of `goal`, the controller's at first."""
    priced = cost(problem, method, controller, exact, limit)
    for _ in range(2):
        if not (priced.finished and goal > 0.0 and priced.error > 0.0):
            break
        factor = goal / priced.error
        if 1.0 / ALIKE <= factor <= ALIKE:
            break
        other = changed(priced.controller, method, min(max(factor, FACTORS[0]), FACTORS[1]))
        if other.rtol == priced.controller.rtol:
            break
        again = cost(problem, method, other, exact, limit)
        if again.finished and again.error > ALIKE * goal >= priced.error:
            break  # a looser tolerance was too loose: what is exact enough stays
        priced = again if again.finished else priced
    return priced


def changed(controller: Controller, method: StepMethod, factor: float) -> Controller:
    """A controller with both tolerances multiplied, as far as rtol goes."""
    rtol = min(max(controller.rtol * factor, method.smallest_rtol), max(LOOSEST, controller.rtol))
    law = None if controller.law_by_method else controller.law
    return adaptive(rtol, controller.atol * (rtol / controller.rtol), law, controller.first_step, controller.max_step)


def costs(
    problem: Problem, methods: Iterable[StepMethod], controller: Controller, exact: Exactness, allowed: float
) -> list[Cost]:
    """What each method costs at the error that the first one makes with this controller, within so many seconds.

    Where the first one's error is as large as the solution, all keep its tolerances.

    No run may take more than a share of the time, and none more than thirty times what the best one took.
    """
    found: list[Cost] = []
    spent, goal = 0.0, math.nan
    for method in methods:
        compile_runs(problem, method, controller, exact)
        started = time.monotonic()
        best = min((one.seconds for one in found if one.finished), default=math.inf)
        limit = max(FLOOR, min(0.25 * (allowed - spent), 30.0 * best))
        if not found:
            found.append(cost(problem, method, controller, exact, 0.5 * allowed))
            goal = found[0].error if found[0].error * exact.rtol < WRONG else math.nan
        elif spent < allowed:
            found.append(cost_of_error(problem, method, controller, exact, goal, limit))
        spent += time.monotonic() - started
    return found
