"""What needs no training: gates of shipped networks and what replaces them, bounds, class maps, speed and merging."""

import copy
import dataclasses
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import netbridge as nb
from netbridge.surgery.fold import fold
from netbridge.tracing import activation_maps, gates
from netbridge.tracing.batches import channels_last
from studies.asr import design
from studies.asr.results import BOUND_IMAGES, correlation
from studies.lab import jobs, networks
from studies.lab.clock import interleave, quartiles, ratios
from studies.lab.networks import ZOO
from studies.lab.statistics import Estimate, choices, estimate, mean_from_sums

MEANS = 1500  # training images that mean gates are taken over
UNTRAINED = 384  # training images of an untrained network: three batches of statistics
ROLL = 6  # pixels by which pictures are rolled


@dataclasses.dataclass(eq=False)
class Shares:
    """One network's gates: per block, how much of their variance is the channel's alone, and where the means come from.

    name, seed     the module and the seed, or the file's name where it is not known
    share          of the trained network, with intervals over images
    untrained      of the network of the same seed before training; nan where nothing varied
    pooled         of the mean of the slope over the map, which the module sees
    classes        share of the variance over images that lies between classes
    origin         correlation over channels of the mean gates before and after training
    start, end     mean gates of every block, (C,), before and after
    alive, hidden  hidden units above zero for some image, and how many there are
    values         gates of the first images at the first block of every stage, for the figure
    """

    name: str
    seed: int | str
    share: list[Estimate]
    untrained: list[float]
    pooled: list[float]
    classes: list[float]
    origin: list[float]
    start: list[np.ndarray]
    end: list[np.ndarray]
    alive: list[int]
    hidden: list[int]
    values: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Replaced:
    """What test accuracy changes by, in points, when every gate becomes its mean; paired over images.

    change      all gates at their means at once
    sequential  the mean gate of a block taken where the blocks before it have theirs already
    anew        as `change`, with the statistics of the normalisations taken anew
    """

    name: str
    seed: int | str
    accuracy: float
    change: Estimate
    sequential: Estimate
    anew: Estimate
    share: float


def shipped(dataset: str, controller: str, seeds) -> list[tuple[int, Path]]:
    """Files of the shipped networks with a controller."""
    found = [(seed, sorted((ZOO / dataset).glob(f"*-{controller}-seed{seed}.safetensors"))) for seed in seeds]
    return [(seed, path) for seed, paths in found for path in paths if wanted(path, controller)]


def wanted(path: Path, controller: str) -> bool:
    """Does the whole of the name's middle say this controller?"""
    return path.stem.split("-seed")[0].split("-", 2 if "-width" in path.stem else 1)[-1] == controller


def shipped_network(path: Path) -> nb.Network:
    """The network of a checkpoint, laid out as the processor likes it."""
    return channels_last(networks.subject(path).net)


def constant_copy(path: Path, data) -> nb.Network:
    """The network of a checkpoint with every gate at its mean over the first training images."""
    net = shipped_network(path)
    shown = data.normalised(data.train_images[:MEANS]).contiguous(memory_format=torch.channels_last)
    return gates.with_constant_gates(net, [one.h.mean(0) for one in nb.gates(net, shown)])


def untrained(path: Path) -> nb.Network | None:
    """The network of a checkpoint as its training began: the same seed, the same constructor, the same draws.

    None where the checkpoint does not say how it began, or says it of a network of another shape.
    """
    net = networks.subject(path).net
    about, widths = net.about, net.config["widths"]
    if not {"dataset", "controller", "seed", "depth"} <= about.keys():
        return None
    recipe = jobs.recipe_of("short", about["dataset"])
    job = jobs.Job(about["dataset"], about["controller"], about["seed"], recipe, about["depth"], widths[0])
    start = job.untrained(net.config["num_classes"])
    shapes = [{key: x.shape for key, x in one.state_dict().items()} for one in (start, net)]
    return start if shapes[0] == shapes[1] else None


