"""Two time scales in the plane: Davis and Skodje's manifold, a flame, FitzHugh and Nagumo's nerve."""

import functools

import numpy as np

from odelab.problem import Problem
from odelab.problems.common.support import number, states


def davis_skodje_rhs(t, u, params):
    x, y = u
    (gamma,) = params
    above = 1.0 + x
    return (-x, -gamma * y + ((gamma - 1.0) * x + gamma * x * x) / (above * above))


def davis_skodje_jacobian(t, u, params):
    x, _ = u
    (gamma,) = params
    above = 1.0 + x
    slope = ((gamma - 1.0) + 2.0 * gamma * x) / above**2 - 2.0 * ((gamma - 1.0) * x + gamma * x * x) / above**3
    return np.array([[-1.0, 0.0], [slope, -gamma]])


def davis_skodje_exact(start, t, params):
    (gamma,) = params
    t = np.asarray(t, dtype=float)
    x = start[0] * np.exp(-t)
    return states(x, x / (1.0 + x) + (start[1] - start[0] / (1.0 + start[0])) * np.exp(-gamma * t))


def davis_skodje(gamma: float = 10.0) -> Problem:
    """x' = -x, and y comes at the rate gamma to the slow manifold y = x / (1 + x); from (3, 1.5).

    gamma    the ratio of the two time scales, 10.0 by default

    Returns a `Problem` on (0, 8), state (x, y), with its exact solution.

    >>> import odelab as ol
    >>> end = ol.solve(ol.problems.davis_skodje(), ol.DOP853).end_u
    >>> abs(float(end[1] - end[0] / (1.0 + end[0]))) < 1e-6
    True
    """
    start = np.array([3.0, 1.5])
    return Problem(
        davis_skodje_rhs,
        start,
        (0.0, 8.0),
        (number("gamma", gamma),),
        jacobian=davis_skodje_jacobian,
        exact=functools.partial(davis_skodje_exact, start),
        name="davis_skodje",
        about="M. J. Davis and R. T. Skodje, Geometric investigation of low-dimensional manifolds in systems "
        "approaching equilibrium, J. Chem. Phys. 111 (1999) 859-874: a slow manifold that is known exactly.",
    )


def flame_rhs(t, u, params):
    (y,) = u
    return (y * y * (1.0 - y),)


def flame_jacobian(t, u, params):
    (y,) = u
    return np.array([[2.0 * y - 3.0 * y * y]])


def flame_exact(start, t, params):
    """1/y + log(1/y - 1) falls at the rate 1, so 1/y - 1 is Wright's omega function of what is left."""
    from scipy.special import wrightomega

    above = 1.0 / start - 1.0
    return states(1.0 / (1.0 + wrightomega(above + np.log(above) - np.asarray(t, dtype=float))))


def flame(radius: float = 1e-3) -> Problem:
    """y' = y^2 - y^3, the radius of a ball of flame: it grows slowly, catches fire at t = 1 / y(0), and stays at 1.

    radius    y(0), between 0 and 1; 0.001 by default. The smaller, the stiffer is what comes after the fire

    Returns a `Problem` on (0, 2 / y(0)) with its exact solution. It has no parameters.

    >>> import odelab as ol
    >>> float(ol.solve(ol.problems.flame(radius=0.01), ol.DOPRI5).end_u[0].round(4))
    1.0
    """
    radius = number("radius", radius)
    if not 0.0 < radius < 1.0:
        raise ValueError(f"`radius` must lie between 0 and 1, the radius at which the flame stops, got {radius}.")
    return Problem(
        flame_rhs,
        [radius],
        (0.0, 2.0 / radius),
        jacobian=flame_jacobian,
        exact=functools.partial(flame_exact, radius),
        name="flame",
        about="L. F. Shampine, I. Gladwell and S. Thompson, Solving ODEs with MATLAB (2003), section 1.4: a solution "
        "that is easy to follow until it stops moving.",
    )


def fitzhugh_nagumo_rhs(t, u, params):
    v, w = u
    slowness, current, a, b = params
    return (v - v * v * v / 3.0 - w + current, slowness * (v + a - b * w))


def fitzhugh_nagumo_jacobian(t, u, params):
    v, _ = u
    slowness, _, _, b = params
    return np.array([[1.0 - v * v, -1.0], [slowness, -slowness * b]])


def fitzhugh_nagumo(slowness: float = 0.08, current: float = 0.5) -> Problem:
    """A nerve that fires: v' = v - v^3 / 3 - w + current, w' = slowness (v + 0.7 - 0.8 w), from (0, 0).

    slowness    the ratio of the slow to the fast rate, 0.08 by default; the smaller, the stiffer
    current     what drives the nerve, 0.5 by default

    Returns a `Problem` on (0, 8 / slowness), state (v, w).

    >>> import odelab as ol
    >>> ol.problems.fitzhugh_nagumo()
    Problem(fitzhugh_nagumo, n = 2, t in [0, 100], params = (0.08, 0.5, 0.7, 0.8))
    """
    slowness = number("slowness", slowness)
    if not slowness > 0.0:
        raise ValueError(f"`slowness` must be positive, got {slowness}.")
    return Problem(
        fitzhugh_nagumo_rhs,
        [0.0, 0.0],
        (0.0, 8.0 / slowness),
        (slowness, number("current", current), 0.7, 0.8),
        jacobian=fitzhugh_nagumo_jacobian,
        name="fitzhugh_nagumo",
        about="R. FitzHugh, Impulses and physiological states in theoretical models of nerve membrane, Biophys. J. 1 "
        "(1961) 445-466; J. Nagumo, S. Arimoto and S. Yoshizawa, Proc. IRE 50 (1962) 2061-2070.",
    )
