"""An ensemble split over an executor: a process pool, MPI's, a Dask client's.

A worker is sent the text of the kernel, which has the right-hand side in it with the values it captured: nothing of the
user's has to be importable there. The worker makes machine code of it for its own processor.
"""

import itertools
from concurrent.futures import FIRST_COMPLETED, Executor, wait

import numpy as np

from odelab.engines.lanes import progress
from odelab.engines.lanes import threads as threaded
from odelab.engines.lanes.result import Found, Left, empty_arrays
from odelab.engines.lanes.threads import Task

PER_WORKER = 4  # pieces of the ensemble for each worker, so that a worker with a slow piece does not delay the end
WORKERS = 8  # assumed where an executor does not say how many workers it has


def run_in_pieces(executor: Executor, text: str, task: Task, starts, params, report, left: Left | None = None) -> Found:
    """Run the ensemble in pieces, each on a worker of the executor; Ctrl-C keeps the pieces that are finished."""
    found = empty_arrays(starts, task.span[0], task.wanted, task.maxima, left, switches=task.switches)
    workers = getattr(executor, "_max_workers", None) or WORKERS
    edges = np.linspace(0, len(starts), min(PER_WORKER * workers, len(starts)) + 1).astype(int)
    futures = {}
    for first, last in itertools.pairwise(edges.tolist()):
        some = slice(first, last)
        own = None if left is None else left.of_runs(some)
        futures[executor.submit(piece, text, task.of_runs(first, last), starts[some], params[some], own)] = some
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


def put(found: Found, place, part: Found):
    """Write the runs of `part` into those rows of `found`."""
    for whole, rows in zip(arrays_of(found), arrays_of(part), strict=True):
        whole[place] = rows


def arrays_of(found: Found) -> list[np.ndarray]:
    return [array for array in (*found[:-1], *(found.left or ())[:3]) if array is not None]


def piece(text: str, task: Task, starts, params, left: Left | None = None) -> Found:
    """Run one piece of the ensemble on one thread of a worker; the executor decides how many workers there are."""
    return threaded.run(text, task, starts, params, 1, progress.nothing, left)
