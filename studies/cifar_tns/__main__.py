"""Figures 1-3, 6, 7, 9, 10 and Table 1 of the first paper on trained networks and real images (about 1 min).

Claim examined: networks with attention measure more stiffness, and the more of it, the better they are (Huang, Liang et
al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The report gives a
verdict on each claim, under every reading that the paper leaves open.

Last result (22 ResNet-20 on CIFAR-10, 1,000 images, 2026-11-18): undecided whether the better network has the larger
TNS (Kendall's tau -0.27 to -0.12 over the four readings, every interval holds zero); most controllers with attention
raise TNS (6 to 8 of 10), some lower it (1 or 2), and controllers differ in accuracy no more than two seeds of one do.
On three ResNet-56 of the digits, which count eight blocks a stage, few blocks are stiff, as the paper says (at 84 to
86 % of the degrees of Figure 6).
"""

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
from rich.progress import Progress

import netbridge as nb
from studies.cifar_tns import figures, tables
from studies.cifar_tns.findings import findings
from studies.lab import defined, jobs, networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.deep import deep_networks
from studies.lab.images import images_or_fallback
from studies.lab.measure import KINDS, READINGS, measure, set_stiffness, wording
from studies.lab.options import TracingOptions, fill_in
from studies.lab.page import Page
from studies.lab.statistics import choices
from studies.population import design
from studies.population.cited import shipped_findings
from studies.train import CONTROLLERS

STUDY = "cifar_tns"
PRESETS = {"quick": {"images": 1000, "resamples": 200}, "full": {"images": 10_000, "resamples": 1000}}
INDEX = {
    "slope": "the branch before its gate and the final ReLU, over the state",
    "increment": "Eq. 4 as printed, the change of the state over the state; undefined where a block changes the shape",
}
COUNTED = "The first block of every stage is drawn hollow and not counted."


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
        defined.run_file(path)
    data, notice, arguments = images_or_fallback(STUDY, arguments, "shows networks trained on", no_networks)
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
    deep = None if paths or arguments.depth else deep_networks(data)
    deeper = measure_networks(deep.subjects, deep.data, limit_images(arguments, deep.data)) if deep else []
    related, related_rows = tables.correlations(results, max(resamples, 100), seed=0)

    # The verdicts on the paper's claims come first, then the evidence in the order of the paper.
    page.heading("What these data say")
    said = findings(results, related, deeper, str(deep))
    page.findings(said)
    if data.name == "cifar10":
        population(page, said, len(results))
    accuracy(page, results, len(data.test_images))
    depth(page, results)
    stiffness(page, results)
    proportion(page, results)
    gates(page, results)
    if deeper:
        nine_blocks(page, deep, deeper)
    relation(page, results, related, related_rows, len(data.test_images))
    other_readings(page, results)
    page.close()


def population(page, said, networks):
    """The verdicts of the study of that name, where its measurements are shipped."""
    count, cited = shipped_findings()
    if count:
        page.table(
            "population",
            tables.beside_rows(said, cited, networks, count),
            "The same claims beside a population of small networks",
            f"{count} of {len(design.queue())} networks of 14 to 32 layers, trained for 3 or 6 epochs at "
            f"{design.PIXELS} pixels and judged by rules that were fixed before. They leave every claim undecided "
            f"with fewer than {design.FEWEST_NETWORKS} networks. `python -m studies.population` shows numbers and "
            "intervals, and with `--train` trains the rest.",
        )


def accuracy(page, results, test_images):
    page.heading("Accuracy (Table 1)")
    page.table(
        "accuracy",
        tables.accuracy_rows(results),
        "Test accuracy",
        f"On all {test_images} test images as the training measured it, on the traced ones where a checkpoint does not "
        "say: mean and standard deviation over networks, and the gain over constant step sizes in points.",
    )


