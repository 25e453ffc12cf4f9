"""Every printed cell of the papers' tables: the network that fills it, its recipe, what differs, hours (about 3 s).

A tool: it lists and trains nothing. For each cell of Tables 1 to 4, 7 and Figure 8 of the StepNet paper, 1 to 11 of the
block-level paper and 1 to 9, 13, 14 of the ASR paper it names the job, as the studies plan it at the paper's scale, in
which fields the job's recipe differs from the paper's (nothing where it does not), precision, batch and what trains it;
or the reason why the cell is not planned. `--time` times twenty steps of every listed network on this machine.
"""

import dataclasses
import functools
import shlex
import statistics
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.common.devices import best_device
from netbridge.detect.evaluation import NAMES
from netbridge.train.epochs import Training
from netbridge.train.recipes import RECIPES, Recipe
from studies import detect as detection
from studies import step_control, tricks
from studies import table as tables
from studies.asr import __main__ as asr
from studies.asr import design
from studies.asr.design import Arm, Plan
from studies.block_stiffness import printed as block_paper
from studies.lab import jobs
from studies.lab.command import require_at_least, start
from studies.lab.jobs import PAPERS_ON_STL10, Job
from studies.lab.networks import IMAGENET_SIZE, USUAL
from studies.lab.results import Results

STUDY = "plan"
WIDTH = 100  # of a terminal

