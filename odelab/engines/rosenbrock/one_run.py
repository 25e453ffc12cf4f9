"""The layout of one run of a linearly implicit method: `odelab.engines.numba.single` with another attempt.

The Jacobian is computed once at each state and used again after a rejection. If the factors fail in three attempts in a
row, or in one attempt of a run with fixed steps, the kernel stops with the status SINGULAR; then
`odelab.engines.numba.kernel_engine` takes some steps in plain Python, with pivoting.
"""

from odelab.engines.numba import single
from odelab.engines.numba.request import Request
from odelab.engines.numba.rows import SAI
from odelab.engines.numba.stages import components, indent
from odelab.engines.rosenbrock import attempt

FAILURES = 3  # after so many failures of the factors in a row, the step size is not to blame for them
START = ["prepared = 0", "unsolved = 0"]
MOVE = ["fresh = 0", "prepared = 0"]


def advance(request: Request) -> tuple[list[str], list[str]]:
    """(definitions, lines) of `advance`."""
    plan = attempt.plan_for(request)
    lines = [
        *jacobian_lines(attempt.derivative_lines(plan)),
        *attempt.stage_lines(request.method, plan),
        *failure_lines(request),
    ]
    if request.project is not None:
        state = ", ".join(components("v", plan.n, ""))
        lines += [f"projected = project(np.array(({state},)))", *(f"v{i} = projected[{i}]" for i in range(plan.n))]
    if request.law:
        lines += attempt.error_ratio_lines(plan, "", request.vector_tolerance)
    record = [*attempt.sai_lines(plan), f"record[steps, {SAI}] = math.sqrt(sai)"]
    start = [*(f"{name} = 0.0" for name in attempt.derivative_names(plan)), *START]
    definitions = [attempt.derivative_text(plan)]
    return single.kernel_of(request, single.small_parts(request, lines, record, MOVE, start, definitions))


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
