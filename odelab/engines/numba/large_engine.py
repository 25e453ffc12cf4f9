"""The engine of large systems: a kernel with loops, written for the right-hand side, the method and the law."""

import functools
import math

import numpy as np

from odelab.control.feedback import Counted, History, Memory
from odelab.core import State
from odelab.engines import Status
from odelab.engines.compiled import call, compiled_params, is_interrupt
from odelab.engines.numba.load import kernel
from odelab.engines.numba.request import AS_GIVEN, numbers, request_of_run
from odelab.engines.numba.rows import LargeRows, aligned_rows
from odelab.engines.python import PythonEngine, RightHandSideError, begin, checked_rhs
from odelab.engines.rosenbrock.banded_run import VECTORS
from odelab.engines.steps import Chunk, Record
from odelab.methods.rosenbrock import RosenbrockMethod
from odelab.stiffness.h_rho import twin_stages

PIVOTED = 16  # attempts in plain Python, with pivoting, where a kernel's factors fail; then the kernel tries again


class LargeEngine:
    """Runs a problem by a kernel with a loop of its own; `request.layout_for` says which problems have one.

    It needs fixed steps or a law of odelab. `dense` tells whether the states of all steps are to be kept; a run that
    keeps none stops after the first step that passes the time `until`.
    """

    name = "compiled"
    untraceable = ""  # why the run is not made as a graph

    @property
    def derivatives(self) -> str:
        if not isinstance(self.method, RosenbrockMethod):
            return ""
        band = self.band()
        return f"Jacobian by dual numbers, {band.below} + 1 + {band.above} diagonals eliminated in the kernel"

    def band(self):
        """The band of the Jacobian of a large system."""
        from odelab.engines.rosenbrock.band import band_for

        return band_for(self.problem.rhs, self.problem.size, len(self.problem.params))

    def __init__(self, problem, method, controller, request=None, dense=True, project=None):
        self.problem, self.method, self.controller, self.dense = problem, method, controller, dense
        self.request = request or request_of_run(problem, method, controller)
        self.compiled = kernel(self.request).functions["advance"]
        self.params = numbers(problem.params)
        if self.params is None:
            self.params = compiled_params(problem.params)
        self.tolerance = np.array(0.0 if controller.atol is None else controller.atol, ndmin=1)
        self.until = problem.t_span[1]
        self.project = project
        self.looks_at_stages = False

    def look_at_stages(self):
        """Let chunks tell h rho, where the stages of a step do."""
        self.looks_at_stages = twin_stages(self.method) is not None

    def begin(self) -> tuple[State, int]:
        state, evaluations = begin(self.problem, self.method, self.controller, checked_rhs(self.problem))
        self.rows = LargeRows(state.t, self.problem.t_span[1], state.u, self.dense)
        self.rows.tells_h_rho = self.looks_at_stages
        self.work = self.for_steps(state.u.size)
        return state, evaluations

    def for_steps(self, n: int) -> tuple:
        """The arrays in which a large system's attempts are made, and what its kernel is told of the Jacobian."""
        stages = self.method.stages
        if not isinstance(self.method, RosenbrockMethod):
            partial_errors = 2  # a method has at most a pair of error estimates
            return aligned_rows(stages + partial_errors, n), aligned_rows(1, n)[0]
        below, above, _, order, *entries = self.band()
        vectors, ordered = aligned_rows(len(VECTORS), n), np.zeros(n + below + above)
        J = np.zeros((n + below, below + 1 + above))
        return aligned_rows(stages, n), vectors, ordered, J, J.copy(), entries[0], order, *entries[1:]

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on from `state`, for at most as many attempts as there is room for."""
        rows, controller = self.rows, self.controller
        room = rows.room(state.t, attempts)
        fixed = controller.law is None
        remembered = np.array([state.t, *(state.memory if fixed else state.memory.history)])
        counts = np.array([Status.ATTEMPTS_SPENT, state.fresh, rows.steps, *[0] * 4])  # `loop.COUNTS`
        settings = np.array([self.problem.t_span[1], controller.rtol or math.nan, controller.max_step, self.until])
        u, slope = state.u.copy(), state.slope.copy()
        arrays = (*rows.arrays(), *self.work)
        run = self.compiled if self.request.parameters != AS_GIVEN else functools.partial(call, self)
        rows.restore(u)
        stopped = False
        try:
            run(remembered, counts, settings, self.tolerance, self.params, u, slope, min(attempts, room), *arrays)
        except (KeyboardInterrupt, SystemError) as stop:
            if isinstance(stop, SystemError) and not is_interrupt(stop):
                raise
            stopped = True
        except RightHandSideError:  # the driver tries fewer attempts; of a single one plain Python says more
            if attempts > 1:
                raise
            return self.in_plain_python(state, 1, rows.steps, [0] * 4)
        status, fresh, steps, *work = counts.tolist()
        t, *history = remembered.tolist()
        memory = Counted(*history) if fixed else Memory(state.memory.settings, History(*history))
        first, rows.steps = rows.steps, steps
        state = State(t, u, slope, bool(fresh), memory)
        if status == Status.SINGULAR and not stopped:
            left = min(attempts, room) - (steps - first) - work[0]
            return self.in_plain_python(state, min(max(left, 1), PIVOTED), first, work)
        status = Status.INTERRUPTED if stopped else status
        return rows.chunk(first, status, state, *work)

    def in_plain_python(self, state: State, attempts: int, first: int, work: list[int]) -> Chunk:
        """Go on in plain Python, which factors with pivoting, and tells what is wrong with a slope.

        Where states are not kept, this is one attempt, so that no time at which the state is asked for is passed over.

        work    the counts of the chunk so far: rejected attempts, evaluations, Jacobians, factorisations
        """
        plain = PythonEngine(self.problem, self.method, self.controller, self.project)
        with np.errstate(all="ignore"):
            chunk = plain.advance(state, attempts if self.dense else 1)
        self.rows.add(chunk, state)
        more = (chunk.rejected, chunk.evaluations, chunk.jacobians, chunk.factorisations)
        work = [before + now for before, now in zip(work, more, strict=True)]
        return self.rows.chunk(first, chunk.status, chunk.state, *work)._replace(word=chunk.word)

    def record(self) -> Record:
        return self.rows.record(twin_stages(self.method) is not None)
