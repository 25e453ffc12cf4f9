"""What claims are judged by: windows as columns of costs and indices, how well an index ranks them, and powers of R.

`Windows` makes R and every index of what `runs` stored; `rankings` and `powers` say what an index is worth, with
intervals over families; `Evidence` holds what exhibits take. `MadeUp` windows have R and indices that are given: the
worlds in which rules are tried.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import odelab as ol
from odelab.experiments import least_cost
from studies.lab.statistics import Estimate, draw_counts, estimate, interval_text
from studies.lab.verdicts import (
    SUPPORTED,
    UNDECIDED,
    Rule,
    Verdict,
    Worlds,
    corrected,
    enough,
    of_closeness,
    of_strength,
    rule,
)
from studies.switching.runs import GROUP_OF, ROLES, YOURS, Preset, index_of

EXTENDED = 0.1  # of the tolerance: the error assumed for a run that was given up and whose cost was extended
DOUBTED = 0.1  # of the error asked for: where exact states are doubted by more, R is not known
REACHED = 0.3  # of the relative tolerance: the error that a run typically has at the end of a window
LINES = 5  # evaluations that the Jacobian of a system by lines costs: as many as it has colours
FEWEST_FAMILIES = 10
EXPONENTS = {"rho_ng": 1.0, "SAI": -1.0, "eps": 0.25}  # of R where stability binds, by theory
BANDS = "errors and bands"
OPEN = "Where one error decides and another one leaves the claim open, it is open; before, it depended on the tolerance"


@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """All windows of all problems, as columns.

    problems   what `runs.measure` or `dependence.measure_systems` gave, one per problem
    own        names of a user's own indices
    """

    problems: list
    own: tuple[str, ...] = ()
    costs: dict = dataclasses.field(default_factory=dict, repr=False)  # those computed so far

    @functools.cached_property
    def rows(self) -> list[dict]:
        return [window for problem in self.problems for window in problem["windows"]]

    def column(self, key) -> np.ndarray:
        """A number or word of the problem of each window."""
        return np.array([problem[key] for problem in self.problems for _ in problem["windows"]])

    def index(self, key, when: str = "indices") -> np.ndarray:
        return np.array([row[when][key] for row in self.rows], dtype=float)

    @functools.cached_property
    def groups(self) -> dict[str, str]:
        """Every index with its group, a user's own behind the others."""
        return GROUP_OF | dict.fromkeys(self.own, YOURS)

    @functools.cached_property
    def name(self) -> np.ndarray:
        return self.column("name")

    @functools.cached_property
    def family(self) -> np.ndarray:
        return self.column("family")

    @functools.cached_property
    def family_of(self) -> dict[str, str]:
        """The family of each problem, by its name."""
        return dict(zip(self.name.tolist(), self.family.tolist(), strict=True))

    @functools.cached_property
    def weight(self) -> np.ndarray:
        """The weight of each window: those of one problem add up to one."""
        return np.array([1.0 / len(problem["windows"]) for problem in self.problems for _ in problem["windows"]])

    @functools.cached_property
    def doubt(self) -> np.ndarray:
        """By how much exact states differ from those of another method; NaN where there is nothing to compare."""
        return np.array([row.get("doubt", np.nan) for row in self.rows])

    @functools.cached_property
    def length(self) -> np.ndarray:
        return np.array([row["end"] - row["start"] for row in self.rows])

    @functools.cached_property
    def ladders(self) -> list[np.ndarray]:
        """The tolerances that each window was run at."""
        return [np.array(problem["tolerances"]) for problem in self.problems for _ in problem["windows"]]

    def rungs(self, tolerance: float) -> list[int]:
        """On the ladder of each window the place of the nearest tolerance."""
        return [int(np.argmin(np.abs(np.log(ladder) - np.log(tolerance)))) for ladder in self.ladders]

    def attempt(self, role: str, unit: str = "evaluations") -> np.ndarray:
        """The cost of an accepted attempt: evaluations of the stages, and of the Jacobian, or another unit."""
        return np.array([sum(weights_of(problem, role, unit)) for problem in self.problems for _ in problem["windows"]])

    def cost(self, role: str, eps: float, unit: str = "evaluations") -> np.ndarray:
        """The least cost of an error on each window, in a unit that `weights_of` knows."""
        if (role, eps, unit) not in self.costs:
            self.costs[role, eps, unit] = np.array([
                least_cost(np.where(row[role]["censored"], EXTENDED * ladder, row[role]["error"]), costs, eps)
                for ladder, row, costs in zip(self.ladders, self.rows, self.costs_of_runs(role, unit), strict=True)
            ])  # fmt: skip
        return self.costs[role, eps, unit]

    def costs_of_runs(self, role: str, unit: str = "evaluations") -> list[np.ndarray]:
        """What every run of the ladder cost on each window; infinite where a run failed."""
        costs = []
        for problem in self.problems:
            of_attempt, of_state = weights_of(problem, role, unit)
            for window in problem["windows"]:
                attempts, rejected = (np.array(window[role][key], dtype=float) for key in ("attempts", "rejected"))
                accepted = np.where(np.isfinite(attempts), 1.0 - rejected, 1.0)
                costs.append(attempts * (of_attempt + of_state * accepted))
        return costs

    def ratio(self, eps: float, unit: str = "evaluations") -> np.ndarray:
        """R: what the explicit method costs over what the implicit one does, at an error of at most eps."""
        ratio = self.cost("explicit", eps, unit) / self.cost("implicit", eps, unit)
        return np.where(self.doubt > DOUBTED * eps, np.nan, ratio)

    def ratio_at_tolerance(self, tolerance: float) -> np.ndarray:
        """R at equal tolerance instead of equal error, in evaluations."""
        explicit, implicit = (
            np.array([costs[i] for costs, i in zip(self.costs_of_runs(role), self.rungs(tolerance), strict=True)])
            for role in ROLES
        )
        return np.where(np.isfinite(explicit), explicit / implicit, np.nan)

    def of_runs(self, role: str, key: str, eps: float) -> np.ndarray:
        """A measured number of the run whose tolerance typically gives the error eps."""
        places = self.rungs(eps / REACHED)
        return np.array([row[role][key][i] for row, i in zip(self.rows, places, strict=True)], dtype=float)

    def values(self, eps: float) -> dict[str, np.ndarray]:
        """Every index on every window; where the tolerance enters, at this error."""
        sai, stable, radius = self.index("SAI"), self.index("h_stab"), self.index("rho_ng")
        with np.errstate(all="ignore"):
            si = np.maximum(self.index("SI"), np.finfo(float).eps * self.index("|J|_2"))
            tolerance = eps * REACHED
            orders = (self.problems[0]["order"], 3)  # the former is the explicit method's own
            h_acc, h_acc3 = (np.array([ol.accuracy_step(d, tolerance, k) for d in self.index(f"u{k}")]) for k in orders)
            h_r = self.length / self.of_runs("implicit", "attempts", eps)
            h_e = self.length / self.of_runs("explicit", "attempts", eps)
            columns = {name: self.index(name) for name in GROUP_OF if name in self.rows[0]["indices"]}
            columns |= {
                "-m_2": -self.index("m_2"),
                "-T s[J]": self.index("-s[J]") * self.column("span"),
                "SI x span": self.index("SI") * self.column("span"),
                "SI/SAI": si / sai,
                "rho_ng/SAI": radius / sai,
                "|J|_2/SAI": self.index("|J|_2") / sai,
                "-s[J]/SAI": self.index("-s[J]") / sai,
                "rho_ng |f|/|f'|": radius / self.index("rate"),
                "tol^(1/5) rho_ng/SAI": tolerance**0.2 * radius / sai,
                "h_acc rho_ng": h_acc * radius,
                "h_acc/h_stab": h_acc / stable,
                "h_acc(u3)/h_stab": h_acc3 / stable,
                "h_acc/h_power": h_acc / self.index("h_power"),
                "h_R rho_ng": h_r * radius,
                "h_R/h_stab": h_r / stable,
                "LSODA: h_R/min(h_acc, h_stab)": h_r / np.minimum(h_acc, stable),
                "h_E rho_ng": h_e * radius,
                "Hairer-Wanner: h rho > boundary": self.of_runs("explicit", "flagged", eps),
                "Julia: h rho > 0.9 boundary": self.of_runs("explicit", "near", eps),
                "rejections": self.of_runs("explicit", "rejected", eps),
                "trial: h_R/h_E": h_r / h_e,
            }
        columns |= {name: self.index(index_of(name, eps)) for name in self.own}
        return {name: columns[name] for name in self.groups}

    def early(self) -> dict[str, np.ndarray]:
        """Indices at the start of each window alone, which a run can know before it goes through."""
        sai, radius = self.index("SAI", "early"), self.index("rho_ng", "early")
        with np.errstate(all="ignore"):
            moving = {"rho_ng/SAI": radius / sai, "rho_ng |f|/|f'|": radius / self.index("rate", "early")}
        return moving | {"rho_ng": radius, "SAI": sai}

    def with_windows(self, chosen: Callable[[dict], list]) -> "Windows":
        """The same problems with other windows: chosen(problem) gives those of a problem, none of which drops it."""
        changed = [problem | {"windows": chosen(problem)} for problem in self.problems]
        return Windows([problem for problem in changed if problem["windows"]], self.own)


