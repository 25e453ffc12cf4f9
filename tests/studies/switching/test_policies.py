"""Switching by an index, on windows whose costs are planted."""

import numpy as np
import pytest

from studies.switching import policies
from studies.switching.observations import Lab
from tests.studies.switching import planted
from tests.studies.switching.planted import problem, window


def test_a_perfect_index_costs_what_the_oracle_does_but_for_the_changes():
    table = policies.policies(planted.lab(), 1e-4)
    assert table["SI"].mean < 1.25
    assert table["SI"].unseen == pytest.approx(table["SI"].mean, rel=0.1)
    assert table["always explicit"].mean > 2.0
    assert 1.0 <= table["best of both"].mean <= table["always implicit"].mean
    assert table["SI"].mean < table["SAI"].mean


def test_every_change_of_the_method_costs_one_attempt():
    lab = Lab([problem("a", [window(10.0, 100.0), window(1000.0, 10.0)])])
    costs = policies.Costs(lab, 1e-4)
    oracle = 10.0 * 6 + 10.0 * 8
    assert costs.of(np.array([False, True])) == pytest.approx([(oracle + 8) / oracle])
    assert costs.of(np.array([False, False])) == pytest.approx([(60.0 + 6000.0) / oracle])


def test_a_change_between_problems_is_none():
    lab = Lab([problem("a", [window(10.0, 100.0)]), problem("b", [window(1000.0, 10.0)])])
    assert policies.Costs(lab, 1e-4).of(np.array([False, True])) == pytest.approx([1.0, 1.0])


def test_the_threshold_of_theory_is_not_fitted():
    table = policies.policies(planted.lab(), 1e-4)
    assert table["h_acc/h_stab > 1"].threshold == 1.0
    assert np.isnan(table["h_acc/h_stab > 1"].unseen)


def test_the_trial_step_is_no_policy():
    assert "trial: h_R/h_E" not in policies.policies(planted.lab(), 1e-4)


def test_auto_is_compared_with_the_better_of_its_methods():
    runs = {
        "AUTO(DOPRI5, RODAS4)": {"evaluations": 100.0, "jacobians": 10.0, "changes": 2.0},
        "DOPRI5": {"evaluations": float("inf"), "jacobians": 0.0, "changes": 0.0},
        "RODAS4": {"evaluations": 60.0, "jacobians": 10.0, "changes": 0.0},
    }
    (row,) = policies.of_auto(Lab([problem("a", [window(1.0, 1.0)], whole=runs)]))
    assert row["AUTO over the better"] == pytest.approx(120.0 / 80.0)
    assert (row["DOPRI5"], row["changes"]) == ("not there", 2)


def test_the_interval_of_a_loss_comes_from_whole_families():
    """Two families of one problem and of three: where all problems of a family are alike, it counts as one draw."""
    policy = policies.Policy(1.0, np.exp([0.0, 1.0, 1.0, 1.0]), np.array(["a", "b", "b", "b"]))
    found = policies.estimate_loss(policy)
    assert (found.value, found.n) == (0.75, 2)
    assert set(found.draws.tolist()) == {0.0, 0.75, 1.0}
    assert (found.low, found.high) == (0.0, 1.0)
    other = policies.Policy(1.0, policy.cost / 2.0, policy.family)
    assert policies.estimate_loss(policy, other).low == pytest.approx(np.log(2.0))
    assert policy.mean == pytest.approx(np.exp(0.75))
