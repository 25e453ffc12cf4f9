"""First paper, Tables 1, 2 and 7 from the networks that are there, what is missing and what makes it (about 5 s).

Networks are looked for among those that come with the repository and in `results/train`, their weights unread. For
every table the study shows the accuracies printed and found, what is missing and how many GPU-hours that will take, and
writes a file with one command for each missing network in order of worth, for one machine or many with a common folder:
`xargs -P 4 -I{} sh -c '{}' < missing_table1.sh`.
"""

import dataclasses
import functools
import json
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from netbridge.checkpoint import read_header
from netbridge.train.journal import run_of
from netbridge.train.recipes import RECIPES, Recipe
from odelab.plot import style
from studies.lab.claims import TABLE_7
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.comparisons import seed_deviation
from studies.lab.exhibits import Exhibit, show
from studies.lab.figures import MARKS
from studies.lab.jobs import Job, recipe_of, same_recipe
from studies.lab.networks import SHAPES, USUAL, ZOO, controller_of
from studies.lab.page import STEPNET_PAPER, Page

STUDY = "table"


# ---- The tables: their cells, what is printed in them, and what it takes to fill them again ----
#
# Tables 1, 2 and 7 of the first paper: their cells, what is printed in them, and what it takes to fill them again.
#
# Hours are estimates from published speeds, not measured; `python -m studies.plan --time` measures them on a machine.
# ResNet-164 for 164 epochs on an RTX 3080 about 1.5 hours; ResNet-50 for 120 epochs of ImageNet at the 2,470 images a
# second of an A100 in mixed precision (NVIDIA's DeepLearningExamples), which the recipe `imagenet-256` computes in,
# 17.3 hours, ResNet-34 about 12.5, attention a fifth more. A ViT of half a million parameters took 54 seconds an epoch
# of CIFAR-10 on one core (2026-11-18), and 40 epochs on pictures that grow about two thirds of 40.


IMAGES = {"cifar10": 50_000, "cifar100": 50_000, "stl10": 5_000, "imagenet": 1_281_167}  # to train on
WIDTHS = (16, 64)  # of the papers' ResNets on CIFAR and on ImageNet: what `studies.train` takes where none is given
FIRST = ("constant", "SE", "StepNet")  # of the rows, those that are worth most


@dataclasses.dataclass(frozen=True)
class Scale:
    """How large a network is and how it is trained: what the networks of one column have in common.

    network  resnet, vit or vit-conv, as `studies.train` takes it
    depth    layers, of a ViT blocks
    width    channels of the first stage, of a ViT features of a token
    recipe   a `netbridge.train.recipes.Recipe`
    hours    of one network without attention, on the card of the table; None where nobody knows
    """

    network: str
    depth: int
    width: int
    recipe: Recipe
    hours: float | None = dataclasses.field(default=None, compare=False)

    @property
    def label(self) -> str:
        return f"{self.name}, {self.recipe.name}"

    @property
    def family(self) -> str:
        """resnet or vit: gains are compared within it."""
        return self.network.split("-")[0]

    @property
    def name(self) -> str:
        """The network in a word or two."""
        if self.network == "resnet":
            return f"ResNet-{self.depth}" + (f" of {self.width} channels" if self.width not in WIDTHS else "")
        stem = ", stem of convolutions" if self.network == "vit-conv" else ""
        return f"ViT of {self.depth} x {self.width}{stem}"


@dataclasses.dataclass(frozen=True)
class Table:
    """One table of the paper.

    number   as the paper counts
    title    what it is about
    columns  pairs (data set, scale)
    rows     controller, as networks are named in reports, and the text that `--controller` takes
    paper    what is printed: (mean, standard deviation) in per cent, by row and column number
    card     where the hours are of
    extra    by how much attention lengthens a training
    remark   what the paper leaves open about it
    """

    number: int
    title: str
    columns: tuple[tuple[str, Scale], ...]
    rows: dict[str, str]
    paper: dict[str, tuple[tuple[float, float], ...]]
    card: str
    extra: float = 1.0
    remark: str = ""

    def hours(self, row: str, scale: Scale) -> float | None:
        """How many hours one network of a row takes; None where nobody knows."""
        return None if scale.hours is None else scale.hours * (1.0 if row == "constant" else self.extra)


