"""
A transformer, block by block
=============================

Attentions and MLPs are steps of one trajectory, and each kind has an index of its own size.
"""

import torch

import netbridge as nb
from odelab.plot import style

torch.manual_seed(0)
net = nb.vit(size=32, patch=4, features=96, depth=6, heads=3).eval()
nsi = nb.trace(net, torch.randn(16, 3, 32, 32)).nsi.mean(0)
with style.figure(height=3.2) as (figure, axes):
    axes[0, 0].plot(range(1, 13, 2), nsi[0::2], "o", label="attention")
    axes[0, 0].plot(range(2, 13, 2), nsi[1::2], "s", label="MLP")
    axes[0, 0].set(xlabel="step", ylabel="NSI, mean over images")
    axes[0, 0].legend()
