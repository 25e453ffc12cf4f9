"""Comparisons of groups of seeds, against formulas written out."""

import numpy as np
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
