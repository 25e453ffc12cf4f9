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

import copy
import dataclasses
import functools
import hashlib
import json
from pathlib import Path

import filelock
import numpy as np
import torch

import netbridge as nb
from netbridge import detect
from netbridge.common.devices import best_device
from netbridge.detect.coco import Coco
from netbridge.detect.evaluation import NAMES
from netbridge.detect.scenes import to_test
from netbridge.train import distributed
from netbridge.train.recipes import Recipe
from odelab.plot import style
from studies.lab import jobs, measurements
from studies.lab.claims import FEWEST_SEEDS, Arms
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.comparisons import deviation_cell
from studies.lab.exhibits import Exhibit, write
from studies.lab.figures import MARKS, hide_scales, legend_below, looks_of, reach_of
from studies.lab.jobs import changed_fields, spec_of_text
from studies.lab.measurements import Measurement
from studies.lab.networks import folder_of
from studies.lab.options import which_jobs
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.results import source
from studies.lab.statistics import KindRelation, interval_text, listing, mean_over_networks, relate_kinds
from studies.lab.stiffness import (
    KINDS,
    QUANTITIES,
    QUANTITY_NAMES,
    READINGS,
    SCALE,
    SHAPE,
    TNS,
    mean_stiffness,
    quantity_of,
    wording,
)
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    agreeing,
    corrected,
    draw_seeds,
    joint,
    of_kinds,
    rule,
)

STUDY = "detect"
SHIPPED = Path(__file__).parent / "shipped" / STUDY
BACKBONES = (50, 101)

# ---- The design: what is trained. Written before anything was trained for it ----
#
# The design of `detect`: what is trained. Written before anything was trained for it.
#
# The rows are those of Table 3: plain (constant step sizes), SE, ECA, SGE, StepNet. SGE has 8 groups on made-up scenes,
# whose narrowest stage has 16 channels.
#
# *Made-up scenes.* 640 pictures to train on and 100 to test with, 96 x 96 pixels, one to three ellipses, rectangles and
# triangles each. The backbone is a ResNet-20 with ImageNet's stem and widths 16, 32, 64, from fresh weights, since
# there is nothing to pretrain it on: no stage and no normalisation is frozen. 240 steps of 8 pictures, cosine schedule,
# three seeds of each row, the scenes the same for all. (Of a pilot with one seed, 128 pixels and 250 steps it was known
# that the plain row reaches an AP50 of 53.)
#
# *COCO.* With `--data-root`: MMDetection's standard schedule, pictures of 800 to 1333 pixels, backbones as `--weights`
# has them, the stem and the first stage frozen, every normalisation of the backbone with its running statistics.
#
# The rules stand below, each with its text. Those of claims 1 and 2, that every module has a higher AP than
# the plain backbone and StepNet the highest, were fixed beforehand: Dunnett over seeds, from 3 seeds of each row on.
# Those of claims 3 and 4, about stiffness, changed when the detectors had been seen; what they were is in
# `docs/papers.md`.


ROWS = ("constant", "se", "eca", "sge", "stepnet")
SEEDS = 3
PICTURES, SIZE = (640, 100), 96
TRACED = 64  # test pictures
SHOWN = 4  # test pictures whose detections are kept to be drawn
FEWEST_ROWS = 6
MADE_UP, REHEARSED = "coco-miniature", "coco-rehearsed"  # scenes of the study; made-up scenes in the place of COCO
COCO_SIZE = 800
SMALL = dataclasses.replace(detect.SMALL, features=32, canonical=48.0)
RECIPE = Recipe("detect", 3, 8, lr=0.02, schedule="cosine", warmup=0.5, clip=10.0, evaluate_every=3)


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
    controllers: tuple[str, ...] = ROWS
    """Rows of the table."""
    seeds: int = SEEDS
    """How many seeds of every row."""
    depth: int = 50
    """Of COCO's backbones: 50 or 101. Made-up scenes have ResNet-20."""
    weights: Path | None = None
    """A folder with COCO's backbones as studies.train writes them, such as resnet50-se-seed0.safetensors."""
    schedule: str = "1x"
    """On COCO: 1x (12 epochs); another number of epochs scales the drops of the rate with it."""
    epochs: int | None = None
    """On COCO: another number of epochs than the schedule's, to try things with."""
    short: int = COCO_SIZE
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


