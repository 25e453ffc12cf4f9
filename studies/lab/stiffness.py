"""One network on test images: both stiffness indices, the step sizes its controllers chose, and was it right?"""

import dataclasses

import numpy as np
import torch
from rich.progress import Progress

import netbridge as nb
import odelab as ol
from netbridge.common.batches import channels_last
from netbridge.tracing.trace import Kind
from netbridge.train.loading import to_test
from studies.lab.networks import Subject
from studies.lab.statistics import Estimate, bootstrap_mean, estimate

KINDS: tuple[Kind, ...] = ("slope", "increment")
MEANS = ("sample", "dataset")
# The paper leaves both open; the first is the default.
READINGS: tuple[tuple[str, str], ...] = tuple((of, mu) for of in KINDS for mu in MEANS)
SWITCH = {  # the same choices as `Page.switch` takes them
    "NSI of": {"slope": "slope", "increment": "increment"},
    "against the mean of": {"sample": "an image", "dataset": "the data set"},
}
BATCH = 128
TNS, SCALE, SHAPE = "TNS", "scale", "shape"  # see `odelab.TnsParts`
# What networks are compared by, each with its readings: the scale knows no mean that indices are compared with.
QUANTITIES: dict[str, tuple[tuple, ...]] = {TNS: READINGS, SCALE: tuple((of,) for of in KINDS), SHAPE: READINGS}

QUANTITY_NAMES = {TNS: "TNS", SCALE: "scale of NSI", SHAPE: "shape of TNS"}


def quantity_of(what: str, tns, scale):
    """TNS, its scale or its shape, by its name, from the first two; NaN where TNS is None, being not defined."""
    parts = ol.TnsParts(float("nan") if tns is None else tns, scale)
    return {TNS: parts.tns, SCALE: parts.scale, SHAPE: parts.shape}[what]


def wording(of: str, mu: str = "", kinds: str = "") -> str:
    """A reading in words: which index, but for the scale compared with which mean, and how kinds of steps are taken."""
    means = {"sample": ", sample mean", "dataset": ", data-set mean", "": ""}
    return f"{of} NSI{means[mu]}{', ' if kinds else ''}{kinds}"


@dataclasses.dataclass(eq=False)
class Measured:
    """What one network did on N images, at T blocks.

    subject  the network
    records  one `nb.Record` per kind of index
    gates    the mean step size of every image at every block, (N, T)
    correct  was the image classified correctly? (N,)
    stiffness  TNS, its scale and its shape under every reading of QUANTITIES, filled by `set_stiffness`; intervals are
             over the images
    """

    subject: Subject
    records: dict[str, nb.Record]
    gates: np.ndarray
    correct: np.ndarray
    stiffness: dict[str, dict[tuple, Estimate]] = dataclasses.field(default_factory=dict)

    @property
    def tns(self) -> dict[tuple, Estimate]:
        """Total neural stiffness under every reading."""
        return self.stiffness[TNS]

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def accuracy(self) -> float:
        """Per cent on the whole test set where the checkpoint knows it, else on the traced images."""
        return self.measured_accuracy if self.subject.accuracy is None else self.subject.accuracy

    @property
    def measured_accuracy(self) -> float:
        """Per cent on the traced images."""
        return 100.0 * float(self.correct.mean())


class OfNetwork:
    """What a study knows of one network beside what every study measures, which is `measured`."""

    measured: Measured

    @property
    def subject(self) -> Subject:
        return self.measured.subject

    @property
    def name(self) -> str:
        return self.subject.full_name


def measure(subject: Subject, data, images: int, device, progress=lambda done: None) -> Measured:
    """The first `images` test images in one pass, a batch at a time; `progress` is told the images of each batch."""
    found = trace_both(subject.net, data, images, device, progress)
    correct = found.outputs.argmax(1) == data.test_labels[:images].numpy()
    return Measured(subject, {of: found[of] for of in KINDS}, found.step_sizes, correct)


def measure_each(subjects: list[Subject], images: int, look) -> list:
    """What `look(subject, progress)` returns of every network; `progress` is told how many of its images are done."""
    found = []
    with Progress(transient=True) as bar:
        task = bar.add_task("tracing", total=len(subjects) * images)
        for one in subjects:
            bar.update(task, description=f"tracing {one.name}")
            found.append(look(one, lambda done: bar.advance(task, done)))
            one.net.cpu()
    return found


