"""Norms taken in the forward pass, and the index they give: `odelab.nsi`, without keeping a feature map.

||x|| is formed while x is in memory anyway, as one pass over its bytes in the order they lie there; the index of all
blocks is then odelab's own formula applied to the norms (the norm of a norm is itself).
"""

import torch

from netbridge.unit import Spending, Spent
from odelab.namespace import norm
from odelab.stiffness import relative_slope

PORTION = 1 << 18  # numbers converted at a time from half precision: what fits a core's cache


def plain_norms(x: torch.Tensor) -> torch.Tensor:
    """||x|| per sample, accumulated in at least single precision."""
    dense = x.ndim == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    rows = (x.permute(0, 2, 3, 1) if dense else x).flatten(1)
    if x.dtype in (torch.float32, torch.float64):
        return torch.linalg.vector_norm(rows, dim=1)
    if x.device.type != "cpu":
        return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float32)
    portions = rows.split(max(1, PORTION // rows.shape[1]))
    return torch.cat([torch.linalg.vector_norm(part, dim=1, dtype=torch.float32) for part in portions])


def careful_norms(x: torch.Tensor) -> torch.Tensor:
    """The same by odelab's norm, which rescales where squares would over- or underflow; costs a look at the numbers."""
    return norm(x.double() if x.device.type != "mps" else x.float(), tuple(range(1, x.ndim)))


def differences(before: torch.Tensor, after: torch.Tensor, norms) -> torch.Tensor:
    """||after - before|| per sample, a few samples at a time, so that no third feature map is needed."""
    size = max(1, PORTION * 4 // before[0].numel())
    pairs = zip(before.split(size), after.split(size), strict=True)
    return torch.cat([norms(b.to(torch.promote_types(b.dtype, torch.float32)) - a) for a, b in pairs])


class Recorder:
    """Collects the norms of one pass after another; `numerators` and `denominators` are lists over the blocks."""

    def __init__(self, increments: bool):
        self.increments = increments
        self.norms = plain_norms
        self.begin()

    def begin(self):
        self.numerators: list[torch.Tensor | None] = []
        self.denominators: list[torch.Tensor | None] = []

    def step(self, state, slope=None):
        """A block about to form state + h * slope; the increment follows later where it is asked for."""
        self.denominators.append(self.norms(state))
        self.numerators.append(None if self.increments or slope is None else self.norms(slope))

    def after(self, before, new, place=-1):
        """The state a block has left; `before` None where its shape is another, so that there is no increment."""
        if self.increments and before is not None:
            self.numerators[place] = differences(before, new, self.norms)

    def indices(self) -> torch.Tensor:
        """NSI of this pass, (N, T), NaN where there is no increment."""
        size = self.denominators[0]
        numerators = [size.new_full(size.shape, torch.nan) if n is None else n for n in self.numerators]
        state, slope = torch.stack(self.denominators, 1).double().cpu(), torch.stack(numerators, 1).double().cpu()
        return relative_slope(state.reshape(-1, 1), slope.reshape(-1, 1)).reshape(state.shape)

    def reliable(self) -> bool:
        """Could no square have left the range of its precision?"""
        known = [n for n in (*self.numerators, *self.denominators) if n is not None]
        limits = torch.finfo(known[0].dtype)
        values = torch.stack(known)
        return bool((values.isnan() | ((values > (limits.tiny / limits.eps) ** 0.5) & (values < torch.inf))).all())

    @property
    def careful(self) -> bool:
        return self.norms is careful_norms


class Measuring(Spending):
    """h = 1 for a step whose slope is measured before its memory takes the new state."""

    def __init__(self, measure):
        self.measure = measure

    def __mul__(self, slope):
        return Measured(slope, self.measure)


class Measured(Spent):
    def __init__(self, slope, measure):
        super().__init__(slope)
        self.measure = measure

    def __radd__(self, u):
        self.measure(u, self.slope)
        return super().__radd__(u)
