"""One attempt of a step as source text, with a variable for each component, for kernels of small systems.

Names in the text: `u0`, `u1`, ... are the state, `k1_0`, `k1_1`, ... its slope, `k3_1` is the slope of stage 3 in
component 1, and `v0`, `v1`, ... are the new state. Lanes append a `tag` to every name, so that two attempts can be
interleaved, and their text has as few operations as possible. In a single run every operation waits for the result of
the one before. Its text therefore adds the term that is computed last at the end: u + dt (a1 k1 + a2 k2 + a3 k3) is
written as (u + dt (a1 k1 + a2 k2)) + (dt a3) k3.
"""

from odelab.stiffness.h_rho import APART, twin_stages


def number(value) -> str:
    """A literal that reads back to the same double."""
    return repr(float(value))


def product(weight, name) -> str:
    return name if weight == 1 else f"{number(weight)} * {name}"


def combination(weights, names) -> str:
    """A weighted sum as text, `0.3 * k1 - 0.9 * k2`.

    Terms of weight zero are left out, a weight of one is not written; without any term the text is empty.
    """
    text = ""
    for weight, name in zip(weights, names, strict=False):
        if weight == 0:
            continue
        sign = "-" if weight < 0 else "+"
        term = product(abs(weight), name)
        text = (f"-{term}" if sign == "-" else term) if not text else f"{text} {sign} {term}"
    return text


def last_weight(weights) -> int:
    """The place of the last weight that is not zero."""
    return max(j for j, weight in enumerate(weights) if weight != 0)


