"""Forward passes: networks through `integrate` beside the same layers by hand, constants merged and folded away."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

import netbridge as nb
from benchmarks.harness.rows import Row, at_least, at_most, below
from benchmarks.harness.timing import Contestant
from benchmarks.net.networks import Size, network, relative_error, runner


def handwritten(net: nb.Network) -> Callable:
    """The same layers as one would write them out for speed: no solver, no controller, in place where that is safe."""

    head: Any = net.head

    def forward(x):
        x = F.relu_(net.stem.bn(net.stem.conv(x)))
        for block in net.blocks:
            branch, out = block.branch, x
            for conv, bn in branch.layers[:-1]:
                out = F.relu_(bn(conv(out)))
            conv, bn = branch.layers[-1]
            out = bn(conv(out))
            out += block.shortcut(x)
            x = F.relu_(out)
        return head.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    return forward


def forward(size: Size):
    """a forward pass through integrate against the same layers written out by hand, bit for bit"""
    for depth in size.depths:
        net, images = network(depth), size.images()
        by_hand = runner(handwritten(net), images)
        error = relative_error(by_hand())
        ours = Contestant("through integrate", runner(net, images), error)
        yield from size.compare(f"ResNet-{depth}", ours, {Contestant("by hand", by_hand): at_most(1.02)}, allowed=0.0)


def merging(size: Size):
    """ASR(SE) merged and folded against the plain backbone and the SE network"""
    for depth in size.depths:
        images = size.images()
        asr = network(depth, nb.asr("se"))
        merged = nb.merge(asr)
        folded = nb.fold(merged)
        error = relative_error(runner(asr, images)())
        plain = Contestant("plain backbone", runner(nb.swap(asr, "constant"), images))
        live = Contestant("SE", runner(network(depth, "se"), images))
        work = f"ResNet-{depth}"
        unmerged = Contestant("ASR as trained", runner(asr, images))
        yield from size.compare(work, unmerged, {plain: None})
        yield from size.compare(
            work, Contestant("ASR merged", runner(merged, images), error), {plain: at_most(1 / 0.99)}, allowed=1e-6
        )
        both = Contestant("ASR merged and folded", runner(folded, images), error)
        yield from size.compare(work, both, {plain: at_least(1.25), live: at_least(1.5)}, allowed=1e-5)


def exactness(size: Size):
    """merged against unmerged, largest error relative to the largest logit"""
    for depth in size.depths:
        for precision, limit in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
            images = size.images()[:16].to(precision)
            worst = 0.0
            for module in ("se", "eca", "srm", "ie", "spa", "dia"):
                asr = network(depth, nb.asr(module), precision)
                error = relative_error(runner(asr, images)())
                worst = max(worst, error(runner(nb.merge(asr), images)()))
            name = str(precision).removeprefix("torch.")
            yield Row(f"ResNet-{depth}", f"merged, {name}", "", worst / limit, goal=below(1.0), unit=f"times {limit:g}")


SECTIONS: dict[str, Callable] = {"forward": forward, "merging": merging, "exactness": exactness}
