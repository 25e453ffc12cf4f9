"""Thresholds and special cases of the rules of switching, on made-up truths."""

import numpy as np
import pytest

from studies.lab.statistics import Estimate, estimate
from studies.lab.verdicts import BY_READING, CONTRADICTED, NO_DIFFERENCE, NOT_RUN, SUPPORTED, UNDECIDED
from studies.switching import dependence, indices, switches
from studies.switching.evidence import Powers, Ranking
from studies.switching.runs import GROUP_OF
from studies.switching.switches import Policy

EPS = (1e-3, 1e-4)
FAMILIES = [f"family {number}" for number in range(12) for _ in range(3)]


def ranking(value, spread=0.01, within=0.0):
    draws = np.linspace(-1.0, 1.0, 41)
    return Ranking(estimate(value, value + spread * draws), estimate(within, within + 0.05 * draws), 9)


def rankings(spread=0.01, within=0.0, **changed):
    values = dict.fromkeys(GROUP_OF, 0.6) | changed
    return {eps: {name: ranking(value, spread, within) for name, value in values.items()} for eps in EPS}


SAI, SIMPLIFIED, BY_STEPS = indices.judge_sai, indices.judge_simplified, dependence.judge_pseudospectra


def test_where_all_windows_and_those_beyond_the_band_differ_it_depends_on_them():
    near, far = rankings(within=0.7, SAI=0.9), rankings(within=0.7, SAI=0.3)
    assert indices.judge_sai(near, far, FAMILIES).verdict == BY_READING
    assert indices.judge_sai(near, rankings(within=0.7, SAI=0.7), FAMILIES).verdict == UNDECIDED


def test_errors_that_disagree_are_told():
    ranked = rankings(within=0.7, SAI=0.9)
    ranked[EPS[1]]["SAI"] = ranking(0.3)
    assert indices.judge_sai(ranked, ranked, FAMILIES).verdict == BY_READING


def test_areas_that_are_alike_by_chance_alone_are_not_the_same():
    """Numbers that agree within intervals far wider than the margin were called the same before."""
    ranked = rankings(within=0.7, SAI=0.9, **{"simplified SAI": 0.9})
    for table in ranked.values():
        draws = 0.9 + 0.2 * np.cos(np.arange(41.0))
        table["simplified SAI"] = Ranking(estimate(0.9, draws), estimate(0.7, [0.7, 0.7]), 9)
    assert indices.judge_simplified(ranked, ranked, FAMILIES).verdict == UNDECIDED


def powers(rho=1.0, pace=-1.0, eps=0.25, spread=0.1):
    made = [ranking(value, spread).auc for value in (rho, pace, eps)]
    return Powers(*made, explained=0.8, counted=100)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (powers(spread=0.05), SUPPORTED),
        (powers(eps=0.14, spread=0.05), UNDECIDED),
        (powers(rho=-0.5), CONTRADICTED),
        (powers(pace=0.5), CONTRADICTED),
        (powers(spread=2.0), UNDECIDED),
        (None, UNDECIDED),
    ],
)
def test_chi_wants_its_exponents(made, verdict):
    """An interval that is wide enough to hold theory's value, and most others, does not support it."""
    areas = rankings(**{"h_acc/h_stab": 0.95})
    assert indices.judge_chi(areas, areas, made, FAMILIES).verdict == verdict


def test_the_ratio_with_the_radius_that_does_not_grow_is_told_beside():
    ranked = rankings(SAI=0.3, **{"rho_ng/SAI": 0.9, "rho_ng": 0.7})
    for table in ranked.values():
        table["SI"] = ranking(0.6, spread=0.03)
    finding = indices.judge_ratio(ranked, ranked, FAMILIES)
    assert finding.verdict == UNDECIDED
    assert "the same claim is supported" in finding.words


def test_powers_of_a_step_without_problems_are_not_run():
    nothing = estimate(np.nan, [])
    ranked = {e: dict.fromkeys(GROUP_OF, Ranking(nothing, nothing, 0)) for e in EPS}
    assert dependence.judge_pseudospectra(ranked, ranked, []).verdict == NOT_RUN


def test_switches_are_judged_in_time_by_the_same_rule_where_attempts_were_timed():
    assert switches.IN_SECONDS({}, FAMILIES).verdict == NOT_RUN
    assert switches.IN_SECONDS.judge is switches.IN_EVALUATIONS.judge


