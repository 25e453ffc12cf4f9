"""
The same network in two readings
================================

NSI of the slope, in which the step size is not contained, and of the increment, in which it is; none where
the shape changes.
"""

import torch

import netbridge as nb
from odelab.plot import style

net = nb.pretrained("cifar10/resnet20-se-seed0").eval()
images = torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0))
with style.figure(height=3.4) as (figure, axes):
    for record in nb.trace(net, images, of=("slope", "increment")):
        axes[0, 0].plot(range(1, 10), record.nsi.mean(0), "o-", label=record.of)
    axes[0, 0].set(xlabel="block", ylabel="NSI, mean over images")
    axes[0, 0].legend()
