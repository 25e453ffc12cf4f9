"""Indicators along a run: laws on linear systems, where everything is known, and the reasons for each step's size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.stiffness.log_norm import hermitian_extremes, log_norm, soderlind


def solved(problem, method=ol.DOPRI5, rtol=1e-6):
    return ol.solve(problem, method, ol.adaptive(rtol, 1e-3 * rtol), engine="python")


@pytest.fixture(scope="module")
def stiff():
    problem = ol.problems.van_der_pol(mu=50.0).replace(t_span=(0.0, 60.0))
    return problem, solved(problem)


def test_every_measure_is_exact_on_a_linear_system():
    problem = ol.problems.linear_symmetric([-100.0, -3.0, -0.5]).replace(t_span=(0.0, 1.0))
    ind = ol.indicators(problem, solved(problem), every=1)
    np.testing.assert_allclose(ind.si, 100.0, rtol=1e-10)
    np.testing.assert_allclose(ind.spectral_radius, 100.0, rtol=1e-10)
    np.testing.assert_allclose(ind.log_norm[:, 1], -0.5, rtol=1e-10)
    np.testing.assert_allclose(ind.soderlind, -50.25, rtol=1e-10)
    np.testing.assert_allclose(ind.non_normality, 0.0, atol=1e-6)


def test_the_free_estimate_is_the_spectral_radius_where_stability_binds():
    problem = ol.problems.linear_symmetric([-1000.0, -1.0]).replace(t_span=(0.0, 2.0))
    ind = ol.indicators(problem, solved(problem), every=1)
    bound = ind.limited_by == "stability"
    assert bound.mean() > 0.7
    np.testing.assert_allclose(np.median(ind.h_rho[bound] / (np.abs(ind.h) * ind.si)[bound]), 1.0, rtol=1e-3)


def test_a_method_without_a_free_estimate_uses_the_sampled_radius(stiff):
    problem, _ = stiff
    sol = solved(problem, ol.RKF45)
    ind = ol.indicators(problem, sol)
    at = ind.sampled
    np.testing.assert_allclose(ind.h_rho[at], np.abs(ind.h[at]) * ind.spectral_radius[at], rtol=1e-12)
    assert ind.share_limited > 0.5


def test_reasons(stiff):
    problem, sol = stiff
    ind = ol.indicators(problem, sol)
    assert 0.5 < ind.share_limited < 0.95
    jumps = ind.sai > 10.0  # the fast flights of the oscillator, where accuracy asks for every step
    assert jumps.any()
    assert (ind.limited_by[jumps] == "accuracy").mean() > 0.8
    calm = ol.problems.lorenz().replace(t_span=(0.0, 5.0))
    assert ol.indicators(calm, solved(calm)).share_limited == 0.0
    fixed = ol.solve(problem, ol.RK4, ol.fixed(h=1e-2), throw=False)
    assert set(ol.indicators(problem, fixed).limited_by) == {"fixed"}


def test_an_implicit_run_is_never_limited_by_stability():
    problem = ol.problems.robertson().replace(t_span=(0.0, 1e4))
    ind = ol.indicators(problem, solved(problem, ol.RADAU))
    assert ind.share_limited == 0.0
    assert ind.h_rho.max() > 1e3  # far beyond what any explicit method could take


def test_spectra_only_where_asked(stiff):
    problem, sol = stiff
    none = ol.indicators(problem, sol, every=0)
    assert not len(none.sampled)
    assert np.isnan(none.si).all()
    assert np.isfinite(none.sai).all()
    assert np.isfinite(none.h_rho).all()
    tenth = ol.indicators(problem, sol, every=10)
    assert (np.isfinite(tenth.si) == (np.arange(sol.steps) % 10 == 0)).all()
    np.testing.assert_allclose(tenth.ratio[tenth.sampled], (tenth.sai / tenth.si)[tenth.sampled])
    assert "limited by stability" in str(tenth)


def test_large_sparse_systems_take_fewer_spectra_by_arnoldi():
    problem = ol.problems.heat_1d(n=600).replace(t_span=(0.0, 1e-5))
    sol = ol.solve(problem, ol.DOPRI5)
    ind = ol.indicators(problem, sol, every=sol.steps)
    truth = np.abs(np.linalg.eigvalsh(problem.jacobian(0.0, problem.u0, problem.params).toarray())).max()
    np.testing.assert_allclose(ind.si[0], truth, rtol=1e-6)
    np.testing.assert_allclose(ind.soderlind[0], soderlind(problem.jacobian(0.0, problem.u0, problem.params).toarray()))


matrices = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.floats(-10, 10), min_size=n * n, max_size=n * n).map(lambda x: np.reshape(x, (n, n)))
)


@given(matrices, st.sampled_from([1, 2, np.inf]))
def test_log_norm_is_the_limit_it_is_defined_by(J, p):
    h = 1e-7
    defined = (np.linalg.norm(np.eye(len(J)) + h * J, p) - 1.0) / h
    np.testing.assert_allclose(log_norm(J, p), defined, atol=1e-5 * (1 + np.abs(J).max() ** 2))


@given(matrices)
def test_log_norms_bound_the_spectrum(J):
    largest = np.linalg.eigvals(J).real.max()
    for p in (1, 2, np.inf):
        assert log_norm(J, p) >= largest - 1e-6 * (1 + np.abs(J).max())
    smallest, highest = hermitian_extremes(J)
    np.testing.assert_allclose(soderlind(J), 0.5 * (smallest + highest), atol=1e-12)


def test_sparse_and_dense_log_norms_agree():
    J = ol.problems.brusselator_1d(n=20).jacobian(
        0.0, ol.problems.brusselator_1d(n=20).u0, ol.problems.brusselator_1d(n=20).params
    )
    for p in (1, 2, np.inf):
        np.testing.assert_allclose(log_norm(J, p), log_norm(J.toarray(), p), rtol=1e-12)


def test_wrong_input_names_itself(stiff):
    problem, sol = stiff
    with pytest.raises(ValueError, match="`sol` has 2 components, but `problem` 3"):
        ol.indicators(ol.problems.lorenz(), sol)
    with pytest.raises(ValueError, match="`every` must be a whole number"):
        ol.indicators(problem, sol, every=-1)
    with pytest.raises(ValueError, match="`sol` must be a Trajectory"):
        ol.indicators(problem, None)
    with pytest.raises(ValueError, match="`p` must be 1, 2 or"):
        log_norm(np.eye(2), 3)
