"""Step sizes put into anybody's network: behind the layer in which each residual branch ends, or at its sum."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from netbridge.common.batches import run, sample_of, to_network
from netbridge.common.preservation import independent_copy, preserve, unwrap
from netbridge.foreign.blocks import named_blocks, watch_sample
from netbridge.foreign.graph import Graph
from netbridge.foreign.tracers import is_within
from netbridge.foreign.vocabulary import ACTIVATIONS, LAYOUTS, TRANSPARENT
from netbridge.layers.absorb import absorb
from netbridge.model.network import Configured
from netbridge.step_sizes.gated import Gated, channels_of, gate, slope_axis
from netbridge.surgery.rewriting import Edge, put_between, read_edge
from netbridge.surgery.symbolic import NotTraceable

SIZES = (32, 64, 224)  # of images tried where none are given
PASSED = TRANSPARENT | LAYOUTS  # through which any constant per channel of a layer can be moved
POSITIVE = {"relu", "leaky_relu", "leakyrelu", "prelu", "max_pool1d", "max_pool2d", "max_pool3d"}  # and a positive one
WORK = ("batch_norm", "layer_norm", "rms_norm", "group_norm", "instance_norm", "linear", "conv1d", "conv2d", "conv3d")
NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)


class Insertion(NamedTuple):
    """A place for a step size.

    step      the residual step whose branch it multiplies, as `nb.trace` names it; "" outside of one
    layer     the layer behind which it stands; "" where there is none
    kind      the layer's class
    channels  of the layer's output
    reason    why no step size can be put there; "" where one can
    also      the other layers of a sum that the branch ends in; they get the same step size, which must be a constant
    into      where the layer is an activation, or has the step size at its end or at a sum in its forward: the layers
              into which `nb.merge` can fold a constant, behind an activation one that is nowhere negative; () where it
              cannot, None for other layers
    """

    step: str
    layer: str = ""
    kind: str = ""
    channels: int | None = None
    reason: str = ""
    also: tuple[str, ...] = ()
    into: tuple[str, ...] | None = None


class Site(NamedTuple):
    """A place, and what else `insert` needs to know of it.

    place     as `places` returns it
    axis      where the slope has its channels, where no layer says so
    positive  whether only a constant that is nowhere negative can be folded into the layers before it
    edge      where in the forward of the layer it stands; None behind the layer as a whole
    """

    place: Insertion
    axis: int | None = None
    positive: bool = True
    edge: Edge | None = None


def places(net: nn.Module, images=None, at="branches", call=None) -> list[Insertion]:
    """Where `nb.insert` would put step sizes into a network, and where it could not and why; `net` is not changed.

    A branch that ends in a normalisation, convolution, linear layer or attention has its step size behind that layer.
    One that ends in anything else, or in a layer that sees windows of the images (Swin), has it behind the module that
    returns the slope; where it is no module's own result, as in x + f(x).relu(), it stands in the forward that adds it,
    which torch.fx has to be able to read.

    net     anybody's network
    images  a batch the network accepts; None: random ones of 32, 64 or 224 pixels, whatever it takes first
    at      "branches": behind the layer in which each residual branch ends; "norms": behind every normalisation whose
            output goes into an activation (VGG, MobileNet); or names, modules or classes of layers
    call    call(net, images), where net(images) is not enough

    Returns a list of `Insertion`, each with step, layer, kind, channels, reason, also and into.

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
    return [site.place for site in find_sites(unwrap(net), images, at, call or run)]


