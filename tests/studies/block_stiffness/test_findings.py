"""Verdicts on made-up numbers: every rule can say yes, no, and that it cannot tell."""

import dataclasses
import math

import numpy as np
import pytest

from studies.block_stiffness.analysis import Component, Relation
from studies.block_stiffness.findings import answers, blocks, equivalence, evidence, in_words, judge_all, printed
from studies.block_stiffness.findings.evidence import Evidence, Order
from studies.block_stiffness.ode_nets import Fit
from studies.lab.verdicts import (
    BY_READING,
    CONTRADICTED,
    FALSE_OF_SOME,
    NO_DIFFERENCE,
    NOT_RUN,
    SPLIT,
    SUPPORTED,
    TRUE_OF_SOME,
    UNDECIDED,
    Finding,
)


def made_up_print(**changed):
    (found,) = printed.worlds_of_the_print(np.random.default_rng(1), 1.0, 24)
    return dataclasses.replace(found, **changed)


def test_slices_that_beat_both_rivals_in_level_order_and_s_are_what_was_printed():
    assert printed.judge_print(made_up_print()).verdict == SUPPORTED


def test_slices_of_other_counts_are_not_what_was_printed():
    assert printed.judge_print(made_up_print(counts=(3, 24))).verdict == CONTRADICTED
    assert printed.judge_print(made_up_print(counts=(20, 24))).verdict == UNDECIDED


@pytest.mark.parametrize("rival", ["block", "residual"])
def test_a_rival_that_is_as_near_to_the_print_leaves_the_claim_open(rival):
    """The null that would have seen the fault: the percentages follow the print, and those of another reading too."""
    found = made_up_print()
    ours = found.ours | {rival: np.where(found.square, found.ours["slices"], np.nan)}
    noise = np.exp(0.05 * np.random.default_rng(0).standard_normal(24))
    ours[rival] = ours[rival] * noise
    assert printed.judge_print(dataclasses.replace(found, ours=ours)).verdict == UNDECIDED


def test_the_order_alone_does_not_make_slices_of_the_print():
    """Percentages that rise with the printed ones, at a level that has nothing to do with them, or without S."""
    found = made_up_print()
    far = found.ours | {"slices": 80.0 + 0.1 * found.ours["slices"]}
    assert printed.judge_print(dataclasses.replace(found, ours=far)).verdict == CONTRADICTED
    flat = -np.exp(0.1 * np.random.default_rng(3).standard_normal(24))
    assert printed.judge_print(dataclasses.replace(found, slices=flat)).verdict == UNDECIDED


def networks(s, percent, lowest=-1.0, count=6, spread=0.1, seed=0):
    """Networks of four blocks, two a stage, with these changes of S and of the percentage per block."""
    random = np.random.default_rng(seed)
    place = np.arange(4)
    columns = {
        "stiffness_index": -3.0 + s * place, "negative": 0.1 + percent * place, "min_re": np.full(4, lowest),
    }  # fmt: skip
    noisy = {
        name: values + spread * np.abs(values).max() * random.standard_normal((count, 4))
        for name, values in columns.items()
    }
    return blocks.made_up_networks(noisy, (0, 0, 1, 1))


@pytest.mark.parametrize(
    ("s", "percent", "verdict"),
    [(-3.0, 0.2, SUPPORTED), (3.0, -0.2, CONTRADICTED), (-3.0, -0.2, SPLIT), (0.0, 0.0, UNDECIDED)],
)
def test_late_blocks(s, percent, verdict):
    """By the paper's two measures: S that falls and percentages that rise make a block stiffer."""
    rows = networks(s, percent)
    assert blocks.judge_depth(rows, (0.9, 0.001)).verdict == verdict
    few = blocks.judge_depth(rows[:8], None)
    assert few.verdict == UNDECIDED
    assert few.words.startswith("n = 2 networks of shipped networks")


