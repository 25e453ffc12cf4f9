"""What figures and tables are made of: shares that change, slopes, mistakes, choices, and the costs of switching."""

import numpy as np
import pytest

from studies.switching import dependence, indices, switches
from studies.switching.evidence import Windows, rankings
from studies.switching.runs import RATES
from tests.studies.switching import planted
from tests.studies.switching.planted import LADDER, problem, window


def test_the_slope_in_the_error_is_found_where_stability_binds():
    """The implicit method needs 1 / eps^(1/4) attempts, the explicit one as many at every error."""
    made = []
    for k in range(6):
        row = window(1e5, 1.0, h_stab=1e-4, rho_ng=10.0 + k, SAI=1.0 + 0.1 * k)
        row["implicit"]["attempts"] = (LADDER**-0.25).tolist()
        made.append(problem(f"p{k}", [row]))
    windows = Windows(made)
    assert dependence.powers(windows, (1e-3, 1e-6), 20).eps.value == pytest.approx(0.25, abs=1e-3)
    bound, _ = dependence.slopes(windows, 1e-3, 1e-6)
    assert (bound["median slope"], bound["windows"]) == (pytest.approx(0.25, abs=1e-3), 6)


def test_windows_that_change_class_are_counted_by_problem():
    loose = window(100.0, 10.0)
    loose["implicit"]["attempts"] = np.where(LADDER < 1e-6, 1000.0, 1.0).tolist()
    windows = Windows([problem("a", [window(100.0, 1.0)] * 3), problem("b", [loose])])
    share = dependence.share_that_changes(windows, 1e-3, 1e-8, 200)
    assert (share.value, share.low, share.high, share.n) == (0.5, 0.0, 1.0, 2)
    assert np.isnan(dependence.share_that_changes(windows, 1e-3, 1e-3, 200).value)


def test_in_random_units_rates_are_coins_and_ratios_stay():
    windows = planted.windows(40)
    plain, moved = rankings(windows, 1e-4, 2), dependence.in_random_units(windows, 1e-4)
    assert moved["SI"].value < 0.75 < plain["SI"].auc.value
    for name, area in moved.items():
        if name not in RATES:
            assert area.value == pytest.approx(plain[name].auc.value), name


def test_bound_without_damping_names_families():
    rows = [window(1000.0, 1.0, **{"-s[J]": 0.01}), window(1000.0, 1.0, **{"-s[J]": 1e4})]
    assert indices.bound_without_damping(Windows([problem("a", rows, "forced")]), 1e-4) == (1, 1, ["forced"])


def test_grave_mistakes_are_named_and_counted():
    fine, missed = (window(100.0, 1.0, rho_ng=radius) for radius in (1e6, 1e-6))
    windows, name = Windows([problem("fine", [fine]), problem("missed", [missed])]), "rho_ng/SAI > 26"
    (row,) = (row for row in indices.grave_rows(windows, [1e-4]) if row["index"] == name)
    assert (row["called stiff, R < 1/2"], row["missed, R > 2"]) == ("none", "missed")
    assert [row[name] for row in indices.confusion_rows(windows, 1e-4)] == ["1 / 0 / 0 / 0", "0 / 1 / 0 / 0"]


def test_choices_of_methods_starts_tolerances_and_units_are_seen():
    rows = []
    for k in range(6):
        row = window(10.0 * 4.0**k, 60.0)
        row["others"] = {"BS32": planted.ladder(10.0 * 4.0**-k), "ROS2": planted.ladder(60.0)}
        row["cold"] = {"explicit": planted.ladder(20.0 * 4.0**k), "implicit": planted.ladder(60.0)}
        rows.append(row)
    work = {"explicit": (6, 0), "implicit": (5, 1), "BS32": (6, 0), "ROS2": (5, 1)}
    parts = {"evaluation": 1.0, "jacobian": 2.0, "factorisation": 80.0, "solve": 2.0}
    rules = {"3 steps": [window(100.0, 1.0, SAI=2.0), window(1.0, 100.0)]}
    made = problem("a", rows, work=work, rules=rules, seconds={"explicit": 1.0, "implicit": 1000.0}, parts=parts)
    changes = {row["change"]: row for row in indices.choice_rows(Windows([made]), 1e-4, (1e-4,))}
    assert changes["BS32 as the explicit method"]["Spearman"] == pytest.approx(-1.0)
    assert changes["ROS2 as the implicit method"]["same class"] == 1.0
    assert changes["cold starts"]["shift of log10 R"] == pytest.approx(np.log10(2.0))
    assert changes["equal tolerance, not equal error"]["Spearman"] == pytest.approx(1.0)
    assert changes["cost in seconds"]["shift of log10 R"] == pytest.approx(np.log10(8.0 / 6.0 / 1000.0))
    linear = changes["cost with Jacobians, factors and solutions as long as they take"]
    assert linear["shift of log10 R"] == pytest.approx(np.log10(8.0 / 100.0))
    assert linear["same class"] == pytest.approx(4 / 6)
    assert changes["windows: 3 steps"]["AUC SAI"] == 1.0


