"""First paper, Table 4 and lottery tickets: StepNet's inputs, adaptors and places (about 8 s; 1 h with --train).

Claims examined: both states are the better input, the chosen adaptor the better one, and controllers on the few
stiffest blocks do as well as on all (Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System
Perspective, 2023, Section 3.1). Default: the results that come with the repository; `--train` makes what is missing.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import torch
import tyro

import netbridge as nb
from studies.lab.images import images_or_fallback
from studies.step_control import results as results
from studies.step_control import runs as runs
from studies.step_control.plan import Plan
from studies.step_control.report import show
from studies.step_control.training import work_off

SMALL = {"depth": 14, "recipe": "short", "epochs": 5, "seeds": (2,), "few": 2}
# One block in ten is few: at most so many are stiff for most degrees, Figure 6. The rest is Section 3 and Table 6.
FULL = {"depth": 164, "recipe": "paper", "epochs": None, "seeds": (5,), "few": 5}
SMOKE = {
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
SMOKE_ROWS = (runs.PLAIN, runs.OURS, runs.STIFFEST)


@dataclasses.dataclass
class Arguments:
    """Which inputs and which adaptor StepNet should have, and on which blocks a controller is worth its place."""

    part: Literal["both", "ablation", "ticket"] = "both"
    """ablation: Table 4; ticket: controllers on the stiffest blocks against others."""
    train: bool = False
    """Train what is missing; killed and started again, it goes on. Processes with one --out share the work."""
    full: bool = False
    """The paper's depth, recipe and number of seeds; give it a GPU."""
    dataset: Literal["cifar10", "cifar100", "stl10", "digits"] = "cifar10"
    """What to train on."""
    fallback: Literal["digits"] | None = None
    """Train on this instead where the data set cannot be had; without it, that is an error."""
    depth: int | None = None
    """Layers of the networks: 14, with --full 164."""
    recipe: str | None = None
    """short, with --full paper; see netbridge.recipes.RECIPES."""
    epochs: int | None = None
    """5; with --full or another recipe what that says."""
    seeds: tuple[int, ...] = ()
    """One number: so many, from 0 on; several: these. 2, with --full 5."""
    images: int | None = None
    """Only the first so many training images."""
    few: int | None = None
    """How many of all blocks a ticket has: 2, with --full 5; of fewer blocks the same share."""
    blocks: Literal["both", "every", "counted"] = "both"
    """Which blocks may hold a ticket: every one, or those the paper's index counts, not the first of a stage."""
    draws: int = 1
    """How many different tickets are drawn at random per seed; their mean is what the seed says."""
    ticket_controller: str = "stepnet"
    """Whose tickets: a controller's name, asr(se), or JSON."""
    only: tuple[str, ...] = ()
    """Only these rows, by their names in the tables."""
    own: bool = False
    """Leave the results that come with the repository aside."""
    ship: bool = False
    """Put new results where those of the repository are."""
    keep: bool = False
    """Keep the trained networks, not only what they scored."""
    device: str | None = None
    threads: int | None = None
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results/step_control")
    """Where results, figures, tables, report.md and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, **SMOKE, only=SMOKE_ROWS)
    arguments, data, notice = settled(arguments), None, ""
    if arguments.train:
        data, notice, arguments = images_or_fallback("studies.step_control", arguments, "trains on")
        check_images(arguments, len(data.train_images))
    if notice:
        print(f"{notice}\n", flush=True)
    try:
        plan = Plan(arguments)
    except ValueError as error:  # a depth, a recipe, a controller there is none of
        raise SystemExit(f"studies.step_control: {error}") from None
    if arguments.train:
        if arguments.threads:
            torch.set_num_threads(arguments.threads)
        nb.tune_allocator()
        place = results.SHIPPED if arguments.ship else plan.own
        work_off(plan.queue, plan.find, data, plan.own, place, arguments.device, arguments.keep, say)
    if show(plan, notice):
        raise SystemExit(1)


def check_images(arguments: Arguments, available: int):
    if arguments.images is not None and arguments.images > available:
        raise SystemExit(f"`--images` must be at most {available}, got {arguments.images}.")


def say(line: str):
    print(line, flush=True)


def settled(arguments: Arguments) -> Arguments:
    """Every number given, and sensible."""
    scale = FULL if arguments.full else SMALL
    if arguments.full and arguments.dataset == "stl10":
        scale = {**scale, "recipe": "paper-stl10"}
    if arguments.recipe not in (None, scale["recipe"]):
        scale = {**scale, "epochs": None}
    given = {key: getattr(arguments, key) for key in scale}
    arguments = dataclasses.replace(
        arguments, **{key: scale[key] if value in (None, ()) else value for key, value in given.items()}
    )
    seeds = arguments.seeds
    seeds = tuple(range(seeds[0])) if len(seeds) == 1 else tuple(dict.fromkeys(seeds))
    if not seeds or min(seeds) < 0:
        raise SystemExit(f"`--seeds` is a number of seeds, or several of them from 0 on; got {arguments.seeds}.")
    for name in ("few", "draws", "images"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise SystemExit(f"`--{name}` must be at least 1, got {getattr(arguments, name)}.")
    known = {"both": (*runs.CELLS, *runs.TICKETS), "ablation": runs.CELLS, "ticket": runs.TICKETS}[arguments.part]
    for name in arguments.only:
        if name not in known:
            raise SystemExit(f"`--only` with `--part {arguments.part}` knows {', '.join(known)}; got {name!r}.")
    if arguments.own and arguments.ship:
        raise SystemExit("`--own` leaves the results of the repository aside and `--ship` adds to them: choose one.")
    return dataclasses.replace(arguments, seeds=seeds)


if __name__ == "__main__":
    main(tyro.cli(Arguments, prog="python -m studies.step_control", description=__doc__))
