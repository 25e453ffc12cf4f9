"""Four classics of stiff chemical kinetics: Robertson, the Oregonator, HIRES and E5."""

import numpy as np

from odelab.problem import Invariant, Problem
from odelab.problems.common.reference_values import references
from odelab.problems.common.support import number


def robertson_rhs(t, u, params):
    y1, y2, y3 = u
    k1, k2, k3 = params
    slow = k1 * y1
    back = k3 * y2 * y3
    fast = k2 * y2 * y2
    return (back - slow, slow - back - fast, fast)


def robertson_jacobian(t, u, params):
    _, y2, y3 = u
    k1, k2, k3 = params
    return np.array(
        [
            [-k1, k3 * y3, k3 * y2],
            [k1, -k3 * y3 - 2.0 * k2 * y2, -k3 * y2],
            [0.0, 2.0 * k2 * y2, 0.0],
        ]
    )


def robertson_mass(t, u, params):
    y1, y2, y3 = u
    return y1 + y2 + y3


def robertson(k1: float = 0.04, k2: float = 3e7, k3: float = 1e4) -> Problem:
    """Robertson's reactions A -> B (k1), 2 B -> B + C (k2), B + C -> A + C (k3); the references reach to t = 1e11.

    k1    0.04 by default
    k2    3e7 by default
    k3    1e4 by default

    Returns a `Problem`, state (A, B, C).

    >>> import odelab as ol
    >>> ol.solve(ol.problems.robertson(), ol.RADAU, ol.adaptive(1e-6, 1e-10)).ok
    True
    """
    params = (number("k1", k1), number("k2", k2), number("k3", k3))
    return Problem(
        robertson_rhs,
        [1.0, 0.0, 0.0],
        (0.0, 40.0),
        params,
        jacobian=robertson_jacobian,
        invariants=(Invariant("y1 + y2 + y3", robertson_mass),),
        references=references("robertson", params == (0.04, 3e7, 1e4)),
        name="robertson",
        about="H. H. Robertson, The solution of a set of reaction rate equations, in J. Walsh (ed.), Numerical "
        "Analysis: An Introduction (1966) 178-182. On [0, 1e11] a solver that lets y2 "
        "turn negative runs away to -infinity.",
    )


def oregonator_rhs(t, u, params):
    y1, y2, y3 = u
    s, q, w = params
    return (s * (y2 + y1 * (1.0 - q * y1 - y2)), (y3 - (1.0 + y1) * y2) / s, w * (y1 - y3))


def oregonator_jacobian(t, u, params):
    y1, y2, _ = u
    s, q, w = params
    return np.array(
        [
            [s * (1.0 - 2.0 * q * y1 - y2), s * (1.0 - y1), 0.0],
            [-y2 / s, -(1.0 + y1) / s, 1.0 / s],
            [w, 0.0, -w],
        ]
    )


def oregonator(s: float = 77.27, q: float = 8.375e-6, w: float = 0.161) -> Problem:
    """The Belousov-Zhabotinskii reaction in three species: a limit cycle over six powers of ten.

    s    77.27 by default
    q    8.375e-6 by default
    w    0.161 by default

    Returns a `Problem` with three components.

    >>> import odelab as ol
    >>> ol.problems.oregonator().size
    3
    """
    params = (number("s", s), number("q", q), number("w", w))
    return Problem(
        oregonator_rhs,
        [1.0, 2.0, 3.0],
        (0.0, 360.0),
        params,
        jacobian=oregonator_jacobian,
        references=references("oregonator", params == (77.27, 8.375e-6, 0.161)),
        name="oregonator",
        about="R. J. Field and R. M. Noyes, Oscillations in chemical systems IV, J. Chem. Phys. 60 (1974) 1877-1884; "
        "OREGO of Hairer and Wanner, Solving ODEs II, section IV.10, and of the IVP test set.",
    )


def hires_rhs(t, u, params):
    y1, y2, y3, y4, y5, y6, y7, y8 = u
    (binding,) = params
    bound = binding * y6 * y8
    return (
        -1.71 * y1 + 0.43 * y2 + 8.32 * y3 + 0.0007,
        1.71 * y1 - 8.75 * y2,
        -10.03 * y3 + 0.43 * y4 + 0.035 * y5,
        8.32 * y2 + 1.71 * y3 - 1.12 * y4,
        -1.745 * y5 + 0.43 * y6 + 0.43 * y7,
        -bound + 0.69 * y4 + 1.71 * y5 - 0.43 * y6 + 0.69 * y7,
        bound - 1.81 * y7,
        -bound + 1.81 * y7,
    )


