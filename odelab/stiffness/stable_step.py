"""How long a step an explicit method may take before a decaying mode grows instead."""

import numpy as np

from odelab.arrays import reject_nonfinite, to_numpy
from odelab.methods.tableau import Method

__all__ = ["amplified", "largest_stable_step"]

GRID = 400  # points of a first look along a ray
HALVINGS = 50
ROUNDING = 1e-12  # |R| may exceed 1 by this, so that rounding at small z is no growth


def amplified(values, method, h: float = 1.0) -> np.ndarray:
    """Which decaying modes a step makes grow: Re lambda < 0, and yet |R(h lambda)| > 1.

    values   eigenvalues lambda of a Jacobian, any shape
    method   a Method with a stability function R, such as odelab.EULER
    h        the step size; 1, as a residual block has it

    Returns a boolean array of the shape of `values`.

    >>> import odelab as ol
    >>> ol.amplified([-1.0, -2.5, 0.5], ol.EULER)
    array([False,  True, False])
    """
    values = np.asarray(to_numpy(values), dtype=complex)
    return (values.real < 0) & (np.abs(method.stability(h * values)) > 1.0 + ROUNDING)


def largest_stable_step(values, method) -> float:
    """Find the largest step size at which no decaying mode grows.

    For Euler's method that is the minimum of -2 Re lambda / |lambda|^2 over the eigenvalues with a negative real part;
    for other methods the boundary of the stability region is sought along each eigenvalue's ray. Modes that grow by
    themselves, or neither grow nor decay, do not count.

    values   eigenvalues of a Jacobian, any shape
    method   a Method with a stability function, such as odelab.EULER or odelab.DOPRI5

    Returns the step size; infinity where no mode decays.

    >>> import odelab as ol
    >>> ol.largest_stable_step([-1000.0, -1.0], ol.EULER)
    0.002
    >>> round(ol.largest_stable_step([-1000.0, -1.0], ol.RK4), 6)
    0.002785
    """
    if not isinstance(method, Method):
        raise TypeError(
            f"`method` must be a Method of a fixed number of stages, such as odelab.DOPRI5, got {method!r}; the "
            "steps of others have no such limit."
        )
    values = np.asarray(to_numpy(values), dtype=complex).ravel()
    reject_nonfinite("values", values)
    decaying = np.unique(values[values.real < 0])
    if not len(decaying):
        return float("inf")
    size = np.abs(decaying)
    if method.stages == 1:
        return float((-2.0 * (decaying.real / size) / size).min())
    ray = decaying / size
    outside = np.full(len(ray), float(method.stages))  # where |R| > 1, sought further and further out
    inside = np.zeros(len(ray))
    while True:
        distance = inside[:, None] + (outside - inside)[:, None] * np.linspace(0.0, 1.0, GRID)[1:]
        grows = np.abs(method.stability(distance * ray[:, None])) > 1.0 + ROUNDING
        found = grows.any(1)
        if found.all():
            break
        inside, outside = np.where(found, inside, outside), np.where(found, outside, 2.0 * outside)
    first = grows.argmax(1)
    low = np.where(first > 0, np.take_along_axis(distance, np.maximum(first - 1, 0)[:, None], 1)[:, 0], inside)
    high = np.take_along_axis(distance, first[:, None], 1)[:, 0]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        grows = np.abs(method.stability(middle * ray)) > 1.0 + ROUNDING
        low, high = np.where(grows, low, middle), np.where(grows, middle, high)
    return float((low / size).min())
