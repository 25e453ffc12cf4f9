"""Logarithmic norms and their kin: what the Hermitian part of a Jacobian says that its eigenvalues do not.

mu[J] = lim (||I + hJ|| - 1) / h bounds the growth of differences of solutions (Dahlquist 1958, Lozinskii 1958);
G. Söderlind, The logarithmic norm: history and modern theory, BIT 46 (2006).
"""

import numpy as np

SMALLEST_LANCZOS = 20  # components: below, an operator is filled in
SPARSE_ABOVE = 400  # components: beyond, extreme eigenvalues of the Hermitian part come from Lanczos


def log_norm(J, p=2):
    """mu_p[J] for p = 1, 2 or infinity; (..., n, n) -> (...), or a sparse matrix -> a number."""
    if p == 2:
        return hermitian_extremes(J)[1]
    if p not in (1, np.inf):
        raise ValueError(f"`p` must be 1, 2 or numpy.inf, got {p!r}.")
    if is_sparse(J):
        diagonal = J.diagonal()
        others = np.asarray(abs(J).sum(axis=0 if p == 1 else 1)).ravel() - np.abs(diagonal)
        return float((diagonal + others).max())
    J = np.asarray(J, dtype=float)
    diagonal = np.diagonal(J, axis1=-2, axis2=-1)
    others = np.abs(J).sum(axis=-2 if p == 1 else -1) - np.abs(diagonal)
    return (diagonal + others).max(axis=-1)


def soderlind(J):
    """s[J] = (m[J] + M[J]) / 2, half the sum of the extreme eigenvalues of (J + J')/2.

    The stiffness indicator of Söderlind, Jay and Calvo, Stiffness 1952-2012, BIT 55 (2015), Definition 4: a run over a
    time T is stiff where T s[J] << -1, and stability can bind an explicit method only there.
    """
    smallest, largest = hermitian_extremes(J)
    return 0.5 * (smallest + largest)


def hermitian_extremes(J):
    """The smallest and the largest eigenvalue of (J + J')/2."""
    if is_operator(J):
        if J.shape[0] > SMALLEST_LANCZOS:
            from scipy.sparse.linalg import LinearOperator

            half = LinearOperator(J.shape, lambda v: 0.5 * (J.matvec(v) + J.rmatvec(v)), dtype=J.dtype)
            return lanczos_ends(half, tolerance=1e-10)
        J = J.dense()
    if is_sparse(J):
        if J.shape[0] > SPARSE_ABOVE:
            return lanczos_ends((0.5 * (J + J.T)).tocsc(), tolerance=1e-8)
        J = J.toarray()
    J = np.asarray(J, dtype=float)
    values = np.linalg.eigvalsh(0.5 * (J + J.swapaxes(-1, -2)))
    return values[..., 0], values[..., -1]


def lanczos_ends(hermitian, tolerance: float) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of a symmetric sparse matrix or operator."""
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(hermitian.shape[0])
    ends = eigsh(hermitian, k=2, which="BE", return_eigenvectors=False, tol=tolerance, v0=start)
    return float(ends.min()), float(ends.max())


def is_operator(J) -> bool:
    """Does J come as products with vectors, both ways?"""
    return hasattr(J, "matvec") and hasattr(J, "rmatvec") and hasattr(J, "dense")


def is_sparse(J) -> bool:
    return hasattr(J, "tocsc")
