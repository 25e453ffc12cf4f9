"""The plan of the papers' cells: none is left out, none is there twice, and what is not planned says why."""

import csv
import dataclasses

import pytest

from studies import plan as study
from studies import table as tables
from studies.asr import design
from studies.block_stiffness import printed as blocks_paper
from studies.lab.jobs import Job

CELLS = [*study.cells_of_step_net(), *study.cells_of_block(), *study.cells_of_asr()]


def cells_of(name: str, table: str) -> list[study.Cell]:
    return [cell for cell in CELLS if (cell.paper, cell.table) == (name, table)]


def test_every_cell_is_there_once_and_is_planned_or_says_why_not():
    places = [(cell.paper, cell.table, cell.row, cell.column) for cell in CELLS]
    assert len(set(places)) == len(places)
    for cell in CELLS:
        assert cell.printed
        assert (cell.job is None) == bool(cell.reason)
        assert not (cell.job is None and cell.command)
        assert cell.precision in ("", "float32", "bfloat16")
        assert (cell.recipe is None) == (cell.precision == "")


def test_every_table_has_the_cells_that_the_papers_print():
    """Rows times columns, counted in the papers; StepNet's Table 4 has 8 rows, ASR's Table 5 26 numbers."""
    wanted = {
        study.STEP_NET: {"1": 9 * 6, "2": 8 * 2, "3": 10 * 6, "4": 8 * 3, "7": 2 * 3, "Fig. 8": 10 * 2},
        study.BLOCK: {"1": 9 * 4, "2": 9 * 2, "3": 20, "4": 17 * 4, "5": 17 * 2, "6": 20, "7": 4, "8": 2, "9": 20,
                      "10": 18, "11": 34},
        study.ASR: {"1": 7 * 4, "2": 24, "3": 4 * 5 * 3, "4": 8 * 4, "5": 26, "6": 16, "7": 12, "8": 40, "9": 3,
                    "13": 12, "14": 24},
    }  # fmt: skip
    found: dict = {}
    for cell in CELLS:
        found.setdefault(cell.paper, {}).setdefault(cell.table, []).append(cell)
    assert {name: {table: len(here) for table, here in tables.items()} for name, tables in found.items()} == wanted


def test_printed_numbers_are_those_of_the_studies():
    """One list of every table: the plan holds no number of its own."""
    assert {cell.printed for cell in cells_of(study.ASR, "9")} == {f"{value:.2f}" for value in design.TABLE_9}
    stl10 = {cell.row: cell.printed for cell in cells_of(study.ASR, "3") if cell.column == "STL-10"}
    assert stl10["ResNet-164"] == "82.38"
    assert stl10["VGG, ASR(IE)"] == f"{design.TABLE_3['VGG']['IE'][0]:.2f}"
    mean, deviation = tables.TABLES[1].paper["StepNet"][2]
    assert f"{mean:.2f} ± {deviation:.2f}" in {cell.printed for cell in cells_of(study.STEP_NET, "1")}
    total = {cell.column: cell.printed for cell in cells_of(study.BLOCK, "10") if cell.row == "total"}
    assert total == {"elements": "801,112,064", '"eigenvalues"': "62,914,560"}
    last = {cell.printed for cell in cells_of(study.BLOCK, "8")}
    assert last == {f"{value:.2f}" for value in blocks_paper.OVERALL[50]}


def test_a_difference_to_the_papers_recipe_is_said_and_nothing_else():
    (cell,) = (one for one in cells_of(study.STEP_NET, "1") if (one.row, one.column) == ("SE", "CIFAR-10, ResNet-164"))
    assert (cell.difference, cell.changes) == ("", [])
    other = dataclasses.replace(cell.recipe, epochs=20, bfloat16=True, name="mine")
    changed = dataclasses.replace(cell, job=dataclasses.replace(cell.job, recipe=other), remark="on Sundays")
    assert changed.difference == "epochs 20 for 164; on Sundays"
    assert (changed.precision, cell.precision) == ("bfloat16", "float32")
    assert dataclasses.replace(cell, wanted=None).difference == "the paper has no recipe"


def test_commands_are_known_to_the_studies():
    """What a cell names trains exactly its job: by the study's own plan, or by the options of studies.train."""
    import shlex

    import tyro

    from studies import train
    from studies.lab import jobs

    checked = 0
    for cell in CELLS:
        words = shlex.split(cell.command)
        if not isinstance(cell.job, Job) or words[2:3] != ["studies.train"] or cell.paper != study.ASR:
            continue
        asked = tyro.cli(train.Arguments, args=words[3:])
        fields = train.changed_fields(asked.set)
        recipe = jobs.recipe_of(asked.recipe, asked.dataset, asked.precision, asked.network, **fields)
        depth, width = jobs.SHAPES[asked.network]
        job = Job(asked.dataset, asked.controller, asked.seed, recipe, asked.depth or depth, asked.width or width,
                  network=asked.network)  # fmt: skip
        assert job == cell.job
        checked += 1
    assert checked > 50


@pytest.mark.parametrize("words", [{}, {"table": ("2", "5", "8")}, {"row": ("SPA",), "paper": (study.ASR,)}])
def test_the_terminal_shows_lines_of_at_most_a_hundred_columns(tmp_path, capsys, words):
    study.main(study.Arguments(out=tmp_path, **words))
    lines = capsys.readouterr().out.split("\n\nplan took")[0].splitlines()
    assert lines
    assert max(map(len, lines)) <= 100
    with (tmp_path / "plan.csv").open() as file:
        rows = list(csv.DictReader(file))
    if words == {}:
        assert len(rows) == len(CELLS)
    assert {row["hours here"] for row in rows} == {""}  # no hours but those that were measured


def test_hours_are_steps_times_their_measured_seconds():
    """An epoch has as many steps as whole batches, and growing pictures have times of their own."""
    (cell,) = (one for one in cells_of(study.STEP_NET, "1") if (one.row, one.column) == ("SE", "STL-10, ResNet-164"))
    time_steps = lambda cell, size, steps, device: size / 96  # noqa: E731
    assert study.hours_of(cell, time_steps=time_steps) == pytest.approx(164 * (5000 // 16) / 3600)
    growing = dataclasses.replace(cell.recipe, small=((0.5, 0.5),), epochs=4)
    cell = dataclasses.replace(cell, job=dataclasses.replace(cell.job, recipe=growing))
    assert study.hours_of(cell, time_steps=time_steps) == pytest.approx((2 * 0.5 + 2 * 1.0) * (5000 // 16) / 3600)


def test_steps_are_timed_on_the_very_network():
    (cell,) = (
        one for one in cells_of(study.STEP_NET, "1") if (one.row, one.column) == ("plain", "CIFAR-10, ResNet-164")
    )
    recipe = dataclasses.replace(cell.recipe, batch=4)
    small = dataclasses.replace(cell, job=dataclasses.replace(cell.job, depth=8, width=4, recipe=recipe))
    assert 0 < study.seconds_of_a_step(small, 32, 2, "cpu") < 60
