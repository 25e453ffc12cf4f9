"""Figures 1-3, 6, 7, 9, 10 and Table 1 of the first paper on trained networks and real images (about 1 min).

Claim examined: networks with attention measure more stiffness, and the more of it, the better they are (Huang, Liang et
al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The report gives a
verdict on each claim, under every reading that the paper leaves open, and the rule that it comes from. Deep networks,
which count eight blocks a stage, are judged where three of one kind come along; others stand in an appendix.

Last result (12 ResNet-56 on CIFAR-10, three seeds each of constant step sizes, SE, ECA and StepNet, 500 images,
2026-11-20): attention raises the accuracy, by 1.2 to 1.6 points, each with its whole interval. By the slope all three
have a larger scale of NSI, by the increment SE and StepNet a smaller one; no reading has a larger TNS or shape beyond
constant step sizes, and StepNet's TNS is smaller by the increment over the data set. Relations over four kinds of
networks cannot be decided; few stiff blocks are what permuted numbers give as well. Until 2026-11-19 the study judged
ResNet-20, which count two blocks a stage, and said supported of few blocks, by a rule that random numbers pass as well.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import netbridge as nb
from studies.cifar_tns import sections
from studies.cifar_tns.evidence import FEWEST_SEEDS, gather
from studies.cifar_tns.findings import findings
from studies.lab import definitions, jobs, networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.images import images_or_fallback
from studies.lab.options import TracingOptions, fill_in
from studies.lab.page import Page
from studies.lab.statistics import choices
from studies.lab.stiffness import measure, measure_each, set_stiffness
from studies.train import CONTROLLERS

STUDY = "cifar_tns"
PRESETS = {"quick": {"images": 500, "resamples": 200}, "full": {"images": 10_000, "resamples": 1000}}


@dataclasses.dataclass
class Arguments(TracingOptions):
    """Stiffness of trained networks on test images: figures, tables, conclusions, and report.html with all of it."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 500 test images; full: all of them, and more resamples."""
    depth: int | None = None
    """Only networks with so many layers, 56 for the deep ones; all but these by default, 20 with --train."""
    train: bool = False
    """First train what is missing of these controllers and seeds, then look at those networks. A training that is
    stopped goes on from its last finished epoch when the same command is given again."""
    recipe: str = "short"
    """How to train: short, medium, paper, ...; see python -m studies.train --help."""
    out: Path = Path("results/cifar_tns")
    """Where figures, tables, report.html and record.json go."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(
            arguments, dataset="digits", controllers=("constant", "se"), images=64, resamples=20
        )
    require_at_least(1, arguments, "depth")
    for path in arguments.define:
        definitions.run_file(path)
    data, notice, arguments = images_or_fallback(
        STUDY, arguments, "shows networks trained on", networks.explain_absence
    )
    arguments, *_ = fill_in(arguments, PRESETS[arguments.preset], len(data.test_images), fewest=2)
    folders = (train_networks(arguments, data),) if arguments.train else arguments.checkpoint
    paths = networks.checkpoints(folders)
    chosen = paths or networks.shipped_files(data.name, deep=arguments.depth is not None)
    subjects, others = choose_networks(chosen, arguments, data), []
    if not (paths or arguments.depth or arguments.controllers or arguments.seeds):
        subjects, others = put_deep_first(subjects, networks.deep_networks(data), data.name)

    # Measure both indices, step sizes and answers of every network, and TNS with its interval.
    page = Page(
        STUDY,
        arguments,
        f"Stiffness and accuracy of residual networks on {data.name}",
        f"{describe(subjects)}; {arguments.images} test images. "
        "After Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023).",
        notice,
    )
    results = measure_networks(subjects, data, arguments)
    beside = measure_networks(others, data, arguments) if others else []
    evidence = gather(results)

    # The verdicts on the paper's claims come first, then the evidence in the order of the paper.
    page.heading("What these data say")
    said = findings(evidence)
    page.findings(said)
    surfaces = sections.surfaces_of(results)
    sections.first_figures(page, results, evidence.relations, len(data.test_images), surfaces)
    if data.name == "cifar10":
        sections.population(page, said, describe(subjects))
    sections.accuracy(page, results, len(data.test_images))
    sections.depth(page, results)
    sections.stiffness(page, results, evidence.compared, surfaces)
    sections.proportion(page, results, surfaces)
    sections.gates(page, results)
    sections.relation(page, results, evidence.relations, len(data.test_images))
    if beside:
        there = gather(beside)
        sections.appendix(page, describe(others), beside, said, there, findings(there))
    page.close()


def put_deep_first(shallow, deep: networks.Deep | None, dataset: str):
    """(networks that are judged, networks of the appendix): the deep ones are judged where there are seeds of them.

    Two counted blocks a stage make TNS the difference of two numbers; the paper's networks count seventeen.
    """
    known = deep.subjects if deep and deep.data.name == dataset else []
    plain = [one for one in known if one.controller == "constant"]
    return (known, shallow) if len(plain) >= FEWEST_SEEDS else (shallow, known)


def describe(subjects) -> str:
    """How many networks of which kind they are, how long they were trained, and how good they are."""
    depths = " and ".join(f"ResNet-{depth}" for depth in sorted({one.depth for one in subjects}))
    widths = sorted({one.net.config["widths"][0] for one in subjects})
    epochs = sorted({one.net.about["epochs"] for one in subjects if "epochs" in one.net.about})
    accuracies = [one.accuracy for one in subjects if one.accuracy is not None]
    parts = [f"width {networks.span_of(widths)}"]
    parts += [f"{networks.span_of(epochs)} epochs"] if epochs else []
    parts += [f"{min(accuracies):.1f} to {max(accuracies):.1f} %"] if accuracies else []
    return f"{len(subjects)} {depths} ({', '.join(parts)})"


def train_networks(arguments, data) -> Path:
    """The folder of the networks asked for; what is there already is not trained again."""
    folder = Path("results/train") / f"{arguments.dataset}-{arguments.recipe}"
    with plain_errors(STUDY):
        recipe = jobs.recipe_of(arguments.recipe, arguments.dataset)
        like = jobs.Job(arguments.dataset, "constant", 0, recipe, depth=arguments.depth or 20)
        wanted = [
            dataclasses.replace(like, controller=text if text in nb.controllers() else text.lower(), seed=seed)
            for text in arguments.controllers or CONTROLLERS
            for seed in arguments.seeds or (0, 1)
        ]
        for job in wanted:
            nb.resnet(job.depth, controller=jobs.spec_of_text(job.controller))  # a wrong name ends the run before hours
    nb.tune_allocator()
    jobs.train_all(wanted, data, folder, STUDY, arguments.device)
    return folder


def choose_networks(paths, arguments, data) -> list[networks.Subject]:
    """The networks at `paths` that the options ask for; the study ends with a message where there are none."""
    subjects = networks.name_subjects([networks.read_subject(path) for path in paths])
    root = "" if arguments.data_root is None else f" --data-root {arguments.data_root}"
    train = f"python -m studies.train --dataset {data.name}{root}"
    remedy = f"Train one with `{train}` and hand it over with --checkpoint."
    kept = networks.select(subjects, arguments, data.name, remedy)
    for one in kept:
        if one.net.config["num_classes"] != len(data.names):
            raise SystemExit(
                f"{one.source} tells {one.net.config['num_classes']} classes apart, {data.name} has {len(data.names)}: "
                "choose its `--dataset`."
            )
        if max(one.net.config["blocks"]) < 2:
            raise SystemExit(
                f"{one.source} has one block in every stage, and none that opens a stage is counted: nothing of its "
                "stiffness can be measured. Take a deeper network: a CIFAR ResNet of 20 layers or more."
            )
    return kept


def measure_networks(subjects, data, arguments) -> list:
    draws = choices(arguments.images, arguments.resamples, seed=0)

    def look(one, progress):
        found = measure(one, data, arguments.images, arguments.device, progress)
        set_stiffness(found, draws)
        return found

    return measure_each(subjects, arguments.images, look)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
