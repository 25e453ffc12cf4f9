"""The engine of single runs of a stabilised method on a large system."""

import numpy as np

from odelab.core import State
from odelab.engines import Status
from odelab.engines.compiled import compiled_params, interrupted
from odelab.engines.numba.kernel_engine import KernelChunk, engine_request
from odelab.engines.numba.load import kernel
from odelab.engines.numba.rows import TIME, LargeRows
from odelab.engines.python import Record, begin, checked_rhs

AT_ONCE = 1 << 20  # attempts times components in one call, which Ctrl-C waits for


class StabilisedEngine:
    """`odelab.engines.numba.kernel_engine.KernelEngine` for a method whose stages follow the spectral radius."""

    name = "compiled"
    project = None

    def __init__(self, problem, method, controller, request=None, dense=True):
        self.problem, self.method, self.dense = problem, method, dense
        self.compiled = kernel(request or engine_request(problem, method, controller)).functions["advance"]
        self.rhs = checked_rhs(problem)
        self.controller = method.steered(controller, self.rhs)
        self.params = compiled_params(problem.params)
        self.until = problem.t_span[1]

    def begin(self) -> tuple[State, int]:
        state, evaluations = begin(self.problem, self.method, self.controller, self.rhs)
        self.rows = LargeRows(state.t, self.problem.t_span[1], state.u, self.dense)
        return state._replace(memory=self.with_floats(state.memory)), evaluations

    def with_floats(self, memory):
        return memory._replace(steering=memory.steering._replace(params=self.params))

    def advance(self, state: State, attempts: int) -> KernelChunk:
        """Go on from `state`, for at most as many attempts as there is room for.

        Without states kept, one at a time while there is a point to stop behind before the end.
        """
        rows, t1 = self.rows, self.problem.t_span[1]
        most = max(1, AT_ONCE // len(state.u))
        if not self.dense and self.until != t1:
            most = 1
        first = rows.steps
        counts = np.array([first])
        attempts = min(attempts, rows.room(state.t), most)
        rejected = evaluations = 0
        try:
            status, state, _, rejected, evaluations = self.compiled(
                counts, *rows.arrays(), self.params, state, t1, attempts
            )
        except (KeyboardInterrupt, SystemError) as stop:
            if isinstance(stop, SystemError) and not interrupted(stop):
                raise
            status, last = Status.INTERRUPTED, int(counts[0])
            if last > first:
                u = np.array(rows.states(last, last + 1)[0])
                evaluations = last - first  # at least
                state = State(float(rows.array[last, TIME]), u, np.full_like(u, np.nan), False, state.memory)
        rows.steps = int(counts[0])
        rows.array[rows.steps, TIME] = state.t
        return KernelChunk(status, state, rows, first, rows.steps, rejected, evaluations)

    def record(self) -> Record:
        return self.rows.record(has_rho=False)
