"""Ensembles whose runs have spans, stops or wanted times of their own: in each round every run takes its next piece.

A piece reaches from one stop of a run to its next one, as in `odelab.runs.pieces`. Runs that have ended or failed take
no part in later rounds, so that nothing waits for the slowest, and no run sees another one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.arrays import own_floats
from odelab.engines.lanes.result import Found, empty_arrays
from odelab.problem import Problem
from odelab.runs.pieces import window
from odelab.status import Status

OWN = ("t0", "t1", "earliest", "latest")  # what of its time a run hands to its lane, as `odelab.kernels.attempt` has it


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


def timetable(problem: Problem, count: int, t_span, tstops, t_eval) -> Timetable | None:
    """The times of the runs, checked; None where all have those of the problem, the same wanted times and no stops."""
    rows = [np.ndim(given) == 2 for given in (t_span, tstops, t_eval)]
    if t_span is None and tstops is None and not rows[2]:
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


def run_in_rounds(
    run_lanes: Callable, times: Timetable, starts, rows, maxima: bool, max_steps: int, switches: bool
) -> Found:
    """All runs, piece by piece.

    run_lanes    run_lanes(starts, rows, wanted) -> Found: runs in lanes, each with `OWN` behind its parameters; the
                 wanted times are a row for each run, filled up with an infinite one
    max_steps    attempts of a run, after more of which it goes on no further
    switches     whether two methods take turns
    """
    wanted = None if times.wanted is None else times.wanted.shape[1]
    found = empty_arrays(starts, times.spans[:, 0], wanted, maxima, switches=switches)
    count = len(starts)
    ends = np.concatenate([times.stops, times.spans[:, 1:]], axis=1)
    ends = np.take_along_axis(ends, np.argsort(np.isnan(ends), axis=1, kind="stable"), axis=1)  # those of fewer first
    has_stops = np.isfinite(ends[:, 1:]).any(axis=1)
    forward = np.sign(times.spans[0, 1] - times.spans[0, 0])
    begins, met = times.spans[:, 0].copy(), np.zeros(count, int)
    going = np.arange(count)
    for number in range(ends.shape[1]):
        going = going[np.isfinite(ends[going, number])]
        if not going.size:
            break
        t0, t1 = begins[going], ends[going, number]
        earliest, latest = window(t0, t1)
        stopped = has_stops[going]
        shown = np.where(stopped, earliest, -np.inf), np.where(stopped, latest, np.inf)
        own = np.column_stack([rows[going], t0, t1, *shown])
        ahead, counts = next_times(times.wanted, going, met, t1, forward)
        part = run_lanes(found.ends[going], own, ahead)
        take(found, part, going, met, counts)
        met[going] += counts
        begins[going] = t1
        if (part.statuses == Status.INTERRUPTED).any():
            break
        going = going[(part.statuses == Status.REACHED) & (found.counts[going].sum(axis=1) <= max_steps)]
    return found


def next_times(wanted, going, met, t1, forward):
    """(rows, counts): the wanted times of the runs that lie in their next pieces, filled up with infinite ones."""
    if wanted is None:
        return None, np.zeros(len(going), int)
    ahead = wanted[going]
    places = np.arange(ahead.shape[1])
    inside = (places >= met[going, None]) & (forward * (ahead - t1[:, None]) <= 0.0)
    counts = inside.sum(axis=1)
    most = int(counts.max(initial=0))
    rows = np.full((len(going), most + 1), forward * np.inf)
    for k in range(most):
        here = k < counts
        rows[here, k] = ahead[here, met[going][here] + k]
    return rows, counts


def take(found: Found, part: Found, going, met, counts):
    """Take over what the pieces of a round have come to."""
    found.ends[going], found.times[going], found.statuses[going] = part.ends, part.times, part.statuses
    found.counts[going] += part.counts
    if found.turned is not None:
        found.turned[going] += part.turned
    if found.maxima is not None and part.maxima is not None:
        found.maxima[going] = np.fmax(found.maxima[going], part.maxima)
    if found.points is not None and part.points is not None and found.doubts is not None and part.doubts is not None:
        found.doubts[going] = np.maximum(found.doubts[going], part.doubts)
        for k in range(int(counts.max(initial=0))):
            here = k < counts
            found.points[going[here], met[going][here] + k] = part.points[here, k]
