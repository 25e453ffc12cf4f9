"""R, areas, rankings and powers on windows whose truth is planted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from studies.lab.statistics import draw_counts
from studies.switching import evidence
from studies.switching.evidence import Windows, area_under_curve, rankings
from tests.studies.switching import planted
from tests.studies.switching.planted import LADDER, problem, window

cases = st.lists(
    st.tuples(st.integers(0, 5), st.booleans(), st.floats(0.1, 3.0)), min_size=2, max_size=30
).filter(lambda rows: len({positive for _, positive, _ in rows}) == 2)  # fmt: skip


@given(cases)
@settings(deadline=None)
def test_it_is_the_chance_that_a_positive_case_is_larger(rows):
    values, positive, weights = (np.array(column) for column in zip(*rows, strict=True))
    won = total = 0.0
    for v, w in zip(values[positive], weights[positive], strict=True):
        for other, weight in zip(values[~positive], weights[~positive], strict=True):
            won += w * weight * ((v > other) + 0.5 * (v == other))
            total += w * weight
    assert area_under_curve(values, positive, weights) == pytest.approx(won / total)
    assert area_under_curve(-values, positive, weights) == pytest.approx(1.0 - won / total)


def test_labels_that_know_nothing_of_the_values_give_a_half():
    chance = np.random.default_rng(0)
    values = chance.standard_normal(400)
    drawn = [area_under_curve(values, chance.permutation(np.arange(400) < 150)) for _ in range(200)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.01)


def test_one_kind_of_case_has_no_area():
    assert np.isnan(area_under_curve([1.0, 2.0], [True, True]))


def test_truth_counts_evaluations_and_jacobians():
    windows = Windows([problem("a", [window(10.0, 3.0)], n=2), problem("b", [window(10.0, 3.0)], n=9, by_lines=True)])
    np.testing.assert_allclose(windows.ratio(1e-4), [60.0 / (3.0 * 8), 60.0 / (3.0 * 11)])
    np.testing.assert_allclose(windows.ratio(1e-4, "attempts"), 10.0 / 3.0)


def test_truth_counts_the_stages_of_the_methods():
    """ROS2 has two evaluations an attempt, and DOP853 eleven."""
    windows = Windows([problem("a", [window(10.0, 3.0)], work={"explicit": (11, 0), "implicit": (1, 1)})])
    np.testing.assert_allclose(windows.ratio(1e-4), [110.0 / (3.0 * 4)])


def test_a_rejected_attempt_finds_no_jacobian():
    """What is known at a state serves the next attempt from it: a Jacobian of two columns, and the slope of RODAS4."""
    row = window(10.0, 3.0)
    row["implicit"]["rejected"] = [0.25] * len(LADDER)
    row["explicit"]["rejected"] = [0.5] * len(LADDER)
    made = problem("a", [row])
    assert Windows([made]).ratio(1e-4) == pytest.approx(60.0 / (3.0 * 5 + 2.25 * 3))
    assert Windows([made]).ratio(1e-4, "attempts") == pytest.approx(10.0 / 3.0)
    assert Windows([made]).ratio_at_tolerance(1e-4) == pytest.approx(60.0 / (3.0 * 5 + 2.25 * 3))


def test_factors_and_solutions_count_as_long_as_they_take():
    """Evaluations of 2 ns, a Jacobian of 6, factors of 8 and six solutions of 1: 6 + 3 + 4 + 6 / 2 for an attempt."""
    parts = {"evaluation": 2e-9, "jacobian": 6e-9, "factorisation": 8e-9, "solve": 1e-9, "engine": "compiled"}
    row = window(10.0, 3.0)
    windows = Windows([problem("a", [row], parts=parts, seconds={"explicit": 1.0, "implicit": 5.0})])
    assert windows.ratio(1e-4, "parts") == pytest.approx(60.0 / (3.0 * 16))
    assert windows.ratio(1e-4, "seconds") == pytest.approx(10.0 / 15.0)
    row["implicit"]["rejected"] = [0.5] * len(LADDER)
    other = Windows([problem("a", [row], parts=parts)])
    assert other.ratio(1e-4, "parts") == pytest.approx(60.0 / (3.0 * 16 - 1.5 * 4))


def test_a_failed_run_costs_more_than_any():
    failed = window(10.0, 3.0)
    failed["explicit"] |= {"attempts": [np.inf] * 2 + [10.0] * 17, "rejected": [1.0] * 2 + [0.0] * 17}
    (costs,) = Windows([problem("a", [failed])]).costs_of_runs("explicit")
    assert np.isinf(costs[:2]).all()
    np.testing.assert_allclose(costs[2:], 60.0)


def test_a_planted_index_is_found_and_a_reversed_one_too():
    ranked = rankings(planted.windows(), 1e-4, 50)
    assert ranked["SI"].auc.value == 1.0
    assert ranked["SI"].within.value == pytest.approx(1.0)
    assert ranked["SAI"].auc.high < 0.05
    assert ranked["SAI"].within.value == pytest.approx(-1.0)
    assert abs(ranked["rho_ng"].auc.value - 0.5) < 0.2
    assert ranked["rho_ng"].within.value == 0.0
    assert ranked["SI"].counted == 8


@given(st.integers(0, 1000), st.integers(1, 5), st.sampled_from((1, 3, 100)))
@settings(deadline=None, max_examples=40)
def test_correlations_within_problems_are_those_of_each_problem_alone(seed, problems, levels):
    """With ties and without; of problems with fewer than six windows there is none."""
    random = np.random.default_rng(seed)
    made = []
    for k in range(problems):
        columns = random.integers(0, levels, (2, 4 + 2 * k)).astype(float)
        made.append(problem(f"p{k}", [window(10.0 * 4.0**a, 6.0, SI=b) for a, b in columns.T]))
    windows = Windows(made)
    values, ratio = windows.values(1e-4)["SI"], windows.ratio(1e-4)
    by_name = evidence.correlations(windows, values, ratio, np.ones(len(values), bool))
    for name in dict.fromkeys(windows.name.tolist()):
        x, y = (column[windows.name == name] for column in (values, ratio))
        if len(x) < 6 or np.ptp(np.log(y)) <= np.log(3.0):
            assert name not in by_name
        else:
            wanted = stats.spearmanr(x, y).statistic if np.ptp(x) > 0 else 0.0
            assert by_name[name] == pytest.approx(wanted, abs=1e-12)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8), st.integers(0, 1000))
@settings(deadline=None, max_examples=40)
def test_a_median_of_values_that_are_drawn_is_that_of_so_many_copies(values, seed):
    values = np.sort(values)
    counts = np.random.default_rng(seed).integers(0, 3, (5, len(values)))
    for median, count in zip(evidence.medians(values, counts), counts, strict=True):
        np.testing.assert_equal(median, np.median(np.repeat(values, count)) if count.sum() else np.nan)


def test_an_index_whose_values_are_shuffled_is_a_coin():
    windows = planted.windows(30)
    values = np.random.default_rng(0).permutation([w["indices"]["SI"] for w in windows.rows])
    for row, value in zip(windows.rows, values, strict=True):
        row["indices"]["SI"] = float(value)
    area = rankings(windows, 1e-4, 200)["SI"].auc
    assert area.low < 0.5 < area.high


def test_one_threshold_has_to_serve_all_errors():
    """The implicit method gets dearer with the error: where an index does not know it, its areas add up to less."""
    made = []
    for k in range(4):
        row = window(10.0, 1.0, SI=1.0)
        row["implicit"]["attempts"] = (10.0 * (LADDER / 1e-5) ** -0.5).tolist()
        made.append(problem(f"p{k}", [row, window(1000.0, 1.0, SI=2.0), window(1.0, 100.0, SI=0.5)]))
    windows = Windows(made)
    for eps in (1e-3, 1e-7):
        assert rankings(windows, eps, 5)["SI"].auc.value == pytest.approx(1.0)
    areas = evidence.over_all_errors(windows, (1e-3, 1e-7), 5)
    assert areas["SI"].value == pytest.approx(1.0 - 0.5 / 9.0)  # one of nine pairs is a tie
    single = evidence.over_all_errors(windows, (1e-3,), 5)["SI"]
    assert (single.value, single.low) == (pytest.approx(1.0), pytest.approx(1.0))


def test_a_window_whose_exact_states_are_in_doubt_has_no_ratio():
    rows = [window(10.0, 3.0) | {"doubt": doubt} for doubt in (1e-9, 2e-6, np.nan)] + [window(10.0, 3.0)]
    windows = Windows([problem("a", rows)])
    np.testing.assert_array_equal(np.isnan(windows.ratio(1e-4)), False)
    np.testing.assert_array_equal(np.isnan(windows.ratio(1e-5)), [False, True, False, False])


def test_beyond_a_factor_of_two_the_band_is_left_out():
    rows = [window(10.0 * r, 10.0 * 6 / 8, SI=si) for r, si in ((1.5, 0.0), (5.0, 1.0), (0.7, 1.0), (0.1, 0.0))]
    windows = Windows([problem("a", rows)])
    np.testing.assert_array_equal(evidence.clear(windows.ratio(1e-4)), [False, True, False, True])
    assert rankings(windows, 1e-4, 5)["SI"].auc.value == pytest.approx(0.5)
    assert rankings(windows, 1e-4, 5, band=True)["SI"].auc.value == 1.0


def test_intervals_come_from_whole_families_drawn_again():
    """The quick sums over pairs of families give what concatenating the drawn families does."""
    windows = planted.windows(6)
    families, group = np.unique(windows.family, return_inverse=True)
    stiff, values = windows.ratio(1e-4) > 1.0, windows.values(1e-4)["rho_ng"]
    draws = rankings(windows, 1e-4, 20)["rho_ng"].auc.draws
    for counts, draw in zip(draw_counts(len(families), 20).astype(int), draws, strict=True):
        some = np.concatenate([np.flatnonzero(group == i) for i, count in enumerate(counts) for _ in range(count)])
        assert draw == pytest.approx(area_under_curve(values[some], stiff[some], windows.weight[some]))


def powers_of(windows, **options):
    return evidence.powers(windows, (1e-4,), 50, **options)


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
    fit = powers_of(Windows(made))
    assert fit.rho_ng.value == pytest.approx(1.0, abs=1e-6)
    assert fit.pace.value == pytest.approx(-1.0, abs=1e-6)
    assert fit.eps is None
    assert fit.explained == pytest.approx(1.0)
    assert powers_of(Windows(made), pace="rate").pace.value == pytest.approx(-0.5, abs=1e-6)
    assert powers_of(Windows(made[:3])) is None


def test_runs_that_were_given_up_keep_their_rank():
    lost = window(1e6, 5.0)
    lost["explicit"] |= {"error": [np.nan] * len(LADDER), "censored": [True] * len(LADDER)}
    assert Windows([problem("a", [lost])]).ratio(1e-4)[0] > 1e4
