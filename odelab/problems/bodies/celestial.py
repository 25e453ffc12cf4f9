"""Arenstorf's closed orbit of a satellite around earth and moon."""

import numpy as np

from odelab import maths
from odelab.problem import Invariant, Problem
from odelab.problems.common.reference_values import references

MOON = 0.012277471  # the moon's share of the mass
START = (0.994, 0.0, 0.0, -2.00158510637908252240537862224)
PERIOD = 17.0652165601579625588917206249


def arenstorf_rhs(t, u, params):
    x, y, p, q = u
    (mu,) = params
    earth = x + mu
    moon = x - (1.0 - mu)
    r1 = earth * earth + y * y
    r2 = moon * moon + y * y
    w1 = (1.0 - mu) / (r1 * maths.sqrt(r1))
    w2 = mu / (r2 * maths.sqrt(r2))
    return (p, q, x + 2.0 * q - w1 * earth - w2 * moon, y - 2.0 * p - w1 * y - w2 * y)


def arenstorf_jacobian(t, u, params):
    x, y, _, _ = u
    (mu,) = params
    xx, xy, yy = 1.0, 0.0, 1.0
    for mass, dx in ((1.0 - mu, x + mu), (mu, x - (1.0 - mu))):
        square = dx * dx + y * y
        near, far = mass / square**1.5, 3.0 * mass / square**2.5
        xx += far * dx * dx - near
        xy += far * dx * y
        yy += far * y * y - near
    return np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [xx, xy, 0.0, 2.0], [xy, yy, -2.0, 0.0]])


def jacobi_constant(t, u, params):
    x, y, p, q = u
    (mu,) = params
    r1 = maths.sqrt((x + mu) * (x + mu) + y * y)
    r2 = maths.sqrt((x - (1.0 - mu)) * (x - (1.0 - mu)) + y * y)
    return x * x + y * y + 2.0 * (1.0 - mu) / r1 + 2.0 * mu / r2 - p * p - q * q


def arenstorf() -> Problem:
    """A satellite's closed orbit around earth and moon: the restricted three-body problem in rotating axes.

    Returns a `Problem` over one period of the orbit, state (x, y, x', y'). No parameters to choose.

    >>> import odelab as ol
    >>> ol.problems.arenstorf()
    Problem(arenstorf, n = 4, t in [0, 17.0652], params = (0.012277471,))
    """
    return Problem(
        arenstorf_rhs,
        START,
        (0.0, PERIOD),
        (MOON,),
        jacobian=arenstorf_jacobian,
        invariants=(Invariant("Jacobi constant", jacobi_constant),),
        references=references("arenstorf"),
        name="arenstorf",
        about="R. F. Arenstorf, Periodic solutions of the restricted three body problem representing analytic "
        "continuations of Keplerian elliptic motions, Amer. J. Math. 85 (1963) 27-35; Hairer, Norsett and Wanner, "
        "Solving ODEs I, section II.0. The satellite passes the moon at 0.006.",
    )
