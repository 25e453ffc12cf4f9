"""The driver of runs (but SciPy's): takes chunks from an engine, looks for events, makes a Trajectory."""

from typing import NamedTuple

import numpy as np

from odelab.core import State
from odelab.engines import Engine, Status
from odelab.engines.compiled import NotCompilable
from odelab.engines.python import Chunk, PythonEngine, Record, RightHandSideError, no_steps
from odelab.methods.switching import SwitchingMethod
from odelab.right_hand_side import IN_PLACE
from odelab.runs import diagnosis, events
from odelab.runs.dense import Dense
from odelab.runs.points import Points
from odelab.runs.trajectory import Trajectory

EVERYTHING = 1 << 62  # attempts, more than any run makes: the engine itself limits the chunk
MANY = 1 << 20  # attempts: after an error in a larger chunk, half of this many are tried next


def run(engine: Engine, max_steps: int, watched=(), t_eval=None, dense=True, searches=None) -> Trajectory:
    """Drive `engine` to the end of the span, an event that ends it, a failure, or `max_steps` attempts.

    searches    the `odelab.engines.event_search.Searches` for `watched`, which a compiled run uses
    """
    problem = engine.problem
    parts: list[Part] = []
    points = None if dense else Points(engine, t_eval)
    searches = searches if engine.name == "compiled" else None
    watch = events.Watch(engine, watched, problem, searches) if watched else None
    status, spent, rejected, evaluations, at_most = Status.ATTEMPTS_SPENT, 0, 0, 0, EVERYTHING
    linear = [0, 0]
    state = State(problem.t_span[0], np.array(problem.u0), None, False, None)
    with np.errstate(all="ignore"):
        try:
            state, evaluations = engine.begin()
            while status == Status.ATTEMPTS_SPENT and spent < max_steps:
                attempts = min(engine_chunk(engine, watch, spent), max_steps - spent, at_most)
                try:
                    chunk = engine.advance(state, attempts)
                except Exception as error:
                    at_most = after_error(engine, state, attempts, error)
                    continue
                spent += chunk.steps + chunk.rejected
                rejected += chunk.rejected
                evaluations += chunk.evaluations
                linear = [linear[0] + chunk.jacobians, linear[1] + chunk.factorisations]
                if points is not None:
                    chunk = points.look(chunk, state)
                parts.append(Part(chunk))
                status = Status(chunk.status)
                if watch is not None and watch.ends(chunk, state, chunk.knots):
                    parts[-1] = Part(chunk, watch.cut(chunk.knots, chunk.u))
                    status = Status.EVENT
                state = chunk.state
        except KeyboardInterrupt:  # between two calls of the engine, or while events were looked for
            status = Status.INTERRUPTED
        except RightHandSideError as wrong:  # before the first step
            status = Status.WRONG_SHAPE
            parts.append(Part(no_steps(state, status, str(wrong))))
        if state.memory is not None:
            evaluations += engine.controller.unseen(state.memory)
        trajectory = finish(engine, parts, state, status, max_steps, rejected, evaluations, watch, t_eval, points)
        trajectory.jacobians, trajectory.factorisations = linear
        trajectory.derivatives = engine.derivatives
        return trajectory


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


def engine_chunk(engine, watch, spent) -> int:
    """The number of attempts in the next chunk.

    In plain Python it is one where an event may end the run, so that nothing is evaluated beyond the event.
    """
    if watch is not None and watch.may_end and engine.name == "python":
        return 1
    if watch is None and hasattr(engine, "record"):
        return EVERYTHING
    first = 256 if engine.problem.form == IN_PLACE else 1024
    return min(max(first, spent), 1 << 16)  # an event may end the run: at most half of the attempts lie beyond it


