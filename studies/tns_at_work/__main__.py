"""First paper, Section 3.1: TNS in the loss, for choosing architectures and for pruning (about 20 s).

The paper proposes TNS for architecture search and for pruning but reports no experiment; a loss that rewards TNS
follows from its central claim. All three are tried on small networks: on the digits with measurements that are shipped,
on CIFAR-10 with `--dataset cifar10 --train`; pruning is shown of both.

Last result (2026-11-20): dropping the blocks of smallest NSI keeps 17 points more than dropping random ones with eight
controllers of the digits, and 6 fewer [-14, +2] with eleven of CIFAR-10, where pruning by the loss keeps 17 more than
by NSI: true of some. Punishing TNS with weight 0.1 lowers it, the other weights decide nothing (strong rewards end four
of ten trainings and scatter the others between 10 and 91 %); whether rewarding TNS moves accuracy is undecided. Nor do
36 architectures decide whether TNS before training, its scale or its shape ranks them.
"""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from studies import population
from studies.lab import definitions, jobs, measurements, networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.comparisons import deviation_cell, interval_cell
from studies.lab.images import load_images
from studies.lab.options import ThreadOptions, which_jobs
from studies.lab.page import Page
from studies.lab.statistics import interval_text
from studies.lab.stiffness import QUANTITY_NAMES, wording
from studies.tns_at_work import design, figures
from studies.tns_at_work.findings import RIVALS, by_weight, findings, rank_correlation
from studies.tns_at_work.measures import KEYS, ORDERS, Architectures, Pruned, Pruning, carry_out, search

STUDY = "tns_at_work"
SHIPPED = Path(__file__).parent / "shipped"


@dataclasses.dataclass
class Arguments(ThreadOptions):
    """TNS as a term of the loss, as a measure of untrained architectures, and as a guide to pruning."""

    dataset: str = "digits"
    """What the networks see: digits, cifar10, cifar100, stl10, or a name from a file of --define."""
    train: bool = False
    """Train and measure what is missing. If it is stopped, start it again. Processes with one --out share the work."""
    seeds: int = design.SEEDS
    """How many seeds of every weight of TNS in the loss."""
    pruned: int | None = None
    """Show and prune only so many networks of each data set that come with the repository; all by default."""
    define: tuple[Path, ...] = ()
    """Python files with controllers, networks (NETWORKS) or data sets (DATASETS) of your own. With --train controllers
    are trained with every weight and in every shape, networks once; the verdicts stay those of the study's networks."""
    out: Path = Path("results/tns_at_work")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "seeds", "pruned", "threads")
    definitions.take_all(STUDY, arguments.define, arguments.dataset)
    first, second = design.weighted_runs(arguments.dataset, arguments.seeds), design.architectures(arguments.dataset)
    folders = [SHIPPED, population.SHIPPED]
    mine = design.of_ones_own(arguments.define, arguments.dataset, arguments.seeds)
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, dataset="digits", train=True, pruned=2)
        (first, second), folders = design.smoke(), []
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    work = arguments.out / "runs"
    images = load_images(STUDY, arguments)
    wanted = [run for turn in itertools.zip_longest(first, second) for run in turn if run is not None]
    wanted += [*mine[0], *mine[1]]
    if arguments.train or arguments.remeasure:
        with plain_errors(STUDY):
            jobs.work_off(
                lambda: wanted,
                jobs.finder(lambda run: measurements.find(run, (work, *folders)), **which_jobs(arguments)),
                lambda run: describe(carry_out(run, work, arguments.data_root, arguments.device)),
                work,
            )
    diverged = jobs.list_diverged(wanted, (work, *folders))
    stored = measurements.find_all(wanted, (work, *folders))

    page = Page(
        STUDY,
        arguments,
        f"TNS at work on {images.name}: in the loss, before training, for pruning",
        "After Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023), "
        "which tries none of them. What is trained was fixed beforehand; below every verdict stands its rule, and when "
        "it was fixed. The networks are ResNets of 20 to 32 layers with 4 to 16 channels, trained for a few epochs, "
        "where the paper's have 164 layers: what is said here is said about them.",
    )
    tns, accuracies = in_loss(first, (work, *folders))
    searched = search(second, (work, *folders), arguments.data_root, arguments.device)
    shown = prunings(images, arguments, work, folders)
    page.heading("What these data say")
    page.findings(findings(tns, accuracies, searched, shown))
    page.words(jobs.describe_diverged(diverged), page.name_older([one.made for one in stored]))
    loss_part(page, tns, accuracies)
    own = search(mine[1], (work,), arguments.data_root, arguments.device)
    search_part(page, searched, own)
    pruning_part(page, shown)
    ones_own(page, mine, work, own)
    page.close()


def describe(found: measurements.Measurement) -> str:
    return (
        f"{100 * found.numbers['test_accuracy']:.2f} % on the test set, {found.numbers['seconds']:.0f} s of training."
    )


def in_loss(runs, folders) -> tuple[dict[float, list[float]], dict[float, list[float]]]:
    """TNS (the first reading) and accuracy by weight."""
    tns: dict[float, list[float]] = {weight: [] for weight in design.WEIGHTS}
    accuracies: dict[float, list[float]] = {weight: [] for weight in design.WEIGHTS}
    for run in runs:
        found = measurements.find(run, folders)
        if found is not None:
            tns[run.weight].append(found.numbers["tns"][0])
            accuracies[run.weight].append(100 * found.numbers["test_accuracy"])
    return tns, accuracies


