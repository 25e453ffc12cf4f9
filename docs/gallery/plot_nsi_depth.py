"""
Stiffness along the depth of a network
======================================

NSI of every block of a trained ResNet-20 with squeeze-and-excitation, for 32 images.
"""

import torch

import netbridge as nb
from odelab.plot import style

net = nb.pretrained("cifar10/resnet20-se-seed0").eval()
record = nb.trace(net, torch.randn(32, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
with style.figure(height=3.4) as (figure, axes):
    axes[0, 0].boxplot(record.nsi, whis=(5, 95), showfliers=False)
    axes[0, 0].set(xlabel="block", ylabel="NSI")
