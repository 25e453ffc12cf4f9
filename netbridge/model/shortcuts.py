"""Shortcuts of blocks that change the shape. He et al. 2016, Section 3.3: option A pads, option B projects."""

import torch
from torch import nn
from torch.nn import functional as F


class Padding(nn.Module):
    """Option A: every `stride`-th position, new channels of zeros on both sides. No parameters."""

    def __init__(self, channels_in: int, channels_out: int, stride: int):
        super().__init__()
        if channels_out < channels_in:
            raise ValueError(f'`shortcut` = "A" cannot go from {channels_in} to {channels_out} channels; use "B".')
        self.stride = stride
        self.before = (channels_out - channels_in) // 2
        self.after = channels_out - channels_in - self.before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))

    def extra_repr(self):
        return f"stride {self.stride}, channels {self.before} + x + {self.after}"


class Projection(nn.Module):
    """Option B: a 1x1 convolution, normalised in post-activation networks, alone in pre-activation ones."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, normalised: bool = True):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel_size=1, stride=stride, bias=False)
        self.bn = nn.BatchNorm2d(channels_out) if normalised else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x))
