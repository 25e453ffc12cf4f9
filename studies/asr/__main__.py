"""ASR, whole: attention as a learned constant, against the controls it never met."""

import dataclasses
from pathlib import Path
from typing import Literal

import torch

import netbridge as nb
from studies.asr import results
from studies.asr.design import TIERS, Plan
from studies.lab import jobs
from studies.lab.command import plain_errors, start
from studies.lab.images import images_or_fallback

STUDY = "asr"


@dataclasses.dataclass
class Arguments:
    """Is attention a constant, and what does a constant do?"""

    train: bool = False
    """Train what is missing; killed and started again, it goes on. Processes with one --out share the work."""
    tier: tuple[Literal[1, 2, 4, 5], ...] = tuple(TIERS)
    """Which networks: 1 the controls, 2 noise and dynamics, 4 ASR beside a live module, 5 the ablations."""
    dataset: Literal["cifar10", "cifar100", "stl10", "digits"] = "cifar10"
    """What to train on."""
    fallback: Literal["digits"] | None = None
    """Train on this instead where the data set cannot be had; without it, that is an error."""
    depth: int = 20
    """Layers of the networks."""
    recipe: str = "short"
    """See netbridge.recipes.RECIPES."""
    epochs: int | None = None
    """Other epochs than the recipe's."""
    seeds: tuple[int, ...] = (8,)
    """One number: so many, from 0 on; several: these."""
    images: int | None = None
    """Only the first so many training images."""
    own: bool = False
    """Leave the results that come with the repository aside."""
    ship: bool = False
    """Put new results where those of the repository are."""
    keep: bool = False
    """Keep the trained networks, not only what they scored."""
    device: str | None = None
    """cpu, cuda, mps; the fastest there is by default."""
    threads: int | None = None
    """Threads of the processor to use; all by default."""
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results/asr")
    """Where results, figures, tables, report.md and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""


def main(arguments: Arguments):
    if len(arguments.seeds) == 1:
        arguments = dataclasses.replace(arguments, seeds=tuple(range(arguments.seeds[0])))
    data, notice, arguments = images_or_fallback(STUDY, arguments, "trains on")
    if notice:
        print(f"{notice}\n", flush=True)
    with plain_errors(STUDY):
        plan = Plan(arguments)
    if arguments.train:
        train(plan, data)


def train(plan: Plan, data):
    """Train what is missing of the plan; processes with the same `--out` share the work."""
    arguments = plan.arguments
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    own = arguments.out / "runs"
    place = results.SHIPPED if arguments.ship else own
    folders = (own,) if arguments.own else (own, results.SHIPPED)

    def carry_out(run):
        return results.carry_out(run, data, own, place, arguments.device, arguments.keep)

    jobs.work_off(plan.queue, lambda run: results.find(run, folders), carry_out, own)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
