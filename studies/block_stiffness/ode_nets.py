"""Residual networks beside ODE-nets: on the random points of Figure 2, and on the digits.

The paper gives neither dimension, depth, solver nor number of points. Here: 64 points in the plane, a field of one
hidden layer of 32 tanh units, eight residual steps of 1/8 that share it, and the same field under dopri5.

On the digits a ResNet-14, and the same network whose stages are solved by dopri5, are trained in the same way. Each is
then run by dopri5 at tolerances from 1e-1 to 1e-6: an equation does not care how it is solved, a network trained for
one step per block may.
"""

import contextlib
import functools
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torchdiffeq import odeint

import netbridge as nb
import odelab
from netbridge import data as datasets
from netbridge.spectrum.step_error import equal_steps
from netbridge.train import recipe, train
from studies.block_stiffness.measures import answers, inner_blocks, nested_images
from studies.block_stiffness.trainings import keep_rows
from studies.lab.stiffness import prepare

POINTS, HIDDEN, STEPS = 64, 32, 8
SCALES = (1.0, 2.0, 4.0, 8.0)  # of the field, for the distance against h rho
TOLERANCE = 1e-5
LENGTHS = (5, 30, 300, 1500)  # rounds of the fits after which they are compared: the paper gives none
DEPTH, WIDTHS = 14, (4, 8, 16)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TRAINED_AT = 1e-2  # relative and absolute, as everywhere here
SOLVER = "dopri5"


class Fit(NamedTuple):
    """One pair of fits after so many rounds: mean squared errors, and root-mean-square distances of predictions."""

    rounds: int
    seed: int
    loss_resnet: float
    loss_ode: float
    between_fits: float
    residual_to_flow: float  # the ResNet to the exact flow of its own field
    flow_to_residual: float  # the ODE-net to the ResNet of its own field
    evaluations: float  # of the field, by the ODE-net, at the end
    scales: tuple[tuple[float, float], ...]  # (h rho, distance of residual steps and flow) of the scaled field


class Field(nn.Module):
    """The right-hand side f(u) of both networks; counts its evaluations."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2)).double()
        self.evaluations = 0

    def forward(self, t, u):
        self.evaluations += 1
        return self.layers(u)


def residual_steps(field, u):
    """Eight Euler steps, by the loop that every other network of this laboratory runs through."""
    return equal_steps(lambda u: field(0.0, u), u, odelab.EULER, STEPS)


def flow(field, u):
    return odeint(field, u, torch.tensor([0.0, 1.0], dtype=u.dtype), rtol=TOLERANCE, atol=TOLERANCE, method="dopri5")[1]


def fit_both(seed: int, rounds: int) -> list[Fit]:
    """Fit a residual network and an ODE-net to the same random points, and set each beside the other's scheme.

    Returns what there is after `rounds` rounds, and after those of LENGTHS that are fewer.
    """
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn((2, POINTS, 2), generator=generator, dtype=torch.float64)
    pairs = []
    for scheme in (residual_steps, flow):
        torch.manual_seed(seed)
        field = Field()
        pairs.append((scheme, field, torch.optim.Adam(field.parameters(), lr=0.02)))
    found = []
    for done in range(1, rounds + 1):
        losses = [train_once(*pair, x, y) for pair in pairs]
        if done == rounds or done in LENGTHS:
            found.append(compare_fits(done, seed, losses, [field for _, field, _ in pairs], x))
    return found


def train_once(scheme, field, optimiser, x, y) -> float:
    """One step of a fit; returns the mean squared error before it."""
    optimiser.zero_grad()
    loss = (scheme(field, x) - y).square().mean()
    loss.backward()
    optimiser.step()
    return float(loss.detach())


def compare_fits(rounds: int, seed: int, losses: list[float], fields: list["Field"], x) -> Fit:
    """Both fitted fields, each under its own scheme and under the other's."""
    residual, continuous = fields
    with torch.no_grad():
        predictions = residual_steps(residual, x), flow(continuous, x)
        continuous.evaluations = 0
        exact, evaluations = flow(continuous, x), continuous.evaluations
        return Fit(
            rounds,
            seed,
            loss_resnet=losses[0],
            loss_ode=losses[1],
            between_fits=distance(*predictions),
            residual_to_flow=distance(predictions[0], flow(residual, x)),
            flow_to_residual=distance(exact, residual_steps(continuous, x)),
            evaluations=evaluations,
            scales=tuple(scaled_distance(residual, x, factor) for factor in SCALES),
        )


def scaled_distance(field, x, factor: float) -> tuple[float, float]:
    """(h rho at the points, distance of residual steps and flow) of `factor` times the field."""

    def scaled_field(t, u):
        return factor * field(t, u)

    jacobians = torch.func.vmap(torch.func.jacrev(lambda u: factor * field.layers(u)))(x)
    rho = np.mean([odelab.spectrum(J).spectral_radius for J in jacobians])
    return float(rho) / STEPS, distance(residual_steps(scaled_field, x), flow(scaled_field, x))


def distance(one, other) -> float:
    return float((one - other).square().sum(1).mean().sqrt())


def rows_of_seeds(folder, epochs: int, seeds: int = 2) -> list[dict]:
    """The rows of several seeds; minutes, so that rows and networks are kept in the folder."""
    rows = []
    for seed in range(seeds):
        made = functools.partial(tolerance_rows, seed, epochs, 300, folder)
        rows += keep_rows(folder / f"tolerances-{epochs}-seed{seed}.json", made)
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
            run = under_solver(net, tolerance)
            calls: list[int] = []
            with count_evaluations(run, calls):
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


def under_solver(net, tolerance: float | None):
    """The same weights under dopri5 at a tolerance, or under Euler's steps."""
    solver = None if tolerance is None else SOLVER
    other = nb.resnet(DEPTH, net.config["num_classes"], widths=WIDTHS, solver=solver, tolerance=tolerance or TRAINED_AT)
    other.load_state_dict(net.state_dict())
    other.normalisation = net.normalisation
    return other.eval()


@contextlib.contextmanager
def count_evaluations(net, calls: list):
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
    euler = under_solver(net, None)
    chosen = nested_images(data.test_labels.numpy(), 1)[:images]
    blocks = [name for stage in range(len(euler.stages)) for name in inner_blocks(euler, stage)]
    table = nb.block_survey(euler, prepare(euler, data, data.test_images[chosen]), "residual", blocks, "full")
    return float(np.median(table["spectral_radius"]))
