"""What `tns_at_work` trains and measures: networks with TNS in their loss, networks before training, pruned ones."""

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

import netbridge as nb
from netbridge.devices import best_device
from netbridge.tracing.batches import channels_last
from netbridge.train import epochs, loop
from studies.lab import measurements
from studies.lab.measurements import Measurement
from studies.lab.networks import Subject
from studies.lab.results import source
from studies.lab.stiffness import READINGS, mean_stiffness, prepare, trace_both
from studies.tns_at_work import design
from studies.tns_at_work.design import Run

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
    numbers["tns"] = [mean_stiffness(records[of], mu) for of, mu in READINGS]
    found = Measurement(run.specification, numbers, {})
    measurements.write(found, work / f"{run.stem}.npz")
    return found


def before_training(run: Run, data, device=None) -> dict:
    """TNS under every reading, parameters and the norm of the first gradient of an untrained network."""
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
        "tns": [mean_stiffness(records[of], mu) for of, mu in READINGS],
        "parameters": sum(p.numel() for p in net.parameters()),
        "gradient": gradient,
    }


@dataclasses.dataclass(frozen=True)
class Pruned:
    """Accuracies of one network on test images without k of its counted blocks.

    name      controller and seed
    whole     accuracy of the whole network, per cent
    accuracy  by order and k; of random blocks the mean over the draws
    """

    name: str
    whole: float
    accuracy: dict[str, dict[int, float]]

    def advantage(self, order: str, other: str) -> float:
        """By how many points the one order keeps more accuracy than the other, the mean over k."""
        pairs = zip(self.accuracy[order].values(), self.accuracy[other].values(), strict=True)
        return float(np.mean([a - b for a, b in pairs]))


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
    name = subject.name if subject.seed is None else f"{subject.name}, seed {subject.seed}"
    return Pruned(name, score(net, [], *tested_on)[1], accuracy)


@torch.no_grad()
def score(net, blocks, images, labels) -> tuple[float, float]:
    """Loss, and accuracy in per cent, of a network without these blocks."""
    with contextlib.ExitStack() as without:
        for block in blocks:
            without.enter_context(nb.altered(net, int(block)))
        logits = net(images)
    return float(F.cross_entropy(logits, labels)), 100 * float((logits.argmax(1) == labels).double().mean())
