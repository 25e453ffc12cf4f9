"""How a constant per channel folds into the layer before it: the ASR paper, Eq. 5 to 7 and appendix B.

Products are formed in float64 and rounded once. What a layer of torch computes is known; a layer of another class is
tried on a copy before a constant is folded into it.
"""

import copy
import functools
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]
from torch.nn.utils import parametrize
from torch.nn.utils.spectral_norm import SpectralNorm, remove_spectral_norm
from torch.nn.utils.weight_norm import WeightNorm, remove_weight_norm

from netbridge.layers.own import ConvNorm, LayerScale, SelfAttention, Sum

PASSING = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
POSITIVE = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)  # f(h x) = h f(x) for h >= 0
OURS = ("torch.nn.", "netbridge.")
LARGE = 1e6  # one input of a trial is so many times larger, so that a layer that cuts off what is large is seen
EXACT = 1e-12  # of the largest output, in float64: larger differences come from another function than the rule assumes


@functools.singledispatch
def absorb(layer: nn.Module, h) -> None:
    """Change a layer in place so that it returns h * layer(x).

    Normalisations, convolutions, linear layers, attention, sequences that end in one of them and sums of them
    (`nb.Sum`) are known. Another kind is taught by `@nb.absorb.register`: a function of the layer and h that changes
    the layer, or raises ValueError.

    layer  the layer to change
    h      one number per channel of its output, or a single number

    Raises ValueError where that would not be exact: for layers that cannot take up a constant, for a wrong number of
    channels, for weights that are computed from others, for layers with hooks, and for a class with a `forward` of its
    own after which h does not fold.

    >>> import torch, netbridge as nb
    >>> layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    >>> before = layer(x)
    >>> nb.absorb(layer, 0.5)
    >>> bool(torch.allclose(layer(x), 0.5 * before))
    True
    """
    raise ValueError(
        f"a {type(layer).__name__} cannot take up a constant exactly; normalisations, convolutions, linear layers and "
        "attention can"
    )


def exact(rule):
    """A rule for torch's own layers, tried on a copy first where a subclass may compute something else."""

    @functools.wraps(rule)
    def absorbing(layer, h):
        kind = type(layer).__name__
        if any(isinstance(tensor, UninitializedTensorMixin) for tensor in (*layer.parameters(), *layer.buffers())):
            raise ValueError(f"this {kind} has no shape yet; run the network once")
        if has_hooks(layer):
            raise ValueError(f"this {kind} has hooks, which may change what it returns; remove them")
        if parametrize.is_parametrized(layer):
            names = " and ".join(layer.parametrizations)
            raise ValueError(f"the {names} of this {kind} comes from a parametrisation; remove that first")
        h = as_tensor(h, layer)
        if not is_torchs(layer):
            try_on_a_copy(rule, layer, bool((h < 0).any()))
        rule(layer, h)

    return absorbing


def as_tensor(h, layer: nn.Module) -> torch.Tensor:
    """A step size as a tensor of floating-point numbers; ValueError where it holds anything else."""
    try:
        tensor = torch.as_tensor(h).detach()
        if not bool(tensor.isfinite().all()):
            raise ValueError
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"`h` must be a finite number, or one for every channel, got {h!r}") from None
    precise = isinstance(h, torch.Tensor) or any(True for _ in (*layer.parameters(), *layer.buffers()))
    return tensor if precise and tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def has_hooks(layer: nn.Module) -> bool:
    """Does the layer itself have hooks, or a sequence or a pass-through inside it?"""
    parts = [part for part in layer.modules() if part is layer or isinstance(part, (nn.Sequential, *PASSING))]
    return any(part._forward_hooks or part._forward_pre_hooks for part in parts)


def settle_weights(layer: nn.Module) -> None:
    """Make plain, in place, what weight_norm and spectral_norm compute the weights of a layer from, as in evaluation.

    Parametrisations of torch, of any kind, and the hooks of the older weight_norm and spectral_norm.
    """
    training = layer.training
    layer.eval()  # where spectral_norm does not go on with its iteration
    if parametrize.is_parametrized(layer):
        parts: Any = layer.parametrizations
        weights = {name: nn.Parameter(getattr(layer, name).detach().clone()) for name in parts}
        for name, weight in weights.items():
            weight.requires_grad_(any(part.requires_grad for part in parts[name].parameters()))
        del layer.parametrizations
        layer.__class__ = type(layer).__bases__[0]  # torch would take the properties from the class, which copies share
        for name, weight in weights.items():
            layer.register_parameter(name, weight)
    for hook in list(layer._forward_pre_hooks.values()):
        if isinstance(hook, WeightNorm):
            remove_weight_norm(layer, hook.name)
        elif isinstance(hook, SpectralNorm):
            remove_spectral_norm(layer, hook.name)
    layer.train(training)


