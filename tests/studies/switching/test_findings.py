"""Verdicts on made-up truths: every branch of every rule."""

import numpy as np
import pytest

from studies.lab.statistics import CONTRADICTED, SUPPORTED, UNDECIDED, estimate
from studies.switching import findings
from studies.switching.analysis import Powers, Ranking
from studies.switching.observations import INDICES
from studies.switching.policies import Policy

EPS = (1e-3, 1e-4)


def ranking(value, spread=0.01, within=0.0):
    draws = value + spread * np.linspace(-1.0, 1.0, 41)
    return Ranking(estimate(value, draws), within, 9)


def rankings(spread=0.01, within=0.0, **changed):
    values = dict.fromkeys(INDICES, 0.6) | changed
    return {eps: {name: ranking(value, spread, within) for name, value in values.items()} for eps in EPS}


@pytest.mark.parametrize(
    ("auc", "within", "verdict"),
    [(0.9, 0.7, SUPPORTED), (0.9, 0.2, UNDECIDED), (0.7, 0.7, UNDECIDED), (0.6, 0.7, CONTRADICTED)],
)
def test_sai_tells(auc, within, verdict):
    found = rankings(within=within, SAI=auc)
    assert findings.sai_tells(found, found).verdict == verdict


def test_a_verdict_that_the_band_changes_is_none():
    found = findings.sai_tells(rankings(within=0.7, SAI=0.9), rankings(within=0.7, SAI=0.6))
    assert found.verdict == findings.BY_BAND


def test_sai_that_points_the_other_way_is_said_to():
    for auc, said in ((0.3, True), (0.55, False)):
        assert ("other way" in findings.sai_tells(rankings(SAI=auc), rankings(SAI=auc)).words) == said


def test_few_families_decide_nothing():
    found = [findings.sai_tells(rankings(SAI=0.3), rankings(SAI=0.3))]
    assert findings.require_families(found, 10) == found
    (one,) = findings.require_families(found, 9)
    assert (found[0].verdict, one.verdict) == (CONTRADICTED, UNDECIDED)
    assert "Only 9 families" in one.words


def test_errors_that_disagree_are_told():
    found = rankings(within=0.7, SAI=0.9)
    found[EPS[1]]["SAI"] = ranking(0.3)
    assert findings.sai_tells(found, found).verdict == findings.BY_TOLERANCE


@pytest.mark.parametrize(("sai", "simplified", "verdict"), [(0.9, 0.88, SUPPORTED), (0.9, 0.7, UNDECIDED)])
def test_simplified_sai(sai, simplified, verdict):
    found = rankings(within=0.7, SAI=sai, **{"simplified SAI": simplified})
    assert findings.simplified_suffices(found, findings.sai_tells(found, found)).verdict == verdict


def test_what_ranks_the_wrong_way_does_not_suffice():
    found = rankings(SAI=0.3, **{"simplified SAI": 0.3})
    assert findings.simplified_suffices(found, findings.sai_tells(found, found)).verdict == CONTRADICTED


def powers(rho=1.0, pace=-1.0, eps=0.25, spread=0.1):
    made = [ranking(value, spread).auc for value in (rho, pace, eps)]
    return Powers(*made, explained=0.8, counted=100)


@pytest.mark.parametrize(("b", "verdict"), [(1.0, SUPPORTED), (-0.8, CONTRADICTED), (0.3, UNDECIDED)])
def test_powers(b, verdict):
    assert findings.stands_for_si(powers(pace=b)).verdict == verdict
    assert findings.stands_for_si(None).verdict == UNDECIDED


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.01, SUPPORTED), (0.1, UNDECIDED), (0.3, CONTRADICTED), (float("nan"), UNDECIDED)]
)
def test_of_the_problem(share, verdict):
    assert findings.of_the_problem(share, 100).verdict == verdict


