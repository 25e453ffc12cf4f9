"""First paper, Table 3: Faster R-CNN over backbones with attention, and their stiffness within it (about 15 s).

Without COCO it shows detectors of made-up scenes in COCO's format, whose measurements are shipped. With `--data-root`
it trains on COCO itself, in any number of processes: `torchrun --nproc-per-node 8 -m studies.detect --data-root coco
--depth 50 --weights FOLDER --train`.

Last result (made-up scenes, 15 detectors, 2026-11-19): with three seeds of each row no module differs from the plain
backbone in AP (StepNet -0.7 points [-5.1, +3.7]); ten would show Table 3's differences. All four modules raise the
scale of NSI (by 24 to 56 %) and lower the shape of TNS (by 33 to 66 %, sample mean; by the data-set mean two do): their
TNS, the product, is lower with StepNet and by the increment index with SE and ECA, and open with the others. Five
backbones cannot say whether AP goes with TNS.
"""

import dataclasses
import functools
import hashlib
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from netbridge import detect
from netbridge.train import distributed
from studies.detect import design, figures
from studies.detect.findings import findings, printed_rows, stiffness, table_rows
from studies.detect.measures import Machine, carry_out, scenes
from studies.lab import jobs, measurements
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.images import folder_of
from studies.lab.options import which_jobs
from studies.lab.page import Page
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, SCALE, SHAPE, wording

STUDY = "detect"
SHIPPED = Path(__file__).parent / "shipped"
BACKBONES = (50, 101)


