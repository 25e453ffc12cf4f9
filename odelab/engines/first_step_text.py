"""The start of an adaptive run as source text: the slope at the initial state, and the size of the first step.

It is `odelab.control.controllers.initial_step` with a variable for each component. Lanes call `begin` for each run, a
single run calls `start`, whose arguments are arrays; runs with fixed steps need neither.
"""

from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, components, indent, number, read_lines, tolerance_names, total

SETTINGS = ("t0", "t1", "rtol", "largest", "given_step")  # the last is 0 where the first step is to be found
HELPERS = "trial_step, first_step = jit_once(control.trial_step, EXACT), jit_once(control.first_step, EXACT)"


def begin_texts(request: Request) -> list[str]:
    """The definition of `begin`, which returns the first step, with its sign, the evaluations it took, and slopes."""
    if not request.law:
        return []
    n, atol = request.n, tolerance_names(request)
    of_component = atol if request.vector_tolerance else atol * n

    def size(terms):
        return f"math.sqrt(({total(f'({term}) * ({term})' for term in terms)}) * {number(1.0 / n)})"

    lines = [
        f"{arguments(components('k', n, ''))} = rhs(t0, u, params)",
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
        f"return dt, evaluations, {', '.join(components('k', n, ''))}",
    ]
    return [HELPERS, "\n".join(["@njit(**OPTIONS)", f"def {begin_call(request, 'u', 'params')}:", *indent(lines)])]


def begin_call(request: Request, u: str, params: str) -> str:
    """The call of `begin` for a state and parameters, which are tuples."""
    return f"begin(t0, t1, rtol, {', '.join(tolerance_names(request))}, largest, given_step, {u}, {params})"


def start_texts(request: Request) -> list[str]:
    """The same and the definition of `start`, which takes arrays and writes the slopes into the last of them."""
    if not request.law:
        return []
    state = f"({arguments(f'u[{i}]' for i in range(request.n))})"
    params = f"({arguments(f'params_in[{i}]' for i in range(request.parameters))})"
    lines = [
        *read_lines(SETTINGS, "settings"),
        *read_lines(tolerance_names(request), "tolerance"),
        f"dt, evaluations, {arguments(f'slope[{i}]' for i in range(request.n))} = {begin_call(request, state, params)}",
        "return dt, evaluations",
    ]
    signature = f"@njit([({', '.join(['types.float64[::1]'] * 5)})], **CALLED)"
    return [
        *begin_texts(request),
        "\n".join([signature, "def start(settings, tolerance, params_in, u, slope):", *indent(lines)]),
    ]
