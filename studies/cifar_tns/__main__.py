"""Figures 1-3, 6, 7, 9, 10 and Table 1 of the first paper on trained networks and real images (about 1 min).

Claim examined: networks with attention measure more stiffness, and the more of it, the better they are (Huang, Liang et
al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The report gives a
verdict on each claim, under every reading that the paper leaves open.

Last result (22 ResNet-20 on CIFAR-10, 1,000 images, 2026-11-19): undecided whether the better network has the larger
TNS (Kendall's tau -0.27 to -0.12 over the four readings, every interval holds zero); most controllers with attention
raise TNS (6 to 8 of 10), some lower it (1 or 2), and controllers differ in accuracy no more than two seeds of one do.
On three ResNet-56 of CIFAR-10, which count eight blocks a stage, few blocks are stiff, as the paper says (at 89 to 93 %
of the degrees of Figure 6).
"""

import dataclasses
from pathlib import Path
from typing import Literal

import netbridge as nb
from studies.cifar_tns import sections, tables
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
PRESETS = {"quick": {"images": 1000, "resamples": 200}, "full": {"images": 10_000, "resamples": 1000}}


@dataclasses.dataclass
class Arguments(TracingOptions):
    """Stiffness of trained networks on test images: figures, tables, conclusions, and report.html with all of it."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 1,000 test images; full: all of them, and more resamples."""
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
    arguments, _, resamples = fill_in(arguments, PRESETS[arguments.preset], len(data.test_images), fewest=2)
    folders = (train_networks(arguments, data),) if arguments.train else arguments.checkpoint
    paths = networks.checkpoints(folders)
    subjects = choose_networks(
        paths or networks.shipped_files(data.name, deep=arguments.depth is not None), arguments, data
    )

    # Measure both indices, step sizes and answers of every network, and TNS with its interval.
    page = Page(
        STUDY,
        arguments,
        f"Stiffness and accuracy of residual networks on {data.name}",
        f"{len(subjects)} networks, {len({s.name for s in subjects})} controllers, {arguments.images} test images. "
        "After Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023).",
        notice,
    )
    results = measure_networks(subjects, data, arguments)
    deep = None if paths or arguments.depth else networks.deep_networks(data)
    deeper = measure_networks(deep.subjects, deep.data, limit_images(arguments, deep.data)) if deep else []
    related, related_rows = tables.correlations(results, max(resamples, 100), seed=0)

    # The verdicts on the paper's claims come first, then the evidence in the order of the paper.
    page.heading("What these data say")
    said = findings(results, related, deeper, str(deep))
    page.findings(said)
    if data.name == "cifar10":
        sections.population(page, said, len(results))
    sections.accuracy(page, results, len(data.test_images))
    sections.depth(page, results)
    sections.stiffness(page, results)
    sections.proportion(page, results)
    sections.gates(page, results)
    if deeper:
        sections.nine_blocks(page, deep, deeper)
    sections.relation(page, results, related, related_rows, len(data.test_images))
    sections.other_readings(page, results)
    page.close()


def limit_images(arguments, data):
    """The options for a data set that may have fewer test images."""
    return dataclasses.replace(arguments, images=min(arguments.images, len(data.test_images)))


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