def depth(page, results):
    page.heading("Stiffness along depth (Figures 1, 3 and 10)")
    first, second = KINDS
    page.figure(
        figures.single_figure(results, first),
        f"nsi_single_{first}",
        "NSI of single test images along depth. One line per image, the same images in every panel; NSI is "
        f"{INDEX[first]}. The paper's Figures 1 and 3 show such lines. {COUNTED}",
    )
    page.figure(
        figures.averaged_figure(results, first),
        f"nsi_depth_{first}",
        "NSI along depth, averaged over the images. One line per seed (Figure 10); the band holds nine images of ten "
        f"for the first of them. {COUNTED}",
    )
    page.figure(
        figures.single_figure(results, second),
        f"nsi_single_{second}",
        f"The same images by the other index. NSI is now {INDEX[second]}.",
    )
    page.figure(
        figures.averaged_figure(results, second),
        f"nsi_depth_{second}",
        "The average by the other index. Increments, as printed in Eq. 4, after the final ReLU.",
    )


def stiffness(page, results):
    reading = READINGS[0]
    page.heading("Total neural stiffness (Figure 2)")
    page.figure(
        figures.surface_figure(results, *reading, "delta"),
        f"tns_surface_{'_'.join(reading)}",
        f"The share of images that are stiff to the degree (M1, M2), with {wording(*reading)}. TNS is the "
        "volume below the surface, and is computed exactly, without this grid. Means over the seeds.",
    )
    page.figure(
        figures.tns_figure(results),
        "tns",
        "Exact TNS of every network with its 95 % bootstrap interval over images, under all four readings. Dashed: the "
        "mean of the networks with constant step sizes.",
    )
    page.table(
        "tns",
        tables.tns_rows(results),
        "TNS per controller, with 95 % intervals over images",
        "Means over the networks of a controller; how much another seed would change them is not in the intervals.",
    )
    page.table(
        "tns_over_constant",
        tables.excess_rows(results),
        "TNS beyond that of constant step sizes, with 95 % intervals over images",
        "The intervals are paired: both networks see the same images.",
    )


def proportion(page, results):
    reading = READINGS[0]
    page.heading("Stiffness proportion (Figure 6)")
    page.figure(
        figures.surface_figure(results, *reading, "proportion"),
        f"proportion_{'_'.join(reading)}",
        f"The expected share of counted blocks that are stiff to the degree (M1, M2), with {wording(*reading)}."
        " The paper finds at most 10 % for most degrees.",
    )
    page.table(
        "degrees",
        tables.degree_rows(results),
        "Shares of images and of counted blocks that are stiff to three degrees (M1, M2), in per cent",
        printed=False,
    )


def gates(page, results):
    page.heading("Step size and stiffness (Figure 9)")
    drawn = False
    for of in KINDS:
        kept, table, _ = tables.gate_table(results, of)
        if not len(table):
            continue
        drawn = True
        example = next((i for i, found in enumerate(kept) if found.subject.controller == "SE"), 0)
        blocks = clearest(table[example])
        page.figure(
            figures.cloud_figure(kept[example], of, blocks, table[example]),
            f"gate_cloud_{of}",
            f"Mean step size of an image against its NSI ({of}) at {len(blocks)} blocks. In the title Spearman's "
            "correlation; the paper shows three blocks of the first stage of SENet-164.",
        )
        rows = [figures.row_name(found) for found in kept]
        page.figure(
            figures.gate_figure(rows, table, of),
            f"gate_{of}",
            f"Spearman's correlation of step size and NSI ({of}) over images, for every network and block. A dot "
            "stands where the step size is the same for all images, or the index is undefined.",
        )
        page.table(
            f"gate_{of}",
            [
                {"network": name, **{f"block {k + 1}": tables.signed(value) for k, value in enumerate(line)}}
                for name, line in zip(rows, table, strict=True)
            ],
            f"Spearman's correlation of step size and NSI ({of})",
            printed=of == KINDS[0],
            told=False,  # the report shows the figure instead, which has the same numbers
        )
    if not drawn:
        page.words("No network here has a step size that changes from image to image: nothing to correlate.")


