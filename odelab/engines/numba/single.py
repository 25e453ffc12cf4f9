"""The layout of one trajectory: components unrolled into numbers, accepted steps recorded into arrays."""

from odelab.engines import Status
from odelab.engines.numba import law_text as laws
from odelab.engines.numba import stages
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import ERROR, RHO, SAI, SIZE, STATE, TIME
from odelab.engines.numba.stages import arguments, components, indented
from odelab.stiffness.h_rho import twin_stages

ARGUMENTS = ("memory", "counts", "settings", "tolerance", "params_in", "u", "slope", "attempts", "record")
CODES = "\n".join(f"{status.name} = {status.value}" for status in Status)
COUNTS = ("status", "fresh", "steps", "rejected", "evaluations")
HISTORY = ("t", "dt", "last", "log_e1", "log_e2", "log_r1", "was_rejected", "ratio")
EXACT = ("earlier", "q_last")  # log_e1 as the kernel has it, to go on bit for bit; NaN where it only has the history


def adaptive(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance` under error control.

    memory = t, the history of `odelab.control.error_control` and EXACT; settings = (t1, rtol, largest step). `memory`,
    `counts`, `u` and `slope` are updated in place; the accepted steps are added behind those in `counts`.
    """
    method, n = request.method, request.n
    assert request.law is not None
    gains = laws.gains(request.law, method)
    atol = ["atol = tolerance[0]"]
    if request.vector_tolerance:
        atol = [f"atol{i} = tolerance[{i}]" for i in range(n)]
    body = [
        *read((*HISTORY, *EXACT), "memory"),
        *read(("t1", "rtol", "largest"), "settings"),
        *atol,
        *start(n, request.parameters),
        "if not earlier > 0.0:",
        f"    {laws.earlier_from_history(gains)}",
        "q_before = q_last",
        "first = steps",
        "for _ in range(attempts):",
        *indented(attempt_begins(n)),
        "    dt = propose(dt, largest, t, t1)",
        *indented(time_moves()),
        *indented(stages.stages(method, n)),
        f"    evaluations += {method.stages - 1}",
        *indented(stages.scaled_errors(method, n, "", request.vector_tolerance)),
        f"    if not q <= {n}.0:",
        *indented(laws.rejected(gains, n), 2),
        "        was_rejected = 1.0",
        "        rejected += 1",
        "        continue",
        *indented(laws.accepted(gains, n)),
        *indented(recorded(method, n)),
        f"    record[steps, {ERROR}] = math.sqrt(q * {1.0 / n!r})",
        "    last = dt",
        "    dt = dt_next",
        "    was_rejected = 0.0",
        "    q_before = q_last",
        "    q_last = q",
        *indented(moved_on(method, n)),
        "if t == t1:",
        "    status = REACHED",
        *finish(n),
        "if steps > first:",
        f"    ratio = math.sqrt(q_last * {1.0 / n!r})",
        "    log_e2 = log_e1",
        "    if steps > first + 1:",
        f"        log_e2 = log2(max(math.sqrt(q_before * {1.0 / n!r}), 1e-12)) - {laws.set_point(gains)!r}",
        f"    log_e1 = log2(max(ratio, 1e-12)) - {laws.set_point(gains)!r}",
        *written((*HISTORY, *EXACT), "memory"),
    ]
    return laws.tables(gains), function(ARGUMENTS, body)


def fixed(request: Request) -> tuple[list[str], list[str]]:
    """`advance` by counted steps; memory = t and (t0, h, n) as `odelab.control.propose_counted` has them."""
    method, n = request.method, request.n
    body = [
        *read(("t", "t0", "h", "counted"), "memory"),
        "t1 = settings[0]",
        *start(n, request.parameters),
        "for _ in range(attempts):",
        *indented(attempt_begins(n)),
        "    dt = propose(t0, h, counted, t, t1)",
        *indented(time_moves()),
        *indented(stages.stages(method, n)),
        f"    evaluations += {method.stages - 1}",
        f"    if {stages.finite_check(n, '')} != 0.0:",
        "        status = NOT_FINITE",
        "        break",
        "    counted += 1.0",
        *indented(recorded(method, n)),
        f"    record[steps, {ERROR}] = math.nan",
        *indented(moved_on(method, n)),
        "if t == t1:",
        "    status = REACHED",
        *finish(n),
        *written(("t", "t0", "h", "counted"), "memory"),
    ]
    return [], function(ARGUMENTS, body)


def function(names, body: list[str]) -> list[str]:
    return [f"def advance({', '.join(names)}):", *indented(body)]


def read(names, array: str) -> list[str]:
    return [f"{name} = {array}[{i}]" for i, name in enumerate(names)]


def written(names, array: str) -> list[str]:
    return [f"{array}[{i}] = {name}" for i, name in enumerate(names)]


def start(n: int, parameters: int) -> list[str]:
    """State, slope and parameters as numbers."""
    return [
        f"params = ({arguments(f'params_in[{i}]' for i in range(parameters))})",
        *read(components("u", n, ""), "u"),
        *read((f"k1_{i}" for i in range(n)), "slope"),
        *read(COUNTS, "counts"),
        "status = ATTEMPTS_SPENT",
    ]


def attempt_begins(n: int) -> list[str]:
    return [
        "if t == t1:",
        "    break",
        "if fresh == 0:",
        "    " + stages.right_hand_side(n, 1, "t", "u", ""),
        "    evaluations += 1",
        "    fresh = 1",
    ]


def time_moves() -> list[str]:
    return [
        "t_new = t + dt",
        "if dt == t1 - t:",
        "    t_new = t1",
        "if t_new == t:",
        "    status = STEP_LOST",
        "    break",
    ]


def recorded(method, n: int) -> list[str]:
    """A row per accepted step: where it ended, its size, SAI and, where it costs nothing, h rho."""
    lines = ["# the record", "steps += 1", f"record[steps, {TIME}] = t_new", f"record[steps, {SIZE}] = dt"]
    lines += [f"record[steps, {STATE + i}] = v{i}" for i in range(n)]
    lines += [*stages.sai(method, n), f"record[steps, {SAI}] = math.sqrt(sai)"]
    if twin_stages(method) is not None:
        lines += [*stages.h_rho(method, n), f"record[steps, {RHO}] = math.sqrt(rho)"]
    return lines


def moved_on(method, n: int) -> list[str]:
    """The new state becomes the state; its slope is known where the method is FSAL."""
    lines = ["t = t_new", *(f"u{i} = v{i}" for i in range(n))]
    if method.fsal:
        return [*lines, *(f"k1_{i} = k{method.stages}_{i}" for i in range(n))]
    return [*lines, "fresh = 0"]


def finish(n: int) -> list[str]:
    """State, slope and counts go back into their arrays."""
    return [
        *written(components("u", n, ""), "u"),
        *written((f"k1_{i}" for i in range(n)), "slope"),
        *written(COUNTS, "counts"),
    ]
