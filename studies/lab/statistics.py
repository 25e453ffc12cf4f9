"""Estimates with intervals, and rank correlations; what they decide stands in `verdicts`.

These functions take numbers that `odelab` and `netbridge` have measured. The formulas are SciPy's; this module decides
how they are applied, and what is returned where they are not defined.
"""

import dataclasses
import functools
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special, stats

LEVEL = 0.95
FEWEST = 5  # pairs: with four, even a perfect order has a two-sided p of 2/4! = 8 %, above 5 %


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval, and what it comes from.

    value, low, high  the number and the ends of its interval, which are NaN where there is none
    draws  the resampled values that the interval was read from, if it was
    n      how many units the interval is over, such as seeds, networks or images; 0 where that is not known
    origin  the number that all of them are counted from, see `less`
    """

    value: float
    low: float
    high: float
    draws: np.ndarray = dataclasses.field(repr=False, default_factory=lambda: np.empty(0))
    n: int = 0
    origin: float = 0.0

    def minus(self, other: "Estimate", level: float = LEVEL) -> "Estimate":
        """The difference, paired: both have been resampled on the same units."""
        return estimate(self.value - other.value, self.draws - other.draws, level, self.n)

    def less(self, number: float) -> "Estimate":
        """The same estimate, counted from another number than 0."""
        ends = (self.value - number, self.low - number, self.high - number)
        return Estimate(*ends, self.draws - number, self.n, self.origin + number)


def estimate(value, draws, level: float = LEVEL, n: int = 0) -> Estimate:
    """Percentile interval of the draws that are numbers."""
    draws = np.asarray(draws, dtype=float)
    usable = draws[np.isfinite(draws)]
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(usable, [tail, 100.0 - tail]) if len(usable) > 1 else (np.nan, np.nan)
    return Estimate(float(value), float(low), float(high), draws, n)


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
    level: float = LEVEL  # of the intervals


def correlation(x, y, resamples: int = 1000, seed: int = 0, level: float = LEVEL) -> Correlation:
    """Kendall's tau and Spearman's rho of two rows of numbers; no intervals for fewer than FEWEST pairs."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    (kendall, kendall_p), (spearman, spearman_p) = (
        (bootstrap_rank(x, y, coefficient, resamples, seed, level), rank_correlation(x, y, coefficient)[1])
        for coefficient in (stats.kendalltau, stats.spearmanr)
    )
    return Correlation(len(x), kendall, kendall_p, spearman, spearman_p, level)


def bootstrap_rank(x, y, coefficient, resamples: int, seed: int, level: float = LEVEL) -> Estimate:
    """A rank correlation with its bootstrap interval over the pairs, bias-corrected and accelerated (BCa).

    A resample that leaves nothing to rank counts as no relation. Where all resamples agree, as those of a perfect
    order do, BCa is not defined and the interval is that one value.
    """
    value = rank_correlation(x, y, coefficient)[0]
    if len(x) < FEWEST or not np.isfinite(value):
        return estimate(value, [], level, len(x))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # SciPy warns where BCa is not defined; that case is answered below
        found = stats.bootstrap(
            (x, y),
            lambda a, b: np.nan_to_num(rank_correlation(a, b, coefficient)[0]),
            paired=True,
            vectorized=False,
            n_resamples=resamples,
            confidence_level=level,
            method="BCa",
            rng=np.random.default_rng(seed),
        )
    low, high = found.confidence_interval
    plain = estimate(value, found.bootstrap_distribution, level, len(x))
    return dataclasses.replace(plain, low=float(low), high=float(high)) if np.isfinite(low + high) else plain


def rank_correlation(x, y, coefficient) -> tuple[float, float]:
    """A rank correlation and its p-value; NaN where there is nothing to rank."""
    if len(x) < 3 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan"), float("nan")
    found = coefficient(x, y)
    return float(found.statistic), float(found.pvalue)


@dataclasses.dataclass(frozen=True, eq=False)
class KindRelation:
    """How the mean of one number goes with that of another over kinds of networks, such as controllers.

    names  of the kinds
    means  of the two numbers, (2, kinds)
    level  of the intervals
    """

    names: tuple[str, ...]
    means: np.ndarray
    level: float

    @functools.cached_property
    def whole(self) -> Correlation:
        """Over all kinds."""
        return correlation_of_few(self.means[0], self.means[1], self.level)

    @functools.cached_property
    def without(self) -> dict[str, Correlation]:
        """Over all kinds but one, by its name."""
        rest = [np.delete(self.means, place, axis=1) for place in range(len(self.names))]
        return {name: correlation_of_few(x, y, self.level) for name, (x, y) in zip(self.names, rest, strict=True)}


def relate_kinds(x: Mapping[str, Sequence], y: Mapping[str, Sequence], level: float = LEVEL) -> KindRelation:
    """How the mean of one number goes with that of another over kinds of networks.

    x, y   the two numbers by kind, one for each seed

    Networks of one kind are alike, so kinds are the units. One without a number is left out.
    """
    names = tuple(name for name in x if len(x[name]) and len(y.get(name, ())))
    return KindRelation(names, np.array([[np.mean(values[name]) for name in names] for values in (x, y)]), level)


