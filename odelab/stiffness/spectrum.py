"""The spectrum of a Jacobian: how stiff it is, how much of it decays, and how well that is known."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from odelab.arrays import adjoint, is_hermitian, library_of, norm, to_numpy
from odelab.results import Result
from odelab.stiffness.arnoldi import TOLERANCE, ends
from odelab.stiffness.conditioning import ORDINARY, eigenvalue_condition, movement
from odelab.stiffness.operator import JacobianOperator, as_operator

__all__ = ["Spectrum", "spectrum"]

PARTS = ("auto", "full", "extremes")
DENSE_MATRIX = 8192  # "auto" leaves a larger dense matrix to Arnoldi (LAPACK would take a quarter of an hour)
DENSE_OPERATOR = 1024  # likewise a sparse matrix or an operator, which has to be filled in first
FALLBACK = 3000  # where Arnoldi fails, the dense spectrum is the better answer up to here, twice that if symmetric


FACTORED = DENSE_MATRIX  # components of the largest matrix that is factorised for condition numbers
CERTAIN = 1e-6  # of the spectral radius: a larger error bound is part of the message


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Spectrum(Result, kinds={"eigenvalues": "odelab.plot.of_results:draw_eigenvalues"}):
    """Eigenvalues of a Jacobian, what they say, and how far they can be trusted, as `odelab.spectrum` returns them.

    Every field is a Python number or a NumPy array, NaN where it is not known or not defined. Eq. 11 of Block-level
    Stiffness Analysis of Residual Networks counts Re > 0 although its text says negative, so all three shares are here.

    n                the number of eigenvalues, `known` ones included; min(rows, columns) for a map that is not square
    values           all eigenvalues, by descending real part; None where only the ends are known
    extremes         the eigenvalues found at the ends, where the rest is not known; else None
    singular_values  of a map that is not square, in descending order; else None
    max_re, min_re   the largest and the smallest real part
    si               the stiffness index max |Re lambda|
    spectral_radius  max |lambda|
    negative, zero, positive  the shares of eigenvalues by the sign of their real part, which add up to one
    zero_tolerance   a real part of at most this size counts as zero
    non_normality    Henrici's sqrt(||J||^2 - sum |lambda|^2) / ||J||: 0 for a normal matrix. Small values do *not* mean
                     that eigenvalues can be trusted; `condition` says that
    condition        the largest condition number 1 / |y'x| of the eigenvalues behind max_re, min_re and
                     spectral_radius, with left and right eigenvectors y and x of length one; 1 for a normal matrix
    error_bound      how far rounding, or the residual of an iteration, may have moved them: `condition` times
                     eps ||J||, or Elsner's bound where that is smaller
    how              "dense", "dense symmetric" (or "Hermitian"), "arnoldi", "lanczos" or "singular values"
    converged        whether an iteration met its tolerance and another start found the same ends; True for LAPACK
    residual         dense: |sum of values - trace| / (n radius); Arnoldi: the largest ||Jv - lambda v|| / radius
    message          all of this in a sentence; it is also `str(spectrum)`

    `stiffness_index` is max_re / min_re.

    >>> import odelab as ol
    >>> found = ol.spectrum([[-1.0, 1000.0], [0.0, -2.0]])
    >>> found.si, found.negative, round(found.condition)
    (2.0, 1.0, 1000)
    """

    n: int
    values: np.ndarray | None = dataclasses.field(default=None, repr=False)
    extremes: np.ndarray | None = dataclasses.field(default=None, repr=False)
    singular_values: np.ndarray | None = dataclasses.field(default=None, repr=False)
    max_re: float = math.nan
    min_re: float = math.nan
    si: float = math.nan
    spectral_radius: float = math.nan
    negative: float = math.nan
    zero: float = math.nan
    positive: float = math.nan
    zero_tolerance: float = math.nan
    non_normality: float = math.nan
    condition: float = math.nan
    error_bound: float = math.nan
    how: str
    converged: bool = True
    residual: float = 0.0
    message: str

    def table(self):
        """A row per eigenvalue, or per singular value of a map that is not square."""
        if self.singular_values is not None:
            return {"singular_value": self.singular_values}
        values = np.asarray(self.extremes if self.values is None else self.values)
        return {"real": values.real, "imaginary": values.imag}

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
    tol: float = TOLERANCE,
    conditions: bool = True,
) -> Spectrum:
    """The spectrum of a Jacobian: its ends, the shares by sign, and how far they can be trusted.

    A matrix may stand for a larger one: the eigenvalues reported are shift + mu for every mu of `J`, and each `known`
    value as often as its count says. So a ReLU block reduced to its active units is
    spectrum(reduced, shift=1.0, known=((1.0, a2 - a1), (0.0, dead))).

    J               a matrix (array, tensor, scipy.sparse), real or complex, or an operator with `shape` and `matvec`;
                    of a map that is not square, singular values are given instead
    part            "full" for all eigenvalues by LAPACK, "extremes" for the ends by Arnoldi or Lanczos, or "auto": all
                    of dense matrices up to 8,192 and of others up to 1,024 components, which are filled in
    zero_tolerance  a real part of at most this size counts as zero; by default the backward error n eps ||J||
    k               eigenvalues at each end, at least, for "extremes"; 6 are sought even if fewer are asked for
    known           pairs (value, count) of eigenvalues known beforehand. Arnoldi may miss an isolated zero; `known`
                    zeros are exact
    shift           a number added to every eigenvalue of `J`
    frobenius       the Frobenius norm of the larger matrix that a reduced one stands for; without it `non_normality` is
                    not known where `known` or `shift` is given
    tol             the residual, relative to the spectral radius, at which an iteration ends; LAPACK does not use it
    conditions      whether condition numbers are computed, which takes a tenth to a third of the time of the dense
                    eigenvalues; without them `condition` and `error_bound` are NaN

    Returns a Spectrum, which holds NumPy arrays and Python numbers whatever `J` is. Raises TypeError for a tensor that
    requires gradients, because a Spectrum cannot keep them: pass J.detach(), or use `odelab.si`, which does.

    >>> import numpy as np
    >>> import odelab as ol
    >>> found = ol.spectrum(np.diag([-1.0, -2.0, -400.0]))
    >>> found.si, found.max_re, found.negative
    (400.0, -1.0, 1.0)
    >>> print(found)
    all 3 eigenvalues, dense symmetric; |Re| <= 2.7e-13 counts as zero.
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
    if not 0.0 < tol < 1.0:
        raise ValueError(f"`tol` must lie between 0 and 1, got {tol!r}.")
    reject_gradients(J)
    if len(known) and getattr(J, "shape", None) == (0, 0):
        nothing = np.empty(0)  # there are no eigenvalues but those in `known`
        departure = _henrici(nothing, known, frobenius)
        return _full(nothing, known, zero_tolerance, noise=0.0, how="dense", non_normality=departure)
    operator = as_operator(J)
    if operator.shape[0] != operator.shape[1]:
        if len(known) or shift:
            raise ValueError(f"`known` and `shift` speak of eigenvalues, and a {_size(operator)} map has none.")
        return _singular(operator, part, k)
    if part == "full" or (part == "auto" and operator.shape[0] <= _dense_limit(operator)):
        return _dense(operator, known, shift, zero_tolerance, frobenius, conditions, on=_device(J))
    found = _extremes(operator, known, shift, zero_tolerance, k, tol, conditions)
    n = operator.shape[0]
    if found is None or (not found.converged and n <= (2 * FALLBACK if found.how == "lanczos" else FALLBACK)):
        return _dense(operator, known, shift, zero_tolerance, frobenius, conditions, after=found)
    return found


