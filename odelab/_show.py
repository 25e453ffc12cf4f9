"""`show_kernel`: prints what a kernel computes, below the source of the user's function."""

import inspect
import textwrap

from odelab._choice import obstacle_to_graph, obstacle_to_lanes
from odelab._solve import check_arguments, taking_a_mass
from odelab.control.controllers import Controller, adaptive
from odelab.engines.numba.obstacles import parts_of_run
from odelab.graph.nodes import Untraceable
from odelab.methods.interface import StepMethod
from odelab.problem import Problem

LAYOUTS = ("single", "lanes")


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
    from odelab.engines.kernel_text import graph_text

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
        functions, text = parts_of_run(problem, method, controller, reason)
    for function in dict.fromkeys(functions):
        print(source_of(function))
    print(text)


def source_of(function) -> str:
    """The source of a user's function, or a remark in its place."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return f"# {getattr(function, '__name__', function)}: its source is not in a file.\n"
