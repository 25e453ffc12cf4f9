"""Why runs of an ensemble were lost: the criterion of `odelab.runs.diagnosis`, for all of them at once.

Each is judged by its own numbers alone, so that how many others failed changes nothing.
"""

import contextlib

import numpy as np

from odelab.engines import Status
from odelab.engines.lanes.result import Found
from odelab.runs import diagnosis
from odelab.runs.dense import rhs_of_columns

BATCH = 4096  # runs looked at together; bounds the memory


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
            gave_up = controller.h is not None
            failed, overflowed = failures(problem, method, t, u, params, step, (1,) if gave_up else diagnosis.AHEAD)
            grown = diagnosis.has_blown_up(starts[some].T, u)
            found.statuses[some] = diagnosis.causes(grown, failed, overflowed, gave_up)


def two_at_least(places):
    """A single run twice: alone its right-hand side could branch, and would be evaluated otherwise than among many."""
    return np.repeat(places, 2) if len(places) == 1 else places


def failures(problem, method, t, u, params, step, ahead):
    """(m,) twice: did a step of any of the sizes meet what is not finite, and was that an infinite state?"""
    rhs = rhs_of_columns(problem, t, u, params)
    failed, overflowed = np.zeros(len(t), bool), np.zeros(len(t), bool)
    for times in ahead:
        if failed.all():
            break
        left = two_at_least(np.flatnonzero(~failed))
        chosen = tuple(row[left] for row in params)
        sizes = np.broadcast_to(times * step, t.shape)[left]
        first = diagnosis.first_failures(rhs, method, chosen, t[left], u[:, left], sizes)
        failed[left], overflowed[left] = first.found, first.overflowed
    return failed, overflowed
