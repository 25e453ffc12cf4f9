"""The rows of every table of `tricks`."""

import numpy as np

from studies.lab.comparisons import interval_cell, seed_deviation
from studies.lab.statistics import interval_text
from studies.lab.stiffness import READINGS, wording
from studies.tricks.analysis import ACCURACY, Runs, hardness, stage_stiffness


def mean_cell(values: list[float], form: str) -> str:
    """Mean and standard deviation over seeds."""
    if not values:
        return "undefined"
    deviation = seed_deviation(values)
    return f"{np.mean(values):{form}} ± {deviation:{form}}" if np.isfinite(deviation) else f"{np.mean(values):{form}}"


def trick_rows(runs: Runs) -> list[dict]:
    """Accuracy of every recipe and the difference to the plain one, over seeds and over images."""
    accuracy, beyond, paired = runs.values(ACCURACY), runs.beyond(ACCURACY), runs.paired_differences(ACCURACY)
    losses, norms = runs.values("train_loss"), runs.values("logits_norm")
    return [
        {
            "recipe": name,
            "seeds": len(group),
            "accuracy (%)": mean_cell(accuracy[name], ".2f"),
            "minus plain, over seeds [95 %]": interval_cell(beyond, name, "+.2f"),
            "minus plain, over images [95 %]": interval_cell(paired, name, "+.2f"),
            "training loss": mean_cell(losses[name], ".3f"),
            "norm of the logits": mean_cell(norms[name], ".2f"),
        }
        for name, group in runs.groups.items()
    ]


def own_rows(groups: dict[str, Runs]) -> list[dict]:
    """Accuracy and TNS of several sets of runs, each with its differences to its own plain recipe, over seeds."""
    rows = []
    for network, runs in groups.items():
        columns = {"accuracy (%)": (ACCURACY, ".2f"), **{f"TNS, {wording(*r)}": (r, ".3f") for r in READINGS}}
        values = {column: runs.values(what) for column, (what, _) in columns.items()}
        beyond = runs.beyond(ACCURACY)
        rows += [
            {
                "network": network,
                "recipe": name,
                "seeds": len(group),
                **{column: mean_cell(values[column][name], form) for column, (_, form) in columns.items()},
                "accuracy minus plain [95 %]": interval_cell(beyond, name, "+.2f"),
            }
            for name, group in runs.groups.items()
        ]
    return rows


def stiffness_rows(runs: Runs) -> list[dict]:
    """TNS of every recipe under every reading."""
    rows = []
    for reading in READINGS:
        values, beyond, paired = runs.values(reading), runs.beyond(reading), runs.paired_differences(reading)
        rows += [
            {
                "reading": wording(*reading),
                "recipe": name,
                "TNS": mean_cell(values[name], ".3f"),
                "minus plain, over seeds [95 %]": interval_cell(beyond, name, "+.3f"),
                "minus plain, over images [95 %]": interval_cell(paired, name, "+.3f"),
            }
            for name in runs.groups
        ]
    return rows


def stage_rows(runs: Runs) -> list[dict]:
    """TNS of every stage alone, mean over seeds."""
    rows = []
    for name, group in runs.groups.items():
        stages = np.array([stage_stiffness(one) for one in group])
        rows.append(
            {"recipe": name} | {f"stage {k + 1}": mean_cell(list(column), ".3f") for k, column in enumerate(stages.T)}
        )
    return rows


def hardness_rows(runs: Runs) -> list[dict]:
    """By recipe, the relation of stiffness and what the loss gains next; without those that were not followed."""
    rows = []
    for reading in READINGS:
        for name, group in runs.groups.items():
            found = hardness(group, reading)
            if found.plain:
                rows.append(
                    {
                        "reading": wording(*reading),
                        "recipe": name,
                        "networks": len(found.plain),
                        "tau": interval_text(found.mean("plain"), "+.2f"),
                        "partial tau": interval_text(found.mean("partial"), "+.2f"),
                    }
                )
    return rows


def network_rows(runs: Runs) -> list[dict]:
    """One row for every network."""
    return [
        {
            "recipe": name,
            "seed": one.numbers["seed"],
            "accuracy (%)": f"{100 * one.numbers['test_accuracy']:.2f}",
            "training loss": f"{one.numbers['train_loss']:.3f}",
            **{f"TNS, {wording(*r)}": "" if one.tns(r) is None else f"{one.tns(r):.3f}" for r in READINGS},
            "training (s)": one.numbers["made"]["seconds"],
            "commit": one.numbers["made"]["commit"],
        }
        for name, group in runs.groups.items()
        for one in group
    ]
