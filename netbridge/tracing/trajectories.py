"""The feature maps of a traced network, as one `odelab.Trajectory` for each stage."""

from typing import Any

import numpy as np

import odelab
from netbridge.recording.record import Record, Records
from odelab.results import Result


class Trajectories(Result, list, kinds={"norms": "netbridge.figures:draw_norms"}):
    """The feature maps of a traced network, one `odelab.Trajectory` for each stage over all images at once.

    `nb.trace(net, images, keep=True)` returns it: a list whose `record` holds the indices. Of each one t (m + 1,)
    counts layers, u (m + 1, N, ...) is the state before every block and after the last, slope (m, N, ...) are the
    branches and h the step sizes: (m,), or broadcast over the features where something else than a number multiplied.

    iterable    the trajectories

    >>> import torch, netbridge as nb
    >>> runs = nb.trace(nb.resnet(8), torch.randn(2, 3, 8, 8), keep=True)
    >>> len(runs), runs[0].u.shape, runs.record
    (3, (2, 2, 16, 8, 8), Record(2 images, 3 blocks in 3 stages, of='slope'))
    """

    record: Record | Records

    def table(self):
        """The table of the record."""
        return self.record.table()

    def __str__(self):
        return str(self.record)


def trajectories_of(kept: list, record: Record | Records) -> Trajectories:
    """Joins the states, slopes and step sizes of all batches into one trajectory per stage."""
    runs = Trajectories()
    runs.record = record
    for stage in np.unique(record.stage):
        columns = [int(k) for k in np.flatnonzero(record.stage == stage)]
        parts = [stage_arrays(batch, columns) for batch in kept]
        u, slope = (np.concatenate([part[i] for part in parts], axis=1) for i in (0, 1))
        sizes = [part[2] for part in parts]
        h = sizes[0] if sizes[0].ndim == 1 else np.concatenate(sizes, axis=1)
        runs.append(
            odelab.Trajectory(
                np.arange(len(columns) + 1.0),
                u,
                h,
                method=odelab.EULER,
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
    for k in columns:
        if k in slopes and slopes[k].shape != states[k].shape:
            raise ValueError(
                f"`keep` = True needs every branch in the layout of its state, got {slopes[k].shape[1:]} beside "
                f"{states[k].shape[1:]}; trace without it."
            )
    u = np.stack([*(states[k] for k in columns), news[columns[-1]]])
    slope = np.stack([slopes[k] if k in slopes else increment(states[k], news[k]) for k in columns])
    h: Any = [sizes.get(k, np.ones(())) for k in columns]
    if any(size.ndim for size in h):
        images = u.shape[1]
        h = np.broadcast_arrays(*(size.reshape((1,) * (u.ndim - 1 - size.ndim) + size.shape) for size in h))
        h = [np.broadcast_to(size, (images, *size.shape[1:])) for size in h]
    return u, slope, np.stack(h)


def increment(state, new):
    return new - state if new.shape == state.shape else np.full_like(new, np.nan)
