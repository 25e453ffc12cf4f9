"""A bare vector as step size: h = sigmoid(b), b learnt directly. The control that ASR's paper does not have.

A head that is fed a constant vector can only ever return a constant vector; this is that vector without the head, the
second reading of Table 9 in "ASR: Attention-alike Structural Re-parameterization".
"""

import torch
from torch import nn

from netbridge.step_sizes.base import Controller


class Bias(Controller, name="bias"):
    scales = ("logits",)

    def __init__(self, channels: int, init: float = 0.0):
        super().__init__()
        self.logits = nn.Parameter(torch.full((channels,), float(init)))

    def forward(self, state, slope):
        return torch.sigmoid(self.logits).view(1, -1, 1, 1)

    def settle(self, memory):
        return torch.sigmoid(self.logits), None, memory
