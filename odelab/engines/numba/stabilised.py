"""The layout of a stabilised method: the one source's step, loop and control compiled around the right-hand side.

Nothing is spelled anew here. A step has a hundred stages and more, so what counts is the pass over the state in each of
them: `odelab.engines.numba.sink` makes it one loop with the right-hand side's own.
"""

import math

from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import ERROR, RHO, SAI, SIZE, TIME

ARGUMENTS = ("counts", "record", "states", "params", "memory", "t", "t1", "u", "slope", "fresh", "attempts")
PASSED_ON = ("memory", "t", "t1", "u", "slope", "fresh", "attempts")
IMPORTS = """
from odelab import core
from odelab.control import controllers
from odelab.methods import chebyshev, spectral_radius as radius, stabilised
from odelab.engines.numba import sink as blending
from odelab.engines.numba.jit import jit
from odelab.engines.numba.stabilised import keep_row

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
                "combine, project = jit(core.combine), jit(core.unprojected)",
                "record_row = jit(keep_row)",
                f"TABLEAU = {request.method.floats!r}",
            )
        ),
    ]
    body = [
        "carry = (counts, record, states)",
        "return integrate(",
        "    step, combine, slope_of, params, TABLEAU, propose, judge, project, record_row, carry,",
        f"    {', '.join(PASSED_ON)},",
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
    steering = f"types.Tuple(({params}, {number}, {numbers}, {', '.join([number] * 4)}))"
    memory = f"types.Tuple(({number}, {number}, {number}, {steering}))"
    if request.law is not None:
        settings = f"types.UniTuple({number}, 10)"
        if request.vector_tolerance:
            settings = f"types.Tuple(({number}, {numbers}, {', '.join([number] * 8)}))"
        memory = f"types.Tuple(({settings}, types.UniTuple({number}, 7), {steering}))"
    return {"params": params, "memory": memory, "t": number, "t1": number, "fresh": "types.boolean"}


def keep_row(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
    """Record an accepted step; carry = (counts, record, states), and counts[0] the steps so far."""
    counts, record, states = carry
    step = counts[0] + 1
    moved, size = 0.0, 0.0
    for i in range(u.size):
        moved += mean_slope[i] * mean_slope[i]
        size += u[i] * u[i]
    record[step - 1, TIME] = t
    record[step, TIME] = t + dt
    record[step, SIZE] = dt
    record[step, ERROR] = memory[1][6] if len(memory) == 3 else math.nan
    record[step, SAI] = math.sqrt(moved / size)
    record[step, RHO] = math.nan
    states[step % len(states)] = u_new
    counts[0] = step
    return carry
