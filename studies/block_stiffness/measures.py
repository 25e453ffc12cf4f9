"""Spectra of every block at label-balanced images, in three readings, and the network's answers to those images."""

from typing import NamedTuple

import numpy as np
import torch
from rich.progress import track
from torch.nn import functional as F

import netbridge as nb
from netbridge.spectrum.survey import ROW
from studies.lab.stiffness import prepare

ROOMS = ("netbridge/spectrum",)  # what spectra are computed by beside what measures every network
READINGS = {  # what "the Jacobian of a block" may mean; the keys are kinds of `nb.block_survey`
    "slices": "H x W slices of the unflattened Jacobian, as the paper's counts have it",
    "block": "whole block, final ReLU included",
    "residual": "branch alone, the right-hand side of the equation",
}
MEASURES = (
    "stiffness_index", "negative", "zero", "positive", "max_re", "min_re", "si", "spectral_radius", "non_normality",
    "amplified", "stiff", "stable_step", "log_norm", "soderlind", "largest_singular",
)  # fmt: skip
KIND_OF = {  # the kind of `nb.block_survey` that has a measure, where that is not the branch's spectrum
    "log_norm": "norms", "soderlind": "norms", "largest_singular": "norms",
    "nsi": "error", "alive": "error", "step_error": "error",
}  # fmt: skip
LARGEST_FULL = 8192  # units of a block of which all eigenvalues are found: ten seconds; of more, the ends alone
SPECTRA = ("residual", "block")  # the readings that have a spectrum of their own


class Size(NamedTuple):
    """Images per label for the spectra of each stage (0 leaves it out), for slices, for norms and for errors."""

    spectra: tuple[int, ...]  # of the first three stages, the first is the dearest; a fourth has as many as the third
    slices: int
    norms: int
    errors: int
    rows: int  # output units that slices look at
    answers: int  # images per label on which accuracy by label is taken
    labels: int = 10  # how many labels are looked at
    inputs: int = 10  # inputs of each other kind: training images, noise, adversarial images
    flows: int = 100  # images on which one block at a time is replaced by its exact flow


SIZES = {
    "smoke": Size((0, 1, 1), 1, 1, 1, 10, 5, 2, 1, 5),
    "quick": Size((2, 2, 4), 2, 2, 12, 300, 200, 10, 3, 60),
    "full": Size((10, 10, 40), 10, 10, 40, 300, 1000, 10, 20, 1000),
    "paper": Size((10, 10, 40), 40, 10, 40, 10**9, 1000, 10, 20, 1000),
}


def size_of(preset: str, images: int | None = None) -> Size:
    """The preset's numbers; with `images`, so many a label for every measure instead."""
    size = SIZES[preset]
    if images is None:
        return size
    return size._replace(spectra=tuple(images for _ in size.spectra), slices=images, norms=images, errors=images)


class Measured(NamedTuple):
    """One network: its table of `nb.block_survey`, and per image its label, loss and whether the answer was right."""

    name: str
    blocks: tuple[str, ...]
    table: np.ndarray  # "image" is the number within the test set
    labels: np.ndarray
    loss: np.ndarray
    right: np.ndarray
    accuracy_by_label: np.ndarray
    config: dict | None = None  # of the network


NOTHING = Measured("", (), np.empty(0, ROW), np.empty(0), np.empty(0), np.empty(0), np.empty(0))


def nested_images(labels: np.ndarray, each: int, count: int = 10) -> np.ndarray:
    """The first `each` test images of each of `count` labels, in turns: a smaller choice is part of a larger one."""
    places = [np.flatnonzero(labels == label)[:each] for label in np.unique(labels)[:count]]
    shortest = min(map(len, places))
    return np.stack([place[:shortest] for place in places], 1).ravel()


