"""Residual blocks: a branch f, a shortcut, a controller and a projection; a block is one step of an explicit method.

He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, CVPR 2016 (post-activation), and Identity Mappings
in Deep Residual Networks, ECCV 2016 (pre-activation).
"""

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.layers import own as layers
from netbridge.model.solve import Layer, run_layer
from netbridge.step_sizes.constant import Constant
from odelab import core


class Branch(nn.Module):
    """The slope f of a residual block: two convolutions, or three in a bottleneck, with their normalisations.

    Post-activation: conv1-bn1-relu-conv2-bn2. Pre-activation: bn1-relu-conv1-bn2-relu-conv2. The step size and the
    shortcut belong to the block, not to the branch.

    channels_in      channels of the state
    width            channels of the inner convolutions; a bottleneck returns four times as many, other branches as many
    stride           2 halves height and width, 1 leaves them
    bottleneck       True: 1x1, 3x3, 1x1 convolutions; False: two of 3x3
    post_activation  whether a normalisation and a ReLU follow a convolution (True) or precede it (False)
    norm             the kind of normalisation, as in `nb.resnet`
    convolution      "plain", or "asymmetric" for 3x3 convolutions that are sums, as in `nb.resnet`

    >>> import torch, netbridge as nb
    >>> nb.Branch(16, 16, 1, bottleneck=False, post_activation=True)(torch.ones(2, 16, 8, 8)).shape
    torch.Size([2, 16, 8, 8])
    """

    def __init__(
        self,
        channels_in: int,
        width: int,
        stride: int,
        bottleneck: bool,
        post_activation: bool,
        norm: str = "batch",
        convolution: str = "plain",
    ):
        super().__init__()
        self.post_activation = post_activation
        kernels: tuple[int, ...] = (3, 3)
        strides: tuple[int, ...] = (stride, 1)
        widths: tuple[int, ...] = (channels_in, width, width)
        if bottleneck:
            kernels, strides, widths = (1, 3, 1), (1, stride, 1), (channels_in, width, width, 4 * width)
        self.depth = len(kernels)
        for i, (kernel, step) in enumerate(zip(kernels, strides, strict=True)):
            conv = layers.convolution(convolution, widths[i], widths[i + 1], kernel, step, norm)
            self.add_module(f"conv{i + 1}", conv)
            self.add_module(f"bn{i + 1}", layers.behind(conv, norm, widths[i + 1] if post_activation else widths[i]))

    @property
    def layers(self) -> list[tuple[nn.Module, nn.Module]]:
        """[(conv1, bn1), (conv2, bn2), ...]; the convolution acts first if `post_activation` is True, else the bn."""
        return [(getattr(self, f"conv{i}"), getattr(self, f"bn{i}")) for i in range(1, self.depth + 1)]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The convolutions, each with the normalisation behind it, as `nb.fold` joins them."""
        behind = 0 if self.post_activation else 1  # bn_i follows conv_i; in pre-activation branches it precedes it
        return [(f"conv{i}", f"bn{i + behind}") for i in range(1, self.depth + 1 - behind)]

    @property
    def last(self) -> nn.Module:
        """The layer whose output is f."""
        conv, bn = self.layers[-1]
        return bn if self.post_activation and not isinstance(bn, nn.Identity) else conv

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *layers, (last_conv, last_bn) = self.layers
        if self.post_activation:
            for conv, bn in layers:
                x = torch.relu_(bn(conv(x)))
            return last_bn(last_conv(x))
        for conv, bn in self.layers:
            x = conv(torch.relu_(bn(x)))
        return x


class Padding(nn.Module):
    """A shortcut without weights: keeps every `stride`-th position and adds channels of zeros on both sides.

    He et al. 2016, Section 3.3, option A.
    """

    def __init__(self, channels_in: int, channels_out: int, stride: int):
        super().__init__()
        if channels_out < channels_in:
            raise ValueError(f'`shortcut` = "A" cannot go from {channels_in} to {channels_out} channels; use "B".')
        self.stride = stride
        self.before = (channels_out - channels_in) // 2
        self.after = channels_out - channels_in - self.before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))

    def extra_repr(self):
        return f"stride {self.stride}, channels {self.before} + x + {self.after}"


class Block(nn.Module):
    """One step of a residual network: project(shortcut(x) + h * branch(x)) with h from `controller`.

    Inside a network the stage calls its blocks one after the other, so hooks on a block see its state and may change
    it. Its controller starts as the constant 1; `nb.resnet`, `nb.swap` and `nb.merge` give it another.

    branch           the module that computes the slope f
    shortcut         a module, for a block that changes the shape and so opens a stage; None: the identity
    post_activation  True: a ReLU follows the addition; False: nothing does

    >>> import torch, netbridge as nb
    >>> branch = nb.Branch(4, 4, 1, bottleneck=False, post_activation=True)
    >>> block, x = nb.Block(branch, None).eval(), torch.rand(2, 4, 8, 8)
    >>> bool(torch.equal(block(x), torch.relu(x + branch(x))))
    True
    """

    def __init__(self, branch: nn.Module, shortcut: nn.Module | None, post_activation: bool = True):
        super().__init__()
        self.branch = branch
        self.shortcut = nn.Identity() if shortcut is None else shortcut
        self.controller = Constant(0)
        # In place: the step has just formed this state, so no caller keeps a reference to it.
        self.project = torch.relu_ if post_activation else core.no_projection

    @property
    def opens(self) -> bool:
        """Does the block change the shape? It is then a plain Euler step that starts from its shortcut's output."""
        return not isinstance(self.shortcut, nn.Identity)

    def forward(self, x: torch.Tensor, layer: Layer | None = None) -> torch.Tensor:
        """The next state. `layer` comes from a stage; without it the block is called alone, by Euler's method."""
        layer = Layer() if layer is None else layer
        if self.opens:
            return run_layer(self, layer, self.shortcut(x), self.branch(x))
        return run_layer(self, layer, x)
