"""Costs at equal error, how well an index ranks them, the powers behind them, and what switching by an index costs."""

import dataclasses
import functools

import numpy as np
from scipy import stats

import odelab as ol
from odelab.experiments import least_cost
from studies.lab.statistics import Estimate, area_under_curve, estimate
from studies.switching.design import LINES

EXPLICIT_STAGES = 6  # evaluations of an attempt of DOPRI5 and RKF45, and those of an implicit attempt of RODAS4
EXTENDED = 0.1  # of the tolerance: the error assumed for a run that was given up and whose cost was extended
REACHED = 0.3  # of the relative tolerance: the error that a run typically has at the end of a window
INDICES = {  # name in figures: the group it belongs to
    "SI": "problem",
    "rho": "problem",
    "rho_ng": "problem",
    "|J|_2": "problem",
    "mu_2": "problem",
    "-s[J]": "problem",
    "-T s[J]": "problem",
    "max/min |Re|": "problem",
    "SAI": "solution",
    "simplified SAI": "solution",
    "SI/SAI": "ratio",
    "rho_ng/SAI": "ratio",
    "rho_ng |f|/|f'|": "ratio",
    "h_acc/h_stab": "with tolerance",
    "h_acc/h_power": "with tolerance",
    "h_R/h_stab": "with tolerance",
    "h_E rho_ng": "of the run",
    "h rho above the boundary": "of the run",
    "rejections": "of the run",
}
OF_THE_PROBLEM = [name for name, group in INDICES.items() if group == "problem"]


@dataclasses.dataclass(frozen=True, eq=False)
class Lab:
    """All windows of all problems, as columns.

    problems   what `measures.measure` gave, one per problem
    """

    problems: list

    @functools.cached_property
    def windows(self) -> list[dict]:
        return [window for problem in self.problems for window in problem["windows"]]

    def column(self, key) -> np.ndarray:
        """A number or word of the problem of each window."""
        return np.array([problem[key] for problem in self.problems for _ in problem["windows"]])

    def index(self, key) -> np.ndarray:
        return np.array([window["indices"][key] for window in self.windows], dtype=float)

    @functools.cached_property
    def name(self) -> np.ndarray:
        return self.column("name")

    @functools.cached_property
    def family(self) -> np.ndarray:
        return self.column("family")

    @functools.cached_property
    def weight(self) -> np.ndarray:
        """The weight of each window: those of one problem add up to one."""
        return np.array([1.0 / len(problem["windows"]) for problem in self.problems for _ in problem["windows"]])

    @functools.cached_property
    def length(self) -> np.ndarray:
        return np.array([window["end"] - window["start"] for window in self.windows])

    @functools.cached_property
    def ladders(self) -> list[np.ndarray]:
        """The tolerances that each window was run at."""
        return [np.array(problem["tolerances"]) for problem in self.problems for _ in problem["windows"]]

    def attempt(self, role: str) -> np.ndarray:
        """Evaluations of an attempt: of the stages, and of the Jacobian, one per colour."""
        colours = np.where(self.column("by_lines"), LINES, self.column("n"))
        return EXPLICIT_STAGES + np.minimum(colours, self.column("n")) * (role == "implicit")

    def cost(self, role: str, eps: float, unit: str = "evaluations") -> np.ndarray:
        """The least cost of an error on each window, in evaluations or attempts."""
        found = [
            least_cost(np.where(w[role]["censored"], EXTENDED * ladder, w[role]["error"]), w[role]["attempts"], eps)
            for ladder, w in zip(self.ladders, self.windows, strict=True)
        ]
        return np.array(found) * (self.attempt(role) if unit == "evaluations" else 1)

    def truth(self, eps: float, unit: str = "evaluations") -> np.ndarray:
        """R: what the explicit method costs over what the implicit one does, at an error of at most eps."""
        return self.cost("explicit", eps, unit) / self.cost("implicit", eps, unit)

    def at_tolerance(self, role: str, key: str, eps: float) -> np.ndarray:
        """A measured number of the run whose tolerance typically gives the error eps."""
        wanted = np.log(eps / REACHED)
        place = [int(np.argmin(np.abs(np.log(ladder) - wanted))) for ladder in self.ladders]
        return np.array([w[role][key][i] for w, i in zip(self.windows, place, strict=True)], dtype=float)

    def values(self, eps: float) -> dict[str, np.ndarray]:
        """Every index on every window; where the tolerance enters, at this error."""
        sai, stable, radius = self.index("SAI"), self.index("h_stab"), self.index("rho_ng")
        with np.errstate(all="ignore"):
            si = np.maximum(self.index("SI"), np.finfo(float).eps * self.index("|J|_2"))
            tolerance = eps * REACHED
            h_acc = np.array([ol.accuracy_step(d, tolerance, 5) for d in self.index("u5")])
            h_r = self.length / self.at_tolerance("implicit", "attempts", eps)
            h_e = self.length / self.at_tolerance("explicit", "attempts", eps)
            return {
                **{name: self.index(name) for name in INDICES if name in self.windows[0]["indices"]},
                "-T s[J]": self.index("-s[J]") * self.column("span"),
                "SI/SAI": si / sai,
                "rho_ng/SAI": radius / sai,
                "rho_ng |f|/|f'|": radius / self.index("rate"),
                "h_acc/h_stab": h_acc / stable,
                "h_acc/h_power": h_acc / self.index("h_power"),
                "h_R/h_stab": h_r / stable,
                "h_E rho_ng": h_e * radius,
                "h rho above the boundary": self.at_tolerance("explicit", "flagged", eps),
                "rejections": self.at_tolerance("explicit", "rejected", eps),
            }


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


