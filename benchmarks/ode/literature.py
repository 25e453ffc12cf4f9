"""Thirty test problems of the literature that are not in `odelab.problems`: the doctor is judged on them, too.

Names begin with their source: DETEST (T. E. Hull, W. H. Enright, B. M. Fellen, A. E. Sedgwick, SIAM J. Numer. Anal. 9
(1972) 603-637), STIFF (W. H. Enright, T. E. Hull, B. Lindberg, BIT 15 (1975) 10-48; W. H. Enright, J. D. Pryce, ACM
TOMS 13 (1987) 1-27), HW (E. Hairer, G. Wanner, Solving Ordinary Differential Equations II), HLW (E. Hairer, C. Lubich,
G. Wanner, Geometric Numerical Integration), HH (A. L. Hodgkin, A. F. Huxley, J. Physiol. 117 (1952) 500-544),
SUNDIALS (an example of CVODE, cvAdvDiff_bnd).
"""

from typing import NamedTuple

import numpy as np

import odelab as ol
from odelab.maths import exp, sin, sqrt


class Known(NamedTuple):
    """A problem, and the size of its smallest components that matter."""

    problem: ol.Problem
    smallest: float


def literature() -> dict[str, Known]:
    """The thirty by name."""
    everything: dict[str, tuple] = {**NOT_STIFF, **STIFF}
    return {name: Known(made(name, *rest), smallest) for name, (*rest, smallest) in everything.items()}


def made(name, rhs, u0, end, params=()) -> ol.Problem:
    return ol.Problem(rhs, u0, (0.0, end), params, name=name)


def torus(t, u, p):
    r = sqrt(u[0] * u[0] + u[1] * u[1])
    return -u[1] - u[0] * u[2] / r, u[0] - u[1] * u[2] / r, u[0] / r


def decay_chain(t, u, p):
    return (-u[0], *(u[i - 1] - u[i] for i in range(1, 9)), u[8])


def parabolic(t, u, p):
    return (
        -2.0 * u[0] + u[1],
        *(u[i - 1] - 2.0 * u[i] + u[i + 1] for i in range(1, 9)),
        u[8] - 2.0 * u[9],
    )


def bessel(t, u, p):
    s = t + 1.0
    return u[1], -(u[1] / s + (1.0 - 0.25 / (s * s)) * u[0])


def springs(t, u, p):
    """Six masses on a line, joined by stiff linear and soft cubic springs in turn (Fermi, Pasta, Ulam, Tsingou)."""
    x, v, w = (0.0, *u[:6], 0.0), u[6:], p[0]
    soft = [(x[i + 1] - x[i]) ** 3 for i in range(0, 7, 2)]
    stiff = [0.5 * w * w * (x[i + 1] - x[i]) for i in range(1, 7, 2)]
    forces = []
    for i in range(3):
        forces += [stiff[i] - soft[i], soft[i + 1] - stiff[i]]
    return (*v, *forces)


def axon(t, u, p):
    """The voltage in millivolts above rest, and the gates n, m, h."""
    v, n, m, h = u
    current = 120.0 * m**3 * h * (v - 115.0) + 36.0 * n**4 * (v + 12.0) + 0.3 * (v - 10.613)
    ten, twenty_five = 10.0 - v, 25.0 - v
    return (
        p[0] - current,
        0.01 * ten / (exp(ten / 10.0) - 1.0) * (1.0 - n) - 0.125 * exp(-v / 80.0) * n,
        0.1 * twenty_five / (exp(twenty_five / 10.0) - 1.0) * (1.0 - m) - 4.0 * exp(-v / 18.0) * m,
        0.07 * exp(-v / 20.0) * (1.0 - h) - h / (exp((30.0 - v) / 10.0) + 1.0),
    )


def bed(t, u, p):
    k = exp(20.7 - 1500.0 / u[0])
    return (
        1.3 * (u[2] - u[0]) + 10400.0 * k * u[1],
        1880.0 * (u[3] - u[1] * (1.0 + k)),
        1752.0 - 269.0 * u[2] + 267.0 * u[0],
        0.1 + 320.0 * u[1] - 321.0 * u[3],
    )


def enzyme(t, u, p):
    one, two = 1e7 * u[1] * u[0], 1e7 * u[1] * u[4]
    return (
        10.0 * u[2] - one,
        10.0 * u[2] + 10.0 * u[3] - one - two,
        one - 1.001e4 * u[2] + 1e-3 * u[3],
        1e4 * u[2] - 10.001 * u[3] + two,
        10.0 * u[3] - two,
    )


