"""The request for a kernel: everything its machine code depends on."""

from collections.abc import Callable
from typing import Any, NamedTuple

from odelab.control.controllers import Controller
from odelab.problem import Problem
from odelab.right_hand_side import COMPONENT, name_of


class Request(NamedTuple):
    """Everything a kernel depends on; two runs with equal requests share one."""

    rhs: Callable
    form: str
    n: int  # 0 where nothing that is compiled depends on it
    parameters: int  # how many
    method: Any
    smooth: bool | None  # whether the law changes step sizes smoothly; None: fixed steps
    project: Callable | None = None  # the user's projection of states
    windowed: bool = False  # is the right-hand side shown the times of a window alone?
    listed: bool = False  # do its steps end at listed times?

    @property
    def functions(self) -> dict[str, Callable]:
        """The user's functions by the names that a kernel has for them."""
        radius = getattr(self.method, "spectral_radius", None)
        named = {"rhs": self.rhs, "spectral_radius_of": radius, "project": self.project}
        return {name: function for name, function in named.items() if callable(function)}

    @property
    def words(self) -> tuple:
        """All of it but what the user's functions do."""
        estimated = self.method.adapts_stages and self.method.spectral_radius is None
        step = "estimated" if estimated else getattr(self.method, "tableau", "")
        return self.form, self.n, [*self.functions], step, self.smooth, self.windowed, self.listed

    @property
    def about(self) -> str:
        size = f"n = {self.n}, " if self.form == COMPONENT else ""
        what = f"{name_of(self.rhs)}, {size}{self.parameters} parameter{'s' if self.parameters != 1 else ''}"
        return f"{what}, {self.method.name}, {'fixed' if self.smooth is None else 'adaptive'} steps"


def request_of_run(problem: Problem, method, controller: Controller, project=None) -> Request:
    """The kernel that a run needs."""
    return Request(
        problem.rhs,
        problem.form,
        problem.size if problem.form == COMPONENT else 0,
        len(problem.params) if hasattr(problem.params, "__len__") else 1,
        method.compiles_as if method.adapts_stages else method,
        None if controller.law is None else controller.law.smooth,
        project,
        problem.window is not None,
        controller.ends is not None,
    )
