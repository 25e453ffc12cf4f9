"""Total Neural Stiffness in closed form, and the two proportions it integrates.

Definition 2 and Section 3.1 of Huang, Liang et al. (2023): delta(M) = E 1[exists t: nsi_t >= max(mu (1 + M1), M2)],
TNS the integral of delta over all M1, M2 >= 0. For one sample the indicator is that of the union over t of the
rectangles [0, nsi_t / mu - 1] x [0, nsi_t], all with a corner at the origin, so that

    TNS = E area(union),

(max / mu - 1) * max for one stage, the area under a staircase for several. No grid, no truncation; gradients in torch.
Only counted blocks enter: the paper leaves out the first block of every stage.

TNS grows in proportion to the indices: a network whose branches are three times larger, because a gate of 0.3 follows
them, has three times the TNS and is no more uneven. `tns_parts` takes the two apart.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from odelab.arrays import floating, library_of, number, to_numpy

__all__ = ["TnsParts", "delta", "stiffness_proportion", "tns", "tns_parts"]

CHUNK = 1 << 20  # indices processed together, so that about 50 MB of memory are enough for any batch
MEANS = ("sample", "dataset")


def tns(nsi, stage, mu: str = "sample"):
    """The Total Neural Stiffness of every sample, exactly; the number of the paper is its mean over the samples.

    nsi    neural stiffness indices of counted blocks, (N, T), as an array or a tensor; the first block of a stage is
           not counted, so its column is left out
    stage  the stage that each block belongs to, (T,): any labels
    mu     "sample": indices are compared with their mean over the stage in the same sample; "dataset": with the mean
           over the stage in all samples. The paper's definition can be read either way

    Returns one number per sample, (N,), in the library of `nsi` and with gradients in torch.

    >>> import odelab as ol
    >>> ol.tns([[1.0, 3.0, 2.0, 2.0]], stage=[1, 1, 2, 2])
    array([1.5])
    """
    nsi, groups = _check_indices(nsi, stage, mu)
    shared = _dataset_means(nsi, groups) if mu == "dataset" else None
    rows = max(1, CHUNK // nsi.shape[1])
    areas = [_areas(nsi[start : start + rows], groups, shared) for start in range(0, len(nsi), rows)]
    return areas[0] if len(areas) == 1 else library_of(nsi).concatenate(areas)


@dataclasses.dataclass(frozen=True)
class TnsParts:
    """Total neural stiffness and the two things it is a product of; each a number, or an array of one per network.

    tns    the Total Neural Stiffness of a network, the mean over its samples
    scale  the mean of the indices of all counted blocks: how large the branches are beside the states

    `shape` is what is left when the scale is divided out. It says how far the largest indices of the stages lie above
    their means, and stays as it is, to the bit, when all indices are doubled.

    >>> import odelab as ol
    >>> ol.TnsParts(tns=1.5, scale=2.0).shape
    0.75
    """

    tns: Any
    scale: Any

    @property
    def shape(self):
        """TNS divided by the scale; NaN where all indices are zero."""
        with np.errstate(invalid="ignore"):
            return math.nan if isinstance(self.scale, float) and self.scale == 0.0 else self.tns / self.scale


def tns_parts(nsi, stage, mu: str = "sample") -> TnsParts:
    """The Total Neural Stiffness of a network taken apart into its scale and its shape.

    nsi, stage, mu  as in `odelab.tns`

    Returns a `TnsParts` with one number each: means over the samples, in the library of `nsi`.

    >>> import odelab as ol
    >>> small, large = (ol.tns_parts([[factor, 3 * factor]], stage=[1, 1]) for factor in (1.0, 2.0))
    >>> float(large.tns / small.tns), float(large.scale / small.scale), float(large.shape / small.shape)
    (2.0, 2.0, 1.0)
    """
    values, _ = _check_indices(nsi, stage, mu)
    return TnsParts(tns(nsi, stage, mu).mean(), values.mean())


def delta(nsi, stage, m1, m2, mu: str = "sample"):
    """The share of samples that are stiff to the degree (m1, m2), Eq. 5: with an index >= max(mu (1 + m1), m2).

    nsi, stage  as in `odelab.tns`
    m1          how far an index lies above the mean of its stage, relative to it; from 0 up, a number or an array
    m2          how large the index is; from 0 up, a number or an array that broadcasts with `m1`
    mu          "sample" or "dataset", as in `odelab.tns`

    Returns a number, or an array of the broadcast shape: delta(nsi, stage, m1[:, None], m2) is a surface.

    >>> import odelab as ol
    >>> ol.delta([[1.0, 3.0], [2.0, 2.0]], stage=[1, 1], m1=0.2, m2=0.0)
    np.float64(0.5)
    """
    values, groups = _check_indices(nsi, stage, mu)
    values = to_numpy(values)
    peaks, means, _ = _profile(values, groups, _dataset_means(values, groups) if mu == "dataset" else None)

    def largest_stiff(x):
        stiff = peaks >= means * (1.0 + x)
        return np.where(stiff, peaks, -1.0).max(axis=1)[stiff.any(axis=1)]

    return _surface(largest_stiff, len(values), m1, m2, nsi, values.dtype)


def stiffness_proportion(nsi, stage, m1, m2, mu: str = "sample"):
    """The expected share of blocks that are stiff to the degree (m1, m2), p-hat of Section 3.1.

    The paper's L is read as the number of counted blocks, so that the share of all of them can reach one.

    nsi, stage  as in `odelab.tns`
    m1, m2, mu  as in `odelab.delta`

    Returns a number, or an array of the broadcast shape of `m1` and `m2`.

    >>> import odelab as ol
    >>> ol.stiffness_proportion([[1.0, 3.0], [2.0, 2.0]], stage=[1, 1], m1=0.2, m2=0.0)
    np.float64(0.25)
    """
    values, groups = _check_indices(nsi, stage, mu)
    values = to_numpy(values)
    _, means, _ = _profile(values, groups, _dataset_means(values, groups) if mu == "dataset" else None)
    means = np.broadcast_to(means, (len(values), len(groups)))
    rows = max(1, CHUNK // values.shape[1])

    def stiff_ones(x):
        for start in range(0, len(values), rows):
            for s, columns in enumerate(groups):
                block = values[start : start + rows, columns]
                yield block[block >= means[start : start + rows, s : s + 1] * (1.0 + x)]

    return _surface(lambda x: np.concatenate(list(stiff_ones(x))), values.size, m1, m2, nsi, values.dtype)


def _areas(nsi, groups, shared):
    """For each sample, the area of the union of rectangles: a stage's largest rectangle contains its other ones."""
    library = library_of(nsi)
    peaks, means, above = _profile(nsi, groups, shared)
    safe = library.where(means > 0, means, library.ones_like(means))  # where all indices are zero, so is the area
    widths = library.clip(above / safe, 0, None)  # below the mean of all samples there is no rectangle
    if len(groups) == 1:
        return _as_precise_as(nsi, (widths * peaks)[:, 0])
    order = library.argsort(-widths, 1)
    if library is np:
        widths, peaks = np.take_along_axis(widths, order, 1), np.take_along_axis(peaks, order, 1)
        heights = np.maximum.accumulate(peaks, axis=1)
    else:
        widths, peaks = widths.gather(1, order), peaks.gather(1, order)
        heights = peaks.cummax(1).values
    narrower = library.concatenate([widths[:, 1:], library.zeros_like(widths[:, :1])], 1)
    return _as_precise_as(nsi, ((widths - narrower) * heights).sum(1))


