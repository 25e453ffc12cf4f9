"""A run in pieces, which meet at required times (`stops`) and at events that change the state."""

import dataclasses

import numpy as np

from odelab.linear.algebraic import NoConsistentStart
from odelab.runs import diagnosis, events
from odelab.runs.dense import Interpolant
from odelab.runs.trajectory import Trajectory
from odelab.status import Status

APART = 4  # spacings of t: no nearer to a stop is the right-hand side asked, so that it is on one side of its jump
SHORTEST = 16  # spacings of t: if an event changes the state again within this time, it would do so for ever


def in_pieces(solve_piece, problem, stops, watched, t_eval, dense, max_steps, by, pace=None) -> Trajectory:
    """Solve each piece with solve_piece(problem, t_eval, watched, attempts), one after the other, as one trajectory.

    by    "dense" or "step": how the states at `t_eval` are found
    pace  the clock of the run, which may end it between two pieces; None for none
    """
    t, u = problem.t_span[0], problem.u0
    bounds = [*(float(stop) for stop in stops), problem.t_span[1]]
    pieces: list[Trajectory] = []
    resting: set[int] = set()  # the numbers of events that have a zero where the piece begins
    changed: dict[int, float] = {}  # the time of the last change by each event
    attempts, status, message, ending = max_steps, "ok", None, ""
    try:
        while bounds:
            part = problem.piece(t, bounds[0], u, tuple(map(float, window(t, bounds[0]))))
            counts = [sum(len(piece.events[number].t) for piece in pieces) for number in range(len(watched))]
            piece = solve_piece(
                part,
                times_within(t_eval, part, pieces) if not dense else None,
                watch(watched, counts, resting),
                attempts,
            )
            pieces.append(piece)
            attempts -= piece.steps + piece.rejected
            t, u, resting = float(piece.step_t[-1]), piece.end_u, set()
            if piece.status == "ok":
                bounds.pop(0)
            elif piece.status == "event":
                u, resting, status, message, ending = after_events(piece, counts, watched, changed, problem, u)
                if status != "ok" or t == problem.t_span[1]:
                    break
                bounds = [bound for bound in bounds if bound != t]
            elif piece.status != "max_steps":
                status, message = piece.status, piece.message
                break
            if piece.status == "max_steps" or (bounds and attempts <= 0):
                status, message = "max_steps", diagnosis.diagnose_budget(pieces[-1], max_steps)
                break
            if bounds and pace is not None and pace.is_over:
                status = "time_limit"
                message = diagnosis.diagnose_budget(pieces[-1], f"{pace.time_limit:g} s", status)
                break
    except KeyboardInterrupt:  # between two pieces
        if not pieces:
            raise
        status, message = "interrupted", diagnosis.interrupted(t)
    except NoConsistentStart as reason:
        if not pieces:
            raise
        status, message = Status.NO_CONSISTENT_START.word, str(reason)
    return join(problem, pieces, u, t_eval, dense, status, message, ending, by)


def window(start, end):
    """(earliest, latest): the times that the right-hand side is shown in a piece, a few spacings of t from both ends.

    Stages of a step lie at its ends, and where the right-hand side jumps at a stop, one of the two sides belongs to
    another piece. For one piece, or for arrays of them.
    """
    first, last = np.minimum(start, end), np.maximum(start, end)
    earliest, latest = first + APART * np.spacing(np.abs(first)), last - APART * np.spacing(np.abs(last))
    short = earliest > latest  # a piece of a few spacings
    return np.where(short, 0.5 * (first + last), earliest), np.where(short, 0.5 * (first + last), latest)


def watch(watched, counts, resting) -> tuple[events.Event, ...]:
    """The events for one piece. One that changes the state ends the piece; counts include those of earlier pieces."""
    found = []
    for number, event in enumerate(watched):
        left = int(event.terminal) - counts[number] if event.terminal else 0
        kind = events.Resting if number in resting else events.Event
        fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(events.Event)}
        found.append(kind(**{**fields, "terminal": 1 if event.change is not None else left}))
    return tuple(found)


def after_events(piece, counts, watched, changed, problem, u) -> tuple:
    """What comes of the events at the end of a piece: (state, resting, status, message, ending).

    The status is "ok" where the run goes on from this state, and `resting` are the numbers of events that have a zero
    there.

    piece      has `step_t`, `events` and `trials`, as a `Trajectory` has them
    counts     how often each event has happened before
    changed    {number: time} of the last change by each event; it is brought up to date
    """
    t, here = float(piece.step_t[-1]), events_at_end(piece, watched)
    for number, event in here:
        if 0 < int(event.terminal) <= counts[number] + len(piece.events[number].t):
            direction = piece.events[number].direction[-1]
            return u, set(), "event", None, events.ending_message(event, number, direction, t, piece.trials)
    status, message = "ok", None
    for number, event in here:
        if abs(t - changed.get(number, np.inf)) <= SHORTEST * np.spacing(abs(t)):
            status, message = "step_too_small", without_end(event, number, t)
        changed[number] = t
        u = changed_state(event, t, u, problem)
    return u, {number for number, _ in here}, status, message, ""


