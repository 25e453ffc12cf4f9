"""An ensemble split over an executor: a process pool, MPI's, a Dask client's.

A worker is sent the text of the kernel, which it compiles or finds on disk, so that not even the right-hand side has to
be importable there; one whose source cannot be read is pickled.
"""

import functools
import itertools
import pickle
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from typing import Any, NamedTuple

import numpy as np

from odelab.engines.lanes import progress
from odelab.engines.lanes import threads as threaded
from odelab.engines.lanes.result import Found, nothing_found
from odelab.engines.lanes.threads import Task
from odelab.engines.numba import cache
from odelab.engines.numba.jit import OPTIONS, jit
from odelab.engines.numba.module import module_for
from odelab.engines.numba.request import Request

PER_WORKER = 4  # pieces, so that a slow one is made up for
WORKERS = 8  # assumed where an executor does not say


class Source(NamedTuple):
    """A kernel as a worker needs it."""

    text: str
    label: str
    given: Any = None


def spread(executor: Executor, request: Request, task: Task, starts, params, report) -> Found:
    """All runs, a piece at a time wherever the executor takes it; Ctrl-C keeps the pieces that are finished."""
    module = module_for(request)
    source = Source(module.text, module.label, module.given.get("rhs"))
    check_sendable(source)
    found = nothing_found(starts, float(task.settings[0]), task.t_eval, task.maxima)
    workers = getattr(executor, "_max_workers", None) or WORKERS
    edges = np.linspace(0, len(starts), min(PER_WORKER * workers, len(starts)) + 1).astype(int)
    futures = {
        executor.submit(piece, source, task, starts[first:last], params[first:last]): slice(first, last)
        for first, last in itertools.pairwise(edges.tolist())
    }
    pending, done = set(futures), 0
    try:
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                put(found, futures[future], future.result())
                done += futures[future].stop - futures[future].start
                report(done, len(starts))
    except KeyboardInterrupt:
        for future in pending:
            future.cancel()
    return found


def put(found: Found, place: slice, part: Found):
    for whole, rows in zip(found, part, strict=True):
        if whole is not None:
            whole[place] = rows


def piece(source: Source, task: Task, starts, params) -> Found:
    """What a worker does, on one thread: the executor decides how many workers there are."""
    return threaded.run(compiled(source), task, starts, params, 1, progress.nothing)


@functools.lru_cache(maxsize=16)
def compiled(source: Source):
    if source.given is None:
        return cache.load(source.text, source.label)["lanes"]
    options = {**OPTIONS, "fastmath": {"contract"}, "forceinline": True}
    return cache.in_memory(source.text, source.label, rhs=jit(source.given, options=options))["lanes"]


def check_sendable(source: Source):
    if source.given is None:
        return
    try:
        pickle.dumps(source.given)
    except (pickle.PicklingError, AttributeError, TypeError) as reason:
        raise ValueError(
            f"`executor` cannot be sent the right-hand side ({reason}): its source cannot be read and it cannot be "
            "pickled; define it with `def` in a file, or leave `executor` out."
        ) from None
