"""From networks that were found to the cells of a table: means, gains, what is missing, and what makes it."""

import dataclasses
import shlex
from collections.abc import Iterator

import numpy as np

from studies.lab.comparisons import seed_deviation
from studies.lab.jobs import Job
from studies.lab.networks import USUAL
from studies.table.design import FIRST, WIDTHS, Scale, Table
from studies.table.networks import Trained


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


def cells(table: Table, found: list[Trained], seeds: int) -> list[Cell]:
    """Every cell of a table, column by column."""
    cells = []
    for dataset, scale in table.columns:
        for row, text in table.rows.items():
            here = [one for one in found if (one.dataset, one.controller, one.scale) == (dataset, row, scale)]
            missing = sorted(set(range(seeds)) - {one.seed for one in here})
            cells.append(Cell(row, text, dataset, scale, here, missing, table.hours(row, scale)))
    return cells


def measured_hours(scale: Scale, found: list[Trained]) -> Scale:
    """A scale of one's own with the hours that networks of it took where they were trained, if any are there."""
    seconds = [one.seconds for one in found if one.scale == scale and np.isfinite(one.seconds)]
    return dataclasses.replace(scale, hours=float(np.mean(seconds)) / 3600) if seconds else scale


def rows_of(table: Table, found: list[Cell]) -> Iterator[dict]:
    """The table as it is printed and as it is found; a gain is that over the plain network of the column."""
    for row in table.rows:
        line = {"network": "plain" if row == "constant" else f"+{row}"}
        for number, (dataset, scale) in enumerate(table.columns):
            head = USUAL.get(dataset, dataset) + (f", {scale.name}" if several_depths(table) else "")
            printed = table.paper.get(row, ())
            line[f"{head}: paper"] = f"{printed[number][0]:.2f} ± {printed[number][1]:.2f}" if printed else "not there"
            column = [cell for cell in found if (cell.dataset, cell.scale) == (dataset, scale)]
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
    (plain,) = (one for one in column if one.row == "constant")
    if cell is plain or not cell.found or not plain.found:
        return ""
    return f"{np.mean(cell.accuracies) - np.mean(plain.accuracies):+.2f}"


def in_order(found: list[Cell]) -> list[tuple[Cell, int]]:
    """What is missing in order of worth: seed by seed, and of a seed the plain networks, SE and StepNet first."""
    lacking = [(cell, seed) for cell in found for seed in cell.missing]
    return sorted(lacking, key=lambda pair: (pair[1], FIRST.index(pair[0].row) if pair[0].row in FIRST else len(FIRST)))


def missing_rows(found: list[Cell]) -> Iterator[dict]:
    """By column: how much is missing, and what it will cost."""
    for dataset, scale in dict.fromkeys((cell.dataset, cell.scale) for cell in found):
        column = [cell for cell in found if (cell.dataset, cell.scale) == (dataset, scale)]
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


def elsewhere_rows(tables: list[Table], found: list[Trained]) -> Iterator[dict]:
    """Networks at scales that no chosen table has: means over seeds, and the gain over plain ones."""
    taken = {column for table in tables for column in table.columns}
    others = sorted({(one.dataset, one.scale) for one in found} - taken, key=lambda pair: (pair[0], pair[1].label))
    for dataset, scale in others:
        here = [one for one in found if (one.dataset, one.scale) == (dataset, scale)]
        plain = [one.accuracy for one in here if one.controller == "constant"]
        for row in sorted({one.controller for one in here}, key=lambda name: (name != "constant", name)):
            accuracies = [one.accuracy for one in here if one.controller == row]
            above = "" if row == "constant" or not plain else f"{np.mean(accuracies) - np.mean(plain):+.2f}"
            yield {
                "data set": USUAL.get(dataset, dataset),
                "networks": scale.label,
                "controller": row,
                "accuracy (%)": accuracy_cell(accuracies),
                "gain": above,
            }
