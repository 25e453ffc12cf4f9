"""Events: zeros of g(t, u, params) along a run, located on its dense output."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.runs.dense import Dense
from odelab.runs.roots import sign_changes

TERMINAL = 100  # a run's end, beside the engine's own


@dataclasses.dataclass(frozen=True)
class Event:
    """A zero of `function(t, u, params)`; direction 1 counts rising zeros only, -1 falling ones, 0 both.

    A terminal event ends the run; terminal=3 ends it at the third.
    """

    function: Callable
    terminal: bool | int = False
    direction: int = 0
    name: str = ""


class EventRecord(NamedTuple):
    """Where one event happened: times, states, and +1 or -1 for each zero's direction."""

    t: np.ndarray
    u: np.ndarray
    direction: np.ndarray


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
    return one


class Watch:
    """Looks for events in each chunk of a run as it comes."""

    def __init__(self, engine, watched, problem):
        self.engine, self.watched, self.problem = engine, watched, problem
        self.found: list[list[tuple]] = [[] for _ in watched]
        self.may_end = any(event.terminal for event in watched)
        self.end: tuple | None = None
        self.start = problem.t_span[0]  # of the chunk at hand

    def ends(self, chunk, state, knots) -> bool:
        """Search the chunk that began at `state`; True when a terminal event lies in it."""
        if not len(knots):
            return False
        times = np.append(chunk.t[0], knots)
        states = np.concatenate([np.asarray(state.u)[None], chunk.u])
        dense = Dense(self.problem, self.engine.method, times, states, chunk.h, self.engine.project)
        polynomials = dense.polynomials(np.arange(len(knots)))
        return self.search(times, states, lambda i, theta: dense.at(polynomials[i], i, theta))

    def search(self, times, states, inside: Callable) -> bool:
        """The same for steps between these times and states; inside(i, theta) is the state within step i."""
        self.start = times[0]
        new = []
        for number, event in enumerate(self.watched):
            new += [(zero, number) for zero in zeros(event, times, states, inside, self.problem.params)]
        forward = np.sign(self.problem.t_span[1] - self.problem.t_span[0])
        for zero, number in sorted(new, key=lambda item: forward * item[0][0]):
            self.found[number].append(zero)
            event = self.watched[number]
            if event.terminal and len(self.found[number]) >= int(event.terminal):
                self.end = (zero, number)
                return True
        return False

    def cut(self, knots, states):
        """The chunk's knots and states up to the terminal event, which becomes the last of them."""
        assert self.end is not None
        (t, u, _), _ = self.end
        forward = np.sign(self.problem.t_span[1] - self.problem.t_span[0])
        before = (knots - t) * forward < 0
        if t == (knots[before][-1] if before.any() else self.start):  # no time has passed since the last knot
            return knots[before], states[before]
        return np.append(knots[before], t), np.concatenate([states[before], u[None]])

    def message(self) -> str:
        assert self.end is not None
        (t, _, direction), number = self.end
        event = self.watched[number]
        name = event.name or getattr(event.function, "__name__", f"event {number}")
        return f"ended by {name} ({'rising' if direction > 0 else 'falling'}) at t = {t:.9g}"

    def records(self) -> tuple[EventRecord, ...]:
        size = self.problem.size
        return tuple(
            EventRecord(
                np.array([zero[0] for zero in found]),
                np.array([zero[1] for zero in found]).reshape(len(found), size),
                np.array([zero[2] for zero in found], dtype=int),
            )
            for found in self.found
        )


def zeros(event: Event, times, states, inside, params) -> list[tuple]:
    """(t, u, direction) of every zero of the event on these steps, in the order of the run."""
    found = []
    after = value(event, params, times[0], states[0])
    for i in range(len(times) - 1):
        t, span = times[i], times[i + 1] - times[i]
        before, after = after, value(event, params, times[i + 1], states[i + 1])

        def g(theta, i=i, t=t, span=span, ends={0.0: before, 1.0: after}):  # noqa: B006
            if theta in ends:  # the steps themselves, not what the dense output makes of them
                return ends[theta]
            return value(event, params, t + theta * span, inside(i, theta))

        def noise(i=i):
            return sum(rounding(event, params, times[j], states[j]) for j in (i, i + 1))

        for theta, direction in sign_changes(g, before, after, noise):
            if event.direction not in (0, direction):
                continue
            if theta == 1.0:
                found.append((float(times[i + 1]), states[i + 1], direction))
            else:
                found.append((float(t + theta * span), inside(i, theta), direction))
    return found


def value(event: Event, params, t, u) -> float:
    answer = event.function(t, u, params)
    if np.ndim(answer) != 0 and np.size(answer) != 1:
        raise ValueError(f"`events` functions must return one number, got shape {np.shape(answer)} at t = {t:g}.")
    return float(np.reshape(answer, ()))


def rounding(event: Event, params, t, u) -> float:
    """What rounding of time and state can do to g: its change under a relative change of 1e-8, scaled down."""
    uneven = 1.0 + 1e-8 * (1.0 + 0.5 * np.sin(np.arange(1, u.size + 1)))  # so that nothing cancels
    here = value(event, params, t, u)
    change = abs(value(event, params, t, u * uneven) - here) + abs(value(event, params, t * (1.0 + 1e-8), u) - here)
    return 1e-6 * change
