"""Verdicts on made-up truths: every branch of every rule."""

import numpy as np
import pytest

from studies.lab.statistics import estimate
from studies.lab.verdicts import BY_READING, CONTRADICTED, NOT_RUN, SUPPORTED, UNDECIDED
from studies.switching import dependence, indices, switches
from studies.switching.evidence import Powers, Ranking
from studies.switching.runs import GROUP_OF

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
