"""Networks for small machines: MobileNetV1 and ShuffleNetV2, which have no steps, and MobileNetV2, which has.

Howard et al., MobileNets, 2017; Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, CVPR 2018; Ma,
Zhang, Zheng and Sun, ShuffleNet V2, ECCV 2018.
"""

from typing import Any

import torch
from torch import nn

from netbridge.layers.own import ConvNorm
from netbridge.model.block import Block
from netbridge.model.network import Configured, Head, Network, Stage
from netbridge.model.plain import Activated, Plain, furnish, with_controller
from netbridge.model.resnet import initialise, method_of, method_record, one_of, positive, whole_numbers
from netbridge.step_sizes import placement, spec

MOBILE1 = ((64, 128, 256, 512, 1024), (1, 2, 2, 6, 2))  # Howard et al., Table 1: channels and layers of a resolution
MOBILE2 = (  # Sandler et al., Table 2: expansion, channels, repetitions, stride; last, the stride for CIFAR
    (1, 16, 1, 1, 1), (6, 24, 2, 2, 1), (6, 32, 3, 2, 2), (6, 64, 4, 2, 2), (6, 96, 3, 1, 1), (6, 160, 3, 2, 2),
    (6, 320, 1, 1, 1),
)  # fmt: skip
SHUFFLE = {0.5: (48, 96, 192, 1024), 1.0: (116, 232, 464, 1024), 1.5: (176, 352, 704, 1024), 2.0: (244, 488, 976, 2048)}
SHUFFLE_STEM = 24
STEMS = ("cifar", "imagenet")


def mobilenet(
    version: int = 2,
    num_classes: int = 10,
    controller="constant",
    on=None,
    width: float = 1.0,
    stem: str = "cifar",
    blocks=None,
    in_channels: int = 3,
    method="EULER",
    depth_factor: int = 1,
) -> Configured:
    """A MobileNet, freshly initialised.

    Version 2 is a `Network`: where an inverted residual keeps its shape it is a step x + h f(x) of `odelab`'s solver,
    without a projection; where it changes the shape nothing is added, and it stands before a stage as its entrance.
    Version 1 is a `Plain`: a layer maps x to relu(h f(x)), with a place for h behind the normalisation of every
    depthwise and every 1x1 convolution; nothing is added, and TNS is not defined.

    version       1 or 2; 2
    num_classes   length of the output; 10
    controller    what multiplies a step's slope or a layer's output, as in `nb.resnet`; "constant": the usual network
    on            the steps or layers that get it, by number (negative ones from the end) or name; None: all
    width         multiplies all channels, which stay multiples of 8; 1.0. Below 0.5 more layers of version 2 keep their
                  shape, and so are steps
    stem          "imagenet": the papers' strides; "cifar": the first convolution, and version 2's second stage, keep
                  height and width
    blocks        how often each resolution's layer (version 1, 5 numbers) or each row of Table 2 (version 2, 7 numbers)
                  is repeated; None: as in the paper
    in_channels   channels of the images; 3
    method        the Runge-Kutta method of a step of version 2, as in `nb.resnet`
    depth_factor  steps of the solver per block of version 2; 1

    Returns a `Network` (version 2) or a `Plain` (version 1) in training mode. Raises ValueError with the argument's
    name for what does not fit.

    >>> import torch, netbridge as nb
    >>> net = nb.mobilenet(width=0.5, controller="asr(se)")
    >>> net(torch.rand(2, 3, 32, 32)).shape, len(net.blocks), [len(stage.blocks) for stage in net.stages]
    (torch.Size([2, 10]), 10, [1, 2, 3, 2, 2])
    >>> len(nb.mobilenet(1, width=0.25).places)
    26
    """
    usual = MOBILE1[1] if one_of("version", version, (1, 2)) == 1 else [row[2] for row in MOBILE2]
    repeats = list(usual) if blocks is None else whole_numbers("blocks", blocks)
    if len(repeats) != len(usual):
        raise ValueError(f"`blocks` must have {len(usual)} numbers for version {version}, got {blocks!r}.")
    if not isinstance(width, int | float) or not 0 < width < float("inf"):
        raise ValueError(f"`width` must be a positive number, got {width!r}.")
    config = {
        "family": "mobilenet",
        "version": version,
        "repeats": repeats,
        "width": float(width),
        "stem": one_of("stem", stem, STEMS),
        "num_classes": positive("num_classes", num_classes),
        "in_channels": positive("in_channels", in_channels),
        "method": method_record(method),
        "depth_factor": positive("depth_factor", depth_factor),
        "folded": False,
    }
    if version == 1:
        if (config["method"], depth_factor) != ("EULER", 1):
            raise ValueError("`method` and `depth_factor` are of steps, and version 1 has none.")
        config |= {"blocks": repeats, "widths": [round_width(32, width)], "depth": 2 * sum(repeats) + 2}
        return with_controller(build_first(config), controller, on)
    net = build_second(config | {"depth": 3 * sum(repeats) + 3 - repeats[0]})
    wanted = placement.on_blocks(spec.spec_of(controller), net.config["blocks"], on, uniform=True)
    net.config["controllers"] = [one.as_json() for one in wanted]
    return placement.furnish(net)


