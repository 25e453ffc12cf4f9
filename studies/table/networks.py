"""Trained networks on the disk: what their files say of them, and which cell of a table they belong to."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

from netbridge.checkpoint import read_header
from netbridge.train.journal import run_of
from netbridge.train.recipes import RECIPES, Recipe
from studies.lab.jobs import same_recipe
from studies.lab.networks import controller_of
from studies.table.design import IMAGES, Scale


@dataclasses.dataclass(frozen=True)
class Trained:
    """One trained network, its weights unread.

    dataset, controller, seed  what it is
    scale     how large, and how trained
    accuracy  per cent of the test images
    seconds   of training
    """

    dataset: str
    controller: str
    seed: int
    scale: Scale
    accuracy: float
    seconds: float


def read_all(folders: Iterable[Path]) -> tuple[list[Trained], list[str]]:
    """(the networks of all folders and their subfolders, why others are left out).

    A network that is there twice counts once.
    """
    found: dict[tuple, Trained] = {}
    left_out = []
    for path in (path for folder in folders for path in sorted(Path(folder).rglob("*.safetensors"))):
        one = read(path)
        if isinstance(one, str):
            left_out.append(f"{path}: {one}")
            continue
        found.setdefault((one.dataset, one.controller, one.seed, one.scale), one)
    return list(found.values()), left_out


def read(path: Path) -> Trained | str:
    """What a file says of its network, or why it has no place in a table."""
    try:
        header = read_header(path)
        about, config = header.get("about") or {}, header["config"]
        run = run_of(path, header)
        scale = scale_of(config, about, run)
        one = Trained(
            *(about["dataset"], controller_of(config), about["seed"], scale, 100 * about["test_accuracy"]),
            float(about.get("seconds", "nan")),
        )
    except (KeyError, TypeError, ValueError) as error:
        return f"says too little of its training ({error})"
    if on_some_blocks(config):
        return "has a controller on some blocks only"
    shown, whole = run["dataset"].get("images"), IMAGES.get(one.dataset)
    if shown is not None and whole is not None and shown != whole:
        return f"saw {shown:,} of {whole:,} images"
    return one


def on_some_blocks(config: dict) -> bool:
    """Were blocks chosen? A block that opens a stage may have none by nature: StepNet needs a state before it."""
    openings = {sum(config["blocks"][:stage]) for stage in range(len(config["blocks"]))}
    inner = [one for number, one in enumerate(config["controllers"]) if number not in openings]
    return len({json.dumps(one, sort_keys=True) for one in inner}) > 1


def scale_of(config: dict, about: dict, run: dict) -> Scale:
    """The scale of a trained network; its recipe is the known one where all that matters is the same."""
    record = run["recipe"]
    usual = RECIPES.get(record["name"])
    how = usual if usual is not None and same_recipe(record, usual) else name_by_difference(record, usual)
    network, depth = config.get("family", "resnet"), about["depth"]
    if network == "vit":  # two steps make a block
        network, depth = "vit-conv" if config["stem"] == "conv" else "vit", sum(config["blocks"]) // 2
    return Scale(network, depth, config["widths"][0], how)


def name_by_difference(record: dict, usual: Recipe | None) -> Recipe:
    """A recipe that was changed carries the most telling of its changes in its name."""
    epochs = record["epochs"]
    changed = "" if usual is not None and epochs == usual.epochs else f" for {epochs} epochs"
    return Recipe(f"{record['name']}{changed or ', changed'}", epochs)