def shares(name: str, seed, path: Path, data, images: int, resamples: int) -> tuple[Shares, list]:
    """The statistics of one network, and its gates on the training images."""
    net = shipped_network(path)
    shown = data.normalised(data.train_images[:MEANS]).contiguous(memory_format=torch.channels_last)
    first = shown[:UNTRAINED]
    start = untrained(path)
    before = [] if start is None else nb.gates(gates.with_fresh_statistics(start, first), first)
    after = nb.gates(net, shown)
    some = min(images, len(shown))
    chosen = choices(some, resamples, seed=0)
    labels = data.train_labels[:some]
    ends = [one.h.mean(0) for one in after]
    starts = [one.h.mean(0) for one in before] or [torch.full_like(end, torch.nan) for end in ends]
    firsts = [sum(net.config["blocks"][:stage]) for stage in range(len(net.config["blocks"]))]
    last = firsts[-1]
    found = Shares(
        name,
        seed,
        share=[resampled_share(one.h[:some], chosen) for one in after],
        untrained=[one.share for one in before] or [float("nan")] * len(after),
        pooled=[gates.constant_share(one.pooled[:some]) for one in after],
        classes=[class_share(one.h[:some], labels) for one in after],
        origin=[correlation(a.double(), b.double()) for a, b in zip(starts, ends, strict=True)],
        start=[x.numpy() for x in starts],
        end=[x.numpy() for x in ends],
        alive=[one.alive for one in after],
        hidden=[one.hidden for one in after],
        values={
            "input, trained": after[last].pooled[:20, :60].numpy(),
            "gate, trained": after[last].h[:20, :60].numpy(),
        }
        | ({"gate, untrained": before[last].h[:20, :60].numpy()} if before else {}),
    )
    return found, after


def resampled_share(h: torch.Tensor, chosen: np.ndarray) -> Estimate:
    """`constant_share` with its percentile interval over the images."""
    values = h.double().numpy()
    counts = np.stack([np.bincount(rows, minlength=len(values)) for rows in chosen]) / len(values)
    means, squares = counts @ values, counts @ values**2
    between, within = means.var(axis=1), (squares - means**2).clip(0).mean(axis=1)
    with np.errstate(invalid="ignore"):
        return estimate(gates.constant_share(h), between / (between + within))


def class_share(h: torch.Tensor, labels: torch.Tensor) -> float:
    """Of the variance of gates over images, the share that lies between the means of the classes."""
    values = h.double()
    total = float(values.var(0, correction=0).sum())
    mean = values.mean(0)
    parts = [
        (values[labels == k].mean(0) - mean).square().sum() * (labels == k).double().mean() for k in labels.unique()
    ]
    return float(sum(parts)) / total if total > 0 else float("nan")


def replaced(found: Shares, after, path: Path, data, images: int) -> Replaced:
    """The test accuracy with every gate at its mean over training images, also with statistics taken anew."""
    net = shipped_network(path)
    constant = gates.with_constant_gates(net, [one.h.mean(0) for one in after])
    anew = gates.with_fresh_statistics(constant, data.normalised(data.train_images[: 8 * 128]))
    right = correct(net, data, images)
    shown = data.normalised(data.train_images[:MEANS]).contiguous(memory_format=torch.channels_last)
    sequential = gates.with_constant_gates(net, one_after_the_other(net, shown))
    changes = [change(right, correct(other, data, images)) for other in (constant, sequential, anew)]
    mean_share = float(np.nanmean([one.value for one in found.share]))
    return Replaced(found.name, found.seed, 100 * float(right.mean()), changes[0], changes[1], changes[2], mean_share)


class Meaning(nb.Controller):
    """A controller whose step size is the mean over the batch of another one's; it keeps the last."""

    def __init__(self, controller: nb.Controller):
        super().__init__()
        self.controller, self.mean = controller, torch.empty(0)

    def propose(self, memory, state, slope):
        h, memory = self.controller.propose(memory, state, slope)
        self.mean = h.mean(0, keepdim=True)
        return self.mean, memory


@torch.no_grad()
def one_after_the_other(net, images) -> list[torch.Tensor]:
    """Mean gates of a network, each block's behind blocks whose gates are at their means: one pass over all images."""
    net = copy.deepcopy(net).eval()
    for block in net.blocks:
        block.controller = Meaning(block.controller)
    net(images)
    return [block.controller.mean.flatten() for block in net.blocks]


def correct(net, data, images: int) -> np.ndarray:
    """Which of the first test images are classified correctly, as 0 and 1."""
    answers = []
    with torch.no_grad():
        for part in data.test_images[:images].split(250):
            shown = data.normalised(part).contiguous(memory_format=torch.channels_last)
            answers.append(net.eval()(shown).argmax(1))
    return (torch.cat(answers) == data.test_labels[:images]).double().numpy()


def change(before: np.ndarray, after: np.ndarray) -> Estimate:
    """Points gained, with Student's interval over the paired images."""
    points = 100.0 * (after - before)
    return mean_from_sums(len(points), float(points.sum()), float((points**2).sum()))


