"""Right-hand sides of two components whose derivatives are known otherwise, and their derivatives by the graph."""

import math

import numpy as np

from odelab import maths
from odelab.graph.derivatives import derivatives
from odelab.graph.evaluation import evaluate
from odelab.right_hand_side import COMPONENT
from tests.odelab.graph.tracing_of import trace

TABLE = np.array([1.0, 3.0, 2.0, 5.0, 0.5])
PLACES = np.linspace(0.0, 1.0, 5)


def cubed(x):
    return x**3


def branches(t, u, params):
    x, y = u
    (edge,) = params
    if x > edge:
        slope = x * y
    elif y < 0.5:
        slope = 0.25
    else:
        slope = -y
    return slope, x - y * t + abs(y - 0.6)


def powers(t, u, params):
    x, y = u
    (p,) = params
    return x**2 + x**-3 + cubed(y) + y**p, p**x + x**y + pow(y, 4) + x**0 + math.pow(y, 1.5)


def elementary(t, u, params):
    x, y = u
    (p,) = params
    return [
        maths.exp(-x) * math.sin(y) + np.cos(x * y) + maths.sqrt(x) + math.log(y) - np.tanh(p * x) + math.atan(t * y),
        np.arctan2(x, y) + math.hypot(x, y) + maths.sinh(x) / maths.cosh(y) + np.log1p(x) + math.erf(y) + np.expm1(y),
    ]


def chosen(t, u, params):
    x, y = u
    (p,) = params
    one = maths.maximum(x, y) * abs(x - 1.0) + maths.where(x > y, x * x, y) + min(x, p)
    return one, max(x, y, 0.1) - maths.minimum(x, 2.0) + np.abs(y - 2.0) + maths.sign(x) * y + np.maximum(p, y)


def tables(t, u, params):
    x, y = u
    (p,) = params
    return TABLE[int(4.0 * x)] * y, np.interp(x, PLACES, TABLE) + p * y % 0.3 + math.floor(y) * x


def loops(t, u, params):
    x, y = u
    (p,) = params
    total, left = 0.0, 3
    while left > 0:
        total = total + x**left
        left -= 1
    level = 1.0
    for i in range(2):
        level *= u[i]
        level += p
    return total * y, level / 2 + sum(u)


def in_pieces(t, u, params):
    """Functions with jumps, none of which lies near what the test asks for."""
    x, y = u
    (p,) = params
    whole, rest = divmod(x + 0.05, 1.0)
    one = np.fmod(5.0 * x + 10.0, 50.0) * y + np.clip(x, 0.0, 0.15) + np.clip(2.0 * y, x, 3.0) + whole * y
    return one, np.heaviside(x + y - p, 0.5) * x * y + round(0.01 * y + 0.123, 1) * x + rest * p + np.fmod(y, 7.0 * x)


FUNCTIONS = (branches, powers, elementary, chosen, tables, loops, in_pieces)


def rows_of(rhs, n, parameters):
    """(the traced function, its derivatives with respect to the state and then time)"""
    found = trace(rhs, COMPONENT, n, parameters)
    inputs = [found.graph.input(name) for name in (*(f"u{i}" for i in range(n)), "t")]
    return found, derivatives(found.graph, found.slopes, inputs)


def derivatives_of(rhs, n, parameters):
    """(t, u, params) -> (J, f_t), by the graph."""
    found, rows = rows_of(rhs, n, parameters)
    places = [(i, j) for i, row in enumerate(rows) for j in row]

    def values(t, u, params):
        named = {"t": t} | {f"u{i}": x for i, x in enumerate(u)} | {f"p{i}": x for i, x in enumerate(params)}
        result = np.zeros((n, n + 1))
        for (i, j), value in zip(places, evaluate(found.graph, [rows[i][j] for i, j in places], named), strict=True):
            result[i, j] = value
        return result[:, :n], result[:, n]

    return values
