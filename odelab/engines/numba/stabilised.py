"""The layout of a stabilised method: the one source's step, loop and control compiled around the right-hand side.

Nothing is spelled anew here. A step has a hundred stages and more, so what counts is the pass over the state in each of
them: `odelab.engines.numba.sink` makes it one loop with the right-hand side's own.
"""

import math

from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import ERROR, RHO, SAI, SIZE, TIME

ARGUMENTS = ("counts", "record", "states", "params", "state", "t1", "attempts")
IMPORTS = """
from odelab import core
from odelab.control import controllers
from odelab.methods import chebyshev, spectral_radius as radius, stabilised
from odelab.engines.numba import sink as blending
from odelab.engines.numba.jit import jit
from odelab.engines.numba.stabilised import row_keeper

INLINED = {**EXACT, "forceinline": True}  # a function that is really handed on has an address, and is not cached
""".strip()


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`; a spectral radius that is the user's function is `spectral_radius_of`."""
    given = request.method.spectral_radius
    method = "stabilised.RKC2"
    if given is not None:
        method = f"stabilised.rkc2({'spectral_radius_of' if callable(given) else 0.0})"
    definitions = [
        IMPORTS,
        "\n".join(
            (
                "@njit(**OPTIONS)",
                "def slope_of(t, u, params):",
                "    out = blending.beside_lines(u.size)",
                "    out[:] = math.nan  # what is not filled is seen",
                "    rhs(t, u, params, out)",
                "    return out",
            )
        ),
        "\n".join(
            (
                f"steps = {control(request)}",
                f"propose, judge = (jit(half, options=INLINED) for half in {method}.steer(*steps, slope_of))",
                "next_state = blending.fused(rhs)",
                "made_of = (chebyshev.chebyshev, chebyshev.first_states, next_state)",
                "step = jit(chebyshev.chebyshev_step(*made_of), options=INLINED)",
                "integrate = jit(core.integrate, options=INLINED)",
                "project = jit(core.unprojected)",
                f"record_row = jit(row_keeper(jit(control.{'error_of_step' if request.law else 'no_error'})))",
            )
        ),
    ]
    body = [
        "carry = (counts, record, states)",
        "return integrate(",
        "    step, slope_of, params, propose, judge, project, record_row, carry, state, t1, attempts",
        ")",
    ]
    return definitions, [f"def advance({', '.join(ARGUMENTS)}):", *(f"    {line}" for line in body)]


def control(request: Request) -> str:
    """The two halves of the controller."""
    if request.law is None:
        return "control.propose_counted, control.accept_finite"
    return f"control.propose_next, controllers.error_judge({request.law.smooth})"


def types(request: Request) -> dict[str, str]:
    """The numba types of the arguments that only this layout has."""
    number, numbers = "types.float64", "types.float64[::1]"
    params = f"types.BaseTuple.from_types(({f'{number}, ' * request.parameters}))"
    steering = f"types.NamedTuple(({params}, {number}, {numbers}, {', '.join([number] * 4)}), radius.Steering)"
    memory = f"types.NamedUniTuple({number}, 3, control.Counted)"
    if request.law is not None:
        settings = f"types.NamedUniTuple({number}, 10, control.Settings)"
        if request.vector_tolerance:
            settings = f"types.NamedTuple(({number}, {numbers}, {', '.join([number] * 8)}), control.Settings)"
        memory = f"types.NamedTuple(({settings}, types.NamedUniTuple({number}, 7, control.History)), control.Memory)"
    memory = f"types.NamedTuple(({memory}, {steering}), radius.Steered)"
    state = f"types.NamedTuple(({number}, {numbers}, {numbers}, types.boolean, {memory}), core.State)"
    return {"params": params, "state": state, "t1": number}


def row_keeper(error_of):
    """A `record` for `core.integrate`: carry = (counts, record, states), and counts[0] the steps so far."""

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
        record[step, ERROR] = error_of(memory.control)
        record[step, SAI] = math.sqrt(moved / size)
        record[step, RHO] = math.nan
        states[step % len(states)] = u_new
        counts[0] = step
        return carry

    return keep_row
