"""States inside a step as source text: the continuous extension of `odelab.methods.extension`, component by component.

Names in the text: `u0`, `u1`, ... are the state at the start of the step, at time `t`, and `v0`, `v1`, ... the state at
its end, at time `t_new`; `dt` is the step size. `k3_1` is the slope of stage 3 in component 1, and `x3_1` the increment
of this stage of a linearly implicit method. `c0_1`, `c1_1`, ... are the coefficients of theta, theta^2, ... in the
change of component 1 within the step.
"""

from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import arguments, combination, product, slope_names
from odelab.methods import extension


def known_names(request: Request) -> list[str]:
    """The names of the slopes of a step, or of its increments, that have to be known before `polynomial_lines`."""
    letter = "x" if request.implicit else "k"
    return [f"{letter}{j + 1}_{i}" for j in range(request.method.stages) for i in range(request.n)]


def polynomial_lines(request: Request) -> list[str]:
    """Lines that compute the slopes which only the extension needs, and then its coefficients."""
    n, method = request.n, request.method
    if request.implicit:
        lines, weights, scale = [], method.extension_weights, ""
        terms = [[f"x{j + 1}_{i}" for j in range(method.stages)] for i in range(n)]
    else:
        lines, weights, scale = further_stage_lines(request), extension.weights(method).T, "dt * "
        terms = [slope_names(weights.shape[1], i, "") for i in range(n)]
    return lines + [
        f"c{p}_{i} = {scale}({combination(row, terms[i]) or '0.0'})" for p, row in enumerate(weights) for i in range(n)
    ]


def further_stage_lines(request: Request) -> list[str]:
    """Lines for the slopes of an explicit method that only its extension needs.

    These are its additional stages and, unless the last stage is evaluated there anyway, the slope at the new state.
    """
    method, lines = request.method, []
    count = method.stages
    if not method.fsal:
        count += 1
        lines.append(further_slope_line(request, count, "t + dt", "v{}"))
    for row, time in method.extra_floats:
        weighted = combination(row, [f"k{j + 1}_{{0}}" for j in range(count)])
        count += 1
        lines.append(further_slope_line(request, count, f"t + {product(time, 'dt')}", f"u{{0}} + dt * ({weighted})"))
    return lines


def further_slope_line(request: Request, stage: int, time: str, state: str) -> str:
    """The slope of a stage; `state` is the text for one component of its state, with {} or {0} for its number."""
    slope = arguments(f"k{stage}_{i}" for i in range(request.n))
    return f"{slope} = rhs({time}, ({arguments(state.format(i) for i in range(request.n))}), params)"


def coefficient_names(request: Request) -> list[str]:
    """The names of the coefficients, in the order of `polynomial_lines`."""
    return [f"c{p}_{i}" for p in range(degree(request)) for i in range(request.n)]


def degree(request: Request) -> int:
    """The degree of the extension in theta."""
    return len(request.method.extension_weights) if request.implicit else extension.degree(request.method)


def state_inside(request: Request, i: int) -> str:
    """Component i of the state at theta, a fraction of the step, as text; by Horner's rule."""
    last = degree(request) - 1
    change = f"c{last}_{i}"
    for p in range(last - 1, -1, -1):
        change = f"(c{p}_{i} + theta * {change})"
    return f"u{i} + theta * {change}"
