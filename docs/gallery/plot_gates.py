"""
Step sizes of a network that decides for itself
===============================================

The gates of squeeze-and-excitation in every block of a trained ResNet-20, over channels and images.
"""

import torch

import netbridge as nb
from odelab.plot import style

net = nb.pretrained("cifar10/resnet20-se-seed0").eval()
gates = nb.gates(net, torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
with style.figure(height=3.4) as (figure, axes):
    axes[0, 0].violinplot([one.h.numpy().ravel() for one in gates], showextrema=False, showmedians=True)
    axes[0, 0].set(xlabel="block", ylabel="step size h")