def first_images(labels: np.ndarray, images: int, count: int = 10) -> np.ndarray:
    """The first `images` of `nested_images`: as many of each label as that allows."""
    return nested_images(labels, -(-images // count))[:images]


def measure(net, name: str, data, size: Size, work: dict, parts=tuple(READINGS)) -> Measured:
    """All kinds at all blocks of a network, each at as many images as its cost allows.

    work   who computes and where it is kept: `workers`, `executor` and `cache` of `nb.block_survey`
    parts  which of the READINGS to look at
    """
    labels = data.test_labels.numpy()
    planned: list[tuple] = [
        *((part, k, each) for k, each in stages(net, size.spectra) if each for part in SPECTRA if part in parts),
        *([("slices", None, size.slices)] if "slices" in parts else []),
        ("norms", None, size.norms),
        ("error", None, size.errors),
    ]
    shown = prepare(net, data, data.test_images[:1])
    units = {name: state[0].numel() for name, state in nb.block_states(net, shown).items()}
    tables = []
    for kind, stage, each in track(planned, "spectra", transient=True):
        chosen = nested_images(labels, each, size.labels)
        images = prepare(net, data, data.test_images[chosen])
        inner = inner_blocks(net, stage)
        blocks = None if kind == "slices" else inner
        dear = any(units[name] > LARGEST_FULL for name in inner) if stage is not None else False
        table = nb.block_survey(net, images, kind, blocks, "extremes" if dear else "full", rows=size.rows, **work)
        table["image"] = chosen[table["image"]]
        tables.append(table)
    answered = nested_images(labels, size.answers)
    right = answer(net, data, answered)[1]
    by_label = np.array([right[labels[answered] == label].mean() for label in np.unique(labels)])
    everything = np.concatenate(tables)
    seen = np.unique(everything["image"])
    loss, right = answer(net, data, seen)
    return Measured(name, tuple(net.block_names), everything, labels[seen], loss, right, by_label, net.config)


def stages(net, each: tuple[int, ...]) -> list[tuple[int, int]]:
    """Every stage of a network by its number, and how many images a label it is looked at."""
    return [(stage, each[min(stage, len(each) - 1)]) for stage in range(len(net.stages))]


def inner_blocks(net, stage: int | None = None) -> list[str]:
    """The blocks of a stage, or of all, that keep the shape: the others have no eigenvalues."""
    names = zip(net.block_names, net.blocks, strict=True)
    return [name for name, block in names if not block.opens and stage in (None, stage_of(name))]


def stage_of(block: str) -> int:
    return int(block.split(".")[1])


def last_stage(blocks) -> list[str]:
    """Those of these blocks that are in the stage of the last one."""
    return [block for block in blocks if stage_of(block) == stage_of(blocks[-1])]


def answer(net, data, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss and rightness of the network's answers to these test images."""
    loss, right = [], []
    with torch.inference_mode():
        for part in np.array_split(chosen, max(1, len(chosen) // 128)):
            images, wanted = prepare(net, data, data.test_images[part]), data.test_labels[part]
            logits = net(images.to(device_of(net))).cpu()
            loss.append(F.cross_entropy(logits, wanted, reduction="none").numpy())
            right.append((logits.argmax(1) == wanted).numpy())
    return np.concatenate(loss), np.concatenate(right)


def accuracy_of(net, data, images: int) -> float:
    """The share of right answers to the first test images."""
    return float(answer(net, data, np.arange(images))[1].mean())


def device_of(net) -> torch.device:
    return next(net.parameters()).device


def move_images(net, images: torch.Tensor, labels: torch.Tensor, size: float):
    """Images moved by `size` along the sign of the loss's gradient, and the answers to the images before that."""
    images = images.to(device_of(net)).clone().requires_grad_()
    logits = net(images)
    loss = F.cross_entropy(logits, labels.to(images.device), reduction="sum")
    (gradient,) = torch.autograd.grad(loss, images)
    std = torch.tensor(net.normalisation["std"], device=images.device).view(-1, 1, 1)
    return images.detach() + size / std * gradient.sign(), logits.detach()


def rows_of(measured: Measured, block: str, kind: str) -> np.ndarray:
    """The rows of one block and kind, sorted by image."""
    table = measured.table[(measured.table["block"] == block) & (measured.table["kind"] == kind)]
    return table[np.argsort(table["image"])]


def shared_columns(measured: Measured, block: str, one: str, other: str, kind: str = "residual"):
    """The values of two measures of a block at the images that have both.

    kind  the reading that measures of a spectrum are taken from
    """
    tables = [rows_of(measured, block, KIND_OF.get(measure, kind)) for measure in (one, other)]
    shared = np.intersect1d(tables[0]["image"], tables[1]["image"])
    x, y = (table[np.searchsorted(table["image"], shared)] for table in tables)
    return x[one], y[other]


def values_of_images(measured: Measured, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A number per image (loss, label, rightness), for the images of these rows."""
    return values[np.searchsorted(np.unique(measured.table["image"]), rows["image"])]


def finite(values: np.ndarray) -> np.ndarray:
    """Those of the values that are numbers."""
    return values[np.isfinite(values)]
