"""CBAM. Woo, Park, Lee and Kweon, CBAM: Convolutional Block Attention Module, ECCV 2018, Eq. 2 and 3.

A channel gate, sigmoid(MLP(GAP f) + MLP(GMP f)) with one MLP, times a spatial gate seen after it: sigmoid(BN(conv7x7 of
[max, mean] over channels)). The normalisation's weight starts at 0, so the spatial gate starts at a constant 1/2.
"""

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.step_sizes.base import ChannelController
from netbridge.step_sizes.se import bottleneck_head


class CBAM(ChannelController, name="cbam"):
    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        self.excite = bottleneck_head(channels, reduction)
        self.spatial = nn.Conv2d(2, 1, kernel_size=7, padding=3, bias=False)
        self.spatial_norm = nn.BatchNorm2d(1)
        nn.init.zeros_(self.spatial_norm.weight)

    def squeeze(self, state, slope):
        return torch.stack((slope.mean((2, 3)), F.adaptive_max_pool2d(slope, 1).flatten(1)), dim=1)

    def of_constant(self, psi):
        """Mean and maximum of a constant are that constant; only the channel half of CBAM has a head."""
        return torch.stack((psi, psi), dim=1)

    def only_head(self):
        del self.spatial, self.spatial_norm
        return self

    def head(self, statistic):
        return self.excite(statistic).sum(dim=1)

    def forward(self, state, slope):
        channel = super().forward(state, slope)
        gated = channel * slope
        seen = torch.cat((gated.max(1, keepdim=True).values, gated.mean(1, keepdim=True)), dim=1)
        return channel * torch.sigmoid(self.spatial_norm(self.spatial(seen)))
