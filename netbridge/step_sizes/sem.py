"""SEM. Zhong, Wen and Qin (with Huang), Switchable Self-attention Module, 2022.

Three excitations of GAP f, those of SE, ECA and IE, each logit multiplied by its switch, a linear map C -> 3 with
sigmoid; h is the product of the three sigmoids.
"""

from typing import Any

import torch
from torch import nn

from netbridge.step_sizes.base import ChannelController
from netbridge.step_sizes.eca import ECA
from netbridge.step_sizes.ie import IE
from netbridge.step_sizes.se import SE


class SEM(ChannelController, name="sem"):
    def __init__(self, channels: int, reduction: int = 16):
        super().__init__()
        self.excitations: Any = nn.ModuleList([SE(channels, reduction), ECA(channels), IE(channels)])
        self.switch = nn.Linear(channels, 3)

    def gate(self, statistic, activation=torch.sigmoid):
        switches = torch.sigmoid(self.switch(statistic)).unsqueeze(2).unbind(dim=1)
        gates = [activation(on * part.head(statistic)) for on, part in zip(switches, self.excitations, strict=True)]
        return gates[0] * gates[1] * gates[2]