# Parameters of ResNet-164 in millions on 10 and 100 classes: Table 1 of this paper, and Table 1 of the ASR paper.
# FCA's head has a bias, and STL-10's ASR figure for IE (1.72) is the one that fits; CIFAR-100's 1.74 rounds 1.743 down.
PARAMETERS = {
    "constant": (1.70, 1.73),
    "se": (1.91, 1.93),
    "cbam": (1.92, 1.94),
    "eca": (1.70, 1.73),
    "srm": (1.74, 1.76),
    "fca": (1.91, 1.93),
    "ie": (1.72, 1.74),
    "iebn": (1.73, 1.75),
    "spa": (3.83, 3.86),
    "dia": (1.92, 1.95),
    "sem": (1.95, 1.97),
    "stepnet": (1.75, 1.77),
}
CLASSIC = ("cifar10", "cifar100", "stl10")


def resnet164(dataset: str) -> Scale:
    """The ResNet-164 of Table 1."""
    return Scale("resnet", 164, 16, recipe_of("paper", dataset), 1.5)


RESNET34 = Scale("resnet", 34, 64, recipe_of("imagenet-256", "imagenet"), 12.5)
RESNET50 = dataclasses.replace(RESNET34, depth=50, hours=17.3)
VIT = Scale(**SHAPES["cifar10-vit"], recipe=recipe_of("vit", "cifar10"), hours=0.4)
TABLES = {
    1: Table(
        1,
        "Accuracy on CIFAR-10, CIFAR-100 and STL-10",
        tuple((dataset, resnet164(dataset)) for dataset in CLASSIC),
        {
            **{"constant": "constant", "SE": "se", "CBAM": "cbam", "ECA": "eca", "SEM": "sem", "SRM": "srm"},
            **{"FCA": "fca", "IEBN": "iebn", "StepNet": "stepnet"},
        },
        {
            "constant": ((93.35, 0.18), (74.30, 0.30), (82.66, 1.05)),
            "SE": ((94.26, 0.14), (75.25, 0.31), (83.96, 0.92)),
            "CBAM": ((93.91, 0.14), (74.68, 0.22), (84.11, 0.49)),
            "ECA": ((94.15, 0.23), (74.41, 0.27), (83.89, 1.21)),
            "SEM": ((94.52, 0.11), (76.49, 0.26), (85.73, 0.16)),
            "SRM": ((94.59, 0.12), (75.49, 0.31), (84.73, 0.12)),
            "FCA": ((94.66, 0.12), (76.52, 0.19), (85.34, 0.25)),
            "IEBN": ((94.70, 0.13), (76.32, 0.14), (85.13, 0.04)),
            "StepNet": ((95.14, 0.24), (77.04, 0.22), (86.08, 0.11)),
        },
        "an RTX 3080",
        remark="The paper names ResNet-164 and five seeds. Of STL-10's recipe nothing is said: it is that of CIFAR, "
        "with the batches of 16 that Zhong et al. (ASR, 2023, Appendix C) have there.",
    ),
    2: Table(
        2,
        "Accuracy on ImageNet",
        (("imagenet", RESNET34), ("imagenet", RESNET50)),
        {
            **{"constant": "constant", "SE": "se", "ECA": "eca", "CBAM": "cbam", "SRM": "srm", "FCA": "fca"},
            **{"SGE": "sge", "StepNet": "stepnet"},
        },
        {
            "constant": ((73.99, 0.04), (76.02, 0.09)),
            "SE": ((74.37, 0.10), (76.62, 0.02)),
            "ECA": ((74.56, 0.08), (77.07, 0.09)),
            "CBAM": ((74.89, 0.11), (76.38, 0.10)),
            "SRM": ((74.79, 0.04), (76.49, 0.03)),
            "FCA": ((75.08, 0.19), (77.22, 0.15)),
            "SGE": ((74.50, 0.03), (77.13, 0.06)),
            "StepNet": ((75.01, 0.09), (77.52, 0.04)),
        },
        "an A100",
        extra=1.2,
        remark="Not said: the scale of random crops, the size for testing, warm-up; the commands take 0.08 to 1, the "
        "middle 224 of 256, and none.",
    ),
    7: Table(
        7,
        "Transformers trained from scratch",
        tuple((dataset, VIT) for dataset in CLASSIC),
        {"constant": "constant", "StepNet": "stepnet"},
        {
            name: tuple(TABLE_7[text, dataset] for dataset in CLASSIC)
            for name, text in (("constant", "constant"), ("StepNet", "stepnet"))
        },
        "one core",
        extra=1.1,
        remark="The paper gives its ViT no size, no recipe and no place of the adaptor; these are the ViTs of "
        "`python -m studies.transformer`.",
    ),
}