def is_torchs(layer: nn.Module) -> bool:
    """Is what the layer computes written by torch, or here, and not in a class of somebody's own?"""
    return type(layer).__module__.startswith(OURS) and "forward" not in vars(layer)


def is_plain(layer: nn.Module) -> bool:
    """Is it a layer of torch's that nothing was added to: no `forward`, no hook, no parametrisation?"""
    return is_torchs(layer) and not has_hooks(layer) and not parametrize.is_parametrized(layer)


def try_on_a_copy(rule, layer: nn.Module, negative: bool) -> None:
    """Raises ValueError unless the rule is exact on random weights, step sizes (`negative` ones, too) and inputs."""
    kind, known = type(layer), next(base for base in type(layer).__mro__ if base.__module__.startswith(OURS))
    generator = torch.Generator().manual_seed(0)
    trial = copy.deepcopy(layer).to("cpu", torch.float64).eval()
    with torch.no_grad():
        for parameter in trial.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        for shape in shapes_for(trial):
            x = torch.randn(shape, generator=generator, dtype=torch.float64)
            x[-1] *= LARGE
            try:
                before = trial(x)
                last = last_layer(trial)
                axis = -1 if isinstance(last, nn.Linear) else 1
                if isinstance(last, nn.LayerNorm | nn.RMSNorm):
                    axis = -len(last.normalized_shape)
                h = 0.5 + torch.rand(before.shape[axis], generator=generator, dtype=torch.float64)
                h[0] *= -1 if negative else 1
                rule(trial, h)
                wanted = before * h.reshape(-1, *(1,) * (before.ndim - 1)).movedim(0, axis)
                errors, sizes = (part.abs().flatten(1).amax(1) for part in (trial(x) - wanted, wanted))
                close = bool((errors <= EXACT * sizes).all())
            except Exception:
                continue
            if close:
                return
            break
    raise ValueError(
        f"a {kind.__name__} is a {known.__name__} with a forward of its own, after which a constant could not be "
        "proved to fold"
    )


def shapes_for(layer: nn.Module):
    """Shapes of inputs that the first layer inside may take."""
    for part in layer.modules():
        if isinstance(part, _ConvNd):
            space = (d * (k - 1) + 3 for d, k in zip(part.dilation, part.kernel_size, strict=True))
            return [(4, part.in_channels, *space)]
        if isinstance(part, nn.Linear):
            return [(4, part.in_features), (4, 5, part.in_features)]
        if isinstance(part, nn.LayerNorm | nn.RMSNorm):
            return [(4, 5, *part.normalized_shape), (4, *part.normalized_shape)]
        if isinstance(part, _NormBase | nn.GroupNorm):
            channels = part.num_channels if isinstance(part, nn.GroupNorm) else part.num_features
            return [(4, channels, *(5,) * axes) for axes in (2, 1, 0, 3)]
    return []


def last_layer(layer: nn.Module, passed: tuple[type, ...] = ()) -> nn.Module:
    """The last layer of a sequence that is more than a pass-through, and of none of the classes `passed`.

    Any other layer is returned itself.
    """
    while isinstance(layer, nn.Sequential):
        through = [isinstance(part, PASSING) or (type(part) in passed and is_plain(part)) for part in layer]
        layers = [part for part, passes in zip(layer, through, strict=True) if not passes]
        if not layers:
            break
        layer = layers[-1]
    return layer


def scaled_parameter(tensor: torch.Tensor, factor: torch.Tensor) -> nn.Parameter:
    """tensor * factor, formed in float64 and rounded once."""
    product = (tensor.detach().double() * factor.to(tensor.device, torch.float64)).to(tensor.dtype)
    return nn.Parameter(product, tensor.requires_grad)


def per_channel(h: torch.Tensor, channels: int, layer: nn.Module) -> torch.Tensor:
    """The vector of length `channels`."""
    if h.numel() not in (1, channels):
        raise ValueError(f"{h.numel()} step sizes do not fit the {channels} channels of a {type(layer).__name__}")
    return h.reshape(-1).expand(channels)


