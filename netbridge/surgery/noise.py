"""Noise in batch normalisations: the experiment of Table 8 in "ASR: Attention-alike Structural Re-parameterization".

A normalisation returns gamma x + beta of the normalised x; with noise it returns gamma (N_a x + N_b) + beta. Constant
N_a and N_b are another first value of gamma and beta, and no noise. Statistics are always those of the clean input.
"""

import copy
import math
from typing import TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

Module = TypeVar("Module", bound=nn.Module)


class NoisyNorm(nn.BatchNorm2d):
    """A batch normalisation whose normalised values x become N_a x + N_b before its own scale and shift.

    channels   channels of the maps
    scale      the mean of N_a; default 1
    shift      the mean of N_b; default 0
    deviation  standard deviation of N_a and N_b, or a pair of theirs, drawn anew for every batch and channel; default 0
    at_test    whether they are drawn in evaluation mode too (True), or have their means there (False, the default)
    options    those of `torch.nn.BatchNorm2d`; affine=False, track_running_stats=False and momentum=None are refused

    >>> import torch, netbridge as nb
    >>> x = torch.randn(8, 4, 5, 5)
    >>> noisy, clean = nb.NoisyNorm(4, scale=0.5, shift=0.2), torch.nn.BatchNorm2d(4)
    >>> bool(torch.allclose(noisy(x), 0.5 * clean(x) + 0.2, atol=1e-6))
    True
    """

    def __init__(self, channels: int, scale=1.0, shift=0.0, deviation=0.0, at_test=False, **options):
        super().__init__(channels, **options)
        if not (self.affine and self.track_running_stats) or self.momentum is None:
            raise ValueError("`options` must leave a NoisyNorm its scale and shift and running averages of statistics.")
        pair = deviation if isinstance(deviation, tuple | list) else (deviation,) * 2
        if len(pair) != 2 or not all(isinstance(one, int | float) and 0.0 <= one < math.inf for one in pair):
            raise ValueError(f"`deviation` must be a number from 0 on, or a pair of them, got {deviation!r}.")
        self.scale, self.shift, self.deviation, self.at_test = float(scale), float(shift), deviation, at_test

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(input)
        scale: float | torch.Tensor = self.scale
        shift: float | torch.Tensor = self.shift
        if self.deviation and (self.training or self.at_test):
            of_scale, of_shift = np.broadcast_to(self.deviation, 2).tolist()
            scale = scale + of_scale * torch.randn_like(self.weight)
            shift = shift + of_shift * torch.randn_like(self.weight)
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        weight, bias = self.weight * scale, self.bias + self.weight * shift
        statistics = (self.running_mean, self.running_var)
        return F.batch_norm(input, *statistics, weight, bias, self.training, self.momentum or 0.0, self.eps)

    def extra_repr(self):
        return f"{super().extra_repr()}, scale={self.scale}, shift={self.shift}, deviation={self.deviation}"


def add_noise(net: Module, scale=1.0, shift=0.0, deviation=0.0, at_test=False) -> Module:
    """A copy of a network in which every `BatchNorm2d` is a `NoisyNorm`; parameters and statistics stay what they are.

    net        any network; it is not changed
    scale      the mean of N_a; default 1
    shift      the mean of N_b; default 0
    deviation  standard deviation of N_a and N_b, or a pair of theirs, drawn anew for every batch and channel; default 0
    at_test    whether they are drawn in evaluation mode too

    Returns the noisy copy, of the same class. Raises ValueError where a normalisation has no scale and shift, keeps no
    statistics or averages them over all batches, or is of a class of its own, and where the network has none.

    >>> import netbridge as nb
    >>> net = nb.resnet(8, widths=(4, 8, 8))
    >>> nb.add_noise(net, scale=0.8, shift=0.8).stem.bn
    NoisyNorm(4, ..., scale=0.8, shift=0.8, deviation=0.0)
    """
    noisy = copy.deepcopy(net)
    norms = [(name, module) for name, module in noisy.named_modules() if isinstance(module, nn.BatchNorm2d)]
    if not norms:
        raise ValueError(f"`net` has no BatchNorm2d to put noise in, in this {type(net).__name__}.")
    for name, norm in norms:
        usual = norm.affine and norm.track_running_stats and norm.momentum is not None
        if type(norm) is not nn.BatchNorm2d or not usual:
            raise ValueError(f"`net`: {name} is no usual BatchNorm2d with scale, shift and running averages: {norm}.")
        other = NoisyNorm(norm.num_features, scale, shift, deviation, at_test, eps=norm.eps, momentum=norm.momentum)
        other.load_state_dict(norm.state_dict())
        other.to(norm.weight).train(norm.training)
        for own, kept in zip(other.parameters(), norm.parameters(), strict=True):
            own.requires_grad_(kept.requires_grad)
        parent, _, last = name.rpartition(".")
        setattr(noisy.get_submodule(parent), last, other)
    return noisy
