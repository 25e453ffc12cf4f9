"""First paper, Table 4 and lottery tickets: StepNet's inputs, adaptors and places (about 8 s; 1 h with --train).

Claims examined: StepNet is best with both states as input and with the adaptor of the paper, and controllers on the few
stiffest blocks do as well as controllers on all blocks (Huang, Liang et al., Understanding Self-attention Mechanism via
Dynamical System Perspective, 2023, Section 3.1). By default the study shows the results that come with the repository;
`--train` makes what is missing.

Last result (ResNet-14 on CIFAR-10, 5 epochs, seeds 0 and 1, 2026-11-18): no StepNet and no place of it differs from the
plain network by more than seeds do; the intervals are one to two points wide on either side, and with two seeds what
Table 4 says of inputs would be found in 8 of 100 worlds. Whether the stiffest blocks alone do as well as all (at most
0.9 points worse, a margin set after the data; undecided before) depends on which blocks may be chosen: among the
counted ones they do, where those with all are no better than none.
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import netbridge as nb
from netbridge.common.devices import best_device
from netbridge.data import name_of
from netbridge.model import resnet
from netbridge.step_sizes import placement, spec
from netbridge.train.recipes import Recipe
from odelab.plot import style
from studies.lab import jobs
from studies.lab.command import command, plain_errors, require_at_least, start
from studies.lab.comparisons import chance_of_one_mean, deviation_cell, interval_cell, tukey
from studies.lab.exhibits import Exhibit, write
from studies.lab.measurements import Score, remove_training, score_of
from studies.lab.networks import images_or_fallback
from studies.lab.options import TrainingOptions, check_training, use_scale, which_jobs
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.statistics import LEVEL, Estimate, chance_text, listing
from studies.lab.stiffness import prepare
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Verdict,
    Worlds,
    corrected,
    draw_seeds,
    enough,
    joint,
    of_each,
    rule,
)

STUDY = "step_control"
SHIPPED = Path(__file__).parent / "shipped" / STUDY
TRACED = 1000  # training images: the choice of blocks must not have seen the test set

# ---- The design: its networks, each known by all that determines what it scores, and their order ----
INPUTS = {"F(x_t)": "now", "F(x_{t+1})": "next", "F(x_{t+1} - x_t)": "difference"}
ADAPTORS = {f"Adaptor {letter}": letter for letter in "abcd"}
PLAIN, SE, OURS = "plain", "SE", "F(x_{t+1}, x_t)"
CELLS: dict[str, str | dict] = {  # Table 4's rows, SE for reference
    PLAIN: "constant",
    SE: "se",
    **{row: {"name": "stepnet", "inputs": inputs} for row, inputs in INPUTS.items()},
    OURS: "stepnet",
    **{row: {"name": "stepnet", "adaptor": adaptor} for row, adaptor in ADAPTORS.items()},
}
STIFFEST, RANDOM, LEAST, ALL, NONE = "stiffest", "random", "least stiff", "all", "none"
TICKETS = (STIFFEST, RANDOM, LEAST, ALL, NONE)
FIRST = (PLAIN, SE, OURS)  # these are trained first, then the tickets, then the other cells
FEWEST_SEEDS = 2  # of every row; one has no interval
DEVIATION = 0.4  # points that seeds of a row scatter by, pooled over the rows that come with the repository
AS_WELL = 0.9  # points; half of what StepNet gains in Table 4: who loses less does as well
COUNTED, EVERY = "counted", "every"  # a ticket's blocks: those the paper's index counts (no first of a stage), or any
SMALL = {"depth": 14, "recipe": "short", "epochs": 5, "seeds": (2,), "few": 2}
# One block in ten is few: at most so many are stiff for most degrees, Figure 6. The rest is Section 3 and Table 6.
FULL = {"depth": 164, "recipe": "paper", "epochs": None, "seeds": (5,), "few": 5}
SMOKE: dict[str, Any] = {
    "dataset": "digits",
    "epochs": 1,
    "seeds": (1,),
    "images": 256,
    "train": True,
    "own": True,
    "ship": False,
    "blocks": "every",
    "threads": 1,
}
SMOKE_ROWS = (PLAIN, OURS, STIFFEST)


@dataclasses.dataclass
class Arguments(TrainingOptions):
    """Which inputs and which adaptor StepNet should have, and on which blocks a controller is worth its place."""

    part: Literal["both", "ablation", "ticket"] = "both"
    """ablation: Table 4; ticket: controllers on the stiffest blocks against others."""
    full: bool = False
    """The paper's depth, recipe and number of seeds; give it a GPU."""
    depth: int | None = None
    """Layers of the networks: 14, with --full 164."""
    recipe: str | None = None
    """How they are trained: short, with --full paper; see netbridge.recipes.RECIPES."""
    epochs: int | None = None
    """How many epochs: 5 by default; with --full, or with another recipe, what that says."""
    seeds: tuple[int, ...] = ()
    """One number N: the seeds 0 to N - 1; several numbers: these seeds. Default 2, with --full 5."""
    few: int | None = None
    """Blocks of a ticket that get the controller: 2, with --full 5; the same share where fewer may be chosen."""
    blocks: Literal["both", "every", "counted"] = "both"
    """Blocks that may get the controller: every one, or those that the paper counts, without the first of a stage."""
    draws: int = 1
    """How many different tickets are drawn at random per seed; their mean accuracy counts for the seed."""
    ticket_controller: str = "stepnet"
    """The controller whose tickets are drawn: its name, asr(se), or JSON."""
    only: tuple[str, ...] = ()
    """Only these rows, by their names in the tables."""
    out: Path = Path("results/step_control")
    """Where results, figures, tables, report.html and record.json go."""


@dataclasses.dataclass(frozen=True)
class Scale:
    """What all networks of one experiment share: data set, depth, recipe, and how many training images (None: all)."""

    dataset: str
    depth: int
    recipe: Recipe
    images: int | None = None

    @functools.cached_property
    def counts(self) -> list[int]:
        """How many blocks each stage has."""
        return resnet.architecture(self.depth, None, None, None)[1]["blocks"]

    @property
    def blocks(self) -> int:
        return sum(self.counts)

    @property
    def firsts(self) -> list[int]:
        """The blocks that open a stage."""
        return [sum(self.counts[:stage]) for stage in range(len(self.counts))]