def weights_of(problem: dict, role: str, unit: str = "evaluations") -> tuple[float, float]:
    """What an attempt costs, and what every state beside that is kept: after a rejection, what is known there serves.

    unit   "attempts"; "evaluations", with as many for a Jacobian as it has colours; "parts", in evaluations too, with
           Jacobians, factors and solutions counted as the evaluations that take as long; or "seconds"
    """
    of_attempt, of_state = problem["work"][role]
    if unit == "attempts":
        return 1.0, 0.0
    if unit == "seconds":
        return problem["seconds"][role], 0.0
    if role == "explicit":
        return of_attempt, of_state
    if unit == "evaluations":
        return of_attempt, of_state + colours_of(problem)
    parts, stages = problem["parts"], of_attempt + of_state  # a linearly implicit method solves once a stage
    algebra = parts["factorisation"] + stages * parts["solve"]
    return of_attempt + algebra / parts["evaluation"], of_state + parts["jacobian"] / parts["evaluation"]


def colours_of(problem: dict) -> int:
    """The evaluations that a Jacobian counts as."""
    return min(LINES, problem["n"]) if problem["by_lines"] else problem["n"]


def usable(ratio) -> np.ndarray:
    """Windows on which both methods reached the error."""
    return np.isfinite(ratio) & (ratio > 0.0)


