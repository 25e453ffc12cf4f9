"""How much R, and with it the ranking of indices, owes to choices: of methods, costs, windows, starts and errors."""

import numpy as np
from scipy import stats

from studies.switching.areas import area_under_curve
from studies.switching.design import OTHERS
from studies.switching.observations import Lab, beyond, usable

JUDGED = ("SAI", "rho_ng/SAI", "h_acc/h_stab")
IMPLICIT = ("RODAS5P", "ROS2")
UNITS = {  # of costs, beside evaluations
    "attempts": "cost in attempts",
    "parts": "cost with Jacobians, factors and solutions as long as they take",
    "seconds": "cost in seconds",
}


def rows(lab: Lab, eps: float, eps_values) -> list[dict]:
    """A row per change: how R differs from the base on the same windows, and AUC of three indices under the new R."""
    timed = all("parts" in problem for problem in lab.problems)
    found = [row(words, lab, eps, lab.truth(eps, unit)) for unit, words in UNITS.items() if timed or unit == "attempts"]
    found.append(row("equal tolerance, not equal error", lab, eps, lab.truth_at_tolerance(eps)))
    for other in eps_values:
        if other != eps:
            found.append(row(f"error {other:.0e}", lab, eps, lab.truth(other)))
    some = lab.with_windows(lambda problem: [w for w in problem["windows"] if "others" in w])
    if not some.problems:
        return found
    cold = replace_runs(some, {"explicit": "explicit", "implicit": "implicit"}, "cold")
    found.append(row("cold starts", some, eps, cold.truth(eps)))
    for name in OTHERS:
        if name in some.windows[0]["others"]:
            role = "implicit" if name in IMPLICIT else "explicit"
            found.append(row(f"{name} as the {role} method", some, eps, replace_runs(some, {role: name}).truth(eps)))
    both = {"explicit": "BS32", "implicit": "ROS2"}
    if set(both.values()) <= set(some.windows[0]["others"]):
        found.append(row("BS32 against ROS2", some, eps, replace_runs(some, both).truth(eps)))
    for rule in some.problems[0]["rules"]:
        other = some.with_windows(lambda problem, rule=rule: problem["rules"][rule])
        ratio = other.truth(eps)
        found.append({"change": f"windows: {rule}", "windows": int(usable(ratio).sum())} | ranks(other, eps, ratio))
    return found


def replace_runs(lab: Lab, roles: dict[str, str], where: str = "others") -> Lab:
    """The same windows run by other methods: {role: name in w[where]}."""
    changed = [
        problem
        | {
            "windows": [w | {role: w[where][name] for role, name in roles.items()} for w in problem["windows"]],
            "work": problem["work"] | {role: problem["work"][name] for role, name in roles.items()},
        }
        for problem in lab.problems
    ]
    return Lab(changed, lab.mine)


def row(change: str, lab: Lab, eps: float, ratio) -> dict:
    base = lab.truth(eps)
    known = usable(base) & usable(ratio)
    a, b = base[known], ratio[known]
    same = (a > 1.0) == (b > 1.0)
    clear = beyond(a, 3.0)
    return {
        "change": change,
        "windows": int(known.sum()),
        "Spearman": float(stats.spearmanr(a, b).statistic) if len(a) > 2 else float("nan"),
        "same class": float(same.mean()) if len(a) else float("nan"),
        "same class, R beyond 3": float(same[clear].mean()) if clear.any() else float("nan"),
        "shift of log10 R": float(np.median(np.log10(b / a))) if len(a) else float("nan"),
    } | ranks(lab, eps, ratio)


def ranks(lab: Lab, eps: float, ratio) -> dict[str, float]:
    """AUC of the judged indices where this ratio is the truth."""
    known, values = usable(ratio), lab.values(eps)
    told = {}
    for name in JUDGED:
        mask = known & ~np.isnan(values[name])
        told[f"AUC {name}"] = area_under_curve(values[name][mask], ratio[mask] > 1.0, lab.weight[mask])
    return told
