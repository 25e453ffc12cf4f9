"""Stiffness at a point: SI, SAI and NSI, from one norm and one Jacobian.

Equations of Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023),
Sections 2.1.2 and 2.2.
"""

import sys
import warnings

import numpy as np

from odelab.arrays import (
    checked_square,
    floating,
    is_hermitian,
    library_of,
    norm,
    number,
    reject_nonfinite,
    reject_zero,
    to_numpy,
)
from odelab.stiffness.arnoldi import lanczos_bracket
from odelab.stiffness.conditioning import ORDINARY, IllConditioned, NotConverged, eigenvalue_conditions, movement
from odelab.stiffness.operator import as_operator
from odelab.stiffness.spectrum import DENSE_OPERATOR, _extremes, _is_hermitian, spectrum

__all__ = ["nsi", "relative_slope", "sai", "si"]


def si(J, tol: float = 1e-6):
    """The stiffness index SI = max |Re lambda(J)| of Section 2.1.2.

    J    a Jacobian or a batch of them, (..., n, n), real or complex, as an array or a tensor, whose gradients are kept;
         a scipy.sparse matrix; or an operator with `shape` and `matvec`. Matrices of the last two kinds up to 1,024
         components are filled in, larger ones are answered by Lanczos (Hermitian) or Arnoldi and never filled in;
         sparse tensors are filled in always
    tol  the accuracy asked for, relative to the spectral radius; 1e-6. An iteration ends there. It counts as at least
         1,000 eps, 1e-4 in single precision

    Returns a number, or (...) for a batch, in the library of `J`. Warns of `odelab.IllConditioned` where rounding alone
    may have moved the eigenvalue behind SI by more than `tol`, as in strongly non-normal matrices, and of
    `odelab.NotConverged`, with the bracket that is known, where an iteration ended before it reached `tol`.

    >>> import odelab as ol
    >>> ol.si([[-1.0, 100.0], [-100.0, -1.0]])
    np.float64(1.0)
    >>> from scipy.sparse import diags_array
    >>> n = 100_000
    >>> laplacian = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    >>> ol.si(laplacian, tol=1e-3).round(2)
    np.float64(4.0)
    """
    if not 0.0 < tol < 1.0:
        raise ValueError(f"`tol` must lie between 0 and 1, got {tol!r}.")
    if library_of(J) is not np and str(J.layout) != "torch.strided":
        J = J.to_dense()
    if not _is_dense(J):
        return _si_by_products(J, tol)
    J = checked_square("J", J)
    library = library_of(J)
    if is_hermitian(J):
        return number(library.amax(library.abs(library.linalg.eigvalsh(J)), -1))
    values = library.linalg.eigvals(J)
    _warn_of_movement(to_numpy(J), to_numpy(values), tol)
    return number(library.amax(library.abs(values.real), -1))


def _si_by_products(J, tol):
    """SI of a sparse matrix or an operator."""
    operator = as_operator(J)
    n = operator.shape[0]
    if n != operator.shape[1] or n <= DENSE_OPERATOR:
        found = spectrum(operator, part="full")
        if n != operator.shape[1]:
            raise ValueError(f"`J` must be square, got shape {operator.shape}: {found.message}")
    elif operator.matrix is not None and _is_hermitian(operator.matrix):
        low, high, residual, products = lanczos_bracket(operator, tol)
        least, most = max(abs(low), abs(high)), float(abs(operator.matrix).sum(axis=1).max())
        if residual > tol * least and most - least > tol * most:
            _warn(
                NotConverged,
                f"`si`: SI lies between {least:.9g} (Lanczos, {products} products) and {most:.9g} (Gershgorin's "
                f"circles); its residual {residual / least:.1e} has not reached tol = {tol:g}.",
            )
        return np.float64(least)
    else:
        ends = _extremes(operator, np.empty(0), 0.0, None, 6, tol, True)
        assert ends is not None  # there is room for a basis
        found = ends
        if not found.converged:
            _warn(NotConverged, f"`si` is known less exactly than tol = {tol:g}: {found.message}")
            return np.float64(found.si)
    certain = max(tol, ORDINARY * float(np.finfo(operator.dtype).eps))
    if found.error_bound > certain * found.spectral_radius:
        _warn_of(found.si, found.condition, found.error_bound)
    return np.float64(found.si)


def _warn_of_movement(J, values, tol):
    """Warn where rounding may have moved the eigenvalue behind SI by more than `tol` times the spectral radius."""
    n = J.shape[-1]
    J, values = J.reshape(-1, n, n), values.reshape(-1, n)
    leading = np.abs(values.real).argmax(axis=1)
    chosen = np.take_along_axis(values, leading[:, None], 1)[:, 0]
    radius, size = np.abs(values).max(axis=1), norm(J, (1, 2))
    conditions = eigenvalue_conditions(J, chosen)
    precision = float(np.finfo(J.dtype).eps)
    bounds = movement(conditions, size, n, precision)
    doubtful = bounds > max(tol, ORDINARY * precision) * radius
    if doubtful.any():
        worst = int(np.argmax(bounds / np.where(radius > 0.0, radius, 1.0)))
        which = f" for {int(doubtful.sum())} of {len(J)} matrices, in the worst case" if len(J) > 1 else ""
        _warn_of(abs(chosen[worst].real), conditions[worst], bounds[worst], which)


def _warn_of(value, condition, bound, which=""):
    _warn(
        IllConditioned,
        f"`si` = {value:.6g} may be off by {bound:.1e}{which}: its eigenvalue has the condition number "
        f"{condition:.1e}, and rounding alone moves it so far; `odelab.pseudospectrum` says what can be known.",
    )


