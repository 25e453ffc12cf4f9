"""A step size of one that costs nothing.

The solver forms u + h * slope. A constant controller of 1 must not pay for a multiplication by one over a whole feature
map, nor, where nobody looks at the slope afterwards, for a second map to hold the sum.
"""

import torch

from netbridge.model.fused import Pending


class Unit:
    """h = 1: multiplies a slope by leaving it alone."""

    def __mul__(self, slope):
        return slope

    def __rmul__(self, slope):
        return slope

    def __repr__(self):
        return "1"


class Spending(Unit):
    """h = 1 where the slope is not needed again: the sum is formed in the slope's memory, with the same bits."""

    def __mul__(self, slope):
        return slope if isinstance(slope, Pending) else Spent(slope)


class Spent:
    """A slope about to become the new state."""

    def __init__(self, slope):
        self.slope = slope

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """torch hands u + Spent over here; __radd__ would be reached only by way of an exception, which costs more."""
        if function is not torch.Tensor.__add__ and function is not torch.Tensor.add:
            raise TypeError(f"a spent slope can only be added to a state, not given to {function.__name__}.")
        u, spent = args
        slope = spent.slope
        if slope.dtype == u.dtype and slope.shape == u.shape:
            return slope.add_(u)
        return u + slope


UNIT = Unit()
SPENDING = Spending()
