"""Results of `step_control`: one small JSON file per network, made by training and found again by its specification."""

import dataclasses
from pathlib import Path

import netbridge as nb
from netbridge.devices import best_device
from studies.lab import jobs
from studies.lab.measurements import Score, remove_training, score_of
from studies.lab.stiffness import prepare

SHIPPED = Path(__file__).parent / "shipped"
TRACED = 1000  # training images: the choice of blocks must not have seen the test set


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result(Score):
    """What a network scored on the test set, and how stiff each of its blocks was on training images.

    nsi     per block, the mean of ||f|| / ||x|| over `traced` training images
    """

    study, tuples = "step_control", ("nsi",)

    nsi: tuple[float, ...]
    traced: int


def find(run, folders) -> Result | None:
    """The result of exactly this run in the first folder that has one."""
    return Result.find(run.stem, run.specification, run.scale.recipe, folders)


def carry_out(run, data, work: Path, destination: Path, device=None, keep: bool = False) -> Result:
    """Train one network, or go on with it, trace it, and write down what it scored; the weights go unless kept."""
    path = work / f"{run.stem}.safetensors"
    net = jobs.train(run.job, data, path, "step_control", device)
    result = measure(run, net, data, path, device)
    result.write(destination / f"{run.stem}.json")
    if not keep:
        remove_training(path)
    return result


def measure(run, net, data, path: Path, device) -> Result:
    """From the finished network and its log."""
    return Result(
        **score_of(net, data, run.specification, path.with_suffix(".jsonl")),
        nsi=tuple(stiffness(net, data, device)),
        traced=min(TRACED, len(data.train_images)),
    )


def stiffness(net, data, device) -> list[float]:
    """Per block the mean NSI of its branch over training images."""
    net = net.to(device or best_device())
    images = data.train_images[:TRACED].to(next(net.parameters()).device)
    return nb.trace(net, prepare(net, data, images), of="slope").nsi.mean(0).tolist()
