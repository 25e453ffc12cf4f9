"""VGG and RepVGG: convolutions of 3x3 one behind the other, without shortcuts once RepVGG is folded.

Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition, ICLR 2015; Ding, Zhang, Ma,
Han, Ding and Sun, RepVGG: Making VGG-style ConvNets Great Again, CVPR 2021.
"""

from torch import nn

from netbridge.layers.own import ConvNorm, Sum
from netbridge.model.network import Head
from netbridge.model.plain import Activated, Plain, furnish, with_controller
from netbridge.model.resnet import initialise, one_of, positive, whole_numbers

VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
SCALES = (1, 2, 4, 8, 8)
SMALL, LARGE = (2, 4, 14, 1), (4, 6, 16, 1)
REPVGG = {  # Ding et al., Table 2: blocks per stage, multipliers of the first three stages and of the last
    "A0": (SMALL, 0.75, 2.5), "A1": (SMALL, 1, 2.5), "A2": (SMALL, 1.5, 2.75),
    "B0": (LARGE, 1, 2.5), "B1": (LARGE, 2, 4), "B2": (LARGE, 2.5, 5), "B3": (LARGE, 3, 5),
}  # fmt: skip


def vgg(
    depth: int = 16,
    num_classes: int = 10,
    controller="constant",
    on=None,
    width: int = 64,
    blocks=None,
    normalised: bool = True,
    head: str = "average",
    in_channels: int = 3,
) -> Plain:
    """A VGG, freshly initialised, with a step size behind every convolution, before its ReLU.

    A layer maps x to relu(h f(x)): nothing is added to x, so h is no step size of a residual step, TNS is not defined,
    and one number h for all channels before a normalisation changes nothing in training.

    depth        11, 13, 16 or 19 layers with weights, counting three linear ones; 16
    num_classes  length of the output; 10
    controller   what multiplies the layers' outputs, as in `nb.resnet`; "constant" is the usual network
    on           the layers that get it, by number (negative ones from the end) or name (`net.places`); None: all
    width        channels of the first stage; the others have 2, 4, 8 and 8 times as many; 64
    blocks       convolutions of each of up to five stages, which end in a max-pool of 2; None: those of `depth`
    normalised   True: a batch normalisation follows each convolution; False: none, and the convolutions have biases
    head         "average" (over the map, then one linear layer) or "paper" (7x7 means, three linear layers of 4096)
    in_channels  channels of the images; 3

    Returns a `Plain` in training mode. Raises ValueError with the argument's name for what does not fit.

    >>> import torch, netbridge as nb
    >>> net = nb.vgg(11, width=8, controller="asr(se)").eval()
    >>> net(torch.rand(2, 3, 32, 32)).shape, len(net.places)
    (torch.Size([2, 10]), 8)
    """
    counts = VGG[one_of("depth", depth, tuple(VGG))] if blocks is None else whole_numbers("blocks", blocks)
    if not 1 <= len(counts) <= len(SCALES):
        raise ValueError(f"`blocks` must have one to five stages, got {blocks!r}.")
    config = {
        "family": "vgg",
        "blocks": list(counts),
        "widths": [positive("width", width) * scale for scale in SCALES[: len(counts)]],
        "normalised": one_of("normalised", normalised, (True, False)),
        "head": one_of("head", head, ("average", "paper")),
        "num_classes": positive("num_classes", num_classes),
        "in_channels": positive("in_channels", in_channels),
        "depth": sum(counts) + (1 if head == "average" else 3),
        "folded": False,
    }
    return with_controller(build_vgg(config), controller, on)


def build_vgg(config: dict) -> Plain:
    """The network of a configuration with h = 1 everywhere."""
    channels = config["in_channels"]
    layers: list[nn.Module] = []
    norm = "batch" if config["normalised"] else None
    for count, width in zip(config["blocks"], config["widths"], strict=True):
        for _ in range(count):
            layers.append(Activated(ConvNorm(channels, width, norm=norm, bias=norm is None)))
            channels = width
        layers.append(nn.MaxPool2d(2))
    head: nn.Module = Head(channels, config["num_classes"])
    if config["head"] == "paper":
        sizes = [(49 * channels, 4096), (4096, 4096)]
        hidden = [part for size in sizes for part in (nn.Linear(*size), nn.ReLU(), nn.Dropout())]
        head = nn.Sequential(nn.AdaptiveAvgPool2d(7), nn.Flatten(), *hidden, nn.Linear(4096, config["num_classes"]))
    net = Plain(nn.Sequential(*layers), head, dict(config))
    initialise(net)
    return net


