"""Every number of `tricks`: recipes against the plain one over seeds and images, stages, stiffness in training.

What is compared is named by ACCURACY, by a name in `numbers`, or by a quantity and a reading, such as
("scale", ("slope",)), see `stiffness.QUANTITIES`. This module computes numbers, `findings.py` judges them.
"""

import dataclasses
from itertools import starmap

import numpy as np

import odelab as ol
from studies.lab.comparisons import tukey
from studies.lab.measurements import Measurement
from studies.lab.statistics import LEVEL, Estimate, choices, estimate, kendall_rows, kendall_within
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, SCALE, SHAPE, TNS, wording
from studies.tricks import design
from studies.tricks.design import PLAIN

ACCURACY = "accuracy"
STIFF = {  # what networks are compared by, beside their accuracy
    (what, reading): f"{QUANTITY_NAMES[what]}, {wording(*reading)}"
    for what in QUANTITIES
    for reading in QUANTITIES[what]
}


@dataclasses.dataclass(frozen=True, eq=False)
class Runs:
    """The measurements that are there, by recipe, in the order of the design."""

    groups: dict[str, list[Measurement]]

    @classmethod
    def of(cls, found: list[Measurement]) -> "Runs":
        groups: dict[str, list[Measurement]] = {}
        for one in found:
            groups.setdefault(one.specification["recipe"]["name"], []).append(one)
        return cls(groups)

    @property
    def all(self) -> list[Measurement]:
        return [one for group in self.groups.values() for one in group]

    def values(self, what) -> dict[str, list[float]]:
        """Per recipe one number for each seed."""
        found = {name: [value_of(one, what) for one in group] for name, group in self.groups.items()}
        return {name: [x for x in values if np.isfinite(x)] for name, values in found.items()}

    def by_reading(self, what: str) -> dict[tuple, dict[str, list[float]]]:
        """TNS, scale or shape under each of its readings."""
        return {reading: self.values((what, reading)) for reading in QUANTITIES[what]}

    def beyond(self, what, level: float = LEVEL) -> dict[str, Estimate]:
        """Every recipe's mean minus that of the plain one, intervals over seeds (Tukey and Kramer)."""
        return tukey(PLAIN, self.values(what), level)

    def paired_differences(self, what) -> dict[str, Estimate]:
        """Differences of ACCURACY or TNS for these very networks: paired by image, means over seeds, over images."""
        plain = {one.numbers["seed"]: per_image(one, what) for one in self.groups.get(PLAIN, [])}
        found = {}
        for name, group in self.groups.items():
            pairs = [(per_image(one, what), plain[seed]) for one in group if (seed := one.numbers["seed"]) in plain]
            if name != PLAIN and pairs:
                difference = np.mean([here - there for here, there in pairs], axis=0)
                rows = choices(len(difference), design.RESAMPLES, seed=0)
                found[name] = estimate(difference.mean(), difference[rows].mean(1))
        return found

    def relation_within(self, reading) -> Estimate:
        """Kendall's tau-b of accuracy and TNS counting pairs of one recipe only."""
        places = [place for place, group in enumerate(self.groups.values()) for _ in group]
        tns, accuracy = (np.array([value_of(one, what) for one in self.all]) for what in ((TNS, reading), ACCURACY))
        there = np.isfinite(tns)
        return kendall_within(tns[there], accuracy[there], np.array(places)[there], design.RESAMPLES)


def value_of(one: Measurement, what) -> float:
    if what == ACCURACY:
        return 100.0 * one.numbers["test_accuracy"]
    value = one.numbers[what] if isinstance(what, str) else one.stiffness(*what)
    return float("nan") if value is None else float(value)


def per_image(one: Measurement, what) -> np.ndarray:
    """Of each traced image: 100 where it is classified correctly, else 0; or its TNS."""
    if what == ACCURACY:
        return 100.0 * one.arrays["correct"]
    return one.arrays["tns"][READINGS.index(tuple(what[1]))].astype(float)


def mean_nsi(group: list[Measurement], kind: str) -> np.ndarray:
    """NSI per block, the mean over networks; NaN where an index is not defined."""
    return np.mean([np.array(one.numbers[f"nsi_{kind}"]["mean"], dtype=float) for one in group], axis=0)


