"""Scales of time: what they are on problems whose answer is known, and what they do not depend on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol

matrices = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).standard_normal((4, 4)))


def chebyshev(a, b, count):
    return 0.5 * (a + b) - 0.5 * (b - a) * np.cos(np.pi * (np.arange(count) + 0.5) / count)


@given(st.integers(1, 6), st.floats(0.1, 30.0))
@settings(deadline=None)
def test_derivatives_of_an_exponential_are_powers_of_its_rate(order, rate):
    t = chebyshev(0.0, 1.0 / rate, 10)
    u = np.exp(-rate * t)[:, None]
    exact = rate**order * np.exp(-rate * np.linspace(0.15, 0.85, 5) / rate).mean()
    assert ol.window_derivative(t, u, order, 1.0) == pytest.approx(exact, rel=1e-3)


@given(matrices, st.floats(0.01, 100.0))
@settings(deadline=None)
def test_rates_scale_as_time_does(J, factor):
    f = np.arange(1.0, 5.0)
    assert ol.motion_rate(factor * J, factor * f) == pytest.approx(factor * ol.motion_rate(J, f))
    values = np.linalg.eigvals(J)
    assert ol.nongrowing_radius(factor * values) == pytest.approx(factor * ol.nongrowing_radius(values))
    a, b = ol.power_bounded_step(J, ol.DOPRI5), ol.power_bounded_step(factor * J, ol.DOPRI5)
    assert a == pytest.approx(b * factor)


@given(matrices, st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_chi_has_no_unit(J, factor):
    """Time in another unit: eigenvalues times a, the k-th derivative times a^k."""
    values = np.linalg.eigvals(J - 3.0 * np.eye(4))
    one = ol.chi(values, 2.0, 1e-4, ol.DOPRI5)
    other = ol.chi(factor * values, 2.0 * factor**ol.DOPRI5.error_order, 1e-4, ol.DOPRI5)
    assert other == pytest.approx(one, rel=1e-6)


@given(st.floats(1.0, 1e6), st.floats(1e-8, 1e-2))
@settings(deadline=None)
def test_chi_of_one_decaying_mode_is_in_closed_form(rate, tolerance):
    """A solution that moves at the rate 1 beside a mode of this rate."""
    h_acc = tolerance ** (1.0 / ol.DOPRI5.error_order)
    wanted = h_acc * rate / ol.largest_stable_step([-1.0], ol.DOPRI5, gain=0.02)
    assert ol.chi([-rate, 50.0], 1.0, tolerance, ol.DOPRI5) == pytest.approx(wanted, rel=1e-6)


def test_nothing_that_decays_or_oscillates_binds_nothing():
    assert ol.chi([5.0], 1.0, 1e-4, ol.DOPRI5) == 0.0
    assert ol.chi([-1.0], 0.0, 1e-4, ol.DOPRI5) == np.inf
    assert ol.nongrowing_radius([3.0]) == 0.0


def test_the_origin_moves_sai_and_not_the_rate_of_motion():
    for offset in (0.0, 10.0, 1000.0):
        problem = ol.problems.forced_linear(offset=offset)
        t, u = 1.0, problem.exact(1.0, problem.params)
        f, J = problem.slope(t, u), problem.jacobian(t, u, problem.params)
        later = (problem.slope(t + 1e-6, u) - problem.slope(t - 1e-6, u)) / 2e-6
        assert ol.motion_rate(J, f, later) == pytest.approx(abs(np.cos(1.0) / np.sin(1.0)), rel=1e-4)
        if offset == 1000.0:
            assert np.linalg.norm(f) / np.linalg.norm(u) < 1e-3


def test_powers_see_what_eigenvalues_do_not():
    """A normal matrix is bound where its eigenvalues say; a sheared one before."""
    values = [-50.0, -20.0, -1.0]
    stable = ol.largest_stable_step(values, ol.DOPRI5)
    assert stable < ol.power_bounded_step(np.diag(values), ol.DOPRI5) < 1.5 * stable
    sheared = np.diag(values) + np.diag([1e4, 1e4], 1)
    assert ol.power_bounded_step(sheared, ol.DOPRI5) < 0.2 * stable
    assert ol.power_bounded_step(np.zeros((2, 2)), ol.DOPRI5) == np.inf


@pytest.mark.parametrize("size", [1e-17, 1e-200, 1e12])
def test_no_step_is_too_small_or_too_large_for_its_number(size):
    assert ol.accuracy_step(derivative=1.0 / size, tolerance=1.0, order=1) == pytest.approx(size, rel=1e-14)
    assert ol.accuracy_step(derivative=size**-1.5, tolerance=1.0, order=2) == pytest.approx(size**0.75, rel=1e-14)


def test_what_is_refused():
    with pytest.raises(ValueError, match="`derivative` must be at least 0"):
        ol.accuracy_step(-1.0, 1e-3, 5)
    with pytest.raises(ValueError, match="`t` must be increasing"):
        ol.window_derivative([0.0, 1.0], [[1.0], [2.0]], 2, 1.0)
    with pytest.raises(ValueError, match="`u` must be finite"):
        ol.window_derivative([0.0, 1.0, 2.0], [[1.0], [2.0], [np.nan]], 1, 1.0)


@pytest.mark.parametrize("real", [-0.01, -1.0])
def test_s_of_a_fast_oscillation_is_near_zero_although_stability_binds(real):
    """The counterexample to reading s[J] as the sign of stability-bound steps."""
    problem = ol.problems.forced_linear(((real, -1000.0), (1000.0, real)))
    t1 = problem.t_span[1]
    assert abs(ol.soderlind(problem.jacobian(0.0, problem.u0, problem.params)) * t1) <= 10.0
    run = ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-3, 1e-6))
    assert run.steps > 0.5 * t1 * 1000.0  # a step of h |lambda| about 1, for a solution that needs some tens