@dataclasses.dataclass(frozen=True)
class Run:
    """One detector to train; the fields are everything that determines what it becomes.

    controller  of the backbone
    seed        of its fresh weights, of the order of the pictures and of the samples
    dataset     "coco-miniature" for made-up scenes, "coco", or "coco-rehearsed" for scenes in the place of COCO
    recipe      a `Recipe`
    depth       of the backbone: 20, or 50 and 101 for COCO
    pictures    how many made-up scenes there are to train on and to test with
    size        height and width of made-up scenes; the shorter side of COCO's pictures
    weights     the digest of the backbone's file; None: fresh weights
    """

    controller: str
    seed: int
    dataset: str = MADE_UP
    recipe: Recipe = RECIPE
    depth: int = 20
    pictures: tuple[int, int] = PICTURES
    size: int = SIZE
    weights: str | None = None

    @property
    def stem(self) -> str:
        """The name of its files, made unique by the digest of the specification."""
        return f"resnet{self.depth}-{self.controller}-seed{self.seed}-{self.digest}"

    @property
    def specification(self) -> dict:
        """Everything that determines the detector, in plain JSON."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        settings = (SMALL if self.dataset == MADE_UP else detect.Settings()).as_json()
        return json.loads(json.dumps(record | {"recipe": changed_fields(self.recipe), "settings": settings}))

    @property
    def digest(self) -> str:
        """Eight letters that tell specifications apart."""
        return hashlib.sha256(json.dumps(self.specification, sort_keys=True).encode()).hexdigest()[:8]

    def untrained_detector(self, names, weights=None) -> detect.Detector:
        """The detector before it is trained; `weights` is a trained backbone."""
        torch.manual_seed(self.seed)
        if self.dataset == MADE_UP:
            spec = nb.controller("sge", groups=8) if self.controller == "sge" else spec_of_text(self.controller)
            body = nb.resnet(self.depth, controller=spec, stem="imagenet", widths=(16, 32, 64))
            return detect.Detector(body, names, SMALL, frozen_stages=0, frozen_norms=False)
        body = nb.resnet(self.depth, 1000, spec_of_text(self.controller)) if weights is None else weights
        return detect.Detector(body, names, frozen_stages=int(weights is not None), frozen_norms=weights is not None)


def made_up(seeds: int = SEEDS, rows=ROWS, **changes) -> list[Run]:
    """The runs on made-up scenes, seed by seed, so that whatever is there is a comparison of all rows."""
    return [Run(row, seed, **changes) for seed in range(seeds) for row in rows]


def smoke() -> list[Run]:
    """Two detectors that only show that everything works."""
    recipe = dataclasses.replace(RECIPE, epochs=1, batch=4, evaluate_every=1)
    return made_up(1, ("constant", "stepnet"), recipe=recipe, pictures=(8, 4), size=64)


def schedule(schedule: str, batch: int | None = None, epochs: int | None = None) -> Recipe:
    """MMDetection's schedule for so many times 12 epochs, such as 1x or 2x; the rate is in proportion to the batch.

    epochs  another number of them, to try things with: the rate drops where it would
    """
    times = schedule.removesuffix("x")
    if not times.isdigit() or not int(times):
        raise ValueError(f"`--schedule` must be 1x, 2x, ..., got {schedule!r}.")
    once, k = detect.SCHEDULES["coco-1x"], int(times)
    batch = batch or once.batch
    drops = tuple(k * drop for drop in once.drops)
    return dataclasses.replace(
        once, epochs=epochs or k * once.epochs, drops=drops, batch=batch, lr=once.lr * batch / once.batch
    )


def plan_runs(arguments) -> list[Run]:
    """The detectors that the options ask for, seed by seed."""
    if arguments.smoke:
        return smoke()
    if arguments.data_root is None:
        return made_up(arguments.seeds, arguments.controllers)
    if arguments.depth not in BACKBONES:
        raise ValueError(f"`--depth` must be one of {list(BACKBONES)}, got {arguments.depth}.")
    recipe = schedule(arguments.schedule, arguments.batch, arguments.epochs)
    shape = (name_at(arguments.data_root), recipe, arguments.depth)
    return [
        Run(row, seed, *shape, size=arguments.short, weights=digest(backbone_path(arguments, row, seed)))
        for seed in range(arguments.seeds)
        for row in arguments.controllers
    ]


def name_at(root: Path) -> str:
    """What the pictures in a folder are called: made-up scenes there are not called COCO."""
    try:
        return REHEARSED if detect.load(root).name == MADE_UP else "coco"
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


# ---- What is measured of a detector: average precision, and the stiffness of its backbone before and after ----
ROOMS = ("netbridge/detect",)  # what detectors are trained and measured by beside what every network is


@dataclasses.dataclass(frozen=True)
class Machine:
    """How to train here: the options of `detect.train` that change no result."""

    device: str | None = None
    workers: int = 0
    parts: int | None = None
    checkpoint_minutes: float | None = None


def scenes(run: Run, out: Path, root: Path | None = None) -> detect.Coco:
    """The pictures of a run: COCO under `root`, or made-up scenes, drawn into `out` where they are missing."""
    if root is not None:
        return detect.load(root, short=run.size, long=5 * run.size // 3)  # 1333 for 800, as everybody has it
    (train, test), size = run.pictures, run.size
    folder = out / f"scenes-{train}-{test}-{size}"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / "lock"):
            if not (folder / "ready").exists():
                detect.shapes(folder, train, test, size)
                (folder / "ready").touch()
    return detect.load(folder / "coco", short=size)


def carry_out(run: Run, data: detect.Coco, work: Path, weights=None, machine: Machine | None = None) -> Measurement:
    """Train the detector of a run in the folder `work`, or go on with it, and measure it.

    The weights of a detector of made-up scenes are deleted when it is measured; those of COCO stay.
    """
    machine = machine or Machine()
    device = machine.device or best_device()
    net = run.untrained_detector(data.names, weights)
    images = 16 if run.dataset == MADE_UP else 1
    before = measure_stiffness(calibrate(net.to(device), data), data, images)
    path = work / f"{run.stem}.safetensors"
    detect.train(
        *(net, data, run.recipe, run.seed, path, {"controller": run.controller}, device),
        workers=machine.workers,
        parts=machine.parts,
        checkpoint_minutes=machine.checkpoint_minutes,
    )
    log = distributed.from_first(lambda: [json.loads(line) for line in lines_of(path.with_suffix(".jsonl"))[1:]])
    boxes = detect.results(net, data, run.recipe.batch)
    after = measure_stiffness(net, data, images)
    shown = {image["id"] for image in data.test.images[:SHOWN]}
    numbers = {
        **detect.average_precision(data, boxes),
        "before": totals(before),
        "after": totals(after),
        "first": after.first.tolist(),
        "blocks": list(after["slope"].names),
        "parameters": sum(x.numel() for x in net.parameters()),
        "log": log,
        "shown": [box for box in boxes if box["image_id"] in shown],
        "made": {"seconds": net.about["seconds"], "threads": torch.get_num_threads(), **source(ROOMS, ROOMS)},
    }
    arrays = {
        f"nsi_{moment}": records["slope"].nsi.astype(np.float32)
        for moment, records in (("before", before), ("after", after))
    }
    measured = Measurement(run.specification, numbers, arrays)
    if distributed.rank() == 0:
        if run.dataset != MADE_UP:
            (work / f"{run.stem}.detections.json").write_text(json.dumps(boxes))
        measurements.write(measured, work / f"{run.stem}.npz")
        if run.dataset == MADE_UP:
            for ending in (".safetensors", ".jsonl"):
                path.with_suffix(ending).unlink(missing_ok=True)
    distributed.wait()
    return measured


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def calibrate(net: detect.Detector, data: detect.Coco) -> detect.Detector:
    """The untrained detector; fresh normalisations have seen one batch of the test pictures, else they do nothing."""
    if net.frozen_norms:
        return net
    net = copy.deepcopy(net)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # a mean of all that is seen
    _, images, _ = next(to_test(data, TRACED, device=next(net.parameters()).device))
    with torch.no_grad():
        net.backbone.train()(images)
    return net


def measure_stiffness(net: detect.Detector, data: detect.Coco, at_once: int) -> nb.Records:
    """Both stiffness indices of the backbone on the first test pictures."""
    device = next(net.parameters()).device
    some = dataclasses.replace(data, test=dataclasses.replace(data.test, images=data.test.images[:TRACED]))
    backbone = net.eval().backbone
    return nb.Records.merge(
        [nb.trace(backbone, images, of=KINDS) for _, images, _ in to_test(some, at_once, device=device)]
    )


def totals(records: nb.Records) -> dict:
    """TNS under every reading, its scale by index, and the mean slope NSI of every block."""
    return {
        "scale": {of: float(records[of].counted().nsi.mean()) for of in KINDS},
        "tns": [mean_stiffness(records[of], mu) for of, mu in READINGS],
        "nsi": records["slope"].nsi.mean(0).tolist(),
    }


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
        measured = carry_out(run, data, work, None if path is None else nb.load(path), machine)
        return f"AP {measured.numbers['AP']:.1f}, AP50 {measured.numbers['AP50']:.1f}."

    if distributed.world() == 1:
        jobs.work_off(lambda: runs, find, make, work)
        return
    for run in runs:
        if distributed.from_first(functools.partial(is_missing, run)):
            make(run)


def without_the_rest(run: Run) -> Run:
    """The same scenes, but only those that are drawn: the first ones do not depend on how many follow."""
    return dataclasses.replace(run, pictures=(1, SHOWN))


# ---- What is known of the detectors, by row ----


def by_row(detectors: list, number) -> dict[str, list[float]]:
    """A number of every detector, by row; `number` is a function of a measurement."""
    groups: dict[str, list[float]] = {row: [] for row in ROWS}
    for detector in detectors:
        groups.setdefault(detector.specification["controller"], []).append(number(detector))
    return groups


def ap(detector) -> float:
    return detector.numbers["AP"]


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What the study shows: the detectors that are measured, and their scenes, of which some are drawn."""

    detectors: list[Measurement]
    data: detect.Coco | None = None


