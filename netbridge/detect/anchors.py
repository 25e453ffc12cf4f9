"""Anchors: the boxes of fixed shapes, one set at every position of every level, from which proposals start."""

import math
from collections.abc import Sequence

import torch


def anchor_grid(height: int, width: int, stride: int, scale: float, ratios: Sequence[float], device=None):
    """The anchors of one level, (height * width * ratios, 4), position by position from the top left.

    height, width  of the level's maps
    stride         pixels of the picture between two positions
    scale          side of a square anchor in strides
    ratios         height over width of each anchor; the area is the same for all
    """
    y, x = torch.meshgrid(
        (torch.arange(height, device=device) + 0.5) * stride,
        (torch.arange(width, device=device) + 0.5) * stride,
        indexing="ij",
    )
    sides = [(scale * stride / math.sqrt(ratio), scale * stride * math.sqrt(ratio)) for ratio in ratios]
    shapes = [torch.stack((x - w / 2, y - h / 2, x + w / 2, y + h / 2), -1) for w, h in sides]
    return torch.stack(shapes, 2).reshape(-1, 4)
