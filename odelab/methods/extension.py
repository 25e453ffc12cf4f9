"""The continuous extension of a method: u(theta) = u + h sum_i B_i(theta) k_i, derived from its tableau.

B is the cubic Hermite interpolant through both ends of the step, plus theta^2 (1 - theta)^2 P_i(theta), where the rows
d0 ... d3 of the method's dense weights give P = d0 + theta (d1 + (1 - theta) (d2 + theta d3)), the form of
Hairer's codes (Hairer, Nørsett and Wanner, Solving ODEs I, II.6 and II.10). It is continuously differentiable over a
run and meets every step.
"""

import functools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from odelab.methods import order_conditions as trees

if TYPE_CHECKING:
    from odelab.methods.tableau import Method

HERMITE_VALUE = (0, 0, 3, -2)  # of the new state, powers of theta from 0
HERMITE_START = (0, 1, -2, 1)  # of the slope at the old state
HERMITE_END = (0, 0, -1, 1)  # of the slope at the new state
HERMITE = np.array([HERMITE_VALUE, HERMITE_START, HERMITE_END], dtype=float)
BUMP = (0, 0, 1, -2, 1)  # theta^2 (1 - theta)^2


@functools.cache
def exact_weights(method: "Method") -> tuple[tuple[Fraction, ...], ...]:
    """B_i as coefficients of theta^0, theta^1, ...: one row per stage, the slope at the new state, each extra stage."""
    b = method.b if method.fsal else (*method.b, Fraction(0))
    rows = []
    for i in range(len(b) + len(method.extra)):
        parts: list[tuple] = [multiple(b[i], HERMITE_VALUE)] if i < len(b) else []
        if i == 0:
            parts.append(HERMITE_START)
        if i == len(b) - 1:
            parts.append(HERMITE_END)
        dense = method.dense or ()
        parts += [multiple(weights[i], bump) for weights, bump in zip(dense, bumps(len(dense)), strict=True)]
        rows.append(total(parts, 1 + degree(method)))
    return tuple(rows)


LOOKED_AT = (0.25, 0.5, 0.75)  # of a step; in the middle alone the error may be near a zero of its polynomial


def degree(method: "Method") -> int:
    """The degree of the extension in theta: that of the cubic, and one more with each row of weights."""
    return 3 + len(method.dense or ())


def bumps(count: int) -> list[tuple]:
    """theta^2 (1 - theta)^2 times 1, theta, theta (1 - theta), theta^2 (1 - theta), ... as coefficients."""
    found: list[tuple] = [BUMP]
    while len(found) < count:
        last = found[-1]
        raised = (0, *last)
        found.append(raised if len(found) % 2 else tuple(x - y for x, y in zip((*last, 0), raised, strict=True)))
    return found[:count]


def multiple(factor, polynomial):
    return tuple(x and factor * x for x in polynomial)


def total(polynomials, length) -> tuple[Fraction, ...]:
    return tuple(sum((p[k] for p in polynomials if k < len(p) and p[k]), Fraction(0)) for k in range(length))


@functools.cache
def weights(method: "Method") -> np.ndarray:
    """The same as floats without the constant, (stages, the new slope, extra stages; degree)."""
    return np.array([[float(x) for x in row[1:]] for row in exact_weights(method)])


def powers(theta, count) -> np.ndarray:
    """theta, theta^2, ... theta^count along a new first axis."""
    return np.stack([theta**p for p in range(1, count + 1)])


def order(method: "Method") -> int:
    """The order of the extension: at most 3 with the cubic Hermite interpolant, one more with each row of weights."""
    return degree(method) if method.dense else min(3, method.order)


def defects(method: "Method"):
    """The conditions of the extension of a method and by how much it misses each of them."""
    rows = [*method.a, *([] if method.fsal else [method.b]), *method.extra]
    phi = trees.ElementaryWeights([[*map(float, row), *[0.0] * (len(rows) - len(row))] for row in rows])
    columns = np.array(exact_weights(method), dtype=float).T
    return trees.defects_inside(phi, columns, range(len(columns)), order(method))


def finish_stages(combine, rhs, params, method: "Method", t, u, h, u_new, slopes) -> list:
    """The slopes of a step with those its extension needs beside them: at the new state and at the extra stages."""
    slopes = list(slopes)
    if not method.fsal:
        slopes.append(rhs(t + h, u_new, params))
    for row, time in method.extra_floats:
        slopes.append(rhs(t + time * h, u + h * combine(row, slopes, len(slopes)), params))
    return slopes


def squared_error_inside(rhs, params, t, u, h, parts, theta, gamma, solve, rtol, atol, weigh=None):
    """The error of the dense output at a fraction of a step, over the tolerance: the sum of squares of its components.

    With v the state there and v' its slope along the dense output, the defect is f(t, v) - v'. It is multiplied by h
    gamma and by the inverse of I - h gamma J. What is left of a stiff component is its distance from where it would
    rest; of any other component, about what the defect adds up to. Like the functions of `odelab.core` it runs on
    arrays and on nodes.

    parts    the coefficients of theta, theta^2, ... of the dense output
    solve    solve(right): the solution of a system with I - h gamma J
    weigh    weigh(x): M x of a system M u' = f, where M stands for I; None where there is no mass matrix
    """
    change, slope = parts[-1], len(parts) * parts[-1]
    for power in range(len(parts) - 1, 0, -1):
        change, slope = parts[power - 1] + theta * change, power * parts[power - 1] + theta * slope
    inside = u + theta * change
    slope = slope if weigh is None else weigh(slope)
    scaled = solve(gamma * (h * rhs(t + theta * h, inside, params) - slope)) / (atol + rtol * abs(inside))
    return (scaled * scaled).sum()
