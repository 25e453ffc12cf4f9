"""Networks that the study trains itself: looked at from their first weights on, and of several depths.

Hudson, Najm and Sargsyan (Measuring Stiffness in Residual Neural Networks, 2023) find that stiffness tends to increase
as a result of training. Li and Papyan (Residual Alignment, NeurIPS 2023) find that the top singular values of a
residual branch's Jacobian scale as 1 / depth: the step of size 1 would then be the smaller, in units of the equation,
the deeper the network.
"""

import functools
import json
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.train import recipe, train
from odelab.files import replacing
from studies.block_stiffness.measures import answers, inner_blocks, nested_images
from studies.lab.jobs import recipe_of
from studies.lab.results import as_json
from studies.lab.stiffness import prepare

DEPTH, WIDTHS = 14, (4, 8, 16)
DEPTHS = (14, 20, 32, 44, 56)
SLICE_ROWS = 150  # output units that slices look at
MEASURES = ("max_re", "min_re", "spectral_radius", "negative")


def keep_rows(path: Path | None, make) -> list[dict]:
    """The rows that an earlier run has left in a file; else those that `make` returns, which are then left there."""
    if path is None or not path.is_file():
        rows = make()
        if path is None:
            return rows
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(as_json(rows)))
    rows = json.loads(path.read_text())
    return [{name: np.nan if cell is None else cell for name, cell in row.items()} for row in rows]


def rows_through_training(epochs: int, images: int, seed: int = 0) -> list[dict]:
    """A small network on the digits: a row per look and block, before training and after the epochs 1, 2, 4, ...

    epochs  of the recipe "digits", after the last of which is the last look
    images  test images at which the spectra of the branches are taken, balanced over labels
    """
    data = datasets.load("digits")
    torch.manual_seed(seed)
    net = nb.resnet(DEPTH, len(data.names), widths=WIDTHS)
    looks = {0, *(2**k for k in range(epochs.bit_length())), epochs}
    return train_and_look(net, data, recipe("digits", epochs=epochs), seed, looks, images)


def train_papers_geometry(
    data, seed: int, images: int, folder: Path, device: str | None, epochs: int | None = None, width: int = 16
):
    """A ResNet-18 of the paper's geometry, a quarter as wide, trained and looked at after every epoch.

    folder  where the unfinished training and the rows of its looks are kept, so that a stopped one goes on
    epochs  another number than the recipe's
    width   channels of the first stage
    """
    torch.manual_seed(seed)
    widths = tuple(width * 2**stage for stage in range(4))
    net = nb.resnet(18, len(data.names), in_channels=data.test_images.shape[1], stem="cifar-pooled", widths=widths)
    how = recipe_of("short", data.name, epochs=epochs)
    path = folder / f"resnet18-width{width}-{data.name}-{how.epochs}-seed{seed}.safetensors"
    return train_and_look(net, data, how, seed, set(range(how.epochs + 1)), images, path, device, slices=True)


