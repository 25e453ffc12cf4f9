"""RKC2: its stability polynomial, its times, its stage number, its order and its calibration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.methods import chebyshev
from tests.odelab.engines.numba.rkc_cases import METHOD, PARABOLIC
from tests.odelab.solver_cases import PENDULUM, Recorder

CHEBYSHEV = np.polynomial.chebyshev.Chebyshev
stages = st.integers(2, 60)


def rkc_step(rhs, t, u, h, s, params=()):
    return METHOD.step(rhs, params, t, u, rhs(t, u, params), h, chebyshev.Gain(h, s))[:4]


def polynomial(s):
    """R_s from NumPy's Chebyshev series: a_s + b_s T_s(w0 + w1 z)."""
    t = CHEBYSHEV.basis(s)
    w0 = 1.0 + 2.0 / 13.0 / s**2
    first, second = t.deriv(1)(w0), t.deriv(2)(w0)
    b = second / first**2
    return lambda z: 1.0 - b * t(w0) + b * t(w0 + first / second * z)


@given(s=stages, share=st.floats(0.0, 1.0), tilt=st.floats(-0.2, 0.2))
def test_a_step_multiplies_by_the_stability_polynomial(s, share, tilt):
    z = -share * 0.66 * s * s * np.exp(1j * tilt)
    new, slope, _, slopes = rkc_step(lambda t, u, params: z * u, 0.0, np.array([1.0 + 0j]), 1.0, s)
    np.testing.assert_allclose(new[0], polynomial(s)(z), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(METHOD.stability(z, s), polynomial(s)(z), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(slope[0], new[0] - 1.0, rtol=1e-12)
    np.testing.assert_allclose(slopes, [[z], [z * new[0]]], rtol=1e-12)


@given(h_rho=st.floats(0.0, 1e4))
@settings(max_examples=60)
def test_the_stage_number_is_enough_and_not_too_much(h_rho):
    s = chebyshev.stage_number(h_rho)
    assert np.abs(METHOD.stability(-np.linspace(0.0, h_rho, 400), s)).max() <= 1.0
    assert s == 1 + int(np.sqrt(1.54 * h_rho + 1.0))
    if s > 2:
        assert METHOD.boundary(s - 1) < 1.02 * h_rho
    assert chebyshev.stage_number(chebyshev.most_stable(s) * (1.0 - 1e-12)) == s


@given(s=st.integers(2, 400))
def test_the_region_reaches_along_the_axis_and_is_damped_inside(s):
    boundary = METHOD.boundary(s)
    assert 0.64 * (s * s - 1) < boundary < 0.67 * (s * s - 1)
    inside = METHOD.stability(-np.linspace(0.05 * boundary, 0.999 * boundary, 500), s)
    assert np.abs(inside).max() < 0.96 if s > 2 else np.abs(inside).max() <= 1.0


@pytest.mark.parametrize("s", [2, 3, 7, 30])
def test_order_two_of_the_polynomial(s):
    z = 1e-3
    error = METHOD.stability(z, s) - np.exp(z)
    assert abs(error) < 0.2 * z**3
    assert abs(error) > 0.01 * z**3


@given(s=stages, h=st.floats(0.01, 0.5), t=st.floats(-2.0, 2.0), u=st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_time_is_one_more_component(s, h, t, u):
    """u' = f(t, u) and (u, time)' = (f(time, u), 1) give the same step: every stage has its right time."""

    def driven(t, u, params):
        return PENDULUM.slope(t, u)

    def autonomous(t, u, params):
        return np.append(PENDULUM.slope(u[2], u[:2]), 1.0)

    alone, _, error, _ = rkc_step(driven, t, np.array(u), h, s)
    together, _, error_too, _ = rkc_step(autonomous, 0.0, np.array([*u, t]), h, s)
    np.testing.assert_allclose(together, [*alone, t + h], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(error_too[0][:2], error[0], rtol=1e-9, atol=1e-11)


def test_stage_times_rise_from_start_to_end():
    recorder = Recorder(lambda t, u, params: -u)
    rkc_step(recorder, 2.0, np.array([1.0]), 0.5, 12)
    times = np.array(recorder.times)
    assert len(times) == 13
    assert times[0] == 2.0
    assert (np.diff(times) > 0).all()
    assert abs(times[-1] - 2.5) < 1e-14


@pytest.mark.parametrize("s", [200, 1000])
def test_internal_stability(s):
    """Rounding grows no faster than s^2 over the stages: a stiff linear system against its exact polynomial."""
    n = 60
    problem = ol.problems.heat_1d(n)
    h = 0.95 * METHOD.boundary(s) / (4.0 * (n + 1.0) ** 2)
    values, vectors = np.linalg.eigh(problem.jacobian(0.0, problem.u0, problem.params).toarray())
    rough = np.random.default_rng(3).standard_normal(n)
    exact = vectors @ (METHOD.stability(h * values, s) * (vectors.T @ rough))
    new, *_ = rkc_step(lambda t, u, params: problem.slope(t, u), 0.0, rough, h, s)
    assert np.linalg.norm(new - exact) <= 1e-16 * s**2 * np.linalg.norm(rough)


def test_observed_order_two():
    method = ol.rkc2(3.0)
    for problem in (PENDULUM, ol.problems.heat_1d_wave(n=20, diffusivity=0.01)):
        used = method if problem is PENDULUM else ol.RKC2
        assert abs(float(ol.observed_order(used, problem, engine="python")) - 2.0) < 0.2


@given(u=st.tuples(st.floats(-2, 2), st.floats(-2, 2)))
def test_the_error_estimate_falls_with_the_third_derivative(u):
    """h^3 y''' / 15 along the numerical solution, and 0.8 of the step's own error, as much again: 0.12 h^3 y'''."""
    h = 0.125
    *_, errors, _ = rkc_step(lambda t, u, params: np.array([t, t * t]), 0.3, np.array(u), h, 40)
    np.testing.assert_allclose(errors[0], [0.0, 0.12 * 2.0 * h**3], rtol=1e-2, atol=1e-12)


def test_torch_takes_the_same_step_with_gradients():
    torch = pytest.importorskip("torch")
    start = torch.tensor([1.0, -0.5], dtype=torch.float64, requires_grad=True)
    new = rkc_step(lambda t, u, params: -3.0 * u * u * u + t, 0.1, start, 0.5, 9)[0]
    (gradient,) = torch.autograd.grad(new.sum(), start)
    plain = rkc_step(lambda t, u, params: -3.0 * u * u * u + t, 0.1, np.array([1.0, -0.5]), 0.5, 9)[0]
    np.testing.assert_array_equal(new.detach().numpy(), plain)
    sides = [
        rkc_step(lambda t, u, params: -3.0 * u * u * u + t, 0.1, np.array([1.0 + s, -0.5]), 0.5, 9)[0]
        for s in (1e-6, -1e-6)
    ]
    np.testing.assert_allclose(gradient[0].item(), (sides[0] - sides[1]).sum() / 2e-6, rtol=1e-6)


@pytest.fixture(scope="module")
def truths():
    def end(problem):
        if problem.exact is not None:
            return problem.exact(problem.t_span[1], problem.params)
        return ol.solve(problem, ol.BDF, ol.adaptive(1e-9, 1e-11)).u[-1]

    return {name: end(problem) for name, problem in PARABOLIC.items()}


@pytest.mark.parametrize("rtol", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("name", PARABOLIC)
def test_the_error_at_the_end_is_the_tolerance_within_a_factor_of_ten(name, rtol, truths):
    run = ol.solve(PARABOLIC[name], METHOD, ol.adaptive(rtol, 1e-3 * rtol), engine="python")
    error = np.linalg.norm(run.u[-1] - truths[name]) / np.linalg.norm(truths[name])
    assert 0.1 <= error / rtol <= 10.0


def test_prothero_and_robinson_at_a_rate_of_a_million():
    """Wrong stage times cost a thousand attempts here."""
    run = ol.solve(ol.problems.prothero_robinson(), METHOD, ol.adaptive(1e-4, 1e-7))
    assert run.steps + run.rejected <= 40
    assert abs(run.u[-1, 0] - np.sin(1.0 + np.pi / 4.0)) < 1e-3


def test_far_less_work_than_an_explicit_method():
    problem = ol.problems.brusselator_1d(n=100)
    truth = ol.solve(problem, ol.BDF, ol.adaptive(1e-9, 1e-11)).u[-1]
    stable = ol.solve(problem, METHOD, ol.adaptive(3e-5, 3e-7), engine="python")
    assert np.linalg.norm(stable.u[-1] - truth) < 2e-4 * np.linalg.norm(truth)
    least = 6 * 10.0 * 4.0 * 0.02 * 101.0**2 / ol.DOPRI5.real_boundary  # what stability alone costs DOPRI5
    assert stable.evaluations < least / 7
