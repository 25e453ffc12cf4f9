"""Every number of `population`: rank correlations within groups, controllers against one, and what explains accuracy.

The rules are those of `design.py`; what stands here computes, `findings.py` judges.
"""

import dataclasses
import itertools
import math

import numpy as np
from scipy import stats

from studies.lab.comparisons import dunnett
from studies.lab.measurements import Measurement
from studies.lab.statistics import FEWEST, Estimate, choices, estimate, kendall_within
from studies.lab.stiffness import QUANTITIES, READINGS, TNS
from studies.lab.verdicts import corrected
from studies.population import design

CONSTANT, STEPNET = "constant", "StepNet"  # as measurements name them
RIVALS = ("norm of the logits", "training loss", "width", "sharpness")
ACCURACY = "accuracy"
WAYS = OVER_ALL, BY_DEPTH, BY_CONTROLLER, BY_LOSS = (
    *("over all networks", "within depth", "within controller", "at equal training loss"),
)
FEWER = 500  # resamples where one controller is left out, which is asked of each


@dataclasses.dataclass(frozen=True, eq=False)
class Networks:
    """What is known of n networks, a number or a name for each.

    controller, depth, width, seed, recipe  what the network is
    core        does it belong to the part of the design that compares controllers?
    accuracy    per cent of the 10,000 test images
    train_loss, logits_norm, sharpness  see `measurements.Measurement`
    stiffness   TNS, its scale and its shape, each by its readings; NaN where they are not defined
    seconds     of training and one thread
    """

    controller: np.ndarray
    depth: np.ndarray
    width: np.ndarray
    seed: np.ndarray
    recipe: np.ndarray
    core: np.ndarray
    accuracy: np.ndarray
    train_loss: np.ndarray
    logits_norm: np.ndarray
    sharpness: np.ndarray
    stiffness: dict[str, dict[tuple, np.ndarray]]
    seconds: np.ndarray

    def __len__(self):
        return len(self.accuracy)

    @classmethod
    def of(cls, found: list[Measurement]) -> "Networks":
        def column(name, factor=1.0):
            return np.array([factor * one.numbers[name] for one in found])

        return cls(
            controller=np.array([one.numbers["controller"] for one in found], dtype=object),
            depth=np.array([one.numbers["depth"] for one in found], dtype=int),
            width=np.array([one.numbers["width"] for one in found], dtype=int),
            seed=np.array([one.numbers["seed"] for one in found], dtype=int),
            recipe=np.array([one.specification["recipe"]["name"] for one in found], dtype=object),
            core=np.array([design.is_core(one.specification) for one in found], dtype=bool),
            accuracy=column("test_accuracy", 100.0),
            train_loss=column("train_loss"),
            logits_norm=column("logits_norm"),
            sharpness=column("sharpness"),
            stiffness={
                what: {
                    reading: np.array([one.stiffness(what, reading) for one in found], dtype=float)
                    for reading in readings
                }
                for what, readings in QUANTITIES.items()
            },
            seconds=np.array([one.numbers["made"]["seconds"] for one in found], dtype=float),
        )

    def rivals(self) -> dict[str, np.ndarray]:
        """What may say as much about accuracy as TNS does, by the names of RIVALS."""
        columns = (self.logits_norm, self.train_loss, self.width, self.sharpness)
        return dict(zip(RIVALS, columns, strict=True))


@dataclasses.dataclass(frozen=True)
class Relation:
    """Kendall's tau-b of n networks, of which `pairs` pairs stand in one group.

    without  tau over the networks of all controllers but one, by its name; empty where nobody asked
    """

    n: int
    pairs: int
    tau: Estimate
    without: dict[str, Estimate] = dataclasses.field(default_factory=dict)


def relations(networks: Networks, resamples: int = design.RESAMPLES) -> dict[tuple[str, str, tuple], Relation]:
    """Kendall's tau-b with the accuracy: of TNS in the four ways of the design, of scale and shape over all networks.

    The keys are (quantity, way, reading). The intervals of a claim hold together under all its readings.
    """
    return {
        (what, way, reading): relate(networks, what, way, reading, resamples)
        for what, readings in QUANTITIES.items()
        for way in (WAYS if what == TNS else (OVER_ALL,))
        for reading in readings
    }