def bounds(name: str, seed, path: Path, data, images: int = BOUND_IMAGES) -> dict:
    """Theorem 6.1's bound of one network and what it measures, as numbers."""
    net = networks.subject(path).net
    found = nb.perturbation_bound(net, data.normalised(data.test_images[:images]))
    return {
        "name": name,
        "seed": seed,
        "bound": np.log10(found.bound),
        "alpha": found.alpha,
        "norm": found.lipschitz,
        "growth": found.measured,
    }


def maps(name: str, seed, path: Path, data, images: int) -> dict:
    """Grad-CAM of test images, straight and with the pictures rolled by six pixels to the right."""
    net = shipped_network(path)
    shown, labels = data.normalised(data.test_images[:images]), data.test_labels[:images]
    straight = activation_maps.class_maps(net, shown, labels)
    rolled = activation_maps.class_maps(net, shown.roll(ROLL, dims=3), labels)
    moved = torch.nn.functional.pad(shown, (ROLL, 0, 0, 0))[..., : shown.shape[3]]  # the mean colour comes in
    padded = activation_maps.class_maps(net, moved, labels)
    mass = activation_maps.central_mass(straight)
    seen = mass[mass.isfinite()].double()
    centres = [activation_maps.centre_of_mass(one)[:, 1] for one in (straight, rolled, padded)]
    cells = ROLL * straight.shape[2] / shown.shape[3]
    return {
        "name": name,
        "seed": seed,
        "mass": mean_from_sums(len(seen), float(seen.sum()), float((seen**2).sum())),
        "draws": seen.numpy(),
        "shift": float((centres[1] - centres[0]).nanmean()),
        "padded": float((centres[2] - centres[0]).nanmean()),
        "cells": cells,
        "straight": (straight / straight.sum((1, 2), keepdim=True)).nanmean(0).numpy(),
        "rolled": (rolled / rolled.sum((1, 2), keepdim=True)).nanmean(0).numpy(),
    }


def positions(seed, path: Path, data, images: int) -> dict:
    """CBAM's spatial gates: per block the share of their variance that is the position's, and their mean maps."""
    net = shipped_network(path)
    seen: list[list] = [[] for _ in net.blocks]
    hooks = [
        block.controller.spatial_norm.register_forward_hook(
            lambda _, args, out, kept=kept: kept.append(torch.sigmoid(out)[:, 0])
        )
        for block, kept in zip(net.blocks, seen, strict=True)
    ]
    correct(net, data, images)
    for hook in hooks:
        hook.remove()
    spatial = [torch.cat(kept) for kept in seen]
    return {
        "seed": seed,
        "share": [gates.constant_share(one.flatten(1)) for one in spatial],
        "maps": [one.mean(0).numpy() for one in spatial],
    }


def attention(name: str, seed, path: Path, data, images: int) -> dict:
    """A transformer's attention: per block the share of its variance that is the position's, and its mean."""
    net = networks.subject(path).net
    found = nb.attention_values(net, data.normalised(data.test_images[:images]))
    return {
        "name": name,
        "seed": seed,
        "share": [one.constant for one in found],
        "maps": [one.mean.mean(0) for one in found],
    }


SPEEDS = {
    "SE": "se",
    "IE": "ie",
    "SRM": "srm",
    "SPA": "spa",
    "CBAM": "cbam",
    "DIA": "dia",
    "ECA": "eca",
    "ASR(SE) as trained": "asr(se)",
}


Speeds = dict[str, tuple[float, tuple[float, float] | None]]


