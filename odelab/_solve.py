"""`solve`: checks what it is given, chooses an engine and hands over to the driver of the run."""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Never

import numpy as np

from odelab import _choice as choice
from odelab._unknown_arguments import refuse_unknown
from odelab.arrays import own_floats
from odelab.complex_states import projection_on_parts
from odelab.control.controllers import Controller, adaptive
from odelab.engines.driver import run
from odelab.engines.implicit import solve_implicit
from odelab.engines.not_compilable import NotCompilable
from odelab.engines.pace import pace_of
from odelab.linear.algebraic import equations_in_words, start_at
from odelab.methods.interface import StepMethod
from odelab.methods.switching import AUTO
from odelab.problem import Problem
from odelab.runs.complex_runs import complex_run, on_parts
from odelab.runs.events import Watch, checked_events
from odelab.runs.interior import doubtful_time
from odelab.runs.pieces import in_pieces
from odelab.runs.retaking import can_be_retaken
from odelab.runs.trajectory import Trajectory
from odelab.sensitivities.jumps import Jumps
from odelab.sensitivities.result import sensitive_trajectory
from odelab.sensitivities.selection import Wrt
from odelab.sensitivities.system import System

USUAL = adaptive()  # the controller where the user gives none
EXACT_WITH_TWO = "`exact=True` works with one method alone; name it, for instance odelab.DOPRI5."
DOUBT = "the states at `t_eval` are much less exact"  # how the warning of `t_eval` begins
NO_STOPS = np.zeros(0)
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
    t_eval_by: str = "dense",
    tstops: Any = None,
    max_steps: int = 1_000_000,
    exact: bool = False,
    throw: bool = True,
    progress: bool | Callable[[float, float], None] | None = None,
    time_limit: float | None = None,
    sensitivities: Wrt | None = None,
    sensitivity_errors: bool = True,
    **_unknown: Never,
) -> Trajectory:
    """Solve an initial value problem over its time span.

    problem      the `Problem`: right-hand side, initial state, span, parameters. With a singular `mass` the run begins
                 with a state that satisfies the algebraic equations; the message says what was moved
    method       how a step is taken; see "Which method" in the docstring of `odelab`. `ol.AUTO`, the default, changes
                 between `ol.DOPRI5` and `ol.RODAS4` by itself; `ol.DOP853` suits sharp tolerances, `ol.RKC2` parabolic
                 problems
    controller   `ol.adaptive(rtol, atol)`, the default, chooses steps by an error estimate; `ol.fixed(h)` keeps h
    t_eval       times at which to report the solution, sorted in the direction of the run; by default every step's end
    t_eval_by    "dense", the default, takes the states at `t_eval` from the dense output; "step" takes a step of its
                 own to each of these times, as exact as the ends of steps: for stiff components that follow others,
                 where a RuntimeWarning asks for it
    events       functions g(t, u, params), or `ol.Event`s, whose zeros are located on the dense output. An event may
                 end the run (`terminal`) or change the state (`change`)
    project      a function u -> u applied last to each new state, for instance to keep it positive; an adaptive run
                 judges the projected state. It gets a copy to work on. None by default; not for SciPy's methods
    engine       who runs the steps. "python" is plain Python; "compiled" is compiled code, or an error where a function
                 cannot be compiled; "auto", the default, compiles at once what can be followed as a graph, and anything
                 else where a run is long
    dense        False keeps no states but those at `t_eval` (or the end): no dense output and no events, but memory
                 for large systems. True by default
    tstops       times at which a step must end and a new one begin, such as known jumps of the right-hand side, which
                 between two stops is evaluated on its own side of them; an adaptive run that knows of no jump may step
                 over a short one. None by default
    max_steps    how many attempted steps, accepted and rejected together, the run may take; 1,000,000 by default
    exact        True for the same bits in plain Python, in compiled code and in an ensemble, on every processor: no
                 a * b + c is made one operation, and elementary functions are odelab's own. It costs up to a third of
                 the speed, and plain Python is slow; states between steps agree to rounding. False by default
    throw        True, the default, raises `RunFailed` where the run fails; False returns what was computed, which fits
                 need, as their trials may leave the domain
    progress     True for a line on the terminal, or a function (done, total) that is called now and then with the time
                 covered and the length of the span; None by default
    time_limit   seconds after which the run ends with the status "time_limit" and what was computed until then; the
                 clock is looked at between steps, some twenty times a second. None by default
    sensitivities
                 `ol.wrt(params=..., u0=...)`: the derivatives of the solution with respect to these numbers are
                 computed along with it, by the same steps; what is returned has them, too. The operations of the
                 right-hand side, and of events, must be such that they can be followed. None by default
    sensitivity_errors
                 whether the errors of these derivatives count, beside those of the solution, when a step is judged;
                 True by default. False takes the steps of a run without them: fewer, and the derivatives may be a
                 hundred times less exact than the solution

    Returns a `Trajectory`: `t`, `u` (the reported times and states), `step_t`, `step_u`, `h` (the steps), `events`,
    `status` and `message`; with `sensitivities` it is a `SensitiveTrajectory`. `sol(t)` is the solution at any time of
    the run, and `print(sol)` tells how the run went. Ctrl-C ends a run with what was computed until then, status
    "interrupted".

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
    refuse_unknown(solve, _unknown)
    controller = USUAL if controller is None else controller
    check_arguments(problem, method, controller, engine, max_steps)
    given, method = method, taking_a_mass(problem, method, controller)
    controller = controller.suited_to(method)
    if problem.is_complex and callable(project):
        project = projection_on_parts(project)
    check_projection(project, problem)
    pace = pace_of(problem.t_span, progress, time_limit)
    times = checked_times("t_eval", t_eval, problem)
    stops = checked_stops(tstops, problem)
    watched = checked_events(events)
    if throw and not any(event.terminal for event in watched):
        check_number_of_steps(problem, controller, max_steps)
    if problem.is_complex:
        watched = tuple(map(on_parts, watched))
    changing = {number: event for number, event in enumerate(watched) if event.change is not None}
    asked = {"project": project, "tstops": stops, "engine": engine, "exact": exact, "changing": changing}
    if sensitivities is not None:
        check_no_projection(project)
        system = System(problem, sensitivities, sensitivity_errors)
        jumps = Jumps(system, watched)
        whole = solve(
            system.whole,
            method,
            system.controller(controller),
            t_eval=t_eval,
            t_eval_by=t_eval_by,
            events=jumps.events,
            engine=system.engine(engine, method),
            dense=dense,
            tstops=tstops,
            max_steps=max_steps,
            exact=exact,
            progress=progress,
            time_limit=time_limit,
            throw=False,
        )
        found = sensitive_trajectory(whole, system, jumps, controller)
        found.asked = asked
        return unless_failed(found, throw)
    if not dense and watched:
        raise ValueError("`dense=False` keeps no states between which `events` could be found; drop one of the two.")
    if exact and method.switches:
        raise ValueError(EXACT_WITH_TWO)
    if not dense and method.run_by_scipy:
        raise ValueError(f"`dense=False` works with odelab's own methods only; {method.name} is SciPy's.")
    check_way(t_eval_by, method)
    if method.run_by_scipy and project is not None:
        raise ValueError(f"`project` works with odelab's own methods only; {method.name} is SciPy's and takes none.")

    def piece(part, times, watched, attempts):
        if method.run_by_scipy:
            return solve_implicit(part, method, controller, times, watched, attempts, pace)
        during = watched if any(event.terminal for event in watched) else ()

        engines = []  # those that were tried, the one that took the run last

        def drive(chosen, attempts):
            engines.append(chosen)
            return run(chosen, attempts, during, times, dense, t_eval_by, pace)

        trajectory = try_engines(drive, engine, part, method, controller, project, dense, exact, attempts)
        return trajectory if during or not watched else with_events(trajectory, watched, engines[-1])

    if len(stops) or any(event.change for event in watched):
        trajectory = in_pieces(piece, problem, stops, watched, times, dense, max_steps, t_eval_by, pace)
    else:
        trajectory = piece(problem, times, watched, max_steps)
    if times is not None and t_eval_by == "dense":
        warn_of_doubt(trajectory, times)
    trajectory.asked = asked
    if problem.mass is not None:
        trajectory.add_to_message(functools.partial(start_in_words, problem, trajectory.start, given, method))
        trajectory.problem = problem
    if problem.is_complex:
        trajectory = complex_run(trajectory)
    return unless_failed(trajectory, throw)


def unless_failed(trajectory, throw: bool):
    """The run; raises `RunFailed` where it has failed and that is asked for."""
    if throw and not trajectory.ok and trajectory.status != "interrupted":
        raise RunFailed(trajectory)
    return trajectory


def check_way(by, method):
    if by not in ("dense", "step"):
        raise ValueError(f"`t_eval_by` must be 'dense' or 'step', got {by!r}.")
    if by == "step" and not can_be_retaken(method):
        reason = "is SciPy's" if method.run_by_scipy else "chooses the number of its stages as it goes"
        raise ValueError(f"`t_eval_by='step'` takes steps of a method again, and {method.name} {reason}; leave it out.")


def warn_of_doubt(trajectory, times):
    """Warn where the states at some of these times are much less exact than the ends of steps."""
    if trajectory.doubt is None and trajectory.interpolant is not None:
        trajectory.doubt = doubtful_time(trajectory.interpolant, trajectory.controller, times)
    if trajectory.doubt is not None:
        warnings.warn(
            f"{DOUBT} than the ends of steps, as at t = {trajectory.doubt:g}: inside long steps a stiff component "
            "follows others, and its error is not controlled there; give t_eval_by='step', or a `max_step` to the "
            "controller",
            RuntimeWarning,
            stacklevel=3,
        )


def with_events(trajectory, watched, engine) -> Trajectory:
    """A run with the events that lie on it, none of which ends it."""
    watch = Watch(None, watched, trajectory.problem, trajectory.controller, getattr(engine, "search", None))
    trajectory.interpolant.look_inside = getattr(engine, "look_inside", None)
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


def taking_a_mass(problem: Problem, method: StepMethod, controller: Controller) -> StepMethod:
    """The method of a run, which for a problem with a mass matrix is one that takes it; of two, the implicit one.

    Where the matrix is singular, the embedded method has to damp the residual of an algebraic equation, as the method
    itself does. Otherwise the estimate of the error turns a residual of the size of rounding into rejections that no
    step size avoids.
    """
    if problem.mass is None:
        return method
    takes: Any = method.members[-1]
    if not takes.takes_mass:
        raise ValueError(
            f"`method` = {method.name} takes no mass matrix; linearly implicit methods do, odelab.RODAS4 and RODAS5P. "
            "(Where M is regular, a right-hand side that solves with M serves every method.)"
        )
    if not problem.mass_matrix.equations:
        return takes
    if not takes.dae_order:
        raise ValueError(
            f"`method` = {takes.name} does not solve algebraic equations: a step multiplies their residual by "
            f"|R(infinity)| = {abs(takes.at_infinity):.3g}, where less than 1 is needed; take odelab.RODAS4 or RODAS5P."
        )
    if controller.needs_error and not abs(takes.embedded_at_infinity) < 1.0:
        raise ValueError(
            f"`method` = {takes.name} cannot choose steps for algebraic equations: its embedded method multiplies "
            f"their residual by |R(infinity)| = {abs(takes.embedded_at_infinity):.3g} at every step size, where less "
            "than 1 is needed; take odelab.RODAS4 or RODAS5P, or odelab.fixed(h=...)."
        )
    return takes


def start_in_words(problem: Problem, u, given: StepMethod, method: StepMethod) -> str:
    """What the message of a run with a mass matrix ends with: its start, and which method took the place of another."""
    others = f"; {given.name} takes {method.name} alone, as there is a mass matrix" if given is not method else ""
    return f"; {equations_in_words(problem, start_at(problem, u))}{others}"


def check_number_of_steps(problem: Problem, controller: Controller, max_steps: int):
    """Refuse a run of fixed steps that is known to need more of them than it may take."""
    if controller.h is None:
        return
    span = abs(problem.t_span[1] - problem.t_span[0])
    steps = math.ceil(span / controller.h - 1e-6)  # a rest of less is part of the last step
    if steps > max_steps:
        raise ValueError(
            f"`controller` = {controller!r} takes {steps:,} steps over `t_span`, and `max_steps` = {max_steps:,} "
            f"allows fewer; give max_steps={steps}, larger steps, or throw=False for the part until then."
        )


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


def check_no_projection(project):
    if project is not None:
        raise ValueError("`project` moves states in a way that `sensitivities` do not follow; drop one of the two.")


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
    if tstops is None:
        return NO_STOPS
    times = checked_times("tstops", tstops, problem)
    return times[(times != problem.t_span[0]) & (times != problem.t_span[1])]
