"""What tracing costs: against the plain pass, against a literal implementation, in memory, and tuned."""

import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

import netbridge as nb
import odelab as ol
from benchmarks.harness.rows import Row, at_most
from benchmarks.harness.timing import Contestant
from benchmarks.net.networks import Size, foreign_network, network, runner

GOALS = {56: 1.03, 164: 1.10}
ROUNDOFF = 1e-6  # relative, of an index of maps in single precision
TUNED_IMAGES = 768

CHILD = """
import sys, time
import torch, netbridge as nb
from benchmarks.net.networks import network
depth, images, threads, tuned = (int(a) for a in sys.argv[1:])
torch.set_num_threads(threads)
torch.manual_seed(0)
net, x = network(depth).to(memory_format=torch.contiguous_format), torch.randn(images, 3, 32, 32)
def once(x):
    if tuned:
        nb.trace(net, x, tune=True)
    else:
        with torch.inference_mode():
            for batch in x.split(128):
                net(batch)
once(x[:128])
clock = time.process_time if threads == 1 else time.perf_counter
start = clock()
once(x)
print(clock() - start)
"""


def literal(net, images, precision=None) -> np.ndarray:
    """`odelab.nsi` of the state and the slope of every step, as one would write it.

    In the precision of the maps, a norm of 2**16 squares is right to 1e-6 only: what is to be exact takes float64.
    """
    rows = []

    def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
        rows.append(ol.nsi(u.to(precision or u.dtype), mean_slope.to(precision or u.dtype)))
        return carry

    with torch.inference_mode(), net.observed(record):
        net(images)
    return torch.stack(rows, 1).numpy()


def trace_nsi(net, images) -> np.ndarray:
    return nb.trace(net, images, batch_size=len(images)).nsi


def tracing(size: Size):
    """nb.trace against a plain pass of the same batch, and a literal implementation against the same"""
    for depth in size.depths:
        net, images = network(depth), size.images()
        plain = Contestant("plain pass", runner(net, images))
        wanted = literal(net, images, torch.float64)

        def error(nsi, wanted=wanted):
            return float(np.abs(nsi / wanted - 1).max())

        work, goal = f"ResNet-{depth}", GOALS.get(depth)
        ours = Contestant("nb.trace", functools.partial(trace_nsi, net, images), error)
        yield from size.compare(work, ours, {plain: goal and at_most(goal)}, allowed=ROUNDOFF)
        by_hand = Contestant("literal NSI", functools.partial(literal, net, images))
        yield from size.compare(work, by_hand, {plain: None})
        yield peak_row(work, runner(net, images), functools.partial(trace_nsi, net, images))


def foreign(size: Size):
    """somebody else's network against plain passes: a batch after the first of a ResNet-18, and the first of all"""
    images, more = size.images()[:32], 8
    net = foreign_network((64, 128, 256, 512), 2)
    plain = Contestant("plain pass", runner(net, images))
    first, all_of_them = (functools.partial(nb.trace, net, [images] * count) for count in (1, 1 + more))
    further = Contestant("nb.trace, a further batch", all_of_them, fixed=first, per=more, warm=all_of_them)
    yield from size.compare("ResNet-18 in plain torch", further, {plain: at_most(1.15)})
    gated = foreign_network((16, 32, 64), 9, gated=True)
    whole = functools.partial(nb.trace, gated, images)
    ours = Contestant("nb.trace, the first", whole, warm=whole)
    plain = Contestant("plain pass", runner(gated, images))
    yield from size.compare("27 gated blocks, 32 images", ours, {plain: at_most(2.0)})


def peak_row(work: str, plain: Callable, traced: Callable) -> Row:
    ours, theirs = (peak_bytes(run) / 2**20 for run in (traced, plain))
    return Row(work, "nb.trace, peak memory", "plain pass", ours, theirs, ours / theirs, goal=at_most(1.01), unit="MiB")


def peak_bytes(run: Callable) -> int:
    """The most that torch's tensors held at once beyond what they held before."""
    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        run()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        watched.export_chrome_trace(file.name)
        with open(file.name) as trace:
            events = [e for e in json.load(trace)["traceEvents"] if e.get("name") == "[memory]"]
    sizes = [event["args"]["Bytes"] for event in sorted(events, key=lambda event: event["ts"])]
    return int(max(np.cumsum(sizes)))


def tuned(size: Size):
    """nb.trace(tune=True) against plain passes at batch 128 as torch comes, each in processes of its own"""
    depth = max(size.depths)
    seconds: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(1 if size.quick else 3):
        for tune, found in seconds.items():
            arguments = [depth, TUNED_IMAGES // (4 if size.quick else 1), size.threads, tune]
            done = subprocess.run(
                [sys.executable, "-c", CHILD, *map(str, arguments)],
                env={**os.environ, "OMP_NUM_THREADS": str(size.threads), "PYTHONPATH": os.getcwd()},
                capture_output=True,
                text=True,
                check=True,
            )
            found.append(float(done.stdout.split()[-1]))
    theirs, ours = (statistics.median(found) for found in seconds.values())
    ratio = statistics.median(a / b for a, b in zip(seconds[1], seconds[0], strict=True))
    goal = at_most(0.7) if depth == 164 else None
    yield Row(f"ResNet-{depth}", "nb.trace(tune=True)", "plain pass, untuned", ours, theirs, ratio, goal=goal, unit="s")


SECTIONS: dict[str, Callable] = {"tracing": tracing, "foreign": foreign, "tuned": tuned}
