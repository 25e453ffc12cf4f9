"""Residual networks of the papers: a configuration, checked and written plainly, and the network built from it.

CIFAR: three stages of widths 16, 32, 64 (He et al. 2016, Section 4.2), 6n+2 layers of basic, 9n+2 of bottleneck blocks.
ImageNet: four stages of widths 64 to 512 (Table 1). In bottlenecks the 3x3 convolution carries the stride.
"""

from torch import nn

from netbridge.layers.own import CONVOLUTIONS, NORMS, ConvNorm
from netbridge.model.block import Block, Branch, Padding
from netbridge.model.network import WEIGHTS, Head, Network, Stage, Stem
from netbridge.step_sizes import placement, spec
from odelab.methods.explicit import METHODS
from odelab.methods.tableau import Method

IMAGENET = {  # He et al. 2016, Table 1: blocks per stage, bottleneck
    18: ([2, 2, 2, 2], False),
    34: ([3, 4, 6, 3], False),
    50: ([3, 4, 6, 3], True),
    101: ([3, 4, 23, 3], True),
    152: ([3, 8, 36, 3], True),
}
CIFAR_BOTTLENECKS = (29, 83, 164, 1001)  # depths that are both 6n+2 and 9n+2, and are bottlenecks in the literature
LAYERS = {"norm": "batch", "convolution": "plain"}
CIFAR_WIDTHS, IMAGENET_WIDTHS = [16, 32, 64], [64, 128, 256, 512]


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
    norm: str = "batch",
    convolution: str = "plain",
) -> Network:
    """A residual network of the papers whose blocks are steps of `odelab`'s solver, freshly initialised.

    depth            20, 32, 44, 56, 110 and any other 6n+2 (basic blocks), or 29, 83, 164 and any other 9n+2
                     (bottlenecks) for CIFAR; 18, 34, 50, 101, 152 for ImageNet; default 20
    num_classes      length of the output; 10
    controller       decides the step size h of every block: a name of `nb.controllers()`, a text such as
                     "asr(se, uses=2)", an `nb.Spec`, or a class of your own; "constant" is h = 1, the usual network
    bottleneck       True or False chooses the kind of block where a depth fits both; None: the papers' choice
    post_activation  True: the ReLU follows the addition (He et al., CVPR 2016); False: it precedes it (ECCV 2016)
    on               the blocks that get the controller, by number (negative ones from the end) or name, h is 1 on the
                     others; None: all on which the controller acts
    method           the Runge-Kutta method of a block: "EULER" (the usual network), "RK4", ... or an `odelab` Method
    depth_factor     steps per block, each of size 1/depth_factor; 1
    weights          "shared": a block's weights hold for its whole step; "interpolated": they run linearly to the next
                     block's, which methods with several stages and refined grids see
    solver           the name of a torchdiffeq solver, such as "dopri5": the stages become ODE-nets; None
    tolerance        relative and absolute tolerance of `solver`; 1e-3
    stem             "cifar" (3x3) or "imagenet" (7x7 and pooling); None: that of the family
    shortcut         of blocks that change the shape: "A" (zero padding; the default of basic CIFAR blocks) or "B" (1x1
                     convolution; the default elsewhere)
    family           "cifar" or "imagenet", for depths that could be either; None: ImageNet's for those
    widths           channels per stage; None: 16, 32, 64, or 64, 128, 256, 512
    in_channels      channels of the images; 3
    norm             the normalisations: "batch", "group" (8 groups, or as many as divide the channels), "instance", or
                     "layer" (over channels and positions, which is one group); each with a scale per channel
    convolution      "plain", or "asymmetric" (ACNet): each 3x3 convolution is the sum of one of 3x3, 1x3 and 3x1, each
                     with a normalisation of its own, and so needs `post_activation`

    Returns a `Network` in training mode. Raises ValueError with the argument's name for what does not fit.

    >>> import torch, netbridge as nb
    >>> net = nb.resnet(20, controller="se")
    >>> net(torch.rand(2, 3, 32, 32)).shape, [len(stage.blocks) for stage in net.stages]
    (torch.Size([2, 10]), [3, 3, 3])
    >>> nb.resnet(20, controller="constant(0.5)", on=[4]).blocks[4].controller
    Constant(0.5)
    """
    family, shape = architecture(depth, bottleneck, family, widths)
    usual_shortcut = "A" if family == "cifar" and not shape["bottleneck"] else "B"
    wanted = spec.spec_of(controller)
    if one_of("convolution", convolution, CONVOLUTIONS) == "asymmetric" and not post_activation:
        raise ValueError('`convolution` = "asymmetric" normalises behind convolutions: it needs post_activation=True.')
    config = {
        **shape,
        "num_classes": positive("num_classes", num_classes),
        "in_channels": positive("in_channels", in_channels),
        "post_activation": one_of("post_activation", post_activation, (True, False)),
        "stem": one_of("stem", stem or family, ("cifar", "imagenet", "cifar-pooled")),
        "shortcut": one_of("shortcut", shortcut or usual_shortcut, ("A", "B")),
        "method": method_record(method),
        "depth_factor": positive("depth_factor", depth_factor),
        "weights": one_of("weights", weights, WEIGHTS),
        "solver": solver_name(solver, method, depth_factor),
        "tolerance": float(tolerance),
        "folded": False,
        "controllers": [one.as_json() for one in placement.on_blocks(wanted, shape["blocks"], on)],
    }
    layers = {"norm": one_of("norm", norm, tuple(NORMS)), "convolution": convolution}
    config |= {key: value for key, value in layers.items() if value != LAYERS[key]}  # older files have neither
    return assemble(config)


