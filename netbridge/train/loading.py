"""Pictures on the way from the disk to the network: decoded, cut and mirrored by worker processes, batch by batch.

For data sets in memory `netbridge.train.augment` does the same with whole tensors. Here, too, everything random comes
from the seed, the epoch and the picture's number alone, so neither the number of workers nor that of processes, nor the
step at which a training goes on, changes a single crop.
"""

import math

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from netbridge.data.pictures import Index, Pictures
from netbridge.train.augment import Normaliser, choose_mirrored, generator, rows_of
from netbridge.train.policies import apply_policy

TRIES = 10  # boxes that are drawn before the middle of the picture is taken


class PictureBatches:
    """The training pictures of a data set on the disk: in every epoch another box of each, resized, perhaps mirrored.

    pictures       a `netbridge.data.Pictures`
    recipe         its batch, crop, aspect and flip are used
    size           height and width of what is cut, in pixels
    workers        processes that decode; 0: this one
    device, dtype  of the batches
    """

    def __init__(self, pictures: Pictures, recipe, size: int, workers: int = 0, device="cpu", dtype=torch.float32):
        if recipe.batch > len(pictures.train):
            raise ValueError(
                f"`batch` = {recipe.batch} is more than the {len(pictures.train)} pictures there are; take a "
                "smaller one."
            )
        self.pictures, self.recipe, self.size, self.workers = pictures, recipe, size, workers
        self.device = torch.device(device)
        self.normaliser = Normaliser(pictures.mean, pictures.std, size, device, dtype)

    def __len__(self):
        return len(self.pictures.train) // self.recipe.batch

    def epoch(self, seed: int, epoch: int, rank: int = 0, world: int = 1, start: int = 0, parts: int | None = None):
        """Yields (images, labels) of every batch from number `start` on, as `augment.Batches.epoch` does."""
        chance = generator(seed, epoch)
        order = torch.randperm(len(self.pictures.train), generator=chance)
        flipped = choose_mirrored(self.recipe.flip, len(order), seed, epoch, chance)
        rows = rows_of(self.recipe.batch, parts or world, rank, world)
        firsts = [number * self.recipe.batch for number in range(start, len(self))]
        batches = [[(index, bool(flipped[index])) for index in order[first + rows].tolist()] for first in firsts]
        crops = Crops(self.pictures.train, self.recipe, self.size, seed, epoch)
        for number, (images, labels) in enumerate(self.load(crops, batches), start):
            yield self.normaliser(apply_policy(images, self.recipe, seed, epoch, number, rows)), labels

    def load(self, crops: Dataset, batches):
        loader = DataLoader(
            crops,
            batch_sampler=batches,
            num_workers=self.workers,
            collate_fn=stack,
            generator=torch.Generator(),  # else it draws from that of the network's layers
            pin_memory=self.device.type == "cuda",
        )
        for images, labels in loader:
            yield images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)


def to_test(data, batch: int, rank: int = 0, world: int = 1, workers: int = 0, device="cpu", dtype=torch.float32):
    """Yields (images, labels) of the test set: every `world`-th image from `rank` on; of a picture its middle."""
    if not isinstance(data, Pictures):
        for images, labels in zip(
            data.test_images[rank::world].split(batch), data.test_labels[rank::world].split(batch), strict=True
        ):
            yield data.normalised(images.to(device), dtype), labels.to(device)
        return
    numbers = range(rank, len(data.test), world)
    batches = [list(numbers[first : first + batch]) for first in range(0, len(numbers), batch)]
    middles = Middles(data.test, data.size, data.resize)
    normaliser = Normaliser(data.mean, data.std, data.size, device, dtype)
    loader = DataLoader(
        middles, batch_sampler=batches, num_workers=workers, collate_fn=stack, generator=torch.Generator()
    )
    for images, labels in loader:
        yield normaliser(images.to(device)), labels.to(device)


class Crops(Dataset):
    """Random boxes of pictures. An item is asked for as (number, whether it is mirrored)."""

    def __init__(self, index: Index, recipe, size: int, seed: int, epoch: int):
        self.index, self.recipe, self.size, self.seed, self.epoch = index, recipe, size, seed, epoch

    def __getitem__(self, item):
        number, flipped = item
        picture = self.index.picture(number)
        chance = np.random.Generator(np.random.Philox(key=[self.seed, self.epoch], counter=[0, 0, 0, number]))
        width, height = picture.size
        box = random_box(width, height, chance, self.recipe.crop, self.recipe.aspect)
        pixels = cut(picture, box, self.size)
        return pixels[:, ::-1] if flipped else pixels, int(self.index.labels[number])


class Middles(Dataset):
    """The middle of every picture, as it is shown for testing."""

    def __init__(self, index: Index, size: int, resize: int):
        self.index, self.size, self.resize = index, size, resize

    def __getitem__(self, number):
        picture = self.index.picture(number)
        width, height = picture.size
        box = middle_box(width, height, self.size / self.resize)
        return cut(picture, box, self.size), int(self.index.labels[number])


def random_box(width: int, height: int, chance, share: tuple[float, float], aspect: tuple[float, float]):
    """A box (left, top, right, bottom) of whole pixels within a picture (Szegedy et al. 2015).

    chance  a NumPy generator
    share   least and greatest share of the picture's area that the box covers, drawn evenly
    aspect  least and greatest width over height, drawn evenly in its logarithm

    Where ten boxes do not fit, it is the largest box in the middle whose aspect is allowed.
    """
    for _ in range(TRIES):
        area = width * height * chance.uniform(*share)
        ratio = math.exp(chance.uniform(math.log(aspect[0]), math.log(aspect[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 1 <= w <= width and 1 <= h <= height:
            left, top = int(chance.integers(0, width - w + 1)), int(chance.integers(0, height - h + 1))
            return left, top, left + w, top + h
    w = min(width, round(height * aspect[1]))
    h = min(height, round(width / aspect[0]))
    return (width - w) // 2, (height - h) // 2, (width - w) // 2 + w, (height - h) // 2 + h


def middle_box(width: int, height: int, share: float) -> tuple[float, float, float, float]:
    """The square in the middle whose side is `share` of the picture's shorter side."""
    side = share * min(width, height)
    return (width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2


def cut(picture, box, size: int) -> np.ndarray:
    """A box of a picture, resized to (size, size): uint8 (size, size, 3)."""
    from PIL import Image

    return np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR, box=box))


def stack(items):
    """Put pictures and labels together to a batch: uint8 (N, H, W, C) and int64 (N,)."""
    pixels, labels = zip(*items, strict=True)
    return torch.from_numpy(np.stack(pixels)), torch.tensor(labels)
