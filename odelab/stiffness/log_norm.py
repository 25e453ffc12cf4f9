"""Logarithmic norms, and Söderlind's indicator, from the Hermitian part of a Jacobian.

mu[J] = lim (||I + hJ|| - 1) / h bounds the growth of differences of solutions (Dahlquist 1958, Lozinskii 1958);
G. Söderlind, The logarithmic norm: history and modern theory, BIT 46 (2006).
"""

import warnings

import numpy as np

from odelab.arrays import adjoint, checked_square, library_of, number
from odelab.stiffness.arnoldi import lanczos_bracket
from odelab.stiffness.conditioning import NotConverged
from odelab.stiffness.operator import JacobianOperator, as_operator

SMALLEST_LANCZOS = 20  # components; an operator with fewer is converted to a dense matrix
SPARSE_ABOVE = 400  # components: beyond, extreme eigenvalues of the Hermitian part come from Lanczos
SHARP = 1e-10  # the residual at which Lanczos ends, relative to the larger end; the error of the ends is smaller


def log_norm(J, p=2):
    """The logarithmic norm mu_p[J]: differences of solutions of u' = J u grow at most like exp(mu_p[J] t).

    J  a matrix or a batch, (..., n, n), real or complex, as an array or a tensor, whose gradients are kept; a
       scipy.sparse matrix; or a JacobianOperator with products both ways
    p  the norm that differences are measured in: 1, 2 or numpy.inf; 2

    Returns a number, or (...) for a batch, in the library of `J`. Of a sparse matrix beyond 400 components mu_2 comes
    from Lanczos, which warns of `odelab.NotConverged` where it did not settle.

    >>> import odelab as ol
    >>> ol.log_norm([[-1.0, 10.0], [0.0, -2.0]]).round(3), ol.log_norm([[-1.0, 10.0], [0.0, -2.0]], p=1)
    (np.float64(3.525), np.float64(8.0))
    """
    if p == 2:
        return log_norm_and_soderlind(J)[0]
    if p not in (1, np.inf):
        raise ValueError(f"`p` must be 1, 2 or numpy.inf, got {p!r}.")
    if is_operator(J):
        J = J.dense()
    if is_sparse(J):
        J = as_operator(J).matrix
        diagonal = J.diagonal()
        others = np.asarray(abs(J).sum(axis=0 if p == 1 else 1)).ravel() - np.abs(diagonal)
        return np.float64((diagonal.real + others).max())
    J = checked_square("J", J)
    library = library_of(J)
    diagonal = J.diagonal(0, -2, -1)
    others = library.abs(J).sum(-2 if p == 1 else -1) - library.abs(diagonal)
    return number(library.amax(diagonal.real + others, -1))


def soderlind(J):
    """The stiffness indicator s[J] = (m[J] + M[J]) / 2, half the sum of the extreme eigenvalues of (J + J')/2.

    Söderlind, Jay and Calvo, Stiffness 1952-2012, BIT 55 (2015), Definition 4: a run over a time T is stiff where
    T s[J] is far below -1. It sees damping only: a mode that oscillates fast and decays slowly binds an explicit method
    by stability with T s[J] near 0, as `ol.problems.forced_linear(((-0.01, -1000.0), (1000.0, -0.01)))` does.

    J  a matrix or a batch, (..., n, n), real or complex, as an array or a tensor, whose gradients are kept; a
       scipy.sparse matrix; or a JacobianOperator with products both ways

    Returns a number, or (...) for a batch, in the library of `J`.

    >>> import odelab as ol
    >>> ol.soderlind([[-100.0, 0.0], [0.0, -2.0]])
    np.float64(-51.0)
    """
    return log_norm_and_soderlind(J)[1]


def log_norm_and_soderlind(J):
    """mu_2[J] and s[J] together: both come from the extreme eigenvalues of (J + J')/2, which are the work."""
    smallest, largest = hermitian_extremes(J)
    return largest, 0.5 * (smallest + largest)


def hermitian_extremes(J):
    """The smallest and the largest eigenvalue of (J + J')/2."""
    if is_operator(J):
        if J.shape[0] > SMALLEST_LANCZOS:
            half = JacobianOperator(J.shape, lambda v: 0.5 * (J.matvec(v) + J.rmatvec(v)), dtype=J.dtype)
            return _lanczos_ends(half)
        J = J.dense()
    if is_sparse(J):
        if J.shape[0] > SPARSE_ABOVE:
            return _lanczos_ends(as_operator(0.5 * (J + adjoint(J))))
        J = as_operator(J).dense()
    J = checked_square("J", J)
    library = library_of(J)
    values = library.linalg.eigvalsh(0.5 * (J + adjoint(J)))
    return number(values[..., 0]), number(values[..., -1])


def _lanczos_ends(hermitian):
    low, high, residual, products = lanczos_bracket(hermitian, SHARP)
    if residual > max(SHARP, 100.0 * float(np.finfo(hermitian.dtype).eps)) * max(abs(low), abs(high)):
        warnings.warn(
            f"the ends {low:.9g} and {high:.9g} of the Hermitian part are those after {products} products, with a "
            f"residual of {residual:.1e}: the true ends may lie further out.",
            NotConverged,
            stacklevel=5,
        )
    return np.float64(low), np.float64(high)


def is_operator(J) -> bool:
    """Does J come as products with vectors, both ways?"""
    return hasattr(J, "matvec") and hasattr(J, "rmatvec") and hasattr(J, "dense")


def is_sparse(J) -> bool:
    """Is this a matrix of scipy.sparse?"""
    return hasattr(J, "tocsc")
