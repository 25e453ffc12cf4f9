"""Timing helpers and rows: laws of ratios, goals and verdicts, and that answers are checked before times."""

import math
import statistics
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.harness import rows
from benchmarks.harness.rows import Row, at_least, at_most, below
from benchmarks.harness.timing import Contestant, compare
from benchmarks.ode import __main__ as ode
from benchmarks.ode.works import equations
from odelab.experiments import clock

times = st.floats(1e-9, 1e3)
factors = st.floats(1e-3, 1e3)


@given(st.lists(times, min_size=2, max_size=9), factors)
@settings(deadline=None)
def test_ratios_of_a_scaled_contestant_are_the_scale(theirs, factor):
    found = clock.ratios([factor * seconds for seconds in theirs], theirs)
    assert found == pytest.approx([factor] * len(theirs), rel=1e-12)


@given(times, st.lists(times, min_size=1, max_size=9))
@settings(deadline=None)
def test_one_measurement_is_set_against_every_round(once, many):
    assert clock.ratios([once], many) == [once / each for each in many]
    assert clock.ratios(many, [once]) == [each / once for each in many]


@given(st.lists(times, min_size=3, max_size=30))
@settings(deadline=None)
def test_quartiles_enclose_the_median(values):
    low, high = clock.quartiles(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)


@given(st.floats(1e-4, 1e9))
@settings(deadline=None)
def test_a_number_is_shown_to_three_digits(value):
    shown = rows.number(value)
    assert "e" not in shown
    assert float(shown.replace(",", "")) == pytest.approx(value, rel=5.1e-3)


@given(factors, st.floats(0.9, 1.1).filter(lambda share: abs(share - 1.0) > 1e-9))
@settings(deadline=None)
def test_goals_agree_with_their_words(limit, share):
    value = share * limit
    assert at_most(limit).is_reached(1.0, value) == (share < 1.0)
    assert at_least(limit).is_reached(1.0, 1.0 / value) == (share > 1.0)
    assert below(limit).is_reached(value, None) == (share < 1.0)
    assert not at_most(limit).is_reached(1.0, None)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, rows.REACHED),
        ({"ratio": 1.2}, rows.MISSED),
        ({"goal": None}, rows.MEASURED),
        ({"unequal": "ours is worse"}, rows.UNEQUAL),
        ({"theirs": None, "ratio": None}, rows.NOT_MEASURED),
        ({"ours": None, "ratio": None}, rows.NOT_AVAILABLE),
        ({"wrong": "off by one", "ours": None}, rows.WRONG),
        ({"wrong": "off by one", "unequal": "ours is worse"}, rows.WRONG),
    ],
)
def test_verdicts(changes, verdict):
    whole = {"work": "w", "name": "ours", "peer": "C", "ours": 1.0, "theirs": 1.0, "ratio": 1.0, "goal": at_most(1.1)}
    row = Row(**{**whole, **changes})
    assert row.verdict == verdict
    assert bool(rows.wrong([row])) == (verdict == rows.WRONG)
    assert rows.summary([row, row]) == f"2 {verdict}"


def test_tables_keep_their_columns():
    found = [
        Row("a | b", "ours", "C", 1.0, 2000.0, 0.0005, (0.0004, 0.0006), at_least(35), note="x"),
        Row("alone", "ours", "", 30.0, goal=below(40.0), unit="us", error=1e-5),
    ]
    lines = rows.plain(found).splitlines()
    starts = [lines[0].index(title) for title in ("against", "verdict")]
    assert lines[1][starts[0] :].startswith("C ")
    assert lines[2][starts[1] :].startswith(rows.REACHED)
    assert "2,000x faster (1,667..2,500)" in lines[1]
    table = rows.markdown(found).splitlines()
    assert {line.replace("\\|", "").count("|") for line in table} == {len(rows.HEADER) + 1}


def test_every_round_rotates_the_order():
    order = []
    calls = [lambda name=name: (order.append(name), time.sleep(0.006)) for name in "abc"]
    samples = clock.interleave(calls, rounds=3)
    assert "".join(order[-9:]) == "abcbcacab"
    assert [len(sample.wall) for sample in samples] == [3, 3, 3]


def test_a_slow_call_is_measured_once_by_its_first(monkeypatch):
    monkeypatch.setattr(clock, "SLOW", 0.02)
    count = []
    slow, fast = clock.interleave([lambda: (count.append(1), time.sleep(0.03)), lambda: None], rounds=4)
    assert (len(slow.wall), len(count)) == (1, 1)
    assert len(fast.wall) == 4


def test_sleep_is_no_processor_time():
    (sample,) = clock.interleave([lambda: time.sleep(0.02)], rounds=3)
    assert min(sample.wall) >= 0.02
    assert sample.cores < 0.5


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def contestant(name, seconds, error=1e-6, **more):
    return Contestant(name, lambda: busy(seconds), lambda answer: error, **more)