def stiffness(detector, what: str, reading: tuple) -> float:
    """TNS of the trained backbone, its scale or its shape, by the names of `QUANTITIES`; NaN where it was not measured.

    Detectors of before 2026-11-20 have the scale of the slope index alone, from the NSI of their blocks.
    """
    after, of = detector.numbers["after"], reading[0]
    counted = [x for x, opens in zip(after["nsi"], detector.numbers["first"], strict=True) if not opens]
    scales = after.get("scale", {KINDS[0]: float(np.mean(counted))})
    tns = after["tns"][READINGS.index(reading)] if len(reading) == 2 else None
    return quantity_of(what, tns, scales.get(of, float("nan")))


def by_reading(detectors: list, what: str) -> dict[tuple, dict[str, list[float]]]:
    """One of TNS, scale and shape by reading and row, under the readings for which all detectors have it."""
    groups = {
        reading: by_row(detectors, lambda detector, reading=reading: stiffness(detector, what, reading))
        for reading in QUANTITIES[what]
    }
    return {
        reading: rows
        for reading, rows in groups.items()
        if all(np.isfinite(values).all() for values in rows.values()) and any(rows.values())
    }


def colours_by_row(rows) -> dict[str, str]:
    """A colour per row; constant step sizes are black."""
    return {row: colour for row, (colour, _) in looks_of(rows, "constant").items()}