def _profile(nsi, groups, shared):
    """For each sample and stage: the largest index, the mean it is compared with, and their difference.

    The mean, (N, S) or (1, S), is computed as the largest index minus the mean distance of the indices from it. It is
    then exact for equal indices and never larger than the largest one, whatever the rounding. The mean distance is also
    the difference, without the cancellation of a subtraction.
    """
    library = library_of(nsi)
    peaks = library.stack([library.amax(nsi[:, columns], 1) for columns in groups], 1)
    if shared is not None:
        return peaks, shared, peaks - shared
    distances = [(peaks[:, s : s + 1] - nsi[:, columns]).mean(1) for s, columns in enumerate(groups)]
    above = library.stack(distances, 1)
    return peaks, peaks - above, above


def _dataset_means(nsi, groups):
    """The mean of each stage over all samples, (1, S), computed in the same way, in double precision.

    The largest index of a sample may be very near to it, and single precision would lose the difference.
    """
    library = library_of(nsi)
    columns = library.amax(nsi, 0)
    peaks = _double(library.stack([library.amax(columns[group], 0) for group in groups]))
    rows = max(1, CHUNK // nsi.shape[1])
    distances = []
    for s, group in enumerate(groups):
        pieces = [(peaks[s] - _double(nsi[start : start + rows, group])).sum() for start in range(0, len(nsi), rows)]
        distances.append(sum(pieces) / (len(nsi) * len(columns[group])))
    return (peaks - library.stack(distances))[None, :]


def _double(values):
    """`values` in double precision, if the device has it."""
    if library_of(values) is np:
        return values.astype(np.float64, copy=False)
    return values if values.device.type == "mps" else values.double()


def _as_precise_as(nsi, values):
    return values.astype(nsi.dtype, copy=False) if library_of(nsi) is np else values.to(nsi.dtype)


def _surface(indices_of, total, m1, m2, like, dtype):
    """How many of `indices_of(m1)` are at least m2, over `total`, for every pair of the broadcast `m1`, `m2`."""
    m1, m2 = _degree("m1", m1), _degree("m2", m2)
    try:
        m1, m2 = np.broadcast_arrays(m1, m2)
    except ValueError:
        raise ValueError(
            f"`m1` and `m2` must broadcast, got shapes {m1.shape} and {m2.shape}; a surface is m1[:, None], m2."
        ) from None
    shares = np.empty(m1.size)
    relative, which = np.unique(m1.ravel(), return_inverse=True)
    absolute = m2.ravel().astype(dtype)  # compared in the precision of the indices, or 0.7 would miss float32(0.7)
    order = np.argsort(which, kind="stable")
    for x, points in zip(relative, np.split(order, np.flatnonzero(np.diff(which[order])) + 1), strict=True):
        thresholds, index = np.unique(absolute[points], return_inverse=True)
        passed = np.searchsorted(thresholds, indices_of(float(x)), side="right")
        at_least = np.cumsum(np.bincount(passed, minlength=len(thresholds) + 1)[::-1])[::-1][1:]
        shares[points] = at_least[index] / total
    shares = shares.reshape(m1.shape)
    library = library_of(like)
    return number(shares) if library is np else library.as_tensor(shares, dtype=like.dtype, device=like.device)


def _degree(name, value) -> np.ndarray:
    value = to_numpy(floating(name, to_numpy(value))).astype(np.float64)
    if not (value >= 0).all():
        raise ValueError(f"`{name}` must be zero or positive, got {float(value[~(value >= 0)][0])}.")
    return value


def _check_indices(nsi, stage, mu):
    """The indices, and for every stage its columns: a slice where they are neighbours."""
    if mu not in MEANS:
        raise ValueError(f"`mu` must be one of {MEANS}, got {mu!r}.")
    nsi = floating("nsi", nsi)
    if nsi.ndim != 2 or 0 in nsi.shape:
        raise ValueError(
            f"`nsi` must hold at least one sample of one counted block, (N, T), got shape {tuple(nsi.shape)}; "
            f"one sample is nsi[None]."
        )
    labels = to_numpy(stage)
    if labels.shape != (nsi.shape[1],):
        raise ValueError(f"`stage` must hold one label per block, ({nsi.shape[1]},), got shape {labels.shape}.")
    if not bool(((nsi >= 0) & (nsi < np.inf)).all()):
        values = to_numpy(nsi)
        sample, block = np.argwhere(~((values >= 0) & (values < np.inf)))[0]
        raise ValueError(
            f"`nsi` must be finite and not negative, got {values[sample, block]} for sample {sample}, block {block}; "
            f"the first block of a stage is not counted: leave its column out."
        )
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return nsi, [slice(g[0], g[-1] + 1) if g[-1] - g[0] + 1 == len(g) else g for g in groups]
