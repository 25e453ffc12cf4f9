"""The compiled engine: `odelab.core.integrate` and all it needs as machine code, a chunk of attempts at a time.

It runs any form of right-hand side, every law, stabilised methods and projections; `odelab.engines.numba.one_source`
writes the kernel. Simpler runs, for which there are kernels with a loop of their own, are faster by
`odelab.engines.numba.kernel_engine`.
"""

import itertools
import textwrap
import warnings

import numpy as np

from odelab.arrays import is_real_number
from odelab.core import State
from odelab.engines import Status
from odelab.engines.numba.request import changed_as_float, numbers, plan_for
from odelab.engines.python import Record, RightHandSideError, begin, checked_rhs
from odelab.stiffness.h_rho import twin_stages

AT_ONCE = 1 << 20  # attempts times components in one call of a kernel; Ctrl-C takes effect after the call


class NotCompilable(TypeError):
    """`engine="compiled"` was asked for, and numba cannot compile a function it was handed.

    The message says which function, on which line, why, and what to do instead. With `engine="auto"` the run goes on in
    plain Python, with one warning.

    >>> import odelab as ol
    >>> def decay(t, u, params):
    ...     return (-float(str(u[0])),)
    >>> try:
    ...     ol.solve(ol.Problem(decay, [1.0], (0.0, 1.0)), ol.DOPRI5, engine="compiled")
    ... except ol.NotCompilable as reason:
    ...     print(str(reason)[:45])
    `engine='compiled'` cannot compile decay: ...
    """


class CompiledEngine:
    """Runs a problem by `odelab.core.integrate`, compiled.

    request     what kernel is wanted (`odelab.engines.numba.request.Request`)
    dense       whether the states of all steps are kept; otherwise the engine takes one step at a time while there is
                a time `until` before the end, at which the state is asked for
    """

    name = "compiled"
    derivatives = ""  # explicit methods alone

    def __init__(self, problem, method, controller, request=None, dense=True, project=None):
        from odelab.engines.numba.load import kernel

        self.problem, self.method, self.project, self.dense = problem, method, project, dense
        self.request = request or plan_for(problem, method, controller, project).request
        self.compiled = kernel(self.request).functions["advance"]
        self.rhs = checked_rhs(problem)
        self.controller = method.extend_controller(controller, self.rhs)
        self.params = compiled_params(problem.params)
        self.until = problem.t_span[1]
        self.has_h_rho = twin_stages(method) is not None

    def begin(self) -> tuple[State, int]:
        from odelab.engines.numba.rows import LargeRows

        state, evaluations = begin(self.problem, self.method, self.controller, self.rhs)
        self.rows = LargeRows(state.t, self.problem.t_span[1], state.u, self.dense)
        if hasattr(state.memory, "steering"):  # the kernel evaluates the right-hand side with these parameters
            steering = state.memory.steering._replace(params=self.params)
            state = state._replace(memory=state.memory._replace(steering=steering))
        return state, evaluations

    def advance(self, state: State, attempts: int):
        """Go on from `state`, for at most as many attempts as there is room for."""
        from odelab.engines.numba.kernel_engine import KernelChunk
        from odelab.engines.numba.rows import TIME

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
                evaluations = (self.method.stages - 1) * (last - first)  # at least
                state = State(float(rows.array[last, TIME]), u, np.full_like(u, np.nan), False, state.memory)
            if isinstance(stop, RightHandSideError):
                status, word = Status.WRONG_SHAPE, f"{stop}, soon after t = {state.t:g}"
        rows.steps = int(counts[0])
        rows.array[rows.steps, TIME] = state.t
        return KernelChunk(status, state, rows, first, rows.steps, rejected, evaluations, word=word)

    def record(self) -> Record:
        return self.rows.record(self.has_h_rho)


def call(engine, *arguments):
    """Call a kernel that is compiled at its first call; machine code that was damaged on disk is compiled anew."""
    from numba.core.errors import NumbaWarning

    from odelab.engines.numba import cache

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)  # numba warns of slow matrix products, which are no error
            return engine.compiled(*arguments)
    except Exception as reason:
        if engine.compiled.signatures:  # it was running
            raise
        if not cache.forget(engine.compiled):
            raise NotCompilable(refusal(engine, reason)) from reason
    return call(engine, *arguments)


def refusal(engine, reason) -> str:
    """Which function of an engine's run numba cannot compile, and why."""
    from numba import typeof

    from odelab.engines.numba.load import blame

    params = engine.problem.params
    if numbers(params) is not None:
        return blame(engine.request, reason)
    try:
        typeof(engine.params)
    except ValueError:
        return (
            f"`engine='compiled'` cannot hand `params` = {textwrap.shorten(repr(params), 80)} to compiled code, "
            "which knows numbers, NumPy arrays and tuples of them: write it as such, or take engine='python'."
        )
    return explanation_of(engine.problem.rhs, reason)


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


def explanation_of(function, reason) -> str:
    """numba's reason in two lines: what could not be compiled, where, and what to do."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()] or [type(reason).__name__]
    lines = [line for line in lines if not line.startswith("Failed in nopython mode pipeline")] or lines
    lines.sort(key=lambda line: not line.startswith("Untyped global"))  # the culprit's name first
    places = [line.rstrip(":") for line in lines if line.startswith("File ")]
    where = f"{places[0]}." if places else ""
    if not where and hasattr(function, "__code__"):
        where = f'File "{function.__code__.co_filename}", line {function.__code__.co_firstlineno}.'
    # What follows a place are the lines of source that numba takes to be there.
    lines = list(itertools.takewhile(lambda line: not line.startswith("File "), lines)) or lines[:1]
    name = getattr(function, "__name__", function)
    if "Signature mismatch" in str(reason) and hasattr(function, "__code__"):
        return (
            f"`engine='compiled'` cannot compile {name}: compiled code knows no arguments by keyword alone, and "
            f"default values only where they are numbers or tuples of numbers. Hand others over by `params`. {where}"
        )
    if "setitem(readonly array" in str(reason):
        return (
            f"`engine='compiled'` cannot compile {name}: it writes to the state or to an array it captured. `u` cannot "
            f"be written to, and what was captured is the same in every call; write to a copy, `u.copy()`. {where}"
        )
    return (
        f"`engine='compiled'` cannot compile {name}: {' '.join(lines[:3]).rstrip('.')}. {where} "
        "Use only numbers, tuples, NumPy and odelab.maths in it, or engine='python'."
    )
