"""First paper, Figures 2 and 7 and Table 1 decided by a population of small networks (about 15 s; hours to train).

Claims examined: the better the network, the larger its TNS; attention raises TNS and accuracy; NSI says more about
accuracy than simple rivals do (Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System
Perspective, 2023). The population has 240 networks on CIFAR-10 at 16 pixels; its design and the rules of its analysis
were fixed in `design.py` before any was trained. By default the study shows the measurements that are there; `--train`
works on those that are not.

Last result (51 of 240 networks, 48 of which have a TNS under every reading, three seeds of every controller,
2026-11-19): under the slope's readings attention raises the scale of NSI for nine of ten controllers, by 1.5 to 4.9
times, and lowers it for one; the shape, TNS over the scale, differs from that of constant step sizes for none. Under
the increment's the scale is smaller for all ten and the shape larger for one, SEM. TNS mixes the two: larger for three
and four of ten by slope, for none and one by increment. No controller raises the accuracy, and SEM lowers it by 4.0
points [2.8, 5.2]. No relation of accuracy with TNS, its scale or its shape is decided; that of TNS under one reading,
-0.30 [-0.53, -0.01], is not there without any one of six controllers.
"""

import dataclasses
from pathlib import Path

import torch

from studies.lab import definitions, jobs, measurements
from studies.lab.command import require_at_least, start
from studies.lab.options import ThreadOptions, which_jobs
from studies.lab.page import Page
from studies.lab.statistics import FEWEST
from studies.lab.stiffness import READINGS, SWITCH
from studies.population import design, figures, tables
from studies.population.analysis import CONSTANT, STEPNET, Networks, comparisons, explain_accuracy, relations
from studies.population.citation import SHIPPED
from studies.population.findings import findings

STUDY = "population"


@dataclasses.dataclass
class Arguments(ThreadOptions):
    """Decide claims about stiffness and accuracy on many small networks."""

    train: bool = False
    """Train and measure what is missing; killed and started again, it goes on. Processes with one --out share it."""
    scheduler: str | None = None
    """With --train: the address of a Dask scheduler whose workers do it, such as tcp://host:8786."""
    rounds: int = design.ROUNDS
    """How many rounds of 24 networks."""
    dataset: str = "cifar10"
    """What to train on: cifar10, cifar100, stl10, digits, or a name from a file of --define."""
    define: tuple[Path, ...] = ()
    """Python files with controllers, networks (NETWORKS) or data sets (DATASETS) of your own. With --train they are
    trained as the core's are, a seed a round, and shown beside them; the verdicts stay those of the 240 networks. With
    --scheduler every worker must be able to read the files."""
    out: Path = Path("results/population")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "rounds", "threads")
    definitions.take_all(STUDY, arguments.define, arguments.dataset)
    wanted, folders = design.queue(arguments.rounds, arguments.dataset), [SHIPPED]
    mine = design.of_ones_own(arguments.define, arguments.rounds, arguments.dataset)
    if arguments.smoke:
        arguments, wanted, folders = dataclasses.replace(arguments, train=True, threads=1), design.smoke(), []
    work = arguments.out / "runs"
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.scheduler:
        from distributed import Client

        with Client(arguments.scheduler) as client:
            executor, root = client.get_executor(), arguments.data_root
            which = which_jobs(arguments)
            measurements.work_off_on(executor, [*wanted, *mine], work, folders, root, files=arguments.define, **which)
    elif arguments.train or arguments.remeasure:
        which, root = which_jobs(arguments), arguments.data_root
        measurements.work_off([*wanted, *mine], work, folders, root, arguments.device, **which)
    found, own = measurements.find_all(wanted, (work, *folders)), measurements.find_all(mine, (work,))
    if not found:
        raise SystemExit(f"studies.{STUDY}: no measurement is there; `--train` makes them, resumably.")
    diverged = jobs.list_diverged([*wanted, *mine], (work, *folders))

    # The numbers of the four claims, and what they say by the rules of the design.
    networks = Networks.of(found)
    related, compared = relations(networks), comparisons(networks)
    explanations = {reading: explain_accuracy(networks, reading) for reading in READINGS}
    name = "CIFAR-10" if arguments.dataset == "cifar10" else arguments.dataset
    data = "the digits" if arguments.smoke else f"{name} at {design.PIXELS} pixels"
    page = Page(
        STUDY,
        arguments,
        f"A population of {len(found)} small networks on {data}",
        f"{len(found)} of the {len(wanted)} networks of a design that was fixed before any was trained. After Huang, "
        "Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023).",
        notice_of(len(found), len(wanted)),
    )
    page.heading("What these networks say")
    page.findings(findings(related, compared, explanations))
    page.words(page.name_older([one.made for one in (*found, *own)]))
    page.switch(SWITCH)
    page.chart(figures.networks_chart(networks, related), "networks", "A point is a network; point at it.", hero=True)
    what_there_is(page, wanted, found, diverged)
    relation(page, networks, related, Networks.of(own))
    controllers(page, compared)
    ones_own(page, found, own, len(mine))
    explanation(page, networks, explanations)
    page.table("networks", tables.network_rows(networks), "Every network", printed=False, told=False)
    page.close()


