"""Problems with algebraic equations, M u' = f(t, u) with a singular M, of index 1."""

import numpy as np

from odelab import maths
from odelab.problem import Invariant, Problem, Reference
from odelab.problems.common.reference_values import references
from odelab.problems.common.support import number


def robertson_dae_rhs(t, u, params):
    y1, y2, y3 = u
    k1, k2, k3 = params
    slow = k1 * y1
    back = k3 * y2 * y3
    return (back - slow, slow - back - k2 * y2 * y2, y1 + y2 + y3 - 1.0)


def robertson_dae_jacobian(t, u, params):
    _, y2, y3 = u
    k1, k2, k3 = params
    return np.array([[-k1, k3 * y3, k3 * y2], [k1, -k3 * y3 - 2.0 * k2 * y2, -k3 * y2], [1.0, 1.0, 1.0]])


def robertson_dae(k1: float = 0.04, k2: float = 3e7, k3: float = 1e4) -> Problem:
    """Robertson's reactions with the third equation replaced by A + B + C = 1; the references reach to t = 1e11.

    k1, k2, k3    the rates, as in `robertson`; 0.04, 3e7 and 1e4 by default
    k1            of A -> B
    k2            of 2 B -> B + C
    k3            of B + C -> A + C

    Returns a `Problem` with a mass matrix, state (A, B, C).

    >>> import odelab as ol
    >>> sol = ol.solve(ol.problems.robertson_dae(), ol.RODAS4, ol.adaptive(1e-6, 1e-10))
    >>> bool(abs(sol.end_u.sum() - 1.0) < 1e-14)
    True
    """
    params = (number("k1", k1), number("k2", k2), number("k3", k3))
    return Problem(
        robertson_dae_rhs,
        [1.0, 0.0, 0.0],
        (0.0, 40.0),
        params,
        jacobian=robertson_dae_jacobian,
        references=references("robertson", params == (0.04, 3e7, 1e4)),
        name="robertson_dae",
        about="Robertson's problem (see `robertson`) as a differential-algebraic system, as in the manual of LSODI "
        "(A. C. Hindmarsh, ACM SIGNUM Newsletter 15 (1980) 10-11).",
        mass=[1.0, 1.0, 0.0],
    )


def transistor_amplifier_rhs(t, u, params):
    y1, y2, y3, y4, y5, y6, y7, y8 = u
    supply, thermal, gain, beta, r0, r = params
    signal = 0.1 * maths.sin(628.3185307179587 * t)  # 100 Hz
    first = beta * (maths.exp((y2 - y3) / thermal) - 1.0)
    second = beta * (maths.exp((y5 - y6) / thermal) - 1.0)
    return (
        (y1 - signal) / r0,
        (y2 + y2 - supply) / r + (1.0 - gain) * first,
        y3 / r - first,
        (y4 - supply) / r + gain * first,
        (y5 + y5 - supply) / r + (1.0 - gain) * second,
        y6 / r - second,
        (y7 - supply) / r + gain * second,
        y8 / r,
    )


def transistor_amplifier_jacobian(t, u, params):
    _, thermal, gain, beta, r0, r = params
    J = np.diag(1.0 / np.array([r0, 0.5 * r, r, r, 0.5 * r, r, r, r]))
    for base in (1, 4):
        slope = beta / thermal * np.exp((u[base] - u[base + 1]) / thermal)
        for row, share in ((base, 1.0 - gain), (base + 1, -1.0), (base + 2, gain)):
            J[row, base] += share * slope
            J[row, base + 1] -= share * slope
    return J


