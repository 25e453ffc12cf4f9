"""The compiled engine of small systems: the graph of an attempt as machine code, with a loop around it."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.control.controllers import Start
from odelab.control.feedback import History
from odelab.core import State
from odelab.engines import Status
from odelab.engines.numba.rows import Rows
from odelab.engines.python import PythonEngine, begin, checked_rhs
from odelab.engines.steps import Chunk, Record
from odelab.graph.llvm import Module
from odelab.graph.machine import Machine, address
from odelab.graph.nodes import Graph
from odelab.kernels import store
from odelab.kernels.attempt import FIELDS, TIMES, Asked, attempt, fixed_names
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.single import add_advance
from odelab.methods.rosenbrock import RosenbrockMethod
from odelab.stiffness.h_rho import twin_stages

PIVOTED = 16  # attempts in plain Python, with pivoting, where a kernel's factors fail; then the kernel tries again
SLICE, FEWEST = 0.05, 1 << 12  # seconds and attempts of one call of a kernel: between two calls Ctrl-C takes effect


class Kernel(NamedTuple):
    """The machine code of single runs.

    machine     the code, which lives as long as this object
    begin       as `odelab.kernels.beginning.add_begin` has it
    advance     as `odelab.kernels.single.add_advance` has it
    names       of the values that the loop carries
    asked       what it was made for, kept alive because kernels are found by the identity of method and law
    """

    machine: Machine
    begin: Callable
    advance: Callable
    names: list[str]
    asked: Asked


def kernel_of(asked: Asked, traced: store.Traced, projection: store.Traced | None) -> Kernel:
    """The kernel of a run, from memory where there is one."""
    key = ("single", id(asked.method), id(asked.law), *asked[3:], asked.n, traced.digest, len(traced.parameters.values))
    return store.kernel((*key, projection and projection.digest), lambda: make(asked, traced, projection))


def asked_for(problem, method, controller) -> Asked:
    """What the attempts of a single run depend on."""
    atol = 0.0 if controller.atol is None else controller.atol
    limited = bool(np.isfinite(controller.max_step))
    return Asked(problem.size, method, controller.law, bool(np.ndim(atol)), limited, rows=True)


def module_of_run(asked: Asked, traced: store.Traced, projection: store.Traced | None) -> tuple[Module, list[str]]:
    """The module of a single run, and the names of what its loop carries."""
    module, parameters, fixed = Module("contract", TIMES), traced.parameters.names, fixed_names(asked)
    graph = Graph(trusted=True)
    project = None if projection is None else store.projection_in(graph, projection)
    one = attempt(asked, store.slopes_in(graph, traced), graph, (), project)
    names = list(one.carried)
    add_advance(module, one, fixed, parameters)
    graph = Graph(trusted=True)
    first = beginning(asked, store.slopes_in(graph, traced), graph, ())
    add_begin(module, graph, first, names, fixed, parameters)
    return module, names


def text_of_run(asked: Asked, traced: store.Traced, projection: store.Traced | None) -> str:
    """The IR of a single run."""
    return module_of_run(asked, traced, projection)[0].text()


def make(asked: Asked, traced: store.Traced, projection: store.Traced | None) -> Kernel:
    module, names = module_of_run(asked, traced, projection)
    machine = Machine(module.text())
    return Kernel(machine, machine.function("begin", 5), machine.function("advance", 7), names, asked)


class TracedEngine:
    """Runs a small system by a kernel made for its right-hand side, the method and the law."""

    name = "compiled"

    def __init__(self, problem, method, controller, project=None):
        self.problem, self.method, self.controller, self.project = problem, method, controller, project
        atol = 0.0 if controller.atol is None else controller.atol
        self.asked = asked_for(problem, method, controller)
        traced = store.slopes_of(problem)
        projection = None if project is None else store.projection_of(project, problem.size)
        self.kernel = kernel_of(self.asked, traced, projection)
        self.params = np.array(traced.parameters.values)
        t0, t1 = problem.t_span
        settings = [t0, t1, controller.first_step or 0.0, controller.rtol, *np.atleast_1d(atol), controller.max_step]
        if controller.law is None:
            settings = [t0, t1, np.copysign(controller.h, t1 - t0)]
        self.fixed = np.array(settings, dtype=float)
        self.at = {name: k for k, name in enumerate(self.kernel.names)}
        self.looks_at_stages = False
        self.most = FEWEST
        self.slope_is_known: State | None = None  # a state whose slope was counted before

    @property
    def implicit(self) -> bool:
        return isinstance(self.method, RosenbrockMethod)

    @property
    def derivatives(self) -> str:
        return "exact Jacobian, eliminated straight through in the kernel" if self.implicit else ""

    def look_at_stages(self):
        """Let chunks tell h rho, where the stages of a step do."""
        self.looks_at_stages = twin_stages(self.method) is not None

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
        evaluations = early + tried * (self.method.stages - 1)
        if "slope0" not in self.at and begun:
            evaluations += states - (state.fresh or self.slope_is_known is state)
        return evaluations, states if self.implicit else 0, tried if self.implicit else 0

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
        return self.rows.record(twin_stages(self.method) is not None)
