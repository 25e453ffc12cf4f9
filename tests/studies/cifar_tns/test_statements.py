"""cifar_tns: what it says follows from the numbers, and is not said of numbers in which nothing is."""

import numpy as np
import pytest

import netbridge as nb
from studies import cifar_tns as study
from studies.lab import networks as _networks
from studies.lab.claims import correlate_gates, judge_few_blocks, share_stiff_blocks
from studies.lab.statistics import choices, estimate, mean_of
from studies.lab.stiffness import KINDS, SCALE, SHAPE, TNS, Measured, set_stiffness
from studies.lab.verdicts import (
    BY_READING,
    CONTRADICTED,
    FALSE_OF_SOME,
    NOT_ASKABLE,
    NOT_RUN,
    OPEN,
    SUPPORTED,
    UNDECIDED,
    Finding,
)


def made(controller, seed, accuracy=90.0, scale=1.0, sign=-1.0, blocks=3, images=80, depth=20):
    """A network as if it had been measured: NSI of three stages, and gates that follow it or go against it."""
    rng = np.random.default_rng(1)  # the same images for all
    nsi = scale * rng.uniform(0.5, 1.5, (images, 3 * blocks)) ** (1.0 + 0.01 * seed)
    names = [f"{stage}.{block}" for stage in range(3) for block in range(blocks)]
    place = (np.repeat(range(3), blocks), np.tile(np.arange(blocks) == 0, 3), names)
    records = {of: nb.Record(nsi, *place, of) for of in KINDS}
    still = np.ones_like(nsi)
    gates = still if controller == "constant" else 0.5 + 0.1 * sign * nsi / scale + 0.003 * seed * rng.normal(size=1)
    subject = _networks.Subject(None, controller, seed, depth, 1000, accuracy, "", controller)
    network = Measured(subject, records, gates, np.ones(images, dtype=bool))
    set_stiffness(network, choices(images, 40, 0))
    return network


def test_networks_without_a_constant_one_are_compared_with_nothing():
    evidence = study.gather([made("SE", seed) for seed in range(3)])
    assert study.judge_accuracy(evidence.accuracies).verdict == NOT_RUN
    assert study.COMPARED[TNS](evidence.compared[TNS]).verdict == NOT_RUN


def test_a_larger_scale_is_not_a_larger_shape():
    """Networks whose branches are three times as large have three times the TNS, and the same shape to the bit."""
    results = [made(name, seed, scale=scale) for name, scale in (("constant", 1.0), ("SE", 2.0)) for seed in range(3)]
    evidence = study.gather(results)
    assert study.COMPARED[TNS](evidence.compared[TNS]).verdict == SUPPORTED
    assert study.COMPARED[SCALE](evidence.compared[SCALE]).verdict == SUPPORTED
    assert {e.value for one in evidence.compared[SHAPE].values() for e in one.beyond.values()} == {0.0}
    assert study.COMPARED[SHAPE](evidence.compared[SHAPE]).verdict in OPEN


def test_constant_steps_are_compared_depth_by_depth():
    results = [made(name, seed, depth=depth) for depth in (20, 56) for name in ("constant", "SE") for seed in range(3)]
    for one in results:
        one.subject.name = f"{one.subject.controller}, {one.subject.depth}"
    assert set(study.gather(results).accuracies.beyond) == {"SE, 20", "SE, 56"}


def test_of_two_counted_blocks_nothing_is_claimed():
    finding = judge_few_blocks(share_stiff_blocks([made("constant", seed) for seed in range(4)]))
    assert finding.verdict == NOT_ASKABLE
    assert "2 counted blocks" in finding.words


def test_a_step_size_that_stands_still_is_not_counted():
    """A movement in the sixth digit gave correlations "beyond chance"."""
    results = [made("SE", seed) for seed in range(3)]
    for one in results:
        one.gates[:] = 0.2689 + 1e-6 * one.gates
    found = correlate_gates(results)
    assert found.still == found.cells == 18
    assert study.EXAMPLE(found).verdict == NOT_ASKABLE


def test_untrained_networks_support_nothing():
    """Nine networks that differ in their seeds alone, of three controllers in name."""
    chance = np.random.default_rng(0)
    results = []
    for name in ("constant", "SE", "StepNet"):
        for seed in range(3):
            one = made(name, seed, accuracy=10.0 + chance.normal(), scale=1.0 + 0.05 * chance.normal(), blocks=9)
            one.gates[:] = one.gates[chance.permutation(len(one.gates))]
            results.append(one)
    assert not any(finding.verdict.claims_effect for finding in study.claims(study.gather(results)))


def test_the_population_is_cited_beside_the_same_claim():
    here = [Finding("Attention helps.", "Table 1", SUPPORTED, ""), Finding("Better.", "Figure 7", BY_READING, "")]
    there = [
        Finding("Better: over all networks.", "Figure 7", CONTRADICTED, ""),
        Finding("Better: within depth.", "Figure 7", UNDECIDED, ""),
        Finding("Attention helps.", "Table 1", FALSE_OF_SOME, ""),
    ]
    assert [tuple(row.values()) for row in study.rows_beside(here, there, "ours", "theirs")] == [
        ("Better: over all networks.", BY_READING, CONTRADICTED),
        ("Better: within depth.", "not asked", UNDECIDED),
        ("Attention helps.", SUPPORTED, FALSE_OF_SOME),
    ]


def test_differences_are_paired():
    draws = np.random.default_rng(0).normal(size=500)
    one, other = estimate(1.0, 1.0 + draws), estimate(3.0, 3.0 + draws)
    difference = other.minus(one)
    assert (difference.value, difference.low, difference.high) == pytest.approx((2.0, 2.0, 2.0))
    assert mean_of([one, other]).value == 2.0


def test_an_interval_of_a_mean_is_the_one_known():
    values = np.random.default_rng(1).normal(size=2000)
    chosen = choices(2000, 500, 0)
    found = estimate(values.mean(), values[chosen].mean(axis=1))
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 2000**0.5, rel=0.15)
