"""Scalar stiff problems with known solutions: what a stability limit does, seen without any other difficulty."""

import functools

import numpy as np

from odelab import maths
from odelab.problem import Problem
from odelab.problems.common.reference_values import references
from odelab.problems.common.support import number, states

QUARTER_PI = maths.pi / 4.0


def dahlquist_rhs(t, u, params):
    (y,) = u
    (rate,) = params
    return (rate * y,)


def dahlquist_exact(start, t, params):
    return states(start * np.exp(params[0] * np.asarray(t, dtype=float)))


def rate_jacobian(t, u, params):
    """d/dy of every problem here that is linear in y with the slope `params[0]`."""
    return np.array([[params[0]]], dtype=float)


def dahlquist(rate: float = -1.0, u0: float = 1.0) -> Problem:
    """y' = rate * y, the test equation behind every stability region; its exact solution is known.

    rate    the rate, -1.0 by default
    u0      y(0), 1.0 by default

    Returns a `Problem` on (0, 5).

    >>> import odelab as ol
    >>> ol.problems.dahlquist(rate=-2.0)
    Problem(dahlquist, n = 1, t in [0, 5], params = (-2.0,))
    """
    start = number("u0", u0)
    return Problem(
        dahlquist_rhs,
        [start],
        (0.0, 5.0),
        (number("rate", rate),),
        jacobian=rate_jacobian,
        exact=functools.partial(dahlquist_exact, start),
        name="dahlquist",
        about="G. Dahlquist, A special stability problem for linear multistep methods, BIT 3 (1963) 27-43: the test "
        "equation behind every stability region.",
    )


def stiff_linear_rhs(t, u, params):
    (y,) = u
    return (-1000.0 * y + 3000.0 - 2000.0 * maths.exp(-t),)


def stiff_linear_jacobian(t, u, params):
    return np.array([[-1000.0]])


def stiff_linear_exact(t, params):
    t = np.asarray(t, dtype=float)
    return states(3.0 - 997.0 / 999.0 * np.exp(-1000.0 * t) - 2000.0 / 999.0 * np.exp(-t))


def stiff_linear() -> Problem:
    """y' = -1000 y + 3000 - 2000 e^-t, y(0) = 0: a fast transient, then a slow solution. No parameters.

    Returns a `Problem` on (0, 1) with its exact solution.

    >>> import odelab as ol
    >>> ol.solve(ol.problems.stiff_linear(), ol.RADAU).end_u.round(4)
    array([2.2635])
    """
    return Problem(
        stiff_linear_rhs,
        [0.0],
        (0.0, 1.0),
        jacobian=stiff_linear_jacobian,
        exact=stiff_linear_exact,
        references=references("stiff_linear"),
        name="stiff_linear",
        about="S. C. Chapra and R. P. Canale, Numerical Methods for Engineers, chapter on stiffness. The textbook "
        "rounds the solution to 3 - 0.998 e^-1000t - 2.002 e^-t; the coefficients are 997/999 and 2000/999.",
    )


def prothero_robinson_rhs(t, u, params):
    (y,) = u
    (rate,) = params
    return (rate * (y - maths.sin(t + QUARTER_PI)) + maths.cos(t + QUARTER_PI),)


def prothero_robinson_exact(t, params):
    return states(np.sin(np.asarray(t, dtype=float) + QUARTER_PI))


def prothero_robinson(rate: float = -1e6) -> Problem:
    """y' = rate * (y - phi(t)) + phi'(t) with phi(t) = sin(t + pi/4), started on phi: the solution is phi at any rate.

    rate    how fast neighbouring solutions come to phi, -1e6 by default

    Returns a `Problem` on (0, 1) with its exact solution.

    >>> import odelab as ol
    >>> ol.problems.prothero_robinson(rate=-1e4)
    Problem(prothero_robinson, n = 1, t in [0, 1], params = (-10000.0,))
    """
    return Problem(
        prothero_robinson_rhs,
        [np.sin(QUARTER_PI)],
        (0.0, 1.0),
        (number("rate", rate),),
        jacobian=rate_jacobian,
        exact=prothero_robinson_exact,
        references=references("prothero_robinson"),
        name="prothero_robinson",
        about="A. Prothero and A. Robinson, On the stability and accuracy of one-step methods for solving stiff "
        "systems of ordinary differential equations, Math. Comp. 28 (1974) 145-162: order reduction at its plainest.",
    )


def curtiss_hirschfelder_rhs(t, u, params):
    (y,) = u
    (rate,) = params
    return (rate * (y - maths.cos(t)),)


def curtiss_hirschfelder_exact(start, t, params):
    (rate,) = params
    t = np.asarray(t, dtype=float)
    scale = rate / (rate * rate + 1.0)
    return states(scale * (rate * np.cos(t) - np.sin(t)) + (start - scale * rate) * np.exp(rate * t))


def curtiss_hirschfelder(rate: float = -50.0, u0: float = 0.0) -> Problem:
    """y' = rate * (y - cos t), the equation of the paper that named stiffness.

    rate    how fast neighbouring solutions come together, -50.0 by default
    u0      y(0), 0.0 by default

    Returns a `Problem` on (0, 1.5) with its exact solution.

    >>> import odelab as ol
    >>> ol.problems.curtiss_hirschfelder()
    Problem(curtiss_hirschfelder, n = 1, t in [0, 1.5], params = (-50.0,))
    """
    start = number("u0", u0)
    return Problem(
        curtiss_hirschfelder_rhs,
        [start],
        (0.0, 1.5),
        (number("rate", rate),),
        jacobian=rate_jacobian,
        exact=functools.partial(curtiss_hirschfelder_exact, start),
        name="curtiss_hirschfelder",
        about="C. F. Curtiss and J. O. Hirschfelder, Integration of stiff equations, Proc. Nat. Acad. Sci. 38 (1952) "
        "235-243, in the form of Hairer and Wanner, Solving ODEs II, section IV.1: the paper that named stiffness.",
    )
