"""Statistics of the block study: known components are found again, corrections are Holm's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from studies.block_stiffness import analysis

chances = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


def test_holm_by_hand():
    assert analysis.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(chances)
@settings(deadline=None)
def test_holm_never_lowers_a_chance_and_keeps_the_order(values):
    corrected = analysis.holm(values)
    assert all(after >= before for before, after in zip(values, corrected, strict=True))
    assert all(after <= 1.0 for after in corrected)
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


@given(st.integers(0, 1000), st.tuples(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0.1, 3)))
@settings(deadline=None)
def test_shares_add_up_and_follow_what_was_put_in(seed, spreads):
    random = np.random.default_rng(seed)
    blocks, labels, noise = spreads
    values = (
        blocks * random.standard_normal((3, 1, 1)) + labels * random.standard_normal((1, 10, 1))
        + noise * random.standard_normal((3, 10, 6))
    )  # fmt: skip
    shares = analysis.squares(values)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()
    no_labels = analysis.squares(np.broadcast_to(values.mean((1, 2), keepdims=True), values.shape))
    assert no_labels == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=1e-12)


def test_a_component_by_hand():
    """Two groups of two: means 1 and 3, so 4 between them and 2 within; (4 - 2) / (4 + 2) of the variance is theirs."""
    found = analysis.component("b", "slices", "negative", np.array([0.0, 2.0, 2.0, 4.0]), np.array([0, 0, 1, 1]))
    share = found.share()
    assert found.f == pytest.approx(2.0)
    assert share.value == pytest.approx((4.0 - 2.0) / (4.0 + 2.0))
    assert share.low < share.value < share.high
    assert found.p == pytest.approx(0.2929, abs=1e-4)  # F with 1 and 2 degrees of freedom


def component_of(values):
    """Of a table (label, image)."""
    labels = np.repeat(np.arange(len(values)), values.shape[1])
    return analysis.component("b", "residual", "max_re", values.ravel(), labels)


@pytest.mark.parametrize("known", [0.0, 0.1, 0.4])
def test_intervals_of_components_cover_what_was_put_in(known):
    """In 400 draws of ten labels and six images each, 95 % of the intervals hold the share; their middle is near it."""
    random = np.random.default_rng(0)
    spread, noise = np.sqrt(known), np.sqrt(1.0 - known)
    found = []
    for _ in range(400):
        values = spread * random.standard_normal((10, 1)) + noise * random.standard_normal((10, 6))
        found.append(component_of(values).share())
    assert np.mean([one.low <= known <= one.high for one in found]) == pytest.approx(0.95, abs=0.03)
    assert np.median([one.value for one in found]) == pytest.approx(known, abs=0.04)


def test_labels_that_are_shuffled_have_any_chance():
    """Where labels are drawn anew the p-values are spread evenly: a tenth of them lies in each tenth of [0, 1]."""
    random = np.random.default_rng(1)
    values = random.standard_normal(60) + np.repeat(np.arange(10), 6)
    chances = [component_of(random.permutation(values).reshape(10, 6)).p for _ in range(1000)]
    counts = np.histogram(chances, np.linspace(0, 1, 11))[0]
    assert np.abs(counts - 100).max() < 40  # four standard deviations
    assert component_of(values.reshape(10, 6)).p < 1e-6


def test_a_relation_needs_eight_images_and_something_that_varies():
    x = np.arange(10.0)
    assert analysis.relation("b", "residual", "max_re", "loss", x[:7], x[:7]) is None
    assert analysis.relation("b", "residual", "max_re", "loss", x, np.ones(10)) is None
    found = analysis.relation("b", "residual", "max_re", "loss", x, -x)
    assert found.r == pytest.approx(-1.0)
    assert found.n == 10


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_what_comes_from_something_held_is_gone(seed):
    """Two measures that only follow a third are related, and not beside the third."""
    random = np.random.default_rng(seed)
    third = random.standard_normal(200)
    x, y = (third + 0.1 * random.standard_normal(200) for _ in range(2))
    held = np.column_stack([np.ones(200), np.argsort(np.argsort(third))])
    plain = analysis.relation("b", "residual", "max_re", "loss", x, y)
    beside = analysis.partial_correlation("b", "residual", "max_re", "loss", x, y, held)
    assert plain.r > 0.9
    assert abs(beside.r) < 0.35
    interval = beside.estimate()
    assert interval.low < interval.value < interval.high


def test_nothing_held_but_the_mean_is_the_plain_correlation():
    random = np.random.default_rng(1)
    x = random.standard_normal(50)
    y = x + random.standard_normal(50)
    plain = analysis.relation("b", "residual", "max_re", "loss", x, y)
    held = analysis.partial_correlation("b", "residual", "max_re", "loss", x, y, np.ones((50, 1)))
    assert (held.r, held.n, held.held) == (pytest.approx(plain.r), plain.n, plain.held)
    assert plain.p == pytest.approx(stats.spearmanr(x, y).pvalue, rel=1e-6)


def test_within_labels_a_difference_of_labels_says_nothing():
    labels = np.repeat(np.arange(4), 10)
    held = (labels[:, None] == np.unique(labels)).astype(float)
    random = np.random.default_rng(0)
    x, y = (10.0 * labels + random.standard_normal(40) for _ in range(2))
    assert analysis.relation("b", "residual", "max_re", "loss", x, y).r > 0.9
    assert abs(analysis.partial_correlation("b", "residual", "max_re", "loss", x, y, held).r) < 0.4
    assert analysis.partial_correlation("b", "residual", "max_re", "loss", x, labels.astype(float), held) is None


@given(st.floats(-0.95, 0.95), st.integers(6, 500), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_the_mean_of_correlations_that_say_the_same_is_as_wide_as_one(r, n, count):
    one, several = (analysis.correlation_interval(some, n) for some in (r, [r] * count))
    assert (one.value, one.low, one.high) == pytest.approx((several.value, several.low, several.high))
    assert one.low < r < one.high
    other = analysis.correlation_interval(-r, n)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert analysis.correlation_interval(r, n, 0.99).high > one.high > analysis.correlation_interval(r, 4 * n).high


def test_intervals_of_rank_correlations_cover_what_was_put_in():
    """Of 1,000 samples of 7 and of 60 pairs without a relation, the 95 % intervals leave out 0 in 5 % or fewer."""
    random = np.random.default_rng(0)
    for n in (7, 60):
        found = [stats.spearmanr(*random.standard_normal((2, n))).statistic for _ in range(1000)]
        missed = [not (e.low <= 0.0 <= e.high) for e in (analysis.correlation_interval(r, n) for r in found)]
        assert sum(missed) <= stats.binom.ppf(0.999, 1000, 0.05)


def test_too_few_units_have_no_interval():
    found = analysis.correlation_interval(0.9, 4)
    assert found.value == pytest.approx(0.9)
    assert np.isnan(found.low)
    assert np.isnan(analysis.correlation_interval([0.5, np.nan], 50).low)
