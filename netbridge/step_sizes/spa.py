"""SPA. Guo, Ma, Sansom and others, SPANet: Spatial Pyramid Attention Network, ICME 2020.

f averaged on 1 x 1, 2 x 2 and 4 x 4 grids, concatenated to 21 C numbers -> C/16 -> relu -> C, no bias, sigmoid.
"""

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.step_sizes.base import ChannelController

GRIDS = (1, 2, 4)


class SPA(ChannelController, name="spa"):
    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        hidden = max(channels // reduction, 1)
        pyramid = channels * sum(size * size for size in GRIDS)
        self.excite = nn.Sequential(
            nn.Linear(pyramid, hidden, bias=False), nn.ReLU(), nn.Linear(hidden, channels, bias=False)
        )

    def squeeze(self, state, slope):
        return torch.cat([F.adaptive_avg_pool2d(slope, size).flatten(1) for size in GRIDS], dim=1)

    def of_constant(self, psi):
        """A constant map has the same average in every cell."""
        return torch.cat([psi.repeat_interleave(size * size, dim=1) for size in GRIDS], dim=1)

    def head(self, statistic):
        return self.excite(statistic)
