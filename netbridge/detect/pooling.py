"""Features of a box: RoIAlign (He et al., Mask R-CNN, ICCV 2017), and the level of the pyramid they are taken from."""

import torch
from torch.nn import functional as F

CANONICAL, LEVEL = 224.0, 2  # Lin et al., CVPR 2017, Eq. 1: a box of this side belongs to the level of stride 16


def roi_align(features: torch.Tensor, boxes: torch.Tensor, stride: float, cells: int = 7, samples: int = 2):
    """The features within boxes as maps of one size: each cell is the mean of bilinear samples at even places in it.

    features  maps of one picture, (C, H, W); their position (0, 0) is the middle of the picture's first `stride` pixels
    boxes     (N, 4): left, top, right, bottom in pixels of the picture
    stride    pixels of the picture between two positions of the maps
    cells     of a box in each direction, default 7
    samples   of a cell in each direction, default 2

    Returns (N, C, cells, cells). A sample beyond the middle of an outermost position takes that position's value; a map
    that is linear in x and y is therefore reproduced exactly within.

    >>> import torch
    >>> from netbridge import detect
    >>> across = torch.arange(8.0).expand(1, 8, 8)  # the feature is the number of the column
    >>> detect.roi_align(across, torch.tensor([[4.0, 4.0, 12.0, 12.0]]), stride=2, cells=2)[0, 0]
    tensor([[2.5000, 4.5000],
            [2.5000, 4.5000]])
    """
    if cells < 1 or samples < 1:
        raise ValueError(f"`cells` and `samples` must be at least 1, got {cells} and {samples}.")
    _channels, height, width = features.shape
    count = cells * samples
    places = (torch.arange(count, device=boxes.device, dtype=features.dtype) + 0.5) / count
    at = boxes.to(features.dtype) / stride - 0.5
    x = at[:, 0:1] + (at[:, 2:3] - at[:, 0:1]) * places
    y = at[:, 1:2] + (at[:, 3:4] - at[:, 1:2]) * places
    # grid_sample counts from -1 at the first position to 1 at the last
    x, y = 2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1
    grid = torch.stack((x[:, None, :].expand(-1, count, -1), y[:, :, None].expand(-1, -1, count)), -1)
    taken = F.grid_sample(
        features[None], grid.reshape(1, -1, count, 2), align_corners=True, padding_mode="border"
    )  # (1, C, N * count, count): the boxes one below the other, so that no cell lies in two of them
    return F.avg_pool2d(taken[0], samples).unflatten(1, (-1, cells)).transpose(0, 1)


def level_of(boxes: torch.Tensor, levels: int, canonical: float = CANONICAL) -> torch.Tensor:
    """The level from which each box takes its features, int64 (N,): large boxes from coarse ones."""
    sides = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])).clamp(min=0).sqrt()
    return torch.floor(LEVEL + torch.log2(sides / canonical + 1e-6)).clamp(0, levels - 1).long()


def pool_boxes(
    pyramid: list[torch.Tensor], strides: list[int], boxes: list[torch.Tensor], canonical: float, cells: int
):
    """Features of the boxes of every picture, one after the other: (boxes in all, C, cells, cells).

    pyramid  a level after the other, each (N, C, H, W) of N pictures
    boxes    of each picture, (n, 4)
    """
    together = torch.cat(boxes)
    level = level_of(together, len(pyramid), canonical)
    pieces, places = [pyramid[0].new_zeros(0, pyramid[0].shape[1], cells, cells)], [level[:0]]
    first = 0
    for picture, own in enumerate(boxes):
        rows = torch.arange(first, first + len(own), device=together.device)
        for number, (maps, stride) in enumerate(zip(pyramid, strides, strict=True)):
            chosen = rows[level[rows] == number]
            if len(chosen):
                pieces.append(roi_align(maps[picture], together[chosen], stride, cells))
                places.append(chosen)
        first += len(own)
    return torch.cat(pieces)[torch.cat(places).argsort()]
