"""Checks of the initial states and parameters that a caller hands to `odelab.ensemble`."""

import numpy as np

from odelab.arrays import reject_masked, row_of_numbers
from odelab.problem import Problem, reject_gradients


def batches(problem: Problem, u0, params) -> tuple[np.ndarray, np.ndarray | None]:
    """Initial states (N, n) and parameters (N, k), one row per run.

    In place of the parameters stands None where those of the problem are not numbers.
    """
    if u0 is None and params is None:
        raise TypeError("`ensemble` needs `u0` (N, n) or `params` (N, k), a row per run; for one run use odelab.solve.")
    own = row_of_numbers(problem.params)
    if params is not None and own is None:
        raise TypeError("`params` needs a problem whose own parameters are a tuple of numbers; vary `u0` instead.")
    starts = None if u0 is None else batch("u0", u0, problem.size)
    sets = None if params is None or own is None else batch("params", params, own.size)
    if starts is None:
        assert sets is not None
        starts = np.tile(problem.u0, (len(sets), 1))
    if sets is None and own is not None:
        sets = np.tile(own, (len(starts), 1))
    if sets is not None and len(starts) != len(sets):
        raise ValueError(
            f"`u0` has {len(starts)} rows and `params` has {len(sets)}; a row is a run, so both need as many."
        )
    return starts, sets


def batch(name: str, values, width: int) -> np.ndarray:
    """`values` as an array (N, width) of floats."""
    reject_masked(name, values)
    reject_gradients(name, values, "ensemble")
    try:
        given = np.asarray(values)
    except ValueError:
        raise ValueError(f"`{name}` must have shape (N, {width}), got rows that differ in length.") from None
    if given.dtype.kind not in "fiub":
        raise TypeError(f"`{name}` must hold real numbers, got {type(values).__name__} of dtype {given.dtype}.")
    array = np.require(given, np.float64, ("C", "A", "W"))  # what a kernel accepts: a read-only array is copied
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"`{name}` must have shape (N, {width}), a row per run, got {array.shape}.")
    if len(array) == 0:
        raise ValueError(f"`{name}` has no rows; give at least one run.")
    return array
