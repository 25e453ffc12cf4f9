"""Comparisons of groups of networks that differ in their seeds: differences with intervals, and what they decide.

How tables show them stands at the end; a cell is empty where there is nothing to show.
"""

import functools
import math

import numpy as np
from scipy import optimize, special, stats

from studies.lab.statistics import (
    LEVEL,
    Estimate,
    chance_text,
    interval_text,
)


def tukey(control: str, groups: dict[str, list[float]], level: float = LEVEL) -> dict[str, Estimate]:
    """How far the mean of every other group is above that of `control`, with intervals that hold all together.

    Tukey and Kramer: one spread over seeds, pooled, and all pairs of groups covered at once. A group of one seed has a
    difference and no interval.
    """
    seeds = {name: np.asarray(values, dtype=float) for name, values in groups.items() if len(values)}
    if control not in seeds:
        return {}
    several = {name: values for name, values in seeds.items() if len(values) > 1}
    intervals = {}
    if control in several and len(several) > 1 and any(np.ptp(values) > 0 for values in several.values()):
        widths = tukey_allowance(tuple(len(values) for values in several.values()), level)
        widths = widths[list(several).index(control)] * pooled_deviation(several.values())
        for (name, values), half in zip(several.items(), widths, strict=True):
            value = values.mean() - several[control].mean()
            intervals[name] = (value - half, value + half)
    reference = seeds.pop(control)
    return {name: difference(values, reference, intervals.get(name)) for name, values in seeds.items()}


@functools.cache
def tukey_allowance(sizes: tuple[int, ...], level: float) -> np.ndarray:
    """Half the widths of the intervals of Tukey and Kramer for every pair of groups, in pooled deviations.

    They depend on the sizes alone, so SciPy is asked once for each design, about samples that are made up.
    """
    samples = [np.arange(size) % 2 - 0.5 for size in sizes]
    bounds = stats.tukey_hsd(*samples).confidence_interval(level)
    return (bounds.high - bounds.low) / 2 / pooled_deviation(samples)


def dunnett(control: str, groups: dict[str, list[float]], level: float = LEVEL) -> dict[str, Estimate]:
    """How far the mean of every other group is above that of `control`, all intervals holding together.

    Dunnett (1955): many arms against one, which is narrower than all pairs. Seeds count as independent. A group of one
    seed has a difference and no interval, and so have all where the control has one or nothing varies.
    """
    samples = {name: np.asarray(values, dtype=float) for name, values in groups.items() if len(values)}
    if control not in samples:
        return {}
    reference = samples.pop(control)
    several = [name for name, values in samples.items() if len(values) > 1]
    intervals = {}
    if len(reference) > 1 and several and any(np.ptp(x) > 0 for x in (reference, *(samples[name] for name in several))):
        sizes = tuple(len(samples[name]) for name in several)
        half_widths = dunnett_allowance(sizes, len(reference), level) * pooled_deviation(
            [reference, *(samples[name] for name in several)]
        )
        for name, half in zip(several, half_widths, strict=True):
            value = samples[name].mean() - reference.mean()
            intervals[name] = (value - half, value + half)
    return {name: difference(values, reference, intervals.get(name)) for name, values in samples.items()}


@functools.cache
def dunnett_allowance(sizes: tuple[int, ...], control: int, level: float) -> np.ndarray:
    """Half the widths of Dunnett's intervals for groups of these sizes and a control, in pooled deviations.

    The differences to one control share its error z and the pooled deviation s, and given both they are independent:
    the probability that all lie within their intervals is a double integral over z and log s. SciPy's own function
    draws it at random, and does not converge at high levels.
    """
    groups = np.array(sizes, dtype=float)
    freedom, shared = int(groups.sum()) + control - len(groups) - 1, 1.0 / np.sqrt(control / groups + 1.0)
    own = np.sqrt(1.0 - shared**2)
    z, of_z = special.roots_hermitenorm(60)
    deviations = np.exp(np.linspace(-12.0, 2.5, 200))
    of_deviations = stats.chi.pdf(deviations * np.sqrt(freedom), freedom) * deviations
    deviations = deviations[:, None, None]

    def coverage(width: float) -> float:
        upper, lower = ((sign * width * deviations + shared * z[:, None]) / own for sign in (1.0, -1.0))
        within = np.prod(special.ndtr(upper) - special.ndtr(lower), axis=-1)
        return of_deviations @ within @ of_z / (of_deviations.sum() * of_z.sum())

    width = optimize.brentq(lambda width: coverage(width) - level, 0.1, 1e4, xtol=1e-9)
    return width * np.sqrt(1.0 / groups + 1.0 / control)


def pooled_deviation(samples) -> float:
    """The standard deviation within groups, pooled over them."""
    samples = [np.asarray(values) for values in samples]
    squares = sum(((values - values.mean()) ** 2).sum() for values in samples)
    return float(np.sqrt(squares / sum(len(values) - 1 for values in samples)))


def welch(control: str, groups: dict[str, list[float]], level: float = LEVEL) -> dict[str, Estimate]:
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
            width = float(stats.t.ppf(0.5 + level / 2, freedom) * np.sqrt(sum(parts)))
            value = float(one.mean() - reference.mean())
            found[name] = Estimate(value, value - width, value + width, n=min(len(one), len(reference)))
    return found


def log_variance_ratio(ours: list[float], theirs: list[float], level: float = LEVEL) -> Estimate:
    """The logarithm of the quotient of the variances of two groups, with its interval by the F-distribution.

    It is above zero where the first varies more; there is no interval where one of them does not vary.
    """
    variances = [float(np.var(values, ddof=1)) if len(values) > 1 else np.nan for values in (ours, theirs)]
    n = min(len(ours), len(theirs))
    if not min(variances) > 0.0:
        return Estimate(np.nan, np.nan, np.nan, n=n)
    value = math.log(variances[0] / variances[1])
    tails = stats.f.ppf([0.5 + level / 2, 0.5 - level / 2], len(ours) - 1, len(theirs) - 1)
    low, high = value - np.log(tails)
    return Estimate(value, float(low), float(high), n=n)


def difference(values, reference, interval=None) -> Estimate:
    """How far the mean of one group is above that of another, with the interval where there is one."""
    low, high = (np.nan, np.nan) if interval is None else interval
    value, n = float(np.mean(values) - np.mean(reference)), min(len(values), len(reference))
    return Estimate(value, float(low), float(high), n=n)


def chance_of_one_mean(groups) -> float:
    """p of all groups having one mean (one-way analysis of variance); NaN where that cannot be asked."""
    groups = [group for group in groups if len(group) > 1]
    if len(groups) < 2 or not any(np.ptp(group) > 0 for group in groups):
        return float("nan")
    return float(stats.f_oneway(*groups).pvalue)


def seed_deviation(values) -> float:
    """The standard deviation over seeds; NaN of a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def interval_cell(beyond: dict[str, Estimate], name: str, form: str = "+.2f") -> str:
    """The estimate of this name with its interval; empty where there is none."""
    return interval_text(beyond[name], form) if name in beyond else ""


def deviation_cell(values, alone: str = "", form: str = ".2f") -> str:
    """The standard deviation over seeds; of a single value, what `alone` says."""
    return f"{seed_deviation(values):{form}}" if len(values) > 1 else alone


def chance_cell(p: float) -> str:
    """A p-value, "< 0.001" or "0.012"; empty where there is none."""
    return chance_text(p).removeprefix("= ") if np.isfinite(p) else ""


def signed_cell(value: float) -> str:
    """A number with its sign; empty where there is none."""
    return f"{value:+.2f}" if np.isfinite(value) else ""
