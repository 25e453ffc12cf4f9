"""Derivatives of a right-hand side by differences of its values: the last resort, where dual numbers cannot follow it.

Increments are relative to the size of each component, and never below what its absolute tolerance tells apart: one that
is larger, such as the customary increment relative to one, multiplies the attempts of a Rosenbrock method on problems
with tiny components.
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

    What a call returns is divided by nothing: the step along each direction is `size` times it, component by component.
    """

    def __init__(self, rhs: Callable, params, atol, span):
        self.rhs, self.params, self.span = rhs, params, span
        self.floor = SMALLEST_SIZE if atol is None else np.asarray(atol, dtype=float)
        self.evaluations = 0

    def size(self, u):
        """The increment of each component, rounded so that u + size - u is exact."""
        size = RELATIVE * np.maximum(np.abs(u), self.floor)
        size = np.where(size > 0.0, size, RELATIVE * (np.abs(u).max() or 1.0))
        return (u + size) - u

    def __call__(self, t, u, along, slope) -> np.ndarray:
        size = self.size(u)
        self.evaluations += len(along)
        return np.array([self.rhs(t, u + size * direction, self.params) - slope for direction in along])

    def in_time(self, t, u, slope):
        step = (t + RELATIVE * max(abs(t), 1e-3 * self.span)) - t
        self.evaluations += 1
        return (self.rhs(t + step, u, self.params) - slope) / step
