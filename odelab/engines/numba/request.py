"""What a kernel is written for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.control.controllers import Controller
from odelab.control.laws import Law
from odelab.engines.numba import law_text as laws
from odelab.methods.stabilised import StabilisedMethod
from odelab.methods.tableau import Method
from odelab.problem import COMPONENT, IN_PLACE, Problem

UNROLLED = 32  # components at most: beyond, source and compile time grow out of hand


class Request(NamedTuple):
    """Everything the text of a kernel depends on; two runs with equal requests share one kernel."""

    layout: str  # "single", "lanes", "large" or "stabilised"
    rhs: Callable
    form: str
    n: int  # 0 where the layout serves any size
    parameters: int
    method: Any  # a Method; a StabilisedMethod in the layout of that name
    law: Law | None  # None: fixed steps
    vector_tolerance: bool = False
    limited: bool = False  # lanes: a largest step
    points: bool = False  # lanes: states at shared times
    maxima: bool = False  # lanes: running maxima of SAI and h rho

    @property
    def about(self) -> str:
        steps = f"law {self.law.name}" if self.law else "fixed steps"
        size = f"n = {self.n}, " if self.n else ""
        what = f"{self.rhs.__name__}, {size}{self.parameters} parameter{'s' if self.parameters != 1 else ''}"
        return f"{what}, {self.method.name}, {steps}, layout {self.layout}"


def unsuited(problem: Problem, method, controller: Controller, project=None) -> str | None:
    """Why no kernel can be written for a run; None where one can."""
    stabilised = isinstance(method, StabilisedMethod)
    if not (isinstance(method, Method) or stabilised):
        return f"kernels are for Runge-Kutta methods, not {method.name}"
    if stabilised and problem.form != IN_PLACE:
        return f"kernels of systems in {problem.form} form are for Runge-Kutta methods, not {method.name}"
    if stabilised and callable(method.spectral_radius) and not hasattr(method.spectral_radius, "__code__"):
        return "kernels need a plain function as `spectral_radius`"
    if project is not None:
        return "kernels take no `project`"
    if controller.law is None and controller.h is None:
        return "kernels know the controllers of odelab.fixed and odelab.adaptive only"
    if controller.law is not None and not (stabilised or laws.supported(controller.law)):
        return f"kernels know the laws i, pi42, pi33 and pi34, not {controller.law.name}"
    if not hasattr(problem.rhs, "__code__"):
        return "kernels need a plain function as `rhs`"
    if problem.form == COMPONENT and problem.size > UNROLLED:
        return f"kernels unroll at most {UNROLLED} components, got {problem.size}"
    if problem.form not in (COMPONENT, IN_PLACE):
        return f"kernels need component form or in-place form, not {problem.form} form"
    if numbers(problem.params) is None:
        return "kernels need numbers as `params`"
    return None


def lanes_unsuited(problem: Problem, method, controller: Controller) -> str | None:
    """Why an ensemble cannot run in lanes."""
    if problem.form != COMPONENT:
        return f"lanes need component form, not {problem.form} form"
    return unsuited(problem, method, controller)


def numbers(params) -> np.ndarray | None:
    """Parameters as floats, or None where they are not all numbers."""
    if not isinstance(params, tuple):
        return None
    try:
        found = np.array(params, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def layout_for(problem: Problem, method) -> str:
    """The layout a single run takes."""
    if isinstance(method, StabilisedMethod):
        return "stabilised"
    return "large" if problem.form == IN_PLACE else "single"


def request_for(layout: str, problem: Problem, method, controller: Controller, **options) -> Request:
    return Request(
        layout,
        problem.rhs,
        problem.form,
        0 if layout in ("large", "stabilised") else problem.size,
        len(problem.params),
        method if isinstance(method, Method) else method.compiles_as,
        controller.law,
        bool(np.ndim(controller.atol)),
        limited=layout == "lanes" and bool(np.isfinite(controller.max_step)),
        **options,
    )