@dataclasses.dataclass
class Arguments:
    """The paper's tables over data sets, controllers and seeds, from the networks that are there."""

    table: tuple[int, ...] = tuple(TABLES)
    """Which of the paper's tables."""
    datasets: tuple[str, ...] = ()
    """Only these data sets; those of the table by default."""
    seeds: int = 5
    """How many seeds a cell shall have: 0, 1, ... The paper has five."""
    depth: int | None = None
    """Complete the tables with ResNets of so many layers instead of the paper's networks."""
    width: int = 16
    """With --depth: channels of the first stage."""
    recipe: str = "short"
    """With --depth: how to train them."""
    results: tuple[Path, ...] = (Path("results/train"),)
    """Folders to look for trained networks, beside those that come with the repository."""
    out: Path = Path("results/table")
    """Where tables, figures, the commands (missing_table1.sh), report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the networks of the digits that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


# ---- The networks that are there, their weights unread ----


@dataclasses.dataclass(frozen=True)
class Trained:
    """One trained network, its weights unread.

    dataset, controller, seed  what it is
    scale     how large, and how trained
    accuracy  per cent of the test images
    seconds   of training
    """

    dataset: str
    controller: str
    seed: int
    scale: Scale
    accuracy: float
    seconds: float


def read_all(folders: Iterable[Path]) -> tuple[list[Trained], list[str]]:
    """(the networks of all folders and their subfolders, why others are left out).

    A network that is there twice counts once.
    """
    trained: dict[tuple, Trained] = {}
    left_out = []
    for path in (path for folder in folders for path in sorted(Path(folder).rglob("*.safetensors"))):
        network = read_network(path)
        if isinstance(network, str):
            left_out.append(f"{path}: {network}")
            continue
        trained.setdefault((network.dataset, network.controller, network.seed, network.scale), network)
    return list(trained.values()), left_out


def read_network(path: Path) -> Trained | str:
    """What a file says of its network, or why it has no place in a table."""
    try:
        header = read_header(path)
        about, config = header.get("about") or {}, header["config"]
        run = run_of(path, header)
        scale = scale_of(config, about, run)
        network = Trained(
            *(about["dataset"], controller_of(config), about["seed"], scale, 100 * about["test_accuracy"]),
            float(about.get("seconds", "nan")),
        )
    except (KeyError, TypeError, ValueError) as error:
        return f"says too little of its training ({error})"
    if on_some_blocks(config):
        return "has a controller on some blocks only"
    shown, whole = run["dataset"].get("images"), IMAGES.get(network.dataset)
    if shown is not None and whole is not None and shown != whole:
        return f"saw {shown:,} of {whole:,} images"
    return network


def on_some_blocks(config: dict) -> bool:
    """Were blocks chosen? A block that opens a stage may have none by nature: StepNet needs a state before it."""
    openings = {sum(config["blocks"][:stage]) for stage in range(len(config["blocks"]))}
    inner = [controller for number, controller in enumerate(config["controllers"]) if number not in openings]
    return len({json.dumps(controller, sort_keys=True) for controller in inner}) > 1


def scale_of(config: dict, about: dict, run: dict) -> Scale:
    """The scale of a trained network; its recipe is the known one where all that matters is the same."""
    record = run["recipe"]
    usual = RECIPES.get(record["name"])
    how = usual if usual is not None and same_recipe(record, usual) else name_by_difference(record, usual)
    network, depth = config.get("family", "resnet"), about["depth"]
    if network == "vit":  # two steps make a block
        network, depth = "vit-conv" if config["stem"] == "conv" else "vit", sum(config["blocks"]) // 2
    return Scale(network, depth, config["widths"][0], how)


def name_by_difference(record: dict, usual: Recipe | None) -> Recipe:
    """A recipe that was changed carries the most telling of its changes in its name."""
    epochs = record["epochs"]
    changed = "" if usual is not None and epochs == usual.epochs else f" for {epochs} epochs"
    return Recipe(f"{record['name']}{changed or ', changed'}", epochs)


# ---- Cells: means, gains, what is missing, and what makes it ----


@dataclasses.dataclass(frozen=True)
class Cell:
    """One row of one column.

    row, text        the controller as reports name it and as `--controller` takes it
    dataset, scale   of the column
    found            the networks that are there
    missing          the seeds that are not
    hours            of one network, or None where nobody knows
    """

    row: str
    text: str
    dataset: str
    scale: Scale
    found: list[Trained]
    missing: list[int]
    hours: float | None

    def job(self, seed: int) -> Job:
        """The training of one network."""
        width = 16 if self.scale.width in WIDTHS else self.scale.width  # 16 stands for the papers' widths
        scale = self.scale
        return Job(self.dataset, self.text, seed, scale.recipe, scale.depth, width, network=scale.network)

    @property
    def accuracies(self) -> list[float]:
        return [one.accuracy for one in self.found]


def cells_of(table: Table, trained: list[Trained], seeds: int) -> list[Cell]:
    """Every cell of a table, column by column."""
    cells = []
    for dataset, scale in table.columns:
        for row, text in table.rows.items():
            members = [
                network
                for network in trained
                if (network.dataset, network.controller, network.scale) == (dataset, row, scale)
            ]
            missing = sorted(set(range(seeds)) - {network.seed for network in members})
            cells.append(Cell(row, text, dataset, scale, members, missing, table.hours(row, scale)))
    return cells


def measured_hours(scale: Scale, trained: list[Trained]) -> Scale:
    """A scale of one's own with the hours that networks of it took where they were trained, if any are there."""
    seconds = [network.seconds for network in trained if network.scale == scale and np.isfinite(network.seconds)]
    return dataclasses.replace(scale, hours=float(np.mean(seconds)) / 3600) if seconds else scale


