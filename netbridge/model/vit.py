"""Vision Transformers as runs of the same solver: attention and MLP of a block are two Euler steps of one stage.

Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021, pre-norm: u + Attention(LN u), then u + MLP(LN u). There
is no class token, the head averages the tokens. The state between the steps is the grid of tokens as maps (N, C, rows,
columns) whose memory is that of tokens (N, T, C): going from one to the other moves no number, and every controller
sees the maps it was written for.
"""

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.layers.own import LayerScale
from netbridge.model.block import Block
from netbridge.model.network import Network, Stage
from netbridge.model.resnet import method_of, method_record, one_of, positive
from netbridge.step_sizes import placement, spec

STEMS = ("patch", "conv")
DEVIATION = 0.02  # standard deviation of the initial weights and positions


def tokens_of(maps: torch.Tensor) -> torch.Tensor:
    """(N, T, C) from (N, C, rows, columns)."""
    return maps.flatten(2).transpose(1, 2)


def maps_of(tokens: torch.Tensor, grid) -> torch.Tensor:
    """(N, C, rows, columns) from (N, T, C)."""
    return tokens.transpose(1, 2).unflatten(2, tuple(grid))


class Patches(nn.Module):
    """The stem: every patch of the image becomes a token, and learned positions are added.

    "patch" is one linear map of each patch; "conv" is a 3x3 convolution of stride 2 with norm and ReLU, then another
    whose stride is half a patch. On another grid than its own the positions are interpolated.
    """

    pairs = (("conv", "bn"),)

    def __init__(self, size: int, patch: int, features: int, stem: str, channels_in: int):
        super().__init__()
        if size % patch:
            raise ValueError(f"`size` = {size} must be a multiple of `patch` = {patch}.")
        if one_of("stem", stem, STEMS) == "conv" and patch % 2:
            raise ValueError(f'`patch` = {patch} must be even for stem="conv", whose first stride is 2.')
        self.patch = patch
        self.bn: nn.Module
        self.second: nn.Module
        if stem == "patch":
            self.conv = nn.Conv2d(channels_in, features, patch, patch)
            self.bn, self.second = nn.Identity(), nn.Identity()
        else:
            half = max(features // 2, 1)
            self.conv = nn.Conv2d(channels_in, half, 3, 2, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(half)
            self.second = nn.Sequential(nn.ReLU(), nn.Conv2d(half, features, 3, patch // 2, padding=1))
        self.position = nn.Parameter(torch.zeros(1, features, size // patch, size // patch))

    def forward(self, x):
        if not torch.jit.is_tracing() and (x.shape[2] % self.patch or x.shape[3] % self.patch):
            raise ValueError(
                f"`x` must be images whose height and width are multiples of the patch, {self.patch}; got "
                f"{x.shape[2]} x {x.shape[3]}."
            )
        x = self.second(self.bn(self.conv(x)))
        position: torch.Tensor = self.position
        if x.shape[2:] != position.shape[2:]:
            wide = position.to(torch.promote_types(position.dtype, torch.float32))  # half precision is not implemented
            position = F.interpolate(wide, x.shape[2:], mode="bilinear", antialias=True).to(position.dtype)
        return (x + position).contiguous(memory_format=torch.channels_last)


class TokenBranch(nn.Module):
    """The slope of a transformer's step; a subclass defines `change`, which maps normalised tokens to the slope."""

    def __init__(self, features: int, width: int, layer_scale: float | None = None):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.last: nn.Module = nn.Linear(width, features)
        if layer_scale is not None:
            self.last = nn.Sequential(self.last, LayerScale(features, layer_scale))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return maps_of(self.last(self.change(self.norm(tokens_of(maps)))), maps.shape[2:])

    def change(self, tokens: torch.Tensor) -> torch.Tensor:
        """(N, T, width) from the normalised tokens (N, T, features); a subclass defines it."""
        raise NotImplementedError


class Attention(TokenBranch):
    """softmax(Q K' / sqrt(d)) V of several heads, then a linear map.

    On a CPU the products are written out: the backward pass of torch's own attention takes five times as long there in
    bfloat16.
    """

    def __init__(self, features: int, heads: int, layer_scale: float | None = None):
        if features % heads:
            raise ValueError(f"`heads` = {heads} must divide `features` = {features}.")
        super().__init__(features, features, layer_scale)
        self.heads = heads
        self.qkv = nn.Linear(features, 3 * features)

    def queries_keys_values(self, tokens: torch.Tensor) -> torch.Tensor:
        """Q, K, V of the normalised tokens, (3, N, heads, T, features of a head)."""
        return self.qkv(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)

    def weights(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        """How much of every token comes from every other, (N, heads, T, T); rows sum to 1."""
        return torch.softmax(q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1), dim=-1)

    def change(self, tokens):
        q, k, v = self.queries_keys_values(tokens)
        mixed = F.scaled_dot_product_attention(q, k, v) if tokens.is_cuda else self.weights(q, k).to(v.dtype) @ v
        return mixed.transpose(1, 2).flatten(2)


class MLP(TokenBranch):
    """A linear map, GELU, a linear map."""

    def __init__(self, features: int, width: int, layer_scale: float | None = None):
        super().__init__(features, width, layer_scale)
        self.first = nn.Linear(features, width)

    def change(self, tokens):
        return F.gelu(self.first(tokens))


class TokenHead(nn.Module):
    """A normalisation, the average over the tokens, a linear map."""

    def __init__(self, features: int, num_classes: int):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(features), nn.Linear(features, num_classes)

    def forward(self, maps):
        return self.fc(self.norm(tokens_of(maps)).mean(1))


def vit(
    size: int = 32,
    patch: int = 4,
    features: int = 96,
    depth: int = 6,
    heads: int = 3,
    ratio: float = 2.0,
    num_classes: int = 10,
    controller="constant",
    on=None,
    stem: str = "patch",
    in_channels: int = 3,
    method="EULER",
    depth_factor: int = 1,
    layer_scale: float | None = None,
) -> Network:
    """A Vision Transformer whose attentions and MLPs are steps of `odelab`'s solver, freshly initialised.

    A block is two steps, u + h Attention(LN u) and u + h MLP(LN u), and all steps form one stage: block 2k of the
    network is an attention, block 2k + 1 an MLP. The state is (N, features, rows, columns), a map of tokens, so all
    controllers but IEBN, which needs batch normalisations, act as in a residual network of convolutions.

    size          height and width of the images that the learned positions are for, in pixels; 32. Other sizes that
                  are multiples of `patch` work, too: positions are interpolated
    patch         height and width of a patch, in pixels; 4
    features      length of a token; 96
    depth         number of transformer blocks; the network has twice as many steps; 6
    heads         attentions side by side, which must divide `features`; 3
    ratio         width of the MLP's inner layer, in multiples of `features`; 2
    num_classes   length of the output; 10
    controller    decides the step size h of every step: a name of `nb.controllers()`, a text such as
                  "asr(se, uses=2)", an `nb.Spec`, or a class of your own; "constant" is h = 1, the usual network.
                  "asr(init=1e-3)" is LayerScale, a learned number per feature
    on            the steps that get the controller, by number (negative ones from the end) or name, or "attention" or
                  "mlp" for all of a kind; h is 1 on the others; None: all
    stem          "patch" (one linear map of each patch) or "conv" (two convolutions, for an even `patch`)
    in_channels   channels of the images; 3
    method        the Runge-Kutta method of a step: "EULER" (the usual network), "RK4", ... or an `odelab` Method
    depth_factor  steps of the solver per branch, each of size 1/depth_factor; 1
    layer_scale   the value at which a learned factor per feature starts that ends every branch (LayerScale), beside any
                  controller; None: no such factor

    Returns a `Network` in training mode. Raises ValueError with the argument's name for what does not fit.

    >>> import torch, netbridge as nb
    >>> net = nb.vit(size=16, features=24, depth=2, controller="se", on="attention")
    >>> net(torch.rand(2, 3, 16, 16)).shape, [block.controller.name for block in net.blocks]
    (torch.Size([2, 10]), ['se', 'constant', 'se', 'constant'])
    >>> nb.trace(net, torch.rand(2, 3, 16, 16))
    Record(2 images, 4 blocks in 1 stages, of='slope')
    """
    steps = 2 * positive("depth", depth)
    positive("features", features)
    if not isinstance(ratio, int | float) or not 1 <= ratio * features < float("inf"):
        raise ValueError(f"`ratio` must be a number that gives the MLP a width of at least 1, got {ratio!r}.")
    if isinstance(on, str):
        on = {"attention": range(0, steps, 2), "mlp": range(1, steps, 2)}.get(on, on)
    config = {
        "family": "vit",
        "size": positive("size", size),
        "patch": positive("patch", patch),
        "blocks": [steps],
        "widths": [features],
        "bottleneck": False,  # two layers a step, as in a basic residual block
        "heads": positive("heads", heads),
        "ratio": float(ratio),
        "num_classes": positive("num_classes", num_classes),
        "in_channels": positive("in_channels", in_channels),
        "stem": stem,
        "method": method_record(method),
        "depth_factor": positive("depth_factor", depth_factor),
        "folded": False,
        "controllers": [
            one.as_json() for one in placement.on_blocks(spec.spec_of(controller), [steps], on, uniform=True)
        ],
    }
    if layer_scale is not None:
        config["layer_scale"] = float(layer_scale)  # older files have no such entry
    return assemble(config)


def assemble(config: dict) -> Network:
    """The transformer of a configuration, freshly initialised."""
    (features,), (steps,) = config["widths"], config["blocks"]
    stem = Patches(config["size"], config["patch"], features, config["stem"], config["in_channels"])
    scale = config.get("layer_scale")
    branches = [
        MLP(features, int(config["ratio"] * features), scale)
        if number % 2
        else Attention(features, config["heads"], scale)
        for number in range(steps)
    ]
    blocks = [Block(branch, None, post_activation=False) for branch in branches]
    stage = Stage(blocks, 0, method_of(config["method"]), config["depth_factor"])
    net = Network(stem, [stage], TokenHead(features, config["num_classes"]), dict(config))
    initialise(net)
    return placement.furnish(net)


def initialise(net: Network) -> None:
    """Linear maps and positions from a normal distribution cut at two units, biases 0; convolutions as torch draws."""
    if net.stem.position.is_meta:
        return
    nn.init.trunc_normal_(net.stem.position, std=DEVIATION)
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=DEVIATION)
            nn.init.zeros_(module.bias)