def find_sites(net: nn.Module, images, at, call) -> list[Site]:
    """The places with all that is known of them."""
    if isinstance(net, Configured):
        raise TypeError("`net` is a network of netbridge, which has step sizes: use nb.swap.")
    if not (isinstance(at, str) and at in ("branches", "norms")):
        try:
            return [Site(place_behind(name, "", net)) for name in named_blocks(net, at)]
        except ValueError as error:
            raise ValueError(str(error).replace("`blocks`", "`at`")) from None
    with preserve(net), torch.no_grad():
        batch = some_images(net, images, call)
        graph = watch_sample(net, call, batch)[0].graph
        if at == "norms":
            pairs = ((i, net.get_submodule(one.module)) for i, one in enumerate(graph.operations) if one.module)
            found = [
                place_behind(graph.operations[i].module, "", net)
                for i, layer in pairs
                if isinstance(layer, NORMS) and any(graph.operations[j].name in ACTIVATIONS for j in graph.users[i])
            ]
            ends: list = [None] * len(found)
        else:
            ends = [(step, branch) for step in graph.steps() for branch in step.branches]
            found = [place_of_branch(graph, step, branch, net) for step, branch in ends]
        layers = [layer for place in found for layer in (place.layer, *place.also)]
        sites = []
        for place, end in zip(found, ends, strict=True):
            own = (place.layer, *place.also) if place.layer else ()
            if any(layers.count(one) > 1 or count_runs(graph, one) > 1 for one in own):
                place = place._replace(reason="the layer acts more than once")
            site = Site(place)
            if end is not None and (place.reason or not sees_images(graph, place.layer, net)):
                at_sum = site_at_sum(graph, end, net, place.reason, sample_of(batch), call)
                site = site if at_sum.place.reason and not place.reason else at_sum
            sites.append(site)
    return sites


def insert(net: nn.Module, controller, images=None, at="branches", on=None, call=None) -> nn.Module:
    """A copy of anybody's network with a step size behind the layer in which each residual branch ends.

    The original stays bit for bit what it was. Each place gets an `nb.Gated` with a controller of its own, whose state
    is what goes into the layer, or the slope itself where the step size stands at the sum (`nb.places`). The module
    whose forward has that sum becomes a `torch.fx.GraphModule`, with the same modules and parameters in it. `nb.merge`
    folds constant ones (`nb.asr`, "constant(0.5)") into the layers again. Where a branch ends in a sum of layers
    (RepVGG), each summand gets the same constant; a step size that depends on the input would have to see the sum and
    is refused there.

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
    sites = find_sites(net, images, at, call or run)
    chosen = choose([site.place for site in sites], on, type(net).__name__)
    sites = [site for site in sites if any(site.place is place for place in chosen)]
    new = independent_copy(net)
    like = next((tensor for tensor in new.parameters() if tensor.is_floating_point()), None)
    at_sums: dict[str, list[tuple[Edge, nn.Module]]] = {}
    for place, axis, positive, edge in sites:
        into = None if place.into is None else tuple(map(new.get_submodule, place.into))
        layer = new.get_submodule(place.layer) if edge is None else nn.Identity().train(new.training)
        gated = gate(layer, controller, place.channels, like, axis=axis, into=into, positive=positive)
        if edge is not None:
            at_sums.setdefault(place.layer, []).append((edge, gated))
            continue
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
    for name, edges in at_sums.items():
        new = put_between(new, name, edges)
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
            + ' Looked for residual steps; nb.places(net) lists them, at=["name of a layer", ...] names other places, '
            "on=[...] takes some."
        )
    return found


def first_pass(net: nn.Module, images, call):
    """What the network does with a few images."""
    return watch_sample(net, call, some_images(net, images, call))[0]


def some_images(net: nn.Module, images, call):
    """The images that were given, as the network takes them, or some that it accepts."""
    if images is not None:
        images = torch.from_numpy(images) if isinstance(images, np.ndarray) else images
        return to_network(net, images)
    first: Any = next((part for part in net.modules() if isinstance(part, nn.Conv2d)), None)
    for size in SIZES if first is not None else ():
        like = first.weight
        try:
            sample = torch.ones(5, first.in_channels, size, size, dtype=like.dtype, device=like.device)
            call(net, sample.clone())
            return sample
        except Exception:
            continue
    raise ValueError("`images` must be given: what this network takes could not be guessed.")


def place_of_branch(graph: Graph, step, branch, net: nn.Module) -> Insertion:
    """The layer whose output becomes the slope through operations that a constant per channel passes, or a sum's."""
    i = graph.source(branch.place)
    if branch.how != "plain" or i < 0:
        return Insertion(step.name, reason="the sum is no addition of a branch")
    layers, reason = last_layers(graph, i, region_of(graph, step), net)
    if reason:
        return Insertion(step.name, reason=reason)
    first, *others = (place_behind(layer, step.name, net) for layer in layers)
    if any(place.channels != first.channels for place in others):
        return Insertion(step.name, reason="the branch ends in a sum of layers whose channels are not alike")
    return first._replace(also=tuple(place.layer for place in others))


