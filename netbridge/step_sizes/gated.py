"""A step size outside a residual stage: behind the layers of a VGG or MobileNet, inside a transformer's encoder."""

import math

import torch
from torch import nn

from netbridge.foreign.flow import Flow
from netbridge.foreign.operations import Place, Step
from netbridge.foreign.vocabulary import LAYOUTS
from netbridge.layers.absorb import is_torchs, last_layer
from netbridge.layers.own import LayerScale, SelfAttention, Sum
from netbridge.step_sizes import spec
from netbridge.step_sizes.base import check_step_size

SIZES = ("num_features", "num_channels", "out_channels", "out_features", "embed_dim")


class Gated(nn.Module):
    """A layer with a step size: h * layer(x), with h from any controller that needs no stage.

    Channels are axis 1 behind convolutions and their normalisations, the last axis behind linear layers, attention and
    layer norms; in a sequence the last of these decides, and behind anything else they are axis 1. The controller
    always sees maps (N, C, height, width): tokens (N, T, C) become (N, C, T, 1), features (N, C) become (N, C, 1, 1). A
    layer that returns several things, as `nn.MultiheadAttention` does, has the first of them multiplied. `nb.merge`
    folds a constant h into the layer and puts the layer in this module's place.

    layer       the layer whose output is multiplied
    controller  a name, such as "se" or "asr(se)", an `nb.Spec` or a class of your own
    channels    channels of the layer's output; None: asked of the layer
    axis        where the output has them; None: asked of the layer
    into        the layers before the end of `layer` into which a constant step size can be folded, where `layer` is an
                activation or ends in a change of layout; None: it is folded into `layer` itself
    positive    whether that can only be a constant which is nowhere negative

    Raises ValueError for controllers that need the blocks of a stage, and for channels that do not fit.

    >>> import torch, netbridge as nb
    >>> tokens = torch.rand(2, 7, 6)
    >>> nb.Gated(torch.nn.Linear(6, 5), "se")(tokens).shape
    torch.Size([2, 7, 5])
    >>> gated = nb.Gated(torch.nn.Linear(6, 5), nb.asr("se"))
    >>> bool(torch.allclose(nb.merge(gated)(tokens), gated(tokens), atol=1e-6))
    True
    """

    def __init__(
        self,
        layer: nn.Module,
        controller,
        channels: int | None = None,
        axis: int | None = None,
        into: tuple[nn.Module, ...] | None = None,
        positive: bool = True,
    ):
        super().__init__()
        wanted, known = spec.spec_of(controller), channels_of(layer)
        if wanted.kind.shared or wanted.kind.modifies_branch:
            raise ValueError(f"controller {wanted.name!r} needs the blocks of a stage; a single layer has none.")
        if channels is None and known is None:
            raise ValueError(f"`channels` must be given: how many a {type(layer).__name__} returns is not known.")
        if None not in (channels, known) and channels != known:
            raise ValueError(f"`channels` = {channels} do not fit the {known} channels of a {type(layer).__name__}.")
        entering = getattr(layer, "in_features", getattr(layer, "in_channels", known))
        if wanted.name == "stepnet" and wanted.options.get("inputs") != "difference" and entering != known:
            raise ValueError(
                f"controller 'stepnet' joins state and slope, but this {type(layer).__name__} makes {known} channels "
                f'of {entering}; inputs="difference" sees the slope alone.'
            )
        self.layer, self.spec = layer, wanted
        self.shared = nn.ModuleDict()
        pool: dict[str, nn.Module] = {}
        self.channels: int = known if channels is None else channels  # type: ignore[assignment]  # not both are None
        self.controller = spec.build(wanted, self.channels, pool)
        self.shared.update(pool)
        self.axis = axis or channel_axis(layer) or 1
        self.into, self.positive = into, positive
        if isinstance(layer, nn.MultiheadAttention):  # what torch's encoders ask of it; None keeps them off the kernel
            self.batch_first, self.in_proj_bias = layer.batch_first, None  # that would compute it without a step size

    def forward(self, x, *more, **options):
        out = self.layer(x, *more, **options)
        slope = out[0] if isinstance(out, tuple) else out
        if not torch.jit.is_tracing() and slope.shape[self.axis] != self.channels:
            raise ValueError(
                f"`channels` = {self.channels}, but a {type(self.layer).__name__} returned shape {tuple(slope.shape)}, "
                f"whose channels are taken to be axis {self.axis}."
            )
        samples = 0 if getattr(self.layer, "batch_first", True) else 1
        maps = as_maps(slope, self.axis, samples)
        state = as_maps(x, self.axis, samples) if x.shape == slope.shape else x
        h, _ = self.controller.propose(None, state, maps)
        check_step_size(h, maps, self.controller)
        if isinstance(h, torch.Tensor) and h.ndim:
            h = from_maps(h, slope, self.axis, samples)
        gated = h * slope
        return (gated, *out[1:]) if isinstance(out, tuple) else gated


