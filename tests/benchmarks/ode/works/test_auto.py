"""What the page on AUTO says without a clock, and that it says something with one."""

import pytest

from benchmarks.ode.works import auto, equations


@pytest.mark.slow
def test_auto_costs_little_more_than_the_better_method_on_the_whole_catalogue():
    rows = list(auto.evaluations(equations.Size()))
    assert len(rows) > 25
    ratios = {row.work: row.ratio for row in rows}
    assert ratios["median of all"] <= 1.1
    above = {name for name, ratio in ratios.items() if ratio > 1.5} - {"worst of all"}
    assert above == set()


@pytest.mark.slow
@pytest.mark.parametrize("section", ["times", "ensembles", "grid"])
def test_times_are_set_against_the_better_method(section):
    rows = list(auto.SECTIONS[section](equations.Size(quick=True)))
    assert all(row.ratio > 0.0 and row.peer in ("DOPRI5", "RODAS4", "the better", "each run's better") for row in rows)
