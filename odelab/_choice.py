"""Which engine runs a problem.

A system whose right-hand side can be followed as a graph is compiled at once: that takes a few hundredths of a second,
and a second or more for a hundred components in a chain or twenty that all depend on each other.
Anything else begins in plain Python, and a run that has not ended after some work there is compiled by numba, which
takes seconds, and begins anew. The choice depends on the run alone, so that the same call gives the same bits every
time. An engine is imported where it is chosen: a program loads those that its runs need.
"""

import functools
import warnings
import weakref
from collections.abc import Callable, Iterator

from odelab import core
from odelab.control.controllers import Controller, is_known
from odelab.engines import Engine
from odelab.engines.not_compilable import ASKED, NotCompilable
from odelab.engines.numba.obstacles import is_plain, obstacle_to_kernel
from odelab.engines.python import PythonEngine
from odelab.graph.nodes import Untraceable
from odelab.problem import Problem, remembered, without_jacobian
from odelab.right_hand_side import ARRAY, COMPONENT, IN_PLACE

# The work in plain Python before numba compiles, in attempts times components (counted as 32 at least). The first
# number stands for about 0.05 s. Right-hand sides in array form have no loops in Python, so that their components weigh
# less. The last number stands for about 1.5 s, as the generic kernel takes five to ten seconds.
WORK, ARRAY_WORK, GENERIC_WORK = 16_000, 64_000, 1_000_000
ARRAYS = 16  # components of an array that weigh as much as one number in Python
# Components that are made straight through, without loops: in component form (in lanes also in-place), and of others by
# what the method needs.
SMALL = {"component": 96, "slopes": 48, "jacobians": 24}

# For each right-hand side that numba could not compile, the types of the methods concerned.
refused: weakref.WeakKeyDictionary[Callable, set[type]] = weakref.WeakKeyDictionary()


def obstacle_to_graph(problem: Problem, method, controller: Controller) -> str | None:
    """Why a run is not made as a graph; None where its right-hand side decides."""
    if not method.has_graph:
        return f"graphs are for Runge-Kutta and Rosenbrock methods, not {method.name}"
    if not is_known(controller):
        return "graphs know the controllers of odelab.fixed and odelab.adaptive only"
    return None


def obstacle_to_lanes(problem: Problem, method, controller: Controller) -> str | None:
    """Why a problem is not made as a graph without loops, as lanes are; None where its right-hand side decides."""
    if method.switches:
        if method.index is not None:
            return "lanes change between two methods by odelab's own rule, and not by an `index`"
        reasons = (obstacle_to_lanes(problem, one, controller.suited_to(one)) for one in method.members)
        return next((reason for reason in reasons if reason is not None), None)
    reason = obstacle_to_graph(problem, method, controller)
    if reason is None and controller.ends is not None:
        reason = "runs in lanes have no listed steps"
    most = SMALL["component"] if problem.form == IN_PLACE else most_without_loops(problem, method)
    if reason is None and problem.form != COMPONENT and problem.size > most:
        reason = f"systems in {problem.form} form are made without loops up to {most} components, got {problem.size}"
    return reason


def traced_engine(
    problem: Problem, method, controller: Controller, project, dense=True, exact=False, plain=False
) -> Engine:
    """The engine of a graph, or of its operations in plain Python; raises `Untraceable` where there is none.

    exact    whether a run has the same bits everywhere, for which there is a kernel of small systems alone
    """
    reason = obstacle_to_graph(problem, method, controller)
    if reason is not None:
        raise without_graph(reason)
    if problem.mass is not None and exact:
        raise Untraceable("has a mass matrix, and plain Python finds its start by LAPACK", "", "the problem")
    solved = without_jacobian(problem) if method.needs_jacobian else problem
    if is_large(problem, method):
        try:
            return large_engine(solved, method, controller, project, dense, exact)
        except Untraceable:
            if problem.form != COMPONENT:
                raise
    if plain:
        from odelab.engines.exact import ExactEngine

        return ExactEngine(solved, method, controller, project)
    from odelab.engines.traced import TracedEngine

    return TracedEngine(solved, method, controller, project, exact)


