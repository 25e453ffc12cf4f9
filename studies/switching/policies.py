"""Indices as switches: what it costs to choose the method of each window by an index, over choosing right."""

import dataclasses

import numpy as np

from studies.lab.statistics import Estimate, estimate
from studies.switching.analysis import resamples
from studies.switching.observations import REFERENCE, Lab, colours_of, usable

CHOICES = ("always explicit", "always implicit", "best of both")  # without an index
CAPPED = 100.0  # a loss beyond counts as this in geometric means
THRESHOLDS = 41  # quantiles of an index that are tried
RESAMPLES = 500  # of families, for intervals of mean costs
SPLITS = 60  # of the families into those that a threshold is fitted to and those that it is tried on
FREE_AT = {  # thresholds that theory or other programs name
    "h_R/h_stab": 1.0,
    "h_acc/h_stab": 1.0,
    "h_acc rho_ng": 3.3,
    "rho_ng/SAI": 10.0,
    "h_E rho_ng": 3.0,
    "Hairer-Wanner: h rho > boundary": 0.5,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """What choosing by an index costs.

    threshold   above it the implicit method is taken; NaN where there is none
    cost        over the oracle's, problem by problem
    family      of each problem
    unseen      the mean cost on families that the threshold was not fitted to; NaN where none was fitted
    """

    threshold: float
    cost: np.ndarray
    family: np.ndarray
    unseen: float = float("nan")

    @property
    def mean(self) -> float:
        """The geometric mean of the costs over problems, losses capped."""
        return float(np.exp(self.logs.mean()))

    @property
    def logs(self) -> np.ndarray:
        """The logarithms of the costs, losses capped."""
        return np.log(np.minimum(self.cost, CAPPED))


def estimate_loss(policy: Policy, other: Policy | None = None, count: int = RESAMPLES) -> Estimate:
    """The logarithm of the geometric mean of a policy's costs, with its interval over `count` resamples of families.

    other  a policy whose cost is taken for 1, on the same problems; by default the oracle's
    """
    logs = policy.logs - (0.0 if other is None else other.logs)
    names, group = np.unique(policy.family, return_inverse=True)
    sums, sizes, drawn = np.bincount(group, logs), np.bincount(group), resamples(len(names), count)
    return estimate(logs.mean(), (drawn @ sums) / (drawn @ sizes), n=len(names))


class Costs:
    """Costs of both methods on the windows of every problem, and of any choice between them.

    Every change of the method costs one attempt of the new one.
    """

    def __init__(self, lab: Lab, eps: float):
        self.explicit, self.implicit = lab.cost("explicit", eps), lab.cost("implicit", eps)
        ratio = self.explicit / self.implicit
        self.kept = np.flatnonzero(usable(ratio))
        names = lab.name[self.kept]
        self.first = np.flatnonzero(np.r_[True, names[1:] != names[:-1]]) if len(names) else np.zeros(0, int)
        self.family = lab.family[self.kept][self.first]
        self.explicit, self.implicit = self.explicit[self.kept], self.implicit[self.kept]
        self.starting = {role: lab.attempt(role)[self.kept] for role in ("explicit", "implicit")}
        self.oracle = self.by_problem(np.minimum(self.explicit, self.implicit))

    def by_problem(self, values) -> np.ndarray:
        return np.add.reduceat(values, self.first)

    def of(self, choice) -> np.ndarray:
        """The cost of choosing the implicit method where `choice` is true, over the oracle's, problem by problem."""
        changes = np.r_[False, choice[1:] != choice[:-1]]
        changes[self.first] = False
        spent = np.where(choice, self.implicit, self.explicit)
        spent = spent + changes * np.where(choice, self.starting["implicit"], self.starting["explicit"])
        return self.by_problem(spent) / self.oracle


def fit_thresholds(costs: Costs, values) -> Policy | None:
    """The threshold that is best in hindsight, and what thresholds fitted to half of the families do on the others."""
    values = np.where(np.isnan(values), -np.inf, values)[costs.kept]
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    tried = np.r_[-np.inf, np.unique(np.quantile(finite, np.linspace(0.0, 1.0, THRESHOLDS)))]
    table = np.array([costs.of(values > x) for x in tried])
    logs = np.log(np.minimum(table, CAPPED))
    best = int(logs.mean(axis=1).argmin())
    names, number = np.unique(costs.family, return_inverse=True)
    chance, unseen = np.random.default_rng(0), []
    for _ in range(SPLITS if len(names) > 3 else 0):
        seen = np.isin(number, chance.permutation(len(names))[: len(names) // 2])
        unseen.append(logs[logs[:, seen].mean(axis=1).argmin()][~seen].mean())
    elsewhere = float(np.exp(np.mean(unseen))) if unseen else float("nan")
    return Policy(float(tried[best]), table[best], costs.family, elsewhere)


def policies(lab: Lab, eps: float) -> dict[str, Policy]:
    """Every index with its best threshold, thresholds that no data chose, and choices without an index."""
    costs = Costs(lab, eps)
    nothing = np.zeros(len(costs.kept), dtype=bool)
    whole = costs.by_problem(costs.implicit) < costs.by_problem(costs.explicit)
    better = np.repeat(whole, np.diff(np.r_[costs.first, len(costs.kept)]))
    told = {
        name: Policy(float("nan"), costs.of(choice), costs.family)
        for name, choice in zip(CHOICES, (nothing, ~nothing, better), strict=True)
    }
    values = lab.values(eps)
    for name, column in values.items():
        found = fit_thresholds(costs, column) if lab.groups[name] != REFERENCE else None
        if found is not None:
            told[name] = found
    for name, column in lab.early().items():
        found = fit_thresholds(costs, column)
        if found is not None:
            told[f"{name}, known at the start"] = found
    for name, threshold in FREE_AT.items():
        cost = costs.of(values[name][costs.kept] > threshold)
        told[f"{name} > {threshold:g}"] = Policy(threshold, cost, costs.family)
    return told


def of_auto(lab: Lab) -> list[dict]:
    """Real runs of `ol.AUTO` over whole problems at equal tolerance, in evaluations, over the better of its methods."""
    rows = []
    for problem in lab.problems:
        if "whole" not in problem:
            continue
        work = {
            name: run["evaluations"] + run["jacobians"] * colours_of(problem) for name, run in problem["whole"].items()
        }
        switching = next(name for name in work if name.startswith("AUTO"))
        others = {name: cost for name, cost in work.items() if name != switching}
        rows.append(
            {"problem": problem["name"], **{name: cost_cell(cost) for name, cost in others.items()}}
            | {"AUTO": cost_cell(work[switching]), "AUTO over the better": work[switching] / min(others.values())}
            | {"changes": int(problem["whole"][switching]["changes"])}
        )
    return rows


def cost_cell(cost: float):
    return int(cost) if np.isfinite(cost) else "not there"