def speeds(depth: int, size: int, batch: int, seconds: float) -> Speeds:
    """Images per second relative to the plain network: the median over interleaved rounds, and quartiles.

    One thread, and its processor time: what else the machine does counts for little.
    """
    images = torch.randn(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    nets: dict[str, torch.nn.Module] = {
        "plain": nb.resnet(depth),
        "plain, again": nb.resnet(depth),
    }  # the second shows what the clock is worth
    nets |= {name: nb.resnet(depth, controller=text) for name, text in SPEEDS.items()}
    nets["ASR(SE) merged"] = nb.merge(nets["ASR(SE) as trained"])
    nets["ASR(SE) folded"] = fold(nets["ASR(SE) merged"])
    for net in nets.values():
        channels_last(net).eval()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            timed = interleave([lambda net=net: net(images) for net in nets.values()], seconds=seconds)
    finally:
        torch.set_num_threads(threads)
    plain = timed[0].processor
    found = {name: ratios(plain, sample.processor) for name, sample in zip(nets, timed, strict=True)}
    return {name: (statistics.median(each), quartiles(each)) for name, each in found.items()}


GATES = {
    "ASR(SE)": nb.asr("se"),
    "ASR(SE, uses=2)": nb.asr("se", uses=2),
    "vector": nb.asr(None, init=0.7, spread=0.3),
    "tanh, negative": nb.asr(None, init=-0.4, spread=0.2),
    "constant -0.3": nb.controller("constant", value=-0.3),
    "bias": nb.controller("bias", init=0.3),
}
FEW_GATES = {name: GATES[name] for name in ("ASR(SE)", "constant -0.3")}


def merging(kinds: dict) -> list[dict]:
    """How far merged and folded networks are from the unmerged, relative to the largest logit, by backbone and gate."""
    rows = []
    for name, build in BACKBONES.items():
        for label, spec in kinds.items():
            torch.manual_seed(0)
            net = build(spec).eval()
            shake(net)
            line = {"backbone": name, "gate": label}
            for dtype in (torch.float64, torch.float32):
                like = net.to(dtype)
                images = torch.randn(2, 3, 16, 16, dtype=dtype)
                with torch.no_grad():
                    wanted = like(images)
                    merged = nb.merge(like)
                    line[f"merged, {str(dtype)[6:]}"] = relative(merged(images), wanted)
                    try:
                        line[f"folded, {str(dtype)[6:]}"] = relative(fold(merged)(images), wanted)
                    except ValueError:
                        line[f"folded, {str(dtype)[6:]}"] = "refused"
            rows.append(line)
    return rows


def resnet(controller, **options):
    return nb.resnet(8, controller=controller, widths=(4, 4, 8), **options)


# Small networks of every kind that there is, as functions of what decides their step sizes.
BACKBONES: dict[str, Callable[[Any], torch.nn.Module]] = {
    "ResNet": resnet,
    "ResNet, pre-activation": lambda gate: resnet(gate, post_activation=False),
    "ResNet with group normalisation": lambda gate: resnet(gate, norm="group"),
    "ResNet with instance normalisation": lambda gate: resnet(gate, norm="instance"),
    "ResNet with layer normalisation": lambda gate: resnet(gate, norm="layer"),
    "ResNet-ACNet": lambda gate: resnet(gate, convolution="asymmetric"),
    "MobileNetV2": lambda gate: nb.mobilenet(controller=gate, width=0.125, blocks=(1, 2, 1, 1, 2, 1, 1)),
    "ViT": lambda gate: nb.vit(16, 4, 12, 2, 2, controller=gate),
    "RepVGG": lambda gate: nb.repvgg(controller=gate, blocks=(1, 2), widths=(4, 8)),
    "VGG": lambda gate: nb.vgg(controller=gate, width=4, blocks=(1, 2)),
    "VGG without normalisations": lambda gate: nb.vgg(controller=gate, width=4, blocks=(1, 1), normalised=False),
    "MobileNetV1": lambda gate: nb.mobilenet(1, controller=gate, width=0.125, blocks=(1, 1, 1, 1, 1)),
    "ShuffleNetV2": lambda gate: nb.shufflenet(controller=gate, blocks=(2, 1), widths=(4, 8, 8)),
}


NO_STEP = {"RepVGG": "a gain on the state, its shortcut included", "ShuffleNetV2": "a factor of a coupled half"}


def shapes() -> list[dict]:
    """What is a step in every backbone that is trained, how many there are, and how many numbers are learnt."""
    rows = []
    for name, (network, options) in design.BACKBONES.items():
        recipe = jobs.recipe_of("short", "cifar10")
        job = jobs.Job("cifar10", "constant", 0, recipe, network=network, options=options or None)
        if name == design.TRANSFORMER:
            job = dataclasses.replace(job, depth=6, width=64)
        net: Any = job.untrained(10)
        steps = isinstance(net, nb.Network)
        rows.append(
            {
                "backbone": name,
                "numbers learnt": sum(parameter.numel() for parameter in net.parameters()),
                "places of h": len(net.blocks if steps else net.places),
                "what h is": "the size of a step x + h f(x)" if steps else NO_STEP.get(name, "a factor of a layer"),
                "TNS": "defined" if steps else "no step: not defined",
            }
        )
    return rows


def shake(net) -> None:
    """Statistics and scales that are not those of a fresh network."""
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            statistics = dict(module.named_buffers())
            statistics["running_mean"].normal_(0, 0.3)
            statistics["running_var"].uniform_(0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.3)


def relative(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max())
