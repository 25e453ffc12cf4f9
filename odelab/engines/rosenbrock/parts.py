"""The layout that repeats the parts of a linearly implicit attempt, so that each of them can be timed alone.

The parts are those of the kernels of `odelab.engines.rosenbrock.one_run` and `banded_run`: the same lines, one after
the other, and none of the rest of an attempt. A repetition waits for the result of the one before, as in a run: its
numbers are changed by TINY times a sum of the results, which changes no result by more than its rounding error.
"""

from odelab.engines.numba import single
from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import components, indent, read_lines, slope_line, total
from odelab.engines.refusals import NotCompilable
from odelab.engines.rosenbrock import attempt, band, banded_run
from odelab.engines.rosenbrock import elimination as lu
from odelab.right_hand_side import IN_PLACE

NOTHING, EVALUATION, SOLVE, FACTOR, JACOBIAN = range(5)  # each of the last three with those before it
TINY = 1e-30
CHECKED = "found = found if sound else 0.0"
ARGUMENTS = ("part", "repeats", "numbers", "params_in", "start")
VECTORS = ("slope", "right", "solution", "state", "slope_t", "values", "derivatives", "zeros")  # rows of `vectors`
BANDED = ("vectors", "ordered", "J", "factors", "seeds", "order", "first", "entries", "places")


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`, which repeats one part and those before it.

    In the text `numbers` is (t, h gamma); what `advance` returns depends on every result.
    """
    return (banded if request.form == IN_PLACE else small)(request)


def small(request: Request) -> tuple[list[str], list[str]]:
    """With a variable for each component."""
    plan = attempt.plan_for(request)
    n, rows = plan.n, plan.pattern.rows
    evaluate = [slope_line(n, 1, "t", "u", ""), f"found = {total(components('k1_', n, ''))}"]
    jacobian = attempt.derivative_lines(plan)
    factor = [*lu.matrix_lines(rows), *lu.factor_lines(rows, plan.elimination)]
    solve = lu.solve_lines(plan.elimination, "b", "x")
    check = [*lu.residual_lines(rows, "b", "x"), CHECKED]
    # Sums of the derivatives by time, which no matrix holds, keep them from being left out.
    late = [] if plan.pattern.autonomous or not jacobian else [f"late = {total(components('s', n, ''))}"]
    begin = [
        single.params_line(request),
        *read_lines(components("u", n, ""), "start"),
        *(f"b{i} = 1.0" for i in range(n)),
        *(f"{name} = 0.0" for name in sorted(names_of([*factor, *solve]) | {*attempt.derivative_names(plan), "late"})),
    ]
    feed = [f"u{i} = start[{i}] + change" for i in range(n)] + [f"b{i} = 1.0 + change" for i in range(n)]
    sums = (f"found = {total(components('u', n, ''))}", f"found = {total(components('x', n, ''))} + late")
    parts = (evaluate, [*jacobian, *late], factor, solve, check, sums, feed)
    return [attempt.derivative_text(plan)], function(ARGUMENTS, begin, *parts)


def banded(request: Request) -> tuple[list[str], list[str]]:
    """With arrays, and the Jacobian as a band."""
    plan = band.band_for(request.rhs, request.n, request.parameters)
    if isinstance(plan, str):
        raise NotCompilable(f"`engine='compiled'` cannot compile {request.rhs.__name__}: {plan}.")
    jacobian = ["find_jacobian(t, state, params, seeds, first, entries, places, values, derivatives, J.ravel())"]
    if not plan.autonomous:
        jacobian.append("find_slope_t(t, state, params, zeros, values, slope_t)")
    solve = ["substitute(factors, order, right, ordered, solution)"]
    check = ["sound = solves(J, hg, order, right, ordered)", CHECKED]
    begin = [
        single.params_line(request),
        *read_lines(VECTORS, "vectors"),
        "for i in range(start.size):",
        "    state[i], right[i], solution[i], zeros[i] = start[i], 1.0, 0.0, 0.0",
    ]
    feed = ["state[0] = start[0] + change", "right[0] = 1.0 + change"]
    evaluate = ["rhs(t, state, params, slope)", "found = slope[0]"]
    sums = ("found = state[0]", "found = solution[0] + slope_t[0]")
    definitions = [banded_run.KERNELS.format(plan.below, plan.above), banded_run.JACOBIAN]
    parts = (evaluate, jacobian, ["eliminate(J, hg, factors)"], solve, check, sums, feed)
    return definitions, function((*ARGUMENTS, *BANDED), begin, *parts)


def function(arguments, begin, evaluate, jacobian, factor, solve, check, sums, feed) -> list[str]:
    """The text of `advance`; its first repetition runs all parts, so that every later one finds what it needs."""
    nothing, solved = sums
    body = [
        "t, hg, found, sound = numbers[0], numbers[1], 0.0, True",
        *begin,
        "for repeat in range(repeats + 1):",
        f"    now = part if repeat else {JACOBIAN}",
        f"    if now >= {JACOBIAN}:",
        *indent(jacobian or ["pass"], 2),
        f"    if now >= {FACTOR}:",
        *indent(factor, 2),
        f"    if now >= {SOLVE}:",
        *indent([*solve, solved], 2),
        f"    if now >= {FACTOR}:",
        *indent(check, 2),
        f"    if now == {EVALUATION}:",
        *indent(evaluate, 2),
        f"    if now == {NOTHING}:",
        f"        {nothing}",
        f"    change = {TINY!r} * found",
        *indent(feed),
        "    t, hg = numbers[0] + change, numbers[1] + change",
        "return found",
    ]
    return [f"def advance({', '.join(arguments)}):", *indent(body)]


def names_of(lines: list[str]) -> set[str]:
    """The names that the lines assign to."""
    return {line.split(" = ")[0] for line in lines}
