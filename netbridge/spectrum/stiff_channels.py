"""Which channels of a block are stiff: how much each takes part in the fastest modes of the block's Jacobian."""

import dataclasses

import numpy as np
from torch import nn

from netbridge.common.preservation import keep_generators
from netbridge.spectrum.block_spectrum import block_operator, checked_state
from odelab.stiffness.modes.participation import ModeGroup, leading_group


@keep_generators()
def stiff_channels(block: nn.Module, x, part: str = "residual", gate="live") -> ModeGroup:
    """Find which channels of a residual block take part in its fastest modes, at one state.

    The rates of a block's modes lie close together: hardly ever is one set off by the gap that `odelab.participation`
    asks for. So the fast modes end at the widest gap between the spectral radius and half of it.

    block       a residual block that keeps the shape of its input, ours or anybody's; it is left as it was
    x           one state, (C, h, w) or (1, C, h, w), or tokens (1, T, C), of at most 2,048 numbers
    part, gate  as in `nb.block_spectrum`

    Returns an `odelab.ModeGroup` whose `participation` and `share` are those of the channels, (C,), summed over the
    places of a map or the tokens; its bases `right` and `left` are those of all units. `print` says it in a sentence.
    Raises ValueError for larger states, and for a block that changes the shape.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> block = nb.resnet(depth=8, widths=(4, 4, 4)).eval().blocks[0]
    >>> with torch.no_grad():  # channel 2 sees itself twenty times as strongly
    ...     for weight in (block.branch.conv1.weight[:, 2], block.branch.conv2.weight[2]):
    ...         _ = weight.mul_(20.0)
    >>> found = nb.stiff_channels(block, torch.rand(4, 6, 6))
    >>> found.share.shape, int(found.share.argmax())
    ((4,), 2)
    """
    group = leading_group(block_operator(block, x, part, gate))
    shape = checked_state(block, x, None).shape[1:]
    axis = 0 if len(shape) == 3 else -1
    units = np.moveaxis(group.participation.reshape(shape), axis, 0)
    channels = tuple(f"channel {number}" for number in range(len(units)))
    return dataclasses.replace(group, participation=units.reshape(len(units), -1).sum(axis=1), names=channels)
