"""How far a computed eigenvalue can be trusted.

LAPACK's eigenvalues are those of J + E with ||E|| about eps ||J||. Such a change moves a simple eigenvalue with right
and left eigenvectors x, y of length one by up to ||E|| / |y'x|, to first order (Wilkinson 1965; Golub and Van Loan,
Matrix Computations, 7.2.2). 1 / |y'x|, its condition number, is 1 for a normal matrix and has no limit otherwise.
"""

import warnings

import numpy as np

from odelab.arrays import norm

__all__ = ["IllConditioned", "NotConverged", "eigenvalue_condition", "movement"]

TINY = 1e-20  # the smallest norm used, so that eps times it does not underflow, in single precision either
SHIFTS = (3.7, 17.3, 131.9)  # times eps ||J||: beside the eigenvalue, where factors are hardly ever singular
ORDINARY = 1000.0  # times eps, relative to the spectral radius: errors up to this size cause no warning
BLOCK = 1 << 20  # numbers in the matrices that are solved with at once


class IllConditioned(UserWarning):
    """A measure rests on eigenvalues that rounding alone may move by more than the tolerance asked for.

    >>> import warnings
    >>> import numpy as np
    >>> import odelab as ol
    >>> n = 300
    >>> J = np.diag([-2.0] * n) + np.diag([1.9] * (n - 1), -1) + np.diag([0.1] * (n - 1), 1)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ol.IllConditioned)
    ...     wrong = ol.si(J)
    >>> print(caught[0].message)
    `si` = 3.8... may be off by ...: its eigenvalue has the condition number ...
    """


class NotConverged(UserWarning):
    """A measure found by products with vectors is known less exactly than the tolerance asked for.

    >>> import warnings
    >>> import numpy as np
    >>> import odelab as ol
    >>> from scipy.sparse import diags_array
    >>> J = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(20_000, 20_000))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ol.NotConverged)
    ...     bound = ol.si(J, tol=1e-8)
    >>> print(caught[0].message)
    `si`: SI lies between 3.99999... (Lanczos, ... products) and 4 (Gershgorin's circles); ...
    """


def eigenvalue_condition(J, value) -> float:
    """1 / |y'x| of one eigenvalue of a matrix, dense or scipy.sparse, by inverse iteration with one factorisation.

    `value` may be as inexact as LAPACK's eigenvalues are. Where it is far from every true eigenvalue, because the
    matrix is strongly non-normal, the condition number is found to be as large as this distance requires.
    """
    size = _size(J)
    if size == 0.0:
        return 1.0
    value = value.real if value.imag == 0.0 else value
    if not TINY < size < 1.0 / TINY:  # where eps times it may vanish
        J, value, size = J / size, value / size, 1.0
    start = np.random.default_rng(0).standard_normal(J.shape[0])  # one for both: of a multiple eigenvalue of a normal
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for away in SHIFTS:
            right = left = start  # matrix it finds the same vector twice
            try:
                solve, solve_transposed = _inverse_products(J, value + away * np.finfo(J.dtype).eps * size)
            except RuntimeError:  # SuperLU: exactly singular
                continue
            for _ in range(2):
                right, left = _unit(solve(right)), _unit(solve_transposed(left))
            overlap = abs(np.vdot(left, right))
            if np.isfinite(overlap):
                return float(1.0 / overlap) if overlap > 0.0 else np.inf
    return np.inf


def eigenvalue_conditions(J, values) -> np.ndarray:
    """1 / |y'x| of one eigenvalue of each dense matrix of a batch: matrices (b, n, n), eigenvalues and answers (b,)."""
    if len(J) == 1 or J.shape[-1] > 64:
        return np.array([eigenvalue_condition(matrix, value) for matrix, value in zip(J, values, strict=True)])
    rows = max(1, BLOCK // J.shape[-1] ** 2)
    parts = [slice(start, start + rows) for start in range(0, len(J), rows)]
    try:
        return np.concatenate([_conditions_at_once(J[part], values[part]) for part in parts])
    except np.linalg.LinAlgError:  # a shifted matrix is singular to the last bit: one by one, each with its own shift
        return np.array([eigenvalue_condition(matrix, value) for matrix, value in zip(J, values, strict=True)])


def _conditions_at_once(J, values) -> np.ndarray:
    n = J.shape[-1]
    size = norm(J, (1, 2))
    unit = np.where(size > 0.0, size, 1.0).astype(J.dtype)
    J, values = J / unit[:, None, None], (values if values.imag.any() else values.real) / unit
    shifts = values + SHIFTS[0] * np.finfo(J.dtype).eps
    with np.errstate(all="ignore"):
        inverse = np.linalg.inv(J - shifts[:, None, None] * np.eye(n, dtype=J.dtype))
        start = np.random.default_rng(0).standard_normal((n, 1))
        right = _unit(inverse @ _unit(inverse @ start))
        transposed = inverse.conj().swapaxes(1, 2)
        left = _unit(transposed @ _unit(transposed @ start))
        overlap = np.abs((left.conj() * right).sum((1, 2)))
        return np.where(size > 0.0, np.where(overlap > 0.0, 1.0 / overlap, np.inf), 1.0)


def movement(condition, size, n, precision):
    """How far rounding may move an eigenvalue of an n x n matrix of norm `size`: the smaller of two bounds.

    condition * eps * size, which is first order, and Elsner's (2 size)^(1 - 1/n) (eps size)^(1/n), which holds for
    defective eigenvalues too (Stewart and Sun, Matrix Perturbation Theory, IV.1.2).
    """
    with np.errstate(all="ignore"):
        first_order = np.where(np.asarray(size) > 0.0, condition * precision * size, 0.0)
        return np.minimum(first_order, 2.0 * size * (0.5 * precision) ** (1.0 / n))


def _inverse_products(J, shift):
    """v -> (J - shift)^-1 v and v -> (J - shift)^-H v."""
    n = J.shape[0]
    if hasattr(J, "tocsc"):
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import splu

        moved = (J - shift * eye_array(n, dtype=J.dtype)).tocsc()
        factors = splu(moved)
        return lambda v: factors.solve(v.astype(moved.dtype)), lambda v: factors.solve(v.astype(moved.dtype), "H")
    from scipy.linalg import lu_factor, lu_solve

    moved = J - shift * np.eye(n, dtype=J.dtype)
    factors = lu_factor(moved, overwrite_a=True, check_finite=False)
    return (lambda v: lu_solve(factors, v, check_finite=False)), lambda v: lu_solve(factors, v, 2, check_finite=False)


def _unit(v):
    """A vector, or a batch of columns (b, n, 1), at length one, without overflow."""
    peak = np.abs(v).max(axis=-2 if v.ndim == 3 else None, keepdims=True)
    v = v / np.where(peak > 0.0, peak, 1.0)
    return v / np.sqrt((np.abs(v) ** 2).sum(axis=-2 if v.ndim == 3 else None, keepdims=True))


def _size(J) -> float:
    return float(norm(np.ravel(J.data if hasattr(J, "tocsc") else J)))
