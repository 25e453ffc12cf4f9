"""How well an index ranks windows, the powers behind the ratio of costs, and what does not change with units."""

import dataclasses

import numpy as np
from scipy import stats

from studies.lab.statistics import Estimate, estimate
from studies.switching.areas import area_under_curve, areas_of_resampled_groups
from studies.switching.observations import RATES, Lab, beyond, usable

UNITS = 9.0  # decades of units of time on either side of one
DRAWS = 100  # of random units


@dataclasses.dataclass(frozen=True)
class Ranking:
    """How well an index ranks windows at one error.

    auc      the chance that a stiff window has the larger value, ties half, with its interval over families
    within   the median over problems of the rank correlation with R
    counted  how many problems that median is over
    """

    auc: Estimate
    within: float
    counted: int


def resamples(groups: int, count: int, seed: int = 0) -> np.ndarray:
    """How often each group is drawn in every resample of all of them, (count, groups)."""
    drawn = np.random.default_rng(seed).integers(0, groups, (count, groups))
    return np.array([np.bincount(row, minlength=groups) for row in drawn])


def rankings(lab: Lab, eps: float, count: int, only=None, band: bool = False, names=None) -> dict[str, Ranking]:
    """Of every index, or of those of these names.

    only   a mask of the windows that count; all by default
    band   whether only windows beyond a factor of two count
    """
    ratio = lab.truth(eps)
    known = usable(ratio) & (True if only is None else only)
    known = known & beyond(ratio) if band else known
    families, group = np.unique(lab.family, return_inverse=True)
    counts = resamples(len(families), count)
    stiff, weight, group = (ratio > 1.0)[known], lab.weight[known], group[known]
    told = {}
    for name, values in lab.values(eps).items():
        if names is not None and name not in names:
            continue
        values = np.where(np.isnan(values), -np.inf, values)
        draws = areas_of_resampled_groups(values[known], stiff, weight, group, counts)
        value = area_under_curve(values[known], stiff, weight)
        told[name] = Ranking(estimate(value, draws), *within_problems(lab, values, ratio, known))
    return told


def over_all_errors(lab: Lab, eps_values, count: int) -> dict[str, Estimate]:
    """The area under the curve of every index with the windows of all errors together: one threshold has to serve."""
    known = {eps: usable(lab.truth(eps)) for eps in eps_values}
    families, group = np.unique(lab.family, return_inverse=True)
    counts = resamples(len(families), count)

    def together(column_of) -> np.ndarray:
        return np.concatenate([column_of(eps)[known[eps]] for eps in eps_values])

    stiff, weight = together(lambda eps: lab.truth(eps) > 1.0), together(lambda eps: lab.weight)
    group, columns, told = together(lambda eps: group), {eps: lab.values(eps) for eps in eps_values}, {}
    for name in lab.groups:
        values = together(lambda eps, name=name: columns[eps][name])
        values = np.where(np.isnan(values), -np.inf, values)
        draws = areas_of_resampled_groups(values, stiff, weight, group, counts)
        told[name] = estimate(area_under_curve(values, stiff, weight), draws)
    return told


def within_problems(lab: Lab, values, ratio, known) -> tuple[float, int]:
    """The median rank correlation of an index with R over problems whose R spans a factor of three."""
    found = list(correlations(lab, values, ratio, known).values())
    return (float(np.median(found)), len(found)) if found else (float("nan"), 0)


def correlations(lab: Lab, values, ratio, known) -> dict[str, float]:
    """The rank correlation of an index with R within each problem whose R spans a factor of three."""
    told = {}
    for name in dict.fromkeys(lab.name.tolist()):
        mask = (lab.name == name) & known & np.isfinite(values)
        if mask.sum() < 6 or np.ptp(np.log(ratio[mask])) <= np.log(3.0):
            continue
        moves = np.ptp(values[mask]) > 1e-9 * np.abs(values[mask]).max()
        told[name] = float(stats.spearmanr(values[mask], ratio[mask]).statistic) if moves else 0.0
    return told


def per_problem(lab: Lab, name: str, eps: float) -> dict[str, float]:
    """`correlations` of one index at one error."""
    ratio = lab.truth(eps)
    return correlations(lab, lab.values(eps)[name], ratio, usable(ratio))


@dataclasses.dataclass(frozen=True)
class Powers:
    """log R = const + a log rho_ng + b log pace + c log eps where stability binds, R in attempts.

    rho_ng, pace, eps   the powers a, b and c with their intervals over families; c is None where there is one error
    explained           the share of the variance of log R that the fit explains
    counted             windows, each error counted
    """

    rho_ng: Estimate
    pace: Estimate
    eps: Estimate | None
    explained: float
    counted: int


def powers(lab: Lab, eps_values, count: int, pace: str = "SAI", only=None) -> Powers | None:
    """Fit the powers, where h_R/h_stab is above 2; theory has a = 1, b = -1, c = 1/4.

    pace   the rate of the solution: "SAI", which feels the origin, or "rate", |f'| / |f|, which does not

    None where windows of fewer than five families are bound.
    """
    rows, family = [], []
    moving = lab.index(pace)
    for eps in eps_values:
        ratio, values = lab.truth(eps, "attempts"), lab.values(eps)
        bound = (values["h_R/h_stab"] > 2.0) & usable(ratio) & (moving > 0.0) & (True if only is None else only)
        for i in np.flatnonzero(bound):
            rows.append([*np.log10([ratio[i], values["rho_ng"][i], moving[i], eps]), lab.weight[i]])
            family.append(lab.family[i])
    names = np.unique(family)
    if len(names) < 5:
        return None
    table = np.array(rows)
    several = len(set(eps_values)) > 1
    value, explained = least_squares(table, several)
    group = np.searchsorted(names, family)
    found = np.array([least_squares(table, several, drawn[group])[0] for drawn in resamples(len(names), count)])
    told = [estimate(value[i], found[:, i]) for i in range(len(value))]
    return Powers(told[0], told[1], told[2] if several else None, explained, len(table))


