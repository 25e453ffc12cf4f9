"""The request for a kernel: everything its text depends on."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.control.controllers import Controller
from odelab.control.laws import Law
from odelab.problem import Problem
from odelab.right_hand_side import COMPONENT, name_of


class Request(NamedTuple):
    """Everything the text of a kernel depends on; two runs with equal requests share one kernel."""

    layout: str  # "stabilised" or "generic"
    rhs: Callable
    form: str
    n: int  # 0 where neither the text nor what is handed to the kernel depends on it
    parameters: int  # how many
    method: Any  # a Method; a StabilisedMethod in the layout of that name
    law: Law | None  # None: fixed steps
    vector_tolerance: bool = False
    project: Callable | None = None  # the user's projection of states
    windowed: bool = False  # is the right-hand side shown the times of a window alone?
    listed: bool = False  # do its steps end at listed times?

    @property
    def functions(self) -> dict[str, Callable]:
        """The user's functions by the names that the text of a kernel has for them."""
        radius = getattr(self.method, "spectral_radius", None)
        named = {"rhs": self.rhs, "spectral_radius_of": radius, "project": self.project}
        return {name: function for name, function in named.items() if callable(function)}

    @property
    def about(self) -> str:
        steps = f"law {self.law.name}" if self.law else "fixed steps"
        size = f"n = {self.n}, " if self.form == COMPONENT else ""
        what = f"{name_of(self.rhs)}, {size}{self.parameters} parameter{'s' if self.parameters != 1 else ''}"
        return f"{what}, {self.method.name}, {steps}, layout {self.layout}"


def request_of_run(problem: Problem, method, controller: Controller, project=None) -> Request:
    """The kernel that a run needs."""
    parameters = len(problem.params) if hasattr(problem.params, "__len__") else 1
    return Request(
        "stabilised" if method.adapts_stages else "generic",
        problem.rhs,
        problem.form,
        problem.size if problem.form == COMPONENT else 0,
        parameters,
        method.compiles_as if method.adapts_stages else method,
        controller.law,
        bool(np.ndim(controller.atol)),
        project=project,
        windowed=problem.window is not None,
        listed=controller.ends is not None,
    )
