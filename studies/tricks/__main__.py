"""First paper, Figure 8 and Appendix A: training tricks, accuracy and stiffness (about 10 s; an hour or two to train).

Claims examined: a network that is better because of better training has a larger TNS; stiffness makes training hard
(Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The paper names no
trick: eight usual ones are taken, one at a time. A ninth, all of them but SAM at once, joined later. By default the
study shows the measurements that come with the repository; `--train` makes what is missing.

Last result (30 ResNet-20 of 8 channels, 5,000 images of 16 pixels, 20 epochs, three seeds of ten recipes, 2026-11-20):
no trick is better than the plain recipe beyond what seeds do, so the claim of Figure 8 is undecided. Mixup, cutmix,
cutout and TrivialAugment are 4 to 6 points worse, all tricks at once 15. Over recipes the worse ones have the larger
TNS (Kendall's tau -0.69 to -0.38 by reading), and the larger scale and shape: with ten recipes as units that is
undecided, where thirty networks as units called Figure 7's claim contradicted. Stiffer epochs do not gain less.
"""

import dataclasses
from pathlib import Path
from typing import Any

import torch

from netbridge.data import name_of
from studies.lab import definitions, jobs, measurements
from studies.lab.command import require_at_least, start
from studies.lab.options import ThreadOptions, which_jobs
from studies.lab.page import Page
from studies.tricks import design, figures, tables
from studies.tricks.analysis import Runs, course
from studies.tricks.findings import findings

STUDY = "tricks"
AVERAGING = "averaging"
SHIPPED = Path(__file__).parent / "shipped"


@dataclasses.dataclass
class Arguments(ThreadOptions):
    """Compare training tricks by what they do to accuracy and to stiffness."""

    train: bool = False
    """Train and measure what is missing. If it is stopped, start it again. Processes with one --out share the work."""
    full: bool = False
    """The paper's depth, images, epochs and number of seeds; give it a GPU."""
    seeds: int | None = None
    """How many seeds of every recipe: 3, with --full 5."""
    epochs: int | None = None
    """Another number of epochs than 20, with --full 164."""
    dataset: str = "cifar10"
    """What to train on: cifar10, cifar100, stl10, digits, or a name from a file of --define."""
    define: tuple[Path, ...] = ()
    """Python files with controllers, networks (NETWORKS) or data sets (DATASETS) of your own. With --train every recipe
    trains them, too. They are shown beside the networks of the study, whose verdicts stay its own."""
    out: Path = Path("results/tricks")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""


UNNAMED = (
    "The paper's text names no trick: which recipes its Figure 8 shows is not known, and those below are the usual "
    "ones. After Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective "
    "(2023), Figure 8 and Appendix A."
)


def main(arguments: Arguments):
    require_at_least(1, arguments, "seeds", "threads", "epochs")
    definitions.take_all(STUDY, arguments.define, arguments.dataset)
    arguments = dataclasses.replace(arguments, dataset=name_of(arguments.dataset, arguments.data_root))
    scale_of: dict[str, Any] = {"full": arguments.full, "dataset": arguments.dataset, "seeds": arguments.seeds}
    scale_of["epochs"] = arguments.epochs
    wanted, folders = design.queue(**scale_of), [SHIPPED]
    mine = design.of_ones_own(arguments.define, **scale_of)
    if arguments.smoke:
        arguments, wanted, folders = dataclasses.replace(arguments, train=True, threads=1), design.smoke(), []
    work = arguments.out / "runs"
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.train or arguments.remeasure:
        follow = design.SMOKE_TRACED if arguments.smoke else design.TRACED
        which, root = which_jobs(arguments), arguments.data_root
        measurements.work_off([*wanted, *mine], work, folders, root, arguments.device, follow, **which)
    found, ours = measurements.find_all(wanted, (work, *folders)), measurements.find_all(mine, (work,))
    own = of_each(ours)
    if not found:
        raise SystemExit(f"studies.{STUDY}: no measurement is there; `--train` makes them, resumably.")
    diverged = jobs.list_diverged([*wanted, *mine], (work, *folders))

    # The verdicts come first, then the tables and figures from which they follow.
    runs = Runs.of(found)
    page = Page(STUDY, arguments, "Training tricks and stiffness", UNNAMED, notice_of(found, wanted))
    page.heading("What these networks say")
    page.words(scale(found[0], len(found)))
    page.words(jobs.describe_diverged(diverged))
    page.findings(findings(runs))
    page.words(page.name_older([one.made for one in (*found, *ours)]))
    compare(page, runs)
    relate(page, runs, own)
    along_depth(page, runs)
    through_training(page, runs)
    ones_own(page, runs, own, len(mine))
    page.table("networks", tables.network_rows(runs), "Every network", printed=False, told=False)
    page.numbers["recipes"] = {name: design.tricks(arguments.full, arguments.dataset).get(name) for name in runs.groups}
    page.close()


