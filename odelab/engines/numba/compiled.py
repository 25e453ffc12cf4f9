"""The compiled engine: `odelab.core.integrate` and all it needs as machine code, a chunk of attempts at a time.

It runs any form of right-hand side, every law, stabilised methods and projections, as `odelab.engines.numba.one_source`
puts them together. What can be followed as a graph is faster by `odelab.engines.traced` and `odelab.engines.large`.
"""

import warnings
from typing import Any

import numpy as np

from odelab.arrays import changed_as_float, is_real_number
from odelab.core import State
from odelab.engines.not_compilable import NotCompilable
from odelab.engines.numba.load import kernel
from odelab.engines.numba.refusals import refusal
from odelab.engines.numba.request import request_of_run
from odelab.engines.python import RightHandSideError, begin, checked_rhs
from odelab.engines.rows import TIME, LargeRows
from odelab.engines.steps import Chunk, Record
from odelab.status import Status

AT_ONCE = 1 << 20  # attempts times components in one call of a kernel; Ctrl-C takes effect after the call


class CompiledEngine:
    """Runs a problem by `odelab.core.integrate`, compiled.

    dense    whether the states of all steps are kept; otherwise the engine takes one step at a time while there is
             a time `until` before the end, at which the state is asked for
    """

    name = "compiled"
    untraceable = ""  # why the run is not made as a graph
    derivatives = ""  # explicit methods alone

    def __init__(self, problem, method, controller, dense=True, project=None):
        self.problem, self.method, self.project, self.dense = problem, method, project, dense
        self.request = request_of_run(problem, method, controller, project)
        self.compiled = kernel(self.request)
        self.rhs = checked_rhs(problem)
        self.controller = method.extend_controller(controller, self.rhs)
        self.params: Any = compiled_params(problem.params)
        if problem.window is not None:
            self.params = self.params, *problem.window
        self.until = problem.t_span[1]
        self.has_h_rho = method.twin_stages is not None

    def begin(self) -> tuple[State, int]:
        state, evaluations = begin(self.problem, self.method, self.controller, self.rhs)
        self.rows = LargeRows(state.t, self.problem.t_span[1], state.u, self.dense)
        if hasattr(state.memory, "steering"):  # the kernel evaluates the right-hand side with these parameters
            steering = state.memory.steering._replace(params=self.params)
            state = state._replace(memory=state.memory._replace(steering=steering))
        return state, evaluations

    def advance(self, state: State, attempts: int) -> Chunk:
        """Go on from `state`, for at most as many attempts as there is room for."""
        rows, t1 = self.rows, self.problem.t_span[1]
        most = 1 if not self.dense and self.until != t1 else max(1, AT_ONCE // len(state.u))
        first = rows.steps
        counts = np.array([first])
        attempts = min(attempts, rows.room(state.t, attempts), most)
        rejected, evaluations, word = 0, 0, ""
        try:
            status, state, _, rejected, evaluations = call(
                self, counts, *rows.arrays(), self.params, state, t1, attempts
            )
        except (KeyboardInterrupt, SystemError, RightHandSideError) as stop:
            if isinstance(stop, SystemError) and not is_interrupt(stop):
                raise
            status, last = Status.INTERRUPTED, int(counts[0])
            if last > first:
                u = np.array(rows.states(last, last + 1)[0])
                evaluations = self.method.evaluations * (last - first)  # at least
                state = State(float(rows.array[last, TIME]), u, np.full_like(u, np.nan), False, state.memory)
            if isinstance(stop, RightHandSideError):
                status, word = Status.WRONG_SHAPE, f"{stop}, soon after t = {state.t:g}"
        rows.steps = int(counts[0])
        rows.array[rows.steps, TIME] = state.t
        return rows.chunk(first, status, state, rejected, evaluations)._replace(word=word)

    def record(self) -> Record:
        return self.rows.record(self.has_h_rho)


def call(engine, *arguments):
    """Call a kernel that is compiled at its first call."""
    from numba.core.errors import NumbaWarning

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)  # numba warns of slow matrix products, which are no error
            return engine.compiled(*arguments)
    except Exception as reason:
        if engine.compiled.signatures:  # it was running
            raise
        raise NotCompilable(refusal(engine, reason)) from reason


def is_interrupt(error: BaseException | None) -> bool:
    """Is Ctrl-C behind it? Met while numba turns results into Python objects, it comes as a SystemError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def compiled_params(params):
    """Numbers as floats, so that (10, 8/3) and (10.0, 28.0) share one compilation."""
    if isinstance(params, tuple):
        return tuple(float(p) if is_real_number(p) and not changed_as_float(p) else p for p in params)
    return params
