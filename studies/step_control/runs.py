"""The networks of `step_control`, each known by all that determines what it scores."""

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
COUNTED, EVERY = "counted", "every"  # a ticket's blocks: those the paper's index counts (no first of a stage), or any
ASIDE = ("architectures", "evaluate_every")  # fields of a recipe that change nothing about the network


@dataclasses.dataclass(frozen=True)
class Scale:
    """What all networks of one experiment have in common; `images` of the training set, None for all of them."""

    dataset: str
    depth: int
    recipe: Recipe
    images: int | None = None

    @functools.cached_property
    def counts(self) -> list[int]:
        """Blocks per stage."""
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

        So a field that some day joins the recipes leaves what was trained without it what it was.
        """
        scale, recipe = self.scale, {}
        for field in dataclasses.fields(Recipe):
            value = getattr(scale.recipe, field.name)
            if field.name not in ASIDE and value != field.default:
                recipe[field.name] = value
        return json.loads(
            json.dumps(
                {
                    "dataset": scale.dataset,
                    "images": scale.images,
                    "depth": scale.depth,
                    "controllers": [json.loads(text) for text in self.controllers],
                    "recipe": recipe,
                    "seed": self.seed,
                }
            )
        )

    @property
    def acting(self) -> list[int]:
        """The blocks whose step size is not constant."""
        return [number for number, text in enumerate(self.controllers) if text != '"constant"']

    @property
    def controller(self) -> str | dict:
        """What acts there."""
        return json.loads(self.controllers[self.acting[0]]) if self.acting else "constant"

    @property
    def label(self) -> str:
        """stepnet-now-on-1-3-5: what acts, and where."""
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
    """The controller on the blocks `on`; without them where it stands by itself, which may leave out first blocks."""
    chosen = placement.on_blocks(spec.spec_of(controller), scale.counts, on)
    return Run(scale, tuple(json.dumps(one.as_json(), sort_keys=True) for one in chosen), seed)


def candidates(scale: Scale, reading: str) -> list[int]:
    """The blocks a ticket may hold."""
    return [number for number in range(scale.blocks) if reading == EVERY or number not in scale.firsts]


def drawn(among: list[int], few: int, seed: int, count: int) -> list[list[int]]:
    """`count` different tickets, whatever the stiffness; the first ones stay what they are when more are asked for."""
    most = math.comb(len(among), few)
    if count > most:
        raise ValueError(f"{most} different tickets of {few} among {len(among)} blocks can be drawn, not {count}.")
    found: dict[tuple, None] = {}
    attempts = itertools.count()
    while len(found) < count:
        chosen = np.random.default_rng([seed, next(attempts)]).choice(among, few, replace=False)
        found.setdefault(tuple(sorted(int(k) for k in chosen)))
    return [list(blocks) for blocks in found]


def ticket(placed: str, nsi, among: list[int], few: int, seed: int) -> list[int]:
    """The blocks of a placement; `nsi` of the plain network of the same seed, one number per block."""
    if placed == ALL:
        return list(among)
    if placed == NONE:
        return []
    falling = sorted(among, key=lambda number: (-nsi[number], number))
    return sorted(falling[:few] if placed == STIFFEST else falling[-few:])
