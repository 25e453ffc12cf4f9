"""The result of a run: its states, its steps, and a message about how it went."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from odelab.results import Result, named_components
from odelab.runs import dense, diagnosis, fast_modes, limits
from odelab.runs import h_rho as stability
from odelab.stiffness import indices as stiffness

OK_STATUSES = ("ok", "event")
ELSEWHERE = {
    "y": "`u`, with a row per time; `sol.u.T` is SciPy's `y`",
    "ys": "`u`, with a row per time",
    "ts": "`t`",
    "success": "`ok`",
    "sol": "the trajectory itself, `sol(t)`",
    "nfev": "`evaluations`",
    "njev": "`jacobians`",
    "t_events": "`events[k].t`",
    "y_events": "`events[k].u`",
}  # what the results of other libraries are called here


def require_states(trajectory, purpose: str):
    if trajectory.step_u is None:
        raise ValueError(
            f"this trajectory was made with dense=False and kept no states between its points, which {purpose} need; "
            "solve again without dense=False."
        )


@dataclasses.dataclass(eq=False, repr=False)
class Trajectory(
    Result,
    kinds={
        "overview": "odelab.plot.solution:trajectory",
        "solution": "odelab.plot.solution:draw_solution",
        "steps": "odelab.plot.solution:draw_steps",
        "phase": "odelab.plot.solution:draw_phase",
        "limited_by": "odelab.plot.along_a_run:draw_limited_by",
        "region": "odelab.plot.region:region_of_run",
    },
):
    """What `odelab.solve` returns: one run, its steps, and in words how it went.

    Calling it, `sol(t)`, evaluates its dense output at one time or an array of times within the run. Its times and
    states cannot be written to: take a copy, `sol.u.copy()`, to change it.

    t              (k,), the reported times: `t_eval` as far as the run got, or the ends of all steps
    u              (k, n), the states at `t`
    h              (m,), the sizes of the accepted steps
    step_t         (m + 1,), the times between the steps, start and end included
    step_u         (m + 1, n), the states there; None for a run with `dense=False`
    rejected       how many attempted steps were rejected; of a run that an event has ended, this and the work below are
                   those up to the event
    evaluations    how often the right-hand side was evaluated
    jacobians, factorisations
                   how many Jacobians were formed, and with them df/dt, and how many matrices were factored, one for
                   each attempt of a linearly implicit step; 0 for explicit methods
    derivatives    in words, how Jacobians were found and how linear systems were solved; empty for explicit methods
    took           (m,), the name of the method that took each step, of a run of two methods (`odelab.auto`); else None
    turns          how often the method changed, an implicit step was tried, and was refused, of such a run; else None
    status         "ok", "event" (ended by one), "interrupted", or what went wrong: "max_steps", "time_limit",
                   "step_too_small", "not_finite", "blow_up", "wrong_shape", "solver_failed", "no_consistent_start"
    error          (m,), the estimated error of each step over its tolerance; NaN for fixed steps
    problem        the `Problem`
    method         the method
    controller     the controller
    engine         the engine that ran it: "python", "compiled" or "scipy"
    events         for each event a record of times `t`, states `u` and `direction`s, in the order given
    interpolant    the function behind `sol(t)`; None for a run with `dense=False`
    dense          whether all states were kept
    end_u          (n,), the state the run came to
    asked          the arguments of `odelab.solve` with which the run can be repeated: "project", "tstops", "engine",
                   "exact", and "changing", its events that change the state, by their numbers; None for other
                   trajectories
    also           what the message of a successful run ends with, as a function, which is called when it is asked for
    known          those of `slope`, `message`, `ending`, `sai` and `h_rho` that were computed during the run, by name

    Computed when first asked for: `message` (how it went and what would help), `slope` (m, n), the effective slope S of
    each step with u_new = u + h S, `sai` (m,), ||S|| / ||u||, `h_rho` (m,), the step size times the spectral radius,
    `held_back`, whether stability chose the steps of an adaptive run, and `fast_modes`, which components are stiff, of
    a small system whose method needs a Jacobian or was held back; else None.

    >>> import odelab as ol
    >>> sol = ol.solve(ol.problems.stiff_linear(), ol.DOPRI5, ol.adaptive(1e-4, 1e-7))
    >>> sol.ok, sol.held_back, sol.u.shape == (sol.steps + 1, 1)
    (True, True, True)
    >>> sol([0.5, 1.0]).round(3).ravel()
    array([1.786, 2.263])
    """

    t: Any
    u: Any
    h: Any
    step_t: Any = None
    step_u: Any = None
    rejected: int = 0
    evaluations: int = 0
    jacobians: int = 0
    factorisations: int = 0
    derivatives: str = ""
    took: Any = None
    turns: Any = None
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
    asked: Mapping[str, Any] | None = None
    also: Callable[[], str] = str
    known: dataclasses.InitVar[Mapping[str, Any]] = MappingProxyType({})

    ending = ""  # what the message begins with, of a run that an event has ended
    start = None  # type: np.ndarray | None  # the state from which it began, which a mass matrix may have moved
    doubt = None  # type: float | None  # a time of `t_eval` at which the state is much less exact than the ends of steps
    trials = 0  # how often the last step of such a run was taken again

    def __post_init__(self, known):
        self.step_t = self.t if self.step_t is None else self.step_t
        self.step_u = self.u if self.step_u is None and self.dense else self.step_u
        self.end_u = self.step_u[-1] if self.end_u is None and self.step_u is not None else self.end_u
        for name, value in known.items():
            if value is not None and not (isinstance(value, str) and not value):
                self.__dict__[name] = value
        if self.interpolant is not None:  # dense output reads these arrays later, so they must not change
            for values in (self.t, self.u, self.step_t, self.step_u):
                if isinstance(values, np.ndarray):
                    values.setflags(write=False)

    def __getattr__(self, name):
        if name in ELSEWHERE:
            raise AttributeError(f"a Trajectory has no {name!r}: here it is {ELSEWHERE[name]}.", name=name, obj=self)
        return object.__getattribute__(self, name)  # raises the error that led here

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
        """|h| times the spectral radius along the solution, per step, where the stages determine it; else NaN."""
        if self.problem is None or self.method is None or self.method.twin_stages is None or self.step_u is None:
            return np.full(self.steps, np.nan)
        return stability.h_rho(self.problem, self.method, self.step_t[:-1], self.step_u[:-1], self.h)

    @functools.cached_property
    def limit(self) -> "limits.Limit | None":
        """How stability limited the steps of an adaptive explicit run (share, cause, remedy); None if accuracy did."""
        return limits.stability_limit(self)

    @property
    def held_back(self) -> bool:
        """Were at least 30 % of the steps of an adaptive explicit run chosen by stability and not by accuracy?"""
        return self.limit is not None

    @functools.cached_property
    def message(self) -> str:
        """How the run went; for a successful run of an explicit method also whether stability held it back."""
        return diagnosis.success_message(self) + self.also()

    def add_to_message(self, said: Callable[[], str]):
        """Let the message end with what `said()` returns, without working it out before it is asked for."""
        if "message" in self.__dict__:
            self.message += said()
        else:
            self.also = said

    @functools.cached_property
    def fast_modes(self) -> "fast_modes.FastModes | None":
        """Which components are stiff where h times the spectral radius was largest; None where that is not known."""
        return fast_modes.fast_modes_of(self)

    def __call__(self, t):
        """The state at one time or an array of times within the run, from the continuous extension."""
        if self.interpolant is None:
            how = "it was not made by `odelab.solve`" if self.dense else "it was made with dense=False"
            raise ValueError(f"this trajectory has no dense output: {how}.")
        return self.interpolant(t)

    def table(self):
        """Times, states and what is known of the step that led to each: size, error, method. NaN at the start."""
        if self.step_u is None:
            return {"t": self.t, **named_components(self.u)}
        steps = {"h": self.h, "error": np.full(self.steps, np.nan) if self.error is None else self.error}
        return {
            "t": self.step_t,
            **{name: np.concatenate([[np.nan], values]) for name, values in steps.items()},
            **({} if self.took is None else {"took": np.concatenate([[""], self.took])}),
            **named_components(self.step_u),
        }

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
        if self.took is not None:
            turns = [f"{(self.took == name).sum()} by {name}" for name in sorted(set(self.took))]
            lines.append(f"          {', '.join(turns)}")
        if self.derivatives:
            lines.append(f"  linear  {self.jacobians} Jacobians, {self.factorisations} factorisations")
            lines.append(f"          {self.derivatives}")
        if self.steps:
            sizes = np.abs(np.asarray(self.h))
            lines.append(f"  h       {sizes.min():.3g} ... {sizes.max():.3g}, median {np.median(sizes):.3g}")
        lines.append(f"  u(end)  {np.array2string(np.asarray(self.end_u), precision=6, threshold=8, edgeitems=3)}")
        for number, found in enumerate(self.events):
            lines.append(f"  event {number}  {len(found.t)} found")
        if self.fast_modes is not None:
            lines.append(f"  stiff   {self.fast_modes}")
        lines.append(f"  {self.status}: {self.message}")
        return "\n".join(lines)
