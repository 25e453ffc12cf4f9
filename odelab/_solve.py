"""`solve`: checks what it is given, chooses an engine and hands over to the driver of the run."""

from collections.abc import Callable
from typing import Any

import numpy as np

from odelab import _choice as choice
from odelab.arrays import own_floats
from odelab.control.controllers import Controller, adaptive
from odelab.engines.driver import run
from odelab.engines.implicit import solve_implicit
from odelab.engines.not_compilable import NotCompilable
from odelab.methods.interface import StepMethod
from odelab.methods.switching import AUTO
from odelab.problem import Problem
from odelab.runs.events import Watch, checked_events
from odelab.runs.pieces import in_pieces
from odelab.runs.trajectory import Trajectory

USUAL = adaptive()  # the controller where the user gives none
ENGINES = ("auto", "python", "compiled")


class RunFailed(RuntimeError):
    """What `odelab.solve` raises for a run that did not get to the end of its span.

    trajectory    the run as far as it came; `trajectory.status` says in a word what went wrong, `trajectory.message`
                  in a sentence, with what would help

    >>> import odelab as ol
    >>> explosion = ol.Problem(lambda t, u, params: (u[0] * u[0],), [1.0], (0.0, 2.0))
    >>> try:
    ...     ol.solve(explosion, ol.DOPRI5)
    ... except ol.RunFailed as failure:
    ...     print(failure.trajectory.status, failure.trajectory.t[-1].round(3))
    blow_up 1.0
    """

    def __init__(self, trajectory: Trajectory):
        self.trajectory = trajectory
        super().__init__(f"{trajectory.problem.name}: {trajectory.message}.")

    def __reduce__(self):
        return RunFailed, (self.trajectory,)


def solve(
    problem: Problem,
    method: StepMethod = AUTO,
    controller: Controller | None = None,
    *,
    t_eval: Any = None,
    events: Any = None,
    project: Callable | None = None,
    engine: str = "auto",
    dense: bool = True,
    tstops: Any = None,
    max_steps: int = 1_000_000,
    exact: bool = False,
    throw: bool = True,
) -> Trajectory:
    """Solve an initial value problem over its time span.

    problem      the `Problem`: right-hand side, initial state, span, parameters
    method       how a step is taken; see "Which method" in the docstring of `odelab`. `ol.AUTO`, the default, changes
                 between `ol.DOPRI5` and `ol.RODAS4` by itself; `ol.DOP853` suits sharp tolerances, `ol.RKC2` parabolic
                 problems
    controller   `ol.adaptive(rtol, atol)`, the default, chooses steps by an error estimate; `ol.fixed(h)` keeps h
    t_eval       times at which to report the solution, sorted in the direction of the run; by default every step's end
    events       functions g(t, u, params), or `ol.Event`s, whose zeros are located on the dense output. An event may
                 end the run (`terminal`) or change the state (`change`)
    project      a function u -> u applied last to each new state, for instance to keep it positive; an adaptive run
                 judges the projected state. It gets a copy to work on. None by default; not for SciPy's methods
    engine       who runs the steps. "python" is plain Python; "compiled" is compiled code, or an error where a function
                 cannot be compiled; "auto", the default, compiles what takes a moment to compile, and anything else
                 where a run is long
    dense        False keeps no states but those at `t_eval` (or the end): no dense output and no events, but memory
                 for large systems. True by default
    tstops       times at which a step must end and a new one begin, such as known jumps of the right-hand side; an
                 adaptive run that knows of no jump may step over a short one. None by default
    max_steps    how many attempted steps, accepted and rejected together, the run may take; 1,000,000 by default
    exact        True for the same bits in plain Python, in compiled code and in an ensemble, on every processor: no
                 a * b + c is made one operation, and elementary functions are odelab's own. It costs up to a third of
                 the speed, and plain Python is slow; states between steps agree to rounding. False by default
    throw        True, the default, raises `RunFailed` where the run fails; False returns what was computed

    Returns a `Trajectory`: `t`, `u` (the reported times and states), `step_t`, `step_u`, `h` (the steps), `events`,
    `status` and `message`. `sol(t)` is the solution at any time of the run, and `print(sol)` tells how the run went.
    Ctrl-C ends a run with what was computed until then, status "interrupted".

    Raises TypeError or ValueError, naming the argument, for wrong input, and RunFailed, with the `trajectory` in it,
    for a run that did not get through.

    >>> import odelab as ol
    >>> def predator_prey(t, u, params):
    ...     hares, lynxes = u
    ...     return hares - hares * lynxes, hares * lynxes - lynxes
    >>> problem = ol.Problem(predator_prey, u0=[2.0, 1.0], t_span=(0.0, 10.0))
    >>> sol = ol.solve(problem, ol.DOPRI5, ol.adaptive(rtol=1e-8, atol=1e-10))
    >>> sol.status, sol.t.shape == (sol.steps + 1,), sol.u.shape == (sol.steps + 1, 2)
    ('ok', True, True)
    >>> sol([2.5, 5.0]).round(4)
    array([[0.4153, 1.1685],
           [1.0051, 0.4064]])
    """
    controller = USUAL if controller is None else controller
    check_arguments(problem, method, controller, engine, max_steps)
    controller = controller.suited_to(method)
    check_projection(project, problem)
    times = checked_times("t_eval", t_eval, problem)
    stops = checked_stops(tstops, problem)
    watched = checked_events(events)
    if not dense and watched:
        raise ValueError("`dense=False` keeps no states between which `events` could be found; drop one of the two.")
    if exact and method.switches:
        raise ValueError("`exact=True` works with one method alone; name it, for instance odelab.DOPRI5.")
    if not dense and method.run_by_scipy:
        raise ValueError(f"`dense=False` works with odelab's own methods only; {method.name} is SciPy's.")
    if method.run_by_scipy and project is not None:
        raise ValueError(f"`project` works with odelab's own methods only; {method.name} is SciPy's and takes none.")

    def piece(part, times, watched, attempts):
        if method.run_by_scipy:
            return solve_implicit(part, method, controller, times, watched, attempts)
        during = watched if any(event.terminal for event in watched) else ()

        searches = []  # of the engine that took the run

        def drive(chosen, attempts):
            searches.append(getattr(chosen, "search", None))
            return run(chosen, attempts, during, times, dense)

        trajectory = try_engines(drive, engine, part, method, controller, project, dense, exact, attempts)
        return trajectory if during or not watched else with_events(trajectory, watched, searches[-1])

    if len(stops) or any(event.change for event in watched):
        trajectory = in_pieces(piece, problem, stops, watched, times, dense, max_steps)
    else:
        trajectory = piece(problem, times, watched, max_steps)
    if throw and not trajectory.ok and trajectory.status != "interrupted":
        raise RunFailed(trajectory)
    return trajectory