def correlation_of_few(x, y, level: float = LEVEL) -> Correlation:
    """Kendall's tau and Spearman's rho of few pairs, with intervals in closed form and an exact p of tau.

    Fieller, Hartley and Pearson (1957): on Fisher's scale their variances are 0.437 / (n - 4) and 1.06 / (n - 3). A
    bootstrap of ten pairs would draw the same ones too often. Fewer than FEWEST pairs have no interval.
    """
    x, y, n = np.asarray(x, dtype=float), np.asarray(y, dtype=float), len(x)
    if n < FEWEST or not np.isfinite(x + y).all() or min(len(np.unique(x)), len(np.unique(y))) < n:
        (tau, p), (rho, q) = (rank_correlation(x, y, one) for one in (stats.kendalltau, stats.spearmanr))
    else:
        ranks = [np.argsort(np.argsort(values)) for values in (x, y)]
        smaller = [rank[:, None] < rank for rank in ranks]
        discordant, pairs = int(np.count_nonzero(smaller[0] & smaller[1].T)), n * (n - 1) // 2
        tau, p = 1.0 - 2.0 * discordant / pairs, exact_chance(n, min(discordant, pairs - discordant))
        rho = 1.0 - 6.0 * float(((ranks[0] - ranks[1]) ** 2).sum()) / (n * (n * n - 1))
        q = 2.0 * float(special.stdtr(n - 2, -abs(rho) * np.sqrt((n - 2) / max(1.0 - rho**2, 1e-300))))
    if n < FEWEST:
        kendall, spearman = (Estimate(value, np.nan, np.nan, n=n) for value in (tau, rho))
    else:
        kendall, spearman = (
            fisher_interval(tau, 0.437 / (n - 4), level, n),
            fisher_interval(rho, 1.06 / (n - 3), level, n),
        )
    return Correlation(n, kendall, p, spearman, q, level)


def fisher_interval(value: float, variance: float, level: float, n: int) -> Estimate:
    """The interval of a correlation whose Fisher transform is normal with this variance."""
    reach = float(special.ndtri(0.5 + level / 2)) * np.sqrt(variance)
    with np.errstate(divide="ignore"):
        middle = np.arctanh(value)
    return Estimate(value, float(np.tanh(middle - reach)), float(np.tanh(middle + reach)), n=n)


@functools.cache
def exact_chance(n: int, discordant: int) -> float:
    """p of so few discordant pairs among n numbers, or so few concordant ones, all orders being equally likely."""
    orders = np.ones(1)
    for longer in range(2, n + 1):
        orders = np.convolve(orders, np.full(longer, 1.0 / longer))
    return min(1.0, 2.0 * float(orders[: discordant + 1].sum()))


def kendall_within(x, y, groups, resamples: int, level: float = LEVEL, kinds=None) -> Estimate:
    """Kendall's tau-b counting only pairs of one group, pooled over the groups, with its bootstrap interval.

    A resample draws from all networks; each keeps its group, and a network drawn twice is tied with itself. NaN where
    no pair of a group differs in both values; no interval for fewer than FEWEST networks.

    kinds  what kind each network is of: networks of one kind are alike, so that whole kinds are drawn. None: networks.
           Where networks are alike in several ways, such as by controller and by shape, a list of such rows: kinds are
           drawn in each way, and a network is drawn as often as the product of its kinds (Owen 2007)
    """
    x, y, groups = np.asarray(x, dtype=float), np.asarray(y, dtype=float), np.asarray(groups)
    together = groups[:, None] == groups
    sign_x, sign_y = (np.sign(values[:, None] - values) * together for values in (x, y))
    tables = sign_x * sign_y, np.square(sign_x), np.square(sign_y)

    def tau(times):  # how many times each network was drawn, one line per resample
        agree, untied_x, untied_y = ((times @ table * times).sum(1) for table in tables)
        untied = np.sqrt(untied_x * untied_y)
        return np.divide(agree, untied, out=np.full(len(times), np.nan), where=untied > 0)

    ways = [np.arange(len(x))] if kinds is None else kinds if isinstance(kinds, list) else [kinds]
    units = [np.unique(way, return_inverse=True)[1] for way in ways]
    counts = [int(one.max(initial=-1)) + 1 for one in units]
    draws: list | np.ndarray = []
    if min(counts) >= FEWEST:
        times = [draw_counts(count, resamples, way)[:, units[way]] for way, count in enumerate(counts)]
        draws = tau(np.prod(times, axis=0))
    return estimate(tau(np.ones((1, len(x))))[0], draws, level, min(counts))


def draw_counts(n: int, resamples: int, seed: int = 0) -> np.ndarray:
    """How many times each of n networks is in each resample, (resamples, n)."""
    rows = np.arange(resamples)[:, None] * n + choices(n, resamples, seed)
    return np.bincount(rows.ravel(), minlength=resamples * n).reshape(resamples, n).astype(float)