def of_each(found) -> dict[str, Runs]:
    """The runs of every controller and network of the user's, by its name."""
    names = dict.fromkeys(one.numbers["controller"] for one in found)
    return {name: Runs.of([one for one in found if one.numbers["controller"] == name]) for name in names}


def notice_of(found, wanted) -> str:
    if len(found) == len(wanted):
        return ""
    return (
        f"{len(found)} of {len(wanted)} networks are measured, and the verdicts are theirs. `--train` makes the rest."
    )


def scale(one, count: int) -> str:
    """The limits of this run, which no number in its report can remove: scale, images, epochs and seeds."""
    job, how = one.specification, one.specification["recipe"]
    images = f"the first {job['images']:,} training images" if "images" in job else "all training images"
    size = f" of {job['size']} pixels" if "size" in job else ""
    words = (
        f"{count} ResNet-{job.get('depth', 20)} of {job.get('width', 16)} channels in the first stage on "
        f"{images}{size} of {job['dataset']}, {how['epochs']} epochs of batch {how.get('batch', 128)}, each recipe "
        "the plain one with one change. Intervals: 95 %; seeds are the units of what is said about a recipe (Tukey "
        "and Kramer, all differences at once), images those of what is said about these very networks."
    )
    if how["epochs"] < design.plain_recipe(full=True).epochs:
        words += (
            " The paper trains 164 layers on all images for 164 epochs (`--full`). In short trainings tricks that make "
            "the task harder cost accuracy which they give back later; which tricks are good ones here is said about "
            "this scale only."
        )
    return words


def compare(page, runs):
    page.heading("Recipes side by side (Figure 8)")
    page.figure(
        figures.recipes_figure(runs),
        "recipes",
        "Every recipe: a bar for the mean over seeds, a dot for each; dashed, the plain recipe. TNS under four "
        "readings, its scale (the mean NSI of the counted blocks) and its shape (TNS over the scale). The axis of the "
        "accuracy does not begin at 0.",
    )
    if AVERAGING in runs.groups:
        page.words(
            f"With {AVERAGING} only other weights are kept: a network of it went through the training of the plain "
            "one of the same seed, and the two are alike for that reason."
        )
    page.table("accuracy", tables.trick_rows(runs), "Accuracy by recipe")
    page.table(
        "tns",
        tables.stiffness_rows(runs),
        "TNS, its scale and its shape by recipe, under every reading",
        "Over images: what these networks differ by, whatever other seeds would say.",
        printed=False,
    )


def relate(page, runs, own):
    page.heading("Accuracy and TNS (Figure 7 for recipes)")
    hollow = f" Hollow: {', '.join(own)}." if own else ""
    page.figure(
        figures.relation_figure(runs, own),
        "accuracy_tns",
        f"Accuracy against TNS, its scale and its shape, one mark per network.{hollow}",
    )


def along_depth(page, runs):
    page.heading("Where the stiffness is")
    page.words(
        "Mixtures of labels and smoothing shrink the logits, and with them the norms of the last stage, by "
        "themselves: a TNS that differs there need not say anything about features. So here is NSI block by block, "
        "and TNS stage by stage."
    )
    page.figure(
        figures.blocks_figure(runs),
        "nsi_blocks",
        "Mean NSI of every block, over seeds and 1,000 test images. Hollow: the first block of a stage, not "
        "counted; where it changes the shape there is no increment.",
    )
    page.table(
        "stages",
        tables.stage_rows(runs),
        "TNS of every stage alone",
        "The slope's index, compared with the mean over all images; mean and standard deviation over seeds.",
    )


def through_training(page, runs):
    if all(course(one) is None for one in runs.all):
        return
    page.heading("Stiffness through training")
    page.figure(
        figures.training_figure(runs),
        "training",
        "Training loss, and TNS of test images under two readings, after every epoch; means over seeds. Dotted: the "
        "learning rate is divided by 10. Losses with mixed or smoothed labels are of another kind and lie higher; with "
        "averaging, TNS is that of the averaged weights.",
    )
    page.table(
        "hardness",
        tables.hardness_rows(runs),
        "Stiffness of an epoch and what the training loss gains until the next",
        "Kendall's tau among epochs of one learning rate, mean over networks with Student's interval: as it is, "
        "and of the changes from epoch to epoch beside what all networks do at that epoch.",
        printed=False,
    )


def ones_own(page, runs, own, wanted: int):
    """What the files of `--define` hold, recipe by recipe; no verdict rests on it."""
    if not wanted:
        return
    page.heading("Controllers and networks of your own")
    there = sum(len(one.all) for one in own.values())
    page.words(
        f"{jobs.count_ones_own(there, wanted)} They are trained by the same recipes, on the same images and from the "
        "same seeds as the networks of the study, whose verdicts above do not count them. Each is compared with itself "
        "under the plain recipe."
    )
    if own:
        page.table(
            "own", tables.own_rows({"constant step sizes": runs} | own), "Beside the networks of the study, by recipe"
        )


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
