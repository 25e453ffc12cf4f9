"""Limit cycles and a strange attractor: van der Pol, the Brusselator, Lorenz."""

import numpy as np

from odelab.problem import Problem
from odelab.problems.common.reference_values import references
from odelab.problems.common.support import number


def van_der_pol_rhs(t, u, params):
    x, v = u
    (mu,) = params
    return (v, mu * (1.0 - x * x) * v - x)


def van_der_pol_jacobian(t, u, params):
    x, v = u
    (mu,) = params
    return np.array([[0.0, 1.0], [-2.0 * mu * x * v - 1.0, mu * (1.0 - x * x)]])


def van_der_pol(mu: float = 5.0) -> Problem:
    """x'' = mu (1 - x^2) x' - x from (2, 0), time not rescaled; stiff for large mu, with a period of about 1.61 mu.

    mu    how strong the damping is, 5.0 by default

    Returns a `Problem` on (0, max(20, 2 mu)), state (x, x').

    >>> import odelab as ol
    >>> ol.problems.van_der_pol(mu=1000.0)
    Problem(van_der_pol, n = 2, t in [0, 2000], params = (1000.0,))
    """
    mu = number("mu", mu)
    return Problem(
        van_der_pol_rhs,
        [2.0, 0.0],
        (0.0, max(20.0, 2.0 * abs(mu))),
        (mu,),
        jacobian=van_der_pol_jacobian,
        references=references(f"van_der_pol mu={mu:g}"),
        name="van_der_pol",
        about="B. van der Pol, On relaxation-oscillations, Phil. Mag. 2 (1926) 978-992. Time is not rescaled: Hairer "
        "and Wanner's eps = 1e-6 on [0, 2] is mu = 1000 on [0, 2000] here, and their x' is mu times ours.",
    )


def brusselator_rhs(t, u, params):
    x, y = u
    a, b = params
    made = x * x * y
    return (a + made - (b + 1.0) * x, b * x - made)


def brusselator_jacobian(t, u, params):
    x, y = u
    _, b = params
    return np.array([[2.0 * x * y - (b + 1.0), x * x], [b - 2.0 * x * y, -x * x]])


def brusselator(a: float = 1.0, b: float = 3.0) -> Problem:
    """x' = a + x^2 y - (b + 1) x, y' = b x - x^2 y from (1.5, 3); a limit cycle for b > 1 + a^2.

    a    the supply, 1.0 by default
    b    the rate that drives the oscillation, 3.0 by default

    Returns a `Problem` on (0, 20), state (x, y).

    >>> import odelab as ol
    >>> ol.problems.brusselator()
    Problem(brusselator, n = 2, t in [0, 20], params = (1.0, 3.0))
    """
    params = (number("a", a), number("b", b))
    return Problem(
        brusselator_rhs,
        [1.5, 3.0],
        (0.0, 20.0),
        params,
        jacobian=brusselator_jacobian,
        references=references("brusselator", params == (1.0, 3.0)),
        name="brusselator",
        about="R. Lefever and G. Nicolis, Chemical instabilities and sustained oscillations, J. Theor. Biol. 30 (1971) "
        "267-284; Hairer, Norsett and Wanner, Solving ODEs I, section I.16.",
    )


def lorenz_rhs(t, u, params):
    x, y, z = u
    sigma, rho, beta = params
    return (sigma * (y - x), x * (rho - z) - y, x * y - beta * z)


def lorenz_jacobian(t, u, params):
    x, y, z = u
    sigma, rho, beta = params
    return np.array([[-sigma, sigma, 0.0], [rho - z, -1.0, -x], [y, x, -beta]], dtype=float)


def lorenz(sigma: float = 10.0, rho: float = 28.0, beta: float = 8.0 / 3.0) -> Problem:
    """Lorenz's three modes of convection from (1, 1, 1); neighbouring solutions part like e^(0.9 t).

    sigma    the Prandtl number, 10.0 by default
    rho      the Rayleigh number over its critical value, 28.0 by default
    beta     the shape of the cell, 8/3 by default

    Returns a `Problem` on (0, 10), state (x, y, z).

    >>> import odelab as ol
    >>> ol.problems.lorenz().u0
    array([1., 1., 1.])
    """
    params = (number("sigma", sigma), number("rho", rho), number("beta", beta))
    return Problem(
        lorenz_rhs,
        [1.0, 1.0, 1.0],
        (0.0, 10.0),
        params,
        jacobian=lorenz_jacobian,
        references=references("lorenz", params == (10.0, 28.0, 8.0 / 3.0)),
        name="lorenz",
        about="E. N. Lorenz, Deterministic nonperiodic flow, J. Atmos. Sci. 20 (1963) 130-141.",
    )