def rows_of_table(table: Table, cells: list[Cell]) -> Iterator[dict]:
    """The table as it is printed and as it is found; a gain is that over the plain network of the column."""
    for row in table.rows:
        line = {"network": "plain" if row == "constant" else f"+{row}"}
        for number, (dataset, scale) in enumerate(table.columns):
            head = USUAL.get(dataset, dataset) + (f", {scale.name}" if several_depths(table) else "")
            printed = table.paper.get(row, ())
            line[f"{head}: paper"] = f"{printed[number][0]:.2f} ± {printed[number][1]:.2f}" if printed else "not there"
            column = [cell for cell in cells if (cell.dataset, cell.scale) == (dataset, scale)]
            (cell,) = (cell for cell in column if cell.row == row)
            line[f"{head}: found"] = accuracy_cell(cell.accuracies)
            line[f"{head}: gain"] = gain(cell, column)
        yield line


def several_depths(table: Table) -> bool:
    return len({scale.name for _, scale in table.columns}) > 1


def accuracy_cell(accuracies: list[float]) -> str:
    if not accuracies:
        return "none"
    deviation = f" ± {seed_deviation(accuracies):.2f}" if len(accuracies) > 1 else ""
    return f"{np.mean(accuracies):.2f}{deviation} (n = {len(accuracies)})"


