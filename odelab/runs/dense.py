"""Dense output: the state of a run at any time, found by repeating the step around that time.

Nothing is stored for it while solving. Time, state and size at the start of each step are known, so its stages can be
computed again when they are needed, for many steps at once if the right-hand side is in component form.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab import core
from odelab.arrays import read_only
from odelab.methods import extension
from odelab.methods.tableau import Method
from odelab.problem import Problem, array_form
from odelab.right_hand_side import COMPONENT
from odelab.runs.retaking import Retaken

BATCH = 4096  # steps taken again at once; bounds the memory
COMPARED = 8  # states that are also evaluated one by one, to check that a right-hand side handles many at once


class Interpolant:
    """The state of a run at any time of its span: exactly `u` at the knots `t`, and between them that of `between`."""

    t: np.ndarray  # (m+1,) knots
    u: np.ndarray  # (m+1, n)

    def __call__(self, t):
        return self.at(t, "dense")

    def at(self, t, by: str):
        """The state at one time or an array of times; by "step", steps are taken again to the times inside them."""
        between = self.between_by_steps if by == "step" else self.between
        times = np.asarray(t, dtype=float)
        wanted = times.ravel()
        check_inside(wanted, self.t[0], self.t[-1])
        if self.t[-1] >= self.t[0]:
            index = np.searchsorted(self.t, wanted, side="right") - 1
        else:
            index = len(self.t) - 1 - np.searchsorted(self.t[::-1], wanted, side="left")
        states = self.u[index]
        inner = self.t[index] != wanted
        if inner.any():
            states[inner] = between(index[inner], wanted[inner])
        return states.reshape(*times.shape, self.u.shape[1])

    def between(self, index, times) -> np.ndarray:
        """States (k, n) at times (k,) inside the steps of these numbers."""
        raise NotImplementedError

    def between_by_steps(self, index, times) -> np.ndarray:
        """The same by steps that are taken again."""
        raise NotImplementedError


@dataclasses.dataclass(eq=False)
class Dense(Interpolant):
    """The continuous extension of a run."""

    problem: Problem
    method: Any  # an explicit, a stabilised or a linearly implicit one
    t: np.ndarray  # (m+1,) knots
    u: np.ndarray  # (m+1, n)
    h: np.ndarray  # (m,)
    project: Callable | None = None
    took: np.ndarray | None = None  # (m,), of a run of two methods: which of them took each step
    look_inside: Callable | None = (
        None  # the compiled look inside steps (`kernels.interior.states`), where there is one
    )
    step_again: Callable | None = None  # step_again(t, u, h): the compiled step, where steps are taken again by it

    def __post_init__(self):
        # An extension made of stages repeats a step of full size. The cubic needs the size of the part that is left.
        if not self.method.repeats_steps:
            self.h = np.diff(self.t)
        self.latest: tuple[int, Any] = (-1, None)  # the step whose state was asked for last, and its polynomial

    @functools.cached_property
    def stepper(self):
        """The step of a linearly implicit method, to repeat its steps."""
        return self.method.stepper(self.problem, array_form(self.problem))

    @functools.cached_property
    def retaken(self) -> Retaken:
        """Its steps, to be taken again."""
        return Retaken(self)

    def __getstate__(self):
        without = {name: value for name, value in self.__dict__.items() if name not in ("stepper", "retaken")}
        return without | {"look_inside": None, "step_again": None}

    def between(self, index, times):
        if len(times) == 1:
            return self.at_one_time(int(index[0]), times[0])[None]
        steps, position = np.unique(index, return_inverse=True)
        states = np.empty((len(times), self.u.shape[1]))
        for start in range(0, len(steps), BATCH):
            chunk = steps[start : start + BATCH]
            here = (position >= start) & (position < start + len(chunk))
            rows = position[here] - start
            theta = (times[here] - self.t[chunk][rows]) / self.h[chunk][rows]
            states[here] = self.inside(chunk, rows, theta)
        return states

    def between_by_steps(self, index, times):
        return np.array([self.retaken.to(int(i), float(t)) for i, t in zip(index, times, strict=True)])

    def at_one_time(self, i, t):
        """The state at a time in step i, whose polynomial is kept: a right-hand side with a delay asks there again."""
        number, polynomial = self.latest
        if number != i:
            polynomial = self.polynomials(np.array([i]))[0]
            self.latest = (i, polynomial)
        state = self.u[i] + extension.powers((t - self.t[i]) / self.h[i], len(polynomial)) @ polynomial
        return state if self.project is None else self.project(state)

    def inside(self, steps, rows, theta):
        """States at fractions `theta` of the steps `steps[rows]`."""
        polynomials = self.polynomials(steps)
        powers = extension.powers(theta, polynomials.shape[1])
        states = self.u[steps][rows] + np.einsum("pr,rpn->rn", powers, polynomials[rows])
        if self.project is not None:
            states = np.stack([self.project(state) for state in states])
        return states

    def value(self, polynomial, i, theta):
        """The state at a fraction of step i, given its polynomial; Horner's rule."""
        change = polynomial[-1]
        for coefficients in polynomial[-2::-1]:
            change = change * theta + coefficients
        state = self.u[i] + theta * change
        return state if self.project is None else self.project(state)

    def polynomials(self, steps, rhs=None) -> np.ndarray:
        """(len(steps), degree, n): coefficients of theta, theta^2, ... of u(theta) - u on each of the steps.

        rhs    the right-hand side of many states, if `rhs_of_columns` has been called before
        """
        if self.method.switches:
            return self.of_two_methods(steps, self.method, rhs)
        if not self.method.repeats_steps:
            return self.hermite(steps)
        if not self.method.repeats_at_once:
            return self.increments(steps, self.method.extension_weights)
        h = self.h[steps]
        slopes = np.moveaxis(stage_slopes(self.problem, self.method, self.t[steps], self.u[steps], h, rhs=rhs), 0, -1)
        slopes = np.moveaxis(slopes, 1, 0)  # (stages, n, k), as they were computed: one product of matrices
        weights = extension.weights(self.method).T
        found = (weights @ slopes.reshape(len(slopes), -1)).reshape(len(weights), *slopes.shape[1:]) * h
        return np.moveaxis(found, -1, 0)

    def of_two_methods(self, steps, methods, rhs):
        """The same where two methods have taken turns; the lower degree is filled up with zeros."""
        assert self.took is not None
        turns = self.took[steps].astype(int)
        polynomials = []
        for number, method in enumerate(methods.members):
            one = Dense(self.problem, method, self.t, self.u, self.h, self.project)
            polynomials.append(one.polynomials(steps[turns == number], rhs))
        both = np.zeros((len(steps), max(some.shape[1] for some in polynomials), self.u.shape[1]))
        for number, some in enumerate(polynomials):
            both[np.flatnonzero(turns == number), : some.shape[1]] = some
        return both

    def increments(self, steps, weights):
        """The same from the increments of steps that need the Jacobian, taken again one by one."""
        rhs, params = array_form(self.problem), self.problem.params
        found = np.empty((len(steps), len(weights), self.u.shape[1]))
        with np.errstate(all="ignore"):
            for row, i in enumerate(steps):
                t, u, h = float(self.t[i]), self.u[i], float(self.h[i])
                known = self.stepper.prepare(t, u, rhs(t, u, params), params)
                found[row] = weights @ np.array(self.stepper.step(rhs, params, t, u, known, h, h)[3][self.method.final])
        return found

    def hermite(self, steps):
        """The same of the cubic through both ends of a step with the slopes there."""
        h = self.h[steps, None]
        start, end = (slopes_at(self.problem, self.t[i], self.u[i]) * h for i in (steps, steps + 1))
        data = np.stack([self.u[steps + 1] - self.u[steps], start, end])
        return np.einsum("sp,skn->kpn", extension.HERMITE[:, 1:], data)


