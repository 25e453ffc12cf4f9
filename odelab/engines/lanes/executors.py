"""An ensemble split over an executor: a process pool, MPI's, a Dask client's.

A worker is sent the text of the kernel and the right-hand side itself, by value, with the values it captured: nothing
of the user's has to be importable there. The worker compiles the kernel or finds it on disk.
"""

import functools
import itertools
import pickle
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from typing import NamedTuple

import numpy as np

from odelab.engines.lanes import progress
from odelab.engines.lanes import threads as threaded
from odelab.engines.lanes.result import Found, empty_arrays
from odelab.engines.lanes.threads import Task
from odelab.engines.numba import load
from odelab.engines.numba.fingerprint import fingerprint
from odelab.engines.numba.jit import twin
from odelab.engines.numba.module import Module, module_for
from odelab.engines.numba.request import Request

PER_WORKER = 4  # pieces of the ensemble for each worker, so that a worker with a slow piece does not delay the end
WORKERS = 8  # assumed where an executor does not say how many workers it has


class Source(NamedTuple):
    """A kernel as a worker needs it: a `Module` whose functions are pickled.

    functions   the user's functions with the values they captured, pickled
    digest      of their fingerprint, which must be the same in the worker
    """

    text: str
    name: str
    form: str
    inline: bool
    functions: bytes
    digest: str


def run_in_pieces(executor: Executor, request: Request, task: Task, starts, params, report) -> Found:
    """Run the ensemble in pieces, each on a worker of the executor; Ctrl-C keeps the pieces that are finished."""
    source = pack(module_for(request))
    found = empty_arrays(starts, float(task.settings[0]), task.t_eval, task.maxima)
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


def put(found: Found, place, part: Found):
    """Write the runs of `part` into those rows of `found`."""
    for whole, rows in zip(found, part, strict=True):
        if whole is not None:
            whole[place] = rows


def piece(source: Source, task: Task, starts, params) -> Found:
    """Run one piece of the ensemble on one thread of a worker; the executor decides how many workers there are."""
    return threaded.run(compiled_lanes(source), task, starts, params, 1, progress.nothing)


@functools.lru_cache(maxsize=16)
def compiled_lanes(source: Source):
    functions = pickle.loads(source.functions)
    taken = fingerprint(*functions.values())
    if taken.digest != source.digest:
        raise RuntimeError(
            "a worker of `executor` was sent a right-hand side that reaches other values there; give the workers the "
            "same versions of Python and of the packages, or leave `executor` out."
        )
    return load.load_module(Module(*source[:4], functions, taken))["lanes"]


def pack(module: Module) -> Source:
    """A module ready to be sent to a worker.

    The user's functions are pickled by value, as their twins, so that the worker need not be able to import them.
    """
    from numba import cloudpickle

    twins: dict = {}
    try:
        functions = {name: twin(one, lambda plain: plain, twins, recompile=True) for name, one in module.given.items()}
        return Source(*module[:4], cloudpickle.dumps(functions), module.taken.digest)
    except (pickle.PicklingError, AttributeError, TypeError) as reason:
        raise ValueError(
            f"`executor` cannot be sent the right-hand side ({reason}); let it capture numbers, tuples, arrays and "
            "functions only, or leave `executor` out."
        ) from None