def trace_both(net, data, images: int, device, progress=lambda done: None) -> nb.Records:
    """Both indices and the outputs of a network on the first `images` test images; see `measure`."""
    net = channels_last(net.to(device)).eval()
    parts = []
    for batch in data.test_images[:images].split(BATCH):
        parts.append(nb.trace(net, prepare(net, data, batch.to(device)), of=KINDS, outputs=True))
        progress(len(batch))
    return nb.Records.merge(parts)


def follower(data, images: int, every: int = 1):
    """For `on_epoch` of a training: NSI per block and TNS under every reading, means over the first test images.

    data    what is trained on
    images  how many test images are traced
    every   after every so many epochs
    """
    shown_images = first_images(data, images)

    def follow(net, record) -> dict:
        if record["epoch"] % every:
            return {}
        device = next(net.parameters()).device
        shown = shown_images.to(device).contiguous(memory_format=torch.channels_last)
        found = nb.trace(net, shown, of=KINDS)
        alone = bool(found.first.all())  # one block a stage, which is not counted: there is no TNS
        tns = [None if alone else mean_stiffness(found[of], mu) for of, mu in READINGS]
        return {"nsi": {of: found[of].nsi.mean(0).tolist() for of in KINDS}, "tns": tns, "traced": len(shown)}

    return follow


def first_images(data, count: int) -> torch.Tensor:
    """The first test images, as a network is shown them, of a data set in memory or on the disk."""
    batch, _ = next(to_test(data, count))
    return batch


def step_sizes_of(record: nb.Record) -> np.ndarray:
    """The step sizes of a record, (N, T); a file of an older version has none."""
    if record.step_sizes is None:
        raise ValueError("`record` has no step sizes; trace the network anew.")
    return record.step_sizes


def mean_stiffness(record: nb.Record, mu: str) -> float | None:
    """Mean TNS of the images; None where every stage has one counted block and is compared with itself."""
    value = float(image_stiffness(record, mu).mean())
    return value if np.isfinite(value) else None


def image_stiffness(record: nb.Record, mu: str) -> np.ndarray:
    """TNS of every image; NaN where every stage has one counted block and is compared with itself."""
    counted = record.counted()
    alone = max(np.bincount(counted.stage.astype(int))) == 1
    return np.full(len(record), np.nan) if mu == "sample" and alone else record.tns(mu)


def prepare(net, data, images: torch.Tensor) -> torch.Tensor:
    """Images as the network was trained to see them: by its own normalisation, else by the data set's."""
    own = isinstance(net, nb.Network) and net.normalisation is not None
    seen = net.normalise(images.float() / 255) if own else data.normalised(images)
    return seen.contiguous(memory_format=torch.channels_last)


def set_stiffness(found: Measured, chosen: np.ndarray) -> None:
    """TNS, scale and shape under every reading, with intervals over the resamples `chosen` (resamples, N) of images."""
    found.stiffness = {TNS: {}, SCALE: {}, SHAPE: {}}
    for of in KINDS:
        scale = bootstrap_mean(found.records[of].counted().nsi.mean(1), chosen)
        found.stiffness[SCALE][(of,)] = scale
        for mu in MEANS:
            tns = stiffness_of(found.records[of], mu, chosen)
            whole, resampled = (ol.TnsParts(a, b) for a, b in ((tns.value, scale.value), (tns.draws, scale.draws)))
            found.stiffness[TNS][of, mu] = tns
            found.stiffness[SHAPE][of, mu] = estimate(whole.shape, resampled.shape, n=tns.n)


def stiffness_of(record: nb.Record, mu: str, chosen: np.ndarray) -> Estimate:
    """The mean TNS of a record, with its interval over the resamples `chosen` (resamples, N) of the images."""
    values = record.tns(mu)
    if mu == "sample":
        draws = np.array([values[rows].mean() for rows in chosen])
    else:  # the mean over the data set changes with the images drawn
        counted = record.counted()
        draws = np.array([ol.tns(counted.nsi[rows], counted.stage, mu).mean() for rows in chosen])
    return estimate(values.mean(), draws, n=len(values))