@dataclasses.dataclass
class Arguments:
    """Faster R-CNN over backbones of five step-size controllers."""

    data_root: Path | None = None
    """A folder with COCO 2017 (annotations/, train2017/, val2017/), or the folder of all data sets, with that as `coco`
    in it. Made-up scenes by default."""
    train: bool = False
    """Train and measure what is missing. If it is stopped, start it again. Processes with one --out share the work."""
    remeasure: bool = False
    """Train and measure again what other code than today's has measured; with --train what is missing, too."""
    controllers: tuple[str, ...] = design.ROWS
    """Rows of the table."""
    seeds: int = design.SEEDS
    """How many seeds of every row."""
    depth: int = 50
    """Of COCO's backbones: 50 or 101. Made-up scenes have ResNet-20."""
    weights: Path | None = None
    """A folder with COCO's backbones as studies.train writes them, such as resnet50-se-seed0.safetensors."""
    schedule: str = "1x"
    """On COCO: 1x (12 epochs); another number of epochs scales the drops of the rate with it."""
    epochs: int | None = None
    """On COCO: another number of epochs than the schedule's, to try things with."""
    short: int = design.COCO_SIZE
    """On COCO: pixels of the shorter side of every picture."""
    batch: int | None = None
    """Pictures per step on COCO, over all processes; 16 by default, and the learning rate is in proportion."""
    workers: int = 4
    """Processes that decode COCO's pictures, for each process that trains."""
    checkpoint_minutes: float | None = None
    """On COCO, write the state down within an epoch, too, when so many minutes have passed."""
    parts: int | None = None
    """A batch is computed in so many parts, whatever the number of processes; as many as there are by default."""
    device: str | None = None
    """cpu, cuda; the fastest there is by default."""
    threads: int | None = None
    """Threads of the processor to use; all by default."""
    out: Path = Path("results/detect")
    """Where measurements (in runs/), scenes, figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "seeds", "batch", "parts", "threads", "epochs", "short")
    require_at_least(0, arguments, "workers", "checkpoint_minutes")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    if arguments.data_root is not None:
        arguments = dataclasses.replace(arguments, data_root=folder_of("coco", arguments.data_root))
    with plain_errors(STUDY):
        runs = plan_runs(arguments)
    folders = [] if arguments.smoke else [SHIPPED]
    work = arguments.out / "runs"
    with distributed.join():
        if arguments.train or arguments.remeasure or arguments.smoke:
            train_missing(runs, folders, work, arguments)
        if distributed.rank() == 0:
            report(runs, [one for run in runs if (one := measurements.find(run, (work, *folders)))], arguments)


def plan_runs(arguments) -> list[design.Run]:
    """The detectors that the options ask for, seed by seed."""
    if arguments.smoke:
        return design.smoke()
    if arguments.data_root is None:
        return design.made_up(arguments.seeds, arguments.controllers)
    if arguments.depth not in BACKBONES:
        raise ValueError(f"`--depth` must be one of {list(BACKBONES)}, got {arguments.depth}.")
    recipe = design.schedule(arguments.schedule, arguments.batch, arguments.epochs)
    shape = (name_at(arguments.data_root), recipe, arguments.depth)
    return [
        design.Run(row, seed, *shape, size=arguments.short, weights=digest(backbone_path(arguments, row, seed)))
        for seed in range(arguments.seeds)
        for row in arguments.controllers
    ]


def name_at(root: Path) -> str:
    """What the pictures in a folder are called: made-up scenes there are not called COCO."""
    try:
        return design.REHEARSED if detect.load(root).name == design.MADE_UP else "coco"
    except FileNotFoundError:  # whoever loads the pictures says what is missing
        return "coco"


def backbone_path(arguments, row: str, seed: int) -> Path | None:
    """The file of a trained backbone."""
    if arguments.weights is None:
        return None
    path = arguments.weights / f"resnet{arguments.depth}-{row}-seed{seed}.safetensors"
    if not path.is_file():
        raise ValueError(f"`--weights`: {path} is not there; python -m studies.train makes it.")
    return path


def digest(path: Path | None) -> str | None:
    """Eight letters that tell files apart."""
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def train_missing(runs, folders, work: Path, arguments) -> None:
    """Train and measure what is not there; several processes of torchrun work on one detector after the other."""
    machine = Machine(
        arguments.device,
        0 if arguments.data_root is None else arguments.workers,
        arguments.parts,
        arguments.checkpoint_minutes,
    )

    find = jobs.finder(lambda run: measurements.find(run, (work, *folders)), **which_jobs(arguments))

    def is_missing(run) -> bool:
        return find(run) is None

    def make(run) -> str:
        path = None if arguments.data_root is None else backbone_path(arguments, run.controller, run.seed)
        with plain_errors(STUDY):
            data = scenes(run, arguments.out, arguments.data_root)
        found = carry_out(run, data, work, None if path is None else nb.load(path), machine)
        return f"AP {found.numbers['AP']:.1f}, AP50 {found.numbers['AP50']:.1f}."

    if distributed.world() == 1:
        jobs.work_off(lambda: runs, find, make, work)
        return
    for run in runs:
        if distributed.from_first(functools.partial(is_missing, run)):
            make(run)


def report(runs, found: list, arguments) -> None:
    """The page of the study."""
    made_up = arguments.data_root is None
    notices = [
        "NOT COCO: made-up scenes of shapes. These numbers are about small detectors of 240 steps and say nothing "
        "about COCO."
        if made_up
        else "",
        "NOT COCO: made-up scenes in its format, to rehearse with; no number below is about COCO."
        if any(run.dataset == design.REHEARSED for run in runs)
        else "",
        "Backbones with fresh weights: the paper's were trained on ImageNet before."
        if not made_up and arguments.weights is None
        else "",
    ]
    page = Page(
        STUDY,
        arguments,
        f"Detectors on {'made-up scenes' if made_up else 'COCO'}: Table 3",
        "After Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023). "
        "Faster R-CNN in plain torch over our backbones; average precision by pycocotools. Below every verdict "
        "stands its rule, and when it was fixed.",
        " ".join(filter(None, notices)),
    )
    page.heading("What these data say")
    page.findings(findings(found))
    page.words(page.name_older([one.made for one in found]))
    if missing := len(runs) - len(found):
        page.words(f"{missing} of the {len(runs)} detectors are missing; `--train` makes them.")
    if found:
        with plain_errors(STUDY):
            data = scenes(without_the_rest(runs[0]) if made_up else runs[0], arguments.out, arguments.data_root)
        precision_part(page, found)
        pictures_part(page, data, found)
        stiffness_part(page, found)
    page.heading("As printed")
    page.table("printed", printed_rows(), "Table 3 of the paper, COCO", printed=False)
    page.close()


def without_the_rest(run: design.Run) -> design.Run:
    """The same scenes, but only those that are drawn: the first ones do not depend on how many follow."""
    return dataclasses.replace(run, pictures=(1, design.SHOWN))


def precision_part(page, found: list) -> None:
    page.heading("Average precision")
    page.figure(
        figures.precision_figure(found),
        "precision",
        "AP on test pictures. Grey: single seeds; in colour the mean with Student's interval over seeds.",
    )
    page.table("table3", table_rows(found), "Table 3 of these detectors, per cent; intervals over seeds")
    page.figure(figures.loss_figure(found), "loss", "Training loss, every seed a line.")


def pictures_part(page, data, found: list) -> None:
    page.heading("What they see")
    first = list({one.specification["controller"]: one for one in reversed(found)}.values())[::-1]
    page.figure(
        figures.detection_figure(data, first),
        "pictures",
        "Test pictures. White, dotted: what is there. In colour: what is found with a score of a half or more.",
    )


def stiffness_part(page, found: list) -> None:
    page.heading("Stiffness of the backbones")
    page.words(
        "NSI of every block on test pictures, by `nb.trace`. Before training, normalisations with fresh weights have "
        "seen these pictures once. TNS counts the blocks that do not open a stage."
    )
    page.figure(
        figures.stiffness_figure(found),
        "nsi",
        "NSI of the blocks (slope index), mean over pictures and seeds; thin: single seeds. Hollow: first blocks of "
        "stages, which are not counted.",
    )
    page.figure(
        figures.parts_figure(found),
        "parts",
        "TNS of the trained backbones, its scale (the mean NSI of the counted blocks) and its shape (TNS over the "
        "scale). Grey: single seeds; in colour the mean with Student's interval over seeds.",
    )
    page.figure(figures.relation_figure(found), "relation", "AP against TNS under all four readings, every detector.")
    page.table(
        "tns",
        [
            {
                "backbone": one.specification["controller"],
                "seed": one.specification["seed"],
                "AP": f"{one.numbers['AP']:.2f}",
            }
            | {
                f"{moment}: {wording(*reading)}": "none" if value is None else f"{value:.3f}"
                for moment in ("before", "after")
                for reading, value in zip(READINGS, one.numbers[moment]["tns"], strict=True)
            }
            | {
                f"after: {QUANTITY_NAMES[what]}, {wording(*reading)}": "" if np.isnan(value) else f"{value:.3f}"
                for what in (SCALE, SHAPE)
                for reading in QUANTITIES[what]
                for value in [stiffness(one, what, reading)]
            }
            for one in found
        ],
        "TNS of every backbone before and after training, and its scale and shape",
        printed=False,
    )


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
