"""Records and the page made of them: nothing is lost, nothing is measured twice, no missed goal is left out."""

import dataclasses
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import page
from benchmarks.harness import command, records
from benchmarks.harness.records import Part
from benchmarks.harness.rows import MISSED, Row, at_least, at_most, below

WORDS = st.text("abc ,|:", min_size=1)
NUMBERS = st.floats(1e-9, 1e9).map(lambda x: float(f"{x:.4g}"))
GOALS = st.one_of(*(st.builds(goal, NUMBERS) for goal in (at_most, at_least, below)))
ROWS = st.builds(
    Row, work=WORDS, name=WORDS, peer=st.sampled_from(["", "C"]), ours=st.none() | NUMBERS, theirs=st.none() | NUMBERS,
    ratio=st.none() | NUMBERS, spread=st.none() | st.tuples(NUMBERS, NUMBERS), goal=st.none() | GOALS,
    unit=st.sampled_from(["", "ms"]), error=st.none() | NUMBERS, note=st.sampled_from(["", "timed once"]),
)  # fmt: skip


def part(*rows, commit="c0ffee", quick=False):
    return Part("What is compared.", "2026-11-20", commit, (0.5, 1.0), 2.0, quick, {"numpy": "2.4"}, list(rows))


@given(ROWS)
def test_a_row_is_kept_as_it_is(row):
    assert records.row_of(records.fields_of(row)) == row


@given(st.floats(1e-300, 1e300))
def test_numbers_are_kept_to_four_digits(value):
    kept = records.row_of(records.fields_of(Row("work", "ours", "", value))).ours
    assert math.isclose(kept, value, rel_tol=5.1e-4)