def test_what_decays_more_slowly_has_a_larger_s_and_is_told():
    words = blocks.judge_depth(networks(-3.0, 0.2), None).words
    assert "min_re itself changes by" in words
    assert "The slices' percentage" not in words


@pytest.mark.parametrize(("lowest", "verdict"), [(-2.5, SUPPORTED), (-1.5, CONTRADICTED), (-1.96, UNDECIDED)])
def test_anything_stiff(lowest, verdict):
    rows = networks(0.0, 0.0, lowest, spread=0.02)
    assert blocks.judge_stiff(rows).verdict == verdict
    assert blocks.judge_stiff(rows[:4]).verdict == UNDECIDED
    assert blocks.judge_stiff([]).verdict == NOT_RUN


def component(f, n=3400, reading="slices", measure="negative", block=1):
    return Component(f"stages.0.blocks.{block}", reading, measure, f, 10, n)


@pytest.mark.parametrize(
    ("fs", "n", "verdict"),
    [
        ((1.0, 1.0), 3400, SUPPORTED), ((300.0, 300.0), 3400, CONTRADICTED), ((300.0, 1.0), 3400, SPLIT),
        ((1.0, 15.0), 3400, TRUE_OF_SOME), ((15.0, 300.0), 3400, FALSE_OF_SOME), ((1.0, 1.0), 20, UNDECIDED),
        ((1.0, 2.0), 100, UNDECIDED), ((), 0, NOT_RUN),
    ],
)  # fmt: skip
def test_labels(fs, n, verdict):
    """The last but one is the fault that was: 0 of 54 cases below 5 % and 0 above 0 was "true of some"."""
    found = blocks.judge_labels([component(f, n, block=k) for k, f in enumerate(fs)], [])
    assert found.verdict == verdict


def test_labels_are_judged_in_the_reading_with_the_most_images():
    found = blocks.judge_labels([component(300.0, 100), component(1.0, 3400, "residual")], [{"p, Holm": 0.01}])
    assert found.verdict == SUPPORTED
    assert "1 cases (residual, 3400 images)" in found.words
    assert "alike in 1 of 1 cases" in found.words
    assert blocks.judge_labels([component(1.0, measure="max_re")], []).verdict == NOT_RUN


def relation(r, measure="negative", target="loss", n=3400, block="stages.2.blocks.1", reading="slices"):
    return Relation(block, reading, measure, target, r, n)


@pytest.mark.parametrize(
    ("s", "percent", "n", "verdict"),
    [
        (-0.2, 0.3, 3400, SUPPORTED), (0.2, -0.3, 3400, CONTRADICTED), (0.2, 0.3, 3400, SPLIT),
        (0.0, 0.3, 3400, SPLIT), (-0.03, 0.3, 3400, TRUE_OF_SOME), (0.0, 0.0, 3400, NO_DIFFERENCE),
        (0.01, -0.02, 100, UNDECIDED), (0.0, 0.3, 100, TRUE_OF_SOME),
    ],
)  # fmt: skip
def test_loss(s, percent, n, verdict):
    """That 100 images see nothing is no "no": 3,400 that see nothing beyond 0.06 are."""
    found = [relation(s, "stiffness_index", n=n), relation(percent, n=n)]
    assert answers.RULES["loss"](found, answers.LOSS).verdict == verdict


def test_correlations_are_means_over_the_last_stage_in_the_reading_with_the_most_images():
    early = relation(0.9, block="stages.0.blocks.1")
    others = [relation(r, block=f"stages.2.blocks.{k}") for k, r in enumerate((0.3, -0.3))]
    assert answers.RULES["loss"]([early, *others], answers.LOSS).verdict == NO_DIFFERENCE
    branch = [relation(0.5, n=100, reading="residual")]
    assert answers.RULES["loss"]([early, *others, *branch], answers.LOSS).verdict == NO_DIFFERENCE
    few = [dataclasses.replace(one, n=20) for one in others]
    assert answers.RULES["loss"]([*few, *branch], answers.LOSS).verdict == SUPPORTED
    assert answers.RULES["accuracy"]([], answers.CLAIMED).verdict == NOT_RUN