def resamples(lab: Lab, usable, count: int, seed: int = 0) -> list[np.ndarray]:
    """Windows of families that are drawn with replacement."""
    chance = np.random.default_rng(seed)
    names = np.unique(lab.family)
    places = {name: np.flatnonzero((lab.family == name) & usable) for name in names}
    return [np.concatenate([places[name] for name in chance.choice(names, len(names))]) for _ in range(count)]


def rankings(lab: Lab, eps: float, count: int, only=None) -> dict[str, Ranking]:
    """Of every index; `only` is a mask of the windows that count, all by default."""
    ratio = lab.truth(eps)
    usable = np.isfinite(ratio) & (ratio > 0.0) & (True if only is None else only)
    drawn = resamples(lab, usable, count)
    stiff = ratio > 1.0
    told = {}
    for name, values in lab.values(eps).items():
        values = np.where(np.isnan(values), -np.inf, values)
        draws = [area_under_curve(values[some], stiff[some], lab.weight[some]) for some in drawn]
        value = area_under_curve(values[usable], stiff[usable], lab.weight[usable])
        told[name] = Ranking(estimate(value, draws), *within_problems(lab, values, ratio, usable))
    return told


def within_problems(lab: Lab, values, ratio, usable) -> tuple[float, int]:
    """The median rank correlation of an index with R over problems whose R spans a factor of three."""
    found = []
    for name in np.unique(lab.name):
        mask = (lab.name == name) & usable & np.isfinite(values)
        if mask.sum() < 6 or np.ptp(np.log(ratio[mask])) <= np.log(3.0):
            continue
        moves = np.ptp(values[mask]) > 1e-9 * np.abs(values[mask]).max()
        found.append(float(stats.spearmanr(values[mask], ratio[mask]).statistic) if moves else 0.0)
    return (float(np.median(found)), len(found)) if found else (float("nan"), 0)


def per_problem(lab: Lab, name: str, eps: float) -> dict[str, float]:
    """The rank correlation of an index with R within each problem whose R spans a factor of three."""
    ratio, values = lab.truth(eps), lab.values(eps)[name]
    usable = np.isfinite(ratio) & (ratio > 0.0)
    told = {}
    for problem in dict.fromkeys(lab.name):
        one = usable & (lab.name == problem)
        median, counted = within_problems(lab, values, ratio, one)
        if counted:
            told[problem] = median
    return told


def exponents(lab: Lab, eps_values, count: int) -> dict[str, Estimate] | None:
    """log R = const + a log rho_ng + b log SAI + c log eps where stability binds (h_R/h_stab above 2).

    Theory has a = 1, b = -1, c = 1/4. None where too few windows are bound.
    """
    rows, families = [], []
    for eps in eps_values:
        ratio, values = lab.truth(eps, "attempts"), lab.values(eps)
        bound = (values["h_R/h_stab"] > 2.0) & np.isfinite(ratio) & (ratio > 0.0) & (values["SAI"] > 0.0)
        for i in np.flatnonzero(bound):
            logs = np.log10([ratio[i], values["rho_ng"][i], values["SAI"][i], eps])
            rows.append([*logs, lab.weight[i]])
            families.append(lab.family[i])
    if len(set(families)) < 5:
        return None
    table, families = np.array(rows), np.array(families)
    chance, names = np.random.default_rng(0), np.unique(families)
    places = {name: np.flatnonzero(families == name) for name in names}
    draws = [np.concatenate([places[n] for n in chance.choice(names, len(names))]) for _ in range(count)]
    several = len(set(eps_values)) > 1
    value = fitted(table, several)
    found = np.array([fitted(table[some], several) for some in draws])
    return {name: estimate(value[i], found[:, i]) for i, name in enumerate(("rho_ng", "SAI", "eps")[: len(value)])}