@dataclasses.dataclass(frozen=True)
class Run:
    """One network: the controller of every block, as JSON texts, and the seed of its weights and batches."""

    scale: Scale
    controllers: tuple[str, ...]
    seed: int

    @property
    def specification(self) -> dict:
        """Everything that determines the result, in plain JSON; fields of the recipe where they are not the default.

        Leaving out the defaults keeps the names of old results valid when recipes gain a field.
        """
        scale = self.scale
        return json.loads(
            json.dumps(
                {
                    "dataset": scale.dataset,
                    "images": scale.images,
                    "depth": scale.depth,
                    "controllers": [json.loads(text) for text in self.controllers],
                    "recipe": jobs.changed_fields(scale.recipe),
                    "seed": self.seed,
                }
            )
        )

    @property
    def job(self) -> jobs.Job:
        """The training of this network, for `jobs.train`."""
        scale = self.scale
        whole = (scale.dataset, self.controller, self.seed, scale.recipe, scale.depth)
        return jobs.Job(*whole, on=tuple(self.acting), images=scale.images)

    @property
    def acting(self) -> list[int]:
        """The blocks whose step size is not constant."""
        return [number for number, text in enumerate(self.controllers) if text != '"constant"']

    @property
    def controller(self) -> str | dict:
        """The controller of those blocks; "constant" where there are none."""
        return json.loads(self.controllers[self.acting[0]]) if self.acting else "constant"

    @property
    def label(self) -> str:
        """The controller and its blocks as part of a file name, such as stepnet-now-on-1-3-5."""
        record = self.controller
        words = (
            [record] if isinstance(record, str) else [str(value) for value in (record.pop("name"), *record.values())]
        )
        if self.acting:
            few = len(self.acting) < 7
            words.append("on-" + "-".join(map(str, self.acting)) if few else f"on-{len(self.acting)}-blocks")
        return re.sub(r"\W+", "-", "-".join(words)).strip("-")

    @property
    def stem(self) -> str:
        """A file name that can be read, made unique by the digest of the specification."""
        digest = hashlib.sha256(json.dumps(self.specification, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.scale.dataset}-resnet{self.scale.depth}-{self.label}-seed{self.seed}-{digest}"


def network_of(scale: Scale, controller, seed: int, on=None) -> Run:
    """The network with a controller on the blocks `on`; None: on every block that the controller can serve."""
    chosen = placement.on_blocks(spec.spec_of(controller), scale.counts, on)
    return Run(scale, tuple(json.dumps(each.as_json(), sort_keys=True) for each in chosen), seed)


def candidates(scale: Scale, reading: str) -> list[int]:
    """The numbers of the blocks that may get a controller under a reading."""
    return [number for number in range(scale.blocks) if reading == EVERY or number not in scale.firsts]


def draw_blocks(among: list[int], few: int, seed: int, count: int) -> list[list[int]]:
    """`count` different random choices of `few` blocks; a larger `count` keeps the choices of a smaller one."""
    most = math.comb(len(among), few)
    if count > most:
        raise ValueError(f"{most} different tickets of {few} among {len(among)} blocks can be drawn, not {count}.")
    choices: dict[tuple, None] = {}
    attempts = itertools.count()
    while len(choices) < count:
        chosen = np.random.default_rng([seed, next(attempts)]).choice(among, few, replace=False)
        choices.setdefault(tuple(sorted(int(k) for k in chosen)))
    return [list(blocks) for blocks in choices]


def ticket(placed: str, nsi, among: list[int], few: int) -> list[int]:
    """The blocks of a placement, which `nsi` decides: one number per block, of the plain network of the same seed."""
    if placed == ALL:
        return list(among)
    if placed == NONE:
        return []
    falling = sorted(among, key=lambda number: (-nsi[number], number))
    return sorted(falling[:few] if placed == STIFFEST else falling[-few:])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result(Score):
    """What a network scored on the test set, and how stiff each of its blocks was on training images.

    nsi     per block, the mean of ||f|| / ||x|| over `traced` training images
    """

    study, tuples = "step_control", ("nsi",)

    nsi: tuple[float, ...]
    traced: int


def find(run, folders) -> Result | None:
    """The result of exactly this run in the first folder that has one."""
    return Result.find(run.stem, run.specification, run.scale.recipe, folders)


def carry_out(run, data, work: Path, destination: Path, device=None, keep: bool = False) -> Result:
    """Train one network, or go on with it, trace it, and write down what it scored; the weights go unless kept."""
    path = work / f"{run.stem}.safetensors"
    net = jobs.train(run.job, data, path, "step_control", device)
    result = measure(run, net, data, path, device)
    result.write(destination / f"{run.stem}.json")
    if not keep:
        remove_training(path)
    return result


def measure(run, net, data, path: Path, device) -> Result:
    """From the finished network and its log."""
    return Result(
        **score_of(net, data, run.specification, path.with_suffix(".jsonl")),
        nsi=tuple(stiffness(net, data, device)),
        traced=min(TRACED, len(data.train_images)),
    )


def stiffness(net, data, device) -> list[float]:
    """Per block the mean NSI of its branch over training images."""
    net = net.to(device or best_device())
    images = data.train_images[:TRACED].to(next(net.parameters()).device)
    return nb.trace(net, prepare(net, data, images), of="slope").nsi.mean(0).tolist()


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of a table: the networks planned for it, and the results that are there."""

    name: str
    planned: list[tuple[int, Run | None]]  # with the seed; None where its blocks cannot be known yet
    results: list[tuple[Run, Result]]

    @property
    def accuracies(self) -> list[float]:
        """One number per seed, the mean of its networks, because networks of one seed are not independent."""
        by_seed: dict[int, list[float]] = {}
        for run, result in self.results:
            by_seed.setdefault(run.seed, []).append(result.accuracy)
        return [float(np.mean(values)) for values in by_seed.values()]

    @property
    def mean(self) -> float:
        return float(np.mean(self.accuracies))


class Plan:
    """Which networks the options ask for, in the order of training, and which of their results exist.

    arguments  the options, filled in
    shipped    the folder of the results that come with the repository
    """

    def __init__(self, arguments, shipped: Path = SHIPPED):
        self.arguments = arguments
        recipe = jobs.recipe_of(arguments.recipe, arguments.dataset, epochs=arguments.epochs)
        self.scale = Scale(arguments.dataset, arguments.depth, recipe, arguments.images)
        self.own = arguments.out / "runs"
        self.folders = (self.own,) if arguments.own else (self.own, shipped)
        self.destination = shipped if arguments.ship else self.own
        self.readings = [EVERY, COUNTED] if arguments.blocks == "both" else [arguments.blocks]
        if arguments.part == "ablation":
            self.readings = []
        if arguments.few > self.scale.blocks:
            raise SystemExit(f"`--few` must be at most {self.scale.blocks}, the blocks there are; got {arguments.few}.")
        for reading in self.readings:
            among = candidates(self.scale, reading)
            if not among:
                raise SystemExit(f"`--depth` = {arguments.depth} has no block but the first of each stage: choose 14.")
            self.tickets(
                reading, RANDOM, 0
            )  # an unknown controller or too many draws end the study here, before any training

    def find(self, run: Run) -> Result | None:
        return find(run, self.folders)

    def divergence(self, run: Run) -> str | None:
        return jobs.divergence(run, self.own)

    def includes(self, row: str) -> bool:
        return not self.arguments.only or row in self.arguments.only

    def cell(self, row: str, seed: int) -> Run:
        return network_of(self.scale, CELLS[row], seed)

    def few(self, reading: str) -> int:
        """How many blocks a ticket has: under every reading the same share of the blocks that may be chosen."""
        count = len(candidates(self.scale, reading))
        return max(1, round(self.arguments.few * count / self.scale.blocks))

    def ticket(self, reading: str, placed: str, seed: int) -> Run | None:
        """The network of a placement; None while the plain network, whose stiffness decides, is not trained."""
        nsi = None
        if placed in (STIFFEST, LEAST):
            plain = self.find(self.cell(PLAIN, seed))
            if plain is None:
                return None
            nsi = plain.nsi
        among = candidates(self.scale, reading)
        return self.on(ticket(placed, nsi, among, self.few(reading)), seed)

    def on(self, blocks: list[int], seed: int) -> Run:
        return network_of(self.scale, jobs.spec_of_text(self.arguments.ticket_controller), seed, blocks)

    def tickets(self, reading: str, placed: str, seed: int) -> list[Run | None]:
        """The networks of a placement: as many as `--draws` says where the blocks are random, else one."""
        if placed != RANDOM:
            return [self.ticket(reading, placed, seed)]
        among = candidates(self.scale, reading)
        tickets = draw_blocks(among, self.few(reading), seed, self.arguments.draws)
        return [self.on(blocks, seed) for blocks in tickets]

    def queue(self) -> list[Run]:
        """All networks whose blocks are known by now, each once, in the order of training."""
        runs: dict[str, Run] = {}
        for seed in self.arguments.seeds:
            planned: list[Run | None] = [self.cell(PLAIN, seed)]
            cells = [] if self.arguments.part == "ticket" else [row for row in CELLS if self.includes(row)]
            tickets = [(reading, row) for reading in self.readings for row in TICKETS if self.includes(row)]
            planned += [self.cell(row, seed) for row in cells if row in FIRST]
            planned += [run for of_ticket in tickets for run in self.tickets(*of_ticket, seed)]
            planned += [self.cell(row, seed) for row in cells if row not in FIRST]
            runs |= {run.stem: run for run in planned if run is not None}
        return list(runs.values())

    def row(self, name: str, planned: list[tuple[int, Run | None]]) -> Row:
        pairs = [(run, self.find(run)) for _, run in planned if run is not None]
        return Row(name, planned, [(run, result) for run, result in pairs if result is not None])

    def cells(self) -> dict[str, Row]:
        """The rows of Table 4, with the results that exist."""
        if self.arguments.part == "ticket":
            return {}
        seeds = self.arguments.seeds
        wanted = [name for name in CELLS if self.includes(name)]
        return {name: self.row(name, [(seed, self.cell(name, seed)) for seed in seeds]) for name in wanted}

    def placements(self, reading: str) -> dict[str, Row]:
        """The rows of the lottery tickets, with the results that exist."""
        rows = {}
        for name in filter(self.includes, TICKETS):
            planned = [(seed, run) for seed in self.arguments.seeds for run in self.tickets(reading, name, seed)]
            rows[name] = self.row(name, planned)
        return rows

    def plain(self) -> Row:
        """The plain networks, whose stiffness decides which blocks are the stiffest."""
        return self.row(PLAIN, [(seed, self.cell(PLAIN, seed)) for seed in self.arguments.seeds])


def train(plan: Plan, data):
    """Train what is missing of the plan; processes with the same `--out` share the work."""
    arguments = plan.arguments
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    more = (data, plan.own, plan.destination, arguments.device, arguments.keep)
    find = jobs.finder(plan.find, **which_jobs(arguments))
    jobs.work_off(plan.queue, find, lambda run: carry_out(run, *more), plan.own)


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the study shows.

    plan       which networks the options ask for
    cells      the rows of Table 4
    tickets    the rows of the lottery tickets, by the reading of which blocks may be chosen
    stiffness  the plain networks, whose stiffness decides which blocks are the stiffest
    """

    plan: Plan
    cells: dict[str, Row]
    tickets: dict[str, dict[str, Row]]
    stiffness: Row

    @classmethod
    def of(cls, plan: Plan) -> "Evidence":
        tickets = {reading: plan.placements(reading) for reading in plan.readings}
        return cls(plan, plan.cells(), tickets, plan.plain())

    @property
    def rows(self) -> dict[str, Row]:
        """All rows, by names that are theirs alone."""
        return self.cells | {
            f"{reading} block, {name}": row for reading, rows in self.tickets.items() for name, row in rows.items()
        }


# ---- What is known of the networks, by row ----
Groups = dict[str, list[float]]  # accuracies by row, one per seed


def accuracies(rows: dict[str, Row]) -> dict[str, list[float]]:
    """By row, one number per seed."""
    return {name: row.accuracies for name, row in rows.items()}


def gains(groups: dict[str, list[float]], over: str, level: float = LEVEL) -> dict[str, Estimate]:
    """The gain of every row with results over the row `over`; the groups are those of `accuracies`."""
    return tukey(over, groups, level)


TRAIN = "n = 0: `--train` makes the networks."
NAMES = {PLAIN: "the plain network", NONE: "no controllers", STIFFEST: "the stiffest blocks"}


def asks(rows: Iterable[str], control: str, others: Iterable[str]) -> bool:
    """Was the control asked for, and any of the others?"""
    return control in rows and any(name in rows for name in others)


def against(
    control: str, groups: Groups, others: Sequence[str], sign: int = 1, asked: int = 1, beyond: float = 0.0
) -> tuple[Verdict, str]:
    """The verdict on several rows beside one, and the numbers behind it.

    control, others  names of rows
    sign             -1 for the claim that the others are below the control
    asked            how many tables are judged together
    beyond           differences are counted from this number of points
    """
    several = {name: groups[name] for name in (control, *others) if groups.get(name)}
    if len(several) < 2 or control not in several:
        return NOT_RUN, TRAIN
    beyond_control = gains(groups, control, corrected(asked))
    beyond_control = {name: beyond_control[name] for name in several if name != control}
    few = enough(several, FEWEST_SEEDS)
    words = f"{few}Points above {NAMES.get(control, control)}: {listing(beyond_control)}."
    if few:
        return UNDECIDED.because("too few seeds"), words
    return of_each({name: e.less(beyond) for name, e in beyond_control.items()}, sign), words


MARKS = "osD^v<>*"  # one per seed
HEIGHT = 0.27  # inches per row


def dots(axis, rows: dict[str, Row]):
    seeds = seeds_of(rows)
    for index, row in enumerate(rows.values()):
        for run, result in row.results:
            k = seeds.index(run.seed)
            axis.plot(
                result.accuracy,
                index + 0.09 * (2 * k - len(seeds) + 1) / max(len(seeds) - 1, 1),
                MARKS[k % len(MARKS)],
                color=style.COLOURS[k % len(style.COLOURS)],
                markersize=4.5,
            )
        axis.plot([row.mean, row.mean], [index - 0.3, index + 0.3], color="black", linewidth=1.4)
    axis.grid(axis="y", visible=False)
    axis.locator_params(axis="x", nbins=6)


def legend(axis, rows: dict[str, Row]):
    from matplotlib.lines import Line2D

    looks = [(MARKS[k % len(MARKS)], style.COLOURS[k % len(style.COLOURS)]) for k in range(len(seeds_of(rows)))]
    handles = [Line2D([], [], linestyle="", marker=mark, color=colour, markersize=4.5) for mark, colour in looks]
    names = [f"seed {seed}" for seed in seeds_of(rows)]
    axis.figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5))


