"""The spectrum of a Jacobian: how stiff it is, how much of it decays, and how well that is known."""

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from odelab.arrays import is_symmetric, library_of, to_numpy
from odelab.stiffness.arnoldi import ends
from odelab.stiffness.operator import JacobianOperator, as_operator

__all__ = ["Spectrum", "spectrum"]

PARTS = ("auto", "full", "extremes")
DENSE_MATRIX = 8192  # "auto" leaves a larger dense matrix to Arnoldi (LAPACK would take a quarter of an hour)
DENSE_OPERATOR = 1024  # likewise a sparse matrix or an operator, which has to be filled in first
FALLBACK = 3000  # where Arnoldi fails, the dense spectrum is the better answer up to here, twice that if symmetric


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Spectrum:
    """Eigenvalues of a Jacobian and what they say; NaN where a number is not known, or not defined.

    `negative`, `zero` and `positive` are fractions of all n eigenvalues by the sign of their real part, zero being
    |Re| <= `zero_tolerance`. Eq. 11 of Block-level Stiffness Analysis of Residual Networks counts Re > 0 although its
    text says negative, so all three are here.
    """

    n: int  # eigenvalues, counting known ones; the rank bound min(rows, columns) for a map that is not square
    values: np.ndarray | None = dataclasses.field(default=None, repr=False)  # all, by descending real part
    extremes: np.ndarray | None = dataclasses.field(
        default=None, repr=False
    )  # those found, where the rest is not known
    singular_values: np.ndarray | None = dataclasses.field(default=None, repr=False)  # of a map that is not square
    max_re: float = math.nan
    min_re: float = math.nan
    si: float = math.nan  # max |Re lambda|
    spectral_radius: float = math.nan
    negative: float = math.nan
    zero: float = math.nan
    positive: float = math.nan
    zero_tolerance: float = math.nan
    non_normality: float = math.nan  # Henrici's sqrt(||J||^2 - sum |lambda|^2) / ||J||; near 1, values are sensitive
    how: str  # "dense", "dense symmetric", "arnoldi", "lanczos" or "singular values"
    converged: bool = True
    residual: float = 0.0  # dense: |sum of values - trace| / (n radius); Arnoldi: largest ||Jv - lambda v|| / radius
    message: str

    def __str__(self):
        return self.message

    @property
    def stiffness_index(self) -> float:
        """S = max Re / min Re, Eq. 10 of the block-level paper; NaN where min Re is zero to within the tolerance.

        The ratio of a spectrum of one sign lies in (0, 1] (negative) or [1, inf) (positive): the usual stiffness ratio
        max |Re| / min |Re| of a decaying system is 1 / S.
        """
        return self.max_re / self.min_re if abs(self.min_re) > self.zero_tolerance else math.nan


def spectrum(
    J,
    part: str = "auto",
    zero_tolerance: float | None = None,
    k: int = 6,
    known: Iterable[tuple[float, int]] = (),
    shift: float = 0.0,
    frobenius: float | None = None,
) -> Spectrum:
    """The spectrum of a matrix (array, tensor, scipy.sparse) or of an operator with `shape` and `matvec`.

    `part`: "full" by LAPACK, "extremes" by Arnoldi (`k` eigenvalues at each end), or "auto" by kind and size. A matrix
    may stand for a larger one: the eigenvalues reported are shift + mu for every mu of `J`, and each `known` value as
    often as its count says. So a ReLU block reduced to its active units is spectrum(reduced, shift=1.0,
    known=((1.0, a2 - a1), (0.0, dead))). Arnoldi may miss an isolated zero; `known` zeros are exact. The reduced matrix
    has another Frobenius norm than the one it stands for: `frobenius` gives that of the latter, and without it
    `non_normality` is not known.
    """
    if part not in PARTS:
        raise ValueError(f"`part` must be one of {PARTS}, got {part!r}.")
    known = _checked_known(known)
    if not math.isfinite(shift):
        raise ValueError(f"`shift` must be finite, got {shift!r}.")
    if zero_tolerance is not None and not zero_tolerance >= 0:
        raise ValueError(f"`zero_tolerance` must be zero or positive, got {zero_tolerance!r}.")
    if k < 1:
        raise ValueError(f"`k` must be at least 1, got {k!r}.")
    if len(known) and getattr(J, "shape", None) == (0, 0):
        nothing = np.empty(0)  # but known values
        departure = _henrici(nothing, known, frobenius)
        return _full(nothing, known, zero_tolerance, noise=0.0, how="dense", non_normality=departure)
    operator = as_operator(J)
    if operator.shape[0] != operator.shape[1]:
        if len(known) or shift:
            raise ValueError(f"`known` and `shift` speak of eigenvalues, and a {_size(operator)} map has none.")
        return _singular(operator, part, k)
    if part == "full" or (part == "auto" and operator.shape[0] <= _dense_limit(operator)):
        return _dense(operator, known, shift, zero_tolerance, frobenius, on=_device(J))
    return _extremes(operator, known, shift, zero_tolerance, k)


