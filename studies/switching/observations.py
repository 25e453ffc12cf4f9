"""All windows of all problems as columns: costs at equal error, their ratio R, and every index."""

import dataclasses
import functools

import numpy as np

import odelab as ol
from odelab.experiments import least_cost
from studies.switching.design import LINES

EXTENDED = 0.1  # of the tolerance: the error assumed for a run that was given up and whose cost was extended
DOUBTED = 0.1  # of the error asked for: where exact states are doubted by more, R is not known
REACHED = 0.3  # of the relative tolerance: the error that a run typically has at the end of a window
YOURS, REFERENCE = "yours", "reference"
INDICES = {  # name in figures: the group it belongs to
    "SI": "problem",
    "-min Re": "problem",
    "rho": "problem",
    "rho_ng": "problem",
    "|J|_2": "problem",
    "mu_1": "problem",
    "mu_2": "problem",
    "mu_inf": "problem",
    "-m_2": "problem",
    "-s[J]": "problem",
    "-T s[J]": "problem",
    "SI x span": "problem",
    "max/min |Re|": "problem",
    "Henrici": "problem",
    "SAI": "solution",
    "simplified SAI": "solution",
    "weighted SAI": "solution",
    "SI/SAI": "ratio",
    "rho_ng/SAI": "ratio",
    "|J|_2/SAI": "ratio",
    "-s[J]/SAI": "ratio",
    "rho_ng |f|/|f'|": "ratio",
    "tol^(1/5) rho_ng/SAI": "with tolerance",
    "h_acc rho_ng": "with tolerance",
    "h_acc/h_stab": "with tolerance",
    "h_acc(u3)/h_stab": "with tolerance",
    "h_acc/h_power": "with tolerance",
    "h_R rho_ng": "with tolerance",
    "h_R/h_stab": "with tolerance",
    "LSODA: h_R/min(h_acc, h_stab)": "with tolerance",
    "h_E rho_ng": "of the run",
    "Hairer-Wanner: h rho > boundary": "of the run",
    "Julia: h rho > 0.9 boundary": "of the run",
    "rejections": "of the run",
    "trial: h_R/h_E": REFERENCE,
}
OF_THE_PROBLEM = [name for name, group in INDICES.items() if group == "problem"]
RATES = {  # indices whose unit is 1 / time: they change with the unit of time, R does not
    *("SI", "-min Re", "rho", "rho_ng", "|J|_2", "mu_1", "mu_2", "mu_inf", "-m_2", "-s[J]"),
    *("SAI", "simplified SAI", "weighted SAI"),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Lab:
    """All windows of all problems, as columns.

    problems   what `measures.measure` or `factorial.measure_systems` gave, one per problem
    mine       names of a user's own indices
    """

    problems: list
    mine: tuple[str, ...] = ()
    costs: dict = dataclasses.field(default_factory=dict, repr=False)  # those found so far

    @functools.cached_property
    def windows(self) -> list[dict]:
        return [window for problem in self.problems for window in problem["windows"]]

    def column(self, key) -> np.ndarray:
        """A number or word of the problem of each window."""
        return np.array([problem[key] for problem in self.problems for _ in problem["windows"]])

    def index(self, key, when: str = "indices") -> np.ndarray:
        return np.array([window[when][key] for window in self.windows], dtype=float)

    @functools.cached_property
    def groups(self) -> dict[str, str]:
        """Every index with its group, a user's own behind the others."""
        return INDICES | dict.fromkeys(self.mine, YOURS)

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
    def doubt(self) -> np.ndarray:
        """By how much exact states differ from those of another method; NaN where there is nothing to compare."""
        return np.array([window.get("doubt", np.nan) for window in self.windows])

    @functools.cached_property
    def length(self) -> np.ndarray:
        return np.array([window["end"] - window["start"] for window in self.windows])

    @functools.cached_property
    def ladders(self) -> list[np.ndarray]:
        """The tolerances that each window was run at."""
        return [np.array(problem["tolerances"]) for problem in self.problems for _ in problem["windows"]]

    def attempt(self, role: str) -> np.ndarray:
        """Evaluations of an accepted attempt: of the stages, and of the Jacobian, one per colour."""
        return np.array([sum(weights_of(problem, role)) for problem in self.problems for _ in problem["windows"]])

    def cost(self, role: str, eps: float, unit: str = "evaluations") -> np.ndarray:
        """The least cost of an error on each window, in a unit that `weights_of` knows."""
        if (role, eps, unit) not in self.costs:
            found = [
                least_cost(np.where(w[role]["censored"], EXTENDED * ladder, w[role]["error"]), costs, eps)
                for ladder, w, costs in zip(self.ladders, self.windows, self.costs_of_runs(role, unit), strict=True)
            ]
            self.costs[role, eps, unit] = np.array(found)
        return self.costs[role, eps, unit]

    def costs_of_runs(self, role: str, unit: str = "evaluations") -> list[np.ndarray]:
        """What every run of the ladder cost on each window; infinite where a run failed."""
        found = []
        for problem in self.problems:
            of_attempt, of_state = weights_of(problem, role, unit)
            for window in problem["windows"]:
                attempts, rejected = (np.array(window[role][key], dtype=float) for key in ("attempts", "rejected"))
                kept = np.where(np.isfinite(attempts), 1.0 - rejected, 1.0)
                found.append(attempts * (of_attempt + of_state * kept))
        return found

    def truth(self, eps: float, unit: str = "evaluations") -> np.ndarray:
        """R: what the explicit method costs over what the implicit one does, at an error of at most eps."""
        ratio = self.cost("explicit", eps, unit) / self.cost("implicit", eps, unit)
        return np.where(self.doubt > DOUBTED * eps, np.nan, ratio)

    def truth_at_tolerance(self, tolerance: float) -> np.ndarray:
        """R at equal tolerance instead of equal error, in evaluations."""
        place = [int(np.argmin(np.abs(np.log(ladder / tolerance)))) for ladder in self.ladders]
        cost = {
            role: np.array([costs[i] for costs, i in zip(self.costs_of_runs(role), place, strict=True)])
            for role in ("explicit", "implicit")
        }
        return np.where(np.isfinite(cost["explicit"]), cost["explicit"] / cost["implicit"], np.nan)

    def at_tolerance(self, role: str, key: str, eps: float) -> np.ndarray:
        """A measured number of the run whose tolerance typically gives the error eps."""
        wanted = np.log(eps / REACHED)
        place = [int(np.argmin(np.abs(np.log(ladder) - wanted))) for ladder in self.ladders]
        return np.array([w[role][key][i] for w, i in zip(self.windows, place, strict=True)], dtype=float)

    def values(self, eps: float) -> dict[str, np.ndarray]:
        """Every index on every window; where the tolerance enters, at this error."""
        sai, stable, radius = self.index("SAI"), self.index("h_stab"), self.index("rho_ng")
        measured = set(self.windows[0]["indices"])
        with np.errstate(all="ignore"):
            si = np.maximum(self.index("SI"), np.finfo(float).eps * self.index("|J|_2"))
            tolerance = eps * REACHED
            orders = (self.problems[0]["order"], 3)  # the former is the explicit method's own
            h_acc, h_acc3 = (np.array([ol.accuracy_step(d, tolerance, k) for d in self.index(f"u{k}")]) for k in orders)
            h_r = self.length / self.at_tolerance("implicit", "attempts", eps)
            h_e = self.length / self.at_tolerance("explicit", "attempts", eps)
            found = {name: self.index(name) for name in INDICES if name in measured}
            found |= {
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
                "Hairer-Wanner: h rho > boundary": self.at_tolerance("explicit", "flagged", eps),
                "Julia: h rho > 0.9 boundary": self.at_tolerance("explicit", "near", eps),
                "rejections": self.at_tolerance("explicit", "rejected", eps),
                "trial: h_R/h_E": h_r / h_e,
            }
        found |= {name: self.index(index_of(name, eps)) for name in self.mine}
        return {name: found[name] for name in self.groups}

    def early(self) -> dict[str, np.ndarray]:
        """Indices at the start of each window alone, which a run can know before it goes through."""
        sai, radius = self.index("SAI", "early"), self.index("rho_ng", "early")
        with np.errstate(all="ignore"):
            return {
                "rho_ng/SAI": radius / sai,
                "rho_ng |f|/|f'|": radius / self.index("rate", "early"),
                "rho_ng": radius,
                "SAI": sai,
            }

    def with_windows(self, chosen) -> "Lab":
        """The same problems with other windows: chosen(problem) gives those of a problem, none of which drops it."""
        changed = [problem | {"windows": chosen(problem)} for problem in self.problems]
        return Lab([problem for problem in changed if problem["windows"]], self.mine)


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
    linear = parts["factorisation"] + stages * parts["solve"]
    return of_attempt + linear / parts["evaluation"], of_state + parts["jacobian"] / parts["evaluation"]


def colours_of(problem: dict) -> int:
    """The evaluations that a Jacobian counts as."""
    return min(LINES, problem["n"]) if problem["by_lines"] else problem["n"]


def usable(ratio) -> np.ndarray:
    """Windows on which both methods reached the error."""
    return np.isfinite(ratio) & (ratio > 0.0)


def beyond(ratio, factor: float = 2.0) -> np.ndarray:
    """Windows whose class is beyond doubt: one method costs more than `factor` times the other."""
    with np.errstate(all="ignore"):
        return np.abs(np.log(ratio)) > np.log(factor)


def index_of(name: str, eps: float) -> str:
    """The key of a user's index at an error, in what is measured."""
    return f"{name} at {eps!r}"
