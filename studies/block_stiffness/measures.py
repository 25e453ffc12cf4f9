"""Spectra of every block at label-balanced images, in three readings, and the network's answers to those images."""

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

import netbridge as nb
from studies.block_stiffness.adversarial import move_images
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


# Of one block at one image, one thread, single precision (2026-11-19); spectra by stage of a ResNet-20.
SPECTRA_SECONDS = (0.25, 0.85, 0.42)
SLICES_SECONDS, NORMS_SECONDS, ERROR_SECONDS = 0.07, 0.15, 0.03


def planned_seconds(size: Size, blocks: tuple[int, ...] = (3, 3, 3)) -> float:
    """Processor time of the spectra, slices, norms and errors of a ResNet-20 of 16 channels on CIFAR-10.

    blocks  in each stage; the first of a stage but the first changes the shape, and has slices alone
    """
    inner = [count - (stage > 0) for stage, count in enumerate(blocks)]
    spectra = sum(
        len(SPECTRA) * count * each * seconds
        for count, each, seconds in zip(inner, size.spectra[-len(blocks) :], SPECTRA_SECONDS, strict=True)
    )
    others = sum(blocks) * size.slices * SLICES_SECONDS
    others += sum(inner) * (size.norms * NORMS_SECONDS + size.errors * ERROR_SECONDS)
    inputs = 4 * size.inputs * sum(c * SPECTRA_SECONDS[0] for c in inner)
    return size.labels * (spectra + others) + inputs


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


def nested_images(labels: np.ndarray, each: int, count: int = 10) -> np.ndarray:
    """The first `each` test images of each of `count` labels, in turns: a smaller choice is part of a larger one."""
    places = [np.flatnonzero(labels == label)[:each] for label in np.unique(labels)[:count]]
    shortest = min(map(len, places))
    return np.stack([place[:shortest] for place in places], 1).ravel()


def measure(net, name: str, data, size: Size, work: dict, parts=tuple(READINGS), full=0, on_progress=None) -> Measured:
    """All kinds at all blocks of a network, each at as many images as its cost allows.

    work   who computes and where it is kept: `workers`, `executor`, `cache` and `dtype` of `nb.block_survey`
    parts  which of the READINGS to look at
    full   images at which all eigenvalues are found, too, where a stage is so large that its ends alone are looked for
    """
    labels = data.test_labels.numpy()
    asked: list[tuple] = [
        *((part, k, each) for k, each in stages(net, size.spectra) if each for part in SPECTRA if part in parts),
        *([("slices", None, size.slices)] if "slices" in parts else []),
        ("norms", None, size.norms),
        ("error", None, size.errors),
    ]
    shown = prepare(net, data, data.test_images[:1])
    units = {name: state[0].numel() for name, state in nb.block_states(net, shown).items()}
    tables = []
    for kind, stage, each in asked:
        chosen = nested_images(labels, each, size.labels)
        images = prepare(net, data, data.test_images[chosen])
        stages_seen = range(len(net.stages)) if stage is None else [stage]
        inner = [name for k in stages_seen for name in inner_blocks(net, k)]
        blocks = None if kind == "slices" else inner
        dear = any(units[name] > LARGEST_FULL for name in inner) if stage is not None else False
        table = nb.block_survey(net, images, kind, blocks, "extremes" if dear else "full", rows=size.rows, **work)
        if dear and full:
            whole = nb.block_survey(net, images[:full], kind, blocks, "full", **work)
            table = np.concatenate([whole, table[table["image"] >= full]])
        table["image"] = chosen[table["image"]]
        tables.append(table)
        if on_progress:
            on_progress(name, kind, stage)
    answered = nested_images(labels, size.answers)
    loss, right = answers(net, data, answered)
    by_label = np.array([right[labels[answered] == label].mean() for label in np.unique(labels)])
    everything = np.concatenate(tables)
    seen = np.unique(everything["image"])
    loss, right = answers(net, data, seen)
    return Measured(name, tuple(net.block_names), everything, labels[seen], loss, right, by_label)