def seeds_of(rows: dict[str, Row]) -> list[int]:
    return sorted({run.seed for row in rows.values() for run, _ in row.results})


def places(row: Row) -> str:
    """Block numbers; of every network where they differ."""
    return "; ".join(dict.fromkeys(list_numbers(run) for run, _ in row.results))


def list_numbers(run: Run) -> str:
    count = len(run.acting)
    if count == run.scale.blocks:
        return "all"
    if count > 8:
        return f"{count} of {run.scale.blocks}"
    return " ".join(map(str, run.acting)) or "none"


def missing(rows, diverged) -> list[str]:
    """What is planned, not there and not `diverged`, in words."""
    lines = []
    for name, row in rows.items():
        settled = {run.stem for run, _ in row.results} | set(diverged)
        seeds = sorted({seed for seed, run in row.planned if run is None or run.stem not in settled})
        if seeds:
            lines.append(f"{name} (seed {', '.join(map(str, seeds))})")
    return list(dict.fromkeys(lines))


# ---- Table 4: inputs and adaptors ----
PAPER = {  # Table 4, SE from Table 1: accuracy and its standard deviation over 5 seeds, ResNet-164
    PLAIN: {"cifar10": (93.35, 0.18), "cifar100": (74.30, 0.30), "stl10": (82.66, 1.05)},
    SE: {"cifar10": (94.26, 0.14), "cifar100": (75.25, 0.31), "stl10": (83.96, 0.92)},
    "F(x_t)": {"cifar10": (94.59, 0.14), "cifar100": (76.34, 0.14), "stl10": (84.74, 0.64)},
    "F(x_{t+1})": {"cifar10": (94.32, 0.23), "cifar100": (76.53, 0.04), "stl10": (85.12, 0.54)},
    "F(x_{t+1} - x_t)": {"cifar10": (94.69, 0.33), "cifar100": (76.42, 0.10), "stl10": (85.26, 0.72)},
    OURS: {"cifar10": (95.14, 0.24), "cifar100": (77.04, 0.22), "stl10": (86.08, 0.11)},
    "Adaptor a": {"cifar10": (94.39, 0.12), "cifar100": (76.19, 0.14), "stl10": (84.21, 0.12)},
    "Adaptor b": {"cifar10": (94.05, 0.11), "cifar100": (75.45, 0.12), "stl10": (84.10, 0.24)},
    "Adaptor c": {"cifar10": (94.19, 0.24), "cifar100": (75.12, 0.08), "stl10": (84.12, 0.44)},
    "Adaptor d": {"cifar10": (94.92, 0.24), "cifar100": (76.83, 0.14), "stl10": (85.62, 0.44)},
}


