"""The kernel that searches the steps of a run for the zeros of an event's function, as source text.

For every step it takes the stages again, forms the polynomial of the dense output, evaluates the function at the same
places as `odelab.runs.events` does, and has `odelab.runs.roots` judge the step and find its zero. The few steps of
which it is not sure are left to `odelab.runs.events`.
"""

from odelab.engines.dense_text import coefficient_names, polynomial_lines, state_inside
from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, indent, stage_lines

IMPORTS = """
from odelab.engines.numba.jit import jit, jit_once
from odelab.runs import roots

is_clear = jit_once(roots.is_clear, OPTIONS)
between, one_of, alone = jit(roots.between, options=EXACT), jit_once(roots.one_of, EXACT), jit_once(roots.alone, EXACT)
""".strip()


def search(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `search`; the user's functions are `rhs` and `event`.

    `places` holds the step to go on with, the number of zeros found and the number of steps in `unsure`; `last` is the
    event's value where the next step begins.
    """
    n, method = request.n, request.method
    u, v = arguments(f"u{i}" for i in range(n)), arguments(f"states[step + 1, {i}]" for i in range(n))
    about = f"({arguments(['t', 'span', 'params', *(f'u{i}' for i in range(n)), *coefficient_names(request)])})"
    return [IMPORTS, inside_text(request, about), at_places_text()], [
        "def search(times, states, sizes, params_in, last, places, zeros, unsure):",
        *indent(
            [
                f"params = ({arguments(f'params_in[{i}]' for i in range(request.parameters))})",
                "step, count, doubts, before = places[0], places[1], places[2], last[0]",
                "nodes, at_probes = np.empty(NODES.size), np.empty(PROBES.size)",
                "shapes = np.empty(AT_PLACES.shape[0])",
                "while step < sizes.size and count < zeros.shape[0]:",
                "    t, dt = times[step], sizes[step]",
                "    span = times[step + 1] - t",
                *(f"    u{i} = states[step, {i}]" for i in range(n)),
                f"    {arguments(f'k1_{i}' for i in range(n))} = rhs(t, ({u}), params)",
                *indent(stage_lines(method, n)),
                *indent(polynomial_lines(request)),
                f"    about = {about}",
                f"    after = 1.0 * event(times[step + 1], ({v}), params)",
                "    nodes[0], nodes[-1] = before, after",
                "    for j in range(1, nodes.size - 1):",
                "        nodes[j] = inside(about, NODES[j])",
                "    for j in range(PROBES.size):",
                "        at_probes[j] = inside(about, PROBES[j])",
                "    at_places(nodes, shapes)",
                "    if not is_clear(shapes, at_probes, after):",
                "        unsure[doubts] = step",
                "        doubts += 1",
                "    elif before * after < 0.0:",
                "        j = 1",
                "        while np.sign(nodes[j]) != np.sign(after):",
                "            j += 1",
                "        theta = between(one_of, alone, inside, about, NODES[j - 1], NODES[j], nodes[j - 1], nodes[j])",
                "        zeros[count, 0] = t + theta * span",
                "        zeros[count, 1] = np.sign(after)",
                *(f"        zeros[count, {2 + i}] = {state_inside(request, i)}" for i in range(n)),
                "        if theta == 1.0:",
                "            zeros[count, 0] = times[step + 1]",
                *(f"            zeros[count, {2 + i}] = states[step + 1, {i}]" for i in range(n)),
                "        count += 1",
                "    before = after",
                "    step += 1",
                "places[0], places[1], places[2], last[0] = step, count, doubts, before",
            ]
        ),
    ]


def inside_text(request: Request, about: str) -> str:
    """The definition of `inside`, the event's value at a fraction of a step."""
    states = arguments(state_inside(request, i) for i in range(request.n))
    lines = [f"{about} = about", f"return 1.0 * event(t + theta * span, ({states}), params)"]
    return "\n".join(['@njit(**{**OPTIONS, "forceinline": True})', "def inside(about, theta):", *indent(lines)])


def at_places_text() -> str:
    """The definition of `at_places`, the product of `roots.AT_PLACES` with the values at the nodes."""
    return "\n".join(
        [
            "NODES, PROBES, AT_PLACES = roots.NODES, roots.PROBES, roots.AT_PLACES",
            "",
            "@njit(**LOOSE)",
            "def at_places(nodes, shapes):",
            "    for row in range(shapes.size):",
            "        total = 0.0",
            "        for j in range(nodes.size):",
            "            total += AT_PLACES[row, j] * nodes[j]",
            "        shapes[row] = total",
        ]
    )
