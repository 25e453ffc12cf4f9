"""Networks that repaint pictures in a style, and the losses that train them (Johnson, Alahi and Fei-Fei, ECCV 2016)."""

import torch
from torch import nn

from netbridge.layers.own import ConvNorm
from netbridge.model.block import Block, Branch
from netbridge.model.network import Network, Stage
from netbridge.model.resnet import initialise, one_of, positive
from netbridge.step_sizes import placement, spec
from odelab.methods.explicit import METHODS


def repainter(controller="constant", width: int = 16, blocks: int = 3, norm: str = "instance") -> Network:
    """A small network from pictures to pictures, freshly initialised; its blocks are steps of `odelab`'s solver.

    A convolution, one with stride 2, residual steps x + h f(x) without a ReLU behind them, and the way back up by
    nearest neighbours, as in the paper's supplement with 3x3 kernels throughout, which suit small pictures.

    controller  decides the step size of every block, as in `nb.resnet`; "constant" is h = 1
    width       channels of the first convolution; the steps have twice as many; 16
    blocks      number of residual steps; 3
    norm        "instance", "batch", or any other that `nb.resnet` knows

    Returns a `Network` in training mode whose output has the shape of its input, for even heights and widths.

    >>> import torch
    >>> from netbridge.model.transfer import repainter
    >>> repainter(width=4)(torch.rand(2, 3, 16, 16)).shape
    torch.Size([2, 3, 16, 16])
    """
    one_of("norm", norm, ("instance", "batch", "group", "layer"))
    inner = 2 * positive("width", width)
    stem = nn.Sequential(
        *(ConvNorm(3, width, norm=norm), nn.ReLU()), *(ConvNorm(width, inner, stride=2, norm=norm), nn.ReLU())
    )
    steps = [Block(Branch(inner, inner, 1, False, True, norm), None, False) for _ in range(positive("blocks", blocks))]
    back = nn.Sequential(
        *(nn.Upsample(scale_factor=2), ConvNorm(inner, width, norm=norm), nn.ReLU()), ConvNorm(width, 3, norm=None)
    )
    placed = placement.on_blocks(spec.spec_of(controller), [blocks], None, uniform=True)
    config = {
        "blocks": [blocks],
        "widths": [inner],
        "bottleneck": False,
        "in_channels": 3,
        "controllers": [one.as_json() for one in placed],
    }
    net = Network(stem, [Stage(steps, 0, METHODS["EULER"])], back, config)
    initialise(net)
    return placement.furnish(net)


def maps_of(net: Network, pictures: torch.Tensor) -> list[torch.Tensor]:
    """The feature maps of a classifier for these pictures: after its stem and after every stage."""
    found = [net.stem(pictures)]
    for stage in net.stages:
        found.append(stage(found[-1].clone()))  # blocks may work in place
    return found


def gram(maps: torch.Tensor) -> torch.Tensor:
    """Gram matrices of the channels of maps (N, C, H, W), over C H W, (N, C, C).

    >>> import torch
    >>> from netbridge.model.transfer import gram
    >>> gram(torch.ones(1, 2, 3, 3))
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    flat = maps.flatten(2)
    return flat @ flat.transpose(1, 2) / flat[0].numel()


def content_loss(maps: list[torch.Tensor], wanted: list[torch.Tensor]) -> torch.Tensor:
    """Mean squared difference of the maps behind the last but one stage."""
    return (maps[-2] - wanted[-2]).square().mean()


def style_loss(maps: list[torch.Tensor], grams: list[torch.Tensor]) -> torch.Tensor:
    """Over all maps the mean squared difference of Gram matrices, divided by the mean square of the wanted ones."""
    pairs = [(gram(one), wanted) for one, wanted in zip(maps, grams, strict=True)]
    return torch.stack([(found - wanted).square().mean() / wanted.square().mean() for found, wanted in pairs]).mean()


def gradient_energy(pictures: torch.Tensor) -> float:
    """Mean squared difference of neighbouring pixels, to the right and below: what blur takes away.

    >>> import torch
    >>> from netbridge.model.transfer import gradient_energy
    >>> gradient_energy(torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]]))
    0.5
    """
    return 0.5 * sum(float(pictures.diff(dim=axis).square().mean()) for axis in (2, 3))
