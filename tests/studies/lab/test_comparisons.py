"""Comparisons of groups of seeds, against formulas written out."""

import numpy as np
import pytest
from scipy import stats

from studies.lab import comparisons


def test_welch_by_hand_and_where_it_says_nothing():
    """Two groups of other deviations, by the formula of Welch and Satterthwaite."""
    a, b = [1.0, 2.0, 3.0], [10.0, 14.0, 18.0, 26.0]
    va, vb = np.var(a, ddof=1) / 3, np.var(b, ddof=1) / 4
    freedom = (va + vb) ** 2 / (va**2 / 2 + vb**2 / 3)
    width = stats.t.ppf(0.975, freedom) * np.sqrt(va + vb)
    found = comparisons.welch("a", {"a": a, "b": b, "one": [3.0], "same": [2.0, 2.0]})
    assert set(found) == {"b", "same"}
    np.testing.assert_allclose(
        [found["b"].value, found["b"].low, found["b"].high], [15.0, 15.0 - width, 15.0 + width], rtol=1e-12
    )
    assert comparisons.welch("a", {"a": [1.0], "b": b}) == {}
    assert comparisons.welch("a", {"a": [1.0, 1.0], "b": [2.0, 2.0]}) == {}


@pytest.mark.parametrize("sizes", [(2, 2), (3, 5), (10, 4)])
@pytest.mark.parametrize("level", [0.95, 0.999])
def test_of_two_groups_dunnett_and_tukey_are_students(sizes, level):
    groups = {"a": np.arange(float(sizes[0])), "b": 7.0 + np.arange(float(sizes[1])) ** 2}
    student = stats.ttest_ind(groups["b"], groups["a"]).confidence_interval(level)
    for compare in (comparisons.dunnett, comparisons.tukey):
        found = compare("a", groups, level)["b"]
        np.testing.assert_allclose([found.low, found.high], [student.low, student.high], rtol=1e-6)


@pytest.mark.parametrize("sizes", [(4, 4, 4), (2, 3, 5, 8)])
def test_intervals_are_those_of_scipy(sizes):
    """SciPy draws Dunnett's integral at random, and promises 1 % of the share that may lie outside."""
    groups = {str(k): np.sin(np.arange(n) + 5.0 * k) for k, n in enumerate(sizes)}
    first, *rest = groups.values()
    ours, theirs = comparisons.dunnett("0", groups), stats.dunnett(*rest, control=first, rng=np.random.default_rng(0))
    bounds = theirs.confidence_interval()
    np.testing.assert_allclose([one.low for one in ours.values()], bounds.low, atol=0.01)
    pairs = stats.tukey_hsd(*groups.values()).confidence_interval()
    ours = comparisons.tukey("0", groups)
    np.testing.assert_allclose([one.low for one in ours.values()], pairs.low[1:, 0], rtol=1e-9)
    np.testing.assert_allclose([one.high for one in ours.values()], pairs.high[1:, 0], rtol=1e-9)


@pytest.mark.parametrize("compare", [comparisons.dunnett, comparisons.tukey])
def test_intervals_hold_together(compare):
    """Of groups that do not differ, all intervals hold 0 in 95 % of the draws, or more where all pairs are covered."""
    chance, missed = np.random.default_rng(0), 0
    for _ in range(2000):
        groups = {str(k): chance.normal(size=3) for k in range(5)}
        missed += any(e.low > 0 or e.high < 0 for e in compare("0", groups).values())
    most, least = stats.binom.ppf([0.999, 0.001], 2000, 0.05)
    assert missed <= most
    assert compare is comparisons.tukey or missed >= least


def test_variances_are_compared_as_the_f_test_does():
    """F(2, 2) has its 97.5 % at 39; of one group against itself the interval is symmetric about 0."""
    same = comparisons.log_variance_ratio([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose([same.low, same.value, same.high], [-np.log(39.0), 0.0, np.log(39.0)], atol=1e-9)
    assert np.isnan(comparisons.log_variance_ratio([1.0, 1.0], [1.0, 2.0]).value)
    assert np.isnan(comparisons.log_variance_ratio([1.0], [1.0, 2.0]).value)