def paper(row: str, dataset: str) -> tuple[float, float]:
    """The paper's number for this data set, or for its first data set where it has none for this one."""
    return PAPER[row].get(dataset, PAPER[row]["cifar10"])


def paper_dataset(dataset: str) -> str:
    return {"cifar100": "CIFAR-100", "stl10": "STL-10"}.get(dataset, "CIFAR-10")


INPUT_ROWS, ADAPTOR_ROWS, OTHERS = tuple(INPUTS), tuple(ADAPTORS), (RANDOM, LEAST)
DRAWN = "Figure 5 is a drawing that does not settle what a to d are; these are four readings of it."
GAIN = PAPER[OURS]["cifar10"][0] - PAPER[PLAIN]["cifar10"][0]


def stepnets(rows: Iterable[str]) -> list[str]:
    return [name for name in rows if name not in (PLAIN, SE)]


def worlds_of_table_4(chance: np.random.Generator, effect: float, n: int) -> tuple[Groups]:
    """Table 4, in which all rows are alike or differ as the paper's do."""
    plain = PAPER[PLAIN]["cifar10"][0]
    means = {name: plain + effect * (columns["cifar10"][0] - plain) for name, columns in PAPER.items()}
    return (draw_seeds(chance, means, DEVIATION, n),)


@rule(
    "StepNet raises the accuracy, with any input and any adaptor.",
    "Table 4",
    fewest=FEWEST_SEEDS,
    worlds=Worlds(
        worlds_of_table_4, n=5, units="seeds", effect="Table 4's gains on CIFAR-10, +0.7 to +1.8 points", now=2
    ),
)
def judge_gain(groups: Groups) -> tuple[Verdict, str]:
    """Accuracies of the eight StepNets of Table 4 minus that of the plain network, by Tukey and Kramer over seeds, all
    differences of the table together. Supported where every StepNet is above, contradicted where every one is below,
    true or false of some where only some are beyond 0."""
    names = stepnets(groups)
    verdict, words = against(PLAIN, groups, names)
    several = [groups[name] for name in names if groups[name]]
    p = chance_of_one_mean(several)
    if np.isfinite(p):
        order = "they differ beyond chance" if p < 1.0 - LEVEL else "their order may be that of other seeds"
        words += f" Among the {len(several)} StepNets an analysis of variance finds p {chance_text(p)}: {order}."
    return verdict, words


