"""The driver of runs (but SciPy's): takes chunks from an engine, looks for events, makes a Trajectory."""

from typing import Any, NamedTuple

import numpy as np

from odelab.core import State
from odelab.engines import Engine
from odelab.engines.not_compilable import NotCompilable
from odelab.engines.pace import Pace
from odelab.engines.python import PythonEngine, RightHandSideError
from odelab.engines.steps import Chunk, Record
from odelab.right_hand_side import IN_PLACE
from odelab.runs import diagnosis, events
from odelab.runs.dense import Dense
from odelab.runs.points import Points
from odelab.runs.trajectory import Trajectory
from odelab.status import Status

EVERYTHING = 1 << 62  # attempts, more than any run makes: the engine itself limits the chunk
STATUSES = tuple(Status)  # by their numbers
MANY = 1 << 20  # attempts: after an error in a larger chunk, half of this many are tried next


def run(
    engine: Engine, max_steps: int, watched=(), t_eval=None, dense=True, by="dense", pace: Pace | None = None
) -> Trajectory:
    """Drive `engine` to the end of the span, an event that ends it, a failure, or `max_steps` attempts.

    by      "dense" or "step": how the states at `t_eval` are found
    pace    reports how the run gets on, and may end it; None for neither
    """
    found = Run(engine, max_steps, watched, t_eval, dense, by)
    found.pace = pace
    with np.errstate(all="ignore"):
        found.drive()
        return found.trajectory()


class Part(NamedTuple):
    """A chunk; where a terminal event lies in it, `cut` holds the times and states of its step ends up to the event."""

    chunk: Chunk
    cut: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def t(self):
        return self.chunk.knots if self.cut is None else self.cut[0]

    @property
    def u(self):
        return self.chunk.u if self.cut is None else self.cut[1]

    @property
    def steps(self) -> int:
        return self.chunk.steps if self.cut is None else len(self.cut[0])


