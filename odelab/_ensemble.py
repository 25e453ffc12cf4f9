"""`ensemble`: many runs of one problem at once, from other initial states or with other parameters."""

import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from odelab._choice import obstacle_to_lanes
from odelab._solve import (
    EXACT_WITH_TWO,
    check_arguments,
    check_projection,
    check_way,
    checked_times,
    solve,
    taking_a_mass,
)
from odelab._unknown_arguments import refuse_unknown
from odelab.control.controllers import Controller, adaptive
from odelab.engines.lanes.batches import batches
from odelab.engines.lanes.progress import reporter
from odelab.engines.lanes.result import Ensemble, named_arrays
from odelab.engines.not_compilable import ASKED, NotCompilable
from odelab.graph.nodes import Untraceable
from odelab.methods.interface import StepMethod
from odelab.methods.switching import AUTO
from odelab.problem import Problem
from odelab.right_hand_side import name_of
from odelab.runs.events import checked_events
from odelab.sensitivities.result import sensitive_ensemble
from odelab.sensitivities.selection import Wrt
from odelab.sensitivities.system import System

if TYPE_CHECKING:
    from concurrent.futures import Executor

ONE_METHOD = (
    "lanes know `events` and `project` with one method alone, such as odelab.DOPRI5, or odelab.RODAS4 for stiff "
    "problems"
)


