"""The layout of one run whose states are arrays: large systems, and right-hand sides in array form.

The text has loops over components.

A step's new state is written directly into its row of the recorded states, so that keeping it costs nothing but memory;
where states are not kept, there are two rows that are used in turn. Slopes are rows of the array `slopes`; where a
slope serves as another one later, the names of the rows are exchanged and nothing is copied.
"""

import ast

from odelab.engines.numba.loop import Parts, kernel_of, params_line
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import RHO, SAI
from odelab.engines.numba.text import combination, indent, number, product
from odelab.right_hand_side import ARRAY
from odelab.stiffness.h_rho import APART, twin_stages

ARGUMENTS = (
    *("remembered", "counts", "settings", "tolerance", "params_in", "u_end", "slope", "attempts"),
    *("record", "states", "slopes", "inner"),
)
TERMS = 6  # slopes in one loop; with more of them LLVM cannot prove any longer that the arrays do not overlap


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`."""
    method, definitions = request.method, [slopes_into_text(request)]
    attempt = [*stage_lines(request, definitions), f"q, sai, rho = {judged_call(request, definitions)}"]
    move = ["fresh = 0"] if not method.fsal else [f"k1, k{method.stages} = k{method.stages}, k1"]
    parts = Parts(
        ARGUMENTS,
        judge_of(request),
        definitions,
        [
            *array_lines(request),
            *(f"k{j + 1} = slopes[{j}]" for j in range(method.stages)),
            *(f"partial{e} = slopes[{method.stages + e}]" for e in range(len(estimates(request)))),
            "for i in range(n):",
            "    k1[i] = slope[i]",
        ],
        ["k1[:] = math.nan  # a component that is never set then ends the run", "slopes_into(t, u, params, k1)"],
        attempt,
        "q / n" if request.law else "v",
        [f"record[steps, {SAI}] = math.sqrt(sai)", f"record[steps, {RHO}] = math.sqrt(rho)"],
        ["u = v", *move, *until_lines()],
        # numba takes a second to compile `u_end[:] = u`, whose shapes it would check
        ["for i in range(n):", "    u_end[i], slope[i] = u[i], k1[i]"],
    )
    return kernel_of(request, parts)


def judge_of(request: Request) -> str:
    """The judge, as text: by the squared error ratio or, with fixed steps, by whether the state is finite."""
    if request.law:
        return f"judge_of_squares({request.law.smooth})"
    return "judge_of_state(jit_once(left_over, LOOSE))"


def array_lines(request: Request) -> list[str]:
    """Lines for the variables of a run whose states are arrays."""
    return [
        f"atol = tolerance{'' if request.vector_tolerance else '[0]'}",
        params_line(request),
        "rows, n = states.shape",
        "u = states[steps % rows]",
    ]


def until_lines() -> list[str]:
    """Lines that end the run at the first step that passes the time it is asked to stop behind."""
    return ["if (t - settings[3]) * dt >= 0.0:", "    break"]


def slopes_into_text(request: Request) -> str:
    """The definition of `slopes_into`, the right-hand side that fills a row of slopes."""
    if request.form != ARRAY:
        return "slopes_into = rhs"
    lines = ["slopes = rhs(t, u, params)", "for i in range(u.size):", "    out[i] = slopes[i]"]
    return "\n".join(["@njit(**OPTIONS)", "def slopes_into(t, u, params, out):", *indent(lines)])


def stage_lines(request: Request, definitions: list[str]) -> list[str]:
    method = request.method
    rows, _, _, times, _, fsal = method.tableau
    lines = ["v = states[(steps + 1) % rows]"]
    for j in range(1, method.stages):
        target = "v" if fsal and j == method.stages - 1 else "inner"
        lines += advance_state_lines(rows[j], target) if target == "inner" else [last_state_line(request, definitions)]
        time = f"t + {product(times[j], 'dt')}" if times[j] else "t"
        lines.append(f"slopes_into({time}, {target}, params, k{j + 1})")
    return lines


def advance_state_lines(row, target: str) -> list[str]:
    """Loops for target = u + dt * combination(row), a few slopes in each."""
    terms = [(weight, f"k{j + 1}[i]") for j, weight in enumerate(row) if weight]
    lines = []
    for first in range(0, len(terms), TERMS):
        weights, names = zip(*terms[first : first + TERMS], strict=True)
        base = "u[i]" if first == 0 else f"{target}[i]"
        lines += ["for i in range(n):", f"    {target}[i] = {base} + dt * ({combination(weights, names)})"]
    return lines


def last_state_line(request: Request, definitions: list[str]) -> str:
    """The line that computes v and the part of the error that the stages before the last make up.

    It also fills the last slope with NaN, so that a component which the right-hand side does not set is noticed.
    """
    method = request.method
    names = [f"k{j + 1}[i]" for j in range(method.stages)]
    loop = new_state_lines(names, method)
    for e, row in enumerate(estimates(request)):
        loop.append(f"partial{e}[i] = {combination(row[:-1], names)}")
    loop.append(f"k{method.stages}[i] = math.nan")
    return f"moved = {define_loop(definitions, 'last_state', loop, 'return moved')}"


def new_state_lines(names, method) -> list[str]:
    """Lines for v = u + dt S and for the square of S, which SAI needs.

    S is not computed as (v - u) / dt, because v - u has lost digits to cancellation.
    """
    mean_slope = f"mean_slope = {combination(method.tableau.b, names)}"
    return [mean_slope, "v[i] = u[i] + dt * mean_slope", "moved += mean_slope * mean_slope"]


def judged_call(request: Request, definitions: list[str]) -> str:
    """The call that finds n times the squared error ratio, SAI^2 and (h rho)^2, in one loop over the components.

    Where the last stage is evaluated at the new state, `last_state` has already gone through the components once.
    """
    method = request.method
    twins = twin_stages(method)
    atol = "atol[i]" if request.vector_tolerance else "atol"
    names = [f"k{j + 1}[i]" for j in range(method.stages)]
    loop = ["size += u[i] * u[i]"] if method.fsal else [*new_state_lines(names, method), "size += u[i] * u[i]"]
    if request.law:
        loop.append(f"unit = dt / ({atol} + rtol * max(abs(u[i]), abs(v[i])))")
    for e, row in enumerate(estimates(request)):
        error = combination((1, row[-1]), (f"partial{e}[i]", names[-1])) if method.fsal else combination(row, names)
        loop += [f"scaled = unit * ({error})", f"error{e} += scaled * scaled"]
    if twins:
        difference = f"(k{twins[1] + 1}[i] - k{twins[0] + 1}[i])"
        loop += [f"stiff += {difference} * {difference}", "apart += (v[i] - inner[i]) * (v[i] - inner[i])"]
    pair = []
    if len(estimates(request)) == 2:
        pair = ["both = error0 + 0.01 * error1", "error0 = error0 * (error0 / both) if both > 0.0 else both"]
    rho = f"dt * dt * stiff / apart if apart > {number(APART**2)} * size else math.nan" if twins else "math.nan"
    q = "error0" if request.law else "0.0"
    return define_loop(definitions, "judged", loop, *pair, f"rho = {rho}", f"return {q}, moved / size, rho")


def estimates(request: Request):
    return request.method.tableau.e if request.law else ()


def define_loop(definitions: list[str], name: str, loop: list[str], *after: str) -> str:
    """Add the definition of a function with one loop over components, so that it becomes vector code of its own.

    Its arguments are the names that its lines use and do not set, in this order; sums begin at zero. Returns its call.
    """
    found = ast.walk(ast.parse("\n".join([*loop, *after])))
    names = sorted((one for one in found if isinstance(one, ast.Name)), key=lambda one: (one.lineno, one.col_offset))
    made = {one.id for one in names if isinstance(one.ctx, ast.Store)}
    arguments = dict.fromkeys(one.id for one in names if one.id not in {*made, "i", "abs", "max", "math"})
    sums = dict.fromkeys(line.split(" += ")[0] for line in loop if " += " in line)
    call = f"{name}({', '.join(arguments)})"
    array = next(one for one in arguments if f"{one}[i]" in loop[0])
    body = [*(f"{one} = 0.0" for one in sums), f"for i in range({array}.size):", *indent(loop), *after]
    definitions.append("\n".join(["@njit(**LOOSE)", f"def {call}:", *indent(body)]))
    return call
