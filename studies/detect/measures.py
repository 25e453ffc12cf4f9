"""What `detect` trains and measures: average precision, and the stiffness of the backbone before and after."""

import copy
import dataclasses
import json
from pathlib import Path

import filelock
import numpy as np
import torch

import netbridge as nb
from netbridge import detect
from netbridge.detect.scenes import to_test
from netbridge.devices import best_device
from netbridge.train import distributed
from studies.detect import design
from studies.detect.design import Run
from studies.lab import measurements
from studies.lab.measurements import Measurement
from studies.lab.results import source
from studies.lab.stiffness import KINDS, READINGS, mean_stiffness

ROOMS = ("netbridge/detect",)  # what detectors are trained and measured by beside what every network is


@dataclasses.dataclass(frozen=True)
class Machine:
    """How to train here: the options of `detect.train` that change no result."""

    device: str | None = None
    workers: int = 0
    parts: int | None = None
    checkpoint_minutes: float | None = None


def scenes(run: Run, out: Path, root: Path | None = None) -> detect.Coco:
    """The pictures of a run: COCO under `root`, or made-up scenes, drawn into `out` where they are missing."""
    if root is not None:
        return detect.load(root, short=run.size, long=5 * run.size // 3)  # 1333 for 800, as everybody has it
    (train, test), size = run.pictures, run.size
    folder = out / f"scenes-{train}-{test}-{size}"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / "lock"):
            if not (folder / "ready").exists():
                detect.shapes(folder, train, test, size)
                (folder / "ready").touch()
    return detect.load(folder / "coco", short=size)


def carry_out(run: Run, data: detect.Coco, work: Path, weights=None, machine: Machine | None = None) -> Measurement:
    """Train the detector of a run in the folder `work`, or go on with it, and measure it.

    The weights of a detector of made-up scenes are deleted when it is measured; those of COCO stay.
    """
    machine = machine or Machine()
    device = machine.device or best_device()
    net = run.untrained_detector(data.names, weights)
    images = 16 if run.dataset == design.MADE_UP else 1
    before = stiffness(calibrate(net.to(device), data), data, images)
    path = work / f"{run.stem}.safetensors"
    detect.train(
        *(net, data, run.recipe, run.seed, path, {"controller": run.controller}, device),
        workers=machine.workers,
        parts=machine.parts,
        checkpoint_minutes=machine.checkpoint_minutes,
    )
    log = distributed.from_first(lambda: [json.loads(line) for line in lines_of(path.with_suffix(".jsonl"))[1:]])
    found = detect.results(net, data, run.recipe.batch)
    after = stiffness(net, data, images)
    shown = {image["id"] for image in data.test.images[: design.SHOWN]}
    numbers = {
        **detect.average_precision(data, found),
        "before": totals(before),
        "after": totals(after),
        "first": after.first.tolist(),
        "blocks": list(after["slope"].names),
        "parameters": sum(x.numel() for x in net.parameters()),
        "log": log,
        "shown": [one for one in found if one["image_id"] in shown],
        "made": {"seconds": net.about["seconds"], "threads": torch.get_num_threads(), **source(ROOMS, ROOMS)},
    }
    arrays = {
        f"nsi_{moment}": records["slope"].nsi.astype(np.float32)
        for moment, records in (("before", before), ("after", after))
    }
    measured = Measurement(run.specification, numbers, arrays)
    if distributed.rank() == 0:
        if run.dataset != design.MADE_UP:
            (work / f"{run.stem}.detections.json").write_text(json.dumps(found))
        measurements.write(measured, work / f"{run.stem}.npz")
        if run.dataset == design.MADE_UP:
            for ending in (".safetensors", ".jsonl"):
                path.with_suffix(ending).unlink(missing_ok=True)
    distributed.wait()
    return measured


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def calibrate(net: detect.Detector, data: detect.Coco) -> detect.Detector:
    """The untrained detector; fresh normalisations have seen one batch of the test pictures, else they do nothing."""
    if net.frozen_norms:
        return net
    net = copy.deepcopy(net)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # a mean of all that is seen
    _, images, _ = next(to_test(data, design.TRACED, device=next(net.parameters()).device))
    with torch.no_grad():
        net.backbone.train()(images)
    return net


def stiffness(net: detect.Detector, data: detect.Coco, at_once: int) -> nb.Records:
    """Both stiffness indices of the backbone on the first test pictures."""
    device = next(net.parameters()).device
    some = dataclasses.replace(data, test=dataclasses.replace(data.test, images=data.test.images[: design.TRACED]))
    backbone = net.eval().backbone
    return nb.Records.merge(
        [nb.trace(backbone, images, of=KINDS) for _, images, _ in to_test(some, at_once, device=device)]
    )


def totals(records: nb.Records) -> dict:
    """TNS under every reading, its scale by index, and the mean slope NSI of every block."""
    return {
        "scale": {of: float(records[of].counted().nsi.mean()) for of in KINDS},
        "tns": [mean_stiffness(records[of], mu) for of, mu in READINGS],
        "nsi": records["slope"].nsi.mean(0).tolist(),
    }
