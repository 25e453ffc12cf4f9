"""Intervals, rank correlations, comparisons over seeds, and the verdicts they allow.

These functions take numbers that `odelab` and `netbridge` have measured. The formulas are SciPy's; this module decides
how they are applied, and what is returned where they are not defined.
"""

import dataclasses
import warnings

import numpy as np
from scipy import stats

LEVEL = 0.95
SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
PARTLY = "true of some, false of others"
MIXED = "supported or not, depending on how the paper is read"
FEWEST = 5  # pairs: with four, even a perfect order has a two-sided p of 2/4! = 8 %, above 5 %


@dataclasses.dataclass(frozen=True)
class Finding:
    """A claim of a paper, where the paper makes it, the verdict of these data, and the sentences that explain it."""

    claim: str
    where: str
    verdict: str
    words: str


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
    """Kendall's tau and Spearman's rho of two rows of numbers; no intervals for fewer than FEWEST pairs."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    (kendall, kendall_p), (spearman, spearman_p) = (
        (bootstrap_rank(x, y, coefficient, resamples, seed), rank_correlation(x, y, coefficient)[1])
        for coefficient in (stats.kendalltau, stats.spearmanr)
    )
    return Correlation(len(x), kendall, kendall_p, spearman, spearman_p)


def bootstrap_rank(x, y, coefficient, resamples: int, seed: int) -> Estimate:
    """A rank correlation with its bootstrap interval over the pairs, bias-corrected and accelerated (BCa).

    A resample that leaves nothing to rank counts as no relation. Where all resamples agree, as those of a perfect
    order do, BCa is not defined and the interval is that one value.
    """
    value = rank_correlation(x, y, coefficient)[0]
    if len(x) < FEWEST or not np.isfinite(value):
        return estimate(value, [])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # SciPy warns where BCa is not defined; that case is answered below
        found = stats.bootstrap(
            (x, y),
            lambda a, b: np.nan_to_num(rank_correlation(a, b, coefficient)[0]),
            paired=True,
            vectorized=False,
            n_resamples=resamples,
            confidence_level=LEVEL,
            method="BCa",
            rng=np.random.default_rng(seed),
        )
    low, high = found.confidence_interval
    plain = estimate(value, found.bootstrap_distribution)
    return dataclasses.replace(plain, low=float(low), high=float(high)) if np.isfinite(low + high) else plain


def rank_correlation(x, y, coefficient) -> tuple[float, float]:
    """A rank correlation and its p-value; NaN where there is nothing to rank."""
    if len(x) < 3 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan"), float("nan")
    found = coefficient(x, y)
    return float(found.statistic), float(found.pvalue)


def correlate_rows(x, y) -> np.ndarray:
    """Spearman's correlation within every row of two tables of one shape; NaN where a row has nothing to rank."""
    ranks = [stats.rankdata(table, axis=1) for table in (x, y)]
    ranks = [rank - rank.mean(1, keepdims=True) for rank in ranks]
    lengths = [np.sqrt((rank**2).sum(1)) for rank in ranks]
    with np.errstate(invalid="ignore", divide="ignore"):
        return (ranks[0] * ranks[1]).sum(1) / (lengths[0] * lengths[1])


def bootstrap_mean(values, chosen: np.ndarray) -> Estimate:
    """The mean of one number per image, with its interval over the resamples `chosen` (resamples, N) of the images."""
    values = np.asarray(values, dtype=float)
    return estimate(np.mean(values), values[chosen].mean(1))


def sign_of(e: Estimate) -> int:
    """1 or -1 where the whole interval lies above or below zero, else 0."""
    return int(e.low > 0) - int(e.high < 0)


def compare_seeds(here: list[Estimate], there: list[Estimate]) -> int:
    """1 or -1 where one group of seeds is above or below another, else 0.

    Both must say so: the paired interval over images of the difference of means, and every seed of the one against
    every seed of the other.
    """
    sign = sign_of(mean_of(here).minus(mean_of(there)))
    values, others = [e.value for e in here], [e.value for e in there]
    separate = min(values) > max(others) if sign > 0 else max(values) < min(others)
    return sign if separate else 0


def sign_test(values) -> float:
    """p of positive and negative numbers being equally likely; zeros do not count, and of none nothing is known."""
    values = np.asarray(values, dtype=float)
    signed = int(np.count_nonzero(values > 0)), int(np.count_nonzero(values < 0))
    return float(stats.binomtest(signed[0], sum(signed)).pvalue) if sum(signed) else float("nan")


