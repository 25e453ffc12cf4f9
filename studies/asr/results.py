"""Results of the study: one small JSON file per network, made by training and found again by its specification."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from netbridge.step_sizes import ASR
from netbridge.surgery.noise import NoisyNorm
from netbridge.tracing.gates import with_fresh_statistics
from netbridge.train import scoring
from studies.asr.dynamics import Observer
from studies.lab import jobs
from studies.lab.measurements import Score, remove_training, score_of
from studies.lab.networks import ZOO

SHIPPED = Path(__file__).parent / "shipped"
ROOMS = ("netbridge/spectrum",)  # what its bound on perturbations is computed by
BOUND_IMAGES = 16  # test images that perturbations are followed on
PROBES = 384  # training images at which gates are looked at: three batches, which give statistics to untrained networks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result(Score):
    """What a network scored on the test set after its last epoch, and what its gates were before and after.

    blocks      per block a record, see `block_records`
    noisy       where the noise is random: (errors, loss) with noise on in the test as well; the other score is without
    bound       of ResNets without noise: log10 of Theorem 6.1's bound behind the last block, and the growth measured
    beyond      where constants were put in place of gates: points above the network with its gates, and their interval
    """

    study, tuples = "asr", ("noisy", "bound", "beyond")

    blocks: list
    noisy: tuple[int, float] | None = None
    bound: tuple[float, float] | None = None
    beyond: tuple[float, float, float] | None = None

    @property
    def noisy_accuracy(self) -> float:
        """Per cent, with random noise in the test as well."""
        errors = self.test_errors if self.noisy is None else self.noisy[0]
        return 100.0 * (self.test_images - errors) / self.test_images


def find(run, folders) -> Result | None:
    """The result of exactly this network in the first folder that has one."""
    return Result.find(run.stem, run.job.specification, run.job.recipe, folders)


def carry_out(run, data, work: Path, destination: Path, device=None, keep: bool = False) -> Result:
    """Train one network, or take the shipped one, look at its gates and write down what it scored."""
    data = run.job.data_of(data)
    path = work / f"{run.stem}.safetensors"
    shipped = shipped_network(run)
    if shipped is not None:
        net, log = shipped
    else:
        observer = Observer(data) if run.observed else None
        net = jobs.train(run.job, data, path, "asr", device, on_epoch=observer)
        log = path.with_suffix(".jsonl")
    result = measure(run, net, data, log)
    result.write(destination / f"{run.stem}.json")
    if shipped is None and not keep:
        remove_training(path)
    return result


def shipped_network(run) -> tuple[nb.Network, Path] | None:
    """The shipped network of exactly this job and its log; None where there is none."""
    job = run.job
    path = ZOO / job.dataset / f"{job.stem}.safetensors"
    if run.observed or job.start or job.noise or job.size or job.images or not path.is_file():
        return None
    log = path.with_suffix(".jsonl")
    if not jobs.same_recipe(json.loads(log.read_text().split("\n", 1)[0])["recipe"], job.recipe):
        return None
    return nb.load(path), log


def measure(run, net, data, log: Path, beyond: tuple[float, float, float] | None = None) -> Result:
    """From the finished network and its log."""
    net, job = net.to("cpu"), run.job
    usual = job.network == "resnet" and not job.options and beyond is None
    shown = data.normalised(data.train_images[:PROBES])
    score = score_of(net, data, job.specification, log, ROOMS)
    score["log"] = [{key: five_digits(value) for key, value in record.items()} for record in score["log"]]
    return Result(
        **score,
        blocks=block_records(job.untrained_network(len(data.names)), net, shown) if usual else [],
        noisy=noisy_score(net, data, run.seed),
        bound=bound_and_growth(net, data) if usual and not job.noise else None,
        beyond=beyond,
    )


def block_records(start, end, images) -> list[dict]:
    """Per block, each a pair (before training, after it) unless said otherwise.

    mean, std   of the mean gates of the channels: over the channels
    share       of the gates' variance that is channel; None where a gate is the same for all images
    alive       hidden units above zero for some image; `hidden` is how many there are
    origin      correlation over the channels between the mean gates before and after; one number or None
    psi         mean and standard deviation of ASR's vector after training, and its mean before; or None
    scale       mean and standard deviation of the last normalisation's scale after training
    """
    before = nb.gates(with_fresh_statistics(start, images), images)
    records = []
    for old, new, first, last in zip(before, nb.gates(end, images), start.blocks, end.blocks, strict=True):
        h = [gates.h.double().mean(0) for gates in (old, new)]
        varies = len(new.h) > 1
        weight = last.branch.last.weight.detach().double()
        record = {
            "mean": [five_digits(x.mean()) for x in h],
            "std": [five_digits(x.std(correction=0)) for x in h],
            "share": [five_digits(gates.share) for gates in (old, new)] if varies else None,
            "alive": [old.alive, new.alive],
            "hidden": new.hidden,
            "origin": five_digits(correlation(*h)),
            "psi": None,
            "scale": [five_digits(weight.mean()), five_digits(weight.std(correction=0))],
        }
        if isinstance(last.controller, ASR):
            psi = last.controller.psi.detach().double()
            values = (psi.mean(), psi.std(correction=0), first.controller.psi.detach().mean())
            record["psi"] = [five_digits(value) for value in values]
        records.append(record)
    return records


def correlation(x, y) -> float:
    """Of two vectors; nan where one of them is constant."""
    if min(x.std(), y.std()) < 1e-9:
        return math.nan
    return float(torch.corrcoef(torch.stack((x, y)))[0, 1])


def five_digits(value):
    """Five digits of a number, None for one that is no number; anything else as it is."""
    if isinstance(value, torch.Tensor):
        value = float(value)
    if isinstance(value, dict):
        return {key: five_digits(one) for key, one in value.items()}
    if isinstance(value, list):
        return [five_digits(one) for one in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.5g}") if math.isfinite(value) else None


def bound_and_growth(net, data) -> tuple[float, float]:
    """log10 of the bound on a perturbation behind the last block, and its largest growth on the first test images."""
    found = nb.perturbation_bound(net, data.normalised(data.test_images[:BOUND_IMAGES]))
    return five_digits(float(np.log10(found.bound[-1]))), five_digits(float(found.measured[-1]))


def noisy_score(net, data, seed: int) -> tuple[int, float] | None:
    """(errors, loss) on the test images with random noise on; None where the network has none."""
    norms = [module for module in net.modules() if isinstance(module, NoisyNorm) and module.deviation]
    if not norms:
        return None
    for norm in norms:
        norm.at_test = True
    torch.manual_seed(seed)
    score = scoring.evaluate(net, data)
    for norm in norms:
        norm.at_test = False
    return score["test_errors"], score["test_loss"]
