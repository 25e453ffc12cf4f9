"""Lanes on threads: every thread has lanes of its own, and all threads share one queue of runs."""

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from odelab.engines import Status
from odelab.engines.compiled import is_interrupt
from odelab.engines.lanes import progress
from odelab.engines.lanes import text as lanes
from odelab.engines.lanes.result import Found, empty_arrays
from odelab.engines.numba.request import Request, request_for

SLICE = 0.05  # seconds a kernel runs before it returns, so that Ctrl-C is noticed and the progress line is updated

# A thread takes several runs from the queue at a time, at most a quarter of the runs there are for each of its lanes.
# Larger portions would let one thread work long at the end, while the others have nothing left to do.
PORTIONS = 4
LARGEST_PORTION = 64  # runs: a few cache lines of every array


class Task(NamedTuple):
    """The settings of an ensemble, without its kernel and its runs; it can be pickled and sent to other processes."""

    width: int  # lanes
    rows: int  # of numbers that a lane keeps
    whole: int  # how many of them, the last ones, are rows of whole numbers
    settings: np.ndarray
    tolerance: np.ndarray
    max_attempts: int
    t_eval: np.ndarray | None
    maxima: bool


def prepare(problem, method, controller, t_eval, maxima: bool, max_steps: int) -> tuple[Request, Task]:
    """The request for the kernel of an ensemble, and its `Task`."""
    request = request_for("lanes", problem, method, controller, points=t_eval is not None, maxima=maxima)
    t0, t1 = problem.t_span
    given = math.copysign(controller.h, t1 - t0) if controller.law is None else controller.first_step or 0.0
    task = Task(
        lanes.lane_groups(request)[0],
        len(lanes.real_rows(request)) + len(lanes.integer_rows(request)),
        len(lanes.integer_rows(request)),
        np.array([t0, t1, controller.rtol or math.nan, controller.max_step, given]),
        np.atleast_1d(np.asarray(0.0 if controller.atol is None else controller.atol, dtype=float)),
        max_steps,
        t_eval,
        maxima,
    )
    return request, task


def run(compiled: Callable, task: Task, starts, params, threads: int | None, report) -> Found:
    """All runs through the compiled lanes, on as many threads as there is work for."""
    found = empty_arrays(starts, float(task.settings[0]), task.t_eval, task.maxima)
    count = min(threads or available(), math.ceil(len(starts) / task.width))
    queue, stop = np.zeros(1, np.int64), threading.Event()
    portion = min(max(1, len(starts) // (PORTIONS * count * task.width)), LARGEST_PORTION)

    def work(told: Callable[[], Any]):
        work_through(compiled, task, queue, portion, starts, params, found, stop, told)

    def tell():
        report(int((found.statuses != Status.INTERRUPTED).sum()), len(starts))

    with ThreadPoolExecutor(max(count - 1, 1)) as pool:
        others = [pool.submit(work, lambda: None) for _ in range(count - 1)]
        try:
            work(tell)
            while wait(others, timeout=SLICE).not_done:
                tell()
        except (KeyboardInterrupt, SystemError) as reason:
            if isinstance(reason, SystemError) and not is_interrupt(reason):
                raise
        finally:
            stop.set()
    for future in others:
        future.result()
    tell()
    return found


def find_refused(compiled: Callable, task: Task, starts, params) -> int:
    """The first run whose right-hand side raises IndexError, found by halving: compiled code does not say which."""
    first, last = 0, len(starts)
    while last - first > 1:
        middle = (first + last) // 2
        try:
            run(compiled, task, starts[first:middle], params[first:middle], 1, progress.nothing)
            first = middle
        except IndexError:
            last = middle
    return first


def work_through(compiled, task: Task, queue, portion, starts, params, found: Found, stop, told):
    """What one thread does: it sweeps over its lanes until the queue is empty.

    About every SLICE seconds the kernel returns; then `told()` is called and `stop` is checked.
    """
    numbers = np.zeros((task.rows, task.width))
    numbers[-task.whole :].view(np.int64)[...] = lanes.NOBODY
    extra = ([] if found.maxima is None else [found.maxima]) + (
        [] if found.points is None else [task.t_eval, found.points]
    )
    share = np.array([0, 0, portion])  # the thread's next run, the end of its portion, the size of a portion
    sweeps = 256
    while not stop.is_set():
        began = time.perf_counter()
        empty = compiled(
            queue,
            sweeps,
            share,
            task.settings,
            task.tolerance,
            task.max_attempts,
            starts,
            params,
            numbers,
            found.ends,
            found.times,
            found.counts,
            found.statuses,
            *extra,
        )
        if empty:
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
