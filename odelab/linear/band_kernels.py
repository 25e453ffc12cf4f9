"""Gaussian elimination of narrow band matrices in compiled code, without pivoting.

LAPACK's banded solver takes several times as long on a narrow band, where elimination is most of the work of a step.
Without pivoting a solution may be wrong. The first solution with each matrix is therefore checked by its residual; if
that is too large, LAPACK solves the system with pivoting.
"""

import functools

import numpy as np

from odelab.linear.solvers import BandedSolver, Factors

RESIDUAL = 1e-10  # the largest residual accepted, relative to |M| |x| + |b|


class CompiledBandSolver:
    """Solves the systems of a `BandedSolver` by kernels that are compiled for its number of diagonals."""

    def __init__(self, pivoted: BandedSolver):
        self.pivoted, self.name = pivoted, pivoted.name
        self.order, self.width = pivoted.order, pivoted.below + 1 + pivoted.above
        self.eliminate, self.substitute, self.residual = kernels(pivoted.below, pivoted.above)

    def suits(self, J) -> bool:
        return self.pivoted.suits(J)

    def factor(self, J, hg) -> "Band":
        place = self.pivoted.places(J)
        matrix = np.zeros((J.shape[0], self.width))
        matrix.ravel()[place.row * (self.width - 1) + self.pivoted.below + place.column] = -hg * J.data
        matrix[:, self.pivoted.below] += 1.0
        band = matrix.copy()
        regular = bool(np.isfinite(matrix).all()) and self.eliminate(band)
        return Band(matrix, band, regular, J, hg)

    def backsub(self, factors: "Band", right):
        if factors.pivoted is None and factors.regular:
            x = self.substitute(factors.band, self.order, right)
            if factors.checked:
                return x
            missed, size = self.residual(factors.matrix, self.order, x, right)
            if missed <= RESIDUAL * size:
                factors.checked = True
                return x
        if factors.pivoted is None:
            factors.pivoted = self.pivoted.factor(factors.J, factors.hg)
        return self.pivoted.backsub(factors.pivoted, right)


class Band:
    """A matrix in a band, its factors, and whether a solution with them was checked."""

    def __init__(self, matrix, band, regular, J, hg):
        self.matrix, self.band, self.regular, self.J, self.hg = matrix, band, regular, J, hg
        self.checked = False
        self.pivoted: Factors | None = None


@functools.cache
def kernels(below: int, above: int):
    """(eliminate, substitute, residual) for a band of so many diagonals, whose loops over them are unrolled."""
    from numba import njit

    def eliminate(band):
        """Factors in place, the reciprocals of the pivots on the diagonal; False where a pivot is zero."""
        n = len(band)
        for k in range(n):
            if band[k, below] == 0.0:
                return False
            inverse = 1.0 / band[k, below]
            band[k, below] = inverse
            for r in range(1, below + 1):
                if k + r < n:
                    weight = band[k + r, below - r] * inverse
                    band[k + r, below - r] = weight
                    for c in range(1, above + 1):
                        band[k + r, below - r + c] -= weight * band[k, below + c]
        return True

    def substitute(band, order, right):
        """The solution, with the unknowns in their own order."""
        n = len(band)
        x = np.empty(n)
        for i in range(n):
            total = right[order[i]]
            for r in range(1, below + 1):
                if i >= r:
                    total -= band[i, below - r] * x[i - r]
            x[i] = total
        out = np.empty(n)
        for i in range(n - 1, -1, -1):
            total = x[i]
            for c in range(1, above + 1):
                if i + c < n:
                    total -= band[i, below + c] * x[i + c]
            x[i] = total * band[i, below]
            out[order[i]] = x[i]
        return out

    def residual(matrix, order, x, right):
        """The largest component of M x - b, and what it is to be measured by; NaN where x is not finite."""
        n = len(matrix)
        missed, size, largest = 0.0, 0.0, 0.0
        for i in range(n):
            total, weight = -right[order[i]], 0.0
            for c in range(-below, above + 1):
                if 0 <= i + c < n:
                    total += matrix[i, below + c] * x[order[i + c]]
                    weight += abs(matrix[i, below + c])
            missed = max(missed, abs(total))
            size = max(size, weight)
            largest = max(largest, abs(right[order[i]]))
        reach = 0.0
        for i in range(n):
            reach = max(reach, abs(x[i]))
            if x[i] - x[i] != 0.0:
                return np.nan, 1.0
        return missed, size * reach + largest

    return tuple(njit(nogil=True, error_model="numpy")(one) for one in (eliminate, substitute, residual))
