"""Augmentation: shuffling, shifting, mirroring and normalising whole batches at once, from one tensor on the device.

Everything random in an epoch is drawn at its start from (seed, epoch) alone. So every process of a distributed run
draws the same, and a training that goes on at an epoch sees the images that it would have seen.
"""

import numpy as np
import torch
from torch.nn import functional as F

from netbridge.train.policies import apply_policy

STRIDE = 1_000_003  # more than any number of epochs, so that no two (seed, epoch) share a generator


def generator(seed: int, epoch: int) -> torch.Generator:
    """The source of everything random in this epoch of a training with this seed."""
    return torch.Generator().manual_seed((seed + 1) * STRIDE + epoch)


class Batches:
    """The training images, ready to be cut into batches: uint8, channels last, with a border to shift into.

    images, labels   uint8 (N, C, H, W) and int64 (N,)
    mean, std        per channel, of pixels from 0 to 1
    recipe           its batch, shift, border and flip are used
    size             shrink the images to this width first
    device, dtype    of the batches
    """

    def __init__(self, images, labels, mean, std, recipe, size=None, device="cpu", dtype=torch.float32):
        self.recipe = recipe
        if size is not None and size != images.shape[-1]:
            images = shrink(images, size)
        self.count, self.channels, self.height, self.width = images.shape
        if recipe.batch > self.count:
            raise ValueError(
                f"`batch` = {recipe.batch} is more than the {self.count} images there are; take a smaller one."
            )
        if recipe.shift:
            edges = ((0, 0), (0, 0), (recipe.shift,) * 2, (recipe.shift,) * 2)
            images = torch.from_numpy(np.pad(images.numpy(), edges, mode=recipe.border))
        self.pixels = images.permute(0, 2, 3, 1).contiguous().to(device)
        self.labels = labels.to(device)
        self.device = torch.device(device)
        self.normaliser = Normaliser(mean, std, self.width, device, dtype)

    def __len__(self):
        return self.count // self.recipe.batch

    @property
    def windows(self) -> torch.Tensor:
        """Every picture at every shift of up to s pixels, (N, 2s+1, 2s+1, H, W, C), as a view without a copy."""
        places = 2 * self.recipe.shift + 1
        picture, row, pixel, channel = self.pixels.stride()
        shape = (self.count, places, places, self.height, self.width, self.channels)
        return self.pixels.as_strided(shape, (picture, row, pixel, row, pixel, channel))

    def epoch(self, seed: int, epoch: int, rank: int = 0, world: int = 1, start: int = 0, parts: int | None = None):
        """Yields (images, labels) of every batch from number `start` on: the share of process `rank` of `world`.

        `parts`: into how many parts a batch is cut, of which the processes take turns; as many as there are processes.
        """
        chance = generator(seed, epoch)
        order = torch.randperm(self.count, generator=chance)
        down, right = torch.randint(0, 2 * self.recipe.shift + 1, (2, self.count), generator=chance)
        flipped = choose_mirrored(self.recipe.flip, self.count, seed, epoch, chance)[order]
        rows = rows_of(self.recipe.batch, parts or world, rank, world)
        windows = self.windows
        order, down, right, flipped = (x.to(self.device) for x in (order, down, right, flipped))
        for number in range(start, len(self)):
            part = (number * self.recipe.batch + rows).to(self.device)
            chosen = order[part]
            pictures = windows[chosen, down[part], right[part]]
            if self.recipe.flip != "none":
                pictures = torch.where(flipped[part, None, None, None], pictures.flip(2), pictures)
            pictures = apply_policy(pictures, self.recipe, seed, epoch, number, rows)
            yield self.normaliser(pictures), self.labels[chosen]


class Normaliser:
    """uint8 pictures (N, H, W, C) as a network is shown them: (pixels / 255 - mean) / std, (N, C, H, W), channels last.

    mean, std      per channel, of pixels from 0 to 1
    width          of the pictures
    device, dtype  of what comes out
    """

    def __init__(self, mean, std, width: int, device, dtype):
        # Repeated along a row, because a broadcast over three channels alone is too short for vector code.
        scale = 1 / (255 * torch.tensor(std, dtype=torch.float64))
        shift = -torch.tensor(mean, dtype=torch.float64) / torch.tensor(std, dtype=torch.float64)
        self.scale, self.shift = (x.to(dtype).repeat(width).to(device) for x in (scale, shift))

    def __call__(self, pictures: torch.Tensor) -> torch.Tensor:
        rows = torch.addcmul(self.shift, pictures.flatten(2).to(self.scale.dtype), self.scale)
        return rows.view(pictures.shape).permute(0, 3, 1, 2)


def choose_mirrored(flip: str, count: int, seed: int, epoch: int, chance: torch.Generator) -> torch.Tensor:
    """Which of `count` images are mirrored, by a recipe's `flip`.

    "alternating": one half of them in even epochs, the other half in odd ones.
    """
    if flip == "none":
        return torch.zeros(count, dtype=torch.bool)
    if flip == "alternating":
        first = torch.rand(count, generator=generator(seed, -1)) < 0.5
        return first ^ bool(epoch % 2)
    return torch.rand(count, generator=chance) < 0.5


def shares(batch: int, parts: int) -> list[slice]:
    """The rows of a batch that each of its equal parts holds."""
    length = batch // parts
    return [slice(part * length, (part + 1) * length) for part in range(parts)]


def rows_of(batch: int, parts: int, rank: int, world: int) -> torch.Tensor:
    """The rows of a batch that a process looks at: those of the parts rank, rank + world, rank + 2 world and so on."""
    return torch.cat([torch.arange(part.start, part.stop) for part in shares(batch, parts)[rank::world]])


def shrink(images: torch.Tensor, size: int, at_once: int = 5000) -> torch.Tensor:
    """Smaller images, bilinear with antialiasing; `at_once` images at a time, to save memory.

    size  the width; the height keeps the shape of the images, but for a multiple of 4 where they are no squares
    """
    height, width = images.shape[2:]
    height = size if height == width else 4 * max(round(size * height / (4 * width)), 1)
    parts = (
        F.interpolate(part, size=(height, size), mode="bilinear", antialias=True) for part in images.split(at_once)
    )
    return torch.cat(list(parts))
