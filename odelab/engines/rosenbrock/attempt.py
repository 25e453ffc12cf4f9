"""One attempt of a linearly implicit step as source text, with a variable for each component.

Single runs and lanes use it. Names in the text are those of `odelab.engines.numba.stages`; in addition, `j0_1` is the
derivative of component 0 with respect to u1, `s0` its derivative with respect to time, and `x3_1` the increment of
stage 3 in component 1. M = I - h gamma J is factored once, and every stage solves with these factors.
"""

from typing import NamedTuple

from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import (
    arguments,
    combination,
    components,
    indent,
    product,
    remark,
    slope_line,
    squares,
    total,
)
from odelab.engines.rosenbrock import elimination as lu
from odelab.engines.rosenbrock.pattern import Pattern, pattern_of


class Plan(NamedTuple):
    """What the text of an attempt depends on, besides the method.

    n              the number of components
    pattern        on which components each component of the right-hand side depends
    elimination    the order in which the components are eliminated
    """

    n: int
    pattern: Pattern
    elimination: lu.Elimination


def plan_for(request: Request) -> Plan:
    pattern = pattern_of(request.rhs, request.n, request.parameters)
    return Plan(request.n, pattern, lu.elimination(pattern.rows))


def derivative_names(plan: Plan, tag: str = "") -> list[str]:
    """The entries of the Jacobian that need not be zero, and the derivatives by time where there are any."""
    names = [lu.entry_name("j", i, j, tag) for i, j in plan.pattern.entries]
    return names if plan.pattern.autonomous else [*names, *components("s", plan.n, tag)]


def derivative_text(plan: Plan) -> str:
    """The definition of `derivatives`, which calls the right-hand side with dual numbers.

    In the text `no_other` is 0.0 if a component depends only on the variables in its row of the pattern, else NaN. It
    is added to every entry, so that a wrong pattern cannot give a wrong Jacobian.
    """
    n, rows = plan.n, plan.pattern.rows
    time, clock = ("t", "") if plan.pattern.autonomous else (f"variable(t, {n})", f" {n}")
    found = [f"derivative(row{i}, {j})" for i, j in plan.pattern.entries]
    found += [] if plan.pattern.autonomous else [f"derivative(row{i}, {n})" for i in range(n)]
    others = (f'no_other(row{i}, "{" ".join(map(str, row))}{clock}")' for i, row in enumerate(rows))
    body = [
        f"state = ({arguments(f'variable(u{i}, {i})' for i in range(n))})",
        f"{arguments(f'row{i}' for i in range(n))} = duals.rows_of(dual_rhs, {time}, state, params)",
        f"other = {total(others)}",
        f"return ({arguments(f'{entry} + other' for entry in found)})",
    ]
    return "\n".join(
        [
            "from odelab.engines.rosenbrock import dual_functions, duals",
            "",
            "dual_functions.register()",
            "variable, derivative, no_other = duals.variable(), duals.derivative(), duals.no_other()",
            "",
            "",
            '@njit(**{**OPTIONS, "forceinline": True})',
            f"def derivatives(t, {', '.join(components('u', n, ''))}, params):",
            *indent(body),
        ]
    )


def derivative_lines(plan: Plan, tag: str = "") -> list[str]:
    """The line that computes the Jacobian at (t, u) and the derivative with respect to time."""
    names = derivative_names(plan, tag)
    if not names:
        return []
    state = ", ".join(components("u", plan.n, tag))
    return [f"{arguments(names)} = derivatives(t{tag}, {state}, params{tag})"]


