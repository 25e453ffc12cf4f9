"""Non-maximum suppression: of boxes that overlap too much only the best remains."""

import numpy as np
import torch

from netbridge.detect.boxes import box_iou


def nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Which boxes remain: from the best on, every box removes the worse ones that overlap with it too much.

    boxes      (N, 4): left, top, right, bottom in pixels
    scores     (N,), the larger the better; of equal ones the first in the list counts as the better
    threshold  a box whose intersection over union with a better one that remains is above this goes, from 0 to 1

    Returns the numbers of the boxes that remain, the best first: int64 (K,).

    >>> import torch
    >>> from netbridge import detect
    >>> boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0], [0.0, 0.0, 4.0, 3.0], [8.0, 8.0, 9.0, 9.0]])
    >>> detect.nms(boxes, torch.tensor([0.5, 0.9, 0.3]), threshold=0.5)
    tensor([1, 2])
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"`threshold` must be from 0 to 1, got {threshold!r}.")
    order = scores.sort(descending=True, stable=True).indices
    above = (box_iou(boxes[order], boxes[order]) > threshold).cpu().numpy()
    gone = np.zeros(len(order), dtype=bool)
    kept = []
    for place in range(len(order)):
        if not gone[place]:
            kept.append(place)
            gone |= above[place]
    return order[torch.tensor(kept, dtype=torch.long, device=order.device)]


def nms_within(boxes, scores, groups: torch.Tensor, threshold: float, most: int) -> torch.Tensor:
    """`nms` among the boxes of each group, such as a class or a level; the `most` best of all, the best first."""
    kept = [torch.zeros(0, dtype=torch.long, device=boxes.device)]
    for group in groups.unique():
        members = (groups == group).nonzero()[:, 0]
        kept.append(members[nms(boxes[members], scores[members], threshold)])
    together = torch.cat(kept)
    best = scores[together].sort(descending=True, stable=True).indices
    return together[best[:most]]
