"""The rows of every table of `transformer`, from what was measured."""

from collections.abc import Iterator

import numpy as np

from studies.lab.comparisons import deviation_cell, interval_cell, tukey
from studies.lab.statistics import interval_text
from studies.lab.stiffness import wording
from studies.transformer.design import PAPER, READINGS
from studies.transformer.findings import by_controller

USUAL = {"constant": "constant", "StepNet": "stepnet"}  # the two rows of Table 7, as we and as files call them


def table7_rows(studied, dataset: str) -> Iterator[dict]:
    """Accuracy of every controller beside what the paper prints, and the gain over constant step sizes."""
    groups = by_controller(studied)
    accuracies = {name: [one.found.accuracy for one in members] for name, members in groups.items()}
    gains = tukey("constant", accuracies)
    for name, members in groups.items():
        printed = PAPER.get((USUAL.get(name, name), dataset))
        about = members[0].subject.net.about
        yield {
            "network": "ViT" if name == "constant" else f"ViT + {name}",
            "data set": dataset,
            "paper (%)": "" if printed is None else f"{printed[0]:.2f} ± {printed[1]:.2f}",
            "here (%)": f"{np.mean(accuracies[name]):.2f}",
            "standard deviation": deviation_cell(accuracies[name], "one network"),
            "networks": len(members),
            "epochs": about.get("epochs", ""),
            "parameters (M)": f"{members[0].subject.parameters / 1e6:.3f}",
            "gain [95 %]": interval_cell(gains, name),
        }


def missing_rows(dataset: str) -> Iterator[dict]:
    """The rows of Table 7 that no network here stands for, and the command that makes them."""
    for (controller, other), (mean, deviation) in PAPER.items():
        if other != dataset:
            yield {
                "network": "ViT" if controller == "constant" else "ViT + StepNet",
                "data set": other,
                "paper (%)": f"{mean:.2f} ± {deviation:.2f}",
                "to be made by": f"python -m studies.transformer --train --preset full --dataset {other}",
            }


def tns_rows(studied) -> Iterator[dict]:
    for reading in READINGS:
        yield {"reading": wording(*reading)} | {one.name: interval_text(one.tns[reading]) for one in studied}


def step_rows(studied) -> Iterator[dict]:
    """Every step of every network: its kind, index and step size."""
    for one in studied:
        record = one.found.records["slope"]
        increment = one.found.records["increment"]
        for k in range(len(record.names)):
            yield {
                "network": one.name,
                "step": k + 1,
                "kind": "MLP" if k % 2 else "attention",
                "counted": "no" if record.first[k] else "yes",
                "NSI (slope)": f"{record.nsi[:, k].mean():.3f}",
                "NSI (increment)": f"{increment.nsi[:, k].mean():.3f}",
                "standard deviation": f"{record.nsi[:, k].std():.3f}",
                "step size": f"{record.step_sizes[:, k].mean():.3f}",
            }


def attention_rows(studied) -> Iterator[dict]:
    for one in studied:
        tokens = tokens_of(one)
        for number, step in enumerate(one.attention):
            yield {
                "network": one.name,
                "attention": number + 1,
                "row sums": f"{step.row_sums[0]:.6f} to {step.row_sums[1]:.6f}",
                "diagonal": f"{step.diagonal.mean():.4f}",
                "if uniform": f"{1 / tokens:.4f}",
                "largest weight": f"{step.largest.mean():.3f}",
                "condition of W_V": f"{step.condition:.0f}",
                "error of Q from V": f"{step.recovered:.1e}",
                "allowed": f"{step.rounding:.1e}",
                "rank of a head": step.head_rank,
                "error of a head's Q": f"{step.head_loss:.2f}",
            }


def tokens_of(one) -> int:
    """How many tokens an image of the network's own size has."""
    config = one.subject.net.config
    return (config["size"] // config["patch"]) ** 2


def network_rows(studied) -> Iterator[dict]:
    for one in studied:
        about = one.subject.net.about
        yield {
            "network": one.name,
            "file": one.subject.source,
            "accuracy (%)": f"{one.found.accuracy:.2f}",
            "on the traced images (%)": f"{one.found.measured_accuracy:.2f}",
            "recipe": about.get("recipe", ""),
            "epochs": about.get("epochs", ""),
        }