def clear(ratio, factor: float = 2.0) -> np.ndarray:
    """Windows whose class is beyond doubt: one method costs more than `factor` times the other."""
    with np.errstate(all="ignore"):
        return np.abs(np.log(ratio)) > np.log(factor)


def nan_lowest(values) -> np.ndarray:
    """The values with NaN ranked below all others."""
    return np.where(np.isnan(values), -np.inf, values)


# ---- Areas under the curve: how well an index tells windows of one kind from those of the other ----


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


def area(values, positive, weights, group, counts) -> Estimate:
    """The area under the curve with its interval over groups, NaN ranked lowest; as `areas_of_resampled_groups`."""
    values = nan_lowest(values)
    draws = areas_of_resampled_groups(values, positive, weights, group, counts)
    return estimate(area_under_curve(values, positive, weights), draws, n=counts.shape[1])


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


Rankings = dict[float, dict[str, Ranking]]  # by error and index


def rankings(
    windows: Windows, eps: float, count: int, only=True, band: bool = False, names: Sequence[str] = ()
) -> dict[str, Ranking]:
    """Of every index, or of those of these names.

    count  resamples of the families
    only   a mask of the windows that count; all by default
    band   whether only windows beyond a factor of two count
    """
    ratio = windows.ratio(eps)
    counted = usable(ratio) & only
    counted = counted & clear(ratio) if band else counted
    families, group = np.unique(windows.family, return_inverse=True)
    counts = draw_counts(len(families), count)
    stiff, weight, group = (ratio > 1.0)[counted], windows.weight[counted], group[counted]
    return {
        name: Ranking(
            area(values[counted], stiff, weight, group, counts),
            *within_problems(windows, nan_lowest(values), ratio, counted, families, counts),
        )
        for name, values in windows.values(eps).items()
        if not names or name in names
    }


def over_all_errors(windows: Windows, eps_values, count: int) -> dict[str, Estimate]:
    """The area under the curve of every index with the windows of all errors together: one threshold has to serve."""
    families, group = np.unique(windows.family, return_inverse=True)
    counts, columns = draw_counts(len(families), count), {eps: windows.values(eps) for eps in eps_values}
    reached = {eps: usable(windows.ratio(eps)) for eps in eps_values}

    def together(column_of) -> np.ndarray:
        return np.concatenate([column_of(eps)[reached[eps]] for eps in eps_values])

    stiff, weight = together(lambda eps: windows.ratio(eps) > 1.0), together(lambda eps: windows.weight)
    group = together(lambda eps, group=group: group)
    return {
        name: area(together(lambda eps, name=name: columns[eps][name]), stiff, weight, group, counts)
        for name in windows.groups
    }


