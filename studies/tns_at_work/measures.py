"""What `tns_at_work` trains and measures: networks with TNS in their loss, networks before training, pruned ones."""

import contextlib
import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

import netbridge as nb
import odelab as ol
from netbridge.devices import best_device
from netbridge.tracing.batches import channels_last
from netbridge.train import epochs, loop
from studies.lab import measurements
from studies.lab.measurements import Measurement
from studies.lab.networks import Subject, read_subject
from studies.lab.results import source
from studies.lab.stiffness import (
    KINDS,
    QUANTITIES,
    READINGS,
    SCALE,
    SHAPE,
    TNS,
    mean_stiffness,
    prepare,
    trace_both,
)
from studies.tns_at_work import design
from studies.tns_at_work.design import Run

KEYS = tuple((what, reading) for what in QUANTITIES for reading in QUANTITIES[what])
RIVALS = ("parameters", "gradient")  # of TNS before training
ORDERS = SMALLEST, LARGEST, BY_LOSS, RANDOM = "smallest NSI", "largest NSI", "smallest loss", "random"


def carry_out(run: Run, work: Path, root: Path | None = None, device=None) -> Measurement:
    """Train the network of a run with its term in the loss, and keep what it scored and what it was before."""
    data = measurements.images_of(run.job.dataset, run.job.size, root)
    data = run.job.data_of(data)
    net = run.job.untrained_network(len(data.names), data.size)
    numbers: dict[str, Any] = {"before": before_training(run, data, device)}
    try:
        with nb.stiffness_term(net, run.weight):
            loop.train(net, data, run.job.recipe, run.job.seed, device=device, quiet=True)
    except ValueError as error:
        if not str(error).startswith(("`state`", "`slope`")):
            raise  # a wrong option, and no state that has become zero, by whose norm the index divides
        raise epochs.Diverged(f"TNS is not defined any more: {error}") from None
    records = trace_both(net, data, measurements.TRACED, device or best_device())
    numbers |= {key: net.about[key] for key in ("test_accuracy", "test_loss", "seconds")}
    numbers["made"] = {"threads": torch.get_num_threads(), "torch": torch.__version__, **source()}
    numbers |= totals(records)
    found = Measurement(run.specification, numbers, {})
    measurements.write(found, work / f"{run.stem}.npz")
    return found


def before_training(run: Run, data, device=None) -> dict:
    """Of an untrained network: TNS under every reading, its scale, parameters and the norm of the first gradient."""
    device = device or best_device()
    net = run.job.untrained_network(len(data.names), data.size).to(device)
    images = prepare(net, data, data.train_images[: design.SHOWN].to(device))
    labels = data.train_labels[: design.SHOWN].to(device)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # a running mean of what has been seen, which is one batch
    F.cross_entropy(net.train()(images), labels).backward()
    gradient = float(torch.stack([p.grad.norm() for p in net.parameters() if p.grad is not None]).norm())
    records = trace_both(net, data, design.SHOWN, device)
    return {
        **totals(records),
        "parameters": sum(p.numel() for p in net.parameters()),
        "gradient": gradient,
    }


