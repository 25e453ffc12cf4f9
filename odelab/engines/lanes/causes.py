"""Why runs of an ensemble failed: the criterion of `odelab.runs.failures`, applied to all of them at once.

The verdict on a run depends on its own numbers alone, not on how many other runs failed.
"""

import contextlib
from typing import Any

import numpy as np

from odelab.engines.lanes.result import Found
from odelab.engines.lanes.runs import Runs
from odelab.runs.dense import rhs_of_columns
from odelab.runs.diagnosis import insoluble_message
from odelab.runs.failures import AHEAD, first_failures, has_blown_up, statuses_of
from odelab.status import Status

BATCH = 4096  # runs examined together; bounds the memory


def diagnose(found: Found, runs: Runs):
    """Replace the status that a lane gave to a failed run by the cause that is found by repeating its last step.

    A lane knows only that the step became too small or that the state was not finite.
    """
    problem, controller, starts, sets = runs.problem, runs.controller, runs.starts, runs.sets
    if problem.mass is not None:
        return  # such runs were finished alone
    lost = np.flatnonzero((found.statuses == Status.STEP_LOST) | (found.statuses == Status.NOT_FINITE))
    known = np.isfinite(starts).all(axis=1) & (True if sets is None else np.isfinite(sets).all(axis=1))
    lost = lost[known[lost]]
    direction = np.sign(problem.t_span[1] - problem.t_span[0])
    with np.errstate(all="ignore"), contextlib.suppress(KeyboardInterrupt):  # after Ctrl-C the lanes' own statuses stay
        for first in range(0, len(lost), BATCH):
            some = two_at_least(lost[first : first + BATCH])
            t, u, params = found.times[some], found.ends[some].T, None if sets is None else tuple(sets[some].T)
            step = direction * (controller.h or 4.0 * np.spacing(np.maximum(np.abs(t), 1e-300)))
            gave_up = controller.h is not None
            failed, overflowed = failures(problem, runs.method, t, u, params, step, (1,) if gave_up else AHEAD)
            grown = has_blown_up(starts[some].T, u)
            causes = statuses_of(grown, failed, overflowed, gave_up)
            for k in np.flatnonzero(causes == Status.STEP_LOST) if runs.method.needs_jacobian and not gave_up else ():
                own: Any = {} if sets is None else {"params": tuple(sets[some[k]].tolist())}
                one = problem.piece(*problem.t_span, problem.u0, **own)
                if insoluble_message(one, float(t[k]), u[:, k], runs.method.gamma * step[k]):
                    causes[k] = Status.NOT_FINITE
            unexplained = gave_up & (causes == Status.STEP_LOST)  # fixed steps are not lost: they may refuse themselves
            found.statuses[some] = np.where(unexplained, found.statuses[some], causes)


def two_at_least(places):
    """The same places; a single one is doubled.

    A right-hand side evaluated at a single state may branch (`if`), so that its result could differ from the one among
    many states. Two copies are evaluated as many states are.
    """
    return np.repeat(places, 2) if len(places) == 1 else places


def failures(problem, method, t, u, params, step, ahead):
    """Two arrays (m,): did a step of one of these sizes meet a value that is not finite, and was it an infinite state?

    ahead    the sizes to try, as multiples of `step`; once a run has failed, larger sizes are not tried
    """
    rhs = rhs_of_columns(problem, t, u, params)
    failed, overflowed = np.zeros(len(t), bool), np.zeros(len(t), bool)
    for times in ahead:
        if failed.all():
            break
        left = two_at_least(np.flatnonzero(~failed))
        chosen = problem.params if params is None else tuple(row[left] for row in params)
        sizes = np.broadcast_to(times * step, t.shape)[left]
        first = first_failures(rhs, method, chosen, t[left], u[:, left], sizes)
        failed[left], overflowed[left] = first.found, first.overflowed
    return failed, overflowed
