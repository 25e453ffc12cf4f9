"""Solvers of (I - h gamma J) x = b for arrays: dense, banded and sparse, each a pair of `factor` and `backsub`.

Of a system M u' = f the solver is made for its `MassMatrix`, and M stands in the place of I; without one it is None.

A matrix that is singular or not finite raises no error. The solution is then NaN, and the attempt is rejected like any
attempt with a state that is not finite; with the next step size the matrix is another one.
"""

from typing import Any, NamedTuple

import numpy as np

BANDED = 24  # diagonals at most beside the main one; SuperLU is faster beyond
RESIDUAL = 1e-10  # the largest residual accepted of a solution without pivoting, relative to |M| |x| + |b|
SMALL = 32  # components up to which a sparse matrix is treated as a dense one
TINY = 1e-3  # of the largest entry of its column: SuperLU takes no smaller pivot on the diagonal
# What an attempt's elimination takes for each entry of the factors, and for each product of two of them, where an
# evaluation takes one for each entry of J; and what NumPy's calls in an evaluation take beside.
ENTRY, PRODUCT, CALLS = 50.0, 0.25, 60_000.0
SEARCH = 150.0  # evaluations for the pattern of a Jacobian, times the cubic root of the number of components


class Factors(NamedTuple):
    """The result of `factor`, which `backsub` uses; `regular` is false if there is no solution."""

    lu: Any
    pivots: Any
    regular: bool


class Places(NamedTuple):
    """Rows and columns of the entries of a sparse matrix in another order of its unknowns, and its own pattern."""

    row: np.ndarray
    column: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class DenseSolver:
    """Gaussian elimination with partial pivoting, by LAPACK."""

    name = "dense"

    def __init__(self, mass=None):
        self.mass = mass

    def suits(self, J) -> bool:
        return isinstance(J, np.ndarray)

    def factor(self, J, hg) -> Factors:
        from scipy.linalg import lapack

        matrix = -hg * J
        if self.mass is None:
            matrix.flat[:: len(matrix) + 1] += 1.0
        else:
            matrix += self.mass.dense
        if not np.isfinite(matrix).all():
            return Factors(None, None, False)
        lu, pivots, info = lapack.dgetrf(matrix)
        return Factors(lu, pivots, info == 0)

    def backsub(self, factors: Factors, right):
        from scipy.linalg import lapack

        if not factors.regular:
            return np.full_like(right, np.nan)
        return lapack.dgetrs(factors.lu, factors.pivots, right)[0]


class BandedSolver:
    """The same for a matrix that is banded once its unknowns are put in a better order.

    order    the order of the unknowns
    below    how many diagonals there are below the main one
    above    the same above it
    """

    def __init__(self, order, below, above, mass=None):
        self.order, self.below, self.above, self.mass = order, below, above, mass
        self.place = np.argsort(order)
        self.seen, self.inside = Places(*(np.zeros(0, dtype=int),) * 4), True
        self.name = f"banded, {below} + 1 + {above} diagonals"

    def suits(self, J) -> bool:
        """Do all entries lie in the band? A problem's own Jacobian may have others than before."""
        if isinstance(J, np.ndarray):
            return False
        known, place = self.seen, self.places(J)
        if place is not known:
            apart = place.row - place.column
            self.inside = bool(apart.max(initial=0) <= self.below and -apart.min(initial=0) <= self.above)
        return self.inside

    def factor(self, J, hg) -> Factors:
        from scipy.linalg import lapack

        place = self.places(J)
        if not np.isfinite(J.data).all():
            return Factors(None, None, False)
        band = np.zeros((2 * self.below + self.above + 1, J.shape[0]), order="F")
        band[self.below + self.above + place.row - place.column, place.column] = -hg * J.data
        if self.mass is None:
            band[self.below + self.above] += 1.0
        else:
            M = self.mass.sparse.tocoo()
            row, column = self.place[M.row], self.place[M.col]
            band[self.below + self.above + row - column, column] += M.data
        lu, pivots, info = lapack.dgbtrf(band, self.below, self.above, overwrite_ab=True)
        return Factors(lu, pivots, info == 0)

    def places(self, J) -> "Places":
        """Where each entry of J stands once its unknowns are in order; found anew where its pattern has changed."""
        if not (np.array_equal(J.indices, self.seen.indices) and np.array_equal(J.indptr, self.seen.indptr)):
            columns = np.repeat(np.arange(J.shape[1]), np.diff(J.indptr))
            self.seen = Places(self.place[J.indices], self.place[columns], J.indices.copy(), J.indptr.copy())
        return self.seen

    def backsub(self, factors: Factors, right):
        from scipy.linalg import lapack

        if not factors.regular:
            return np.full_like(right, np.nan)
        x, _ = lapack.dgbtrs(factors.lu, self.below, self.above, right[self.order], factors.pivots)
        return x[self.place]


