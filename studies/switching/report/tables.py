"""The tables of `switching`, as rows of dictionaries."""

import numpy as np

from studies.lab.statistics import interval_text
from studies.switching import analysis, policies
from studies.switching.areas import area_under_curve
from studies.switching.observations import RATES, Lab, usable

FIXED = (("h_acc/h_stab", 1.0), ("h_R/h_stab", 1.0), ("rho_ng/SAI", 26.0))  # thresholds that no data chose


def truth(lab: Lab, eps_values):
    """By problem: the share of stiff windows and the median of R at each error."""
    for problem in lab.problems:
        mask = lab.name == problem["name"]
        row = {"problem": problem["name"], "family": problem["family"], "windows": int(mask.sum())}
        for eps in eps_values:
            ratio = lab.truth(eps)[mask]
            known = ratio[np.isfinite(ratio)]
            row[f"stiff at {eps:.0e}"] = float(np.mean(known > 1.0)) if len(known) else "unknown"
            row[f"log10 R at {eps:.0e}"] = float(np.median(np.log10(known))) if len(known) else "unknown"
        given_up = np.array([np.any(w["explicit"]["censored"]) for w in lab.windows])[mask]
        row["windows with a run given up"] = int(given_up.sum())
        yield row


def rankings(lab: Lab, everywhere, beyond, together):
    """By index: areas and rank correlations at each error, areas beyond a factor of two, and areas of all errors."""
    for name, group in lab.groups.items():
        row = {"index": name, "of": group}
        for eps, table in everywhere.items():
            row[f"AUC at {eps:.0e}"] = interval_text(table[name].auc, ".2f")
            row[f"beyond 2 at {eps:.0e}"] = f"{beyond[eps][name].auc.value:.2f}"
            row[f"within at {eps:.0e}"] = f"{table[name].within.value:+.2f} ({table[name].counted})"
        yield row | {"AUC, one threshold for all errors": interval_text(together[name], ".2f")}


def switches(tables):
    """By error and policy: costs over the oracle's."""
    for eps, table in tables.items():
        for name, one in sorted(table.items(), key=lambda pair: pair[1].mean):
            median, tail, worst = np.quantile(one.cost, (0.5, 0.9, 1.0))
            yield {
                "error": f"{eps:.0e}",
                "policy": name,
                "mean": one.mean,
                "unseen families": one.unseen,
                "median": median,
                "90 %": tail,
                "worst": worst,
                "threshold": one.threshold,
            }


def graves(lab: Lab, eps_values):
    """Problems with grave mistakes, by index."""
    for eps in eps_values:
        for name, threshold in FIXED:
            called, missed = analysis.grave_mistakes(lab, eps, name, threshold)
            yield {
                "error": f"{eps:.0e}",
                "index": f"{name} > {threshold:g}",
                "called stiff, R < 1/2": ", ".join(called) or "none",
                "missed, R > 2": ", ".join(missed) or "none",
            }


def confusion(lab: Lab, eps: float):
    """By family: windows that are stiff and called so, missed, called wrongly, and neither, for each index."""
    found = {name: analysis.confusion(lab, eps, name, threshold) for name, threshold in FIXED}
    for family in dict.fromkeys(lab.family.tolist()):
        row = {"family": family}
        for name, threshold in FIXED:
            row[f"{name} > {threshold:g}"] = " / ".join(map(str, found[name][family]))
        yield row


def parts(lab: Lab):
    """By problem: what an evaluation takes, what Jacobian, factors and a solution take over it, and whole attempts."""
    for problem in lab.problems:
        found, seconds = problem["parts"], problem["seconds"]
        yield {
            "problem": problem["name"],
            "components": problem["n"],
            "engine": found["engine"],
            "evaluation (ns)": 1e9 * found["evaluation"],
            "Jacobian": found["jacobian"] / found["evaluation"],
            "factors": found["factorisation"] / found["evaluation"],
            "solution": found["solve"] / found["evaluation"],
            "explicit attempt (ns)": 1e9 * seconds["explicit"],
            "implicit attempt (ns)": 1e9 * seconds["implicit"],
        }


def exponents(found):
    """A row per fit: {what it is fitted to: Powers or None}."""
    for name, powers in found.items():
        if powers is not None:
            yield {
                "fit": name,
                "rho_ng (theory +1)": interval_text(powers.rho_ng, "+.2f"),
                "pace (theory -1)": interval_text(powers.pace, "+.2f"),
                "error (theory +0.25)": "one error" if powers.eps is None else interval_text(powers.eps, "+.2f"),
                "R2": powers.explained,
                "windows": powers.counted,
            }


def slopes(lab: Lab, loose: float, sharp: float):
    """d log R / d log eps between two errors."""
    theory = {"stability binds": 0.25, "accuracy limits": 0.05}
    for where, (value, counted) in analysis.slopes(lab, loose, sharp).items():
        yield {"where": where, "median slope": value, "theory": theory[where], "windows": counted}


def invariances(lab: Lab, forced: Lab, eps: float):
    """What indices do under changes that leave R as it is: the unit of time, and the origin of the state."""
    ratio, values = lab.truth(eps), lab.values(eps)
    known = usable(ratio)
    units = analysis.in_random_units(lab, eps)
    origin = np.array([problem["levels"]["origin"] for problem in forced.problems])
    truth, moved = forced.truth(eps), forced.values(eps)
    cells = usable(truth)
    for name in lab.groups:
        column = np.where(np.isnan(values[name]), -np.inf, values[name])
        row = {
            "index": name,
            "unit": "1 / time" if name in RATES else "none",
            "AUC": area_under_curve(column[known], ratio[known] > 1.0, lab.weight[known]),
            "in random units of time": interval_text(units[name], ".2f") if name in RATES else "the same",
        }
        if name in moved:
            column = np.where(np.isnan(moved[name]), -np.inf, moved[name])
            for words, mask in (("origin 0", cells & (origin == 0.0)), ("all origins", cells)):
                row[f"factorial, {words}"] = area_under_curve(column[mask], truth[mask] > 1.0)
        yield row


def networks(rows: list[dict]):
    """By network: medians over blocks and images, and how often a mode passes Euler's limit."""
    for name in dict.fromkeys(row["network"] for row in rows):
        some = [row for row in rows if row["network"] == name]

        def column(key, some=some):
            return np.array([row[key] for row in some])

        steps = column("explicit steps") / column("implicit steps")
        known = steps[np.isfinite(steps)]
        images = sorted({row["image"] for row in some})
        by_image = [np.median([row["ratio"] for row in some if row["image"] == i]) for i in images]
        yield {
            "network": name,
            "blocks": len({row["block"] for row in some}),
            "images": len(images),
            "SAI": float(np.median(column("sai"))),
            "rho": float(np.median(column("rho"))),
            "rho_ng": float(np.median(column("rho_ng"))),
            "largest rho_ng": float(column("rho_ng").max()),
            "rho_ng/SAI": float(np.median(column("ratio"))),
            "over images": f"{min(by_image):.2f} to {max(by_image):.2f}",
            "rho_ng |f|/|f'|": float(np.median(column("moving_ratio"))),
            "stable step below 1": f"{int((column('stable_step') < 1.0).sum())} of {len(some)}",
            "explicit over implicit steps": f"{known.min():.2f} to {known.max():.2f}" if len(known) else "not measured",
        }


def auto(lab: Lab):
    """Runs of `ol.AUTO` over whole problems."""
    return policies.of_auto(lab)
