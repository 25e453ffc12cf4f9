"""A residual block: a branch f, a shortcut, a controller and a projection. It is one step of an explicit method.

He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, CVPR 2016 (post-activation), and Identity Mappings
in Deep Residual Networks, ECCV 2016 (pre-activation).
"""

import torch
from torch import nn

from netbridge.model import solve as run
from netbridge.step_sizes.constant import Constant
from odelab import core
from odelab.methods import explicit as methods

EULER = run.fixed_tableau(methods.EULER, frozen=True)


class Branch(nn.Module):
    """f up to its last layer, before any gate: conv1, bn1, conv2, bn2 and, in a bottleneck, conv3, bn3.

    Post-activation: conv-bn-relu-conv-bn. Pre-activation: bn-relu-conv-bn-relu-conv, where bn_i stands before conv_i.
    """

    def __init__(self, channels_in: int, width: int, stride: int, bottleneck: bool, post_activation: bool):
        super().__init__()
        self.post_activation = post_activation
        self.folded = False
        kernels, strides, widths = (3, 3), (stride, 1), (channels_in, width, width)
        if bottleneck:
            kernels, strides, widths = (1, 3, 1), (1, stride, 1), (channels_in, width, width, 4 * width)
        self.depth = len(kernels)
        for i, (kernel, step) in enumerate(zip(kernels, strides, strict=True)):
            conv = nn.Conv2d(widths[i], widths[i + 1], kernel, step, padding=kernel // 2, bias=False)
            self.add_module(f"conv{i + 1}", conv)
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(widths[i + 1] if post_activation else widths[i]))

    @property
    def layers(self) -> list[tuple[nn.Module, nn.Module]]:
        """[(conv1, bn1), (conv2, bn2), ...]; which of a pair comes first, `post_activation` tells."""
        return [(getattr(self, f"conv{i}"), getattr(self, f"bn{i}")) for i in range(1, self.depth + 1)]

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


class Block(nn.Module):
    """project(shortcut(x) + h * branch(x)): called by itself a run of one step, inside a stage one of its steps."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module | None, post_activation: bool = True):
        super().__init__()
        self.branch = branch
        self.shortcut = nn.Identity() if shortcut is None else shortcut
        self.controller = Constant(0)
        # In place, since the state a step has just formed is nobody else's.
        self.project = torch.relu_ if post_activation else core.unprojected

    @property
    def opens(self) -> bool:
        """A block that changes the shape: a step that starts from its shortcut's output."""
        return not isinstance(self.shortcut, nn.Identity)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.step(x, run.Memory(0, None), None)[0]

    def step(self, x, memory, observation):
        """One Euler step from shortcut(x) with the slope branch(x); (state, memory)."""
        slope = self.branch(x)
        return run.advance(
            None, lambda t: self, self.project, EULER, memory, (0, 1), self.shortcut(x), slope, observation
        )  # Euler asks for no other slope