@pytest.mark.parametrize(
    ("chi", "radius", "verdict"),
    [(0.95, 0.8, SUPPORTED), (0.95, 0.95, UNDECIDED), (0.7, 0.6, CONTRADICTED), (0.8, 0.6, UNDECIDED)],
)
def test_theory(chi, radius, verdict):
    found = rankings(**{"h_acc/h_stab": chi, "rho_ng": radius})
    assert findings.theory_tells(found, found, powers()).verdict == verdict


@pytest.mark.parametrize(
    ("made", "verdict", "words"),
    [
        (powers(), SUPPORTED, "All intervals hold"),
        (powers(eps=0.1), UNDECIDED, "interval of eps misses"),
        (powers(rho=-0.5), CONTRADICTED, "rho_ng"),
        (powers(pace=0.5), CONTRADICTED, "SAI"),
        (None, UNDECIDED, "Too few families"),
    ],
)
def test_theory_wants_its_exponents(made, verdict, words):
    areas = rankings(**{"h_acc/h_stab": 0.95})
    found = findings.theory_tells(areas, areas, made)
    assert found.verdict == verdict
    assert words in found.words


def test_theory_that_does_not_hold_beyond_the_band_depends_on_it():
    near, far = rankings(**{"h_acc/h_stab": 0.95}), rankings(**{"h_acc/h_stab": 0.8})
    assert findings.theory_tells(near, far, powers()).verdict == findings.BY_BAND


@pytest.mark.parametrize(
    ("ratio", "si", "sai", "verdict"),
    [(0.9, 0.8, 0.3, SUPPORTED), (0.7, 0.8, 0.3, CONTRADICTED), (0.8, 0.8, 0.3, UNDECIDED)],
)
def test_ratio(ratio, si, sai, verdict):
    found = rankings(SAI=sai, **{"SI/SAI": ratio, "SI": si})
    for table in found.values():  # the same resamples, but not the same draws
        table["SI"] = ranking(si, spread=0.03)
    assert findings.ratio_tells(found, found).verdict == verdict


def test_the_ratio_with_the_radius_that_does_not_grow_is_told_beside():
    found = findings.ratio_tells(*(rankings(SAI=0.3, **{"rho_ng/SAI": 0.9, "rho_ng": 0.7}),) * 2)
    assert found.verdict == UNDECIDED
    assert "the same claim is supported" in found.words


def test_damping():
    assert findings.damping_alone({e: (0, 0, []) for e in EPS}).verdict == SUPPORTED
    assert findings.damping_alone({e: (3, 0, []) for e in EPS}).verdict == UNDECIDED
    found = findings.damping_alone({e: (9, 5, ["forced"]) for e in EPS})
    assert found.verdict == CONTRADICTED
    assert "forced" in found.words


@pytest.mark.parametrize(("gap", "verdict"), [(0.1, SUPPORTED), (-0.1, CONTRADICTED)])
def test_powers_against_eigenvalues(gap, verdict):
    found = rankings(**{"h_acc/h_power": 0.8 + gap, "h_acc/h_stab": 0.8})
    assert findings.powers_tell(found, found).verdict == verdict


def test_powers_without_problems_are_undecided():
    nothing = {e: dict.fromkeys(INDICES, Ranking(estimate(np.nan, []), np.nan, 0)) for e in EPS}
    assert findings.powers_tell(nothing, nothing).verdict == UNDECIDED


@pytest.mark.parametrize(
    ("free", "fitted", "verdict"),
    [(1.2, 1.18, SUPPORTED), (1.2, 1.05, UNDECIDED), (1.4, 1.39, UNDECIDED), (1.6, 1.3, CONTRADICTED)],
)
def test_switches(free, fitted, verdict):
    pairs = (("h_R/h_stab > 1", free), ("h_R/h_stab", fitted))
    one = {name: Policy(0.5, np.array([mean]), mean) for name, mean in pairs}
    assert findings.switches(dict.fromkeys(EPS, one)).verdict == verdict