def slopes_at(problem: Problem, t, u) -> np.ndarray:
    """(k, n): the right-hand side at the states u (k, n)."""
    rhs = array_form(problem)
    with np.errstate(all="ignore"):
        return np.array([rhs(time, state, problem.params) for time, state in zip(t, u, strict=True)])


def effective_slopes(trajectory) -> np.ndarray:
    """S of every step: sum b_i k_i of an explicit Runge-Kutta method, else the change of state over step size."""
    t, u, h, method = trajectory.step_t, trajectory.step_u, trajectory.h, trajectory.method
    if trajectory.problem is None or method is None or not method.repeats_at_once:
        return np.diff(u, axis=0) / np.asarray(h)[:, None]
    stages = stage_slopes(trajectory.problem, method, t[:-1], u[:-1], h, end=False)
    return stages @ np.array(method.tableau.b)


def stage_slopes(problem: Problem, method: Method, t, u, h, end=True, rhs=None) -> np.ndarray:
    """(k, n, stages): the slopes of steps of size h from u (k, n) at t; if `end`, those of the extension too."""
    u = np.ascontiguousarray(u.T)
    slopes = _slopes(rhs or rhs_of_columns(problem, t, u), problem.params, method, t, u, h, end)
    return np.moveaxis(slopes, 0, -1).swapaxes(0, 1)


