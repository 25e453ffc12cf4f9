"""The verdicts of the population on planted truths: every branch of the rules that `design.py` fixed."""

import numpy as np
import pytest

from studies.lab import measurements
from studies.lab.statistics import CONTRADICTED, MIXED, PARTLY, SUPPORTED, UNDECIDED, Estimate, estimate
from studies.lab.stiffness import READINGS
from studies.population import design
from studies.population.analysis import WAYS, Comparison, Explained, Relation, comparisons, explain_accuracy, relations
from studies.population.citation import shipped_findings
from studies.population.findings import (
    BETTER,
    BEYOND,
    HIGHER,
    LARGER,
    MOST,
    beyond_finding,
    findings,
    higher_finding,
    larger_finding,
    most_finding,
    of_each,
    of_sign,
    relation_finding,
)
from tests.studies.population import planted


def verdicts_of(networks, resamples=60):
    explanations = {reading: explain_accuracy(networks, reading, resamples) for reading in READINGS}
    found = findings(relations(networks, resamples), comparisons(networks), explanations)
    return {finding.claim: finding for finding in found}


@pytest.mark.parametrize(
    ("n", "low", "high", "verdict"),
    [
        (240, 0.01, 0.2, SUPPORTED),
        (240, -0.2, -0.01, CONTRADICTED),
        (240, -0.1, 0.12, CONTRADICTED),  # no relation to speak of
        (240, -0.1, 0.16, UNDECIDED),
        (240, -0.16, 0.1, UNDECIDED),
        (design.FEWEST_NETWORKS - 1, 0.3, 0.6, UNDECIDED),
        (design.FEWEST_NETWORKS, 0.3, 0.6, SUPPORTED),
        (240, np.nan, np.nan, UNDECIDED),
    ],
)
def test_the_rule_of_claims_1_and_4(n, low, high, verdict):
    e = Estimate(0.5 * (low + high), low, high)
    assert of_sign(n, e) == verdict
    found = relation_finding(WAYS[0], dict.fromkeys(READINGS, Relation(n, 100, e)))
    assert found.verdict == verdict
    assert ("and the design judges from 24 on" in found.words) == (n < design.FEWEST_NETWORKS)
    assert found.words.startswith("n = 23") == (n < design.FEWEST_NETWORKS)
    shares = {"TNS": Estimate(0.1, 0, 1), "width": Estimate(0.2, 0, 1)}
    found = beyond_finding(dict.fromkeys(READINGS, Explained(n, e, shares)))
    assert found.verdict == verdict
    assert "10 of the 30 % explained" in found.words


def test_readings_that_disagree_are_mixed_and_named():
    good, bad = Estimate(0.3, 0.2, 0.4), Estimate(-0.3, -0.4, -0.2)
    found = relation_finding(
        WAYS[0], {reading: Relation(240, 100, good if reading[1] == "sample" else bad) for reading in READINGS}
    )
    assert found.verdict == MIXED
    assert "slope NSI, sample mean, n = 240: +0.30 [+0.20, +0.40] (supported)" in found.words
    assert "slope NSI, data-set mean, n = 240: -0.30 [-0.40, -0.20] (contradicted: smaller)" in found.words


ABOVE, BELOW, WITHIN = Estimate(2, 1, 3), Estimate(-2, -3, -1), Estimate(0, -1, 1)


