"""Lanes on threads: every thread has lanes of its own, and all threads share one queue of runs."""

import functools
import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from odelab.engines.lanes.result import Found, Left, empty_arrays
from odelab.engines.lanes.rounds import OWN
from odelab.engines.lanes.runs import Runs
from odelab.kernels import store
from odelab.kernels.attempt import fixed_names, fixed_values
from odelab.kernels.interior.watching import watched_of
from odelab.kernels.loops.lanes import ARGUMENTS, LANES, NOBODY, add_lanes
from odelab.kernels.loops.pools import add_pools
from odelab.kernels.loops.run import key_of, ratio_of, wanted_of
from odelab.kernels.loops.two_methods import stages_of_lanes
from odelab.kernels.machine import Machine, address, aligned_rows
from odelab.kernels.modules import module_of_lanes
from odelab.kernels.parameters import Parameters
from odelab.status import Status

SLICE = 0.05  # seconds a kernel runs before it returns, so that Ctrl-C is noticed and the progress line is updated

# A thread takes several runs from the queue at a time, at most a quarter of the runs there are for each of its lanes.
# Larger portions would let one thread work long at the end, while the others have nothing left to do.
PORTIONS = 4
LARGEST_PORTION = 64  # runs: a few cache lines of every array


class Task(NamedTuple):
    """The settings of an ensemble, without its kernel and its runs; it can be pickled and sent to other processes."""

    tall: int  # rows of a thread's block, which has a number for each lane in them
    indices: tuple[int, ...]  # the rows in which the numbers of the runs are
    rows: tuple[str, ...]  # the names of the numbers that a lane keeps
    fixed: np.ndarray  # what all runs have in common, as `odelab.kernels.attempt.fixed_names` names it
    span: tuple[float, float]
    max_attempts: int
    t_eval: np.ndarray | None  # those of all runs, or a row for each with an infinite time at its end
    maxima: bool
    switches: bool  # whether two methods take turns

    @property
    def wanted(self) -> int | None:
        """How many times are wanted of each run."""
        return None if self.t_eval is None else self.t_eval.shape[-1] - (self.t_eval.ndim == 2)

    def of_runs(self, first: int, last: int) -> "Task":
        """The same for a part of the runs."""
        return self if self.t_eval is None or self.t_eval.ndim == 1 else self._replace(t_eval=self.t_eval[first:last])


class Prepared(NamedTuple):
    """A kernel of lanes, and how it is called.

    text          the IR of the kernel's module
    task          the settings of the ensemble
    parameters    how the problem's own parameters are handed over
    """

    text: str
    task: Task
    parameters: Parameters


def prepare(runs: Runs) -> Prepared:
    """The kernel of an ensemble, and its `Task`; raises `Untraceable` where the right-hand side cannot be followed."""
    problem, method, controller = runs.problem, runs.method, runs.controller
    maxima, exact, own = runs.maxima, runs.exact, () if runs.timetable is None else OWN
    traced = store.slopes_of(problem)
    options: dict[str, Any] = {"rows": method.switches, "maxima": maxima, "windowed": bool(own)}
    wanted = wanted_of(problem, method, controller, traced, exact=exact)
    wanted = [one._replace(asked=one.asked._replace(**options)) for one in wanted]
    names, points, asked = traced.parameters.names, "" if runs.wanted is None else runs.by, wanted[0].asked
    watched = watched_of(problem, runs.events, runs.project, traced)
    projection = watched.projection
    project_in = None if projection is None else functools.partial(store.projection_in, traced=projection)

    def make():
        module = module_of_lanes(exact, traced, projection)
        slopes_in, looked_for = functools.partial(store.slopes_in, traced=traced), watched if runs.events else None
        if method.switches:
            stages = stages_of_lanes(asked, wanted[1].asked, slopes_in)
            layout = add_pools(module, stages, slopes_in, names, points, own)
            return module.text(), layout.tall, layout.indices, tuple(layout.rows.all)
        rows = tuple(add_lanes(module, asked, slopes_in, names, points, own, looked_for, project_in).all)
        return module.text(), len(rows), (len(rows) - 1,), rows

    kept = [part for one in wanted for part in (one.asked.method, one.asked.law)]
    text, *block = store.kernel(("lanes", *map(key_of, wanted), points, own, *watched.key), make, *kept)
    values = dict(zip(fixed_names(asked), fixed_values(problem, controller), strict=False))
    if method.switches:
        values["ratio"] = method.ratio or ratio_of(problem, method, controller)
    fixed = np.array([value for name, value in values.items() if name not in own], dtype=float)
    tall, indices, rows = block
    settings = (problem.t_span, runs.max_steps, runs.wanted, maxima, method.switches)
    return Prepared(text, Task(tall, indices, rows, fixed, *settings), traced.parameters)


