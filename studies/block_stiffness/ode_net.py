"""Figure 2 of the block-level paper: a residual network and an ODE-net fitted to random inputs and outputs.

The paper gives neither dimension, depth, solver nor number of points. Here: 64 points in the plane, a field of one
hidden layer of 32 tanh units, eight residual steps of 1/8 that share it, and the same field under dopri5.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torchdiffeq import odeint

import odelab
from netbridge.spectrum.step_error import equal_steps

POINTS, HIDDEN, STEPS = 64, 32, 8
SCALES = (1.0, 2.0, 4.0, 8.0)  # of the field, for the distance against h rho
TOLERANCE = 1e-5


class Fit(NamedTuple):
    """One pair of fits: mean squared errors, and root-mean-square distances of predictions."""

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


def fit_both(seed: int, rounds: int) -> Fit:
    """Fit a residual network and an ODE-net to the same random points, and set each beside the other's scheme."""
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn((2, POINTS, 2), generator=generator, dtype=torch.float64)
    fields, losses = [], []
    for scheme in (residual_steps, flow):
        torch.manual_seed(seed)
        field = Field()
        optimiser = torch.optim.Adam(field.parameters(), lr=0.02)
        for _ in range(rounds):
            optimiser.zero_grad()
            loss = (scheme(field, x) - y).square().mean()
            loss.backward()
            optimiser.step()
        fields.append(field)
        losses.append(float(loss.detach()))
    residual, continuous = fields
    with torch.no_grad():
        predictions = residual_steps(residual, x), flow(continuous, x)
        continuous.evaluations = 0
        exact = flow(continuous, x)
        evaluations = continuous.evaluations
        scales = tuple(scaled_distance(residual, x, factor) for factor in SCALES)
        return Fit(
            seed, *losses, distance(*predictions), distance(predictions[0], flow(residual, x)),
            distance(exact, residual_steps(continuous, x)), evaluations, scales,
        )  # fmt: skip


def scaled_distance(field, x, factor: float) -> tuple[float, float]:
    """(h rho at the points, distance of residual steps and flow) of `factor` times the field."""

    def scaled(t, u):
        return factor * field(t, u)

    jacobians = torch.func.vmap(torch.func.jacrev(lambda u: factor * field.layers(u)))(x)
    rho = np.mean([odelab.spectrum(J).spectral_radius for J in jacobians])
    return rho / STEPS, distance(residual_steps(scaled, x), flow(scaled, x))


def distance(one, other) -> float:
    return float((one - other).square().sum(1).mean().sqrt())
