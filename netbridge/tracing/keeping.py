"""Feature maps kept on request, as the runs of `odelab` that they are: one `Trajectory` per stage."""

import numpy as np
import torch

from netbridge.tracing.norms import Recorder
from netbridge.tracing.record import Record, Records
from odelab import EULER, Trajectory


class Trajectories(list):
    """One `odelab.Trajectory` per stage, over all images at once; `record` holds their indices.

    t (m + 1,) counts layers, u (m + 1, N, ...) is the state before every block and after the last, slope (m, N, ...)
    the branches, h the step sizes: (m,), or broadcast over the features where gates were at work.
    """

    record: Record | Records


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

    def size(self, k, h, state):
        super().size(k, h, state)
        self.gates[k] = array(h) if isinstance(h, float | torch.Tensor) else np.ones(())

    def left(self, k, before, new):
        super().left(k, before, new)
        self.news[k] = array(new)

    def pass_kept(self):
        return self.states, self.branches, self.news, self.gates


def array(values) -> np.ndarray:
    """A copy in NumPy, of at least single precision."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(float(values))
    values = values.detach()
    return values.to(torch.promote_types(values.dtype, torch.float32)).cpu().numpy().copy()


def trajectories(kept: list, record: Record | Records) -> Trajectories:
    """From what was kept of every batch."""
    runs = Trajectories()
    runs.record = record
    for stage in np.unique(record.stage):
        columns = [int(k) for k in np.flatnonzero(record.stage == stage)]
        parts = [stage_arrays(batch, columns) for batch in kept]
        u, slope = (np.concatenate([part[i] for part in parts], axis=1) for i in (0, 1))
        sizes = [part[2] for part in parts]
        h = sizes[0] if sizes[0].ndim == 1 else np.concatenate(sizes, axis=1)
        runs.append(
            Trajectory(
                np.arange(len(columns) + 1.0),
                u,
                h,
                method=EULER,
                engine="netbridge",
                known={
                    "slope": slope,
                    "message": f"stage {stage} of a network: {', '.join(record.names[k] for k in columns)}",
                },
            )
        )
    return runs


def stage_arrays(batch, columns):
    states, slopes, news, sizes = batch
    u = np.stack([*(states[k] for k in columns), news[columns[-1]]])
    slope = np.stack([slopes[k] if k in slopes else increment(states[k], news[k]) for k in columns])
    h = [sizes.get(k, np.ones(())) for k in columns]
    if any(size.ndim for size in h):
        images = u.shape[1]
        h = np.broadcast_arrays(*(size.reshape((1,) * (u.ndim - 1 - size.ndim) + size.shape) for size in h))
        h = [np.broadcast_to(size, (images, *size.shape[1:])) for size in h]
    return u, slope, np.stack(h)


def increment(state, new):
    return new - state if new.shape == state.shape else np.full_like(new, np.nan)
