"""The analysis on windows whose truth is planted."""

import numpy as np
import pytest

from studies.switching import analysis
from studies.switching.design import PRESETS, TOLERANCES, subjects

LADDER = np.array(TOLERANCES)


def window(explicit, implicit, **indices):
    """Costs that do not depend on the tolerance, and errors that are a tenth of it."""
    base = dict.fromkeys(("SI", "rho", "rho_ng", "|J|_2", "mu_2", "-s[J]", "max/min |Re|", "SAI"), 1.0)
    base |= dict.fromkeys(("simplified SAI", "rate", "h_stab", "h_power", "u4", "u5"), 1.0)
    runs = {
        role: {
            "attempts": np.full(len(LADDER), cost).tolist(),
            "error": (0.1 * LADDER).tolist(),
            "rejected": np.zeros(len(LADDER)).tolist(),
            "flagged": np.zeros(len(LADDER)).tolist(),
            "censored": np.zeros(len(LADDER)).tolist(),
        }
        for role, cost in (("explicit", explicit), ("implicit", implicit))
    }
    return {"start": 0.0, "end": 1.0, "indices": base | indices, **runs}


def problem(name, windows, family=None, **more):
    known = {"n": 2, "span": 1.0, "by_lines": False, "non_normal": False, "tolerances": list(LADDER)}
    return {"name": name, "family": family or name, "windows": windows} | known | more


def planted(families=8, reversed_sai=True):
    """SI ranks as R does; SAI ranks the other way; rho_ng tells problems apart and not windows."""
    made = []
    for k in range(families):
        rows = []
        for j in range(8):
            ratio = 10.0 ** (-1.5 + 3.0 * ((3 * j + k) % 8) / 7.0)
            sai = 1.0 / ratio if reversed_sai else ratio
            rows.append(window(8.0 * ratio, 6.0, SI=ratio, SAI=sai, rho_ng=1.0 + k))
        made.append(problem(f"p{k}", rows))
    return analysis.Lab(made)


def test_truth_counts_evaluations_and_jacobians():
    lab = analysis.Lab([problem("a", [window(10.0, 3.0)], n=2), problem("b", [window(10.0, 3.0)], n=9, by_lines=True)])
    np.testing.assert_allclose(lab.truth(1e-4), [60.0 / (3.0 * 8), 60.0 / (3.0 * 11)])
    np.testing.assert_allclose(lab.truth(1e-4, "attempts"), 10.0 / 3.0)


def test_a_planted_index_is_found_and_a_reversed_one_too():
    found = analysis.rankings(planted(), 1e-4, 50)
    assert found["SI"].auc.value == 1.0
    assert found["SI"].within == pytest.approx(1.0)
    assert found["SAI"].auc.high < 0.05
    assert found["SAI"].within == pytest.approx(-1.0)
    assert abs(found["rho_ng"].auc.value - 0.5) < 0.2
    assert found["rho_ng"].within == 0.0
    assert found["SI"].counted == 8


def test_powers_are_found_again():
    """R = rho_ng / SAI, planted, where stability binds."""
    chance = np.random.default_rng(0)
    made = []
    for k in range(8):
        rows = []
        for _ in range(8):
            radius, sai = 10.0 ** chance.uniform(1.0, 4.0), 10.0 ** chance.uniform(-2.0, 0.0)
            rows.append(window(radius / sai, 1.0, rho_ng=radius, SAI=sai, h_stab=0.1))
        made.append(problem(f"p{k}", rows))
    found = analysis.exponents(analysis.Lab(made), (1e-4,), 50)
    assert found["rho_ng"].value == pytest.approx(1.0, abs=1e-6)
    assert found["SAI"].value == pytest.approx(-1.0, abs=1e-6)
    assert analysis.exponents(analysis.Lab(made[:3]), (1e-4,), 50) is None


def test_switching_by_a_perfect_index_costs_what_the_oracle_does_but_for_the_changes():
    table = analysis.switching(planted(), 1e-4)
    assert table["SI"]["mean"] < 1.25
    assert table["always explicit"]["mean"] > 2.0
    assert 1.0 <= table["best of both"]["mean"] <= table["always implicit"]["mean"]
    assert table["SI"]["mean"] < table["SAI"]["mean"]


def test_windows_that_change_class_are_counted_by_problem():
    always = problem("a", [window(100.0, 1.0)] * 3)
    loose = window(100.0, 10.0)
    loose["implicit"]["attempts"] = np.where(LADDER < 1e-6, 1000.0, 1.0).tolist()
    changing = problem("b", [loose])
    assert analysis.changing(analysis.Lab([always, changing]), 1e-3, 1e-8) == pytest.approx(0.5)


def test_runs_that_were_given_up_keep_their_rank():
    lost = window(1e6, 5.0)
    lost["explicit"] |= {"error": [np.nan] * len(LADDER), "censored": [True] * len(LADDER)}
    assert analysis.Lab([problem("a", [lost])]).truth(1e-4)[0] > 1e4


def test_bound_without_damping_names_families():
    rows = [window(1000.0, 1.0, **{"-s[J]": 0.01}), window(1000.0, 1.0, **{"-s[J]": 1e4})]
    assert analysis.bound_without_damping(analysis.Lab([problem("a", rows, "forced")]), 1e-4) == (1, 1, ["forced"])


def test_grave_mistakes_are_named():
    lab = analysis.Lab(
        [problem("fine", [window(100.0, 1.0, rho_ng=1e6)]), problem("missed", [window(100.0, 1.0, rho_ng=1e-6)])]
    )
    called, missed = analysis.graves(lab, 1e-4, "rho_ng/SAI", 26.0)
    assert (called, missed) == ([], ["missed"])


def test_the_design_has_what_it_promises():
    found = subjects()
    assert len({one.family for one in found}) >= 28
    assert len({one.name for one in found}) == len(found)
    for preset in PRESETS.values():
        assert sum(one.knob <= preset.knob for one in found) >= 3
    for one in found:
        assert one.problem().size <= 60
