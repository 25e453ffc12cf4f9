"""The loop of a run whose states are arrays, as source text around the lines of an attempt."""

from typing import NamedTuple

from odelab.engines.numba.kernel_control import control_text, history_fields, judgement_line, memory_text
from odelab.engines.numba.request import AS_GIVEN, Request
from odelab.engines.numba.rows import ERROR, SIZE, TIME
from odelab.engines.numba.text import arguments, indent, read_lines, write_lines

COUNTS = ("status", "fresh", "steps", "rejected", "evaluations", "jacobians", "factorisations")


class Parts(NamedTuple):
    """What distinguishes the kernels of large systems from each other; all but the first two are lines.

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
