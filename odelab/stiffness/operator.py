"""A Jacobian as an operator: its products with vectors; the matrix is formed only on request."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.arrays import adjoint, floating, library_of, reject_nonfinite, to_numpy
from odelab.stiffness.jacobian import jvp, vjp

__all__ = ["JacobianOperator", "as_operator"]


@dataclasses.dataclass(frozen=True, eq=False)
class JacobianOperator:
    """A Jacobian known by its products with vectors. scipy.sparse.linalg and `odelab.spectrum` take it as it is.

    shape    (rows, columns)
    matvec   a function v -> J v of one vector
    rmatvec  a function w -> J' w of one vector, with the conjugate transpose J'; without it, what needs the transpose
             raises TypeError
    dtype    the precision of the vectors, "complex128" for a complex map; "float64"
    matrix   the map itself, dense or sparse, where it is known; measures then use it

    `JacobianOperator.at(problem)` makes one from a problem, `operator @ v` is a product, `dense()` fills it in.

    >>> import odelab as ol
    >>> operator = ol.JacobianOperator.at(ol.problems.van_der_pol(mu=5.0), u=[2.0, 0.0])
    >>> (operator @ [0.0, 1.0]).round(6)
    array([  1., -15.])
    >>> ol.JacobianOperator((3, 3), lambda v: -2.0 * v).dense()[0]
    array([-2., -0., -0.])
    """

    shape: tuple[int, int]
    matvec: Callable
    rmatvec: Callable | None = None
    dtype: Any = "float64"
    matrix: Any = None

    def __post_init__(self):
        rows, columns = self.shape
        if rows < 1 or columns < 1:
            raise ValueError(f"`shape` must be two positive numbers, got {self.shape}.")
        object.__setattr__(self, "shape", (int(rows), int(columns)))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        if self.rmatvec is None:
            object.__setattr__(self, "rmatvec", _no_transpose)

    @classmethod
    def at(cls, problem, t=None, u=None, params=None, how: str = "auto") -> "JacobianOperator":
        """The Jacobian of a problem, or of a right-hand side, at (t, u), without forming it.

        problem, t, u, params, how  as in `odelab.jacobian`
        """
        state = problem.u0 if u is None else u
        state = problem.state_of(state) if hasattr(problem, "state_of") and library_of(state) is np else state
        n = len(state)
        dtype = str(state.dtype).removeprefix("torch.") if library_of(state) is not np else np.dtype(float)
        forward, backward = jvp(problem, t, state, params, how), vjp  # the transpose is formed when first asked for
        return cls((n, n), forward, lambda w: backward(problem, t, state, params, how)(w), dtype)

    def __matmul__(self, vector):
        return self.matvec(vector)

    def dense(self) -> np.ndarray:
        """The matrix, column by column from products with unit vectors unless it is known."""
        if self.matrix is not None:
            return self.matrix.toarray() if hasattr(self.matrix, "toarray") else to_numpy(self.matrix)
        rows, columns = self.shape
        matrix = np.empty(self.shape, self.dtype)
        for j in range(columns):
            unit = np.zeros(columns, self.dtype)
            unit[j] = 1.0
            matrix[:, j] = np.reshape(to_numpy(self.matvec(unit)), rows)
        reject_nonfinite("J", matrix)
        return matrix


def as_operator(J) -> JacobianOperator:
    """A matrix, a scipy.sparse matrix, a tensor, or anything with `shape` and `matvec`, as an operator."""
    if isinstance(J, JacobianOperator):
        return J
    if hasattr(J, "tocsr"):
        data = floating("J", J.tocoo().data, complex_too=True)
        reject_nonfinite("J", data)
        J = J.tocsr().astype(data.dtype)
        backwards = adjoint(J)
        return JacobianOperator(J.shape, lambda v: J @ v, lambda w: backwards @ w, J.dtype, matrix=J)
    if hasattr(J, "matvec") and hasattr(J, "shape"):
        dtype = np.dtype(getattr(J, "dtype", None) or float)
        return JacobianOperator(tuple(J.shape), J.matvec, getattr(J, "rmatvec", None), dtype)
    if library_of(J) is not np and str(J.layout) != "torch.strided":
        J = J.to_dense()
    matrix = to_numpy(floating("J", J, complex_too=True))
    if matrix.ndim != 2:
        raise ValueError(f"`J` must be one matrix, (m, n), got shape {matrix.shape}; take the matrices one by one.")
    if 0 in matrix.shape:
        raise ValueError(f"`J` is empty, got shape {matrix.shape}.")
    reject_nonfinite("J", matrix)
    backwards = adjoint(matrix)
    return JacobianOperator(matrix.shape, lambda v: matrix @ v, lambda w: backwards @ w, matrix.dtype, matrix=matrix)


def _no_transpose(vector):
    raise TypeError("this operator has no `rmatvec`: give one, or ask for what needs no transpose.")