def mean_over_networks(values) -> Estimate:
    """The mean of one number per network, with Student's interval."""
    values = np.asarray(values, dtype=float)
    return mean_from_sums(len(values), float(values.sum()), float((values**2).sum()))


def draw_halves(images: int, resamples: int, seed: int) -> np.ndarray:
    """Random halves of the images, (resamples, images // 2), none of them twice in a half.

    A statistic of pairs of images cannot be bootstrapped, because an image drawn twice would be paired with itself. Its
    values on halves drawn without replacement scatter around its value on all images as those of a bootstrap would.
    """
    chance = np.random.default_rng(seed)
    return np.array([chance.permutation(images)[: images // 2] for _ in range(resamples)])


def mean_from_sums(count: int, total: float, squares: float) -> Estimate:
    """The mean of `count` numbers of which the sum and the sum of squares are known, with Student's interval."""
    mean = total / count
    error = np.sqrt(max(squares / count - mean**2, 0.0) / max(count - 1, 1))
    low, high = stats.t.interval(LEVEL, count - 1, mean, error) if error > 0.0 else (mean, mean)
    return Estimate(float(mean), float(low), float(high))


def joint_verdict(verdicts) -> str:
    """One verdict from those under several readings."""
    said = set(verdicts)
    if len(said) == 1:
        return said.pop()
    if SUPPORTED in said:
        return MIXED
    return PARTLY if PARTLY in said else UNDECIDED


def verdict_of_counts(above: int, below: int, total: int) -> str:
    """The verdict on a claim that beyond chance holds in `above` of `total` cases and fails in `below` of them."""
    if above == total:
        return SUPPORTED
    if below == total:
        return CONTRADICTED
    return PARTLY if above and below else UNDECIDED


def chance_of_one_mean(groups) -> float:
    """p of all groups having one mean (one-way analysis of variance); NaN where that cannot be asked."""
    groups = [group for group in groups if len(group) > 1]
    if len(groups) < 2 or not any(np.ptp(group) > 0 for group in groups):
        return float("nan")
    return float(stats.f_oneway(*groups).pvalue)


def tukey(control: str, groups: dict[str, list[float]]) -> dict[str, Estimate]:
    """How far the mean of every other group is above that of `control`, with intervals that hold all together.

    Tukey and Kramer: one spread over seeds, pooled, and all pairs of groups covered at once. A group of one seed has a
    difference and no interval.
    """
    seeds = {name: np.asarray(values, dtype=float) for name, values in groups.items() if len(values)}
    if control not in seeds:
        return {}
    several = [name for name, values in seeds.items() if len(values) > 1]
    intervals = {}
    if control in several and len(several) > 1 and any(np.ptp(seeds[name]) > 0 for name in several):
        found = stats.tukey_hsd(*(seeds[name] for name in several)).confidence_interval(LEVEL)
        column = several.index(control)
        intervals = {name: (found.low[row, column], found.high[row, column]) for row, name in enumerate(several)}
    reference = seeds.pop(control)
    return {name: difference(values, reference, intervals.get(name)) for name, values in seeds.items()}


def dunnett(control: str, groups: dict[str, list[float]]) -> dict[str, Estimate]:
    """How far the mean of every other group is above that of `control`, all intervals holding together.

    Dunnett (1955): many arms against one, which is narrower than all pairs. Seeds count as independent. A group of one
    seed has a difference and no interval, and so have all where the control has one or nothing varies.
    """
    groups = {name: [float(x) for x in values] for name, values in groups.items() if len(values)}
    if control not in groups:
        return {}
    reference = groups.pop(control)
    several = [name for name, values in groups.items() if len(values) > 1]
    intervals = {}
    if len(reference) > 1 and several and any(np.ptp(x) > 0 for x in (reference, *(groups[n] for n in several))):
        samples = (np.asarray(groups[name]) for name in several)
        found = stats.dunnett(*samples, control=np.asarray(reference), rng=np.random.default_rng(0))
        bounds = found.confidence_interval(LEVEL)
        intervals = dict(zip(several, zip(bounds.low, bounds.high, strict=True), strict=True))
    return {name: difference(values, reference, intervals.get(name)) for name, values in groups.items()}


def difference(values, reference, interval=None) -> Estimate:
    """How far the mean of one group is above that of another, with the interval where there is one."""
    low, high = (np.nan, np.nan) if interval is None else interval
    return Estimate(float(np.mean(values) - np.mean(reference)), float(low), float(high))


def welch(control: str, groups: dict[str, list[float]]) -> dict[str, Estimate]:
    """How far the mean of every other group is above that of `control`, each interval for itself.

    Welch's test does not take the deviations of the groups for equal, as Dunnett's does. Seeds count as independent. A
    group of one seed is left out, and so are all where the control has one, or where neither of two groups varies.
    """
    reference, found = np.asarray(groups.get(control, ()), float), {}
    for name, values in groups.items():
        one = np.asarray(values, float)
        if name != control and min(len(one), len(reference)) > 1 and max(np.ptp(one), np.ptp(reference)) > 0:
            parts = [group.var(ddof=1) / len(group) for group in (one, reference)]
            freedom = sum(parts) ** 2 / sum(
                part**2 / (len(group) - 1) for part, group in zip(parts, (one, reference), strict=True)
            )
            width = float(stats.t.ppf(0.5 + LEVEL / 2, freedom) * np.sqrt(sum(parts)))
            value = float(one.mean() - reference.mean())
            found[name] = Estimate(value, value - width, value + width)
    return found


def verdict_of_intervals(beyond: dict[str, Estimate], sign: int = 1) -> str:
    """A verdict over cases: one supports the claim if its whole interval has this sign, contradicts it if the other."""
    right = sum(min(sign * e.low, sign * e.high) > 0 for e in beyond.values())
    wrong = sum(max(sign * e.low, sign * e.high) < 0 for e in beyond.values())
    return verdict_of_counts(right, wrong, len(beyond)) if right or wrong else UNDECIDED


def listing(beyond: dict[str, Estimate], form: str = "+.2f") -> str:
    """Names with their estimates, in one line."""
    return "; ".join(f"{name} {shown_interval(e, form)}" for name, e in beyond.items())


def seed_deviation(values) -> float:
    """The standard deviation over seeds; NaN of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def shown_interval(e: Estimate, form: str = ".3f") -> str:
    """The estimate with its interval in brackets, as far as they exist."""
    if not np.isfinite(e.value):
        return "undefined"
    return f"{e.value:{form}} [{e.low:{form}}, {e.high:{form}}]" if np.isfinite(e.low) else f"{e.value:{form}}"


def shown_chance(p: float) -> str:
    """A p-value with its sign: "< 0.001" or "= 0.012"."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def area_under_curve(values, positive, weights=None) -> float:
    """The chance that a positive case has a larger value than a negative one, ties counting half.

    values     a number per case
    positive   a truth per case
    weights    how much each case counts; all alike by default

    Returns a number from 0 to 1; NaN where all cases are of one kind.
    """
    values, positive = np.asarray(values, dtype=float), np.asarray(positive, dtype=bool)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    if positive.all() or not positive.any():
        return float("nan")
    order = np.argsort(values[~positive], kind="stable")
    others = values[~positive][order]
    below = np.concatenate(([0.0], np.cumsum(weights[~positive][order])))
    lower, upper = (below[np.searchsorted(others, values[positive], side)] for side in ("left", "right"))
    total = weights[positive].sum() * below[-1]
    return float(0.5 * (lower + upper) @ weights[positive] / total)


def areas_of_resampled_groups(values, positive, weights, group, counts) -> np.ndarray:
    """`area_under_curve` for every resample of whole groups, as fast as if there were one.

    The chance of a pair is added up once for every pair of groups; a resample weighs those sums.

    values, positive, weights   as `area_under_curve` takes them
    group                       the number of each case's group, from 0 on
    counts                      how often each group was drawn, (resamples, groups)

    Returns the areas, (resamples,); NaN where all cases drawn are of one kind.
    """
    values, positive = np.asarray(values, dtype=float), np.asarray(positive, dtype=bool)
    weights, group, counts = np.asarray(weights, dtype=float), np.asarray(group), np.asarray(counts, dtype=float)
    groups = counts.shape[1]
    order = np.argsort(values[~positive], kind="stable")
    others, of = values[~positive][order], group[~positive][order]
    below = np.zeros((len(others) + 1, groups))  # the weight of each group's negative cases among the first so many
    below[np.arange(1, len(others) + 1), of] = weights[~positive][order]
    below = np.cumsum(below, axis=0)
    lower, upper = (below[np.searchsorted(others, values[positive], side)] for side in ("left", "right"))
    pairs, kinds = np.zeros((groups, groups)), np.zeros((2, groups))
    np.add.at(pairs, group[positive], 0.5 * (lower + upper) * weights[positive][:, None])
    np.add.at(kinds[0], group[positive], weights[positive])
    np.add.at(kinds[1], group[~positive], weights[~positive])
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((counts @ pairs) * counts).sum(axis=1) / ((counts @ kinds[0]) * (counts @ kinds[1]))