def stage_stiffness(one: Measurement) -> list[float]:
    """TNS of every stage alone, of the slope's index and the data set's mean: with one counted block it exists, too."""
    stages, first = np.array(one.numbers["stages"]), np.array(one.numbers["first"])
    nsi = one.arrays["nsi_slope"].astype(float)
    counted = [(stages == stage) & ~first for stage in np.unique(stages)]
    return [float(ol.tns(nsi[:, here], np.zeros(here.sum()), "dataset").mean()) for here in counted]


@dataclasses.dataclass(frozen=True, eq=False)
class Course:
    """One network through its training, after every epoch.

    loss, rate  of training, (T,)
    tns         under every reading, (T, readings)
    scale       the mean index of the counted blocks, by kind of index, (T,) each
    """

    loss: np.ndarray
    rate: np.ndarray
    tns: np.ndarray
    scale: dict[str, np.ndarray]

    def __len__(self):
        return len(self.loss)

    def stiffness(self, what: str, reading: tuple) -> np.ndarray:
        """TNS, its scale or its shape, (T,)."""
        tns = self.tns[:, READINGS.index(reading)] if len(reading) == 2 else np.full(len(self), np.nan)
        parts = ol.TnsParts(tns, self.scale[reading[0]])
        return {TNS: parts.tns, SCALE: parts.scale, SHAPE: parts.shape}[what]


def course(one: Measurement) -> Course | None:
    """None where stiffness was not followed."""
    log = [record for record in one.numbers["log"] if "tns" in record]
    if not log:
        return None
    tns = np.array([[np.nan if x is None else x for x in record["tns"]] for record in log])
    counted = ~np.array(one.numbers["first"])
    alone = np.full(len(log), np.nan)  # one block a stage, which is not counted
    indices = {of: np.array([record["nsi"][of] for record in log], dtype=float)[:, counted] for of in log[0]["nsi"]}
    scale = {of: nsi.mean(1) if counted.any() else alone for of, nsi in indices.items()}
    loss, rate = (np.array([record[key] for record in log]) for key in ("loss", "rate"))
    return Course(loss, rate, tns, scale)


@dataclasses.dataclass(frozen=True)
class Hardness:
    """How the stiffness of one network after an epoch goes with what its loss gains until the next: Kendall's tau.

    plain    as it is
    changes  of the changes from epoch to epoch, beside what all networks do at that epoch
    """

    plain: float
    changes: float


def hardness(runs: Runs, what: str, reading) -> dict[str, list[Hardness]]:
    """By recipe, of every network whose stiffness was followed and is defined."""
    ways = {name: [way for one in group if (way := course(one)) is not None] for name, group in runs.groups.items()}
    every = [way for group in ways.values() for way in group]
    if not every:
        return {name: [] for name in ways}
    loss, stiffness = np.array([way.loss for way in every]), np.array([way.stiffness(what, reading) for way in every])
    found = iter(list(starmap(Hardness, zip(*relate_gains(loss, stiffness, every[0].rate), strict=True))))
    return {name: [one for _ in group if np.isfinite((one := next(found)).changes)] for name, group in ways.items()}


def relate_gains(loss: np.ndarray, stiffness: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two taus of `Hardness` of n networks, from loss and stiffness (n, T); only epochs of one rate are paired.

    Both fall as training goes on, for reasons of their own, and all networks go through the same epochs. So what an
    epoch is on average over networks is taken out, and then changes from one epoch to the next are compared: a partial
    tau, with the epoch's number taken out, is not 0 where both follow the epoch with noise and nothing else.
    """
    gain, stiffness = loss[:, :-1] - loss[:, 1:], stiffness[:, :-1]
    phase = np.unique(rate[:-1], return_inverse=True)[1]
    same = np.isclose(rate[1:], rate[:-1])
    plain = kendall_rows(stiffness[:, same], gain[:, same], phase[same])
    pairs = same[1:] & same[:-1]
    of_stiffness, of_gain = (np.diff(table - table.mean(0), axis=1)[:, pairs] for table in (stiffness, gain))
    return plain, kendall_rows(of_stiffness, of_gain, phase[1:][pairs])
