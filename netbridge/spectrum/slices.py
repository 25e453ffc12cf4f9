"""The eigenvalues that `torch.linalg.eigvals` gives for a block's unflattened Jacobian: those of its slices.

`torch.autograd.functional.jacobian(block, x)` has the axes (1, C', H', W', 1, C, H, W). `torch.linalg.eigvals` takes
the last two axes of any tensor for a matrix, so it returns the eigenvalues of C' H' W' C slices of H x W, each of which
is the derivative of one output unit with respect to one input channel. These are not the eigenvalues of the Jacobian.
The counts printed in Tables 10 and 11 of Block-level Stiffness Analysis of Residual Networks are those of the slices.
"""

import dataclasses
import math

import numpy as np
import torch
from torch import nn

from netbridge.common.preservation import keep_generators
from netbridge.spectrum.anatomy import anatomy
from netbridge.spectrum.autodiff import exact_attention, pullback
from netbridge.spectrum.block_spectrum import LIVE, check, checked_state, mapping
from odelab.files.saved import register
from odelab.results import Result

PORTION = 64  # output units at a time


@register
@dataclasses.dataclass(frozen=True, eq=False)
class SliceSpectrum(Result, kinds={"eigenvalues": "netbridge.figures:draw_slices"}):
    """The eigenvalues of the slices of a block's Jacobian, and what a count of their signs gives.

    values        (rows, C, H), complex: the H eigenvalues of the slice of every row, an output unit, and input channel
    rows          the numbers of the output units, (rows,), all of them unless a sample was asked for
    count         eigenvalues of all slices, C' H' W' C H: the elements of the Jacobian divided by W
    negative, zero, positive     fractions of the `values` by the sign of their real part, exact zeros apart
    max_re, min_re               the extreme real parts; a sample of rows comes short of both
    """

    values: np.ndarray
    rows: np.ndarray
    count: int

    def table(self):
        """A row per eigenvalue: its output unit, its input channel, and its parts."""
        units, channels, _ = np.indices(self.values.shape)
        values = self.values.ravel()
        where = {"unit": self.rows[units.ravel()], "channel": channels.ravel()}
        return {**where, "real": values.real, "imaginary": values.imag}

    @property
    def max_re(self) -> float:
        return float(self.values.real.max())

    @property
    def min_re(self) -> float:
        return float(self.values.real.min())

    @property
    def negative(self) -> float:
        return float((self.values.real < 0).mean())

    @property
    def zero(self) -> float:
        return float((self.values.real == 0).mean())

    @property
    def positive(self) -> float:
        return float((self.values.real > 0).mean())

    @property
    def stiffness_index(self) -> float:
        """max Re / min Re, as the paper forms it; NaN where no real part is negative."""
        return self.max_re / self.min_re if self.min_re < 0 else math.nan


@keep_generators()
def slice_spectrum(
    block: nn.Module,
    x,
    rows: int | None = None,
    seed: int = 0,
    part: str = "block",
    gate=LIVE,
    dtype: torch.dtype | None = None,
) -> SliceSpectrum:
    """Find the eigenvalues that the unflattened Jacobian of a block gives: those of its H x W slices.

    They show what the tables of the block-level paper contain. The eigenvalues of the Jacobian itself come from
    `nb.block_spectrum`. A slice is square whatever the block does to the shape, so that blocks that open a stage have
    slices, too, where they have no eigenvalues.

    block       a residual block, ours or anybody's; it is left as it was
    x           one state of the block, (C, H, W) or (1, C, H, W), with H = W
    rows        how many output units to look at, drawn without replacement; all of them by default. Fractions of a
                sample are unbiased, extremes are not
    seed        of the draw; 0
    part, gate  as in `nb.block_spectrum`, but the whole block by default
    dtype       torch.float64 (default) or torch.float32

    Returns a SliceSpectrum: `values`, `count`, `negative`, `zero`, `positive`, `max_re`, `min_re`, `stiffness_index`.
    Raises ValueError where the maps are not square.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> block = nb.resnet(depth=8, widths=(2, 2, 2)).eval().blocks[0]
    >>> found = nb.slice_spectrum(block, torch.rand(2, 4, 4))
    >>> found.values.shape, found.count  # 32 output units, 2 input channels, slices of 4 x 4
    ((32, 2, 4), 256)
    """
    check(block, part, "auto")
    x = checked_state(block, x, dtype)
    if x.ndim != 4 or x.shape[2] != x.shape[3]:
        raise ValueError(
            f"`x` must hold square maps, (1, C, H, H), got shape {tuple(x.shape)}: slices of other shapes have no "
            "eigenvalues."
        )
    with exact_attention():
        function = mapping(anatomy(block, x), x, part, gate)
        output, pull = pullback(lambda u: function(u).flatten(), x)
        chosen = torch.arange(len(output))
        if rows is not None and rows < len(output):
            if rows < 1:
                raise ValueError(f"`rows` must be at least 1, got {rows!r}.")
            chosen = torch.randperm(len(output), generator=torch.Generator().manual_seed(seed))[:rows].sort().values
        values = [slice_values(pull, units, output, x) for units in chosen.split(PORTION)]
    count = len(output) * x.shape[1] * x.shape[2]
    return SliceSpectrum(np.concatenate(values), chosen.numpy(), count)


def slice_values(pull, units: torch.Tensor, output: torch.Tensor, x: torch.Tensor) -> np.ndarray:
    """The eigenvalues of the slices of these output units, (units, C, H); a slice of zeros is not decomposed."""
    directions = nn.functional.one_hot(units.to(x.device), len(output)).to(x.dtype)
    slices = pull(directions, many=True)[:, 0]
    alive = (slices != 0).flatten(2).any(2)
    values = slices.new_zeros(slices.shape[:3]).to(torch.complex64 if x.dtype == torch.float32 else torch.complex128)
    if bool(alive.any()):
        values[alive] = torch.linalg.eigvals(slices[alive])
    return values.cpu().numpy()