def hires_jacobian(t, u, params):
    y6, y8 = u[5], u[7]
    (binding,) = params
    by6, by8 = binding * y8, binding * y6  # d(bound)/dy6, d(bound)/dy8
    return np.array(
        [
            [-1.71, 0.43, 8.32, 0.0, 0.0, 0.0, 0.0, 0.0],
            [1.71, -8.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, -10.03, 0.43, 0.035, 0.0, 0.0, 0.0],
            [0.0, 8.32, 1.71, -1.12, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, -1.745, 0.43, 0.43, 0.0],
            [0.0, 0.0, 0.0, 0.69, 1.71, -by6 - 0.43, 0.69, -by8],
            [0.0, 0.0, 0.0, 0.0, 0.0, by6, -1.81, by8],
            [0.0, 0.0, 0.0, 0.0, 0.0, -by6, 1.81, -by8],
        ]
    )


def hires_enzyme(t, u, params):
    return u[6] + u[7]


def hires(binding: float = 280.0) -> Problem:
    """High irradiance responses of phytochrome, eight species.

    binding    the rate of y6 + y8 -> y7, called k+ in the literature; 280.0 by default

    Returns a `Problem` with eight components.

    >>> import odelab as ol
    >>> ol.problems.hires().size
    8
    """
    binding = number("binding", binding)
    return Problem(
        hires_rhs,
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057],
        (0.0, 321.8122),
        (binding,),
        jacobian=hires_jacobian,
        invariants=(Invariant("y7 + y8", hires_enzyme),),
        references=references("hires", binding == 280.0),
        name="hires",
        about="E. Schaefer, A new approach to explain the high irradiance responses of photomorphogenesis on the "
        "basis of phytochrome, J. Math. Biol. 2 (1975) 41-56; Hairer and Wanner, Solving ODEs II, section IV.10.",
    )


def e5_rhs(t, u, params):
    y1, y2, y3, y4 = u
    a, b, c, m = params
    decay = a * y1
    binding = b * y1 * y3
    d2 = decay - m * c * y2 * y3
    d4 = binding - c * y4
    return (-decay - binding, d2, d2 - d4, d4)  # y3' = y2' - y4' keeps y2 - y3 - y4 = 0 free of cancellation


def e5_jacobian(t, u, params):
    y1, y2, y3, _ = u
    a, b, c, m = params
    return np.array(
        [
            [-a - b * y3, 0.0, -b * y1, 0.0],
            [a, -m * c * y3, -m * c * y2, 0.0],
            [a - b * y3, -m * c * y3, -m * c * y2 - b * y1, c],
            [b * y3, 0.0, b * y1, -c],
        ]
    )


def e5_balance(t, u, params):
    _, y2, y3, y4 = u
    return y2 - y3 - y4


def e5(a: float = 7.89e-10, b: float = 1.1e7, c: float = 1.13e3, m: float = 1e6) -> Problem:
    """A chemical pyrolysis whose species fall to 1e-22 and below; ask for an absolute tolerance of 1e-24 or less.

    a    7.89e-10 by default
    b    1.1e7 by default
    c    1.13e3 by default
    m    1e6 by default

    Returns a `Problem` with four components.

    >>> import odelab as ol
    >>> ol.problems.e5().size
    4
    """
    params = (number("a", a), number("b", b), number("c", c), number("m", m))
    return Problem(
        e5_rhs,
        [1.76e-3, 0.0, 0.0, 0.0],
        (0.0, 1e13),
        params,
        jacobian=e5_jacobian,
        invariants=(Invariant("y2 - y3 - y4", e5_balance),),
        references=references("e5", params == (7.89e-10, 1.1e7, 1.13e3, 1e6)),
        name="e5",
        about="Problem E5 of W. H. Enright, T. E. Hull and B. Lindberg, Comparing numerical methods for stiff "
        "systems of ODEs, BIT 15 (1975) 10-48; Hairer and Wanner, Solving ODEs II, section IV.10, extend it to "
        "t = 1e13. The value published for that time, y2 = 0.88677e-22 and y3 = 0.88548e-22, breaks y2 = y3 + y4: "
        "wrong from the fourth and the third digit on. Right is y2 = y3 = 0.88612e-22; y1 and y4 are below "
        "the smallest float64. Rounding at y2's maximum, 1.4e-10, leaves y2 - y3 - y4 at 4e-26 to 4e-25 from then on: "
        "in float64 y2 and y3 are reached to about 5 digits at 1e11 and 3 at 1e13, however fine the tolerance.",
    )
