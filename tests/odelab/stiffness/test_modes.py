"""Modes: participations sum to one, units play no part, merging modes stay one group, and words say what is known."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import hilbert

import odelab as ol

EPS = np.finfo(float).eps
seeds = st.integers(0, 2**32 - 1)


def spread_spectrum(seed, n):
    """A matrix whose rates spread over many decades, with eigenvectors of condition numbers below about ten."""
    rng = np.random.default_rng(seed)
    V = np.eye(n) + 0.3 * rng.uniform(-1.0, 1.0, (n, n)) / np.sqrt(n)
    return V @ np.diag(-(10.0 ** rng.uniform(-2.0, 5.0, n))) @ np.linalg.inv(V)


@given(seeds, st.integers(1, 12))
@settings(deadline=None, max_examples=40)
def test_participations_sum_to_one_over_the_modes_and_over_the_components(seed, n):
    groups = ol.participation(spread_spectrum(seed, n))
    assert sum(len(group.rates) for group in groups) == n
    for group in groups:
        rounding = 100.0 * n * (group.uncertainty + EPS)
        assert group.participation.sum() == pytest.approx(len(group.rates), abs=rounding)
        assert np.abs(group.left @ group.right - np.eye(len(group.rates))).max() <= rounding
        assert group.share.sum() == pytest.approx(1.0, abs=n * EPS)
    everything = sum(group.participation for group in groups)
    np.testing.assert_allclose(everything, 1.0, atol=100.0 * n * max(group.uncertainty + EPS for group in groups))


@given(seeds, st.integers(2, 12), st.floats(1.5, 100.0))
@settings(deadline=None, max_examples=30)
def test_groups_are_apart_by_the_gap_and_have_none_inside(seed, n, gap):
    sizes = [np.abs(group.rates) for group in ol.participation(spread_spectrum(seed, n), gap)]
    for size in sizes:
        assert (size[:-1] <= gap * size[1:] * (1.0 + 1e-9)).all()
    for fast, slow in itertools.pairwise(sizes):
        assert fast.min() > gap * slow.max() * (1.0 - 1e-9)


@given(seeds, st.integers(2, 8))
@settings(deadline=None, max_examples=20)
def test_a_projector_commutes_with_the_matrix_and_is_one_twice(seed, n):
    J = spread_spectrum(seed, n)
    for group in ol.participation(J):
        Q = group.right @ group.left
        assert np.abs(Q @ Q - Q).max() <= 1e-12
        assert np.abs(J @ Q - Q @ J).max() <= 1e-12 * np.abs(J).max()
        assert np.trace(J @ Q).real == pytest.approx(group.rates.sum().real, abs=1e-12 * np.abs(J).max())


@given(seeds, st.integers(2, 8))
@settings(deadline=None, max_examples=20)
def test_the_projectors_of_a_normal_matrix_have_norm_one(seed, n):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    for group in ol.participation(V @ np.diag(-(10.0 ** np.arange(n))) @ V.T):
        assert group.projector_norm == pytest.approx(1.0, abs=1e-9)


def states():
    """Problems at states of their solutions: (problem, t, u)."""
    for problem, times in (
        (ol.problems.robertson(), (1e-5, 0.4, 40.0)),
        (ol.problems.oregonator(), (1.0, 100.0, 300.0)),
        (ol.problems.van_der_pol(mu=1000.0), (1.0, 500.0)),
    ):
        for t in times:
            yield problem, t, ol.solve(problem.replace(t_span=(0.0, t)), ol.RODAS4, ol.adaptive(1e-8, 1e-14)).end_u


@pytest.mark.parametrize(("problem", "t", "u"), list(states()), ids=lambda value: getattr(value, "name", ""))
def test_units_of_the_components_change_nothing(problem, t, u):
    n = problem.size
    D = 10.0 ** np.array([-7, 5, 3])[:n]
    J = ol.jacobian(problem, t, u, how="complex" if problem.jacobian is None else "analytic")
    scaled = ol.participation(J / D * D[:, None])
    for group, same in zip(ol.participation(J), scaled, strict=True):
        assert np.abs(group.share - same.share).max() <= max(1e-14, group.uncertainty + same.uncertainty)
    assert ol.participation(J)[0].uncertainty + scaled[0].uncertainty < 1e-14
    D = 2.0 ** np.array([-23, 17, 10])[:n]  # so that the slope has the same rounding
    rhs, span = (lambda t, v, params: D * problem.slope(t, v / D)), problem.t_span
    other = ol.Problem(rhs, D * problem.u0, span, jacobian=lambda t, v, params: J / D * D[:, None])
    problem = problem.replace(jacobian=lambda t, v, params: J)
    here, there = ol.modes(problem, t, u, atol=0.0), ol.modes(other, t, D * u, atol=0.0)
    assert here.exhausted == there.exhausted
    assert there.tangential_rate == pytest.approx(here.tangential_rate, rel=1e-9)


@pytest.mark.parametrize(("problem", "t", "u"), list(states()), ids=lambda value: getattr(value, "name", ""))
def test_sixty_digits_have_the_same_participations(problem, t, u):
    mpmath = pytest.importorskip("mpmath")
    J = ol.jacobian(problem, t, u, how="complex" if problem.jacobian is None else "analytic")
    with mpmath.workdps(60):
        rates, right = mpmath.eig(mpmath.matrix(J.tolist()))
        left = right**-1
        leading = max(range(len(J)), key=lambda i: abs(rates[i]))
        want = [complex(right[k, leading] * left[leading, k]).real for k in range(len(J))]
    fast = ol.participation(J)[0]
    assert len(fast.rates) == 1
    np.testing.assert_allclose(fast.participation, want, atol=1e-13)


@given(st.floats(0.1, 1e3), st.floats(5.0, 1e6))
@settings(deadline=None, max_examples=30)
def test_a_companion_matrix_has_them_in_closed_form(slow, ratio):
    fast = slow * ratio  # x'' + (slow + fast) x' + slow fast x = 0
    first, second = ol.participation([[0.0, 1.0], [-slow * fast, -slow - fast]])
    want = np.array([-slow, fast]) / (fast - slow)
    np.testing.assert_allclose(first.participation, want, atol=1e-13)
    np.testing.assert_allclose(second.participation, want[::-1], atol=1e-13)
    np.testing.assert_allclose([first.rates[0].real, second.rates[0].real], [-fast, -slow], rtol=1e-9)


@pytest.mark.parametrize("apart", [1e-4, 1e-8, 1e-12, 0.0])
def test_two_modes_about_to_merge_are_one_group(apart):
    """(lambda + 100.05)^2 = apart / 4: their eigenvectors turn into each other, their common space does not."""
    J = np.array([[-100.0, 1.0, 5.0], [(apart - 0.01) / 4.0, -100.1, 0.0], [0.0, 0.3, -1.0]])
    both, slow = ol.participation(J)
    assert both.participation.sum() == pytest.approx(2.0, abs=1e-10)
    np.testing.assert_allclose(both.participation, [1.0, 1.0, 0.0], atol=1e-7)
    assert both.uncertainty < 1e-12
    assert both.projector_norm < 1.01
    np.testing.assert_allclose(slow.participation, [0.0, 0.0, 1.0], atol=1e-7)


def planted(mixing, n=40):
    rng = np.random.default_rng(0)
    V = np.eye(n) + mixing * rng.standard_normal((n, n))
    rates = -np.logspace(0, 1, n)
    rates[[7, 23]] = [-1e4, -1.5e4]
    return V @ np.diag(rates) @ np.linalg.inv(V)


def test_planted_components_are_named_and_hidden_ones_are_not():
    found = ol.participation(planted(0.1))[0]
    assert set(np.argsort(-found.share)[:2]) == {7, 23}
    assert "u[7]" in str(found)
    assert "u[23]" in str(found)
    lost = str(ol.participation(planted(0.3))[0])
    assert "spread over" in lost
    assert "u[" not in lost


@pytest.mark.parametrize(
    ("J", "said"),
    [
        ([[-5.0]], "mode: decays at 5, 100 % u[0]"),
        ([[0.0, 0.0], [0.0, 2.0]], "mode: grows at 2, 100 % u[1]"),
        ([[0.0, 9.0, 0.0], [-9.0, 0.0, 0.0], [0.0, 0.0, 1.0]], "modes (2): oscillate at 9, 50 % u[0], 50 % u[1]"),
        (np.diag([-4.0, -10.0, -0.1]), "modes (2): decay at rates from 4 to 10, 50 % u[0], 50 % u[1]"),
        (np.diag([-4.0, 10.0, -0.1]), "modes (2): grow and decay at rates from 4 to 10, 50 % u[0], 50 % u[1]"),
        ([[0.0, 0.0], [0.0, 0.0]], "modes (2): stand still, 50 % u[0], 50 % u[1]"),
        ([[0.0]], "mode: stands still, 100 % u[0]"),
    ],
)
def test_sentences(J, said):
    assert str(ol.participation(J)[0]) == said


@pytest.mark.parametrize("seed", range(5))
def test_a_conserved_sum_stands_still_whatever_rounding_says(seed):
    """Columns that sum to zero: matter goes round, its amount stays."""
    J = np.random.default_rng(seed).uniform(0.1, 1.0, (5, 5))
    J -= np.diag(J.sum(axis=0))
    slowest = ol.participation(J)[-1]
    assert slowest.rates.tolist() == [0.0]
    assert str(slowest).startswith("mode: stands still")


def test_names_are_used():
    assert (
        str(ol.participation(np.diag([-100.0, -1.0]), names=["heat", "flow"])[0]) == "mode: decays at 1e+02, 100 % heat"
    )
    with pytest.raises(ValueError, match="must name 2 components, got 1"):
        ol.participation(np.diag([-100.0, -1.0]), names=["heat"])


def test_components_that_rounding_hides_are_not_named():
    V = hilbert(9)
    found = ol.participation(V @ np.diag(-(10.0 ** np.arange(9))) @ np.linalg.inv(V))[0]
    assert found.uncertainty > 0.05
    assert "cannot be told" in str(found)


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, lambda J: ol.JacobianOperator(J.shape, lambda v: J @ v)]
)
def test_matrices_of_every_form_give_the_same(form):
    J = spread_spectrum(3, 6)
    for group, same in zip(ol.participation(J), ol.participation(form(J)), strict=True):
        np.testing.assert_allclose(group.participation, same.participation, atol=1e-12)


def linear(rates, u0):
    return ol.Problem(lambda t, u, params: np.array(rates) * u, u0, (0.0, 1.0))


@pytest.mark.parametrize(
    ("rates", "u0", "exhausted", "rate"),
    [
        ([-1000.0, -1.0], [0.0, 1.0], 1, -1.0),
        ([-1000.0, -1.0], [1.0, 0.0], 0, -1000.0),
        ([1000.0, -1.0], [0.0, 1.0], 0, -1.0),  # what grows never dies out
        ([-1e6, -1e3, -1.0], [0.0, 0.0, 1.0], 2, -1.0),
        ([-1e6, -1e3, -1.0], [0.0, 1.0, 1.0], 1, -1000.0),
        ([-1000.0, -1.0], [0.0, 0.0], 1, np.nan),
    ],
)
def test_exhausted_modes_and_the_tangential_rate_of_linear_problems(rates, u0, exhausted, rate):
    found = ol.modes(linear(rates, u0))
    assert found.exhausted == exhausted
    assert found.tangential_rate == pytest.approx(rate, rel=1e-5, nan_ok=True)


def test_without_a_gap_no_mode_is_called_fast():
    assert str(ol.modes(linear([-1.0, -2.0, -3.0], [1.0, 1.0, 1.0]))) == (
        "no mode is fast by itself: there is no gap between the rates of 3 of 3 modes"
    )
    assert "no mode is fast by itself" in str(ol.modes(ol.problems.heat_1d()))
    assert str(ol.modes(linear([-5.0], [1.0]))) == "fast mode: decays at 5, 100 % u[0]; 0 of 1 modes exhausted"


def test_davis_skodje_has_one_stiff_component_exactly():
    problem = ol.problems.davis_skodje()
    for t in (0.0, 0.01, 1.0):
        fast = ol.modes(problem, t, problem.exact(t, problem.params)).groups[0]
        assert fast.rates == pytest.approx([-10.0], rel=1e-14)
        np.testing.assert_allclose(fast.participation, [0.0, 1.0], atol=1e-15)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: ol.participation(np.ones((2, 3))), ValueError, "must be square"),
        (lambda: ol.participation(np.eye(2), gap=1.0), ValueError, "above 1"),
        (lambda: ol.participation(sparse.eye_array(5000)), ValueError, "at most 2048"),
        (lambda: ol.modes(np.eye(2)), TypeError, "use odelab.participation"),
        (lambda: ol.modes(ol.problems.robertson(), 0.0, [1.0, 2.0]), ValueError, "state of 3 components"),
        (lambda: ol.modes(ol.problems.robertson(), rtol=0.0), ValueError, "`rtol` must be positive"),
    ],
)
def test_refusals_say_what_to_do(call, error, said):
    with pytest.raises(error, match=said):
        call()
