"""Point masses in the plane under Newton's law, G = 1: force gradient and conserved quantities for any number of them.

State: (x_1..x_k, y_1..y_k, x'_1..x'_k, y'_1..y'_k). With softening e every squared distance has e^2 added to it.
"""

import functools
from collections.abc import Callable
from itertools import combinations

import numpy as np

from odelab import maths
from odelab.problem import Invariant


def gravity_jacobian(u, masses, softening=0.0):
    """[[0, I], [G, 0]], G the gradient of the accelerations."""
    masses = np.asarray(masses, dtype=float)
    bodies = masses.size
    x, y = u[:bodies], u[bodies : 2 * bodies]
    dx, dy = x - x[:, None], y - y[:, None]
    square = dx * dx + dy * dy + softening * softening + np.eye(bodies)
    near = masses * square**-1.5
    far = 3.0 * masses * square**-2.5
    gradient = np.empty((2, bodies, 2, bodies))
    for row, a in enumerate((dx, dy)):
        for column, b in enumerate((dx, dy)):
            block = (near if row == column else 0.0) - far * a * b
            np.fill_diagonal(block, 0.0)
            np.fill_diagonal(block, -block.sum(axis=1))
            gradient[row, :, column] = block
    jacobian = np.zeros((4 * bodies, 4 * bodies))
    jacobian[: 2 * bodies, 2 * bodies :] = np.eye(2 * bodies)
    jacobian[2 * bodies :, : 2 * bodies] = gradient.reshape(2 * bodies, 2 * bodies)
    return jacobian


def gravity_invariants(parts: Callable) -> tuple[Invariant, ...]:
    """Energy, linear and angular momentum; `parts(params)` gives the masses and the softening."""
    functions = (energy, momentum_x, momentum_y, angular_momentum)
    return tuple(
        Invariant(function.__name__.replace("_", " "), functools.partial(function, parts)) for function in functions
    )


def split(parts, u, params):
    """Masses, softening, and the rows x, y, x', y' of a state."""
    masses, softening = parts(params)
    bodies = len(masses)
    return masses, softening, [u[i * bodies : (i + 1) * bodies] for i in range(4)]


def energy(parts, t, u, params):
    masses, softening, (x, y, p, q) = split(parts, u, params)
    total = sum(0.5 * m * (a * a + b * b) for m, a, b in zip(masses, p, q, strict=True))
    for i, j in combinations(range(len(masses)), 2):
        dx, dy = x[i] - x[j], y[i] - y[j]
        total = total - masses[i] * masses[j] / maths.sqrt(dx * dx + dy * dy + softening * softening)
    return total


def momentum_x(parts, t, u, params):
    masses, _, (_, _, p, _) = split(parts, u, params)
    return sum(m * a for m, a in zip(masses, p, strict=True))


def momentum_y(parts, t, u, params):
    masses, _, (_, _, _, q) = split(parts, u, params)
    return sum(m * b for m, b in zip(masses, q, strict=True))


def angular_momentum(parts, t, u, params):
    masses, _, (x, y, p, q) = split(parts, u, params)
    return sum(masses[i] * (x[i] * q[i] - y[i] * p[i]) for i in range(len(masses)))


def nearest_pair(u):
    """The least distance between two bodies.

    u    states (x_1..x_k, y_1..y_k, x'_1..x'_k, y'_1..y'_k) in the last axis, (..., 4 k)

    Returns distances (...).

    >>> import odelab as ol
    >>> float(ol.problems.nearest_pair([0.0, 3.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0]))
    5.0
    """
    u = np.asarray(u)
    bodies = u.shape[-1] // 4
    x, y = u[..., :bodies], u[..., bodies : 2 * bodies]
    pairs = list(combinations(range(bodies), 2))
    square = [(x[..., i] - x[..., j]) ** 2 + (y[..., i] - y[..., j]) ** 2 for i, j in pairs]
    return np.sqrt(np.min(square, axis=0))