@rule(
    "x_t and x_{t+1} together are the better input.",
    "Table 4, Section 3.1",
    fewest=FEWEST_SEEDS,
    worlds=Worlds(
        worlds_of_table_4, n=9, units="seeds", effect="Table 4's differences on CIFAR-10, 0.5 to 0.8 points", now=2
    ),
)
def judge_inputs(groups: Groups) -> tuple[Verdict, str]:
    """Accuracies with the three other inputs minus that with both states, by Tukey and Kramer over seeds, all
    differences of Table 4 together. Supported where every other input is below, contradicted where every one is above,
    true or false of some where only some are beyond 0."""
    return against(OURS, groups, INPUT_ROWS, sign=-1)


@rule(
    "The chosen adaptor is the better one.",
    "Table 4, Figure 5",
    fewest=FEWEST_SEEDS,
    worlds=Worlds(
        worlds_of_table_4, n=5, units="seeds", effect="Table 4's differences on CIFAR-10, 0.2 to 1.1 points", now=2
    ),
)
def judge_adaptors(groups: Groups) -> tuple[Verdict, str]:
    """Accuracies with the adaptors a to d minus that with the chosen one, by Tukey and Kramer over seeds, all
    differences of Table 4 together. Supported where every other adaptor is below, contradicted where every one is
    above, true or false of some where only some are beyond 0."""
    verdict, words = against(OURS, groups, ADAPTOR_ROWS, sign=-1)
    return verdict, f"{words} {DRAWN}"


def judge_table_4(evidence: Evidence) -> list[Finding]:
    """The findings about the rows that were asked for."""
    cells, groups = evidence.cells, accuracies(evidence.cells)
    asked = (
        (judge_gain, asks(cells, PLAIN, stepnets(cells))),
        (judge_inputs, asks(cells, OURS, INPUT_ROWS)),
        (judge_adaptors, asks(cells, OURS, ADAPTOR_ROWS)),
    )
    return [judge(groups) for judge, wanted in asked if wanted]


def show_table_4(page: Page, evidence: Evidence):
    cells, dataset = evidence.cells, evidence.plan.scale.dataset
    if not any(row.results for row in cells.values()):
        return
    page.words(
        "StepNet stands where its parameter count in the paper has it: on every block but the first of each stage, "
        "which has no state of its own shape before it. SE stands on all blocks."
    )
    page.figure(
        draw_table_4(cells, dataset),
        "table4",
        "Test accuracy of every network by what decides the step size; dashed: the plain network. Right: the paper, "
        "whose networks are deeper and trained in full, so that the order may be compared and the heights may not.",
    )
    page.table("table4", rows_of_table_4(cells, dataset), "Table 4")


def draw_table_4(rows: dict[str, Row], dataset: str):
    """Every seed of every row of Table 4, and what the paper has."""
    shown = {name: row for name, row in rows.items() if row.results}
    with style.figure(1, 2, height=HEIGHT * len(shown) + 1.0, sharey=True) as (drawing, axes):
        ours, theirs = axes[0]
        dots(ours, shown)
        for index, name in enumerate(shown):
            mean, deviation = paper(name, dataset)
            theirs.errorbar(mean, index, xerr=deviation, fmt="o", color="black", markersize=4, capsize=2, linewidth=1)
        theirs.axvline(paper(PLAIN, dataset)[0], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1.5)
        plain = shown.get(PLAIN)
        if plain:
            ours.axvline(plain.mean, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1.5)
        ours.set_yticks(range(len(shown)), [mathematical(name) for name in shown])
        ours.invert_yaxis()
        ours.set_title("here: every network, and the mean", loc="left")
        theirs.set_title(f"the paper, {paper_dataset(dataset)}, 5 seeds: mean and std", loc="left")
        for axis in (ours, theirs):
            axis.set_xlabel("test accuracy (%)")
        theirs.grid(axis="y", visible=False)
        legend(ours, shown)
    return drawing


def mathematical(name: str) -> str:
    """F(x_{t+1}) in italics, Adaptor a as it is."""
    return f"${name}$" if name in PAPER and name.startswith("F(") else name


def rows_of_table_4(rows: dict[str, Row], dataset: str) -> list[dict]:
    """Table 4, with the gain over the plain network and over SE."""
    over_plain, over_se = (gains(accuracies(rows), name) for name in (PLAIN, SE))
    plain = paper(PLAIN, dataset)[0]
    table = []
    for name, row in rows.items():
        if not row.results:
            continue
        printed = paper(name, dataset)
        table.append(
            {
                "step size": name,
                "on blocks": places(row),
                "parameters": row.results[0][1].parameters,
                "seeds": len(row.accuracies),
                "accuracy (%)": f"{row.mean:.2f}",
                "standard deviation": deviation_cell(row.accuracies, "one network"),
                "gain over plain [95 %]": interval_cell(over_plain, name),
                "gain over SE [95 %]": interval_cell(over_se, name),
                f"paper, {paper_dataset(dataset)} (%)": f"{printed[0]:.2f} ± {printed[1]:.2f}",
                "paper's gain": "" if name == PLAIN else f"{printed[0] - plain:+.2f}",
            }
        )
    return table


