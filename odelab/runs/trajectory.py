"""What a run leaves behind: its states, its steps, and in words how it went."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.runs import dense, diagnosis
from odelab.stiffness import h_rho as stability
from odelab.stiffness import indices as stiffness

OK_STATUSES = ("ok", "event")


def require_states(trajectory, purpose: str):
    if trajectory.step_u is None:
        raise ValueError(
            f"this trajectory was made with dense=False and kept no states between its points, which {purpose} need; "
            "solve again without dense=False."
        )


@dataclasses.dataclass(eq=False, repr=False)
class Trajectory:
    """A run of one method on one problem.

    `t`, `u` are the requested points (`t_eval`) or every step's end; `step_t` (m+1,), `step_u` (m+1, n) are always the
    steps, `h` (m,) their sizes, `slope` (m, n) their effective slopes S with u_new = project(u + h S), `error` (m,) the
    error over its tolerance. Calling it evaluates the dense output. A status other than "ok" and "event" is a failure,
    whose `message` names time, cause and remedy. `end_u` (n,) is the state it came to; a run with `dense=False` has no
    others but `u`: its `step_u` is None.
    """

    t: Any
    u: Any
    h: Any
    step_t: Any = None
    step_u: Any = None
    rejected: int = 0
    evaluations: int = 0
    status: str = "ok"
    error: Any = None
    problem: Any = None
    method: Any = None
    controller: Any = None
    engine: str = ""
    events: tuple = ()
    interpolant: Callable | None = None
    dense: bool = True
    end_u: Any = None
    given_slope: dataclasses.InitVar[Any] = None
    given_message: dataclasses.InitVar[str | None] = None
    given_sai: dataclasses.InitVar[Any] = None
    given_h_rho: dataclasses.InitVar[Any] = None

    def __post_init__(self, given_slope, given_message, given_sai, given_h_rho):
        self.step_t = self.t if self.step_t is None else self.step_t
        self.step_u = self.u if self.step_u is None and self.dense else self.step_u
        self.end_u = self.step_u[-1] if self.end_u is None and self.step_u is not None else self.end_u
        if given_slope is not None:
            self.slope = given_slope
        if given_message is not None:
            self.message = given_message
        if given_sai is not None:
            self.sai = given_sai
        if given_h_rho is not None:
            self.h_rho = given_h_rho

    @property
    def ok(self) -> bool:
        return self.status in OK_STATUSES

    @property
    def steps(self) -> int:
        """The number of accepted steps."""
        return len(self.h)

    @functools.cached_property
    def slope(self):
        """S = sum b_i k_i of every step, found by taking the steps again where the engine did not keep it."""
        require_states(self, "slopes")
        slopes = dense.effective_slopes(self)
        if self.status == "event" and self.steps:  # the last step was cut short
            slopes[-1] = (self.step_u[-1] - self.step_u[-2]) / self.h[-1]
        return slopes

    @functools.cached_property
    def sai(self):
        """The stiffness-aware index ||S|| / ||u|| of every step, as `odelab.sai` has it."""
        slope = self.slope
        return stiffness.relative_slope(self.step_u[:-1], slope)

    @functools.cached_property
    def h_rho(self):
        """|h| times the spectral radius along the solution, per step, where the stages tell it for free; else NaN."""
        if stability.twin_stages(self.method) is None or self.step_u is None:
            return np.full(self.steps, np.nan)
        return stability.h_rho(self.problem, self.method, self.step_t[:-1], self.step_u[:-1], self.h)

    @functools.cached_property
    def limit(self) -> "diagnosis.Limit | None":
        """How stability chose the steps of an adaptive explicit run (share, cause, remedy); None where accuracy did."""
        return diagnosis.stability_limit(self)

    @property
    def held_back(self) -> bool:
        """Were at least 30 % of the steps of an adaptive explicit run chosen by stability and not by accuracy?"""
        return self.limit is not None

    @functools.cached_property
    def message(self) -> str:
        """How the run went; for a successful run of an explicit method also whether stability held it back."""
        return diagnosis.success(self)

    def __call__(self, t):
        """The state at one time or an array of times within the run, from the continuous extension."""
        if self.interpolant is None:
            how = "it was not made by `odelab.solve`" if self.dense else "it was made with dense=False"
            raise ValueError(f"this trajectory has no dense output: {how}.")
        return self.interpolant(t)

    def plot(self, **options):
        """Solution and step sizes as one figure; see `odelab.plot.trajectory`."""
        from odelab import plot

        return plot.trajectory(self, **options)

    def __repr__(self):
        return f"Trajectory({self.problem.name if self.problem else '?'}, {self.steps} steps, {self.status})"

    def __str__(self):
        if self.problem is None:
            return repr(self)
        lines = [
            f"{self.problem.name} with {self.method}, {self.controller}, engine {self.engine}",
            f"  t       {self.step_t[0]:g} ... {self.step_t[-1]:g} (asked for {self.problem.t_span[1]:g})",
            f"  steps   {self.steps} accepted, {self.rejected} rejected, {self.evaluations} evaluations",
        ]
        if self.steps:
            sizes = np.abs(np.asarray(self.h))
            lines.append(f"  h       {sizes.min():.3g} ... {sizes.max():.3g}, median {np.median(sizes):.3g}")
        lines.append(f"  u(end)  {np.array2string(np.asarray(self.end_u), precision=6, threshold=8, edgeitems=3)}")
        for number, found in enumerate(self.events):
            lines.append(f"  event {number}  {len(found.t)} found")
        lines.append(f"  {self.status}: {self.message}")
        return "\n".join(lines)