def relate(networks: Networks, what: str, way: str, reading, resamples: int) -> Relation:
    """Kendall's tau-b of one quantity under one reading and the accuracy, counting pairs in one way."""
    values, level = networks.stiffness[what][reading], corrected(len(QUANTITIES[what]))
    there = np.isfinite(values)
    groups = groups_of(networks, way, there)
    tau = kendall_within(values[there], networks.accuracy[there], groups, resamples, level)
    counts = np.unique(groups, return_counts=True)[1]
    without = {}
    if way == OVER_ALL:
        for name in np.unique(networks.controller[there].astype(str)):
            rest = there & (networks.controller != name)
            one_group = np.zeros(np.count_nonzero(rest))
            pairs = values[rest], networks.accuracy[rest]
            without[str(name)] = kendall_within(*pairs, one_group, min(resamples, FEWER), level)
    return Relation(len(groups), int((counts * (counts - 1) // 2).sum()), tau, without)


def groups_of(networks: Networks, way: str, there: np.ndarray) -> np.ndarray:
    """The number of the group of every network that is `there`."""
    if way == BY_LOSS:
        return neighbours(networks.train_loss[there])
    names = {OVER_ALL: np.zeros(len(networks)), BY_DEPTH: networks.depth, BY_CONTROLLER: networks.controller}[way]
    return np.unique(names[there].astype(str), return_inverse=True)[1]


def neighbours(values: np.ndarray) -> np.ndarray:
    """Groups of NEIGHBOURS networks that follow one another in the order of their values; the last may be smaller."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable") // design.NEIGHBOURS


def seeds_of(networks: Networks, values: np.ndarray) -> dict[str, list[float]]:
    """The values of the core's networks by controller, constant step sizes first; those without a value left out."""
    usable = networks.core & np.isfinite(values)
    names = sorted({str(name) for name in networks.controller[usable]}, key=lambda name: (name != CONSTANT, name))
    return {name: values[usable & (networks.controller == name)].tolist() for name in names}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The controllers of the core against one of them.

    control  the one
    groups   values by controller, one per seed
    beyond   how far the mean of every other controller is above that of `control`: Dunnett, over seeds
    """

    control: str
    groups: dict[str, list[float]]
    beyond: dict[str, Estimate]


def comparisons(networks: Networks) -> dict[tuple, Comparison]:
    """TNS, its scale and its shape against constant step sizes, accuracy against these and against StepNet.

    The keys are (quantity, reading, constant), (ACCURACY, (), constant) and (ACCURACY, (), StepNet). The intervals of a
    quantity hold together over controllers and readings.
    """
    found = {}
    for what, readings in QUANTITIES.items():
        for reading in readings:
            groups = seeds_of(networks, networks.stiffness[what][reading])
            beyond = dunnett(CONSTANT, groups, corrected(len(readings)))
            found[what, reading, CONSTANT] = Comparison(CONSTANT, groups, beyond)
    accuracies = seeds_of(networks, networks.accuracy)
    for control in (CONSTANT, STEPNET):
        found[ACCURACY, (), control] = Comparison(control, accuracies, dunnett(control, accuracies))
    return found


@dataclasses.dataclass(frozen=True)
class Explained:
    """Ranks of accuracy regressed on those of TNS and its rivals, for n networks.

    coefficient  of TNS, everything standardised
    shares       by name, of the variance explained: what one adds, averaged over all orders
    """

    n: int
    coefficient: Estimate
    shares: dict[str, Estimate]


def explain_accuracy(networks: Networks, reading, resamples: int = design.RESAMPLES) -> Explained:
    """What TNS says about accuracy beside its rivals, with bootstrap intervals over networks; of few nothing."""
    names, (n, related) = (TNS, *RIVALS), resample_ranks(networks, reading, resamples)
    if n < FEWEST:
        return Explained(n, estimate(math.nan, []), dict.fromkeys(names, estimate(math.nan, [])))
    added = shares(related)
    return Explained(
        n,
        coefficient_of_tns(n, related),
        {name: estimate(of[0], of[1:], n=n) for name, of in zip(names, added.T, strict=True)},
    )


def resample_ranks(networks: Networks, reading, resamples: int) -> tuple[int, np.ndarray]:
    """How many networks have a TNS, and the rank correlations of accuracy, TNS and rivals: of them, then of resamples."""
    tns = networks.stiffness[TNS][reading]
    there = np.isfinite(tns)
    values = np.stack([networks.accuracy, tns, *networks.rivals().values()])[:, there].astype(float)
    n = values.shape[1]
    if n < FEWEST:
        return n, np.empty((0, len(values), len(values)))
    rows = np.vstack([np.arange(n), choices(n, resamples, seed=0)])
    return n, rank_correlations(values[:, rows].transpose(1, 0, 2))


def coefficient_of_tns(n: int, related: np.ndarray) -> Estimate:
    """The coefficient of TNS beside its rivals; the interval holds together with those of the other readings."""
    beta = coefficients(related, tuple(range(1, related.shape[-1])))[:, 0]
    return estimate(beta[0], beta[1:], corrected(len(READINGS)), n)


def rank_correlations(values: np.ndarray) -> np.ndarray:
    """Correlations of the ranks of values (..., quantities, networks); 0 with what does not vary."""
    ranks = stats.rankdata(values, axis=-1)
    ranks -= ranks.mean(-1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=-1, keepdims=True)
    ranks = np.divide(ranks, lengths, out=np.zeros_like(ranks), where=lengths > 0)
    return ranks @ ranks.swapaxes(-1, -2)


def coefficients(related: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    """Of the regression of the first quantity on the chosen ones, all standardised; NaN where the first is constant.

    The shortest of the solutions where the chosen ones are not independent: what does not vary has coefficient 0.
    """
    inside = related[..., chosen, :][..., chosen]
    found = (np.linalg.pinv(inside, hermitian=True) @ related[..., chosen, :1])[..., 0]
    return np.where(related[..., :1, 0] > 0, found, np.nan)


def shares(related: np.ndarray) -> np.ndarray:
    """The share of the first quantity's variance that each of the others explains, averaged over all orders.

    Lindeman, Merenda and Gold 1980 (Groemping 2006, Eq. 8): what one adds to the explained variance, averaged over all
    orders in which they can enter a regression. The shares sum to the variance that all explain together.
    """
    others = tuple(range(1, related.shape[-1]))
    subsets = [s for size in range(len(others) + 1) for s in itertools.combinations(others, size)]
    variance = {s: explained_variance(related, s) for s in subsets}
    total = np.zeros((*related.shape[:-2], len(others)))
    for place, one in enumerate(others):
        for rest in (s for s in subsets if one not in s):
            weight = 1.0 / (len(others) * math.comb(len(others) - 1, len(rest)))  # of all orders that begin so
            total[..., place] += weight * (variance[tuple(sorted((*rest, one)))] - variance[rest])
    return total


def explained_variance(related: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    """R squared of the regression of the first quantity on the chosen ones."""
    if not chosen:
        return np.where(related[..., 0, 0] > 0, 0.0, np.nan)
    return (coefficients(related, chosen) * related[..., 0, chosen]).sum(-1)
