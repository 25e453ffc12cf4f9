"""What is measured of every network: its indices, the norms of its states, and how far it is from the proxy."""

import dataclasses
from collections.abc import Callable

import numpy as np

import netbridge as nb
from netbridge.tracing.similarity import profile_distance
from studies.lab.networks import Subject, groups
from studies.lab.statistics import Estimate, bootstrap_mean, correlate_rows, draw_halves, estimate
from studies.lab.stiffness import Measured, OfNetwork, measure, prepare, step_sizes_of
from studies.trajectory.design import CKA, FEWEST_BLOCKS, HALVES, MEASURES, NSI, SHAPE, SIMILAR


@dataclasses.dataclass(eq=False)
class Course(OfNetwork):
    """What was measured of one network on N images at its T blocks.

    found     indices, step sizes and answers, as every study measures them
    grams     Gram matrices of the states behind every block, on the first images; removed when no longer needed
    norms     of these states, (images, T)
    along     what `along_of` says of each image; empty without a step size that varies
    distance  per measure the distance from the proxy, in all and block by block; empty for the proxy itself
    """

    measured: Measured
    grams: dict[str, np.ndarray]
    norms: np.ndarray
    along: np.ndarray
    distance: dict[str, Estimate] = dataclasses.field(default_factory=dict)
    blocks: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


def course(subject: Subject, data, images: int, device, progress=lambda n: None) -> Course:
    """Everything about one network but its distance, on the first `images` test images."""
    found = measure(subject, data, images, device, progress)
    few = prepare(subject.net, data, data.test_images[: min(images, SIMILAR)].to(device))
    grams = nb.state_grams(subject.net, few)
    norms = np.sqrt([np.diag(gram) for gram in grams.values()]).T
    return Course(found, grams, norms, along_of(found.records["slope"]))


@dataclasses.dataclass(eq=False)
class Along:
    """One network and what `along_of` says of each image."""

    subject: Subject
    along: np.ndarray


def along_of(record: nb.Record) -> np.ndarray:
    """Spearman's correlation of step size and NSI along the counted blocks of each image (Figure 9b as worded).

    Within each stage, averaged over the stages, where a stage counts blocks enough, because the indices of stages
    differ by their width; otherwise over the counted blocks of all stages. Empty where no image's step sizes vary.
    """
    counted = record.counted()
    stages = [counted.stage == stage for stage in np.unique(counted.stage)]
    if min(map(np.count_nonzero, stages)) < FEWEST_BLOCKS:
        stages = [np.ones(len(counted.names), dtype=bool)]
    sizes = step_sizes_of(counted)
    along = np.mean([correlate_rows(sizes[:, here], counted.nsi[:, here]) for here in stages], axis=0)
    return along if np.isfinite(along).all() else np.empty(0)


def best(courses: list[Course], count: int = 1) -> list[Course]:
    """The networks with the highest test accuracy, the proxy first; of equal ones the first of the list."""
    return sorted(courses, key=lambda one: -one.measured.accuracy)[:count]


def set_distances(courses: list[Course], proxy: Course, chosen: np.ndarray) -> None:
    """All distances of every network but the proxy; `chosen` are the resamples of the images."""
    for one in courses:
        one.distance, one.blocks = {}, {}
        if one is proxy:
            continue
        record, other = (course.measured.records["slope"] for course in (one, proxy))
        for of_nsi in (NSI, SHAPE):
            apart = profile_distance(record, other, scaled=of_nsi == SHAPE)
            one.blocks[of_nsi] = apart.mean(0)
            one.distance[of_nsi] = bootstrap_mean(apart[:, ~record.first].mean(1), chosen)
        images = len(one.norms)
        everything = np.arange(images)[None]
        one.blocks[CKA] = dissimilarity(one, proxy, everything)[0]
        parts = dissimilarity(one, proxy, draw_halves(images, HALVES, seed=0))
        one.distance[CKA] = estimate(one.blocks[CKA].mean(), parts.mean(1))


@dataclasses.dataclass(frozen=True)
class FromProxy:
    """Distances of networks from one that stands in for a ground truth.

    name, controller  of that network
    distances         by measure and controller, one per network
    """

    name: str
    controller: str
    distances: dict[str, dict[str, list[float]]]

    def by(self, measures) -> "FromProxy":
        """By these measures alone."""
        return dataclasses.replace(self, distances={measure: self.distances[measure] for measure in measures})


def from_proxy(courses: list[Course], proxy: Course) -> FromProxy:
    """The distances from the proxy that `set_distances` has left, without their intervals over images."""
    others = [one for one in courses if one is not proxy]
    found = {measure: by_controller(others, lambda one, m=measure: one.distance[m].value) for measure in MEASURES}
    return FromProxy(proxy.name, proxy.subject.name, found)


def by_controller(courses, number: Callable) -> dict[str, list]:
    """What `number` says of every network, by its controller."""
    places_of = groups([one.subject for one in courses])
    return {name: [number(courses[place]) for place in places] for name, places in places_of.items()}


def dissimilarity(one: Course, proxy: Course, parts: np.ndarray) -> np.ndarray:
    """1 - CKA on each part of the images, behind every block, (parts, T)."""
    pairs = list(zip(one.grams.values(), proxy.grams.values(), strict=True))

    def compare(one, other, rows) -> float:
        among = np.ix_(rows, rows)
        return 1 - nb.cka(one[among], other[among], grams=True)

    return np.array([[compare(*pair, rows) for pair in pairs] for rows in parts])


def first_ratios(one: Course) -> dict[str, np.ndarray]:
    """NSI and norm of a stage's first block over the median of its others, per image, (N, stages)."""
    record = one.measured.records["slope"]
    found = {}
    for name, values in (("NSI", record.nsi), ("norm", one.norms)):
        ratios = [
            values[:, (record.stage == stage) & record.first][:, 0]
            / np.median(values[:, (record.stage == stage) & ~record.first], axis=1)
            for stage in np.unique(record.stage)
        ]
        found[name] = np.array(ratios).T
    return found
