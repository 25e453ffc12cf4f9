"""The source a kernel is made of, to read."""

from odelab._solve import check_arguments
from odelab.control.controllers import Controller, adaptive
from odelab.engines.numba.module import module_for
from odelab.engines.numba.request import lanes_unsuited, layout_for, request_for, unsuited
from odelab.methods.stabilised import StabilisedMethod
from odelab.methods.tableau import Method
from odelab.problem import Problem

LAYOUTS = ("single", "lanes", "large", "stabilised")


def show_kernel(
    problem: Problem, method: Method | StabilisedMethod, controller: Controller | None = None, layout: str | None = None
):
    """Print the source of the kernel for a problem, method and controller.

    `layout` is "single" (one run), "lanes" (an ensemble) or "large" (one run of a system in in-place form); without it,
    what a single run of the problem takes.
    """
    controller = adaptive() if controller is None else controller
    check_arguments(problem, method, controller, "compiled", 1)
    single = layout_for(problem, method)
    chosen = single if layout is None else layout
    if chosen not in LAYOUTS:
        raise ValueError(f"`layout` must be one of {LAYOUTS}, got {layout!r}.")
    reason = (lanes_unsuited if chosen == "lanes" else unsuited)(problem, method, controller)
    if reason is None and chosen not in ("lanes", single):
        reason = f"a system in {problem.form} form runs in the layout {single!r}"
    if reason is not None:
        raise ValueError(f"there is no such kernel: {reason}.")
    print(module_for(request_for(chosen, problem, method, controller)).text)
