"""The band of a large system's Jacobian: the order of its unknowns, and the columns that are found together.

It is found from the pattern of the right-hand side, without values, and holds for all runs with as many components, as
long as the values that the right-hand side captured stay what they are.
"""

import weakref
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.engines.numba.fingerprint import Unseen, Watch, fingerprint
from odelab.engines.rosenbrock.pattern import find_pattern
from odelab.linear.solvers import BANDED, band_of

known: weakref.WeakKeyDictionary[Callable, dict[tuple[int, int], tuple[Watch, "Band | str"]]] = (
    weakref.WeakKeyDictionary()
)


class Band(NamedTuple):
    """A Jacobian as a band, whose columns are found together where they share no row.

    below, above   how many diagonals it has below and above the main one
    autonomous     whether the right-hand side does not depend on time
    order          (n,): the unknown at each place of the band
    seeds          (colours, n): the directions in which the right-hand side is differentiated
    first          (colours + 1,): where those of each colour begin in the following two
    entries        the row of each entry, in the unknowns' own order
    places         where each entry stands in the band, row after row, each `below + 1 + above` long
    """

    below: int
    above: int
    autonomous: bool
    order: np.ndarray
    seeds: np.ndarray
    first: np.ndarray
    entries: np.ndarray
    places: np.ndarray


def band_for(rhs: Callable, n: int, parameters: int) -> Band | str:
    """The band of a right-hand side in in-place form, or in words why there is none.

    The answer is remembered until a value that `rhs` captured changes; each kernel is then handed the band it was
    compiled for, also where kernels of other methods were compiled with other values in between.
    """
    kept = known.setdefault(rhs, {})
    if (n, parameters) in kept:
        watch, found = kept[n, parameters]
        if watch.is_unchanged():
            return found
    found = find_band(rhs, n, parameters)
    try:
        kept[n, parameters] = fingerprint(rhs).watch, found
    except Unseen:  # a kernel is refused for the same reason
        kept.pop((n, parameters), None)
    return found


def find_band(rhs, n, parameters) -> Band | str:
    from scipy.sparse import csc_array

    pattern = find_pattern(rhs, n, parameters, in_place=True)
    if isinstance(pattern, str):
        return pattern
    rows = np.repeat(np.arange(n), [len(row) for row in pattern.rows])
    columns = np.array([j for row in pattern.rows for j in row], dtype=np.int64)
    J = csc_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    order, below, above = band_of(J)
    if below + above > BANDED:
        return f"its Jacobian has a band of {below} + 1 + {above} diagonals, too many for a kernel"
    # In a band, columns share no row where they are as many places apart as it has diagonals.
    place, width = np.argsort(order), below + 1 + above
    seeds = np.zeros((width, n))
    seeds[place % width, np.arange(n)] = 1.0
    colour = place[columns] % width
    by_colour = np.argsort(colour, kind="stable")
    places = place[rows] * (width - 1) + below + place[columns]
    return Band(
        below,
        above,
        pattern.autonomous,
        np.array(order, dtype=np.int64),
        seeds,
        np.searchsorted(colour[by_colour], np.arange(width + 1)),
        rows[by_colour],
        places[by_colour],
    )
