"""Exact spectra of ReLU blocks at full size: restricted to active units, the rest is known without computing.

At a point a ReLU is a 0/1 diagonal D and a branch f a product such as W2 D1 W1. AB and BA share their nonzero
eigenvalues, so those of W2 D1 W1 are the ones of P1 W1 W2 P1', P1 the rows of D1's active units. A whole block with a
final ReLU, D2 (I + f'), is 0 on each dead output; on the a2 active ones it is I + P2 f' P2', or, where D1 has fewer
active units (a1), 1 + mu with mu of P1 W1 D2 W2 P1', and a2 - a1 ones. One rule covers basic and bottleneck, post- and
pre-activation: cut the cycle of factors where the fewest units are active.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from netbridge.spectrum.chain import Convolution, Relu, Scaling
from odelab import JacobianOperator


class Diagonal(NamedTuple):
    """Multiplies maps (C, h, w) unit by unit."""

    values: torch.Tensor

    def apply(self, maps):
        return maps * self.values


class Placed(NamedTuple):
    """A convolution, and the height and width of the maps that reach it."""

    convolution: Convolution
    size: tuple[int, int]

    def apply(self, maps):
        return self.convolution.linear(maps)


class Gate(NamedTuple):
    """The derivative of f -> h(f) f, for a step size computed from the slope f (C, h, w)."""

    tangent: Callable  # of one direction
    shape: tuple[int, int, int]

    device: torch.device

    def apply(self, maps):
        return torch.func.vmap(self.tangent)(maps)


class Cycle(NamedTuple):
    """Factors to apply in turn to maps of `shape`, seen at the `active` units only.

    The eigenvalues of the whole are shift + mu for every mu of this, and the `known` ones.
    """

    factors: list
    shape: tuple[int, int, int]
    active: torch.Tensor
    shift: float
    known: tuple[tuple[float, int], ...]

    @property
    def size(self) -> int:
        return int(self.active.sum())


def linearised(layers: list, x: torch.Tensor) -> tuple[list, torch.Tensor]:
    """The derivative of a chain at x (1, C, h, w), the factor that acts first in front, and its value."""
    factors: list = []
    for layer in layers:
        if isinstance(layer, Relu):
            multiply(factors, (x > 0).to(x.dtype)[0])
        elif isinstance(layer, Scaling):
            multiply(factors, layer.scale.view(-1, 1, 1).expand(x.shape[1:]))
        else:
            factors.append(Placed(layer, (int(x.shape[2]), int(x.shape[3]))))
        x = layer(x)
    return factors, x


def joined(factors: list) -> list:
    """No two diagonals in a row."""
    result: list = []
    for factor in factors:
        if isinstance(factor, Diagonal):
            multiply(result, factor.values)
        else:
            result.append(factor)
    return result


def multiply(factors: list, values: torch.Tensor):
    if factors and isinstance(factors[-1], Diagonal):
        values = factors.pop().values * values
    factors.append(Diagonal(values))


def cut(factors: list, shape, whole: bool, alive: torch.Tensor | None) -> Cycle:
    """The branch (`whole` False) or the block with identity shortcut, reduced.

    `alive` (C, h, w) is the 0/1 diagonal of the block's final ReLU, where it has one; it acts on the block only.
    """
    size = int(np.prod(shape))
    last = [] if alive is None else [Diagonal(alive)]
    outputs = size if alive is None else int(alive.count_nonzero())
    places = [i for i, factor in enumerate(factors) if isinstance(factor, Diagonal)]
    counts = {i: int(factors[i].values.count_nonzero()) for i in places}
    place = min(places, key=counts.__getitem__, default=None)
    if place is None or counts[place] >= outputs:
        active = torch.ones(size, dtype=torch.bool) if alive is None else alive.flatten().bool()
        return Cycle(joined([*factors, *last]), tuple(shape), active, float(whole), ((0.0, size - outputs),))
    values = factors[place].values
    around = joined([*factors[place + 1 :], *last, *factors[: place + 1]])
    ones = outputs - counts[place] if whole else 0
    known = ((1.0, ones), (0.0, size - counts[place] - ones))
    return Cycle(around, tuple(values.shape), (values != 0).flatten(), float(whole), known)


def operator(cycle: Cycle) -> JacobianOperator:
    """The reduced matrix as products with vectors: a few convolutions of one map each."""
    like = next(factor.convolution.weight for factor in cycle.factors if isinstance(factor, Placed))
    where = cycle.active.nonzero()[:, 0].to(like.device)

    def product(v):
        units = like.new_zeros(cycle.active.numel())
        units[where] = torch.as_tensor(np.ravel(v), dtype=like.dtype, device=like.device)
        maps = units.view(1, *cycle.shape)
        with torch.no_grad():
            for factor in cycle.factors:
                maps = factor.apply(maps)
        return maps.flatten()[where].cpu().numpy()

    return JacobianOperator((cycle.size, cycle.size), product, dtype=str(like.dtype).removeprefix("torch."))
