"""SRM. Lee, Kim and Nam, SRM: A Style-based Recalibration Module, ICCV 2019, Eq. 2 to 4.

Per channel the style (mean, standard deviation) of f, combined by a weight [C, 2], batch-normalised, then sigmoid. The
weight starts at 0; the deviation is that of the unbiased variance + 1e-5.
"""

import torch
from torch import nn

from netbridge.step_sizes.base import ChannelController

VARIANCE_FLOOR = 1e-5


class SRM(ChannelController, name="srm"):
    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels, 2))
        self.norm = nn.BatchNorm1d(channels)

    def squeeze(self, state, slope):
        correction = min(1, slope.shape[2] * slope.shape[3] - 1)  # a single position deviates by nothing
        variance, mean = torch.var_mean(slope, dim=(2, 3), correction=correction)
        return torch.stack((mean, (variance + VARIANCE_FLOOR).sqrt()), dim=2)

    def of_constant(self, psi):
        """A constant map deviates by nothing."""
        return torch.stack((psi, torch.full_like(psi, VARIANCE_FLOOR**0.5)), dim=2)

    def head(self, statistic):
        return self.norm((statistic * self.weight).sum(dim=2))
