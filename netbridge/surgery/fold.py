"""Batch normalisation folded into the convolution before it, for inference."""

import copy
import itertools
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from netbridge.common.batches import run
from netbridge.common.preservation import independent_copy, preserve, unwrap
from netbridge.foreign.graph import Graph
from netbridge.layers.absorb import EXACT, has_hooks, is_plain, scaled_parameter, settle_weights, shapes_for
from netbridge.layers.own import ConvNorm, Sum
from netbridge.model.network import Configured, Stage
from netbridge.step_sizes.iebn import InstanceEnhancedNorm
from netbridge.surgery.insert import count_runs, first_pass
from netbridge.surgery.merge import count_owners
from netbridge.surgery.noise import NoisyNorm


def fold(net: nn.Module, images=None, call=None) -> nn.Module:
    """A new module in evaluation mode that computes the same with fewer layers; `net` is not changed.

    net     a network of ours, or any module with such networks or `nn.Sequential` or `nb.Sum` parts
    images  a batch that somebody else's network accepts, on which it is watched, since only a pass shows which layers
            follow one another. None (the default): random ones of 32, 64 or 224 pixels, whatever it takes first. Not
            needed for networks of ours, nor for a `nn.Sequential` of torch's own layers
    call    call(net, images), where net(images) is not enough

    In our networks every batch normalisation behind a convolution goes; in pre-activation ones the first of each block
    follows an addition and stays. In other modules those go that act on what a convolution returned and nothing else
    takes; where layers act twice, or have hooks or a forward of their own, they stay. Weights that weight_norm,
    spectral_norm or another parametrisation computes become plain ones. A sum of convolutions and batch normalisations
    becomes one convolution. Raises ValueError, with the layer's name, for normalisations of our networks
    and of a `nn.Sequential` that cannot be folded exactly or that something else comes between, and where no
    normalisation follows a convolution.

    >>> import torch, netbridge as nb
    >>> net, images = nb.resnet(14).eval(), torch.rand(2, 3, 32, 32)
    >>> folded = nb.fold(net)
    >>> folded.blocks[0].branch.bn1, bool(torch.allclose(folded(images), net(images), atol=1e-5))
    (Identity(), True)
    """
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a network, got {type(net).__name__}.")
    net = unwrap(net)
    new = independent_copy(net).eval()
    with torch.no_grad():
        for module in new.modules():
            settle_weights(module)
        ours = [module for module in new.modules() if isinstance(module, Configured)]
        for module in ours:
            fold_ours(module)
        if new in ours:
            return new
        pairs, sums = pairs_of(new), fold_sums(new)
        left = [module for module in new.modules() if isinstance(module, _BatchNorm)]
        if left and not is_sequence_throughout(net):
            with preserve(net):
                graph = first_pass(net, images, call or run).graph
            check_neighbours(graph, pairs)
            pairs += [pair for pair in pairs_of_pass(graph, new) if pair not in pairs]
        fold_pairs(new, pairs)
        if not (pairs or sums or ours):
            raise ValueError("`net` has no batch normalisation right behind a convolution.")
    return new


def pairs_of_pass(graph: Graph, net: nn.Module) -> list[tuple[str, str]]:
    """The names of convolutions and of the batch normalisations that alone see what they return.

    Layers that act more than once, share parameters or have something added to them stay as they are.
    """
    layers, owners, found = dict(net.named_modules()), count_owners(net), []

    def is_simple(name, kind):
        layer = layers.get(name)
        alone = layer is not None and all(owners[id(parameter)] == 1 for parameter in layer.parameters())
        return alone and isinstance(layer, kind) and is_plain(layer) and count_runs(graph, name) == 1

    for i, operation in enumerate(graph.operations):
        source = operation.operand(0)
        if not (graph.live[i] and isinstance(source, int) and is_simple(operation.module, _BatchNorm)):
            continue
        conv, norm = graph.operations[source].module, operation.module
        folds = is_simple(conv, _ConvNd) and not isinstance(layers[conv], _ConvTransposeNd)
        if folds and set(graph.users[source]) == {i} and layers[norm].running_var is not None:
            found.append((conv, norm))
    return found


def pairs_of(net: nn.Module) -> list[tuple[str, str]]:
    """The names of convolutions and of the batch normalisations behind them in a `nn.Sequential`."""
    found = []
    for name, module in net.named_modules():
        if isinstance(module, nn.Sequential):
            for first, second in itertools.pairwise(module._modules):
                conv, norm = module._modules[first], module._modules[second]
                convolves = isinstance(conv, _ConvNd) and not isinstance(conv, _ConvTransposeNd)
                if convolves and isinstance(norm, _BatchNorm):
                    found.append((f"{name}.{first}".lstrip("."), f"{name}.{second}".lstrip(".")))
    return found


