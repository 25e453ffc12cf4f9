"""The generic compiled engine: any controller and method, the core handed to numba as it is."""

import functools
from collections.abc import Callable

import numpy as np

from odelab import core
from odelab.control import feedback as control
from odelab.core import State
from odelab.engines import Status
from odelab.engines.numba.jit import OPTIONS, jit
from odelab.engines.python import Chunk, begin, checked_rhs
from odelab.methods.tableau import Method
from odelab.problem import ARRAY, IN_PLACE


class NotCompilable(TypeError):
    """numba cannot compile something it was handed; the message says what, where and why."""


class ShapeError(ValueError):
    """Raised in compiled code, which names no numbers."""


class CompiledEngine:
    """One compilation per right-hand side, method and controller, kept for the life of the process."""

    name = "compiled"

    def __init__(self, problem, method, controller, project=None):
        self.problem, self.method, self.controller, self.project = problem, method, controller, project
        self.advance_compiled = compiled_advance(
            problem.rhs,
            problem.form,
            problem.size,
            controller.propose,
            controller.judge,
            project,
            controller.needs_error,
            method.step,
            method.steer if isinstance(method, Method) else method.compiles_as.steer,
        )
        self.controller = method.steered(controller, checked_rhs(problem))
        self.params = compiled_params(problem.params)

    def begin(self) -> tuple[State, int]:
        return begin(self.problem, self.method, self.controller, checked_rhs(self.problem))

    def advance(self, state: State, attempts: int) -> Chunk:
        from numba.core.errors import NumbaError

        size = self.problem.size
        t, h, error = np.empty(attempts), np.empty(attempts), np.full(attempts, np.nan)
        u, slope = np.empty((attempts, size)), np.empty((attempts, size))
        count = np.zeros(1, dtype=np.int64)
        carry = (count, t, h, u, slope, error)
        try:
            status, state, rejected, evaluations = self.advance_compiled(
                self.params, carry, state, self.problem.t_span[1], attempts
            )
            word, k = "", int(count[0])
        except NumbaError as reason:
            raise NotCompilable(explained(self.problem.rhs, reason)) from None
        except (KeyboardInterrupt, SystemError, ShapeError) as stop:
            if isinstance(stop, SystemError) and not interrupted(stop):
                raise
            status = Status.WRONG_SHAPE if isinstance(stop, ShapeError) else Status.INTERRUPTED
            k = int(count[0])
            if k:
                state = State(float(t[k - 1] + h[k - 1]), u[k - 1], slope[k - 1], False, state.memory)
            word = f"{stop}, soon after t = {state.t:g}"
            rejected, evaluations = 0, (self.method.stages - 1) * k  # of the accepted steps at least
        return Chunk(status, state, t[:k], h[:k], u[:k], slope[:k], error[:k], rejected, evaluations, word)


def interrupted(error: BaseException | None) -> bool:
    """Is Ctrl-C behind it? Met while numba turns results into Python objects, it comes as a SystemError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


@functools.lru_cache(maxsize=128)
def compiled_advance(rhs, form, size, propose, judge, project, adaptive, step, steer) -> Callable:
    """`core.integrate` with everything it needs compiled into it."""
    from numba import njit

    done: dict = {}
    slope_of = stacked(jit(rhs, done), form, size)
    if steer is not None:
        propose, judge = steer(propose, judge, slope_of)
    step, integrate = jit(step, done), jit(core.integrate, done)
    propose, judge, project = (jit(f, done) for f in (propose, judge, project or core.unprojected))
    error_of = control.error_of_step if adaptive else control.no_error
    record = jit(row_filler(jit(error_of_steered(jit(error_of)) if steer is not None else error_of)), done)

    @njit(**OPTIONS)
    def advance(params, carry, state, t1, attempts):
        status, state, carry, rejected, evaluations = integrate(
            step, slope_of, params, propose, judge, project, record, carry, state, t1, attempts
        )
        return status, state, rejected, evaluations

    return advance


def stacked(rhs, form, size):
    """A compiled right-hand side in array form, from any form; components unpack a tuple of numbers."""
    from numba import njit

    if form == ARRAY:

        @njit(**OPTIONS)
        def checked(t, u, params):
            slope = rhs(t, u, params)
            if slope.shape != u.shape:
                raise ShapeError("the right-hand side returned another number of slopes than the state has components")
            return slope

        return checked
    if form == IN_PLACE:

        @njit(**OPTIONS)
        def filled(t, u, params):
            out = np.full_like(u, np.nan)
            rhs(t, u, params, out)
            return out

        return filled
    components = "".join(f"u[{i}], " for i in range(size))
    targets = "".join(f"out[{i}], " for i in range(size))
    source = f"""
def component(t, u, params):
    out = np.empty({size})
    {targets} = rhs(t, ({components}), params)
    return out
"""
    namespace = {"np": np, "rhs": rhs}
    exec(source, namespace)
    return njit(**OPTIONS)(namespace["component"])


def row_filler(error_of):
    """A `record` for `core.integrate` that writes what is known of a step into arrays."""

    def fill_row(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
        count, times, sizes, states, slope_rows, error = carry
        i = count[0]
        times[i] = t
        sizes[i] = dt
        states[i] = u_new
        slope_rows[i] = mean_slope
        error[i] = error_of(memory)
        count[0] = i + 1
        return carry

    return fill_row


def error_of_steered(error_of):
    """`error_of` for the memory of a stabilised method."""

    def error(memory):
        return error_of(memory.control)

    return error


def compiled_params(params):
    """Numbers as floats, so that (10, 8/3) and (10.0, 28.0) share one compilation."""
    if isinstance(params, tuple):
        return tuple(float(p) if isinstance(p, int | np.number) and not isinstance(p, bool) else p for p in params)
    return params


def explained(function, reason) -> str:
    """numba's reason in two lines: what could not be compiled, where, and what to do."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()] or [type(reason).__name__]
    lines = [line for line in lines if not line.startswith("Failed in nopython mode pipeline")] or lines
    lines.sort(key=lambda line: not line.startswith("Untyped global"))  # the culprit's name first
    where = next((line for line in lines if line.startswith("File ")), "")
    if not where and hasattr(function, "__code__"):
        where = f'File "{function.__code__.co_filename}", line {function.__code__.co_firstlineno}'
    name = getattr(function, "__name__", function)
    if "setitem(readonly array" in str(reason):
        return (
            f"`engine='compiled'` cannot compile {name}: it writes to the state or to an array it captured. `u` cannot "
            f"be written to, and what was captured is the same in every call; write to a copy, `u.copy()`. {where}"
        )
    return (
        f"`engine='compiled'` cannot compile {name}: {' '.join(lines[:3])} {where}. "
        "Use only numbers, tuples, NumPy and odelab.maths in it, or engine='python'."
    )