def plasma(t, u, p):
    one, two = 3e11 * u[0] * u[1], 9e11 * u[0] * u[2]
    return 1.2e8 * u[3] - one - two, 2e7 * u[3] - one, 1e8 * u[3] - two, one + two - 1.2e8 * u[3]


def mixing(t, u, p):
    return (
        -1800.0 * u[0] + 900.0 * u[1],
        *(u[i - 1] - 2.0 * u[i] + u[i + 1] for i in range(1, 8)),
        1000.0 * u[7] - 2000.0 * u[8] + 1000.0,
    )


def cusp(t, u, p):
    """A threshold, a cusp catastrophe and van der Pol's oscillator, with diffusion on a ring of 32 points."""
    y, a, b = u.reshape(3, -1)
    n, stiffness = y.size, 1e4
    diffusion = n * n / 144.0

    def spread(x):
        return diffusion * (np.roll(x, 1) - 2.0 * x + np.roll(x, -1))

    w = (y - 0.7) * (y - 1.3)
    v = w / (w + 0.1)
    return np.concatenate(
        [
            -stiffness * (y**3 + a * y + b) + spread(y),
            b + 0.07 * v + spread(a),
            (1.0 - a * a) * b - a - 0.4 * y + 0.035 * v + spread(b),
        ]
    )


def cusp_start(n=32):
    angle = 2.0 * np.pi * np.arange(1, n + 1) / n
    return np.concatenate([np.zeros(n), -2.0 * np.cos(angle), 2.0 * np.sin(angle)])


ACROSS, ALONG = 10, 5


def advection_diffusion(t, u, p):
    """u_t = u_xx + u_x / 2 + u_yy on [0, 2] x [0, 1], zero on the boundary."""
    dx, dy, v = 2.0 / (ACROSS + 1), 1.0 / (ALONG + 1), np.pad(u.reshape(ACROSS, ALONG), 1)
    left, right, below, above = v[:-2, 1:-1], v[2:, 1:-1], v[1:-1, :-2], v[1:-1, 2:]
    middle = v[1:-1, 1:-1]
    found = (left - 2.0 * middle + right) / dx**2 + (right - left) / (4.0 * dx) + (below - 2.0 * middle + above) / dy**2
    return found.ravel()


def hill():
    x, y = np.arange(1, ACROSS + 1) * 2.0 / (ACROSS + 1), np.arange(1, ALONG + 1) / (ALONG + 1)
    x, y = x[:, None], y[None, :]
    return (x * (2.0 - x) * y * (1.0 - y) * np.exp(5.0 * x * y)).ravel()


