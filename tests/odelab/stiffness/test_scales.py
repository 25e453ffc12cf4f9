"""Scales of time: what they are on problems whose answer is known, and what they do not depend on."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol

torch = pytest.importorskip("torch")

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


J = np.array([[-1.0, 100.0], [0.0, -2.0]])
NAN = np.array([[np.nan, 0.0], [0.0, -1.0]])
t, u = np.linspace(0.0, 1.0, 5), np.arange(10.0).reshape(5, 2)
needs = torch.ones(2, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ol.accuracy_step(-1.0, 1e-3, 5), ValueError, "`derivative` must be at least 0"),
        (lambda: ol.accuracy_step(1.0, np.inf, 5), ValueError, "`tolerance` positive and finite"),
        (lambda: ol.accuracy_step(1.0, 1e-3, 2.5), ValueError, "`order` must be a whole number"),
        (lambda: ol.accuracy_step(np.ones(2), 1e-3, 2), ValueError, "`derivative` must be one real number"),
        (lambda: ol.accuracy_step(needs[0], 1e-3, 2), TypeError, "`derivative` requires gradients"),
        (lambda: ol.window_derivative([0.0, 1.0], [[1.0], [2.0]], 2, 1.0), ValueError, "`t` must be increasing"),
        (lambda: ol.window_derivative(t, np.where(u > 8.0, np.nan, u), 1, 1.0), ValueError, "`u` must be finite"),
        (lambda: ol.window_derivative(t, u, 1, 0.0), ValueError, "`scale` must be one positive number"),
        (
            lambda: ol.window_derivative(t, u, 1, [1.0, 2.0, 3.0]),
            ValueError,
            "`scale` must be one positive number or 2",
        ),
        (lambda: ol.window_derivative(t, u, True, 1.0), ValueError, "`order` must be a whole number"),
        (lambda: ol.window_derivative(1e-100 * t, u**4, 4, 1e-9), ValueError, "too large for a number"),
        (
            lambda: ol.window_derivative(np.linspace(0.0, 1.0, 60), np.ones((60, 1)), 1, 1.0),
            ValueError,
            "no polynomial",
        ),
        (lambda: ol.motion_rate(J, np.array([np.nan, 1.0])), ValueError, "`f` must be finite"),
        (lambda: ol.motion_rate(NAN, np.ones(2)), ValueError, "`J` must be finite"),
        (lambda: ol.motion_rate(J, np.ones(3)), ValueError, r"`J` must be \(3, 3\)"),
        (lambda: ol.motion_rate(J, np.ones((2, 1))), ValueError, "`f` must be a slope"),
        (lambda: ol.motion_rate(J, np.ones(2), 1.0), ValueError, "`f_t` must have the shape of `f`"),
        (lambda: ol.motion_rate(1j * J, np.ones(2)), TypeError, "`J` must hold real numbers"),
        (lambda: ol.motion_rate(J, needs), TypeError, "`f` requires gradients"),
        (lambda: ol.chi(J, 1.0, 1e-4, ol.DOPRI5), ValueError, "`values` must be a row of eigenvalues"),
        (lambda: ol.chi([1.0], -1.0, 1e-4, ol.DOPRI5), ValueError, "`derivative` must be at least 0"),
        (lambda: ol.chi([np.nan], 1.0, 1e-4, ol.DOPRI5), ValueError, "`values` must be finite"),
        (lambda: ol.chi([-1.0], 1.0, 1e-4, ol.RK4), TypeError, "`method` must estimate its error"),
        (lambda: ol.chi(-needs, 1.0, 1e-4, ol.DOPRI5), TypeError, "`values` requires gradients"),
        (lambda: ol.nongrowing_radius(-needs), TypeError, "`values` requires gradients"),
        (lambda: ol.power_bounded_step(NAN, ol.DOPRI5), ValueError, "`J` must be finite"),
        (lambda: ol.power_bounded_step(np.ones(3), ol.DOPRI5), ValueError, "`J` must be square"),
        (lambda: ol.power_bounded_step(J, ol.DOPRI5, -1.0), ValueError, "`scale` must be one positive number"),
        (lambda: ol.power_bounded_step(J, ol.RODAS4), TypeError, "`method` must be an explicit Method"),
        (lambda: ol.power_bounded_step(1j * J, ol.DOPRI5), TypeError, "`J` must hold real numbers"),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_tensors_and_sparse_matrices_give_what_arrays_do():
    f = np.array([1.0, 3.0])
    wanted = ol.motion_rate(J, f)
    assert ol.motion_rate(torch.from_numpy(J), torch.from_numpy(f)) == wanted
    assert ol.motion_rate(scipy.sparse.csr_array(J), f) == pytest.approx(wanted)
    assert ol.power_bounded_step(scipy.sparse.csr_array(J), ol.DOPRI5) == ol.power_bounded_step(J, ol.DOPRI5)
    assert ol.chi(torch.tensor([-1e3, -1.0]), 1.0, 1e-4, ol.DOPRI5) == ol.chi([-1e3, -1.0], 1.0, 1e-4, ol.DOPRI5)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e200])
def test_rates_of_slopes_of_any_size(size):
    """One component at a rate of 7, however small or large the slope: nothing over- or underflows on the way."""
    assert ol.motion_rate(np.array([[-7.0]]), np.array([size])) == pytest.approx(7.0)
    assert ol.motion_rate(np.array([[0.0]]), np.array([size]), np.array([7.0 * size])) == pytest.approx(7.0)


def test_a_slope_of_zero_stands_still_or_turns():
    assert ol.motion_rate(J, np.zeros(2)) == 0.0
    assert ol.motion_rate(J, np.zeros(2), np.array([0.0, 1.0])) == np.inf


def test_a_defective_and_a_singular_matrix_and_one_component():
    jordan = np.array([[-5.0, 1.0], [0.0, -5.0]])
    values = np.linalg.eigvals(jordan)
    assert ol.nongrowing_radius(values) == pytest.approx(5.0)
    assert ol.power_bounded_step(jordan, ol.DOPRI5) == pytest.approx(
        ol.power_bounded_step([[-5.0]], ol.DOPRI5), rel=0.1
    )
    assert ol.motion_rate(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0])) == 0.0
    assert ol.chi([0.0, -5.0], 1.0, 1e-4, ol.DOPRI5) == ol.chi([-5.0], 1.0, 1e-4, ol.DOPRI5)


def test_three_modes_by_root_finding():
    """h_stab of -1, i and i - 1 is the smallest of the roots of |R(h lambda)| = 1 along three rays."""

    def root(value):
        def excess(h):
            return abs(ol.RK4.stability(h * value)) - 1.0

        grid = np.linspace(1e-3, 4.0, 4000)
        outside = grid[np.argmax([excess(h) > 1e-12 for h in grid])]
        return scipy.optimize.brentq(excess, outside - 1e-3, outside)

    found = ol.largest_stable_step([-1.0, 1j, -1j, 1j - 1.0, -1j - 1.0], ol.RK4, modes="nongrowing")
    assert found == pytest.approx(min(root(value) for value in (-1.0, 1j, 1j - 1.0)), rel=1e-6)


@pytest.mark.parametrize("real", [-0.01, -1.0])
def test_s_of_a_fast_oscillation_is_near_zero_although_stability_binds(real):
    """The counterexample to reading s[J] as the sign of stability-bound steps."""
    problem = ol.problems.forced_linear(((real, -1000.0), (1000.0, real)))
    t1 = problem.t_span[1]
    assert abs(ol.soderlind(problem.jacobian(0.0, problem.u0, problem.params)) * t1) <= 10.0
    run = ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-3, 1e-6))
    assert run.steps > 0.5 * t1 * 1000.0  # a step of h |lambda| about 1, for a solution that needs some tens