def draw_kinds(kinds, resamples: int) -> np.ndarray:
    """The networks of every resample, (resamples, n), where whole kinds are drawn until there are n networks."""
    members = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
    order = np.random.default_rng(0).integers(0, len(members), (resamples, 6 * len(members)))
    return np.array([np.concatenate([members[kind] for kind in row])[: len(kinds)] for row in order])


def correlate_rows(x, y) -> np.ndarray:
    """Spearman's correlation within every row of two tables of one shape; NaN where a row has nothing to rank."""
    ranks = [stats.rankdata(table, axis=1) for table in (x, y)]
    ranks = [rank - rank.mean(1, keepdims=True) for rank in ranks]
    lengths = [np.sqrt((rank**2).sum(1)) for rank in ranks]
    with np.errstate(invalid="ignore", divide="ignore"):
        return (ranks[0] * ranks[1]).sum(1) / (lengths[0] * lengths[1])


def kendall_rows(x, y, groups) -> np.ndarray:
    """Kendall's tau-b within every row of two tables of one shape, counting pairs of columns of one group alone.

    NaN where a row has nothing to rank.
    """
    together = np.equal.outer(groups, groups)
    signs = [np.sign(table[..., :, None] - table[..., None, :]) * together for table in map(np.asarray, (x, y))]
    agree, untied_x, untied_y = ((one * other).sum((-2, -1)) for one, other in (signs, signs[:1] * 2, signs[1:] * 2))
    untied = np.sqrt(untied_x * untied_y)
    return np.divide(agree, untied, out=np.full(agree.shape, np.nan), where=untied > 0)


def bootstrap_mean(values, chosen: np.ndarray, level: float = LEVEL) -> Estimate:
    """The mean of one number per image, with its interval over the resamples `chosen` (resamples, N) of the images."""
    values = np.asarray(values, dtype=float)
    return estimate(np.mean(values), values[chosen].mean(1), level, len(values))


@dataclasses.dataclass(frozen=True)
class Signs:
    """How many of several correlations are beyond chance, and the values of all that are defined."""

    negative: int
    positive: int
    values: list[float]


def signs_beyond_chance(pairs) -> Signs:
    """The signs of Spearman's correlations, one of each pair of rows, that Bonferroni's correction leaves."""
    found = [rank_correlation(x, y, stats.spearmanr) for x, y in pairs]
    found = [(rho, p) for rho, p in found if np.isfinite(rho)]
    certain = [rho for rho, p in found if p < (1.0 - LEVEL) / len(found)]
    return Signs(sum(rho < 0 for rho in certain), sum(rho > 0 for rho in certain), [rho for rho, _ in found])


def mean_over_networks(values, level: float = LEVEL) -> Estimate:
    """The mean of one number per network, with Student's interval."""
    values = np.asarray(values, dtype=float)
    return mean_from_sums(len(values), float(values.sum()), float((values**2).sum()), level)


def mean_with_interval(values, level: float = LEVEL) -> Estimate:
    """The mean of one number per network, with Student's interval where there are two networks or more."""
    values = list(values)
    if len(values) > 1:
        return mean_over_networks(values, level)
    return Estimate(float(np.mean(values or [np.nan])), np.nan, np.nan, n=len(values))


def draw_halves(images: int, resamples: int, seed: int) -> np.ndarray:
    """Random halves of the images, (resamples, images // 2), none of them twice in a half.

    A statistic of pairs of images cannot be bootstrapped, because an image drawn twice would be paired with itself. Its
    values on halves drawn without replacement scatter around its value on all images as those of a bootstrap would.
    """
    chance = np.random.default_rng(seed)
    return np.array([chance.permutation(images)[: images // 2] for _ in range(resamples)])


def mean_from_sums(count: int, total: float, squares: float, level: float = LEVEL) -> Estimate:
    """The mean of `count` numbers of which the sum and the sum of squares are known, with Student's interval."""
    mean = total / count
    error = np.sqrt(max(squares / count - mean**2, 0.0) / max(count - 1, 1))
    low, high = stats.t.interval(level, count - 1, mean, error) if error > 0.0 else (mean, mean)
    return Estimate(float(mean), float(low), float(high), n=count)


def listing(beyond: dict[str, Estimate], form: str = "+.2f") -> str:
    """Names with their estimates, in one line."""
    return "; ".join(f"{name} {interval_text(e, form)}" for name, e in beyond.items())


def interval_text(e: Estimate, form: str = ".3f") -> str:
    """The estimate with its interval in brackets, as far as they exist."""
    if not np.isfinite(e.value):
        return "undefined"
    return f"{e.value:{form}} [{e.low:{form}}, {e.high:{form}}]" if np.isfinite(e.low) else f"{e.value:{form}}"


def chance_text(p: float) -> str:
    """A p-value with its sign: "< 0.001" or "= 0.012"."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
