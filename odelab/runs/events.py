"""Events: zeros of g(t, u, params) along a run, located on its dense output.

Where more depends on a zero, because it ends the run or changes the state, or where states inside a step are doubtful,
the step is taken again to each time that is tried: the zero is then as exact as the ends of steps.

Many steps are examined together. If g accepts arrays, it is evaluated at twelve places of every step in one call; for
most steps this shows that they hold no zero, or exactly one. Only the other steps are examined one by one.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import read_only
from odelab.right_hand_side import DOMAIN_ERRORS, accepted_counts, ignoring_params, signature_of
from odelab.runs import roots
from odelab.runs.dense import Dense, rhs_of_columns
from odelab.runs.interior import doubtful_steps, implicit_steps
from odelab.runs.retaking import can_be_retaken

AT_ONCE = 16_384  # steps examined together
TRIED = 5  # values of g that are also computed one by one, to check that g handles many states at once
SIMULTANEOUS = 8  # spacings of t: events no further apart than this count as simultaneous
PLACES = np.concatenate([roots.NODES[1:-1], roots.PROBES])  # where g is evaluated on a step, besides its ends


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happens where a function of time and state becomes zero.

    Its zeros are located on the dense output of a run; where it passes through several within one step, all are found.
    One that ends the run or changes the state is as exact as the ends of steps: the step is taken again to it.
    A function that touches zero and turns back is no event, and a zero at the start of the run is none.

    function     function(t, u, params) (or function(t, u)) that returns one number
    terminal     True ends the run at the first zero, 3 at the third; False, the default, only records them
    direction    1 counts zeros where the function rises along the run, -1 those where it falls, 0, the default, both
    name         what messages call it; the name of the function by default
    change       change(t, u, params), the state to go on from; None, the default, changes nothing. The run goes on
                 from there with a new first step, and `Trajectory.events` keeps the states before the change

    A ball that loses a tenth of its speed at each bounce:

    >>> import odelab as ol
    >>> ball = ol.Problem(lambda t, u, params: (u[1], -9.81), [10.0, 0.0], (0.0, 5.0))
    >>> floor = ol.Event(lambda t, u, params: u[0], direction=-1, change=lambda t, u, params: [0.0, -0.9 * u[1]])
    >>> sol = ol.solve(ball, ol.DOPRI5, events=floor)
    >>> sol.events[0].t.round(4)
    array([1.4278, 3.998 ])
    """

    function: Callable
    terminal: bool | int = False
    direction: int = 0
    name: str = ""
    change: Callable | None = None


@dataclasses.dataclass(frozen=True)
class Resting(Event):
    """An event whose zero is where a run starts, up to rounding: its value there counts as zero."""


class EventRecord(NamedTuple):
    """Where one event happened: times, states, and +1 or -1 for each zero's direction.

    `undefined` is the number of steps on which its function was not finite, where no zero can be found; `name` is that
    of the event.
    """

    t: np.ndarray
    u: np.ndarray
    direction: np.ndarray
    undefined: int = 0
    name: str = ""


def checked_events(given) -> tuple[Event, ...]:
    """Events from events, or from functions with scipy's `terminal` and `direction` attributes; one or several."""
    if given is None:
        return ()
    if isinstance(given, Event) or callable(given):
        given = (given,)
    if not isinstance(given, list | tuple):
        raise TypeError(f"`events` must be a function g(t, u, params), an Event, or a list of them, got {given!r}.")
    return tuple(_event(one) for one in given)


def _event(one: Any) -> Event:
    if not isinstance(one, Event):
        if not callable(one):
            raise TypeError(f"`events` must hold functions g(t, u, params) or Event objects, got {one!r}.")
        one = Event(one, getattr(one, "terminal", False), int(np.sign(getattr(one, "direction", 0))))
    if one.direction not in (-1, 0, 1):
        raise ValueError(f"`direction` of an event must be -1, 0 or 1, got {one.direction!r}.")
    if not (isinstance(one.terminal, bool | np.bool | int | np.integer) and one.terminal >= 0):
        raise ValueError(f"`terminal` of an event must be True, False or a count from 1 up, got {one.terminal!r}.")
    return dataclasses.replace(
        one,
        function=with_three_arguments("function", one.function),
        change=one.change and with_three_arguments("change", one.change),
        name=one.name or getattr(one.function, "__name__", ""),
    )


