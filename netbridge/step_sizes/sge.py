"""SGE. Li, Hu and Yang, Spatial Group-wise Enhance, 2019, Eq. 2 to 5: a spatial gate for each of 64 groups of channels.

Per group the similarity of f with its own global average at every position, normalised over the positions, times a
weight plus a bias (0 and 1 at first), sigmoid. With fewer than 64 channels every channel is a group.
"""

import torch
from torch import nn

from netbridge.step_sizes.base import Controller


class SGE(Controller, name="sge"):
    def __init__(self, channels: int, groups: int = 64):
        super().__init__()
        self.groups = min(groups, channels)
        if channels % self.groups:
            raise ValueError(f"`groups` = {groups} must divide the {channels} channels of the block.")
        self.weight = nn.Parameter(torch.zeros(self.groups, 1, 1))
        self.bias = nn.Parameter(torch.ones(self.groups, 1, 1))

    def forward(self, state, slope):
        grouped = slope.unflatten(1, (self.groups, -1))
        similarity = (grouped * grouped.mean((3, 4), keepdim=True)).sum(dim=2)
        correction = min(1, slope.shape[2] * slope.shape[3] - 1)  # a single position deviates by nothing
        deviation, mean = torch.std_mean(similarity, dim=(2, 3), keepdim=True, correction=correction)
        normalised = (similarity - mean) / (deviation + 1e-5)
        gate = torch.sigmoid(normalised * self.weight + self.bias)
        return gate.repeat_interleave(slope.shape[1] // self.groups, dim=1)
