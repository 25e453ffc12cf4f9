"""The continuous extension of a method: u(theta) = u + h sum_i B_i(theta) k_i, derived from its tableau.

B is the cubic Hermite interpolant through both ends of the step plus theta^2 (1 - theta)^2 d_i where the method has
dense weights d. It is continuously differentiable over a run and meets every step.
"""

import functools
from fractions import Fraction

import numpy as np

from odelab.tableau import Method

HERMITE_VALUE = (0, 0, 3, -2, 0)  # of the new state, powers of theta from 0 to 4
HERMITE_START = (0, 1, -2, 1, 0)  # of the slope at the old state
HERMITE_END = (0, 0, -1, 1, 0)  # of the slope at the new state
BUMP = (0, 0, 1, -2, 1)  # theta^2 (1 - theta)^2


@functools.cache
def exact_weights(method: Method) -> tuple[tuple[Fraction, ...], ...]:
    """B_i as coefficients of theta^0 ... theta^4, one row per stage, the slope at the new state last."""
    b = method.b if method.fsal else (*method.b, Fraction(0))
    dense = method.dense or (Fraction(0),) * len(b)
    rows = []
    for i, (weight, bump) in enumerate(zip(b, dense, strict=True)):
        row = [weight * value + bump * extra for value, extra in zip(HERMITE_VALUE, BUMP, strict=True)]
        if i == 0:
            row = [x + y for x, y in zip(row, HERMITE_START, strict=True)]
        if i == len(b) - 1:
            row = [x + y for x, y in zip(row, HERMITE_END, strict=True)]
        rows.append(tuple(map(Fraction, row)))
    return tuple(rows)


@functools.cache
def weights(method: Method) -> np.ndarray:
    """The same as floats without the constant, (stages or stages + 1, 4)."""
    return np.array([[float(x) for x in row[1:]] for row in exact_weights(method)])


def order(method: Method) -> int:
    """The order of the extension: 4 with dense weights, else that of the cubic Hermite interpolant."""
    return 4 if method.dense else min(3, method.order + 1)