def assemble(config: dict) -> Network:
    """The network of a configuration, freshly initialised."""
    method = method_of(config["method"])
    expansion = 4 if config["bottleneck"] else 1
    post = config["post_activation"]
    channels = config["widths"][0]
    norm, convolution = (config.get(key, usual) for key, usual in LAYERS.items())
    stem = Stem(config["in_channels"], channels, config["stem"], post, norm, convolution)
    stages = []
    for number, (count, width) in enumerate(zip(config["blocks"], config["widths"], strict=True)):
        out = width * expansion
        members = []
        for position in range(count):
            stride = 2 if number > 0 and position == 0 else 1
            branch = Branch(channels, width, stride, config["bottleneck"], post, norm, convolution)
            shortcut = make_shortcut(config["shortcut"], channels, out, stride, norm if post else None)
            members.append(Block(branch, shortcut, post))
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
    net = Network(stem, stages, Head(channels, config["num_classes"], post, norm), dict(config))
    initialise(net)
    return placement.furnish(net)


def make_shortcut(kind, channels_in, channels_out, stride, norm):
    """The module of a shortcut that changes the shape, or None for the identity."""
    if channels_in == channels_out and stride == 1:
        return None
    if kind == "A":
        return Padding(channels_in, channels_out, stride)
    return ConvNorm(channels_in, channels_out, 1, stride, norm=norm)  # option B, normalised behind post-activation


def initialise(net: nn.Module) -> None:
    """He et al. 2015, Eq. 14, over the outputs of each convolution; normalisations start at scale 1, shift 0."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d) and not module.weight.is_meta:
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def positive(name: str, value) -> int:
    """The value, if it is a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"`{name}` must be a positive integer, got {value!r}.")
    return value


def whole_numbers(name: str, values) -> list[int]:
    """The values as a list, if they are positive integers and there is one at least."""
    found = [positive(name, value) for value in values]
    if not found:
        raise ValueError(f"`{name}` must hold a number at least.")
    return found


def one_of(name: str, value, allowed):
    """The value, if it is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {list(allowed)}, got {value!r}.")
    return value


def architecture(depth, bottleneck, family, widths) -> tuple[str, dict]:
    """The family, and {"blocks": per stage, "widths": per stage, "bottleneck": bool}."""
    positive("depth", depth)
    one_of("bottleneck", bottleneck, (None, True, False))
    one_of("family", family, (None, "cifar", "imagenet"))
    if family is None:
        known = depth in IMAGENET and bottleneck in (None, IMAGENET[depth][1])
        family = "imagenet" if known else "cifar"
    if family == "imagenet":
        if depth not in IMAGENET or bottleneck not in (None, IMAGENET[depth][1]):
            raise ValueError(
                f"`depth` must be one of ImageNet's {list(IMAGENET)}, got {depth}, bottleneck={bottleneck}."
            )
        counts, bottleneck = IMAGENET[depth]
    else:
        counts, bottleneck = cifar_blocks(depth, bottleneck)
    usual = IMAGENET_WIDTHS if family == "imagenet" else CIFAR_WIDTHS
    widths = list(usual if widths is None else widths)
    if len(widths) != len(counts):
        raise ValueError(f"`widths` must have one entry per stage, {len(counts)}, got {widths}.")
    return family, {
        "blocks": list(counts),
        "widths": [positive("widths", width) for width in widths],
        "bottleneck": bottleneck,
    }


def cifar_blocks(depth: int, bottleneck: bool | None) -> tuple[list[int], bool]:
    """Three stages of n blocks: 6n+2 layers of basic ones, 9n+2 of bottlenecks."""
    basic, deep = depth > 2 and (depth - 2) % 6 == 0, depth > 2 and (depth - 2) % 9 == 0
    if bottleneck is None:
        bottleneck = deep and (not basic or depth in CIFAR_BOTTLENECKS)
    if not (deep if bottleneck else basic):
        wanted = "9n+2 with bottlenecks (29, 83, 164)" if bottleneck else "6n+2 with basic blocks (20, 32, 44, 56, 110)"
        raise ValueError(f"`depth` must be {wanted}, or one of ImageNet's {list(IMAGENET)}; got {depth}.")
    return [(depth - 2) // (9 if bottleneck else 6)] * 3, bottleneck


def method_record(method) -> str | dict:
    """The name of a known method, or all coefficients of one's own."""
    if isinstance(method, str):
        return one_of("method", method.upper(), METHODS)
    if not isinstance(method, Method):
        raise TypeError(f"`method` must be an odelab Method or one of {list(METHODS)}, got {type(method).__name__}.")
    if METHODS.get(method.name) is method:
        return method.name
    return {
        "name": method.name,
        "order": method.order,
        "a": [[str(x) for x in row] for row in method.a],
        "b": [str(x) for x in method.b],
    }


def method_of(record: str | dict) -> Method:
    """The method that `method_record` has written."""
    if isinstance(record, str):
        return METHODS[one_of("method", record, METHODS)]
    return Method(**record)


def solver_name(name, method, depth_factor) -> str | None:
    """A torchdiffeq solver makes the stage an ODE-net, which has no grid of ours to refine."""
    if name is None:
        return None
    try:
        from torchdiffeq._impl.odeint import SOLVERS
    except ImportError:
        raise ImportError(f"`solver` = {name!r} needs torchdiffeq; `method` does without it.") from None
    if method_record(method) != "EULER" or depth_factor != 1:
        raise ValueError(f"`solver` = {name!r} chooses its own steps: leave `method` and `depth_factor` alone.")
    return one_of("solver", name, sorted(SOLVERS))