def with_three_arguments(name, function) -> Callable:
    code = getattr(function, "__code__", None)
    if code is not None and code.co_argcount == 3 and not code.co_kwonlyargcount and isinstance(function, FunctionType):
        return function  # as most are; to ask for a signature takes longer than a short run
    counts = accepted_counts(function)
    if counts is None or 3 in counts:
        return function
    if 2 in counts:
        return ignoring_params(function)
    raise TypeError(f"`{name}` of an event must take (t, u, params), got {signature_of(function)}.")


class Steps:
    """Consecutive steps of a run, with the state at any time on them."""

    def __init__(self, dense: Dense, first: int, last: int, rhs: Callable, controller):
        self.t, self.u, self.h = dense.t[first : last + 1], dense.u[first : last + 1], dense.h[first:last]
        self.dense, self.first, self.rhs, self.controller = dense, first, rhs, controller
        self.batched = dense.project is None
        self.looked_at: dict[int, np.ndarray] = {}  # the polynomials of single steps

    @functools.cached_property
    def polynomials(self):
        """Those of all steps."""
        return self.dense.polynomials(np.arange(self.first, self.first + len(self.h)), self.rhs())

    @functools.cached_property
    def doubtful(self) -> np.ndarray:
        """The steps inside which the dense output is much less exact than the ends of steps are."""
        steps = implicit_steps(self.dense, self.first, self.first + len(self.h))
        return doubtful_steps(self.dense, self.controller, steps) - self.first

    @functools.cached_property
    def retaken(self) -> "GivenSteps | None":
        """The same steps, whose states inside are those of steps taken again; None where the method's cannot be."""
        if not can_be_retaken(self.dense.method):
            return None
        return GivenSteps(self.t, self.u, lambda i, theta: self.dense.retaken.inside(self.first + i, theta))

    def inside(self, i, theta):
        """The state at a fraction of step i."""
        if i not in self.looked_at:
            known = "polynomials" in self.__dict__
            number = np.array([self.first + i])
            self.looked_at[i] = self.polynomials[i] if known else self.dense.polynomials(number)[0]
        return self.dense.value(self.looked_at[i], self.first + i, theta)

    @functools.cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Times (places, k) and states (n, places, k) at `PLACES` of each of the k steps."""
        count, degree, n = self.polynomials.shape
        powers = PLACES[:, None] ** np.arange(1, degree + 1)
        states = (powers @ self.polynomials.transpose(1, 2, 0).reshape(degree, -1)).reshape(len(PLACES), n, count)
        states += self.u[:-1].T
        return self.t[:-1] + PLACES[:, None] * np.diff(self.t), states.transpose(1, 0, 2)

    def on(self, chosen) -> Callable:
        """States (n, m) of the chosen steps as a function of one fraction (m,) of each."""
        coefficients = np.ascontiguousarray(self.polynomials[chosen].transpose(1, 2, 0))
        start = np.ascontiguousarray(self.u[chosen].T)

        def at(theta):
            change = coefficients[-1]
            for power in range(len(coefficients) - 2, -1, -1):
                change = change * theta + coefficients[power]
            return start + theta * change

        return at


class GivenSteps:
    """Steps whose states are given by a function inside(i, theta), for one time at once."""

    batched = False
    doubtful = np.zeros(0, int)
    retaken = None

    def __init__(self, t, u, inside: Callable):
        self.t, self.u, self.inside = t, u, inside


class Zeros(NamedTuple):
    """Where an event happened on some steps, in the order of the run."""

    t: np.ndarray  # (m,)
    u: np.ndarray  # (m, n)
    direction: np.ndarray  # (m,), +1 or -1


class Watch:
    """Looks for events on the steps of a run.

    engine      of the run; None where all its steps are there
    watched     the events
    problem     the problem
    controller  of the run, whose tolerance tells where states inside steps are doubtful; None where it is not known
    searches    searches(function): the compiled search for its zeros, None where there is none
    """

    def __init__(self, engine, watched, problem, controller=None, searches: Callable | None = None):
        self.engine, self.watched, self.problem, self.controller = engine, watched, problem, controller
        self.searches = searches
        self.trials = 0  # steps that were taken again to come to the zero that ends the run
        self.found: list[list[Zeros]] = [[] for _ in watched]
        self.undefined: list[list[float]] = [[] for _ in watched]  # where steps begin on which g is not finite
        self.takes_arrays: list[bool | None] = [None] * len(watched)  # None: not tried yet
        self.rhs: Callable | None = None  # of many states at once, tried on the first steps
        self.may_end = any(event.terminal for event in watched)
        self.end: tuple | None = None
        self.start = problem.t_span[0]  # of the chunk at hand
        self.forward = np.sign(problem.t_span[1] - problem.t_span[0])

    def ends(self, chunk, state, knots) -> bool:
        """Search the chunk that began at `state`; True when a terminal event lies in it."""
        if not len(knots):
            return False
        times = np.append(chunk.t[0], knots)
        states = np.concatenate([np.asarray(state.u)[None], chunk.u])
        return self.walk(
            Dense(
                self.problem,
                self.engine.method,
                times,
                states,
                chunk.h,
                self.engine.project,
                chunk.took,
                getattr(self.engine, "look_inside", None),
            )
        )

    def walk(self, dense: Dense) -> bool:
        """The same for all steps of a dense output."""
        last = len(dense.t) - 1

        def rhs():
            if self.rhs is None and dense.method.repeats_at_once:
                self.rhs = rhs_of_columns(self.problem, dense.t[:-1], dense.u[:-1].T)
            return self.rhs

        return any(
            self.look(Steps(dense, i, min(i + AT_ONCE, last), rhs, self.controller)) for i in range(0, last, AT_ONCE)
        )

    def search(self, times, states, inside: Callable) -> bool:
        """The same for steps between these times and states; inside(i, theta) is the state within step i."""
        return self.look(GivenSteps(times, states, inside))

    def look(self, steps) -> bool:
        self.start = steps.t[0]
        new = [self.as_exact_as_steps(number, steps) for number in range(len(self.watched))]
        self.end = self.first_end(new)
        for known, zeros in zip(self.found, new, strict=True):
            kept = len(zeros.t)
            if self.end is not None:
                near = SIMULTANEOUS * np.spacing(np.abs(zeros.t))
                kept = int(np.count_nonzero(self.forward * (zeros.t - self.end[0]) <= near))
            if kept:
                known.append(Zeros(*(column[:kept] for column in zeros)))
        return self.end is not None

    def first_end(self, new: list[Zeros]) -> tuple | None:
        """(t, u, direction, number) of the terminal event that ends the run on these steps, if one does."""
        ends = []
        for number, (event, zeros) in enumerate(zip(self.watched, new, strict=True)):
            last = int(event.terminal) - sum(len(before.t) for before in self.found[number]) - 1
            if event.terminal and last < len(zeros.t):
                ends.append((*(column[max(last, 0)] for column in zeros), number))
        return min(ends, key=lambda end: self.forward * end[0], default=None)

    def as_exact_as_steps(self, number, steps) -> Zeros:
        """The zeros of an event on these steps; one that ends the run is as exact as the ends of steps."""
        zeros, event = self.zeros(number, steps), self.watched[number]
        if not event.terminal or steps.retaken is None:
            return zeros
        last = max(int(event.terminal) - sum(len(before.t) for before in self.found[number]), 1) - 1
        if last < len(zeros.t):
            i = int(np.searchsorted(self.forward * steps.t, self.forward * zeros.t[last])) - 1
            if i >= 0 and zeros.t[last] != steps.t[i + 1] and i not in steps.doubtful:
                zeros.t[last], zeros.u[last] = self.retaken_zero(number, steps, i, zeros, last)
        return zeros

    def retaken_zero(self, number, steps, i: int, zeros: Zeros, k: int) -> tuple:
        """(t, u) of a zero within step i where the step is taken again; as it was where g then keeps its sign."""
        event, params, t, span = self.watched[number], self.problem.params, steps.t[i], steps.t[i + 1] - steps.t[i]
        theta = (zeros.t - t) / span
        left = 0.5 * (theta[k - 1] + theta[k]) if k and theta[k - 1] > 0.0 else 0.0
        right = 0.5 * (theta[k] + theta[k + 1]) if k + 1 < len(theta) and theta[k + 1] < 1.0 else 1.0
        values = {1.0: value(event, params, steps.t[i + 1], steps.u[i + 1])}

        def g(theta):
            if theta not in values:
                state = steps.retaken.inside(i, theta) if theta else steps.u[i]  # no step has no length
                values[theta] = value(event, params, t + theta * span, state)
            return values[theta]

        if g(left) * zeros.direction[k] >= 0.0:  # it was zero where the step begins
            left = 0.5 * theta[k]
        if not (g(left) * zeros.direction[k] < 0.0 < g(right) * zeros.direction[k]):
            return zeros.t[k], zeros.u[k]
        exact = roots.brent(g, left, right, 2.0 * np.spacing(abs(t) + abs(span)) / abs(span))
        self.trials = len(values) - 1
        return t + exact * span, steps.retaken.inside(i, exact)

    def zeros(self, number, steps) -> Zeros:
        """Every zero of an event on these steps."""
        event, params = self.watched[number], self.problem.params
        found, unclear, at_end = self.search_by_kernel(number, steps) or self.search_by_arrays(number, steps)
        if steps.doubtful.size and steps.retaken is not None:
            unclear = np.setdiff1d(unclear, steps.doubtful)
            found = [outside(zeros, steps, self.forward) for zeros in found]
        for looked, numbers in ((steps, unclear), (steps.retaken, steps.doubtful)):
            for i in numbers if looked is not None else ():
                ends = at_end(i), at_end(i + 1)
                if not np.isfinite(ends).all():
                    self.undefined[number].append(steps.t[i])
                for t, u, direction in one_by_one(event, params, looked, i, *ends):
                    found.append(Zeros(np.array([t]), u[None], np.array([direction])))
        zeros = Zeros(*(np.concatenate(columns) for columns in zip(none_of(self.problem), *found, strict=True)))
        if event.direction:
            zeros = Zeros(*(column[zeros.direction == event.direction] for column in zeros))
        if len(found) > 1:
            order = np.argsort(self.forward * zeros.t, kind="stable")
            zeros = Zeros(*(column[order] for column in zeros))
        return zeros

    def search_by_kernel(self, number, steps) -> tuple | None:
        """The zeros that a kernel finds, the steps it leaves, and g at the ends of steps; None without a kernel."""
        event, params = self.watched[number], self.problem.params
        search = None if self.searches is None or not steps.batched else self.searches(event.function)
        if search is None:
            return None

        def at_end(i):
            if i == 0 and isinstance(event, Resting) and steps.t[0] == self.problem.t_span[0]:
                return 0.0
            return value(event, params, steps.t[i], steps.u[i])

        try:
            t, directions, states, unclear = search(steps.t, steps.u, steps.h, at_end(0))
        except ArithmeticError:  # in the user's function; plain Python shall tell it
            return None
        return [Zeros(t, states, directions)], unclear, at_end

    def search_by_arrays(self, number, steps) -> tuple:
        """The zeros found, the steps that are left, and g at the ends of steps.

        Many places of many steps are looked at in one call, if the function accepts arrays.
        """
        if not steps.batched:
            self.takes_arrays[number] = False
        event = self.watched[number]
        ends = self.values(number, steps.t, steps.u.T)
        if isinstance(event, Resting) and steps.t[0] == self.problem.t_span[0]:
            ends = np.append(0.0, ends[1:])
        unclear = np.arange(len(ends) - 1)
        found = []
        if self.takes_arrays[number]:
            values = self.values(number, *steps.places)
            if self.takes_arrays[number]:
                single, unclear, *bracket = roots.sort_steps(ends, values)
                if single.size:
                    found.append(self.single_zeros(number, steps, single, bracket))
        return found, unclear, ends.__getitem__

    def single_zeros(self, number, steps, single, bracket) -> Zeros:
        """The zeros on steps that are known to hold exactly one each, between (left, right, g there)."""
        t, span, states_at = steps.t[single], steps.t[single + 1] - steps.t[single], steps.on(single)

        def g(theta):
            return self.values(number, t + theta * span, states_at(theta))

        theta = roots.between(g, *bracket)
        at_end = theta == 1.0
        times = np.where(at_end, steps.t[single + 1], t + theta * span)
        states = np.where(at_end[:, None], steps.u[single + 1], states_at(theta).T)
        return Zeros(times, states, np.sign(bracket[-1]).astype(int))

    def values(self, number, t, u) -> np.ndarray:
        """The function of an event at times (...) and states (n, ...): in one call where that gives the same."""
        event, params = self.watched[number], self.problem.params
        if self.takes_arrays[number] is not False and t.size > 1:
            try:
                many = np.broadcast_to(np.asarray(event.function(t, read_only(u), params), dtype=float), t.shape)
            except Exception:  # g takes only numbers; an error of another kind is raised again below
                self.takes_arrays[number] = False
            else:
                if self.takes_arrays[number] is None:
                    some = np.unique(np.linspace(0, t.size - 1, TRIED).astype(int))
                    alone = [value(event, params, t[i], u[:, i]) for i in some]
                    self.takes_arrays[number] = bool(np.allclose(many[some], alone, 1e-9, 1e-12, equal_nan=True))
                if self.takes_arrays[number]:
                    return many
        alone = [value(event, params, *place) for place in zip(t.ravel(), u.reshape(len(u), -1).T, strict=True)]
        return np.reshape(alone, t.shape)

    def cut(self, knots, states):
        """The chunk's knots and states up to the terminal event, which becomes the last of them."""
        assert self.end is not None
        t, u, *_ = self.end
        before = (knots - t) * self.forward < 0
        if t == (knots[before][-1] if before.any() else self.start):  # no time has passed since the last knot
            return knots[before], states[before]
        return np.append(knots[before], t), np.concatenate([states[before], u[None]])

    def message(self) -> str:
        assert self.end is not None
        t, _, direction, number = self.end
        return ending_message(self.watched[number], number, direction, t, self.trials)

    def records(self) -> tuple[EventRecord, ...]:
        none, made = none_of(self.problem), []
        last = self.problem.t_span[1] if self.end is None else self.end[0]
        for found, undefined, event in zip(self.found, self.undefined, self.watched, strict=True):
            t, u, direction = (np.concatenate(columns) for columns in zip(none, *found, strict=True))
            within = sum(self.forward * (last - start) > 0 for start in undefined)
            made.append(EventRecord(t, u, direction, within, event.name))
        return tuple(made)


