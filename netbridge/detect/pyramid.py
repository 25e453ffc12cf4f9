"""A pyramid of features: maps of every scale with equally many channels, coarse ones added to fine ones."""

import torch
from torch import nn
from torch.nn import functional as F


class FeaturePyramid(nn.Module):
    """Lin et al., Feature Pyramid Networks for Object Detection, CVPR 2017.

    channels   of the backbone's stages, fine to coarse
    features   channels of every level of the pyramid
    extra      further levels on top, each every other position of the one before
    """

    def __init__(self, channels: list[int], features: int, extra: int = 1):
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(width, features, 1) for width in channels)
        self.smooth = nn.ModuleList(nn.Conv2d(features, features, 3, padding=1) for _ in channels)
        self.extra = extra
        for layer in (*self.lateral, *self.smooth):
            nn.init.xavier_uniform_(layer.weight)  # as MMDetection draws them
            nn.init.zeros_(layer.bias)

    def forward(self, stages: list[torch.Tensor]) -> list[torch.Tensor]:
        """The levels, fine to coarse, from the outputs of the backbone's stages."""
        levels = [layer(maps) for layer, maps in zip(self.lateral, stages, strict=True)]
        for k in range(len(levels) - 2, -1, -1):
            levels[k] = levels[k] + F.interpolate(levels[k + 1], size=levels[k].shape[-2:], mode="nearest")
        levels = [layer(maps) for layer, maps in zip(self.smooth, levels, strict=True)]
        for _ in range(self.extra):
            levels.append(levels[-1][:, :, ::2, ::2])
        return levels