ONE = 1.0  # the smallest components that matter are of size one
NOT_STIFF = {
    "DETEST A2": (lambda t, u, p: (-0.5 * u[0] ** 3,), [1.0], 20.0, ONE),
    "DETEST A4, logistic": (lambda t, u, p: (0.25 * u[0] * (1.0 - u[0] / 20.0),), [1.0], 20.0, ONE),
    "DETEST A5, spiral": (lambda t, u, p: ((u[0] - t) / (u[0] + t),), [4.0], 20.0, ONE),
    "DETEST B1, populations": (
        lambda t, u, p: (2.0 * (u[0] - u[0] * u[1]), u[0] * u[1] - u[1]), [1.0, 3.0], 20.0, ONE
    ),
    "DETEST B2, linear reactions": (
        lambda t, u, p: (u[1] - u[0], u[0] - 2.0 * u[1] + u[2], u[1] - u[2]), [2.0, 0.0, 1.0], 20.0, ONE
    ),
    "DETEST B3, reactions": (lambda t, u, p: (-u[0], u[0] - u[1] ** 2, u[1] ** 2), [1.0, 0.0, 0.0], 20.0, ONE),
    "DETEST B4, torus": (torus, [3.0, 0.0, 0.0], 20.0, ONE),
    "DETEST C1, decay": (decay_chain, [1.0] + 9 * [0.0], 20.0, ONE),
    "DETEST C3, parabolic": (parabolic, [1.0] + 9 * [0.0], 20.0, ONE),
    "DETEST E1, Bessel": (bessel, [0.671396707141803, 0.0954005144474744], 20.0, ONE),
    "DETEST E3, Duffing": (
        lambda t, u, p: (u[1], u[0] ** 3 / 6.0 - u[0] + 2.0 * sin(2.78535 * t)), [0.0, 0.0], 20.0, ONE
    ),
    "DETEST E4, falling": (lambda t, u, p: (u[1], 0.032 - 0.4 * u[1] ** 2), [30.0, 0.0], 20.0, ONE),
    "DETEST E5, pursuit": (lambda t, u, p: (u[1], sqrt(1.0 + u[1] ** 2) / (25.0 - t)), [0.0, 0.0], 20.0, ONE),
    "HH, axon": (axon, [0.0, 0.3177, 0.0530, 0.5961], 50.0, (10.0,), ONE),
    "HLW, springs": (springs, [2**-0.5, 2**-0.5, 0.02 - 0.5, 0.5, 0.0, 0.0] + [1.0] + 5 * [0.0], 20.0, (50.0,), ONE),
}  # fmt: skip
STIFF = {
    "STIFF A2": (mixing, 9 * [0.0], 120.0, ONE),
    "STIFF A3": (
        lambda t, u, p: (
            -1e4 * u[0] + 100.0 * u[1] - 10.0 * u[2] + u[3],
            -1e3 * u[1] + 10.0 * u[2] - 10.0 * u[3],
            -u[2] + 10.0 * u[3],
            -0.1 * u[3],
        ), 4 * [1.0], 20.0, ONE
    ),
    "STIFF B1": (
        lambda t, u, p: (u[1] - u[0], -100.0 * u[0] - u[1], -100.0 * u[2] + u[3], -1e4 * u[2] - 100.0 * u[3]),
        [1.0, 0.0, 1.0, 0.0], 20.0, ONE
    ),
    "STIFF B5": (
        lambda t, u, p: (
            -10.0 * u[0] + p[0] * u[1], -p[0] * u[0] - 10.0 * u[1], -4.0 * u[2], -u[3], -0.5 * u[4], -0.1 * u[5]
        ), 6 * [1.0], 20.0, (100.0,), ONE
    ),
    "STIFF C1": (
        lambda t, u, p: (
            -u[0] + u[1] ** 2 + u[2] ** 2 + u[3] ** 2,
            -10.0 * u[1] + 10.0 * (u[2] ** 2 + u[3] ** 2),
            -40.0 * u[2] + 40.0 * u[3] ** 2,
            -100.0 * u[3] + 2.0,
        ), 4 * [1.0], 20.0, ONE
    ),
    "STIFF C5": (
        lambda t, u, p: (
            2.0 - u[0],
            -10.0 * u[1] + p[0] * u[0] ** 2,
            -40.0 * u[2] + 4.0 * p[0] * (u[0] ** 2 + u[1] ** 2),
            -100.0 * u[3] + 10.0 * p[0] * (u[0] ** 2 + u[1] ** 2 + u[2] ** 2),
        ), 4 * [1.0], 20.0, (20.0,), ONE
    ),
    "STIFF D1": (
        lambda t, u, p: (0.2 * (u[1] - u[0]), 10.0 * u[0] - (60.0 - 0.125 * u[2]) * u[1] + 0.125 * u[2], 1.0),
        [0.0, 0.0, 0.0], 400.0, ONE
    ),
    "STIFF D4": (
        lambda t, u, p: (
            -0.013 * u[0] - 1000.0 * u[0] * u[2],
            -2500.0 * u[1] * u[2],
            -0.013 * u[0] - 1000.0 * u[0] * u[2] - 2500.0 * u[1] * u[2],
        ), [1.0, 1.0, 0.0], 50.0, 1e-5
    ),
    "STIFF D5": (
        lambda t, u, p: (
            0.01 - (1.0 + (u[0] + 1000.0) * (u[0] + 1.0)) * (0.01 + u[0] + u[1]),
            0.01 - (1.0 + u[1] ** 2) * (0.01 + u[0] + u[1]),
        ), [0.0, 0.0], 100.0, ONE
    ),
    "STIFF E3": (
        lambda t, u, p: (-(55.0 + u[2]) * u[0] + 65.0 * u[1], 0.0785 * (u[0] - u[1]), 0.1 * u[0]),
        [1.0, 1.0, 0.0], 500.0, ONE
    ),
    "STIFF F1, fluidised bed": (bed, [761.0, 0.0, 600.0, 0.1], 1000.0, ONE),
    "STIFF F3, enzyme": (enzyme, [4e-6, 1e-6, 0.0, 0.0, 0.0], 100.0, 1e-6),
    "STIFF F5": (plasma, [3.365e-7, 8.261e-3, 1.642e-3, 9.38e-6], 100.0, 1e-6),
    "HW, cusp": (cusp, cusp_start(), 1.1, ONE),
    "SUNDIALS, advection and diffusion": (advection_diffusion, hill(), 0.5, ONE),
}  # fmt: skip
