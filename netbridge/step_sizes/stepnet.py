"""StepNet. Huang, Liang, Qin, Zhong and Lin, Understanding Self-attention Mechanism via Dynamical System Perspective,
ICCV 2023, Eq. 12 and Fig. 4: two phases, a coarse step x' = x + f, then a step size from (x, x') together.

The adaptor: pairs (x_c, x'_c) joined by a 1x1 convolution of C groups without bias (2 C parameters), batch
normalisation (2 C), IE (2 C: w y + b, w = 0 and b = -1 at first), global average pooling, sigmoid. 6 C in every block
but the first of each stage is the paper's count; the order inside is not printed, this one is ours. `inputs` are the
rows of Table 4. `bias` is where IE's b starts: -1, the paper's, gives every block a step size of sigmoid(-1) = 0.27
at first, +1 one of 0.73. The alternatives of Fig. 5 exist as a drawing only; the adaptors a to d are four it could
mean:

    a   pooled before anything else, so that the normalisation sees one number per sample and channel
    b   no batch normalisation
    c   no IE
    d   each input normalised on its own, joined afterwards
"""

from typing import Any

import torch
from torch import nn

from netbridge.step_sizes.base import ChannelController

INPUTS = ("both", "now", "next", "difference")  # (x_t, x_{t+1}), x_t, x_{t+1}, x_{t+1} - x_t
ADAPTORS = ("full", "a", "b", "c", "d")


class StepNet(ChannelController, name="stepnet"):
    opening = False  # a block that opens a stage has no state of its own shape before it

    def __init__(self, channels: int, inputs: str = "both", adaptor: str = "full", bias: float = -1.0):
        super().__init__()
        if inputs not in INPUTS:
            raise ValueError(f"`inputs` must be one of {list(INPUTS)}, got {inputs!r}.")
        if adaptor not in ADAPTORS:
            raise ValueError(f"`adaptor` must be one of {list(ADAPTORS)}, got {adaptor!r}.")
        self.inputs, self.adaptor = inputs, adaptor
        width = 2 * channels if inputs == "both" else channels
        self.join = nn.Conv2d(width, channels, kernel_size=1, groups=channels, bias=False)
        self.norm: Any = None if adaptor == "b" else nn.BatchNorm2d(width if adaptor == "d" else channels)
        self.weight = self.bias = None
        if adaptor != "c":
            self.weight = nn.Parameter(torch.zeros(channels))
            self.bias = nn.Parameter(torch.full((channels,), float(bias)))

    def squeeze(self, state, slope):
        """What the adaptor looks at, (N, width, H, W).

        With fixed statistics all but the sigmoid is affine: the average is taken first, in one pass instead of six.
        """
        if self.inputs == "difference":
            state = slope  # which is all it looks at
        elif not torch.jit.is_tracing() and state.shape != slope.shape:
            raise ValueError(
                f"controller 'stepnet' joins state and slope, whose shapes are {tuple(state.shape)} and "
                f'{tuple(slope.shape)}; where they differ take inputs="difference", which sees the slope alone.'
            )
        if not self.training or self.adaptor in ("a", "b"):
            state, slope = state.mean((2, 3), keepdim=True), slope.mean((2, 3), keepdim=True)
        if self.inputs == "both":
            return torch.stack((state, state + slope), dim=2).flatten(1, 2)
        return {"now": lambda: state, "next": lambda: state + slope, "difference": lambda: slope}[self.inputs]()

    def of_constant(self, psi):
        """The vector stands for both states."""
        maps = psi[:, :, None, None]
        return torch.stack((maps, maps), dim=2).flatten(1, 2) if self.inputs == "both" else maps

    def head(self, statistic):
        if self.adaptor == "d":
            joined = self.join(self.norm(statistic))
        else:
            joined = self.join(statistic)
            joined = joined if self.norm is None else self.norm(joined)
        pooled = joined.mean((2, 3))
        return pooled if self.weight is None else self.weight * pooled + self.bias
