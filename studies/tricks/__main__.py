"""First paper, Figure 8 and Appendix A: training tricks, accuracy and stiffness (about 10 s; an hour or two to train).

Claims examined: networks that better training has made better have a larger TNS; stiffness makes training hard (Huang,
Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The paper names no trick:
eight usual ones are taken, one at a time, by the rules of `design.py`, which were fixed before any network was trained.
Default: the measurements that come with the repository; `--train` makes what is missing.
"""

import dataclasses
from pathlib import Path

import torch

from studies.lab import measurements
from studies.lab.command import require_at_least, start
from studies.lab.page import Page
from studies.tricks import design

STUDY = "tricks"
SHIPPED = Path(__file__).parent / "shipped"


@dataclasses.dataclass
class Arguments:
    """Compare training tricks by what they do to accuracy and to stiffness."""

    train: bool = False
    """Train and measure what is missing; killed and started again, it goes on. Processes with one --out share it."""
    full: bool = False
    """The paper's depth, images, epochs and number of seeds; give it a GPU."""
    seeds: int | None = None
    """How many seeds of every recipe: 3, with --full 5."""
    device: str | None = None
    """cpu, cuda, mps; the fastest there is by default."""
    threads: int | None = None
    """Threads of the processor to use; all by default. Several processes of one thread each are the fastest."""
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results/tricks")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "seeds", "threads")
    wanted, folders = design.queue(arguments.full, seeds=arguments.seeds), (SHIPPED,)
    if arguments.smoke:
        arguments, wanted, folders = dataclasses.replace(arguments, train=True, threads=1), design.smoke(), ()
    work = arguments.out / "runs"
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.train:
        follow = design.SMOKE_TRACED if arguments.smoke else design.TRACED
        measurements.work_off(wanted, work, folders, arguments.data_root, arguments.device, follow)
    found = [one for job in wanted if (one := measurements.find(job, (work, *folders))) is not None]
    if not found:
        raise SystemExit(f"studies.{STUDY}: no measurement is there; `--train` makes them, resumably.")
    page = Page(STUDY, arguments, "Training tricks and stiffness", f"{len(found)} of {len(wanted)} networks.")
    page.table("networks", [row(one) for one in found], "Every network")
    page.close()


def row(one) -> dict:
    numbers = one.numbers
    scores = {name: numbers[name] for name in ("seed", "test_accuracy", "train_loss")}
    return {"recipe": one.specification["recipe"]["name"]} | scores


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