class Run:
    """One run while it goes on: its state, what it has cost so far, and the chunks that it consists of.

    The arguments are those of the function `run`.
    """

    def __init__(self, engine: Engine, max_steps: int, watched, t_eval, dense: bool, by: str):
        self.engine, self.problem, self.method = engine, engine.problem, engine.method
        self.max_steps, self.t_eval, self.by = max_steps, t_eval, by
        self.points = None if dense else Points(engine, t_eval, by)
        self.start = np.array(self.problem.u0)
        self.watch = None
        if watched:
            search = getattr(engine, "search", None)
            self.watch = events.Watch(engine, watched, self.problem, engine.controller, search)
        self.state = State(self.problem.t_span[0], self.start, None, False, None)
        self.status, self.word = Status.ATTEMPTS_SPENT, ""
        self.parts: list[Part] = []
        self.spent = self.rejected = self.evaluations = self.jacobians = self.factorisations = 0
        self.at_most = EVERYTHING  # attempts in one chunk
        self.pace: Pace | None = None
        self.has_begun = False

    def drive(self):
        """Take chunk after chunk until the run has ended."""
        try:
            self.state, self.evaluations = self.engine.begin()
            self.has_begun, self.start = True, self.state.u
            if self.points is not None:
                self.points.begin(self.start)
            while self.status == Status.ATTEMPTS_SPENT and self.spent < self.max_steps:
                self.take_chunk()
                over = self.pace is not None and self.pace.pass_time(self.state.t)
                if over and self.status == Status.ATTEMPTS_SPENT:
                    self.status = Status.TIME_SPENT
        except KeyboardInterrupt:  # between two calls of the engine, or while events were looked for
            self.status = Status.INTERRUPTED
        except RightHandSideError as wrong:  # before the first step
            self.status, self.word = Status.WRONG_SHAPE, str(wrong)
        if self.state.memory is not None:
            self.evaluations += self.engine.controller.unseen(self.state.memory)

    def take_chunk(self):
        """Let the engine go on for a chunk, and look for events in it."""
        at_once = EVERYTHING if self.pace is None else self.pace.attempts
        attempts = min(self.attempts(), self.max_steps - self.spent, self.at_most, at_once)
        try:
            chunk = self.engine.advance(self.state, attempts)
        except Exception as error:
            self.at_most = after_error(self.engine, self.state, attempts, error)
            return
        if self.points is not None:
            chunk = self.points.look(chunk, self.state)
        self.parts.append(Part(chunk))
        self.status, self.word = STATUSES[chunk.status], chunk.word
        if self.watch is not None and self.watch.ends(chunk, self.state, chunk.knots):
            self.parts[-1] = Part(chunk, self.watch.cut(chunk.knots, chunk.u))
            self.status = Status.EVENT
        steps = self.parts[-1].steps
        if self.status == Status.EVENT and steps < chunk.steps + chunk.rejected:
            self.state = self.count_steps(steps)
        else:
            self.count(chunk)
            self.state = chunk.state

    def count(self, chunk: Chunk):
        """Add what a chunk has taken."""
        self.spent += chunk.steps + chunk.rejected
        self.rejected += chunk.rejected
        self.evaluations += chunk.evaluations
        self.jacobians += chunk.jacobians
        self.factorisations += chunk.factorisations

    def count_steps(self, steps: int) -> State:
        """Add what the first steps of a chunk have taken; returns the state that they led to.

        They are made again, because engines count whole chunks alone.
        """
        state, goes_on = self.state if self.parts[1:] else self.engine.begin()[0], True
        while steps and goes_on:
            chunk = self.engine.advance(state, steps)
            self.count(chunk)
            steps, state, goes_on = steps - chunk.steps, chunk.state, chunk.status == Status.ATTEMPTS_SPENT
        return state

    def attempts(self) -> int:
        """The number of attempts in the next chunk.

        In plain Python it is one where an event may end the run, so that nothing is evaluated beyond the event.
        """
        if self.watch is not None and self.watch.may_end and self.engine.name == "python":
            return 1
        if self.watch is None and hasattr(self.engine, "record"):
            return EVERYTHING
        first = 256 if self.problem.form == IN_PLACE else 1024
        return min(max(first, self.spent), 1 << 16)  # an event may end the run: at most half of them lie beyond it

    def trajectory(self) -> Trajectory:
        """What the run has come to."""
        record: Any = self.record()
        cut_short = self.status == Status.EVENT
        if cut_short and len(record.h):
            record.h[-1] = record.t[-1] - record.t[-2]
        h = record.h
        interpolant = None
        if self.points is not None:
            record = record._replace(u=None, slope=None)
            t, u = self.points.points(record.t[-1], self.state.u)
        else:
            look = None if self.t_eval is None else getattr(self.engine, "look_inside", None)
            interpolant = Dense(
                self.engine.problem,
                self.method,
                record.t,
                record.u,
                record.h,
                self.engine.project,
                record.took,
                look,
            )
            t, u = record.t, record.u
            if self.t_eval is not None:
                direction = np.sign(self.problem.t_span[1] - self.problem.t_span[0])
                t = self.t_eval[(self.t_eval - record.t[-1]) * direction <= 0]
                u = interpolant.at(t, self.by)
        found = Trajectory(
            t,
            u,
            h=h,
            step_t=record.t,
            step_u=record.u,
            dense=self.points is None,
            end_u=None if self.points is None else self.state.u,
            rejected=self.rejected,
            evaluations=self.evaluations,
            jacobians=self.jacobians,
            factorisations=self.factorisations,
            derivatives=self.engine.derivatives,
            error=record.error,
            problem=self.problem,
            method=self.method,
            controller=self.engine.controller,
            engine=self.engine.name,
            events=() if self.watch is None else self.watch.records(),
            interpolant=interpolant,
            took=names_of(self.method, record.took),
            turns=counts_of(self.engine) if self.method.switches else None,
            known={
                "slope": with_cut_slope(record, h) if cut_short else record.slope,
                "sai": None if cut_short else record.sai,
                "h_rho": record.h_rho,
            },
        )
        found.start = self.start
        found.doubt = None if self.points is None else self.points.doubt
        self.name_the_end(found)
        return found

    def record(self) -> Record:
        """All steps: as the engine has kept them, or the chunks put together up to the event that ended the run."""
        if hasattr(self.engine, "record") and self.has_begun and self.status != Status.EVENT:
            self.parts.clear()  # they are views of the engine's arrays, which `record` is about to shrink
            return self.engine.record()
        chunks = [part.chunk for part in self.parts if part.chunk.steps]
        t = np.concatenate([np.array(self.problem.t_span[:1]), *(part.t for part in self.parts)])
        u = np.concatenate([self.start[None], *(part.u for part in self.parts)])
        steps = len(t) - 1

        def column(name):
            return np.concatenate([np.zeros(0), *(getattr(chunk, name) for chunk in chunks)])[:steps]

        def column_if_known(name):
            return column(name) if all(getattr(chunk, name) is not None for chunk in chunks) else None

        slope = None
        if all(chunk.slope is not None for chunk in chunks):
            slope = np.concatenate([u[:0], *(chunk.slope for chunk in chunks)])[:steps]
        known = (column_if_known(name) for name in ("sai", "h_rho", "took"))
        return Record(t, u, column("h"), column("error"), slope, *known)

    def name_the_end(self, trajectory: Trajectory):
        """Set status and message; the message of a plain success is left to be found when it is asked for."""
        t, status = trajectory.step_t[-1], self.status
        if status == Status.REACHED:
            return
        if status == Status.EVENT and self.watch is not None:
            trajectory.status, trajectory.ending = "event", self.watch.message()
            trajectory.trials = self.watch.trials
        elif status == Status.INTERRUPTED:
            trajectory.status = "interrupted"
            trajectory.message = diagnosis.interrupted(t)
        elif status == Status.TIME_SPENT and self.pace is not None:
            trajectory.status = "time_limit"
            trajectory.message = diagnosis.diagnose_budget(trajectory, f"{self.pace.time_limit:g} s", "time_limit")
        elif status == Status.WRONG_SHAPE:
            trajectory.status = "wrong_shape"
            trajectory.message = f"{self.word}; it must return one real slope per component of `u0`, at every t"
        elif status in (Status.STEP_LOST, Status.NOT_FINITE):
            attempted = last_attempt(self.engine, self.state)
            trajectory.status, trajectory.message = diagnosis.diagnose_stop(
                self.problem, self.method, self.state, attempted, status == Status.NOT_FINITE, self.engine.project
            )
        else:
            trajectory.status = "max_steps"
            trajectory.message = diagnosis.diagnose_budget(trajectory, self.max_steps)


