"""Jacobians by differences: central differences with several steps for each component, and the complex step."""

import numpy as np

EPSILON = float(np.finfo(float).eps)
CENTRAL = EPSILON ** (1 / 3)  # relative step: truncation h^2 and rounding eps / h meet here
IMAGINARY = 1e-30  # relative step: h^2 is far below rounding, h * size far above underflow
FLOORS = (1.0, 1e-3, 1e-6, 1e-9)  # sizes tried for a component small against the largest one, relative to that one
SMALL = 1.0 / 30.0  # a component is small against a floor below this
ANALYTIC_TOLERANCE = 1e-4  # of the complex step against one directional difference


def central(function, u):
    """The Jacobian of `function` at `u` by central differences.

    For a function like sqrt(u) the step should be relative to the component's own size; for one like 1 - u it should
    be relative to the largest component, because with a smaller step rounding errors dominate; near a singularity both
    are too large. Every component is therefore differenced with several steps, and each entry of the Jacobian takes the
    quotient whose truncation and rounding errors, both estimated, are least.
    """
    magnitudes = np.abs(u)
    largest = float(magnitudes.max()) or 1.0
    sizes = [_sizes(magnitude, largest) for magnitude in magnitudes]
    first = [_quotient(function, u, j, sizes[j][0]) for j in range(u.size)]
    slope = np.nan_to_num(np.abs(function(u)))
    terms = slope + sum(
        np.nan_to_num(np.abs(column)) * size for (column, _), size in zip(first, magnitudes, strict=True)
    )
    columns = []
    for j, (quotient, values) in enumerate(first):
        tried = [(quotient, values)] + [_quotient(function, u, j, size) for size in sizes[j][1:]]
        columns.append(_best(tried, sizes[j], terms))
    return np.stack(columns, axis=1)


def central_product(function, u, v):
    """J v by one central difference along v."""
    length = float(np.abs(v).max())
    if length == 0.0:
        return np.zeros_like(u)
    step = CENTRAL * (float(np.abs(u).max()) or 1.0) / length
    return (function(u + step * v) - function(u - step * v)) / (2.0 * step)


def complex_step(function, u):
    """The Jacobian as Im f(u + i h e_j) / h: no cancellation, but only for functions analytic in every component."""
    J = np.stack([complex_product(function, u, e) for e in np.eye(u.size)], axis=1)
    _reject_not_analytic(function, u, J)
    return J


def complex_product(function, u, v):
    """J v by one complex step along v."""
    length = float(np.abs(v).max())
    if length == 0.0:
        return np.zeros_like(u)
    step = IMAGINARY * (float(np.abs(u).max()) or 1.0) / length
    return np.imag(function(u + 1j * step * v)) / step


def _sizes(magnitude, largest):
    """The sizes that steps of a component are relative to, in falling order.

    The last two are the component's own size and a smaller one; they are left out where the component is zero.
    """
    floors = [floor * largest for floor in FLOORS if magnitude < SMALL * floor * largest]
    return [*floors, magnitude, SMALL * magnitude] if magnitude > 0.0 else floors


def _quotient(function, u, j, size):
    """Column j differenced with a step relative to `size`, and the size of the values it was formed from."""
    above, below = u.copy(), u.copy()
    above[j] += CENTRAL * size
    below[j] -= CENTRAL * size
    high, low = function(above), function(below)
    return (high - low) / (above[j] - below[j]), np.maximum(np.abs(high), np.abs(low))


def _best(tried, sizes, terms):
    """Entry by entry, the quotient whose estimated error is least."""
    best, least = tried[-1][0], np.full(terms.shape, np.inf)
    for k, (quotient, values) in enumerate(tried):
        rounding = EPSILON * (values + terms) / (CENTRAL * sizes[k])
        truncation = np.zeros_like(terms)
        if k + 1 < len(tried):  # the difference to the next, smaller step shows the truncation error
            blur = rounding + EPSILON * (tried[k + 1][1] + terms) / (CENTRAL * sizes[k + 1])
            truncation = np.maximum(np.abs(quotient - tried[k + 1][0]) - blur, 0.0)
        error = np.where(np.isfinite(quotient), np.nan_to_num(rounding + truncation, nan=np.inf, posinf=np.inf), np.inf)
        best, least = np.where(error < least, quotient, best), np.minimum(error, least)
    return best


def _reject_not_analytic(function, u, J):
    """Compare J with one real difference along u, and raise ValueError where they disagree.

    abs, maximum and comparisons have no complex derivative, but raise no error with complex numbers.
    """
    direction = u if u.any() else np.ones_like(u)
    seen = central_product(function, u, direction)
    allowed = ANALYTIC_TOLERANCE * (np.abs(J) @ np.abs(direction) + np.abs(function(u)))
    wrong = np.abs(J @ direction - seen) > allowed
    if wrong.any():
        raise ValueError(
            f"`how='complex'` disagrees with a real difference in component {int(np.flatnonzero(wrong)[0])}: the "
            f"right-hand side is not analytic there (abs, maximum, a comparison?); use how='central' or 'torch'."
        )
