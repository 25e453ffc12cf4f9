"""
The eigenvalues of a residual block
===================================

Every eigenvalue of one block's Jacobian at one image, exact because the block is made of ReLUs.
"""

import torch

import netbridge as nb
from odelab.plot import style

net = nb.pretrained("cifar10/resnet20-constant-seed0").eval()
images = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
states = nb.block_states(net, images)
name = list(states)[-1]
values = nb.block_spectrum(net.get_submodule(name), states[name]).values
with style.figure(height=3.4) as (figure, axes):
    axes[0, 0].plot(values.real, values.imag, ".", markersize=2)
    axes[0, 0].set(xlabel="Re", ylabel="Im")
