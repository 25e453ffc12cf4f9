"""Verdicts on made-up numbers: every rule can say yes, no, and that it cannot tell."""

import dataclasses

import numpy as np
import pytest

from studies.block_stiffness import findings
from studies.block_stiffness.analysis import Component, Relation, Share
from studies.block_stiffness.ode_nets import Fit
from studies.lab.statistics import CONTRADICTED, PARTLY, SUPPORTED, UNDECIDED, Estimate


@pytest.mark.parametrize(
    ("agreeing", "pearson", "verdict"), [(24, 0.95, SUPPORTED), (24, 0.5, UNDECIDED), (3, 0.95, CONTRADICTED)]
)
def test_printed_numbers(agreeing, pearson, verdict):
    assert findings.printed_numbers(agreeing, 24, pearson, pearson).verdict == verdict


@pytest.mark.parametrize(
    ("branch", "whole", "verdict"),
    [
        ((0.9, 0.01), (0.8, 0.02), SUPPORTED),
        ((-0.9, 0.01), (-0.1, 0.7), CONTRADICTED),
        ((0.9, 0.01), (-0.8, 0.02), PARTLY),
        ((0.2, 0.6), (0.1, 0.8), UNDECIDED),
    ],
)
def test_late_blocks(branch, whole, verdict):
    assert findings.late_blocks({"residual": branch, "block": whole}, (0.9, 0.001), {}, 7).verdict == verdict


def component(low, high):
    return Component("b1", "residual", "max_re", Estimate((low + high) / 2, low, high), 1.2, 0.3, 60, 0.9)


@pytest.mark.parametrize(
    ("components", "verdict"),
    [
        ([component(-0.1, 0.02)], SUPPORTED),
        ([component(0.1, 0.2)], PARTLY),
        ([component(0.1, 0.2), component(-0.1, 0.02)], PARTLY),
        ([], UNDECIDED),
    ],
)
def test_block_or_label(components, verdict):
    whole = Estimate(0.9, 0.8, 0.95)
    found = findings.block_or_label([Share("max_re", "residual", whole, whole, whole, whole)], components, [])
    assert found.verdict == verdict
    across = findings.block_or_label([], components, [{"p, Holm": 0.01}, {"p, Holm": 0.5}])
    assert "alike in 1 of 2 cases" in across.words


def relation(r, holm, measure="negative", block="b1"):
    return Relation(block, "residual", measure, "loss", Estimate(r, r - 0.1, r + 0.1), holm / 10, 60, holm)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([relation(0.5, 0.001), relation(-0.4, 0.4)], SUPPORTED),
        ([relation(-0.5, 0.001)], CONTRADICTED),
        ([relation(0.5, 0.001), relation(-0.5, 0.001)], PARTLY),
        ([relation(0.5, 0.2)], UNDECIDED),
        ([], UNDECIDED),
    ],
)
def test_correlates(found, verdict):
    assert findings.correlates("loss", "Table 1", {"negative": 1}, found).verdict == verdict


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ([(0.05, 0.2), (0.1, 0.3)], SUPPORTED),
        ([(0.0, 0.0), (0.0, 0.0)], CONTRADICTED),
        ([(0.1, 0.3), (0.0, 0.0)], PARTLY),
        ([(-0.1, 0.3), (0.0, 0.0)], UNDECIDED),
    ],
)
def test_anything_stiff(shares, verdict):
    known = {name: Estimate(sum(ends) / 2, *ends) for name, ends in zip("ab", shares, strict=True)}
    assert findings.anything_stiff({"a": -2.5, "b": -1.0}, known).verdict == verdict


@pytest.mark.parametrize(("apart", "verdict"), [(0.02, SUPPORTED), (0.3, UNDECIDED), (0.8, CONTRADICTED)])
def test_same_as_ode_net(apart, verdict):
    fit = Fit(0, 0.7, 0.71, apart, 0.03, 0.03, 50, ((0.3, 0.01), (3.0, 4.0)))
    assert findings.same_as_ode_net([fit]).verdict == verdict
    rows = [
        {"trained by": "Euler", "run by": run, "accuracy, %": accuracy}
        for run, accuracy in (("Euler", 90.0), ("x", 12.0))
    ]
    assert "trained by Euler 90 % as they were trained and 12 % under" in findings.same_as_ode_net([fit], rows).words
    assert findings.same_as_ode_net([]).verdict == UNDECIDED


@pytest.mark.parametrize(
    ("halves", "verdict"),
    [
        ({"a": 0.95, "b": 1.0}, SUPPORTED),
        ({"a": 0.95, "b": 0.6}, PARTLY),
        ({"a": 0.2}, CONTRADICTED),
        ({"a": float("nan")}, UNDECIDED),
    ],
)
def test_generalises(halves, verdict):
    assert findings.generalises(halves, 7).verdict == verdict


def test_what_keeps_its_order_is_counted_and_what_does_not_is_named():
    words = findings.generalises({"a": 0.95, "noise, max Re": 0.6, "c": 0.93, "d": float("nan")}, 7).words
    assert words.startswith("3 rank correlations of block means (n = 7)")
    assert "noise, max Re +0.60; the other 2 at least +0.93." in words


def test_predicts_error():
    index = [relation(0.6, 0.001, "stiffness_index", f"b{i}") for i in range(3)]
    assert findings.predicts_error(index, {"nsi": (0.5, 0.1)}, {}).verdict == SUPPORTED
    other = [relation(0.6, 0.001, "max_re", "b1"), relation(0.1, 0.9, "stiffness_index", "b1")]
    assert findings.predicts_error(other, {}, {}).verdict == CONTRADICTED
    assert findings.predicts_error([], {}, {}).verdict == UNDECIDED
    for across, whole, half in (
        (Estimate(-0.7, -0.8, -0.6), SUPPORTED, PARTLY),
        (Estimate(-0.1, -0.3, 0.1), PARTLY, CONTRADICTED),
        (Estimate(-0.7, np.nan, np.nan), SUPPORTED, CONTRADICTED),  # of one network
    ):
        known = {"stiffness_index": across}
        assert (
            findings.predicts_error(index, {}, known).verdict,
            findings.predicts_error(other, {}, known).verdict,
        ) == (
            whole,
            half,
        )


def test_measures_are_called_as_in_the_figures():
    found = findings.Finding(
        "a", "b", PARTLY, "stiffness_index (residual): nsi in 2, si in 1, alive in 0; negative, stiff"
    )
    words = findings.in_words(found).words
    assert words == "index S (branch): NSI in 2, SI in 1, live outputs in 0; negative, stiff"
    named = dataclasses.replace(found, words="max_re of stages.0.blocks.1, stages.0.blocks.12, basic sides")
    assert findings.in_words(named).words == "max Re of stages.0.blocks.1, stages.0.blocks.12, basic sides"
    blocks = [f"stages.0.blocks.{number}" for number in range(13)]
    assert findings.in_words(named, blocks).words == "max Re of block 2, block 13, basic sides"
