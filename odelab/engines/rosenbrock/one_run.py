"""The layout of one run of a linearly implicit method: `odelab.engines.numba.single` with another attempt.

The Jacobian is computed once at each state and used again after a rejection. If the factors fail in three attempts in a
row, or in one attempt of a run with fixed steps, the kernel stops with the status SINGULAR; then
`odelab.engines.numba.kernel_engine` takes some steps in plain Python, with pivoting.
"""

from odelab.engines.numba import first_step, single
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import SAI, STATE
from odelab.engines.numba.stages import (
    components,
    finite_check,
    indent,
    read_lines,
    right_hand_side,
    tolerance_names,
    write_lines,
)
from odelab.engines.rosenbrock import attempt

COUNTS = (*single.COUNTS, "jacobians", "factorisations")
FAILURES = 3  # after so many failures of the factors in a row, the step size is not to blame for them


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`; arguments as in `odelab.engines.numba.single`."""
    n, plan = request.n, attempt.plan_for(request)
    body = [
        *(read_lines(tolerance_names(request), "tolerance") if request.law else []),
        *single.start(n, request.parameters),
        *read_lines(COUNTS, "counts")[len(single.COUNTS) :],
        *(f"{name} = 0.0" for name in attempt.derivative_names(plan)),
        "prepared = 0",
        "unsolved = 0",
        *single.loop(
            request,
            right_hand_side(n, 1, "t", "u", ""),
            step_lines(request, plan),
            record_lines(plan),
            next_state_lines(n),
        ),
        *single.finish(n),
        *write_lines(COUNTS, "counts")[len(single.COUNTS) :],
    ]
    definitions = [
        single.control(request, single.judge_of(request)),
        *first_step.start_texts(request),
        attempt.derivative_text(plan),
    ]
    return definitions, single.function(single.ARGUMENTS, request, body)


def step_lines(request: Request, plan: attempt.Plan) -> list[str]:
    """The Jacobian where it is not known, the step, and its judgement."""
    method, n = request.method, plan.n
    lines = [
        "if prepared == 0:",
        *indent([*attempt.derivative_lines(plan), "prepared = 1", "jacobians += 1"]),
        *attempt.stages(method, plan),
        f"evaluations += {method.stages - 1}",
        "factorisations += 1",
        "unsolved = 0 if sound else unsolved + 1",
        f"if unsolved == {FAILURES if request.law else 1}:",
        "    status = SINGULAR",
        "    break",
    ]
    if request.project is not None:
        state = ", ".join(components("v", n, ""))
        lines += [f"projected = project(np.array(({state},)))", *(f"v{i} = projected[{i}]" for i in range(n))]
    if not request.law:
        return [*lines, f"accept, memory = judge(memory, dt, 0.0, 0.0, {finite_check(n, '')})"]
    return [
        *lines,
        *attempt.scaled_errors(plan, "", request.vector_tolerance),
        "accept, memory = judge(memory, dt, q, 0.0, 0.0)",
    ]


def record_lines(plan: attempt.Plan) -> list[str]:
    """Lines that fill the rest of a row: the state and SAI. No stages of such a method determine h rho."""
    states = [f"record[steps, {STATE + i}] = v{i}" for i in range(plan.n)]
    return [*states, *attempt.sai(plan), f"record[steps, {SAI}] = math.sqrt(sai)"]


def next_state_lines(n: int) -> list[str]:
    return [*(f"u{i} = v{i}" for i in range(n)), "fresh = 0", "prepared = 0"]
