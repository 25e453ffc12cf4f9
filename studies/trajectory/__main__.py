"""First paper, Definition 3: ground truth trajectories, block importance, large features, first blocks (about 2 min).

Claims examined: there are trajectories of high-performance networks; the closer another network comes to one, the
better it is, and attention brings networks closer (Section 2.3, Figures 1 and 10); for most inputs they are stiff
(property (1)), because large features matter (Section 3.1); the first block of a stage is inflated (Section 2.2); step
size and stiffness along a trajectory (Figure 9b). Huang, Liang et al., Understanding Self-attention Mechanism via
Dynamical System Perspective, 2023. Features of two networks share no coordinates, so the study compares indices, and
which images lie near which (CKA).

Last result (22 ResNet-20 on CIFAR-10, 500 images, 2026-11-20): by NSI as it is seven of nine controllers with attention
are nearer to the best network than plain ones and two farther, but that is mostly the scale of the branches; with the
scale divided out, and by CKA, it depends on which of the three best stands in. The deviation grows with depth by CKA
and not by NSI. Networks that are nearer are not better beyond chance; no first block has twice the index of the others;
whether stiff blocks and large features are the important ones three controllers do not decide. On two ResNet-56 of
CIFAR-10, with SE and StepNet, step sizes fall where NSI is larger along 25 % of the trajectories only (of the digits:
86 %); one seed of each decides nothing.
"""

import dataclasses
import time
from pathlib import Path
from typing import Literal

import numpy as np
from rich.progress import Progress

import netbridge as nb
from studies.lab import definitions, networks
from studies.lab.command import start
from studies.lab.networks import images_or_fallback
from studies.lab.options import TracingOptions, fill_in
from studies.lab.page import Page
from studies.lab.statistics import choices
from studies.lab.stiffness import measure
from studies.trajectory import design, figures, tables
from studies.trajectory.findings import findings, judge_along
from studies.trajectory.importance import importance
from studies.trajectory.measures import (
    Along,
    along_of,
    best,
    by_controller,
    course,
    first_ratios,
    from_proxy,
    set_distances,
)

STUDY = "trajectory"


@dataclasses.dataclass
class Arguments(TracingOptions):
    """Trajectories of trained networks beside that of the best of them: figures, tables, conclusions."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 500 test images; full: all of them, and more resamples."""
    depth: int | None = None
    """Only networks with so many layers, 56 for the deep ones; all but these by default."""
    all: bool = False
    """Drop blocks of every network, not only of those with constant step sizes, SE and StepNet."""
    out: Path = Path("results/trajectory")
    """Where figures, tables, report.html and record.json go."""


def main(arguments: Arguments):
    began = time.process_time()
    if arguments.smoke:
        arguments = dataclasses.replace(
            arguments, dataset="digits", controllers=("constant", "se"), images=64, resamples=20
        )
    for path in arguments.define:
        definitions.run_file(path)
    data, notice, arguments = images_or_fallback(
        STUDY, arguments, "shows networks trained on", networks.explain_absence
    )
    arguments, images, resamples = fill_in(arguments, design.PRESETS[arguments.preset], len(data.test_images), fewest=8)
    paths = networks.checkpoints(arguments.checkpoint)
    subjects = choose_networks(
        paths or networks.shipped_files(data.name, deep=arguments.depth is not None), arguments, data
    )
    page = Page(
        STUDY,
        arguments,
        f"Trajectories of networks and the best of them, on {data.name}",
        f"{len(subjects)} networks, {arguments.images} test images. After Huang, Liang et al., Understanding "
        "Self-attention Mechanism via Dynamical System Perspective (2023).",
        notice,
    )
    courses, losses = measure_networks(subjects, data, arguments)
    draws = choices(images, resamples, seed=0)
    proxy, *rivals = best(courses, design.PROXIES)
    nearer = []
    for one in (*rivals, proxy):  # the proxy comes last, because the distances of the last one are kept
        set_distances(courses, one, draws)
        nearer.append(from_proxy(courses, one))
    ratios = [first_ratios(one) for one in courses]

    page.heading("What these data say")
    page.words(networks.scale_of(subjects, "the paper's have 164 layers and 164 epochs"), design.PROXY)
    deep = None if paths or arguments.depth else networks.deep_networks(data)
    deeper = deep_along(deep, arguments) if deep else []
    said = (
        finding_along(deeper, f"On {deep}. ") if deeper else finding_along([one for one in courses if len(one.along)])
    )
    page.findings(findings(courses, proxy, nearer[::-1], losses, ratios, said))
    distances(page, courses, proxy)
    matters(page, losses)
    along(page, courses, deep, deeper)
    stiff_somewhere(page, courses)
    first_blocks(page, courses, ratios, draws)
    page.numbers["processor seconds"] = round(time.process_time() - began, 1)
    page.words(f"This run took {page.numbers['processor seconds']:.0f} s of processor time.")
    page.close()


def distances(page, courses, proxy):
    page.heading("Closeness to the proxy (Figures 1 and 10)")
    page.figure(
        figures.course_figure(courses, proxy, "slope"),
        "courses",
        "NSI along depth, mean over images, of the proxy and of all other networks. Hollow: the first block of a "
        "stage, not counted. The vertical axis is logarithmic, as distances between indices are.",
    )
    page.figure(
        figures.distance_figure(courses, proxy),
        "distances",
        f"How far every network is from the proxy, block by block. CKA is of the states behind the blocks, on "
        f"{len(proxy.norms)} images. Above the black line a distance exceeds that of another seed.",
    )
    page.figure(
        figures.nearness_figure(courses, proxy),
        "nearness",
        "Accuracy against the distance from the proxy, whose accuracy is the dashed line. Bars: 95 % intervals over "
        "images.",
    )
    page.table(
        "distances",
        tables.distance_rows(courses, proxy),
        "Distances from the proxy with 95 % intervals over images",
        "NSI, and shape (NSI over its scale): mean over the counted blocks; CKA: over all. The floor is the distance "
        "of the proxy's other seeds. tau: Kendall's correlation with depth within the network.",
    )


