"""Prints the source text that a kernel is compiled from."""

import inspect
import textwrap

from odelab._solve import check_arguments
from odelab.control.controllers import Controller, adaptive
from odelab.engines.numba.module import text_for
from odelab.engines.numba.obstacles import obstacle_to_kernel, obstacle_to_lanes
from odelab.engines.numba.request import layout_for, request_for
from odelab.methods.stabilised import StabilisedMethod
from odelab.methods.tableau import Method
from odelab.problem import Problem

LAYOUTS = ("single", "lanes", "large", "stabilised", "generic")


def show_kernel(
    problem: Problem, method: Method | StabilisedMethod, controller: Controller | None = None, layout: str | None = None
):
    """Print the source of the kernel for a problem, method and controller, below that of the right-hand side.

    problem      the Problem
    method       ol.DOPRI5 or another Runge-Kutta method, ol.RODAS4 or another linearly implicit one, ol.RKC2
    controller   ol.fixed(h) or ol.adaptive(...); adaptive() by default
    layout       "single" (one run), "lanes" (an ensemble), "large" (one run of a system in array or in-place form) or
                 "stabilised" (the same by ol.RKC2); by default what a single run of the problem takes

    Raises ValueError when there is no such kernel.

    >>> import odelab as ol
    >>> ol.show_kernel(ol.problems.van_der_pol(), ol.HEUN, ol.fixed(0.1))
    def van_der_pol_rhs(t, u, params):
    ...
    def advance(...
    """
    controller = adaptive() if controller is None else controller
    check_arguments(problem, method, controller, "compiled", 1)
    controller = controller.suited_to(method)
    single = layout_for(problem, method, controller)
    chosen = single if layout is None else layout
    if chosen not in LAYOUTS:
        raise ValueError(f"`layout` must be one of {LAYOUTS}, got {layout!r}.")
    reason = (obstacle_to_lanes if chosen == "lanes" else obstacle_to_kernel)(problem, method, controller)
    if reason is None and chosen not in ("lanes", single):
        reason = f"a system in {problem.form} form runs in the layout {single!r}"
    if reason is not None:
        raise ValueError(f"there is no such kernel: {reason}.")
    request = request_for(chosen, problem, method, controller)
    for function in dict.fromkeys(request.functions.values()):
        print(source_of(function))
    print(text_for(request))


def source_of(function) -> str:
    """The source of a user's function, or a remark in its place."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return f"# {function.__name__}: its source is not in a file.\n"
