"""ReLU blocks reduced to their active units: an exact spectrum at full size, from a matrix a fraction of it.

At a point a ReLU is a 0/1 diagonal D and a branch f a product such as W2 D1 W1. AB and BA share their nonzero
eigenvalues, so those of W2 D1 W1 are the ones of P1 W1 W2 P1', P1 the rows of D1's active units. A whole block with a
final ReLU, D2 (I + f'), is 0 on each dead output; on the a2 active ones it is I + P2 f' P2', or, where D1 has fewer
active units (a1), 1 + mu with mu of P1 W1 D2 W2 P1', and a2 - a1 ones. One rule covers basic and bottleneck, post- and
pre-activation: cut the cycle of factors where the fewest units are active. The reduced matrix shares eigenvalues with
the Jacobian and nothing else: norms are taken of the whole product, by `frobenius_norm` and `whole_operator`.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from netbridge.spectrum.chain import Convolution, Relu, Scaling
from odelab import JacobianOperator

PORTION = 64  # maps at a time through the factors
SPARSE_COST = 8  # time of one multiplication in a sparse product, in multiplications of a dense product


class Diagonal(NamedTuple):
    """Multiplies maps (C, h, w) unit by unit."""

    values: torch.Tensor

    def apply(self, maps):
        return maps * self.values

    def adjoint(self, maps):
        return self.apply(maps)


class Placed(NamedTuple):
    """A convolution, and the height and width of the maps that reach it."""

    convolution: Convolution
    size: tuple[int, int]

    def apply(self, maps):
        return self.convolution.linear(maps)

    def adjoint(self, maps):
        return self.convolution.adjoint(maps, self.size)


class Gate(NamedTuple):
    """The derivative of f -> h(f) f, for a step size computed from the slope f (C, h, w)."""

    tangent: Callable  # of one direction
    shape: tuple[int, ...]
    device: torch.device

    def apply(self, maps):
        return torch.func.vmap(self.tangent)(maps)


class LinearMap(NamedTuple):
    """The Jacobian of a branch, or of a block with identity shortcut, at one state: a product of factors.

    factors   of the branch, the one that acts first in front
    shape     of the maps, (C, h, w)
    whole     whether the shortcut is added, as in a block
    alive     the 0/1 diagonal (C, h, w) of the block's final ReLU; None without one
    """

    factors: list
    shape: tuple[int, ...]
    whole: bool = False
    alive: torch.Tensor | None = None

    @property
    def weight(self) -> torch.Tensor:
        """The weight of a convolution in it, for precision and device."""
        return next(factor.convolution.weight for factor in self.factors if isinstance(factor, Placed))

    def apply(self, maps):
        image = maps
        for factor in self.factors:
            image = factor.apply(image)
        image = image + maps if self.whole else image
        return image if self.alive is None else image * self.alive

    def adjoint(self, maps):
        maps = maps if self.alive is None else maps * self.alive
        image = maps
        for factor in reversed(self.factors):
            image = factor.adjoint(image)
        return image + maps if self.whole else image


class Cycle(NamedTuple):
    """A product of factors that act in turn on maps of `shape`, restricted to the `active` units.

    The eigenvalues of the Jacobian are shift + mu for every eigenvalue mu of this product, and the `known` ones.
    """

    factors: list
    shape: tuple[int, ...]
    active: torch.Tensor
    shift: float
    known: tuple[tuple[float, int], ...]

    @property
    def size(self) -> int:
        return int(self.active.sum())


def linearise(layers: list, x: torch.Tensor) -> tuple[list, torch.Tensor]:
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


def merge_diagonals(factors: list) -> list:
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


def reduce_chain(J: LinearMap) -> Cycle:
    """The factors of a Jacobian, begun where the fewest units are active."""
    factors, shape, whole, alive = J
    size = int(np.prod(shape))
    last = [] if alive is None else [Diagonal(alive)]
    outputs = size if alive is None else int(alive.count_nonzero())
    places = [i for i, factor in enumerate(factors) if isinstance(factor, Diagonal)]
    counts = {i: int(factors[i].values.count_nonzero()) for i in places}
    place = min(places, key=counts.__getitem__, default=None)
    if place is None or counts[place] >= outputs:
        active = torch.ones(size, dtype=torch.bool) if alive is None else alive.flatten().bool()
        return Cycle(merge_diagonals([*factors, *last]), shape, active, float(whole), ((0.0, size - outputs),))
    values = factors[place].values
    around = merge_diagonals([*factors[place + 1 :], *last, *factors[: place + 1]])
    ones = outputs - counts[place] if whole else 0
    known = ((1.0, ones), (0.0, size - counts[place] - ones))
    return Cycle(around, tuple(values.shape), (values != 0).flatten(), float(whole), known)


def reduced_operator(cycle: Cycle) -> JacobianOperator:
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


def whole_operator(J: LinearMap) -> JacobianOperator:
    """All of a Jacobian, as products with vectors both ways."""
    like, size = J.weight, int(np.prod(J.shape))

    def through(push, v):
        units = torch.as_tensor(np.ravel(v), dtype=like.dtype, device=like.device).view(1, *J.shape)
        with torch.no_grad():
            return push(units).flatten().cpu().numpy()

    matvec, rmatvec = (functools.partial(through, push) for push in (J.apply, J.adjoint))
    return JacobianOperator((size, size), matvec, rmatvec, dtype=str(like.dtype).removeprefix("torch."))


def reduced_matrix(cycle: Cycle) -> np.ndarray:
    """The reduced matrix as a dense one, (active, active)."""
    from scipy import sparse

    active = cycle.active.cpu().numpy()
    product: Any = None
    columns: Any = active
    first = None
    for i, factor in enumerate(cycle.factors):
        if isinstance(factor, Diagonal):
            if i == 0:
                first = flat(factor)[active]
            continue
        after = cycle.factors[i + 1 :]
        values = flat(after[0]) if after and isinstance(after[0], Diagonal) else None
        ends = len(after) == (values is not None)
        rows = active if ends else None if values is None else values != 0
        product = multiply_left(factor, product, rows, columns)
        if values is not None:
            kept = values if rows is None else values[rows]
            if (kept != 1).any():
                product = sparse.diags_array(kept) @ product
        columns = rows
    matrix = dense(product)
    return matrix if first is None else matrix * first


def multiply_left(factor: Placed | Gate, product, rows, columns):
    """The product with one more factor on its left, of which only the given rows are formed."""
    if isinstance(factor, Gate):
        through = push_columns(factor, dense(product))
        return through if rows is None else through[rows]
    matrix = convolution_matrix(factor.convolution, factor.size, rows, columns)
    if product is None:
        return matrix
    if isinstance(product, np.ndarray):
        return matrix @ product
    work = matrix.nnz * (product.nnz / max(1, product.shape[0]))
    if work * SPARSE_COST > float(matrix.shape[0]) * product.shape[0] * product.shape[1]:
        return matrix.toarray() @ product.toarray()
    return matrix @ product


def push_columns(gate: Gate, columns: np.ndarray) -> np.ndarray:
    """Every column, a map (C, h, w), through the derivative of the gate."""
    result = np.empty_like(columns)
    for start in range(0, columns.shape[1], PORTION):
        portion = torch.from_numpy(np.ascontiguousarray(columns[:, start : start + PORTION].T))
        with torch.no_grad():
            through = gate.apply(portion.view(-1, *gate.shape).to(gate.device))
        result[:, start : start + PORTION] = through.flatten(1).T.cpu().numpy()
    return result


def flat(diagonal: Diagonal) -> np.ndarray:
    return diagonal.values.cpu().numpy().ravel()


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def frobenius_norm(J: LinearMap) -> float:
    """||J||_F over all units: the reduced matrix has another norm.

    Unit maps go through the factors. As long as the factors are convolutions and diagonals, units that lie further
    apart than the chain reaches have outputs that do not overlap, so that one map may hold many of them: a basic block
    of 16 x 32 x 32 units takes 400 maps instead of 16,384.
    """
    square = 0.0
    for maps in unit_maps(J.factors, J.shape, J.weight):
        with torch.no_grad():
            square += float(J.apply(maps).double().square().sum())
    return float(np.sqrt(square))


def unit_maps(factors: list, shape: tuple[int, ...], like: torch.Tensor) -> Iterator[torch.Tensor]:
    """Batches of maps (., C, h, w) of zeros and ones; every unit is a one of exactly one map."""
    channels, height, width = shape
    tall, wide = height, width  # with a gate every unit may reach every other, so each has a map of its own
    if not any(isinstance(factor, Gate) for factor in factors):
        kernels = [factor.convolution for factor in factors if isinstance(factor, Placed)]
        reach = [1 + sum(one.dilation[i] * (one.weight.shape[2 + i] - 1) for one in kernels) for i in (0, 1)]
        tall, wide = min(reach[0], height), min(reach[1], width)
    places = [(c, i, j) for c in range(channels) for i in range(tall) for j in range(wide)]
    for start in range(0, len(places), PORTION):
        portion = places[start : start + PORTION]
        maps = like.new_zeros((len(portion), *shape))
        for number, (c, i, j) in enumerate(portion):
            maps[number, c, i::tall, j::wide] = 1.0
        yield maps


def convolution_matrix(conv: Convolution, size: tuple[int, int], rows=None, columns=None):
    """The matrix (O h' w', C h w) in CSR form, units numbered as maps lie in memory (channel, row, column).

    `rows` and `columns`, boolean masks over the units, keep the active ones only.
    """
    from scipy import sparse

    weight = conv.weight.cpu().numpy()
    out, depth, height, width = weight.shape
    group_out, channels = out // conv.groups, depth * conv.groups
    h, w = size
    tall = output_length(h, height, conv.stride[0], conv.padding[0], conv.dilation[0])
    wide = output_length(w, width, conv.stride[1], conv.padding[1], conv.dilation[1])
    row_number, row_count = numbering(rows, out * tall * wide)
    column_number, column_count = numbering(columns, channels * h * w)
    row_number, column_number = row_number.reshape(out, tall * wide), column_number.reshape(channels, h * w)
    entries: list[tuple] = []
    outputs = np.arange(out)
    for i in range(height):
        for j in range(width):
            above, below = reach(i, h, tall, conv.stride[0], conv.padding[0], conv.dilation[0])
            left, right = reach(j, w, wide, conv.stride[1], conv.padding[1], conv.dilation[1])
            y, x = np.meshgrid(np.arange(above, below), np.arange(left, right), indexing="ij")
            target = (y * wide + x).ravel()
            iy, ix = (
                q * s - p + d * k
                for q, s, p, d, k in zip((y, x), conv.stride, conv.padding, conv.dilation, (i, j), strict=True)
            )
            source = (iy * w + ix).ravel()
            for c in range(depth):  # a channel of each group at a time
                r = row_number[:, target]
                q = column_number[(outputs // group_out) * depth + c][:, source]
                kept = (r >= 0) & (q >= 0)
                values = np.broadcast_to(weight[:, c, i, j, None], r.shape)
                entries.append((values[kept], r[kept], q[kept]))
    values, r, q = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return sparse.csr_array(sparse.coo_array((values, (r, q)), shape=(row_count, column_count)))


def output_length(length, kernel, stride, padding, dilation) -> int:
    return (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def reach(tap, length, out, stride, padding, dilation) -> tuple[int, int]:
    """The outputs, first and one past the last, for which this tap falls inside the map."""
    offset = padding - tap * dilation
    return min(max(0, -(-offset // stride)), out), max(0, min(out, (length - 1 + offset) // stride + 1))


def numbering(mask, count) -> tuple[np.ndarray, int]:
    """The new number of every unit, -1 for those left out, and how many stay."""
    if mask is None:
        return np.arange(count, dtype=np.int32), count
    numbers = np.cumsum(mask, dtype=np.int32) - 1
    return np.where(mask, numbers, np.int32(-1)), int(mask.sum())