@pytest.mark.parametrize(
    ("estimates", "each", "most"),
    [
        ((ABOVE, ABOVE), SUPPORTED, CONTRADICTED),
        ((BELOW, BELOW), CONTRADICTED, SUPPORTED),
        ((ABOVE, BELOW), PARTLY, CONTRADICTED),
        ((ABOVE, WITHIN), PARTLY, CONTRADICTED),
        ((BELOW, WITHIN), PARTLY, UNDECIDED),
        ((WITHIN, WITHIN), UNDECIDED, UNDECIDED),
    ],
)
def test_the_rules_of_claims_2_and_3(estimates, each, most):
    beyond = dict(zip(("SE", "ECA"), estimates, strict=True))
    found = Comparison("constant", dict.fromkeys(("constant", *beyond), [1.0] * design.FEWEST_SEEDS), beyond)
    assert of_each(beyond) == each
    assert higher_finding(found).verdict == each
    assert larger_finding(dict.fromkeys(READINGS, found)).verdict == each
    assert most_finding(found).verdict == most
    few = Comparison("constant", found.groups | {"ECA": [1.0] * (design.FEWEST_SEEDS - 1)}, beyond)
    for finding in (higher_finding(few), larger_finding(dict.fromkeys(READINGS, few)), most_finding(few)):
        assert finding.verdict == UNDECIDED
        assert finding.words.startswith("n = 2 seeds of ECA, and the design judges from 3 on.")
    assert of_each({}) == UNDECIDED


def test_with_nothing_to_compare_nothing_is_decided():
    nothing = Comparison("constant", {}, {})
    for finding in (higher_finding(nothing), larger_finding(dict.fromkeys(READINGS, nothing)), most_finding(nothing)):
        assert finding.verdict == UNDECIDED
        assert finding.words.startswith("n = 0: no networks of the core")


def paper(sign):
    """What the paper says, or its opposite."""

    def plant(job, noise):
        skill = {"constant": 0.0, "stepnet": 8.0}.get(job.controller, 4.0) * sign
        accuracy = 70 + skill + noise["accuracy"]
        near = {name: noise[name] for name in ("train_loss", "logits_norm", "sharpness")}
        return {"accuracy": accuracy, "tns": 1 + 0.1 * sign * accuracy + 0.01 * noise["tns"], **near}

    return plant


def test_a_population_as_the_paper_has_it_supports_every_claim():
    found = verdicts_of(planted.population(paper(+1)))
    assert {finding.verdict for finding in found.values()} == {SUPPORTED}
    assert set(found) == {*(f"{BETTER}: {way}." for way in WAYS), LARGER, HIGHER, MOST, BEYOND}


def chance(job, noise):
    return {"accuracy": 70 + noise["accuracy"], **{name: noise[name] for name in noise if name != "accuracy"}}


@pytest.mark.parametrize(
    ("plant", "networks", "verdict"),
    [(paper(-1), 240, CONTRADICTED), (chance, 240, CONTRADICTED), (chance, 30, UNDECIDED)],
)
def test_its_opposite_and_chance_contradict_and_few_networks_of_chance_do_not_know(plant, networks, verdict):
    networks = planted.population(plant, planted.QUEUE[:networks], seed=3)
    found = relations(networks, 200)
    one = relation_finding(WAYS[0], {reading: found[WAYS[0], reading] for reading in READINGS})
    assert one.verdict == verdict
    assert (f"within {design.NEGLIGIBLE} of 0" in one.words) == (plant is chance and verdict == CONTRADICTED)
    assert (
        beyond_finding({reading: explain_accuracy(networks, reading, 200) for reading in READINGS}).verdict == verdict
    )


@pytest.mark.parametrize("n", [0, 1, 2, 23])
def test_too_few_networks_decide_nothing_whatever_they_say(n):
    found = verdicts_of(planted.population(paper(+1), planted.QUEUE[:n]))
    assert {finding.verdict for finding in found.values()} == {UNDECIDED}
    assert all("n = " in finding.words for finding in found.values())


def test_what_is_cited_are_the_measurements_of_a_folder(tmp_path):
    assert shipped_findings(tmp_path) == (0, [])
    networks = planted.QUEUE[:6]
    for job in networks:
        found = planted.measurement(job, **paper(+1)(job, dict.fromkeys(planted.NOISES, 0.0)))
        measurements.write(found, tmp_path / f"{job.stem}.npz")
    n, cited = shipped_findings(tmp_path)
    assert n == 6
    assert {finding.claim for finding in cited} >= {LARGER, HIGHER, MOST, BEYOND}


def test_an_interval_needs_draws():
    assert of_sign(240, estimate(0.5, [])) == UNDECIDED
