"""Derivatives of a right-hand side by differences of its values, for code that dual numbers cannot follow.

The increment of a component is relative to its size, or to its absolute tolerance if that is larger. A larger
increment, such as the customary one relative to 1, makes a Rosenbrock method need many times as many attempts on
problems with tiny components.
"""

from collections.abc import Callable

import numpy as np

RELATIVE = float(np.sqrt(np.finfo(float).eps))
SMALLEST_SIZE = 1e-9  # of a component where no absolute tolerance is known: the default one of `odelab.adaptive`


class ByDifferences:
    """Directional derivatives by forward differences; see `by_duals.ByDuals`.

    rhs     the right-hand side in array form
    atol    the absolute tolerance, a number or one per component; None where there is none
    span    the length of the time span, by which a step in time is measured where t = 0
    seen    seen(t), the time that the right-hand side is shown at time t

    A call returns differences that are not divided by the increment: along each direction the state is moved by `size`
    times the direction, component by component.
    """

    def __init__(self, rhs: Callable, params, atol, span, seen: Callable = float):
        self.rhs, self.params, self.span, self.seen = rhs, params, span, seen
        self.floor = SMALLEST_SIZE if atol is None else np.asarray(atol, dtype=float)
        self.evaluations = 0

    def size(self, u):
        """The increment of each component, rounded so that u + size - u is exact."""
        size = RELATIVE * np.maximum(np.abs(u), self.floor)
        size = np.where(size > 0.0, size, RELATIVE * (np.abs(u).max() or 1.0))
        return (u + size) - u

    def slope(self, t, u):
        self.evaluations += 1
        return self.rhs(t, u, self.params)

    def __call__(self, t, u, along, slope) -> np.ndarray:
        size = self.size(u)
        self.evaluations += len(along)
        return np.array([self.rhs(t, u + size * direction, self.params) - slope for direction in along])

    def in_time(self, t, u, slope):
        step = (t + RELATIVE * max(abs(t), 1e-3 * self.span)) - t
        if self.seen(t + step) != t + step:  # it lies beyond a stop
            step = -step
        self.evaluations += 1
        return (self.rhs(t + step, u, self.params) - slope) / step
