"""What is drawn for a step of training: mixup, cutmix, cutout, erasing, and the numbers of everything drawn by steps.

All of it depends on the seed, the epoch and the number of the step alone and is drawn for the whole batch, of which a
process or a part takes its rows. So neither the number of processes nor the step at which a training goes on changes a
bit. The numbers come from streams of their own: a recipe without any of this shows the same images as before.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

# Streams of random numbers; 0 belongs to the crops of `loading`, SAMPLES to `netbridge.detect.training`.
MIXING, HOLES, POLICY, DEPTH, ERASING, SAMPLES = 1, 2, 3, 4, 5, 6
ERASED, ERASED_ASPECT = (0.02, 1 / 3), (0.3, 3.3)  # of an image's area; height over width (Zhong et al. 2020)
TRIES = 10  # boxes that are drawn before an image is left as it is


def step_chance(seed: int, epoch: int, step: int, stream: int) -> np.random.Generator:
    """The source of what a stream draws for one step of an epoch."""
    key = np.array([seed % 2**64, epoch], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, stream, step]))


class Targets(NamedTuple):
    """What a network is to answer: `labels` with weight `share`, `others` with the rest; unmixed, the share is 1."""

    labels: torch.Tensor
    others: torch.Tensor
    share: float = 1.0

    def loss(self, logits: torch.Tensor, smoothing: float) -> torch.Tensor:
        """The mean cross-entropy. It is linear in the target, so a mixture of labels costs a mixture of losses."""
        loss = F.cross_entropy(logits, self.labels, label_smoothing=smoothing)
        if self.share == 1.0:
            return loss
        rest = F.cross_entropy(logits, self.others, label_smoothing=smoothing)
        return self.share * loss + (1.0 - self.share) * rest

    def hits(self, logits: torch.Tensor) -> torch.Tensor:
        """How many answers are right; with mixed labels an answer counts as much as its label's share."""
        answers = logits.argmax(1)
        right = (answers == self.labels).sum()
        if self.share == 1.0:
            return right
        return self.share * right + (1.0 - self.share) * (answers == self.others).sum()


class Mixing:
    """The mixtures and holes of one step's batch, by a recipe's `mixup`, `cutmix`, `cutout` and `erasing`.

    With both mixup and cutmix, each step uses one of them, either with probability 1/2.

    recipe             a `Recipe`
    seed, epoch, step  what everything is drawn from
    size               height and width of the images
    """

    def __init__(self, recipe, seed: int, epoch: int, step: int, size: tuple[int, int]):
        self.place = seed, epoch, step
        self.share, self.box = 1.0, None
        self.side, self.centres = recipe.cutout, None
        if recipe.mixup or recipe.cutmix:
            chance = step_chance(seed, epoch, step, MIXING)
            cutting = chance.random() < 0.5 if recipe.mixup and recipe.cutmix else recipe.cutmix > 0
            alpha = recipe.cutmix if cutting else recipe.mixup
            self.share = float(chance.beta(alpha, alpha))
            if cutting:
                self.box, self.share = cut_box(self.share, size, chance)
        if self.side:
            places = step_chance(seed, epoch, step, HOLES).integers(0, size, (recipe.batch, 2))
            self.centres = torch.from_numpy(places)
        self.erased = erased_boxes(recipe, size, step_chance(seed, epoch, step, ERASING)) if recipe.erasing else None

    def __call__(self, images: torch.Tensor, labels: torch.Tensor, rows: slice) -> tuple[torch.Tensor, Targets]:
        """The images and targets of a part of the batch, its rows `rows`; the partners come from the same part."""
        if self.centres is not None:
            images = with_holes(images, self.centres[rows].to(images.device), self.side)
        if self.erased is not None:
            images = without_boxes(images, self.erased[rows].to(images.device))
        if self.share == 1.0:
            return images, Targets(labels, labels)
        others = images.flip(0)
        if self.box is None:
            images = torch.lerp(others, images, self.share)
        else:
            top, bottom, left, right = self.box
            images = images.clone()
            images[:, :, top:bottom, left:right] = others[:, :, top:bottom, left:right]
        return images, Targets(labels, labels.flip(0), self.share)


def cut_box(share: float, size: tuple[int, int], chance) -> tuple[tuple[int, int, int, int], float]:
    """CutMix (Yun et al. 2019): a box (top, bottom, left, right) of about 1 - share of the area around a drawn centre.

    Returns it with the share of the pixels that lie outside: what juts out over the edge of the image is cut off.
    """
    height, width = size
    side = math.sqrt(1.0 - share)
    y, x = (int(place) for place in chance.integers(0, size))
    h, w = int(height * side), int(width * side)
    top, bottom = max(y - h // 2, 0), min(y - h // 2 + h, height)
    left, right = max(x - w // 2, 0), min(x - w // 2 + w, width)
    return (top, bottom, left, right), 1.0 - (bottom - top) * (right - left) / (height * width)


def with_holes(images: torch.Tensor, centres: torch.Tensor, side: int) -> torch.Tensor:
    """Cutout (DeVries and Taylor 2017): in each image a square of `side` pixels, or what lies within, becomes 0.

    0 is the mean of normalised pixels. The centre may be any pixel.
    """
    inside = []
    for axis, length in enumerate(images.shape[2:]):
        distance = torch.arange(length, device=images.device) - (centres[:, axis, None] - side // 2)
        inside.append((distance >= 0) & (distance < side))
    down, across = inside
    return images.masked_fill((down[:, :, None] & across[:, None, :])[:, None], 0.0)


def erased_boxes(recipe, size: tuple[int, int], chance) -> torch.Tensor:
    """Random erasing: (batch, 4) boxes (top, bottom, left, right), empty for images that stay as they are."""
    height, width = size
    wanted = chance.random(recipe.batch) < recipe.erasing
    area = chance.uniform(*ERASED, (TRIES, recipe.batch)) * height * width
    aspect = np.exp(chance.uniform(*np.log(ERASED_ASPECT), (TRIES, recipe.batch)))
    places = chance.random((2, recipe.batch))
    h, w = (np.rint(np.sqrt(x)).astype(int) for x in (area * aspect, area / aspect))
    fits = (h < height) & (w < width) & (h > 0) & (w > 0)
    first = fits.argmax(0), np.arange(recipe.batch)
    h, w = (np.where(wanted & fits.any(0), x[first], 0) for x in (h, w))
    top, left = (places * np.stack([height - h + 1, width - w + 1])).astype(int)
    return torch.from_numpy(np.stack([top, top + h, left, left + w], 1))


def without_boxes(images: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """The images with 0, the mean of normalised pixels, in their boxes."""
    rows, columns = (torch.arange(length, device=images.device) for length in images.shape[2:])
    top, bottom, left, right = boxes.T[:, :, None]
    down, across = (rows >= top) & (rows < bottom), (columns >= left) & (columns < right)
    return images.masked_fill((down[:, :, None] & across[:, None, :])[:, None], 0.0)
