"""First paper, Tables 1, 2 and 7 from the networks that are there, what is missing and what makes it (about 5 s).

Networks are looked for among those that come with the repository and in `results/train`, their weights unread. For
every table the study shows the accuracies printed and found, what is missing and how many GPU-hours that will take, and
writes a file with one command for each missing network in order of worth, for one machine or many with a common folder:
`xargs -P 4 -I{} sh -c '{}' < missing_table1.sh`.
"""

import dataclasses
from pathlib import Path

from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.images import USUAL
from studies.lab.jobs import recipe_of
from studies.lab.networks import ZOO
from studies.lab.page import Page
from studies.table import cells as table_cells
from studies.table import figures
from studies.table.design import TABLES, Scale, Table
from studies.table.networks import read_all

STUDY = "table"


@dataclasses.dataclass
class Arguments:
    """The paper's tables over data sets, controllers and seeds, from the networks that are there."""

    table: tuple[int, ...] = tuple(TABLES)
    """Which of the paper's tables."""
    datasets: tuple[str, ...] = ()
    """Only these data sets; those of the table by default."""
    seeds: int = 5
    """How many seeds a cell shall have: 0, 1, ... The paper has five."""
    depth: int | None = None
    """Complete the tables with ResNets of so many layers instead of the paper's networks."""
    width: int = 16
    """With --depth: channels of the first stage."""
    recipe: str = "short"
    """With --depth: how to train them."""
    results: tuple[Path, ...] = (Path("results/train"),)
    """Folders to look for trained networks, beside those that come with the repository."""
    out: Path = Path("results/table")
    """Where tables, figures, the commands (missing_table1.sh), report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the networks of the digits that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "seeds", "depth", "width")
    if arguments.smoke:
        arguments = dataclasses.replace(
            arguments, table=(1,), datasets=("digits",), depth=32, width=4, recipe="digits", seeds=3
        )
    if unknown := [str(number) for number in arguments.table if number not in TABLES]:
        raise SystemExit(f"studies.{STUDY}: `--table` knows {', '.join(map(str, TABLES))}, got {', '.join(unknown)}.")
    found, left_out = read_all((ZOO, *(folder for folder in arguments.results if folder.is_dir())))
    with plain_errors(STUDY):
        tables = [choose_columns(TABLES[number], arguments, found) for number in arguments.table]
    tables = [table for table in tables if table.columns]
    if not tables:
        raise SystemExit(
            f"studies.{STUDY}: none of the tables has the data sets {', '.join(arguments.datasets)}; give `--depth` to "
            "complete one with data sets of your own."
        )

    *first, last = (str(table.number) for table in tables)
    page = Page(
        STUDY,
        arguments,
        f"Table{'s' * (len(tables) > 1)} {' and '.join(filter(None, (', '.join(first), last)))} over data sets, "
        "controllers and seeds",
        f"{len(found)} trained networks found. After Huang, Liang et al., Understanding Self-attention Mechanism via "
        "Dynamical System Perspective (2023).",
    )
    sentences = []
    for table in tables:
        sentences.append(show(page, table, found, arguments.seeds))
    page.heading("Networks at other scales")
    page.table(
        "elsewhere",
        table_cells.elsewhere_rows(tables, found),
        "Networks that belong to no cell above",
        "Means and standard deviations over seeds; gains over the plain networks of the same line of networks.",
    )
    page.words(f"Left out: {'; '.join(left_out)}." if left_out else "")
    page.conclusions(sentences)
    page.close()


def choose_columns(table: Table, arguments, found) -> Table:
    """A table with the columns asked for: the paper's, or networks of one's own in their place."""
    if arguments.depth is None:
        kept = [number for number, (dataset, _) in enumerate(table.columns) if dataset in (arguments.datasets or USUAL)]
        paper = {row: tuple(printed[number] for number in kept) for row, printed in table.paper.items()}
        return dataclasses.replace(table, columns=tuple(table.columns[number] for number in kept), paper=paper)
    datasets = arguments.datasets or tuple(dict.fromkeys(dataset for dataset, _ in table.columns))
    columns = []
    for dataset in datasets:
        scale = Scale("resnet", arguments.depth, arguments.width, recipe_of(arguments.recipe, dataset))
        columns.append((dataset, table_cells.measured_hours(scale, found)))
    known = [dataset for dataset, _ in table.columns]
    same = known == list(dict.fromkeys(known)) and set(datasets) <= set(known)
    paper = {row: tuple(p[known.index(dataset)] for dataset in datasets) for row, p in table.paper.items() if same}
    machine = "the machine that trained what is there"
    return dataclasses.replace(table, columns=tuple(columns), paper=paper, card=machine, extra=1.0)


def show(page: Page, table: Table, found, seeds: int) -> str:
    """One table with what is missing; the sentence that sums it up."""
    name = f"table{table.number}"
    page.heading(f"Table {table.number}: {table.title}")
    cells = table_cells.cells(table, found, seeds)
    page.words(table.remark)
    page.table(
        name,
        table_cells.rows_of(table, cells),
        f"Table {table.number}, as printed and as found",
        "Per cent of the test images after the last epoch: mean and standard deviation over n seeds, and the gain over "
        f"the plain network in points. Networks: {'; '.join(dict.fromkeys(scale.label for _, scale in table.columns))}."
        " The printed numbers are of the paper's networks, whatever is found.",
    )
    rows = page.table(
        f"{name}_missing",
        table_cells.missing_rows(cells),
        f"What is missing of Table {table.number}",
        f"Hours on {table.card}: estimates for the paper's networks, means of what was measured for others.",
    )
    lacking = table_cells.in_order(cells)
    if lacking:
        path = page.out / f"missing_{name}.sh"
        path.write_text("".join(f"{table_cells.command(*one)}\n" for one in lacking))
        page.files.append(path)
        page.words(
            f"{path.name} has the {len(lacking)} commands in order of worth; any number of machines with a common "
            f"folder work it off. The first is: {table_cells.command(*lacking[0])}"
        )
    page.figure(
        figures.gain_figure(table, found),
        f"{name}_gains",
        "Points above the plain network. Open marks are the paper's, full ones the networks found here at any scale, "
        "with the standard deviation over their seeds; found on smaller networks, they repeat no cell of the paper.",
    )
    wanted, there = (sum(row[key] for row in rows) for key in ("wanted", "found"))
    hours = [row["hours left"] for row in rows]
    left = "an unknown number of" if "unknown" in hours else f"about {sum(map(float, hours)):.0f}"
    return f"Table {table.number}: {there} of {wanted} networks are there; {left} hours are left on {table.card}."


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
