"""One step of a method that needs the Jacobian, from many states at once and by differences, to find why runs fail."""

from collections.abc import Callable

import numpy as np

from odelab.linear.by_differences import RELATIVE, SMALLEST_SIZE


def step_of_columns(method, rhs: Callable, params, t, u, h, mass=None):
    """The state after a step of size h from a state (n,), or from each column of states (n, m).

    mass    the `MassMatrix` of a system M u' = f, whose state is one, (n,); None where M = I
    """
    slope = rhs(t, u, params)
    size = RELATIVE * np.maximum(np.abs(u), SMALLEST_SIZE)
    columns = []
    for j in range(len(u)):
        moved = u.copy()
        moved[j] += size[j]
        columns.append((rhs(t, moved, params) - slope) / size[j])
    J = np.stack(columns, axis=1)  # (n, n) or (n, n, m)
    ahead = RELATIVE * (np.abs(t) + np.abs(h))
    slope_t = (rhs(t + ahead, u, params) - slope) / ahead
    step = method.step_of(factor, backsub, None)
    if mass is not None:
        step = method.step_of(lambda J, hg: mass.dense - hg * J, backsub, None, mass.times)
    return step(rhs, params, t, u, (slope, J, slope_t), h, h)[0]


def factor(J, hg):
    unit = np.eye(len(J))
    return unit - hg * J if J.ndim == 2 else np.moveaxis(unit[..., None] - hg * J, -1, 0)


def backsub(matrix, right):
    try:
        if matrix.ndim == 2:
            return np.linalg.solve(matrix, right)
        return np.linalg.solve(matrix, right.T[..., None])[..., 0].T
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)
