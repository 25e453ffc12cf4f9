"""The recorder of a forward pass: the norms of each block's state, slope and increment, and the indices they give.

||x|| is formed while x is in memory anyway; the index of all blocks is then odelab's own formula applied to the norms
(the norm of a norm is itself).
"""

import numpy as np
import torch

from netbridge.recording.norms import PIECE, advance_compiled, careful_norms, differences, numbers, plain_norms
from netbridge.recording.record import INCREMENT, SLOPE
from odelab.stiffness.indices import relative_slope

SLAB = 1 << 22  # bytes of a map added and measured at a time


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

    def renumber(self, order: list) -> None:
        """Number the blocks anew, 0, 1, ..., in this order of the numbers that they have."""
        numbers = {k: number for number, k in enumerate(order)}
        for table in self.tables():
            entries = {numbers[k]: value for k, value in table.items()}
            table.clear()
            table.update(entries)

    def tables(self) -> list[dict]:
        """All that is known of this pass, by the numbers of the blocks."""
        return [self.below, self.sizes, *self.above.values()]

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

    def tables(self):
        return [*super().tables(), *self.arrays_of_pass()]

    def arrays_of_pass(self):
        return self.states, self.branches, self.news, self.gates


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


def array(values) -> np.ndarray:
    """A copy in NumPy, of at least single precision."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(float(values))
    values = values.detach()
    return values.to(torch.promote_types(values.dtype, torch.float32)).cpu().numpy().copy()
