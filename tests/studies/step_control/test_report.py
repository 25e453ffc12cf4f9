"""step_control: tables and figures hold the results; what is missing or diverged is said."""

import dataclasses
import json

import numpy as np
import pytest

from studies import step_control as study
from studies.lab import jobs
from studies.lab.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED
from tests.studies import pages
from tests.studies.step_control.step_results import made_up, plan_of

# What it says and shows.

RIGHT = {
    name: 1000 + 40 * k for k, name in enumerate(reversed(study.CELLS))
}  # test errors of 10,000: plain has the most


def filled(out, errors, **given):
    """A folder of results with these errors by row, seed 1 with four more."""
    plan = plan_of(out, **given)
    for seed in plan.arguments.seeds:
        for name, count in errors.items():
            run = plan.cell(name, seed)
            result = dataclasses.replace(made_up(run, count + 4 * seed), test_images=10_000)
            result.write(plan.own / f"{run.stem}.json")
        for place, name in enumerate((study.STIFFEST, study.RANDOM, study.LEAST, study.ALL)):
            (run,) = plan.tickets(study.EVERY, name, seed)
            result = dataclasses.replace(made_up(run, 900 + 40 * place + 4 * seed), test_images=10_000)
            result.write(plan.own / f"{run.stem}.json")


