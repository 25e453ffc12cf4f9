"""Why runs of an ensemble were lost: the criterion of `odelab.runs.diagnosis`, for all of them at once.

Each is judged by its own numbers alone, so that how many others failed changes nothing.
"""

import contextlib
import itertools
from collections.abc import Callable

import numpy as np

from odelab.engines import Status
from odelab.engines.lanes.result import Found
from odelab.problem import array_form
from odelab.runs import diagnosis

BATCH = 4096  # runs looked at together; bounds the memory
COMPARED = 16  # of them evaluated alone too, before a right-hand side is trusted with many


def diagnose(found: Found, starts, sets, problem, method, controller):
    """Put the causes of lost runs in the place of what their lanes could tell."""
    lost = np.flatnonzero((found.statuses == Status.STEP_LOST) | (found.statuses == Status.NOT_FINITE))
    lost = lost[np.isfinite(starts[lost]).all(axis=1) & np.isfinite(sets[lost]).all(axis=1)]
    direction = np.sign(problem.t_span[1] - problem.t_span[0])
    with np.errstate(all="ignore"), contextlib.suppress(KeyboardInterrupt):  # what lanes tell is an answer, too
        for first in range(0, len(lost), BATCH):
            some = two_at_least(lost[first : first + BATCH])
            t, u, params = found.times[some], found.ends[some].T, tuple(sets[some].T)
            step = direction * (controller.h or 4.0 * np.spacing(np.maximum(np.abs(t), 1e-300)))
            grown = np.abs(u).max(axis=0) > diagnosis.BLOWN_UP * np.maximum(1.0, np.abs(starts[some]).max(axis=1))
            gave_up = controller.h is not None
            failed, overflowed = failures(problem, method, t, u, params, step, (1,) if gave_up else diagnosis.AHEAD)
            blown = grown | (overflowed & gave_up)
            found.statuses[some] = np.where(
                blown, Status.BLOW_UP, np.where(failed, Status.NOT_FINITE, Status.STEP_LOST)
            )


def two_at_least(places):
    """A single run twice: alone its right-hand side could branch, and would be evaluated otherwise than among many."""
    return np.repeat(places, 2) if len(places) == 1 else places


def failures(problem, method, t, u, params, step, ahead):
    """(m,) twice: did a step of any of the sizes meet what is not finite, and was that an infinite state?"""
    rhs = rhs_of_many(problem, t, u, params)
    failed, overflowed = np.zeros(len(t), bool), np.zeros(len(t), bool)
    for times in ahead:
        if failed.all():
            break
        left = two_at_least(np.flatnonzero(~failed))
        chosen = tuple(row[left] for row in params)
        sizes = np.broadcast_to(times * step, t.shape)[left]
        failed[left], overflowed[left] = first_failures(rhs, method, chosen, t[left], u[:, left], sizes)
    return failed, overflowed


def first_failures(rhs, method, params, t, u, h):
    """`odelab.runs.diagnosis.first_failure` for the columns of u (n, m)."""
    failed, overflowed = np.zeros(len(t), bool), np.zeros(len(t), bool)

    def look(values, is_state):
        bad = ~np.isfinite(values)
        new = np.flatnonzero(bad.any(axis=0) & ~failed)
        failed[new] = True
        overflowed[new] = is_state & np.isinf(values[bad[:, new].argmax(axis=0), new])

    def watched(time, states, params):
        look(states, True)
        slopes = rhs(time, states, params)
        look(slopes, False)
        return slopes

    look(method.one_step(watched, params, t, u, h), True)
    return failed, overflowed


def rhs_of_many(problem, t, u, params) -> Callable:
    """The right-hand side of columns (n, m), each with its own time and parameters: all at once where it can be had."""
    alone = array_form(problem)

    def one_by_one(t, u, params):
        own = zip(*params, strict=True) if params else itertools.repeat(())
        return np.array([alone(*place) for place in zip(t, u.T, own, strict=False)]).T

    def together(t, u, params):
        out = np.empty_like(u)
        for i, slope in enumerate(problem.rhs(t, u, params)):
            out[i] = slope
        return out

    some = np.unique(np.linspace(0, len(t) - 1, COMPARED).astype(int))
    try:
        many = together(t, u, params)[:, some]
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        return one_by_one  # it takes numbers only (math.exp, if)
    expected = one_by_one(t[some], u[:, some], tuple(row[some] for row in params))
    same = np.allclose(many, expected, 1e-9, 1e-9 * np.abs(expected).max(), equal_nan=True)
    return together if same else one_by_one  # else it mixes states, as a mean over u does
