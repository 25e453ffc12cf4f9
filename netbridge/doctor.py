"""`diagnose`: which blocks of a network are stiff, by which reading, and what its step sizes do about it."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import torch
from torch import nn

import odelab
from netbridge.common.batches import images_of
from netbridge.common.nested_tensors import first_tensor
from netbridge.recording.record import Records
from netbridge.spectrum.time_scales import block_time_scales
from netbridge.tracing.states import block_states
from netbridge.tracing.trace import trace
from odelab.results import Result

__all__ = ["NetworkDiagnosis", "diagnose"]

NAMED = 3  # blocks named in a sentence
MOVES = 0.01  # the standard deviation of a block's mean step over the images from which on it is said to move
AGREE = 0.8  # the rank correlation from which on two readings say the same of the blocks


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class NetworkDiagnosis(
    Result, kinds={"depth": "netbridge.doctor:draw_depth", "stable_steps": "netbridge.doctor:draw_stable_steps"}
):
    """What `netbridge.diagnose` found about a network; `print` says it in five sentences, `report` shows it on a page.

    name          what the network is called
    records       the trace of both readings, by "slope" and by "increment"
    stable_step   {block: step}, the largest step of Euler's method at which no mode of the block grows that should
                  not, at the state where it is smallest; a block takes steps of size 1
    not_measured  {block: why} of the blocks for which that could not be computed

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> found = nb.diagnose(nb.resnet(14, widths=(4, 4, 4)), torch.rand(4, 3, 8, 8))
    >>> len(found.sentences), found.stiff_blocks == tuple(b for b, h in found.stable_step.items() if h < 1.0)
    (5, True)
    """

    name: str
    records: Records
    stable_step: dict[str, float]
    not_measured: dict[str, str]

    @property
    def stiff_blocks(self) -> tuple[str, ...]:
        """The blocks that are steps beyond the stability limit of Euler's method at one of the states looked at."""
        return tuple(block for block, step in self.stable_step.items() if step < 1.0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which blocks are stiff, do the readings agree, what do the gates do, what is TNS, what is not known?"""
        return self._limits(), self._readings(), self._gates(), self._total(), self._unknown()

    def _limits(self) -> str:
        known, stiff = len(self.stable_step), self.stiff_blocks
        if not known:
            return f"Whether blocks of {self.name} are stiff as steps of Euler's method could not be computed."
        least = min(self.stable_step, key=self.stable_step.__getitem__)
        where = f"the smallest limit is {self.stable_step[least]:.2g}, of {least}"
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
        if both.sum() < 4:
            return f"{said}; by the increment too few blocks have an index to compare."
        agreement = float(np.corrcoef(ranks(slope[both]), ranks(increment[both]))[0, 1])
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
            return f"{span} and hardly depend on the image (by less than {MOVES:g}): constants would do the same."
        names = [self.records.names[k] for k in np.argsort(-np.nanstd(sizes, axis=0))[: min(NAMED, moving.sum())]]
        return f"{span}; in {moving.sum()} of {len(mean)} blocks they depend on the image, most in {listed(names)}."

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
        first = int(np.count_nonzero(self.records.first))
        said = [f"the first blocks of its {first} stages are not counted in TNS"]
        undefined = [n for k, n in enumerate(self.records.names) if np.isnan(self.records["increment"].nsi[:, k]).all()]
        if undefined:
            said.append(f"the increment is not defined where a block changes the shape ({listed(undefined)})")
        if self.not_measured:
            reason = next(iter(self.not_measured.values()))
            said.append(f"no limit was computed for {listed(self.not_measured)}, for the first because {reason}")
        return f"Not in these numbers: {'; '.join(said)}."

    def table(self):
        """A row per block."""
        means = {of: of_blocks(self.records[of].nsi) for of in ("slope", "increment")}
        sizes = self.records.step_sizes
        return {
            "block": list(self.records.names),
            "stage": self.records.stage,
            "nsi_slope": means["slope"],
            "nsi_increment": means["increment"],
            "step_size": np.full(len(self.records.names), np.nan) if sizes is None else of_blocks(sizes),
            "stable_step": np.array([self.stable_step.get(name, math.nan) for name in self.records.names]),
        }

    def report(self, folder=".") -> Path:
        """Write the diagnosis as one page, `diagnosis.html`, with its pictures in it; returns the path.

        folder    where to; it is made where it is not there
        """
        from odelab.doctor import sheet

        columns = self.table()
        names = list(columns)
        rows = [[str(row[0]), *(f"{value:.3g}" for value in row[1:])] for row in zip(*columns.values(), strict=True)]
        depth = "Median over the images, and the middle half of them."
        limit = "A block is one step of size 1: below the line it is a step beyond the limit."
        sections = [("Stiffness along depth", depth, sheet.image(self.plot("depth"), "NSI of every block"))]
        if self.stable_step:
            sections.append(("Euler's limit", limit, sheet.image(self.plot("stable_steps"), "stable steps")))
        sections.append(("Every block", "", sheet.table(names, rows)))
        return sheet.write(folder, f"{self.name}: which blocks are stiff?", self.sentences, "", sections)

    def __str__(self):
        return "\n".join(self.sentences)

    def __repr__(self):
        return f"NetworkDiagnosis({self.name}, {len(self.stiff_blocks)} of {len(self.stable_step)} blocks stiff)"


def listed(names) -> str:
    """Up to three names, and how many more."""
    names = list(names)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def of_blocks(values: np.ndarray) -> np.ndarray:
    """The mean over the images of each block, (T,); NaN where no image has a number."""
    known = np.isfinite(values)
    return np.where(known, values, 0.0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values)).astype(float)


def diagnose(
    net: nn.Module, images, *, states: int = 1, blocks=None, batch_size: int | None = None
) -> NetworkDiagnosis:
    """Which blocks of a network are stiff, by which reading, and what do its step sizes do about it?

    The network, ours or anybody's, is traced for both indices, and for each block that keeps the shape of its input the
    largest stable step of Euler's method is computed from its Jacobian: a block takes steps of size 1. The network is
    afterwards what it was before.

    net         the network
    images      images (N, ...), as the network is shown them
    states      for how many of the images Jacobians are taken, which is what takes time; 1
    blocks      as for `nb.trace`, where blocks are not found by themselves
    batch_size  images per pass, as for `nb.trace`

    Returns a `NetworkDiagnosis`. Raises ValueError where no residual block can be seen.

    >>> import netbridge as nb, torch
    >>> _ = torch.manual_seed(0)
    >>> print(nb.diagnose(nb.resnet(14, widths=(4, 4, 4), controller="se"), torch.rand(4, 3, 8, 8)).sentences[2])
    Its step sizes are ... in the mean of a block...
    """
    if not (isinstance(states, int) and states >= 1):
        raise ValueError(f"`states` must be a whole number of at least 1, got {states!r}.")
    records = trace(net, images, of=("slope", "increment"), blocks=blocks, batch_size=batch_size)
    stable: dict[str, float] = {}
    trouble: dict[str, str] = {}
    try:
        found = block_states(net, first_images(images, states), blocks)
    except ValueError as error:
        found, trouble = {}, {"all blocks": str(error).rstrip(".")}
    for name, state in found.items():
        try:
            rows = block_time_scales(net.get_submodule(name), state, values="extremes")
        except (ValueError, TypeError, NotImplementedError, RuntimeError) as error:
            trouble[name] = str(error).split(":")[0].rstrip(".")
        else:
            stable[name] = float(rows["stable_step"].min())
    return NetworkDiagnosis(type(net).__name__, records, stable, trouble)


def first_images(images, count: int) -> torch.Tensor:
    """The first images of what a trace takes."""
    if not isinstance(images, torch.Tensor | np.ndarray):
        batch = next(iter(images))
        images = batch if isinstance(batch, np.ndarray) else first_tensor(batch)
    return images_of(images)[:count]


def draw_depth(found: NetworkDiagnosis, axes):
    """Draw both indices along the depth of a network into axes."""
    from odelab.plot import style

    places = np.arange(1, len(found.records.names) + 1)
    for colour, record in zip(style.COLOURS, found.records, strict=False):
        known = np.isfinite(record.nsi).all(axis=0)
        low, middle, high = np.full((3, len(places)), np.nan)
        if known.any():
            low[known], middle[known], high[known] = np.quantile(record.nsi[:, known], (0.25, 0.5, 0.75), axis=0)
        axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(places, middle, "o-", markersize=3, color=colour, label=f"by the {record.of}")
    for start in places[found.records.first]:
        axes.axvline(start - 0.5, color=style.GREY, linewidth=0.5)
    axes.set(xlabel="block (lines: where a stage begins)", ylabel="NSI")
    axes.legend()


def draw_stable_steps(found: NetworkDiagnosis, axes):
    """Draw the largest stable step of every block into axes."""
    from odelab.plot import style

    if not found.stable_step:
        raise ValueError("no stable step was computed; `not_measured` says why.")
    steps = np.array([found.stable_step.get(name, np.nan) for name in found.records.names])
    places, stiff = np.arange(1, len(steps) + 1), steps < 1.0
    for chosen, colour, words in ((~stiff, style.COLOURS[0], "stable"), (stiff, style.COLOURS[1], "beyond the limit")):
        axes.plot(places[chosen], steps[chosen], "o", markersize=4, color=colour, label=words)
    axes.axhline(1.0, color=style.GREY, linewidth=0.8)
    axes.set(yscale="log", xlabel="block", ylabel="largest stable step")
    axes.legend()
