"""The design of `step_control`: its networks, each known by all that determines what it scores, and their order."""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import re

import numpy as np

from netbridge.model import resnet
from netbridge.step_sizes import placement, spec
from netbridge.train.recipes import Recipe
from studies.lab import jobs
from studies.step_control import results

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


def run(scale: Scale, controller, seed: int, on=None) -> Run:
    """The network with a controller on the blocks `on`; None: on every block that the controller can serve."""
    chosen = placement.on_blocks(spec.spec_of(controller), scale.counts, on)
    return Run(scale, tuple(json.dumps(one.as_json(), sort_keys=True) for one in chosen), seed)


def candidates(scale: Scale, reading: str) -> list[int]:
    """The numbers of the blocks that may get a controller under a reading."""
    return [number for number in range(scale.blocks) if reading == EVERY or number not in scale.firsts]


def draw_blocks(among: list[int], few: int, seed: int, count: int) -> list[list[int]]:
    """`count` different random choices of `few` blocks; a larger `count` keeps the choices of a smaller one."""
    most = math.comb(len(among), few)
    if count > most:
        raise ValueError(f"{most} different tickets of {few} among {len(among)} blocks can be drawn, not {count}.")
    found: dict[tuple, None] = {}
    attempts = itertools.count()
    while len(found) < count:
        chosen = np.random.default_rng([seed, next(attempts)]).choice(among, few, replace=False)
        found.setdefault(tuple(sorted(int(k) for k in chosen)))
    return [list(blocks) for blocks in found]


def ticket(placed: str, nsi, among: list[int], few: int) -> list[int]:
    """The blocks of a placement, which `nsi` decides: one number per block, of the plain network of the same seed."""
    if placed == ALL:
        return list(among)
    if placed == NONE:
        return []
    falling = sorted(among, key=lambda number: (-nsi[number], number))
    return sorted(falling[:few] if placed == STIFFEST else falling[-few:])


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of a table: the networks planned for it, and the results that are there."""

    name: str
    planned: list[tuple[int, Run | None]]  # with the seed; None where its blocks cannot be known yet
    found: list[tuple[Run, results.Result]]

    @property
    def accuracies(self) -> list[float]:
        """One number per seed, the mean of its networks, because networks of one seed are not independent."""
        by_seed: dict[int, list[float]] = {}
        for run, result in self.found:
            by_seed.setdefault(run.seed, []).append(result.accuracy)
        return [float(np.mean(values)) for values in by_seed.values()]

    @property
    def mean(self) -> float:
        return float(np.mean(self.accuracies))


class Plan:
    """Which networks the options ask for, in the order of training, and which of their results exist."""

    def __init__(self, arguments):
        self.arguments = arguments
        recipe = jobs.recipe_of(arguments.recipe, arguments.dataset, epochs=arguments.epochs)
        self.scale = Scale(arguments.dataset, arguments.depth, recipe, arguments.images)
        self.own = arguments.out / "runs"
        self.folders = (self.own,) if arguments.own else (self.own, results.SHIPPED)
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

    def find(self, run: Run) -> results.Result | None:
        return results.find(run, self.folders)

    def divergence(self, run: Run) -> str | None:
        return jobs.divergence(run, self.own)

    def includes(self, row: str) -> bool:
        return not self.arguments.only or row in self.arguments.only

    def cell(self, row: str, seed: int) -> Run:
        return run(self.scale, CELLS[row], seed)

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
        return run(self.scale, jobs.spec_of_text(self.arguments.ticket_controller), seed, blocks)

    def tickets(self, reading: str, placed: str, seed: int) -> list[Run | None]:
        """The networks of a placement: as many as `--draws` says where the blocks are random, else one."""
        if placed != RANDOM:
            return [self.ticket(reading, placed, seed)]
        among = candidates(self.scale, reading)
        tickets = draw_blocks(among, self.few(reading), seed, self.arguments.draws)
        return [self.on(blocks, seed) for blocks in tickets]

    def queue(self) -> list[Run]:
        """All networks whose blocks are known by now, each once, in the order of training."""
        found: dict[str, Run] = {}
        for seed in self.arguments.seeds:
            planned: list[Run | None] = [self.cell(PLAIN, seed)]
            cells = [] if self.arguments.part == "ticket" else [row for row in CELLS if self.includes(row)]
            tickets = [(reading, row) for reading in self.readings for row in TICKETS if self.includes(row)]
            planned += [self.cell(row, seed) for row in cells if row in FIRST]
            planned += [one for place in tickets for one in self.tickets(*place, seed)]
            planned += [self.cell(row, seed) for row in cells if row not in FIRST]
            found |= {one.stem: one for one in planned if one is not None}
        return list(found.values())

    def row(self, name: str, planned: list[tuple[int, Run | None]]) -> Row:
        pairs = [(one, self.find(one)) for _, one in planned if one is not None]
        return Row(name, planned, [(one, result) for one, result in pairs if result is not None])

    def cells(self) -> dict[str, Row]:
        """The rows of Table 4, with the results that exist."""
        if self.arguments.part == "ticket":
            return {}
        seeds = self.arguments.seeds
        wanted = [name for name in CELLS if self.includes(name)]
        return {name: self.row(name, [(seed, self.cell(name, seed)) for seed in seeds]) for name in wanted}

    def placements(self, reading: str) -> dict[str, Row]:
        """The rows of the lottery tickets, with the results that exist."""
        found = {}
        for name in filter(self.includes, TICKETS):
            planned = [(seed, one) for seed in self.arguments.seeds for one in self.tickets(reading, name, seed)]
            found[name] = self.row(name, planned)
        return found

    def plain(self) -> Row:
        """The plain networks, whose stiffness decides which blocks are the stiffest."""
        return self.row(PLAIN, [(seed, self.cell(PLAIN, seed)) for seed in self.arguments.seeds])
