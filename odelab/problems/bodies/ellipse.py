"""Kepler's ellipse: two bodies, one orbit, known exactly."""

import functools

import numpy as np

from odelab import maths
from odelab.problem import Invariant, Problem
from odelab.problems.common.support import number, states

NEWTON_STEPS = 50


def kepler_rhs(t, u, params):
    x, y, p, q = u
    square = x * x + y * y
    cube = square * maths.sqrt(square)
    return (p, q, -x / cube, -y / cube)


def kepler_jacobian(t, u, params):
    x, y, _, _ = u
    square = x * x + y * y
    near, far = square**-1.5, 3.0 * square**-2.5
    xx, xy, yy = far * x * x - near, far * x * y, far * y * y - near
    return np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [xx, xy, 0.0, 0.0], [xy, yy, 0.0, 0.0]])


def kepler_exact(eccentricity, t, params):
    """From the eccentric anomaly E, which Newton's method finds from Kepler's equation E - e sin E = t."""
    t = np.asarray(t, dtype=float)
    turns = np.round(t / (2.0 * np.pi)) * 2.0 * np.pi
    mean = t - turns
    anomaly = mean + 0.85 * eccentricity * np.sign(np.sin(mean))
    for _ in range(NEWTON_STEPS):
        wrong = anomaly - eccentricity * np.sin(anomaly) - mean
        anomaly = anomaly - wrong / (1.0 - eccentricity * np.cos(anomaly))
    sine, cosine = np.sin(anomaly), np.cos(anomaly)
    across, speed = np.sqrt(1.0 - eccentricity**2), 1.0 / (1.0 - eccentricity * cosine)
    return states(cosine - eccentricity, across * sine, -sine * speed, across * cosine * speed)


def energy(t, u, params):
    x, y, p, q = u
    return 0.5 * (p * p + q * q) - 1.0 / maths.sqrt(x * x + y * y)


def angular_momentum(t, u, params):
    x, y, p, q = u
    return x * q - y * p


def kepler(eccentricity: float = 0.6) -> Problem:
    """A body on an ellipse around a mass at the origin, from its nearest point; twice around, without parameters.

    eccentricity    of the ellipse, from 0 to below 1; 0.6 by default. Near 1 it falls past the mass and turns sharply

    Returns a `Problem` on (0, 4 pi), state (x, y, x', y'), with its exact solution and two invariants.

    >>> import odelab as ol
    >>> problem = ol.problems.kepler(eccentricity=0.95)
    >>> sol = ol.solve(problem, ol.DOP853, ol.adaptive(1e-10, 1e-12))
    >>> bool(abs(sol.end_u - problem.u0).max() < 1e-5)
    True
    """
    eccentricity = number("eccentricity", eccentricity)
    if not 0.0 <= eccentricity < 1.0:
        raise ValueError(f"`eccentricity` must be at least 0 and below 1, got {eccentricity}.")
    return Problem(
        kepler_rhs,
        [1.0 - eccentricity, 0.0, 0.0, np.sqrt((1.0 + eccentricity) / (1.0 - eccentricity))],
        (0.0, 4.0 * np.pi),
        jacobian=kepler_jacobian,
        exact=functools.partial(kepler_exact, eccentricity),
        invariants=(Invariant("energy", energy), Invariant("angular momentum", angular_momentum)),
        name="kepler",
        about="Problem class D of T. E. Hull, W. H. Enright, B. M. Fellen and A. E. Sedgwick, Comparing numerical "
        "methods for ordinary differential equations, SIAM J. Numer. Anal. 9 (1972) 603-637.",
    )
