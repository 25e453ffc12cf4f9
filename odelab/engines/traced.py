"""The compiled engine of small systems: the graph of an attempt as machine code, with a loop around it."""

import time
from typing import Any

import numpy as np

from odelab.control.controllers import Start
from odelab.control.feedback import History
from odelab.core import State
from odelab.engines import Status
from odelab.engines.numba.rows import Rows
from odelab.engines.python import PythonEngine, begin, checked_rhs
from odelab.engines.steps import Chunk, Record
from odelab.graph.machine import address
from odelab.kernels import store
from odelab.kernels.attempt import FIELDS, fixed_values
from odelab.kernels.run import Wanted, asked_of, kernel_of_run

PIVOTED = 16  # attempts in plain Python, with pivoting, where a kernel's factors fail; then the kernel tries again
SLICE, FEWEST = 0.05, 1 << 12  # seconds and attempts of one call of a kernel: between two calls Ctrl-C takes effect


class TracedEngine:
    """Runs a small system by a kernel made for its right-hand side, the method and the law."""

    name = "compiled"

    def __init__(self, problem, method, controller, project=None, exact=False):
        self.problem, self.method, self.controller, self.project = problem, method, controller, project
        slopes = store.slopes_of(problem)
        projection = None if project is None else store.projection_of(project, problem.size)
        self.kernel = kernel_of_run(Wanted(asked_of(problem, method, controller), slopes, projection, exact))
        self.at = self.kernel.at
        self.params = np.array(slopes.parameters.values)
        self.fixed = np.array(fixed_values(problem, controller), dtype=float)
        self.exact = exact
        self.looks_at_stages = False
        self.most = FEWEST
        self.slope_is_known: State | None = None  # a state whose slope was counted before

    @property
    def derivatives(self) -> str:
        return "exact Jacobian, eliminated straight through in the kernel" if self.method.needs_jacobian else ""

    def look_at_stages(self):
        """Let chunks tell h rho, where the stages of a step do."""
        self.looks_at_stages = self.method.twin_stages is not None

    def begin(self) -> tuple[State, int]:
        state, evaluations = self.first_state()
        self.rows = Rows(state.t, self.problem.t_span[1], state.u)
        self.rows.tells_h_rho = self.looks_at_stages
        return state, evaluations

    def first_state(self) -> tuple[State, int]:
        """The state the run starts from, and the evaluations it took."""
        problem, controller, n = self.problem, self.controller, self.problem.size
        u0, carried, count = np.array(problem.u0), np.zeros(len(self.at)), np.zeros(1, np.int64)
        self.kernel.begin(*map(address, (u0, self.fixed, self.params, carried, count)))
        if count[0] < 0 or "slope0" not in self.at:
            return begin(problem, self.method, controller, checked_rhs(problem))
        slope = carried[self.at["slope0"] : self.at["slope0"] + n].copy()
        size = abs(carried[self.at["next_step"]]) if controller.law is not None else None
        run = Start(self.method, problem.rhs, problem.params, *problem.t_span, u0, slope, size)
        return State(problem.t_span[0], u0, slope, True, controller.start(run)[0]), int(count[0])

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on from `state`, for at most as many attempts as there is room for."""
        rows, first = self.rows, self.rows.steps
        attempts = min(attempts, rows.room(state.t, attempts))
        carried, early = self.carried(state)
        status, made, whole = np.zeros(1, np.int64), 0, carried.view(np.int64)
        if state.t == self.problem.t_span[1]:
            return rows.chunk(first, Status.REACHED, state, 0, 0)
        interrupted = False
        try:
            while made < attempts and status[0] == Status.ATTEMPTS_SPENT:
                self.call(carried, status, min(attempts - made, self.most), rows)
                made = int(whole[self.at["steps"]]) - first + int(whole[self.at["rejected"]])
        except KeyboardInterrupt:
            interrupted = True
        rows.steps = int(whole[self.at["steps"]])
        ended = Status(int(status[0]))
        steps, rejected = rows.steps - first, int(whole[self.at["rejected"]])
        tried = steps + rejected + (ended in (Status.NOT_FINITE, Status.SINGULAR))
        work = self.work(state, carried, ended, steps, tried, early)
        after = self.state_of(carried, state, ended, tried)
        if ended == Status.RAISED and tried:
            ended = Status.ATTEMPTS_SPENT  # the steps before the error may hold an event that ends the run
        if ended in (Status.SINGULAR, Status.RAISED) and not interrupted:
            left = PIVOTED if ended == Status.SINGULAR else 1
            return self.in_plain_python(after, min(max(attempts - tried, 1), left), first, (rejected, *work))
        return rows.chunk(first, Status.INTERRUPTED if interrupted else ended, after, rejected, *work)

    def call(self, carried, status, attempts: int, rows):
        """One call of the kernel; the number of attempts in the next one is chosen by how long it has taken."""
        began = time.perf_counter()
        record = rows.array
        arrays = map(address, (carried, status, self.fixed, self.params, record))
        self.kernel.advance(*arrays, attempts, len(record) - 1)
        taken = time.perf_counter() - began
        if attempts == self.most:
            self.most = max(FEWEST, int(attempts * min(4.0, SLICE / max(taken, 1e-6))))

    def carried(self, state: State) -> tuple[np.ndarray, int]:
        """What the kernel carries, at a state; and the evaluations that this took."""
        carried, n, evaluations = np.zeros(len(self.at)), self.problem.size, 0
        carried[self.at["t"]] = state.t
        carried[self.at["u0"] : self.at["u0"] + n] = state.u
        if "slope0" in self.at:
            slope = state.slope
            if not state.fresh:
                slope, evaluations = checked_rhs(self.problem)(state.t, state.u, self.problem.params), 1
            carried[self.at["slope0"] : self.at["slope0"] + n] = slope
        if self.controller.law is None:
            carried[self.at["count"]] = state.memory.n
        else:
            history = state.memory.history
            for name in self.at.keys() & {"was_rejected", *History._fields} - {"rejected"}:
                carried[self.at[name]] = getattr(history, FIELDS.get(name, name))
        carried.view(np.int64)[self.at["steps"]] = self.rows.steps
        return carried, evaluations

    def state_of(self, carried, before: State, ended: Status, tried: int) -> State:
        """The state that the kernel has come to."""
        n = self.problem.size
        u = carried[self.at["u0"] : self.at["u0"] + n].copy()
        if self.controller.law is None:
            memory: Any = before.memory._replace(n=float(carried[self.at["count"]]))
        else:
            known = {
                name: float(carried[self.at[name]])
                for name in History._fields
                if name in self.at and name != "rejected"
            }
            known["rejected"] = float(carried[self.at["was_rejected"]])
            memory = before.memory._replace(history=History(*(known.get(name, 0.0) for name in History._fields)))
        fresh = "slope0" in self.at
        slope = carried[self.at["slope0"] : self.at["slope0"] + n].copy() if fresh else before.slope
        after = State(float(carried[self.at["t"]]), u, slope, fresh, memory)
        self.slope_is_known = after if not self.moved_last(carried, ended, tried) else None
        return after

    def moved_last(self, carried, ended: Status, tried: int) -> bool:
        """Was the last attempt that began accepted?"""
        if ended in (Status.ATTEMPTS_SPENT, Status.RAISED):
            return tried > 0 and (self.controller.law is None or carried[self.at["was_rejected"]] == 0.0)
        return ended == Status.REACHED

    def work(self, state, carried, ended, steps, tried, early) -> tuple[int, int, int]:
        """Evaluations, Jacobians and factorisations, as plain Python makes them: once at each state that is left."""
        begun = tried + (ended == Status.STEP_LOST)
        states = (begun > 0) + steps - self.moved_last(carried, ended, tried)
        evaluations = early + tried * self.method.evaluations
        if "slope0" not in self.at and begun:
            evaluations += states - (state.fresh or self.slope_is_known is state)
        return (evaluations, states, tried) if self.method.needs_jacobian else (evaluations, 0, 0)

    def in_plain_python(self, state: State, attempts: int, first: int, work) -> Chunk:
        """Go on in plain Python, which factors with pivoting, and raises the errors of the user's own functions.

        work    the counts of the chunk so far: rejected attempts, evaluations, Jacobians, factorisations
        """
        plain = PythonEngine(self.problem, self.method, self.controller, self.project)
        with np.errstate(all="ignore"):
            chunk = plain.advance(state, attempts)
        self.rows.room(state.t, chunk.steps + 1)
        self.rows.add(chunk, state)
        more = (chunk.rejected, chunk.evaluations, chunk.jacobians, chunk.factorisations)
        rejected, *rest = (before + now for before, now in zip(work, more, strict=True))
        return self.rows.chunk(first, chunk.status, chunk.state, rejected, *rest)._replace(word=chunk.word)

    def record(self) -> Record:
        return self.rows.record(self.method.twin_stages is not None)
