"""Prints what a kernel computes: the graph of an attempt as arithmetic, the IR, or the source that numba compiles."""

import inspect
import textwrap

from odelab._choice import is_large, large_engine, obstacle_to_graph, obstacle_to_lanes
from odelab._solve import check_arguments, taking_a_mass
from odelab.control.controllers import Controller, adaptive
from odelab.engines.lanes.threads import prepare
from odelab.engines.large import module_and_advance
from odelab.engines.numba.module import text_for
from odelab.engines.numba.obstacles import obstacle_to_kernel
from odelab.engines.numba.request import request_of_run
from odelab.graph.arithmetic import lines_of
from odelab.graph.classes import RowClass
from odelab.graph.nodes import Graph, Untraceable
from odelab.graph.shapes import COLUMN, CONSTANTS, PARAMETERS, STATE
from odelab.kernels import store
from odelab.kernels.attempt import attempt
from odelab.kernels.large.array_attempt import array_attempt
from odelab.kernels.run import Wanted, asked_of, module_and_names
from odelab.methods.interface import StepMethod
from odelab.problem import Problem, without_jacobian

LAYOUTS = ("single", "lanes")
SOURCES = {STATE: "the state", PARAMETERS: "the parameters", CONSTANTS: "the constants", COLUMN: "the column"}


def show_kernel(
    problem: Problem,
    method: StepMethod,
    controller: Controller | None = None,
    layout: str | None = None,
    ir: bool = False,
):
    """Print what a kernel computes for a problem, method and controller, below the source of the right-hand side.

    A line is a value; x12 is the value of operation 12 of the graph, where it is used more than once. The state before
    the attempt is u0, u1, ...

    problem      the Problem
    method       ol.DOPRI5 or another Runge-Kutta method, ol.RODAS4 or another linearly implicit one, ol.RKC2
    controller   ol.fixed(h) or ol.adaptive(...); adaptive() by default
    layout       "single" (one run) or "lanes" (an ensemble), where the problem is made as a graph; None, the default,
                 is what a single run of the problem takes
    ir           print the IR of the kernel, loop included, and not arithmetic; False by default

    Raises ValueError when there is no such kernel.

    >>> import odelab as ol
    >>> ol.show_kernel(ol.problems.van_der_pol(), ol.HEUN, ol.fixed(0.1))
    def van_der_pol_rhs(t, u, params):
    ...
    after the attempt
    ...
    """
    controller = adaptive() if controller is None else controller
    check_arguments(problem, method, controller, "compiled", 1)
    method = taking_a_mass(problem, method, controller)
    controller = controller.suited_to(method)
    if layout not in (None, *LAYOUTS):
        raise ValueError(f"`layout` must be one of {LAYOUTS}, got {layout!r}.")
    reason = (obstacle_to_lanes if layout == "lanes" else obstacle_to_graph)(problem, method, controller)
    try:
        text = graph_text(problem, method, controller, layout, ir) if reason is None else ""
    except Untraceable as refusal:
        reason = str(refusal)
    functions = [problem.rhs]
    if reason is not None:
        if layout is not None:
            raise ValueError(f"there is no such kernel: {reason}.")
        text, functions = text_by_numba(problem, method, controller, reason)
    for function in dict.fromkeys(functions):
        print(source_of(function))
    print(text)


def graph_text(problem: Problem, method, controller: Controller, layout: str | None, ir: bool) -> str:
    """The arithmetic of an attempt, or the IR of the kernel."""
    if layout == "lanes" and ir:
        return prepare(problem, method, controller, None, False, 1).text
    if layout is None and is_large(problem, method):
        return text_of_large(problem, method, controller, ir)
    traced, asked = store.slopes_of(problem), asked_of(problem, method, controller)
    if ir:
        return module_and_names(Wanted(asked, traced))[0].text()
    graph = Graph(trusted=True)
    one = attempt(asked._replace(rows=layout != "lanes"), store.slopes_in(graph, traced), graph, ())
    after = {f"new {name}": now for name, (_, now) in one.carried.items()}
    lines = lines_of(graph, {**after, "status": one.status})
    behind = len(lines) - len(after) - 1
    return "\n".join(["in the attempt", *lines[:behind], "", "after the attempt", *lines[behind:]])


def text_of_large(problem: Problem, method, controller: Controller, ir: bool) -> str:
    """The arithmetic of rows that are alike, and of an attempt on arrays; or the IR of the kernel."""
    engine = large_engine(without_jacobian(problem), method, controller, None, True, False)
    if ir:
        return module_and_advance(engine.large, engine.loops, None)[0].text()
    one = array_attempt(engine.large)
    given = {f"for {one.graph.ops[i][2]}": action.given[0] for i, action in one.graph.actions.items()}
    after = {f"new {name}": now for name, (_, now) in one.carried.items()}
    lines = lines_of(one.graph, {**given, **after, "status": one.status})
    return "\n".join([*map(text_of_rows, engine.loops.classes.classes), "in the attempt, on arrays", *lines])


def text_of_rows(rows: RowClass) -> str:
    """The arithmetic of a class of rows, and where they are."""
    numbers = rows.rows()
    leaves = ", ".join(f"x{k} of {SOURCES[leaf.source]}" for k, leaf in enumerate(rows.leaves))
    where = f"row {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} rows from {numbers[0]} to {numbers[-1]}"
    lines = lines_of(rows.recorded.graph, {rows.purpose: rows.recorded.outputs[0]})
    return "\n".join([f"{where}: {leaves or 'no leaves'}", *lines, ""])


def text_by_numba(problem: Problem, method, controller: Controller, untraceable: str) -> tuple[str, list]:
    """The source of the kernel that numba compiles, and the user's functions that it calls."""
    reason = obstacle_to_kernel(problem, method, controller)
    if reason is not None:
        raise ValueError(f"there is no such kernel: {reason}; {untraceable}.")
    request = request_of_run(problem, method, controller)
    return text_for(request), list(request.functions.values())


def source_of(function) -> str:
    """The source of a user's function, or a remark in its place."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return f"# {getattr(function, '__name__', function)}: its source is not in a file.\n"
