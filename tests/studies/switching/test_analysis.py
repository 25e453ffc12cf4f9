"""The analysis on windows whose truth is planted."""

import numpy as np
import pytest

from studies.switching import analysis, sensitivity
from studies.switching.areas import area_under_curve
from studies.switching.observations import RATES, Lab, beyond
from tests.studies.switching import planted
from tests.studies.switching.planted import LADDER, problem, window


def test_truth_counts_evaluations_and_jacobians():
    lab = Lab([problem("a", [window(10.0, 3.0)], n=2), problem("b", [window(10.0, 3.0)], n=9, by_lines=True)])
    np.testing.assert_allclose(lab.truth(1e-4), [60.0 / (3.0 * 8), 60.0 / (3.0 * 11)])
    np.testing.assert_allclose(lab.truth(1e-4, "attempts"), 10.0 / 3.0)


def test_truth_counts_the_stages_of_the_methods():
    """ROS2 has two evaluations an attempt, and DOP853 eleven."""
    lab = Lab([problem("a", [window(10.0, 3.0)], work={"explicit": 11, "implicit": 2})])
    np.testing.assert_allclose(lab.truth(1e-4), [110.0 / (3.0 * 4)])


def test_a_planted_index_is_found_and_a_reversed_one_too():
    found = analysis.rankings(planted.lab(), 1e-4, 50)
    assert found["SI"].auc.value == 1.0
    assert found["SI"].within == pytest.approx(1.0)
    assert found["SAI"].auc.high < 0.05
    assert found["SAI"].within == pytest.approx(-1.0)
    assert abs(found["rho_ng"].auc.value - 0.5) < 0.2
    assert found["rho_ng"].within == 0.0
    assert found["SI"].counted == 8


def test_an_index_whose_values_are_shuffled_is_a_coin():
    lab = planted.lab(30)
    values = np.random.default_rng(0).permutation([w["indices"]["SI"] for w in lab.windows])
    for one, value in zip(lab.windows, values, strict=True):
        one["indices"]["SI"] = float(value)
    found = analysis.rankings(lab, 1e-4, 200)["SI"].auc
    assert found.low < 0.5 < found.high


def test_beyond_a_factor_of_two_the_band_is_left_out():
    rows = [window(10.0 * r, 10.0 * 6 / 8, SI=si) for r, si in ((1.5, 0.0), (5.0, 1.0), (0.7, 1.0), (0.1, 0.0))]
    lab = Lab([problem("a", rows)])
    np.testing.assert_array_equal(beyond(lab.truth(1e-4)), [False, True, False, True])
    assert analysis.rankings(lab, 1e-4, 5)["SI"].auc.value == pytest.approx(0.5)
    assert analysis.rankings(lab, 1e-4, 5, band=True)["SI"].auc.value == 1.0


def test_intervals_come_from_whole_families_drawn_again():
    """The quick sums over pairs of families give what concatenating the drawn families does."""
    lab = planted.lab(6)
    families, group = np.unique(lab.family, return_inverse=True)
    stiff, values = lab.truth(1e-4) > 1.0, lab.values(1e-4)["rho_ng"]
    found = analysis.rankings(lab, 1e-4, 20)["rho_ng"].auc.draws
    for counts, draw in zip(analysis.resamples(len(families), 20), found, strict=True):
        some = np.concatenate([np.flatnonzero(group == i) for i, count in enumerate(counts) for _ in range(count)])
        assert draw == pytest.approx(area_under_curve(values[some], stiff[some], lab.weight[some]))


def powers_of(lab, **options):
    return analysis.powers(lab, (1e-4,), 50, **options)


def test_powers_are_found_again():
    """R = rho_ng / SAI, planted, where stability binds."""
    chance = np.random.default_rng(0)
    made = []
    for k in range(8):
        rows = []
        for _ in range(8):
            radius, sai = 10.0 ** chance.uniform(1.0, 4.0), 10.0 ** chance.uniform(-2.0, 0.0)
            rows.append(window(radius / sai, 1.0, rho_ng=radius, SAI=sai, rate=sai**2, h_stab=0.1))
        made.append(problem(f"p{k}", rows))
    found = powers_of(Lab(made))
    assert found.rho_ng.value == pytest.approx(1.0, abs=1e-6)
    assert found.pace.value == pytest.approx(-1.0, abs=1e-6)
    assert found.eps is None
    assert found.explained == pytest.approx(1.0)
    assert powers_of(Lab(made), pace="rate").pace.value == pytest.approx(-0.5, abs=1e-6)
    assert powers_of(Lab(made[:3])) is None