def round_width(channels: int, width: float) -> int:
    """The multiple of 8 next to width * channels, at least 8 and not a tenth less (Sandler et al.'s code)."""
    wanted = channels * width
    whole = max(8, int(wanted + 4) // 8 * 8)
    return whole + 8 if whole < 0.9 * wanted else whole


def build_first(config: dict) -> Plain:
    """MobileNetV1 with h = 1 everywhere."""
    width, large = config["width"], config["stem"] == "imagenet"
    channels = round_width(32, width)
    layers: list[nn.Module] = [ConvNorm(config["in_channels"], channels, 3, 2 if large else 1), nn.ReLU()]
    for number, (out, count) in enumerate(zip(MOBILE1[0], config["repeats"], strict=True)):
        for position in range(count):
            stride, out_channels = 2 if number > 0 and position == 0 else 1, round_width(out, width)
            layers.append(Activated(ConvNorm(channels, channels, 3, stride, groups=channels)))
            layers.append(Activated(ConvNorm(channels, out_channels, 1)))
            channels = out_channels
    net = Plain(nn.Sequential(*layers), Head(channels, config["num_classes"]), dict(config))
    initialise(net)
    return net


class Inverted(nn.Module):
    """An inverted residual without its shortcut: widen by 1x1, filter each channel, narrow by 1x1; no ReLU last."""

    def __init__(self, channels_in: int, channels_out: int, expansion: int, stride: int):
        super().__init__()
        inner = expansion * channels_in
        widen = [ConvNorm(channels_in, inner, 1), nn.ReLU6(inplace=True)] if expansion > 1 else []
        filtering = [ConvNorm(inner, inner, 3, stride, groups=inner), nn.ReLU6(inplace=True)]
        self.layers: Any = nn.Sequential(*widen, *filtering, ConvNorm(inner, channels_out, 1))

    @property
    def last(self) -> nn.Module:
        """The layer whose output is f."""
        return self.layers[-1].last

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def build_second(config: dict) -> Network:
    """MobileNetV2 with h = 1 everywhere: steps where the shape stays, before each stage layers that change it."""
    width, large = config["width"], config["stem"] == "imagenet"
    channels = first = round_width(32, width)
    groups: list[tuple[list, list]] = [([], [])]  # pairs: layers that are no steps, and the steps that follow them
    for (expansion, out, _, *strides), count in zip(MOBILE2, config["repeats"], strict=True):
        for position in range(count):
            stride, out_channels = (1 if position else strides[0 if large else 1]), round_width(out, width)
            branch = Inverted(channels, out_channels, expansion, stride)
            if stride == 1 and channels == out_channels:
                groups[-1][1].append(Block(branch, None, post_activation=False))
            else:
                if groups[-1][1]:
                    groups.append(([], []))
                groups[-1][0].append(branch)
            channels = out_channels
    behind = groups.pop()[0] if not groups[-1][1] else []
    if not groups:
        raise ValueError(f"`blocks` = {config['repeats']} leaves no inverted residual that keeps its shape.")
    method, depth_factor = method_of(config["method"]), config["depth_factor"]
    stages = [
        Stage(steps, number, method, depth_factor, entrance=nn.Sequential(*entrance) if entrance else None)
        for number, (entrance, steps) in enumerate(groups)
    ]
    last = round_width(1280, max(1.0, width))
    stem = nn.Sequential(ConvNorm(config["in_channels"], first, 3, 2 if large else 1), nn.ReLU6(inplace=True))
    head = nn.Sequential(
        *behind, ConvNorm(channels, last, 1), nn.ReLU6(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(last, config["num_classes"]),
    )  # fmt: skip
    blocks = [len(steps) for _, steps in groups]
    given = {"blocks": blocks, "widths": [first], "controllers": ["constant"] * sum(blocks)}
    net = Network(stem, stages, head, given | config)
    initialise(net)
    return net


def shufflenet(
    width: float = 1.0,
    num_classes: int = 10,
    controller="constant",
    on=None,
    stem: str = "cifar",
    blocks=(4, 8, 4),
    widths=None,
    in_channels: int = 3,
) -> Plain:
    """A ShuffleNetV2, freshly initialised, with a place for h behind the last normalisation of every unit's branch.

    A unit hands half of the channels on as they are, changes the other half by its branch and permutes all of them.
    Nothing is added, so h is no step size of a residual step, and TNS is not defined.

    width        0.5, 1.0, 1.5 or 2.0: the paper's channels; 1.0
    num_classes  length of the output; 10
    controller   what multiplies a branch before its ReLU, as in `nb.resnet`; "constant" is the usual network
    on           the units that get it, by number (negative ones from the end) or name (`net.places`); None: all
    stem         "imagenet": a convolution and a max-pool that halve height and width; "cifar": a convolution that keeps
                 them
    blocks       units per stage; 4, 8, 4
    widths       channels of each stage (even numbers), then of the last 1x1 convolution, in place of the paper's
    in_channels  channels of the images; 3

    Returns a `Plain` in training mode. Raises ValueError with the argument's name for what does not fit.

    >>> import torch, netbridge as nb
    >>> net = nb.shufflenet(0.5, controller="asr(se)", blocks=(1, 1, 1))
    >>> net(torch.rand(2, 3, 32, 32)).shape, len(net.places)
    (torch.Size([2, 10]), 3)
    """
    counts = whole_numbers("blocks", blocks)
    usual = SHUFFLE[one_of("width", width, tuple(SHUFFLE))]
    channels = list(usual) if widths is None else whole_numbers("widths", widths)
    if len(channels) != len(counts) + 1 or any(number % 2 for number in channels[:-1]):
        raise ValueError(f"`widths` must have an even number per stage and one more, got {channels} for {counts}.")
    config = {
        "family": "shufflenet",
        "blocks": counts,
        "widths": channels,
        "stem": one_of("stem", stem, STEMS),
        "num_classes": positive("num_classes", num_classes),
        "in_channels": positive("in_channels", in_channels),
        "depth": 3 * sum(counts) + 3,
        "folded": False,
    }
    return with_controller(build_shufflenet(config), controller, on)


class Unit(nn.Module):
    """Ma et al., Figure 3: (a, b) to a permutation of (a, f(b)); with stride 2 to one of (g(x), f(x))."""

    gated = ("last",)

    def __init__(self, channels_in: int, channels_out: int, stride: int):
        super().__init__()
        half, entering = channels_out // 2, channels_in if stride > 1 else channels_in // 2
        self.aside: nn.Module | None = None
        if stride > 1:
            aside = [ConvNorm(channels_in, channels_in, 3, stride, groups=channels_in), ConvNorm(channels_in, half, 1)]
            self.aside = nn.Sequential(*aside, nn.ReLU(inplace=True))
        self.first = nn.Sequential(
            ConvNorm(entering, half, 1), nn.ReLU(inplace=True), ConvNorm(half, half, 3, stride, groups=half)
        )
        self.last = ConvNorm(half, half, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, dim=1) if self.aside is None else (self.aside(x), x)
        both = torch.stack([a, torch.relu_(self.last(self.first(b)))], dim=2)  # every other channel from either half
        return both.flatten(1, 2)


def build_shufflenet(config: dict) -> Plain:
    """ShuffleNetV2 with h = 1 everywhere."""
    large, channels = config["stem"] == "imagenet", SHUFFLE_STEM
    layers: list[nn.Module] = [
        ConvNorm(config["in_channels"], channels, 3, 2 if large else 1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1) if large else nn.Identity(),
    ]
    *widths, last = config["widths"]
    for count, width in zip(config["blocks"], widths, strict=True):
        for position in range(count):
            layers.append(Unit(channels, width, 1 if position else 2))
            channels = width
    layers += [ConvNorm(channels, last, 1), nn.ReLU(inplace=True)]
    net = Plain(nn.Sequential(*layers), Head(last, config["num_classes"]), dict(config))
    initialise(net)
    return net


def assemble(config: dict) -> Configured:
    """The MobileNet or ShuffleNet of a configuration, freshly initialised."""
    if config["family"] == "shufflenet":
        return furnish(build_shufflenet(config))
    return furnish(build_first(config)) if config["version"] == 1 else placement.furnish(build_second(config))