def without_graph(reason: str) -> Untraceable:
    """The refusal of a run that no right-hand side would be followed for."""
    return Untraceable(f"has no graph: {reason}", "", "this run")


def is_large(problem: Problem, method) -> bool:
    """Is a system left to loops, rather than made straight through?"""
    return problem.size > most_without_loops(problem, method)


def most_without_loops(problem: Problem, method) -> int:
    """The components up to which a system is made straight through."""
    kind = "jacobians" if method.needs_jacobian else "slopes"
    return SMALL["component" if problem.form == COMPONENT else kind]


def large_engine(problem: Problem, method, controller: Controller, project, dense, exact) -> Engine:
    if problem.mass is not None:
        raise Untraceable("has a mass matrix, for which large systems have no kernel", "", "the problem")
    if exact:
        raise Untraceable(f"has {problem.size} components, too many for a kernel without loops", "", "the problem")
    if method.needs_jacobian and not isinstance(method.tableau, core.Rosenbrock):
        raise Untraceable(
            f"has {problem.size} components, and {method.name} solves its stages by iteration, for which large systems "
            "have no kernel",
            "take odelab.RODAS4",
            "the problem",
        )
    from odelab.engines.large import LargeEngine

    return LargeEngine(problem, method, controller, project, dense)


def choose(name: str, problem, method, controller, project, dense, exact, max_steps) -> Iterator[tuple[Engine, int]]:
    """The engines to try one after the other: pairs of an engine and the attempts it may make.

    If a run uses up the attempts it may make, and they are fewer than `max_steps`, the next engine starts anew;
    otherwise that run is the result. Where an engine finds while it runs that numba cannot compile it, it raises
    `NotCompilable`: with `name` "auto" the next one takes its place.

    A problem remembers which engine made a run by a kernel, for short runs again and again.
    """
    asked = (name, method, controller, project, dense, exact)
    engines_of_kernels, place = remembered(problem, "engines_of_kernels", *asked)
    kernel_engine, _ = engines_of_kernels.get(place, (None, asked))  # once, as another thread may forget it
    if kernel_engine is not None:
        try:
            solved = without_jacobian(problem) if method.members[-1].needs_jacobian else problem
            yield kernel_engine(solved, method, controller, project, exact), max_steps
            return
        except Untraceable:  # the function has captured something else since
            pass
    for engine, attempts in engines(name, problem, method, controller, project, dense, exact, max_steps):
        if getattr(engine, "is_remembered", False):
            engines_of_kernels[place] = type(engine), asked
        yield engine, attempts


def engines(name: str, problem, method, controller, project, dense, exact, max_steps) -> Iterator[tuple[Engine, int]]:
    """The same for a problem that remembers nothing."""
    if exact:
        yield exact_engine(name, problem, method, controller, project), max_steps
        return
    if method.switches:
        yield from two_methods(name, problem, method, controller, project, dense, max_steps)
        return
    run = (problem, method, controller, project)
    reason = ""
    if name != "python":
        try:
            yield traced_engine(*run, dense), max_steps
            return
        except Untraceable as refusal:
            reason = str(refusal)
    if name == "compiled":
        yield by_numba(*run, dense, reason), max_steps
        return
    if name == "auto" and not stays_plain(*run):
        yield PythonEngine(*run), min(allowance(problem, method), max_steps)
        try:
            yield by_numba(*run, dense, reason), max_steps
        except NotCompilable as refusal:
            refuse(problem, method, refusal, 4)
    yield PythonEngine(*run), max_steps


def exact_engine(name: str, problem, method, controller, project) -> Engine:
    """The engine of a run with the same bits everywhere; raises `NotCompilable` where there is none."""
    try:
        return traced_engine(problem, method, controller, project, exact=True, plain=name == "python")
    except Untraceable as reason:
        raise NotCompilable(f"`exact=True` needs a problem that can be made as a graph: {reason}.") from reason