def after_error(engine, state: State, attempts: int, error) -> int:
    """How many attempts to make next, after the user's function raised `error` in a chunk of `attempts`.

    Half as many are tried, because an event may end the run before the attempt that fails: with one attempt at a time
    it would never have been made. A single attempt that fails raises the error. Compiled code says of a wrong index
    only that it is out of bounds, so plain Python repeats that attempt, for its more precise message.
    """
    if engine.name == "python" or isinstance(error, NotCompilable):
        raise error
    if attempts == 1:
        if isinstance(error, IndexError):
            plain = PythonEngine(engine.problem, engine.method, engine.controller, engine.project)
            plain.controller = engine.controller
            plain.advance(state, 1)
        raise error
    return min(attempts, MANY) // 2


def names_of(method, took):
    """The name of the method that took each step, of a run of two methods; else None."""
    if not method.switches:
        return None
    return method.names[took.astype(int)]


def counts_of(engine) -> tuple[int, int, int]:
    """How often the method has changed, an implicit step was tried, and was refused, of a run of two methods."""
    now = engine.now
    return (0, 0, 0) if now is None else (int(now.changes), int(now.tried), int(now.refused))


def with_cut_slope(record: Record, h):
    """The slopes of all steps, where a step cut short by an event gets a new one; None if the engine kept none."""
    if record.slope is not None and record.u is not None and len(h):
        record.slope[-1] = (record.u[-1] - record.u[-2]) / h[-1]
    return record.slope


def last_attempt(engine, state: State) -> float:
    """The size of the step that failed, with which the cause is looked for; at least four spacings of t."""
    dt = engine.controller.propose(state.memory, state.t, engine.problem.t_span[1], state.u, state.slope)[0]
    spacing = float(np.spacing(max(abs(state.t), 1e-300)))
    direction = np.sign(engine.problem.t_span[1] - engine.problem.t_span[0])
    return float(dt if abs(dt) > spacing else 4.0 * direction * spacing)
