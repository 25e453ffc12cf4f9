"""The area under the curve against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.switching.areas import area_under_curve

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
    found = [area_under_curve(values, chance.permutation(np.arange(400) < 150)) for _ in range(200)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.01)


def test_one_kind_of_case_has_no_area():
    assert np.isnan(area_under_curve([1.0, 2.0], [True, True]))