def record_of(out, **given):
    defaults = {"dataset": "digits", "epochs": 2, "images": 128, "own": True, "out": out}
    study.main(study.Arguments(**{**defaults, **given}))
    return json.loads((out / "record.json").read_text())["numbers"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One run on made-up results of two seeds: its folder and the numbers of its record."""
    out = tmp_path_factory.mktemp("shown")
    filled(out, RIGHT)
    return out, record_of(out, blocks="every")


def test_the_tables_hold_the_known_numbers(shown):
    out, _ = shown
    numbers = pages.check(out)
    assert {path.stem for path in out.glob("*.png")} == {"table4", "nsi_every", "tickets_every"}
    rows = {row["step size"]: row for row in numbers["table4"]}
    assert list(rows) == list(study.CELLS)
    assert rows[study.PLAIN]["accuracy (%)"] == f"{100 - (RIGHT[study.PLAIN] + 2) / 100:.2f}"
    assert rows[study.PLAIN]["standard deviation"] == f"{0.04 / np.sqrt(2):.2f}"
    gain = (RIGHT[study.PLAIN] - RIGHT[study.OURS]) / 100
    assert rows[study.OURS]["gain over plain [95 %]"].startswith(f"{gain:+.2f} [")
    assert rows[study.OURS]["gain over SE [95 %]"].startswith(f"{(RIGHT[study.SE] - RIGHT[study.OURS]) / 100:+.2f} [")
    assert rows[study.OURS]["paper, CIFAR-10 (%)"] == "95.14 ± 0.24"
    assert rows[study.OURS]["paper's gain"] == "+1.79"
    assert rows[study.OURS]["on blocks"] == "1 3 5"
    tickets = {row["controllers on"]: row for row in numbers["tickets_every"]}
    assert tickets[study.STIFFEST]["blocks, by seed"] == "0 2"
    assert tickets[study.RANDOM]["beyond the stiffest [95 %]"].startswith("-0.40 [")
    assert tickets[study.STIFFEST]["gain over none [95 %]"].startswith(f"{(RIGHT[study.PLAIN] - 900) / 100:+.2f} [")
    held = {row["block"]: row["in the tickets"] for row in numbers["nsi_every"] if row["seed"] == 0}
    assert [block for block, where in held.items() if study.STIFFEST in where] == [0, 2]
    assert numbers["missing"] == []
    files = {row["file"] for row in numbers["networks"]}
    assert len(files) == len(numbers["networks"]) == 2 * (len(study.CELLS) + 4)


def test_the_papers_column_is_table_4s():
    """Typed from the paper a second time."""
    told = {name: columns["cifar10"][0] for name, columns in study.PAPER.items()}
    assert told == {
        study.PLAIN: 93.35,
        study.SE: 94.26,
        "F(x_t)": 94.59,
        "F(x_{t+1})": 94.32,
        "F(x_{t+1} - x_t)": 94.69,
        study.OURS: 95.14,
        "Adaptor a": 94.39,
        "Adaptor b": 94.05,
        "Adaptor c": 94.19,
        "Adaptor d": 94.92,
    }


def test_what_is_missing_is_said_and_the_rest_is_shown(tmp_path, capsys):
    filled(tmp_path, RIGHT, seeds=(1,))
    numbers = record_of(tmp_path, blocks="every")
    assert "plain (seed 1)" in numbers["missing"]
    assert f"every block, {study.STIFFEST} (seed 1)" in numbers["missing"]  # its blocks are not even known
    assert "\nNot there yet" in capsys.readouterr().out
    assert "Not there yet" in (tmp_path / "report.md").read_text()


def test_what_diverged_is_said_as_such_and_ends_with_an_error(tmp_path, capsys):
    filled(tmp_path, RIGHT, seeds=(1,))
    plan = plan_of(tmp_path, seeds=(1,), blocks="every")
    run = plan.cell(study.SE, 0)
    (plan.own / f"{run.stem}.json").unlink()
    jobs.note_divergence(run, plan.own, "the loss is no number any more")
    with pytest.raises(SystemExit) as stopped:
        record_of(tmp_path, seeds=(1,), blocks="every")
    assert stopped.value.code == 1
    numbers = json.loads((tmp_path / "record.json").read_text())["numbers"]
    assert numbers["diverged"] == {run.stem: "the loss is no number any more"}
    assert numbers["missing"] == []
    for text in (capsys.readouterr().out, (tmp_path / "report.md").read_text()):
        assert f"{run.stem}: the loss is no number any more" in text
        assert "Not there yet" not in text


def test_random_blocks_that_are_the_stiffest_are_named(tmp_path):
    plan = plan_of(tmp_path, seeds=(1,), blocks="every")
    random = study.draw_blocks(range(6), 2, 0, 1)[0]
    nsi = tuple(9.0 if block in random else 1.0 for block in range(6))
    plain = plan.cell(study.PLAIN, 0)
    made_up(plain, nsi=nsi).write(plan.own / f"{plain.stem}.json")
    stiffest, least = (plan.ticket(study.EVERY, name, 0) for name in (study.STIFFEST, study.LEAST))
    for run in (stiffest, least):
        made_up(run).write(plan.own / f"{run.stem}.json")
    (found,) = (
        one for one in record_of(tmp_path, seeds=(1,), blocks="every")["findings"] if "stiff ones" in one["claim"]
    )
    assert "With seed 0 the random blocks are the stiffest ones." in found["words"]


def test_marks_stand_at_the_accuracies_and_squares_on_the_blocks(tmp_path):
    filled(tmp_path, RIGHT)
    plan = plan_of(tmp_path, blocks="every")
    cells, tickets = plan.cells(), plan.placements(study.EVERY)
    for drawing, rows in ((study.draw_table_4(cells, "cifar10"), cells), (study.draw_tickets(tickets), tickets)):
        lines = [line for line in drawing.axes[0].lines if line.get_marker() in study.MARKS]
        drawn = sorted(float(x) for line in lines for x in line.get_xdata())
        assert drawn == pytest.approx(sorted(result.accuracy for row in rows.values() for _, result in row.results))
    drawing = study.draw_nsi(plan.plain(), tickets, plan.scale.firsts)
    for axis, (run, result) in zip(drawing.axes, plan.plain().results, strict=True):
        assert axis.lines[0].get_ydata() == pytest.approx(result.nsi)
        squares = sorted(tuple(line.get_xdata()) for line in axis.lines if line.get_marker() == "s")
        held = [one.acting for name in study.LOOKS for one, _ in tickets[name].results if one.seed == run.seed]
        assert squares == sorted(map(tuple, held))


# Its door.


# Statistics over seeds.


SEEDS = (-0.1, 0.1)


def around(means, seeds=SEEDS):
    return {name: [mean + shift for shift in seeds] for name, mean in means.items()}


def placed(seeds=SEEDS, **means):
    """Tickets under both readings."""
    groups = around(dict.fromkeys(study.TICKETS, 80.0) | means, seeds)
    return dict.fromkeys(study.PLACES, groups)


@pytest.mark.parametrize(
    ("of_all", "verdict"), [(80.0, SUPPORTED), (70.0, SUPPORTED), (90.0, CONTRADICTED), (80.9, UNDECIDED)]
)
def test_as_well_has_a_margin(of_all, verdict):
    """By the rule before, networks with controllers on all blocks had to be worse."""
    assert study.judge_all(placed(**{study.ALL: of_all})).verdict == verdict