def totals(records: nb.Records) -> dict:
    """TNS under every reading, and its scale by index."""
    return {
        "tns": [mean_stiffness(records[of], mu) for of, mu in READINGS],
        "scale": {of: float(records[of].counted().nsi.mean()) for of in KINDS},
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Architectures:
    """What n networks were before training, and how good they became.

    before       one number for each network, by (quantity, reading) of `stiffness.QUANTITIES`, "parameters", "gradient"
    accuracy     after training, per cent
    controllers  a name for each
    shapes       depth and width, a name for each
    """

    before: dict[Any, np.ndarray]
    accuracy: np.ndarray
    controllers: np.ndarray
    shapes: np.ndarray

    def __len__(self):
        return len(self.accuracy)

    def of(self, chosen: np.ndarray) -> "Architectures":
        """The chosen ones alone."""
        before = {key: values[chosen] for key, values in self.before.items()}
        return Architectures(before, self.accuracy[chosen], self.controllers[chosen], self.shapes[chosen])


def search(runs: list[Run], folders, root: Path | None = None, device=None) -> Architectures:
    """The architectures that are measured; what a file does not say of the untrained network is measured now."""
    rows: list[list[float]] = []
    about: list[tuple[float, str, str]] = []
    for run in runs:
        found = measurements.find(run, folders)
        if found is None:
            continue
        known = found.numbers.get("before", {})
        if "scale" not in known:  # of the study of the population, which looks at trained networks alone
            known = before_training(run, measurements.images_of(run.job.dataset, run.job.size, root), device)
        rows.append([quantity(known, what, reading) for what, reading in KEYS] + [known[key] for key in RIVALS])
        shape = f"{run.job.depth} layers, {run.job.width} channels"
        about.append((100.0 * found.numbers["test_accuracy"], run.job.label, shape))
    table = np.array(rows, dtype=float).reshape(-1, len(KEYS) + len(RIVALS))
    accuracy, controllers, shapes = zip(*about, strict=True) if about else ((), (), ())
    before = dict(zip((*KEYS, *RIVALS), table.T, strict=True))
    return Architectures(before, np.array(accuracy, dtype=float), np.array(controllers), np.array(shapes))


def quantity(known: dict, what: str, reading: tuple) -> float:
    """TNS, its scale or its shape, of what `before_training` returns; NaN where it is not defined."""
    tns = known["tns"][READINGS.index(reading)] if len(reading) == 2 else None
    parts = ol.TnsParts(float("nan") if tns is None else tns, known["scale"][reading[0]])
    return {TNS: parts.tns, SCALE: parts.scale, SHAPE: parts.shape}[what]


@dataclasses.dataclass(frozen=True)
class Pruned:
    """Accuracies of one network on test images without k of its counted blocks.

    controller, seed  of the network
    whole     accuracy of the whole network, per cent
    accuracy  by order and k; of random blocks the mean over the draws
    """

    controller: str
    seed: int | None
    whole: float
    accuracy: dict[str, dict[int, float]]

    @property
    def name(self) -> str:
        return self.controller if self.seed is None else f"{self.controller}, seed {self.seed}"

    def advantage(self, order: str, other: str) -> float:
        """By how many points the one order keeps more accuracy than the other, the mean over k."""
        pairs = zip(self.accuracy[order].values(), self.accuracy[other].values(), strict=True)
        return float(np.mean([a - b for a, b in pairs]))


@dataclasses.dataclass(frozen=True)
class Pruning:
    """The pruning of one network, which a file holds; the fields of the specification determine its result."""

    path: Path

    @property
    def family(self) -> str:
        """The folder of the network, which has the name of its data set."""
        return self.path.parent.name

    @property
    def stem(self) -> str:
        return f"pruned-{self.family}-{self.path.stem}"

    @property
    def specification(self) -> dict:
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]
        record = {"network": f"{self.family}/{self.path.name}", "digest": digest, "images": design.PRUNED_ON}
        return record | {"dropped": list(design.DROPPED), "draws": design.DRAWS}

    def find(self, folders) -> Pruned | None:
        found = measurements.find(self, folders)
        if found is None:
            return None
        numbers = found.numbers
        accuracy = {order: {int(k): x for k, x in of.items()} for order, of in numbers["accuracy"].items()}
        return Pruned(numbers["controller"], numbers["seed"], numbers["whole"], accuracy)

    def carry_out(self, data, work: Path, device) -> Pruned:
        found = prune(read_subject(self.path), data, device)
        measurements.write(Measurement(self.specification, dataclasses.asdict(found), {}), work / f"{self.stem}.npz")
        return found


def prune(subject: Subject, data, device, seed: int = 0) -> Pruned:
    """A network without some of its blocks, chosen on training images and tested on others."""
    net = channels_last(subject.net.to(device)).eval()
    count = design.PRUNED_ON
    chosen_on = prepare(net, data, data.train_images[:count].to(device)), data.train_labels[:count].to(device)
    tested_on = prepare(net, data, data.test_images[:count].to(device)), data.test_labels[:count].to(device)
    record = nb.trace(net, chosen_on[0])
    candidates = np.flatnonzero(~record.first)
    stiffness = record.nsi.mean(0)[candidates]
    losses = np.array([score(net, [block], *chosen_on)[0] for block in candidates])
    generator = np.random.default_rng(seed)
    accuracy: dict[str, dict[int, float]] = {order: {} for order in ORDERS}
    for k in (k for k in design.DROPPED if k < len(candidates)):
        for order, values in ((SMALLEST, stiffness), (LARGEST, -stiffness), (BY_LOSS, losses)):
            accuracy[order][k] = score(net, candidates[np.argsort(values)[:k]], *tested_on)[1]
        draws = [generator.choice(candidates, k, replace=False) for _ in range(design.DRAWS)]
        accuracy[RANDOM][k] = float(np.mean([score(net, blocks, *tested_on)[1] for blocks in draws]))
    return Pruned(subject.controller, subject.seed, score(net, [], *tested_on)[1], accuracy)


@torch.no_grad()
def score(net, blocks, images, labels) -> tuple[float, float]:
    """Loss, and accuracy in per cent, of a network without these blocks."""
    with contextlib.ExitStack() as without:
        for block in blocks:
            without.enter_context(nb.altered(net, int(block)))
        logits = net(images)
    return float(F.cross_entropy(logits, labels)), 100 * float((logits.argmax(1) == labels).double().mean())
