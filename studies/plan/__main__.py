"""Every printed cell of the papers' tables: the network that fills it, its recipe, what differs, hours (about 3 s).

A tool: it lists and trains nothing. For each cell of Tables 1 to 4, 7 and Figure 8 of the StepNet paper, 1 to 11 of the
block-level paper and 1 to 9, 13, 14 of the ASR paper it names the job, as the studies plan it at the paper's scale, in
which fields the job's recipe differs from the paper's (nothing where it does not), precision, batch and what trains it;
or the reason why the cell is not planned. `--time` times twenty steps of every listed network on this machine.
"""

import dataclasses
import textwrap
from pathlib import Path
from typing import Literal

import torch

from studies.lab.command import require_at_least, start
from studies.lab.results import Results
from studies.plan import asr_cells, blocks, step_net, timing
from studies.plan.cells import ASR, BLOCK, PAPERS, STEP_NET, Cell, Look

STUDY = "plan"
SOURCES = {STEP_NET: step_net.every_cell, BLOCK: blocks.every_cell, ASR: asr_cells.every_cell}
WIDTH = 100  # of a terminal


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


def main(arguments: Arguments):
    require_at_least(1, arguments, "steps", "threads")
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, paper=("StepNet",), table=("7",), row=("plain",), time=False)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    cells = [cell for paper in arguments.paper for cell in SOURCES[paper]()]
    known = {(cell.paper, cell.table) for cell in cells}
    if unknown := [table for table in arguments.table if table not in {number for _, number in known}]:
        tables = ", ".join(dict.fromkeys(number for _, number in sorted(known, key=order)))
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
        if timing.can_be_timed(cell) and key_of(cell) not in hours:
            hours[key_of(cell)] = timing.hours_of(cell, arguments.steps, arguments.device)
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
        "pixels": cell.size if timing.can_be_timed(cell) else "",
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