def two_methods(name, problem, method, controller, project, dense, max_steps):
    """The same for a method that switches between two: one kernel with both, or an engine for each."""
    from odelab.engines.switching import SwitchingEngine
    from odelab.engines.turns import TurnsEngine
    from odelab.kernels.loops.run import ratio_of

    run, solved = (problem, method, controller, project), without_jacobian(problem)
    small = method.index is None and not any(is_large(problem, one) for one in method.members)
    try:
        for one in method.members:
            obstacle = obstacle_to_graph(problem, one, controller)
            if obstacle is not None:
                raise without_graph(obstacle)
        if small and name == "python":
            yield SwitchingEngine(*run, PythonEngine, method.ratio or ratio_of(solved, method, controller)), max_steps
            return
        if small:
            yield TurnsEngine(solved, *run[1:]), max_steps
            return
        if name != "python":
            make = functools.partial(traced_engine if name == "compiled" else traced_or_plain, dense=dense)
            yield SwitchingEngine(solved, *run[1:], make, method.ratio), max_steps
            return
    except Untraceable as reason:
        if name == "compiled":
            raise NotCompilable(f"{ASKED} cannot compile this run: {reason}.") from reason
    yield SwitchingEngine(*run, PythonEngine, method.ratio), max_steps


def traced_or_plain(problem: Problem, method, controller: Controller, project, dense: bool) -> Engine:
    """The engine of a graph; that of plain Python where there is none."""
    try:
        return traced_engine(problem, method, controller, project, dense)
    except Untraceable:
        return PythonEngine(problem, method, controller, project)


def stays_plain(problem, method, controller, project) -> bool:
    """Is there nothing that numba could compile?"""
    return is_refused(problem, method) or obstacle_to_kernel(problem, method, controller, project) is not None


def is_refused(problem, method) -> bool:
    return type(method) in refused.get(problem.rhs, ())


def by_numba(problem, method, controller, project, dense, untraceable: str) -> Engine:
    """The engine of a run that numba compiles; raises `NotCompilable` where there is none.

    untraceable    why the run is not made as a graph
    """
    from odelab.engines.numba.compiled import CompiledEngine

    for name, function in (("rhs", problem.rhs), ("project", project)):
        if (name == "rhs" or function is not None) and not is_plain(function):
            raise NotCompilable(
                f"{ASKED} cannot compile {function!r}, a {type(function).__name__}: {untraceable}. Write "
                f"`{name}` as a function with def, and put into `params`, or into a default value, what the object "
                "holds; or take engine='python'."
            )
    reason = obstacle_to_kernel(problem, method, controller, project)
    if reason is not None:
        both = f"{reason}; {untraceable}" if untraceable and untraceable not in reason else reason
        raise NotCompilable(f"{ASKED} cannot compile this run: {both}; use engine='python'.")
    made = CompiledEngine(problem, method, controller, dense, project)
    made.untraceable = untraceable
    return made


def refuse(problem, method, reason, above: int):
    """Warn once that a right-hand side cannot be compiled for methods of this type, and do not try it again.

    above    how many calls stand between this one and the user's
    """
    if not is_refused(problem, method):
        refused.setdefault(problem.rhs, set()).add(type(method))
        reason = str(reason).removeprefix(f"{ASKED} ")
        warnings.warn(f"odelab goes on in plain Python, as it {reason}", RuntimeWarning, stacklevel=above + 2)


def allowance(problem, method) -> int:
    """How many attempts are made in plain Python before numba compiles."""
    size = problem.size // ARRAYS if problem.form == ARRAY else problem.size
    work = GENERIC_WORK if not method.adapts_stages else ARRAY_WORK if problem.form == ARRAY else WORK
    return max(1, work // max(size, 32))
