"""A constant step size; h = 1 is He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, CVPR 2016.

The step size 1 multiplies a slope by returning it, so a plain residual network costs nothing more.
"""

import math

import torch

from netbridge.step_sizes.base import UNIT, Controller


class Constant(Controller, name="constant"):
    def __init__(self, channels: int, value: float = 1.0):
        super().__init__()
        if not (isinstance(value, int | float) and math.isfinite(value)):
            raise ValueError(f"`value` must be a finite number, got {value!r}.")
        self.value = float(value)

    def forward(self, state, slope):
        return UNIT if self.value == 1.0 else self.value

    def settle(self, memory):
        return torch.tensor(self.value, dtype=torch.float64), None, memory

    def extra_repr(self):
        return f"{self.value:g}"