def transistor_amplifier() -> Problem:
    """Two transistors amplify a voltage of 100 Hz: eight voltages, coupled by capacitors. M is not diagonal, of rank 5.

    Returns a `Problem` on (0, 0.2) with the end value of the test set; the output is the last component.

    >>> import odelab as ol
    >>> problem = ol.problems.transistor_amplifier()
    >>> problem.mass.shape, problem.mass_matrix.equations
    ((8, 8), 3)
    """
    supply, r = 6.0, 9000.0
    mass = np.zeros((8, 8))
    for (i, j), capacity in {(0, 1): 1e-6, (3, 4): 3e-6, (6, 7): 5e-6}.items():
        mass[[i, j], [i, j]], mass[[i, j], [j, i]] = -capacity, capacity
    mass[2, 2], mass[5, 5] = -2e-6, -4e-6
    half = 0.5 * supply
    end = [-0.5562145012262709e-2, 3.006522471903042, 2.849958788608128, 2.926422536206241]
    end += [2.704617865010554, 2.761837778393145, 4.770927631616772, 1.236995868091548]
    published = "F. Mazzia and C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, Bari (2008)"
    return Problem(
        transistor_amplifier_rhs,
        [0.0, half, half, supply, half, half, supply, 0.0],
        (0.0, 0.2),
        (supply, 0.026, 0.99, 1e-6, 1000.0, r),
        jacobian=transistor_amplifier_jacobian,
        references=(Reference(0.2, np.array(end), 10.0, published),),
        name="transistor_amplifier",
        about="Problem of index 1 in E. Hairer, C. Lubich and M. Roche, The Numerical Solution of "
        f"Differential-Algebraic Systems by Runge-Kutta Methods (1989), with the data of {published}.",
        mass=mass,
    )


def pendulum_dae_rhs(t, u, params):
    x, y, p, q, pull = u
    (gravity,) = params
    return (p, q, -pull * x, -pull * y - gravity, p * p + q * q - pull * (x * x + y * y) - gravity * y)


def pendulum_dae_jacobian(t, u, params):
    x, y, p, q, pull = u
    return np.array(
        [
            [0.0, 0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [-pull, 0.0, 0.0, 0.0, -x],
            [0.0, -pull, 0.0, 0.0, -y],
            [-2.0 * pull * x, -2.0 * pull * y - params[0], 2.0 * p, 2.0 * q, -(x * x + y * y)],
        ]
    )


def pendulum_length(t, u, params):
    return u[0] * u[0] + u[1] * u[1]


def pendulum_energy(t, u, params):
    _, y, p, q, _ = u
    return 0.5 * (p * p + q * q) + params[0] * y


def pendulum_dae(angle: float = 1.2, gravity: float = 9.81) -> Problem:
    """A pendulum of length 1 in Cartesian coordinates, whose pull in the rod is an algebraic unknown.

    The constraint x^2 + y^2 = 1 would make it of index 3. Here stands its second derivative with respect to time, which
    holds the pull: index 1. The length is then an invariant, from which a run drifts by as much as it is wrong.

    angle      from which it is let go at rest, in radians from the lowest point; 1.2 by default
    gravity    9.81 by default

    Returns a `Problem` on (0, 2), state (x, y, x', y', pull), with its length and its energy as invariants.

    >>> import odelab as ol
    >>> problem = ol.problems.pendulum_dae()
    >>> sol = ol.solve(problem, ol.RODAS5P, ol.adaptive(1e-8, 1e-10))
    >>> bool(abs(sol.u[:, 0] ** 2 + sol.u[:, 1] ** 2 - 1.0).max() < 1e-7)
    True
    """
    angle, gravity = number("angle", angle), number("gravity", gravity)
    x, y = np.sin(angle), -np.cos(angle)
    return Problem(
        pendulum_dae_rhs,
        [x, y, 0.0, 0.0, -gravity * y],
        (0.0, 2.0),
        (gravity,),
        jacobian=pendulum_dae_jacobian,
        invariants=(Invariant("x^2 + y^2", pendulum_length), Invariant("energy", pendulum_energy)),
        name="pendulum_dae",
        about="E. Hairer and G. Wanner, Solving Ordinary Differential Equations II (1996), VII.1: the pendulum as a "
        "differential-algebraic system, its index reduced to 1 by two derivatives of the constraint.",
        mass=[1.0, 1.0, 1.0, 1.0, 0.0],
    )