def test_compare_finds_who_is_faster():
    peers = {contestant("slow", 0.02): at_least(2), contestant("slower", 0.02, per=0.5): at_least(6)}
    first, second = compare("w", contestant("fast", 0.005), peers, allowed=1e-3, rounds=3, clock="processor")
    assert first.ratio == pytest.approx(0.25, rel=0.2)
    assert second.ratio == pytest.approx(0.125, rel=0.2)
    assert first.ours == pytest.approx(5.0, rel=0.2)
    assert [first.verdict, second.verdict] == [rows.REACHED, rows.REACHED]


def test_a_fixed_part_is_taken_off():
    ours = contestant("ours", 0.012, fixed=lambda: busy(0.006))
    (row,) = compare("w", ours, {contestant("theirs", 0.006): at_most(1.1)}, rounds=3, clock="processor")
    assert row.ratio == pytest.approx(1.0, rel=0.2)


def test_a_run_that_is_lost_in_its_fixed_part_has_no_ratio():
    ours = contestant("ours", 0.006, fixed=lambda: busy(0.012))
    (row,) = compare("w", ours, {contestant("theirs", 0.006): at_most(1.1)}, rounds=3, clock="processor")
    assert (row.verdict, row.ratio) == (rows.NOT_MEASURED, None)
    assert "ours is lost in the fixed cost of a call" in row.note


@pytest.mark.parametrize(
    ("error", "peer_error", "luck", "verdict"),
    [
        (1e-6, 1e-6, 0.0, rows.MEASURED),
        (1e-8, 1e-4, 0.0, rows.MEASURED),
        (1e-5, 1e-6, 0.0, rows.UNEQUAL),
        (1e-5, 1e-6, 2e-5, rows.MEASURED),
        (1e-5, 0.0, 0.0, rows.UNEQUAL),
        (1e-2, 1e-2, 0.0, rows.WRONG),
        (math.nan, 1e-6, 0.0, rows.WRONG),
    ],
)
def test_errors_come_before_times(error, peer_error, luck, verdict):
    ours, theirs = contestant("ours", 0.0, error), contestant("theirs", 0.0, peer_error)
    (row,) = compare("w", ours, {theirs: None}, allowed=1e-3, luck=luck, rounds=1)
    assert row.verdict == verdict


def test_a_run_that_raises_is_wrong_for_us_and_absent_for_a_peer():
    def fails():
        raise RuntimeError("step lost")

    broken, fine = Contestant("broken", fails), contestant("fine", 0.0)
    (ours,) = compare("w", broken, {fine: None}, rounds=1)
    assert (ours.verdict, ours.wrong) == (rows.WRONG, "RuntimeError: step lost")
    (theirs,) = compare("w", fine, {broken: None}, rounds=1)
    assert theirs.verdict == rows.NOT_MEASURED
    assert "step lost" in theirs.note


def test_warming_up_is_not_timed(monkeypatch):
    monkeypatch.setattr(clock, "SLOW", 0.02)
    compiled = []

    def run():
        if not compiled:
            time.sleep(0.03)
            compiled.append(True)

    (row,) = compare("w", Contestant("ours", run, warm=run), {contestant("theirs", 0.001): None}, rounds=4)
    assert "timed once" not in row.note
    assert row.ours < 10.0


def test_who_is_absent_is_named():
    gone = Contestant("gone", None, missing="not installed")
    (row,) = compare("w", contestant("ours", 0.0), {gone: at_least(5)}, rounds=2)
    assert (row.verdict, row.note) == (rows.NOT_MEASURED, "gone: not installed")
    (row,) = compare("w", gone, {contestant("theirs", 0.0): None}, rounds=1)
    assert row.verdict == rows.NOT_AVAILABLE


def test_the_page_fails_on_wrong_answers_only(monkeypatch, capsys, tmp_path):
    def section(size):
        """A section."""
        yield Row("w", "ours", "C", 9.0, 1.0, 9.0, goal=at_most(1.1))
        if not size.quick:
            yield Row("w", "ours", "C", 1.0, 1.0, 1.0, wrong="off by one")

    monkeypatch.setattr(equations, "SECTIONS", {"section": section})
    assert ode.main(["--quick", "--out", str(tmp_path / "page.md")]) == 0
    assert rows.MISSED in (tmp_path / "page.md").read_text()
    assert ode.main([]) == 1
    assert "off by one" in capsys.readouterr().err


def test_no_peer_is_imported_before_it_is_asked_for():
    import subprocess

    code = "import sys, benchmarks.ode.works.equations as _; names = 'jax', 'torch', 'numbalsoda'; "
    code += "print([name for name in names if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
