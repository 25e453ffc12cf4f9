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
from pathlib import Path
from typing import Any, Literal

import torch

import netbridge as nb
from netbridge.data import name_of
from studies.lab import jobs
from studies.lab.command import command, plain_errors, require_at_least, start
from studies.lab.images import images_or_fallback
from studies.lab.options import TrainingOptions, check_training, use_scale, which_jobs
from studies.lab.page import Page
from studies.step_control import design, figures, results, tables
from studies.step_control.design import Plan
from studies.step_control.findings import findings

STUDY = "step_control"
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
SMOKE_ROWS = (design.PLAIN, design.OURS, design.STIFFEST)


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


INDEX = (
    "NSI of a block is ||f(x)|| / ||x||, f its branch before the gate and x the state the step starts from, averaged "
    "over training images of the plain network of the same seed."
)
CHOICES = {design.EVERY: "all blocks", design.COUNTED: "the blocks the paper counts"}
WORDS = {
    design.EVERY: f"{INDEX} A block that changes the shape starts from its shortcut's output, so this index exists "
    "there too and a controller can stand there; but that output is small (where it pads with zeros, half its channels "
    "are nothing), which alone makes the index large, and the paper neither counts the first block of a stage nor "
    "gives it a StepNet.",
    design.COUNTED: f"{INDEX} The first block of every stage, which the paper does not count, keeps a step size of 1.",
}


def main(arguments: Arguments):
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
        plan = Plan(arguments)
    if arguments.train or arguments.remeasure:
        train(plan, data)

    # The results of the plan that exist, and those that are missing.
    cells, stiffness = plan.cells(), plan.plain()
    tickets = {reading: plan.placements(reading) for reading in plan.readings}
    placed = {f"{reading} block, {name}": row for reading, rows in tickets.items() for name, row in rows.items()}
    everything = {**cells, **placed}
    planned = {run.stem: run for row in everything.values() for _, run in row.planned if run is not None}
    diverged = {stem: message for stem, run in planned.items() if (message := plan.divergence(run))}
    absent = tables.missing(everything, diverged)
    shown = {run.stem: result for row in everything.values() for run, result in row.found}
    count = len(shown)
    if not count:
        again = command(STUDY, dataclasses.replace(arguments, train=True))
        told = [f"no result is there for {describe(plan)}. `--train` makes them, resumably: {again}"]
        told += [f"{stem}: {message}" for stem, message in diverged.items()]
        raise SystemExit(f"studies.{STUDY}: " + "\n".join(told))

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
    page.findings(findings(cells, tickets))
    page.words(page.name_older([result.made for result in shown.values()]))
    if any(row.found for row in cells.values()):
        tell_ablation(page, cells, plan.scale.dataset)
    for reading, rows in tickets.items():
        if any(row.found for row in rows.values()):
            tell_tickets(page, plan, reading, rows, stiffness)
    page.table("networks", tables.network_rows(everything), "Every network", printed=False)
    page.numbers |= {"missing": absent, "diverged": diverged}
    page.numbers["specification"] = {"recipe": plan.scale.recipe.as_json(), "depth": plan.scale.depth}
    page.close()
    if diverged:
        raise SystemExit(1)


def train(plan: Plan, data):
    """Train what is missing of the plan; processes with the same `--out` share the work."""
    arguments = plan.arguments
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    place = results.SHIPPED if arguments.ship else plan.own
    more = (data, plan.own, place, arguments.device, arguments.keep)
    find = jobs.finder(plan.find, **which_jobs(arguments))
    jobs.work_off(plan.queue, find, lambda run: results.carry_out(run, *more), plan.own)


def tell_ablation(page, cells, dataset):
    page.heading("Inputs and adaptors (Table 4)")
    page.words(
        "StepNet stands where its parameter count in the paper has it: on every block but the first of each stage, "
        "which has no state of its own shape before it. SE stands on all blocks."
    )
    page.figure(
        figures.ablation_figure(cells, dataset),
        "table4",
        "Test accuracy of every network by what decides the step size; dashed: the plain network. Right: the paper, "
        "whose networks are deeper and trained in full, so that the order may be compared and the heights may not.",
    )
    page.table("table4", tables.ablation_rows(cells, dataset), "Table 4")


def tell_tickets(page, plan, reading, tickets, stiffness):
    among, few = CHOICES[reading], plan.few(reading)
    page.heading(f"Lottery tickets among {among} (Section 3.1)")
    count = len(design.candidates(plan.scale, reading))
    page.words(
        f"Controller: `{plan.arguments.ticket_controller}`, on {few} of {count} blocks. {WORDS[reading]} The random "
        "blocks are drawn anew for every seed, whatever the others are: they may coincide."
    )
    if stiffness.found:
        rows = tables.stiffness_rows(stiffness, tickets, plan.scale.firsts)
        page.figure(
            figures.nsi_figure(stiffness, tickets, plan.scale.firsts),
            f"nsi_{reading}",
            "Mean NSI of the plain network by block; below the axis, the blocks that hold a controller in each ticket.",
        )
        page.table(f"nsi_{reading}", rows, f"Stiffness by block, and tickets among {among}", printed=False)
    page.figure(
        figures.placement_figure(tickets),
        f"tickets_{reading}",
        "Test accuracy by where the controllers are; dashed: no controller.",
    )
    page.table(f"tickets_{reading}", tables.ticket_rows(tickets), f"Lottery tickets among {among}")


def describe(plan) -> str:
    recipe = plan.scale.recipe
    images = f", {plan.scale.images} training images" if plan.scale.images else ""
    return f"ResNet-{plan.scale.depth} on {plan.scale.dataset}, recipe {recipe.name}, {recipe.epochs} epochs{images}"


def setting(plan, count: int) -> str:
    seeds = ", ".join(map(str, plan.arguments.seeds))
    return (
        f"{describe(plan)}; {count} networks, seeds {seeds}. After Huang, Liang et al., Understanding Self-attention "
        "Mechanism via Dynamical System Perspective (2023), Section 3.1. Networks of one seed begin with the same "
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
    known = {"both": (*design.CELLS, *design.TICKETS), "ablation": design.CELLS, "ticket": design.TICKETS}[
        arguments.part
    ]
    for name in arguments.only:
        if name not in known:
            raise SystemExit(f"`--only` with `--part {arguments.part}` knows {', '.join(known)}; got {name!r}.")
    return dataclasses.replace(arguments, seeds=seeds)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