# ---- A printed cell, the job that fills it, and how that job's recipe differs from the paper's ----
STEP_NET, BLOCK, ASR = "StepNet", "block", "ASR"
PAPERS = {
    STEP_NET: "Understanding Self-attention Mechanism via Dynamical System Perspective",
    BLOCK: "Block-level Stiffness Analysis of Residual Networks",
    ASR: "ASR: Attention-alike Structural Re-parameterization",
}
TRAINING_IMAGES = {"cifar10": 50_000, "cifar100": 50_000, "stl10": 5_000, "imagenet": 1_281_167}
CLASSES = {"cifar10": 10, "cifar100": 100, "stl10": 10, "imagenet": 1000}
PIXELS = {"cifar10": 32, "cifar100": 32, "stl10": 96, "imagenet": IMAGENET_SIZE}
UNSAID = (  # fields of a recipe of which the papers say nothing: names, what changes nothing, and the precision
    "name", "architectures", "evaluate_every", "bfloat16", "float16", "tf32", "benchmark"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Look:
    """A trained network that is looked at and not trained: published weights, or those of somebody's own.

    depth  layers of the ResNet, behind a stem of 3x3 convolution and max-pool
    """

    depth: int

    def untrained_network(self, classes: int, size: int = 32) -> nb.Network:
        """A network of these sizes with fresh weights."""
        return nb.resnet(self.depth, classes, stem="cifar-pooled")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One printed number, or pair of numbers, of a paper.

    paper       one of `PAPERS`
    table       as the paper counts, such as "3" or "Fig. 8"
    row, column of the table
    printed     as it is printed
    job         what fills the cell: a `Job` or a detector's `Run` to train, a `Look`, or None
    wanted      the recipe of the paper for this cell; None where it has none
    reason      why there is no job; "" where there is one
    remark      what the paper leaves open, or what is otherwise than in the paper without being a field of a recipe
    command     what carries the job out; "" where only `netbridge` can, from Python
    """

    paper: str
    table: str
    row: str
    column: str
    printed: str
    job: Any = None
    wanted: Recipe | None = None
    reason: str = ""
    remark: str = ""
    command: str = ""

    @property
    def network(self) -> str:
        """The network and what decides its step sizes, in words."""
        job = self.job
        if isinstance(job, Look):
            return f"ResNet-{job.depth}, pooled stem"
        if isinstance(job, detection.Run):
            return f"Faster R-CNN, ResNet-{job.depth}, {job.controller}"
        if job is None:
            return ""
        options = job.options or {}
        named = {"vit-s": "ViT-S", "vit-b": "ViT-B", "vit-conv": "ViT", "resnet": f"ResNet-{job.depth}"}
        kind = named.get(job.network, job.network)
        shown = " ".join(str(value) for key, value in options.items() if key != "bottleneck")
        noise = "" if job.noise is None else f", noise {job.noise}"
        starts = "".join(f", {name.rsplit('.', 2)[-2]} {value}" for name, value in job.start)
        return f"{kind}{' ' * bool(shown)}{shown}, {job.label}{noise}{starts}"

    @property
    def recipe(self) -> Recipe | None:
        """How the job trains; None where it does not."""
        return getattr(self.job, "recipe", None)

    @property
    def changes(self) -> list[str]:
        """The fields in which the job's recipe is not the paper's, with both values."""
        if self.recipe is None:
            return []
        if self.wanted is None:
            return ["the paper has no recipe"]
        pairs = {
            field.name: (getattr(self.recipe, field.name), getattr(self.wanted, field.name))
            for field in dataclasses.fields(Recipe)
            if field.name not in UNSAID
        }
        return [f"{name} {ours} for {theirs}" for name, (ours, theirs) in pairs.items() if ours != theirs]

    @property
    def difference(self) -> str:
        """How the job differs from what the paper says, and what the paper leaves open; "" where there is neither."""
        return "; ".join(filter(None, (*self.changes, self.remark)))

    @property
    def precision(self) -> str:
        """What layers compute in, by the recipe."""
        if self.recipe is None:
            return ""
        return "bfloat16" if self.recipe.bfloat16 else "float16" if self.recipe.float16 else "float32"

    @property
    def classes(self) -> int:
        """Of the data that the network is for."""
        return CLASSES[self.job.dataset] if isinstance(self.job, Job) else 10

    @property
    def size(self) -> int:
        """Height and width of the images that the network is shown."""
        if isinstance(self.job, Job):
            return self.job.size or PIXELS[self.job.dataset]
        return 32

    def build(self):
        """The whole network of the cell on torch's meta device, which has shapes and no numbers; None without a job."""
        if self.job is None:
            return None
        with torch.device("meta"):
            if isinstance(self.job, detection.Run):
                return self.job.untrained_detector([f"class {number}" for number in range(80)])
            return self.job.untrained_network(self.classes, self.size)


SEED = 0


@dataclasses.dataclass
class Arguments:
    """List the papers' cells as jobs."""

    paper: tuple[Literal["StepNet", "block", "ASR"], ...] = ("StepNet", "block", "ASR")
    """Which papers."""
    table: tuple[str, ...] = ()
    """Only these tables, by their numbers, such as 1 13 "Fig. 8"; each is then printed job by job."""
    row: tuple[str, ...] = ()
    """Only cells whose row holds one of these words, such as "ASR(SE)"."""
    time: bool = False
    """Time --steps steps of each listed network here, and say how many hours its training will take. Choose few on a
    CPU: a step of ResNet-164 takes seconds there."""
    steps: int = 20
    """How many steps are timed."""
    device: str | None = None
    """What to time on: cpu, cuda, mps; the fastest there is by default."""
    threads: int | None = None
    """Threads of the processor to use; all by default."""
    out: Path = Path("results/plan")
    """Where plan.csv, with every listed cell, and record.json go."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""


# ---- Tables 1 to 4 and 7 and Figure 8 of the StepNet paper, from what the studies that repeat them know ----
STL10 = "STL-10's recipe is not printed: batch 16 as in ASR, Appendix C"
PAPERS_RECIPES = {1: "paper", 2: "imagenet-256", 7: None}
REMARKS = {  # what the paper leaves open, by table
    2: "precision, crops and test size are not said",
    7: "size, recipe and place of StepNet are not said",
}


def wanted_on(dataset: str):
    """The paper's recipe for ResNet-164; on STL-10 that of the same group's next paper."""
    return RECIPES[PAPERS_ON_STL10 if dataset == "stl10" else "paper"]


def accuracy_cells() -> list[Cell]:
    """Tables 1, 2 and 7: one network for each cell and seed; seed 0 stands for all of them."""
    cells = []
    for number, table in tables.TABLES.items():
        name = PAPERS_RECIPES[number]
        for cell in tables.cells_of(table, [], 1):
            column = table.columns.index((cell.dataset, cell.scale))
            mean, deviation = table.paper[cell.row][column]
            wanted = wanted_on(cell.dataset) if name == "paper" else RECIPES[name] if name else None
            remark = REMARKS.get(number, STL10 if cell.dataset == "stl10" else "")
            where = f"{USUAL[cell.dataset]}, {cell.scale.name}"
            printed = f"{mean:.2f} ± {deviation:.2f}"
            shown = "plain" if cell.row == "constant" else cell.row
            job = cell.job(SEED)
            how = {"remark": remark, "command": tables.command(cell, SEED)}
            cells.append(Cell(STEP_NET, str(number), shown, where, printed, job, wanted, **how))
            if number == 1:
                millions = tables.PARAMETERS[table.rows[cell.row]][cell.dataset == "cifar100"]
                counted = f"{where}, parameters (M)"
                cells.append(Cell(STEP_NET, "1", shown, counted, f"{millions:.2f}", job, wanted, **how))
    return cells


def detector_cells() -> list[Cell]:
    """Table 3: six precisions of each detector; one run fills a row."""
    recipe = detection.schedule("1x")
    remark = "schedule 1x, 800 pixels and weights of Table 2's recipe: the paper says no more than [71]"
    listed = []
    for depth, rows in detection.PRINTED.items():
        train = f"python -m studies.detect --data-root DATA --depth {depth} --weights FOLDER --train"
        for row, values in rows.items():
            run = detection.Run(row, SEED, "coco", recipe, depth, size=detection.COCO_SIZE)
            cells = zip(NAMES, values, strict=True)
            listed += [
                Cell(
                    STEP_NET,
                    "3",
                    f"ResNet-{depth}, {row}",
                    name,
                    f"{value:.1f}",
                    run,
                    recipe,
                    remark=remark,
                    command=train,
                )
                for name, value in cells
            ]
    return listed


def ablation_cells() -> list[Cell]:
    """Table 4; its plain and SE rows are Table 1's."""
    cells = []
    for dataset in ("cifar10", "cifar100", "stl10"):
        train = f"python -m studies.step_control --full --train --dataset {dataset}"
        arguments = step_control.fill_in_options(step_control.Arguments(full=True, dataset=dataset, part="ablation"))
        plan, remark = step_control.Plan(arguments), STL10 if dataset == "stl10" else ""
        for row in step_control.CELLS:
            if row in (step_control.PLAIN, step_control.SE):
                continue
            printed = "{:.2f} ± {:.2f}".format(*step_control.PAPER[row][dataset])
            job = plan.cell(row, SEED).job
            wanted = wanted_on(dataset)
            cells.append(Cell(STEP_NET, "4", row, USUAL[dataset], printed, job, wanted, remark=remark, command=train))
    return cells


def trick_cells() -> list[Cell]:
    """Figure 8: bars whose heights no text prints, of tricks that it does not name."""
    remark = "the paper names no trick: this is one of the usual ones"
    return [
        Cell(STEP_NET, "Fig. 8", trick, USUAL[dataset], "a bar", tricks.job_of(trick, SEED, True, dataset),
             wanted_on(dataset), remark=remark,
             command=f"python -m studies.tricks --full --train --dataset {dataset}")
        for dataset in ("cifar100", "stl10") for trick in tricks.tricks(True, dataset)
    ]  # fmt: skip


def cells_of_step_net() -> list[Cell]:
    """All cells of the paper that the plan is about."""
    return [*accuracy_cells(), *detector_cells(), *ablation_cells(), *trick_cells()]


# ---- Tables 1 to 11 of the block-level paper: trained networks that are looked at, and counts that need none ----
SOURCE = "which weights is not said: your own or published ones"
COUNTED = (
    "counted from the shapes of the blocks: every run of `studies.block_stiffness` prints it, no network is needed"
)
CORRELATED = ("accuracy, S", "accuracy, %", "loss, S", "loss, %")
FEWER = "40 images a label where the paper has 294 to 390 (ResNet-18) and 106 to 119 (ResNet-34)"
NUMBERS = {18: ("1", "2", "3", "10"), 34: ("4", "5", "6", "11"), 50: ("7", "8", "9", None)}  # of the paper's tables


def command_of_block(depth: int) -> str:
    """What looks at a network of the paper."""
    return f"python -m studies.block_stiffness --checkpoint resnet{depth}.pt --stem cifar-pooled --preset paper"


def cells_of_block() -> list[Cell]:
    """All cells of the paper's tables."""
    cells = []
    for depth, (correlations, blocks, labels, counts) in NUMBERS.items():
        look, names = Look(depth), names_of_blocks(depth)
        correlated = dict(zip(names, block_paper.CORRELATIONS[depth], strict=True))
        correlated |= (
            {"all": block_paper.CORRELATIONS_OVERALL[depth]} if depth in block_paper.CORRELATIONS_OVERALL else {}
        )
        for name, values in correlated.items():
            for column, pair in zip(CORRELATED, zip(values[::2], values[1::2], strict=True), strict=True):
                printed = f"{pair[0]:.2f} (p {pair[1]:.2f})"
                cells.append(
                    Cell(
                        BLOCK,
                        correlations,
                        name,
                        column,
                        printed,
                        look,
                        remark=f"{SOURCE}; {FEWER}",
                        command=command_of_block(depth),
                    )
                )
        for number, name in enumerate(names, 1):
            cell = block_paper.printed_block(
                depth, number if depth in block_paper.INDEX else sum(block_paper.BOTTLENECKS[depth])
            )
            cells += pair_of_cells(blocks, name, cell, look)
        if depth in block_paper.INDEX:
            cells += pair_of_cells(blocks, "all", block_paper.OVERALL[depth], look)
        for label in range(10):
            cell = block_paper.INDEX_BY_LABEL[depth][label], block_paper.PERCENT_BY_LABEL[depth][label]
            cells += pair_of_cells(labels, f"label {label}", cell, look)
        if counts is not None:
            shown = {"elements": block_paper.ELEMENTS[depth], '"eigenvalues"': block_paper.EIGENVALUES[depth]}
            for column, numbers in shown.items():
                counted = dict(zip([*names, "total"], [*numbers, sum(numbers)], strict=True))
                cells += [
                    Cell(BLOCK, counts, name, column, f"{value:,}", reason=COUNTED) for name, value in counted.items()
                ]
    return cells


def names_of_blocks(depth: int) -> list[str]:
    """The blocks that the paper's tables of a network have."""
    if depth in block_paper.INDEX:
        return [f"block {number}" for number in range(1, len(block_paper.INDEX[depth]) + 1)]
    return [f"block {sum(block_paper.BOTTLENECKS[depth])}"]


def pair_of_cells(table: str, row: str, values: tuple[float, float] | None, look: Look) -> list[Cell]:
    """Index and percentage of a row."""
    assert values is not None
    columns = zip(("S", "% negative"), values, strict=True)
    return [
        Cell(BLOCK, table, row, column, f"{value:.2f}", look, remark=SOURCE, command=command_of_block(look.depth))
        for column, value in columns
    ]


# ---- Tables 1 to 9, 13 and 14 of the ASR paper, by the design of `studies.asr` at the paper's scale ----
RECIPES_OF = {"VGG": "paper-vgg", "ShuffleNetV2": "paper-vgg", "MobileNetV1": "paper-vgg", "RepVGG": "paper-repvgg",
              "ACNet": "paper-acnet"}  # the columns of Table 10; a ResNet has "paper"  # fmt: skip
ON_IMAGENET = {  # network, depth, width and recipe of the rows of Table 2
    "ResNet34": ("resnet", 34, 64, "imagenet"),
    "ResNet50": ("resnet", 50, 64, "imagenet"),
    "ResNet101": ("resnet", 101, 64, "imagenet"),
    "ViT-S": ("vit-s", 12, 384, "imagenet-vit"),
    "ViT-B": ("vit-b", 12, 768, "imagenet-vit"),
}
DEPTHS = {"ResNet56": 56, "ResNet110": 110, "ResNet164": 164}  # of Table 5, basic blocks
HALVES = "CIFAR's widths and strides are not said: the networks of netbridge"
TIMES = "the paper's frames per second are of a machine that it does not name; `studies.asr --part speed` gives ratios"
BEGINS = "goes on from ViT-B at 224 pixels: `studies.train` begins with fresh weights only"
THEIR_ACNET = "layers and widths of ACNet's own code are not said; SE's reduction of 16 leaves 1, 2 and 4 units"
FIRST_VALUE = "the first value of the vector is not said"


@functools.cache
def plan_on(dataset, depth: int = 164) -> Plan:
    """The study's plan at the paper's scale."""
    return Plan(asr.fill_in_options(asr.Arguments(full=True, dataset=dataset, depth=depth)))


def papers_recipe(dataset: str, name: str = "paper") -> Recipe:
    """A column of Table 10, with Appendix C's batches on STL-10."""
    return jobs.recipe_of(name, dataset)


def cell_of_asr(table: str, row: str, dataset: str, value: float, job=None, name: str = "paper", **more) -> Cell:
    """A cell whose column is a data set."""
    if job is None:
        return Cell(ASR, table, row, USUAL[dataset], f"{value:.2f}", **more)
    wanted = papers_recipe(dataset, name)
    return Cell(ASR, table, row, USUAL[dataset], f"{value:.2f}", job, wanted, command=command_of_asr(job), **more)


@functools.cache
def trained_by_the_study(dataset: str) -> frozenset[str]:
    """The digests of all jobs that `studies.asr --full` trains on a data set."""
    return frozenset(run.job.digest for run in plan_on(dataset).everything())


def command_of_asr(job: jobs.Job) -> str:
    """What trains a network: the study, or `studies.train` where its options can say all of it; else "".

    What neither plans is made from Python alone.
    """
    words = ["python", "-m", "studies.asr", "--full", "--train", "--dataset", job.dataset]
    if job.dataset != "imagenet" and job.digest in trained_by_the_study(job.dataset):
        return shlex.join(words)
    if job.network not in jobs.SHAPES or job.options or job.noise or job.start:
        return ""
    words = ["python", "-m", "studies.train", "--dataset", job.dataset, "--controller", job.label]
    words += ["--seed", str(job.seed), "--depth", str(job.depth), "--recipe", job.recipe.name]
    words += ["--network", job.network] if job.network != "resnet" else []
    words += ["--set", "decay_gates=false"] if not job.recipe.decay_gates else []
    return shlex.join(words)


def arm_of(module: str, **options) -> Arm:
    """ASR with a module; "" is the network without it."""
    return Arm(design.asr(module.lower(), **options)) if module else Arm()


def speeds() -> list[Cell]:
    """Table 1: parameters, which the networks have, and frames per second."""
    cells = [
        cell_of_asr(
            "1", name, dataset, value, plan_on(dataset).job(Arm() if name == "plain" else Arm(name.lower()), SEED)
        )
        for name, (_, pair) in design.TABLE_1.items()
        for dataset, value in zip(("cifar100", "stl10"), pair, strict=True)
    ]
    cells = [dataclasses.replace(one, column=f"{one.column}, parameters (M)") for one in cells]
    return cells + [
        Cell(ASR, "1", name, USUAL[dataset], f"{value} fps", reason=TIMES)
        for name, (pair, _) in design.TABLE_1.items()
        for dataset, value in zip(("cifar100", "stl10"), pair, strict=True)
    ]


def on_imagenet() -> list[Cell]:
    """Table 2. ASR of a transformer has tanh, and 0.001 everywhere at first."""
    cells = []
    for row, (_, pixels, values) in design.TABLE_2.items():
        for module, value in zip(design.TABLE_2_MODULES, values, strict=True):
            shown, printed = f"{row}{f', ASR({module})' if module else ''}", f"{value:.2f}"
            if row not in ON_IMAGENET:
                cells.append(Cell(ASR, "2", shown, f"{pixels} pixels", printed, reason=BEGINS))
                continue
            network, depth, width, name = ON_IMAGENET[row]
            recipe = RECIPES[name]
            transformer = network != "resnet"
            first = {"activation": "tanh", "init": design.FIRST_FACTOR, "inner": design.FIRST_FACTOR}
            arm = arm_of(module, **first) if transformer and module else arm_of(module)
            trained = jobs.recipe_of(name, "imagenet", decay_gates=False if module else None)
            width = 16 if not transformer else width
            job = jobs.Job("imagenet", arm.controller, SEED, trained, depth, width, network=network)
            how = command_of_asr(job)
            cells.append(Cell(ASR, "2", shown, f"{pixels} pixels", printed, job, recipe, command=how))
    return cells


def backbones() -> list[Cell]:
    """Table 3."""
    cells = []
    for name, rows in design.TABLE_3.items():
        for module, values in rows.items():
            for dataset, value in zip(design.COLUMNS, values, strict=True):
                plan, shown = plan_on(dataset), f"{name}{f', ASR({module})' if module else ''}"
                if name == "ResNet":
                    cells.append(
                        cell_of_asr("3", f"ResNet-164{shown[6:]}", dataset, value, plan.job(arm_of(module), SEED))
                    )
                else:
                    job = plan.backbone(name, arm_of(module), SEED)
                    cells.append(cell_of_asr("3", shown, dataset, value, job, RECIPES_OF[name], remark=HALVES))
    return cells


def beside() -> list[Cell]:
    """Table 4: a live module alone, and with ASR beside it."""
    cells = []
    for depth, rows in design.TABLE_4.items():
        for module, columns in rows.items():
            for dataset, pair in zip(design.COLUMNS, columns, strict=False):
                plan, text = plan_on(dataset, depth), module.lower()
                both = Arm(design.asr(text, beside=text))
                for shown, value, arm in zip((module, f"{module} + ASR"), pair, (Arm(text), both), strict=True):
                    cells.append(cell_of_asr("4", f"ResNet-{depth}, {shown}", dataset, value, plan.job(arm, SEED)))
    return cells


def reparameterised() -> list[Cell]:
    """Table 5."""
    cells = []
    for network, rows in design.TABLE_5.items():
        for what, values in rows.items():
            for dataset, value in zip(design.COLUMNS, values, strict=False):
                plan, arm = plan_on(dataset), arm_of("SE" if "ASR" in what else "")
                shown = f"{network}{f', {what}' if what else ''}"
                if network.startswith("RepVGG"):
                    job = plan.backbone("RepVGG", arm, SEED, options={"variant": network[-2:]})
                    cells.append(cell_of_asr("5", shown, dataset, value, job, "paper-repvgg", remark=HALVES))
                    continue
                basic: dict = {"bottleneck": False} if DEPTHS[network] == 164 else {}
                options = basic | ({"convolution": "asymmetric"} if what else {})
                more = {"depth": DEPTHS[network], "options": options or None}
                job = plan.backbone("ACNet", arm, SEED, **more)
                cells.append(cell_of_asr("5", shown, dataset, value, job, "paper-acnet", remark=THEIR_ACNET))
    return cells


def uses() -> list[Cell]:
    """Tables 6 and 14, of which the second repeats the first with top-5 beside it."""
    cells, plan = [], plan_on("cifar100")
    for module, values in design.TABLE_6.items():
        for count, value in enumerate(values, 1):
            arm = arm_of(module, uses=count) if count > 1 else arm_of(module)
            row = f"ASR({module}), {count} use{'s' * (count > 1)}"
            cells.append(cell_of_asr("6", row, "cifar100", value, plan.job(arm, SEED)))
            if module in design.TABLE_14_TOP5:
                cell, top = dataclasses.replace(cells[-1], table="14"), design.TABLE_14_TOP5[module][count - 1]
                cells += [cell, dataclasses.replace(cell, column=f"{cell.column}, top-5", printed=f"{top:.2f}")]
    return cells


def fixed() -> list[Cell]:
    """Table 7: psi that is not learnt, in the design's arms with each module."""
    cells, plan = [], plan_on("cifar100")
    for module, rows in design.TABLE_7.items():
        for name, value in rows.items():
            arm = design.FIXED[name]
            controller = arm.controller.replace(design.SE, module.lower())
            cells.append(cell_of_asr("7", f"ASR({module}), {name}", "cifar100", value, plan.job(Arm(controller), SEED)))
    return cells


def noise() -> list[Cell]:
    """Table 8."""
    cells, plan = [], plan_on("cifar100")
    for name, values in design.TABLE_8.items():
        for module, value in zip(design.TABLE_8_MODULES, values, strict=True):
            row = f"{name}{f', ASR({module})' if module else ', plain'}"
            job = plan.job(arm_of(module), SEED, noise=design.NOISES[name])
            cells.append(cell_of_asr("8", row, "cifar100", value, job))
    return cells


def bare() -> list[Cell]:
    """Table 9, the row without a module; the others are Table 3's."""
    vector = design.BARE["vector from 0.1"]
    return [
        cell_of_asr("9", "vector without a module", name, value, plan_on(name).job(vector, SEED), remark=FIRST_VALUE)
        for name, value in zip(design.COLUMNS, design.TABLE_9, strict=True)
    ]


def starts() -> list[Cell]:
    """Table 13: ResNet-83."""
    cells, plan = [], plan_on("cifar100", 83)
    for module, values in design.TABLE_13.items():
        for tenth, value in enumerate(values, 1):
            arm = arm_of(module, init=tenth / 10) if tenth > 1 else arm_of(module)
            cells.append(
                cell_of_asr("13", f"ASR({module}), psi from 0.{tenth}", "cifar100", value, plan.job(arm, SEED))
            )
    return cells


def cells_of_asr() -> list[Cell]:
    """All cells of the paper's tables."""
    parts = (speeds, on_imagenet, backbones, beside, reparameterised, uses, fixed, noise, bare, starts)
    return [one for part in parts for one in part()]


# ---- How long a training of a cell's network will take on this machine, by a few of its steps ----
WARM_UP = 2  # steps that are not timed: the first ones reserve memory and choose kernels


def hours_of(cell: Cell, steps: int = 20, device=None, time_steps: Callable | None = None) -> float:
    """Hours of all steps of a cell's training, at the seconds of its steps here.

    Pictures are random and lie on the device: reading them and looking at the test images come on top.

    cell    one whose job is a `Job`
    steps   how many steps are timed, at every size of the images that the recipe has; their median counts
    device  of the training; the fastest there is by default
    time_steps  what gives the seconds of a step, with the arguments of `seconds_of_a_step`, which it is by default
    """
    recipe, images = cell.recipe, TRAINING_IMAGES[cell.job.dataset]
    assert recipe is not None
    sizes = [recipe.size(epoch, cell.size) for epoch in range(recipe.epochs)]
    seconds = {size: (time_steps or seconds_of_a_step)(cell, size, steps, device) for size in dict.fromkeys(sizes)}
    return sum(seconds[size] for size in sizes) * (images // recipe.batch) / 3600


def seconds_of_a_step(cell: Cell, size: int, steps: int, device=None) -> float:
    """The median time of a step on images of this height and width."""
    recipe: Recipe = cell.job.recipe
    chance = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (recipe.batch, 3, size, size), dtype=torch.uint8, generator=chance)
    labels = torch.arange(recipe.batch) % cell.classes
    arrays = {"train_images": images, "train_labels": labels, "test_images": images[:2], "test_labels": labels[:2]}
    data = datasets.dataset("timing", arrays, [f"class {number}" for number in range(cell.classes)])
    training = Training(cell.job.untrained_network(cell.classes, size), data, recipe, device=device or best_device())
    shown = data.normalised(images).to(training.device).contiguous(memory_format=torch.channels_last)
    wanted, times = labels.to(training.device), []
    for number in range(WARM_UP + steps):
        wait_for(training.device)
        began = time.perf_counter()
        training.stepper.step(shown, wanted, 0, number, WARM_UP + steps)
        wait_for(training.device)
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM_UP:])


