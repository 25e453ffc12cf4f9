"""Many runs of one problem at once: other initial states, other parameters, one call."""

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from odelab._solve import check_arguments, checked_times
from odelab.control.controllers import Controller, adaptive
from odelab.engines.compiled import NotCompilable
from odelab.engines.lanes import executors as pieces
from odelab.engines.lanes import threads as threaded
from odelab.engines.lanes.batches import batches
from odelab.engines.lanes.causes import diagnose
from odelab.engines.lanes.plain import one_by_one
from odelab.engines.lanes.progress import reporter
from odelab.engines.lanes.result import Ensemble, collected
from odelab.engines.numba.load import kernel
from odelab.engines.numba.request import lanes_unsuited
from odelab.methods.tableau import Method
from odelab.problem import Problem


def ensemble(
    problem: Problem,
    method: Method,
    controller: Controller | None = None,
    *,
    u0: Any = None,
    params: Any = None,
    t_eval: Any = None,
    maxima: bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    engine: str = "auto",
    max_steps: int = 1_000_000,
) -> Ensemble:
    """Solve `problem` from each initial state `u0` (N, n) with each set of parameters `params` (N, k).

    Of `u0` and `params`, what is not given is the problem's own, the same for every run.

    t_eval      times at which to report the states, shared by all; without it the end states
    maxima      keep the largest SAI and h rho of every run
    threads     how many to use; all cores by default
    executor    any concurrent.futures.Executor (a process pool, MPI's, a Dask client's): the runs are split over it
    progress    True, False, or a function (done, total); by default a line on a terminal once it takes seconds
    engine      "auto"; "compiled" raises where no kernel can be made; "python" takes one run after the other
    max_steps   attempts of each run

    The same input gives the same bits, however many threads or workers take part and wherever a run stands. A run that
    fails ends with its status and disturbs no other. Ctrl-C returns what is finished.
    """
    controller = adaptive() if controller is None else controller
    check_arguments(problem, method, controller, engine, max_steps)
    check_workers(threads, executor)
    starts, sets = batches(problem, u0, params)
    times = checked_times("t_eval", t_eval, problem)
    report = reporter(progress)
    why_plain = "engine='python' was asked for" if engine == "python" else lanes_unsuited(problem, method, controller)
    if executor is not None and why_plain is not None:
        raise ValueError(f"`executor` takes the work of kernels only, and there is none here: {why_plain}.")
    if why_plain is None:
        request, task = threaded.prepared(problem, method, controller, times, maxima, max_steps)
        try:
            compiled = kernel(request).functions["lanes"]
        except NotCompilable as reason:
            if engine == "compiled":
                raise
            engine = "python"
            warnings.warn(f"odelab goes on in plain Python: {reason}", RuntimeWarning, stacklevel=2)
        else:
            if executor is not None:
                found = pieces.spread(executor, request, task, starts, sets, report)
            else:
                found = threaded.run(compiled, task, starts, sets, threads, report)
            diagnose(found, starts, sets, problem, method, controller)
            return collected(found, times, "compiled", problem, method, controller)
    found, engine = one_by_one(problem, method, controller, starts, sets, times, maxima, max_steps, engine, report)
    return collected(found, times, engine, problem, method, controller)


def check_workers(threads, executor):
    if threads is not None and not (isinstance(threads, int | np.integer) and threads > 0):
        raise ValueError(f"`threads` must be a positive whole number, got {threads!r}.")
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"`executor` must be a concurrent.futures.Executor, got {executor!r}.")
    if executor is not None and threads is not None:
        raise ValueError("`threads` says nothing beside `executor`, whose workers take one thread each; drop one.")
