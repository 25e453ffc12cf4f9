"""The eigenvalues at the ends of a spectrum, from products with vectors alone (ARPACK)."""

import warnings
from typing import NamedTuple

import numpy as np

from odelab.stiffness.operator import JacobianOperator

ENDS = ("LR", "SR", "LM")  # largest real part, smallest real part, largest magnitude
SYMMETRIC_ENDS = ("LA", "SA")  # both ends, and with them the largest magnitude
RESTARTS = 100
TOLERANCE = 1e-10
LOOSE = 1e-4  # of a last attempt, whose answer is not called converged


class Ends(NamedTuple):
    """Eigenvalues found at the ends, whether ARPACK calls every end converged, and what is left of J v - lambda v."""

    values: np.ndarray
    converged: bool
    residual: float  # largest, relative to the largest |lambda| found
    products: int


def ends(operator: JacobianOperator, k: int, symmetric: bool) -> Ends:
    """`k` eigenvalues at each end. An end that fails is tried again with a larger basis, then less sharply."""
    count = [0]

    def product(v):
        count[0] += 1
        answer = np.reshape(operator.matvec(v), len(v))
        if not np.isfinite(answer).all():
            raise ValueError("`J` times a vector is not finite; is the operator defined at this state?")
        return answer

    n = operator.shape[0]
    start = np.random.default_rng(0).standard_normal(n).astype(operator.dtype)  # the same answer every time
    if not product(start).any():
        return Ends(np.zeros(1), True, 0.0, count[0])  # a random vector is mapped to zero by the zero map alone
    found, residuals, converged = [], [], True
    for end in SYMMETRIC_ENDS if symmetric else ENDS:
        values, vectors, sharp = _one_end(operator, product, end, k, start, symmetric)
        converged &= sharp
        found.append(values)
        residuals += [_residual(product, value, vectors[:, i]) for i, value in enumerate(values)]
    values = np.concatenate(found)
    radius = float(np.abs(values).max(initial=0.0))
    residual = max(residuals, default=np.inf) / radius if radius else np.inf
    return Ends(values, converged, float(residual), count[0])


def _one_end(operator, product, end, k, start, symmetric):
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, eigsh

    n = len(start)
    solve = eigsh if symmetric else eigs
    linear = LinearOperator((n, n), matvec=product, dtype=operator.dtype)
    sharp = max(TOLERANCE, 100.0 * float(np.finfo(operator.dtype).eps))
    partial = np.empty(0), np.empty((n, 0))
    for basis, tolerance in ((40, sharp), (160, sharp), (160, LOOSE)):
        basis = min(n, max(basis, 4 * k))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                values, vectors = solve(linear, k, which=end, v0=start, ncv=basis, maxiter=RESTARTS, tol=tolerance)
            return values, vectors, tolerance == sharp
        except ArpackNoConvergence as failure:
            if len(failure.eigenvalues):
                partial = failure.eigenvalues, failure.eigenvectors
        except ArpackError:
            pass  # no shifts could be applied, or no factorization: a larger basis may do
    return *partial, False


def _residual(product, value, vector) -> float:
    image = product(np.ascontiguousarray(vector.real))
    if np.iscomplexobj(vector):
        image = image + 1j * product(np.ascontiguousarray(vector.imag))
    return float(np.linalg.norm(image - value * vector) / np.linalg.norm(vector))
