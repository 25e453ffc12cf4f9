"""The step sizes of a network: their values, how constant they are, and which hidden units are ever active."""

import contextlib
import copy
import dataclasses
from typing import TypeVar

import torch
from torch import nn

from netbridge.model.network import Network
from netbridge.step_sizes.base import Shared
from netbridge.step_sizes.spec import asr
from netbridge.surgery.swap import swap
from netbridge.tracing.batches import to_network
from netbridge.tracing.preservation import preserve

Module = TypeVar("Module", bound=nn.Module)


@dataclasses.dataclass
class Gates:
    """The step size of one block over images, one number per image and channel.

    h       (images, channels); where a step size varies over the map, its mean over the map; one row where it is
            the same for all images
    pooled  (images, channels): the mean of the slope over the map, which channel attention sees
    alive   how many hidden units of the controller are above zero for at least one image
    hidden  how many hidden units it has; 0 where there is no head with a ReLU

    >>> import torch, netbridge as nb
    >>> first = nb.gates(nb.resnet(8, controller="se"), torch.rand(5, 3, 32, 32))[0]
    >>> first.h.shape, first.hidden
    (torch.Size([5, 16]), 1)
    """

    h: torch.Tensor
    pooled: torch.Tensor
    alive: int
    hidden: int

    @property
    def share(self) -> float:
        """The `constant_share` of the step sizes h."""
        return constant_share(self.h)


def constant_share(values: torch.Tensor) -> float:
    """The share of the variance of gates that belongs to the channel alone: 1 means that every gate is a constant.

    values  (images, channels), or (images, positions) for spatial gates; one row counts as constant over the images

    Returns var_c(mean) / (var_c(mean) + mean_c(var_i)) with the mean and the variance over the images i, both variances
    divided by the number of values; nan where nothing varies at all.

    >>> import torch
    >>> from netbridge.tracing.gates import constant_share
    >>> constant_share(torch.tensor([[0.0, 1.0], [0.0, 1.0]])), constant_share(torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    (1.0, 0.0)
    """
    values = values.double()
    between = float(values.mean(0).var(correction=0))
    within = float(values.var(0, correction=0).mean())
    return between / (between + within) if between + within > 0 else float("nan")


def gates(net: Network, images: torch.Tensor, batch: int = 250) -> list[Gates]:
    """The step sizes of every block of one of our networks for these images; the network is left as it was.

    net     a network of ours
    images  images (N, C, H, W) as the network is shown them
    batch   images at a time; it changes memory and time only

    Returns one `Gates` per block.

    >>> import torch, netbridge as nb
    >>> found = nb.gates(nb.resnet(8, controller="constant(0.5)"), torch.rand(5, 3, 32, 32))
    >>> float(found[0].h.mean()), [one.hidden for one in found]
    (0.5, [0, 0, 0])
    """
    if not isinstance(net, Network):
        raise TypeError(f"`net` must be a network of netbridge, got {type(net).__name__}.")
    count = len(net.blocks)
    rows: list[list] = [[] for _ in range(count)]
    pools: list[list] = [[] for _ in range(count)]
    with preserve(net), torch.no_grad(), living_units(net) as living:
        for part in images.split(batch):
            with net.observed(note_gate, []) as seen:
                net(to_network(net, part))
            for number, (h, pooled) in enumerate(seen.carry):
                rows[number].append(h)
                pools[number].append(pooled)
    found = []
    for h, pooled, units in zip(rows, pools, living, strict=True):
        values = h[0] if len(h[0]) == 1 and len(pooled[0]) != 1 else torch.cat(h)
        found.append(Gates(values, torch.cat(pooled), sum(int(x.sum()) for x in units), sum(map(len, units))))
    return found


def note_gate(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
    """One number per image and channel of the step size, and the slope's mean over the map."""
    pooled = mean_slope.mean((2, 3))
    h = torch.as_tensor(h, dtype=pooled.dtype)
    if h.ndim < 4:
        h = h.reshape((1,) * (4 - h.ndim) + tuple(h.shape))
    h = h.mean((2, 3))
    return [*carry, (h.expand(len(h), pooled.shape[1]).clone(), pooled)]


@contextlib.contextmanager
def living_units(net: Network):
    """A context manager that yields, for the ReLUs of every block's controller, which units are ever above zero."""
    living: list[list[torch.Tensor]] = [[] for _ in net.blocks]
    with contextlib.ExitStack() as stack:
        for block, units in zip(net.blocks, living, strict=True):
            for module in relus(block.controller):
                stack.callback(module.register_forward_hook(note_living(units)).remove)
        yield living


def relus(controller: nn.Module) -> list[nn.Module]:
    """The hidden layers of a controller, also of one that the stage owns."""
    owners = [module.target for module in controller.modules() if isinstance(module, Shared)]
    return [part for owner in (controller, *owners) for part in owner.modules() if isinstance(part, nn.ReLU)]


def note_living(units: list[torch.Tensor]):
    """A hook that notes which of a layer's units are above zero for some row of a batch."""
    place: int | None = None

    def hook(module, args, out):
        nonlocal place
        alive = out.reshape(-1, out.shape[-1]).gt(0).any(0)
        if place is None:
            place = len(units)
            units.append(alive)
        else:
            units[place] = units[place] | alive

    return hook


def with_constant_gates(net: Network, values: list[torch.Tensor]) -> Network:
    """A copy of a network whose step sizes are these constants, one vector (C,) per block; its branches stay.

    With the mean step sizes over images as constants, the accuracy lost against `net` is what the variation of the step
    sizes from image to image is worth.

    net     a network of ours
    values  one vector per block

    Returns the copy, in the mode of `net`.

    >>> import torch, netbridge as nb
    >>> from netbridge.tracing.gates import with_constant_gates
    >>> net, images = nb.resnet(8, controller="se").eval(), torch.rand(4, 3, 32, 32)
    >>> constant = with_constant_gates(net, [one.h.mean(0) for one in nb.gates(net, images)])
    >>> constant.blocks[0].controller.settle(None)[0].shape
    torch.Size([16])
    """
    new = swap(net, asr(None))
    for block, value in zip(new.blocks, values, strict=True):
        with torch.no_grad():
            block.controller.psi.copy_(value.unsqueeze(0))
    return new


def with_fresh_statistics(net: Module, images: torch.Tensor, batch: int = 128) -> Module:
    """A copy of a network whose batch normalisations have the statistics of these images, each batch counting as much.

    An untrained network has only the initial statistics, and a network whose step sizes were replaced still has the
    statistics of the network before the replacement.

    net     any network; it is not changed
    images  images as the network is shown them; what does not fill a batch is left out, unless it is all there is
    batch   images at a time

    Returns the copy in evaluation mode.

    >>> import torch, netbridge as nb
    >>> from netbridge.tracing.gates import with_fresh_statistics
    >>> net = with_fresh_statistics(nb.resnet(8), torch.rand(256, 3, 32, 32))
    >>> bool(net.stem.bn.running_var.allclose(torch.ones(16)))
    False
    """
    net = copy.deepcopy(net)
    norms = [module for module in net.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain average over the batches
    net.train()
    with torch.no_grad():
        for part in images.split(batch):
            if len(part) == min(batch, len(images)):
                net(to_network(net, part))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return net.eval()
