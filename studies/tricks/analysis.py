"""Every number of `tricks`: recipes against the plain one over seeds and images, stages, stiffness in training.

The rules are those of `design.py`; this module computes numbers, `findings.py` judges them.
"""

import dataclasses

import numpy as np

import odelab as ol
from studies.lab.comparisons import tukey
from studies.lab.measurements import Measurement
from studies.lab.statistics import Correlation, Estimate, choices, correlation, estimate, kendall_within
from studies.lab.stiffness import READINGS
from studies.tricks import design
from studies.tricks.design import PLAIN

ACCURACY = "accuracy"


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

    @property
    def fewest(self) -> int:
        """Seeds of the recipe that has the fewest."""
        return min(map(len, self.groups.values()))

    def values(self, what) -> dict[str, list[float]]:
        """Per recipe one number for each seed: ACCURACY in per cent, the TNS of a reading, or a name in `numbers`."""
        found = {name: [value_of(one, what) for one in group] for name, group in self.groups.items()}
        return {name: [x for x in values if np.isfinite(x)] for name, values in found.items()}

    def beyond(self, what) -> dict[str, Estimate]:
        """Every recipe's mean minus that of the plain one, intervals over seeds (Tukey and Kramer)."""
        return tukey(PLAIN, self.values(what))

    def paired_differences(self, what) -> dict[str, Estimate]:
        """The same for these very networks: means over seeds of image-wise differences, intervals over images."""
        plain = {one.numbers["seed"]: per_image(one, what) for one in self.groups.get(PLAIN, [])}
        found = {}
        for name, group in self.groups.items():
            pairs = [(per_image(one, what), plain[seed]) for one in group if (seed := one.numbers["seed"]) in plain]
            if name != PLAIN and pairs:
                difference = np.mean([here - there for here, there in pairs], axis=0)
                rows = choices(len(difference), design.RESAMPLES, seed=0)
                found[name] = estimate(difference.mean(), difference[rows].mean(1))
        return found

    def relation(self, reading) -> Correlation:
        """Accuracy and TNS over all networks."""
        return correlation(*columns(self.all, reading), design.RESAMPLED_RANKS)

    def relation_within(self, reading) -> Estimate:
        """Kendall's tau-b of accuracy and TNS counting pairs of one recipe only."""
        places = [place for place, group in enumerate(self.groups.values()) for _ in group]
        tns, accuracy = columns(self.all, reading)
        there = np.isfinite(tns)
        return kendall_within(tns[there], accuracy[there], np.array(places)[there], design.RESAMPLES)


def value_of(one: Measurement, what) -> float:
    if what == ACCURACY:
        return 100.0 * one.numbers["test_accuracy"]
    value = one.numbers[what] if isinstance(what, str) else one.tns(what)
    return float("nan") if value is None else float(value)


def per_image(one: Measurement, what) -> np.ndarray:
    """Of each traced image: 100 where it is classified correctly, else 0; or its TNS under a reading."""
    if what == ACCURACY:
        return 100.0 * one.arrays["correct"]
    return one.arrays["tns"][READINGS.index(tuple(what))].astype(float)


def mean_nsi(group: list[Measurement], kind: str) -> np.ndarray:
    """NSI per block, the mean over networks; NaN where an index is not defined."""
    return np.mean([np.array(one.numbers[f"nsi_{kind}"]["mean"], dtype=float) for one in group], axis=0)


def columns(networks: list[Measurement], reading) -> tuple[np.ndarray, np.ndarray]:
    stiffness, accuracies = (np.array([value_of(one, what) for one in networks]) for what in (reading, ACCURACY))
    return stiffness, accuracies


def stage_stiffness(one: Measurement) -> list[float]:
    """TNS of every stage alone, of the slope's index and the data set's mean: with one counted block it exists, too."""
    stages, first = np.array(one.numbers["stages"]), np.array(one.numbers["first"])
    nsi = one.arrays["nsi_slope"].astype(float)
    counted = [(stages == stage) & ~first for stage in np.unique(stages)]
    return [float(ol.tns(nsi[:, here], np.zeros(here.sum()), "dataset").mean()) for here in counted]


@dataclasses.dataclass(frozen=True, eq=False)
class Course:
    """One network through its training, per epoch: loss and learning rate (T,), TNS (T, readings), NSI (T, blocks)."""

    loss: np.ndarray
    rate: np.ndarray
    tns: np.ndarray
    nsi: np.ndarray

    def __len__(self):
        return len(self.loss)


def course(one: Measurement) -> Course | None:
    """None where stiffness was not followed."""
    log = [record for record in one.numbers["log"] if "tns" in record]
    if not log:
        return None
    tns = np.array([[np.nan if x is None else x for x in record["tns"]] for record in log])
    nsi = np.array([record["nsi"]["slope"] for record in log])
    loss, rate = (np.array([record[key] for record in log]) for key in ("loss", "rate"))
    return Course(loss, rate, tns, nsi)


@dataclasses.dataclass(frozen=True)
class Hardness:
    """Kendall's tau between TNS after an epoch and the fall of the loss in the next epoch, one number per network.

    plain    as it is
    partial  with the epoch's number taken out
    """

    plain: list[float]
    partial: list[float]

    def mean(self, which: str) -> Estimate:
        """Over the networks, with its bootstrap interval."""
        values = np.array([x for x in getattr(self, which) if np.isfinite(x)])
        if not len(values):
            return estimate(float("nan"), [])
        draws = values[choices(len(values), design.RESAMPLES, seed=0)].mean(1) if len(values) > 1 else []
        return estimate(values.mean(), draws)


def hardness(networks: list[Measurement], reading) -> Hardness:
    """Of every network whose stiffness was followed."""
    place = READINGS.index(tuple(reading))
    pairs = [taus(way, place) for one in networks if (way := course(one)) is not None]
    return Hardness([pair[0] for pair in pairs], [pair[1] for pair in pairs])


def taus(way: Course, place: int) -> tuple[float, float]:
    """(tau of TNS and gain, the same with the epoch's number taken out), among pairs of epochs of one learning rate."""
    same = np.isclose(way.rate[1:], way.rate[:-1])
    gain, stiffness = (way.loss[:-1] - way.loss[1:])[same], way.tns[:-1, place][same]
    epoch, groups = np.arange(len(way) - 1)[same], np.unique(way.rate[:-1][same], return_inverse=True)[1]
    if len(gain) < 3 or not np.isfinite(stiffness).all():
        return float("nan"), float("nan")
    both, of_tns, of_gain = (
        kendall_within(*pair, groups, 1).value for pair in ((stiffness, gain), (stiffness, epoch), (gain, epoch))
    )
    left = np.sqrt((1.0 - of_tns**2) * (1.0 - of_gain**2))
    return both, float((both - of_tns * of_gain) / left) if left > 1e-9 else float("nan")
