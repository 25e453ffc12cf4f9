"""DIA. Huang, Liang, Liang and Yang, DIANet: Dense-and-Implicit Attention Network, AAAI 2020, Section 3.

All blocks of a stage share one LSTM cell, which is fed with the average of f over the map (GAP); h = o * sigmoid(c).
Each of its two maps (from the input, from the hidden state) is C -> C/4 -> relu -> 4 C. Hidden and cell state go from
block to block in the memory of the solver's `propose`, so an image leaves nothing behind for the next one.
"""

import torch
from torch import nn

from netbridge.step_sizes.base import ChannelController


def gate_map(channels: int, reduction: int) -> nn.Sequential:
    hidden = max(channels // reduction, 1)
    return nn.Sequential(nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, 4 * channels))


class DIA(ChannelController, name="dia"):
    shared = True

    def __init__(self, channels: int, reduction: int = 4):
        super().__init__()
        self.from_input = gate_map(channels, reduction)
        self.from_hidden = gate_map(channels, reduction)

    def advance(self, memory, statistic, activation=torch.sigmoid):
        hidden, cell = memory if memory is not None else (torch.zeros_like(statistic), torch.zeros_like(statistic))
        gates = self.from_input(statistic) + self.from_hidden(hidden)
        enter, forget, candidate, out = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
        hidden = torch.sigmoid(out) * activation(cell)
        return hidden, (hidden, cell)

    def propose(self, memory, state, slope):
        gate, memory = self.advance(memory, self.squeeze(state, slope))
        return gate[:, :, None, None], memory