def stage_lines(method, plan: Plan, tag: str = "") -> list[str]:
    """Lines that compute the new state `v` from slope and Jacobian, with the change and the estimate of its error."""
    a, C, m, e, times, d, gamma = method.tableau
    n, rows = plan.n, plan.pattern.rows
    lines = [
        *remark("I - h gamma J and its factors", tag),
        f"hg{tag} = {product(gamma, f'dt{tag}')}",
        *lu.matrix_lines(rows, tag),
        *lu.factor_lines(rows, plan.elimination, tag),
        *remark("stage 1", tag),
        *right_side_lines(plan, C[0], d[0], 0, tag),
        *lu.solve_lines(plan.elimination, "b", "x1_", tag),
        *remark("did the factors solve it?", tag),
        *lu.residual_lines(rows, "b", "x1_", tag),
    ]
    for j in range(1, method.stages):
        time = f"t{tag} + {product(times[j], f'dt{tag}')}" if times[j] else f"t{tag}"
        lines += remark(f"stage {j + 1}, at {time.replace(tag, '') if tag else time}", tag)
        lines += moved_lines(a[j], a[j - 1], j, plan, tag)
        lines += [f"g{i}{tag} = u{i}{tag} + moved{i}{tag}" for i in range(n)]
        lines.append(slope_line(n, j + 1, time, "g", tag))
        lines += right_side_lines(plan, C[j], d[j], j, tag)
        lines += lu.solve_lines(plan.elimination, "b", f"x{j + 1}_", tag)
    lines += [*remark("the new state", tag), *moved_lines(m, a[-1], method.stages, plan, tag)]
    lines += [f"v{i}{tag} = u{i}{tag} + moved{i}{tag}" for i in range(n)]
    if method.embedded:
        lines += [f"error{i}{tag} = {combination(e, increment_names(len(e), i, tag))}" for i in range(n)]
    return lines


def increment_names(count: int, component: int, tag: str) -> list[str]:
    return [f"x{j + 1}_{component}{tag}" for j in range(count)]


def moved_lines(row, before, count: int, plan: Plan, tag: str) -> list[str]:
    """Lines for moved_i, the weighted sum of the first `count` increments.

    Where the row is that of the stage before with a one behind it, this takes one addition to the sum before.
    """
    if count > 1 and row[count - 1] == 1.0 and tuple(row[: count - 1]) == tuple(before[: count - 1]):
        return [f"moved{i}{tag} = moved{i}{tag} + x{count}_{i}{tag}" for i in range(plan.n)]
    return [f"moved{i}{tag} = {combination(row[:count], increment_names(count, i, tag))}" for i in range(plan.n)]


def right_side_lines(plan: Plan, row, by_time: float, stage: int, tag: str) -> list[str]:
    """Lines for the right side of a stage: b_i = h gamma (f + d h f_t) + the weighted sum of the increments before."""
    lines = []
    in_time = by_time and not plan.pattern.autonomous
    if in_time:
        lines.append(f"w{tag} = {product(by_time, f'dt{tag}')}")
    for i in range(plan.n):
        slope = f"k{stage + 1}_{i}{tag}"
        slope = f"({slope} + w{tag} * s{i}{tag})" if in_time else slope
        before = combination(row[:stage], increment_names(stage, i, tag))
        lines.append(f"b{i}{tag} = {f'({before}) + ' if before else ''}hg{tag} * {slope}")
    return lines


def error_ratio_lines(plan: Plan, tag: str, vector_tolerance: bool) -> list[str]:
    """q = n times the square of the error ratio; NaN where the factors did not solve the first stage."""
    lines = remark("the error over its tolerance", tag)
    for i in range(plan.n):
        atol = f"atol{i}" if vector_tolerance else "atol"
        size = f"max(abs(u{i}{tag}), abs(v{i}{tag}))"
        lines.append(f"d{i}{tag} = error{i}{tag} / ({atol} + rtol * {size})")
    return [
        *lines,
        f"q{tag} = {squares(components('d', plan.n, tag))}",
        f"q{tag} = q{tag} if sound{tag} else math.nan",
    ]


def sai_lines(plan: Plan, tag: str = "") -> list[str]:
    """SAI^2 = ||S||^2 / ||u||^2, with S the change over the step size."""
    changes, state = (squares(components(name, plan.n, tag)) for name in ("moved", "u"))
    return [f"sai{tag} = ({changes}) / (dt{tag} * dt{tag} * ({state}))"]