def is_sequence_throughout(net: nn.Module) -> bool:
    """Is it a layer of torch's, or a `nn.Sequential` of such, whose layers act in the order in which they stand?"""
    if isinstance(net, nn.Sequential):
        return type(net).forward is nn.Sequential.forward and all(map(is_sequence_throughout, net))
    return type(net).__module__.startswith("torch.nn.modules") and not any(net.children())


def check_neighbours(graph: Graph, pairs: list[tuple[str, str]]) -> None:
    """ValueError for a batch normalisation that does not see what its convolution returned, and nobody else does."""
    for conv, norm in pairs:
        for i, operation in enumerate(graph.operations):
            if not (graph.live[i] and operation.module in (conv, norm)):
                continue
            if operation.module == norm:
                source = operation.operand(0)
                direct = source is not None and graph.operations[source].module == conv
            else:
                direct = all(graph.operations[j].module in (conv, norm) for j in graph.users[i])
            if not direct:
                raise ValueError(
                    f"{norm}: something comes between it and {conv}, the convolution before it in the sequence; "
                    "call the sequence as a whole, or take the pair out of it."
                )


def fold_ours(net: Configured) -> None:
    """In place; on the device "meta" it makes the layers that a checkpoint of a folded network fills."""
    for name, module in net.named_modules():
        if isinstance(module, Stage) and module.between_blocks:
            raise ValueError(
                f"{name}.blocks.0: its weights are mixed with the next block's, which folded ones cannot be."
            )
    fold_sums(net)
    for name, module in net.named_modules():
        for conv, norm in getattr(module, "pairs", ()):
            if not isinstance(module._modules[norm], nn.Identity):
                fold_pair(net, f"{name}.{conv}".lstrip("."), f"{name}.{norm}".lstrip("."))
    net.config["folded"] = True


def fold_sums(net: nn.Module) -> int:
    """Sums of convolutions and batch normalisations; how many there were."""
    count, owners = 0, count_owners(net)
    for name, module in list(net.named_modules()):
        for child_name, child in module.named_children():
            where = f"{name}.{child_name}".lstrip(".")
            if type(child) is Sum and all(isinstance(part, ConvNorm | nn.Conv2d | _BatchNorm) for part in child.parts):
                if has_hooks(child):
                    raise ValueError(f"{where}: this sum has hooks, which may change what it returns; remove them.")
                if any(owners[id(parameter)] > 1 for parameter in child.parameters()):
                    raise ValueError(f"{where}: it shares parameters with another layer; untie them first.")
                module._modules[child_name] = one_convolution(child, where)
                count += 1
    return count


def fold_pairs(net: nn.Module, pairs: list[tuple[str, str]]) -> None:
    owners = count_owners(net)
    for conv, norm in pairs:
        parameters = (*net.get_submodule(conv).parameters(), *net.get_submodule(norm).parameters())
        if any(owners[id(parameter)] > 1 for parameter in parameters):
            raise ValueError(f"{conv}: it shares parameters with another layer; untie them first.")
        fold_pair(net, conv, norm)


def fold_pair(net: nn.Module, conv_name: str, norm_name: str) -> None:
    conv, norm = net.get_submodule(conv_name), net.get_submodule(norm_name)
    check_norm(norm, norm_name)
    if not (is_plain(conv) and is_plain(norm)):
        refuse_unproved(conv, norm, norm_name)
    for name, layer in ((conv_name, fold_affine(conv, norm)), (norm_name, nn.Identity())):
        parent, _, last = name.rpartition(".")
        net.get_submodule(parent)._modules[last] = layer


def check_norm(norm, where) -> None:
    if isinstance(norm, InstanceEnhancedNorm):
        raise ValueError(f"{where}: iebn's normalisation scales by its input and cannot be folded.")
    if isinstance(norm, NoisyNorm):
        raise ValueError(f"{where}: a NoisyNorm is no scaling alone and is not folded.")
    if not isinstance(norm, _BatchNorm) or norm.running_var is None:
        raise ValueError(f"{where}: a {type(norm).__name__} without running statistics cannot be folded.")


def refuse_unproved(conv, norm, where) -> None:
    """A pair that something was added to is folded only if that is exact on a copy with other weights."""
    generator = torch.Generator().manual_seed(0)
    conv, norm = (copy.deepcopy(layer).to("cpu", torch.float64).eval() for layer in (conv, norm))
    for parameter in (*conv.parameters(), *norm.parameters()):
        parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    x = torch.randn(shapes_for(conv)[0], generator=generator, dtype=torch.float64)
    wanted = norm(conv(x))
    try:
        error = (fold_affine(conv, norm)(x) - wanted).abs().max()
    except (KeyError, TypeError):  # weights that are computed from others cannot be set
        error = torch.tensor(torch.inf)
    if not error <= EXACT * wanted.abs().max():
        raise ValueError(
            f"{where}: a {type(norm).__name__} behind a {type(conv).__name__} has a forward of its own, hooks or a "
            "parametrisation, and could not be proved to fold."
        )