def total(terms) -> str:
    """A sum as text, added in pairs, so that few additions have to wait for one another."""
    terms = list(terms)
    if len(terms) == 1:
        return terms[0]
    while len(terms) > 1:
        pairs = [f"({a} + {b})" for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
    return terms[0][1:-1]


def arguments(names) -> str:
    """The names with a comma behind each, `a, b,`: in parentheses they are a tuple, also where there is only one."""
    return "".join(f"{name}, " for name in names).rstrip()


def remark(text: str, tag: str = "") -> list[str]:
    """A comment line; where two groups of lanes are interleaved, only the first group gets it."""
    return [f"# {text}" if tag in ("", "_a") else ""]


def indent(lines, levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]


def slope_name(stage: int, component: int, tag: str) -> str:
    return f"k{stage}_{component}{tag}"


def slope_names(count: int, component: int, tag: str) -> list[str]:
    return [slope_name(j + 1, component, tag) for j in range(count)]


def read_lines(names, array: str) -> list[str]:
    return [f"{name} = {array}[{i}]" for i, name in enumerate(names)]


def write_lines(names, array: str) -> list[str]:
    return [f"{array}[{i}] = {name}" for i, name in enumerate(names)]


def tolerance_names(request) -> list[str]:
    """The names of the absolute tolerances: one, or one for each component."""
    return components("atol", request.n, "") if request.vector_tolerance else ["atol"]


def components(name: str, n: int, tag: str) -> list[str]:
    return [f"{name}{i}{tag}" for i in range(n)]


def slope_line(n: int, stage: int, time: str, state: str, tag: str) -> str:
    """k{stage} = rhs(time, state, params)"""
    answers = arguments(slope_name(stage, i, tag) for i in range(n))
    return f"{answers} = rhs({time}, ({arguments(components(state, n, tag))}), params{tag})"


def advance_state_lines(row, target: str, n: int, tag: str) -> list[str]:
    """target_i = u_i + dt * combination(row) for every component."""
    if tag:
        return [f"{target}{i}{tag} = {shortest_sum(row, i, tag)}" for i in range(n)]
    weight = row[last_weight(row)]
    return [f"w = {product(weight, 'dt')}", *(f"{target}{i} = {latest_slope_last(row, i)}" for i in range(n))]


def shortest_sum(row, component: int, tag: str) -> str:
    """u + dt * (weighted slopes), the form with the fewest operations."""
    weighted = combination(row, slope_names(len(row), component, tag))
    return f"u{component}{tag} + dt{tag} * ({weighted})"


def latest_slope_last(row, component: int) -> str:
    """The same value in the form that waits least for the last slope, which is added at the end.

    The name `w` in the text is dt times the weight of the last slope.
    """
    last = last_weight(row)
    names = slope_names(last + 1, component, "")
    head = combination(row[:last], names)
    before = f"(u{component} + dt * ({head}))" if head else f"u{component}"
    return f"{before} + w * {names[last]}"


def stage_lines(method, n: int, tag: str = "") -> list[str]:
    """Lines for stages 2, 3, ... and for the new state."""
    rows, b, _, times, _, fsal = method.tableau
    lines: list[str] = []
    for j in range(1, method.stages):
        state = "v" if fsal and j == method.stages - 1 else stage_state(method, j)
        time = f"t{tag} + {product(times[j], f'dt{tag}')}" if times[j] else f"t{tag}"
        lines += remark(f"stage {j + 1}, at {time.replace(tag, '') if tag else time}", tag)
        lines += advance_state_lines(rows[j], state, n, tag)
        lines.append(slope_line(n, j + 1, time, state, tag))
    if not fsal:
        lines += [*remark("the new state", tag), *advance_state_lines(b, "v", n, tag)]
    return lines


def stage_state(method, j: int) -> str:
    """The name of stage j's state: "twin" where the estimate of h rho needs it later, else "g", which is reused."""
    twins = twin_stages(method)
    return "g" if twins is None or j != twins[0] else "twin"


def error_ratio_lines(method, n: int, tag: str, vector_tolerance: bool) -> list[str]:
    """q = n times the square of the error ratio: the sum of squares of the error over its tolerance."""
    lines = remark("the error over its tolerance", tag)
    estimates = method.tableau.e
    for i in range(n):
        atol = f"atol{i}" if vector_tolerance else "atol"
        lines.append(f"unit{i}{tag} = dt{tag} / ({atol} + rtol * max(abs(u{i}{tag}), abs(v{i}{tag})))")
        for e, row in enumerate(estimates):
            lines.append(f"d{e}_{i}{tag} = {scaled_error(row, i, tag)}")
    sums = [total(f"d{e}_{i}{tag} * d{e}_{i}{tag}" for i in range(n)) for e in range(len(estimates))]
    if len(sums) == 1:
        return [*lines, f"q{tag} = {sums[0]}"]
    return [  # a pair: first^2 / sqrt(first^2 + (second/10)^2), squared
        *lines,
        f"first{tag} = {sums[0]}",
        f"both{tag} = first{tag} + 0.01 * ({sums[1]})",
        f"q{tag} = first{tag} * (first{tag} / both{tag}) if both{tag} > 0.0 else both{tag}",
    ]


def scaled_error(row, component: int, tag: str) -> str:
    """The error in one component over its tolerance: few operations in lanes, a short chain of operations elsewhere."""
    unit, names = f"unit{component}{tag}", slope_names(len(row), component, tag)
    last = last_weight(row)
    head = combination(row[:last], names)
    if tag or not head:
        return f"{unit} * ({combination(row, names)})"
    return f"{unit} * ({head}) + ({product(row[last], unit)}) * {names[last]}"


def finite_check(n: int, tag: str) -> str:
    """Zero where the new state is finite, NaN where it is not."""
    return total(f"(v{i}{tag} - v{i}{tag})" for i in range(n))


def mean_slope_lines(method, n: int, tag: str = "") -> list[str]:
    """S_i = sum_j b_j k_j"""
    b = method.tableau.b
    return [f"slope{i}{tag} = {combination(b, slope_names(method.stages, i, tag))}" for i in range(n)]


def squares(names) -> str:
    return total(f"{name} * {name}" for name in names)


def sai_lines(method, n: int, tag: str = "") -> list[str]:
    """SAI^2 = ||S||^2 / ||u||^2"""
    return [
        *mean_slope_lines(method, n, tag),
        f"sai{tag} = ({squares(components('slope', n, tag))}) / ({squares(components('u', n, tag))})",
    ]


def h_rho_lines(method, n: int, tag: str = "") -> list[str]:
    """(h rho)^2 by Hairer and Wanner, from the two stages at the new time.

    NaN where the states of these stages lie too close together.
    """
    twins = twin_stages(method)
    if twins is None:
        return []
    first, last = twins
    stiff = [f"({slope_name(last + 1, i, tag)} - {slope_name(first + 1, i, tag)})" for i in range(n)]
    apart = [f"(v{i}{tag} - twin{i}{tag})" for i in range(n)]
    return [
        f"apart{tag} = {squares(apart)}",
        f"nearest{tag} = {number(APART**2)} * ({squares(components('u', n, tag))})",
        f"rho{tag} = dt{tag} * dt{tag} * ({squares(stiff)}) / apart{tag} if apart{tag} > nearest{tag} else math.nan",
    ]
