"""The compiled engine of large systems: loops over rows that are alike, and the graph of an attempt on arrays."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.core import State
from odelab.engines.python import PythonEngine, begin, checked_rhs, taken_over
from odelab.engines.rows import LargeRows
from odelab.engines.steps import Chunk, Record
from odelab.engines.traced import PIVOTED, SLICE
from odelab.graph.llvm import Module
from odelab.kernels import store
from odelab.kernels.attempt import WINDOW, MemoryPlaces
from odelab.kernels.large import functions
from odelab.kernels.large.array_attempt import Large
from odelab.kernels.large.array_loop import Advance, add_array_advance, fixed_of
from odelab.kernels.loops.run import asked_of, ends_of
from odelab.kernels.machine import Machine, address, aligned_rows
from odelab.kernels.modules import module_of_large
from odelab.status import Status

LINE = 8  # numbers of a cache line
FEWEST = 1 << 20  # attempts times components of one call of a kernel; Ctrl-C takes effect between two calls
APART = 2 * LINE  # numbers between the rows of the work memory: rows a whole page apart would share cache lines


class Kernel(NamedTuple):
    """The machine code of single runs of any size.

    machine    the code, which lives as long as this object
    advance    as `odelab.kernels.large.array_loop` has it
    at         {name: its place} of the numbers that the loop carries
    buffers    rows of the work memory
    memory     the places of what the controller remembers
    """

    machine: Machine
    advance: Callable
    at: dict[str, int]
    buffers: int
    memory: MemoryPlaces


def module_and_advance(large: Large, rows: functions.Rows, projection: functions.Rows | None) -> tuple[Module, Advance]:
    """The module of a kernel, and its function."""
    module = module_of_large()
    band = rows.band[:2] if large.implicit else None
    of_projection = None if projection is None else projection.classes
    return module, add_array_advance(module, large, rows.classes, rows.alone, of_projection, band)


def make(large: Large, rows: functions.Rows, projection: functions.Rows | None) -> Kernel:
    module, advance = module_and_advance(large, rows, projection)
    machine = Machine(module.text(), has_arrays=True)
    at = {name: k for k, name in enumerate(advance.names)}
    function = machine.function("advance", len(advance.function.parameters))
    return Kernel(machine, function, at, advance.buffers, MemoryPlaces(at))


def tables_of(rows: functions.Rows) -> list[np.ndarray]:
    """What loops over rows are handed, and room for the entries of their column."""
    return [rows.classes.constants, rows.runs, np.zeros(rows.classes.entries)]


class LargeEngine:
    """Runs a large system by a kernel made for its right-hand side, the method and the law; it serves every size.

    It needs fixed steps or a law of odelab. `dense` tells whether the states of all steps are to be kept; a run that
    keeps none stops after the first step that passes the time `until`.
    """

    name = "compiled"

    def __init__(self, problem, method, controller, project=None, dense=True):
        self.problem, self.method, self.controller, self.project = problem, method, controller, project
        self.dense, self.until = dense, problem.t_span[1]
        slopes = functions.rows_of(problem, self.implicit)
        of_project = None if project is None else functions.projection_of(project, problem.size)
        self.loops = slopes.rows
        self.of_project = None if of_project is None else of_project.rows
        raises = self.loops.raises or (self.of_project is not None and self.of_project.raises)
        asked = asked_of(problem, method, controller)._replace(n=0)
        self.large = Large(asked, project is not None, raises, not self.implicit or self.loops.is_autonomous)
        band = self.loops.band[:2] if self.implicit else None
        made_for = id(method), id(controller.law), *asked[3:], raises, band
        key = ("large", *made_for, slopes.key, of_project and of_project.key)
        kept = (method, controller.law)
        self.kernel = store.kernel(key, lambda: make(self.large, self.loops, self.of_project), *kept)
        self.params = np.array([*slopes.parameters.values, *ends_of(problem, controller), 0.0])
        self.place_of_ends = len(slopes.parameters.values)
        self.tolerance = np.array(0.0 if controller.atol is None else controller.atol, ndmin=1)
        self.looks_at_stages = False
        self.most = self.fewest = max(1, FEWEST // problem.size)

    @property
    def implicit(self) -> bool:
        return self.method.needs_jacobian

    @property
    def derivatives(self) -> str:
        if not self.implicit:
            return ""
        band = self.loops.band
        return f"exact Jacobian, {band.below} + 1 + {band.above} diagonals eliminated in the kernel"

    def look_at_stages(self):
        """Let chunks tell h rho, where the stages of a step do."""
        self.looks_at_stages = self.method.twin_stages is not None

    def begin(self) -> tuple[State, int]:
        state, evaluations = begin(self.problem, self.method, self.controller, checked_rhs(self.problem))
        self.rows = LargeRows(state.t, self.problem.t_span[1], state.u, self.dense)
        self.rows.tells_h_rho = self.looks_at_stages
        n = state.u.size
        self.work = aligned_rows(self.kernel.buffers, -(-n // LINE) * LINE + APART)
        self.raised = np.zeros(1, np.int64)
        self.given = self.arrays_for_steps(n)
        self.given_at = [address(array) for array in self.given]
        return state, evaluations

    def arrays_for_steps(self, n: int) -> list[np.ndarray]:
        """What a kernel is handed beside the state and the record."""
        given = [self.work, self.raised, *tables_of(self.loops)]
        if self.of_project is not None:
            given += tables_of(self.of_project)
        if self.implicit:
            below, above, order, where = self.loops.band
            J = np.zeros((n + below, below + 1 + above))
            given += [self.loops.with_jacobian.constants, self.loops.runs_alone]
            given += [order, where, J, J.copy(), np.zeros(n + below + above)]
        return given

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on from `state`, for at most as many attempts as there is room for."""
        rows, first, t1 = self.rows, self.rows.steps, self.problem.t_span[1]
        attempts = min(attempts, rows.room(state.t, attempts))
        if state.t == t1:
            return rows.chunk(first, Status.REACHED, state, 0, 0)
        rows.restore(state.u)
        carried, status = self.carried(state), np.zeros(1, np.int64)
        self.raised[0] = 0
        whole, at, made, interrupted = carried.view(np.int64), self.kernel.at, 0, False
        try:
            while made < attempts and status[0] == Status.ATTEMPTS_SPENT and not self.is_behind(carried):
                self.call(carried, status, min(attempts - made, self.most))
                made = int(whole[at["steps"]]) - first + int(whole[at["rejected"]])
        except KeyboardInterrupt:
            interrupted = True
        rows.steps = int(whole[at["steps"]])
        ended = Status(int(status[0]))
        counted = ("rejected", "evaluations", "jacobians", "factorisations")
        work = [int(whole[at[name]]) if name in at else 0 for name in counted]
        after = self.state_of(carried, state)
        if ended in (Status.SINGULAR, Status.RAISED) and not interrupted:
            left = PIVOTED if ended == Status.SINGULAR else 1
            return self.in_plain_python(after, min(max(attempts - made, 1), left), first, work)
        return rows.chunk(first, Status.INTERRUPTED if interrupted else ended, after, *work)

    def is_behind(self, carried: np.ndarray) -> bool:
        """Has the run passed the time behind which it is to stop?"""
        t0, t1 = self.problem.t_span
        return (carried[self.kernel.at["t"]] - self.until) * (t1 - t0) >= 0.0

    def call(self, carried: np.ndarray, status: np.ndarray, attempts: int):
        """One call of the kernel; the number of attempts in the next one is chosen by how long it has taken."""
        rows, began = self.rows, time.perf_counter()
        record, states = rows.arrays()
        n, room = states.shape[1], min(len(record), len(states) if self.dense else len(record)) - 1
        arrays = (carried, status, self.fixed(), self.tolerance, self.params, record, states)
        sizes = (n, self.work.shape[1], len(states), attempts, room)
        self.kernel.advance(*map(address, arrays), *self.given_at, *sizes)
        taken = time.perf_counter() - began
        if attempts == self.most:
            self.most = max(self.fewest, int(attempts * min(4.0, SLICE / max(taken, 1e-6))))

    def fixed(self) -> np.ndarray:
        """The numbers that stay as they are during a call."""
        controller, (t0, t1) = self.controller, self.problem.t_span
        known = {"t0": t0, "t1": t1, "until": self.until, "n": self.problem.size}
        known |= {"given_step": 0.0, "rtol": controller.rtol, "atol": self.tolerance[0], "largest": controller.max_step}
        known |= zip(WINDOW, self.problem.window or (), strict=False)
        known["h"] = 0.0 if controller.h is None else np.copysign(controller.h, t1 - t0)
        known["list"] = self.place_of_ends
        return np.array([known[name] for name in fixed_of(self.large)], dtype=float)

    def carried(self, state: State) -> np.ndarray:
        """What the kernel carries, at a state, whose slope is handed over in the work memory."""
        at = self.kernel.at
        carried = np.zeros(len(at))
        whole = carried.view(np.int64)
        carried[at["t"]] = state.t
        whole[at["steps"]], whole[at["fresh"]] = self.rows.steps, bool(state.fresh)
        if state.fresh:
            self.work[0, : len(state.slope)] = state.slope
        self.kernel.memory.write(state.memory, carried)
        return carried

    def state_of(self, carried: np.ndarray, before: State) -> State:
        """The state that the kernel has come to."""
        at, whole = self.kernel.at, carried.view(np.int64)
        memory = self.kernel.memory.read(carried.tolist(), before.memory)
        u = self.rows.states(self.rows.steps, self.rows.steps + 1)[0].copy()
        slope = self.work[whole[at["turn"]], : len(u)].copy()
        return State(float(carried[at["t"]]), u, slope, bool(whole[at["fresh"]]), memory)

    def in_plain_python(self, state: State, attempts: int, first: int, work: list[int]) -> Chunk:
        """The chunk, taken over by plain Python.

        Where states are not kept, this is one attempt, so that no time at which the state is asked for is passed over.
        """
        plain = PythonEngine(self.problem, self.method, self.controller, self.project)
        return taken_over(plain, self.rows, state, attempts if self.dense else 1, first, work)

    def record(self) -> Record:
        return self.rows.record(self.method.twin_stages is not None)
