"""The layout of one run of a large system by a linearly implicit method: states are arrays, and the Jacobian is a band.

The Jacobian is found by dual numbers, one direction for each colour of its columns, and eliminated without pivoting by
`odelab.linear.band_kernels`; the first solution with each matrix is checked by its residual. If the factors fail in
three attempts in a row, or in one attempt of a run with fixed steps, the kernel stops with the status SINGULAR; then
`odelab.engines.numba.large_engine` takes some steps in plain Python, with pivoting. The rest is as in
`odelab.engines.numba.large`.
"""

from odelab.engines.numba.large import array_lines, define_loop, judge_of, until_lines
from odelab.engines.numba.loop import Parts, kernel_of
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import SAI
from odelab.engines.numba.text import combination, indent, product, read_lines, remark
from odelab.engines.refusals import NotCompilable
from odelab.engines.rosenbrock import band
from odelab.kernels.attempt import FAILURES

ARGUMENTS = (
    *("remembered", "counts", "settings", "tolerance", "params_in", "u_end", "slope", "attempts", "record", "states"),
    *("increments", "vectors", "ordered", "J", "factors", "seeds", "order", "first", "entries", "places"),
)
START = ["prepared = 0", "unsolved = 0"]
MOVE = ["fresh = 0", "prepared = 0"]
VECTORS = ("k1", "k", "inner", "right", "slope_t", "error", "numbers", "derivatives")  # the rows of `vectors`

KERNELS = """
from odelab.linear import band_kernels

eliminate, substitute, solves = band_kernels.kernels({}, {})
""".strip()

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
    """(definitions, lines) of `advance`; its last arguments are the fields of a `Band`."""
    plan = band.band_for(request.rhs, request.n, request.parameters)
    if isinstance(plan, str):
        raise NotCompilable(f"`engine='compiled'` cannot compile {request.rhs.__name__}: {plan}.")
    method = request.method
    definitions = [KERNELS.format(plan.below, plan.above), JACOBIAN]
    # numba compiles `target[:] = source` for a second, with a message for arrays of different lengths.
    define_loop(definitions, "copy", ["target[i] = source[i]"])
    preparation = ["find_jacobian(t, u, params, seeds, first, entries, places, numbers, derivatives, J.ravel())"]
    if not plan.autonomous:
        preparation += ["error[:] = 0.0", "find_slope_t(t, u, params, error, numbers, slope_t)"]
    attempt = [*jacobian_lines(preparation), *stage_lines(method, plan, definitions), *failure_lines(request)]
    if request.project is not None:
        attempt.append("copy(v, project(v))")
    if request.law:
        atol = "atol[i]" if request.vector_tolerance else "atol"
        loop = [f"scaled = error[i] / ({atol} + rtol * max(abs(u[i]), abs(v[i])))", "q += scaled * scaled"]
        attempt.append(f"q = {define_loop(definitions, 'squared_ratio', loop, 'return q')} / n if sound else math.nan")
    parts = Parts(
        ARGUMENTS,
        judge_of(request),
        definitions,
        [
            *array_lines(request),
            *read_lines(VECTORS, "vectors"),
            *(f"x{j + 1} = increments[{j}]" for j in range(method.stages)),
            "copy(k1, slope)",
            *START,
        ],
        ["k1[:] = math.nan  # a component that is never set then ends the run", "rhs(t, u, params, k1)"],
        attempt,
        "q" if request.law else "v",
        [f"record[steps, {SAI}] = math.sqrt(moved / (size * dt * dt))"],
        ["u = v", *MOVE, *until_lines()],
        ["copy(u_end, u)", "copy(slope, k1)"],
    )
    return kernel_of(request, parts)


def stage_lines(method, plan: band.Band, definitions: list[str]) -> list[str]:
    """Lines that compute the new state `v`, the sum `moved` of the squares of its change, and the error."""
    a, C, m, e, times, d, gamma = method.tableau
    names = [f"x{j + 1}[i]" for j in range(method.stages)]
    lines = ["v = states[(steps + 1) % rows]", f"hg = {product(gamma, 'dt')}", "eliminate(J, hg, factors)"]
    for j in range(method.stages):
        time = f"t + {product(times[j], 'dt')}" if times[j] else "t"
        lines += remark(f"stage {j + 1}, at {time}")
        if j:
            loop = [f"inner[i] = u[i] + ({combination(a[j], names)})"]
            lines += [define_loop(definitions, f"stage_state_{j + 1}", loop), f"rhs({time}, inner, params, k)"]
        slope = "k[i]" if j else "k1[i]"
        if d[j] and not plan.autonomous:
            slope = f"({slope} + {product(d[j], 'dt')} * slope_t[i])"
        before = combination(C[j][:j], names)
        loop = [f"right[i] = {f'({before}) + ' if before else ''}hg * {slope}"]
        lines += [
            define_loop(definitions, f"right_side_{j + 1}", loop),
            f"substitute(factors, order, right, ordered, x{j + 1})",
        ]
        if not j:
            lines.append("sound = solves(J, hg, order, right, ordered)")
    loop = [f"change = {combination(m, names)}", "v[i] = u[i] + change", f"error[i] = {combination(e, names)}"]
    loop += ["moved += change * change", "size += u[i] * u[i]"]
    return [
        *lines,
        *remark("the new state"),
        f"moved, size = {define_loop(definitions, 'new_state', loop, 'return moved, size')}",
    ]


def jacobian_lines(lines: list[str]) -> list[str]:
    """Lines that compute the Jacobian, to be run where it is not known at the state."""
    return ["if prepared == 0:", *indent([*lines, "prepared = 1", "jacobians += 1"])]


def failure_lines(request: Request) -> list[str]:
    """Lines that end the run where the factors have failed too often; `sound` tells whether they solved the first
    stage."""
    return [
        "factorisations += 1",
        "unsolved = 0 if sound else unsolved + 1",
        f"if unsolved == {FAILURES if request.law else 1}:",
        "    status = SINGULAR",
        "    break",
    ]