# ---- Lottery tickets (Section 3.1): controllers on the stiffest blocks against others ----
PLACES = {EVERY: "among all blocks", COUNTED: "among the counted blocks"}
OF_TICKETS = "lottery tickets, Section 3.1"
TWICE = (
    "before the data, but that intervals hold together under both readings of which blocks may be chosen; the verdicts "
    "on either reading were undecided before, too"
)
MARGIN = (
    "after the data: with two seeds seen and undecided. By the rule before it all blocks had to be worse than the few, "
    "so that doing as well could not be shown; the margin is half of what StepNet gains in Table 4"
)


def by_reading(tickets: dict[str, Groups], judge: Callable) -> tuple[Verdict, str]:
    """One verdict from those under every reading of which blocks may be chosen; `judge` is told reading and groups."""
    said = {reading: judge(reading, groups) for reading, groups in tickets.items()}
    if all(verdict == NOT_RUN for verdict, _ in said.values()):
        return NOT_RUN, TRAIN
    words = " ".join(f"{PLACES[reading].capitalize()}: {verdict}. {text}" for reading, (verdict, text) in said.items())
    return joint([verdict for verdict, _ in said.values()]), words


def worlds_of_tickets(chance, effect, n, lost: float = 0.0) -> tuple[dict[str, Groups]]:
    """Tickets under both readings; on the stiffest blocks StepNet gains what it gains on all in Table 4, or nothing.

    `lost` is what is lost with the few where there is no effect.
    """
    gained = {STIFFEST: effect * GAIN, ALL: effect * GAIN + (1.0 - effect) * lost}
    means = dict.fromkeys(TICKETS, 80.0)
    means |= {name: 80.0 + gain for name, gain in gained.items()}
    return ({reading: draw_seeds(chance, means, DEVIATION, n) for reading in PLACES},)


@rule(
    "Controllers on a small number of blocks are a remarkable improvement.",
    OF_TICKETS,
    fixed=TWICE,
    fewest=FEWEST_SEEDS,
    worlds=Worlds(worlds_of_tickets, n=5, units="seeds", effect="+1.8 points, what StepNet gains in Table 4", now=2),
)
def judge_few(tickets: dict[str, Groups], counts: dict[str, int] | None = None) -> tuple[Verdict, str]:
    """Accuracy with controllers on the stiffest blocks minus that of the plain network, by Tukey and Kramer over seeds,
    once with all blocks to choose from and once with those that the paper counts. Supported where it lies above 0 under
    both, contradicted where below under both; the intervals hold together."""

    def judge(reading, groups):
        verdict, words = against(NONE, groups, [STIFFEST], asked=len(tickets))
        return verdict, words + (f" Blocks: {counts[reading]}." if counts else "")

    return by_reading(tickets, judge)


@rule(
    "The blocks that need a controller are the stiff ones.",
    OF_TICKETS,
    fixed=TWICE,
    fewest=FEWEST_SEEDS,
    worlds=Worlds(worlds_of_tickets, n=5, units="seeds", effect="+1.8 points, what StepNet gains in Table 4", now=2),
)
def judge_stiffest(tickets: dict[str, Groups], same: dict[str, str] | None = None) -> tuple[Verdict, str]:
    """Accuracies with controllers on random and on the least stiff blocks minus that with controllers on as many of the
    stiffest, by Tukey and Kramer over seeds, under both readings of which blocks may be chosen. Supported where both
    lie below 0, contradicted where both lie above, true or false of some where only one does; the intervals hold
    together."""

    def judge(reading, groups):
        verdict, words = against(STIFFEST, groups, OTHERS, sign=-1, asked=len(tickets))
        return verdict, words + (same[reading] if same else "")

    return by_reading(tickets, judge)


@rule(
    "The stiffest blocks alone do as well as all.",
    OF_TICKETS,
    fixed=MARGIN,
    fewest=FEWEST_SEEDS,
    negligible=AS_WELL,
    worlds=Worlds(
        functools.partial(worlds_of_tickets, lost=AS_WELL),
        n=9,
        units="seeds",
        effect="no loss at all, where without it the loss is just 0.9 points",
        now=2,
    ),
)
def judge_all(tickets: dict[str, Groups]) -> tuple[Verdict, str]:
    """Accuracy with controllers on all blocks minus that with controllers on the stiffest, by Tukey and Kramer over
    seeds, under both readings of which blocks may be chosen. Supported where the interval lies below 0.9 points,
    contradicted where it lies above; the intervals hold together. No visible difference is no proof of doing as well,
    which is why there is a margin."""
    return by_reading(
        tickets,
        lambda reading, groups: against(STIFFEST, groups, [ALL], sign=-1, asked=len(tickets), beyond=AS_WELL),
    )


def count_of(rows: dict[str, Row]) -> int:
    """How many blocks a ticket has."""
    networks = rows[STIFFEST].results
    return len(networks[0][0].acting) if networks else 0


def coinciding(rows: dict[str, Row]) -> str:
    """Names the seeds whose random choice is the stiffest blocks: one network then stands in two rows."""
    stiffest = {run.stem for run, _ in rows[STIFFEST].results}
    random = rows[RANDOM].results if RANDOM in rows else []
    seeds = [str(run.seed) for run, _ in random if run.stem in stiffest]
    return f" With seed {', '.join(seeds)} the random blocks are the stiffest ones." if seeds else ""


INDEX = (
    "NSI of a block is ||f(x)|| / ||x||, f its branch before the gate and x the state the step starts from, averaged "
    "over training images of the plain network of the same seed."
)
CHOICES = {EVERY: "all blocks", COUNTED: "the blocks the paper counts"}
WORDS = {
    EVERY: f"{INDEX} A block that changes the shape starts from its shortcut's output, so this index exists "
    "there too and a controller can stand there; but that output is small (where it pads with zeros, half its channels "
    "are nothing), which alone makes the index large, and the paper neither counts the first block of a stage nor "
    "gives it a StepNet.",
    COUNTED: f"{INDEX} The first block of every stage, which the paper does not count, keeps a step size of 1.",
}


def judge_tickets(evidence: Evidence) -> list[Finding]:
    """The findings about the rows that were asked for, under both readings of which blocks may be chosen."""
    tickets = evidence.tickets
    groups = {reading: accuracies(rows) for reading, rows in tickets.items()}
    rows, said = next(iter(tickets.values()), {}), []
    if asks(rows, STIFFEST, [NONE]):
        said.append(judge_few(groups, counts={reading: count_of(rows) for reading, rows in tickets.items()}))
    if asks(rows, STIFFEST, OTHERS):
        said.append(judge_stiffest(groups, same={reading: coinciding(rows) for reading, rows in tickets.items()}))
    if asks(rows, STIFFEST, [ALL]):
        said.append(judge_all(groups))
    return said


