"""What every measure asks of its arguments; a refusal names the argument, the value and the remedy."""

import numpy as np

from odelab.arrays import floating, library_of, to_numpy


def checked_square(name: str, J):
    """`J` as a finite, non-empty (..., n, n) array or tensor."""
    J = floating(name, J)
    if J.ndim < 2 or J.shape[-1] != J.shape[-2]:
        raise ValueError(
            f"`{name}` must be square, (..., n, n), got shape {tuple(J.shape)}; a map between spaces of different size "
            f"has no eigenvalues: `odelab.spectrum` gives its singular values."
        )
    if 0 in J.shape:
        raise ValueError(f"`{name}` is empty, got shape {tuple(J.shape)}; give at least one matrix of one component.")
    reject_nonfinite(name, J)
    return J


def is_symmetric(J) -> bool:
    """Is every matrix of (..., n, n) its own transpose, to the bit?"""
    corner = J[..., :64, :64]  # most matrices are dismissed here
    return all(bool((library_of(x).swapaxes(x, -1, -2) == x).all()) for x in (corner, J))


def reject_nonfinite(name: str, values):
    finite = library_of(values).isfinite(values)
    if not bool(finite.all()):
        where = tuple(int(i) for i in np.argwhere(~to_numpy(finite))[0])
        raise ValueError(f"`{name}` must be finite, got {to_numpy(values)[where]} at {place(where)}.")


def reject_zero(name: str, norms):
    """Refuse states whose norm is zero: an index relative to it is not defined."""
    if not bool((norms > 0).all()):
        where = tuple(int(i) for i in np.argwhere(~(to_numpy(norms) > 0))[0])
        raise ValueError(
            f"`{name}` is zero{f' at {place(where)}' if where else ''}: an index relative to its norm is not defined "
            f"there; leave it out, or measure the slope alone."
        )


def place(where: tuple[int, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)


def own_floats(values) -> np.ndarray:
    """A writable C copy: kernels take no other arrays, and what was given may change while a run is in use."""
    return np.array(values, dtype=np.float64, order="C")
