"""Exact spectra of residual blocks at full size, against automatic differentiation and dense LAPACK."""

import copy
import dataclasses
import functools
import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from benchmarks.clock import measure
from benchmarks.networks import Size, network
from benchmarks.rows import Row, at_least, below
from benchmarks.timing import Contestant
from netbridge import data

SEED = 0
NOBODY = Contestant("", None)


def trained() -> tuple[nb.Network, str]:
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
    net, origin = trained()
    states = nb.block_states(net, image(net))
    name = "stages.2.blocks.2" if size.quick else "stages.1.blocks.1"
    yield from against_dense(size, net.get_submodule(name), states[name], origin)
    yield from extremes(size, net, states, origin)
    if not size.quick:
        yield from largest(size, net, states, origin)


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
            ratio=row.ours / theirs,
            goal=None if size.quick else at_least(speedup),
            note="the other timed once",
        )


def extremes(size: Size, net, states, origin):
    name = "stages.0.blocks.1"
    for part in ("residual", "block"):
        ours = Contestant(
            "extremes", lambda part=part: nb.block_spectrum(net.get_submodule(name), states[name], part, "extremes")
        )
        for row in size.compare(f"{origin} {part}, {states[name].numel()} dimensions", ours, {NOBODY: None}, unit="s"):
            yield alone(row, below(0.5))


def largest(size: Size, net, states, origin):
    """The first stage's spectrum in full; two cores, because so is the goal."""
    name = "stages.0.blocks.1"
    found: list = []
    ours = Contestant(
        "all eigenvalues", lambda: found.append(nb.block_spectrum(net.get_submodule(name), states[name], values="full"))
    )
    (row,) = size.compare(f"{origin} residual, {states[name].numel()} dimensions", ours, {NOBODY: None}, unit="s")
    goal = below(35.0) if size.threads == 2 else None
    yield alone(row, goal, f"{int((found[0].values != 0).sum())} eigenvalues that are not zero")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Row(row.work, "peak memory of this process", "", memory, goal=below(6.0), unit="GiB")


def alone(row: Row, goal, note: str = "") -> Row:
    return Row(row.work, row.name, "", row.ours, goal=goal, unit=row.unit, wrong=row.wrong, note=note or row.note)


SECTIONS: dict[str, Callable] = {"spectra": spectra}
