"""The layout of one run of a large system by a linearly implicit method: states are arrays, and the Jacobian is a band.

The Jacobian is found by dual numbers, one direction for each colour of its columns, and eliminated without pivoting by
`odelab.linear.band_kernels`; the first solution with each matrix is checked by its residual. Failing factors are
treated as in `odelab.engines.rosenbrock.one_run`. The rest is as in `odelab.engines.numba.large`.
"""

from odelab.engines.compiled import NotCompilable
from odelab.engines.numba import single
from odelab.engines.numba.large import loop_definition
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import SAI
from odelab.engines.numba.single import function, read_lines, write_lines
from odelab.engines.numba.stages import combination, indent, product, remark
from odelab.engines.rosenbrock import band
from odelab.engines.rosenbrock.one_run import COUNTS, FAILURES

ARGUMENTS = (
    *("remembered", "counts", "settings", "tolerance", "params_in", "u_end", "slope", "attempts", "record", "states"),
    *("increments", "vectors", "ordered", "J", "factors", "seeds", "order", "first", "entries", "places"),
)
VECTORS = ("k1", "k", "inner", "right", "slope_t", "error", "numbers", "derivatives")  # the rows of `vectors`

JACOBIAN = """
from odelab.engines.rosenbrock import dual_arrays

dual_state, dual_slopes, moving = dual_arrays.register()


@njit(**OPTIONS)
def find_jacobian(t, u, params, seeds, first, entries, places, numbers, derivatives, J):
    for c in range(len(seeds)):
        dual_rhs(moving(t, 0.0), dual_state(u, seeds[c]), params, dual_slopes(numbers, derivatives))
        for e in range(first[c], first[c + 1]):
            J[places[e]] = derivatives[entries[e]]


@njit(**OPTIONS)
def find_slope_t(t, u, params, zeros, numbers, slope_t):
    dual_rhs(moving(t, 1.0), dual_state(u, zeros), params, dual_slopes(numbers, slope_t))
""".strip()


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`; arguments as in `odelab.engines.numba.large`, and the fields of a `Band`."""
    plan = band.band_for(request.rhs, request.n, request.parameters)
    if isinstance(plan, str):
        raise NotCompilable(f"`engine='compiled'` cannot compile {request.rhs.__name__}: {plan}.")
    method = request.method
    attempt = [*preparation(plan), *stages(method, plan), *judgement(request)]
    slope = "k1[:] = math.nan  # a component that is never set then ends the run\nrhs(t, u, params, k1)"
    body = [
        "until = settings[3]",
        f"atol = tolerance{'' if request.vector_tolerance else '[0]'}",
        f"params = ({''.join(f'params_in[{i}], ' for i in range(request.parameters)).rstrip()})",
        *read_lines(COUNTS, "counts"),
        "status = ATTEMPTS_SPENT",
        "prepared = 0",
        "unsolved = 0",
        "rows, n = states.shape",
        "u = states[steps % rows]",
        *read_lines(VECTORS, "vectors"),
        *(f"x{j + 1} = increments[{j}]" for j in range(method.stages)),
        "copy(k1, slope)",
        *single.loop(
            request,
            slope,
            attempt,
            [f"record[steps, {SAI}] = math.sqrt(moved / (size * dt * dt))"],
            ["u = v", "fresh = 0", "prepared = 0", "if (t - until) * dt >= 0.0:", "    break"],
        ),
        "copy(u_end, u)",
        "copy(slope, k1)",
        *write_lines(COUNTS, "counts"),
    ]
    kernels = f"eliminate, substitute, solves = band_kernels.kernels({plan.below}, {plan.above})"
    definitions = [
        single.control(request, judge(request)),
        f"from odelab.linear import band_kernels\n\n{kernels}",
        JACOBIAN,
        *loops(request, plan),
    ]
    return definitions, function(ARGUMENTS, request, body)


def judge(request: Request) -> str:
    if request.law:
        return f"judge_of_squares({request.law.smooth})"
    return "control.accept_by(jit(left_over, options=LOOSE))"


def preparation(plan: band.Band) -> list[str]:
    """The Jacobian and the derivative by time, where they are not known at this state."""
    lines = ["find_jacobian(t, u, params, seeds, first, entries, places, numbers, derivatives, J.ravel())"]
    if not plan.autonomous:
        lines += ["error[:] = 0.0", "find_slope_t(t, u, params, error, numbers, slope_t)"]
    return ["if prepared == 0:", *indent([*lines, "prepared = 1", "jacobians += 1"])]


def stages(method, plan: band.Band) -> list[str]:
    """Lines that compute the new state `v`, the sum `moved` of the squares of its change, and the error."""
    _, _, _, _, times, _, gamma, filtered = method.tableau
    lines = [
        "v = states[(steps + 1) % rows]",
        f"hg = {product(gamma, 'dt')}",
        "eliminate(J, hg, factors)",
        *remark("stage 1"),
        f"right_side_1({signature(right_names(0))})",
        "substitute(factors, order, right, ordered, x1)",
        "sound = solves(J, hg, order, right, ordered)",
    ]
    for j in range(1, method.stages):
        time = f"t + {product(times[j], 'dt')}" if times[j] else "t"
        lines += [
            *remark(f"stage {j + 1}, at {time}"),
            f"stage_state_{j + 1}({signature(state_names(j))})",
            f"rhs({time}, inner, params, k)",
            f"right_side_{j + 1}({signature(right_names(j))})",
            f"substitute(factors, order, right, ordered, x{j + 1})",
        ]
    lines += [*remark("the new state"), f"moved, size = new_state({signature(end_names(method))})"]
    if filtered and method.embedded:
        lines += ["copy(right, error)", "substitute(factors, order, right, ordered, error)"]
    return [*lines, f"evaluations += {method.stages - 1}", "factorisations += 1"]


def judgement(request: Request) -> list[str]:
    lines = [
        "unsolved = 0 if sound else unsolved + 1",
        f"if unsolved == {FAILURES if request.law else 1}:",
        "    status = SINGULAR",
        "    break",
    ]
    if request.project is not None:
        lines.append("copy(v, project(v))")
    if not request.law:
        return [*lines, "accept, memory = judge(memory, dt, 0.0, 0.0, v)"]
    return [
        *lines,
        "q = squared_ratio(u, v, error, rtol, atol) / n if sound else math.nan",
        "accept, memory = judge(memory, dt, q, 0.0, 0.0)",
    ]


def signature(names) -> str:
    return ", ".join(names)


def increments(count: int) -> list[str]:
    return [f"x{j + 1}" for j in range(count)]


def right_names(stage: int) -> list[str]:
    return ["right", "k" if stage else "k1", "slope_t", "hg", "dt", *increments(stage)]


def state_names(stage: int) -> list[str]:
    return ["inner", "u", *increments(stage)]


def end_names(method) -> list[str]:
    return ["v", "error", "u", *increments(method.stages)]


def loops(request: Request, plan: band.Band) -> list[str]:
    """The definitions of the loops over the components: a function for each, so that they become vector code."""
    method = request.method
    a, C, m, e, _, d, _, _ = method.tableau
    # numba compiles `target[:] = source` for a second, with a message for arrays of different lengths.
    found = [loop_definition("copy(target, source)", [], ["target[i] = source[i]"], [], "target")]
    for j in range(method.stages):
        if j:
            line = f"inner[i] = u[i] + ({combination(a[j], entries_of(j))})"
            found.append(loop_definition(f"stage_state_{j + 1}({signature(state_names(j))})", [], [line], []))
        slope = f"{'k' if j else 'k1'}[i]"
        if d[j] and not plan.autonomous:
            slope = f"({slope} + {product(d[j], 'dt')} * slope_t[i])"
        before = combination(C[j][:j], entries_of(j))
        line = f"right[i] = {f'({before}) + ' if before else ''}hg * {slope}"
        found.append(loop_definition(f"right_side_{j + 1}({signature(right_names(j))})", [], [line], [], "right"))
    names = entries_of(method.stages)
    loop = [f"change = {combination(m, names)}", "v[i] = u[i] + change", f"error[i] = {combination(e, names)}"]
    loop += ["moved += change * change", "size += u[i] * u[i]"]
    found.append(
        loop_definition(
            f"new_state({signature(end_names(method))})", ["moved, size = 0.0, 0.0"], loop, ["return moved, size"]
        )
    )
    if request.law:
        atol = "atol[i]" if request.vector_tolerance else "atol"
        loop = [f"scaled = error[i] / ({atol} + rtol * max(abs(u[i]), abs(v[i])))", "q += scaled * scaled"]
        found.append(loop_definition("squared_ratio(u, v, error, rtol, atol)", ["q = 0.0"], loop, ["return q"]))
    return found


def entries_of(count: int) -> list[str]:
    return [f"{name}[i]" for name in increments(count)]