def _dense(operator, known, shift, zero_tolerance, frobenius, conditions, on=None, after=None) -> Spectrum:
    J = operator.dense()
    matrix = J if on is None else library_of(on).as_tensor(J, device=on.device)  # by the tensor's own LAPACK
    linalg = library_of(matrix).linalg
    symmetric = _is_hermitian(J)
    values = to_numpy(linalg.eigvalsh(matrix) if symmetric else linalg.eigvals(matrix))
    radius, size, n = float(np.abs(values).max()), float(norm(J, (0, 1))), len(J)
    alone = frobenius is None and not len(known) and shift == 0.0
    return _full(
        values + shift,
        known,
        zero_tolerance,
        noise=n * float(np.finfo(J.dtype).eps) * max(size, abs(shift)),  # LAPACK's backward error
        how=f"dense {'Hermitian' if np.iscomplexobj(J) else 'symmetric'}" if symmetric else "dense",
        after="" if after is None else " The matrix was filled in, because an iteration for its ends did not converge.",
        residual=abs(complex(values.sum()) - complex(np.trace(J))) / (n * radius) if radius else 0.0,
        non_normality=0.0 if symmetric and alone else _henrici(values + shift, known, size if alone else frobenius),
        **_certainty(J, values, symmetric, size, float(np.finfo(J.dtype).eps), conditions),
    )


def _henrici(values, known, frobenius: float | None) -> float:
    """sqrt(||J||_F^2 - sum |lambda|^2) / ||J||_F over all eigenvalues; NaN where the norm is not known."""
    if frobenius is None:
        return math.nan
    if frobenius == 0.0:
        return 0.0
    squares = sum(float((np.abs(some / frobenius) ** 2).sum()) for some in (values, known))
    return math.sqrt(max(0.0, 1.0 - squares))