def wait_for(device: torch.device) -> None:
    """Until the device has done everything that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def can_be_timed(cell: Cell) -> bool:
    """Is it the training of a classifier? Detectors and measurements are not timed."""
    return isinstance(cell.job, Job)


# ---- The study ----
SOURCES = {STEP_NET: cells_of_step_net, BLOCK: cells_of_block, ASR: cells_of_asr}


def main(arguments: Arguments):
    require_at_least(1, arguments, "steps", "threads")
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, paper=("StepNet",), table=("7",), row=("plain",), time=False)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    cells = [cell for paper in arguments.paper for cell in SOURCES[paper]()]
    listed = {(cell.paper, cell.table) for cell in cells}
    if unknown := [table for table in arguments.table if table not in {number for _, number in listed}]:
        tables = ", ".join(dict.fromkeys(number for _, number in sorted(listed, key=order)))
        raise SystemExit(f"studies.{STUDY}: `--table` knows {tables} of these papers, got {', '.join(unknown)}.")
    cells = [cell for cell in cells if not arguments.table or cell.table in arguments.table]
    cells = [cell for cell in cells if not arguments.row or any(words in cell.row for words in arguments.row)]
    if not cells:
        raise SystemExit(f"studies.{STUDY}: no row of these tables holds {' or '.join(arguments.row)}.")
    hours = time_all(cells, arguments) if arguments.time else {}

    results = Results(STUDY, arguments)
    results.save_table("plan", [cell_row(cell, hours) for cell in cells], "Every cell", printed=False)
    for line in detailed(cells, hours) if arguments.table or arguments.row else summary(cells, hours):
        print(line)
    results.write_record()


def order(table: tuple[str, str]) -> tuple[int, int, str]:
    """Papers in their order, and the tables of each by number."""
    paper, number = table
    return list(PAPERS).index(paper), int(number) if number.isdigit() else 99, number


def key_of(cell: Cell) -> str:
    """What tells trainings apart; seeds are not counted."""
    return repr(cell.job if isinstance(cell.job, Look) else getattr(cell.job, "specification", None))


def time_all(cells: list[Cell], arguments: Arguments) -> dict[str, float]:
    """Hours by training, each network timed once."""
    hours: dict[str, float] = {}
    for cell in cells:
        if can_be_timed(cell) and key_of(cell) not in hours:
            hours[key_of(cell)] = hours_of(cell, arguments.steps, arguments.device)
            print(f"{cell.network}: {hours[key_of(cell)]:.2f} hours.", flush=True)
    return hours


def cell_row(cell: Cell, hours: dict[str, float]) -> dict:
    """A cell as a line of the CSV file."""
    taken = hours.get(key_of(cell))
    return {
        "paper": cell.paper,
        "table": cell.table,
        "row": cell.row,
        "column": cell.column,
        "printed": cell.printed,
        "network": cell.network,
        "recipe": "" if cell.recipe is None else cell.recipe.name,
        "difference": cell.difference if cell.job is not None else "",
        "precision": cell.precision,
        "batch": "" if cell.recipe is None else cell.recipe.batch,
        "epochs": "" if cell.recipe is None else cell.recipe.epochs,
        "pixels": cell.size if can_be_timed(cell) else "",
        "hours here": "" if taken is None else f"{taken:.3g}",
        "not planned": cell.reason,
        "command": cell.command,
    }


def summary(cells: list[Cell], hours: dict[str, float]) -> list[str]:
    """A line for every table, no longer than a terminal is wide."""
    lines = [
        f"{'paper':<8}{'table':<7}{'cells':>6}{'planned':>8}{'networks':>9}{'as printed':>11}{'hours':>9}  recipes"
    ]
    for paper, table in sorted({(cell.paper, cell.table) for cell in cells}, key=order):
        here = [cell for cell in cells if (cell.paper, cell.table) == (paper, table)]
        planned = [cell for cell in here if cell.job is not None]
        same = {key_of(cell) for cell in planned if cell.recipe is not None and not cell.changes}
        every = {key_of(cell) for cell in planned}
        spent = f"{sum(hours[key] for key in every if key in hours):.1f}" if every & hours.keys() else ""
        recipes = ", ".join(dict.fromkeys(cell.recipe.name for cell in planned if cell.recipe is not None))
        counts = f"{len(here):>6}{len(planned):>8}{len(every):>9}{len(same):>11}{spent:>9}"
        line = f"{paper:<8}{table:<7}{counts}  {recipes}"
        lines.append(cut(line))
    lines += [
        "",
        "networks: different ones, each for every seed of the paper; as printed: those whose recipe is the",
        "paper's in every field. `--table N` lists a table job by job with what differs; plan.csv has every",
        "cell. Hours are of one seed and of this machine, by `--time`.",
    ]
    return lines


def detailed(cells: list[Cell], hours: dict[str, float]) -> list[str]:
    """Two lines for every job, no longer than a terminal is wide: what it is, and how it differs from the paper's."""
    lines = []
    for paper, table in sorted({(cell.paper, cell.table) for cell in cells}, key=order):
        here = [cell for cell in cells if (cell.paper, cell.table) == (paper, table)]
        lines += ["", f"{paper}, {'' if table.startswith('Fig') else 'Table '}{table}"]
        groups: dict[str, list[Cell]] = {}
        for cell in here:
            groups.setdefault(key_of(cell) if cell.job is not None else f"none: {cell.reason}", []).append(cell)
        for key, group in groups.items():
            first = group[0]
            more = f" and {len(group) - 1} more" if len(group) > 1 else ""
            name = f"{first.row}, {first.column}{more}: {first.printed}"
            if first.job is None:
                lines += [cut(f"  {name}"), *wrap(f"not planned: {first.reason}")]
                continue
            how = ""
            if first.recipe is not None:
                how = f" | {first.recipe.name}, {first.precision}, batch {first.recipe.batch}"
            taken = f" | {hours[key]:.2f} h" if key in hours else ""
            lines += [cut(f"  {name}"), *wrap(f"{first.network}{how}{taken}")]
            lines += wrap(f"differs: {first.difference}") if first.difference else []
    return lines


def cut(line: str) -> str:
    """The line, or its beginning where it is longer than a terminal is wide."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def wrap(words: str) -> list[str]:
    """Indented lines no longer than a terminal is wide."""
    return textwrap.wrap(words, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
