"""The analysis on windows whose truth is planted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

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
    lab = Lab([problem("a", [window(10.0, 3.0)], work={"explicit": (11, 0), "implicit": (1, 1)})])
    np.testing.assert_allclose(lab.truth(1e-4), [110.0 / (3.0 * 4)])


def test_a_rejected_attempt_finds_no_jacobian():
    """What is known at a state serves the next attempt from it: a Jacobian of two columns, and the slope of RODAS4."""
    one = window(10.0, 3.0)
    one["implicit"]["rejected"] = [0.25] * len(LADDER)
    one["explicit"]["rejected"] = [0.5] * len(LADDER)
    made = problem("a", [one])
    assert Lab([made]).truth(1e-4) == pytest.approx(60.0 / (3.0 * 5 + 2.25 * 3))
    assert Lab([made]).truth(1e-4, "attempts") == pytest.approx(10.0 / 3.0)
    assert Lab([made]).truth_at_tolerance(1e-4) == pytest.approx(60.0 / (3.0 * 5 + 2.25 * 3))


def test_factors_and_solutions_count_as_long_as_they_take():
    """Evaluations of 2 ns, a Jacobian of 6, factors of 8 and six solutions of 1: 6 + 3 + 4 + 6 / 2 for an attempt."""
    parts = {"evaluation": 2e-9, "jacobian": 6e-9, "factorisation": 8e-9, "solve": 1e-9, "engine": "compiled"}
    one = window(10.0, 3.0)
    lab = Lab([problem("a", [one], parts=parts, seconds={"explicit": 1.0, "implicit": 5.0})])
    assert lab.truth(1e-4, "parts") == pytest.approx(60.0 / (3.0 * 16))
    assert lab.truth(1e-4, "seconds") == pytest.approx(10.0 / 15.0)
    one["implicit"]["rejected"] = [0.5] * len(LADDER)
    other = Lab([problem("a", [one], parts=parts)])
    assert other.truth(1e-4, "parts") == pytest.approx(60.0 / (3.0 * 16 - 1.5 * 4))


def test_a_failed_run_costs_more_than_any():
    failed = window(10.0, 3.0)
    failed["explicit"] |= {"attempts": [np.inf] * 2 + [10.0] * 17, "rejected": [1.0] * 2 + [0.0] * 17}
    (costs,) = Lab([problem("a", [failed])]).costs_of_runs("explicit")
    assert np.isinf(costs[:2]).all()
    np.testing.assert_allclose(costs[2:], 60.0)


def test_a_planted_index_is_found_and_a_reversed_one_too():
    found = analysis.rankings(planted.lab(), 1e-4, 50)
    assert found["SI"].auc.value == 1.0
    assert found["SI"].within.value == pytest.approx(1.0)
    assert found["SAI"].auc.high < 0.05
    assert found["SAI"].within.value == pytest.approx(-1.0)
    assert abs(found["rho_ng"].auc.value - 0.5) < 0.2
    assert found["rho_ng"].within.value == 0.0
    assert found["SI"].counted == 8


@given(st.integers(0, 1000), st.integers(1, 5), st.sampled_from((1, 3, 100)))
@settings(deadline=None, max_examples=40)
def test_correlations_within_problems_are_those_of_each_problem_alone(seed, problems, levels):
    """With ties and without; of problems with fewer than six windows there is none."""
    random = np.random.default_rng(seed)
    made = []
    for k in range(problems):
        columns = random.integers(0, levels, (2, 4 + 2 * k)).astype(float)
        made.append(problem(f"p{k}", [window(10.0 * 4.0**a, 6.0, SI=b) for a, b in columns.T]))
    lab = Lab(made)
    values, ratio = lab.values(1e-4)["SI"], lab.truth(1e-4)
    found = analysis.correlations(lab, values, ratio, np.ones(len(values), bool))
    for name in dict.fromkeys(lab.name.tolist()):
        x, y = (column[lab.name == name] for column in (values, ratio))
        if len(x) < 6 or np.ptp(np.log(y)) <= np.log(3.0):
            assert name not in found
        else:
            wanted = stats.spearmanr(x, y).statistic if np.ptp(x) > 0 else 0.0
            assert found[name] == pytest.approx(wanted, abs=1e-12)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8), st.integers(0, 1000))
@settings(deadline=None, max_examples=40)
def test_a_median_of_values_that_are_drawn_is_that_of_so_many_copies(values, seed):
    values = np.sort(values)
    counts = np.random.default_rng(seed).integers(0, 3, (5, len(values)))
    for found, count in zip(analysis.medians(values, counts), counts, strict=True):
        np.testing.assert_equal(found, np.median(np.repeat(values, count)) if count.sum() else np.nan)


def test_an_index_whose_values_are_shuffled_is_a_coin():
    lab = planted.lab(30)
    values = np.random.default_rng(0).permutation([w["indices"]["SI"] for w in lab.windows])
    for one, value in zip(lab.windows, values, strict=True):
        one["indices"]["SI"] = float(value)
    found = analysis.rankings(lab, 1e-4, 200)["SI"].auc
    assert found.low < 0.5 < found.high


def test_one_threshold_has_to_serve_all_errors():
    """The implicit method gets dearer with the error: where an index does not know it, its areas add up to less."""
    made = []
    for k in range(4):
        one = window(10.0, 1.0, SI=1.0)
        one["implicit"]["attempts"] = (10.0 * (LADDER / 1e-5) ** -0.5).tolist()
        made.append(problem(f"p{k}", [one, window(1000.0, 1.0, SI=2.0), window(1.0, 100.0, SI=0.5)]))
    lab = Lab(made)
    for eps in (1e-3, 1e-7):
        assert analysis.rankings(lab, eps, 5)["SI"].auc.value == pytest.approx(1.0)
    found = analysis.over_all_errors(lab, (1e-3, 1e-7), 5)
    assert found["SI"].value == pytest.approx(1.0 - 0.5 / 9.0)  # one of nine pairs is a tie
    single = analysis.over_all_errors(lab, (1e-3,), 5)["SI"]
    assert (single.value, single.low) == (pytest.approx(1.0), pytest.approx(1.0))


def test_a_window_whose_exact_states_are_in_doubt_has_no_ratio():
    rows = [window(10.0, 3.0) | {"doubt": doubt} for doubt in (1e-9, 2e-6, np.nan)] + [window(10.0, 3.0)]
    lab = Lab([problem("a", rows)])
    np.testing.assert_array_equal(np.isnan(lab.truth(1e-4)), False)
    np.testing.assert_array_equal(np.isnan(lab.truth(1e-5)), [False, True, False, False])


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
    found = analysis.share_that_changes(Lab([always, changing]), 1e-3, 1e-8, 200)
    assert (found.value, found.low, found.high, found.n) == (0.5, 0.0, 1.0, 2)


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
    work = {"explicit": (6, 0), "implicit": (5, 1), "BS32": (6, 0), "ROS2": (5, 1)}
    parts = {"evaluation": 1.0, "jacobian": 2.0, "factorisation": 80.0, "solve": 2.0}
    rules = {"3 steps": [window(100.0, 1.0, SAI=2.0), window(1.0, 100.0)]}
    made = problem("a", rows, work=work, rules=rules, seconds={"explicit": 1.0, "implicit": 1000.0}, parts=parts)
    found = {row["change"]: row for row in sensitivity.rows(Lab([made]), 1e-4, (1e-4,))}
    assert found["BS32 as the explicit method"]["Spearman"] == pytest.approx(-1.0)
    assert found["ROS2 as the implicit method"]["same class"] == 1.0
    assert found["cold starts"]["shift of log10 R"] == pytest.approx(np.log10(2.0))
    assert found["equal tolerance, not equal error"]["Spearman"] == pytest.approx(1.0)
    assert found["cost in seconds"]["shift of log10 R"] == pytest.approx(np.log10(8.0 / 6.0 / 1000.0))
    linear = found["cost with Jacobians, factors and solutions as long as they take"]
    assert linear["shift of log10 R"] == pytest.approx(np.log10(8.0 / 100.0))
    assert linear["same class"] == pytest.approx(4 / 6)
    assert found["windows: 3 steps"]["AUC SAI"] == 1.0
