"""Layers that torch has not: a normalised convolution, a sum of layers, a factor per feature, plain self-attention."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

CONVOLUTIONS = ("plain", "asymmetric")
GROUPS = 8  # of a group normalisation; where 8 does not divide the channels, the number of groups is smaller


def normalisation(kind: str, channels: int) -> nn.Module:
    """A fresh normalisation with a learnt scale and shift per channel."""
    return NORMS[kind](channels)


NORMS: dict[str, Callable[[int], nn.Module]] = {
    "batch": nn.BatchNorm2d,
    "group": lambda channels: nn.GroupNorm(math.gcd(GROUPS, channels), channels),
    "instance": lambda channels: nn.InstanceNorm2d(channels, affine=True),
    "layer": lambda channels: nn.GroupNorm(1, channels),
}


class ConvNorm(nn.Module):
    """A convolution that keeps height and width, but for its stride, and its normalisation.

    norm  the kind of normalisation; None: none, and `bias` says whether the convolution has a bias
    """

    pairs = (("conv", "bn"),)  # what `nb.fold` makes one layer of

    def __init__(self, channels_in, channels_out, kernel=3, stride=1, groups=1, norm: str | None = "batch", bias=False):
        super().__init__()
        self.in_channels, self.out_channels = channels_in, channels_out
        padding = kernel // 2 if isinstance(kernel, int) else tuple(size // 2 for size in kernel)
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride, padding, groups=groups, bias=bias)
        self.bn = nn.Identity() if norm is None else normalisation(norm, channels_out)

    @property
    def last(self) -> nn.Module:
        """The layer whose output this is."""
        return self.conv if isinstance(self.bn, nn.Identity) else self.bn

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x))


class Sum(nn.Module):
    """Applies several layers to the same input and adds their outputs.

    A step size after the sum multiplies all outputs, so `nb.merge` folds it into every layer. Where the layers are
    convolutions, with or without a batch normalisation, or batch normalisations alone, `nb.fold` replaces the sum by
    one convolution, as RepVGG and ACNet do.

    parts  the layers

    >>> import torch, netbridge as nb
    >>> both = nb.Sum(torch.nn.Conv2d(3, 3, 3, padding=1), torch.nn.BatchNorm2d(3))
    >>> type(nb.fold(torch.nn.Sequential(both))[0]).__name__
    'Conv2d'
    """

    def __init__(self, *parts: nn.Module):
        super().__init__()
        if not parts:
            raise ValueError("`parts` must hold a layer at least.")
        self.parts = nn.ModuleList(parts)

    @property
    def in_channels(self) -> Any:
        """Channels of the input, taken from the first layer that has such an attribute; None if no layer has."""
        return next((part.in_channels for part in self.parts if hasattr(part, "in_channels")), None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, *others = self.parts
        total = first(x)
        for part in others:
            total = total + part(x)
        return total


class LayerScale(nn.Module):
    """A learnt factor per feature, features last. Touvron et al., Going Deeper with Image Transformers, 2021, Eq. 4."""

    def __init__(self, features: int, start: float):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((features,), start))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gamma * x


class SelfAttention(nn.Module):
    """Self-attention over tokens (N, T, features): softmax(Q K'/sqrt(d)) V, without an output projection.

    As the ASR paper writes it in appendix B (4): a step size on its output folds into the value projection. With a
    `nn.Linear` behind it, it is a transformer's attention.

    features  length of a token
    heads     how many attentions side by side; they must divide `features`
    bias      whether the three linear maps have one

    >>> import torch, netbridge as nb
    >>> nb.SelfAttention(6, heads=2)(torch.rand(2, 7, 6)).shape
    torch.Size([2, 7, 6])
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


def convolution(kind: str, channels_in: int, channels_out: int, kernel: int, stride: int, norm: str) -> nn.Module:
    """A convolution without bias; an asymmetric one of 3x3 is a normalised sum of 3x3, 1x3 and 3x1.

    Ding et al., ACNet: Strengthening the Kernel Skeletons, ICCV 2019, Section 3.2.
    """
    if kind == "plain" or kernel != 3:
        return nn.Conv2d(channels_in, channels_out, kernel, stride, padding=kernel // 2, bias=False)
    return Sum(*(ConvNorm(channels_in, channels_out, size, stride, norm=norm) for size in (3, (1, 3), (3, 1))))


def behind(layer: nn.Module, norm: str, channels: int) -> nn.Module:
    """The normalisation that a convolution still needs: none behind a sum, whose parts have theirs."""
    return nn.Identity() if isinstance(layer, Sum) else normalisation(norm, channels)
