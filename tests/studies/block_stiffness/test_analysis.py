"""Statistics of the block study: known components are found again, corrections are Holm's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_a_relation_needs_eight_images_and_something_that_varies():
    x = np.arange(10.0)
    assert analysis.relation("b", "residual", "max_re", "loss", x[:7], x[:7]) is None
    assert analysis.relation("b", "residual", "max_re", "loss", x, np.ones(10)) is None
    found = analysis.relation("b", "residual", "max_re", "loss", x, -x)
    assert found.r.value == pytest.approx(-1.0)
    assert found.n == 10
