"""cifar_tns: what it says follows from the numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import netbridge as nb
from studies.cifar_tns.findings import (
    correlation_finding,
    few_blocks_finding,
    findings,
    gain_finding,
    gate_finding,
    larger_finding,
)
from studies.cifar_tns.tables import beside_rows
from studies.lab import networks as _networks
from studies.lab.statistics import (
    CONTRADICTED,
    FEWEST,
    MIXED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Correlation,
    Estimate,
    Finding,
    choices,
    correlation,
    estimate,
    joint_verdict,
    mean_of,
    verdict_of_counts,
)
from studies.lab.stiffness import KINDS, READINGS, Measured, set_stiffness
from studies.population.analysis import ACCURACY, CONSTANT, STEPNET, TNS, WAYS, Comparison, Explained, Relation
from studies.population.findings import findings as population_findings

NOWHERE = estimate(np.nan, [])
NOTHING = (
    {key: Comparison(key[1], {}, {}) for key in ((ACCURACY, CONSTANT), (ACCURACY, STEPNET))}
    | {(reading, CONSTANT): Comparison(CONSTANT, {}, {}) for reading in READINGS},
    dict.fromkeys(READINGS, Explained(0, NOWHERE, {TNS: NOWHERE})),
)


@given(st.permutations(range(8)), st.integers(0, 3))
@settings(deadline=None, max_examples=15)
def test_the_opposite_order_of_accuracies_gives_the_opposite_verdict(order, seed):
    ranks = np.arange(8.0)
    accuracies = 90.0 + np.array(order, dtype=float)
    opposite = {SUPPORTED: CONTRADICTED, CONTRADICTED: SUPPORTED, UNDECIDED: UNDECIDED}
    here, there = correlation(ranks, accuracies, 60, seed), correlation(ranks, -accuracies, 60, seed)
    assert there.verdict == opposite[here.verdict]
    assert there.kendall.value == pytest.approx(-here.kendall.value)
    stretched = correlation(np.exp(ranks), accuracies, 60, seed)
    assert stretched.verdict == here.verdict
    assert stretched.kendall.value == here.kendall.value


@given(st.permutations(range(FEWEST - 1)))
@settings(deadline=None, max_examples=10)
def test_too_few_networks_never_decide(order):
    found = correlation(np.arange(FEWEST - 1.0), np.array(order, dtype=float), 50)
    assert found.verdict == UNDECIDED
    finding = correlation_finding(dict.fromkeys(READINGS, found))
    assert finding.verdict == UNDECIDED
    assert f"n = {FEWEST - 1}" in finding.words
    assert "cannot decide" in finding.words


def synthetic(kind, n=14):
    rng = np.random.default_rng(3)
    accuracies = np.linspace(88.0, 92.0, n)
    tns = {
        "rising": accuracies + 0.1 * rng.normal(size=n),
        "falling": -accuracies,
        "scattered": np.abs(accuracies - accuracies.mean()),  # symmetric: no order to be found
    }[kind]
    return correlation(tns, accuracies, 200)


@pytest.mark.parametrize(
    ("kind", "verdict", "word"),
    [
        ("rising", SUPPORTED, "support the claim under all four"),
        ("falling", CONTRADICTED, "contradict the claim under all four"),
        ("scattered", UNDECIDED, "neither support the claim nor contradict it"),
    ],
)
def test_the_statement_on_synthetic_data(kind, verdict, word):
    finding = correlation_finding(dict.fromkeys(READINGS, synthetic(kind)))
    assert finding.verdict == verdict
    assert word in finding.words
    assert "n = 14" in finding.words


def test_the_statement_names_the_readings_where_they_disagree():
    found = {reading: synthetic("rising" if reading[0] == "slope" else "falling") for reading in READINGS}
    finding = correlation_finding(found)
    assert finding.verdict == MIXED
    assert "supported for slope NSI, sample mean; slope NSI, data-set mean" in finding.words
    assert "contradicted for increment NSI, sample mean; increment NSI, data-set mean" in finding.words


@pytest.mark.parametrize(
    ("n", "low", "high", "p", "verdict"),
    [
        (9, 0.1, 0.9, 0.01, SUPPORTED),
        (9, -0.9, -0.1, 0.01, CONTRADICTED),
        (9, -0.1, 0.9, 0.01, UNDECIDED),  # the interval holds zero
        (9, 0.1, 0.9, 0.06, UNDECIDED),  # likely enough by chance
        (9, 0.1, 0.9, float("nan"), UNDECIDED),
        (FEWEST - 1, 0.1, 0.9, 0.01, UNDECIDED),
    ],
)
def test_interval_p_and_number_must_agree(n, low, high, p, verdict):
    sure = Estimate(0.5 * (low + high), low, high)
    certain = Estimate(np.sign(low + high) * 0.8, *np.sort(np.sign(low + high) * np.array([0.7, 0.9])))
    assert Correlation(n, sure, 0.001, certain, p).verdict == verdict
    assert Correlation(n, certain, p, sure, 0.001).verdict == verdict


def test_equal_accuracies_cannot_be_ranked():
    found = correlation(np.arange(9.0), np.full(9, 90.0), 50)
    assert found.verdict == UNDECIDED
    assert np.isnan(found.kendall.value)
    assert "undefined" in correlation_finding(dict.fromkeys(READINGS, found)).words


def test_verdicts_are_put_together_and_counted():
    assert joint_verdict([SUPPORTED] * 4) == SUPPORTED
    assert joint_verdict([CONTRADICTED] * 4) == CONTRADICTED
    assert joint_verdict([SUPPORTED, UNDECIDED]) == joint_verdict([SUPPORTED, CONTRADICTED]) == MIXED
    assert joint_verdict([CONTRADICTED, UNDECIDED]) == UNDECIDED
    assert joint_verdict([PARTLY, UNDECIDED]) == PARTLY
    assert [
        verdict_of_counts(3, 0, 3),
        verdict_of_counts(0, 3, 3),
        verdict_of_counts(1, 1, 3),
        verdict_of_counts(2, 0, 3),
    ] == [
        SUPPORTED,
        CONTRADICTED,
        PARTLY,
        UNDECIDED,
    ]


def made(controller, seed, accuracy=90.0, scale=1.0, sign=-1.0, blocks=3):
    """A network as if it had been measured: NSI of three stages, and gates that follow it or go against it."""
    rng = np.random.default_rng(1)  # the same images for all
    nsi = scale * rng.uniform(0.5, 1.5, (80, 3 * blocks)) ** (1.0 + 0.01 * seed)
    names = [f"{stage}.{block}" for stage in range(3) for block in range(blocks)]
    place = (np.repeat(range(3), blocks), np.tile(np.arange(blocks) == 0, 3), names)
    records = {of: nb.Record(nsi, *place, of) for of in KINDS}
    gates = np.ones_like(nsi) if controller == "constant" else 0.5 + 0.1 * sign * nsi / scale
    subject = _networks.Subject(None, controller, seed, 20, 1000, accuracy, "", controller)
    found = Measured(subject, records, gates, np.ones(80, dtype=bool))
    set_stiffness(found, choices(80, 40, 0))
    return found


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [
        ({"constant": (90.0, 90.1), "SE": (92.0, 92.1), "StepNet": (93.0, 93.1)}, SUPPORTED),
        ({"constant": (90.0, 90.1), "SE": (93.0, 93.1), "StepNet": (92.0, 92.1)}, PARTLY),
        ({"constant": (93.0, 93.1), "SE": (92.0, 92.1), "StepNet": (91.0, 91.1)}, CONTRADICTED),
        ({"constant": (90.0, 92.0), "SE": (90.5, 92.0), "StepNet": (90.5, 92.5)}, UNDECIDED),
        ({"constant": (90.0,), "SE": (92.0,), "StepNet": (93.0,)}, UNDECIDED),
    ],
)
def test_gains_are_judged_against_the_spread_of_seeds(accuracies, verdict):
    results = [made(name, seed, a) for name, values in accuracies.items() for seed, a in enumerate(values)]
    assert gain_finding(results).verdict == verdict


def test_networks_without_a_constant_one_have_no_gain():
    assert gain_finding([made("SE", 0), made("StepNet", 0)]) is None
    assert larger_finding([made("SE", 0), made("StepNet", 0)]) is None


@pytest.mark.parametrize(
    ("scales", "verdict"),
    [
        ({"SE": (2.0, 2.0), "StepNet": (3.0, 3.0)}, SUPPORTED),
        ({"SE": (0.5, 0.5), "StepNet": (0.3, 0.3)}, CONTRADICTED),
        ({"SE": (2.0, 2.0), "StepNet": (0.3, 0.3)}, PARTLY),
        ({"SE": (2.0, 2.0), "StepNet": (0.5, 5.0)}, UNDECIDED),  # above on average, but not with both seeds
    ],
)
def test_larger_stiffness_needs_every_seed(scales, verdict):
    results = [made("constant", 0), made("constant", 1)]
    results += [made(name, seed, scale=s) for name, values in scales.items() for seed, s in enumerate(values)]
    assert larger_finding(results).verdict == verdict


@pytest.mark.parametrize(("signs", "verdict"), [((-1, -1), SUPPORTED), ((1, 1), CONTRADICTED), ((-1, 1), PARTLY)])
def test_gates_are_judged_by_the_first_stage_of_se(signs, verdict):
    results = [made("SE", seed, sign=sign) for seed, sign in enumerate(signs)]
    finding = gate_finding([made("constant", 0), *results, made("StepNet", 0, sign=1)])
    assert finding.verdict == verdict
    assert "of 6 correlations" in finding.words
    assert gate_finding([made("constant", 0)]) is None


def test_of_two_counted_blocks_one_is_always_stiff_so_nothing_is_claimed():
    assert few_blocks_finding([made("constant", 0)]).verdict == UNDECIDED


def test_claims_about_the_blocks_of_a_stage_are_judged_on_deep_networks():
    shallow, deep = [made("constant", 0), made("SE", 0)], [made("SE", 0, blocks=9, sign=1.0)]
    said = findings(shallow, dict.fromkeys(READINGS, synthetic("rising")), deep, "1 ResNet-56 of somewhere")
    few, near, far = [one for one in said if one.where.startswith(("Figure 6", "Figure 9"))]
    assert few.verdict != UNDECIDED
    assert few.words.startswith("On 1 ResNet-56 of somewhere. ")
    assert "counted blocks here" not in few.words
    assert (near.verdict, far.verdict) == (SUPPORTED, CONTRADICTED)
    assert "of 9 correlations" in far.words


def test_the_population_is_cited_beside_the_claim_of_the_same_place():
    here = [Finding("a", "Table 1", SUPPORTED, ""), Finding("b", "Figure 7, Section 3.1", MIXED, "")]
    there = [
        Finding("c", "Figure 7, Section 3.1", CONTRADICTED, ""),
        Finding("d", "Figure 7, Section 3.1", UNDECIDED, ""),
        Finding("e", "elsewhere", PARTLY, ""),
    ]
    assert [tuple(row.values()) for row in beside_rows(here, there, 22, 240)] == [
        ("c", MIXED, CONTRADICTED),
        ("d", MIXED, UNDECIDED),
        ("e", "not asked", PARTLY),
    ]
    networks = [made(name, seed) for name in ("constant", "SE") for seed in (0, 1)]
    places = {one.where for one in findings(networks, dict.fromkeys(READINGS, synthetic("rising")))}
    cited = population_findings({(way, r): Relation(0, 0, NOWHERE) for way in WAYS for r in READINGS}, *NOTHING)
    assert {one.where for one in cited[:-1]} <= places  # all but the last are claims that both studies judge


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
