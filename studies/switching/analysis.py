"""How well an index ranks windows, the powers behind the ratio of costs, and what does not change with units."""

import dataclasses

import numpy as np

from studies.lab.statistics import Estimate, estimate
from studies.lab.verdicts import corrected
from studies.switching.areas import area_under_curve, areas_of_resampled_groups
from studies.switching.observations import RATES, Lab, beyond, usable

UNITS = 9.0  # decades of units of time on either side of one
DRAWS = 100  # of random units


@dataclasses.dataclass(frozen=True)
class Ranking:
    """How well an index ranks windows at one error.

    auc      the chance that a stiff window has the larger value, ties half, with its interval over families
    within   the median over problems of the rank correlation with R, with its interval over families
    counted  how many problems that median is over
    """

    auc: Estimate
    within: Estimate
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
        auc = estimate(area_under_curve(values[known], stiff, weight), draws, n=len(families))
        told[name] = Ranking(auc, *within_problems(lab, values, ratio, known, families, counts))
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


def within_problems(lab: Lab, values, ratio, known, families, counts) -> tuple[Estimate, int]:
    """The median rank correlation of an index with R over problems whose R spans a factor of three.

    families  their names, and how often each was drawn in every resample, `counts` (resamples, families)
    """
    found = correlations(lab, values, ratio, known)
    if not found:
        return estimate(float("nan"), []), 0
    family = dict(zip(lab.name.tolist(), lab.family.tolist(), strict=True))
    order = sorted(found, key=found.__getitem__)
    drawn = counts[:, np.searchsorted(families, [family[name] for name in order])]
    middle = medians(np.array([found[name] for name in order]), drawn)
    return estimate(np.median(list(found.values())), middle, n=len({family[name] for name in order})), len(found)


def medians(values, counts) -> np.ndarray:
    """The median of sorted values, each as often as a row of `counts` (rows, values) says; NaN for none at all."""
    reached = np.cumsum(counts, axis=1)
    half = 0.5 * reached[:, -1:]
    lower, upper = (below.sum(axis=1).clip(max=len(values) - 1) for below in (reached < half, reached <= half))
    return np.where(half[:, 0] > 0.0, 0.5 * (values[lower] + values[upper]), np.nan)


def correlations(lab: Lab, values, ratio, known) -> dict[str, float]:
    """The rank correlation of an index with R within each problem whose R spans a factor of three."""
    mask = known & np.isfinite(values)
    names, number = np.unique(lab.name[mask], return_inverse=True)
    if not len(names):
        return {}
    values, logs, count = values[mask], np.log(ratio[mask]), np.bincount(number)
    spread = largest(logs, number) + largest(-logs, number)
    moves = largest(values, number) + largest(-values, number) > 1e-9 * largest(np.abs(values), number)
    ranks = [ranks_within(column, number) for column in (values, logs)]
    ranks = [column - np.bincount(number, column)[number] / count[number] for column in ranks]
    products = np.bincount(number, ranks[0] * ranks[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        told = products / np.sqrt(np.prod([np.bincount(number, column**2) for column in ranks], axis=0))
    asked = (count >= 6) & (spread > np.log(3.0))
    by_name = {str(names[i]): float(told[i]) if moves[i] else 0.0 for i in np.flatnonzero(asked)}
    return {name: by_name[name] for name in dict.fromkeys(lab.name.tolist()) if name in by_name}


def largest(values, number) -> np.ndarray:
    """The largest value of each group."""
    found = np.full(number.max() + 1, -np.inf)
    np.maximum.at(found, number, values)
    return found


def ranks_within(values, number) -> np.ndarray:
    """The rank of each value within its group, ties sharing the mean of their ranks."""
    order = np.lexsort((values, number))
    ranked, of = values[order], number[order]
    first = np.r_[True, (ranked[1:] != ranked[:-1]) | (of[1:] != of[:-1])]
    run = np.cumsum(first) - 1
    position = np.arange(len(values))
    shared = np.bincount(run, position) / np.bincount(run)
    ranks = np.empty(len(values))
    ranks[order] = shared[run] - np.searchsorted(of, of)
    return ranks


def per_problem(lab: Lab, name: str, eps: float) -> dict[str, float]:
    """`correlations` of one index at one error."""
    ratio = lab.truth(eps)
    return correlations(lab, lab.values(eps)[name], ratio, usable(ratio))


@dataclasses.dataclass(frozen=True)
class Powers:
    """log R = const + a log rho_ng + b log pace + c log eps where stability binds, R in attempts.

    rho_ng, pace, eps   the powers a, b and c; their intervals over families hold together; c is None where there is one
                        error
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
    moving, several, parts = lab.index(pace), len(set(eps_values)) > 1, []
    for eps in eps_values:
        ratio, values = lab.truth(eps, "attempts"), lab.values(eps)
        bound = (values["h_R/h_stab"] > 2.0) & usable(ratio) & (moving > 0.0) & (True if only is None else only)
        rows = np.log10([ratio[bound], values["rho_ng"][bound], moving[bound], np.full(bound.sum(), eps)]).T
        parts.append((rows, lab.weight[bound], lab.family[bound]))
    table, weight, family = (np.concatenate(column) for column in zip(*parts, strict=True))
    names, group = np.unique(family, return_inverse=True)
    if len(names) < 5:
        return None
    design, right = np.column_stack((np.ones(len(table)), table[:, 1 : 4 if several else 3])), table[:, 0]
    normal, sums = (np.zeros((len(names), *shape)) for shape in ((design.shape[1],) * 2, design.shape[1:]))
    np.add.at(normal, group, weight[:, None, None] * design[:, :, None] * design[:, None, :])
    np.add.at(sums, group, weight[:, None] * design * right[:, None])
    drawn = np.vstack((np.ones(len(names)), resamples(len(names), count)))
    found = np.einsum("rij,rj->ri", np.linalg.pinv(np.tensordot(drawn, normal, 1), hermitian=True), drawn @ sums)
    left = np.average((right - design @ found[0]) ** 2, weights=weight)
    spread = np.average((right - np.average(right, weights=weight)) ** 2, weights=weight)
    told = [
        estimate(found[0, i], found[1:, i], corrected(design.shape[1] - 1), len(names))
        for i in range(1, design.shape[1])
    ]
    explained = float(1.0 - left / spread) if spread > 0.0 else float("nan")
    return Powers(told[0], told[1], told[2] if several else None, explained, len(table))


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


def share_that_changes(lab: Lab, loose: float, sharp: float, count: int) -> Estimate:
    """The share of windows that are stiff at one error and not at the other, problems counting alike.

    The interval is over `count` resamples of the families.
    """
    a, b = lab.truth(loose), lab.truth(sharp)
    known = np.isfinite(a) & np.isfinite(b)
    if not known.any():
        return estimate(float("nan"), [])
    names, group = np.unique(lab.family[known], return_inverse=True)
    weight = lab.weight[known]
    changed = np.bincount(group, weight * ((a > 1.0) != (b > 1.0))[known])
    whole, drawn = np.bincount(group, weight), resamples(len(names), count)
    return estimate(changed.sum() / whole.sum(), (drawn @ changed) / (drawn @ whole), n=len(names))


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
