"""Step sizes put into anybody's network: behind the layer in which each residual branch ends."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from netbridge.foreign.blocks import named_blocks, watch_sample
from netbridge.foreign.graph import Graph
from netbridge.foreign.vocabulary import ACTIVATIONS, LAYOUTS, TRANSPARENT
from netbridge.foreign.watching import watch_pass
from netbridge.model.network import Configured
from netbridge.step_sizes.gated import Gated, channels_of, gate
from netbridge.surgery.absorb import absorb
from netbridge.tracing.batches import run, to_network
from netbridge.tracing.preservation import independent_copy, preserve, unwrap

SIZES = (32, 64, 224)  # of images tried where none are given
WORK = ("batch_norm", "layer_norm", "group_norm", "instance_norm", "linear", "conv1d", "conv2d", "conv3d")
NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm)


class Insertion(NamedTuple):
    """A place for a step size.

    step      the residual step whose branch it multiplies, as `nb.trace` names it; "" outside of one
    layer     the layer behind which it stands; "" where there is none
    kind      the layer's class
    channels  of the layer's output
    reason    why no step size can be put there; "" where one can
    also      the other layers of a sum that the branch ends in; they get the same step size, which must be a constant
    """

    step: str
    layer: str = ""
    kind: str = ""
    channels: int | None = None
    reason: str = ""
    also: tuple[str, ...] = ()


def places(net: nn.Module, images=None, at="branches", call=None) -> list[Insertion]:
    """Where `nb.insert` would put step sizes into a network, and where it could not and why; `net` is not changed.

    net     anybody's network
    images  a batch the network accepts; None: random ones of 32, 64 or 224 pixels, whatever it takes first
    at      "branches": behind the layer in which each residual branch ends; "norms": behind every normalisation whose
            output goes into an activation (VGG, MobileNet); or names, modules or classes of layers
    call    call(net, images), where net(images) is not enough

    Returns a list of `Insertion`, each with step, layer, kind, channels, reason and also.

    >>> import torch, netbridge as nb
    >>> class Block(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.conv, self.norm = torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
    ...
    ...     def forward(self, x):
    ...         return torch.relu(x + self.norm(self.conv(x)))
    >>> net = torch.nn.Sequential(Block(), Block())
    >>> [(place.step, place.layer, place.channels) for place in nb.places(net, torch.rand(2, 4, 8, 8))]
    [('0', '0.norm', 4), ('1', '1.norm', 4)]
    """
    net = unwrap(net)
    if isinstance(net, Configured):
        raise TypeError("`net` is a network of netbridge, which has step sizes: use nb.swap.")
    if not (isinstance(at, str) and at in ("branches", "norms")):
        try:
            return [place_behind(name, "", net) for name in named_blocks(net, at)]
        except ValueError as error:
            raise ValueError(str(error).replace("`blocks`", "`at`")) from None
    with preserve(net), torch.no_grad():
        seen = first_pass(net, images, call or run)
    graph = seen.graph()
    if at == "norms":
        pairs = ((i, net.get_submodule(one.module)) for i, one in enumerate(graph.operations) if one.module)
        found = [
            place_behind(graph.operations[i].module, "", net)
            for i, layer in pairs
            if isinstance(layer, NORMS) and any(graph.operations[j].name in ACTIVATIONS for j in graph.users[i])
        ]
    else:
        found = [place_of_branch(graph, step, branch, net) for step in graph.steps() for branch in step.branches]
    named = [layer for place in found for layer in (place.layer, *place.also)]
    return [
        place._replace(reason="the layer acts more than once")
        if place.layer and any(named.count(one) > 1 or count_runs(graph, one) > 1 for one in (place.layer, *place.also))
        else place
        for place in found
    ]


def insert(net: nn.Module, controller, images=None, at="branches", on=None, call=None) -> nn.Module:
    """A copy of anybody's network with a step size behind the layer in which each residual branch ends.

    The original stays bit for bit what it was. Each place gets an `nb.Gated` with a controller of its own, whose state
    is what goes into the layer. `nb.merge` folds constant ones (`nb.asr`, "constant(0.5)") into the layers again. Where
    a branch ends in a sum of layers (RepVGG), each summand gets the same constant; a step size that depends on the
    input would have to see the sum and is refused there.

    net         anybody's network; those of netbridge have step sizes already, see `nb.swap`
    controller  as in `nb.resnet`; one that needs no stage
    images      a batch the network accepts; None: random ones of 32, 64 or 224 pixels, whatever it takes first
    at          "branches", "norms", or names, modules or classes of layers, as in `nb.places`
    on          some of the places only: their numbers, or names of steps or layers; None: all
    call        call(net, images), where net(images) is not enough

    Returns the new network, in the mode of `net`. Raises ValueError where there is no such place, with what stands in
    the way.

    >>> import torch, netbridge as nb
    >>> class Block(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.conv, self.norm = torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
    ...
    ...     def forward(self, x):
    ...         return torch.relu(x + self.norm(self.conv(x)))
    >>> net, images = torch.nn.Sequential(Block(), Block()).eval(), torch.rand(2, 4, 8, 8)
    >>> gated = nb.insert(net, nb.asr("se"), images)
    >>> type(gated[0].norm).__name__, type(net[0].norm).__name__, type(nb.merge(gated)[0].norm).__name__
    ('Gated', 'BatchNorm2d', 'BatchNorm2d')
    >>> bool(torch.allclose(nb.merge(gated)(images), gated(images), atol=1e-6))
    True
    """
    net = unwrap(net)
    chosen = choose(places(net, images, at, call), on, type(net).__name__)
    new = independent_copy(net)
    like = next((tensor for tensor in new.parameters() if tensor.is_floating_point()), None)
    for place in chosen:
        gated = gate(new.get_submodule(place.layer), controller, place.channels, like)
        if not place.layer:
            return gated
        parts = [gated]
        for name in place.also:
            parts.append(gate(new.get_submodule(name), controller, place.channels, like))
            parts[-1].controller, parts[-1].shared = gated.controller, gated.shared
        if place.also and not is_constant(gated):
            raise ValueError(
                f"{place.step}: the branch ends in a sum of {', '.join((place.layer, *place.also))}, behind which only "
                f"a constant step size can stand; {gated.controller.name} depends on its input."
            )
        for name, part in zip((place.layer, *place.also), parts, strict=True):
            parent, _, leaf = name.rpartition(".")
            setattr(new.get_submodule(parent), leaf, part)
    leave_fused_kernels(new)
    return new


def leave_fused_kernels(net: nn.Module) -> None:
    """Make torch's encoders call their layers: in evaluation mode they would read weights and pass step sizes by."""
    for module in net.modules():
        gated = any(isinstance(part, Gated) for part in module.modules())
        if isinstance(module, nn.TransformerEncoderLayer) and gated:
            module.activation_relu_or_gelu = 0  # asked for by the choice of a kernel only
        elif isinstance(module, nn.TransformerEncoder) and gated:
            module.use_nested_tensor = False


def is_constant(gated: Gated) -> bool:
    """Is all of the step size the same for every input?"""
    h, live, _ = gated.controller.settle(None)
    return h is not None and live is None


def choose(found: list[Insertion], on, kind: str) -> list[Insertion]:
    """The places asked for; ValueError where no step size can be put at one of them, or where there is no place."""
    if on is not None:
        chosen = []
        for item in on if isinstance(on, list | tuple | set | range) else [on]:
            known = [place for place in found if isinstance(item, str) and item in (place.step, place.layer)]
            if isinstance(item, int) and -len(found) <= item < len(found):
                known = [found[item]]
            if not known:
                raise ValueError(
                    f"`on` names {item!r}; the places are 0 to {len(found) - 1}: "
                    f"{[place.step or place.layer for place in found]}."
                )
            chosen += [place for place in known if place not in chosen]
        found = chosen
    wrong = [f"{place.step or place.layer}: {place.reason}" for place in found if place.reason]
    if not found or wrong:
        raise ValueError(
            f"`net` ({kind}) has no place for a step size"
            + (f" here: {'; '.join(wrong)}." if wrong else ".")
            + " Looked for residual steps whose branch ends in a normalisation, convolution, linear layer or attention;"
            ' nb.places(net) lists them, at=["name of a layer", ...] names others, on=[...] takes some.'
        )
    return found


def first_pass(net: nn.Module, images, call):
    """What the network does with a few images."""
    if images is not None:
        images = torch.from_numpy(images) if isinstance(images, np.ndarray) else images
        return watch_sample(net, call, to_network(net, images))[0]
    first: Any = next((part for part in net.modules() if isinstance(part, nn.Conv2d)), None)
    for size in SIZES if first is not None else ():
        like = first.weight
        try:
            sample = torch.ones(5, first.in_channels, size, size, dtype=like.dtype, device=like.device)
            return watch_pass(net, call, sample)
        except Exception:
            continue
    raise ValueError("`images` must be given: what this network takes could not be guessed.")


def place_of_branch(graph: Graph, step, branch, net: nn.Module) -> Insertion:
    """The layer whose output becomes the slope through operations that a constant per channel passes, or a sum's."""
    i = graph.source(branch.place)
    if branch.how != "plain" or i < 0:
        return Insertion(step.name, reason="the sum is no addition of a branch")
    region = graph.between(step.state, step.addition) | {step.addition}
    layers, reason = last_layers(graph, i, region, net)
    if reason:
        return Insertion(step.name, reason=reason)
    first, *others = (place_behind(layer, step.name, net) for layer in layers)
    if any(place.channels != first.channels for place in others):
        return Insertion(step.name, reason="the branch ends in a sum of layers whose channels are not alike")
    return first._replace(also=tuple(place.layer for place in others))


def last_layers(graph: Graph, i: int, region: set[int], net: nn.Module, summand: bool = False) -> tuple[list[str], str]:
    """The layers that operation i is the output of, or the sum of; or why there are none."""
    while True:
        operation = graph.operations[i]
        if not set(graph.users[i]) <= region:
            return [], f"the result of {operation.name} is used outside of the branch as well"
        if summand and len(graph.users[i]) > 1:  # f(g) + g: a constant behind g would act in f as well
            return [], f"the branch ends in a sum, and its summand {operation.name} is used beside the sum as well"
        layer = net.get_submodule(operation.module) if operation.module else net
        if absorb.dispatch(type(layer)) is not absorb.dispatch(object):
            return [operation.module], ""
        summands = graph.summands(i)
        if len(summands) > 1 and all(one.branch.how == "plain" and not one.branch.factors for one in summands):
            found = [last_layers(graph, one.operand, region, net, summand=True) for one in summands]
            wrong = next((reason for _, reason in found if reason), "")
            return ([] if wrong else [layer for layers, _ in found for layer in layers]), wrong
        if not graph.passes_on(i, TRANSPARENT | LAYOUTS) or graph.sources(i) == [0]:
            return [], f"the branch ends in {operation.name}, which a step size does not pass"
        (i,) = graph.sources(i)


def place_behind(layer: str, step: str, net: nn.Module) -> Insertion:
    """The place behind a layer."""
    module = net.get_submodule(layer)
    channels = channels_of(module)
    reason = "" if channels is not None else "how many channels it returns is not known"
    return Insertion(step, layer, type(module).__name__, channels, reason)


def count_runs(graph: Graph, layer: str) -> int:
    """How often a layer's own work occurs in a pass."""
    names = [operation.name for operation in graph.operations if operation.module == layer]
    return max(map(names.count, WORK))
