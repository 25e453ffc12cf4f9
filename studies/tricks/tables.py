"""The rows of every table of `tricks`."""

import numpy as np

from studies.lab.comparisons import interval_cell, seed_deviation
from studies.lab.statistics import interval_text, mean_with_interval
from studies.lab.stiffness import QUANTITY_NAMES, TNS, wording
from studies.tricks.analysis import ACCURACY, STIFF, Runs, hardness, stage_stiffness, value_of


def mean_cell(values: list[float], form: str) -> str:
    """Mean and standard deviation over seeds."""
    if not values:
        return "undefined"
    deviation = seed_deviation(values)
    return f"{np.mean(values):{form}} ± {deviation:{form}}" if np.isfinite(deviation) else f"{np.mean(values):{form}}"


def cell_of(value: float) -> str:
    """A number; empty where it is not defined."""
    return f"{value:.3f}" if np.isfinite(value) else ""


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
        columns = {"accuracy (%)": (ACCURACY, ".2f"), **{title: (key, ".3f") for key, title in STIFF.items()}}
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
    """TNS of every recipe, its scale and its shape, under every reading."""
    rows = []
    for what, reading in STIFF:
        values, beyond = runs.values((what, reading)), runs.beyond((what, reading))
        paired = runs.paired_differences((what, reading)) if what == TNS else {}
        rows += [
            {
                "of": QUANTITY_NAMES[what],
                "reading": wording(*reading),
                "recipe": name,
                "mean": mean_cell(values[name], ".3f"),
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
    for what, reading in STIFF:
        for name, taus in hardness(runs, what, reading).items():
            if taus:
                rows.append(
                    {
                        "of": QUANTITY_NAMES[what],
                        "reading": wording(*reading),
                        "recipe": name,
                        "networks": len(taus),
                        "tau": interval_text(mean_with_interval([one.plain for one in taus]), "+.2f"),
                        "tau of changes": interval_text(mean_with_interval([one.changes for one in taus]), "+.2f"),
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
            **{title: cell_of(value_of(one, key)) for key, title in STIFF.items()},
            "training (s)": one.numbers["made"]["seconds"],
            "commit": one.numbers["made"]["commit"],
        }
        for name, group in runs.groups.items()
        for one in group
    ]
