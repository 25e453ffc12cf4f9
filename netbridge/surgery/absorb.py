"""How a constant per channel folds into the layer before it: the ASR paper, Eq. 5 to 7 and appendix B.

Products are formed in float64 and rounded once. Another kind of layer is taught by `@absorb.register(Kind)`, a function
of the layer and the vector that changes the layer in place, or raises ValueError where that would not be exact.
"""

import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd


class SelfAttention(nn.Module):
    """softmax(Q K'/sqrt(d)) V over tokens (N, T, features), `heads` of them side by side.

    A step size on its output folds into the value projection. With a `nn.Linear` after it, a transformer's attention.
    """

    def __init__(self, features: int, heads: int = 1, bias: bool = True):
        super().__init__()
        if features % heads:
            raise ValueError(f"`heads` = {heads} must divide `features` = {features}.")
        self.heads = heads
        self.query = nn.Linear(features, features, bias=bias)
        self.key = nn.Linear(features, features, bias=bias)
        self.value = nn.Linear(features, features, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        return F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)


@functools.singledispatch
def absorb(layer: nn.Module, h: torch.Tensor) -> None:
    """Change `layer` in place so that it returns h * layer(x); h holds one number per channel, or a single one."""
    raise ValueError(
        f"a {type(layer).__name__} cannot take up a constant exactly; normalisations, convolutions, linear layers and "
        "attention can"
    )


def scaled(tensor: torch.Tensor, factor: torch.Tensor) -> nn.Parameter:
    product = (tensor.detach().double() * factor.to(tensor.device, torch.float64)).to(tensor.dtype)
    return nn.Parameter(product, tensor.requires_grad)


def per_channel(h: torch.Tensor, channels: int, layer: nn.Module) -> torch.Tensor:
    """The vector of length `channels`; refuses layers whose weights are computed from something else."""
    if "weight" not in layer._parameters:
        raise ValueError(f"the weight of this {type(layer).__name__} comes from a parametrisation; remove that first")
    if h.numel() not in (1, channels):
        raise ValueError(f"{h.numel()} step sizes do not fit the {channels} channels of a {type(layer).__name__}")
    return h.detach().reshape(-1).expand(channels)


def scale_output(layer, h, shape) -> None:
    """For a layer whose output is linear in weight and bias: both times h."""
    layer.weight = scaled(layer.weight, h.reshape(shape))
    if layer.bias is not None:
        layer.bias = scaled(layer.bias, h)


@absorb.register
def _(layer: _NormBase, h):
    channels = layer.num_features
    h = per_channel(h, channels, layer)
    if layer.weight is None:
        give_affine(layer, h, layer.running_mean)
    else:
        scale_output(layer, h, (-1,))


@absorb.register
def _(layer: nn.GroupNorm, h):
    h = per_channel(h, layer.num_channels, layer)
    if layer.weight is None:
        give_affine(layer, h, None)
    else:
        scale_output(layer, h, (-1,))


@absorb.register
def _(layer: nn.LayerNorm, h):
    """Over tokens (..., C); over maps (C, H, W) the channel is the first of the normalised axes."""
    sizes = layer.normalized_shape
    shape = (-1, *(1,) * (len(sizes) - 1))
    h = per_channel(h, sizes[0], layer).reshape(shape).expand(sizes)
    if layer.weight is None:
        layer.weight = nn.Parameter(h.clone())
        layer.elementwise_affine = True
        return
    layer.weight = scaled(layer.weight, h)
    if layer.bias is not None:
        layer.bias = scaled(layer.bias, h)


def give_affine(layer, h, like) -> None:
    """A normalisation without scale and shift gets those that say h."""
    scale = h.clone() if like is None else h.to(like)
    layer.weight, layer.bias = nn.Parameter(scale), nn.Parameter(torch.zeros_like(scale))
    layer.affine = True


@absorb.register
def _(layer: _ConvNd, h):
    h = per_channel(h, layer.out_channels, layer)
    scale_output(layer, h, (-1, *(1,) * (layer.weight.ndim - 1)))


@absorb.register
def _(layer: _ConvTransposeNd, h):
    """The weight is (in, out/groups, ...): each group of inputs has its own outputs."""
    h = per_channel(h, layer.out_channels, layer)
    per_input = h.reshape(layer.groups, -1).repeat_interleave(layer.in_channels // layer.groups, dim=0)
    layer.weight = scaled(layer.weight, per_input.reshape(*per_input.shape, *(1,) * (layer.weight.ndim - 2)))
    if layer.bias is not None:
        layer.bias = scaled(layer.bias, h)


@absorb.register
def _(layer: nn.Linear, h):
    scale_output(layer, per_channel(h, layer.out_features, layer), (-1, 1))


@absorb.register
def _(layer: nn.MultiheadAttention, h):
    """Its last layer is the output projection."""
    absorb(layer.out_proj, h)


@absorb.register
def _(layer: SelfAttention, h):
    """Without an output projection the constant goes into the values: A (h V) = h (A V)."""
    absorb(layer.value, h)


@absorb.register
def _(layer: nn.Sequential, h):
    """The last layer that is more than a pass-through."""
    passing = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
    layers = [part for part in layer if not isinstance(part, passing)]
    if not layers:
        raise ValueError("this Sequential holds no layer that could take up a constant")
    absorb(layers[-1], h)