def needed_in(graph: Graph) -> set[int]:
    """The operations that an output of the network comes from."""
    return set().union(*(graph.between(-1, output) for output in graph.outputs))


def region_of(graph: Graph, step) -> set[int]:
    """What may take the slope of a step: its branch, its sum, and what no output of the network comes from."""
    unneeded = set(range(len(graph.operations))) - needed_in(graph)
    return graph.between(step.state, step.addition) | {step.addition} | unneeded


def last_layers(
    graph: Graph, i: int, region: set[int], net: nn.Module, alone: bool = False, passed=PASSED
) -> tuple[list[str], str]:
    """The layers that operation i is the output of, or the sum of; or why there are none.

    alone   whether nothing but the way from them to the sum may take what they return: f(g) + g multiplied by a
            constant is another thing than with g multiplied
    passed  the operations through which a constant can be moved
    """
    while True:
        operation = graph.operations[i]
        if not set(graph.users[i]) <= region:
            return [], f"the result of {operation.name} is used outside of the branch as well"
        if alone and len(needed_in(graph).intersection(graph.users[i])) > 1:
            return [], f"what the branch ends in, {operation.name}, is used beside the sum as well"
        layer = net.get_submodule(operation.module) if operation.module else net
        if absorb.dispatch(type(layer)) is not absorb.dispatch(object):
            return [operation.module], ""
        summands = graph.summands(i)
        if len(summands) > 1 and not any(one.factors for one in summands):
            found = [last_layers(graph, one.leaf, region, net, True, passed) for one in summands]
            wrong = next((reason for _, reason in found if reason), "")
            return ([] if wrong else [layer for layers, _ in found for layer in layers]), wrong
        if not graph.passes_on(i, passed) or graph.sources(i) == [0]:
            return [], f"the branch ends in {operation.name}, which a step size does not pass"
        (i,) = graph.sources(i)


def site_at_sum(graph: Graph, end, net: nn.Module, reason: str, batch, call) -> Site:
    """The place behind the slope itself: behind the module that returns it, else in the forward that takes it."""
    step, branch = end
    place, i = branch.place, graph.source(branch.place)
    if branch.how != "plain" or i < 0:
        return Site(Insertion(step.name, reason=reason))
    region, shape, axis = region_of(graph, step), graph.operations[i].shape, slope_axis(net, graph, step, place)
    layers, wrong = last_layers(graph, i, region, net, True)
    positive = bool(wrong)
    if positive:
        layers, wrong = last_layers(graph, i, region, net, True, PASSED | POSITIVE)
    into = () if wrong or any(count_runs(graph, one) > 1 for one in layers) else tuple(layers)
    name, taker = graph.operations[i].module, graph.operations[place.operation].module
    found = Insertion(step.name, name, channels=shape[axis], into=into)
    if name != taker and is_within(name, taker) and returns_alone(graph, i, place.operation):
        return Site(found._replace(kind=type(net.get_submodule(name)).__name__), axis, positive)
    try:
        edge = read_edge(net, taker, graph, place, batch, call)
    except NotTraceable as error:
        return Site(Insertion(step.name, reason=f"{reason}; and in {taker or 'the network'}, {error}"))
    return Site(found._replace(layer=taker, kind=type(net.get_submodule(taker)).__name__), axis, positive, edge)


def sees_images(graph: Graph, layer: str, net: nn.Module) -> bool:
    """Are the rows of what a layer returns the images, and not windows of them?"""
    rows = {one.shape[0] for one in graph.operations if one.module == layer and one.shape}
    return isinstance(net.get_submodule(layer), nn.MultiheadAttention) or rows <= {graph.operations[0].shape[0]}


def returns_alone(graph: Graph, i: int, taker: int) -> bool:
    """Is operation i all that its module returns in a pass, and taken by `taker` alone?"""
    needed, module = needed_in(graph), graph.operations[i].module
    inside = {j for j, one in enumerate(graph.operations) if is_within(one.module, module)}
    leaving = {(j, user) for j in inside for user in graph.users[j] if user in needed and user not in inside}
    return leaving == {(i, taker)}


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