def stages(net, each: tuple[int, ...]) -> list[tuple[int, int]]:
    """Every stage of a network by its number, and how many images a label it is looked at."""
    return [(stage, each[min(stage, len(each) - 1)]) for stage in range(len(net.stages))]


def inner_blocks(net, stage: int) -> list[str]:
    """The blocks of a stage that keep the shape: the others have no eigenvalues."""
    names = zip(net.block_names, net.blocks, strict=True)
    return [name for name, block in names if name.startswith(f"stages.{stage}.") and not block.opens]


def answers(net, data, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss and rightness of the network's answers to these test images."""
    loss, right = [], []
    with torch.inference_mode():
        for part in np.array_split(chosen, max(1, len(chosen) // 128)):
            images, wanted = prepare(net, data, data.test_images[part]), data.test_labels[part]
            logits = net(images.to(device_of(net))).cpu()
            loss.append(F.cross_entropy(logits, wanted, reduction="none").numpy())
            right.append((logits.argmax(1) == wanted).numpy())
    return np.concatenate(loss), np.concatenate(right)


def device_of(net) -> torch.device:
    return next(net.parameters()).device


def other_inputs(net, data, blocks: list[str], count: int, work: dict) -> dict[str, np.ndarray]:
    """Spectra of these blocks' branches at inputs that are no test images: a table of `nb.block_survey` each.

    Training images, Gaussian noise with the mean and deviation of the data, and test images moved by 8/255 along the
    sign of the loss's gradient (FGSM).
    """
    chosen = nested_images(data.test_labels.numpy(), -(-count // len(data.names)))[:count]
    images = prepare(net, data, data.test_images[chosen])
    trained = nested_images(data.train_labels.numpy(), -(-count // len(data.names)))[:count]
    kinds = {
        "test images": images,
        "training images": prepare(net, data, data.train_images[trained]),
        "noise": torch.randn(images.shape, generator=torch.Generator().manual_seed(0)),
        "FGSM, 8/255": move_images(net, images, data.test_labels[chosen], 8 / 255)[0].cpu(),
    }
    values = "extremes" if images.shape[-1] > 16 else "full"  # whichever is the cheaper one
    return {name: nb.block_survey(net, inputs, "residual", blocks, values, **work) for name, inputs in kinds.items()}


def accuracy_by_flow(net, images: torch.Tensor, wanted: torch.Tensor, substeps: int = 16) -> dict[str, float]:
    """The share of right answers when one block at a time is its exact flow instead of its step; "" is the network.

    images    prepared for the network
    wanted    their labels
    substeps  of Runge and Kutta's method, which stand for the flow
    """
    images, wanted = images.to(device_of(net)), wanted.to(device_of(net))

    def score():
        with torch.inference_mode():
            return float((net(images).argmax(1) == wanted).double().mean())

    result = {"": score()}
    for stage in range(len(net.stages)):
        for name in inner_blocks(net, stage):
            block = net.get_submodule(name)
            plain = copy.deepcopy(block)  # without the hook, which would call itself

            def flow(block, inputs, output, plain=plain):
                return block.project(torch.nan_to_num(nb.exact_flow(plain, inputs[0], substeps)))

            handle = block.register_forward_hook(flow)
            try:
                result[name] = score()
            finally:
                handle.remove()
    return result


def rows_of(found: Measured, block: str, kind: str) -> np.ndarray:
    """The rows of one block and kind, sorted by image."""
    table = found.table[(found.table["block"] == block) & (found.table["kind"] == kind)]
    return table[np.argsort(table["image"])]


def shared_columns(found: Measured, block: str, one: str, other: str, kind: str = "residual"):
    """(images, values of one measure, values of the other) at the images of a block that have both.

    kind  the reading that measures of a spectrum are taken from
    """
    tables = [rows_of(found, block, KIND_OF.get(measure, kind)) for measure in (one, other)]
    shared = np.intersect1d(tables[0]["image"], tables[1]["image"])
    x, y = (table[np.searchsorted(table["image"], shared)] for table in tables)
    return shared, x[one], y[other]


def values_of_images(found: Measured, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A number per image (loss, label, rightness), for the images of these rows."""
    return values[np.searchsorted(np.unique(found.table["image"]), rows["image"])]
