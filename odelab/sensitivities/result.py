"""A run, or an ensemble, with its sensitivities: a `Trajectory` or an `Ensemble` of u, with the columns beside it."""

import dataclasses
import re
from typing import Any

import numpy as np

from odelab.engines.lanes.result import Ensemble
from odelab.problem import without_jacobian
from odelab.runs.dense import Dense, Interpolant
from odelab.runs.trajectory import Trajectory
from odelab.sensitivities.jumps import EventSensitivities, Jumps
from odelab.sensitivities.system import System


@dataclasses.dataclass(eq=False, repr=False)
class SensitiveTrajectory(Trajectory):
    """What `odelab.solve` returns where it is asked for `sensitivities`: a `Trajectory`, and what belongs to it.

    t, u, h, step_t, step_u, rejected, evaluations, jacobians, factorisations, derivatives, took, turns, status, error
    problem, method, controller, engine, events, interpolant, dense, end_u, asked, also, known
                             as in `odelab.Trajectory`, of u alone
    columns                  m labels, with respect to what is differentiated, such as "params[0]" and "u0[1]"
    sensitivities            (k, n, m), du/d(column) at the times `t`, each at its time, however events move
    step_sensitivities       (steps + 1, n, m), the same at `step_t`; None for a run with `dense=False`
    end_sensitivities        (n, m), the same where the run ended
    event_sensitivities      for each event, how its times and the states there change: records of `t` (k, m) and
                             `u` (k, n, m)
    measured                 in words, whose errors chose the step sizes
    columns_at               the function behind `sensitivities_at`; None for a run with `dense=False`

    >>> import odelab as ol
    >>> decay = ol.Problem(lambda t, u, params: (-params[0] * u[0],), [1.0], (0.0, 1.0), params=2.0)
    >>> sol = ol.solve(decay, ol.DOPRI5, sensitivities=ol.wrt(params=True))
    >>> sol.columns, sol.sensitivities.shape == (sol.steps + 1, 1, 1)
    (('params[0]',), True)
    >>> sol.sensitivities_at(0.5).round(5)  # -t exp(-2 t)
    array([[-0.18394]])
    """

    columns: tuple[str, ...] = ()
    sensitivities: Any = None
    step_sensitivities: Any = None
    end_sensitivities: Any = None
    event_sensitivities: tuple[EventSensitivities, ...] = ()
    measured: str = ""
    columns_at: Any = None

    def sensitivities_at(self, t):
        """du/d(column) at one time, (n, m), or an array of times within the run, (..., n, m)."""
        if self.columns_at is None:
            raise ValueError("this trajectory was made with dense=False and kept no states between its points.")
        return self.columns_at.columns(t)

    def __str__(self):
        *lines, last = super().__str__().split("\n")
        first = np.array2string(self.end_sensitivities[:, 0], precision=6, threshold=8, edgeitems=3)
        count = len(self.columns)
        more = f", and {count - 1} more column{'s' * (count > 2)}" if count > 1 else ""
        lines.append(f"  S(end)  du/d {self.columns[0]} at t = {self.step_t[-1]:g}: {first}{more}")
        lines.append(f"          {self.measured}")
        return "\n".join([*lines, last])


class StateOf(Interpolant):
    """The state and the columns of a run, from the dense output of the whole system."""

    def __init__(self, whole: Interpolant, system: System):
        self.whole, self.system = whole, system
        self.t, self.u = whole.t, system.parts(whole.u)[0]

    def between(self, index, times):
        return self.system.parts(self.whole.between(index, times))[0]

    def columns(self, t):
        """(..., n, m)"""
        return self.system.parts(self.whole(t))[1]


def state_alone(whole: Interpolant, both: StateOf, system: System) -> Interpolant:
    """The dense output of u: its own steps taken again, where the run is one piece."""
    if not isinstance(whole, Dense):
        return both
    return dataclasses.replace(whole, problem=without_jacobian(system.problem), u=both.u, look_inside=None)


def measured_by(controller, system: System) -> str:
    """Whose errors have chosen the step sizes, in words."""
    if not controller.needs_error:
        return "step sizes from neither u nor its columns"
    count = len(system.columns)
    return f"step sizes from u{f' and {count} column' + 's' * (count > 1) if system.by_columns else ' alone'}"


def sensitive_trajectory(found: Trajectory, system: System, jumps: Jumps, controller) -> SensitiveTrajectory:
    """The run of the user's problem, from one of the whole system."""
    u, sensitivities = system.parts(found.u)
    end_u, end_sensitivities = system.parts(found.end_u)
    kept = {field.name: getattr(found, field.name) for field in dataclasses.fields(Trajectory)}
    kept |= {"problem": system.problem, "controller": controller, "asked": None}
    of_steps: dict[str, Any] = {"step_u": None, "interpolant": None}
    both = step_sensitivities = None
    if isinstance(found.interpolant, Interpolant):
        both = StateOf(found.interpolant, system)
        step_u, step_sensitivities = system.parts(found.step_u)
        of_steps = {"step_u": step_u, "interpolant": state_alone(found.interpolant, both, system)}
    events = [record._replace(u=system.parts(record.u)[0]) for record in found.events]
    said = {} if "message" not in vars(found) else {"message": re.sub(r"component (\d+)", system.named, found.message)}
    return SensitiveTrajectory(
        **{**kept, **of_steps, "u": u, "end_u": end_u, "events": tuple(events)},
        known=said | {"ending": found.ending},
        columns=tuple(column.label for column in system.columns),
        sensitivities=sensitivities,
        step_sensitivities=step_sensitivities,
        end_sensitivities=end_sensitivities,
        event_sensitivities=tuple(map(jumps.of_record, range(len(found.events)), found.events)),
        measured=measured_by(controller, system),
        columns_at=both,
    )


@dataclasses.dataclass(eq=False, repr=False)
class SensitiveEnsemble(Ensemble):
    """What `odelab.ensemble` returns where it is asked for `sensitivities`: an `Ensemble`, and what belongs to it.

    u, end_u, t, steps, rejected, codes, problem, method, controller, engine, t_eval, sai_max, h_rho_max
    inside_doubtful, took, turns, events
                     as in `odelab.Ensemble`, of u alone
    columns          m labels, with respect to what is differentiated, such as "params[0]" and "u0[1]"
    sensitivities    (N, n, m), du/d(column) at the end of each run; with `t_eval` (N, len(t_eval), n, m)

    >>> import odelab as ol
    >>> decay = ol.Problem(lambda t, u, params: (-params[0] * u[0],), [1.0], (0.0, 1.0), params=1.0)
    >>> runs = ol.ensemble(decay, ol.DOPRI5, params=[[1.0], [2.0]], sensitivities=ol.wrt(params=True))
    >>> runs.sensitivities.round(4).tolist()  # -exp(-1) and -exp(-2)
    [[[-0.3679]], [[-0.1353]]]
    """

    columns: tuple[str, ...] = ()
    sensitivities: np.ndarray | None = None


def sensitive_ensemble(found: Ensemble, system: System, controller) -> SensitiveEnsemble:
    """The ensemble of the user's problem, from one of the whole system."""
    u, sensitivities = system.parts(found.u)
    kept = {field.name: getattr(found, field.name) for field in dataclasses.fields(Ensemble)}
    kept |= {
        "u": u,
        "end_u": system.parts(found.end_u)[0],
        "problem": system.problem,
        "controller": controller,
        "sai_max": None,
        "h_rho_max": None,
    }
    labels = tuple(column.label for column in system.columns)
    return SensitiveEnsemble(**kept, columns=labels, sensitivities=sensitivities)