def test_a_perfect_index_costs_what_the_oracle_does_but_for_the_changes():
    table = switches.policies(planted.windows(), 1e-4)
    assert table["SI"].mean < 1.25
    assert table["SI"].unseen == pytest.approx(table["SI"].mean, rel=0.1)
    assert table["always explicit"].mean > 2.0
    assert 1.0 <= table["best of both"].mean <= table["always implicit"].mean
    assert table["SI"].mean < table["SAI"].mean
    assert table["h_acc/h_stab > 1"].threshold == 1.0
    assert np.isnan(table["h_acc/h_stab > 1"].unseen)
    assert "trial: h_R/h_E" not in table


def test_every_change_of_the_method_costs_one_attempt_and_one_between_problems_nothing():
    cheap, dear = window(10.0, 100.0), window(1000.0, 10.0)
    costs, oracle = switches.Costs(Windows([problem("a", [cheap, dear])]), 1e-4), 10.0 * 6 + 10.0 * 8
    assert costs.of(np.array([False, True])) == pytest.approx([(oracle + 8) / oracle])
    assert costs.of(np.array([False, False])) == pytest.approx([(60.0 + 6000.0) / oracle])
    apart = switches.Costs(Windows([problem("a", [cheap]), problem("b", [dear])]), 1e-4)
    assert apart.of(np.array([False, True])) == pytest.approx([1.0, 1.0])


def test_switching_is_counted_in_seconds_where_attempts_were_timed():
    """An explicit attempt takes 1 s and an implicit one 10: what is cheap in evaluations is dear in time."""
    made = problem("a", [window(10.0, 3.0), window(10.0, 0.5)], seconds={"explicit": 1.0, "implicit": 10.0})
    costs = switches.Costs(Windows([made]), 1e-4, "seconds")
    assert costs.of(np.array([True, True])) == pytest.approx([35.0 / 15.0])
    assert costs.of(np.array([False, True])) == pytest.approx([25.0 / 15.0])


def test_auto_is_compared_with_the_better_of_its_methods_in_evaluations_and_in_time():
    """The better one in time may be another one; where neither gets there, nothing is compared."""
    infinite = float("inf")
    runs = {
        "AUTO(DOPRI5, RODAS4)": {"evaluations": 100.0, "jacobians": 10.0, "changes": 2.0, "seconds": 3.0},
        "DOPRI5": {"evaluations": 400.0, "jacobians": 0.0, "changes": 0.0, "seconds": 2.0},
        "RODAS4": {"evaluations": 60.0, "jacobians": 10.0, "changes": 0.0, "seconds": 4.0},
    }
    lost = dict.fromkeys(("evaluations", "seconds"), infinite) | {"jacobians": 0.0, "changes": 0.0}
    some = [
        problem("a", [window(1.0, 1.0)], whole=runs),
        problem("b", [window(1.0, 1.0)], whole=dict.fromkeys(runs, lost)),
    ]
    windows = Windows([*some, problem("c", [window(1.0, 1.0)], whole=runs | {"DOPRI5": lost})])
    first, last = switches.auto_rows(windows)
    assert (first["AUTO over the better"], first["in time"]) == pytest.approx((120.0 / 80.0, 3.0 / 2.0))
    assert (last["in time"], last["DOPRI5"], last["changes"]) == (3.0 / 4.0, "not there", 2)
    np.testing.assert_array_equal(switches.auto_costs(windows)["time"].cost, [1.5, 0.75])


def test_the_interval_of_a_loss_comes_from_whole_families():
    """Two families of one problem and of three: where all problems of a family are alike, it counts as one draw."""
    policy = switches.Policy(1.0, np.exp([0.0, 1.0, 1.0, 1.0]), np.array(["a", "b", "b", "b"]))
    loss = switches.estimate_loss(policy)
    assert (loss.value, loss.n) == (0.75, 2)
    assert set(loss.draws.tolist()) == {0.0, 0.75, 1.0}
    assert (loss.low, loss.high) == (0.0, 1.0)
    other = switches.Policy(1.0, policy.cost / 2.0, policy.family)
    assert switches.estimate_loss(policy, other).low == pytest.approx(np.log(2.0))
    assert policy.mean == pytest.approx(np.exp(0.75))