def _slopes(rhs, params, method, t, u, h, end):
    """(stages, n, k): all slopes are stored in one array, so that a weighted sum of them is one matrix product."""
    extra = (not method.fsal) + len(method.extra) if end else 0
    stages = np.empty((method.stages + extra, *u.shape))
    rows, free = stages.reshape(len(stages), -1), iter(stages)

    def next_stage(t, u, params):
        stage = next(free)
        stage[...] = rhs(t, u, params)
        return stage

    def combine(weights, slopes, count):
        return (np.array(weights[:count]) @ rows[:count]).reshape(u.shape)

    with np.errstate(all="ignore"):
        tableau = method.tableau._replace(embedded=False)
        slope = next_stage(t, u, params)
        u_new, _, _, slopes = core.rk_step(combine, next_stage, params, t, u, slope, h, h, tableau)
        if end:
            extension.finish_stages(combine, next_stage, params, method, t, u, h, u_new, slopes)
    return stages


def rhs_of_columns(problem: Problem, t, u, params=None) -> Callable:
    """The right-hand side as a function of the columns u (n, m), each with its own time.

    It is called with all columns at once where that gives the same as calling it with one after the other.

    `params` are the parameters of the columns, a row (m,) for each of them; None where all have the problem's own.
    """
    alone = array_form(problem)

    def one_by_one(t, u, own):
        sets = itertools.repeat(own) if params is None else zip(*own, strict=True) if own else itertools.repeat(())
        return np.array([alone(*place) for place in zip(t, u.T, sets, strict=False)]).T

    def together(t, u, own):
        out = np.empty_like(u)
        for i, slope in enumerate(problem.rhs(problem.seen(t), read_only(u), own)):
            out[i] = slope
        return out

    if problem.form != COMPONENT or len(t) < 2:
        return one_by_one
    some = np.unique(np.linspace(0, len(t) - 1, COMPARED).astype(int))
    own = problem.params if params is None else params
    with np.errstate(all="ignore"):
        try:
            many = together(t, u, own)[:, some]
        except (TypeError, ValueError, AttributeError, ArithmeticError):
            return one_by_one  # it takes only numbers, because of math.exp or an `if`
        expected = one_by_one(t[some], u[:, some], own if params is None else tuple(row[some] for row in own))
        same = np.allclose(many, expected, 1e-9, 1e-9 * np.abs(expected).max(), equal_nan=True)
    return together if same else one_by_one  # a function that mixes states, such as a mean over u, differs


def check_inside(times, t0, t1):
    """Raise ValueError if a time lies outside the span; the message names the first one."""
    outside = ~((times >= min(t0, t1)) & (times <= max(t0, t1)))
    if outside.any():
        raise ValueError(
            f"`t` = {times[outside][0]} lies outside the run's span [{min(t0, t1)}, {max(t0, t1)}]; "
            "solve over a longer `t_span` instead of extrapolating."
        )
