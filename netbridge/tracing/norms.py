"""Norms taken in the forward pass, and the index they give: `odelab.nsi`, without keeping a feature map.

||x|| is formed while x is in memory anyway, as one pass over its bytes in the order they lie there; the index of all
blocks is then odelab's own formula applied to the norms (the norm of a norm is itself).
"""

import math

import numpy as np
import torch

from netbridge.tracing import kernel
from odelab.arrays import norm
from odelab.stiffness.indices import relative_slope

PIECE, SHORTEST = 1024, 32  # numbers added up before their sum is added to another, at most and at least
SLAB = 1 << 22  # bytes of a map added and measured at a time
PORTION = 1 << 18  # numbers converted at a time from half precision: what fits a core's cache


def plain_norms(x: torch.Tensor) -> torch.Tensor:
    """The norms of short pieces of every sample, (N, pieces), whose norm is ||x||: in at least single precision.

    As fast as in one go, and the rounding error stays near one unit.
    """
    if x.dtype not in (torch.float32, torch.float64):
        if x.device.type != "cpu":
            return torch.linalg.vector_norm(x.flatten(1), dim=1, keepdim=True, dtype=torch.float32)
        return torch.cat([plain_norms(part.float()) for part in x.split(max(1, PORTION // numbers(x)))])
    dense = x.is_contiguous()
    if not dense and x.ndim == 4:
        dense = x.is_contiguous(memory_format=torch.channels_last)
        x = x.permute(0, 2, 3, 1)
    length = math.gcd(numbers(x), PIECE)
    if length < SHORTEST or not dense:
        return torch.linalg.vector_norm(x.flatten(1), dim=1, keepdim=True)
    return torch.linalg.vector_norm(x.view(x.shape[0], -1, length), dim=2)


def numbers(x: torch.Tensor) -> int:
    """In one sample."""
    return x.numel() // x.shape[0]


def careful_norms(x: torch.Tensor) -> torch.Tensor:
    """The same by odelab's norm, which rescales where squares would over- or underflow; costs a look at the numbers."""
    return norm(x.double() if x.device.type != "mps" else x.float(), tuple(range(1, x.ndim)))[:, None]


def differences(before: torch.Tensor, after: torch.Tensor, norms) -> torch.Tensor:
    """||after - before|| per sample, a few samples at a time, so that no third feature map is needed."""
    size = max(1, PORTION * 4 // numbers(before))
    pairs = zip(before.split(size), after.split(size), strict=True)
    return torch.cat([norms(b.to(torch.promote_types(b.dtype, torch.float32)) - a) for a, b in pairs])


def portions(state: torch.Tensor, slope: torch.Tensor, size: int):
    if size >= state.shape[0]:
        return ((state, slope),)
    return zip(state.split(size), slope.split(size), strict=True)


def joined(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


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

    def advance(self, k: int, state: torch.Tensor, slope: torch.Tensor, relu: bool, opens: bool) -> torch.Tensor:
        """state + slope in the memory of the slope, perhaps through a ReLU, measured a portion at a time.

        A portion stays in the cache while it is measured, added and projected; large maps go through a compiled loop.
        """
        if relu and not self.increments and not self.careful and (norms := kernel.advance(state, slope)) is not None:
            self.below[k], self.above[k] = norms
            return slope
        size = max(1, SLAB // (numbers(state) * state.element_size()))
        above, below = [], []
        for u, f in portions(state, slope, size):
            below.append(self.norms(u))
            if not self.increments:
                above.append(self.norms(f))
            f.add_(u)
            if relu:
                f.relu_()
            if self.increments and not opens:
                above.append(differences(u, f, self.norms))
        self.below[k] = joined(below)
        if above:
            self.above[k] = joined(above)
        return slope

    def left(self, k: int, before: torch.Tensor | None, new: torch.Tensor):
        """x_{t+1}, and x_t unless the shape has changed between them."""
        if self.increments and before is not None:
            self.above[k] = differences(before, new, self.norms)

    def collect(self) -> bool:
        """Puts the norms of this pass in order, (N, T); could no square have left the range of its precision?"""
        columns = sorted(self.below)
        found = [self.below[k] for k in columns] + [self.above[k] for k in columns if k in self.above]
        pieces = torch.cat(found, 1).double().cpu().numpy()
        ends = np.cumsum([norms.shape[1] for norms in found])
        whole = pieces
        if len(ends) != pieces.shape[1]:  # the norm of the norms of pieces
            with np.errstate(over="ignore", under="ignore"):
                whole = np.sqrt(np.add.reduceat(pieces * pieces, ends - [norms.shape[1] for norms in found], axis=1))
        self.state_norms = whole[:, : len(columns)]
        self.slope_norms = np.full_like(self.state_norms, np.nan)
        self.slope_norms[:, [k in self.above for k in columns]] = whole[:, len(columns) :]
        limits = torch.finfo(found[0].dtype)
        low = (limits.tiny / limits.eps) ** 0.5 * PIECE  # squares underflow unseen, one by one; overflow shows
        return not ((whole <= low) | np.isinf(whole)).any()  # NaN is none of this function's business

    def indices(self) -> np.ndarray:
        """NSI of this pass, (N, T), NaN where there is no increment: odelab's formula; the norm of a norm is itself."""
        shape = self.state_norms.shape
        return relative_slope(self.state_norms.reshape(-1, 1), self.slope_norms.reshape(-1, 1)).reshape(shape)

    @property
    def careful(self) -> bool:
        return self.norms is careful_norms

    def be_careful(self):
        self.norms = careful_norms
