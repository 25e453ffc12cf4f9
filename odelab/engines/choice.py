"""Which engine runs a problem: plain Python for a start, compiled code as soon as there is enough to do.

A kernel takes 0.3 s to load and one to several seconds to compile; a short run takes 0.05 s in plain Python.
`engine="auto"` therefore starts in plain Python. It switches to compiled code once this process has spent a certain
number of attempts on a right-hand side with this method and law. A run that crosses the limit half-way is restarted in
the kernel from its beginning, so that no trajectory mixes the rounding errors of two engines. The choice ignores the
kernels on disk on purpose: a script takes the same steps whether or not a kernel is stored there.
"""

import functools
import warnings
import weakref
from collections.abc import Callable, Iterator

from odelab.engines import Engine
from odelab.engines.compiled import CompiledEngine
from odelab.engines.numba import load
from odelab.engines.numba.kernel_engine import KernelEngine
from odelab.engines.numba.obstacles import is_plain, obstacle_to_band, plan_for, takes_tuples
from odelab.engines.numba.request import Request
from odelab.engines.python import PythonEngine
from odelab.engines.refusals import NotCompilable
from odelab.engines.switching import SwitchingEngine
from odelab.methods.rosenbrock import RosenbrockMethod
from odelab.methods.switching import SwitchingMethod
from odelab.problem import without_jacobian
from odelab.right_hand_side import ARRAY, COMPONENT

# The work in plain Python before code is compiled, in attempts times components (counted as 32 at least). The first
# number stands for about 0.05 s, as most kernels compile in a second or two. Right-hand sides in array form have no
# loops in Python, so that their components weigh less; their kernels compile in two or three seconds. The last number
# stands for about 1.5 s, as the generic kernel takes five to ten seconds. Linearly implicit steps of large systems are
# compiled after as much work, 0.2 s: plain Python spends most of its time in NumPy and LAPACK there, and the kernel
# takes a quarter of that.
WORK, ARRAY_WORK, GENERIC_WORK = 16_000, 64_000, 1_000_000
ARRAYS = 16  # components of an array that weigh as much as one number in Python

done: weakref.WeakKeyDictionary[Callable, dict[tuple, int]] = weakref.WeakKeyDictionary()
# For each right-hand side that numba could not compile, the types of the methods concerned.
refused: weakref.WeakKeyDictionary[Callable, set[type]] = weakref.WeakKeyDictionary()


def choose(
    name: str, problem, method, controller, project, dense, max_steps
) -> Iterator[tuple[Callable[[], Engine], int]]:
    """The engines to try one after the other: pairs of a function that makes the engine, and the attempts it may make.

    If a run uses up the attempts it may make, and they are fewer than `max_steps`, the next engine starts anew;
    otherwise that run is the result. An engine raises `NotCompilable`, when it is made or while it runs, if numba
    cannot compile it: with `name` "auto" the next one takes its place.
    """
    if isinstance(method, SwitchingMethod):
        yield from two_methods(name, problem, method, controller, project, max_steps)
        return
    plain = functools.partial(PythonEngine, problem, method, controller, project)
    compile_run = functools.partial(compiled_engine, problem, method, controller, project, dense)
    if name == "compiled":
        yield compile_run, max_steps
        return
    if name == "python" or stays_plain(problem, method, controller, project):
        yield plain, max_steps
        return
    request = plan_for(problem, method, controller, project).request
    if load.at_hand(request) is None:
        left = min(allowance(request, problem.size), max_steps)
        if left > 0:
            yield plain, left
        if obstacle_to_band(problem, method) is not None:
            yield plain, max_steps
            return
    yield compile_run, max_steps
    yield plain, max_steps


def two_methods(name, problem, method, controller, project, max_steps):
    """The same for a method that switches between two: both run in plain Python, or each as a kernel of its own."""

    def plain(one, suited):
        return PythonEngine(problem, one, suited, project)

    def compile_run(one, suited):
        if problem.form != COMPONENT:
            raise NotCompilable(f"kernels of {method.name} need component form, not {problem.form} form.")
        return compiled_engine(problem, one, suited, project, True)

    def both(make):
        solved = without_jacobian(problem) if make is compile_run else problem
        return functools.partial(SwitchingEngine, solved, method, controller, project, make)

    parts = [(one, controller.suited_to(one)) for one in (method.explicit, method.implicit)]
    kept_plain = problem.form != COMPONENT or any(stays_plain(problem, *part, project) for part in parts)
    if name == "compiled":
        yield both(compile_run), max_steps
        return
    if name == "auto" and not (kept_plain or is_refused(problem, method)):
        if any(load.at_hand(plan_for(problem, *part, project).request) is None for part in parts):
            yield both(plain), min(WORK // max(problem.size, 32), max_steps)
        yield both(compile_run), max_steps
    yield both(plain), max_steps


def stays_plain(problem, method, controller, project) -> bool:
    return plan_for(problem, method, controller, project).obstacle is not None or is_refused(problem, method)


def is_refused(problem, method) -> bool:
    return type(method) in refused.get(problem.rhs, ())


def compiled_engine(problem, method, controller, project, dense) -> Engine:
    """The engine of the layout that suits a run; raises `NotCompilable` where there is none."""
    for name, function in (("rhs", problem.rhs), ("project", project)):
        if (name == "rhs" or function is not None) and not is_plain(function):
            raise NotCompilable(
                f"`engine='compiled'` cannot compile {function!r}, a {type(function).__name__}: write `{name}` as a "
                "function with def, and put into `params`, or into a default value, what the object holds; or take "
                "engine='python'."
            )
    _, obstacle, request = plan_for(problem, method, controller, project)
    if isinstance(method, RosenbrockMethod) or takes_tuples(problem.rhs, problem) is False:
        reason = obstacle or obstacle_to_band(problem, method)
        if reason is not None:
            raise NotCompilable(f"`engine='compiled'` cannot compile this run: {reason}; use engine='python'.")
    engine = KernelEngine if request.layout in ("single", "large") else CompiledEngine
    solved = without_jacobian(problem) if request.implicit else problem
    return engine(solved, method, controller, request, dense, project)


def refuse(problem, method, reason):
    """Warn once that a right-hand side cannot be compiled for methods of this type, and do not try it again."""
    if not is_refused(problem, method):
        refused.setdefault(problem.rhs, set()).add(type(method))
        warnings.warn(f"odelab goes on in plain Python: {reason}", RuntimeWarning, stacklevel=5)


def allowance(request: Request, size: int) -> int:
    """How many attempts may still be made in plain Python."""
    slowly = request.layout == "generic" or (request.layout == "large" and request.implicit)
    work = GENERIC_WORK if slowly else ARRAY_WORK if request.form == ARRAY else WORK
    if request.form == ARRAY:
        size = size // ARRAYS
    return work // max(size, 32) - done.get(request.rhs, {}).get(load.key(request), 0)


def note(engine: Engine, attempts: int):
    """Count the attempts a plain run has made."""
    run = (engine.problem, engine.method, engine.controller, engine.project)
    if engine.name == "python" and not stays_plain(*run):
        request = plan_for(*run).request
        counts = done.setdefault(request.rhs, {})
        counts[load.key(request)] = counts.get(load.key(request), 0) + attempts
