"""
How many images are stiff, and to which degree
==============================================

The share of images with a block far above the mean of its stage (M1) and large in itself (M2); its integral is TNS.
"""

import numpy as np
import torch

import netbridge as nb
from odelab.plot import style

net = nb.pretrained("cifar10/resnet20-stepnet-seed0").eval()
record = nb.trace(net, torch.randn(64, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
m1, m2 = np.linspace(0.0, 0.25, 60), np.linspace(0.0, 3.0, 60)
with style.figure(height=3.6) as (figure, axes):
    mesh = axes[0, 0].pcolormesh(m1, m2, record.delta(m1[:, None], m2).T, cmap="viridis")
    axes[0, 0].set(xlabel="M1", ylabel="M2")
    figure.colorbar(mesh, ax=axes[0, 0], label="share of images")