def test_what_is_written_is_read(tmp_path):
    path, row = tmp_path / "record.json", Row("w", "ours", "C", 1.0, 2.0, 0.5, goal=at_most(1.1))
    records.keep(path, "stiff", ["one", "two"], "two", part(row))
    records.keep(path, "stiff", ["one", "two"], "one", part(row, quick=True))
    record = records.load(path)
    assert record.parts == {"stiff/one": part(row, quick=True), "stiff/two": part(row)}
    assert record.missing() == []
    assert records.text_of(record) == path.read_text()
    assert len([line for line in path.read_text().splitlines() if '"work"' in line]) == 2


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Run two sections with these options; returns the names of those that were measured."""
    monkeypatch.setattr(records, "commit", lambda: "c0ffee")

    def run(*options):
        names = []

        def section(name):
            def rows(size):
                """A section."""
                names.append(name)
                yield Row(name, "ours", "", 1.0)

            return rows

        sections = {name: section(name) for name in ("one", "two")}
        given = command.parser("ode", "", sections).parse_args([*options, "--record", str(tmp_path / "record.json")])
        command.run("stiff", given, sections, None)
        return names

    return run


def test_a_run_goes_on_where_it_stopped(measured):
    assert measured("--only", "two") == ["two"]
    assert measured() == ["one"]
    assert measured() == []
    assert measured("--only", "two") == ["two"]
    assert measured("--anew") == ["one", "two"]


def test_small_sizes_do_not_stand_for_full_ones(measured):
    assert measured("--quick") == ["one", "two"]
    assert measured() == ["one", "two"]
    assert measured("--quick") == []


def test_another_commit_is_measured_anew(measured, monkeypatch):
    measured()
    monkeypatch.setattr(records, "commit", lambda: "decaf")
    assert measured() == ["one", "two"]


def test_the_page_is_made_of_the_newest_record():
    """`python -m benchmarks.page` writes it."""
    assert page.PAGE.read_text() == page.text(page.newest())


def test_the_page_names_every_goal_that_was_missed():
    record, said = records.load(page.newest()), page.PAGE.read_text()
    for name, found in record.parts.items():
        late = [row for row in found.rows if row.verdict == MISSED]
        below = [text for text in re.split(r"^##", said, flags=re.M) if text.startswith(f"# {name.split('/')[1]}\n")]
        lines = [line for text in below for line in text.splitlines() if "Missed" in line]
        for row in late:
            words = page.WORD.split(row.work)
            assert any(all(word in line or word == row.name for word in words) for line in lines), row.work


def test_a_line_has_the_median_and_both_ends():
    ratios = (0.1, 0.05, 0.04, 0.02)
    rows = [
        Row(f"w{i}, error", "odelab", "C", 1.0 + i, 9.0, ratio, goal=at_least(15)) for i, ratio in enumerate(ratios)
    ]
    (group,) = page.split(rows)
    assert (
        page.line(group)
        == "| 4 works, error | 1.00 to 4.00 ms | C | 22.2x faster (10.0 to 50.0) | >= 15.0x faster: 3 of 4 |"
    )
    assert page.line(group[:2]).startswith("| w0; w1, error | 1.00 to 2.00 ms | C |")
    assert list(page.missed([group])) == ["Missed, error (>= 15.0x faster against C): w0 10.0x faster."]


@pytest.mark.parametrize(
    ("goal", "ratio", "said"),
    [(at_least(2), 0.8, "1.25x faster"), (at_least(2), 1.5, "1.50"), (at_most(0.9), 0.4, "0.40"),
     (at_most(0.03), 0.0054, "0.00540"), (None, 0.4, "2.50x faster"), (None, 0.8, "0.80")],
)  # fmt: skip
def test_a_ratio_is_written_as_its_goal_is(goal, ratio, said):
    assert page.figure([Row("w", "odelab", "C", 1.0, 1.0 / ratio, ratio, goal=goal)]) == said


def test_works_without_a_ratio_are_not_counted_in_a_line():
    rows = [Row(f"w{i}", "odelab", "C", 1.0 + i, 9.0, 0.1) for i in range(4)]
    rows += [Row("lost", "odelab", "C", 9.0, note="C: gone"), Row("odd", "odelab", "C", 9.0, 9.0, 0.9, unequal="apart")]
    table = page.chapter("stiff", {"some": part(*rows)})
    assert "| 4 works | 1.00 to 4.00 ms | C | 10.0x faster (10.0 to 10.0) |" in table
    assert "No ratio: C: gone (lost). No ratio: apart (odd)." in table


def test_a_missed_goal_says_whose():
    goal = below(1.0)
    one, two = (Row("w, slope", f"odelab {name}", "", 2.0, goal=goal, unit="") for name in ("RODAS4", "RODAS5P"))
    assert list(page.missed([[one, two]])) == ["Missed, w, slope (<= 1.00): odelab RODAS4 2.00; odelab RODAS5P 2.00."]
    other = dataclasses.replace(two, work="v, slope")
    assert "w, RODAS4 2.00; w, RODAS5P 2.00; v, RODAS5P 2.00." in next(page.missed([[one, two, other]]))
    assert list(page.missed([[one, dataclasses.replace(one, work="v, slope")]])) == [
        "Missed, slope, RODAS4 (<= 1.00): w 2.00; v 2.00."
    ]
    close = Row("w", "odelab", "C", 1.0, 1.0, 1.013, goal=at_most(1.01))
    assert list(page.missed([[close]])) == ["Missed (<= 1.01 against C): w 1.013."]


def test_who_is_absent_is_named_once():
    rows = [Row(f"w{i}", "odelab", "gone", 1.0, note="gone: not installed") for i in range(2)]
    assert list(page.unknown(rows)) == ["No ratio: gone: not installed."]


def test_a_record_says_nothing_of_the_machine_but_its_class():
    text = page.newest().read_text()
    assert "/home" not in text
    assert "/tmp" not in text
    assert len(text) < 200_000
    assert all(dataclasses.asdict(found)["commit"] for found in records.load(page.newest()).parts.values())
