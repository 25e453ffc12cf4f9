"""The door: `solve` checks what it is given, chooses an engine and hands over to the driver."""

from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.arrays import own_floats
from odelab.control.controllers import Controller, adaptive
from odelab.engines.driver import run
from odelab.engines.implicit import ImplicitMethod, solve_implicit
from odelab.engines.python import PythonEngine
from odelab.methods.stabilised import StabilisedMethod
from odelab.methods.tableau import Method
from odelab.problem import Problem
from odelab.runs.events import checked_events
from odelab.runs.trajectory import Trajectory

ENGINES = ("auto", "python", "compiled")


class RunFailed(RuntimeError):
    """A run that did not get through; what was computed until then is in `trajectory`."""

    def __init__(self, trajectory: Trajectory):
        self.trajectory = trajectory
        super().__init__(f"{trajectory.problem.name}: {trajectory.message}.")


def solve(
    problem: Problem,
    method: Method | StabilisedMethod | ImplicitMethod,
    controller: Controller | None = None,
    *,
    t_eval: Any = None,
    events: Any = None,
    project: Callable | None = None,
    engine: str = "auto",
    dense: bool = True,
    max_steps: int = 1_000_000,
    throw: bool = True,
) -> Trajectory:
    """Solve `problem` over its time span.

    t_eval      times to report instead of every step (the steps stay in `step_t`, `h`, `slope`)
    events      functions g(t, u, params) or `Event`s, whose zeros are located on the dense output
    project     u -> u, applied last to each new state (a positivity); an adaptive run judges the projected state
    engine      "python", "compiled" (a kernel, or the generic engine for what kernels do not know), or "auto": plain
                Python for a short run, a kernel for a long one or many (`odelab.engines.choice`)
    dense       False keeps no states but those at `t_eval` (or the end): no dense output, but memory for large systems
    max_steps   attempts, accepted and rejected together
    throw       raise `RunFailed` when the run fails (with the trajectory in it) instead of returning it

    Ctrl-C ends a run with what was computed, status "interrupted".
    """
    controller = adaptive() if controller is None else controller
    check_arguments(problem, method, controller, engine, max_steps)
    check_projection(project, problem)
    times = checked_times(t_eval, problem)
    watched = checked_events(events)
    if not dense and (watched or isinstance(method, ImplicitMethod)):
        raise ValueError(
            "`dense=False` goes with explicit methods and without `events`, which are found between steps."
        )
    if isinstance(method, ImplicitMethod):
        if project is not None:
            raise ValueError(f"`project` works with explicit methods only; {method.name} is SciPy's and takes none.")
        trajectory = solve_implicit(problem, method, controller, times, watched, max_steps)
    else:

        def drive(chosen, attempts):
            return run(chosen, attempts, watched, times, dense)

        trajectory = driven(drive, engine, problem, method, controller, project, dense, max_steps)
    if throw and not trajectory.ok and trajectory.status != "interrupted":
        raise RunFailed(trajectory)
    return trajectory


def driven(drive, engine, problem, method, controller, project, dense, max_steps) -> Trajectory:
    """`drive(engine, attempts)` with the engine asked for."""
    if engine == "python":
        return drive(PythonEngine(problem, method, controller, project), max_steps)
    from odelab.engines import choice

    if engine == "compiled":
        return drive(choice.demanded(problem, method, controller, project, dense), max_steps)
    return choice.automatic(problem, method, controller, project, dense, max_steps, drive)


def check_arguments(problem, method, controller, engine, max_steps):
    if not isinstance(problem, Problem):
        raise TypeError(
            f"`problem` must be a Problem, got {problem!r}; build one with odelab.Problem(rhs, u0, t_span)."
        )
    if not isinstance(method, Method | StabilisedMethod | ImplicitMethod):
        raise TypeError(
            f"`method` must be a Method like odelab.DOPRI5, got {method!r}; the methods are in odelab.METHODS."
        )
    if not isinstance(controller, Controller):
        raise TypeError(f"`controller` must come from odelab.fixed or odelab.adaptive, got {controller!r}.")
    if controller.needs_error and isinstance(method, Method) and not method.embedded:
        raise ValueError(
            f"`controller` is adaptive, but {method.name} has no embedded method to estimate its error; use "
            "odelab.fixed(h=...), or a method that has one (RKF45, DOPRI5, BS32, HEUN)."
        )
    if np.ndim(controller.atol) and len(controller.atol) != problem.size:
        raise ValueError(f"`atol` has {len(controller.atol)} entries for a state of {problem.size} components.")
    if engine not in ENGINES:
        raise ValueError(f"`engine` must be one of {ENGINES}, got {engine!r}.")
    if controller.needs_error:
        unmeasured = np.flatnonzero((np.asarray(controller.atol) == 0.0) & (problem.u0 == 0.0))
        if unmeasured.size:
            raise ValueError(
                f"`atol` = 0 leaves no measure for component {unmeasured[0]}, which starts at 0; give it a positive "
                "one."
            )
    if isinstance(max_steps, bool) or not (isinstance(max_steps, int | np.integer) and max_steps > 0):
        raise ValueError(f"`max_steps` must be a positive whole number, got {max_steps!r}.")


def check_projection(project, problem: Problem):
    if project is None:
        return
    if not callable(project):
        raise TypeError(f"`project` must be a function u -> u, got {project!r}.")
    shape = np.shape(project(np.array(problem.u0)))
    if shape != problem.u0.shape:
        raise ValueError(f"`project` returned shape {shape} for a state of shape {problem.u0.shape}; it must keep it.")


def checked_times(t_eval, problem: Problem):
    if t_eval is None:
        return None
    try:
        times = np.atleast_1d(own_floats(t_eval))
    except (TypeError, ValueError):
        raise ValueError(f"`t_eval` must be a row of times, got {t_eval!r}.") from None
    t0, t1 = problem.t_span
    if times.ndim != 1:
        raise ValueError(f"`t_eval` must be one-dimensional, got shape {times.shape}.")
    outside = ~((times >= min(t0, t1)) & (times <= max(t0, t1)))
    if outside.any():
        raise ValueError(
            f"`t_eval` = {times[outside][0]} lies outside `t_span` = ({t0}, {t1}); widen the span or drop it."
        )
    if (np.diff(times) * np.sign(t1 - t0) <= 0).any():
        raise ValueError("`t_eval` must be sorted in the direction of the run, without repetitions; sort it first.")
    return times
