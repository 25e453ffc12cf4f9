"""Ensembles of runs with spans, stops, wanted times or events of their own: in each round a run takes its next piece.

A piece reaches from one stop of a run to its next one, as in `odelab.runs.pieces`, or to an event that changes its
state; a run that may have met an event goes on in the next round. Runs that have ended or failed take no part in later
rounds, so that nothing waits for the slowest, and no run sees another one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import own_floats
from odelab.engines.lanes.result import Found, empty_arrays
from odelab.problem import Problem
from odelab.runs.pieces import window
from odelab.status import Status

OWN = ("t0", "t1", "earliest", "latest")  # what of its time a run hands to its lane, as `odelab.kernels.attempt` has it


FEWEST, PER_RUN, MOST = 4096, 4, 1 << 20  # steps that are written down in a round


class Timetable(NamedTuple):
    """The times of N runs.

    spans    (N, 2), where each run starts and ends
    stops    (N, k), the stops of each, NaN where it has fewer than others
    wanted   (N, m), the times at which states are asked for; None where only the ends are
    """

    spans: np.ndarray
    stops: np.ndarray
    wanted: np.ndarray | None

    def of_runs(self, runs) -> "Timetable":
        """The times of some of the runs."""
        return Timetable(self.spans[runs], self.stops[runs], None if self.wanted is None else self.wanted[runs])

    def of(self, run: int) -> tuple[tuple[float, float], np.ndarray, np.ndarray | None]:
        """Span, stops and wanted times of one run."""
        stops = self.stops[run]
        wanted = None if self.wanted is None else self.wanted[run]
        return (float(self.spans[run, 0]), float(self.spans[run, 1])), stops[np.isfinite(stops)], wanted


def timetable(problem: Problem, count: int, t_span, tstops, t_eval, always: bool = False) -> Timetable | None:
    """The times of the runs, checked; None where all have those of the problem, the same wanted times and no stops.

    always    whether a timetable is wanted there, too
    """
    if not always and t_span is None and tstops is None and np.ndim(t_eval) != 2:
        return None
    spans = per_run("t_span", problem.t_span if t_span is None else t_span, count)
    stops = np.zeros((count, 0)) if tstops is None else per_run("tstops", tstops, count)
    wanted = None if t_eval is None else per_run("t_eval", t_eval, count)
    forward = np.sign(problem.t_span[1] - problem.t_span[0])
    if spans.shape[1] != 2 or not np.isfinite(spans).all() or not ((spans[:, 1] - spans[:, 0]) * forward > 0).all():
        raise ValueError(
            "`t_span` must be (N, 2), a finite start and end for each run, in the direction of the problem's own "
            f"{problem.t_span}."
        )
    for name, times in (("tstops", stops), ("t_eval", wanted)):
        if times is None:
            continue
        inside = (forward * (times - spans[:, :1]) >= 0.0) & (forward * (spans[:, 1:] - times) >= 0.0)
        wrong = ~(inside | np.isnan(times)) if name == "tstops" else ~inside
        if wrong.any():
            run, place = np.argwhere(wrong)[0]
            raise ValueError(
                f"`{name}` = {times[run, place]} of run {run} lies outside its span {tuple(spans[run].tolist())}."
            )
        if (forward * np.diff(times, axis=1) <= 0.0).any():
            raise ValueError(f"`{name}` must be sorted in the direction of the runs, without repetitions.")
    at_ends = (stops == spans[:, :1]) | (stops == spans[:, 1:])
    return Timetable(spans, np.where(at_ends, np.nan, stops), wanted)


def per_run(name: str, given, count: int) -> np.ndarray:
    """Times as an array with a row for each run; one row is that of all."""
    try:
        times = np.atleast_1d(own_floats(given))
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must hold times, got {given!r}.") from None
    if times.ndim > 2 or (times.ndim == 2 and len(times) != count):
        raise ValueError(f"`{name}` must be one row of times, or a row for each of {count} runs, got {times.shape}.")
    return np.ascontiguousarray(np.broadcast_to(times, (count, times.shape[-1])))


class Rounds:
    """Runs on their way: each takes one piece after the other, until it has come to its end.

    run_lanes    run_lanes(starts, rows, wanted, left) -> Found: runs in lanes; the wanted times are a row for each run,
                 filled up with an infinite one
    runs         the runs of the ensemble, `odelab.engines.lanes.runs.Runs`
    times        their times
    rows         their parameters, behind which `OWN` stand where the runs have times of their own; otherwise all have
                 the span of the problem
    watcher      follows their events; None where there are none
    """

    def __init__(self, run_lanes: Callable, runs, times: Timetable, rows, watcher):
        self.run_lanes, self.times, self.rows, self.watcher = run_lanes, times, rows, watcher
        self.max_steps, self.has_own_times = runs.max_steps, runs.timetable is not None
        starts = runs.starts
        wanted = None if times.wanted is None else times.wanted.shape[1]
        self.found: Any = empty_arrays(starts, times.spans[:, 0], wanted, runs.maxima, switches=runs.method.switches)
        ends = np.concatenate([times.stops, times.spans[:, 1:]], axis=1)  # those of runs with fewer come first
        self.ends = np.take_along_axis(ends, np.argsort(np.isnan(ends), axis=1, kind="stable"), axis=1)
        changes = watcher is not None and watcher.changes
        self.has_window = np.isfinite(self.ends[:, 1:]).any(axis=1) | changes
        self.forward = np.sign(times.spans[0, 1] - times.spans[0, 0])
        self.begins, self.number = times.spans[:, 0].copy(), np.zeros(len(starts), int)
        self.met = np.zeros(len(starts), int)  # wanted times in earlier pieces
        self.before = np.zeros((len(starts), 2), int)  # steps and rejections in earlier pieces
        self.left: Any = None if watcher is None else watcher.nothing_left()

    def run(self) -> Found:
        """All runs to their ends."""
        going = np.arange(len(self.rows))
        while going.size:
            part = self.take_round(going)
            reached = going[part.statuses == Status.REACHED]
            reached = reached[self.number[reached] + 1 < self.ends.shape[1]]
            go_on = reached[self.begin_next(reached, self.ends[reached, self.number[reached]])]
            if self.watcher is not None:
                watched = [run for run in going[part.statuses == Status.EVENT].tolist() if self.goes_on(run)]
                go_on = np.sort(np.concatenate([go_on, np.array(watched, int)]))
            going = go_on[self.found.counts[go_on].sum(axis=1) <= self.max_steps]
            if (part.statuses == Status.INTERRUPTED).any():
                self.found.statuses[going] = Status.INTERRUPTED
                break
        return self.found

    def shown(self, runs) -> tuple[np.ndarray, np.ndarray] | None:
        """The first and the last times that the right-hand sides of runs are shown; None where they are shown all."""
        if not self.has_own_times:
            return None
        earliest, latest = window(self.begins[runs], self.ends[runs, self.number[runs]])
        windowed = self.has_window[runs]
        return np.where(windowed, earliest, -np.inf), np.where(windowed, latest, np.inf)

    def take_round(self, going) -> Found:
        """Let runs go on until their pieces end, or may have met an event."""
        some = slice(None) if len(going) == len(self.rows) else going  # a view takes no time
        found, own, shown = self.found, self.rows[some], self.shown(going)
        t0, t1 = self.begins[going], self.ends[going, self.number[going]]
        if shown is not None:
            own = np.column_stack([own, t0, t1, *shown])
        ahead, counts = next_times(self.times.wanted, going, self.met[going], t1, self.forward)
        left = None if self.left is None else self.left.of_runs(going, min(max(FEWEST, PER_RUN * len(going)), MOST))
        part = self.run_lanes(found.ends[some], own, ahead, left)
        still = part.statuses == Status.INTERRUPTED  # these stand where the round has found them
        part.times[still] = found.times[going[still]]
        part.counts[still] = found.counts[going[still]] - self.before[going[still]]
        take(found, part, going, self.met[going], counts)
        found.counts[some] = self.before[some] + part.counts
        if left is not None:
            self.left.take(going, left, part.statuses == Status.EVENT)
            self.watcher.look_at_log(going, left.log[: left.logged[0]], shown)
        return part

    def begin_next(self, runs, t):
        """Let the next pieces of runs begin at these times; returns which of the runs have one."""
        self.begins[runs], self.before[runs] = t, self.found.counts[runs]
        self.number[runs] += t == self.ends[runs, self.number[runs]]
        if self.left is not None:
            self.left.resumes[runs] = 0
        if self.times.wanted is not None:
            self.met[runs] = (self.forward * (self.times.wanted[runs] - np.reshape(t, (-1, 1))) <= 0.0).sum(axis=1)
        last = self.ends.shape[1] - 1
        return (self.number[runs] <= last) & np.isfinite(self.ends[runs, np.minimum(self.number[runs], last)])

    def goes_on(self, run: int) -> bool:
        """Look at the last step of a run, in which an event may lie; returns whether the run goes on."""
        found, here = self.found, np.array([run])
        shown = self.shown(here)
        seen = None if shown is None else (float(shown[0][0]), float(shown[1][0]))
        after = self.watcher.look(run, self.left.numbers[run], self.begins[run], self.ends[run, self.number[run]], seen)
        if run in self.watcher.alone:
            return False
        if after.end is None:
            self.left.resumes[run] = 1
            return True
        found.statuses[run] = after.status
        found.times[run], found.ends[run] = after.end
        found.counts[run, 0] -= after.step is None
        if self.times.wanted is not None:
            self.fill_last_step(run, after)
        if after.status != Status.ATTEMPTS_SPENT:
            return False
        (goes_on,) = self.begin_next(here, found.times[here])
        if not goes_on:
            found.statuses[run] = Status.REACHED
        return bool(goes_on)

    def fill_last_step(self, run: int, after):
        """The states at the wanted times of a step that an event has cut short."""
        assert self.times.wanted is not None
        found, wanted, (end, u) = self.found, self.times.wanted[run], after.end
        found.points[run, wanted == end] = u
        if after.step is None:
            return
        inside = (self.forward * (wanted - after.step.t[0]) > 0.0) & (self.forward * (end - wanted) > 0.0)
        if inside.any():
            found.points[run, inside], doubtful = self.watcher.points(after.step, wanted[inside])
            if doubtful:
                found.doubts[run] = np.inf


def next_times(wanted, going, met, t1, forward):
    """(rows, counts): the wanted times of the runs that lie in their next pieces, filled up with infinite ones."""
    if wanted is None:
        return None, np.zeros(len(going), int)
    ahead = wanted[going]
    places = np.arange(ahead.shape[1])
    inside = (places >= met[:, None]) & (forward * (ahead - t1[:, None]) <= 0.0)
    counts = inside.sum(axis=1)
    most = int(counts.max(initial=0))
    rows = np.full((len(going), most + 1), forward * np.inf)
    for k in range(most):
        here = k < counts
        rows[here, k] = ahead[here, met[here] + k]
    return rows, counts


def take(found: Found, part: Found, going, met, counts):
    """Take over what runs in lanes have come to, but for the counts of their steps."""
    found.ends[going], found.times[going], found.statuses[going] = part.ends, part.times, part.statuses
    if found.turned is not None:
        found.turned[going] += part.turned
    if found.maxima is not None and part.maxima is not None:
        found.maxima[going] = np.fmax(found.maxima[going], part.maxima)
    if found.points is not None and part.points is not None and found.doubts is not None and part.doubts is not None:
        found.doubts[going] = np.maximum(found.doubts[going], part.doubts)
        for k in range(int(counts.max(initial=0))):
            here = k < counts
            places, states = (going[here], met[here] + k), part.points[here, k]
            found.points[places] = np.where(np.isnan(states), found.points[places], states)
