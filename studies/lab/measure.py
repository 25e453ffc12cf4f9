"""One network on test images: both stiffness indices, the step sizes its controllers chose, and was it right?"""

import dataclasses

import numpy as np
import torch

import netbridge as nb
import odelab as ol
from studies.lab.networks import Subject
from studies.lab.statistics import Estimate, estimate

KINDS = ("slope", "increment")
MEANS = ("sample", "dataset")
READINGS = tuple((of, mu) for of in KINDS for mu in MEANS)  # what the paper leaves open; the first is the default
BATCH = 128


@dataclasses.dataclass(eq=False)
class Measured:
    """`records` by kind of index; `gates` (N, T) the mean step size of an image at a block; `correct` (N,) bool."""

    subject: Subject
    records: dict[str, nb.Record]
    gates: np.ndarray
    correct: np.ndarray
    tns: dict[tuple[str, str], Estimate] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def accuracy(self) -> float:
        """Per cent on the whole test set where the checkpoint knows it, else on the traced images."""
        return self.measured_accuracy if self.subject.accuracy is None else self.subject.accuracy

    @property
    def measured_accuracy(self) -> float:
        return 100.0 * float(self.correct.mean())


def measure(subject: Subject, data, images: int, device, progress=lambda done: None) -> Measured:
    """The first `images` test images, a batch at a time: no more than one batch is ever held as floats."""
    net = subject.net.to(device, memory_format=torch.channels_last).eval()
    records: dict[str, list] = {of: [] for of in KINDS}
    gates, correct = [], []
    for start in range(0, images, BATCH):
        stop = min(start + BATCH, images)
        batch = prepared(net, data, data.test_images[start:stop].to(device))
        for of in KINDS:
            records[of].append(nb.trace(net, batch, of=of))
        sizes, logits = steps(net, batch)
        gates.append(sizes)
        correct.append((logits.argmax(1).cpu() == data.test_labels[start:stop]).numpy())
        progress(stop - start)
    merged = {of: nb.Record.merge(parts) for of, parts in records.items()}
    return Measured(subject, merged, np.concatenate(gates), np.concatenate(correct))


def prepared(net, data, images: torch.Tensor) -> torch.Tensor:
    """As the network was trained to see them: its own normalisation, else the data set's."""
    if net.normalisation is None:
        return data.normalised(images).contiguous(memory_format=torch.channels_last)
    return net.normalise(images.float() / 255).contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def steps(net, batch) -> tuple[np.ndarray, torch.Tensor]:
    """The step sizes of one pass, averaged over channels and places, (N, T), and its logits."""

    def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
        size = h.flatten(1).mean(1) if isinstance(h, torch.Tensor) and h.ndim > 1 else torch.as_tensor(float_of(h))
        carry.append(size.double().cpu().expand(len(u)))
        return carry

    with net.observed(record, carry=[]) as seen:
        logits = net(batch)
    return torch.stack(seen.carry, 1).numpy(), logits


def float_of(h) -> float:
    """A step size that is the same for all images: a number, a vector over channels, or the unit step."""
    if isinstance(h, torch.Tensor):
        return float(h.mean())
    return float(h) if isinstance(h, int | float) else 1.0


def total_stiffness(found: Measured, chosen: np.ndarray) -> None:
    """TNS under every reading, with its interval over the resamples `chosen` (resamples, N) of the images."""
    for of, mu in READINGS:
        record = found.records[of]
        values = record.tns(mu)
        if mu == "sample":
            draws = np.array([values[rows].mean() for rows in chosen])
        else:  # the mean over the data set changes with the images drawn
            counted = record.counted()
            draws = np.array([ol.tns(counted.nsi[rows], counted.stage, mu).mean() for rows in chosen])
        found.tns[of, mu] = estimate(values.mean(), draws)