def test_the_slope_in_the_error_is_found_where_stability_binds():
    """The implicit method needs 1 / eps^(1/4) attempts, the explicit one as many at every error."""
    made = []
    for k in range(6):
        one = window(1e5, 1.0, h_stab=1e-4, rho_ng=10.0 + k, SAI=1.0 + 0.1 * k)
        one["implicit"]["attempts"] = (LADDER**-0.25).tolist()
        made.append(problem(f"p{k}", [one]))
    found = analysis.powers(Lab(made), (1e-3, 1e-6), 20)
    assert found.eps.value == pytest.approx(0.25, abs=1e-3)
    assert analysis.slopes(Lab(made), 1e-3, 1e-6)["stability binds"] == (pytest.approx(0.25, abs=1e-3), 6)


def test_windows_that_change_class_are_counted_by_problem():
    always = problem("a", [window(100.0, 1.0)] * 3)
    loose = window(100.0, 10.0)
    loose["implicit"]["attempts"] = np.where(LADDER < 1e-6, 1000.0, 1.0).tolist()
    changing = problem("b", [loose])
    assert analysis.share_that_changes(Lab([always, changing]), 1e-3, 1e-8) == pytest.approx(0.5)


def test_runs_that_were_given_up_keep_their_rank():
    lost = window(1e6, 5.0)
    lost["explicit"] |= {"error": [np.nan] * len(LADDER), "censored": [True] * len(LADDER)}
    assert Lab([problem("a", [lost])]).truth(1e-4)[0] > 1e4


def test_bound_without_damping_names_families():
    rows = [window(1000.0, 1.0, **{"-s[J]": 0.01}), window(1000.0, 1.0, **{"-s[J]": 1e4})]
    assert analysis.bound_without_damping(Lab([problem("a", rows, "forced")]), 1e-4) == (1, 1, ["forced"])


def test_grave_mistakes_are_named_and_counted():
    lab = Lab([problem("fine", [window(100.0, 1.0, rho_ng=1e6)]), problem("missed", [window(100.0, 1.0, rho_ng=1e-6)])])
    assert analysis.grave_mistakes(lab, 1e-4, "rho_ng/SAI", 26.0) == ([], ["missed"])
    assert analysis.confusion(lab, 1e-4, "rho_ng/SAI", 26.0) == {"fine": (1, 0, 0, 0), "missed": (0, 1, 0, 0)}


def test_in_random_units_rates_are_coins_and_ratios_stay():
    lab = planted.lab(40)
    plain, found = analysis.rankings(lab, 1e-4, 2), analysis.in_random_units(lab, 1e-4)
    assert found["SI"].value < 0.75 < plain["SI"].auc.value
    for name, one in found.items():
        if name not in RATES:
            assert one.value == pytest.approx(plain[name].auc.value), name


def test_sensitivity_sees_other_methods_other_starts_and_equal_tolerance():
    rows = []
    for k in range(6):
        one = window(10.0 * 4.0**k, 60.0)
        one["others"] = {"BS32": planted.ladder(10.0 * 4.0**-k), "ROS2": planted.ladder(60.0)}
        one["cold"] = {"explicit": planted.ladder(20.0 * 4.0**k), "implicit": planted.ladder(60.0)}
        rows.append(one)
    work = {"explicit": 6, "implicit": 6, "BS32": 6, "ROS2": 6}
    rules = {"3 steps": [window(100.0, 1.0, SAI=2.0), window(1.0, 100.0)]}
    made = problem("a", rows, work=work, rules=rules, seconds={"explicit": 1.0, "implicit": 1000.0})
    found = {row["change"]: row for row in sensitivity.rows(Lab([made]), 1e-4, (1e-4,))}
    assert found["BS32 as the explicit method"]["Spearman"] == pytest.approx(-1.0)
    assert found["ROS2 as the implicit method"]["same class"] == 1.0
    assert found["cold starts"]["shift of log10 R"] == pytest.approx(np.log10(2.0))
    assert found["equal tolerance, not equal error"]["Spearman"] == pytest.approx(1.0)
    assert found["cost in seconds"]["shift of log10 R"] == pytest.approx(np.log10(8.0 / 6.0 / 1000.0))
    assert found["windows: 3 steps"]["AUC SAI"] == 1.0
