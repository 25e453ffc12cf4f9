"""The layout for every problem: `odelab.core.integrate`, its step and its control compiled with the right-hand side.

No formula is written again here: `odelab.core.integrate` is compiled with `odelab.core.rk_step` or the Chebyshev step,
with the controller's own propose and judge, and with a function that records steps. A Chebyshev step can have more than
a hundred stages, and most of its time goes into the loop over the state in each of them, which
`odelab.engines.numba.blending` merges with that of the right-hand side.
"""

import functools
import math

from odelab import core
from odelab.engines.numba.request import Request
from odelab.engines.rows import ERROR, RHO, SAI, SIZE, TIME
from odelab.right_hand_side import ARRAY, IN_PLACE

LAYOUTS = ("stabilised", "generic")
IMPORTS = """
from odelab import core
from odelab.control import controllers
from odelab.engines.numba import blending
from odelab.engines.numba.jit import jit, jit_once
from odelab.engines.numba.one_source import error_of_control, no_h_rho, row_keeper, twin_h_rho
from odelab.methods import chebyshev, spectral_radius as radius, stabilised

INLINED = {**EXACT, "forceinline": True}  # a function passed on as an argument has an address, and is not cached
""".strip()


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`; the user's own functions have the names of `Request.functions`."""
    project = "project" if request.project else "jit_once(core.no_projection, EXACT)"
    parts = [
        f"steps = {control_text(request)}",
        *step_lines(request),
        "propose, judge = (jit(half, options=INLINED) for half in steps)",
        f"after = {project}",
        "prepare = jit(core.slope_alone, options=INLINED)",
        "integrate = jit(core.integrate, options=INLINED)",
    ]
    body = [
        "    carry = (counts, record, states)",
        "    return integrate(",
        "        step, prepare, slope_of, params, propose, judge, after, record_row, carry, state, t1, attempts",
        "    )",
    ]
    names = "counts, record, states, params, state, t1, attempts"
    slopes = [*(window_lines(request) if request.windowed else ()), *slope_lines(request)]
    return [IMPORTS, "\n".join(slopes), "\n".join(parts)], [f"def advance({names}):", *body]


def window_lines(request: Request) -> list[str]:
    """The user's functions of (t, u, params) that are shown the times of a window alone, which `params` hold, too."""
    lines = []
    for name in request.functions.keys() & {"rhs", "spectral_radius_of"}:
        out = ", out" if name == "rhs" and request.form == IN_PLACE else ""
        lines += [
            f"{name}_at_any_time = {name}",
            "@njit(**INLINED)",
            f"def {name}(t, u, params{out}):",
            "    own, earliest, latest = params",
            f"    return {name}_at_any_time(min(max(t, earliest), latest), u, own{out})",
        ]
    return lines


def slope_lines(request: Request) -> list[str]:
    """The right-hand side as a function that returns an array of its own."""
    lines = ["@njit(**OPTIONS)", "def slope_of(t, u, params):"]
    if request.form == ARRAY:
        return [*lines, "    return rhs(t, u, params).astype(np.float64)  # a copy: it may reuse its answer"]
    if request.form == IN_PLACE:
        return [
            *lines,
            "    out = blending.beside_lines(u.size)",
            "    out[:] = math.nan  # a component that is never set then ends the run as not finite",
            "    rhs(t, u, params, out)",
            "    return out",
        ]
    return [
        *lines,
        f"    out = np.empty({request.n})",
        f"    {arguments(f'out[{i}]' for i in range(request.n))} = "
        f"rhs(t, ({arguments(f'u[{i}]' for i in range(request.n))}), params)",
        "    return out",
    ]


def step_lines(request: Request) -> list[str]:
    """Lines for the step, and for the function that records the error ratio and h rho of each accepted step."""
    error_of = f"jit_once(control.{'error_of_step' if request.law else 'no_error'}, EXACT)"
    if not hasattr(request.method, "spectral_radius"):
        tableau, twins = request.method.tableau, request.method.twin_stages
        h_rho = "no_h_rho"
        if twins is not None:
            h_rho = f"twin_h_rho(TABLEAU, {twins})"
        return [
            f"TABLEAU = core.{tableau!r}",
            "step = jit(core.rk_step_of(jit_once(core.combine, INLINED), TABLEAU), options=INLINED)",
            f"record_row = jit_once(row_keeper({error_of}, jit_once({h_rho}, EXACT)), options=EXACT)",
        ]
    given = request.method.spectral_radius
    method = "stabilised.RKC2"
    if given is not None:
        method = f"stabilised.rkc2({'spectral_radius_of' if callable(given) else 0.0})"
    next_state = "blending.build_in(rhs)" if request.form == IN_PLACE else "chebyshev.next_state"
    return [
        f"steps = {method}.steer(*steps, slope_of)",
        f"made_of = (jit_once(chebyshev.chebyshev, INLINED), chebyshev.first_states, {next_state})",
        "step = jit(chebyshev.chebyshev_step(*made_of), options=INLINED)",
        f"error_of = jit_once(error_of_control({error_of}), options=EXACT)",
        "record_row = jit_once(row_keeper(error_of, jit_once(no_h_rho, EXACT)), options=EXACT)",
    ]


def control_text(request: Request) -> str:
    """The controller's two functions, propose and judge, as text."""
    named = "control.propose_counted, control.accept_finite"
    if request.listed:
        named = "control.propose_listed, control.accept_listed"
    if request.law is not None:
        named = f"control.propose_next, controllers.error_judge({request.law.smooth})"
    return f"[jit_once(half, INLINED) for half in ({named})]"


def arguments(names) -> str:
    """The names with a comma behind each, `a, b,`: in parentheses they are a tuple, also where there is only one."""
    return "".join(f"{name}, " for name in names).rstrip()


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