def scale_output(layer, h, shape=(-1,)) -> None:
    """For a layer whose output is linear in weight and bias: both times h."""
    layer.weight = scaled_parameter(layer.weight, h.reshape(shape))
    if getattr(layer, "bias", None) is not None:  # nn.RMSNorm has no such name
        layer.bias = scaled_parameter(layer.bias, h)


def give_affine(layer, h, like) -> None:
    """Gives a normalisation without scale and shift the scale h and the shift 0."""
    scale = h.clone() if like is None else h.to(like)
    layer.weight, layer.bias = nn.Parameter(scale), nn.Parameter(torch.zeros_like(scale))
    layer.affine = True


@absorb.register
@exact
def _(layer: _NormBase, h):
    h = per_channel(h, layer.num_features, layer)
    if layer.weight is None:
        give_affine(layer, h, layer.running_mean)
    else:
        scale_output(layer, h)


@absorb.register
@exact
def _(layer: nn.GroupNorm, h):
    h = per_channel(h, layer.num_channels, layer)
    if layer.weight is None:
        give_affine(layer, h, None)
    else:
        scale_output(layer, h)


@absorb.register
@exact
def _(layer: nn.LayerNorm | nn.RMSNorm, h):
    """Over tokens (..., C); over maps (C, H, W) the channel is the first of the normalised axes."""
    sizes = layer.normalized_shape
    h = per_channel(h, sizes[0], layer).reshape(-1, *(1,) * (len(sizes) - 1)).expand(sizes)
    if layer.weight is None:
        layer.weight = nn.Parameter(h.clone())
        layer.elementwise_affine = True
    else:
        scale_output(layer, h, sizes)


@absorb.register
@exact
def _(layer: _ConvNd, h):
    scale_output(layer, per_channel(h, layer.out_channels, layer), (-1, *(1,) * (layer.weight.ndim - 1)))


@absorb.register
@exact
def _(layer: _ConvTransposeNd, h):
    """The weight is (in, out/groups, ...): each group of inputs has its own outputs."""
    h = per_channel(h, layer.out_channels, layer)
    per_input = h.reshape(layer.groups, -1).repeat_interleave(layer.in_channels // layer.groups, dim=0)
    layer.weight = scaled_parameter(layer.weight, per_input.reshape(*per_input.shape, *(1,) * (layer.weight.ndim - 2)))
    if layer.bias is not None:
        layer.bias = scaled_parameter(layer.bias, h)


@absorb.register
@exact
def _(layer: nn.Linear, h):
    scale_output(layer, per_channel(h, layer.out_features, layer), (-1, 1))


@absorb.register
@exact
def _(layer: nn.MultiheadAttention, h):
    """Its last layer is the output projection."""
    absorb(layer.out_proj, h)


@absorb.register
@exact
def _(layer: SelfAttention, h):
    """Without an output projection the constant goes into the values: A (h V) = h (A V)."""
    absorb(layer.value, h)


@absorb.register
@exact
def _(layer: nn.Sequential, h):
    """The last layer that is more than a pass-through; behind a ReLU, for constants that are nowhere negative."""
    last = last_layer(layer, POSITIVE if bool((h >= 0).all()) else ())
    if last is layer:
        raise ValueError("this Sequential holds no layer that could take up a constant")
    if [part for _, part in layer.named_modules(remove_duplicate=False)].count(last) > 1:
        raise ValueError(f"the last layer of this Sequential, a {type(last).__name__}, acts more than once in it")
    absorb(last, h)


@absorb.register
@exact
def _(layer: ConvNorm, h):
    """The normalisation, or the convolution where there is none."""
    absorb(layer.last, h)


@absorb.register
@exact
def _(layer: Sum, h):
    """Every summand, or none."""
    owned = [id(parameter) for part in layer.parts for parameter in part.parameters()]
    if len(owned) > len(set(owned)):
        raise ValueError("a layer acts more than once in this Sum")
    for part in layer.parts:
        absorb(copy.deepcopy(part), h)  # a refusal comes before anything has changed
    for part in layer.parts:
        absorb(part, h)


@absorb.register
@exact
def _(layer: LayerScale, h):
    layer.gamma = scaled_parameter(layer.gamma, per_channel(h, len(layer.gamma), layer))
