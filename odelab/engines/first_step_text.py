"""The start of an adaptive run as source text: the slope at the initial state, and the size of the first step.

It is `odelab.control.controllers.initial_step` with a variable for each component. Lanes call `begin` for each run, a
single run calls `start`, whose arguments are arrays; runs with fixed steps need neither.
"""

from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, components, indent, number, read_lines, tolerance_names, total

SETTINGS = ("t0", "t1", "rtol", "largest", "given_step")  # the last is 0 where the first step is to be found
HELPERS = "trial_step, first_step = njit(**EXACT)(control.trial_step), njit(**EXACT)(control.first_step)"


def begin_texts(request: Request) -> list[str]:
    """The definition of `begin`, which returns the first step, with its sign, and the slopes."""
    if not request.law:
        return []
    atol = ", ".join(tolerance_names(request))
    text = [
        "@njit(**OPTIONS)",
        f"def begin(t0, t1, rtol, {atol}, largest, given_step, u, params):",
        *indent(first_step_lines(request)),
        f"    return dt, {', '.join(components('k', request.n, ''))}",
    ]
    return [HELPERS, "\n".join(text)]


def start_texts(request: Request) -> list[str]:
    """The definition of `start`, which writes the slope into the last of its arguments, and returns (first step,
    evaluations that it took to find it)."""
    if not request.law:
        return []
    text = [
        f"@njit([({', '.join(['types.float64[::1]'] * 5)})], cache=CACHE, **OPTIONS)",
        "def start(settings, tolerance, params_in, u, slope):",
        *indent([*read_lines(SETTINGS, "settings"), *read_lines(tolerance_names(request), "tolerance")]),
        f"    params = ({arguments(f'params_in[{i}]' for i in range(request.parameters))})",
        *indent(first_step_lines(request)),
        *(f"    slope[{i}] = k{i}" for i in range(request.n)),
        "    return dt, evaluations",
    ]
    return [HELPERS, "\n".join(text)]


def first_step_lines(request: Request) -> list[str]:
    """Lines that compute the slopes `k...` and the first step `dt`, for numbers under the names of SETTINGS."""
    n, atol = request.n, tolerance_names(request)
    of_component = atol if request.vector_tolerance else atol * n

    def size(terms):
        return f"math.sqrt(({total(f'({term}) * ({term})' for term in terms)}) * {number(1.0 / n)})"

    return [
        f"{arguments(components('k', n, ''))} = rhs(t0, ({arguments(f'u[{i}]' for i in range(n))}), params)",
        "span = abs(t1 - t0)",
        "dt = given_step",
        "evaluations = 0",
        "if not given_step > 0.0:",
        *(f"    unit{i} = 1.0 / ({of_component[i]} + rtol * abs(u[{i}]))" for i in range(n)),
        f"    speed = {size(f'k{i} * unit{i}' for i in range(n))}",
        f"    dt = trial_step({size(f'u[{i}] * unit{i}' for i in range(n))}, speed, span)",
        "    if not dt > 0.0:",
        "        dt = 1e-6 * span",
        "    else:",
        "        ahead = math.copysign(dt, t1 - t0)",
        f"        moved = ({arguments(f'u[{i}] + ahead * k{i}' for i in range(n))})",
        f"        {arguments(components('m', n, ''))} = rhs(t0 + ahead, moved, params)",
        "        evaluations = 1",
        f"        bend = {size(f'(m{i} - k{i}) * unit{i}' for i in range(n))} / dt",
        f"        dt = first_step(dt, speed, bend, {request.method.error_order}, span)",
        "dt = math.copysign(min(dt, largest, span), t1 - t0)",
    ]
