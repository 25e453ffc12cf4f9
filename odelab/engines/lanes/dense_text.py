"""States between the steps of a lane: the continuous extension of `odelab.methods.extension`, as source text.

A linearly implicit method either has weights of its own, which apply to its increments, or uses the cubic through both
ends of a step.
"""

from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, combination, indent, number
from odelab.methods import extension


def stored_slope_count(request: Request) -> int:
    """How many slopes (or increments) of an attempt are stored, to find the states inside its step."""
    return 1 if is_cubic(request) else request.method.stages


def is_cubic(request: Request) -> bool:
    """Is the extension the cubic Hermite interpolant of a linearly implicit method?"""
    return request.implicit and request.method.dense is None


def keep_step_lines(request: Request, tag: str, place: str) -> list[str]:
    """Lines by which every attempt stores what the states inside its step need: time, size, old state and slopes."""
    n = request.n
    lines = [
        f"began[{place}] = t{tag}",
        f"taken[{place}] = dt{tag}",
        *(f"old[{i}, {place}] = u{i}{tag}" for i in range(n)),
    ]
    for j in range(stored_slope_count(request)):
        name = "x" if request.implicit and not is_cubic(request) else "k"
        lines += [f"kept[{j * n + i}, {place}] = {name}{j + 1}_{i}{tag}" for i in range(n)]
    return lines


def step_row_count(request: Request) -> int:
    """How many rows `keep_step_lines` fills: time, size, old state and slopes of the last step."""
    return 2 + (1 + stored_slope_count(request)) * request.n


def row_lines(request: Request, first: int) -> list[str]:
    """Lines that name the rows which `keep_step_lines` fills; they begin at row `first` of the block."""
    old = first + 2
    kept = old + request.n
    return [
        f"began, taken = block[{first}], block[{first + 1}]",
        f"old, kept = block[{old}:{kept}], block[{kept}:{first + step_row_count(request)}]",
        "direction = math.copysign(1.0, t1 - t0)",
    ]


def fill_points_lines(request: Request) -> list[str]:
    """Lines that compute the states at the requested times lane `l` has passed, and note when the next one is due."""
    n = request.n
    return [
        "while index[l] >= 0 and (due[l] - t[l]) * direction <= 0.0:",
        f"    state = ({arguments(f'u{i}[l]' for i in range(n))})",
        "    if due[l] == t[l]:",
        *(f"        points[index[l], point[l], {i}] = u{i}[l]" for i in range(n)),
        "    else:",
        f"        inside(due[l], began[l], taken[l], t[l], old, kept, l, state, "
        f"({arguments(f'parameter{i}[l]' for i in range(request.parameters))}), points[index[l], point[l]])",
        "    point[l] += 1",
        "    due[l] = at[point[l]] if point[l] < at.size else direction * math.inf",
    ]


def first_points_lines(request: Request) -> list[str]:
    """Lines for a new run: a requested time at its very start has the initial state as its answer."""
    return [
        "point[l] = 0",
        "while point[l] < at.size and at[point[l]] == t0:",
        *(f"    points[j, point[l], {i}] = starts[j, {i}]" for i in range(request.n)),
        "    point[l] += 1",
        "due[l] = at[point[l]] if point[l] < at.size else direction * math.inf",
    ]


def definition_texts(request: Request) -> list[str]:
    """The definitions of WEIGHTS, the coefficients of the extension, and of `inside`, which evaluates it."""
    n, method = request.n, request.method
    if request.implicit:
        return implicit_texts(request)
    weights = extension.weights(method)
    rows, degree = weights.shape
    body = [
        f"slopes = np.empty(({rows}, {n}))",
        f"for s in range({stored_slope_count(request)}):",
        f"    for i in range({n}):",
        f"        slopes[s, i] = kept[s * {n} + i, l]",
        *further_stage_lines(request),
        "theta = (at - t) / dt",
        f"for i in range({n}):",
        "    found[i] = old[i, l]",
        f"for s in range({rows}):",
        "    weight = 0.0",
        f"    for p in range({degree - 1}, -1, -1):",
        "        weight = (weight + WEIGHTS[s, p]) * theta",
        f"    for i in range({n}):",
        "        found[i] += dt * weight * slopes[s, i]",
    ]
    return inside_texts(weights, body)


def inside_texts(weights, body: list[str]) -> list[str]:
    values = ",\n    ".join("(" + ", ".join(number(x) for x in row) + ")" for row in weights)
    signature = "def inside(at, t, dt, t_new, old, kept, l, state, params, found):"
    return [f"WEIGHTS = np.array((\n    {values},\n))", "\n".join(["@njit(**OPTIONS)", signature, *indent(body)])]


def implicit_texts(request: Request) -> list[str]:
    """The same definitions for a linearly implicit method, whose weights apply to its increments.

    Row p of WEIGHTS belongs to the power p + 1 of theta; those of the cubic are the rows of `extension.HERMITE`.
    """
    n = request.n
    if is_cubic(request):
        names = arguments(f"slope{i}" for i in range(n))
        body = [
            "theta = (at - t) / dt",
            *(
                f"{name} = theta * (WEIGHTS[{row}, 0] + theta * (WEIGHTS[{row}, 1] + theta * WEIGHTS[{row}, 2]))"
                for row, name in enumerate(("value", "start", "end"))
            ),
            f"{names} = rhs(t_new, state, params)",
            *(
                f"found[{i}] = old[{i}, l] + value * (state[{i}] - old[{i}, l]) "
                f"+ dt * (start * kept[{i}, l] + end * slope{i})"
                for i in range(n)
            ),
        ]
        return inside_texts(extension.HERMITE[:, 1:], body)
    weights = request.method.extension_weights
    body = [
        "theta = (at - t) / dt",
        f"for i in range({n}):",
        "    change = 0.0",
        f"    for p in range({len(weights) - 1}, -1, -1):",
        f"        for s in range({stored_slope_count(request)}):",
        f"            change += WEIGHTS[p, s] * kept[s * {n} + i, l]",
        "        change *= theta",
        "    found[i] = old[i, l] + change",
    ]
    return inside_texts(weights, body)


def further_stage_lines(request: Request) -> list[str]:
    """Lines for the slopes that only the extension needs.

    These are its additional stages and, unless the last stage is evaluated there anyway, the slope at the new state.
    """
    n, method = request.n, request.method
    lines: list[str] = []
    count = method.stages
    if not method.fsal:
        lines += slope_lines(count, n, "t + dt", "state")
        count += 1
    for row, time in method.extra_floats:
        state = arguments(
            f"old[{i}, l] + dt * ({combination(row, [f'slopes[{j}, {i}]' for j in range(count)])})" for i in range(n)
        )
        lines += slope_lines(count, n, f"t + {number(time)} * dt", f"({state})")
        count += 1
    return lines


def slope_lines(row: int, n: int, time: str, state: str) -> list[str]:
    return [f"{arguments(f'slopes[{row}, {i}]' for i in range(n))} = rhs({time}, {state}, params)"]
