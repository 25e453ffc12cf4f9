"""The engine of single runs: a kernel written for the right-hand side, the method and the law."""

import math

import numpy as np

from odelab.compiled.engine import interrupted
from odelab.engine import ATTEMPTS_SPENT, INTERRUPTED, Record, State, begin, checked_rhs
from odelab.kernels.load import kernel
from odelab.kernels.record import ERROR, SIZE, STATE, TIME, Rows
from odelab.kernels.request import Request, numbers, request_for
from odelab.stability import twin_stages


def engine_request(problem, method, controller) -> Request:
    """The kernel a single run needs."""
    return request_for("single", problem, method, controller)


class KernelEngine:
    """Component form, numbers as parameters, fixed steps or a clipped law, no `project`: see `request.unsuited`."""

    name = "compiled"
    project = None

    def __init__(self, problem, method, controller, request=None):
        self.problem, self.method, self.controller = problem, method, controller
        self.compiled = kernel(request or engine_request(problem, method, controller)).functions["advance"]
        self.params = numbers(problem.params)
        self.tolerance = np.atleast_1d(0.0 if controller.atol is None else controller.atol)
        self.settings = np.array([problem.t_span[1], controller.rtol or math.nan, controller.max_step])

    def begin(self) -> tuple[State, int]:
        state, evaluations = begin(self.problem, self.method, self.controller, checked_rhs(self.problem))
        self.rows = Rows(state.t, self.problem.t_span[1], state.u)
        return state, evaluations

    def advance(self, state: State, attempts: int) -> "KernelChunk":
        """Go on from `state`, for at most as many attempts as there is room for."""
        rows = self.rows
        room = rows.room(state.t)
        fixed = self.controller.law is None
        memory = np.array([state.t, *(state.memory if fixed else state.memory[1])])
        counts = np.array([ATTEMPTS_SPENT, state.fresh, rows.steps, 0, 0])
        u, slope = state.u.copy(), state.slope.copy()
        stopped = False
        try:
            self.compiled(
                memory,
                counts,
                self.settings,
                self.tolerance,
                self.params,
                u,
                slope,
                min(attempts, room),
                rows.array,
            )
        except (KeyboardInterrupt, SystemError) as stop:
            if isinstance(stop, SystemError) and not interrupted(stop):
                raise
            stopped = True
        status, fresh, steps, rejected, evaluations = counts.tolist()
        t, *history = memory.tolist()
        kept = tuple(history) if fixed else (state.memory[0], tuple(history))
        first, rows.steps = rows.steps, steps
        state = State(t, u, slope, bool(fresh), kept)
        return KernelChunk(INTERRUPTED if stopped else status, state, rows.array, first, steps, rejected, evaluations)

    def record(self) -> Record:
        return self.rows.record(twin_stages(self.method) is not None)


class KernelChunk:
    """What one call of a kernel achieved, like `odelab.engine.Chunk`; its arrays are looked up when somebody asks."""

    slope = None
    word = ""

    def __init__(self, status, state, array, first, last, rejected, evaluations):
        self.status, self.state, self.rejected, self.evaluations = status, state, rejected, evaluations
        self.array, self.first, self.last = array, first, last

    @property
    def steps(self) -> int:
        return self.last - self.first

    @property
    def t(self):
        return self.array[self.first : self.last, TIME]

    @property
    def knots(self):
        return self.array[self.first + 1 : self.last + 1, TIME]

    @property
    def u(self):
        return self.array[self.first + 1 : self.last + 1, STATE:]

    @property
    def h(self):
        return self.array[self.first + 1 : self.last + 1, SIZE]

    @property
    def error(self):
        return self.array[self.first + 1 : self.last + 1, ERROR]
