"""Residual networks of the papers, as a configuration and the network built from it.

CIFAR: three stages of widths 16, 32, 64 (He et al. 2016, Section 4.2), 6n+2 layers of basic, 9n+2 of bottleneck blocks.
ImageNet: four stages of widths 64 to 512 (Table 1). In bottlenecks the 3x3 convolution carries the stride.
"""

from torch import nn

from netbridge.model import block as blocks
from netbridge.model import settings
from netbridge.model.network import Head, Network, Stem
from netbridge.model.shortcuts import Padding, Projection
from netbridge.model.stage import WEIGHTS, Stage
from netbridge.step_sizes import placement, spec


def resnet(
    depth: int = 20,
    num_classes: int = 10,
    controller="constant",
    bottleneck: bool | None = None,
    post_activation: bool = True,
    on=None,
    method="EULER",
    depth_factor: int = 1,
    weights: str = "shared",
    solver: str | None = None,
    tolerance: float = 1e-3,
    stem: str | None = None,
    shortcut: str | None = None,
    family: str | None = None,
    widths=None,
    in_channels: int = 3,
) -> Network:
    """A residual network whose stages are runs of `odelab`'s solver, with `controller` deciding every step size.

    depth: 20, 32, 44, 56, 110 and any other 6n+2 (basic) or 29, 83, 164 and any other 9n+2 (bottleneck) for CIFAR; 18,
    34, 50, 101, 152 for ImageNet. Depths that could be either are ImageNet's unless family="cifar"; stem="cifar" gives
    those the 3x3 stem. on=[...]: the controller on these blocks only (numbers or names), a step size of 1 elsewhere.
    shortcut: "A" (zero padding, the default of basic CIFAR blocks) or "B" (1x1 projection).
    """
    family, shape = settings.architecture(depth, bottleneck, family, widths)
    usual_shortcut = "A" if family == "cifar" and not shape["bottleneck"] else "B"
    wanted = spec.spec_of(controller)
    config = {
        **shape,
        "num_classes": settings.positive("num_classes", num_classes),
        "in_channels": settings.positive("in_channels", in_channels),
        "post_activation": settings.one_of("post_activation", post_activation, (True, False)),
        "stem": settings.one_of("stem", stem or family, ("cifar", "imagenet")),
        "shortcut": settings.one_of("shortcut", shortcut or usual_shortcut, ("A", "B")),
        "method": settings.method_record(method),
        "depth_factor": settings.positive("depth_factor", depth_factor),
        "weights": settings.one_of("weights", weights, WEIGHTS),
        "solver": settings.solver(solver, method, depth_factor),
        "tolerance": float(tolerance),
        "folded": False,
        "controllers": [one.as_json() for one in placement.on_blocks(wanted, shape["blocks"], on)],
    }
    return assemble(config)


def assemble(config: dict) -> Network:
    """The network of a configuration, freshly initialised."""
    method = settings.method_of(config["method"])
    expansion = 4 if config["bottleneck"] else 1
    post = config["post_activation"]
    channels = config["widths"][0]
    stem = Stem(config["in_channels"], channels, config["stem"] == "imagenet", post)
    stages = []
    for number, (count, width) in enumerate(zip(config["blocks"], config["widths"], strict=True)):
        out = width * expansion
        members = []
        for position in range(count):
            stride = 2 if number > 0 and position == 0 else 1
            branch = blocks.Branch(channels, width, stride, config["bottleneck"], post)
            members.append(blocks.Block(branch, make_shortcut(config["shortcut"], channels, out, stride, post), post))
            channels = out
        stages.append(
            Stage(
                members,
                number,
                method,
                config["depth_factor"],
                config["weights"],
                config["solver"],
                config["tolerance"],
            )
        )
    specs = [spec.spec_of(record) for record in config["controllers"]]
    if len(specs) != sum(config["blocks"]):
        raise ValueError(f"{len(specs)} controllers for {sum(config['blocks'])} blocks.")
    net = Network(stem, stages, Head(channels, config["num_classes"], post), dict(config))
    initialise(net)
    placement.install(net, specs, before=[spec.Spec("constant")] * len(specs))
    return net


def make_shortcut(kind, channels_in, channels_out, stride, post_activation):
    if channels_in == channels_out and stride == 1:
        return None
    if kind == "A":
        return Padding(channels_in, channels_out, stride)
    return Projection(channels_in, channels_out, stride, normalised=post_activation)


def initialise(net: nn.Module) -> None:
    """He et al. 2015, Eq. 14, over the outputs of each convolution; normalisations start at scale 1, shift 0."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d) and not module.weight.is_meta:
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
