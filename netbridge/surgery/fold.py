"""Batch normalisation folded into the convolution before it, for inference."""

import copy
import itertools

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from netbridge.model.network import Network
from netbridge.step_sizes.iebn import InstanceEnhancedNorm
from netbridge.surgery.absorb import EXACT, is_plain, scaled, shapes_for
from netbridge.surgery.merge import count_owners
from netbridge.surgery.noise import NoisyNorm


def fold(net: nn.Module) -> nn.Module:
    """A new module in evaluation mode that computes the same with fewer layers; `net` is not changed.

    net  a network of ours, or any module with `nn.Sequential` parts

    In our networks every batch normalisation behind a convolution goes; in pre-activation ones the first of each block
    follows an addition and stays. In other modules those go that follow a convolution in a `nn.Sequential`. Raises
    ValueError, with the layer's name, for normalisations that cannot be folded exactly.

    >>> import torch, netbridge as nb
    >>> net, images = nb.resnet(14).eval(), torch.rand(2, 3, 32, 32)
    >>> folded = nb.fold(net)
    >>> folded.blocks[0].branch.bn1, bool(torch.allclose(folded(images), net(images), atol=1e-5))
    (Identity(), True)
    """
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a network, got {type(net).__name__}.")
    new = copy.deepcopy(net).eval()
    with torch.no_grad():
        if isinstance(new, Network):
            fold_network(new)
        elif not fold_sequences(new):
            raise ValueError("`net` has no nn.Sequential in which a batch normalisation follows a convolution.")
    return new


def fold_network(net: Network) -> None:
    for conv_parent, conv_name, norm_parent, norm_name, where in foldable(net):
        fold_pair(conv_parent, conv_name, norm_parent, norm_name, where)
    for block in net.blocks:
        block.branch.folded = True
    net.config["folded"] = True


def fold_structure(net: Network) -> None:
    """What `fold` leaves of the layers, with whatever values: for a checkpoint to fill."""
    for conv_parent, conv_name, norm_parent, norm_name, _ in foldable(net):
        conv = conv_parent._modules[conv_name]
        conv.bias = nn.Parameter(torch.empty(conv.out_channels, device=conv.weight.device, dtype=conv.weight.dtype))
        norm_parent._modules[norm_name] = nn.Identity()
    for block in net.blocks:
        block.branch.folded = True


def foldable(net: Network):
    """(parent, convolution, parent, the normalisation after it, name of the place) for all pairs not yet folded."""
    places = [(net.stem, "conv", net.stem, "bn", "stem")]
    names = iter(net.block_names)
    for stage in net.stages:
        for block in stage.blocks:
            name = next(names)
            if stage.between_blocks:
                raise ValueError(f"{name}: its weights are mixed with the next block's, which folded ones cannot be.")
            branch = block.branch
            behind = 0 if branch.post_activation else 1  # bn_i follows conv_i, or stands before it
            for i in range(1, branch.depth + 1 - behind):
                places.append((branch, f"conv{i}", branch, f"bn{i + behind}", f"{name}.branch"))
            if hasattr(block.shortcut, "bn"):
                places.append((block.shortcut, "conv", block.shortcut, "bn", f"{name}.shortcut"))
    return [place for place in places if not isinstance(place[2]._modules[place[3]], nn.Identity)]


def fold_sequences(net: nn.Module) -> int:
    count, owners = 0, count_owners(net)
    for name, module in net.named_modules():
        if isinstance(module, nn.Sequential):
            for first, second in itertools.pairwise(list(module._modules)):
                conv, norm = module._modules[first], module._modules[second]
                convolves = isinstance(conv, _ConvNd) and not isinstance(conv, _ConvTransposeNd)
                if convolves and isinstance(norm, _BatchNorm):
                    if any(owners[id(parameter)] > 1 for parameter in (*conv.parameters(), *norm.parameters())):
                        raise ValueError(f"{name}.{first}: it shares parameters with another layer; untie them first.")
                    fold_pair(module, first, module, second, name or "the module")
                    count += 1
    return count


def fold_pair(conv_parent, conv_name, norm_parent, norm_name, where) -> None:
    conv, norm = conv_parent._modules[conv_name], norm_parent._modules[norm_name]
    if isinstance(norm, InstanceEnhancedNorm):
        raise ValueError(f"{where}.{norm_name}: iebn's normalisation scales by its input and cannot be folded.")
    if isinstance(norm, NoisyNorm):
        raise ValueError(f"{where}.{norm_name}: a NoisyNorm is no scaling alone and is not folded.")
    if not isinstance(norm, _BatchNorm) or norm.running_var is None:
        raise ValueError(f"{where}.{norm_name}: a {type(norm).__name__} without running statistics cannot be folded.")
    if not (is_plain(conv) and is_plain(norm)):
        refuse_unproved(conv, norm, f"{where}.{norm_name}")
    conv_parent._modules[conv_name] = folded(conv, norm)
    norm_parent._modules[norm_name] = nn.Identity()


def refuse_unproved(conv, norm, where) -> None:
    """A pair that something was added to is folded only if that is exact on a copy with other weights."""
    generator = torch.Generator().manual_seed(0)
    conv, norm = (copy.deepcopy(layer).to("cpu", torch.float64).eval() for layer in (conv, norm))
    for parameter in (*conv.parameters(), *norm.parameters()):
        parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    x = torch.randn(shapes_for(conv)[0], generator=generator, dtype=torch.float64)
    wanted = norm(conv(x))
    try:
        error = (folded(conv, norm)(x) - wanted).abs().max()
    except (KeyError, TypeError):  # weights that are computed from others cannot be set
        error = torch.tensor(torch.inf)
    if not error <= EXACT * wanted.abs().max():
        raise ValueError(
            f"{where}: a {type(norm).__name__} behind a {type(conv).__name__} has a forward of its own, hooks or a "
            "parametrisation, and could not be proved to fold."
        )


def folded(conv, norm):
    """gamma/deviation times the kernel, and a bias; in float64, rounded once."""
    scale = (norm.running_var.double() + norm.eps).rsqrt()
    shift = -norm.running_mean.double() * scale
    if norm.affine:
        scale, shift = scale * norm.weight.double(), shift * norm.weight.double() + norm.bias.double()
    if conv.bias is not None:
        shift = shift + conv.bias.double() * scale
    conv.weight = scaled(conv.weight, scale.reshape(-1, *(1,) * (conv.weight.ndim - 1)))
    conv.bias = nn.Parameter(shift.to(conv.weight.dtype), conv.weight.requires_grad)
    return conv