def least_squares(table, several: bool, drawn=1.0) -> tuple[np.ndarray, float]:
    """Weighted least squares, and the share of variance explained; the slope of eps only where there are several.

    `drawn` says how often each row counts.
    """
    weight = table[:, 4] * drawn
    design = np.column_stack((np.ones(len(table)), table[:, 1 : 4 if several else 3]))
    normal, right = design.T @ (weight[:, None] * design), design.T @ (weight * table[:, 0])
    found = np.linalg.lstsq(normal, right, rcond=None)[0]
    left = np.average((table[:, 0] - design @ found) ** 2, weights=weight)
    mean = np.average(table[:, 0], weights=weight)
    spread = np.average((table[:, 0] - mean) ** 2, weights=weight)
    return found[1:], float(1.0 - left / spread) if spread > 0.0 else float("nan")


def slopes(lab: Lab, loose: float, sharp: float) -> dict[str, tuple[float, int]]:
    """d log R / d log eps between two errors, R in attempts: the median where stability binds, and where it does not.

    Theory has 1/4 for RODAS4 where stability binds, and 1/4 - 1/5 where accuracy limits both methods.
    """
    change = np.log10(lab.truth(loose, "attempts") / lab.truth(sharp, "attempts")) / np.log10(loose / sharp)
    bound = lab.values(sharp)["h_R/h_stab"] > 2.0
    free = lab.values(loose)["h_R/h_stab"] < 0.3
    told = {}
    for name, mask in (("stability binds", bound), ("accuracy limits", free)):
        some = change[mask & np.isfinite(change)]
        told[name] = (float(np.median(some)) if len(some) else float("nan"), len(some))
    return told


def share_that_changes(lab: Lab, loose: float, sharp: float) -> float:
    """The share of windows that are stiff at one error and not at the other, problems counting alike."""
    a, b = lab.truth(loose), lab.truth(sharp)
    known = np.isfinite(a) & np.isfinite(b)
    weight = lab.weight[known]
    return float(weight @ ((a > 1.0) != (b > 1.0))[known] / weight.sum()) if known.any() else float("nan")


def bound_without_damping(lab: Lab, eps: float) -> tuple[int, int, list[str]]:
    """Windows with T s[J] > -1 and R above 2, those with R above 10, and the families of the latter."""
    ratio = lab.truth(eps)
    mild = lab.index("-s[J]") * lab.column("span") < 1.0
    grave = mild & (ratio > 10.0)
    return int((mild & (ratio > 2.0)).sum()), int(grave.sum()), sorted(set(lab.family[grave].tolist()))


def in_random_units(lab: Lab, eps: float, seed: int = 0) -> dict[str, Estimate]:
    """AUC of every index when each problem's time is measured in a unit of its own, and its spread over draws.

    R has no unit. An index that is a rate then ranks problems by their units.
    """
    ratio = lab.truth(eps)
    known = usable(ratio)
    names, number = np.unique(lab.name, return_inverse=True)
    chance = np.random.default_rng(seed)
    units = 10.0 ** chance.uniform(-UNITS, UNITS, (DRAWS, len(names)))
    told = {}
    for name, values in lab.values(eps).items():
        values = np.where(np.isnan(values), -np.inf, values)
        plain = area_under_curve(values[known], ratio[known] > 1.0, lab.weight[known])
        draws = [plain]
        if name in RATES:
            draws = [
                area_under_curve((values * unit[number])[known], ratio[known] > 1.0, lab.weight[known])
                for unit in units
            ]
        told[name] = estimate(np.mean(draws), draws)
    return told


def confusion(lab: Lab, eps: float, name: str, threshold: float) -> dict[str, tuple[int, int, int, int]]:
    """By family: windows stiff and called so, stiff and missed, called stiff and not, neither."""
    ratio, values = lab.truth(eps), lab.values(eps)[name]
    known = usable(ratio)
    told = {}
    for family in dict.fromkeys(lab.family.tolist()):
        mask = known & (lab.family == family)
        stiff, called = ratio[mask] > 1.0, values[mask] > threshold
        pairs = ((True, True), (True, False), (False, True), (False, False))
        counts = tuple(int(((stiff == a) & (called == b)).sum()) for a, b in pairs)
        told[family] = (counts[0], counts[1], counts[2], counts[3])
    return told


def grave_mistakes(lab: Lab, eps: float, name: str, threshold: float) -> tuple[list[str], list[str]]:
    """Problems with windows that an index calls stiff and R < 1/2, and the other way round with R > 2."""
    ratio, values = lab.truth(eps), lab.values(eps)[name]
    called = values > threshold
    needless, missed = (
        list(dict.fromkeys(lab.name[w].tolist())) for w in (called & (ratio < 0.5), ~called & (ratio > 2.0))
    )
    return needless, missed