def _certainty(J, values, symmetric, size, backward, conditions) -> dict[str, float]:
    """Condition number and error bound of the eigenvalues at the ends; `backward` is the backward error over `size`."""
    if not conditions or J is None or not (symmetric or J.shape[0] <= FACTORED):
        return {}
    ends = () if symmetric else (values.real.argmax(), values.real.argmin(), np.abs(values).argmax())
    fold = complex if np.iscomplexobj(J) else lambda value: complex(value.real, abs(value.imag))
    chosen = {fold(values[i]) for i in ends}  # a pair of a real matrix has one condition number
    worst = max((eigenvalue_condition(J, value) for value in chosen), default=1.0)
    return {"condition": worst, "error_bound": float(movement(worst, size, J.shape[0], backward))}


def _full(values, known, zero_tolerance, noise, how, after="", **quality) -> Spectrum:
    known = known if np.iscomplexobj(known) else known.astype(values.real.dtype)
    values = np.concatenate([values, known])
    values = values[np.lexsort((values.imag, -values.real))]
    real = values.real
    tolerance = noise if zero_tolerance is None else float(zero_tolerance)
    account = f"all {len(values)} eigenvalues, {how}; |Re| <= {tolerance:.1e} counts as zero."
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
        message=account + after + _doubt(values, **quality),
        **quality,
    )


def _doubt(values, condition=math.nan, error_bound=math.nan, **_) -> str:
    """The sentence of the message that warns where rounding leaves the eigenvalues at the ends uncertain."""
    if not error_bound > max(CERTAIN, ORDINARY * float(np.finfo(values.dtype).eps)) * float(np.abs(values).max()):
        return ""
    return (
        f" The ends are ILL-CONDITIONED: with condition numbers up to {condition:.1e} rounding may have moved them by "
        f"{error_bound:.1e}; `odelab.pseudospectrum` says what can be known."
    )


def _extremes(operator, known, shift, zero_tolerance, k, tol, conditions) -> Spectrum | None:
    symmetric = operator.matrix is not None and _is_hermitian(operator.matrix)
    n = operator.shape[0]
    if n <= 4 * k + 2:  # ARPACK needs room for its basis
        return None
    found = ends(operator, k, symmetric, tol)
    values = np.concatenate([found.values + shift, np.unique(known)])
    real = values.real
    total, how = n + len(known), "lanczos" if symmetric else "arnoldi"
    account = f"the ends of {total} eigenvalues, {how}, {found.products} products, residual {found.residual:.1e}"
    if not len(found.values):
        return Spectrum(n=total, how=how, converged=False, residual=math.inf, message=f"{account}: none was found.")
    max_re, min_re, radius = float(real.max()), float(real.min()), float(np.abs(values).max())
    eps = float(np.finfo(operator.dtype).eps)
    noise = max(n * eps, found.residual) * max(radius, abs(shift))
    tolerance = noise if zero_tolerance is None else float(zero_tolerance)
    one_sided = found.converged and (max_re < -tolerance or min_re > tolerance)  # then all have one sign
    more = "raise `k` of `odelab.spectrum`"
    word = "converged" if found.converged else f"NOT converged: the true ends may lie further out; {more}"
    if found.moved:
        word = f"NOT converged: another start found an end further out, and there may be more; {more}"
    size = float(np.abs(found.values).max())  # the residual over this size is a backward error
    quality: dict[str, Any] = _certainty(
        operator.matrix, found.values, symmetric, size, max(eps, found.residual), conditions
    )
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
        message=f"{account}: {word}.{_doubt(values, **quality)}",
        **quality,
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


def reject_gradients(J):
    """Refuse a tensor whose gradients would be lost."""
    library = library_of(J)
    if library is not np and J.requires_grad and library.is_grad_enabled():
        raise TypeError(
            "`J` requires gradients, which a report of numbers cannot keep: pass J.detach(), or use `odelab.si` (or "
            "torch.linalg.eigvals), which do."
        )


def _is_hermitian(J) -> bool:
    return (adjoint(J) != J).nnz == 0 if hasattr(J, "tocsr") else is_hermitian(J)


def _dense_limit(operator: JacobianOperator) -> int:
    return DENSE_MATRIX if isinstance(operator.matrix, np.ndarray) else DENSE_OPERATOR


def _device(J):
    return J if library_of(J) is not np else None


def _size(operator) -> str:
    return f"{operator.shape[0]} x {operator.shape[1]}"
