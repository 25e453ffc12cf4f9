"""Statistics of the studies: laws, and SciPy where it has the same."""

import numpy as np
import pytest
from scipy import stats

from studies.lab.statistics import correlation_of_few, kendall_rows, kendall_within, relate_kinds
from studies.lab.verdicts import SUPPORTED, UNDECIDED, corrected, of_correlation, of_kinds


@pytest.mark.parametrize("n", [5, 6, 11, 24])
@pytest.mark.parametrize("seed", range(5))
def test_few_pairs_have_scipys_coefficients_and_chances(n, seed):
    chance = np.random.default_rng((n, seed))
    x = chance.normal(size=n)
    y = x + chance.normal(size=n)
    found = correlation_of_few(x, y)
    for ours, p, theirs in (
        (found.kendall, found.kendall_p, stats.kendalltau(x, y, method="exact")),
        (found.spearman, found.spearman_p, stats.spearmanr(x, y)),
    ):
        assert (ours.value, p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
        assert ours.low <= ours.value <= ours.high


def test_ties_and_what_cannot_be_ranked():
    tied = correlation_of_few([1, 2, 2, 3, 4], [1, 2, 3, 4, 4])
    assert tied.kendall.value == pytest.approx(stats.kendalltau([1, 2, 2, 3, 4], [1, 2, 3, 4, 4]).statistic)
    for x in ([1, 1, 1, 1, 1], [1, 2, np.nan, 4, 5], [1, 2, 3, 4]):
        found = correlation_of_few(x, np.arange(len(x)))
        assert np.isnan([found.kendall.low, found.spearman.high]).all()
        assert of_correlation(found) == UNDECIDED


@pytest.mark.parametrize("n", [6, 8, 12])
def test_without_a_relation_few_pairs_decide_rarely(n):
    """Tau and rho of unrelated numbers, judged under four readings."""
    chance, level, draws = np.random.default_rng(0), corrected(4), 4000
    decided = sum(
        of_correlation(correlation_of_few(*chance.normal(size=(2, n)), level)).claims_effect for _ in range(draws)
    )
    assert decided <= stats.binom.ppf(0.999, draws, 1.0 - level)


def test_a_relation_that_one_kind_makes_is_none():
    """Figure 7's fault: one controller of many seeds far from all others. Its seeds are one unit, not many."""
    chance = np.random.default_rng(0)
    x = {str(k): chance.normal(size=8) for k in range(6)} | {"SEM": 9.0 + chance.normal(size=8)}
    y = {str(k): chance.normal(size=8) for k in range(6)} | {"SEM": 9.0 + chance.normal(size=8)}
    every = [np.concatenate(list(values.values())) for values in (x, y)]
    assert of_correlation(correlation_of_few(*every)) == SUPPORTED
    found = relate_kinds(x, y)
    assert found.whole.n == 7
    assert of_kinds(found) == UNDECIDED


def test_a_relation_has_to_hold_without_any_kind():
    order = {str(k): [float(k)] for k in range(7)}
    assert of_kinds(relate_kinds(order, order)) == SUPPORTED
    falling = {**order, "6": [0.5]}
    found = relate_kinds(order, falling)
    without = {name for name, one in found.without.items() if of_correlation(one) == SUPPORTED}
    assert of_kinds(found) in (SUPPORTED, UNDECIDED)
    assert (of_kinds(found) == SUPPORTED) == (len(without) == 7 and of_correlation(found.whole) == SUPPORTED)


def test_kendalls_tau_of_every_row_is_that_of_scipy_and_counts_pairs_of_one_group():
    chance = np.random.default_rng(0)
    x, y = chance.integers(0, 9, (2, 5, 12))
    for row in range(5):
        assert kendall_rows(x, y, np.zeros(12))[row] == pytest.approx(stats.kendalltau(x[row], y[row]).statistic)
    groups = np.repeat([0, 1], 6)
    apart = kendall_rows(x, y, groups)
    np.testing.assert_allclose(kendall_rows(x + 100 * groups, y - 100 * groups, groups), apart)
    assert apart[0] == pytest.approx(kendall_within(x[0], y[0], groups, 1).value)
    assert np.isnan(kendall_rows(np.ones((1, 4)), np.arange(4.0)[None], np.zeros(4))).all()
