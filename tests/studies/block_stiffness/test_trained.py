"""Networks that the study trains: fits judged by their length, looks through training, schemes, depths."""

import numpy as np
import pytest

from studies.block_stiffness import trained
from studies.lab.verdicts import BY_READING, CONTRADICTED, NOT_RUN, SUPPORTED, UNDECIDED
from tests.studies.block_stiffness.made_up import fits


@pytest.mark.parametrize(
    ("lengths", "verdict"),
    [
        ({5: 0.03, 300: 0.02}, SUPPORTED),
        ({5: 0.7, 300: 0.8}, CONTRADICTED),
        ({5: 0.03, 300: 0.1, 1500: 0.7}, BY_READING),
        ({5: 0.1, 300: 0.1}, UNDECIDED),
        ({5: 0.03}, UNDECIDED),
        ({}, NOT_RUN),
    ],
)
def test_same_as_ode_net(lengths, verdict):
    """Five rounds alone were "supported", 1,500 alone "contradicted": a verdict on the optimisation."""
    assert trained.judge_fits(fits(lengths), ()).verdict == verdict


def test_few_seeds_say_nothing_of_ode_nets_and_networks_on_the_digits_are_told():
    rows = [
        {"trained by": "Euler", "run by": run, "accuracy, %": accuracy}
        for run, accuracy in (("Euler", 90.0), ("x", 12.0))
    ]
    found = trained.judge_fits(fits({5: 0.03, 300: 0.02}, seeds=2), rows)
    assert found.verdict == UNDECIDED
    assert "trained by Euler 90 % as they were trained and 12 % under" in found.words


@pytest.mark.slow
def test_the_papers_geometry_is_looked_at_and_a_stopped_training_keeps_its_looks(digits, tmp_path):
    rows = trained.train_papers_geometry(digits, 0, 1, tmp_path, "cpu", epochs=1, width=2)
    assert [row["epoch"] for row in rows] == [0] * 8 + [1] * 8
    assert np.isfinite([row["%, slices"] for row in rows]).all()
    opening = [row["block"] for row in rows[:8] if not np.isfinite(row["max_re"])]
    assert opening == [3, 5, 7]
    again = trained.train_papers_geometry(digits, 0, 1, tmp_path, "cpu", epochs=1, width=2)
    np.testing.assert_equal(again, rows)
    table = trained.geometry_rows(rows)
    assert len(table) == 8
    assert {"%, slices, epoch 0", "%, slices, epoch 1"} <= set(table[0])


@pytest.mark.slow
def test_a_tolerance_costs_evaluations_and_hardly_accuracy():
    rows = trained.tolerance_rows(0, 1, 60)
    assert len(rows) == 2 * (1 + len(trained.TOLERANCES))
    for scheme in ("Euler", "dopri5"):
        euler, *solved = [row for row in rows if row["trained by"] == scheme]
        assert euler["evaluations a block"] == 1.0
        calls = [row["evaluations a block"] for row in solved]
        assert calls == sorted(calls)
        assert calls[-1] > 2 * calls[0] > 6


@pytest.mark.slow
def test_a_deeper_network_has_more_blocks():
    one, two = (trained.row_of_depth(depth, 1, 2, 0) for depth in (14, 20))
    assert (one["blocks"], two["blocks"]) == (4, 7)
    assert one["sigma, largest"] >= one["rho, median"] > 0
    rows = [{"blocks": n, "x": 3.0 / n} for n in (4, 7, 13)]
    assert trained.exponent(rows, "x") == pytest.approx(-1.0)


@pytest.mark.slow
def test_training_is_looked_at_from_before_it_begins():
    rows = trained.rows_through_training(1, 1)
    assert [row["epoch"] for row in rows] == [0] * 4 + [1] * 4
    assert all(np.isfinite(row["max_re"]) and row["step_error"] > 0 for row in rows)
    assert rows[0]["max_re"] != rows[4]["max_re"]
