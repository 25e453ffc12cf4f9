"""What limits an explicit step along a solution: the step that accuracy would allow beside the one that is stable."""

import dataclasses
import functools
import itertools
import math

import numpy as np

from odelab.experiments.windows import Window, cut_into_windows
from odelab.methods.explicit import DOPRI5
from odelab.methods.implicit import RODAS4, RODAS5P
from odelab.methods.tableau import Method
from odelab.problem import Problem
from odelab.stiffness.jacobian import jacobian
from odelab.stiffness.scales import OSCILLATES, accuracy_step, window_derivative
from odelab.stiffness.stable_step import largest_stable_step

COUNT = 40  # windows
LARGEST = 128  # components: of more, eigenvalues at both ends of all windows take too long for a first answer
STIFF = 2.0  # stability multiplies the steps of the explicit method by so many where a problem is called stiff


@dataclasses.dataclass(frozen=True, eq=False)
class StepLimits:
    """What limits the steps of an explicit method on windows of a solution.

    The windows are a sample, even in the number of steps that an implicit method takes, so that one in a fast
    transition stands for as many steps as one in a slow phase.

    method    the explicit method
    windows   (k,), each a `Window` with the exact states in it
    span      the length of the whole run
    accurate  (k,), the step that would just meet the tolerance
    stable    (k,), the largest step at which no decaying or oscillating mode grows

    Where `ratio` = accurate / stable is above 1, stability binds.
    """

    method: Method
    windows: tuple[Window, ...]
    span: float
    accurate: np.ndarray
    stable: np.ndarray

    @property
    def ratio(self) -> np.ndarray:
        return self.accurate / self.stable

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """(k,), the time that each window stands for; the span in all."""
        lengths = np.array([window.end - window.start for window in self.windows])
        return lengths * (self.span / lengths.sum())

    @property
    def steps(self) -> float:
        """How many steps the method would take over the whole span."""
        return float((self.lengths / np.minimum(self.accurate, self.stable)).sum())

    @property
    def times_more(self) -> float:
        """By how much stability multiplies the steps of the whole run."""
        return self.steps / float((self.lengths / self.accurate).sum())

    @property
    def stiff(self) -> bool:
        """Does stability at least double the steps?"""
        return self.times_more >= STIFF

    @property
    def worst(self) -> Window:
        """The window in which stability adds most steps."""
        added = self.lengths / np.minimum(self.accurate, self.stable) - self.lengths / self.accurate
        return self.windows[int(np.argmax(added))]

    @property
    def binding(self) -> list[tuple[float, float]]:
        """From when to when stability binds: windows in a row that all do."""
        spans = []
        for bound, members in itertools.groupby(zip(self.ratio > 1.0, self.windows, strict=True), lambda one: one[0]):
            inside = [window for _, window in members]
            if bound:
                spans.append((inside[0].start, inside[-1].end))
        return spans

    @property
    def share(self) -> float:
        """The share of the span in which stability binds."""
        return float(self.lengths[self.ratio > 1.0].sum() / self.span)


def step_limits(problem: Problem, rtol: float, atol, method: Method = DOPRI5) -> StepLimits:
    """Measure what limits an explicit method's steps.

    problem     a Problem of at most 128 components without a mass matrix, which runs forward in time
    rtol, atol  the tolerances of a step
    method      an explicit method with an error estimate whose order is at most 7; odelab.DOPRI5
    """
    _, windows = cut_into_windows(problem, RODAS4, RODAS5P, COUNT)
    span = problem.t_span[1] - problem.t_span[0]
    accurate = np.array([accurate_step(window, rtol, atol, method) for window in windows])
    stable = np.array([stable_step(problem, window, method) for window in windows])
    return StepLimits(method, tuple(windows), span, np.minimum(accurate, span), np.minimum(stable, span))


def accurate_step(window: Window, rtol: float, atol, method: Method) -> float:
    """The step at which the method's error estimate would just meet the tolerance, were the problem u' = g(t)."""
    small = atol + rtol * np.abs(window.states).mean(axis=0)
    order = method.error_order
    size = window_derivative(window.times, window.states, order, np.maximum(small, np.finfo(float).tiny))
    return accuracy_step(error_constant(method) * size, 1.0, order)


def error_constant(method: Method) -> float:
    """The coefficient of z^k in the error estimate of one step of u' = lambda u, with z = h lambda and k its order."""
    stages = method.stages
    a = np.array([[float(x) for x in row] + [0.0] * (stages - len(row)) for row in method.a])
    powers = np.linalg.matrix_power(a, method.error_order - 1) @ np.ones(stages)
    difference = [float(x - y) for x, y in zip(method.b, method.b_low or (), strict=True)]
    return abs(float(difference @ powers))


def stable_step(problem: Problem, window: Window, method: Method) -> float:
    """The largest stable step at either end of a window."""
    steps = []
    for t, u in ((window.start, window.at_start), (window.end, window.at_end)):
        values = np.linalg.eigvals(dense_jacobian(problem, t, u))
        steps.append(largest_stable_step(values, method, modes="nongrowing", gain=OSCILLATES))
    return min(steps, default=math.inf)


def dense_jacobian(problem: Problem, t: float, u) -> np.ndarray:
    """The Jacobian at a state, as an array."""
    J = jacobian(problem, t, u)
    return J.toarray() if hasattr(J, "toarray") else np.asarray(J)
