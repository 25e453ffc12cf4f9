"""Exact spectra of residual blocks at full size, against automatic differentiation and dense LAPACK."""

import copy
import dataclasses
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from benchmarks.harness.rows import Row, at_least, below
from benchmarks.harness.timing import Contestant
from benchmarks.net.networks import Size, network
from netbridge import data
from odelab.experiments.clock import measure

SEED = 0
NOBODY = Contestant("", None)


def trained_network() -> tuple[nb.Network, str]:
    """The public ResNet-20 where ODELAB_PUBLIC_WEIGHTS names its directory, else random weights."""
    folder = os.environ.get("ODELAB_PUBLIC_WEIGHTS")
    if folder and (path := Path(folder) / "resnet20_cifar10.th").is_file():
        return nb.load_foreign(path), "trained"
    return network(20), "random"


def image(net: nb.Network) -> torch.Tensor:
    try:
        return net.normalise(data.load("cifar10", download=False).test_images[:1] / 255)
    except data.DataUnavailable:
        return torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(SEED))


def dense_values(branch, x: torch.Tensor) -> np.ndarray:
    """The eigenvalues by jacrev and LAPACK: what one would write."""
    jacobian = torch.func.jacrev(lambda u: branch(u).flatten(), chunk_size=256)(x).reshape(-1, x.numel())
    return torch.linalg.eigvals(jacobian.detach()).numpy()


def distance(wanted: np.ndarray) -> Callable:
    """Of the largest and the smallest real part, relative to the spectral radius."""
    ends = np.array([wanted.real.max(), wanted.real.min()])

    def error(spectrum) -> float:
        return float(np.abs(ends - [spectrum.max_re, spectrum.min_re]).max() / np.abs(wanted).max())

    return error


def spectra(size: Size):
    """all eigenvalues of a residual branch against jacrev and dense eigvals; extremes; the largest block"""
    net, origin = trained_network()
    states = nb.block_states(net, image(net))
    name = "stages.2.blocks.2" if size.quick else "stages.1.blocks.1"
    yield from against_dense(size, net.get_submodule(name), states[name], origin)
    yield from extremes(size, net, states, origin)
    if not size.quick:
        yield from largest(size, origin)


def against_dense(size: Size, block, state, origin):
    x = state.double()
    answers: list[np.ndarray] = []
    branch = copy.deepcopy(block).double().branch
    seconds = dict(zip(("wall", "processor"), measure(lambda: answers.append(dense_values(branch, x)), 1), strict=True))
    theirs = seconds[size.clock]
    for dtype, allowed, speedup in ((torch.float64, 1e-10, 50), (torch.float32, 1e-5, 100)):
        precision = str(dtype).removeprefix("torch.")
        run = functools.partial(nb.block_spectrum, block, x, dtype=dtype)
        ours = Contestant(f"nb.block_spectrum, {precision}", run, distance(answers[0]))
        work = f"{origin} branch, {x.numel()} dimensions"
        (row,) = size.compare(work, ours, {NOBODY: None}, allowed=allowed, unit="s")
        yield dataclasses.replace(
            row,
            peer="jacrev, dense eigvals",
            theirs=theirs,
            ratio=None if row.ours is None else row.ours / theirs,
            goal=None if size.quick else at_least(speedup),
            note="the other timed once",
        )


def extremes(size: Size, net, states, origin):
    name = "stages.0.blocks.1"
    for part in ("residual", "block"):
        ours = Contestant(
            "extremes", functools.partial(nb.block_spectrum, net.get_submodule(name), states[name], part, "extremes")
        )
        for row in size.compare(f"{origin} {part}, {states[name].numel()} dimensions", ours, {NOBODY: None}, unit="s"):
            yield alone(row, below(0.5))


CHILD = """
import sys, time
import torch, netbridge as nb
from benchmarks.net import spectra as net_spectra
torch.set_num_threads(int(sys.argv[1]))
net, _ = net_spectra.trained_network()
name = "stages.0.blocks.2"
state = nb.block_states(net, net_spectra.image(net))[name]
clock = time.process_time if sys.argv[1] == "1" else time.perf_counter
start = clock()
found = nb.block_spectrum(net.get_submodule(name), state, values="full")
seconds = clock() - start
with open("/proc/self/status") as status:  # of this process alone, unlike what getrusage says after a fork
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(seconds, peak, int((found.values != 0).sum()))
"""


def largest(size: Size, origin):
    """The first stage's spectrum in full, in a process of its own; two cores, because so is the goal."""
    threads = str(size.threads)
    limited = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, threads],
        env={**os.environ, **limited, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, peak, units = map(float, done.stdout.split())
    work, note = f"{origin} residual, 16384 dimensions", f"{units:.0f} eigenvalues that are not zero"
    goal = below(35.0) if size.threads == 2 and units <= 6500 else None
    yield Row(work, "all eigenvalues", "", seconds, goal=goal, unit="s", note=note)
    yield Row(work, "all eigenvalues, peak memory", "", peak / 2**20, goal=below(6.0), unit="GiB", note=note)


def alone(row: Row, goal, note: str = "") -> Row:
    return Row(row.work, row.name, "", row.ours, goal=goal, unit=row.unit, wrong=row.wrong, note=note or row.note)


SECTIONS: dict[str, Callable] = {"spectra": spectra}
