"""The step sizes of a network: their values, how constant they are, and which hidden units are ever active."""

import contextlib
import copy
import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from netbridge.common.batches import Samples, to_network
from netbridge.common.preservation import preserve, unwrap
from netbridge.foreign.flow import Flow
from netbridge.model.network import Network
from netbridge.recording.record import SLOPE
from netbridge.recording.recorder import Recorder
from netbridge.step_sizes.base import Shared
from netbridge.step_sizes.gated import slope_axis
from netbridge.step_sizes.spec import asr
from netbridge.surgery.swap import swap
from netbridge.tracing.differentiable import widen
from netbridge.tracing.ours import SolverTracer
from netbridge.tracing.trace import tracer_of
from odelab.arrays import to_numpy
from odelab.files.saved import register, values_of
from odelab.results import Result

Module = TypeVar("Module", bound=nn.Module)


@register(
    fields=lambda gates: values_of(gates) | {"h": to_numpy(gates.h), "pooled": to_numpy(gates.pooled)},
    made=lambda h, pooled, **rest: Gates(torch.from_numpy(h), torch.from_numpy(pooled), **rest),
)
@dataclasses.dataclass
class Gates(Result, kinds={"channels": "netbridge.figures:draw_gates"}):
    """The step size of one residual step over images, one number per image and channel.

    h       (images, channels); where a step size varies over the map, its mean over the map; one row where it is
            the same for all images
    pooled  (images, channels): the mean of the slope over the map, which channel attention sees
    alive   how many hidden units of the controller are above zero for at least one image; None where what computes the
            step size is not known, as in a network that is not ours
    hidden  how many hidden units it has; 0 where there is no head with a ReLU, None where that is not known
    name    of the step, as `nb.trace` names it

    >>> import torch, netbridge as nb
    >>> first = nb.gates(nb.resnet(8, controller="se"), torch.rand(5, 3, 32, 32))[0]
    >>> first.h.shape, first.hidden
    (torch.Size([5, 16]), 1)
    """

    h: torch.Tensor
    pooled: torch.Tensor
    alive: Any
    hidden: Any
    name: str = ""

    @property
    def share(self) -> float:
        """The `constant_share` of the step sizes h."""
        return constant_share(self.h)

    def table(self):
        """A row per channel: mean and deviation of its step size over the images, and what its slope is on average."""
        return {
            "channel": range(self.h.shape[1]),
            "mean": self.h.mean(0),
            "deviation": self.h.std(0, correction=0),
            "slope": self.pooled.mean(0),
        }


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


def gates(
    net: nn.Module,
    images: torch.Tensor,
    batch: int = 250,
    call: Callable | None = None,
    batch_axis: int | None = None,
) -> list[Gates]:
    """The step sizes of every residual step of a network for these images; the network is left as it was.

    net         a network, of netbridge or anybody's; of anybody else's the step sizes are what multiplies its branches
    images      images (N, C, H, W), or whatever batch (N, ...) the network is shown
    batch       images at a time; it changes memory and time only
    call        call(net, images), where net(images) is not enough
    batch_axis  along which axis of `images` the samples stand, as in `nb.trace`

    Returns one `Gates` per step, in the order of `nb.trace`. Channels are where the layer has them in which a branch
    ends, or one that takes the state; where none says, they are axis 1, of tokens (N, T, C) the last. Raises ValueError
    where there is no residual step.

    >>> import torch, netbridge as nb
    >>> found = nb.gates(nb.resnet(8, controller="constant(0.5)"), torch.rand(5, 3, 32, 32))
    >>> float(found[0].h.mean()), [one.hidden for one in found]
    (0.5, [0, 0, 0])
    """
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a torch module, got {type(net).__name__}.")
    net, parts = unwrap(net), []
    with preserve(net), torch.no_grad():
        samples = Samples(call, batch_axis)
        tracer = tracer_of(net, samples, images, (SLOPE,), None)
        portions = samples.in_front(images).split(batch)
        living: Any = living_units(tracer.network) if isinstance(tracer, SolverTracer) else contextlib.nullcontext()
        with living as units:
            for part in portions:
                recorder = GateRecorder(channel_axes(tracer))
                tracer(to_network(net, part).clone(), recorder)
                parts.append(recorder)
    found = []
    for k, name in enumerate(tracer.places.names):
        h, pooled = [part.h[k] for part in parts], torch.cat([part.pooled[k] for part in parts])
        values = h[0] if len(h[0]) == 1 and len(portions[0]) != 1 else torch.cat(h)
        alive = hidden = None
        if units is not None:
            own = units[name.removeprefix(tracer.prefix).partition(" + ")[0]]
            alive, hidden = sum(int(x.sum()) for x in own), sum(map(len, own))
        found.append(Gates(values, pooled, alive, hidden, name))
    return found


class GateRecorder(Recorder):
    """One number per image and channel of the step size of each step, and of its slope.

    axes  where the slope of a step has its channels, by the step's number; axis 1 of steps that are not named
    """

    keeps = True  # every step is reported as it is

    def __init__(self, axes: dict[int, int]):
        self.axes = axes
        super().__init__((SLOPE,))

    @property
    def needs_states(self):
        return False

    def begin(self):
        super().begin()
        self.h: dict[int, torch.Tensor] = {}
        self.pooled: dict[int, torch.Tensor] = {}
        self.shapes: dict[int, torch.Size] = {}

    def means(self, k: int, x: torch.Tensor) -> torch.Tensor:
        """The mean over all but rows and channels, (rows, channels), in at least single precision."""
        x = widen(x)
        return x.movedim(self.axes.get(k, 1), 1).flatten(2).mean(2) if x.ndim > 2 else x

    def slope(self, k, slope):
        self.shapes[k] = slope.shape
        self.pooled[k] = self.means(k, slope)
        self.h[k] = torch.ones_like(self.pooled[k][:1])

    def size(self, k, h, images, dimensions):
        h = torch.as_tensor(h).to(self.pooled[k])
        h = h.reshape((1,) * (len(self.shapes[k]) - h.ndim) + tuple(h.shape))
        self.h[k] = self.means(k, h.expand(len(h), *self.shapes[k][1:])).clone()

    def state(self, k, state):
        pass

    def images(self, k):
        return len(self.pooled[k])

    def new_state(self, k, before, new):
        pass


def channel_axes(tracer) -> dict[int, int]:
    """Where the slope of each step of somebody else's network has its channels; {} for a network of ours."""
    if isinstance(tracer, SolverTracer):
        return {}
    flow = Flow(tracer.operations, ())
    return {k: slope_axis(tracer.net, flow, step, step.branches[0].place) for k, step in enumerate(tracer.steps)}


@contextlib.contextmanager
def living_units(net: Network):
    """A context manager that yields, for the ReLUs of every block's controller, which units are ever above zero."""
    living: dict[str, list[torch.Tensor]] = {name: [] for name in net.block_names}
    with contextlib.ExitStack() as stack:
        for block, units in zip(net.blocks, living.values(), strict=True):
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
