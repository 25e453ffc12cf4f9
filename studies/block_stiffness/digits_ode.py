"""ODE-nets on the digits: what the tolerance of their solver costs, and what it changes.

A ResNet-14, and the same network whose stages are solved by dopri5, are trained in the same way. Each is then run by
dopri5 at tolerances from 1e-1 to 1e-6: an equation does not care how it is solved, a network trained for one step per
block may.
"""

import contextlib
import functools

import numpy as np
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.train import recipe, train
from studies.block_stiffness.measures import answers, inner_blocks, nested_images
from studies.block_stiffness.trainings import kept
from studies.lab.measure import prepared

DEPTH, WIDTHS = 14, (4, 8, 16)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TRAINED_AT = 1e-2  # relative and absolute, as everywhere here
SOLVER = "dopri5"


def of_seeds(folder, epochs: int, seeds: int = 2) -> list[dict]:
    """The rows of several seeds; minutes, so that rows and networks are kept in the folder."""
    rows = []
    for seed in range(seeds):
        made = functools.partial(tolerance_rows, seed, epochs, 300, folder)
        rows += kept(folder / f"tolerances-{epochs}-seed{seed}.json", made)
    return rows


def tolerance_rows(seed: int, epochs: int, images: int, folder=None) -> list[dict]:
    """A row per network (trained with Euler's steps, trained as an ODE-net) and tolerance, and one for Euler's steps.

    epochs  of the recipe "digits"
    images  test images that are answered
    folder  where the networks are kept, so that a stopped training goes on
    """
    data = datasets.load("digits")
    images = min(images, len(data.test_images))
    rows = []
    for trained_by, solver in (("Euler", None), (SOLVER, SOLVER)):
        torch.manual_seed(seed)
        net = nb.resnet(DEPTH, len(data.names), widths=WIDTHS, solver=solver, tolerance=TRAINED_AT)
        path = None if folder is None else folder / f"ode-{trained_by}-{epochs}-seed{seed}.safetensors"
        train(net, data, recipe("digits", epochs=epochs), seed, path, device="cpu", quiet=True)
        rho = h_rho(net, data)
        for tolerance in (None, *TOLERANCES):
            run, calls = solved(net, tolerance), []
            with counted(run, calls):
                right = answers(run, data, np.arange(images))[1]
            batches = max(1, images // 128)
            rows.append(
                {
                    "trained by": trained_by,
                    "seed": seed,
                    "run by": "Euler" if tolerance is None else SOLVER,
                    "tolerance": float("nan") if tolerance is None else tolerance,
                    "accuracy, %": 100 * float(right.mean()),
                    "evaluations a block": len(calls) / batches / sum(not block.opens for block in net.blocks),
                    "h rho, median": rho,
                }
            )
    return rows


def solved(net, tolerance: float | None):
    """The same weights under dopri5 at a tolerance, or under Euler's steps."""
    solver = None if tolerance is None else SOLVER
    other = nb.resnet(DEPTH, net.config["num_classes"], widths=WIDTHS, solver=solver, tolerance=tolerance or TRAINED_AT)
    other.load_state_dict(net.state_dict())
    other.normalisation = net.normalisation
    return other.eval()


@contextlib.contextmanager
def counted(net, calls: list):
    """Notes every evaluation of a branch that keeps the shape."""
    handles = [
        block.branch.register_forward_hook(lambda *_: calls.append(1)) for block in net.blocks if not block.opens
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def h_rho(net, data, images: int = 10) -> float:
    """The median spectral radius of the branches, at the states of Euler's steps."""
    euler = solved(net, None)
    chosen = nested_images(data.test_labels.numpy(), 1)[:images]
    blocks = [name for stage in range(len(euler.stages)) for name in inner_blocks(euler, stage)]
    table = nb.block_survey(euler, prepared(euler, data, data.test_images[chosen]), "residual", blocks, "full")
    return float(np.median(table["spectral_radius"]))
