"""Boxes in pictures: areas, intersection over union, and the four numbers by which a network says where one is.

A box is a row (left, top, right, bottom) in pixels; the middle of the first pixel is at 0.5. Areas and unions are those
of plain geometry: nothing is added to a width, as older code did.
"""

import math
from collections.abc import Sequence

import torch

EVEN = (1.0, 1.0, 1.0, 1.0)
LARGEST = math.log(1000 / 16)  # a decoded box is at most so many times as long as its reference: exp of a wild guess


def box_areas(boxes: torch.Tensor) -> torch.Tensor:
    """Width times height of boxes (N, 4)."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def overlaps(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The area that each of N boxes shares with each of M others, (N, M)."""
    corner = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    opposite = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    sides = (opposite - corner).clamp(min=0)
    return sides[..., 0] * sides[..., 1]


def box_iou(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Intersection over union of every box with every other: 1 for the same box, 0 for boxes that do not meet.

    boxes    (N, 4): left, top, right, bottom in pixels
    others   (M, 4)

    Returns (N, M), numbers from 0 to 1; 0 where both boxes have no area.

    >>> import torch
    >>> from netbridge import detect
    >>> whole, half = torch.tensor([[0.0, 0.0, 4.0, 4.0]]), torch.tensor([[0.0, 0.0, 4.0, 2.0]])
    >>> detect.box_iou(whole, torch.cat([whole, half]))
    tensor([[1.0000, 0.5000]])
    """
    shared = overlaps(boxes, others)
    union = box_areas(boxes)[:, None] + box_areas(others)[None] - shared
    return torch.where(union > 0, shared / union, torch.zeros_like(shared)).clamp(max=1.0)


def covered_share(boxes: torch.Tensor, regions: torch.Tensor) -> torch.Tensor:
    """The largest share of each box (N, 4) that lies in one of the regions (M, 4), (N,); 0 without regions."""
    if not len(regions):
        return boxes.new_zeros(len(boxes))
    areas = box_areas(boxes)[:, None]
    shared = overlaps(boxes, regions)
    return torch.where(areas > 0, shared / areas, torch.zeros_like(shared)).amax(1)


def encode(references: torch.Tensor, boxes: torch.Tensor, spread: Sequence[float] = EVEN) -> torch.Tensor:
    """Where boxes are as seen from references, both (N, 4): shifts in sides of the reference, logarithms of ratios.

    Girshick et al., CVPR 2014, Appendix C; `spread` divides the four numbers, so that targets have about unit variance.
    """
    x, y, width, height = centre_and_sides(references)
    cx, cy, w, h = centre_and_sides(boxes)
    numbers = torch.stack(((cx - x) / width, (cy - y) / height, (w / width).log(), (h / height).log()), 1)
    return numbers / numbers.new_tensor(spread)


def decode(references: torch.Tensor, numbers: torch.Tensor, spread: Sequence[float] = EVEN) -> torch.Tensor:
    """The inverse of `encode`: boxes (N, 4) from references and numbers, both (N, 4)."""
    x, y, width, height = centre_and_sides(references)
    dx, dy, dw, dh = (numbers * numbers.new_tensor(spread)).unbind(1)
    cx, cy = x + dx * width, y + dy * height
    w, h = width * dw.clamp(max=LARGEST).exp(), height * dh.clamp(max=LARGEST).exp()
    return torch.stack((cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2), 1)


def centre_and_sides(boxes: torch.Tensor):
    """Centre and sides of boxes: x, y, width, height, each (N,)."""
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return boxes[:, 0] + width / 2, boxes[:, 1] + height / 2, width, height


def within(boxes: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Boxes cut off at the edges of a picture of this (height, width)."""
    height, width = size
    return torch.stack(
        (
            boxes[:, 0].clamp(0, width),
            boxes[:, 1].clamp(0, height),
            boxes[:, 2].clamp(0, width),
            boxes[:, 3].clamp(0, height),
        ),
        1,
    )


def mirror(boxes: torch.Tensor, width: float) -> torch.Tensor:
    """The boxes in the mirror image of a picture of this width: left and right change places."""
    return torch.stack((width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]), 1)
