"""Events: zeros of g(t, u, params) along a run, located on its dense output."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab import extension
from odelab.dense import Dense

TERMINAL = 100  # a run's end, beside the engine's own
PIECES = 8  # each step is looked at in so many pieces, and at the turning points between them
BISECTIONS = 60


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
    return tuple(_event(one) for one in given)


def _event(one: Any) -> Event:
    if not isinstance(one, Event):
        if not callable(one):
            raise TypeError(f"`events` must hold functions g(t, u, params) or Event objects, got {one!r}.")
        one = Event(one, getattr(one, "terminal", False), int(np.sign(getattr(one, "direction", 0))))
    if one.direction not in (-1, 0, 1):
        raise ValueError(f"`direction` of an event must be -1, 0 or 1, got {one.direction!r}.")
    return one


class Watch:
    """Looks for events in each chunk of a run as it comes."""

    def __init__(self, engine, watched, problem):
        self.engine, self.watched, self.problem = engine, watched, problem
        self.found: list[list[tuple]] = [[] for _ in watched]
        self.may_end = any(event.terminal for event in watched)
        self.end: tuple | None = None

    def ends(self, chunk, state, knots) -> bool:
        """Search the chunk that began at `state`; True when a terminal event lies in it."""
        if not len(knots):
            return False
        times = np.append(chunk.t[0], knots)
        states = np.concatenate([np.asarray(state.u)[None], chunk.u])
        dense = Dense(self.problem, self.engine.method, times, states, chunk.h, self.engine.project)
        new = []
        for number, event in enumerate(self.watched):
            new += [(zero, number) for zero in zeros(event, dense, self.problem.params)]
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


def zeros(event: Event, dense: Dense, params) -> list[tuple]:
    """(t, u, direction) of every zero of the event on the steps of `dense`, in the order of the run.

    Each step is sampled at PIECES + 1 times; where |g| dips between samples of equal sign, the dip is searched too, so
    two zeros close to each other within one step are not lost between samples of the same sign.
    """
    steps = len(dense.h)
    edges = np.linspace(0.0, 1.0, PIECES + 1)
    polynomials = dense.polynomials(np.arange(steps))
    powers = extension.powers(edges[1:-1], polynomials.shape[1])
    inner = dense.u[:-1, None] + np.einsum("pe,kpn->ken", powers, polynomials)
    found = []
    before = value(event, params, dense.t[0], dense.u[0])
    for i in range(steps):
        span = dense.t[i + 1] - dense.t[i]
        share = span / dense.h[i]  # below one for a step that was cut short
        if not 0.999999 < share < 1.000001:  # pragma: no cover - cut steps are the last of a finished run
            inner[i] = dense(dense.t[i] + span * edges[1:-1])

        def g(theta, i=i, span=span):
            time = dense.t[i] + theta * span
            return value(event, params, time, state_at(dense, polynomials[i], i, theta))

        states = np.concatenate([inner[i], dense.u[i + 1][None]])
        if dense.project is not None:
            states = np.stack([dense.project(state) for state in states])
        values = [
            before,
            *(value(event, params, dense.t[i] + e * span, s) for e, s in zip(edges[1:], states, strict=True)),
        ]
        before = values[-1]
        for theta, direction in crossings(g, list(edges), values):
            if event.direction in (0, direction):
                state = state_at(dense, polynomials[i], i, theta)
                found.append((float(dense.t[i] + theta * span), state, direction))
    return found


def state_at(dense: Dense, polynomial, i, theta):
    if theta == 1.0:
        return dense.u[i + 1]
    state = dense.u[i] + extension.powers(theta, len(polynomial)) @ polynomial
    return state if dense.project is None else dense.project(state)


def value(event: Event, params, t, u) -> float:
    answer = event.function(t, u, params)
    if np.ndim(answer) != 0 and np.size(answer) != 1:
        raise ValueError(f"`events` functions must return one number, got shape {np.shape(answer)} at t = {t:g}.")
    return float(np.reshape(answer, ()))


def crossings(g, edges, values):
    """(theta, direction) of sign changes of g over (0, 1], given its values at `edges`.

    A zero met exactly at an edge belongs to the piece that ends there; one at theta = 0 to the step before.
    """
    pieces = []
    for j in range(len(edges) - 1):
        left, right, a, b = edges[j], edges[j + 1], values[j], values[j + 1]
        if a * b > 0:
            dip = turning_point(g, edges, values, j)
            if dip is not None:
                middle, lowest = dip
                pieces += [(left, middle, a, lowest), (middle, right, lowest, b)]
            continue
        pieces.append((left, right, a, b))
    for left, right, a, b in pieces:
        if a == 0.0 or not np.isfinite(a * b):
            continue  # counted where the piece before ended; a step that starts on a zero does not count it again
        if b == 0.0:
            ahead = 1.0 if right >= 1.0 else g(min(1.0, right + 1e-6))
            if right >= 1.0 or ahead * a < 0:
                yield right, 1 if a < 0 else -1
        elif a * b < 0:
            yield bisect(g, left, right, a), 1 if a < 0 else -1


def turning_point(g, edges, values, j):
    """A point in piece j where |g| dips through zero although both ends have one sign, found by golden section."""
    sign = np.sign(values[j])
    size = [sign * v for v in values]
    left_falls = j == 0 or size[j - 1] > size[j] or size[j] <= size[j + 1]
    right_rises = j + 2 >= len(size) or size[j + 2] > size[j + 1] or size[j + 1] <= size[j]
    if not (left_falls and right_rises):
        return None
    a, b = edges[j], edges[j + 1]
    slope_a = (sign * g(a + 1e-3 * (b - a)) - size[j]) / (1e-3 * (b - a))
    slope_b = (size[j + 1] - sign * g(b - 1e-3 * (b - a))) / (1e-3 * (b - a))
    if not (slope_a < 0 < slope_b):  # monotone inside: no dip
        return None
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = sign * g(c), sign * g(d)
    for _ in range(BISECTIONS):
        if min(at_c, at_d) < 0.0:
            middle = c if at_c < at_d else d
            return middle, float(sign * min(at_c, at_d))
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - golden * (b - a)
            at_c = sign * g(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + golden * (b - a)
            at_d = sign * g(d)
        if b - a < 1e-12:
            return None
    return None


def bisect(g, left, right, at_left):
    """The zero between two values of opposite sign, to the spacing of theta."""
    from scipy.optimize import brentq

    return float(brentq(g, left, right, xtol=4e-16, rtol=1e-15, maxiter=200)) if at_left else left
