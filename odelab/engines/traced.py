"""The compiled engine of small systems: the graph of an attempt as machine code, with a loop around it."""

import functools
import time
from collections.abc import Callable

import numpy as np

from odelab.control.controllers import Start
from odelab.core import State
from odelab.engines.exact import ExactEngine, slopes_of
from odelab.engines.python import PythonEngine, begin, checked_rhs, taken_over
from odelab.engines.rows import Rows
from odelab.engines.steps import Chunk, Record
from odelab.graph.nodes import Untraceable
from odelab.kernels.interior.search import search_of
from odelab.kernels.interior.states import look_of
from odelab.kernels.loops.run import plan_of
from odelab.kernels.machine import address
from odelab.status import Status

PIVOTED = 16  # attempts in plain Python, with pivoting, where a kernel's factors fail; then the kernel tries again
# Members of an enumeration are slow to read in Python 3.11.
ATTEMPTS_SPENT, REACHED, STEP_LOST, NOT_FINITE = (int(status) for status in list(Status)[:4])
SINGULAR, RAISED = int(Status.SINGULAR), int(Status.RAISED)
SLICE, FEWEST = 0.05, 1 << 12  # seconds and attempts of one call of a kernel: between two calls Ctrl-C takes effect


class TracedEngine:
    """Runs a small system by a kernel made for its right-hand side, the method and the law.

    What the kernel carries lies in one row of numbers, `numbers`: the values by their names in `at`, and behind them
    the initial state, the status and the number of evaluations of a beginning.
    """

    name = "compiled"
    is_remembered = True  # by the problem, which then asks for no other engine

    def __init__(self, problem, method, controller, project=None, exact=False):
        self.problem, self.method, self.controller, self.project = problem, method, controller, project
        self.exact = exact
        plan = plan_of(problem, method, controller, project, exact)
        self.kernel, self.fixed, self.given = plan.kernel, plan.fixed, plan.given
        self.at = self.kernel.at
        self.numbers = np.zeros(len(self.at) + problem.size + 2)
        self.whole = self.numbers.view(np.int64)
        carried, last = address(self.numbers), 8 * (len(self.numbers) - 1)
        self.carried = carried, carried + last - 8, carried + last
        self.looks_at_stages = False
        self.most = FEWEST
        self.begun: State | None = None  # the state that `numbers` hold
        self.slope_is_known: State | None = None  # a state whose slope was counted before

    @property
    def derivatives(self) -> str:
        return "exact Jacobian, eliminated straight through in the kernel" if self.method.needs_jacobian else ""

    def look_at_stages(self):
        """Let chunks tell h rho, where the stages of a step do."""
        self.looks_at_stages = self.method.twin_stages is not None

    def search(self, function) -> Callable | None:
        """The compiled search for zeros of an event's function on the steps of this run; None where there is none."""
        try:
            return None if self.project is not None or self.exact else search_of(self.problem, self.method, function)
        except Untraceable:
            return None

    @functools.cached_property
    def look_inside(self) -> Callable | None:
        """The compiled look inside the steps of this run; None where there is none."""
        method = self.method.members[-1]
        if not method.needs_jacobian or self.controller.law is None or self.exact:
            return None
        if self.project is not None:
            return None
        try:
            return look_of(self.problem, method, self.controller)
        except Untraceable:
            return None

    def begin(self) -> tuple[State, int]:
        state, evaluations = self.first_state()
        self.rows = self.rows_from(state)
        return state, evaluations

    def rows_from(self, state: State) -> Rows:
        """The arrays of a run that begins at a state."""
        rows = Rows(state.t, self.problem.t_span[1], state.u)
        rows.tells_h_rho = self.looks_at_stages
        return rows

    def first_state(self) -> tuple[State, int]:
        """The state the run starts from, and the evaluations it took."""
        problem, controller = self.problem, self.controller
        t0, t1 = problem.t_span
        evaluations = self.call_begin()
        u0 = problem.u0 if problem.mass is None else self.part("u0")
        if evaluations < 0 or not (problem.mass is None or np.isfinite(u0).all()):
            return begin(problem, self.method, controller, self.slopes_in_python())
        slope = self.part("first_slope0")
        size = None if controller.law is None else abs(self.numbers[self.at["next_step"]])
        run = Start(self.method, problem.rhs, problem.params, t0, t1, u0, slope, size)
        self.begun = State(t0, u0, slope, True, controller.start(run)[0])
        return self.begun, evaluations

    def call_begin(self) -> int:
        """Let the kernel begin; returns the evaluations that it took, -1 where the right-hand side raises an error."""
        first = len(self.at)
        self.numbers[first:-2] = self.problem.u0
        self.kernel.begin(self.carried[0] + 8 * first, *self.given, self.carried[0], self.carried[2])
        return int(self.whole[-1])

    def slopes_in_python(self) -> Callable:
        """The right-hand side for plain Python, with the bits of this engine."""
        return slopes_of(self.problem) if self.exact else checked_rhs(self.problem)

    def part(self, name: str) -> np.ndarray:
        """A copy of the n numbers from this name on."""
        first = self.at[name]
        return self.numbers[first : first + self.problem.size].copy()

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on from `state`, for at most as many attempts as there is room for."""
        rows, first, whole = self.rows, self.rows.steps, self.whole
        if state.t == self.problem.t_span[1]:
            return rows.chunk(first, REACHED, state, 0, 0)
        attempts = min(attempts, rows.room(state.t, attempts))
        early = 0 if state is self.begun else self.take_over(state)
        self.count_from(first)
        made, ended, interrupted = 0, ATTEMPTS_SPENT, False
        try:
            while made < attempts and ended == ATTEMPTS_SPENT:
                self.call(min(attempts - made, self.most), rows.array)
                made, ended = int(whole[self.at["steps"]] - first + whole[self.at["rejected"]]), int(whole[-2])
        except KeyboardInterrupt:
            interrupted = True
        rows.steps = int(whole[self.at["steps"]])
        steps, rejected = rows.steps - first, int(whole[self.at["rejected"]])
        tried = steps + rejected + (ended in (NOT_FINITE, SINGULAR))
        moved = self.moved_last(ended, tried)
        work = self.work(state, ended, moved, steps, tried, early)
        after = self.state_of(state, moved)
        if ended == RAISED and tried:
            ended = ATTEMPTS_SPENT  # the steps before the error may hold an event that ends the run
        if ended in (SINGULAR, RAISED) and not interrupted:
            left = PIVOTED if ended == SINGULAR else 1
            return self.in_plain_python(after, min(max(attempts - tried, 1), left), first, (rejected, *work))
        return rows.chunk(first, Status.INTERRUPTED if interrupted else ended, after, rejected, *work)

    def count_from(self, steps: int):
        """Let the kernel count its steps from here on."""
        self.whole[self.at["steps"]], self.whole[self.at["rejected"]] = steps, 0
        if "unsolved" in self.at:
            self.whole[self.at["unsolved"]] = 0

    def call(self, attempts: int, record: np.ndarray):
        """One call of the kernel; the number of attempts in the next one is chosen by how long it has taken."""
        began = time.perf_counter()
        self.kernel.advance(*self.carried[:2], *self.given, address(record), attempts, len(record) - 1)
        if attempts == self.most:
            taken = time.perf_counter() - began
            self.most = max(FEWEST, int(attempts * min(4.0, SLICE / max(taken, 1e-6))))

    def take_over(self, state: State) -> int:
        """Write a state into what the kernel carries; returns the evaluations that this took."""
        numbers, at, n, evaluations = self.numbers, self.at, self.problem.size, 0
        numbers[at["t"]] = state.t
        numbers[at["u0"] : at["u0"] + n] = state.u
        if "slope0" in at:
            slope = state.slope
            if not state.fresh:
                slope, evaluations = self.slopes_in_python()(state.t, state.u, self.problem.params), 1
            numbers[at["slope0"] : at["slope0"] + n] = slope
        self.kernel.memory.write(state.memory, numbers)
        return evaluations

    def state_of(self, before: State, moved: bool) -> State:
        """The state that the kernel has come to."""
        values = self.numbers.tolist()
        memory = self.kernel.memory.read(values, before.memory)
        fresh = "slope0" in self.at
        slope = self.part("slope0") if fresh else before.slope
        after = State(values[self.at["t"]], self.part("u0"), slope, fresh, memory)
        self.begun, self.slope_is_known = after, None if moved else after
        return after

    def moved_last(self, ended: int, tried: int) -> bool:
        """Was the last attempt that began accepted?"""
        if ended in (ATTEMPTS_SPENT, RAISED):
            return tried > 0 and (self.controller.law is None or not self.numbers[self.at["was_rejected"]])
        return ended == REACHED

    def work(self, state, ended: int, moved: bool, steps: int, tried: int, early: int) -> tuple[int, int, int]:
        """Evaluations, Jacobians and factorisations, as plain Python makes them: once at each state that is left."""
        begun = tried + (ended == STEP_LOST)
        states = (begun > 0) + steps - moved
        evaluations = early + tried * self.method.evaluations
        known = begun > 0 and self.slope_is_known is state  # from the chunk before, whose last attempt was rejected
        if "slope0" not in self.at and begun:
            evaluations += states - (state.fresh or known)
        return (evaluations, states - known, tried) if self.method.needs_jacobian else (evaluations, 0, 0)

    def in_plain_python(self, state: State, attempts: int, first: int, work) -> Chunk:
        """The chunk, taken over by plain Python."""
        return taken_over(self.plain_engine(), self.rows, state, attempts, first, work)

    def plain_engine(self):
        """The engine that takes over where the kernel does not go on."""
        engine = ExactEngine if self.exact else PythonEngine
        return engine(self.problem, self.method, self.controller, self.project)

    def record(self) -> Record:
        return self.rows.record(self.method.twin_stages is not None)
