"""The gates of shipped networks: how constant they are, and what the networks score with constants in their place."""

import copy
import dataclasses
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from netbridge.tracing import gates
from studies.asr.measures import points_gained, right_answers, shipped_network
from studies.asr.results import correlation
from studies.lab import jobs, networks
from studies.lab.statistics import Estimate, choices, estimate

MEANS = 1500  # training images that mean gates are taken over
UNTRAINED = 384  # training images of an untrained network: three batches of statistics
SHOWN_IMAGES, SHOWN_CHANNELS = 20, 60  # of a block whose gates are drawn


@dataclasses.dataclass(eq=False)
class Stripes:
    """The gates of the first images at one block, for the figure.

    which   "median" or "least": what its share is among those of the network's blocks
    block   its number, from 1 on
    share   of the gates' variance that is the channel's
    values  numbers of images (rows) and channels (columns): what the module sees, its gates, and those before training
    """

    which: str
    block: int
    share: float
    values: dict[str, np.ndarray]


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
    stripes        the block with the median share and the one with the least
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
    stripes: list[Stripes]


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


def before_training(path: Path) -> nb.Network | None:
    """The network of a checkpoint as its training began: the same seed, the same constructor, the same draws.

    None where the checkpoint does not say how it began, or says it of a network of another shape.
    """
    net = networks.read_subject(path).net
    about, widths = net.about, net.config["widths"]
    if not {"dataset", "controller", "seed", "depth"} <= about.keys():
        return None
    recipe = jobs.recipe_of("short", about["dataset"])
    job = jobs.Job(about["dataset"], about["controller"], about["seed"], recipe, about["depth"], widths[0])
    start = job.untrained_network(net.config["num_classes"])
    shapes = [{key: x.shape for key, x in one.state_dict().items()} for one in (start, net)]
    return start if shapes[0] == shapes[1] else None


def measure_shares(name: str, seed, path: Path, data, images: int, resamples: int) -> tuple[Shares, list]:
    """The statistics of one network, and its gates on the training images."""
    net = shipped_network(path)
    shown = data.normalised(data.train_images[:MEANS]).contiguous(memory_format=torch.channels_last)
    first = shown[:UNTRAINED]
    start = before_training(path)
    before = [] if start is None else nb.gates(gates.with_fresh_statistics(start, first), first)
    after = nb.gates(net, shown)
    some = min(images, len(shown))
    chosen = choices(some, resamples, seed=0)
    labels = data.train_labels[:some]
    ends = [one.h.mean(0) for one in after]
    starts = [one.h.mean(0) for one in before] or [torch.full_like(end, torch.nan) for end in ends]
    share = [bootstrap_share(one.h[:some], chosen) for one in after]
    found = Shares(
        name,
        seed,
        share=share,
        untrained=[one.share for one in before] or [float("nan")] * len(after),
        pooled=[gates.constant_share(one.pooled[:some]) for one in after],
        classes=[class_share(one.h[:some], labels) for one in after],
        origin=[correlation(a.double(), b.double()) for a, b in zip(starts, ends, strict=True)],
        start=[x.numpy() for x in starts],
        end=[x.numpy() for x in ends],
        alive=[one.alive for one in after],
        hidden=[one.hidden for one in after],
        stripes=choose_stripes([one.value for one in share], after, before),
    )
    return found, after


def choose_stripes(shares: list[float], after, before) -> list[Stripes]:
    """The blocks to draw: the one with the median share, and the one with the least, which may be the same."""
    order = np.argsort(shares)
    chosen = {int(order[(len(order) - 1) // 2]): "median", int(order[0]): "least"}
    stripes = []
    for block, which in chosen.items():
        values = {"input, trained": after[block].pooled, "gate, trained": after[block].h}
        values |= {"gate, untrained": before[block].h} if before else {}
        values = {what: x[:SHOWN_IMAGES, :SHOWN_CHANNELS].numpy() for what, x in values.items()}
        stripes.append(Stripes(which, block + 1, shares[block], values))
    return stripes


def bootstrap_share(h: torch.Tensor, chosen: np.ndarray) -> Estimate:
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


def replace_gates(found: Shares, after, path: Path, data, images: int) -> Replaced:
    """The test accuracy with every gate at its mean over training images, also with statistics taken anew."""
    net = shipped_network(path)
    constant = gates.with_constant_gates(net, [one.h.mean(0) for one in after])
    anew = gates.with_fresh_statistics(constant, data.normalised(data.train_images[: 8 * 128]))
    right = right_answers(net, data, images)
    shown = data.normalised(data.train_images[:MEANS]).contiguous(memory_format=torch.channels_last)
    sequential = gates.with_constant_gates(net, mean_gates_in_turn(net, shown))
    changes = [points_gained(right, right_answers(other, data, images)) for other in (constant, sequential, anew)]
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
def mean_gates_in_turn(net, images) -> list[torch.Tensor]:
    """Mean gates of a network, each block's behind blocks whose gates are at their means: one pass over all images."""
    net = copy.deepcopy(net).eval()
    for block in net.blocks:
        block.controller = Meaning(block.controller)
    net(images)
    return [block.controller.mean.flatten() for block in net.blocks]


def constant_copy(path: Path, data) -> nb.Network:
    """The network of a checkpoint with every gate at its mean over the first training images."""
    net = shipped_network(path)
    shown = data.normalised(data.train_images[:MEANS]).contiguous(memory_format=torch.channels_last)
    return gates.with_constant_gates(net, [one.h.mean(0) for one in nb.gates(net, shown)])