def within_problems(windows: Windows, values, ratio, counted, families, counts) -> tuple[Estimate, int]:
    """The median rank correlation of an index with R over problems whose R spans a factor of three.

    families  their names, and how often each was drawn in every resample, `counts` (resamples, families)
    """
    by_name = correlations(windows, values, ratio, counted)
    if not by_name:
        return estimate(float("nan"), []), 0
    order = sorted(by_name, key=by_name.__getitem__)
    family = [windows.family_of[name] for name in order]
    draws = medians(np.array([by_name[name] for name in order]), counts[:, np.searchsorted(families, family)])
    return estimate(np.median(list(by_name.values())), draws, n=len(set(family))), len(order)


def medians(values, counts) -> np.ndarray:
    """The median of sorted values, each as often as a row of `counts` (rows, values) says; NaN for none at all."""
    reached = np.cumsum(counts, axis=1)
    half = 0.5 * reached[:, -1:]
    lower, upper = (below.sum(axis=1).clip(max=len(values) - 1) for below in (reached < half, reached <= half))
    return np.where(half[:, 0] > 0.0, 0.5 * (values[lower] + values[upper]), np.nan)


def correlations(windows: Windows, values, ratio, counted) -> dict[str, float]:
    """The rank correlation of an index with R within each problem whose R spans a factor of three."""
    mask = counted & np.isfinite(values)
    names, number = np.unique(windows.name[mask], return_inverse=True)
    if not len(names):
        return {}
    values, logs, count = values[mask], np.log(ratio[mask]), np.bincount(number)

    def largest(column) -> np.ndarray:
        """The largest value of each problem."""
        most = np.full(len(names), -np.inf)
        np.maximum.at(most, number, column)
        return most

    spread = largest(logs) + largest(-logs)
    moves = largest(values) + largest(-values) > 1e-9 * largest(np.abs(values))
    ranks = [ranks_within(column, number) for column in (values, logs)]
    ranks = [column - np.bincount(number, column)[number] / count[number] for column in ranks]
    products = np.bincount(number, ranks[0] * ranks[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = products / np.sqrt(np.prod([np.bincount(number, column**2) for column in ranks], axis=0))
    asked = (count >= 6) & (spread > np.log(3.0))
    by_name = {str(names[i]): float(rho[i]) if moves[i] else 0.0 for i in np.flatnonzero(asked)}
    return {name: by_name[name] for name in windows.family_of if name in by_name}


def ranks_within(values, number) -> np.ndarray:
    """The rank of each value within its group, ties sharing the mean of their ranks."""
    order = np.lexsort((values, number))
    ranked, of = values[order], number[order]
    first = np.r_[True, (ranked[1:] != ranked[:-1]) | (of[1:] != of[:-1])]
    tie = np.cumsum(first) - 1
    shared = np.bincount(tie, np.arange(len(values))) / np.bincount(tie)
    ranks = np.empty(len(values))
    ranks[order] = shared[tie] - np.searchsorted(of, of)
    return ranks


# ---- The powers behind R ----


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

    @property
    def by_name(self) -> dict[str, Estimate]:
        """The powers of the spectral radius, of SAI and, where there are several errors, of the error."""
        return {"rho_ng": self.rho_ng, "SAI": self.pace} | ({} if self.eps is None else {"eps": self.eps})

    def __str__(self):
        return ", ".join(f"{name} {interval_text(e, '+.2f')}" for name, e in self.by_name.items())


def powers(windows: Windows, eps_values, count: int, pace: str = "SAI", only=True) -> Powers | None:
    """Fit the powers, where h_R/h_stab is above 2; theory has a = 1, b = -1, c = 1/4.

    count  resamples of the families
    pace   the rate of the solution: "SAI", which feels the origin, or "rate", |f'| / |f|, which does not
    only   a mask of the windows that count; all by default

    None where windows of fewer than five families are bound.
    """
    moving, several, parts = windows.index(pace), len(set(eps_values)) > 1, []
    for eps in eps_values:
        ratio, values = windows.ratio(eps, "attempts"), windows.values(eps)
        bound = (values["h_R/h_stab"] > 2.0) & usable(ratio) & (moving > 0.0) & only
        rows = np.log10([ratio[bound], values["rho_ng"][bound], moving[bound], np.full(bound.sum(), eps)]).T
        parts.append((rows, windows.weight[bound], windows.family[bound]))
    table, weight, family = (np.concatenate(column) for column in zip(*parts, strict=True))
    names, group = np.unique(family, return_inverse=True)
    if len(names) < 5:
        return None
    design, right = np.column_stack((np.ones(len(table)), table[:, 1 : 4 if several else 3])), table[:, 0]
    normal, sums = (np.zeros((len(names), *shape)) for shape in ((design.shape[1],) * 2, design.shape[1:]))
    np.add.at(normal, group, weight[:, None, None] * design[:, :, None] * design[:, None, :])
    np.add.at(sums, group, weight[:, None] * design * right[:, None])
    drawn = np.vstack((np.ones(len(names)), draw_counts(len(names), count)))
    fits = np.einsum("rij,rj->ri", np.linalg.pinv(np.tensordot(drawn, normal, 1), hermitian=True), drawn @ sums)
    left = np.average((right - design @ fits[0]) ** 2, weights=weight)
    spread = np.average((right - np.average(right, weights=weight)) ** 2, weights=weight)
    level = corrected(design.shape[1] - 1)
    a, b, *c = (estimate(fits[0, i], fits[1:, i], level, len(names)) for i in range(1, design.shape[1]))
    explained = float(1.0 - left / spread) if spread > 0.0 else float("nan")
    return Powers(a, b, c[0] if c else None, explained, len(table))


# ---- What exhibits take, and what their judges share ----


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What the study shows and judges.

    windows     of the problems, and `systems`, forced ones with one window each
    preset      how much was measured
    pair        the names of both methods
    everywhere  how well every index ranks all windows, and `clear`, those beyond a factor of two, at each error
    powers      of R over the windows; None where too few are bound by stability
    policies    what choosing by an index costs, by error and policy, as `switches.policies` says it
    timed       the same in seconds; empty where attempts were not timed
    planes      of forced systems, and `shear`, systems further and further from normal; see `dependence`
    run         one run told, see `switches.OneRun`
    blocks      of networks, a row per block and image
    unavailable data sets of networks that are not here and cannot be had
    """

    windows: Windows
    systems: Windows
    preset: Preset
    pair: tuple[str, str]
    everywhere: Rankings
    clear: Rankings
    powers: Powers | None
    policies: Mapping[float, Mapping[str, Any]]
    timed: Mapping[float, Mapping[str, Any]]
    planes: Sequence[Any] = ()
    shear: Any = None
    run: Any = None
    blocks: Sequence[dict] = ()
    unavailable: Sequence[str] = ()

    @property
    def families(self) -> list[str]:
        """The family of every window."""
        return self.windows.family.tolist()

    @property
    def middle(self) -> float:
        """The error at which figures show one."""
        return min(self.preset.eps, key=lambda eps: abs(np.log(eps / 1e-4)))


def of_families(families: Sequence[str], verdict: Verdict, words: str) -> tuple[Verdict, str]:
    """The verdict and its words; too few families decide nothing."""
    few = enough({"the windows": sorted(set(families))}, FEWEST_FAMILIES, "families")
    return (UNDECIDED, few + words) if few else (verdict, words)


def at_each(estimates: Mapping[float, Estimate], form=".2f") -> str:
    """ "1e-04: 0.35 [0.25, 0.44]; ..." """
    return "; ".join(f"{eps:.0e}: {interval_text(e, form)}" for eps, e in estimates.items())


def areas(by_error: Rankings, name: str) -> dict[float, Estimate]:
    """The area under the curve of an index at each error."""
    return {eps: table[name].auc for eps, table in by_error.items()}


def power_of_ten(eps: float) -> str:
    return f"$10^{{{round(np.log10(eps))}}}$"


def rule_over_families(
    claim: str, where: str, worlds: Callable, effect: str, fixed: str, n: int = 34, units: str = "families", **fields
) -> Callable[[Callable], Rule]:
    """`verdicts.rule` with what the rules of this study share.

    worlds, effect, n, units   of the made-up worlds, as `verdicts.Worlds` takes them
    fixed                      what has changed in the rule since the data were seen
    """
    made = Worlds(worlds, n=n, units=units, effect=effect)
    before = f"before the data, but for what follows. {fixed}"
    return rule(claim, where, fixed=before, fewest=FEWEST_FAMILIES, worlds=made, **fields)


def together(e: Estimate, asked: int) -> Estimate:
    """The estimate with an interval that holds together with those of `asked - 1` others."""
    return estimate(e.value, e.draws, corrected(asked), e.n)


def only_support(verdict: Verdict) -> Verdict:
    """For a part of a claim that it cannot do without, and by which alone it does not fall."""
    return verdict if verdict == SUPPORTED else UNDECIDED


def of_exponent(e: Estimate, theory: float) -> Verdict:
    """Whether an exponent is that of theory to within a half of it: none or the other sign is not."""
    sign, half = int(math.copysign(1, theory)), abs(theory) / 2
    strong = of_strength(e, half, sign, negligible=half)
    return strong if strong != SUPPORTED else only_support(of_closeness(e, theory, half))


# ---- Made-up windows in families: nothing there, or the claim true in the size that it names ----
#
# Without an effect the ratios R of one family belong to the indices of another one, windows of a family staying
# together, so that an index knows nothing of R and windows of a family are as alike as before. Where a claim is that
# something is small, or a sentence with "only", worlds without an effect lie between the two thresholds of its rule
# instead; where it is that one index is better than another, both are equally good.

ERRORS = (1e-3, 1e-6)
WINDOWS = 8  # of a family, which is one problem here
RESAMPLES = 100
FAMILY, WINDOW = 1.0, 0.8  # deviations of log10 R between families, and between the windows of one
NOISE = 0.1  # of log10 R from error to error


@functools.cache
def made_up_families(n: int, windows: int = WINDOWS) -> np.ndarray:
    """The family of every window."""
    return np.repeat([f"family {number:03d}" for number in range(n)], windows)


class MadeUp(Windows):
    """Windows of which R and the indices are given, in place of problems that were measured.

    ratios   {error: R}
    columns  {index: its values}, the same at every error
    family   of every window
    """

    ratios: dict[float, np.ndarray]
    columns: dict[str, np.ndarray]

    def __init__(self, ratios: dict[float, np.ndarray], columns: dict[str, np.ndarray], family: np.ndarray):
        super().__init__([])
        about = {"name": family, "family": family, "weight": np.ones(len(family))}
        self.__dict__.update(about, ratios=ratios, columns=columns)

    @classmethod
    def of(cls, chance, logs, effect: float, logarithms: dict[str, np.ndarray], slope: float = 0.0) -> "MadeUp":
        """Windows with these log10 R, (families, windows), and indices that are ten to the power of these numbers.

        effect   0: every family has the R of another one; -1: R is large where it would have been small
        slope    the power of the error by which R goes
        """
        logs = effect * logs if effect else logs[chance.permutation(len(logs))]
        ratios = {eps: 10.0 ** (logs + chance.normal(0.0, NOISE, logs.shape)).ravel() * eps**slope for eps in ERRORS}
        columns = {name: 10.0 ** column.ravel() for name, column in logarithms.items()}
        return cls(ratios, columns, made_up_families(*logs.shape))

    def ratio(self, eps: float, unit: str = "evaluations") -> np.ndarray:
        return self.ratios[eps]

    def values(self, eps: float) -> dict[str, np.ndarray]:
        return self.columns

    def index(self, key, when: str = "indices") -> np.ndarray:
        return self.columns[key]

    def column(self, key) -> Any:
        return np.ones(len(self.family))

    def ranked(self) -> tuple:
        """The rankings of all windows, those of the windows beyond a factor of two, and the families."""
        names = tuple(self.columns)
        everywhere, far = (
            {eps: rankings(self, eps, RESAMPLES, band=band, names=names) for eps in ERRORS[:1]}
            for band in (False, True)
        )
        return everywhere, far, self.family


def spread(chance, n: int, between: float = FAMILY, within: float = WINDOW, windows: int = WINDOWS) -> np.ndarray:
    """Numbers that differ between families and within them, (families, windows)."""
    return chance.normal(0.0, between, (n, 1)) + chance.normal(0.0, within, (n, windows))


def made_up_powers(chance, effect: float, n: int, pace: float) -> tuple[Powers | None, np.ndarray]:
    """Powers over windows that stability binds, R being powers of the radius, SAI and the error, and the families."""
    radius, sai = spread(chance, n), spread(chance, n)
    logs = radius + pace * sai + spread(chance, n, 0.3, 0.3)
    columns = {"rho_ng": radius, "SAI": sai, "h_R/h_stab": np.full(logs.shape, 1.0)}
    windows = MadeUp.of(chance, logs, effect, columns, EXPONENTS["eps"])
    return powers(windows, ERRORS, RESAMPLES), windows.family
