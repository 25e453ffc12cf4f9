"""Constant mass matrices, M u' = f(t, u): what is accepted as one, its products, and what of it is singular."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import own_floats

SINGULAR = 1e12  # a matrix whose rows and columns are of size one is singular where its condition exceeds this
SMALL = 64  # unknowns up to which null vectors are filled in: a product of sparse ones takes 30 us, however small
FILLED = 1024  # unknowns up to which a matrix is filled in to find its rank and its condition


class Parts(NamedTuple):
    """What of a mass matrix is singular.

    left      (n, k): the k combinations of equations in which no derivative is left, N' M = 0; beyond `SMALL` sparse
    right     (n, k), as `left`: the directions of the state whose derivative appears nowhere, M Z = 0
    solve     solve(f): a p with M p = f, as far as f lies in the range of M; f is (n,) or (n, m)
    """

    left: Any
    right: Any
    solve: Callable


class Entries(NamedTuple):
    """A mass matrix and what of it is singular, each matrix as its entries (row, column, number), row by row.

    mass       M
    left       N' of `Parts.left`
    right      Z of `Parts.right`
    inverse    the matrix of `Parts.solve`
    """

    mass: tuple
    left: tuple
    right: tuple
    inverse: tuple


class MassMatrix:
    """A constant mass matrix as solvers use it.

    matrix    (n,), its diagonal; (n, n), dense; or a scipy.sparse matrix in compressed columns
    """

    def __init__(self, matrix):
        self.matrix, self.size = matrix, matrix.shape[0]

    def times(self, x):
        """M x of one vector."""
        return self.matrix * x if self.matrix.ndim == 1 else self.matrix @ x

    @functools.cached_property
    def dense(self) -> np.ndarray:
        if self.matrix.ndim == 1:
            return np.diag(self.matrix)
        return self.matrix if isinstance(self.matrix, np.ndarray) else self.matrix.toarray()

    @functools.cached_property
    def sparse(self):
        """In compressed columns, without entries that are zero."""
        from scipy.sparse import csc_array, diags_array

        if hasattr(self.matrix, "tocsc"):
            return self.matrix
        sparse = diags_array(self.matrix, format="csc") if self.matrix.ndim == 1 else csc_array(self.matrix)
        sparse.eliminate_zeros()
        return sparse

    @functools.cached_property
    def entries(self) -> tuple[tuple[int, int, float], ...]:
        """(row, column, entry) of all that are not zero, row by row."""
        return entries_of(self.sparse)

    @functools.cached_property
    def all_entries(self) -> Entries:
        """What kernels are made of; the matrix is the key of a kernel, too."""
        left, right, solve = self.parts
        return Entries(*map(entries_of, (self.sparse, left.T, right, solve(np.eye(self.size)))))

    @functools.cached_property
    def is_unit(self) -> bool:
        """Is it I, so that u' is what the right-hand side returns?"""
        return self.entries == tuple((i, i, 1.0) for i in range(self.size))

    @property
    def equations(self) -> int:
        """How many algebraic equations there are: n less the rank."""
        return self.parts.left.shape[1]

    @functools.cached_property
    def parts(self) -> Parts:
        """What is singular of it, in whatever units its rows and columns are.

        Rows and columns without an entry are left out. What remains is regular in most cases; otherwise its null
        vectors are found from its singular values.
        """
        rows, columns = (np.unique(index) for index in self.sparse.nonzero())
        block = self.sparse[rows][:, columns]
        inverse = Inverse(block) if len(rows) == len(columns) else None
        if inverse is not None and inverse.condition <= SINGULAR:
            left, right, solve = np.zeros((len(rows), 0)), np.zeros((len(columns), 0)), inverse.solve
        else:
            left, right, solve = singular_parts(block)

        def particular(f):
            p = np.zeros_like(f)
            p[columns] = solve(f[rows])
            return p

        return Parts(null_vectors(self.size, rows, left), null_vectors(self.size, columns, right), particular)


def entries_of(matrix) -> tuple[tuple[int, int, float], ...]:
    from scipy.sparse import csr_array

    rows = csr_array(matrix).tocoo()
    return tuple(zip(rows.row.tolist(), rows.col.tolist(), rows.data.tolist(), strict=True))


def singular_parts(block) -> tuple[np.ndarray, np.ndarray, Callable]:
    """Null vectors from the left and from the right, and the pseudoinverse as a function."""
    if max(block.shape) > FILLED:
        raise ValueError(
            f"`mass` is singular beyond its {block.shape[0]} rows and {block.shape[1]} columns with entries, too many "
            f"to find its null vectors (at most {FILLED}); combine the equations so that those without a derivative "
            "have rows of zeros, and the unknowns without one columns of zeros."
        )
    r, c = sizes_of(block)
    U, s, V = np.linalg.svd(r[:, None] * block.toarray() * c)
    rank = int((s * SINGULAR > s[0]).sum())
    inverse = c[:, None] * V[:rank].T / s[:rank] @ U[:, :rank].T * r
    return unit(r[:, None] * U[:, rank:]), unit(c[:, None] * V[rank:].T), lambda f: inverse @ f