def ensemble(
    problem: Problem,
    method: StepMethod = AUTO,
    controller: Controller | None = None,
    *,
    u0: Any = None,
    params: Any = None,
    t_span: Any = None,
    tstops: Any = None,
    t_eval: Any = None,
    t_eval_by: str = "dense",
    events: Any = None,
    project: Callable | None = None,
    maxima: bool = False,
    threads: int | None = None,
    executor: "Executor | None" = None,
    progress: bool | Callable[[int, int], None] | None = None,
    engine: str = "auto",
    max_steps: int = 1_000_000,
    exact: bool = False,
    sensitivities: Wrt | None = None,
    sensitivity_errors: bool = True,
    **_unknown: Never,
) -> Ensemble:
    """Solve one problem many times: from many initial states, with many sets of parameters.

    Of `u0` and `params` at least one is given; what is not given is the problem's own, the same for every run.
    A problem in component form runs in compiled lanes, thousands of runs side by side; others run one after the other.

    problem       the `Problem`
    method        an explicit method such as `ol.DOPRI5`, a linearly implicit one such as `ol.RODAS4` for stiff
                  problems, or one that changes between two in each run as `ol.AUTO` does, the default; others run one
                  after the other
    controller    `ol.adaptive(rtol, atol)`, the default, or `ol.fixed(h)`; each run chooses its own steps
    u0            initial states (N, n), a row per run
    params        parameters (N, k), a row per run
    t_span        (N, 2), where each run starts and ends; by default the span of the problem
    tstops        times at which steps must end and new ones begin, as in `odelab.solve`: a row for all runs, or a row
                  per run, filled up with NaN where a run has fewer; none by default
    t_eval        times at which to report the states, a row for all runs or a row per run; by default the end states
                  are reported
    t_eval_by     "dense" or "step", as in `odelab.solve`
    events        as in `odelab.solve`; each run meets its own. With `maxima`, or by two methods, runs with events go
                  one after the other
    project       as in `odelab.solve`; by two methods, runs with a projection go one after the other
    maxima        True keeps the largest SAI and h rho of every run; False by default
    threads       how many threads to use; as many as there are cores by default
    executor      any concurrent.futures.Executor (a process pool, MPI's, a Dask client's) over which to split the runs;
                  none by default
    progress      True, False, or a function (done, total); by default a line on a terminal once it takes seconds
    engine        "auto", the default; "compiled" raises where no kernel can be made; "python" takes one run after the
                  other
    max_steps     attempted steps of each run; 1,000,000 by default
    exact         True for the bits that `odelab.solve` has with the same option, on every processor; False by default
    sensitivities, sensitivity_errors
                  as in `odelab.solve`; what the errors of a column are measured by comes from the problem's own
                  parameters and initial state, for all runs

    Returns an `Ensemble`; with `sensitivities` it is a `SensitiveEnsemble`. The same input gives the same bits, however
    many threads or workers take part and wherever a run stands. A run that fails ends with its status and disturbs no
    other. Ctrl-C returns what is finished.

    Raises TypeError or ValueError, naming the argument, for wrong input, and IndexError where the right-hand side of a
    run asks for an entry that an array has not.

    >>> import numpy as np
    >>> import odelab as ol
    >>> decay = ol.Problem(lambda t, u, params: (-params[0] * u[0],), u0=[1.0], t_span=(0.0, 1.0), params=(1.0,))
    >>> runs = ol.ensemble(decay, ol.DOPRI5, params=[[1.0], [2.0], [3.0]], engine="python")
    >>> runs.u.shape, runs.ok
    ((3, 1), True)
    >>> bool(np.allclose(runs.u[:, 0], np.exp([-1.0, -2.0, -3.0]), rtol=1e-5))
    True

    Each run ends where it has come down to a half, if it does:

    >>> half = ol.Event(lambda t, u, params: u[0] - 0.5, terminal=True)
    >>> runs = ol.ensemble(decay, ol.DOPRI5, params=[[0.5], [1.0], [2.0]], events=half)
    >>> runs.status.tolist(), runs.t.round(4).tolist()
    (['ok', 'event', 'event'], [1.0, 0.6931, 0.3466])
    >>> [records[0].t.round(4).tolist() for records in runs.events]
    [[], [0.6931], [0.3466]]
    """
    from odelab.engines.lanes import causes, executors, plain, rounds  # with what runs lanes
    from odelab.engines.lanes import threads as threaded
    from odelab.engines.lanes.runs import Runs
    from odelab.engines.lanes.watched import Watcher

    refuse_unknown(ensemble, _unknown, inspect.signature(solve).parameters)
    controller = adaptive() if controller is None else controller
    check_arguments(problem, method, controller, engine, max_steps)
    if problem.is_complex:
        raise TypeError(
            "`problem` has complex states, which ensembles do not take; call odelab.solve for each of them."
        )
    if exact and method.switches:
        raise ValueError(EXACT_WITH_TWO)
    method = taking_a_mass(problem, method, controller)
    controller = controller.suited_to(method)
    check_workers(threads, executor)
    check_way(t_eval_by, method)
    starts, sets = batches(problem, u0, params)
    watched = checked_events(events)
    check_projection(project, problem)
    has_pieces = bool(watched) and (t_eval is not None or any(event.change for event in watched))
    timetable = rounds.timetable(problem, len(starts), t_span, tstops, t_eval, has_pieces)
    times = checked_times("t_eval", t_eval, problem) if timetable is None else timetable.wanted
    reported = times if times is None or timetable is None or np.ndim(t_eval) == 2 else times[0]
    if sensitivities is not None:
        for name, given in (("maxima", maxima), ("events", events), ("project", project)):
            if given:
                raise ValueError(
                    f"`{name}` and `sensitivities` of an ensemble do not go together; drop one of the two."
                )
        system = System(problem, sensitivities, sensitivity_errors)
        whole = ensemble(
            system.whole,
            method,
            system.controller(controller),
            u0=system.starts(starts),
            params=None if params is None else sets,
            t_span=t_span,
            tstops=tstops,
            t_eval=t_eval,
            t_eval_by=t_eval_by,
            threads=threads,
            executor=executor,
            progress=progress,
            engine=system.engine(engine, method),
            max_steps=max_steps,
            exact=exact,
        )
        return sensitive_ensemble(whole, system, controller)
    report = reporter(progress)
    reason = "engine='python' was asked for" if engine == "python" else obstacle_to_lanes(problem, method, controller)
    if reason is None and method.switches and (watched or project is not None):
        reason = ONE_METHOD
    if reason is None and watched and maxima:
        reason = "lanes know `maxima` without `events` alone"
    varied = None if params is None else sets
    settings = (watched, project, maxima, max_steps, exact)
    asked = Runs(problem, method, controller, starts, varied, times, t_eval_by, timetable, *settings)
    prepared = None
    if reason is None:
        try:
            prepared = threaded.prepare(asked)
        except Untraceable as refusal:
            reason = str(refusal)
    if prepared is not None and prepared.parameters.builds_in and params is not None:
        prepared, reason = None, "whole numbers of `params` are used as counts or places, which lanes have in common"
    if prepared is not None:
        own = prepared.parameters.values
        rows = np.tile(np.array(own, dtype=float), (len(starts), 1)) if params is None or sets is None else sets
        text, task = prepared.text, prepared.task

        def run_lanes(starts, rows, wanted, left=None):
            now = task._replace(t_eval=wanted)
            if executor is not None:
                return executors.run_in_pieces(executor, text, now, starts, rows, report, left)
            return threaded.run(text, now, starts, rows, threads, report, left)

        watcher = Watcher(asked, task.rows, rows) if watched else None
        everything = timetable or rounds.timetable(problem, len(starts), None, None, None, always=bool(watched))
        if everything is None:
            found = run_lanes(starts, rows, times)
        else:
            found = rounds.Rounds(run_lanes, asked, everything, rows, watcher).run()
        plain.finish_alone(found, asked, watcher)
        causes.diagnose(found, asked)
        runs = named_arrays(found, reported, "compiled", problem, method, controller)
        runs.events = None if watcher is None else watcher.records(len(runs))
        return with_warning(runs)
    if executor is not None:
        raise ValueError(
            f"`executor` takes the work of kernels only, and there is none here: {reason}. Without `executor` the runs "
            "go one after the other."
        )
    alone = watched or project is not None
    if engine == "compiled" and not alone and obstacle_to_lanes(problem, method, controller) is None:
        raise NotCompilable(f"{ASKED} cannot compile {name_of(problem.rhs)}: {reason}.")
    found, engine, records = plain.one_by_one(asked, engine, report)
    runs = named_arrays(found, reported, engine, problem, method, controller)
    runs.events = records if watched else None
    return with_warning(runs)


def with_warning(found: Ensemble) -> Ensemble:
    """An ensemble, with a warning where states that were asked for are doubtful."""
    if found.doubt:
        warnings.warn(found.doubt.removeprefix("; "), RuntimeWarning, stacklevel=3)
    return found


def check_workers(threads, executor):
    if threads is not None and (
        isinstance(threads, bool) or not (isinstance(threads, int | np.integer) and threads > 0)
    ):
        raise ValueError(f"`threads` must be a positive whole number, got {threads!r}.")
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"`executor` must be a concurrent.futures.Executor, got {executor!r}.")
    if executor is not None and threads is not None:
        raise ValueError("`threads` says nothing beside `executor`, whose workers take one thread each; drop one.")