def draw_rows(panels: dict[str, dict[str, list[float]]], label: str):
    """Numbers by row, a panel each: every seed a mark, the mean with Student's interval over seeds."""
    with style.figure(1, len(panels), height=2.5) as (drawing, axes):
        for axis, (name, rows) in zip(axes[0], panels.items(), strict=True):
            groups = {row: values for row, values in rows.items() if values}
            colours = colours_by_row(groups)
            for index, (row, values) in enumerate(groups.items()):
                axis.plot(np.full(len(values), index), values, ".", color=style.GREY, markersize=4)
                mean = mean_over_networks(values)
                reach = reach_of([mean]) if len(values) > 1 else None
                axis.errorbar(index + 0.2, mean.value, reach, fmt="o", color=colours[row], markersize=4, capsize=2)
            axis.set_xticks(range(len(groups)), list(groups), rotation=35, ha="right")
            axis.set_title(name, loc="left")
        axes[0, 0].set_ylabel(label)
    return drawing


def mean_text(values: list) -> str:
    """The mean over seeds with Student's interval; "none" where no object is of that size."""
    if not values or None in values:
        return "none"
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return interval_text(mean_over_networks(np.array(values)), ".1f")


# ---- Table 3: average precision ----
PLAIN, STEPNET = "constant", "stepnet"
TABLE = "Table 3"
TRAIN = "n = 0: `--train` makes the detectors."
WORDED = "before the data, but for its words: one row that is above was called undecided where the others were open"
POINTS = 1.9  # standard deviation of AP over seeds
GAINS = dict(zip(ROWS, (0.0, 1.4, 1.6, 2.0, 2.9), strict=True))  # Table 3, ResNet-50: points of AP above plain


def worlds_of_precision(chance: np.random.Generator, effect: float, n: int) -> tuple[dict]:
    """AP of n seeds of every row, which are alike or differ as those of Table 3 do."""
    return (draw_seeds(chance, {row: 30.0 + effect * gain for row, gain in GAINS.items()}, POINTS, n),)


def against(
    control: str, groups: dict[str, list[float]], sign: int = 1, asked: int = 1, form: str = "+.2f"
) -> tuple[Verdict, str]:
    """The verdict on every row beside one, by Dunnett over seeds, and the numbers behind it."""
    arms = Arms.against(control, groups, corrected(asked))
    return arms.verdict(sign), f"{arms.why_open}{listing(arms.beyond, form)}." if arms.beyond else TRAIN


@rule(
    "Every attention module raises the AP of a detector above that of the plain backbone.",
    TABLE,
    fixed=WORDED,
    fewest=FEWEST_SEEDS,
    worlds=Worlds(worlds_of_precision, n=10, units="seeds", effect="Table 3's gains, +1.4 to +2.9 points", now=3),
)
def judge_gains(groups: dict[str, list[float]]) -> tuple[Verdict, str]:
    """AP of each row minus that of plain, by Dunnett over seeds. Supported where every row is above, contradicted where
    every one is below, true or false of some where only some are beyond 0. Judged from three seeds of each row on."""
    verdict, words = against(PLAIN, groups)
    counts = ", ".join(f"{row} {len(values)}" for row, values in groups.items())
    return verdict, words if verdict == NOT_RUN else f"Points of AP above plain: {words} By row: {counts}."


