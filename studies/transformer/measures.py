"""What is measured on one transformer: stiffness under eight readings, gates along trajectories, and its attention."""

import dataclasses

import numpy as np

import netbridge as nb
from netbridge.tracing.attention import AttentionValues
from studies.lab.networks import Subject
from studies.lab.statistics import Estimate, correlate_rows
from studies.lab.stiffness import Measured, OfNetwork, measure, prepare, set_stiffness, step_sizes_of, stiffness_of
from studies.transformer.design import ATTENDED, READINGS, TOGETHER

STEPS = ("all", "attention", "MLP")
LEAST = 3  # steps that a correlation along a trajectory needs


@dataclasses.dataclass(eq=False)
class Studied(OfNetwork):
    """One transformer on N images, at T steps.

    found      indices, step sizes and answers, as every study measures them
    tns        total neural stiffness under each of `design.READINGS`
    along      Spearman's correlation of step size and NSI along the counted steps of each image, (N,): over all steps,
               over attentions, over MLPs; empty without a step size that varies
    attention  what the attention of every attention step is, on the first images
    """

    found: Measured
    tns: dict[tuple[str, str, str], Estimate]
    along: dict[str, np.ndarray]
    attention: list[AttentionValues]

    @property
    def seen(self) -> int:
        """How many images the attention was looked at on."""
        return len(self.attention[0].diagonal)


def study_network(subject: Subject, data, images: int, device, chosen: np.ndarray, progress=lambda n: None) -> Studied:
    """Everything about one network, on the first `images` test images; `chosen` are the resamples of them."""
    found = measure(subject, data, images, device, progress)
    set_stiffness(found, chosen)
    tns = {
        reading: stiffness_of(with_kinds(found.records[reading[0]], reading[2]), reading[1], chosen)
        for reading in READINGS
    }
    shown = prepare(subject.net, data, data.test_images[: min(images, ATTENDED)].to(device))
    return Studied(found, tns, along_steps(found.records["slope"]), nb.attention_values(subject.net, shown))


def with_kinds(record: nb.Record, kinds: str) -> nb.Record:
    """The record with its steps in one stage, or with attention and MLP in stages of their own."""
    return record if kinds == TOGETHER else record.by_kind()


def along_steps(record: nb.Record) -> dict[str, np.ndarray]:
    """Per image, over the steps it passes: the correlation of step size and NSI, over all and within each kind."""
    apart = record.by_kind().counted()
    whole = record.counted()
    parts = {"all": (step_sizes_of(whole), whole.nsi)}
    parts |= {
        name: (step_sizes_of(apart)[:, apart.stage == kind], apart.nsi[:, apart.stage == kind])
        for kind, name in enumerate(STEPS[1:])
    }
    found = {name: correlate_rows(sizes, nsi) for name, (sizes, nsi) in parts.items() if sizes.shape[1] >= LEAST}
    return {name: values for name, values in found.items() if np.isfinite(values).all()}


def classes_fit(net: nb.Network, data) -> bool:
    return net.config["num_classes"] == len(data.names)