def gain(cell: Cell, column: list[Cell]) -> str:
    (plain,) = (other for other in column if other.row == "constant")
    if cell is plain or not cell.found or not plain.found:
        return ""
    return f"{np.mean(cell.accuracies) - np.mean(plain.accuracies):+.2f}"


def in_order(cells: list[Cell]) -> list[tuple[Cell, int]]:
    """What is missing in order of worth: seed by seed, and of a seed the plain networks, SE and StepNet first."""
    lacking = [(cell, seed) for cell in cells for seed in cell.missing]
    return sorted(lacking, key=lambda pair: (pair[1], FIRST.index(pair[0].row) if pair[0].row in FIRST else len(FIRST)))


def rows_missing(cells: list[Cell]) -> Iterator[dict]:
    """By column: how much is missing, and what it will cost."""
    for dataset, scale in dict.fromkeys((cell.dataset, cell.scale) for cell in cells):
        column = [cell for cell in cells if (cell.dataset, cell.scale) == (dataset, scale)]
        hours = [cell.hours * len(cell.missing) for cell in column if cell.hours is not None]
        missing = sum(len(cell.missing) for cell in column)
        yield {
            "data set": USUAL.get(dataset, dataset),
            "networks": scale.label,
            "wanted": missing + sum(len(cell.found) for cell in column),
            "found": sum(len(cell.found) for cell in column),
            "missing": missing,
            "hours left": f"{sum(hours):.1f}" if len(hours) == len(column) else "unknown",
            "nothing there of": ", ".join(cell.row for cell in column if not cell.found) or "",
        }


def command(cell: Cell, seed: int) -> str:
    """What trains one missing network; killed and given again, it goes on."""
    scale, recipe = cell.scale, cell.scale.recipe
    words = ["--dataset", cell.dataset, "--controller", cell.text, "--seed", str(seed), "--depth", str(scale.depth)]
    if scale.network != "resnet":
        words += ["--network", scale.network]
    if scale.width not in WIDTHS:
        words += ["--width", str(scale.width)]
    words += ["--recipe", recipe.name, "--out", f"results/train/{cell.dataset}-{recipe.name}"]
    if cell.dataset == "imagenet":
        words += ["--data-root", "DATA", "--workers", "8"]
    return shlex.join(["python", "-m", "studies.train", *words])


