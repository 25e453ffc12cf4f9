"""The spectrum of any map of maps by automatic differentiation, where a block cannot be reduced."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import odelab
from netbridge.spectrum.tangent import tangent
from odelab import JacobianOperator

FULL = 1024  # "auto" forms the whole Jacobian up to this size
LARGEST = 4 * 2**30  # bytes of a Jacobian formed whole
PORTION = 64  # directions differentiated at a time


def differentiated(function: Callable, x, projected: bool, values: str, zero_tolerance, k):
    """By automatic differentiation: singular values where the shape changes, else eigenvalues.

    The outputs that a final ReLU holds at zero (`projected`) are exact zeros of the spectrum, which Arnoldi would miss.
    """
    with torch.no_grad():
        y = function(x.clone())
    if y.shape != x.shape:
        if y.numel() == x.numel():
            raise ValueError(
                f"`block` maps {tuple(x.shape[1:])} to {tuple(y.shape[1:])}: a Jacobian between different spaces has "
                "no eigenvalues, even where both have the same number of units."
            )
        alive, known = torch.arange(y.numel()), ()
    else:
        alive = (y > 0).flatten().cpu().nonzero()[:, 0] if projected else torch.arange(y.numel())
        known = ((0.0, y.numel() - len(alive)),)
    inputs = alive if y.shape == x.shape else torch.arange(x.numel())
    if values == "full" or (values == "auto" and max(len(alive), len(inputs)) <= FULL):
        return odelab.spectrum(jacobian(function, x, alive, inputs), "full", zero_tolerance, k, known)
    return odelab.spectrum(products_of(function, x, alive, inputs), "extremes", zero_tolerance, k, known)


def products_of(function: Callable, x, rows: torch.Tensor, columns: torch.Tensor) -> JacobianOperator:
    """v -> J v and w -> J' w, between some of the units."""
    pull: list = []

    def spread(v, where, like):
        units = x.new_zeros(like.numel())
        units[where] = torch.as_tensor(np.ravel(v), dtype=x.dtype, device=x.device)
        return units.view(like.shape)

    def forward(v):
        return tangent(function, x, spread(v, columns, x)).flatten()[rows].cpu().numpy()

    def backward(w):
        if not pull:
            pull.extend(torch.func.vjp(function, x))
        return pull[1](spread(w, rows, pull[0]))[0].flatten()[columns].detach().cpu().numpy()

    name = str(x.dtype).removeprefix("torch.")
    return JacobianOperator((len(rows), len(columns)), forward, backward, dtype=name)


def jacobian(function: Callable, x, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """The matrix between these units, some directions at a time."""
    size = x.element_size() * len(rows) * len(columns)
    if size > LARGEST:
        raise ValueError(
            f'`values` = "full" would form a Jacobian of {len(rows)} x {len(columns)} ({size / 2**30:.0f} GiB): this '
            'block is not made of ReLUs alone and cannot be reduced; use values="extremes".'
        )

    def push(v):
        return tangent(function, x, v.view(x.shape)).flatten()

    matrix = x.new_empty((len(rows), len(columns)))
    for start in range(0, len(columns), PORTION):
        units = columns[start : start + PORTION].to(x.device)
        directions = nn.functional.one_hot(units, x.numel()).to(x.dtype)
        matrix[:, start : start + PORTION] = torch.func.vmap(push)(directions).T[rows].detach()
    return matrix
