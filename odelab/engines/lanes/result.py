"""The result of an ensemble, and the arrays that its runs write into."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from odelab.control.controllers import Controller
from odelab.problem import Problem
from odelab.results import Result, named_components
from odelab.runs.interior import WORTH_SAYING
from odelab.status import Status

STATUSES = tuple(status.word for status in Status)


@dataclasses.dataclass(eq=False, repr=False)
class Ensemble(
    Result,
    kinds={
        "ends": "odelab.plot.of_results:draw_ends",
        "steps": "odelab.plot.of_results:draw_numbers_of_steps",
        "fan": "odelab.plot.of_results:draw_fan",
    },
):
    """What `odelab.ensemble` returns: the results of N runs, each in its own row.

    u             (N, n), the states at the times `t`; with `t_eval` (N, len(t_eval), n), the states at those times, NaN
                  where a run did not get so far
    end_u         (N, n), the states at the times `t`; without `t_eval` the same as `u`
    t             (N,), the times the runs have reached
    steps         (N,), how many steps were accepted
    rejected      (N,), how many attempted steps were rejected
    codes         (N,), how each run ended, as places in the list of statuses; `status` has the words
    problem       the `Problem` of all runs
    method        the method
    controller    the controller
    engine        the engine that ran them: "compiled" or "python"
    t_eval        the times that were asked for; None where only the ends were
    sai_max       (N,), the largest SAI of each run; None unless asked for with `maxima`
    h_rho_max     (N,), the largest h rho of each run, NaN where no step has one; None unless asked for with `maxima`

    inside_doubtful
                  (N,), whether a state at `t_eval` is much less exact than the ends of steps are, as a stiff component
                  follows others inside a long step; None without `t_eval`

    took          (N, 2), how many steps each of both methods took, of runs by two of them (`odelab.auto`); else None
    turns         (N, 3), how often the method of a run changed, an implicit step was tried, and was refused; else None
    events        for each run its event records, as `Trajectory.events` has them: times, states (those before a change)
                  and directions, a record for each event; a run that one has ended has the `status` "event" and ends
                  there. None where no events were asked for

    `ok` tells whether all runs got through or met an event that ended them, `failed` which did not, `message` how many
    ended how.

    >>> import odelab as ol
    >>> runs = ol.ensemble(ol.problems.lorenz(), ol.DOPRI5, u0=[[1.0, 1.0, 1.0], [1.0, 1.0, 1.1]], engine="python")
    >>> len(runs), runs.u.shape, runs.status.tolist()
    (2, (2, 3), ['ok', 'ok'])
    """

    u: np.ndarray
    end_u: np.ndarray
    t: np.ndarray
    steps: np.ndarray
    rejected: np.ndarray
    codes: np.ndarray  # (N,) each a `odelab.engines.Status`
    problem: Problem
    method: Any
    controller: Controller
    engine: str = "compiled"
    t_eval: np.ndarray | None = None
    sai_max: np.ndarray | None = None
    h_rho_max: np.ndarray | None = None
    inside_doubtful: np.ndarray | None = None
    took: np.ndarray | None = None
    turns: np.ndarray | None = None
    events: list | None = None

    def table(self):
        """A row per run: how it ended, when, in how many steps, and its state there, also where it ended early."""
        known = {"sai_max": self.sai_max, "h_rho_max": self.h_rho_max}
        return {
            "status": self.status,
            "t": self.t,
            "steps": self.steps,
            "rejected": self.rejected,
            **{name: values for name, values in known.items() if values is not None},
            **named_components(self.end_u),
        }

    @functools.cached_property
    def status(self) -> np.ndarray:
        """How each run ended, in a word: "ok", or what went wrong."""
        return np.array(STATUSES)[self.codes]

    @property
    def ok(self) -> bool:
        """Did every run get through?"""
        return not self.failed.size

    @property
    def failed(self) -> np.ndarray:
        """The places of the runs that did not get through."""
        return np.flatnonzero((self.codes != Status.REACHED) & (self.codes != Status.EVENT))

    @property
    def message(self) -> str:
        """How many runs ended how, and where to look first."""
        parts = []
        for code, name in enumerate(STATUSES):
            places = np.flatnonzero(self.codes == code)
            if places.size:
                where = (
                    ""
                    if code in (Status.REACHED, Status.EVENT)
                    else f" (the first is run {places[0]}, at t = {self.t[places[0]]:g})"
                )
                parts.append(f"{places.size} {name}{where}")
        return (", ".join(parts) or "no runs") + self.doubt

    @property
    def doubt(self) -> str:
        """An addition to the message where states at `t_eval` are doubtful; empty where none are."""
        places = np.zeros(0, int) if self.inside_doubtful is None else np.flatnonzero(self.inside_doubtful)
        if not len(places):
            return ""
        return (
            f"; in {len(places)} of them states at `t_eval` are much less exact than the ends of steps (the first is "
            f"run {places[0]}): inside long steps a stiff component follows others, and its error is not controlled "
            "there; give t_eval_by='step', or a `max_step` to the controller"
        )

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self):
        return f"Ensemble({self.problem.name}, {len(self)} runs: {self.message})"

    def __str__(self):
        lines = [
            f"{len(self)} runs of {self.problem.name} with {self.method}, {self.controller}, engine {self.engine}",
            f"  steps   {int(self.steps.sum())} accepted, {int(self.rejected.sum())} rejected",
        ]
        if self.took is not None and self.turns is not None:
            counts = zip(self.took.sum(axis=0), self.method.names, strict=True)
            changed = np.count_nonzero(self.turns[:, 0])
            lines.append(f"          {', '.join(f'{count} by {name}' for count, name in counts)}")
            lines.append(f"          {self.turns[:, 0].sum()} changes of the method, in {changed} of the runs")
        return "\n".join([*lines, f"  {self.message}"])


class Found(NamedTuple):
    """The arrays that runs write their results into."""

    ends: np.ndarray  # (N, n)
    times: np.ndarray  # (N,)
    counts: np.ndarray  # (N, 2): accepted, rejected
    statuses: np.ndarray  # (N,) each a `odelab.engines.Status`
    maxima: np.ndarray | None  # (N, 2): SAI, h rho
    points: np.ndarray | None  # (N, len(t_eval), n)
    doubts: np.ndarray | None  # (N,): the largest error at `t_eval` over the tolerance, a sum of squares
    turned: np.ndarray | None  # (N, 4): of runs by two methods, as `odelab.kernels.loops.lanes.TURNED` names it
    left: "Left | None" = None


class Left(NamedTuple):
    """What runs leave their lanes with, where events are looked for; lanes read it and write it."""

    numbers: np.ndarray  # (N, rows): all that a lane keeps of a run in whose last step an event may lie
    resumes: np.ndarray  # (N,): 1 where a run goes on with these numbers, 0 where it begins
    longest: np.ndarray  # (N, 2 + n) or (N, 0): time, size and state of the longest step
    log: np.ndarray  # (m, rows): steps in which an event may lie that does not end a run
    logged: np.ndarray  # (1,): how many there are, or would be if there was room for them

    def of_runs(self, runs, room: int = 0) -> "Left":
        """The same of some runs, with room for so many steps; a run that finds none leaves its lane."""
        resumes, log = self.resumes[runs], np.empty((room, self.log.shape[1]))
        numbers, go_on = np.empty((len(resumes), self.numbers.shape[1])), np.flatnonzero(resumes)
        numbers[go_on] = self.numbers[runs][go_on] if isinstance(runs, slice) else self.numbers[runs[go_on]]
        return Left(numbers, resumes, self.longest[runs], log, np.zeros(1, np.int64))

    def take(self, runs, part: "Left", has_left):
        """Take over what some runs have left with."""
        self.longest[runs] = part.longest
        self.numbers[runs[has_left]] = part.numbers[has_left]


def empty_arrays(starts, t0, wanted: int | None, maxima: bool, left: Left | None = None, switches=False) -> Found:
    """The arrays before any run is finished: each run stands at its start with the status "interrupted".

    wanted      how many times are wanted of each run; None where only the ends are
    left        what runs have left their lanes with; None where there are no events
    switches    whether two methods take turns

    A finished run overwrites its row. After Ctrl-C the rows of the other runs therefore still say "interrupted".
    """
    count, n = starts.shape
    return Found(
        starts.copy(),
        np.full(count, t0),
        np.zeros((count, 2), np.int64),
        np.full(count, Status.INTERRUPTED, np.int64),
        np.full((count, 2), np.nan) if maxima else None,
        None if wanted is None else np.full((count, wanted, n), np.nan),
        None if wanted is None else np.zeros(count),
        np.zeros((count, 4)) if switches else None,
        left,
    )


def named_arrays(found: Found, t_eval, engine, problem, method, controller) -> Ensemble:
    """The arrays of an ensemble under their names."""
    by_implicit, turns = (None, None) if found.turned is None else np.split(found.turned.astype(int), [1], axis=1)
    return Ensemble(
        found.ends if found.points is None else found.points,
        found.ends,
        found.times,
        found.counts[:, 0],
        found.counts[:, 1],
        found.statuses,
        problem,
        method,
        controller,
        engine,
        t_eval,
        None if found.maxima is None else found.maxima[:, 0],
        None if found.maxima is None else found.maxima[:, 1],
        None if found.doubts is None else found.doubts >= problem.size * WORTH_SAYING**2,
        None if by_implicit is None else np.hstack([found.counts[:, :1] - by_implicit, by_implicit]),
        turns,
    )