def choose_columns(table: Table, arguments, trained) -> Table:
    """A table with the columns asked for: the paper's, or networks of one's own in their place."""
    if arguments.depth is None:
        chosen = [
            number for number, (dataset, _) in enumerate(table.columns) if dataset in (arguments.datasets or USUAL)
        ]
        paper = {row: tuple(printed[number] for number in chosen) for row, printed in table.paper.items()}
        return dataclasses.replace(table, columns=tuple(table.columns[number] for number in chosen), paper=paper)
    datasets = arguments.datasets or tuple(dict.fromkeys(dataset for dataset, _ in table.columns))
    columns = []
    for dataset in datasets:
        scale = Scale("resnet", arguments.depth, arguments.width, recipe_of(arguments.recipe, dataset))
        columns.append((dataset, measured_hours(scale, trained)))
    of_paper = [dataset for dataset, _ in table.columns]
    same = of_paper == list(dict.fromkeys(of_paper)) and set(datasets) <= set(of_paper)
    paper = {row: tuple(p[of_paper.index(dataset)] for dataset in datasets) for row, p in table.paper.items() if same}
    machine = "the machine that trained what is there"
    return dataclasses.replace(table, columns=tuple(columns), paper=paper, card=machine, extra=1.0)


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the study shows: the tables asked for, with their columns, the networks that are there, and those left out.

    seeds  how many networks a cell is to have
    """

    tables: list[Table]
    trained: list[Trained]
    left_out: list[str]
    seeds: int


def show_table(table: Table, page: Page, evidence: Evidence) -> None:
    """One table with what is missing."""
    name, cells = f"table{table.number}", cells_of(table, evidence.trained, evidence.seeds)
    page.words(table.remark)
    page.table(
        name,
        rows_of_table(table, cells),
        f"Table {table.number}, as printed and as found",
        "Per cent of the test images after the last epoch: mean and standard deviation over n seeds, and the gain over "
        f"the plain network in points. Networks: {'; '.join(dict.fromkeys(scale.label for _, scale in table.columns))}."
        " The printed numbers are of the paper's networks, whatever is found.",
    )
    page.table(
        f"{name}_missing",
        rows_missing(cells),
        f"What is missing of Table {table.number}",
        f"Hours on {table.card}: estimates for the paper's networks, means of what was measured for others.",
    )
    lacking = in_order(cells)
    if lacking:
        path = page.out / f"missing_{name}.sh"
        path.write_text("".join(f"{command(*pair)}\n" for pair in lacking))
        page.files.append(path)
        page.words(
            f"{path.name} has the {len(lacking)} commands in order of worth; any number of machines with a common "
            f"folder work it off. The first is: {command(*lacking[0])}"
        )
    page.figure(
        draw_gains(table, evidence.trained),
        f"{name}_gains",
        "Points above the plain network. Open marks are the paper's, full ones the networks found here at any scale, "
        "with the standard deviation over their seeds; found on smaller networks, they repeat no cell of the paper.",
    )


def sum_up(table: Table, evidence: Evidence) -> str:
    """How much of a table is there, and how long the rest takes, in a sentence."""
    rows = list(rows_missing(cells_of(table, evidence.trained, evidence.seeds)))
    wanted, measured = (sum(row[key] for row in rows) for key in ("wanted", "found"))
    hours = [row["hours left"] for row in rows]
    left = "an unknown number of" if "unknown" in hours else f"about {sum(map(float, hours)):.0f}"
    return f"Table {table.number}: {measured} of {wanted} networks are there; {left} hours are left on {table.card}."


def draw_gains(table: Table, trained: list[Trained]):
    """Points above the plain network, by controller: open marks are printed, full ones found, with their spread."""
    names = [row for row in table.rows if row != "constant"]
    with style.figure(height=3.0) as (drawing, axes):
        axis = axes[0, 0]
        axis.axhline(0.0, color=style.GREY, linewidth=0.8)
        indices = np.arange(len(names))
        several = len({scale.name for _, scale in table.columns}) > 1
        for number, (dataset, scale) in enumerate(table.columns):
            if table.paper.get("constant"):
                gains = [table.paper[name][number][0] - table.paper["constant"][number][0] for name in names]
                label = f"paper, {USUAL.get(dataset, dataset)}" + (f", {scale.name}" if several else "")
                axis.plot(indices, gains, MARKS[number], color=style.GREY, markerfacecolor="white", label=label)
        shown = 0
        family = table.columns[0][1].family
        alike = {(network.dataset, network.scale) for network in trained if network.scale.family == family}
        for dataset, scale in sorted(alike, key=lambda pair: pair[1].label):
            members = [network for network in trained if (network.dataset, network.scale) == (dataset, scale)]
            groups = {
                name: [network.accuracy for network in members if network.controller == name]
                for name in ("constant", *names)
            }
            if groups["constant"] and any(groups[name] for name in names):
                shift = 0.12 * (shown + 1)
                points = [(x, groups[name]) for x, name in zip(indices, names, strict=True) if groups[name]]
                axis.errorbar(
                    [x + shift for x, _ in points],
                    [np.mean(values) - np.mean(groups["constant"]) for _, values in points],
                    yerr=[np.nan_to_num(seed_deviation(values)) for _, values in points],
                    fmt=MARKS[shown],
                    color=style.COLOURS[shown % len(style.COLOURS)],
                    markersize=4.5,
                    label=f"found, {USUAL.get(dataset, dataset)}, {scale.label}",
                )
                shown += 1
        axis.set_xticks(indices, names)
        axis.set_xlim(-0.5, len(names) - 0.4)  # so that a single row keeps its marks together
        axis.set_ylabel("points above the plain network")
        axis.grid(axis="x", visible=False)
        drawing.legend(loc="outside lower center", ncols=2)
    return drawing


def rows_elsewhere(tables: list[Table], trained: list[Trained]) -> Iterator[dict]:
    """Networks at scales that no chosen table has: means over seeds, and the gain over plain ones."""
    taken = {column for table in tables for column in table.columns}
    others = sorted(
        {(network.dataset, network.scale) for network in trained} - taken, key=lambda pair: (pair[0], pair[1].label)
    )
    for dataset, scale in others:
        members = [network for network in trained if (network.dataset, network.scale) == (dataset, scale)]
        plain = [network.accuracy for network in members if network.controller == "constant"]
        for row in sorted({network.controller for network in members}, key=lambda name: (name != "constant", name)):
            accuracies = [network.accuracy for network in members if network.controller == row]
            above = "" if row == "constant" or not plain else f"{np.mean(accuracies) - np.mean(plain):+.2f}"
            yield {
                "data set": USUAL.get(dataset, dataset),
                "networks": scale.label,
                "controller": row,
                "accuracy (%)": accuracy_cell(accuracies),
                "gain": above,
            }


def show_elsewhere(page: Page, evidence: Evidence) -> None:
    page.table(
        "elsewhere",
        rows_elsewhere(evidence.tables, evidence.trained),
        "Networks that belong to no cell above",
        "Means and standard deviations over seeds; gains over the plain networks of the same line of networks.",
    )
    page.words(f"Left out: {'; '.join(evidence.left_out)}." if evidence.left_out else "")


def exhibits_of(tables: list[Table]) -> list[Exhibit]:
    """An exhibit for each table, and one for the networks that belong to none."""
    each = [Exhibit(f"Table {one.number}: {one.title}", functools.partial(show_table, one)) for one in tables]
    return [*each, Exhibit("Networks at other scales", show_elsewhere)]


# ---- The study ----


def main(arguments: Arguments):
    require_at_least(1, arguments, "seeds", "depth", "width")
    if arguments.smoke:
        arguments = dataclasses.replace(
            arguments, table=(1,), datasets=("digits",), depth=32, width=4, recipe="digits", seeds=3
        )
    if unknown := [str(number) for number in arguments.table if number not in TABLES]:
        raise SystemExit(f"studies.{STUDY}: `--table` knows {', '.join(map(str, TABLES))}, got {', '.join(unknown)}.")
    trained, left_out = read_all((ZOO, *(folder for folder in arguments.results if folder.is_dir())))
    with plain_errors(STUDY):
        tables = [choose_columns(TABLES[number], arguments, trained) for number in arguments.table]
    tables = [table for table in tables if table.columns]
    if not tables:
        raise SystemExit(
            f"studies.{STUDY}: none of the tables has the data sets {', '.join(arguments.datasets)}; give `--depth` to "
            "complete one with data sets of your own."
        )

    *first, last = (str(table.number) for table in tables)
    page = Page(
        STUDY,
        arguments,
        f"Table{'s' * (len(tables) > 1)} {' and '.join(filter(None, (', '.join(first), last)))} over data sets, "
        "controllers and seeds",
        f"{len(trained)} trained networks found. After {STEPNET_PAPER}.",
    )
    evidence = Evidence(tables, trained, left_out, arguments.seeds)
    show(page, exhibits_of(tables), evidence)
    page.conclusions([sum_up(table, evidence) for table in tables])
    page.close()


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
