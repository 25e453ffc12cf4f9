"""Intervals by the bootstrap, rank correlations, and what they allow one to say.

Statistics only, on numbers that `odelab` and `netbridge` have measured.
"""

import dataclasses

import numpy as np
from scipy import stats

LEVEL = 0.95
SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
PARTLY = "true of some, false of others"
MIXED = "supported or not, depending on how the paper is read"
FEWEST = 5  # of four, no order is so unlikely by chance as one in twenty: two-sided 2/4! = 8 %


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval, and the resampled values it comes from."""

    value: float
    low: float
    high: float
    draws: np.ndarray = dataclasses.field(repr=False, default_factory=lambda: np.empty(0))

    def minus(self, other: "Estimate") -> "Estimate":
        """The difference, paired: both have been resampled on the same images."""
        return estimate(self.value - other.value, self.draws - other.draws)


def estimate(value, draws) -> Estimate:
    """Percentile interval of the draws that are numbers."""
    draws = np.asarray(draws, dtype=float)
    usable = draws[np.isfinite(draws)]
    tail = 50.0 * (1.0 - LEVEL)
    low, high = np.percentile(usable, [tail, 100.0 - tail]) if len(usable) > 1 else (np.nan, np.nan)
    return Estimate(float(value), float(low), float(high), draws)


def mean_of(estimates) -> Estimate:
    """The mean over networks; its interval is over images, the networks being what they are."""
    estimates = list(estimates)
    return estimate(np.mean([e.value for e in estimates]), np.mean([e.draws for e in estimates], axis=0))


def choices(images: int, resamples: int, seed: int) -> np.ndarray:
    """The images of every resample, (resamples, images): the same ones for every network."""
    return np.random.default_rng(seed).integers(0, images, (resamples, images), dtype=np.int32)


@dataclasses.dataclass(frozen=True)
class Correlation:
    """Rank correlations of two rows of numbers, with intervals over the pairs and p-values of no relation."""

    n: int
    kendall: Estimate
    kendall_p: float
    spearman: Estimate
    spearman_p: float

    @property
    def verdict(self) -> str:
        """Of the claim that the relation is positive; both coefficients, their intervals and p must agree."""
        if self.n < FEWEST or not all(p < 1.0 - LEVEL for p in (self.kendall_p, self.spearman_p)):
            return UNDECIDED
        if min(self.kendall.low, self.spearman.low) > 0.0:
            return SUPPORTED
        return CONTRADICTED if max(self.kendall.high, self.spearman.high) < 0.0 else UNDECIDED


def correlation(x, y, resamples: int = 1000, seed: int = 0) -> Correlation:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    kendall, spearman = ranked(x, y, stats.kendalltau), ranked(x, y, stats.spearmanr)
    draws = np.full((resamples if len(x) >= FEWEST else 0, 2), np.nan)
    rng = np.random.default_rng(seed)
    for draw in draws:
        chosen = rng.integers(0, len(x), len(x))
        draw[:] = ranked(x[chosen], y[chosen], stats.kendalltau)[0], ranked(x[chosen], y[chosen], stats.spearmanr)[0]
    return Correlation(
        len(x), estimate(kendall[0], draws[:, 0]), kendall[1], estimate(spearman[0], draws[:, 1]), spearman[1]
    )


def ranked(x, y, coefficient) -> tuple[float, float]:
    """NaN where there is nothing to rank."""
    if len(x) < 3 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan"), float("nan")
    found = coefficient(x, y)
    return float(found.statistic), float(found.pvalue)


def together(verdicts) -> str:
    """One verdict from those under several readings."""
    said = set(verdicts)
    if len(said) == 1:
        return said.pop()
    if SUPPORTED in said:
        return MIXED
    return PARTLY if PARTLY in said else UNDECIDED


def counted(above: int, below: int, total: int) -> str:
    """A verdict on a claim about `total` cases that holds beyond chance in `above` and fails in `below` of them."""
    if above == total:
        return SUPPORTED
    if below == total:
        return CONTRADICTED
    return PARTLY if above and below else UNDECIDED


def differ(groups) -> float:
    """p of all groups having one mean (one-way analysis of variance); NaN where that cannot be asked."""
    groups = [group for group in groups if len(group) > 1]
    if len(groups) < 2 or not any(np.ptp(group) > 0 for group in groups):
        return float("nan")
    return float(stats.f_oneway(*groups).pvalue)