def prunings(images, arguments, work: Path, folders) -> dict[str, list[Pruned]]:
    """By family, what every network has left without some of its blocks; those of `images` are pruned if need be."""
    found: dict[str, list[Pruned]] = {}
    for family in dict.fromkeys((*design.FAMILIES, images.name)):
        runs = [Pruning(path) for path in networks.shipped_files(family)][: arguments.pruned]
        pruned = [one for run in runs if (one := prune(run, images, arguments, work, folders)) is not None]
        if pruned:
            found[family] = sorted(pruned, key=lambda one: (one.controller != "constant", one.name))
    return found


def prune(run: Pruning, images, arguments, work: Path, folders) -> Pruned | None:
    found = run.find((work, *folders))
    return (
        run.carry_out(images, work, arguments.device or "cpu") if found is None and run.family == images.name else found
    )


def loss_part(page, tns, accuracies):
    page.heading("TNS as a term of the loss")
    page.words(
        "The loss is the cross-entropy plus a weight times the mean TNS of the batch (slope NSI, sample mean): "
        "negative weights reward stiffness, positive ones punish it. `nb.stiffness_term` does it in any training loop."
    )
    if not all(accuracies.values()):
        page.words("Of some weight no network is there.")
        return
    page.figure(
        figures.weight_figure(tns, accuracies),
        "weight",
        "TNS and accuracy on test images against the weight. Grey: single seeds. The line joins their means.",
    )
    page.table(
        "weights",
        weight_rows(tns, accuracies),
        "TNS and accuracy over seeds",
    )


def weight_rows(tns, accuracies) -> list[dict]:
    """One row per weight of which a network is there."""
    return [
        {
            "weight": f"{weight:g}",
            "seeds": len(tns[weight]),
            "TNS": f"{np.mean(tns[weight]):.3f}",
            "its standard deviation": deviation_cell(tns[weight], form=".3f"),
            "accuracy (%)": f"{np.mean(accuracies[weight]):.2f}",
            "standard deviation": deviation_cell(accuracies[weight]),
        }
        for weight in sorted(tns)
        if tns[weight]
    ]


def search_part(page, searched: Architectures, own: Architectures):
    page.heading("TNS before training")
    if len(searched) < 2:
        page.words("Fewer than two architectures are there.")
        return
    page.figure(
        figures.search_figure(searched, own),
        "before_training",
        "Accuracy after training against TNS before it, its scale and its shape, one mark per architecture."
        + (" Hollow: architectures of your own, which no number counts." if len(own) else ""),
    )
    names = {key: f"{QUANTITY_NAMES[key[0]]}, {wording(*key[1])}" for key in KEYS} | RIVALS
    rows = [
        {
            "before training": name,
            "networks": int(np.isfinite(searched.before[key]).sum()),
            "Kendall's tau-b": interval_text(rank_correlation(searched, key), "+.2f"),
        }
        for key, name in names.items()
    ]
    page.table(
        "before_training",
        rows,
        "Rank correlation with the accuracy after training, over architectures",
        "Intervals of 95 %, each for itself, by a bootstrap that draws controllers and shapes.",
    )


def ones_own(page, mine, work, own):
    """What the files of `--define` hold; no verdict rests on it."""
    first, second = mine
    if not (first or second):
        return
    page.heading("Controllers and networks of your own")
    weighted, architectures = ([run for run in runs if measurements.find(run, (work,))] for runs in mine)
    page.words(
        f"{jobs.count_ones_own(len(weighted) + len(architectures), len(first) + len(second))} They are trained as "
        "those of the study are, and no verdict counts them. Only shipped networks are pruned."
    )
    rows: list[dict] = []
    for name in dict.fromkeys(run.job.label for run in weighted):
        tns, accuracies = in_loss([run for run in weighted if run.job.label == name], (work,))
        beyond = by_weight(accuracies, len(design.WEIGHTS) - 1)
        rows += [
            {"controller": name} | row | {"minus that at 0 [95 %]": interval_cell(beyond, row["weight"])}
            for row in weight_rows(tns, accuracies)
        ]
    if rows:
        page.table(
            "own_weights",
            rows,
            "TNS in the loss: TNS and accuracy over seeds, intervals of Welch, all weights together",
        )
    if len(own):
        page.table(
            "own_architectures",
            [
                {"network": run.job.stem}
                | {
                    f"{QUANTITY_NAMES[key[0]]} before training, {wording(*key[1])}": f"{value:.3f}"
                    if np.isfinite(value := own.before[key][place])
                    else "undefined"
                    for key in KEYS
                }
                | {"accuracy (%)": f"{own.accuracy[place]:.2f}"}
                for place, run in enumerate(architectures)
            ],
            "Before training, and the accuracy after it",
        )


def pruning_part(page, families: dict[str, list[Pruned]]):
    page.heading("Pruning steps")
    if not families:
        page.words("No trained network of this data set comes with the repository.")
        return
    page.figure(
        figures.pruning_figure(families),
        "pruning",
        "Accuracy without some of the counted blocks, dropped without training again: mean over the networks.",
    )
    rows = [
        {
            "family": family,
            "networks": len(found),
            "dropped": k,
            **{order: f"{np.mean([one.accuracy[order][k] for one in found]):.2f}" for order in ORDERS},
        }
        for family, found in families.items()
        for k in found[0].accuracy[ORDERS[0]]
    ]
    whole = "; ".join(f"{family} {np.mean([one.whole for one in found]):.2f} %" for family, found in families.items())
    page.table("pruning", rows, f"Accuracy in per cent; of the whole networks {whole}")
    page.table(
        "networks",
        [
            {"family": family, "network": one.name, "whole": f"{one.whole:.2f}"}
            | {f"{order}, {k}": f"{value:.2f}" for order in ORDERS for k, value in one.accuracy[order].items()}
            for family, found in families.items()
            for one in found
        ],
        "Every network, without so many blocks",
        printed=False,
        told=False,
    )


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