@rule(
    "StepNet has the highest AP of all rows.",
    TABLE,
    fixed=WORDED,
    fewest=FEWEST_SEEDS,
    worlds=Worlds(worlds_of_precision, n=10, units="seeds", effect="Table 3's differences, 0.9 to 2.9 points", now=3),
)
def judge_best(groups: dict[str, list[float]]) -> tuple[Verdict, str]:
    """AP of each other row minus that of StepNet, by Dunnett over seeds. Supported where every row is below,
    contradicted where every one is above, true or false of some where only some are beyond 0. Judged from three seeds
    of each row on."""
    verdict, words = against(STEPNET, groups, sign=-1)
    return verdict, words if verdict == NOT_RUN else f"Points of AP above StepNet: {words}"


def judge_table_3(evidence: Evidence) -> list[Finding]:
    precision = by_row(evidence.detectors, ap)
    return [judge_gains(precision), judge_best(precision)]


def show_table_3(page: Page, evidence: Evidence) -> None:
    detectors = evidence.detectors
    if not detectors:
        return
    panels = {name: by_row(detectors, lambda detector, n=name: detector.numbers[n]) for name in NAMES[:3]}
    page.figure(
        draw_rows(panels, "per cent"),
        "precision",
        "AP on test pictures. Grey: single seeds; in colour the mean with Student's interval over seeds.",
    )
    page.table("table3", rows_of_table_3(detectors), "Table 3 of these detectors, per cent; intervals over seeds")
    page.figure(draw_losses(detectors), "loss", "Training loss, every seed a line.")


def rows_of_table_3(detectors: list[Measurement]) -> list[dict]:
    """Mean of every number, with its interval over seeds."""
    rows: list[dict] = []
    for row in by_row(detectors, ap):
        own = [detector for detector in detectors if detector.specification["controller"] == row]
        if own:
            means = {name: mean_text([detector.numbers[name] for detector in own]) for name in NAMES}
            deviation = deviation_cell([ap(detector) for detector in own], "none")
            parameters = own[0].numbers["parameters"]
            rows.append(
                {"backbone": row, "seeds": len(own), **means, "s.d. of AP": deviation, "parameters": parameters}
            )
    return rows


def draw_losses(detectors: list):
    """The training loss of every detector over the epochs."""
    colours = colours_by_row(by_row(detectors, ap))
    with style.figure(height=2.4) as (drawing, axes):
        for detector in detectors:
            row, seed = detector.specification["controller"], detector.specification["seed"]
            log = [record for record in detector.numbers["log"] if "loss" in record]
            epochs, losses = ([record[key] for record in log] for key in ("epoch", "loss"))
            axes[0, 0].plot(epochs, losses, "o-", markersize=2.5, color=colours[row], label=row if seed == 0 else None)
        axes[0, 0].set(xlabel="epoch", ylabel="sum of the four losses")
        axes[0, 0].locator_params(axis="x", integer=True)
        axes[0, 0].legend()
    return drawing


# ---- What they see: no claim ----
SURE = 0.5  # detections below this score are not drawn


def show_pictures(page: Page, evidence: Evidence) -> None:
    """Of the first test pictures what is there, and what each row's first detector finds."""
    data, detectors = evidence.data, evidence.detectors
    if not detectors or data is None:
        return
    first = list({one.specification["controller"]: one for one in reversed(detectors)}.values())[::-1]
    count = min(SHOWN, len(data.test))
    with style.figure(len(first), count, height=1.55 * len(first) + 0.3) as (drawing, axes):
        for line, detector in zip(axes, first, strict=True):
            for number, axis in enumerate(line):
                draw_picture(axis, data, number, detector.numbers["shown"])
            name = f"{detector.specification['controller']}, seed {detector.specification['seed']}"
            line[0].set_title(name, loc="left")
    page.figure(
        drawing,
        "pictures",
        "Test pictures. White, dotted: what is there. In colour: what is found with a score of a half or more.",
    )


def draw_picture(axis, data: Coco, number: int, detections: list[dict]):
    from matplotlib.patches import Rectangle

    image, colours = data.test.images[number], [style.COLOURS[k % len(style.COLOURS)] for k in (1, 5, 4, 0, 3, 2, 7)]
    axis.imshow(np.asarray(data.test.picture(number)))
    for left, top, right, bottom in data.test.truths[number].boxes.tolist():
        frame = Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor="white", linestyle=":")
        frame.set_linewidth(1.6)
        axis.add_patch(frame)
    for box in detections:
        if box["image_id"] != image["id"] or box["score"] < SURE:
            continue
        left, top, width, height = box["bbox"]
        kind = data.categories.index(box["category_id"])
        colour = colours[kind % len(colours)]
        axis.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=colour, linewidth=1.1))
        words = f"{data.names[kind]} {box['score']:.2f}"
        box = {"facecolor": colour, "edgecolor": "none", "pad": 0.6}
        axis.text(left, top, words, fontsize=4.5, color="white", verticalalignment="bottom", bbox=box, clip_on=True)
    hide_scales(axis)
    axis.spines[:].set_visible(False)


