"""Results of `step_control`: one small JSON file per network, made by training and found again by its specification."""

import dataclasses
import json
from pathlib import Path

import torch

import netbridge as nb
from netbridge.files import replacing
from netbridge.train import loop
from studies.lab import jobs
from studies.lab.measure import prepared
from studies.lab.results import commit

SHIPPED = Path(__file__).parent / "shipped"
FORMAT = 1
TRACED = 1000  # training images: the choice of blocks must not have seen the test set


@dataclasses.dataclass(frozen=True)
class Result:
    """What a network scored on the test set, and how stiff each of its blocks was on training images.

    specification, recipe  everything that determines the network; the recipe in full
    test_errors, test_images, test_loss  its score on the test set
    parameters  how many numbers were trained
    nsi         per block, the mean of ||f|| / ||x|| over `traced` training images
    log         one record per epoch, as training wrote it
    made        seconds, threads, device, version of torch, commit
    """

    specification: dict
    recipe: dict
    test_errors: int
    test_images: int
    test_loss: float
    parameters: int
    nsi: tuple[float, ...]
    traced: int
    log: list
    made: dict = dataclasses.field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """Per cent."""
        return 100.0 * (self.test_images - self.test_errors) / self.test_images

    @property
    def seed(self) -> int:
        return self.specification["seed"]

    def __str__(self):
        return f"{self.accuracy:.2f} % on the test set, {self.made['seconds']:.0f} s of training."


def write(result: Result, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps({"format": FORMAT, **dataclasses.asdict(result)}, indent=1) + "\n")
    return path


def read(path: Path) -> Result:
    try:
        record = json.loads(path.read_text())
        if record.pop("format") != FORMAT:
            raise ValueError(f"another format than {FORMAT}")
        return Result(**{**record, "nsi": tuple(record["nsi"])})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SystemExit(f"{path}: damaged, or no result of step_control ({error}). Delete it to train anew.") from None


def find(run, folders) -> Result | None:
    """The result of exactly this run in the first folder that has one."""
    for folder in folders:
        path = Path(folder) / f"{run.stem}.json"
        if not path.is_file():
            continue
        result = read(path)
        if result.specification != run.specification or not jobs.same_recipe(result.recipe, run.scale.recipe):
            raise SystemExit(f"{path}: holds the result of another run than its name says. Delete it to train anew.")
        return result
    return None


def carry_out(run, data, work: Path, destination: Path, device=None, keep: bool = False) -> Result:
    """Train one network, or go on with it, trace it, and write down what it scored; the weights go unless kept."""
    path = work / f"{run.stem}.safetensors"
    net = jobs.train(run.job, data, path, "step_control", device)
    result = measured(run, net, data, path, device)
    write(result, destination / f"{run.stem}.json")
    if not keep:
        for ending in (".safetensors", ".jsonl", ".resume"):
            path.with_suffix(ending).unlink(missing_ok=True)
    return result


def measured(run, net, data, path: Path, device) -> Result:
    """From the finished network and its log."""
    head, *log = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
    return Result(
        specification=run.specification,
        recipe=head["recipe"],
        test_errors=net.about["test_errors"],
        test_images=len(data.test_labels),
        test_loss=net.about["test_loss"],
        parameters=sum(p.numel() for p in net.parameters()),
        nsi=tuple(stiffness(net, data, device)),
        traced=min(TRACED, len(data.train_images)),
        log=log,
        made={
            "seconds": net.about["seconds"],
            "threads": torch.get_num_threads(),
            "device": head["device"],
            "torch": head["torch"],
            "commit": commit(),
        },
    )


def stiffness(net, data, device) -> list[float]:
    """Per block the mean NSI of its branch over training images."""
    net = net.to(device or loop.best_device())
    images = data.train_images[:TRACED].to(next(net.parameters()).device)
    return nb.trace(net, prepared(net, data, images), of="slope").nsi.mean(0).tolist()
