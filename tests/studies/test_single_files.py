"""Rules of the studies that are one file: Euler's method, Theorem 2, close encounters."""

import pytest

from studies import stiff_euler, theorem2, three_body
from studies.lab.verdicts import CONTRADICTED, NOT_ASKABLE, NOT_RUN, SPLIT, SUPPORTED


@pytest.mark.parametrize(("growth", "verdict"), [(0.5, CONTRADICTED), (1.5, SUPPORTED)])
def test_eulers_method_is_unstable_where_errors_grow(growth, verdict):
    row = {"method": "EULER", "h": stiff_euler.PAPER_STEP, "|R(h*lambda)|": growth}
    found = stiff_euler.judge_paper_step([row | {"largest error": 0.7, "error at the end": 1e-9}])
    assert found.verdict == verdict
    assert stiff_euler.judge_paper_step([row | {"method": "RK4"}]).verdict == NOT_RUN


def test_an_identity_falls_with_one_system():
    row = {"systems": 50, "identity holds": 50, "largest residual": 1e-15}
    assert theorem2.judge_identity([row, row]).verdict == SUPPORTED
    assert theorem2.judge_identity([row, row | {"identity holds": 49}]).verdict == CONTRADICTED


@pytest.mark.parametrize(
    ("rates", "verdict"), [((-1.0, -2.0), SUPPORTED), ((0.0, 0.01), CONTRADICTED), ((-1.0, 0.0), SPLIT)]
)
def test_q_falls_in_some_families(rates, verdict):
    rows = [
        {"family": str(k), "rate: |Q| ~ SI^": rate, "limit, by its premises": rate < 0} for k, rate in enumerate(rates)
    ]
    assert theorem2.judge_limit(rows).verdict == verdict


def test_q_falls_in_the_families_of_the_study_that_meet_the_premises_and_not_in_all():
    rows, _ = theorem2.limit()
    assert theorem2.judge_limit(rows).verdict == SPLIT
    meeting = [row for row in rows if row["limit, by its premises"]]
    assert len(meeting) == 2
    assert theorem2.judge_limit(meeting).verdict == SUPPORTED


@pytest.mark.parametrize(
    ("times", "verdict"), [((0.046, 0.023), NOT_ASKABLE), ((0.2, 0.1), CONTRADICTED), ((0.01, 0.02), CONTRADICTED)]
)
def test_two_free_numbers_meet_two_printed_ones(times, verdict):
    rows = [
        {"horizon": 20.0 + k, "distance for 91.4 % of runs": 0.3, "time share there": time}
        for k, time in enumerate(times)
    ]
    assert three_body.judge_shares(rows).verdict == verdict
    assert three_body.judge_shares([]).verdict == NOT_RUN