def times_within(t_eval, part, pieces):
    """The requested times of a piece, its start excepted where another piece ends there."""
    if t_eval is None:
        return None
    t0, t1 = part.t_span
    after = (t_eval - t0) * np.sign(t1 - t0)
    return t_eval[((after > 0) | ((after == 0) & (not pieces))) & ((t_eval - t1) * np.sign(t1 - t0) <= 0)]


def events_at_end(piece, watched) -> list[tuple[int, events.Event]]:
    """(number, event) of those at the end of a piece that end the run or change the state, in the order given."""
    t = piece.step_t[-1]
    near = events.SIMULTANEOUS * np.spacing(abs(t))
    return [
        (number, event)
        for number, event in enumerate(watched)
        if (event.terminal or event.change is not None)
        and len(piece.events[number].t)
        and abs(piece.events[number].t[-1] - t) <= near
    ]


def changed_state(event, t, u, problem) -> np.ndarray:
    """The state that an event makes of `u`."""
    if event.change is None:
        return u
    answer = np.asarray(event.change(t, np.array(u), problem.params), dtype=float)
    if answer.shape != problem.u0.shape or not np.isfinite(answer).all():
        raise ValueError(
            f"`change` of an event returned {answer} at t = {t:g}; it must return the new state, {problem.size} finite "
            "numbers."
        )
    return answer


def without_end(event, number, t) -> str:
    return (
        f"the event {event.name or number} changes the state again and again at t = {t:.17g} without time passing; end "
        "the run there (`terminal`), or let `change` bring the state to rest before"
    )


def join(problem, pieces, u, t_eval, dense, status, message, ending, by) -> Trajectory:
    """One trajectory of all pieces; where one ends and the next begins, the state is that after a change."""

    def column(name):
        return np.concatenate([np.asarray(getattr(piece, name)) for piece in pieces])

    step_t = np.concatenate([pieces[0].step_t, *(piece.step_t[1:] for piece in pieces[1:])])
    step_u = interpolant = None
    if dense:
        step_u = np.concatenate([*(piece.step_u[:-1] for piece in pieces), np.asarray(u)[None]])
        interpolant = Joined([piece.interpolant for piece in pieces], step_t[-1], np.asarray(u))
        forward = np.sign(problem.t_span[1] - problem.t_span[0])
        reached = None if t_eval is None else t_eval[(t_eval - step_t[-1]) * forward <= 0]
        points = (step_t, step_u) if reached is None else (reached, interpolant.at(reached, by))
    elif t_eval is None:
        points = (step_t[[0, -1]], np.stack([pieces[0].u[0], u]))
    else:
        points = (column("t"), column("u"))
    joined = Trajectory(
        points[0],
        points[1],
        h=column("h"),
        step_t=step_t,
        step_u=step_u,
        dense=dense,
        end_u=np.asarray(u),
        rejected=sum(piece.rejected for piece in pieces),
        evaluations=sum(piece.evaluations for piece in pieces),
        took=None if pieces[0].took is None else column("took"),
        turns=None if pieces[0].turns is None else tuple(map(sum, zip(*(one.turns for one in pieces), strict=True))),
        jacobians=sum(piece.jacobians for piece in pieces),
        factorisations=sum(piece.factorisations for piece in pieces),
        derivatives=pieces[-1].derivatives,
        status=status,
        error=column("error"),
        problem=problem,
        method=pieces[0].method,
        controller=pieces[0].controller,
        engine=" and ".join(dict.fromkeys(piece.engine for piece in pieces)),
        events=tuple(merge_records(records) for records in zip(*(piece.events for piece in pieces), strict=True)),
        interpolant=interpolant,
        known={
            "slope": column("slope") if dense else None,
            "message": message,
            "ending": ending,
            "sai": column("sai"),
            "h_rho": column("h_rho"),
        },
    )
    joined.start = pieces[0].start
    joined.doubt = next((piece.doubt for piece in pieces if piece.doubt is not None), None)
    return joined


def merge_records(records) -> events.EventRecord:
    """What all pieces have found of one event."""
    t, u, direction = (np.concatenate([record[column] for record in records]) for column in range(3))
    return events.EventRecord(t, u, direction, sum(record.undefined for record in records), records[0].name)


class Joined(Interpolant):
    """The dense output of several pieces. Its knots are the starts of the pieces, with the states after a change."""

    def __init__(self, pieces, end, end_u):
        self.pieces = [piece for piece in pieces if len(piece.t) > 1]
        self.t = np.array([*(piece.t[0] for piece in self.pieces), end])
        self.u = np.array([*(piece.u[0] for piece in self.pieces), end_u])

    def between(self, index, times):
        return self.of_pieces(index, times, "dense")

    def between_by_steps(self, index, times):
        return self.of_pieces(index, times, "step")

    def of_pieces(self, index, times, by):
        states = np.empty((len(times), self.u.shape[1]))
        for i in np.unique(index):
            states[index == i] = self.pieces[i].at(times[index == i], by)
        return states
