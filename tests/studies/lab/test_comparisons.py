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


@pytest.mark.parametrize(("sizes", "control"), [((3, 3, 3), 6), ((3, 5, 4, 8), 3), ((10,) * 10, 20)])
def test_dunnett_is_scipys_where_that_converges(sizes, control):
    chance = np.random.default_rng(1)
    samples = [chance.normal(size=size).tolist() for size in (*sizes, control)]
    groups = {str(i): values for i, values in enumerate(samples[:-1])} | {"control": samples[-1]}
    bounds = stats.dunnett(*samples[:-1], control=samples[-1], rng=chance).confidence_interval(0.95)
    ours = comparisons.dunnett("control", groups)
    for i, (low, high) in enumerate(zip(bounds.low, bounds.high, strict=True)):
        assert (ours[str(i)].low, ours[str(i)].high) == pytest.approx((low, high), abs=0.02 * (high - low))


def test_with_one_group_dunnett_is_student():
    half = comparisons.dunnett_allowance((4,), 6, 0.95)
    assert half == pytest.approx(stats.t.ppf(0.975, 8) * np.sqrt(1 / 4 + 1 / 6), rel=1e-6)


@pytest.mark.parametrize("level", [0.95, 0.975, 0.9875])
@pytest.mark.parametrize("control", [3, 5, 6])
def test_intervals_that_hold_together_do_so(level, control):
    """A simulation: of normal samples without differences, the share that no interval leaves out."""
    chance, sizes = np.random.default_rng(2), (3, 5, 3)
    half = comparisons.dunnett_allowance(sizes, control, level)
    samples = [chance.normal(size=(4000, size)) for size in (*sizes, control)]
    freedom = sum(sizes) + control - 4
    pooled = np.sqrt(sum(x.var(1, ddof=1) * (x.shape[1] - 1) for x in samples) / freedom)
    far = [abs(x.mean(1) - samples[-1].mean(1)) > width * pooled for x, width in zip(samples[:-1], half, strict=True)]
    alarms = int(np.any(far, axis=0).sum())
    assert stats.binom.cdf(alarms, 4000, 1 - level) == pytest.approx(0.5, abs=0.4995)
