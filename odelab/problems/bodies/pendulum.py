"""A pendulum on a stiff spring: fast oscillation that never dies out, beside a slow swing."""

import numpy as np

from odelab import maths
from odelab.problem import Invariant, Problem
from odelab.problems.common.support import number


def elastic_pendulum_rhs(t, u, params):
    x, y, p, q = u
    (stiffness,) = params
    length = maths.sqrt(x * x + y * y)
    pull = stiffness * (length - 1.0) / length
    return (p, q, -pull * x, -pull * y - 1.0)


def elastic_pendulum_jacobian(t, u, params):
    x, y, _, _ = u
    (stiffness,) = params
    length = np.sqrt(x * x + y * y)
    pull, bend = stiffness * (length - 1.0) / length, stiffness / length**3
    xx, xy, yy = -pull - bend * x * x, -bend * x * y, -pull - bend * y * y
    return np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [xx, xy, 0.0, 0.0], [xy, yy, 0.0, 0.0]])


def energy(t, u, params):
    x, y, p, q = u
    stretch = maths.sqrt(x * x + y * y) - 1.0
    return 0.5 * (p * p + q * q) + 0.5 * params[0] * stretch * stretch + y


def elastic_pendulum(stiffness: float = 1e4) -> Problem:
    """A unit mass on a spring of rest length 1 and of this stiffness, under gravity 1, let go at rest from (1, 0).

    The spring oscillates at the frequency sqrt(stiffness) and never comes to rest: no eigenvalue decays, and an
    explicit method is held back all the same.

    stiffness    of the spring, 10,000 by default

    Returns a `Problem` on (0, 8), state (x, y, x', y'), with its energy as an invariant.

    >>> import odelab as ol
    >>> problem = ol.problems.elastic_pendulum()
    >>> float(ol.si(problem.jacobian(0.0, problem.u0, problem.params))) < 1e-6
    True
    """
    stiffness = number("stiffness", stiffness)
    if not stiffness > 0.0:
        raise ValueError(f"`stiffness` must be positive, got {stiffness}.")
    return Problem(
        elastic_pendulum_rhs,
        [1.0, 0.0, 0.0, 0.0],
        (0.0, 8.0),
        (stiffness,),
        jacobian=elastic_pendulum_jacobian,
        invariants=(Invariant("energy", energy),),
        name="elastic_pendulum",
        about="Ch. Lubich, Integration of stiff mechanical systems by Runge-Kutta methods, ZAMP 44 (1993) 1022-1053: a "
        "pendulum whose rod is a spring.",
    )
