"""The start of an adaptive run as source text: the slope at the initial state, and the size of the first step.

It is `odelab.control.controllers.initial_step` with a variable for each component. Lanes call `begin` for each run, and
single runs call it by `start`, whose arguments are arrays.
"""

from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, components, indent, number, read_lines, tolerance_names, total

SETTINGS = ("t0", "t1", "rtol", "largest", "given_step")  # the last is 0 where the first step is to be found


def definition_texts(request: Request) -> list[str]:
    """The definition of `begin`, which returns the first step, with its sign, evaluations that it took to find it, and
    the slopes. Runs with fixed steps need none."""
    if not request.law:
        return []
    n, atol = request.n, tolerance_names(request)
    of_component = atol if request.vector_tolerance else atol * n

    def size(terms):
        return f"math.sqrt(({total(f'({term}) * ({term})' for term in terms)}) * {number(1.0 / n)})"

    slopes = components("k", n, "")
    text = [
        "@njit(**OPTIONS)",
        f"def begin(t0, t1, rtol, {', '.join(atol)}, largest, given_step, u, params):",
        f"    {arguments(slopes)} = rhs(t0, u, params)",
        "    span = abs(t1 - t0)",
        "    dt = given_step",
        "    evaluations = 0",
        "    if not given_step > 0.0:",
        *(f"        unit{i} = 1.0 / ({of_component[i]} + rtol * abs(u[{i}]))" for i in range(n)),
        f"        slope = {size(f'k{i} * unit{i}' for i in range(n))}",
        f"        dt = trial_step({size(f'u[{i}] * unit{i}' for i in range(n))}, slope, span)",
        "        if not dt > 0.0:",
        "            dt = 1e-6 * span",
        "        else:",
        "            ahead = math.copysign(dt, t1 - t0)",
        f"            state = ({arguments(f'u[{i}] + ahead * k{i}' for i in range(n))})",
        f"            {arguments(components('m', n, ''))} = rhs(t0 + ahead, state, params)",
        "            evaluations = 1",
        f"            bend = {size(f'(m{i} - k{i}) * unit{i}' for i in range(n))} / dt",
        f"            dt = first_step(dt, slope, bend, {request.method.error_order}, span)",
        "    dt = math.copysign(min(dt, largest, span), t1 - t0)",
        f"    return dt, evaluations, {', '.join(slopes)}",
    ]
    return [
        "trial_step, first_step = njit(**EXACT)(control.trial_step), njit(**EXACT)(control.first_step)",
        "\n".join(text),
    ]


def start_texts(request: Request) -> list[str]:
    """`begin`, and the definition of `start`, which hands it a run's arrays, writes the slope into the last of them,
    and returns (first step, evaluations)."""
    if not request.law:
        return []
    n = request.n
    atol = tolerance_names(request)
    state, params = (
        arguments(f"{name}[{i}]" for i in range(count)) for name, count in (("u", n), ("params_in", request.parameters))
    )
    found = ", ".join(f"slope[{i}]" for i in range(n))
    text = [
        f"@njit([({', '.join(['types.float64[::1]'] * 5)})], cache=CACHE, **OPTIONS)",
        "def start(settings, tolerance, params_in, u, slope):",
        *indent([*read_lines(SETTINGS, "settings"), *read_lines(atol, "tolerance")]),
        f"    dt, evaluations, {found} = begin(",
        f"        t0, t1, rtol, {', '.join(atol)}, largest, given_step, ({state}), ({params})",
        "    )",
        "    return dt, evaluations",
    ]
    return [*definition_texts(request), "\n".join(text)]
