"""SE. Hu, Shen and Sun, Squeeze-and-Excitation Networks, CVPR 2018, Eq. 3: h = sigmoid(W2 relu(W1 GAP f)).

The display in "Understanding Self-attention Mechanism via Dynamical System Perspective" lacks the sigmoid.
"""

import torch
from torch import nn

from netbridge.step_sizes.base import ChannelController


def bottleneck_head(channels: int, reduction: int) -> nn.Sequential:
    """C -> C/r -> relu -> C, both with bias: what SE, CBAM, FCA and SEM share."""
    if not (isinstance(reduction, int) and reduction >= 1):
        raise ValueError(f"`reduction` must be a positive integer, got {reduction!r}.")
    hidden = max(channels // reduction, 1)
    return nn.Sequential(nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, channels))


class SE(ChannelController, name="se"):
    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        self.excite = bottleneck_head(channels, reduction)

    def head(self, statistic: torch.Tensor) -> torch.Tensor:
        return self.excite(statistic)