def test_the_papers_own_late_correlations_are_true_of_one_measure_and_false_of_the_other():
    """Table 1, blocks 6 to 8: percentages fall with accuracy as its words say, S does the opposite."""
    own = [
        relation(r, measure, "accuracy", block=f"stages.2.blocks.{k}")
        for k, (s, percent) in enumerate(((-0.09, -0.38), (-0.03, -0.18), (-0.23, -0.36)))
        for measure, r in (("stiffness_index", s), ("negative", percent))
    ]
    assert answers.RULES["accuracy"](own, answers.CLAIMED).verdict == SPLIT


def test_attackers_have_several_targets():
    found = [relation(0.4, target=target, reading="residual", n=400) for target in ("flips at 1/255", "growth")]
    judged = answers.RULES["flips"](found, answers.TURNED)
    assert judged.verdict == SUPPORTED
    assert "the percentage with growth" in judged.words
    assert "say the stiffer, the better" not in judged.words


def fits(lengths, seeds=5):
    factors = np.exp(0.1 * np.random.default_rng(0).standard_normal(seeds))
    scales = ((0.3, 0.01), (3.0, 4.0))
    return [
        Fit(rounds, seed, 0.7, 0.7, apart * float(factors[seed]), 0.0, 0.0, 50, scales)
        for rounds, apart in lengths.items()
        for seed in range(seeds)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lengths", "verdict"),
    [
        ({5: 0.03, 300: 0.02}, SUPPORTED),
        ({5: 0.7, 300: 0.8}, CONTRADICTED),
        ({5: 0.03, 300: 0.1, 1500: 0.7}, BY_READING),
        ({5: 0.1, 300: 0.1}, UNDECIDED),
        ({5: 0.03}, UNDECIDED),
        ({}, NOT_RUN),
    ],
)
def test_same_as_ode_net(lengths, verdict):
    """Five rounds alone were "supported", 1,500 alone "contradicted": a verdict on the optimisation."""
    assert equivalence.judge_fits(fits(lengths), ()).verdict == verdict


def test_few_seeds_say_nothing_of_ode_nets_and_networks_on_the_digits_are_told():
    rows = [
        {"trained by": "Euler", "run by": run, "accuracy, %": accuracy}
        for run, accuracy in (("Euler", 90.0), ("x", 12.0))
    ]
    found = equivalence.judge_fits(fits({5: 0.03, 300: 0.02}, seeds=2), rows)
    assert found.verdict == UNDECIDED
    assert "trained by Euler 90 % as they were trained and 12 % under" in found.words


@pytest.mark.parametrize(
    ("orders", "verdict"),
    [
        ((0.99, 1.0), SUPPORTED),
        ((0.99, 0.6), TRUE_OF_SOME),
        ((0.6, 0.7), UNDECIDED),
        ((-0.99, -1.0), CONTRADICTED),
        ((0.99, -0.99), SPLIT),
        ((math.nan,), NOT_RUN),
    ],
)
def test_generalises(orders, verdict):
    """Seven blocks with a correlation of 0.7 were "true of some" by a threshold on the number alone."""
    found = [Order(f"input {k}", "max_re", r, 7) for k, r in enumerate(orders)]
    assert blocks.judge_inputs(found).verdict == verdict


def test_what_keeps_its_order_is_counted_and_what_does_not_is_named():
    found = [Order(name, "max_re", r, 7) for name, r in (("a", 0.99), ("noise", 0.6), ("c", 0.98), ("d", math.nan))]
    words = blocks.judge_inputs(found).words
    assert words.startswith("3 rank correlations of block means (n = 7)")
    assert "noise, max_re +0.60" in words
    assert "the other 2 at least +0.98." in words


