"""One step of a network altered for a while: dropped, or without some of the features of its slope."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from netbridge.model.network import Network


@contextlib.contextmanager
def altered(net: Network, block, change: Callable[[torch.Tensor], torch.Tensor] | None = None):
    """A context manager: within it `change` replaces the slope of one step; without a `change` the step is dropped.

    A dropped step leaves the state as it is; one that changes the shape leaves its shortcut's output. The network is
    the same object before, within and afterwards.

    net     a network of netbridge
    block   the step: its number, from 0, or its name, as in `net.block_names`
    change  a function of the slope (N, ...) that returns one of the same shape; None (the default): zeros

    Raises ValueError where there is no such block, or where `change` returns another shape.

    >>> import torch, netbridge as nb
    >>> net, x = nb.resnet(14).eval(), torch.rand(2, 3, 32, 32)
    >>> with nb.altered(net, 1):
    ...     without = net(x)
    >>> with nb.altered(net, "stages.0.blocks.1", lambda slope: 0 * slope):
    ...     again = net(x)
    >>> torch.equal(without, again), torch.equal(without, net(x))
    (True, False)
    """
    if not isinstance(net, Network):
        raise TypeError(f"`net` must be a network of netbridge with steps, got {type(net).__name__}.")
    names = net.block_names
    if block not in names and not (isinstance(block, int) and -len(names) <= block < len(names)):
        raise ValueError(f"`block` must be a number below {len(names)} or one of {names}, got {block!r}.")
    step: Any = net.get_submodule(block if isinstance(block, str) else names[block])

    def replace(_, inputs, slope):
        new = torch.zeros_like(slope) if change is None else change(slope)
        if new.shape != slope.shape:
            raise ValueError(
                f"`change` must keep the shape of the slope, {tuple(slope.shape)}, got {tuple(new.shape)}."
            )
        return new

    hook = step.branch.register_forward_hook(replace)
    try:
        yield net
    finally:
        hook.remove()


def without_largest(slope: torch.Tensor, share: float = 0.1) -> torch.Tensor:
    """The slope of every image without the `share` of its elements whose magnitudes are the largest.

    >>> import torch
    >>> from netbridge.surgery.alteration import without_largest
    >>> without_largest(torch.tensor([[3.0, -4.0, 0.0, 1.0]]), share=0.25)
    tensor([[3., 0., 0., 1.]])
    """
    flat = slope.flatten(1)
    order = flat.abs().argsort(dim=1, descending=True)[:, : round(share * flat.shape[1])]
    return flat.scatter(1, order, 0.0).reshape(slope.shape)


def without_smallest(slope: torch.Tensor, share: float = 0.1, equal_norm: bool = False) -> torch.Tensor:
    """The slope of every image without elements whose magnitudes are the smallest.

    slope       (N, ...)
    share       of the elements that are removed; 0.1
    equal_norm  True: as many of the smallest as hold no more of the squared norm than the largest `share` does

    >>> import torch
    >>> from netbridge.surgery.alteration import without_smallest
    >>> without_smallest(torch.tensor([[3.0, -4.0, 0.0, 1.0]]), share=0.25)
    tensor([[ 3., -4.,  0.,  1.]])
    >>> without_smallest(torch.tensor([[3.0, -4.0, 0.0, 1.0]]), share=0.25, equal_norm=True)
    tensor([[ 0., -4.,  0.,  0.]])
    """
    flat = slope.flatten(1)
    count = round(share * flat.shape[1])
    order = flat.abs().argsort(dim=1)
    if not equal_norm:
        return flat.scatter(1, order[:, :count], 0.0).reshape(slope.shape)
    squares = flat.gather(1, order).double().square()
    budget = squares[:, flat.shape[1] - count :].sum(1, keepdim=True)
    removed = squares.cumsum(1) <= budget
    kept = torch.where(removed, torch.zeros((), dtype=flat.dtype, device=flat.device), flat.gather(1, order))
    return torch.empty_like(flat).scatter(1, order, kept).reshape(slope.shape)
