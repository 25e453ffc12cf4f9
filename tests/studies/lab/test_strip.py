"""The strip of claims: what a verdict rests on comes along with it, in numbers that fit on a page and a screen."""

import dataclasses
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from studies.lab.report import strip, terminal
from studies.lab.statistics import Correlation, Estimate
from studies.lab.verdicts import (
    KINDS,
    Finding,
    Worlds,
    agreement,
    joint,
    of_cases,
    of_closeness,
    of_correlation,
    of_each,
    of_interval,
    of_parts,
    of_robust,
    of_strength,
    rule,
)

ends = st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(sorted)
intervals = st.builds(lambda e, n: Estimate(e[1], e[0], e[2], n=n), ends, st.integers(0, 50))
verdicts = st.lists(st.builds(of_interval, intervals), min_size=1, max_size=6)


def row(verdict, words="So far.", judged=None):
    return strip.row_of(Finding("A claim.", "Figure 7", verdict, words, judged))


@given(verdicts)
def test_a_verdict_made_of_others_rests_on_the_intervals_of_all_of_them(parts):
    cases = [case for part in parts for case in part.cases]
    for combine in (of_cases, of_parts, agreement, joint):
        assert list(combine(parts).cases) == cases
    named = joint({("slope", f"{k}"): part for k, part in enumerate(parts)}).cases
    assert [case.name for case in named] == [f"slope {k}" for k in range(len(parts))]


@given(intervals, st.floats(-3, 3))
def test_what_is_shown_is_what_was_measured_whatever_it_was_compared_with(e, limit):
    """The verdict is that of the difference, the strip has the number and the limit."""
    for verdict in (of_interval(e.less(limit)), of_closeness(e, limit, 0.1), of_robust(e.less(limit), {})):
        (case,) = row(verdict)["cases"]
        assert case["against"] == limit
        for name in ("value", "low", "high"):
            assert case[name] == pytest.approx(getattr(e, name), abs=1e-14)  # one subtraction, one addition


@given(intervals, st.floats(0, 2))
def test_a_verdict_on_a_strength_rests_on_one_interval(e, least):
    assert len(of_strength(e, least, negligible=0.1).cases) == 1


@given(verdicts)
def test_drawn_intervals_stay_within_their_picture(parts):
    picture = strip.drawn(row(of_cases(parts))["cases"])
    for mark in picture["marks"] if picture else ():
        places = [mark["x"], picture["zero"], *(mark["ends"] or ())]
        assert all(0 <= place <= picture["width"] for place in places)
        assert 0 <= mark["y"] <= picture["height"]
        assert mark["ends"] is None or mark["ends"][0] <= mark["x"] <= mark["ends"][1]


def test_a_claim_in_numbers():
    one, several = of_interval(Estimate(0.5, -0.5, 1.5, n=3)), {"SE": Estimate(1.0, 0.5, 1.5), "ECA": Estimate(2, 1, 3)}
    assert row(one)["here"] == "+0.50 [-0.50, +1.50]"
    assert row(of_each(several))["here"] == "+1.00 [+0.50, +1.50]; +2.00 [+1.00, +3.00]"
    assert row(of_each(several | {"SRM": Estimate(0.5, 0.1, 0.9)}))["here"] == "+0.50 to +2.00 in 3 cases"
    assert row(of_interval(Estimate(0.7, math.nan, math.nan)))["here"] == "+0.70, no interval"
    assert row(of_interval(Estimate(0.85, 0.8, 0.9).less(0.5)))["here"] == "0.85 [0.80, 0.90]"  # not a difference
    assert row(KINDS[-1], "One sentence. Another one.")["here"] == "One sentence"
    assert len(row(KINDS[-1], "word " * 60)["here"]) <= strip.LONGEST


def test_what_would_decide_a_claim():
    open_, long_ = of_interval(Estimate(0.5, -0.5, 1.5, n=3)), of_interval(Estimate(0.1, -0.5, 0.7, n=3))
    assert row(open_)["decides"] == "n = 12"
    assert row(joint([open_, long_]))["decides"] == "n = 108"  # all readings have to be decided
    assert row(of_interval(Estimate(1.0, 0.5, 1.5)))["decides"] == ""
    nothing = Correlation(4, Estimate(0.6, math.nan, math.nan, n=4), 0.3, Estimate(0.6, math.nan, math.nan, n=4), 0.3)
    assert row(of_correlation(nothing))["decides"] == "n = 5"
    for kind in KINDS:
        assert strip.MARKS[kind.kind]
        assert isinstance(row(kind)["decides"], str)


def judge(evidence):
    """A rule."""
    return of_interval(evidence), "n = 4 kinds of networks."


@pytest.mark.parametrize(("units", "n"), [("kinds of networks", "4 kinds of networks"), ("networks", "4")])
def test_units_are_said_where_it_is_certain_what_n_counts(units, n):
    worlds = Worlds(lambda *_: (), n=45, units=units, effect="one")
    finding = rule("A claim.", "here", worlds=worlds, paper="28 %", unit="points")(judge)(Estimate(1, 0.5, 2, n=4))
    found = strip.row_of(finding)
    assert (found["n"], found["paper"], found["here"]) == (n, "28 %", "+1.00 [+0.50, +2.00] points")
    seeds = dataclasses.replace(finding, words="n = 4 networks.")
    assert strip.row_of(seeds)["n"].startswith("4")


rows = st.fixed_dictionaries(
    {name: st.text("ab cd", max_size=120) for name in ("claim", "here", "n")}
    | {"verdict": st.sampled_from([kind.kind for kind in KINDS])}
)


@given(st.lists(rows, max_size=40), st.integers(3, 25))
def test_the_strip_fits_into_the_terminal_and_decided_claims_come_first(found, room):
    lines = terminal.strip_lines(found, room)
    assert len(lines) <= room
    assert all(len(line) <= terminal.COLUMNS for line in lines)
    if len(found) + 1 > room:
        left_out = len(found) - (len(lines) - 2)
        assert lines[-1] == f"... and {left_out} more claims on the page"
        decided = sum(one["verdict"] not in terminal.OPEN for one in found)
        shown = sum(any(line.endswith(terminal.cut(kind.kind, 22)) for kind in KINDS[:7]) for line in lines[1:-1])
        assert shown == min(decided, len(lines) - 2)


@given(st.lists(st.text("ab", min_size=1, max_size=15), min_size=40, max_size=80).map(" ".join), st.integers(1, 4))
def test_words_are_wrapped_into_the_columns(words, most):
    lines = terminal.wrapped(words, most)
    assert len(lines) <= most
    assert all(len(line) <= terminal.COLUMNS for line in lines)


def test_numbers_of_a_strip_are_plain(tmp_path):
    found = row(of_interval(Estimate(np.float64(1.0), math.nan, math.inf, n=np.int64(3))))
    assert found["cases"] == [
        {"name": "", "value": 1.0, "low": None, "high": None, "against": 0.0, "n": 3, "needed": None}
    ]