def nine_blocks(page, deep, deeper):
    """Figures 3, 6 and 9 on networks whose stages have enough blocks for them."""
    page.heading("Nine blocks a stage (Figures 3, 6 and 9)")
    page.words(
        f"{deep}, on {len(deeper[0].correct)} of its test images. A stage counts eight blocks; the figures above "
        "show networks that count two, of which one is never below their mean."
    )
    of, mu = READINGS[0]
    page.figure(
        figures.averaged_figure(deeper, of),
        "deep_nsi_depth",
        f"NSI along depth, averaged over the images. A line per seed; the band holds nine images of ten for the first "
        f"of them. {COUNTED}",
    )
    page.figure(
        figures.surface_figure(deeper, of, mu, "proportion"),
        "deep_proportion",
        f"The expected share of counted blocks that are stiff to the degree (M1, M2), with {wording(of, mu)}.",
    )
    kept, table, _ = tables.gate_table(deeper, of)
    if len(table):
        page.figure(
            figures.gate_figure([figures.row_name(found) for found in kept], table, of),
            "deep_gate",
            f"Spearman's correlation of step size and NSI ({of}) over images, for every network and block. White: the "
            "step size is the same for all images.",
        )
    page.table(
        "deep_networks",
        [
            {key: row[key] for key in ("controller", "seed", "accuracy (%)", "file")}
            for row in tables.network_rows(deeper)
        ],
        "The deep networks",
        printed=False,
    )


def clearest(line) -> list[int]:
    """The first three blocks with a correlation: those of the first stage, as far as it has them."""
    return [int(k) for k in np.flatnonzero(np.isfinite(line))[:3]]


def relation(page, results, found, rows, test_images):
    page.heading("Accuracy and TNS (Figure 7)")
    page.figure(
        figures.relation_figure(results, found, tables.accuracy_errors(results, test_images)),
        "accuracy_tns",
        "Accuracy against TNS, one mark per network, under all four readings. Bars: 95 % intervals over images. In the "
        "titles Kendall's tau and Spearman's rho with 95 % bootstrap (BCa) intervals over networks.",
    )
    page.table(
        "correlations",
        rows,
        "Rank correlation of TNS and accuracy, with 95 % bootstrap intervals",
        "A positive correlation is called supported or contradicted only where both coefficients, their intervals and "
        "their p-values agree.",
    )
    page.table("networks", tables.network_rows(results), "Every network", printed=False)


def other_readings(page, results):
    page.heading("Figures 2 and 6 under the other readings")
    page.words(
        "The paper leaves open whether NSI is of the branch or of the change of the state after its ReLU, and whether "
        "mu is the mean over a stage of one image or of all images."
    )
    for of, mu in READINGS[1:]:
        for which, name, what in (
            ("delta", "tns_surface", "images (Figure 2)"),
            ("proportion", "proportion", "blocks (Figure 6)"),
        ):
            page.figure(
                figures.surface_figure(results, of, mu, which),
                f"{name}_{of}_{mu}",
                f"The share of stiff {what}, with {wording(of, mu)}.",
            )


def no_networks(arguments) -> str:
    """The message where a data set is there and no network trained on it; "" where there are networks."""
    if (
        arguments.checkpoint
        or arguments.train
        or networks.shipped_files(arguments.dataset, deep=arguments.depth is not None)
    ):
        return ""
    return f"no networks trained on {arguments.dataset} come with this copy of the repository."


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
    remedy = f"Train one with `python -m studies.train --dataset {data.name}` and hand it over with --checkpoint."
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
    nb.tune_allocator()
    draws = choices(arguments.images, arguments.resamples, seed=0)
    results = []
    with Progress(transient=True) as progress:
        task = progress.add_task("tracing", total=len(subjects) * arguments.images)
        for one in subjects:
            progress.update(task, description=f"tracing {one.name}")
            found = measure(one, data, arguments.images, arguments.device, lambda n: progress.advance(task, n))
            set_stiffness(found, draws)
            one.net.cpu()
            results.append(found)
    return results


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
