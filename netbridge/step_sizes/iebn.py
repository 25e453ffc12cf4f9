"""IEBN. Liang, Huang, Liang and Yang, Instance Enhancement Batch Normalization, AAAI 2020, Eq. 4 to 6.

It changes the branch and not the step size: h stays 1, and the scale of every batch normalisation of the branch and of
its projection is multiplied by sigmoid(w GAP(input) + b) per sample and channel, where GAP is the average over the map;
w starts at 0 and b at -1.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.step_sizes.constant import Constant


class InstanceEnhancedNorm(nn.BatchNorm2d):
    """gamma * sigmoid(w GAP(x) + b) * (x - mean)/deviation + beta, taking over the tensors of a `BatchNorm2d`."""

    def __init__(self, norm: nn.BatchNorm2d):
        super().__init__(norm.num_features, norm.eps, norm.momentum, device="meta")
        take_over(self, norm)
        self.instance_weight = nn.Parameter(torch.zeros_like(norm.weight))
        self.instance_bias = nn.Parameter(torch.full_like(norm.weight, -1.0))

    def plain(self) -> nn.BatchNorm2d:
        norm = nn.BatchNorm2d(self.num_features, self.eps, self.momentum, device="meta")
        return take_over(norm, self)

    def forward(self, x):
        if self.training:
            self.num_batches_tracked.add_(1)  # type: ignore[union-attr]  # there, since statistics are tracked
        momentum: Any = self.momentum
        normalised = F.batch_norm(x, self.running_mean, self.running_var, None, None, self.training, momentum, self.eps)
        gate = torch.sigmoid(self.instance_weight * x.mean((2, 3)) + self.instance_bias)
        return normalised * (self.weight * gate)[:, :, None, None] + self.bias[:, None, None]


def take_over(norm, other):
    """The parameters, statistics and mode of another normalisation, themselves and not copies."""
    norm.weight, norm.bias = other.weight, other.bias
    for buffer in ("running_mean", "running_var", "num_batches_tracked"):
        setattr(norm, buffer, getattr(other, buffer))
    return norm.train(other.training)


class IEBN(Constant, name="iebn"):
    modifies_branch = True

    def __init__(self, channels: int):
        super().__init__(channels)

    def attach(self, block):
        if not replace_norms(block, nn.BatchNorm2d, InstanceEnhancedNorm):
            raise ValueError("controller 'iebn' gates batch normalisations, and this network's blocks have none.")

    def detach(self, block):
        replace_norms(block, InstanceEnhancedNorm, InstanceEnhancedNorm.plain)

    def settle(self, memory):
        return None, self, memory


def replace_norms(block, kind, make) -> int:
    """Replaces the normalisations of branch and projection, but not those in controllers; returns how many."""
    count = 0
    for part in (block.branch, block.shortcut):
        for parent in list(part.modules()):
            for name, child in list(parent.named_children()):
                if type(child) is kind:
                    setattr(parent, name, make(child))
                    count += 1
    return count