def unit(columns):
    return columns / np.linalg.norm(columns, axis=0)


def null_vectors(n, kept, inside):
    """Unit vectors for what is not kept, and the columns of `inside` in what is: (n, k), sparse beyond `SMALL`."""
    from scipy.sparse import csc_array

    left_out = np.setdiff1d(np.arange(n), kept)
    row = np.concatenate([left_out, np.repeat(kept, inside.shape[1])])
    column = np.concatenate(
        [np.arange(len(left_out)), len(left_out) + np.tile(np.arange(inside.shape[1]), len(inside))]
    )
    data = np.concatenate([np.ones(len(left_out)), inside.ravel()])
    vectors = csc_array((data, (row, column)), shape=(n, len(left_out) + inside.shape[1]))
    return vectors.toarray() if n <= SMALL else vectors


class Inverse:
    """The inverse of a square matrix, dense or sparse.

    terms        a matrix of the sizes of the terms of which the entries are sums: an entry far below is rounding. The
                 entries themselves by default
    condition    of the matrix with its rows and columns scaled by powers of two, so that units do not count; infinite
                 where it is singular or not finite, 1 where it is empty
    """

    def __init__(self, matrix, terms=None):
        self.condition, self.size = 1.0, matrix.shape[0]
        if not self.size:
            return
        finite = np.isfinite(matrix.data if hasattr(matrix, "tocsc") else matrix).all()
        self.r, self.c = sizes_of(matrix if terms is None else terms)
        if not (finite and (self.r > 0.0).all() and (self.c > 0.0).all()):
            self.condition = np.inf
        elif self.size <= FILLED:
            self.factor_dense(matrix.toarray() if hasattr(matrix, "tocsc") else matrix)
        else:
            self.factor_sparse(matrix)

    def factor_dense(self, matrix):
        from scipy.linalg import lapack

        scaled = self.r[:, None] * matrix * self.c
        s = np.linalg.svd(scaled, compute_uv=False)
        self.condition = max(1.0, float(s[0])) / float(s[-1]) if s[-1] > 0.0 else np.inf
        lu, pivots, _ = lapack.dgetrf(scaled)
        self.substitute = lambda right: lapack.dgetrs(lu, pivots, right)[0]

    def factor_sparse(self, matrix):
        from scipy.sparse import csc_array, diags_array
        from scipy.sparse.linalg import LinearOperator, onenormest, splu

        scaled = csc_array(diags_array(self.r) @ matrix @ diags_array(self.c))
        try:
            factors = splu(scaled)
        except RuntimeError:  # exactly singular
            self.condition = np.inf
            return
        inverse = LinearOperator(scaled.shape, factors.solve, rmatvec=lambda b: factors.solve(b, "T"), dtype=float)
        self.condition = float(onenormest(inverse) * max(1.0, abs(scaled).sum(axis=0).max()))
        self.substitute = factors.solve

    def solve(self, right):
        """The solution x of A x = right, (n,) or (n, m); NaN where A is exactly singular."""
        if not self.size:
            return np.zeros_like(right)
        if not np.isfinite(self.condition):
            return np.full_like(right, np.nan)
        x = self.substitute((self.r * right.T).T)
        return (self.c * x.T).T


def sizes_of(matrix) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two by which rows, and then columns, are multiplied to make their largest entries about one; 0 if
    there is no entry."""
    size = abs(matrix)

    def powers(largest):
        largest = np.asarray(largest.todense() if hasattr(largest, "todense") else largest).ravel()
        with np.errstate(divide="ignore"):
            return np.where(largest > 0.0, np.exp2(-np.round(np.log2(largest))), 0.0)

    r = powers(size.max(axis=1))
    if hasattr(size, "tocsc"):
        from scipy.sparse import diags_array

        return r, powers((diags_array(r) @ size).max(axis=0))
    return r, powers((r[:, None] * size).max(axis=0))


def checked_mass(mass, n: int):
    """`mass` as (n,), (n, n) or compressed columns, of floats and not to be changed; None stays None."""
    if mass is None:
        return None
    if hasattr(mass, "tocsc"):
        from scipy.sparse import csc_array

        matrix = csc_array(mass, dtype=float, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        entries = matrix.data
    else:
        try:
            matrix = entries = own_floats(mass)
        except (TypeError, ValueError):
            raise TypeError(
                f"`mass` must be a constant matrix of numbers, or its diagonal, got {mass!r}; a mass matrix that "
                "depends on t or u is not supported."
            ) from None
    if matrix.shape not in ((n,), (n, n)):
        raise ValueError(
            f"`mass` must have shape ({n}, {n}), or ({n},) for a diagonal, as `u0` has {n} components; got shape "
            f"{matrix.shape}."
        )
    if not np.isfinite(entries).all():
        raise ValueError("`mass` must be finite.")
    if not entries.any():
        raise ValueError(
            "`mass` is zero: no derivative is left, and the equations are solved by a method for f(u) = 0, such as "
            "scipy.optimize.root."
        )
    entries.setflags(write=False)
    return matrix
