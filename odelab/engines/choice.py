"""Which engine runs a problem: plain Python for a start, a kernel as soon as there is enough to do.

Compiling takes a second, loading a third of one, and a short run in plain Python a few hundredths. So `engine="auto"`
begins plainly, and turns to a kernel when the runs of a right-hand side with a method and law have come to WORK
together; the run that gets there starts anew, so that one run is one engine's. What is on disk does not matter to the
choice: the same script takes the same steps today and tomorrow.
"""

import warnings
import weakref
from collections.abc import Callable

from odelab.engines.compiled import CompiledEngine, NotCompilable
from odelab.engines.numba import load
from odelab.engines.numba.kernel_engine import KernelEngine, engine_request
from odelab.engines.numba.request import Request, unsuited
from odelab.engines.numba.stabilised_engine import StabilisedEngine
from odelab.engines.python import PythonEngine
from odelab.methods.tableau import Method

WORK = 16_000  # attempts times components (32 at least): about 0.05 s of plain Python

done: weakref.WeakKeyDictionary[Callable, dict[tuple, int]] = weakref.WeakKeyDictionary()
warned: weakref.WeakSet[Callable] = weakref.WeakSet()


def automatic(problem, method, controller, project, dense, max_steps: int, run: Callable):
    """`run(engine, max_steps)` with the engine that fits the work."""
    if unsuited(problem, method, controller, project) is not None:
        return run(PythonEngine(problem, method, controller, project), max_steps)
    request = engine_request(problem, method, controller)
    if load.at_hand(request) is None:
        left = allowance(request, problem.size)
        if left > 0:
            trajectory = run(PythonEngine(problem, method, controller), min(left, max_steps))
            note(request, trajectory.steps + trajectory.rejected)
            if trajectory.status != "max_steps" or left >= max_steps:
                return trajectory
    return run(kernel_or_plain(problem, method, controller, request, dense), max_steps)


def demanded(problem, method, controller, project, dense):
    """The engine of `engine="compiled"`: a kernel, or the generic compiled engine for what kernels do not know."""
    if unsuited(problem, method, controller, project) is not None:
        return CompiledEngine(problem, method, controller, project)
    return engine_for(method)(problem, method, controller, dense=dense)


def engine_for(method) -> Callable:
    return KernelEngine if isinstance(method, Method) else StabilisedEngine


def kernel_or_plain(problem, method, controller, request, dense):
    try:
        return engine_for(method)(problem, method, controller, request, dense)
    except NotCompilable as reason:
        if problem.rhs not in warned:
            warned.add(problem.rhs)
            warnings.warn(f"odelab goes on in plain Python: {reason}", RuntimeWarning, stacklevel=6)
        return PythonEngine(problem, method, controller)


def allowance(request: Request, size: int) -> int:
    """How many attempts may still be made in plain Python."""
    return WORK // max(size, 32) - done.get(request.rhs, {}).get(load.key(request), 0)


def note(request: Request, attempts: int):
    counts = done.setdefault(request.rhs, {})
    counts[load.key(request)] = counts.get(load.key(request), 0) + attempts