def notice_of(measured: int, wanted: int) -> str:
    if measured == wanted:
        return ""
    return (
        f"{measured} of {wanted} networks are measured, and the verdicts are those of these {measured}. The rules of "
        f"the design leave a claim undecided with fewer than {design.FEWEST_NETWORKS} networks, or "
        f"{design.FEWEST_SEEDS} seeds of every controller that it compares. `--train` makes the rest."
    )


def what_there_is(page, wanted, found, diverged):
    page.heading("The design, and what there is of it")
    page.words(
        f"The core are ResNet-20 of 16 channels with every controller, {design.BRIEF.epochs} epochs; claims about "
        "controllers are judged on them alone, with seeds as units. The spread are ResNets of 14, 20, 26 and 32 layers "
        f"with 8, 12 and 16 channels, {design.BRIEF.epochs} or {design.LONGER.epochs} epochs, the controllers in "
        "rotation; claims about networks are judged on both. All are far smaller, and trained far more shortly, than "
        "the paper's ResNet-164: what is decided here is decided for such networks.",
        jobs.describe_diverged(diverged),
    )
    page.table("progress", tables.progress_rows(wanted, found, diverged), "Networks of the design")


def relation(page, networks, related, own):
    page.heading("Accuracy and TNS (Figure 7)")
    page.figure(
        figures.relation_figure(networks, own),
        "accuracy_tns",
        "Accuracy against TNS, one mark per network, under all four readings. ResNet-14 counts one block a stage, "
        "which is no stiffer than its own mean: with the sample's mean it has no TNS."
        + (" Hollow: networks of your own, which no number counts." if len(own) else ""),
    )
    page.figure(
        figures.tau_figure(related),
        "tau",
        "Kendall's tau-b of TNS and accuracy, counting all pairs of networks or only those of one group, with 95 % "
        f"bootstrap intervals over networks. Grey: within {design.NEGLIGIBLE} of 0, no relation to speak of. Groups at "
        f"equal training loss are {design.NEIGHBOURS} neighbours in its order.",
    )
    page.table(
        "correlations",
        tables.relation_rows(related),
        "Kendall's tau-b with the accuracy, bootstrap intervals over networks that hold together over the readings",
        "Least and largest tau where one controller is left out: a relation that one controller makes is none.",
    )


def controllers(page, compared):
    page.heading("Controllers against each other (Figure 2, Table 1)")
    if not any(one.groups for one in compared.values()):
        page.words("No network of the core is among them: nothing to compare.")
        return
    page.figure(
        figures.controllers_figure(compared),
        "controllers",
        "TNS, its scale (the mean NSI of the counted blocks), its shape (TNS over the scale) and accuracy of the "
        "core's networks minus those of constant step sizes, and accuracy minus StepNet's. Lines: intervals of Dunnett "
        "over seeds; all of a quantity, over its readings, hold together with 95 %. Grey: the single seeds.",
    )
    page.table(
        "controllers",
        tables.controller_rows(compared),
        "Accuracy, TNS, scale and shape of the controllers, with 95 % intervals of Dunnett over seeds",
    )


def ones_own(page, found, own, wanted: int):
    """What the files of `--define` hold, beside the core's networks that it is compared with; it decides nothing."""
    if not wanted:
        return
    page.heading("Controllers and networks of your own")
    page.words(
        f"{jobs.count_ones_own(len(own), wanted)} They are trained as the core's are. No verdict, table or interval "
        "above counts them, and the comparisons below are theirs alone: with constant step sizes and with StepNet, of "
        "the core."
    )
    if own:
        core = [one for one in found if design.is_core(one.specification)]
        beside = [one for one in core if one.numbers["controller"] in (CONSTANT, STEPNET)]
        page.table(
            "own",
            tables.controller_rows(comparisons(Networks.of([*beside, *own]))),
            "Networks of your own beside the core's, with 95 % intervals of Dunnett over seeds",
        )


def explanation(page, networks, explanations):
    page.heading("What explains accuracy")
    if max(one.n for one in explanations.values()) < FEWEST:
        page.words(f"Fewer than {FEWEST} networks: no regression of ranks.")
        return
    page.figure(
        figures.shares_figure(explanations),
        "shares",
        "Shares of the variance of ranks of accuracy (Lindeman, Merenda and Gold): what each adds to a regression, "
        "averaged over all orders, with 95 % bootstrap intervals over networks. The shares judge nothing.",
    )
    page.table(
        "explained",
        tables.explained_rows(explanations),
        "Ranks of accuracy regressed on those of TNS and its rivals",
        "The coefficient of TNS is that beside all rivals; everything standardised.",
    )
    page.figure(
        figures.ranks_figure(networks),
        "ranks",
        "Spearman's correlations of accuracy, rivals and TNS, over the networks for which all are defined. The columns "
        "are the rows in the same order.",
    )


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