def show_tickets(reading: str, page: Page, evidence: Evidence):
    plan, stiffness, tickets = evidence.plan, evidence.stiffness, evidence.tickets.get(reading, {})
    if not any(row.results for row in tickets.values()):
        return
    among, few = CHOICES[reading], plan.few(reading)
    count = len(candidates(plan.scale, reading))
    page.words(
        f"Controller: `{plan.arguments.ticket_controller}`, on {few} of {count} blocks. {WORDS[reading]} The random "
        "blocks are drawn anew for every seed, whatever the others are: they may coincide."
    )
    if stiffness.results:
        rows = rows_of_nsi(stiffness, tickets, plan.scale.firsts)
        page.figure(
            draw_nsi(stiffness, tickets, plan.scale.firsts),
            f"nsi_{reading}",
            "Mean NSI of the plain network by block; below the axis, the blocks that hold a controller in each ticket.",
        )
        page.table(f"nsi_{reading}", rows, f"Stiffness by block, and tickets among {among}", printed=False)
    page.figure(
        draw_tickets(tickets),
        f"tickets_{reading}",
        "Test accuracy by where the controllers are; dashed: no controller.",
    )
    page.table(f"tickets_{reading}", rows_of_tickets(tickets), f"Lottery tickets among {among}")


LOOKS = {STIFFEST: style.COLOURS[1], LEAST: style.COLOURS[0], RANDOM: style.COLOURS[2]}


def draw_nsi(plain: Row, tickets: dict[str, Row], firsts: list[int]):
    """Stiffness of the plain network by block, one panel per seed, and which blocks the tickets hold."""
    plain_networks = sorted(plain.results, key=lambda pair: pair[0].seed)
    with style.figure(len(plain_networks), 1, height=1.75 * len(plain_networks) + 0.8, sharex=True, sharey=True) as (
        drawing,
        axes,
    ):
        for axis, (run, result) in zip(axes[:, 0], plain_networks, strict=True):
            nsi, numbers = np.array(result.nsi), np.arange(len(result.nsi))
            axis.plot(numbers, nsi, color=style.GREY, linewidth=0.8, zorder=1)
            opens = np.isin(numbers, firsts)
            size = 5 if len(nsi) < 20 else 3
            axis.plot(numbers[~opens], nsi[~opens], "o", color=style.GREY, markersize=size, zorder=2)
            axis.plot(numbers[opens], nsi[opens], "o", color=style.GREY, fillstyle="none", markersize=size, zorder=2)
            step = 0.1 * float(max(max(r.nsi) for _, r in plain_networks))
            for level, (name, colour) in enumerate(LOOKS.items()):
                for other in (
                    {other.stem: other for other, _ in tickets[name].results}.values() if name in tickets else ()
                ):
                    if other.seed == run.seed:
                        y = np.full(len(other.acting), -step * (level + 1))
                        axis.plot(other.acting, y, "s", color=colour, markersize=size)
            axis.axhline(0.0, color=style.GREY, linewidth=0.6)
            axis.set_ylabel("mean NSI")
            axis.set_yticks([tick for tick in axis.get_yticks() if 0.0 <= tick <= nsi.max() + step])
            axis.set_title(f"plain network, seed {run.seed}", loc="left")
            if len(nsi) < 20:
                axis.set_xticks(numbers)
        axes[-1, 0].set_xlabel("block")
        from matplotlib.lines import Line2D

        grey: dict[str, Any] = {"color": style.GREY, "linestyle": "", "marker": "o", "markersize": 5}
        handles = [Line2D([], [], **grey), Line2D([], [], fillstyle="none", **grey)]
        names = ["NSI", "opens a stage"]
        for name, colour in LOOKS.items():
            if name in tickets and tickets[name].results:
                handles.append(Line2D([], [], color=colour, linestyle="", marker="s", markersize=5))
                names.append(f"{name}: controller here")
        drawing.legend(handles, names, loc="outside lower center", ncols=3)
    return drawing


def draw_tickets(rows: dict[str, Row]):
    """Accuracy by where the controllers are, every network a mark."""
    shown = {name: row for name, row in rows.items() if row.results}
    with style.figure(1, 1, height=HEIGHT * len(shown) + 1.0) as (drawing, axes):
        axis = axes[0, 0]
        dots(axis, shown)
        if NONE in shown:
            axis.axvline(shown[NONE].mean, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1.5)
        axis.set_yticks(range(len(shown)), [label_with_count(name, row) for name, row in shown.items()])
        axis.invert_yaxis()
        axis.set_xlabel("test accuracy (%)")
        axis.set_title("controllers on these blocks: every network and the mean", loc="left")
        legend(axis, shown)
    return drawing


def label_with_count(name: str, row: Row) -> str:
    count = len(row.results[0][0].acting)
    return name if name in (NONE, ALL) else f"{count} {name}"


def rows_of_nsi(plain: Row, tickets: dict[str, Row], firsts: list[int]) -> list[dict]:
    """Per block the NSI of the plain network of every seed, and which placements hold it."""
    table = []
    for run, result in plain.results:
        held = {
            name: {number for other, _ in row.results if other.seed == run.seed for number in other.acting}
            for name, row in tickets.items()
            if name in (STIFFEST, RANDOM, LEAST)
        }
        for number, value in enumerate(result.nsi):
            opens = "yes" if number in firsts else ""
            held_by = ", ".join(name for name, numbers in held.items() if number in numbers)
            line = {"seed": run.seed, "block": number, "opens a stage": opens, "mean NSI": f"{value:.3f}"}
            table.append({**line, "in the tickets": held_by})
    return table


def rows_of_tickets(rows: dict[str, Row]) -> list[dict]:
    """By placement, with the gain over no controller and the distance to the stiffest blocks."""
    over_none, over_stiffest = (gains(accuracies(rows), name) for name in (NONE, STIFFEST))
    return [
        {
            "controllers on": name,
            "blocks, by seed": places(row),
            "parameters": row.results[0][1].parameters,
            "seeds": len(row.accuracies),
            "networks": len(row.results),
            "accuracy (%)": f"{row.mean:.2f}",
            "standard deviation": deviation_cell(row.accuracies, "one network"),
            "gain over none [95 %]": interval_cell(over_none, name),
            "beyond the stiffest [95 %]": interval_cell(over_stiffest, name),
        }
        for name, row in rows.items()
        if row.results
    ]


