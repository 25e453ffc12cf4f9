"""Norms taken in the forward pass, and the index they give: `odelab.nsi`, without keeping a feature map.

||x|| is formed while x is in memory anyway, as one pass over its bytes in the order they lie there; the index of all
blocks is then odelab's own formula applied to the norms (the norm of a norm is itself).
"""

import functools
import logging
import math
from typing import Any

import numpy as np
import torch

from netbridge.tracing.record import INCREMENT, SLOPE
from odelab.arrays import norm
from odelab.stiffness.indices import relative_slope

log = logging.getLogger("netbridge")

LARGE = 1 << 20  # numbers in a map from which the compiled loop is worth its compiler
THREADS = 2  # of torch; more of them are faster than one loop
PIECE, SHORTEST = 1024, 32  # longest and shortest piece: each piece is summed alone, which keeps rounding small
SLAB = 1 << 22  # bytes of a map added and measured at a time
PORTION = 1 << 18  # numbers converted at a time from half precision; they fit into the cache of a core


def plain_norms(x: torch.Tensor) -> torch.Tensor:
    """The norms of short pieces of every sample, (N, pieces), whose norm is ||x||: in at least single precision.

    As fast as in one go, and the rounding error stays near one unit.
    """
    if x.is_complex():
        x = as_real(x)
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


def as_real(x: torch.Tensor) -> torch.Tensor:
    """Real and imaginary parts as one more axis: their norm is that of the complex numbers."""
    return torch.view_as_real(x.resolve_conj())


def numbers(x: torch.Tensor) -> int:
    """How many numbers one sample of the batch holds."""
    return x.numel() // x.shape[0]


def careful_norms(x: torch.Tensor) -> torch.Tensor:
    """The same by odelab's norm, which is slower but rescales numbers whose squares would over- or underflow."""
    x = as_real(x) if x.is_complex() else x
    return norm(x.double() if x.device.type != "mps" else x.float(), tuple(range(1, x.ndim)))[:, None]


