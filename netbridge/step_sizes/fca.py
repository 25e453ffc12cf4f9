"""FCA. Qin, Zhang, Wu and Li, FcaNet: Frequency Channel Attention Networks, ICCV 2021, Eq. 5 and 9 ("top 16").

SE with GAP replaced by one component of a 2-D cosine transform per channel: the channels fall into 16 groups, each with
its frequency pair (u, v) of a 7 x 7 grid, scaled to the map. Maps smaller than 7 are pooled up to it. Both linear maps
have a bias here, which is what the parameter count 1.91 M of the papers asks for.
"""

import functools
import math

import torch
from torch.nn import functional as F

from netbridge.step_sizes.se import SE

GRID = 7
ROWS = (0, 0, 6, 0, 0, 1, 1, 4, 5, 1, 3, 0, 0, 0, 3, 2)
COLUMNS = (0, 1, 0, 5, 2, 0, 2, 0, 0, 6, 0, 4, 6, 3, 5, 2)


def cosine(frequency: int, size: int) -> torch.Tensor:
    """cos(pi u (i + 1/2)/N)/sqrt(N), times sqrt(2) for u > 0."""
    wave = torch.cos(math.pi * frequency * (torch.arange(size, dtype=torch.float64, device="cpu") + 0.5) / size)
    return wave / math.sqrt(size) * (math.sqrt(2.0) if frequency else 1.0)


@functools.lru_cache(maxsize=64)
def basis(channels: int, height: int, width: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    with torch.inference_mode(False):  # the cache outlives the mode it was filled in
        return build_basis(channels, height, width).to(dtype=dtype, device=device)


def build_basis(channels: int, height: int, width: int) -> torch.Tensor:
    waves = [
        torch.outer(cosine(u * (height // GRID), height), cosine(v * (width // GRID), width))
        for u, v in zip(ROWS, COLUMNS, strict=True)
    ]
    return torch.stack(waves).repeat_interleave(channels // len(ROWS), dim=0)


class FCA(SE, name="fca"):
    def __init__(self, channels: int, reduction: int = 16):
        if channels % len(ROWS):
            raise ValueError(f"`channels` must be a multiple of {len(ROWS)} for fca, got {channels}.")
        super().__init__(channels, reduction)

    def squeeze(self, state, slope):
        height, width = (max(size, GRID) for size in slope.shape[2:])
        pooled = slope if (height, width) == slope.shape[2:] else F.adaptive_avg_pool2d(slope, (height, width))
        components = basis(slope.shape[1], height, width, slope.dtype, slope.device)
        return torch.einsum("nchw,chw->nc", pooled, components)