# ---- Every network ----


def show_networks(page: Page, evidence: Evidence):
    """Every network once, with all rows it serves."""
    networks: dict[str, dict] = {}
    for name, row in evidence.rows.items():
        for run, result in row.results:
            if run.stem in networks:
                networks[run.stem]["rows"] += f"; {name}"
                continue
            networks[run.stem] = {
                "rows": name,
                "seed": run.seed,
                "on blocks": list_numbers(run),
                "test errors": result.test_errors,
                "accuracy (%)": f"{result.accuracy:.2f}",
                "test loss": f"{result.test_loss:.4f}",
                "training (s)": result.made.get("seconds", ""),
                "file": run.stem,
            }
    page.table("networks", networks.values(), "Every network", printed=False)


EXHIBITS = (
    Exhibit("Inputs and adaptors (Table 4)", show_table_4, judge_table_4),
    *(
        Exhibit(
            f"Lottery tickets among {among} (Section 3.1)",
            functools.partial(show_tickets, reading),
            judge_tickets if reading == EVERY else None,  # once for both readings
        )
        for reading, among in CHOICES.items()
    ),
    Exhibit("", show_networks),
)

# ---- The study ----


def main(arguments: Arguments, shipped: Path = SHIPPED):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, **SMOKE, only=SMOKE_ROWS)
    arguments, data, notice = fill_in_options(arguments), None, ""
    if not (arguments.train or arguments.remeasure):  # results on made-up pictures have their name
        called: Any = name_of(arguments.dataset, arguments.data_root)
        arguments = dataclasses.replace(arguments, dataset=called)
    if arguments.train or arguments.remeasure:
        data, notice, arguments = images_or_fallback(STUDY, arguments, "trains on")
        check_images(arguments, len(data.train_images))
    with plain_errors(STUDY):  # an unknown depth, recipe or controller ends the study with one line
        plan = Plan(arguments, shipped)
    if arguments.train or arguments.remeasure:
        train(plan, data)

    # The results of the plan that exist, and those that are missing.
    evidence = Evidence.of(plan)
    rows = evidence.rows
    planned = {run.stem: run for row in rows.values() for _, run in row.planned if run is not None}
    diverged = {stem: message for stem, run in planned.items() if (message := plan.divergence(run))}
    absent = missing(rows, diverged)
    shown = {run.stem: result for row in rows.values() for run, result in row.results}
    count = len(shown)
    if not count:
        again = command(STUDY, dataclasses.replace(arguments, train=True))
        lines = [f"no result is there for {describe(plan)}. `--train` makes them, resumably: {again}"]
        lines += [f"{stem}: {message}" for stem, message in diverged.items()]
        raise SystemExit(f"studies.{STUDY}: " + "\n".join(lines))

    # The verdicts on the paper's claims come first, then the evidence.
    title = "Table 4 and lottery tickets: StepNet's inputs, adaptors and places"
    page = Page(STUDY, arguments, title, setting(plan, count), notice)
    if absent:
        page.warn(f"Not there yet: {'; '.join(absent)}. The same command with `--train` makes them.")
    for stem, message in diverged.items():
        again = f"It would again; without `{plan.own / stem}.diverged.txt` it is tried again."
        page.warn(f"{stem}: {message} {again}")
    page.heading("What these data say")
    page.words(scope(plan))
    older = page.name_older([result.made for result in shown.values()])
    write(page, EXHIBITS, evidence, older)
    page.numbers |= {"missing": absent, "diverged": diverged}
    page.numbers["specification"] = {"recipe": plan.scale.recipe.as_json(), "depth": plan.scale.depth}
    page.close()
    if diverged:
        raise SystemExit(1)


def describe(plan) -> str:
    recipe = plan.scale.recipe
    images = f", {plan.scale.images} training images" if plan.scale.images else ""
    return f"ResNet-{plan.scale.depth} on {plan.scale.dataset}, recipe {recipe.name}, {recipe.epochs} epochs{images}"


def setting(plan, count: int) -> str:
    seeds = ", ".join(map(str, plan.arguments.seeds))
    return (
        f"{describe(plan)}; {count} networks, seeds {seeds}. After {STEPNET_PAPER}, Section 3.1. "
        "Networks of one seed begin with the same "
        "weights and see the same batches."
    )


def scope(plan) -> str:
    """The limits of this run, which no number in its report can remove: scale, images, epochs and seeds."""
    epochs, seeds = plan.scale.recipe.epochs, len(plan.arguments.seeds)
    words = (
        "Intervals: 95 %, over seeds, for these test images, for all comparisons of a table together (Tukey and "
        "Kramer); in verdicts on tickets they hold for both readings of which blocks may be chosen, and are wider. "
        "Seeds count as draws independent of each other in every row, although networks of one seed share weights and "
        "batches, which makes the intervals wider rather than narrower."
    )
    if (plan.scale.depth, epochs) != (164, 164):
        words += (
            f" {epochs} epoch{'s' if epochs > 1 else ''}, {seeds} seed{'s' if seeds > 1 else ''} and "
            f"{plan.scale.depth} layers are little beside the paper's 164 epochs, 5 seeds and 164 layers (`--full`): a "
            "difference seen here need not last, and one not seen here may exist."
        )
    return words


def check_images(arguments: Arguments, available: int):
    if arguments.images is not None and arguments.images > available:
        raise SystemExit(f"`--images` must be at most {available}, got {arguments.images}.")


def fill_in_options(arguments: Arguments) -> Arguments:
    """The options with every number filled in and checked."""
    scale = FULL if arguments.full else SMALL
    if arguments.recipe not in (None, scale["recipe"]):
        scale = {**scale, "epochs": None}
    arguments = use_scale(arguments, scale)
    seeds = check_training(arguments)
    require_at_least(1, arguments, "few", "draws", "images")
    known = {"both": (*CELLS, *TICKETS), "ablation": CELLS, "ticket": TICKETS}[arguments.part]
    for name in arguments.only:
        if name not in known:
            raise SystemExit(f"`--only` with `--part {arguments.part}` knows {', '.join(known)}; got {name!r}.")
    return dataclasses.replace(arguments, seeds=seeds)


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
