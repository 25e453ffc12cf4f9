"""Stiffness at a point: SI, SAI and NSI, from one norm and one Jacobian.

Equations of Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023),
Sections 2.1.2 and 2.2.
"""

import numpy as np

from odelab.arrays import (
    checked_square,
    floating,
    is_symmetric,
    library_of,
    norm,
    number,
    reject_nonfinite,
    reject_zero,
    to_numpy,
)

__all__ = ["nsi", "relative_slope", "sai", "si"]


def si(J):
    """SI = max |Re lambda(J)|, Section 2.1.2: (..., n, n) -> (...); also of a sparse matrix or an operator."""
    if not _is_dense(J):
        from odelab.stiffness.spectrum import spectrum

        return spectrum(J).si
    J = checked_square("J", J)
    library = library_of(J)
    if is_symmetric(J):
        return number(library.amax(library.abs(library.linalg.eigvalsh(J)), -1))
    return number(library.amax(library.abs(library.linalg.eigvals(J).real), -1))


def sai(sol=None, *, t=None, u=None, simplified: bool = False):
    """The stiffness-aware index of a run, or of observed states `u` (m + 1, ...) at the times `t` (m + 1,): (m,).

    Of a run: ||S|| / ||u|| with the effective slope S of each accepted step, infinite where the state is zero. Of data:
    Eq. 3, the finite difference in place of the unknown slope. `simplified=True` leaves out 1 / ||u||.
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
    """The neural stiffness index ||slope|| / ||state|| of a batch of features, (N, ...), (N, ...) -> (N,): Eq. 4.

    `slope` is (x_{t+1} - x_t) / h before any projection, which is the branch f(x_t) whatever its gate h; never divide
    by a gate. Eq. 4 as printed, after the final ReLU, is `nsi(x, x_next - x)`.
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
    if not bool(library_of(index).isfinite(index).all()):  # one look at N numbers; the search is for the message only
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
