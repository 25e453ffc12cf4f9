"""Events along sensitivities: how their times move, and how columns jump where an event changes the state.

At an event g(t, u, p) = 0 with the new state c(t, u, p), the time moves by t_e' = -(g_u S + g_p) / (g_t + g_u f), and
S+ = c_u S + c_p + (c_u f + c_t - f+) t_e', f+ being the slope at the new state (the saltation matrix: Aizerman and
Gantmakher 1958; Galán, Feehery and Barton 1999).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.graph.derivatives import derivatives
from odelab.graph.evaluation import evaluate
from odelab.graph.nodes import Graph
from odelab.graph.recorded import lifted
from odelab.kernels import store
from odelab.kernels.store import Traced
from odelab.problem import array_form
from odelab.runs.events import Event, EventRecord
from odelab.runs.pieces import APART, changed_state
from odelab.sensitivities.system import System, followed, inputs_of


class EventSensitivities(NamedTuple):
    """How the times and states of one event change, at each of the k times at which it happened.

    t    (k, m), the derivative of each time by every column
    u    (k, n, m), that of the state there, before a change, as the time moves along
    """

    t: np.ndarray
    u: np.ndarray


class Jumps:
    """What events do to the columns of a system.

    system     the `System`
    watched    the events of its user
    """

    def __init__(self, system: System, watched: tuple[Event, ...]):
        self.system, self.problem, self.watched = system, system.problem, watched
        self.rhs = array_form(self.problem)
        self.by_event = [self.derivatives(store.event_of, event.function) for event in watched]
        self.by_change = {
            number: self.derivatives(store.change_of, event.change)
            for number, event in enumerate(watched)
            if event.change is not None
        }

    def derivatives(self, record: Callable, function: Callable) -> "Derivatives":
        return Derivatives(followed(lambda: record(function, self.problem)), self.system)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the whole system."""
        params = self.problem.params
        is_row = type(params) is tuple and all(isinstance(x, float) for x in params)
        return tuple(
            dataclasses.replace(
                event,
                function=of_state(event.function, self.problem.size, None if is_row else (params,)),
                change=event.change and functools.partial(self.changed, number),
            )
            for number, event in enumerate(self.watched)
        )

    def moved(self, number: int, t: float, whole) -> tuple:
        """State, columns and slope at an event, and how its time moves with each column, (m,)."""
        u, S = self.system.parts(whole)
        slope = self.slope(t, u, -1)
        by_state, by_time, by_columns = (part[0] for part in self.by_event[number](t, u))
        with np.errstate(all="ignore"):
            return u, S, slope, -(by_state @ S + by_columns) / (by_time + by_state @ slope)

    def slope(self, t: float, u, side: int):
        """The slope just before an event (side -1) or behind it (1), where the right-hand side may jump, too."""
        t0, t1 = self.problem.t_span
        return self.rhs(t + side * np.sign(t1 - t0) * APART * np.spacing(abs(t0) + abs(t1)), u, self.problem.params)

    def changed(self, number: int, t: float, whole, params) -> np.ndarray:
        """The state and the columns behind an event that changes the state."""
        u, S, slope, moves = self.moved(number, t, whole)
        after = changed_state(self.watched[number], t, u, self.problem)
        by_state, by_time, by_columns = self.by_change[number](t, u)
        jump = by_state @ slope + by_time - self.slope(t, after, 1)
        S = by_state @ S + by_columns + np.outer(jump, moves)
        if not np.isfinite(S).all():
            name = self.watched[number].name or f"event {number}"
            raise ValueError(
                f"`sensitivities` do not exist behind {name} at t = {t:g}: there its function has no derivative along "
                "the run, or a derivative of zero. Write a function that passes through zero smoothly, or end the run "
                "there (`terminal`)."
            )
        return np.concatenate([after, S.T.ravel()])

    def of_record(self, number: int, record: EventRecord) -> EventSensitivities:
        """How the times and states of an event move, from its record of the whole system."""
        n, m = self.problem.size, len(self.system.columns)
        times, states = np.empty((len(record.t), m)), np.empty((len(record.t), n, m))
        for k, (t, whole) in enumerate(zip(record.t, record.u, strict=True)):
            _, S, slope, times[k] = self.moved(number, float(t), whole)
            states[k] = S + np.outer(slope, times[k])
        return EventSensitivities(times, states)


def of_state(function: Callable, n: int, own: tuple | None) -> Callable:
    """An event's function of the whole system; `own` holds the user's parameters where they are no row of numbers."""
    if own is None:
        return lambda t, u, params: function(t, u[:n], params)
    return lambda t, u, params: function(t, u[:n], *own)


class Derivatives:
    """The derivatives of a function of (t, u, params) with r results, at any state.

    traced    its operations
    system    says with respect to which parameters
    """

    def __init__(self, traced: Traced, system: System):
        n, graph, names = system.problem.size, Graph(), traced.parameters.names
        inputs = {name: graph.input(name) for name in (*(f"u{i}" for i in range(n)), "t", *names)}
        rows = derivatives(graph, traced.recorded.put(graph, inputs), list(inputs.values()))
        place = {name: k for k, name in enumerate(inputs)}
        wanted = [*range(n + 1), *(place.get(name) for name in inputs_of(system.columns, traced.parameters))]
        self.graph, self.n, self.shape = graph, n, (len(rows), len(wanted))
        self.nodes = [lifted(graph, row.get(k, 0.0)) for row in rows for k in wanted]
        self.known = dict(zip(names, traced.parameters.values, strict=True))

    def __call__(self, t: float, u) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By the state (r, n), by time (r,), and by the parameters that the columns are (r, m)."""
        inputs = {"t": t, **self.known, **{f"u{i}": x for i, x in enumerate(u)}}
        found = np.array([float(x) for x in evaluate(self.graph, self.nodes, inputs)]).reshape(self.shape)
        return found[:, : self.n], found[:, self.n], found[:, self.n + 1 :]
