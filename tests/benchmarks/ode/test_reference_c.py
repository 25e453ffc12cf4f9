"""The C reference gives right answers, and takes the product's steps; skipped where there is no C compiler."""

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from benchmarks.ode import cases, reference_c

pytestmark = pytest.mark.skipif(reference_c.scalar_compiler() is None, reason="no C compiler (gcc or clang) installed")

PROBLEMS = {  # with the time of a reference
    "van_der_pol": (ol.problems.van_der_pol(mu=5.0), 20.0),
    "lorenz": (ol.problems.lorenz(), 10.0),
    "robertson": (ol.problems.robertson(), 40.0),
    "hires": (ol.problems.hires(), 5.0),
}


def run(key, problem, rtol, atol, **options):
    return reference_c.ensemble(key, problem.u0, problem.params, problem.t_span, rtol, atol, **options)()


@pytest.mark.parametrize("key", PROBLEMS)
@given(method=st.sampled_from(reference_c.METHODS), law=st.sampled_from(reference_c.LAWS), digits=st.floats(6.0, 10.0))
@settings(deadline=None, max_examples=10)
def test_end_states_are_right(key, method, law, digits):
    problem, end = PROBLEMS[key]
    known = next(reference.u for reference in problem.references if reference.t == end)
    rtol = 10.0**-digits
    answer = run(key, problem.replace(t_span=(0.0, end)), rtol, 1e-4 * rtol, method=method, law=law)
    np.testing.assert_allclose(answer.u[0], known, rtol=3e4 * rtol)


@pytest.mark.parametrize("case", cases.singles(quick=True), ids=lambda case: case.key)
def test_the_page_s_single_runs_are_right(case):
    assert case.error(run(case.key, case.checked, case.rtol, case.atol).u) < case.allowed
    damaged = case.checked.replace(params=(1.01 * case.checked.params[0], *case.checked.params[1:]))
    assert case.error(run(case.key, damaged, case.rtol, case.atol).u) > case.allowed


@pytest.mark.parametrize("law", reference_c.LAWS)
@pytest.mark.parametrize("method", reference_c.METHODS)
@pytest.mark.parametrize("key", ["van_der_pol", "lorenz"])
def test_its_steps_are_the_product_s(key, method, law):
    problem = PROBLEMS[key][0].replace(t_span=(0.0, 5.0))
    ours = ol.solve(problem, getattr(ol, method), ol.adaptive(1e-7, 1e-9, law=law), engine="python")
    theirs = run(key, problem, 1e-7, 1e-9, method=method, law=law)
    assert (theirs.accepted[0], theirs.rejected[0]) == (len(ours.h), ours.rejected)
    np.testing.assert_allclose(theirs.u[0], ours.u[-1], rtol=1e-9)


@given(st.integers(1, 70), st.sampled_from([1e-4, 1e-6, 1e-8]), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_lanes_are_as_accurate_as_one_run_after_another(runs, rtol, seed):
    rng = np.random.default_rng(seed)
    u0, mu = rng.uniform(-2.0, 2.0, (runs, 2)), rng.uniform(0.1, 3.0, (runs, 1))
    exact = reference_c.ensemble("van_der_pol", u0, mu, (0.0, 10.0), 1e-12, 1e-12)().u
    lanes = reference_c.lanes(u0, mu, (0.0, 10.0), rtol, rtol, 1e-3)()
    scalar = reference_c.ensemble("van_der_pol", u0, mu, (0.0, 10.0), rtol, rtol, first_step=1e-3)()
    assert np.abs(lanes.u - exact).max() < 1e3 * rtol
    assert abs(lanes.accepted - scalar.accepted).max() <= 3 + 0.03 * scalar.accepted.max()


@pytest.fixture(scope="module")
def ensembles():
    return cases.ensembles(320)


def test_an_ensemble_is_its_runs_one_by_one(ensembles):
    case = ensembles[0].part(8)
    together = reference_c.ensemble(case.key, case.u0, case.params, case.problem.t_span, case.rtol, case.atol)().u
    alone = [
        reference_c.ensemble(case.key, u, p, case.problem.t_span, case.rtol, case.atol)().u[0]
        for u, p in zip(case.u0, case.params, strict=True)
    ]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("place", range(5))
def test_the_page_s_ensembles_are_right_and_a_lost_lane_is_seen(ensembles, place):
    case = ensembles[place]
    u = reference_c.ensemble(case.key, case.u0, case.params, case.problem.t_span, case.rtol, case.atol)().u
    assert case.error(u) < case.allowed
    known = np.flatnonzero(np.isfinite(case.reference[:, 0]))
    u[known[: 1 + len(known) // 32]] = case.u0[0]
    assert case.error(u) > case.allowed
    u[known[0]] = np.nan
    assert case.error(u) == np.inf


@pytest.mark.parametrize("points", [2, 3, 17, 60])
def test_the_grid_takes_the_product_s_steps(points):
    problem = ol.problems.brusselator_1d(points).replace(t_span=(0.0, 0.5))
    theirs = reference_c.grid(problem.u0, problem.params, problem.t_span, 1e-6, 1e-6, 1e-5)()
    control = ol.adaptive(1e-6, 1e-6, law="i", first_step=1e-5)
    ours = ol.solve(problem, ol.DOPRI5, control, engine="python")
    assert (theirs.accepted[0], theirs.rejected[0]) == (len(ours.h), ours.rejected)
    np.testing.assert_allclose(theirs.u[0], ours.u[-1], rtol=1e-10)


def test_the_grid_s_reference_is_right():
    case = cases.brusselator(40, end=0.5)
    ours = ol.solve(case.problem, ol.DOPRI5, ol.adaptive(1e-9, 1e-9), engine="python").u[-1]
    assert case.error(ours) < 1e-6


def test_rows_must_match():
    with pytest.raises(ValueError, match="`params` must have one row per run, got 1 rows for 3 runs"):
        reference_c.ensemble("van_der_pol", np.ones((3, 2)), [5.0], (0.0, 1.0), 1e-6, 1e-6)


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(reference_c.NoCompiler, match="install gcc or clang"):
        reference_c.ensemble("van_der_pol", [2.0, 0.0], [5.0], (0.0, 1.0), 1e-6, 1e-6)


def test_a_moved_cache_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path))
    reference_c.library.cache_clear()
    reference_c.library("limit_grid.c", reference_c.scalar_compiler())
    assert [path.suffix for path in (tmp_path / "benchmarks").iterdir()] == [".so"]
    reference_c.library.cache_clear()