def outside(zeros: Zeros, steps, forward) -> Zeros:
    """The zeros that do not lie in doubtful steps."""
    numbers = np.searchsorted(forward * steps.t, forward * zeros.t) - 1
    return Zeros(*(column[~np.isin(numbers, steps.doubtful)] for column in zeros))


def none_of(problem) -> Zeros:
    return Zeros(np.empty(0), np.empty((0, problem.size)), np.empty(0, dtype=int))


def ending_message(event: Event, number, direction, t, trials: int) -> str:
    """How a run was ended by an event; trials: how often its last step was taken again."""
    how = f" (step taken again, {trials} trials)" if trials else ""
    what = f"{event.name or f'event {number}'} ({'rising' if direction > 0 else 'falling'})"
    return f"ended by {what} at t = {t:.9g}{how}"


def one_by_one(event: Event, params, steps, i, before, after) -> list[tuple]:
    """The zeros on one step, found by `roots.sign_changes`."""
    t, span = steps.t[i], steps.t[i + 1] - steps.t[i]
    ends = {0.0: before, 1.0: after}  # exact values at the ends, not those of the dense output

    def g(theta):
        return ends[theta] if theta in ends else value(event, params, t + theta * span, steps.inside(i, theta))

    def noise():
        return sum(rounding(event, params, steps.t[j], steps.u[j]) for j in (i, i + 1))

    return [
        (float(steps.t[i + 1]), steps.u[i + 1], direction)
        if theta == 1.0
        else (float(t + theta * span), steps.inside(i, theta), direction)
        for theta, direction in roots.sign_changes(g, before, after, noise)
    ]


def value(event: Event, params, t, u) -> float:
    """g at one state; NaN where it is not defined, as in NumPy, also where it uses Python's `math`."""
    try:
        answer = event.function(t, read_only(u), params)
    except ArithmeticError:
        return math.nan
    except ValueError as error:
        if not str(error).startswith(DOMAIN_ERRORS):
            raise
        return math.nan
    if np.ndim(answer) != 0 and np.size(answer) != 1:
        raise ValueError(f"`events` functions must return one number, got shape {np.shape(answer)} at t = {t:g}.")
    return float(np.reshape(answer, ()))


def rounding(event: Event, params, t, u) -> float:
    """The rounding error of g: its change when time and state are changed by a relative 1e-8, times 1e-6."""
    uneven = 1.0 + 1e-8 * (1.0 + 0.5 * np.sin(np.arange(1, u.size + 1)))  # so that nothing cancels
    here = value(event, params, t, u)
    change = abs(value(event, params, t, u * uneven) - here) + abs(value(event, params, t * (1.0 + 1e-8), u) - here)
    return 1e-6 * change