def train_and_look(net, data, how, seed: int, looks: set[int], images: int, path=None, device="cpu", slices=False):
    """Train a network and look at its blocks before training and after the epochs of `looks`: a row per look and block.

    how     the recipe
    path    a file for the network; rows of looks are kept beside it, so that a stopped training goes on with them
    slices  also look at slices, and then at blocks that change the shape, too
    """
    chosen = nested_images(data.test_labels.numpy(), -(-images // 10))[:images]
    net.normalisation = data.normalisation
    place = None if path is None else path.with_suffix(".looks.json")
    rows = keep_rows(place, list)

    def look(net, record):
        if record["epoch"] in looks and record["epoch"] not in {row["epoch"] for row in rows}:
            rows.extend(spectra_of(net, data, chosen, record["epoch"], slices))
            if place is not None:
                with replacing(place) as unfinished:
                    unfinished.write_text(json.dumps(as_json(rows)))

    look(net, {"epoch": 0})
    train(net, data, how, seed, path, device=device, quiet=True, on_epoch=look)
    return rows


def spectra_of(net, data, chosen, epoch: int, slices: bool = False) -> list[dict]:
    """The means over images of each branch, of the network as it is now, and its accuracy on all test images."""
    training = net.training
    accuracy = float(answers(net.eval(), data, np.arange(len(data.test_images)))[1].mean())
    net.train(training)
    images = prepare(net, data, data.test_images[chosen])
    inner = [name for stage in range(len(net.stages)) for name in inner_blocks(net, stage)]
    table = nb.block_survey(net, images, ("residual", "error"), inner, values="full")
    cut = nb.block_survey(net, images, "slices", rows=SLICE_ROWS) if slices else table[:0]
    rows = []
    for number, name in enumerate(net.block_names, 1):
        spectra, errors = (table[(table["block"] == name) & (table["kind"] == kind)] for kind in ("residual", "error"))
        own = cut[cut["block"] == name]
        if not len(spectra) and not len(own):
            continue
        row = {"epoch": epoch, "accuracy, %": 100 * accuracy, "block": number}
        row |= {measure: float(np.mean(spectra[measure])) if len(spectra) else np.nan for measure in MEASURES}
        error = float(np.median(errors["step_error"])) if len(errors) else np.nan
        row["step_error"] = error if np.isfinite(error) else np.nan  # as a file of rows has it
        if slices:
            row |= {"%, slices": 100 * float(own["negative"].mean())}
            row |= {"S, slices": float(np.nanmean(own["stiffness_index"]))}
        rows.append(row)
    return rows


def rows_of_depths(folder: Path, epochs: int) -> list[dict]:
    """A row per depth; minutes, so that rows and networks are kept in the folder."""
    rows = []
    for depth in DEPTHS:
        name = f"depth{depth}-{epochs}-seed0"
        made = functools.partial(row_of_depth, depth, epochs, 10, 0, folder / f"{name}.safetensors")
        rows += keep_rows(folder / f"{name}.json", lambda made=made: [made()])
    return rows


def row_of_depth(depth: int, epochs: int, images: int, seed: int, path=None) -> dict:
    """Train one network, or go on with the one in `path`, and summarise the branches of its blocks.

    depth   layers, 6 n + 2
    epochs  of the recipe "digits"
    images  test images that are looked at, balanced over labels
    """
    data = datasets.load("digits")
    torch.manual_seed(seed)
    net = nb.resnet(depth, len(data.names), widths=WIDTHS)
    train(net, data, recipe("digits", epochs=epochs), seed, path, device="cpu", quiet=True)
    chosen = nested_images(data.test_labels.numpy(), -(-images // 10))[:images]
    seen = prepare(net, data, data.test_images[chosen])
    blocks = [name for stage in range(len(net.stages)) for name in inner_blocks(net, stage)]
    spectra = nb.block_survey(net, seen, "residual", blocks, "full")
    norms = nb.block_survey(net, seen, ("norms", "error"), blocks)
    wrong, norms = (norms[norms["kind"] == kind] for kind in ("error", "norms"))
    right = answers(net, data, np.arange(len(data.test_images)))[1]
    return {
        "layers": depth,
        "seed": seed,
        "blocks": len(blocks),
        "accuracy, %": 100 * float(right.mean()),
        "sigma, median": float(np.median(norms["largest_singular"])),
        "sigma, largest": float(norms["largest_singular"].max()),
        "rho, median": float(np.median(spectra["spectral_radius"])),
        "min Re, lowest": float(spectra["min_re"].min()),
        "blocks beyond -2, %": 100 * float((spectra["min_re"] < -2.0).mean()),
        "NSI, median": float(np.median(wrong["nsi"])),
        "error, median": float(np.median(wrong["step_error"])),
    }


def exponent(rows: list[dict], measure: str) -> float:
    """The power of the number of blocks with which a measure changes, by least squares of logarithms."""
    x, y = (np.log([row[name] for row in rows]) for name in ("blocks", measure))
    return float(np.polyfit(x, y, 1)[0])