# ---- Figures 2 and 7, asked of Table 3: stiffness of the backbones ----
APART = (
    "after the data: with 15 detectors seen, TNS was taken apart into scale and shape, and the intervals were made to "
    "hold together over the readings. By the rule before, of TNS alone: undecided"
)
SPREAD = {TNS: 0.14, SCALE: 0.034, SHAPE: 0.13}  # the same of the stiffness of backbones, where plain ones have 1


def worlds_of_stiffness(what: str):
    """Worlds in which all backbones with attention have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        means = {row: 1.0 + 0.5 * effect * (row != ROWS[0]) for row in ROWS}
        common = draw_seeds(chance, means, 0.9 * SPREAD[what], n)
        own = {
            reading: draw_seeds(chance, dict.fromkeys(means, 0.0), 0.4 * SPREAD[what], n)
            for reading in QUANTITIES[what]
        }
        return (
            {reading: {row: np.add(common[row], rows[row]).tolist() for row in means} for reading, rows in own.items()},
        )

    return make


def judge_stiffness(groups: dict[tuple, dict[str, list[float]]]) -> tuple[Verdict, str]:
    """A number of each trained backbone on 64 test pictures minus that of the plain one, by Dunnett over seeds, the
    intervals holding together over rows and readings. Under each reading: supported where every row is above,
    contradicted where every one is below, true or false of some where only some are beyond 0. Judged from three seeds
    of each row on."""
    said = {reading: against(PLAIN, rows, asked=len(groups), form="+.3f") for reading, rows in groups.items()}
    if not said:
        return NOT_RUN, TRAIN
    parts = "; ".join(
        f"{wording(*reading)}: {words.rstrip('.')} ({verdict})" for reading, (verdict, words) in said.items()
    )
    return joint([verdict for verdict, _ in said.values()]), f"Above plain: {parts}."


def rule_of_stiffness(what: str) -> Rule:
    """Claim 3 for one of TNS, scale and shape."""
    made = Worlds(worlds_of_stiffness(what), n=6, units="seeds", effect="half as much again in every row", now=3)
    claim = f"In a detector, too, backbones with attention have a larger {QUANTITY_NAMES[what]} than plain ones."
    options = {"fixed": APART, "fewest": FEWEST_SEEDS, "worlds": made, "variant": what}
    return rule(claim, "Figure 2, asked of Table 3", **options)(judge_stiffness)


STIFFER = {what: rule_of_stiffness(what) for what in QUANTITIES}
BY_ROWS = (
    "after the data: with 15 detectors seen, rows became the units, where detectors had been, and TNS was taken apart. "
    "By the rule before, of TNS alone: undecided"
)


def worlds_of_relations(what: str):
    """Worlds of n rows of three seeds, which differ in both numbers; these have a Kendall's tau of 0.5, or of 0.

    Under all readings rows differ in nearly the same way, and seeds scatter a third as far as rows do.
    """

    def make(chance, effect, n):
        skill = chance.normal(size=n)
        stiff = agreeing(chance, skill, 0.5 * effect)

        def seeds(means):
            return {str(row): (mean + chance.normal(0.0, 0.3, SEEDS)).tolist() for row, mean in enumerate(means)}

        readings = {reading: seeds(stiff + 0.2 * chance.normal(size=n)) for reading in QUANTITIES[what]}
        return readings, seeds(skill)

    return make


def judge_relation(stiff: dict[tuple, dict[str, list[float]]], precision: dict[str, list[float]]):
    """Rank correlations over rows, the means over their seeds: networks of one row are alike. Supported under a reading
    where Kendall's tau and Spearman's rho lie above 0 by their intervals and p-values, contradicted where below; and
    nothing where leaving out any one row would change it. The intervals hold together under all readings. Judged from
    six rows on, because of five even a perfect order has a p of 1.7 %."""
    related = {reading: relate_kinds(rows, precision, corrected(len(stiff))) for reading, rows in stiff.items()}
    if not related or not max(relation.whole.n for relation in related.values()):
        return NOT_RUN, TRAIN
    verdicts = {reading: of_rows(relation) for reading, relation in related.items()}
    parts = "; ".join(
        f"{wording(*reading)}: tau {interval_text(relation.whole.kendall, '+.2f')} ({verdicts[reading]})"
        for reading, relation in related.items()
    )
    return joint(verdicts), f"Over {next(iter(related.values())).whole.n} rows: {parts}."


def of_rows(relation: KindRelation) -> Verdict:
    rows = relation.whole.n
    if rows < FEWEST_ROWS:
        return UNDECIDED.because(f"n = {rows} rows, judged from {FEWEST_ROWS} on")
    return of_kinds(relation)


def rule_of_relation(what: str) -> Rule:
    """Claim 4 for one of TNS, scale and shape."""
    made = Worlds(worlds_of_relations(what), n=36, units="rows", effect="Kendall's tau of 0.5 over rows", now=5)
    claim = f"Detectors whose backbones have a larger {QUANTITY_NAMES[what]} have a higher AP."
    options = {"fixed": BY_ROWS, "fewest": FEWEST_ROWS, "worlds": made, "variant": what}
    return rule(claim, "Figure 7, asked of Table 3", **options)(judge_relation)


RELATED = {what: rule_of_relation(what) for what in QUANTITIES}


def judge_figures_2_and_7(evidence: Evidence) -> list[Finding]:
    """For TNS, scale and shape each, one finding about rows and one about the relation with AP."""
    stiff = {what: by_reading(evidence.detectors, what) for what in QUANTITIES}
    precision = by_row(evidence.detectors, ap)
    return [
        *(STIFFER[what](stiff[what]) for what in QUANTITIES),
        *(RELATED[what](stiff[what], precision) for what in QUANTITIES),
    ]


def show_stiffness(page: Page, evidence: Evidence) -> None:
    detectors = evidence.detectors
    if not detectors:
        return
    page.words(
        "NSI of every block on test pictures, by `nb.trace`. Before training, normalisations with fresh weights have "
        "seen these pictures once. TNS counts the blocks that do not open a stage."
    )
    page.figure(
        draw_blocks(detectors),
        "nsi",
        "NSI of the blocks (slope index), mean over pictures and seeds; thin: single seeds. Hollow: first blocks of "
        "stages, which are not counted.",
    )
    panels = {
        QUANTITY_NAMES[what]: by_row(
            detectors, lambda detector, what=what: stiffness(detector, what, QUANTITIES[what][0])
        )
        for what in QUANTITIES
    }
    page.figure(
        draw_rows(panels, wording(*READINGS[0])),
        "parts",
        "TNS of the trained backbones, its scale (the mean NSI of the counted blocks) and its shape (TNS over the "
        "scale). Grey: single seeds; in colour the mean with Student's interval over seeds.",
    )
    page.figure(draw_relation(detectors), "relation", "AP against TNS under all four readings, every detector.")
    page.table(
        "tns",
        [
            {
                "backbone": detector.specification["controller"],
                "seed": detector.specification["seed"],
                "AP": f"{detector.numbers['AP']:.2f}",
            }
            | {
                f"{moment}: {wording(*reading)}": "none" if value is None else f"{value:.3f}"
                for moment in ("before", "after")
                for reading, value in zip(READINGS, detector.numbers[moment]["tns"], strict=True)
            }
            | {
                f"after: {QUANTITY_NAMES[what]}, {wording(*reading)}": "" if np.isnan(value) else f"{value:.3f}"
                for what in (SCALE, SHAPE)
                for reading in QUANTITIES[what]
                for value in [stiffness(detector, what, reading)]
            }
            for detector in detectors
        ],
        "TNS of every backbone before and after training, and its scale and shape",
        printed=False,
    )


def draw_blocks(detectors: list):
    """NSI of every block of the backbone, before and after training: mean over pictures, thin lines are seeds."""
    rows = [row for row, values in by_row(detectors, ap).items() if values]
    colours = colours_by_row(rows)
    with style.figure(1, 2, height=2.8, sharey=True) as (drawing, axes):
        for axis, moment in zip(axes[0], ("before", "after"), strict=True):
            for mark, row in zip(MARKS, rows, strict=False):
                own = [detector for detector in detectors if detector.specification["controller"] == row]
                curves = np.array([detector.numbers[moment]["nsi"] for detector in own])
                first = np.array(own[0].numbers["first"])
                blocks = np.arange(1, curves.shape[1] + 1)
                for curve in curves:
                    axis.plot(blocks, curve, color=colours[row], linewidth=0.5, alpha=0.4)
                mean = curves.mean(0)
                axis.plot(blocks, mean, color=colours[row], label=row)
                axis.plot(blocks[~first], mean[~first], mark, color=colours[row], markersize=4)
                axis.plot(blocks[first], mean[first], mark, color=colours[row], markersize=4, markerfacecolor="white")
            axis.set_title(f"{moment} training", loc="left")
            axis.set_xlabel("block of the backbone")
        axes[0, 0].set_ylabel("NSI (slope)")
        legend_below(drawing, axes[0, 1], len(rows))
    return drawing


def draw_relation(detectors: list):
    """AP against TNS of the trained backbone, under all four readings."""
    colours = colours_by_row(by_row(detectors, ap))
    with style.figure(1, 4, height=2.6, sharey=True) as (drawing, axes):
        for k, (axis, reading) in enumerate(zip(axes[0], READINGS, strict=True)):
            for detector in detectors:
                row, tns = detector.specification["controller"], detector.numbers["after"]["tns"][k]
                label = row if detector.specification["seed"] == 0 else None
                axis.plot(tns, ap(detector), "o", markersize=3.5, color=colours[row], label=label)
            axis.set_title(wording(*reading).replace(", ", ",\n"), loc="left")
            axis.set_xlabel("TNS of the backbone")
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].set_ylabel("AP (%)")
        legend_below(drawing, axes[0, 0], len(colours))
    return drawing


# ---- As printed ----
PRINTED = {  # Table 3: AP, AP50, AP75, APS, APM, APL of Faster R-CNN on COCO, by depth of the backbone
    50: {
        "constant": (36.9, 57.5, 39.4, 22.1, 39.6, 46.4),
        "se": (38.3, 60.1, 41.5, 23.0, 42.1, 49.2),
        "eca": (38.5, 60.4, 41.5, 23.2, 42.2, 48.9),
        "sge": (38.9, 60.0, 42.0, 23.2, 41.9, 49.0),
        "stepnet": (39.8, 61.2, 41.9, 23.8, 43.1, 51.0),
    },
    101: {
        "constant": (38.9, 60.3, 41.4, 22.1, 43.9, 50.0),
        "se": (39.8, 61.2, 43.4, 23.6, 44.2, 51.1),
        "eca": (40.4, 62.7, 44.5, 24.1, 45.1, 51.8),
        "sge": (40.2, 61.4, 43.2, 24.1, 44.5, 51.2),
        "stepnet": (41.9, 62.6, 44.4, 25.4, 46.8, 53.2),
    },
}


def show_printed(page: Page, evidence: Evidence) -> None:
    rows = [
        {"backbone": f"ResNet-{depth}, {row}"} | dict(zip(NAMES, values, strict=True))
        for depth, printed in PRINTED.items()
        for row, values in printed.items()
    ]
    page.table("printed", rows, "Table 3 of the paper, COCO", printed=False)


EXHIBITS = (
    Exhibit("Average precision", show_table_3, judge_table_3),
    Exhibit("What they see", show_pictures),
    Exhibit("Stiffness of the backbones", show_stiffness, judge_figures_2_and_7),
    Exhibit("As printed", show_printed),
)

# ---- The study ----


def main(arguments: Arguments, shipped: Path = SHIPPED):
    require_at_least(1, arguments, "seeds", "batch", "parts", "threads", "epochs", "short")
    require_at_least(0, arguments, "workers", "checkpoint_minutes")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.data_root is not None:
        arguments = dataclasses.replace(arguments, data_root=folder_of("coco", arguments.data_root))
    with plain_errors(STUDY):
        runs = plan_runs(arguments)
    folders = [] if arguments.smoke else [shipped]
    work = arguments.out / "runs"
    with distributed.join():
        if arguments.train or arguments.remeasure or arguments.smoke:
            train_missing(runs, folders, work, arguments)
        if distributed.rank() == 0:
            report(runs, measurements.find_all(runs, (work, *folders)), arguments)


def report(runs, detectors: list, arguments) -> None:
    """The page of the study."""
    shapes, data = arguments.data_root is None, None
    notices = (
        "NOT COCO: made-up scenes of shapes. These numbers are about small detectors of 240 steps and say nothing "
        "about COCO."
        if shapes
        else "",
        "NOT COCO: made-up scenes in its format, to rehearse with; no number below is about COCO."
        if any(run.dataset == REHEARSED for run in runs)
        else "",
        "Backbones with fresh weights: the paper's were trained on ImageNet before."
        if not shapes and arguments.weights is None
        else "",
    )
    page = Page(
        STUDY,
        arguments,
        f"Detectors on {'made-up scenes' if shapes else 'COCO'}: Table 3",
        f"After {STEPNET_PAPER}. "
        "Faster R-CNN in plain torch over our backbones; average precision by pycocotools. Below every verdict "
        "stands its rule, and when it was fixed.",
        " ".join(filter(None, notices)),
    )
    page.heading("What these data say")
    if detectors:
        with plain_errors(STUDY):
            data = scenes(without_the_rest(runs[0]) if shapes else runs[0], arguments.out, arguments.data_root)
    missing = len(runs) - len(detectors)
    words = f"{missing} of the {len(runs)} detectors are missing; `--train` makes them." if missing else ""
    older = page.name_older([detector.made for detector in detectors])
    write(page, EXHIBITS, Evidence(detectors, data), older, words)
    page.close()


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