@functools.lru_cache(maxsize=16)
def compiled(text: str) -> tuple[Machine, Callable]:
    """The machine code of a kernel's text, and its function `lanes`."""
    machine = Machine(text)
    return machine, machine.function("lanes", len(ARGUMENTS))


def run(text: str, task: Task, starts, params, threads: int | None, report, left: Left | None = None) -> Found:
    """All runs through the kernel, on as many threads as there is work for.

    left    what runs have left their lanes with; None where there are no events
    """
    found = empty_arrays(starts, task.span[0], task.wanted, task.maxima, left, switches=task.switches)
    count = min(threads or available(), math.ceil(len(starts) / LANES))
    queue, stop = np.zeros(1, np.int64), threading.Event()
    portion = min(max(1, len(starts) // (PORTIONS * count * LANES)), LARGEST_PORTION)

    def work(told: Callable[[], Any]):
        work_through(text, task, queue, portion, starts, params, found, stop, told)

    def tell():
        report(int((found.statuses != Status.INTERRUPTED).sum()), len(starts))

    with ThreadPoolExecutor(max(count - 1, 1)) as pool:
        others = [pool.submit(work, lambda: None) for _ in range(count - 1)]
        try:
            work(tell)
            while wait(others, timeout=SLICE).not_done:
                tell()
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
    for future in others:
        future.result()
    tell()
    if found.maxima is not None:
        take_roots(found.maxima)
    return found


def take_roots(maxima):
    """Make the largest SAI and h rho of their squares, which the kernel finds; those that are negative are unknown."""
    maxima[maxima < 0.0] = np.nan
    np.sqrt(maxima, out=maxima)


def work_through(text, task: Task, queue, portion, starts, params, found: Found, stop, told):
    """What one thread does: it sweeps over its lanes until the queue is empty.

    About every SLICE seconds the kernel returns; then `told()` is called and `stop` is checked.
    """
    _, lanes = compiled(text)
    block = aligned_rows(task.tall, LANES)
    block[:] = 0.0
    block.view(np.int64)[list(task.indices)] = NOBODY
    share = np.array([0, 0, portion, 0])  # as `odelab.kernels.loops.lanes.SHARE` names them
    nothing = np.zeros(1)
    at, behind = task.t_eval, np.inf if task.span[1] >= task.span[0] else -np.inf
    if at is None or at.ndim == 1:  # those of all runs
        at = np.append(np.zeros(0) if at is None else at, behind)
    given = (found.maxima, at, found.points, found.doubts, found.turned, *(found.left or (None,) * 5))
    optional = [nothing if array is None else array for array in given]
    arrays = (queue, share, task.fixed, starts, params, block, *found[:4], *optional)
    sweeps, room = 256, 0 if found.left is None else len(found.left.log)
    while not stop.is_set():
        began = time.perf_counter()
        lanes(*map(address, arrays), len(starts), sweeps, task.max_attempts, at.shape[-1] - 1, room)
        if share[-1] == LANES:
            return
        elapsed = time.perf_counter() - began
        sweeps = min(max(256, int(sweeps * min(8.0, SLICE / max(elapsed, 1e-6)))), 1 << 40)
        told()


def available() -> int:
    """Processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
