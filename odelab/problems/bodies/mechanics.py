"""Euler's equations of a free rigid body."""

import numpy as np

from odelab.problem import Invariant, Problem
from odelab.problems.common.reference_values import references
from odelab.problems.common.support import number, states


def rigid_body_rhs(t, u, params):
    x, y, z = u
    (m,) = params
    return (y * z, -x * z, -m * x * y)


def rigid_body_jacobian(t, u, params):
    x, y, z = u
    (m,) = params
    return np.array([[0.0, z, y], [-z, 0.0, -x], [-m * y, -m * x, 0.0]])


def rigid_body_exact(t, params):
    """From (0, 1, 1) the three components are Jacobi's sn, cn and dn of parameter m."""
    from scipy.special import ellipj

    sn, cn, dn, _ = ellipj(np.asarray(t, dtype=float), params[0])
    return states(sn, cn, dn)


def circle(t, u, params):
    x, y, _ = u
    return x * x + y * y


def ellipse(t, u, params):
    x, _, z = u
    return params[0] * x * x + z * z


def rigid_body(m: float = 0.51) -> Problem:
    """Euler's free rigid body: x' = y z, y' = -x z, z' = -m x y from (0, 1, 1); two invariants, exact solution known.

    m    the parameter of the elliptic functions that solve it, between 0 and 1; 0.51 by default

    Returns a `Problem` on (0, 20), state (x, y, z).

    >>> import odelab as ol
    >>> [invariant.name for invariant in ol.problems.rigid_body().invariants]
    ['x^2 + y^2', 'm x^2 + z^2']
    """
    m = number("m", m)
    if not 0.0 <= m <= 1.0:
        raise ValueError(
            f"`m` must lie in [0, 1], the range of the elliptic functions that solve the problem, got {m}."
        )
    return Problem(
        rigid_body_rhs,
        [0.0, 1.0, 1.0],
        (0.0, 20.0),
        (m,),
        jacobian=rigid_body_jacobian,
        exact=rigid_body_exact,
        invariants=(Invariant("x^2 + y^2", circle), Invariant("m x^2 + z^2", ellipse)),
        references=references("rigid_body", m == 0.51),
        name="rigid_body",
        about="Problem B5 of T. E. Hull, W. H. Enright, B. M. Fellen and A. E. Sedgwick, Comparing numerical methods "
        "for ordinary differential equations, SIAM J. Numer. Anal. 9 (1972) 603-637.",
    )