@pytest.mark.parametrize(
    ("judge", "areas", "within", "verdict"),
    [
        (SAI, {"SAI": 0.9}, 0.7, SUPPORTED), (SAI, {"SAI": 0.9}, 0.2, UNDECIDED), (SAI, {"SAI": 0.7}, 0.7, UNDECIDED),
        (SAI, {"SAI": 0.6}, 0.7, NO_DIFFERENCE), (SAI, {"SAI": 0.5}, 0.0, NO_DIFFERENCE),
        (SAI, {"SAI": 0.3}, -0.7, CONTRADICTED),
        (SIMPLIFIED, {"SAI": 0.9, "simplified SAI": 0.88}, 0.7, SUPPORTED),
        (SIMPLIFIED, {"SAI": 0.9, "simplified SAI": 0.7}, 0.7, UNDECIDED),
        (SIMPLIFIED, {"SAI": 0.3, "simplified SAI": 0.3}, 0.7, CONTRADICTED),
        (BY_STEPS, {"h_acc/h_power": 0.9, "h_acc/h_stab": 0.8}, 0.0, SUPPORTED),
        (BY_STEPS, {"h_acc/h_power": 0.7, "h_acc/h_stab": 0.8}, 0.0, CONTRADICTED),
    ],
)  # fmt: skip
def test_areas_and_correlations_decide(judge, areas, within, verdict):
    """What ranks the wrong way does not suffice to rank, however alike SAI and the simplified one are."""
    ranked = rankings(within=within, **areas)
    finding = judge(ranked, ranked, FAMILIES)
    assert finding.verdict == verdict
    assert ("points the other way" in finding.words) == (judge is SAI and verdict == CONTRADICTED)


@pytest.mark.parametrize(
    ("b", "spread", "verdict"),
    [
        (1.0, 0.1, SUPPORTED), (-0.8, 0.1, CONTRADICTED), (0.5, 0.1, UNDECIDED), (0.1, 0.1, NO_DIFFERENCE),
        (1.0, 2.0, UNDECIDED), (2.5, 0.1, UNDECIDED),
    ],
)  # fmt: skip
def test_powers(b, spread, verdict):
    assert dependence.judge_power_of_sai(powers(pace=b, spread=spread), FAMILIES).verdict == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.0, 0.03, SUPPORTED), (0.03, 0.2, UNDECIDED), (0.2, 0.3, CONTRADICTED), (0.12, 0.3, UNDECIDED)],
)
def test_what_depends_on_the_tolerance(low, high, verdict):
    """The last one was contradicted by its number alone, 21 %, which has an interval from 12 to 30 %."""
    assert dependence.judge_tolerance(Estimate((low + high) / 2, low, high), FAMILIES).verdict == verdict
    nothing = Estimate(*[float("nan")] * 3)
    assert dependence.judge_tolerance(nothing, FAMILIES).verdict == NOT_RUN


@pytest.mark.parametrize(
    ("chi", "radius", "verdict"),
    [(0.95, 0.8, SUPPORTED), (0.95, 0.95, UNDECIDED), (0.7, 0.6, NO_DIFFERENCE), (0.4, 0.6, CONTRADICTED)],
)
def test_chi(chi, radius, verdict):
    ranked = rankings(**{"h_acc/h_stab": chi, "rho_ng": radius})
    assert indices.judge_chi(ranked, ranked, powers(spread=0.05), FAMILIES).verdict == verdict


@pytest.mark.parametrize(
    ("free", "fitted", "spread", "verdict"),
    [
        (1.2, 1.18, 0.01, SUPPORTED), (1.2, 1.05, 0.01, UNDECIDED), (1.4, 1.39, 0.01, UNDECIDED),
        (1.6, 1.3, 0.01, CONTRADICTED), (1.2, 1.18, 0.5, UNDECIDED),
    ],
)  # fmt: skip
def test_switches(free, fitted, spread, verdict):
    """A mean below the threshold whose interval is not decides nothing, as it did before."""
    family = np.array(FAMILIES)
    factors = np.exp(spread * np.random.default_rng(0).standard_normal(len(family)))
    pairs = (("h_R/h_stab > 1", free), ("h_R/h_stab", fitted))
    table = {name: Policy(0.5, mean * factors, family) for name, mean in pairs}
    assert switches.IN_EVALUATIONS(dict.fromkeys(EPS, table), FAMILIES).verdict == verdict


@pytest.mark.parametrize(
    ("evaluations", "time", "verdict"),
    [(1.0, 1.0, SUPPORTED), (1.0, 1.17, UNDECIDED), (0.9, 1.4, CONTRADICTED), (1.4, 0.9, CONTRADICTED)],
)
def test_auto_has_to_be_cheap_in_both_units(evaluations, time, verdict):
    family = np.array(FAMILIES)
    noise = np.exp(0.03 * np.random.default_rng(0).standard_normal(len(family)))
    costs = {
        unit: Policy(np.nan, mean * noise, family) for unit, mean in (("evaluations", evaluations), ("time", time))
    }
    assert switches.judge_auto(costs, FAMILIES).verdict == verdict
    assert switches.judge_auto(costs, FAMILIES[:9]).verdict == UNDECIDED