def fold_affine(conv, norm):
    """gamma/deviation times the kernel, and a bias; in float64, rounded once."""
    if conv.weight.is_meta:  # only shapes are needed here; arithmetic would make torch load its compiler
        conv.bias = nn.Parameter(conv.weight.new_empty(conv.out_channels))
        return conv
    scale, shift = affine(norm)
    if conv.bias is not None:
        shift = shift + conv.bias.double() * scale
    conv.weight = scaled_parameter(conv.weight, scale.reshape(-1, *(1,) * (conv.weight.ndim - 1)))
    conv.bias = nn.Parameter(shift.to(conv.weight.dtype), conv.weight.requires_grad)
    return conv


def affine(norm) -> tuple[torch.Tensor, torch.Tensor]:
    """What a batch normalisation does to a channel in evaluation mode: (scale, shift) in float64."""
    scale = (norm.running_var.double() + norm.eps).rsqrt()
    shift = -norm.running_mean.double() * scale
    if norm.affine:
        scale, shift = scale * norm.weight.double(), shift * norm.weight.double() + norm.bias.double()
    return scale, shift


def one_convolution(layer: Sum, where: str) -> nn.Conv2d:
    """The convolution that a sum of convolutions and batch normalisations is: kernels round one centre, in float64."""
    pairs: list[tuple[Any, Any]] = []
    for number, part in enumerate(layer.parts):
        pair = (part.conv, part.bn) if isinstance(part, ConvNorm) else (part, None)
        conv, norm = (None, part) if isinstance(part, _BatchNorm) else pair
        norm = None if isinstance(norm, nn.Identity) else norm
        for one in (part, conv, norm):
            if one is not None and not is_plain(one):
                raise ValueError(
                    f"{where}.parts.{number}: hooks, a forward of its own or a parametrisation; remove it."
                )
        if norm is not None:
            check_norm(norm, f"{where}.parts.{number}")
        pairs.append((conv, norm))
    convs = [conv for conv, _ in pairs if conv is not None]
    like = convs[0] if convs else None
    alone = len(convs) < len(pairs)  # a batch normalisation is a convolution of 1x1 and stride 1
    if like is None or any(geometry(conv) != geometry(like) or not is_centred(conv) for conv in convs):
        raise ValueError(
            f"{where}: convolutions of other strides, groups or paddings than each other; not one of them."
        )
    if alone and (like.stride != (1, 1) or like.in_channels != like.out_channels):
        raise ValueError(f"{where}: its batch normalisation keeps the shape that its convolutions change.")
    size = height, width = tuple(max(conv.kernel_size[axis] for conv in convs) for axis in (0, 1))
    one = nn.Conv2d(
        like.in_channels, like.out_channels, size, like.stride, (height // 2, width // 2), groups=like.groups,
        device="meta", dtype=like.weight.dtype,
    )  # fmt: skip
    if like.weight.is_meta:
        return one
    weight = torch.zeros(one.weight.shape, dtype=torch.float64, device=like.weight.device)
    bias = weight.new_zeros(like.out_channels)
    for conv, norm in pairs:
        scale, shift = (torch.ones_like(bias), torch.zeros_like(bias)) if norm is None else affine(norm)
        if conv is None:
            channel = torch.arange(like.out_channels, device=bias.device)
            weight[channel, channel % weight.shape[1], height // 2, width // 2] += scale
        else:
            h, w = conv.kernel_size
            top, left = (height - h) // 2, (width - w) // 2
            weight[:, :, top : top + h, left : left + w] += scale.reshape(-1, 1, 1, 1) * conv.weight.double()
            shift = shift if conv.bias is None else shift + conv.bias.double() * scale
        bias += shift
    wanted = like.weight.requires_grad
    one.weight, one.bias = (nn.Parameter(tensor.to(like.weight.dtype), wanted) for tensor in (weight, bias))
    return one.eval()


def geometry(conv: nn.Conv2d) -> tuple:
    return conv.stride, conv.groups, conv.in_channels, conv.out_channels


def is_centred(conv: nn.Conv2d) -> bool:
    """Does it keep height and width, but for its stride, with zeros around?"""
    same = tuple(size // 2 for size in conv.kernel_size) == conv.padding and all(size % 2 for size in conv.kernel_size)
    return same and conv.dilation == (1, 1) and conv.padding_mode == "zeros"