def shape(s, error):
    """Networks of seven blocks with these profiles."""
    return blocks.made_up_networks({"stiffness_index": np.asarray(s), "step_error": np.asarray(error)})


def test_an_order_of_blocks_that_all_networks_share_is_one_of_seven_blocks():
    """Any two profiles over seven blocks had an interval that left out 0, because 23 networks repeat them."""
    random = np.random.default_rng(0)
    decided = 0
    for _ in range(60):
        profiles = random.standard_normal((2, 7))
        rows = shape(*(profile + 0.01 * random.standard_normal((23, 7)) for profile in profiles))
        decided += answers.judge_errors(rows, ()).verdict.claims_effect
    assert decided <= 8  # the 99.9 % quantile of 60 at 5 %


def test_errors_between_blocks_networks_and_images():
    random = np.random.default_rng(0)
    profile, own = np.arange(7.0), random.standard_normal((23, 7))
    alike = shape(-profile - 0.1 * own, profile + 0.1 * own)
    images = [
        Relation(f"stages.2.blocks.{k}", "residual", "stiffness_index", "step_error", -0.4, 400) for k in range(3)
    ]
    assert answers.judge_errors(alike, images).verdict == SUPPORTED
    assert answers.judge_errors(alike, [dataclasses.replace(one, r=0.4) for one in images]).verdict == SPLIT
    only_shape = shape(-profile + 0.1 * own, profile + 0.1 * random.standard_normal((23, 7)))
    assert answers.judge_errors(only_shape, ()).verdict == TRUE_OF_SOME
    assert answers.judge_errors((), ()).verdict == NOT_RUN
    reverse = [relation(0.5, "max_re", "step_error", reading="residual")]
    assert answers.judge_errors((), reverse).verdict == NOT_RUN


def test_the_best_evidence_is_that_of_the_most_images_reading_by_reading():
    run = Evidence(
        relations=(relation(0.1, n=20), relation(0.2, n=40, reading="residual")), fits=tuple(fits({5: 0.1}, 2))
    )
    kept = Evidence(
        relations=(relation(0.3, n=100), relation(0.4, n=30, reading="residual")), fits=tuple(fits({1500: 0.7}, 2))
    )
    best = evidence.best_of(run, kept)
    assert {(one.reading, one.n) for one in best.relations} == {("slices", 100), ("residual", 40)}
    assert {(fit.rounds, fit.seed) for fit in best.fits} == {(5, 0), (5, 1), (1500, 0), (1500, 1)}
    assert evidence.best_of(run, Evidence()) == run


def test_evidence_is_found_again_in_a_record():
    found = Evidence(
        relations=(relation(0.3),), components=(component(2.0),), orders=(Order("noise", "max_re", 0.9, 7),),
        fits=tuple(fits({5: 0.1}, 1)),
    )  # fmt: skip
    kept = evidence.of_record(({}, evidence.to_record(found)))
    assert kept == dataclasses.replace(found)
    assert evidence.of_record(None) == Evidence()


def test_without_evidence_nothing_is_claimed():
    assert {finding.verdict for finding in judge_all(Evidence())} <= {NOT_RUN, UNDECIDED}


def test_measures_are_called_as_in_the_figures():
    found = Finding("a", "b", UNDECIDED, "stiffness_index (residual): nsi in 2, si in 1, alive in 0; negative, stiff")
    assert in_words(found).words == "index S (branch): NSI in 2, SI in 1, live outputs in 0; negative, stiff"
    named = dataclasses.replace(found, words="max_re of stages.0.blocks.1, stages.0.blocks.12, basic sides")
    assert in_words(named).words == "max Re of stages.0.blocks.1, stages.0.blocks.12, basic sides"
    names = [f"stages.0.blocks.{number}" for number in range(13)]
    assert in_words(named, names).words == "max Re of block 2, block 13, basic sides"
