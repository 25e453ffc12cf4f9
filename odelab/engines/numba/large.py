"""The layout of one trajectory of any size: states are arrays, the right-hand side fills one, loops run over them.

A step's new state is written straight into its row of the record, so that keeping it costs nothing but memory; where
the record is short, its rows serve in turn. Slopes are rows of `slopes`, which change places instead of being copied.
"""

from odelab.engines.numba import law_text as laws
from odelab.engines.numba import single
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import ERROR, RHO, SAI, SIZE, TIME
from odelab.engines.numba.single import COUNTS, HISTORY, function, read, written
from odelab.engines.numba.stages import combination, indented, number, product
from odelab.stiffness.h_rho import APART, twin_stages

ARGUMENTS = (
    *("memory", "counts", "settings", "tolerance", "params_in", "u_end", "slope", "attempts"),
    *("record", "states", "slopes", "inner"),
)
TERMS = 6  # slopes in one loop: beyond, LLVM no longer proves that the arrays do not overlap


def adaptive(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance` under error control; arguments as in `odelab.engines.numba.single`."""
    method = request.method
    assert request.law is not None
    gains = laws.gains(request.law, method)
    atol = "atol = tolerance" if request.vector_tolerance else "atol = tolerance[0]"
    body = [
        *read(HISTORY, "memory"),
        *read(("t1", "rtol", "largest", "until"), "settings"),
        atol,
        *start(request),
        "for _ in range(attempts):",
        *indented(attempt_begins()),
        "    dt = propose(dt, largest, t, t1)",
        *indented(single.time_moves()),
        *indented(stages(request)),
        f"    q, sai, rho = judged({', '.join(judged_arguments(request))})",
        "    ratio = math.sqrt(q / n)",
        "    if not ratio <= 1.0:",
        "        shrink = 0.1",
        "        if ratio < math.inf:",
        f"            log_e = log2(min(ratio, 1e15)) - {number(laws.set_point(gains))}",
        f"            shrink = min(max(exp2(-log_e / {gains.order}.0), {laws.SMALLEST}), {laws.LARGEST})",
        "        dt = dt * shrink",
        "        was_rejected = 1.0",
        "        rejected += 1",
        "        continue",
        f"    log_e = log2(max(ratio, 1e-12)) - {number(laws.set_point(gains))}",
        f"    exponent = -({combination((gains.b1, gains.b2), ('log_e', 'log_e1'))}) / {gains.order}.0",
        f"    factor = min(max(exp2(min(max(exponent, -100.0), 100.0)), {laws.SMALLEST}), {laws.LARGEST})",
        "    if was_rejected != 0.0:",
        "        factor = min(factor, 1.0)",
        *indented(recorded("ratio")),
        "    last = dt",
        "    dt = dt * factor",
        "    if abs(dt) > largest:",
        "        dt = dt * (largest / abs(dt))",
        "    log_e2 = log_e1",
        "    log_e1 = log_e",
        "    was_rejected = 0.0",
        *indented(moved_on(request)),
        *finish(HISTORY),
    ]
    return judge(request), function(ARGUMENTS, body)


def fixed(request: Request) -> tuple[list[str], list[str]]:
    """`advance` by counted steps."""
    body = [
        *read(("t", "t0", "h", "counted"), "memory"),
        "t1, until = settings[0], settings[3]",
        *start(request),
        "for _ in range(attempts):",
        *indented(attempt_begins()),
        "    dt = propose(t0, h, counted, t, t1)",
        *indented(single.time_moves()),
        *indented(stages(request)),
        f"    q, sai, rho = judged({', '.join(judged_arguments(request))})",
        "    if not finite(v):",
        "        status = NOT_FINITE",
        "        break",
        "    counted += 1.0",
        *indented(recorded("math.nan")),
        *indented(moved_on(request)),
        *finish(("t", "t0", "h", "counted")),
    ]
    return [FINITE, *judge(request)], function(ARGUMENTS, body)


FINITE = """
@njit(**LOOSE)
def finite(v):
    total = 0.0
    for i in range(v.size):
        total += v[i] - v[i]
    return total == 0.0
""".strip()


def start(request: Request) -> list[str]:
    k = request.parameters
    return [
        f"params = ({''.join(f'params_in[{i}], ' for i in range(k)).rstrip()})",
        *read(COUNTS, "counts"),
        "status = ATTEMPTS_SPENT",
        "rows, n = states.shape",
        "u = states[steps % rows]",
        *(f"k{j + 1} = slopes[{j}]" for j in range(request.method.stages)),
        *(f"{name} = slopes[{request.method.stages + e}]" for e, name in enumerate(partials(request))),
        "k1[:] = slope",
    ]


def attempt_begins() -> list[str]:
    return [
        "if t == t1:",
        "    break",
        "if fresh == 0:",
        "    k1[:] = math.nan  # what is not filled is seen",
        "    rhs(t, u, params, k1)",
        "    evaluations += 1",
        "    fresh = 1",
    ]


def stages(request: Request) -> list[str]:
    method = request.method
    rows, _, _, times, _, fsal = method.tableau
    lines = ["v = states[(steps + 1) % rows]"]
    for j in range(1, method.stages):
        target = "v" if fsal and j == method.stages - 1 else "inner"
        if target == "v":
            lines.append(f"last_state({', '.join(last_state_arguments(request))})")
        else:
            lines += advance_state(rows[j], target)
        time = f"t + {product(times[j], 'dt')}" if times[j] else "t"
        lines.append(f"rhs({time}, {target}, params, k{j + 1})")
    return [*lines, f"evaluations += {method.stages - 1}"]


def advance_state(row, target: str) -> list[str]:
    """Loops for target = u + dt * combination(row), a few slopes in each."""
    terms = [(weight, f"k{j + 1}[i]") for j, weight in enumerate(row) if weight]
    lines = []
    for first in range(0, len(terms), TERMS):
        weights, names = zip(*terms[first : first + TERMS], strict=True)
        base = "u[i]" if first == 0 else f"{target}[i]"
        lines += ["for i in range(n):", f"    {target}[i] = {base} + dt * ({combination(weights, names)})"]
    return lines


def judge(request: Request) -> list[str]:
    """The last look at a step in one pass over the components, or two where the slope at the new state is needed.

    q is n times the squared error ratio; with it come the squares of SAI and h rho. Arrays are told not to overlap.
    """
    return [last_state(request), judged(request)] if request.method.fsal else [judged(request)]


def last_state(request: Request) -> str:
    """v, and the error as far as the stages before the last tell it; a component the last then leaves out is seen."""
    method = request.method
    names = [f"k{j + 1}[i]" for j in range(method.stages)]
    loop = [f"v[i] = u[i] + dt * ({combination(method.tableau.b, names)})"]
    for e, row in enumerate(estimates(request)):
        loop.append(f"partial{e}[i] = {combination(row[:-1], names)}")
    loop.append(f"k{method.stages}[i] = math.nan")
    return looped(f"last_state({', '.join(last_state_arguments(request))})", [], loop, "")


def last_state_arguments(request: Request) -> list[str]:
    method = request.method
    rows = [method.tableau.b, *(row[:-1] for row in estimates(request))]
    return ["u", "v", "dt", *partials(request), *slopes_in(rows), f"k{method.stages}"]


def judged(request: Request) -> str:
    method = request.method
    twins = twin_stages(method)
    atol = "atol[i]" if request.vector_tolerance else "atol"
    names = [f"k{j + 1}[i]" for j in range(method.stages)]
    loop = [] if method.fsal else [f"v[i] = u[i] + dt * ({combination(method.tableau.b, names)})"]
    loop += ["moved += (v[i] - u[i]) * (v[i] - u[i])", "size += u[i] * u[i]"]
    sums = ["moved", "size"]
    if request.law:
        loop.append(f"unit = dt / ({atol} + rtol * max(abs(u[i]), abs(v[i])))")
    for e, row in enumerate(estimates(request)):
        error = combination((1, row[-1]), (f"partial{e}[i]", names[-1])) if method.fsal else combination(row, names)
        loop += [f"scaled = unit * ({error})", f"error{e} += scaled * scaled"]
        sums.append(f"error{e}")
    if twins:
        difference = f"(k{twins[1] + 1}[i] - k{twins[0] + 1}[i])"
        loop += [f"stiff += {difference} * {difference}", "apart += (v[i] - inner[i]) * (v[i] - inner[i])"]
        sums += ["stiff", "apart"]
    pair = []
    if len(estimates(request)) == 2:
        pair = ["both = error0 + 0.01 * error1", "error0 = error0 * (error0 / both) if both > 0.0 else both"]
    rho = f"dt * dt * stiff / apart if apart > {number(APART**2)} * size else math.nan" if twins else "math.nan"
    q = "error0" if request.law else "0.0"
    end = [*pair, f"rho = {rho}", f"return {q}, moved / (dt * dt * size), rho"]
    return looped(f"judged({', '.join(judged_arguments(request))})", [f"{name} = 0.0" for name in sums], loop, end)


def judged_arguments(request: Request) -> list[str]:
    method = request.method
    twins = twin_stages(method)
    tolerances = ["rtol", "atol"] if request.law else []
    if not method.fsal:
        return ["u", "v", "dt", *tolerances, *slopes_in([method.tableau.b, *estimates(request)])]
    slopes = {f"k{method.stages}": None} if request.law else {}
    if twins:
        slopes |= {"inner": None, f"k{twins[0] + 1}": None, f"k{twins[1] + 1}": None}
    return ["u", "v", "dt", *tolerances, *partials(request), *slopes]


def estimates(request: Request):
    return request.method.tableau.e if request.law else ()


def partials(request: Request) -> list[str]:
    return [f"partial{e}" for e in range(len(estimates(request)))]


def slopes_in(rows) -> list[str]:
    """The slopes that at least one of the rows weighs."""
    return [f"k{j + 1}" for j in range(max(map(len, rows))) if any(j < len(row) and row[j] for row in rows)]


def looped(signature: str, before, loop, after) -> str:
    body = [*before, "for i in range(u.size):", *indented(loop), *after]
    return "\n".join(["@njit(**LOOSE)", f"def {signature}:", *indented(body)])


def recorded(error: str) -> list[str]:
    return [
        "steps += 1",
        f"record[steps, {TIME}] = t_new",
        f"record[steps, {SIZE}] = dt",
        f"record[steps, {ERROR}] = {error}",
        f"record[steps, {SAI}] = math.sqrt(sai)",
        f"record[steps, {RHO}] = math.sqrt(rho)",
    ]


def moved_on(request: Request) -> list[str]:
    lines = ["t = t_new", "u = v"]
    if request.method.fsal:
        last = request.method.stages
        lines.append(f"k1, k{last} = k{last}, k1")
    else:
        lines.append("fresh = 0")
    return [*lines, "if (t - until) * dt >= 0.0:", "    break"]


def finish(memory) -> list[str]:
    return [
        "if t == t1:",
        "    status = REACHED",
        "u_end[:] = u",
        "slope[:] = k1",
        *written(COUNTS, "counts"),
        *written(memory, "memory"),
    ]
