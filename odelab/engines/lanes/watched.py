"""Events of runs in lanes: what becomes of a run whose last step may hold one.

Its lane has handed it out (`odelab.kernels.interior.watching`). Here it is looked at as a single run is, by
`odelab.runs.events` and `odelab.runs.pieces`: the run ends, begins anew from a changed state, or goes on where it was.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.engines.lanes.result import Left
from odelab.engines.lanes.runs import Runs
from odelab.graph.nodes import Untraceable
from odelab.kernels.interior.search import search_of, search_of_many
from odelab.kernels.interior.states import look_of, step_of
from odelab.kernels.interior.watching import may_end
from odelab.runs import pieces
from odelab.runs.dense import Dense
from odelab.runs.events import EventRecord, Watch, none_of
from odelab.runs.interior import WORTH_SAYING, doubtful_time
from odelab.status import Status


class Found(NamedTuple):
    """Where an event happened in some runs."""

    runs: np.ndarray
    t: np.ndarray
    u: np.ndarray
    direction: np.ndarray


class Piece(NamedTuple):
    """The part of a run in which an event may lie, as `odelab.runs.pieces.after_events` takes it."""

    step_t: np.ndarray
    events: tuple[EventRecord, ...]
    trials: int


class Followed:
    """What is known of the events of one run.

    problem    of the run, with its own parameters
    """

    def __init__(self, problem, watched):
        self.problem = problem
        self.counts = [0] * len(watched)
        self.resting: set[int] = set()  # the numbers of events that have a zero at the time `rests_at`
        self.rests_at = math.nan
        self.changed: dict[int, float] = {}


class After(NamedTuple):
    """What a run does after a look at the step in which an event may lie.

    status    ATTEMPTS_SPENT where it goes on, EVENT where an event has ended it, STEP_LOST where changes follow each
              other without time passing
    end       (time, state) where an event has ended the run or changed the state; None where the run goes on as it was
    step      the dense output of its last step up to the event; None where no time has passed in it
    """

    status: Status
    end: tuple[float, np.ndarray] | None = None
    step: Dense | None = None


class Watcher:
    """Follows the events of all runs.

    runs     the runs of the ensemble
    rows     the names of what a lane keeps
    given    (N, k): the parameters of the runs, as lanes take them
    """

    def __init__(self, runs: Runs, rows, given):
        self.runs, self.given, self.windowed = runs, given, runs.timetable is not None
        self.problem, self.watched = problem, watched = runs.problem, runs.events
        method, controller = runs.method, runs.controller
        self.changes = any(event.change for event in watched)
        n, self.at = problem.size, {name: k for k, name in enumerate(rows)}
        self.followed: dict[int, Followed] = {}
        self.alone: set[int] = set()  # runs that are left to others
        self.told: dict[int, tuple[EventRecord, ...]] = {}  # what others have found
        like = problem.piece(*problem.t_span, problem.u0, (0.0, 0.0) if self.windowed else None)
        compiled = functools.partial(compiled_or_none, runs.exact)
        self.searches = {one.function: compiled(search_of, like, method, one.function) for one in watched}
        self.of_many = {one.function: compiled(search_of_many, like, method, one.function) for one in watched}
        self.found: list[list[Found]] = [[] for _ in watched]  # in steps that were written down
        self.step = compiled(step_of, like, method)
        self.looks = method.needs_jacobian and controller.law is not None
        self.look_inside = compiled(look_of, like, method, controller) if self.looks else None
        self.longest = np.zeros((len(given), n + 2 if self.looks else 0))

    def nothing_left(self) -> Left:
        """What lanes begin with; they write the longest steps of runs into the watcher's own array."""
        count = len(self.given)
        log = np.empty((0, 3 + 2 * self.problem.size + 1))
        return Left(
            np.zeros((count, len(self.at))), np.zeros(count, np.int64), self.longest, log, np.zeros(1, np.int64)
        )

    def part(self, numbers: np.ndarray, name: str) -> np.ndarray:
        """The state or step that a lane keeps under this name."""
        first = self.at[f"{name}0"]
        return numbers[..., first : first + self.problem.size]

    def left_to_others(self) -> list[int]:
        """The runs whose events cannot be told from single steps.

        Their longest step has doubtful states inside, which may hide an event, or a function is not defined.
        """
        if not self.looks:
            return [*self.alone]
        if self.look_inside is None:
            return [*range(len(self.longest))]
        t, h, u = self.longest[:, 0], self.longest[:, 1], self.longest[:, 2:]
        seen = pieces.window(t, t + h) if self.windowed else ()
        squares, _ = self.look_inside(t, u, h, np.column_stack([self.given, *seen]))
        doubtful = np.flatnonzero(~(squares < self.problem.size * WORTH_SAYING**2))
        return [*self.alone.union(doubtful.tolist())]

    def of(self, run: int) -> Followed:
        if run not in self.followed:
            sets = self.runs.sets
            changes: dict[str, Any] = {} if sets is None else {"params": tuple(sets[run].tolist())}
            problem = self.problem.piece(*self.problem.t_span, self.problem.u0, **changes)
            self.followed[run] = Followed(problem, self.watched)
        return self.followed[run]

    def look(self, run: int, numbers: np.ndarray, t0: float, t1: float, window) -> After:
        """Look at the last step of a run.

        numbers    what its lane has kept
        t0, t1     where its piece begins and ends
        window     the times that the right-hand side is shown in it, None for all
        """
        one, dt = self.of(run), numbers[[self.at["dt"]]]
        times = numbers[[self.at["began"], self.at["t"]]]
        states = np.stack([self.part(numbers, "old"), self.part(numbers, "u")])
        part = one.problem.piece(t0, t1, states[0], window)
        resting = one.resting if one.rests_at == t0 else ()
        ends, watch = self.watch(run, part, pieces.watch(self.watched, one.counts, resting), times, states, dt)
        records = watch.records()
        for number, record in enumerate(records):
            self.keep(run, number, record)
        before = list(one.counts)
        one.counts = [count + len(record.t) for count, record in zip(one.counts, records, strict=True)]
        if not ends:
            return After(Status.ATTEMPTS_SPENT)
        knots, reached = watch.cut(times[1:], states[1:])
        end = np.append(times[0], knots)[-1]
        u = reached[-1] if len(knots) else states[0]
        piece = Piece(np.array([end]), records, watch.trials)
        u, one.resting, word, *_ = pieces.after_events(piece, before, self.watched, one.changed, part, u)
        one.rests_at = float(end)
        status = {"ok": Status.ATTEMPTS_SPENT, "event": Status.EVENT}.get(word, Status.STEP_LOST)
        step = None
        if len(knots):
            step = self.dense(run, part, np.array([times[0], end]), np.stack([states[0], reached[-1]]), None)
        return After(status, (float(end), np.array(u)), step)

    def dense(self, run: int, part, times, states, h) -> Dense:
        """The dense output of one step; h is None for a step that ends at the second time."""
        again = look = None
        own = self.own(run, part)
        if self.step is not None:
            step = self.step

            def again(t, u, h):
                return step(np.array([t]), u[None], np.array([h]), own)[0]

        if self.look_inside is not None:
            look = functools.partial(self.look_inside, own=own)
        h = np.diff(times) if h is None else h
        return Dense(part, self.runs.method, times, states, h, self.runs.project, None, look, again)

    def own(self, run: int, part) -> np.ndarray:
        """The parameters and the window of a piece of a run, as compiled functions take them."""
        return np.append(self.given[run], part.window or ())

    def search(self, run: int, part, function: Callable) -> Callable | None:
        """The compiled search for zeros of an event's function; None where there is none."""
        found = self.searches[function]
        if found is None or self.runs.project is not None:
            return None
        return functools.partial(found, own=np.concatenate([self.given[run], self.own(run, part)]))

    def points(self, step: Dense, wanted) -> tuple[np.ndarray, bool]:
        """The states at some times in a step that an event has cut short, and whether one of them is doubtful."""
        with np.errstate(all="ignore"):
            doubtful = self.runs.by == "dense" and doubtful_time(step, self.runs.controller, wanted) is not None
            return step.at(wanted, self.runs.by), doubtful

    def look_at_log(self, going, log: np.ndarray, shown):
        """Find the zeros in steps that were written down, of events that neither end a run nor change a state.

        going    the runs of the round, whose numbers in it the log has
        shown    the times that their right-hand sides are shown; None for all
        """
        if not len(log):
            return
        n, places = self.problem.size, log[:, 0].view(np.int64)
        runs, h = going[places], np.ascontiguousarray(log[:, 3])
        times, states = log[:, [2, 1]], np.stack([log[:, 4 : 4 + n], log[:, 4 + n :]], axis=1)
        window = () if shown is None else [column[places] for column in shown]
        own = np.column_stack([self.given[runs], self.given[runs], *window])
        for number, event in enumerate(self.watched):
            if may_end(event):
                continue
            unsure, search = np.arange(len(log)), self.of_many[event.function]
            if search is not None:
                zeros, unsure = search(times, states, h, own)
                if event.direction:
                    zeros = zeros[zeros[:, 1] == event.direction]
                steps = zeros[:, 2].astype(int)
                self.found[number].append(Found(runs[steps], zeros[:, 0], zeros[:, 3:], zeros[:, 1].astype(int)))
            for i in unsure.tolist():
                run, ends = int(runs[i]), tuple(times[i].tolist())
                part = self.of(run).problem.piece(*ends, states[i, 0], tuple(float(one[i]) for one in window) or None)
                self.keep(run, number, self.watch(run, part, (event,), times[i], states[i], h[[i]])[1].records()[0])

    def watch(self, run: int, part, events, times, states, h) -> tuple[bool, Watch]:
        """Look for events in one step; returns whether one ends it."""
        dense = self.dense(run, part, times, states, h)
        watch = Watch(None, events, part, self.runs.controller, functools.partial(self.search, run, part))
        with np.errstate(all="ignore"):
            return watch.walk(dense), watch

    def keep(self, run: int, number: int, record: EventRecord):
        """Keep what was found of an event in one step."""
        if record.undefined:
            self.alone.add(run)
        if len(record.t):
            self.found[number].append(Found(np.full(len(record.t), run), record.t, record.u, record.direction))

    def records(self, count: int) -> list[tuple[EventRecord, ...]]:
        """The records of all runs."""
        forward = np.sign(self.problem.t_span[1] - self.problem.t_span[0])
        nothing = [EventRecord(*none_of(self.problem), 0, event.name) for event in self.watched]
        made = [tuple(nothing)] * count
        for number, found in enumerate(self.found):
            if not found:
                continue
            runs, *columns = (np.concatenate(one) for one in zip(*found, strict=True))
            order = np.lexsort((forward * columns[0], runs))
            runs, columns = runs[order], [column[order] for column in columns]
            for run, first, last in zip(*bounds(runs), strict=True):
                t, u, direction = (column[first:last] for column in columns)
                record = EventRecord(t, u, direction, 0, self.watched[number].name)
                made[run] = (*made[run][:number], record, *made[run][number + 1 :])
        for run, records in self.told.items():
            made[run] = records
        return made


def bounds(runs: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    """The numbers in a sorted row, where each begins and where it ends."""
    different, first = np.unique(runs, return_index=True)
    return different.tolist(), first.tolist(), np.append(first, len(runs))[1:].tolist()


def compiled_or_none(exact: bool, make: Callable, *given) -> Any:
    """What is compiled by `make`; None where it cannot be, or where all is to have the bits of plain Python."""
    try:
        return None if exact else make(*given)
    except Untraceable:
        return None
