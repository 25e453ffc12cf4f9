"""One run after the other through `odelab.solve`, for ensembles that cannot run in lanes."""

import warnings
from typing import Any

import numpy as np

from odelab._solve import DOUBT, solve
from odelab.engines.lanes.executors import put
from odelab.engines.lanes.progress import nothing
from odelab.engines.lanes.result import STATUSES, Found, empty_arrays
from odelab.engines.lanes.runs import Runs
from odelab.linear.algebraic import NoConsistentStart
from odelab.runs.events import EventRecord, none_of
from odelab.status import Status


def one_by_one(runs: Runs, engine: str, report) -> tuple[Found, str, list]:
    """The results of all runs, the names of the engines that made them, in the order of their first use, and events."""
    problem, method, starts, params = runs.problem, runs.method, runs.starts, runs.sets
    engines: list[str] = []
    no_events = tuple(EventRecord(*none_of(problem), 0, event.name) for event in runs.events)
    records: list = [no_events for _ in starts]
    wanted = None if runs.wanted is None else np.shape(runs.wanted)[-1]
    found = empty_arrays(starts, problem.t_span[0], wanted, runs.maxima, switches=method.switches)
    if runs.timetable is not None:
        found.times[:] = runs.timetable.spans[:, 0]
    options: dict[str, Any] = {
        "t_eval_by": runs.by,
        "max_steps": runs.max_steps,
        "exact": runs.exact,
        "t_eval": runs.wanted,
    }
    options |= {"events": runs.events, "project": runs.project}
    for i in range(len(starts)):
        if not (np.isfinite(starts[i]).all() and (params is None or np.isfinite(params[i]).all())):
            found.statuses[i] = Status.NOT_FINITE
            continue
        one = problem.replace(u0=starts[i], params=problem.params if params is None else tuple(params[i].tolist()))
        if runs.timetable is not None:
            span, options["tstops"], options["t_eval"] = runs.timetable.of(i)
            one = one.replace(t_span=span)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", DOUBT, RuntimeWarning)  # which is said once for all
            try:
                run = solve(one, method, runs.controller, engine=engine, throw=False, **options)
            except NoConsistentStart:
                found.statuses[i] = Status.NO_CONSISTENT_START
                continue
        if run.status == "interrupted":
            break
        records[i] = run.events
        engines += [name for name in run.engine.split(" and ") if name not in engines]
        found.ends[i], found.times[i] = run.step_u[-1], run.step_t[-1]
        found.counts[i] = run.steps, run.rejected
        found.statuses[i] = STATUSES.index(run.status)
        if found.turned is not None:
            found.turned[i] = np.sum(run.took == method.implicit.name), *run.turns
        if found.points is not None and found.doubts is not None:
            found.points[i, : len(run.t)] = run.u
            found.doubts[i] = 0.0 if run.doubt is None else np.inf
        if found.maxima is not None and run.steps:
            found.maxima[i] = run.sai.max(), np.fmax.reduce(run.h_rho)  # NaN where no step has an h rho
        report(i + 1, len(starts))
    return found, " and ".join(engines or [engine]), records


def finish_alone(found: Found, runs: Runs, watcher):
    """Solve anew, one by one, the runs that cannot be finished in their lanes.

    Their factors without pivoting have failed, or the right-hand side has raised an error, which is then raised here;
    or all their pieces together have taken more attempts than a run may, which lanes count in each piece alone; or
    their events cannot be told from single steps.

    watcher    follows the events of the runs; None where there are none
    """
    failed = (found.statuses == Status.SINGULAR) | (found.statuses == Status.RAISED)
    failed |= found.counts.sum(axis=1) > runs.max_steps
    if runs.problem.mass is not None:  # why a step was lost is found from the equations of one run
        failed |= (found.statuses == Status.STEP_LOST) | (found.statuses == Status.NOT_FINITE)
    if watcher is not None:
        failed[watcher.left_to_others()] = True
    places = np.flatnonzero(failed)
    if places.size:
        solved, _, records = one_by_one(runs.some(places), "auto", nothing)
        put(found, places, solved)
        if watcher is not None:
            watcher.told.update(zip(places.tolist(), records, strict=True))
