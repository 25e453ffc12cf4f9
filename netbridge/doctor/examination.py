"""`diagnose`: which blocks of a network are stiff, by which reading, what step sizes do, what a swap would change."""

import dataclasses
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import nn

import odelab
from netbridge.common.batches import Samples, images_of
from netbridge.common.nested_tensors import first_tensor
from netbridge.common.preservation import unwrap
from netbridge.doctor.euler_limits import EulerLimit, euler_limit
from netbridge.recording.record import Records
from netbridge.tracing.states import block_states
from netbridge.tracing.trace import trace
from odelab.results import Result

__all__ = ["NetworkDiagnosis", "diagnose"]

NAMED = 3  # blocks named in a sentence
MOVES = 0.01  # the standard deviation of a block's mean step over the images from which on it is said to move
AGREE = 0.8  # the rank correlation from which on two readings say the same of the blocks


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class NetworkDiagnosis(
    Result,
    kinds={
        "depth": "netbridge.doctor.page:draw_depth",
        "stable_steps": "netbridge.doctor.page:draw_stable_steps",
        "spectrum": "netbridge.doctor.page:draw_spectrum",
        "step_sizes": "netbridge.doctor.page:draw_step_sizes",
    },
):
    """What `netbridge.diagnose` found about a network; `print` says it in six sentences, `report` shows it on a page.

    name          what the network is called
    records       the trace of both readings, by "slope" and by "increment"
    limits        {block: EulerLimit}, what limits each block as a step of Euler's method, at the state where its stable
                  step is smallest: `stable_step`, `growth`, the eigenvalues at the edge of its spectrum, `settled`
    with_ones     {block: EulerLimit} with a step size of 1 in place of the block's own, for blocks that have one
    not_measured  {block: why} of the blocks for which that could not be computed
    images        what the images were, as one more sentence; none by default

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> found = nb.diagnose(nb.resnet(14, widths=(4, 4, 4)), torch.rand(4, 3, 8, 8))
    >>> len(found.sentences), found.stiff_blocks == tuple(b for b, h in found.stable_step.items() if h < 1.0)
    (6, True)
    """

    name: str
    records: Records
    limits: dict[str, EulerLimit]
    with_ones: dict[str, EulerLimit]
    not_measured: dict[str, str]
    images: str = ""

    @property
    def stable_step(self) -> dict[str, float]:
        """The largest step of Euler's method at which no mode of a block grows that decays faster than it turns."""
        return {block: limit.stable_step for block, limit in self.limits.items()}

    @property
    def stiff_blocks(self) -> tuple[str, ...]:
        """The blocks that are steps beyond the stability limit of Euler's method at one of the states looked at."""
        return beyond(self.limits)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which blocks are stiff, do readings agree, what do gates do, what a swap, what is TNS, what is not known?"""
        said = self._limits(), self._readings(), self._gates(), self._swap(), self._total(), self._unknown()
        return (*said, self.images) if self.images else said

    def _limits(self) -> str:
        known, stiff = len(self.limits), self.stiff_blocks
        if not known:
            return f"Whether blocks of {self.name} are stiff as steps of Euler's method could not be computed."
        steps = self.stable_step
        least = min(steps, key=steps.__getitem__)
        where = f"the smallest limit is {steps[least]:.3g} steps, of {least}"
        if math.isinf(steps[least]):
            where = "none has a mode that decays faster than it turns"
        turning = max(self.limits, key=lambda block: self.limits[block].growth)
        growth = self.limits[turning].growth
        if growth > 1.005:
            where += f". A step enlarges modes that do not grow by themselves at most {growth:.2f} times, in {turning}"
        if not stiff:
            return f"No block of {self.name} is a step beyond Euler's stability limit, of {known} measured; {where}."
        return (
            f"{len(stiff)} of {known} measured blocks of {self.name} are steps beyond Euler's stability limit, where "
            f"errors grow that the equation would damp: {listed(stiff)}; {where}."
        )

    def _readings(self) -> str:
        slope, increment = (of_blocks(self.records[of].nsi) for of in ("slope", "increment"))
        top = [self.records.names[k] for k in np.argsort(-slope)[:NAMED]]
        said = (
            f"By the slope the blocks that change the state most are {listed(top)} (NSI {np.sort(slope)[::-1][0]:.2g})"
        )
        both = np.isfinite(slope) & np.isfinite(increment)
        if min(len(np.unique(index[both])) for index in (slope, increment)) < 4:
            return f"{said}; by the increment too few blocks have an index to compare."
        agreement = float(spearmanr(slope[both], increment[both]).statistic)
        words = "which says the same of the order of blocks" if agreement >= AGREE else "which orders them differently"
        return f"{said}; the increment, {words} (rank correlation {agreement:.2f}), has step sizes in it."

    def _gates(self) -> str:
        sizes = self.records.step_sizes
        if sizes is None or not np.isfinite(sizes).any():
            return "Nothing is known of its step sizes."
        mean, moving = of_blocks(sizes), np.nanstd(sizes, axis=0) >= MOVES
        if np.allclose(sizes, 1.0):
            return "Nothing multiplies its branches: every step size is 1."
        span = f"Its step sizes are {np.nanmin(mean):.2g} to {np.nanmax(mean):.2g} in the mean of a block"
        if not moving.any():
            return (
                f"{span} and hardly depend on the image in the mean over channels (by less than {MOVES:g}); "
                "`nb.gates` shows whether constants would do the same in every channel."
            )
        names = [self.records.names[k] for k in np.argsort(-np.nanstd(sizes, axis=0))[: min(NAMED, moving.sum())]]
        return f"{span}; in {moving.sum()} of {len(mean)} blocks they depend on the image, most in {listed(names)}."

    def _swap(self) -> str:
        """What a step size of 1 everywhere would change, and which constants would."""
        if self.with_ones:
            now, then = ([*filter(self.with_ones.__contains__, beyond(some))] for some in (self.limits, self.with_ones))
            return (
                f"With a step size of 1 in place of its own {len(then)} of {len(self.with_ones)} blocks would be "
                f"beyond the limit ({len(now)} now){f': {listed(then)}' if then else ''}; at these states, without "
                "training again."
            )
        stiff = self.stiff_blocks
        if not self.limits:
            return "What a swap of step sizes would change is not known, as no limit is."
        if not stiff:
            return "No smaller step size is needed for stability."
        factor = min(self.stable_step[block] for block in stiff)
        return (
            f"Constant step sizes of {factor:.2g} in place of 1 would bring {listed(stiff)} within the limit at these "
            "states, as would an attention module with such means."
        )

    def _total(self) -> str:
        record = self.records["slope"]
        try:
            counted = record.counted()
            parts = odelab.tns_parts(counted.nsi, counted.stage)
        except ValueError as error:
            return f"TNS is not defined here: {error}"
        return (
            f"TNS by the slope is {parts.tns:.2g}: a scale of {parts.scale:.2g} (the mean index) times a shape of "
            f"{parts.shape:.2g} (how unequal blocks of a stage are), over {len(record)} images."
        )

    def _unknown(self) -> str:
        said = ["the first block of each stage is not counted in TNS"]
        undefined = [n for k, n in enumerate(self.records.names) if np.isnan(self.records["increment"].nsi[:, k]).all()]
        if undefined:
            said.append(f"the increment is not defined where a block changes the shape ({listed(undefined)})")
        rough = [block for block, limit in self.limits.items() if not limit.settled]
        if rough:
            said.append(f"the limits of {listed(rough)} are rough")
        for reason in dict.fromkeys(self.not_measured.values()):
            blocks = [block for block, why in self.not_measured.items() if why == reason]
            said.append(f"no limit was computed for {listed(blocks)}, as {reason}")
        return f"Not in these numbers: {'; '.join(said)}."

    def table(self):
        """A row per block; growth and stable_step are those of `limits`, NaN where they were not computed."""
        means = {of: of_blocks(self.records[of].nsi) for of in ("slope", "increment")}
        sizes = self.records.step_sizes
        names = self.records.names
        unknown = EulerLimit(math.nan, math.nan, np.zeros(0), True)
        limits = [self.limits.get(name, unknown) for name in names]
        return {
            "block": list(names),
            "stage": self.records.stage,
            "nsi_slope": means["slope"],
            "nsi_increment": means["increment"],
            "step_size": np.full(len(names), np.nan) if sizes is None else of_blocks(sizes),
            "stable_step": np.array([limit.stable_step for limit in limits]),
            "growth": np.array([limit.growth for limit in limits]),
        }

    def report(self, folder=".") -> Path:
        """Write the diagnosis as one page, `diagnosis.html`, with its pictures in it; returns the path.

        folder    where to; it is made where it is not there
        """
        from netbridge.doctor import page
        from odelab.doctor import sheet

        return sheet.write(folder, f"{self.name}: which blocks are stiff?", self.sentences, "", page.sections(self))

    def __str__(self):
        return "\n".join(self.sentences)

    def __repr__(self):
        return f"NetworkDiagnosis({self.name}, {len(self.stiff_blocks)} of {len(self.limits)} blocks stiff)"


def beyond(limits: dict[str, EulerLimit]) -> tuple[str, ...]:
    """The blocks whose step of 1 is larger than their largest stable one."""
    return tuple(block for block, limit in limits.items() if limit.stable_step < 1.0)


def listed(names) -> str:
    """Up to three names, and how many more."""
    names = list(names)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def of_blocks(values: np.ndarray) -> np.ndarray:
    """The mean over the images of each block, (T,); NaN where no image has a number."""
    known = np.isfinite(values)
    return np.where(known, values, 0.0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)


def diagnose(
    net: nn.Module,
    images,
    *,
    states: int = 1,
    blocks=None,
    batch_size: int | None = None,
    allowed: float = 10.0,
    batch_axis: int | None = None,
) -> NetworkDiagnosis:
    """Which blocks of a network are stiff, by which reading, what do its step sizes do, what would a swap change?

    The network, ours or anybody's, is traced for both indices, and for each block that takes one step and keeps the
    shape of its input the largest stable step of Euler's method is found from products of its Jacobian with vectors, to
    two digits: a block takes steps of size 1. `nb.block_spectrum` computes eigenvalues to all digits. The network is
    afterwards what it was before.

    net         the network
    images      images (N, ...), as the network is shown them
    states      for how many of the images Jacobians are taken, which is what takes time; 1
    blocks      as for `nb.trace`, where blocks are not found by themselves
    batch_size  images per pass, as for `nb.trace`
    allowed     about how many seconds of processor time the limits may take; 10. Blocks with the largest index come
                first, and those that are not reached are named
    batch_axis  along which axis of the images, and of the blocks' states, the samples stand, as in `nb.trace`

    Returns a `NetworkDiagnosis`. Raises ValueError where no residual block can be seen.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> print(nb.diagnose(nb.resnet(14, widths=(4, 4, 4), controller="se"), torch.rand(4, 3, 8, 8)).sentences[2])
    Its step sizes are ... in the mean of a block...
    """
    if not (isinstance(states, int) and states >= 1):
        raise ValueError(f"`states` must be a whole number of at least 1, got {states!r}.")
    if not allowed > 0.0:
        raise ValueError(f"`allowed` must be a positive number of seconds, got {allowed!r}.")
    net = unwrap(net)
    samples = Samples(axis=batch_axis)
    images = list(images) if isinstance(images, Iterator) else images  # they are gone through twice
    records = trace(net, images, of=("slope", "increment"), blocks=blocks, batch_size=batch_size, batch_axis=batch_axis)
    limits: dict[str, EulerLimit] = {}
    with_ones: dict[str, EulerLimit] = {}
    trouble: dict[str, str] = {}
    try:
        found = block_states(net, samples.in_place(first_images(images, states, samples)), blocks, batch_axis)
    except ValueError as error:
        found, trouble = {}, {"all blocks": str(error).rstrip(".")}
    size = dict(
        zip(records.names, zip(of_blocks(records["slope"].nsi), has_step_size(records), strict=True), strict=True)
    )
    trouble |= dict.fromkeys(found.keys() - size.keys(), "it takes several steps in one pass")
    start = time.process_time()
    for name in sorted(found.keys() & size.keys(), key=lambda name: -size[name][0]):
        if time.process_time() - start > allowed:
            trouble[name] = f"that took longer than the {allowed:g} seconds of `allowed`"
            continue
        block, parts = samples.around(net.get_submodule(name)), samples.in_front(found[name]).split(1)
        try:
            limits[name] = least(euler_limit(block, state) for state in parts)
            if size[name][1]:
                with_ones[name] = least(euler_limit(block, state, "residual") for state in parts)
        except (ValueError, TypeError, NotImplementedError, RuntimeError) as error:
            trouble[name] = str(error).split(":")[0].rstrip(".")
    limits, with_ones = ({name: some[name] for name in found if name in some} for some in (limits, with_ones))
    trouble = {name: trouble[name] for name in [*found, *trouble] if name in trouble}
    return NetworkDiagnosis(type(net).__name__, records, limits, with_ones, trouble)


def least(limits) -> EulerLimit:
    """The one with the smallest stable step."""
    return min(limits, key=lambda limit: limit.stable_step)


def has_step_size(records: Records) -> np.ndarray:
    """Which blocks have a step size other than 1, (T,)."""
    sizes = records.step_sizes
    return np.zeros(len(records.names), bool) if sizes is None else (np.abs(sizes - 1.0) > 1e-6).any(axis=0)


def first_images(images, count: int, samples: Samples) -> torch.Tensor:
    """The first images of what a trace takes, along the first axis."""
    if not isinstance(images, torch.Tensor | np.ndarray):
        batch = next(iter(images))
        images = batch if isinstance(batch, np.ndarray) else first_tensor(batch)
    return samples.first(images_of(images), count)
