"""Which object does a box stand for? Matching by overlap, and the sample of boxes on which a loss is taken."""

import torch

from netbridge.detect.boxes import box_iou, covered_share

BACKGROUND, IGNORED = -1, -2
CROWDED = 0.5  # a box of which so much lies in a crowd is no background


def match(boxes, objects, crowds, high: float, low: float, rescue: bool) -> torch.Tensor:
    """For every box the number of the object it stands for, or BACKGROUND, or IGNORED: int64 (N,).

    boxes    (N, 4)
    objects  (M, 4), the boxes of single objects
    crowds   (K, 4), regions of many objects, which are neither object nor background
    high     from this intersection over union on, a box stands for an object
    low      below this it is background; between the two it is ignored
    rescue   also match each object's best boxes, where their overlap is `low` at least
    """
    found = torch.full((len(boxes),), BACKGROUND, dtype=torch.long, device=boxes.device)
    if len(objects):
        overlap = box_iou(boxes, objects)
        best, number = overlap.max(1)
        found[best >= low] = IGNORED
        found = torch.where(best >= high, number, found)
        if rescue:
            most = overlap.amax(0)
            for one in range(len(objects)):  # a later object takes a box that is the best of two
                if most[one] >= low and most[one] > 0:
                    found[overlap[:, one] == most[one]] = one
    found[(found == BACKGROUND) & (covered_share(boxes, crowds) >= CROWDED)] = IGNORED
    return found


def sample(matches: torch.Tensor, count: int, share: float, chance: torch.Generator) -> torch.Tensor:
    """The numbers of at most `count` boxes, drawn at random: at most `share` of them of objects, the rest background.

    matches  as `match` returns them
    chance   where the random numbers come from, on the processor whatever the device: every device draws the same

    Boxes of objects come first.
    """
    objects, background = (draw((found.nonzero()[:, 0]), chance) for found in (matches >= 0, matches == BACKGROUND))
    objects = objects[: int(count * share)]
    return torch.cat((objects, background[: count - len(objects)]))


def draw(numbers: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
    """The numbers in random order."""
    return numbers[torch.randperm(len(numbers), generator=chance).to(numbers.device)]