def gate(layer: nn.Module, controller, channels=None, like: torch.Tensor | None = None, **options) -> Gated:
    """A step size behind a layer of a network, in the layer's precision (else that of `like`), place and mode."""
    gated = Gated(layer, controller, channels, **options)
    like = next((tensor for tensor in layer.parameters() if tensor.is_floating_point()), like)
    for part in (gated.controller, gated.shared):
        part.train(layer.training)
        if like is not None:
            part.to(like.device, like.dtype)
    gated.training = layer.training
    return gated


def as_maps(x: torch.Tensor, axis: int, samples: int) -> torch.Tensor:
    """A view as (N, C, height, width), whatever the layout."""
    x = x.movedim((samples, axis), (0, 1)) if x.ndim > 2 else x
    rest = (*x.shape[2:], 1, 1)[: max(2, x.ndim - 2)]
    return x.reshape(*x.shape[:2], rest[0], math.prod(rest[1:]))


def from_maps(h: torch.Tensor, slope: torch.Tensor, axis: int, samples: int) -> torch.Tensor:
    """A step size for maps, broadcast over the slope's own layout."""
    h = h.reshape((1,) * (4 - h.ndim) + tuple(h.shape))
    if slope.ndim == 2:
        return h.flatten(1)
    rest: tuple[int, ...] = slope.movedim((samples, axis), (0, 1)).shape[3:]
    rest = rest if h.shape[3] != 1 else (1,) * len(rest)
    return h.reshape(*h.shape[:3], *rest).movedim((0, 1), (samples, axis))


def channels_of(layer: nn.Module) -> int | None:
    """Channels of a layer's output, or None where the layer does not say."""
    last = last_layer(layer)
    if isinstance(last, Sum):
        return next((channels for part in last.parts if (channels := channels_of(part)) is not None), None)
    if isinstance(last, nn.LayerNorm | nn.RMSNorm):
        return last.normalized_shape[0]
    if isinstance(last, LayerScale):
        return len(last.gamma)
    last = last.value if isinstance(last, SelfAttention) else last
    return next((getattr(last, name) for name in SIZES if isinstance(getattr(last, name, None), int)), None)


def channel_axis(layer: nn.Module) -> int | None:
    """Where the layer's output has its channels, or None where the layer does not say; activations leave them there."""
    if isinstance(layer, nn.Sequential | Sum):
        parts = layer.parts if isinstance(layer, Sum) else layer
        return next((axis for part in reversed(parts) if (axis := channel_axis(part)) is not None), None)
    if isinstance(layer, nn.LayerNorm | nn.RMSNorm):
        return -len(layer.normalized_shape)
    if isinstance(layer, nn.Linear | nn.MultiheadAttention | SelfAttention | LayerScale):
        return -1
    return 1 if any(isinstance(getattr(layer, name, None), int) for name in SIZES) else None


def slope_axis(net: nn.Module, flow: Flow, step: Step, place: Place) -> int:
    """Where the slope at a place of a step of somebody else's network has its channels.

    Asked of the layer that the slope comes from, through activations and products; where a change of layout lies
    between, of a layer that takes the state. Where none says, they are axis 1, of tokens (N, T, C) the last.
    """
    i = flow.source(place)
    shape = flow.operations[i].shape
    way = [i]
    while flow.operations[way[-1]].name not in LAYOUTS:
        sources = [j for j in flow.sources(way[-1]) if j and flow.operations[j].shape == shape]
        if not sources or channel_axis_at(net, flow, way[-1]) is not None:
            break
        way.append(sources[0])
    asked = (channel_axis_at(net, flow, j) for j in (*way, *flow.users[step.state]))
    return next((axis for axis in asked if axis is not None), -1 if len(shape) == 3 else 1)


def channel_axis_at(net: nn.Module, flow: Flow, i: int) -> int | None:
    """Where the layer of torch's that does operation i has its channels; None where it does not say."""
    layer = net.get_submodule(flow.operations[i].module)
    return channel_axis(layer) if is_torchs(layer) else None
