"""Stacks of a residual block x + tanh(a(x)), to build strange networks from, and their indices by hand."""

import torch
from torch import nn

import odelab as ol

WIDTH = 8


class Base(nn.Module):
    """x + tanh(a(x)) with something odd beside it."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH)

    def branch(self, x):
        return torch.tanh(self.a(x))

    def forward(self, x):
        return x + self.branch(x)


def stack(block, count=3):
    torch.manual_seed(1)
    return nn.Sequential(*[block() for _ in range(count)])


def literal(net, x, slopes=None, run=nn.Module.__call__):
    """||f|| / ||x|| of every block of `stack`, from a run by hand."""
    rows = []
    with torch.no_grad():
        for block in net:
            rows.append(ol.nsi(x, (slopes or type(block).branch)(block, x)))
            x = run(block, x)
    return torch.stack(rows, 1).numpy()
