"""Blocks in three readings, by label and at other inputs: what was put in is found again."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netbridge as nb
from netbridge.spectrum.survey import ROW
from studies.block_stiffness import blocks, measures
from studies.block_stiffness.evidence import ENDS, Order
from studies.lab.stiffness import prepare
from studies.lab.verdicts import (
    NOT_RUN,
    SUPPORTED,
)
from tests.studies.block_stiffness.made_up import component, row


@given(st.integers(0, 1000), st.tuples(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0.1, 3)))
@settings(deadline=None)
def test_shares_add_up_and_follow_what_was_put_in(seed, spreads):
    random = np.random.default_rng(seed)
    of_blocks, of_labels, noise = spreads
    values = (
        of_blocks * random.standard_normal((3, 1, 1)) + of_labels * random.standard_normal((1, 10, 1))
        + noise * random.standard_normal((3, 10, 6))
    )  # fmt: skip
    shares = blocks.squares(values)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()
    no_labels = blocks.squares(np.broadcast_to(values.mean((1, 2), keepdims=True), values.shape))
    assert no_labels == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=1e-12)


def test_a_component_by_hand():
    """Two groups of two: means 1 and 3, so 4 between them and 2 within; (4 - 2) / (4 + 2) of the variance is theirs."""
    found = blocks.component("b", "slices", "negative", np.array([0.0, 2.0, 2.0, 4.0]), np.array([0, 0, 1, 1]))
    share = found.share()
    assert found.f == pytest.approx(2.0)
    assert share.value == pytest.approx((4.0 - 2.0) / (4.0 + 2.0))
    assert share.low < share.value < share.high
    assert found.p == pytest.approx(0.2929, abs=1e-4)  # F with 1 and 2 degrees of freedom


def component_of(values):
    """Of a table (label, image)."""
    labels = np.repeat(np.arange(len(values)), values.shape[1])
    return blocks.component("b", "residual", "max_re", values.ravel(), labels)


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


def test_labels_are_judged_in_the_reading_with_the_most_images():
    found = blocks.judge_labels([component(300.0, 100), component(1.0, 3400, "residual")], [{"p, Holm": 0.01}])
    assert found.verdict == SUPPORTED
    assert "1 cases (residual, 3400 images)" in found.words
    assert "alike in 1 of 1 cases" in found.words
    assert blocks.judge_labels([component(1.0, measure="max_re")], []).verdict == NOT_RUN


def test_labels_that_all_networks_order_alike_are_found():
    random = np.random.default_rng(0)
    alike = {"max_re_by_label": list(np.arange(10.0)), "min_re_by_label": list(random.standard_normal(10))}
    rows = [row(name, 9, 2, **(alike | {"min_re_by_label": list(random.standard_normal(10))})) for name in "abcdef"]
    found = {one["measure"]: one for one in blocks.label_orders(rows)}
    assert found["max_re"]["Spearman of two networks, mean"] == pytest.approx(1.0)
    assert found["max_re"]["p, Holm"] < 0.001
    assert found["min_re"]["p, Holm"] > 0.05
    assert "spectral_radius" not in found
    assert blocks.label_orders([row(), row("b")]) == []


def test_what_keeps_its_order_is_counted_and_what_does_not_is_named():
    found = [Order(name, "max_re", r, 7) for name, r in (("a", 0.99), ("noise", 0.6), ("c", 0.98), ("d", math.nan))]
    words = blocks.judge_inputs(found).words
    assert words.startswith("3 rank correlations of block means (n = 7)")
    assert "noise, max_re +0.60" in words
    assert "the other 2 at least +0.98." in words


def test_blocks_keep_their_order_at_the_images_that_they_are_compared_with(net, digits):
    inner = measures.inner_blocks(net, 2)[:3]
    rows = blocks.input_rows(blocks.other_inputs(net, digits, inner, 2, {"workers": 1}))
    assert [row["input"] for row in rows] == ["test images", "training images", "noise", "FGSM, 8/255"]
    assert all(rows[0][f"order of {measure}"] == pytest.approx(1.0) for measure in ENDS)
    assert len({row["max Re, mean"] for row in rows}) == 4


def test_the_step_map_has_one_more_than_the_branch(net, digits):
    name = measures.inner_blocks(net, 2)[0]
    images = prepare(net, digits, digits.test_images[:3])
    table = nb.block_survey(net, images, ("residual", "block"), [name])
    found = measures.Measured("a", (name,), table, np.zeros(3), np.zeros(3), np.zeros(3, bool), np.zeros(1))
    branch, shifted, whole = (
        next(row for row in blocks.reading_rows(found) if row["reading"] == one)
        for one in ("branch", "step map", "whole block")
    )
    assert shifted["min Re, lowest"] == pytest.approx(1 + branch["min Re, lowest"])
    assert shifted["max Re, highest"] == pytest.approx(1 + branch["max Re, highest"])
    assert whole["S defined, % of images"] == 0.0  # dead outputs are exact zeros


def test_a_run_reproduces_a_record_within_the_intervals_of_its_images():
    """Twelve images of two blocks: a record of the same means is reproduced, one that is off by a deviation is not."""
    random = np.random.default_rng(0)
    table = np.zeros(24, ROW)
    table["image"], table["kind"] = np.tile(np.arange(12), 2), "residual"
    table["block"] = np.repeat(["stages.0.blocks.0", "stages.2.blocks.1"], 12)
    for name in ("negative", "max_re", "min_re"):
        table[name] = random.standard_normal(24)
    found = measures.Measured("it", ("stages.0.blocks.0", "stages.2.blocks.1"), table, *[np.zeros(12)] * 4)
    kept = [
        {"block": number, "reading": "branch", "negative, %": 100 * own["negative"].mean() + off}
        | {"max Re": own["max_re"].mean() + off, "min Re": math.nan}
        for number, (own, off) in enumerate(((table[:12], 0.0), (table[12:], 200.0)), 1)
    ]
    rows = blocks.reproduction_rows(found, kept)
    assert [(row["block"], row["mean of"], row["reproduced"]) for row in rows] == [
        (1, "negative, %", "yes"), (1, "max Re", "yes"), (2, "negative, %", "no"), (2, "max Re", "no"),
    ]  # fmt: skip
    assert blocks.reproduction_rows(found, []) == []
