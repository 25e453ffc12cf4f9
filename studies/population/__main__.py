"""First paper, Figures 2 and 7 and Table 1 decided by a population of small networks (about 1 min; hours to train).

Claims examined: the better the network, the larger its TNS; attention raises TNS and accuracy; NSI says more about
accuracy than simple rivals do (Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System
Perspective, 2023). 240 networks on CIFAR-10 at 16 pixels, their design and the rules of their analysis fixed in
`design.py` before any was trained. Default: the measurements that are there; `--train` works on those that are not.
"""

import dataclasses
from pathlib import Path

import torch

from studies.lab import measurements
from studies.lab.command import require_at_least, start
from studies.lab.page import Page
from studies.population import design

STUDY = "population"
SHIPPED = Path(__file__).parent / "shipped"


@dataclasses.dataclass
class Arguments:
    """Decide claims about stiffness and accuracy on many small networks."""

    train: bool = False
    """Train and measure what is missing; killed and started again, it goes on. Processes with one --out share it."""
    scheduler: str | None = None
    """With --train: the address of a Dask scheduler whose workers do it, such as tcp://host:8786."""
    rounds: int = design.ROUNDS
    """How many rounds of 24 networks."""
    device: str | None = None
    """cpu, cuda, mps; the fastest there is by default."""
    threads: int | None = None
    """Threads of the processor to use; all by default. Several processes of one thread each are the fastest."""
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results/population")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "rounds", "threads")
    wanted, folders = design.queue(arguments.rounds), (SHIPPED,)
    if arguments.smoke:
        arguments, wanted, folders = dataclasses.replace(arguments, train=True, threads=1), design.smoke(), ()
    work = arguments.out / "runs"
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.scheduler:
        from distributed import Client

        with Client(arguments.scheduler) as client:
            measurements.work_off_on(client.get_executor(), wanted, work, folders, arguments.data_root)
    elif arguments.train:
        measurements.work_off(wanted, work, folders, arguments.data_root, arguments.device)
    found = [one for job in wanted if (one := measurements.find(job, (work, *folders))) is not None]
    if not found:
        raise SystemExit(f"studies.{STUDY}: no measurement is there; `--train` makes them, resumably.")
    page = Page(STUDY, arguments, "A population of small networks", f"{len(found)} of {len(wanted)} networks.")
    page.table("networks", [row(one) for one in found], "Every network")
    page.close()


def row(one) -> dict:
    numbers = one.numbers
    return {name: numbers[name] for name in ("controller", "depth", "width", "seed", "test_accuracy", "train_loss")}


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
