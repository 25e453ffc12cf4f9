"""Pictures with their objects on the way to a detector: resized, perhaps mirrored, padded to one size, in batches.

Everything random comes from the seed, the epoch and the step alone, so neither the number of workers nor that of
processes, nor the step at which a training goes on, changes a picture.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from netbridge.detect import boxes as geometry
from netbridge.train.augment import choose_mirrored, generator, rows_of


class Truth(NamedTuple):
    """What is in one picture.

    boxes   (n, 4) float32: left, top, right, bottom in pixels
    labels  (n,) int64: the class of each
    crowds  (k, 4): regions of many objects, which count neither as objects nor as background
    size    (height, width) of the picture
    """

    boxes: torch.Tensor
    labels: torch.Tensor
    crowds: torch.Tensor
    size: tuple[int, int]

    def to(self, device) -> "Truth":
        return Truth(self.boxes.to(device), self.labels.to(device), self.crowds.to(device), self.size)

    def resize(self, size: tuple[int, int]) -> "Truth":
        """The truth of the same picture at another size."""
        factor = self.boxes.new_tensor([size[1] / self.size[1], size[0] / self.size[0]] * 2)
        return Truth(self.boxes * factor, self.labels, self.crowds * factor, size)

    def mirror(self) -> "Truth":
        """The truth of the mirror image: left and right change places."""
        width = self.size[1]
        boxes, crowds = geometry.mirror(self.boxes, width), geometry.mirror(self.crowds, width)
        return Truth(boxes, self.labels, crowds, self.size)


def size_within(height: int, width: int, short: int, long: int) -> tuple[int, int]:
    """The size whose shorter side is `short`, or less where the longer would be above `long`; the shape stays."""
    factor = min(short / min(height, width), long / max(height, width))
    return max(round(height * factor), 1), max(round(width * factor), 1)


class Shown(Dataset):
    """Pictures of one part as a detector sees them. An item is asked for as (number, whether it is mirrored)."""

    def __init__(self, part, short: int, long: int):
        self.part, self.short, self.long = part, short, long

    def size(self, number: int) -> tuple[int, int]:
        """(height, width) at which a picture is shown."""
        height, width = self.part.truths[number].size
        return size_within(height, width, self.short, self.long)

    def __getitem__(self, item):
        from PIL import Image

        number, flipped = item
        height, width = self.size(number)
        picture = self.part.picture(number).resize((width, height), Image.Resampling.BILINEAR)
        truth = self.part.truths[number].resize((height, width))
        pixels = np.asarray(picture)
        return (pixels[:, ::-1].copy(), truth.mirror()) if flipped else (pixels, truth)


def collate(items):
    """Pixels and truths as lists: pictures of a batch differ in size."""
    pixels, truths = zip(*items, strict=True)
    return [torch.from_numpy(np.array(one)) for one in pixels], list(truths)


def pad_to(pixels: list[torch.Tensor], size: tuple[int, int], mean, std, device, dtype) -> torch.Tensor:
    """Normalised images (N, 3, height, width); what lies outside a picture is 0, the mean of the pixels."""
    images = torch.zeros(len(pixels), *size, 3, dtype=dtype, device=device)
    mean, std = (torch.tensor(x, dtype=dtype, device=device) for x in (mean, std))
    for image, one in zip(images, pixels, strict=True):
        image[: one.shape[0], : one.shape[1]] = (one.to(device).to(dtype) / 255 - mean) / std
    return images.permute(0, 3, 1, 2)


def common_size(sizes, multiple: int) -> tuple[int, int]:
    """The least (height, width) in multiples of `multiple` that holds all pictures."""
    height, width = (-(-max(side) // multiple) * multiple for side in zip(*sizes, strict=True))
    return height, width


class SceneBatches:
    """The training pictures in batches: wide and high ones apart, so that little is padded.

    data           a `Coco`
    recipe         its batch and flip are used
    workers        processes that decode; 0: this one
    device, dtype  of the batches
    """

    def __init__(self, data, recipe, workers: int = 0, device="cpu", dtype=torch.float32):
        self.data, self.recipe, self.workers, self.device, self.dtype = data, recipe, workers, device, dtype
        self.shown = Shown(data.train, data.short, data.long)
        self.groups = data.train.shapes()

    def epoch(self, seed: int, epoch: int, rank: int = 0, world: int = 1, start: int = 0, parts: int | None = None):
        """Yields (images, truths) of every batch from number `start` on, as `augment.Batches.epoch` does."""
        batch, chance = self.recipe.batch, generator(seed, epoch)
        whole = []
        for group in self.groups:
            order = group[torch.randperm(len(group), generator=chance)]
            whole += [order[first : first + batch] for first in range(0, len(order) - batch + 1, batch)]
        whole = [whole[number] for number in torch.randperm(len(whole), generator=chance).tolist()]
        flipped = choose_mirrored(self.recipe.flip, len(self.data.train), seed, epoch, chance)
        rows = rows_of(batch, parts or world, rank, world)
        items = [[(number, bool(flipped[number])) for number in one[rows].tolist()] for one in whole[start:]]
        loader = DataLoader(
            self.shown, batch_sampler=items, num_workers=self.workers, collate_fn=collate, generator=torch.Generator()
        )
        for one, (pixels, truths) in zip(whole[start:], loader, strict=True):
            size = common_size([self.shown.size(number) for number in one.tolist()], self.data.multiple)
            images = pad_to(pixels, size, self.data.mean, self.data.std, self.device, self.dtype)
            yield images, [truth.to(self.device) for truth in truths]


def steps_of(data, batch: int) -> int:
    """Batches of an epoch."""
    return sum(len(group) // batch for group in data.train.shapes())


def to_test(data, batch: int, rank: int = 0, world: int = 1, workers: int = 0, device="cpu", dtype=torch.float32):
    """Yields (numbers, images, sizes) of the test pictures: every `world`-th from `rank` on."""
    shown = Shown(data.test, data.short, data.long)
    numbers = list(range(rank, len(data.test), world))
    batches = [numbers[first : first + batch] for first in range(0, len(numbers), batch)]
    items = [[(number, False) for number in one] for one in batches]
    loader = DataLoader(
        shown, batch_sampler=items, num_workers=workers, collate_fn=collate, generator=torch.Generator()
    )
    for one, (pixels, truths) in zip(batches, loader, strict=True):
        sizes = [truth.size for truth in truths]
        yield one, pad_to(pixels, common_size(sizes, data.multiple), data.mean, data.std, device, dtype), sizes