def differences(before: torch.Tensor, after: torch.Tensor, norms) -> torch.Tensor:
    """||after - before|| per sample, a few samples at a time, so that no third feature map is needed."""
    size = max(1, PORTION * 4 // numbers(before))
    pairs = zip(before.split(size), after.split(size), strict=True)
    return torch.cat([norms(b.to(torch.promote_types(b.dtype, torch.float32)) - a) for a, b in pairs])


def split_alike(state: torch.Tensor, slope: torch.Tensor, size: int):
    if size >= state.shape[0]:
        return ((state, slope),)
    return zip(state.split(size), slope.split(size), strict=True)


def join(parts: list[torch.Tensor]) -> torch.Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def mean_size(h, images: int, dimensions: int) -> torch.Tensor | float:
    """The mean of a step size over channels and places: (images,), or one number where it is the same for all."""
    if not isinstance(h, torch.Tensor):
        return float(h)
    h = h.detach()
    if h.ndim == dimensions and len(h) == images > 1:
        return h.flatten(1).mean(1, dtype=torch.promote_types(h.dtype, torch.float32))
    return float(h.double().mean())


class Recorder:
    """Collects the norms of one pass: for every block k numerator and denominator of its indices, and its step size.

    kinds       "slope" and "increment", one of them or both
    """

    keeps = False  # does it need the maps themselves?

    def __init__(self, kinds):
        self.slopes, self.increments = SLOPE in kinds, INCREMENT in kinds
        self.norms = plain_norms
        self.begin()

    def begin(self):
        self.below: dict[int, torch.Tensor] = {}
        self.above: dict[str, dict[int, torch.Tensor]] = {SLOPE: {}, INCREMENT: {}}
        self.sizes: dict[int, torch.Tensor | float] = {}

    @property
    def needs_states(self) -> bool:
        """Must a state outlive the addition that follows it?"""
        return self.increments or self.keeps

    def state(self, k: int, state: torch.Tensor):
        """u: what block k adds to."""
        self.below[k] = self.norms(state)

    def slope(self, k: int, slope: torch.Tensor):
        """f, before the step size h."""
        if self.slopes:
            self.above[SLOPE][k] = self.norms(slope)

    def size(self, k: int, h, images: int, dimensions: int):
        """The step size h of block k, a number or anything that broadcasts over the state; 1 where it is not called."""
        self.sizes[k] = mean_size(h, images, dimensions)

    def images(self, k: int) -> int:
        """How many images the state of block k holds."""
        return len(self.below[k])

    def advance(self, k: int, state: torch.Tensor, slope: torch.Tensor, relu: bool, opens: bool) -> torch.Tensor:
        """state + slope in the memory of the slope, perhaps through a ReLU, measured a portion at a time.

        A portion stays in the cache while it is measured, added and projected; large maps go through a compiled loop.
        """
        if relu and not self.increments and not self.careful and (norms := advance_compiled(state, slope)) is not None:
            self.below[k], self.above[SLOPE][k] = norms
            return slope
        size = max(1, SLAB // (numbers(state) * state.element_size()))
        below, slopes, moved = [], [], []
        for u, f in split_alike(state, slope, size):
            below.append(self.norms(u))
            if self.slopes:
                slopes.append(self.norms(f))
            f.add_(u)
            if relu:
                f.relu_()
            if self.increments and not opens:
                moved.append(differences(u, f, self.norms))
        self.below[k] = join(below)
        for kind, parts in ((SLOPE, slopes), (INCREMENT, moved)):
            if parts:
                self.above[kind][k] = join(parts)
        return slope

    def new_state(self, k: int, before: torch.Tensor | None, new: torch.Tensor):
        """Take the state after a step, x_{t+1}, and the one before, x_t, unless the shape has changed between them."""
        if self.increments and before is not None:
            self.above[INCREMENT][k] = differences(before, new, self.norms)

    def collect(self) -> bool:
        """Arranges the norms of this pass as (N, T); returns whether no square can have over- or underflowed."""
        columns = sorted(self.below)
        places = [(self.below, k) for k in columns]
        places += [(above, k) for above in self.above.values() for k in sorted(above)]
        found = [norms[k] for norms, k in places]
        pieces = torch.cat(found, 1).double().cpu().numpy()
        ends = np.cumsum([norms.shape[1] for norms in found])
        whole = pieces
        if len(ends) != pieces.shape[1]:  # the norm of the norms of pieces
            with np.errstate(over="ignore", under="ignore"):
                whole = np.sqrt(np.add.reduceat(pieces * pieces, ends - [norms.shape[1] for norms in found], axis=1))
        shape = len(whole), len(columns)
        self.state_norms = whole[:, : len(columns)]
        self.slope_norms = {kind: np.full(shape, np.nan) for kind in self.above}
        for column, (norms, k) in zip(whole.T, places, strict=True):
            for kind, above in self.above.items():
                if norms is above:
                    self.slope_norms[kind][:, columns.index(k)] = column
        self.step_sizes = np.ones(shape)
        for k, size in self.sizes.items():
            self.step_sizes[:, columns.index(k)] = size.double().cpu() if isinstance(size, torch.Tensor) else size
        limits = torch.finfo(found[0].dtype)
        low = (limits.tiny / limits.eps) ** 0.5 * PIECE  # squares underflow unseen, one by one; overflow shows
        return not ((whole <= low) | np.isinf(whole)).any()  # a NaN passes: `trace` reports it

    def indices(self, kind: str) -> np.ndarray:
        """NSI of this pass, (N, T), NaN where there is no increment: odelab's formula applied to the norms."""
        shape = self.state_norms.shape
        above = self.slope_norms[kind].reshape(-1, 1)
        return relative_slope(self.state_norms.reshape(-1, 1), above).reshape(shape)

    @property
    def careful(self) -> bool:
        return self.norms is careful_norms

    def be_careful(self):
        self.norms = careful_norms


class Keeper(Recorder):
    """Collects the norms, and copies of the maps they are norms of."""

    keeps = True

    def begin(self):
        super().begin()
        self.states: dict[int, np.ndarray] = {}
        self.branches: dict[int, np.ndarray] = {}
        self.news: dict[int, np.ndarray] = {}
        self.gates: dict[int, np.ndarray] = {}

    def state(self, k, state):
        super().state(k, state)
        self.states[k] = array(state)

    def slope(self, k, slope):
        super().slope(k, slope)
        self.branches[k] = array(slope)

    def size(self, k, h, images, dimensions):
        super().size(k, h, images, dimensions)
        self.gates[k] = array(h)

    def new_state(self, k, before, new):
        super().new_state(k, before, new)
        self.news[k] = array(new)

    def arrays_of_pass(self):
        return self.states, self.branches, self.news, self.gates


def array(values) -> np.ndarray:
    """A copy in NumPy, of at least single precision."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(float(values))
    values = values.detach()
    return values.to(torch.promote_types(values.dtype, torch.float32)).cpu().numpy().copy()


# A plain Euler step of a post-activation block, measured, in one loop: u and f are read once and the sum written once.
# torch takes four operations and seven passes over a map for that, this loop three passes: on one or two threads a
# traced ResNet-164 takes no longer than a plain one. numba compiles it when first needed (a second, then kept on disk);
# for small maps, more threads, other precisions and other devices torch does the work.


def measure_and_add(u, f, state_norms, slope_norms):
    """f = relu(u + f) row by row, with ||u|| and ||f|| as they were."""
    samples, numbers = u.shape
    for i in range(samples):
        state = slope = 0.0
        for start in range(0, numbers, PIECE):
            before, after = u[i, start : start + PIECE], f[i, start : start + PIECE]
            a = b = np.float32(0.0)
            for j in range(len(before)):
                x, y = before[j], after[j]
                a += x * x
                b += y * y
                z = x + y
                after[j] = np.float32(0.0) if z <= np.float32(0.0) else z  # NaN stays NaN
            state += a  # type: ignore[assignment]  # a sum of single precision joins one of double
            slope += b  # type: ignore[assignment]
        state_norms[i, 0] = math.sqrt(state)
        slope_norms[i, 0] = math.sqrt(slope)


@functools.cache
def compile_loop():
    """The loop compiled, or None. Sums may be reordered, which is all that vector instructions need."""
    try:
        from numba import njit

        options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"}, "error_model": "numpy"}
        try:
            return njit(cache=True, **options)(measure_and_add)
        except RuntimeError:  # no place to keep it
            return njit(**options)(measure_and_add)
    except ImportError as error:
        log.info("no compiled kernel for traces: %s", error)
        return None


def advance_compiled(state: torch.Tensor, slope: torch.Tensor):
    """(||u||, ||f||), each (N, 1), the slope's memory then holding relu(u + f); None where torch should do it."""
    if state.numel() < LARGE or torch.get_num_threads() > THREADS or state.stride() != slope.stride():
        return None
    u, f = rows_of(state), rows_of(slope)
    if u is None or f is None or compile_loop() is None:
        return None
    norms = np.empty((len(u), 1), np.float32), np.empty((len(u), 1), np.float32)
    compile_loop()(u, f, *norms)
    return tuple(map(torch.from_numpy, norms))


def rows_of(x: torch.Tensor) -> np.ndarray | None:
    """A map as the array (N, numbers) that lies in memory."""
    if x.dtype is not torch.float32 or x.device.type != "cpu" or x.requires_grad:
        return None
    if x.ndim == 4 and not x.is_contiguous():
        x = x.permute(0, 2, 3, 1)
    return x.flatten(1).numpy() if x.is_contiguous() else None
