"""ECA. Wang, Wu, Zhu, Li, Zuo and Hu, ECA-Net: Efficient Channel Attention, CVPR 2020, Eq. 9 and 12.

h = sigmoid of a one-dimensional convolution along the channels of GAP f, without bias; its kernel is
(log2 C + 1)/2, made odd: 3 for 16 to 64 channels, 5 for 128 and 256.
"""

import math

import torch
from torch import nn

from netbridge.step_sizes.base import ChannelController


def kernel_size(channels: int) -> int:
    size = int((math.log2(channels) + 1) / 2)
    return size if size % 2 else size + 1


class ECA(ChannelController, name="eca"):
    def __init__(self, channels: int):
        super().__init__()
        size = kernel_size(channels)
        self.along = nn.Conv1d(1, 1, kernel_size=size, padding=size // 2, bias=False)

    def head(self, statistic: torch.Tensor) -> torch.Tensor:
        return self.along(statistic.unsqueeze(1)).squeeze(1)