def _dense(operator, known, shift, zero_tolerance, frobenius=None, on=None) -> Spectrum:
    J = operator.dense()
    matrix = J if on is None else library_of(on).as_tensor(J, device=on.device)  # by the tensor's own LAPACK
    linalg = library_of(matrix).linalg
    symmetric = _is_symmetric(J)
    values = to_numpy(linalg.eigvalsh(matrix) if symmetric else linalg.eigvals(matrix))
    radius, size, n = float(np.abs(values).max()), float(np.linalg.norm(J)), len(J)
    alone = frobenius is None and not len(known) and shift == 0.0
    return _full(
        values + shift,
        known,
        zero_tolerance,
        noise=n * float(np.finfo(J.dtype).eps) * max(size, abs(shift)),  # LAPACK's backward error
        how="dense symmetric" if symmetric else "dense",
        residual=abs(complex(values.sum()) - complex(np.trace(J))) / (n * radius) if radius else 0.0,
        non_normality=0.0 if symmetric and alone else _henrici(values + shift, known, size if alone else frobenius),
    )


def _henrici(values, known, frobenius: float | None) -> float:
    """sqrt(||J||_F^2 - sum |lambda|^2) / ||J||_F over all eigenvalues; NaN where the norm is not known."""
    if frobenius is None:
        return math.nan
    if frobenius == 0.0:
        return 0.0
    squares = sum(float((np.abs(some / frobenius) ** 2).sum()) for some in (values, known))
    return math.sqrt(max(0.0, 1.0 - squares))


def _full(values, known, zero_tolerance, noise, how, **quality) -> Spectrum:
    known = known if np.iscomplexobj(known) else known.astype(values.real.dtype)
    values = np.concatenate([values, known])
    values = values[np.lexsort((values.imag, -values.real))]
    real = values.real
    tolerance = noise if zero_tolerance is None else float(zero_tolerance)
    return Spectrum(
        n=len(values),
        values=values,
        max_re=float(real[0]),
        min_re=float(real[-1]),
        si=float(np.abs(real).max()),
        spectral_radius=float(np.abs(values).max()),
        negative=float(np.mean(real < -tolerance)),
        zero=float(np.mean(np.abs(real) <= tolerance)),
        positive=float(np.mean(real > tolerance)),
        zero_tolerance=tolerance,
        how=how,
        message=f"all {len(values)} eigenvalues, {how}; |Re| <= {tolerance:.1e} counts as zero.",
        **quality,
    )


def _extremes(operator, known, shift, zero_tolerance, k) -> Spectrum:
    symmetric = operator.matrix is not None and _is_symmetric(operator.matrix)
    n = operator.shape[0]
    found = None if n <= 4 * k + 2 else ends(operator, k, symmetric)  # ARPACK needs room for its basis
    if found is None or (not found.converged and n <= (2 * FALLBACK if symmetric else FALLBACK)):
        return _dense(operator, known, shift, zero_tolerance)
    values = np.concatenate([found.values + shift, np.unique(known)])
    real = values.real
    total, how = n + len(known), "lanczos" if symmetric else "arnoldi"
    account = f"the ends of {total} eigenvalues, {how}, {found.products} products, residual {found.residual:.1e}"
    if not len(found.values):
        return Spectrum(n=total, how=how, converged=False, residual=math.inf, message=f"{account}: none was found.")
    max_re, min_re, radius = float(real.max()), float(real.min()), float(np.abs(values).max())
    noise = max(n * float(np.finfo(operator.dtype).eps), found.residual) * max(radius, abs(shift))
    tolerance = noise if zero_tolerance is None else float(zero_tolerance)
    one_sided = found.converged and (max_re < -tolerance or min_re > tolerance)  # then the ends speak for the rest
    word = "converged" if found.converged else "NOT converged: the true ends may lie further out; raise `k`"
    return Spectrum(
        n=total,
        extremes=values[np.lexsort((values.imag, -real))],
        max_re=max_re,
        min_re=min_re,
        si=float(np.abs(real).max()),
        spectral_radius=radius,
        negative=float(max_re < 0.0) if one_sided else math.nan,
        zero=0.0 if one_sided else math.nan,
        positive=float(max_re > 0.0) if one_sided else math.nan,
        zero_tolerance=tolerance,
        non_normality=0.0 if symmetric else math.nan,
        how=how,
        converged=found.converged,
        residual=found.residual,
        message=f"{account}: {word}.",
    )


def _singular(operator, part, k) -> Spectrum:
    rank = min(operator.shape)
    if part == "extremes" and k < rank:
        from scipy.sparse.linalg import aslinearoperator, svds

        matrix = aslinearoperator(operator) if operator.matrix is None else operator.matrix
        values = svds(matrix, k, return_singular_vectors=False, v0=np.random.default_rng(0).standard_normal(rank))
        which = f"the {k} largest"
    else:
        values, which = np.linalg.svd(operator.dense(), compute_uv=False), "all"
    return Spectrum(
        n=rank,
        singular_values=np.sort(values)[::-1],
        how="singular values",
        message=f"a {_size(operator)} map is not square, without eigenvalues; {which} of its singular values instead.",
    )


def _checked_known(known) -> np.ndarray:
    """The known eigenvalues, each as often as it occurs."""
    values = []
    for value, count in known:
        if count != int(count) or count < 0 or not np.isfinite(value):
            raise ValueError(f"`known` must hold pairs (finite value, count >= 0), got ({value!r}, {count!r}).")
        values.append(np.full(int(count), value))
    return np.concatenate(values) if values else np.empty(0)


def _is_symmetric(J) -> bool:
    return (J != J.T).nnz == 0 if hasattr(J, "tocsr") else is_symmetric(J)


def _dense_limit(operator: JacobianOperator) -> int:
    return DENSE_MATRIX if isinstance(operator.matrix, np.ndarray) else DENSE_OPERATOR


def _device(J):
    return J if library_of(J) is not np else None


def _size(operator) -> str:
    return f"{operator.shape[0]} x {operator.shape[1]}"
