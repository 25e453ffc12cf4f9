"""The layout of one run of a small system: the text has a variable for each component."""

from typing import NamedTuple

from odelab.engines import first_step_text
from odelab.engines.numba import stages
from odelab.engines.numba.kernel_control import control_text, history_fields, judgement_line, memory_text
from odelab.engines.numba.request import AS_GIVEN, Request
from odelab.engines.numba.rows import ERROR, RHO, SAI, SIZE, STATE, TIME
from odelab.engines.numba.stages import arguments, components, indent, read_lines, tolerance_names, write_lines
from odelab.stiffness.h_rho import twin_stages

ARGUMENTS = ("remembered", "counts", "settings", "tolerance", "params_in", "u", "slope", "attempts", "record")
COUNTS = ("status", "fresh", "steps", "rejected", "evaluations", "jacobians", "factorisations")


class Parts(NamedTuple):
    """What distinguishes the kernels of single runs from each other; all but the first two are lines.

    arguments     the names of the arguments of `advance`
    judge         the judge, as text; see `odelab.engines.numba.kernel_control`
    definitions   whatever the lines call
    start         read the arguments into variables
    slope         compute the slope at the state
    attempt       make one attempt
    judged        the square of the error ratio after an attempt or, with fixed steps, what tells of a state that is not
                  finite
    record        fill the row of an accepted step
    move          make the new state the state
    finish        write the state back into the arguments
    """

    arguments: tuple[str, ...]
    judge: str
    definitions: list[str]
    start: list[str]
    slope: list[str]
    attempt: list[str]
    judged: str
    record: list[str]
    move: list[str]
    finish: list[str]


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance` for an explicit method."""
    method, n = request.method, request.n
    attempt = stages.stage_lines(method, n)
    if request.law:
        attempt += stages.error_ratio_lines(method, n, "", request.vector_tolerance)
    record = [*stages.sai_lines(method, n), f"record[steps, {SAI}] = math.sqrt(sai)"]
    if twin_stages(method) is not None:
        record += [*stages.h_rho_lines(method, n), f"record[steps, {RHO}] = math.sqrt(rho)"]
    move = ["fresh = 0"] if not method.fsal else [f"k1_{i} = k{method.stages}_{i}" for i in range(n)]
    return kernel_of(request, small_parts(request, attempt, record, move))


def small_parts(request: Request, attempt, record, move, start=(), definitions=()) -> Parts:
    """The parts of a kernel that has a variable for each component."""
    n = request.n
    slopes = [f"k1_{i}" for i in range(n)]
    return Parts(
        ARGUMENTS,
        judge_of(request),
        [*first_step_text.start_texts(request), *definitions],
        [
            *(read_lines(tolerance_names(request), "tolerance") if request.law else []),
            params_line(request),
            *read_lines(components("u", n, ""), "u"),
            *read_lines(slopes, "slope"),
            *start,
        ],
        [stages.slope_line(n, 1, "t", "u", "")],
        attempt,
        "q" if request.law else stages.finite_check(n, ""),
        [*(f"record[steps, {STATE + i}] = v{i}" for i in range(n)), *record],
        [*(f"u{i} = v{i}" for i in range(n)), *move],
        [*write_lines(components("u", n, ""), "u"), *write_lines(slopes, "slope")],
    )


def params_line(request: Request) -> str:
    if request.parameters == AS_GIVEN:
        return "params = params_in"
    return f"params = ({arguments(f'params_in[{i}]' for i in range(request.parameters))})"


def kernel_of(request: Request, parts: Parts) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`.

    In the text `remembered` is t and the controller's history, `settings` is (t1, rtol, largest step, a time). Where
    states are arrays, the first step that passes this time is the last. `remembered`, `counts`, state and slope are
    updated in place. `counts` holds the number of steps recorded so far; further accepted steps are written into the
    rows behind them.
    """
    body = [
        "t, t1, rtol = remembered[0], settings[0], settings[1]",
        *read_lines(COUNTS, "counts"),
        "status = ATTEMPTS_SPENT",
        *parts.start,
        *loop_lines(request, parts),
        *parts.finish,
        *write_lines(COUNTS, "counts"),
    ]
    definition = f"def advance({', '.join(parts.arguments)}):"
    return [control_text(request, parts.judge), *parts.definitions], [definition, *indent(body)]


def judge_of(request: Request) -> str:
    """The judge, as text: by n times the squared error ratio or, with fixed steps, by whether the state is finite."""
    if not request.law:
        return "judge_of_state(itself)"
    return f"judge_of_squares({request.law.smooth}, {request.n})"


def loop_lines(request: Request, parts: Parts) -> list[str]:
    """Lines with the loop of `odelab.core.integrate`."""
    refused = ["if accept == 0:", "    rejected += 1", "    continue"]
    if not request.law:
        refused = ["if accept < 0:", "    status = NOT_FINITE", "    break"]
    known = "memory.history" if request.law else "memory"
    remembered = {name: f"remembered[{i}]" for i, name in enumerate(history_fields(request), 1)}
    return [
        f"memory = {memory_text(request, remembered, 'settings[1]', 'settings[2]')}",
        "for _ in range(attempts):",
        "    if t == t1:",
        "        break",
        "    if fresh == 0:",
        *indent(parts.slope, 2),
        "        evaluations += 1",
        "        fresh = 1",
        "    dt, h, memory = propose(memory, t, t1, 0.0, 0.0)",
        "    t_new = t + dt",
        "    if dt == t1 - t:",
        "        t_new = t1",
        "    if t_new == t:",
        "        status = STEP_LOST",
        "        break",
        f"    evaluations += {request.method.stages - 1}",
        *indent(parts.attempt),
        f"    {judgement_line(request, parts.judged)}",
        *indent(refused),
        "    # the record",
        "    steps += 1",
        f"    record[steps, {TIME}] = t_new",
        f"    record[steps, {SIZE}] = dt",
        f"    record[steps, {ERROR}] = {'math.sqrt(memory.history.error)' if request.law else 'math.nan'}",
        *indent(parts.record),
        "    t = t_new",
        *indent(parts.move),
        "if t == t1:",
        "    status = REACHED",
        "remembered[0] = t",
        *(f"{place} = {known}.{name}" for name, place in remembered.items()),
    ]
