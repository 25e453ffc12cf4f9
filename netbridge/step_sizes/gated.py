"""A step size outside a residual stage: after the layers of a VGG or MobileNet, inside a transformer's encoder."""

from torch import nn

from netbridge.step_sizes import spec
from netbridge.step_sizes.asr import ASR
from netbridge.surgery.absorb import SelfAttention


class Gated(nn.Module):
    """h * layer(x), with h from a controller for `channels` channels.

    Channels are axis 1 behind convolutions and their normalisations, the last axis behind linear layers and attention.

    `nb.merge` folds a constant h into the layer and puts the layer in this module's place. A layer that returns several
    things, as `nn.MultiheadAttention` does, has the first of them multiplied.
    """

    def __init__(self, layer: nn.Module, controller, channels: int):
        super().__init__()
        wanted = spec.spec_of(controller)
        if wanted.kind.shared or wanted.kind.modifies_branch:
            raise ValueError(f"controller {wanted.name!r} needs the blocks of a stage; a single layer has none.")
        self.layer = layer
        self.shared = nn.ModuleDict()
        pool: dict[str, nn.Module] = {}
        self.controller = spec.build(wanted, channels, pool)
        self.shared.update(pool)
        if isinstance(self.controller, ASR):
            self.controller.axis = channel_axis(layer)

    def forward(self, x, *more, **options):
        out = self.layer(x, *more, **options)
        first = out[0] if isinstance(out, tuple) else out
        h, _ = self.controller.propose(None, x, first)
        gated = h * first
        return (gated, *out[1:]) if isinstance(out, tuple) else gated


def channel_axis(layer: nn.Module) -> int:
    """Where the layer's output has its channels."""
    if isinstance(layer, nn.Sequential) and len(layer):
        known = [part for part in layer if type(part) not in (nn.Identity, nn.Dropout)]
        return channel_axis(known[-1]) if known else 1
    if isinstance(layer, nn.LayerNorm):
        return -len(layer.normalized_shape)
    return -1 if isinstance(layer, nn.Linear | nn.MultiheadAttention | SelfAttention) else 1
