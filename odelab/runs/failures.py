"""Where a step fails: the first number in it that is not finite, and the status that a failed run gets from it."""

import contextlib
from typing import NamedTuple

import numpy as np

from odelab.status import Status

# A lost step is so small that the rounded states it visits may all lie inside the domain, although the solution is
# about to leave it. To find the cause, steps of up to 1,024 times that size are tried.
AHEAD = 4 ** np.arange(6)
BLOWN_UP = 1e8  # a solution has blown up if it has reached this many times the size of the initial state


def has_blown_up(u0, u):
    """Is a state, or each column of (n, m), so much larger than the initial one that the solution must have a pole?"""
    return np.abs(u).max(axis=0) > BLOWN_UP * np.maximum(1.0, np.abs(u0).max(axis=0))


class Failures(NamedTuple):
    """For a step from each column, the first number that was not finite: time and state, component, and its value.

    `found` (m,) tells which columns have such a number, `in_state` whether it was part of a state or of a slope.
    """

    found: np.ndarray
    t: np.ndarray
    u: np.ndarray  # (n, m)
    component: np.ndarray
    value: np.ndarray
    in_state: np.ndarray

    @property
    def overflowed(self) -> np.ndarray:
        """For each column: was an infinite state the first number that was not finite?"""
        return self.found & self.in_state & np.isinf(self.value)


class AllFound(Exception):
    """Every column has failed: the step need not be finished."""


def first_failures(rhs, method, params, t, u, h, mass=None) -> Failures:
    """The first number that is not finite in a step of size h from each column of u (n, m), or from one state (n,).

    mass    the `MassMatrix` of a system M u' = f, whose state is one; None where M = I
    """
    u = np.asarray(u)
    m = 1 if u.ndim == 1 else u.shape[1]
    first = Failures(
        np.zeros(m, bool), np.zeros(m), np.zeros((len(u), m)), np.zeros(m, int), np.zeros(m), np.zeros(m, bool)
    )

    def look(time, states, values, in_state):
        columns = values.reshape(len(values), m)
        bad = ~np.isfinite(columns)
        new = np.flatnonzero(bad.any(axis=0) & ~first.found)
        first.component[new] = bad[:, new].argmax(axis=0)
        first.value[new] = columns[first.component[new], new]
        first.found[new], first.in_state[new] = True, in_state
        first.t[new], first.u[:, new] = np.broadcast_to(time, m)[new], states.reshape(len(states), m)[:, new]
        if first.found.all():
            raise AllFound

    def watch_and_call(time, states, params):
        look(time, states, states, True)
        slopes = np.asarray(rhs(time, states, params), dtype=float)
        look(time, states, slopes, False)
        return slopes

    weighed = () if mass is None else (mass,)
    with contextlib.suppress(AllFound):
        end = method.one_step(watch_and_call, params, t, u, h, *weighed)
        look(t + h, end, end, True)
    return first


def statuses_of(grown, found, overflowed, gave_up) -> np.ndarray:
    """The status of each of some failed runs.

    grown        whether the state is so large that the solution must have a pole
    found        whether the last step met a number that is not finite
    overflowed   whether that number was an infinite state
    gave_up      whether steps are fixed, so that the judge gave up instead of making the step smaller
    """
    return np.where(
        grown | (overflowed & gave_up), Status.BLOW_UP, np.where(found, Status.NOT_FINITE, Status.STEP_LOST)
    )
