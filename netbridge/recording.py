"""Norms taken in the forward pass, and the index they give: `odelab.nsi`, without keeping a feature map.

||x|| is formed while x is in memory anyway, as one pass over its bytes in the order they lie there; the index of all
blocks is then odelab's own formula applied to the norms (the norm of a norm is itself).
"""

import math

import torch

from netbridge.unit import Spending, Spent
from odelab.namespace import norm
from odelab.stiffness import relative_slope

PIECE = 1024  # numbers added up before their sum is added to another
PORTION = 1 << 18  # numbers converted at a time from half precision: what fits a core's cache


def plain_norms(x: torch.Tensor) -> torch.Tensor:
    """||x|| per sample, accumulated in at least single precision."""
    dense = x.ndim == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    rows = (x.permute(0, 2, 3, 1) if dense else x).flatten(1)
    if x.dtype in (torch.float32, torch.float64):
        return pairwise(rows)
    if x.device.type != "cpu":
        return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float32)
    return torch.cat([pairwise(part.float()) for part in rows.split(max(1, PORTION // rows.shape[1]))])


def pairwise(rows: torch.Tensor) -> torch.Tensor:
    """The norm of the norms of short pieces: as fast as in one go, and its rounding error stays near one unit."""
    length = math.gcd(rows.shape[1], PIECE)
    if length >= 32:
        rows = torch.linalg.vector_norm(rows.unflatten(1, (-1, length)), dim=2)
    return torch.linalg.vector_norm(rows, dim=1)


def careful_norms(x: torch.Tensor) -> torch.Tensor:
    """The same by odelab's norm, which rescales where squares would over- or underflow; costs a look at the numbers."""
    return norm(x.double() if x.device.type != "mps" else x.float(), tuple(range(1, x.ndim)))


def differences(before: torch.Tensor, after: torch.Tensor, norms) -> torch.Tensor:
    """||after - before|| per sample, a few samples at a time, so that no third feature map is needed."""
    size = max(1, PORTION * 4 // before[0].numel())
    pairs = zip(before.split(size), after.split(size), strict=True)
    return torch.cat([norms(b.to(torch.promote_types(b.dtype, torch.float32)) - a) for a, b in pairs])


class Recorder:
    """The norms of one pass: for every block k what stands above and below the line of its index."""

    keeps = False  # does it need the maps themselves?

    def __init__(self, increments: bool):
        self.increments = increments
        self.norms = plain_norms
        self.begin()

    def begin(self):
        self.above: dict[int, torch.Tensor] = {}
        self.below: dict[int, torch.Tensor] = {}

    @property
    def needs_states(self) -> bool:
        """Must a state outlive the addition that follows it?"""
        return self.increments or self.keeps

    def state(self, k: int, state: torch.Tensor):
        """u: what block k adds to."""
        self.below[k] = self.norms(state)

    def slope(self, k: int, slope: torch.Tensor, h=None):
        """f, before the step size h."""
        if not self.increments:
            self.above[k] = self.norms(slope)

    def left(self, k: int, before: torch.Tensor | None, new: torch.Tensor):
        """x_{t+1}, and x_t unless the shape has changed between them."""
        if self.increments and before is not None:
            self.above[k] = differences(before, new, self.norms)

    def indices(self) -> torch.Tensor:
        """NSI of this pass, (N, T), NaN where there is no increment."""
        columns = sorted(self.below)
        none = torch.full_like(self.below[columns[0]], torch.nan)
        state, slope = (
            torch.stack([norms.get(k, none) for k in columns], 1).double().cpu() for norms in (self.below, self.above)
        )
        return relative_slope(state.reshape(-1, 1), slope.reshape(-1, 1)).reshape(state.shape)

    def reliable(self) -> bool:
        """Could no square have left the range of its precision?"""
        values = torch.stack([*self.above.values(), *self.below.values()])
        limits = torch.finfo(values.dtype)
        return bool((values.isnan() | ((values > (limits.tiny / limits.eps) ** 0.5) & (values < torch.inf))).all())

    @property
    def careful(self) -> bool:
        return self.norms is careful_norms

    def be_careful(self):
        self.norms = careful_norms


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

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        u, measured = args
        measured.measure(u, measured.slope)
        return super().__torch_function__(function, types, args, kwargs)