def with_events(trajectory, watched, searches) -> Trajectory:
    """A run with the events that lie on it, none of which ends it."""
    watch = Watch(None, watched, trajectory.problem, searches)
    try:
        with np.errstate(all="ignore"):
            watch.walk(trajectory.interpolant)
    except KeyboardInterrupt:
        trajectory.status = "interrupted"
        trajectory.message = "interrupted while events were looked for; those found until then are kept"
    trajectory.events = watch.records()
    return trajectory


def try_engines(drive, engine, problem, method, controller, project, dense, exact, max_steps) -> Trajectory:
    """Call `drive(engine, attempts)` with one engine after the other, until one ends the run or spends all attempts."""
    for chosen, attempts in choice.choose(engine, problem, method, controller, project, dense, exact, max_steps):
        try:
            trajectory = drive(chosen, attempts)
            trajectory.problem = problem  # kernels may have solved it without its own Jacobian
        except NotCompilable as reason:
            if engine == "compiled":
                raise
            choice.refuse(problem, method, reason, 3)
            continue
        if trajectory.status != "max_steps" or attempts >= max_steps:
            break
    return trajectory


def check_arguments(problem, method, controller, engine, max_steps):
    if not isinstance(problem, Problem):
        raise TypeError(
            f"`problem` must be a Problem, got {problem!r}; build one with odelab.Problem(rhs, u0, t_span)."
        )
    if not isinstance(method, StepMethod):
        raise TypeError(
            f"`method` must be a Method like odelab.DOPRI5, got {method!r}; the explicit ones are in odelab.METHODS, "
            "the others are odelab.RKC2, ROS2, RODAS4, RODAS5P, ESDIRK43, AUTO, RADAU, BDF and LSODA."
        )
    if not isinstance(controller, Controller):
        raise TypeError(f"`controller` must come from odelab.fixed or odelab.adaptive, got {controller!r}.")
    if controller.needs_error and not method.embedded:
        raise ValueError(
            f"`controller` is adaptive, but {method.name} has no embedded method to estimate its error; use "
            "odelab.fixed(h=...), or a method that has one (RKF45, DOPRI5, BS32, HEUN)."
        )
    if method.switches and controller.law is None:
        raise ValueError(f"`controller` must be odelab.adaptive for {method.name}, got {controller!r}.")
    atol = controller.atol
    if isinstance(atol, np.ndarray) and len(atol) != problem.size:
        raise ValueError(f"`atol` has {len(atol)} entries for a state of {problem.size} components.")
    if engine not in ENGINES:
        raise ValueError(f"`engine` must be one of {ENGINES}, got {engine!r}.")
    if controller.needs_error and not (isinstance(atol, float) and atol > 0.0):
        unmeasured = np.flatnonzero((np.asarray(atol) == 0.0) & (problem.u0 == 0.0))
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
    answer = np.asarray(project(np.array(problem.u0)))
    if answer.shape != problem.u0.shape:
        raise ValueError(
            f"`project` returned shape {answer.shape} for a state of shape {problem.u0.shape}; it must keep it."
        )
    if answer.dtype.kind not in "fiub":
        raise TypeError(f"`project` must return real numbers, got dtype {answer.dtype}.")


def checked_times(name, given, problem: Problem):
    """`t_eval` or `tstops` as a row of times in the span, in the direction of the run."""
    if given is None:
        return None
    try:
        times = np.atleast_1d(own_floats(given))
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a row of times, got {given!r}.") from None
    t0, t1 = problem.t_span
    if times.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional, got shape {times.shape}.")
    outside = ~((times >= min(t0, t1)) & (times <= max(t0, t1)))
    if outside.any():
        raise ValueError(
            f"`{name}` = {times[outside][0]} lies outside `t_span` = ({t0}, {t1}); widen the span or drop it."
        )
    if (np.diff(times) * np.sign(t1 - t0) <= 0).any():
        raise ValueError(f"`{name}` must be sorted in the direction of the run, without repetitions; sort it first.")
    return times


def checked_stops(tstops, problem: Problem) -> np.ndarray:
    """The times within the span on which a step must end, beside its ends."""
    times = checked_times("tstops", tstops, problem)
    return np.zeros(0) if times is None else times[(times != problem.t_span[0]) & (times != problem.t_span[1])]
