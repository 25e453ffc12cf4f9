"""What a network loses without a block, and without the large or the small features of a block's slope."""

import dataclasses
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F

import netbridge as nb
from netbridge.surgery.alteration import without_largest, without_smallest
from studies.lab.stiffness import BATCH, prepare
from studies.trajectory.design import FEATURED, SHARE
from studies.trajectory.measures import Course

REMOVED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "largest": lambda slope: without_largest(slope, SHARE),
    "smallest, as many": lambda slope: without_smallest(slope, SHARE),
    "smallest, equal norm": lambda slope: without_smallest(slope, SHARE, equal_norm=True),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Importance:
    """What one network loses without a block or a part of its slope; the rise of the loss is given per image.

    course    the network
    rise      the rise of the loss without each block, (N, T)
    accuracy  the accuracy without each block, in per cent, (T,)
    features  the rise of the loss without some elements of each counted block's slope, {which: (images, counted)}
    """

    course: Course
    rise: np.ndarray
    accuracy: np.ndarray
    features: dict[str, np.ndarray]


def importance(one: Course, data, images: int, device, progress=lambda: None) -> Importance:
    """Drop every block of a network in turn, then remove features of the counted ones; `progress` after each block."""
    net = one.subject.net.to(device).eval()
    labels = data.test_labels[:images]
    shown = data.test_images[:images]
    whole = losses(net, data, shown, labels, device)[0]
    rises, right = [], []
    for block in range(len(net.blocks)):
        with nb.altered(net, block):
            loss, correct = losses(net, data, shown, labels, device)
        rises.append(loss - whole)
        right.append(100 * correct.mean())
        progress()
    few = min(images, FEATURED)
    features: dict[str, list] = {name: [] for name in REMOVED}
    for block in np.flatnonzero(~one.measured.records["slope"].first).tolist():
        for name, change in REMOVED.items():
            with nb.altered(net, block, change):
                loss, _ = losses(net, data, shown[:few], labels[:few], device)
            features[name].append(loss - whole[:few])
        progress()
    net.cpu()
    return Importance(one, np.array(rises).T, np.array(right), {k: np.array(v).T for k, v in features.items()})


@torch.no_grad()
def losses(net, data, images, labels, device) -> tuple[np.ndarray, np.ndarray]:
    """Cross-entropy of every image, and whether it is classified correctly."""
    parts = [net(prepare(net, data, part.to(device))).double().cpu() for part in images.split(BATCH)]
    logits = torch.cat(parts)
    return F.cross_entropy(logits, labels, reduction="none").numpy(), (logits.argmax(1) == labels).numpy()