def repvgg(
    variant: str = "A0",
    num_classes: int = 10,
    controller="constant",
    on=None,
    stem: str = "cifar",
    blocks=None,
    widths=None,
    in_channels: int = 3,
) -> Plain:
    """A RepVGG, freshly initialised, with a step size behind the sum of each block, before its ReLU.

    A block is relu(h (BN x + BN conv1x1 x + BN conv3x3 x)), without BN x where the shape changes: h multiplies the
    shortcut as well and is a gain on the state, no step size. `nb.fold` makes one 3x3 convolution of each block.

    variant      "A0" to "A2" and "B0" to "B3" of the paper; "A0"
    num_classes  length of the output; 10
    controller   what multiplies the blocks' sums, as in `nb.resnet`; "constant" is the usual network
    on           the blocks that get it, by number (negative ones from the end) or name (`net.places`); None: all
    stem         "imagenet": the first block and every stage halve height and width; "cifar": the first block and the
                 first stage keep them
    blocks       blocks per stage, in place of the variant's
    widths       channels per stage, in place of the variant's; the first block has those of the first stage, up to 64
    in_channels  channels of the images; 3

    Returns a `Plain` in training mode. Raises ValueError with the argument's name for what does not fit.

    >>> import torch, netbridge as nb
    >>> net = nb.repvgg(blocks=(1, 2), widths=(8, 16), controller="asr(se)").eval()
    >>> one = nb.fold(nb.merge(net))
    >>> net(torch.rand(2, 3, 32, 32)).shape, type(one.body[0].layer).__name__
    (torch.Size([2, 10]), 'Conv2d')
    """
    depths, scale, last = REPVGG[one_of("variant", variant, tuple(REPVGG))]
    counts = list(depths) if blocks is None else whole_numbers("blocks", blocks)
    usual = [int(64 * scale), int(128 * scale), int(256 * scale), int(512 * last)]
    chosen = usual if widths is None else whole_numbers("widths", widths)
    if len(chosen) != len(counts):
        raise ValueError(f"`widths` must have one entry per stage, {len(counts)}, got {chosen}.")
    config = {
        "family": "repvgg",
        "blocks": counts,
        "widths": chosen,
        "stem": one_of("stem", stem, ("cifar", "imagenet")),
        "num_classes": positive("num_classes", num_classes),
        "in_channels": positive("in_channels", in_channels),
        "depth": sum(counts) + 2,
        "folded": False,
    }
    return with_controller(build_repvgg(config), controller, on)


def build_repvgg(config: dict) -> Plain:
    """The network of a configuration with h = 1 everywhere."""
    large = config["stem"] == "imagenet"
    channels = min(64, config["widths"][0])
    blocks = [repvgg_block(config["in_channels"], channels, 2 if large else 1)]
    for number, (count, width) in enumerate(zip(config["blocks"], config["widths"], strict=True)):
        for position in range(count):
            blocks.append(repvgg_block(channels, width, 2 if position == 0 and (large or number > 0) else 1))
            channels = width
    net = Plain(nn.Sequential(*blocks), Head(channels, config["num_classes"]), dict(config))
    initialise(net)
    return net


def repvgg_block(channels_in: int, channels_out: int, stride: int) -> Activated:
    """Ding et al., Section 3.2; the identity is normalised, too."""
    parts = [ConvNorm(channels_in, channels_out, size, stride) for size in (3, 1)]
    identity = [nn.BatchNorm2d(channels_in)] if channels_in == channels_out and stride == 1 else []
    return Activated(Sum(*parts, *identity))


def assemble(config: dict) -> Plain:
    """The VGG or RepVGG of a configuration, freshly initialised."""
    return furnish((build_vgg if config["family"] == "vgg" else build_repvgg)(config))
