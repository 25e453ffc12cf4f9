"""The kernel of every problem: `odelab.core.integrate`, its step and its control compiled with the right-hand side.

No formula is written again here: `odelab.core.integrate` is compiled with `odelab.core.rk_step` or the Chebyshev step,
with the controller's own propose and judge, and with a function that records steps. A Chebyshev step can have more than
a hundred stages, and most of its time goes into the loop over the state in each of them, which
`odelab.engines.numba.blending` merges with that of the right-hand side.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from odelab import core
from odelab.control import controllers, feedback
from odelab.engines.numba import CONTRACTED, EXACT, blending
from odelab.engines.numba.jit import ANOTHER_NUMBER, compiled_functions, jit, jit_once
from odelab.engines.numba.request import Request
from odelab.engines.python import RightHandSideError
from odelab.engines.rows import ERROR, RHO, SAI, SIZE, TIME
from odelab.methods import chebyshev, stabilised
from odelab.right_hand_side import ARRAY, COMPONENT, IN_PLACE

INLINED = {**EXACT, "forceinline": True}  # a function passed on as an argument has an address, and is not cached


def kernel_of(request: Request):
    """`advance` of (counts, record, states, params, state, t1, attempts), which numba compiles at its first call."""
    from numba import njit

    users = compiled_functions(request.functions, request.form)
    if request.windowed:
        names = users.keys() & {"rhs", "spectral_radius_of"}
        users |= {name: shown_a_window(users[name], name == "rhs" and request.form == IN_PLACE) for name in names}
    slope_of = slopes_of(users["rhs"], request)
    make_step, halves, error_of, h_rho_of = step_of(request, users, slope_of)
    propose, judge = (jit(half, options=INLINED) for half in halves)
    after = users.get("project", jit_once(core.no_projection, EXACT))
    record_row = jit_once(row_keeper(error_of, h_rho_of), EXACT)
    step, prepare = jit(make_step, options=INLINED), jit(core.slope_alone, options=INLINED)
    integrate = jit(core.integrate, options=INLINED)

    @njit(**{**CONTRACTED, "no_cpython_wrapper": False})
    def advance(counts, record, states, params, state, t1, attempts):
        carry = (counts, record, states)
        return integrate(step, prepare, slope_of, params, propose, judge, after, record_row, carry, state, t1, attempts)

    return advance


def shown_a_window(function, fills: bool):
    """The user's function of (t, u, params), shown the times of a window alone, which `params` hold, too."""
    from numba import njit

    def fill(t, u, params, out):
        own, earliest, latest = params
        return function(min(max(t, earliest), latest), u, own, out)

    def answer(t, u, params):
        own, earliest, latest = params
        return function(min(max(t, earliest), latest), u, own)

    return njit(**INLINED)(fill if fills else answer)


def slopes_of(rhs, request: Request):
    """The right-hand side as a function that returns an array of its own."""
    from numba import njit
    from numba.np.unsafe.ndarray import to_fixed_tuple

    n = request.n

    def of_array(t, u, params):
        return rhs(t, u, params).astype(np.float64)  # a copy: it may reuse its answer

    def of_filled(t, u, params):
        out = blending.beside_lines(u.size)
        out[:] = math.nan  # a component that is never set then ends the run as not finite
        rhs(t, u, params, out)
        return out

    def of_components(t, u, params):
        slopes = rhs(t, to_fixed_tuple(u, n), params)  # type: ignore[call-arg]
        if len(slopes) != n:
            raise RightHandSideError(ANOTHER_NUMBER)
        return np.array(slopes, dtype=np.float64)

    return njit(**CONTRACTED)({ARRAY: of_array, IN_PLACE: of_filled, COMPONENT: of_components}[request.form])


def step_of(request: Request, users: dict, slope_of) -> tuple:
    """(step, (propose, judge), the error ratio of an accepted step, its h rho)."""
    method, halves = request.method, control_of(request)
    error_of = jit_once(feedback.no_error if request.smooth is None else feedback.error_of_step, EXACT)
    if not method.adapts_stages:
        tableau, twins = method.tableau, method.twin_stages
        h_rho_of = no_h_rho if twins is None else twin_h_rho(tableau, twins)
        return core.rk_step_of(jit_once(core.combine, INLINED), tableau), halves, error_of, jit_once(h_rho_of, EXACT)
    own = method.spectral_radius
    known = method if own is None else stabilised.rkc2(users.get("spectral_radius_of", 0.0))
    next_state = blending.build_in(users["rhs"]) if request.form == IN_PLACE else chebyshev.next_state
    step = chebyshev.chebyshev_step(jit_once(chebyshev.chebyshev, INLINED), chebyshev.first_states, next_state)
    error_of = jit_once(error_of_control(error_of), EXACT)
    return step, known.steer(*halves, slope_of), error_of, jit_once(no_h_rho, EXACT)


def control_of(request: Request) -> tuple[Callable, ...]:
    """The controller's two functions, propose and judge."""
    named = feedback.propose_counted, feedback.accept_finite
    if request.listed:
        named = feedback.propose_listed, feedback.accept_listed
    if request.smooth is not None:
        named = feedback.propose_next, controllers.error_judge(request.smooth)
    return tuple(jit_once(half, INLINED) for half in named)


@functools.cache
def row_keeper(error_of, h_rho_of):
    """A function `record` for `core.integrate`, which writes each accepted step into a row of an array.

    Its `carry` is (counts, record, states), where counts[0] is the number of steps so far.
    """

    def keep_row(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
        counts, record, states = carry
        step = counts[0] + 1
        moved, size = 0.0, 0.0
        for i in range(u.size):
            moved += mean_slope[i] * mean_slope[i]
            size += u[i] * u[i]
        record[step - 1, TIME] = t
        record[step, TIME] = t + dt
        record[step, SIZE] = dt
        record[step, ERROR] = error_of(memory)
        record[step, SAI] = math.sqrt(moved / size)
        record[step, RHO] = h_rho_of(u, dt, slopes)
        row = states[step % len(states)]
        for i in range(u.size):  # assigning the whole row would take numba two seconds more to compile
            row[i] = u_new[i]
        counts[0] = step
        return carry

    return keep_row


@functools.cache
def error_of_control(error_of):
    """`error_of` for the memory of a stabilised method, whose `control` is that of the controller."""

    def error(memory):
        return error_of(memory.control)

    return error


def no_h_rho(u, dt, slopes):
    """The h rho of methods whose stages do not determine it: NaN."""
    return math.nan


@functools.cache
def twin_h_rho(tableau, twins):
    """h rho from two stages at the same time."""
    rate = core.twin_rate_of(core.combine, core.where, core.squared, tableau, twins)

    def h_rho(u, dt, slopes):
        return abs(dt) * math.sqrt(rate(u, dt, slopes))

    return h_rho
