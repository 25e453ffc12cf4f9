"""The layout of one run of a small system: the text has a variable for each component."""

from odelab.control.controllers import settings_of
from odelab.control.feedback import Counted, History
from odelab.engines.numba import first_step, stages
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import ERROR, RHO, SAI, SIZE, STATE, TIME
from odelab.engines.numba.stages import arguments, components, indent, number, read_lines, tolerance_names, write_lines
from odelab.stiffness.h_rho import twin_stages

ARGUMENTS = ("remembered", "counts", "settings", "tolerance", "params_in", "u", "slope", "attempts", "record")
COUNTS = ("status", "fresh", "steps", "rejected", "evaluations")


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`.

    In the text `remembered` is t and the controller's history, `settings` is (t1, rtol, largest step). `remembered`,
    `counts`, `u` and `slope` are updated in place. `counts` holds the number of steps recorded so far; further accepted
    steps are written into the rows behind them.
    """
    method, n = request.method, request.n
    attempt = [*stages.stages(method, n), f"evaluations += {method.stages - 1}"]
    if request.law:
        attempt += stages.scaled_errors(method, n, "", request.vector_tolerance)
        attempt.append("accept, memory = judge(memory, dt, q, 0.0, 0.0)")
    else:
        attempt.append(f"accept, memory = judge(memory, dt, 0.0, 0.0, {stages.finite_check(n, '')})")
    body = [
        *(read_lines(tolerance_names(request), "tolerance") if request.law else []),
        *start(n, request.parameters),
        *loop(
            request,
            stages.right_hand_side(n, 1, "t", "u", ""),
            attempt,
            record_lines(method, n),
            next_state_lines(method, n),
        ),
        *finish(n),
    ]
    return [control(request, judge_of(request)), *first_step.start_texts(request)], function(ARGUMENTS, request, body)


def judge_of(request: Request) -> str:
    """The judge, as text: by n times the squared error ratio or, with fixed steps, by whether the state is finite."""
    if not request.law:
        return "control.accept_by(given)"
    gain, order = float(request.law.b[0]), request.method.error_order
    return f"judge_of_squares({request.law.smooth}, {request.n}, {gain}, {order}.0)"


def control(request: Request, judge: str) -> str:
    """Definitions of `propose` and `judge`, compiled from `odelab.control.feedback`.

    `propose` is compiled without contraction of a * b + c, so that times are the same in every engine.
    """
    propose = "propose_next" if request.law else "propose_counted"
    return "\n".join(
        [
            "from odelab.control.feedback import Counted, History, Memory, Settings",
            "from odelab.engines.numba.jit import jit",
            "from odelab.engines.numba.law_judge import given, judge_of_squares, left_over",
            "",
            f"propose = jit(control.{propose}, options=EXACT)",
            f'judge = jit({judge}, options={{**OPTIONS, "forceinline": True}})',
        ]
    )


def loop(request: Request, slope: str, attempt: list[str], record: list[str], move: list[str]) -> list[str]:
    """Lines with the loop of `odelab.core.integrate`, in which the lines of `attempt` make one attempt.

    slope     lines that compute the slope at the state
    record    lines that fill the row of an accepted step
    move      lines that make the new state the state
    """
    refused = ["if accept == 0:", "    rejected += 1", "    continue"]
    if not request.law:
        refused = ["if accept < 0:", "    status = NOT_FINITE", "    break"]
    known = "memory.history" if request.law else "memory"
    return [
        f"memory = {memory(request)}",
        "for _ in range(attempts):",
        "    if t == t1:",
        "        break",
        "    if fresh == 0:",
        *indent(slope.splitlines(), 2),
        "        evaluations += 1",
        "        fresh = 1",
        "    dt, h, memory = propose(memory, t, t1, 0.0, 0.0)",
        "    t_new = t + dt",
        "    if dt == t1 - t:",
        "        t_new = t1",
        "    if t_new == t:",
        "        status = STEP_LOST",
        "        break",
        *indent(attempt),
        *indent(refused),
        "    # the record",
        "    steps += 1",
        f"    record[steps, {TIME}] = t_new",
        f"    record[steps, {SIZE}] = dt",
        f"    record[steps, {ERROR}] = {'memory.history.error' if request.law else 'math.nan'}",
        *indent(record),
        "    t = t_new",
        *indent(move),
        "if t == t1:",
        "    status = REACHED",
        "remembered[0] = t",
        *(f"remembered[{i}] = {known}.{name}" for i, name in enumerate(history(request), 1)),
    ]


def history(request: Request) -> tuple[str, ...]:
    return History._fields if request.law else Counted._fields


def memory(request: Request) -> str:
    """The controller's memory, with a law's numbers as literals."""
    past = ", ".join(f"remembered[{i}]" for i, _ in enumerate(history(request), 1))
    if not request.law:
        return f"Counted({past})"
    known = settings_of(request.law, request.method.error_order)
    numbers = ", ".join(number(x) for x in known[2:-1])
    return f"Memory(Settings(settings[1], 0.0, {numbers}, settings[2]), History({past}))"


def function(names, request: Request, body: list[str]) -> list[str]:
    first = ["t, t1, rtol = remembered[0], settings[0], settings[1]"]
    return [f"def advance({', '.join(names)}):", *indent(first), *indent(body)]


def start(n: int, parameters: int) -> list[str]:
    """Lines that read state, slope and parameters from their arrays into variables."""
    return [
        f"params = ({arguments(f'params_in[{i}]' for i in range(parameters))})",
        *read_lines(components("u", n, ""), "u"),
        *read_lines((f"k1_{i}" for i in range(n)), "slope"),
        *read_lines(COUNTS, "counts"),
        "status = ATTEMPTS_SPENT",
    ]


def record_lines(method, n: int) -> list[str]:
    """Lines that fill the rest of a row: the state, SAI and, where the stages determine it, h rho."""
    lines = [f"record[steps, {STATE + i}] = v{i}" for i in range(n)]
    lines += [*stages.sai(method, n), f"record[steps, {SAI}] = math.sqrt(sai)"]
    if twin_stages(method) is not None:
        lines += [*stages.h_rho(method, n), f"record[steps, {RHO}] = math.sqrt(rho)"]
    return lines


def next_state_lines(method, n: int) -> list[str]:
    """The new state becomes the state; its slope is known where the method is FSAL."""
    lines = [f"u{i} = v{i}" for i in range(n)]
    if method.fsal:
        return [*lines, *(f"k1_{i} = k{method.stages}_{i}" for i in range(n))]
    return [*lines, "fresh = 0"]


def finish(n: int) -> list[str]:
    """Lines that write state, slope and counts back into their arrays."""
    return [
        *write_lines(components("u", n, ""), "u"),
        *write_lines((f"k1_{i}" for i in range(n)), "slope"),
        *write_lines(COUNTS, "counts"),
    ]
