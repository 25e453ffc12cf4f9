"""Sparse Jacobians from few directional derivatives: columns that share no row are found together.

A. R. Curtis, M. J. D. Powell and J. K. Reid, On the estimation of sparse Jacobian matrices, J. Inst. Maths Applics 13
(1974) 117-119.
"""

from typing import Any, NamedTuple

import numpy as np


class Colouring(NamedTuple):
    """A pattern of entries and the columns that are found together.

    pattern    scipy.sparse, in compressed columns; its values mean nothing
    colour     (n,) of each column
    seeds      (colours, n): the directions, sums of unit vectors
    """

    pattern: Any
    colour: np.ndarray
    seeds: np.ndarray

    def matrix(self, compressed, scale):
        """The matrix whose products with the seeds are the rows of `compressed`; its columns are divided by `scale`."""
        from scipy.sparse import csc_array

        columns = np.repeat(np.arange(len(self.colour)), np.diff(self.pattern.indptr))
        data = compressed[self.colour[columns], self.pattern.indices] / scale[columns]
        return csc_array((data, self.pattern.indices, self.pattern.indptr), shape=self.pattern.shape)


def colour_columns(pattern) -> Colouring:
    """Columns in their order, each with the first colour that no column with a common row has.

    A row with entries in more than half of the columns would need nearly as many colours: then each has its own.
    """
    pattern = pattern.tocsc()
    n = pattern.shape[1]
    colour = np.arange(n)
    if 2 * np.bincount(pattern.indices, minlength=1).max(initial=0) <= n:
        ones = pattern.copy()
        ones.data = np.ones(len(ones.indices))
        beside = (ones.T @ ones).tocsc()  # the columns that share a row with each
        colour = np.full(n, -1)
        for j in range(n):
            taken = set(colour[beside.indices[beside.indptr[j] : beside.indptr[j + 1]]].tolist())
            colour[j] = next(c for c in range(n + 1) if c not in taken)
    seeds = np.zeros((int(colour.max(initial=-1)) + 1, n))
    seeds[colour, np.arange(n)] = 1.0
    return Colouring(pattern, colour, seeds)