def fitted(table, several: bool) -> np.ndarray:
    """Weighted least squares; the slope of eps only where there are several."""
    columns = table[:, 1 : 4 if several else 3]
    design = np.column_stack((np.ones(len(table)), columns))
    root = np.sqrt(table[:, 4])[:, None]
    return np.linalg.lstsq(root * design, root[:, 0] * table[:, 0], rcond=None)[0][1:]


def changing(lab: Lab, loose: float, sharp: float) -> float:
    """The share of windows that are stiff at one error and not at the other, problems counting alike."""
    a, b = lab.truth(loose), lab.truth(sharp)
    known = np.isfinite(a) & np.isfinite(b)
    weight = lab.weight[known]
    return float(weight @ ((a > 1.0) != (b > 1.0))[known] / weight.sum()) if known.any() else float("nan")


def switching(lab: Lab, eps: float) -> dict[str, dict]:
    """What it costs, problem by problem, to choose the method of each window by an index, over the oracle's cost.

    Every change of the method costs one attempt of the new one. For each index: the cost with the threshold that is
    best in hindsight, and with 1 where theory names one.
    """
    explicit, implicit = lab.cost("explicit", eps), lab.cost("implicit", eps)
    usable = np.isfinite(explicit) & np.isfinite(implicit)
    problems = [np.flatnonzero((lab.name == name) & usable) for name in dict.fromkeys(lab.name)]
    problems = [some for some in problems if len(some)]
    oracle = np.array([np.minimum(explicit, implicit)[some].sum() for some in problems])

    def ratios(choice) -> np.ndarray:
        told = []
        for some in problems:
            chosen = choice[some]
            changes = np.diff(np.r_[chosen[0], chosen].astype(int)) != 0
            starting = np.where(chosen, lab.attempt("implicit")[some], lab.attempt("explicit")[some])
            told.append(np.where(chosen, implicit[some], explicit[some]).sum() + (changes * starting).sum())
        return np.array(told) / oracle

    def row(name, choice, threshold=float("nan")) -> dict:
        cost = ratios(choice)
        capped = np.minimum(cost, 100.0)
        median, tail = np.quantile(cost, (0.5, 0.9))
        mean = float(np.exp(np.log(capped).mean()))
        return {"policy": name, "threshold": threshold, "mean": mean, "median": median, "90 %": tail, "cost": cost}

    nothing = np.zeros(len(explicit), dtype=bool)
    told = {"always explicit": row("always explicit", nothing), "always implicit": row("always implicit", ~nothing)}
    best = [bool(implicit[some].sum() < explicit[some].sum()) for some in problems]
    choice = nothing.copy()
    for some, flag in zip(problems, best, strict=True):
        choice[some] = flag
    told["best of both"] = row("best of both", choice)
    for name, values in lab.values(eps).items():
        values = np.where(np.isnan(values), -np.inf, values)
        finite = values[usable & np.isfinite(values)]
        if not len(finite):
            continue
        thresholds = np.unique(np.quantile(finite, np.linspace(0.0, 1.0, 41)))
        rows = [row(name, values > x, float(x)) for x in (-np.inf, *thresholds)]
        told[name] = min(rows, key=lambda one: one["mean"])
    for name in ("h_R/h_stab", "h_acc/h_stab"):
        told[f"{name} > 1"] = row(f"{name} > 1", lab.values(eps)[name] > 1.0, 1.0)
    return told


def graves(lab: Lab, eps: float, name: str, threshold: float) -> tuple[list[str], list[str]]:
    """Problems with windows that an index calls stiff and R < 1/2, and the other way round with R > 2."""
    ratio, values = lab.truth(eps), lab.values(eps)[name]
    called = values > threshold
    wrong = lab.name[called & (ratio < 0.5)], lab.name[~called & (ratio > 2.0)]
    return tuple(list(dict.fromkeys(names.tolist())) for names in wrong)  # type: ignore[return-value]


def bound_without_damping(lab: Lab, eps: float) -> tuple[int, int, list[str]]:
    """Windows with T s[J] > -1 and R above 2, those with R above 10, and the families of the latter."""
    ratio = lab.truth(eps)
    mild = lab.index("-s[J]") * lab.column("span") < 1.0
    grave = mild & (ratio > 10.0)
    return int((mild & (ratio > 2.0)).sum()), int(grave.sum()), sorted(set(lab.family[grave].tolist()))
