"""States of a lane's run at the times that were asked for, as source text."""

from odelab.engines.dense_text import known_names, polynomial_lines, state_inside
from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, indent


def keep_step_lines(request: Request, tag: str, place: str) -> list[str]:
    """Lines by which every attempt stores what the states inside its step need: time, size, old state and slopes."""
    n = request.n
    return [
        f"began[{place}] = t{tag}",
        f"taken[{place}] = dt{tag}",
        *(f"old[{i}, {place}] = u{i}{tag}" for i in range(n)),
        *(f"kept[{row}, {place}] = {name}{tag}" for row, name in enumerate(known_names(request))),
    ]


def step_row_count(request: Request) -> int:
    """How many rows `keep_step_lines` fills: time, size, old state and slopes of the last step."""
    return 2 + request.n + len(known_names(request))


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


def inside_text(request: Request) -> str:
    """The definition of `inside`, which writes the state at a time within the step of a lane into `found`."""
    n = request.n
    lines = [
        *(f"u{i} = old[{i}, l]" for i in range(n)),
        *(f"{name} = kept[{row}, l]" for row, name in enumerate(known_names(request))),
        f"{arguments(f'v{i}' for i in range(n))} = state",
        *polynomial_lines(request),
        "theta = (at - t) / dt",
        *(f"found[{i}] = {state_inside(request, i)}" for i in range(n)),
    ]
    return "\n".join(
        ["@njit(**OPTIONS)", "def inside(at, t, dt, t_new, old, kept, l, state, params, found):", *indent(lines)]
    )
