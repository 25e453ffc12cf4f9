"""Stiffness while a network trains, in anybody's training loop: a few numbers after every epoch, for any logger."""

import dataclasses
import warnings
from collections.abc import Iterator

import numpy as np
from torch import nn

import odelab
from netbridge.recording.record import Record
from netbridge.tracing.trace import trace
from odelab.files.saved import register
from odelab.results import Result


@register
@dataclasses.dataclass(frozen=True)
class Reading(Result, kinds={"depth": "netbridge.figures:draw_reading"}):
    """What a `Monitor` has read at one moment: means over its images, as plain numbers.

    tns    the total neural stiffness, the mean over the images; NaN where no stage has a counted block
    scale  the mean stiffness index of the counted blocks: how large the branches are beside the states
    shape  what is left of `tns` when the scale is divided out: how uneven the blocks of a stage are
    nsi    the stiffness index of every block by its name
    gates  the step size of every block by its name, averaged over channels and places

    >>> import torch, netbridge as nb
    >>> reading = nb.Monitor(nb.resnet(20, controller="se"), torch.randn(4, 3, 16, 16)).step()
    >>> len(reading.nsi), 0 < reading.gates["stages.0.blocks.1"] < 1, reading.shape == reading.tns / reading.scale
    (9, True, True)
    """

    tns: float
    scale: float
    shape: float
    nsi: dict[str, float]
    gates: dict[str, float]

    def numbers(self, prefix: str = "") -> dict[str, float]:
        """All of it as one flat dictionary, as loggers take it; what is not defined in this network is left out.

        prefix  what every name begins with, such as "stiffness/"; nothing by default

        >>> import torch, netbridge as nb
        >>> numbers = nb.Monitor(nb.resnet(8), torch.randn(4, 3, 16, 16)).step().numbers("stiffness/")
        >>> list(numbers)
        ['stiffness/nsi/stages.0.blocks.0', ..., 'stiffness/gate/stages.2.blocks.0']
        """
        found = {"tns": self.tns, "scale": self.scale, "shape": self.shape}
        found |= {f"nsi/{name}": value for name, value in self.nsi.items()}
        found |= {f"gate/{name}": value for name, value in self.gates.items()}
        return {prefix + name: value for name, value in found.items() if not np.isnan(value)}

    def table(self):
        """A row per block: its index and its step size."""
        return {"block": list(self.nsi), "nsi": [*self.nsi.values()], "gate": [*self.gates.values()]}


class Monitor:
    """Reads how stiff a network is, again and again while it trains, in a training loop of any kind.

    Every reading is one `nb.trace` of the same images: one pass in evaluation mode without gradients, after which
    modes, running statistics, gradients and random generators are what they were, so that the training goes on to the
    bit as if nobody had looked. Of a process group, let one process read.

    net      the network that is being trained, ours or anybody's
    images   what `nb.trace` takes, and can be gone through again: a tensor or an array (N, ...), a DataLoader that does
             not shuffle, a list of batches; prepared as the network sees its images. A few hundred are enough
    mu       what an index is compared with for TNS, "sample" (the default) or "dataset"; see `nb.Record.tns`
    options  of `nb.trace`, such as of="increment", blocks=... or call=...; an index that is not defined is NaN unless
             on_bad="raise"

    Warnings of the trace are given with the first reading. Raises TypeError for images that could be read only once.

    >>> import torch, netbridge as nb
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), nb.resnet(20, in_channels=8))
    >>> monitor, optimizer = nb.Monitor(net, torch.randn(4, 3, 18, 18)), torch.optim.SGD(net.parameters(), 0.01)
    >>> for epoch in range(2):
    ...     net(torch.randn(8, 3, 18, 18)).square().mean().backward()
    ...     optimizer.step()
    ...     print(epoch, sorted(monitor.step().numbers())[-3:], net.training)
    0 ['scale', 'shape', 'tns'] True
    1 ['scale', 'shape', 'tns'] True
    """

    def __init__(self, net: nn.Module, images, mu: str = "sample", **options):
        if isinstance(images, Iterator):
            raise TypeError(
                f"`images` must be there for every reading, and a {type(images).__name__} can be gone through once; "
                "give a tensor, a DataLoader or list(images)."
            )
        if options.get("keep") or not isinstance(options.get("of", ""), str | None):
            raise TypeError("`options` must ask for one index and no maps: of='slope' or of='increment', no `keep`.")
        self.net, self.images, self.mu, self.options = net, images, mu, {"on_bad": "nan", **options}
        self.said = False  # what warnings have to say of the network
        self.readings = 0

    def step(self) -> Reading:
        """Read the network as it is now."""
        with warnings.catch_warnings():
            if self.said:
                warnings.simplefilter("ignore")
            reading = reading_of(trace(self.net, self.images, **self.options), self.mu)
        self.said = True
        return reading


def reading_of(record: Record, mu: str) -> Reading:
    """The means of a record over its images."""
    try:
        counted, good = record.counted(), record.defined()
    except ValueError:  # no stage has a counted block, or no image an index at each of them
        parts = odelab.TnsParts(np.nan, np.nan)
    else:
        parts = odelab.TnsParts(float(np.nanmean(record.tns(mu))), float(counted.nsi[good].mean()))
    return Reading(parts.tns, parts.scale, parts.shape, means(record, record.nsi), means(record, record.step_sizes))


def means(record: Record, values) -> dict[str, float]:
    """The mean of every block's values over the images where they are defined, by the block's name; else NaN."""
    known = [column[~np.isnan(column)] for column in values.T]
    return {name: float(x.mean()) if len(x) else np.nan for name, x in zip(record.names, known, strict=True)}
