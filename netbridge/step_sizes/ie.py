"""IE. Liang, Huang, Liang and Yang, Instance Enhancement Batch Normalization, AAAI 2020, as a controller of its own in
"ASR: Attention-alike Structural Re-parameterization": h = sigmoid(w GAP f + b) per channel, w = 0 and b = -1 at first.
"""

import torch
from torch import nn

from netbridge.step_sizes.base import ChannelController


class IE(ChannelController, name="ie"):
    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels))
        self.bias = nn.Parameter(torch.full((channels,), -1.0))

    def head(self, statistic):
        return self.weight * statistic + self.bias
