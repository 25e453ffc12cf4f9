"""TrivialAugment (Müller and Hutter, ICCV 2021): each image goes through one operation of random kind and strength.

There are fourteen operations, such as a turn or more contrast, on whole batches of uint8 images: those of one kind are
done at once. An operation that needs a mean forms it from a sum of integers, which is exact, so the result for an image
does not depend on how many images are in the batch.
"""

import math

import torch
from torch.nn import functional as F

from netbridge.train.mixing import POLICY, step_chance

STRENGTHS = 31  # equally spaced from none to the strongest
SPATIAL = ("shear across", "shear down", "shift across", "shift down", "turn")
TONAL = ("brightness", "colour", "contrast", "sharpness", "bits", "solarise", "spread", "equalise")
KINDS = ("nothing", *SPATIAL, *TONAL)
GREY = (299, 587, 114)  # thousandths of red, green and blue (ITU-R BT.601)
# How far the strongest operations go: that paper's "wide" ranges.
SLOPE = 0.99  # of a shear
PIXELS = 32  # of a shift
DEGREES = 135.0  # of a turn
BLEND = 0.99  # share by which brightness, colour, contrast and sharpness change
BITS = 6  # of a pixel's eight that are lost


def apply_policy(pictures: torch.Tensor, recipe, seed: int, epoch: int, step: int, rows: torch.Tensor) -> torch.Tensor:
    """The pictures (uint8, N, H, W, C) of one step as a recipe's `policy` wants them.

    rows  the places of these pictures in the batch; what happens to them is drawn for the whole of it
    """
    if recipe.policy == "trivial":
        return augment(pictures, draw_operations(recipe.batch, seed, epoch, step)[rows])
    return pictures


def draw_operations(batch: int, seed: int, epoch: int, step: int) -> torch.Tensor:
    """(batch, 3): the number of an operation in KINDS, its strength from 0 to STRENGTHS - 1, and its sign."""
    chance = step_chance(seed, epoch, step, POLICY)
    return torch.from_numpy(chance.integers(0, (len(KINDS), STRENGTHS, 2), (batch, 3)))


def augment(pictures: torch.Tensor, operations: torch.Tensor) -> torch.Tensor:
    """uint8 pictures (N, H, W, C) after one operation each; `operations` (N, 3) as `draw_operations` makes them."""
    kinds, strengths = operations[:, 0], operations[:, 1].double() / (STRENGTHS - 1)
    signed = strengths * (1 - 2 * operations[:, 2])
    changed = pictures.permute(0, 3, 1, 2).clone()
    for number, kind in enumerate(KINDS[1:], 1):
        rows = (kinds == number).nonzero()[:, 0]
        if not len(rows):
            continue
        images, where = changed[rows.to(changed.device)], rows.to(changed.device)
        if kind in SPATIAL:
            changed[where] = move(images, kind, signed[rows].to(images.device))
        else:
            strength = (strengths if kind in ("bits", "solarise") else signed)[rows].to(images.device)
            changed[where] = change_tones(images, kind, strength)
    return changed.permute(0, 2, 3, 1).contiguous()


def move(images: torch.Tensor, kind: str, strength: torch.Tensor) -> torch.Tensor:
    """The images sheared, shifted or turned about the middle; what comes in from outside is black."""
    count, _, height, width = images.shape
    maps = torch.eye(2, 3, dtype=torch.float64, device=images.device).repeat(count, 1, 1)
    if kind == "turn":
        angle = strength * math.radians(DEGREES)
        ratio = height / width  # grid_sample counts both axes from -1 to 1
        maps[:, 0, 0] = maps[:, 1, 1] = angle.cos()
        maps[:, 0, 1], maps[:, 1, 0] = -angle.sin() * ratio, angle.sin() / ratio
    elif kind == "shear across":
        maps[:, 0, 1] = strength * SLOPE * height / width
    elif kind == "shear down":
        maps[:, 1, 0] = strength * SLOPE * width / height
    else:
        axis, length = (0, width) if kind == "shift across" else (1, height)
        maps[:, axis, 2] = strength * 2 * min(PIXELS, length) / length
    grid = F.affine_grid(maps.float(), list(images.shape), align_corners=False)
    return F.grid_sample(images.float(), grid, mode="nearest", align_corners=False).to(torch.uint8)


def change_tones(images: torch.Tensor, kind: str, strength: torch.Tensor) -> torch.Tensor:
    """The images with other colours, every pixel in its place."""
    strength = strength[:, None, None, None]
    if kind == "bits":
        lost = (BITS * strength).round().int()
        return (images.int() >> lost << lost).to(torch.uint8)
    if kind == "solarise":  # bright pixels become their negatives, from above 255 on or from 0 on
        return torch.where(images >= 256 * (1 - strength), 255 - images, images)
    if kind == "spread":
        low, high = (x.int() for x in (images.amin((2, 3), True), images.amax((2, 3), True)))
        span = (high - low).clamp(min=1)
        return torch.where(high > low, (images.int() - low) * 255 // span, images.int()).to(torch.uint8)
    if kind == "equalise":
        return equalise(images)
    base = {"brightness": black, "colour": grey, "contrast": mean_grey, "sharpness": smooth}[kind](images)
    blend = base + (1 + BLEND * strength) * (images.double() - base)
    return blend.round().clamp(0, 255).to(torch.uint8)


def black(images: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(images, dtype=torch.int32)


def grey(images: torch.Tensor) -> torch.Tensor:
    """The brightness of every pixel, (N, 1, H, W); of images without three channels their mean."""
    if images.shape[1] != 3:
        return images.int().sum(1, keepdim=True) // images.shape[1]
    weights = torch.tensor(GREY, dtype=torch.int32, device=images.device).view(1, 3, 1, 1)
    return (images.int() * weights).sum(1, keepdim=True) // 1000


def mean_grey(images: torch.Tensor) -> torch.Tensor:
    return grey(images).sum((1, 2, 3), keepdim=True) // (images.shape[2] * images.shape[3])


def smooth(images: torch.Tensor) -> torch.Tensor:
    """Every pixel but those of the edge becomes a mean of nine, its own with weight 5 of 13."""
    channels = images.shape[1]
    kernel = torch.ones(3, 3, dtype=torch.float64, device=images.device)
    kernel[1, 1] = 5
    means = images.double()
    inner = F.conv2d(means, kernel.expand(channels, 1, 3, 3) / kernel.sum(), groups=channels)
    means = means.clone()
    means[:, :, 1:-1, 1:-1] = inner.round()
    return means


def equalise(images: torch.Tensor) -> torch.Tensor:
    """The images with about as many pixels at every level of a channel, as Pillow's `ImageOps.equalize` makes them."""
    flat = images.flatten(2).long()
    counts = torch.zeros(*flat.shape[:2], 256, dtype=torch.int64, device=images.device)
    counts.scatter_add_(2, flat, torch.ones_like(flat))
    brightest = flat.amax(2, keepdim=True)
    step = (flat.shape[2] - counts.gather(2, brightest)) // 255
    below = counts.cumsum(2) - counts
    table = ((below + step // 2) // step.clamp(min=1)).clamp(0, 255)
    table = torch.where(step > 0, table, torch.arange(256, device=images.device))
    return table.gather(2, flat).view(images.shape).to(torch.uint8)