class SparseSolver:
    """Gaussian elimination of a sparse matrix, by SuperLU.

    The pattern of most Jacobians is nearly symmetric, and the diagonal of I - hg J is not small. An order of the
    unknowns for symmetric patterns, and pivots on the diagonal unless they are TINY beside their column, then give
    factors with half as many entries, in half the time, as the order that leaves rows free to be exchanged. Such a
    solution may be wrong. The first one with each matrix is therefore checked by its residual; if that is too large,
    the matrix is factored again with ordinary pivoting.
    """

    name = "sparse"

    def __init__(self, mass=None):
        self.mass = mass

    def suits(self, J) -> bool:
        return not isinstance(J, np.ndarray)

    def factor(self, J, hg) -> "SparseFactors":
        from scipy.sparse import eye_array

        unit = eye_array(J.shape[0], format="csc") if self.mass is None else self.mass.sparse
        return SparseFactors((unit - hg * J).tocsc())

    def backsub(self, factors: "SparseFactors", right):
        if factors.lu is None:
            return np.full_like(right, np.nan)
        x = factors.lu.solve(right)
        if not factors.sound and not factors.is_solution(x, right):
            factors.factor()
            if factors.lu is None:
                return np.full_like(right, np.nan)
            x = factors.lu.solve(right)
        factors.sound = True
        return x


class SparseFactors:
    """The factors of a sparse matrix, None if there are none, and whether a solution with them was found right."""

    def __init__(self, matrix):
        self.matrix, self.sound, self.lu = matrix, False, None
        if np.isfinite(matrix.data).all():
            self.factor(permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=TINY, options={"SymmetricMode": True})

    def factor(self, **options):
        from scipy.sparse.linalg import splu

        try:
            self.lu = splu(self.matrix, **options)
        except RuntimeError:  # exactly singular
            self.lu = None

    def is_solution(self, x, right) -> bool:
        """Is the largest component of M x - b small beside |M| |x| + |b|?  NaN is no solution."""
        missed = np.abs(self.matrix @ x - right).max()
        size = abs(self.matrix).sum(axis=1).max() * np.abs(x).max() + np.abs(right).max()
        return bool(missed <= RESIDUAL * size)


def elimination_work(J) -> float:
    """About how many evaluations of the right-hand side take as long as a factorisation of I - hg J and its solutions.

    Zero for bands, whose elimination takes as long as a few evaluations, and for dense matrices, where finding the
    columns of J takes longer. SuperLU's factors of grids in two and three dimensions have many more entries than J,
    and the work grows with them.

    J    the Jacobian, a dense array or a scipy.sparse matrix in compressed columns
    """
    solver = solver_for(J)
    if solver.name != "sparse":
        return 0.0
    radius = float(abs(J).sum(axis=1).max())
    lu = solver.factor(J, -1.0 / radius if radius > 0.0 else 0.0).lu
    if lu is None:
        return 0.0
    products = float((np.diff(lu.L.indptr).astype(float) ** 2).sum())
    return (ENTRY * lu.nnz + PRODUCT * products) / (J.nnz + CALLS)


def search_work(n: int) -> float:
    """About how many evaluations it takes to find the pattern of a Jacobian of n components."""
    return SEARCH * n ** (1.0 / 3.0)


def solver_for(J, mass=None) -> Any:
    """The solver that suits a Jacobian, a dense array or a scipy.sparse matrix in compressed columns, and a mass."""
    if isinstance(J, np.ndarray):
        return DenseSolver(mass)
    order, below, above = band_of(J if mass is None else pattern_of(J) + pattern_of(mass.sparse))
    if below + above > BANDED:
        return SparseSolver(mass)
    return BandedSolver(order, below, above, mass)


def pattern_of(matrix):
    """A matrix in compressed columns with ones for all entries."""
    pattern = matrix.copy()
    pattern.data = np.ones_like(pattern.data)
    return pattern


def band_of(J) -> tuple[np.ndarray, int, int]:
    """An order of the unknowns that makes the band narrow, and the diagonals below and above the main one."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(J.tocsr(), symmetric_mode=False)
    place = np.argsort(order)
    columns = np.repeat(np.arange(J.shape[1]), np.diff(J.indptr))
    apart = place[J.indices] - place[columns]
    return order, int(max(0, apart.max(initial=0))), int(max(0, -apart.min(initial=0)))