def matters(page, losses):
    page.heading("Which blocks and features matter (Section 3.1)")
    page.figure(
        figures.importance_figure(losses),
        "importance",
        "The rise of the loss when a block is dropped, against the block's mean NSI. One mark per block with its "
        "number, a colour per stage; hollow: the first block of a stage. The vertical axis is linear below 0.1 "
        "and logarithmic above.",
    )
    page.table("importance", tables.importance_rows(losses), "What is lost without each block", printed=False)
    page.table(
        "importance_correlations",
        tables.correlation_rows(losses),
        "Spearman's correlation of a block's NSI and the rise of the loss without it",
    )
    page.figure(
        figures.features_figure(losses),
        "features",
        f"The rise of the loss without some elements of a counted block's slope, on "
        f"{len(losses[0].features['largest'])} images: the {100 * design.SHARE:g} % with the largest magnitude, so "
        "many of the smallest as have the same norm, and as many of the smallest. Bars: mean over networks, the dots.",
    )
    page.table("features", tables.feature_rows(losses), "Rise of the loss without features", printed=False, told=False)


def deep_along(deep: networks.Deep, arguments) -> list[Along]:
    """Figure 9b of deep networks: those whose step sizes vary."""
    images = min(arguments.images, len(deep.data.test_images))
    found = []
    for one in deep.subjects:
        measured = measure(one, deep.data, images, arguments.device)
        one.net.cpu()
        found.append(Along(one, along_of(measured.records["slope"])))
    return [one for one in found if len(one.along)]


def finding_along(found: list, which: str = ""):
    """Figure 9b as worded, of networks whose step sizes vary; `which` says of which, where others are on the page."""
    means = by_controller(found, lambda one: float(one.along.mean()))
    blocks = min((min(one.subject.net.config["blocks"]) for one in found), default=0) - 1
    negative = float(np.mean([np.mean(one.along < 0) for one in found])) if found else np.nan
    return judge_along(means, blocks, which=which, negative=negative)


def along(page, courses, deep=None, deeper=()):
    page.heading("Step size and stiffness along a trajectory (Figure 9b)")
    if deeper:
        page.figure(
            figures.along_figure(deeper),
            "deep_gate_along",
            f"{deep}: Spearman's correlation of step size and NSI along the counted blocks of a stage, averaged over "
            "the stages, for single images; a histogram over images, a line per seed.",
        )
    if not any(len(one.along) for one in courses):
        page.words("No network here has a step size that changes from image to image: nothing to correlate.")
        return
    page.figure(
        figures.along_figure(courses),
        "gate_along",
        "Spearman's correlation of step size and NSI along the counted blocks of single images, a histogram over "
        "images. A line per seed; the stages are pooled.",
    )


def stiff_somewhere(page, courses):
    page.heading("Property (1)")
    page.table(
        "property1",
        tables.property_rows(courses),
        "Share of images with a counted block at least (1 + M1) times as stiff as the mean of its stage",
        printed=False,
    )


def first_blocks(page, courses, ratios, draws):
    page.heading("The first block of a stage (Section 2.2)")
    page.figure(
        figures.first_figure(courses, ratios),
        "first_blocks",
        "A stage's first block over the median of its others, mean over images, one dot per network. Left NSI, right "
        "the norm of the state behind the block. Dashed: no difference.",
    )
    page.table(
        "first_blocks",
        tables.first_rows(courses, draws),
        "First block over the median of the others, with 95 % intervals over images",
        printed=False,
    )


def choose_networks(paths, arguments, data) -> list[networks.Subject]:
    """The networks at `paths` that the options ask for; the study ends with a message where there are none."""
    subjects = networks.name_subjects([networks.read_subject(path) for path in paths])
    kept = networks.select(subjects, arguments, data.name, "`python -m studies.train` makes more.", fewest=2)
    shapes = {(tuple(one.net.config["blocks"]), one.net.config["num_classes"]) for one in kept}
    if len(shapes) > 1 or next(iter(shapes))[1] != len(data.names):
        raise SystemExit(
            f"all networks must have one depth and tell the {len(data.names)} classes of {data.name} apart; these have "
            f"{', '.join(f'blocks {list(blocks)} and {classes} classes' for blocks, classes in sorted(shapes))}."
        )
    if min(next(iter(shapes))[0]) < 2:
        raise SystemExit("every stage needs two blocks, for the first of each is not counted: take deeper networks.")
    return kept


def measure_networks(subjects, data, arguments):
    """The course of every network, and what those that are dropped from lose."""
    nb.tune_allocator()
    with Progress(transient=True) as progress:
        task = progress.add_task("tracing", total=len(subjects))
        courses = []
        for one in subjects:
            progress.update(task, description=f"tracing {one.name}")
            courses.append(course(one, data, arguments.images, arguments.device))
            one.net.cpu()
            progress.advance(task)
        kept = [one for one in courses if arguments.all or one.subject.controller in design.DROPPED] or courses[:2]
        blocks = sum(2 * len(one.subject.net.blocks) for one in kept)
        task = progress.add_task("dropping blocks", total=blocks)
        losses = [
            importance(one, data, arguments.images, arguments.device, lambda: progress.advance(task)) for one in kept
        ]
    return courses, losses


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
