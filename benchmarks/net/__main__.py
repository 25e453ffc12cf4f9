"""netbridge beside hand-written networks: `python -m benchmarks.net [--quick] [--only SECTION ...] [--threads N]`.

Batch 128 of 32 x 32 images, channels-last, inference, allocator tuned for all contestants alike. With one thread times
are processor time, so that other work on the machine hardly counts; with more they are wall time.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional as F

import netbridge as nb
from benchmarks.harness import machine, rows
from benchmarks.harness.rows import Row, at_least, at_most, below
from benchmarks.harness.timing import Contestant
from benchmarks.net import spectra as net_spectra
from benchmarks.net import trace as net_trace
from benchmarks.net import training as net_train
from benchmarks.net.networks import Size, network, relative_error, runner


def handwritten(net: nb.Network) -> Callable:
    """The same layers as one would write them out for speed: no solver, no controller, in place where that is safe."""

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
        return net.head.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

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


SECTIONS: dict[str, Callable] = {
    "forward": forward,
    "merging": merging,
    "exactness": exactness,
    **net_trace.SECTIONS,
    **net_train.SECTIONS,
    **net_spectra.SECTIONS,
}


def main(arguments=None) -> int:
    options = parsed(arguments)
    torch.set_num_threads(options.threads)
    tuned = nb.tune_allocator()
    size = Size(threads=options.threads, clock="processor" if options.threads == 1 else "wall")
    if options.quick:
        size = dataclasses.replace(size, depths=(20,), batch=32, rounds=5, seconds=10.0, quick=True)
    head = f"{machine.describe()}\n{options.threads} threads, allocator {'tuned' if tuned else 'as it comes'}"
    print(head, flush=True)
    started, found = time.perf_counter(), []
    for name in options.only or SECTIONS:
        print(f"\n{name}: {SECTIONS[name].__doc__}", flush=True)
        for row in SECTIONS[name](size):
            found.append(row)
            print("  " + rows.line(row), flush=True)
    print(f"\n{rows.plain(found)}\n\n{rows.summary(found)}, {time.perf_counter() - started:.0f} s")
    if options.out:
        options.out.write_text(f"{head}\n\n{rows.markdown(found)}\n\n{rows.summary(found)}\n")
    return 1 if rows.wrong(found) else 0


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.net", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ResNet-20 at batch 32, under a minute")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the table to this Markdown file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