def finish(engine, parts, state: State, status, max_steps, rejected, evaluations, watch, t_eval, sparse):
    problem, method = engine.problem, engine.method
    last = parts[-1].chunk if parts else None
    if hasattr(engine, "record") and status != Status.EVENT:
        parts.clear()  # they are views of the engine's arrays, which `record` is about to shrink
        record = engine.record()
    else:
        record = join_chunks(problem, parts)
    h = np.diff(record.t) if status == Status.EVENT else record.h
    interpolant = None
    if sparse is not None:
        record = record._replace(u=None, slope=None)
        points = sparse.points(record.t[-1], state.u)
    else:
        interpolant = Dense(problem, method, record.t, record.u, record.h, engine.project, record.took)
        points = (record.t, record.u)
    if t_eval is not None and interpolant is not None:
        reached = t_eval[(t_eval - record.t[-1]) * np.sign(problem.t_span[1] - problem.t_span[0]) <= 0]
        points = (reached, interpolant(reached))
    trajectory = Trajectory(
        points[0],
        points[1],
        h=h,
        step_t=record.t,
        step_u=record.u,
        dense=sparse is None,
        end_u=state.u if sparse is not None else None,
        rejected=rejected,
        evaluations=evaluations,
        error=record.error,
        problem=problem,
        method=method,
        controller=engine.controller,
        engine=engine.name,
        events=watch.records() if watch is not None else (),
        interpolant=interpolant,
        took=names_of(method, record.took),
        known={
            "slope": record.slope if status != Status.EVENT else with_cut_slope(record, h),
            "sai": record.sai,
            "h_rho": record.h_rho,
        },
    )
    name_the_end(trajectory, engine, last, state, status, max_steps, watch)
    return trajectory


def names_of(method, took):
    """The name of the method that took each step, of a run of two methods; else None."""
    return (
        None
        if not isinstance(method, SwitchingMethod)
        else np.where(took.astype(bool), method.implicit.name, method.explicit.name)
    )


def join_chunks(problem, parts) -> Record:
    """The chunks of a run put together, up to the event that ended it."""
    chunks = [part.chunk for part in parts if part.chunk.steps]
    t = np.concatenate([np.array(problem.t_span[:1]), *(part.t for part in parts)])
    u = np.concatenate([np.array(problem.u0)[None], *(part.u for part in parts)])
    steps = len(t) - 1

    def column(name):
        return np.concatenate([np.zeros(0), *(getattr(chunk, name) for chunk in chunks)])[:steps]

    def column_if_known(name):
        return column(name) if all(getattr(chunk, name, None) is not None for chunk in chunks) else None

    slope = None
    if all(chunk.slope is not None for chunk in chunks):
        slope = np.concatenate([u[:0], *(chunk.slope for chunk in chunks)])[:steps]
    known = (column_if_known(name) for name in ("sai", "h_rho", "took"))
    return Record(t, u, column("h"), column("error"), slope, *known)


def with_cut_slope(record: Record, h):
    """The slopes of all steps, where a step cut short by an event gets a new one; None if the engine kept none."""
    if record.slope is not None and record.u is not None and len(h):
        record.slope[-1] = (record.u[-1] - record.u[-2]) / h[-1]
    return record.slope


def name_the_end(trajectory, engine, chunk, state, status, max_steps, watch):
    """Set status and message; the message of a plain success is left to be found when it is asked for."""
    t = trajectory.step_t[-1]
    if status == Status.REACHED:
        return
    if status == Status.EVENT:
        trajectory.status, trajectory.message = "event", watch.message()
    elif status == Status.INTERRUPTED:
        trajectory.status = "interrupted"
        trajectory.message = f"interrupted at t = {t:g}; what was computed until then is kept"
    elif status == Status.WRONG_SHAPE:
        trajectory.status = "wrong_shape"
        trajectory.message = f"{chunk.word}; it must return one real slope per component of `u0`, at every t"
    elif status in (Status.STEP_LOST, Status.NOT_FINITE):
        attempted = last_attempt(engine, state)
        trajectory.status, trajectory.message = diagnosis.diagnose_stop(
            engine.problem, engine.method, state, attempted, status == Status.NOT_FINITE, engine.project
        )
    else:
        trajectory.status = "max_steps"
        trajectory.message = diagnosis.diagnose_budget(trajectory, max_steps)


def last_attempt(engine, state: State) -> float:
    """The size of the step that failed, with which the cause is looked for; at least four spacings of t."""
    dt = engine.controller.propose(state.memory, state.t, engine.problem.t_span[1], state.u, state.slope)[0]
    spacing = float(np.spacing(max(abs(state.t), 1e-300)))
    direction = np.sign(engine.problem.t_span[1] - engine.problem.t_span[0])
    return float(dt if abs(dt) > spacing else 4.0 * direction * spacing)