def _warn(kind, text):
    """Warn, and name the line of the caller's file that called into this module."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


def sai(sol=None, *, t=None, u=None, simplified: bool = False):
    """The stiffness-aware index SAI of each step: how fast the solution moves, relative to its size.

    Of a run it is ||S|| / ||u|| with the effective slope S of each accepted step, infinite where the state is zero. Of
    observed states it is Eq. 3, with finite differences in place of the slopes, which observations do not tell.

    sol         a Trajectory, or anything with `u` (m + 1, n) and `slope` (m, n)
    t, u        times (m + 1,) and states (m + 1, ...) that were observed, instead of `sol`
    simplified  leave out 1 / ||u||, as the paper does where it only ranks states; False

    Returns one number per step, (m,), in the library of the data.

    >>> import numpy as np
    >>> import odelab as ol
    >>> t = np.linspace(0.0, 0.2, 3)
    >>> ol.sai(t=t, u=np.exp(-5.0 * t)[:, None]).round(3)
    array([3.935, 3.935])
    >>> sol = ol.solve(ol.problems.van_der_pol(mu=5.0), ol.DOPRI5)
    >>> ol.sai(sol).shape == sol.h.shape
    True
    """
    if (sol is None) == (t is None and u is None):
        raise TypeError("`sai` takes either a run, sai(sol), or data, sai(t=..., u=...).")
    if sol is not None:
        state, slope = _states_and_slopes(sol)
    else:
        state, slope = _finite_differences(t, u)
        if not simplified:
            reject_zero("u", norm(state, _all_but_first(state)))
    if simplified:  # the paper prints a vector, without the norm; ranking, its stated use, needs a number
        return norm(slope, _all_but_first(slope))
    return relative_slope(state, slope)


def nsi(state, slope):
    """The neural stiffness index NSI = ||slope|| / ||state|| of a batch of features, Eq. 4.

    state  features x_t, (N, ...): one sample per row, as an array or a tensor
    slope  (x_{t+1} - x_t) / h before any projection, of the same shape. That is the branch f(x_t) whatever its gate h:
           never divide by a gate. Eq. 4 as printed, after the final ReLU, is nsi(x, x_next - x)

    Returns one index per sample, (N,), in the library of `state` and with gradients in torch. Raises ValueError where
    a value is not finite or a state is zero.

    >>> import numpy as np
    >>> import odelab as ol
    >>> ol.nsi(np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([[0.0, 10.0], [0.5, 0.0]]))
    array([2. , 0.5])
    """
    state = floating("state", state, slope)
    slope = floating("slope", slope, state)
    if tuple(state.shape) != tuple(slope.shape):
        raise ValueError(f"`slope` has shape {tuple(slope.shape)}, but `state` {tuple(state.shape)}; they must agree.")
    if state.ndim < 2:
        raise ValueError(f"`state` must be a batch, (N, ...), got shape {tuple(state.shape)}; use state[None] for one.")
    if 0 in state.shape:
        raise ValueError(f"`state` is empty, got shape {tuple(state.shape)}; give at least one sample and one feature.")
    index = relative_slope(state, slope)
    if not bool(library_of(index).isfinite(index).all()):  # the place is only sought for the message
        reject_nonfinite("state", state)
        reject_nonfinite("slope", slope)
        reject_zero("state", norm(state, _all_but_first(state)))
        raise ValueError("`slope` over `state` overflows; scale the features, or use double precision.")
    return index


def relative_slope(state, slope):
    """||slope|| / ||state|| over all axes but the first, unchecked: infinite or NaN where the state is zero."""
    axes = _all_but_first(state)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return norm(slope, axes) / norm(state, axes)


def _is_dense(J) -> bool:
    if library_of(J) is not np:
        return str(J.layout) == "torch.strided"
    return isinstance(J, np.ndarray | list | tuple | int | float | np.number)


def _all_but_first(values) -> tuple[int, ...]:
    return tuple(range(1, values.ndim))


def _states_and_slopes(sol):
    """The state at the start of each accepted step, and the step's slope."""
    slope = floating("sol.slope", sol.slope)
    state = floating("sol.u", getattr(sol, "step_u", sol.u), slope)  # with t_eval, `u` is given between the steps
    if len(state) != len(slope) + 1:
        raise ValueError(f"`sol` must hold one state more than slopes, got {len(state)} and {len(slope)}.")
    reject_nonfinite("sol.u", state)
    reject_nonfinite("sol.slope", slope)
    return state[:-1], slope


def _finite_differences(t, u):
    if t is None or u is None:
        raise TypeError(f"`sai` of data needs both times and states; `{'t' if t is None else 'u'}` is missing.")
    u = floating("u", u)
    t = floating("t", t, u)
    if t.ndim != 1 or len(t) < 2:
        raise ValueError(f"`t` must hold at least two times, (m + 1,), got shape {tuple(t.shape)}.")
    if u.ndim < 2 or len(u) != len(t) or 0 in u.shape:
        raise ValueError(
            f"`u` must hold one state per time, ({len(t)}, n), got shape {tuple(u.shape)}; one component is u[:, None]."
        )
    reject_nonfinite("t", t)
    reject_nonfinite("u", u)
    dt = t[1:] - t[:-1]
    if not bool((dt > 0).all() or (dt < 0).all()):
        times = to_numpy(t)
        forward = 1 if times[-1] >= times[0] else -1
        where = int(np.flatnonzero(~(forward * np.diff(times) > 0))[0])
        raise ValueError(f"`t` must run strictly one way, got {times[where]} then {times[where + 1]} at {where + 1}.")
    return u[:-1], (u[1:] - u[:-1]) / dt.reshape((-1,) + (1,) * (u.ndim - 1))
