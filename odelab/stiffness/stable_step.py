"""The largest step of an explicit method at which every mode that should not grow does not grow."""

import numpy as np

from odelab.arrays import reject_lost_gradients, reject_nonfinite, to_numpy
from odelab.methods.interface import answers

__all__ = ["amplified", "largest_stable_step", "nongrowing", "nongrowing_radius"]

GRID = 400  # points along a ray at which |R| is evaluated first
HALVINGS = 50
ROUNDING = 1e-12  # |R| may exceed 1 by this, so that rounding at small z is no growth
UPRIGHT = 1e-6  # a mode only oscillates if its real part is at most this share of the largest |lambda|
MODES = ("decaying", "nongrowing")


def amplified(values, method, h: float = 1.0) -> np.ndarray:
    """Which decaying modes grow in the steps of a method: those with Re lambda < 0 but |R(h lambda)| > 1.

    values   eigenvalues lambda of a Jacobian, any shape
    method   a Method with a stability function R, such as odelab.EULER
    h        the step size; 1, as a residual block has it

    Returns a boolean array of the shape of `values`. Raises ValueError for values that are not finite.

    >>> import odelab as ol
    >>> ol.amplified([-1.0, -2.5, 0.5], ol.EULER)
    array([False,  True, False])
    """
    values = np.asarray(to_numpy(values), dtype=complex)
    reject_nonfinite("values", values)
    return (values.real < 0) & (np.abs(method.stability(h * values)) > 1.0 + ROUNDING)


def row_of_eigenvalues(values) -> np.ndarray:
    """Eigenvalues in one row. A square array is refused: it is rather the Jacobian than its eigenvalues."""
    reject_lost_gradients("values", values)
    found = to_numpy(values)
    if hasattr(found, "tocsc") or hasattr(found, "values") or np.asarray(found).dtype.kind not in "biufc":
        raise TypeError(
            f"`values` must be eigenvalues, got {type(values).__name__}; of a matrix J they are "
            "numpy.linalg.eigvals(J), and odelab.spectrum(J).values."
        )
    found = np.asarray(found, dtype=complex)
    if found.ndim > 1 and found.shape[-1] == found.shape[-2] > 1:
        raise ValueError(
            f"`values` must be eigenvalues, got a square array {found.shape}; of a matrix J they are "
            "numpy.linalg.eigvals(J); if these are eigenvalues, hand them over as `values.ravel()`."
        )
    reject_nonfinite("values", found)
    return found.ravel()


def nongrowing(values) -> np.ndarray:
    """The eigenvalues whose modes do not grow by themselves: those that decay, and those that only oscillate.

    A fast mode that oscillates holds an explicit method back as a fast decaying one does, whereas a mode that grows is
    part of what the solution does and has to be resolved anyway.

    values   eigenvalues of a Jacobian, any shape but that of a matrix

    Returns them in one row, a NumPy array; those with a real part of up to a millionth of the largest modulus count, as
    oscillating. Raises TypeError for a tensor that requires gradients, ValueError for a matrix.

    >>> import odelab as ol
    >>> ol.nongrowing([-1.0, 100j, -100j, 5.0])
    array([-1.  +0.j,  0.+100.j,  0.-100.j])
    """
    values = row_of_eigenvalues(values)
    kept = values[values.real <= UPRIGHT * np.abs(values).max(initial=0.0)]
    return np.minimum(kept.real, 0.0) + 1j * kept.imag


def nongrowing_radius(values) -> float:
    """The largest modulus among the eigenvalues whose modes do not grow, rho_ng.

    values   eigenvalues of a Jacobian, any shape but that of a matrix

    Returns the radius; 0 where every mode grows. Raises ValueError for a matrix in place of its eigenvalues.

    >>> import odelab as ol
    >>> ol.nongrowing_radius([-1.0, 100j, -100j, 500.0])
    100.0
    """
    return float(np.abs(nongrowing(values)).max(initial=0.0))


def largest_stable_step(values, method, modes: str = "decaying", gain: float = 0.0) -> float:
    """Find the largest step size at which no decaying mode grows (or, on demand, no mode that only oscillates).

    For Euler's method that is the minimum of -2 Re lambda / |lambda|^2 over the eigenvalues with a negative real part;
    for other methods the boundary of the stability region is sought along each eigenvalue's ray. Modes that grow by
    themselves do not count.

    values   eigenvalues of a Jacobian, any shape but that of a matrix
    method   a Method with a stability function, such as odelab.EULER or odelab.DOPRI5
    modes    "decaying" counts eigenvalues with a negative real part, the default; "nongrowing" counts those that only
             oscillate, too (see `nongrowing`)
    gain     by how much |R| may exceed 1 in a step; 0 by default. Most methods make every oscillation grow a little, so
             that without some gain, such as 0.02, their largest step for "nongrowing" modes is 0

    Returns the step size; infinity where no mode counts. Raises ValueError for a matrix in place of its eigenvalues.

    >>> import odelab as ol
    >>> ol.largest_stable_step([-1000.0, -1.0], ol.EULER)
    0.002
    >>> round(ol.largest_stable_step([-1000.0, -1.0], ol.RK4), 6)
    0.002785
    """
    if not answers(method, "is_explicit"):
        raise TypeError(
            f"`method` must be a Method of a fixed number of stages, such as odelab.DOPRI5, got {method!r}; the "
            "steps of others have no such limit."
        )
    if modes not in MODES:
        raise ValueError(f"`modes` must be one of {list(MODES)}, got {modes!r}.")
    if not 0.0 <= gain < float("inf"):
        raise ValueError(f"`gain` must be at least 0, got {gain!r}.")
    values = row_of_eigenvalues(values)
    counted = np.unique(values[values.real < 0] if modes == "decaying" else nongrowing(values))
    counted = counted[counted != 0.0]
    if not len(counted):
        return float("inf")
    size, limit = np.abs(counted), 1.0 + max(gain, ROUNDING)
    if method.stages == 1 and gain == 0.0:
        return float((-2.0 * (counted.real / size) / size).min()) + 0.0  # never -0.0
    if gain == 0.0 and (counted.real == 0.0).any():  # where |R| leaves 1 at once, by less than rounding shows
        upright = counted.real == 0.0
        least = float((method.imaginary_boundary / size[upright]).min())
        rest = counted[~upright]
        return min(least, largest_stable_step(rest, method, modes)) if len(rest) else least
    ray = counted.real / size + 1j * (counted.imag / size)
    outside = np.full(len(ray), float(method.stages))  # a distance with |R| > 1, which is doubled until one is found
    inside = np.zeros(len(ray))
    while True:
        distance = inside[:, None] + (outside - inside)[:, None] * np.linspace(0.0, 1.0, GRID)[1:]
        grows = np.abs(method.stability(distance * ray[:, None])) > limit
        found = grows.any(1)
        if found.all():
            break
        inside, outside = np.where(found, inside, outside), np.where(found, outside, 2.0 * outside)
    first = grows.argmax(1)
    low = np.where(first > 0, np.take_along_axis(distance, np.maximum(first - 1, 0)[:, None], 1)[:, 0], inside)
    high = np.take_along_axis(distance, first[:, None], 1)[:, 0]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        grows = np.abs(method.stability(middle * ray)) > limit
        low, high = np.where(grows, low, middle), np.where(grows, middle, high)
    with np.errstate(over="ignore"):  # a step beyond the largest number is infinite
        return float((low / size).min())
