"""SI, SAI and NSI: what they do not depend on, what they agree on, and what they refuse."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odelab._solve import solve
from odelab.control.controllers import fixed
from odelab.methods.explicit import EULER, RK4
from odelab.problems import stiff_linear, van_der_pol
from odelab.stiffness.indices import nsi, sai, si
from odelab.stiffness.jacobian import jacobian

torch = pytest.importorskip("torch")

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 8)
factors = st.floats(-1e6, 1e6).filter(lambda c: abs(c) > 1e-6)


def rotation(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


@given(seeds, sizes, factors)
@settings(deadline=None)
def test_si_of_a_multiple_is_the_multiple_of_si(seed, n, c):
    J = np.random.default_rng(seed).normal(size=(n, n))
    assert si(c * J) == pytest.approx(abs(c) * si(J), rel=1e-9)


@given(seeds, st.floats(0.1, 100.0))
@settings(deadline=None, max_examples=30)
def test_si_of_a_faster_right_hand_side(seed, c):
    problem = van_der_pol(mu=5.0)
    u = np.random.default_rng(seed).uniform(0.5, 2.0, 2)

    def faster(t, u, params):
        return tuple(c * slope for slope in problem.rhs(t, u, params))

    slow, fast = (jacobian(rhs, 0.0, u, problem.params) for rhs in (problem.rhs, faster))
    assert si(fast) == pytest.approx(c * si(slow), rel=1e-6)


@given(seeds, sizes)
@settings(deadline=None)
def test_indices_do_not_see_a_rotation(seed, n):
    rng = np.random.default_rng(seed)
    Q, J = rotation(rng, n), rng.normal(size=(n, n))
    t, u, slope = np.cumsum(rng.uniform(0.1, 1.0, 6)), rng.normal(size=(6, n)), rng.normal(size=(6, n))
    assert si(Q @ J @ Q.T) == pytest.approx(si(J), rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(sai(t=t, u=u @ Q.T), sai(t=t, u=u), rtol=1e-11)
    np.testing.assert_allclose(nsi(u @ Q.T, slope @ Q.T), nsi(u, slope), rtol=1e-11)


@given(seeds, st.floats(-290.0, 290.0))
@settings(deadline=None)
def test_nsi_does_not_see_the_scale_or_the_order_of_features(seed, exponent):
    rng = np.random.default_rng(seed)
    x, f = rng.normal(size=(2, 4, 3, 5, 2))
    order = rng.permutation(30)
    scale = 10.0**exponent
    np.testing.assert_allclose(nsi(scale * x, scale * f), nsi(x, f), rtol=1e-12)
    np.testing.assert_allclose(nsi(x.reshape(4, 30)[:, order], f.reshape(4, 30)[:, order]), nsi(x, f), rtol=1e-12)


@given(seeds, st.sampled_from([np.float32, np.float64]))
@settings(deadline=None, max_examples=30)
def test_numpy_and_torch_agree(seed, precision):
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(3, 5, 5)).astype(precision)
    t, u = np.arange(6.0).astype(precision), rng.normal(size=(6, 4, 3)).astype(precision)
    rtol = 1e-12 if precision == np.float64 else 1e-4
    for matrices in (J, J + J.swapaxes(1, 2)):
        np.testing.assert_allclose(si(torch.from_numpy(matrices)).numpy(), si(matrices), rtol=rtol)
    np.testing.assert_allclose(sai(t=torch.from_numpy(t), u=torch.from_numpy(u)).numpy(), sai(t=t, u=u), rtol=rtol)
    index = nsi(torch.from_numpy(u), torch.from_numpy(u[::-1].copy()))
    assert index.dtype == torch.from_numpy(u).dtype
    np.testing.assert_allclose(index.numpy(), nsi(u, u[::-1]), rtol=rtol)


def test_si_is_the_largest_real_part_not_the_largest_modulus():
    turning = np.array([[-1.0, 100.0], [-100.0, -1.0]])  # -1 +- 100i
    assert si(turning) == pytest.approx(1.0)
    assert si(np.stack([-np.eye(2), -2.0 * np.eye(2)])).tolist() == [1.0, 2.0]
    assert si([[3.0]]) == 3.0


def test_sai_of_an_euler_run_is_the_slope_over_the_state_at_any_step():
    problem = van_der_pol(mu=3.0).replace(t_span=(0.0, 1.0))
    for h in (0.1, 0.001):
        run = solve(problem, EULER, fixed(h=h), engine="python")
        slopes = np.array([problem.slope(t, u) for t, u in zip(run.t[:-1], run.u[:-1], strict=True)])
        expected = np.linalg.norm(slopes, axis=1) / np.linalg.norm(run.u[:-1], axis=1)
        np.testing.assert_allclose(sai(run), expected, rtol=1e-14)
        np.testing.assert_allclose(sai(run, simplified=True), np.linalg.norm(slopes, axis=1), rtol=1e-14)


def test_sai_of_a_run_is_that_of_its_observed_states():
    run = solve(van_der_pol(mu=3.0).replace(t_span=(0.0, 1.0)), RK4, fixed(h=0.01))
    np.testing.assert_allclose(sai(run), sai(t=run.t, u=run.u), rtol=1e-10)


def test_sai_of_a_run_is_per_step_whatever_points_were_asked_for():
    problem = van_der_pol(mu=3.0).replace(t_span=(0.0, 1.0))
    plain = solve(problem, RK4, fixed(h=0.1))
    asked = solve(problem, RK4, fixed(h=0.1), t_eval=np.linspace(0.0, 1.0, 11) ** 2)
    np.testing.assert_allclose(sai(asked), sai(plain), rtol=1e-14)


def test_sai_is_infinite_where_a_run_passes_zero():
    index = sai(solve(stiff_linear().replace(t_span=(0.0, 0.01)), EULER, fixed(h=0.001)))  # starts at y = 0
    assert index[0] == np.inf
    assert np.isfinite(index[1:]).all()


@pytest.mark.parametrize("backwards", [False, True])
def test_sai_of_data_is_equation_3(backwards):
    t = np.array([0.0, 0.1, 0.3, 0.6])
    u = np.exp(-5.0 * t)[:, None] * np.array([3.0, 4.0])
    t, u = (t[::-1], u[::-1]) if backwards else (t, u)
    dt = np.diff(t)
    np.testing.assert_allclose(sai(t=t, u=u), np.abs(np.expm1(-5.0 * dt) / dt), rtol=1e-12)
    slopes = np.linalg.norm(np.diff(u, axis=0), axis=1) / np.abs(dt)
    np.testing.assert_allclose(sai(t=t, u=u, simplified=True), slopes, rtol=1e-12)


def test_nsi_of_slope_and_increment_differ_by_the_final_relu():
    x = np.array([[1.0, 2.0]])
    f = np.array([[-3.0, 1.0]])
    after = np.maximum(x + f, 0.0)
    assert nsi(x, f) == pytest.approx(np.sqrt(10.0 / 5.0))
    assert nsi(x, after - x) == pytest.approx(np.sqrt(2.0 / 5.0))


def test_nsi_of_the_slope_is_the_same_for_every_gate():
    rng = np.random.default_rng(0)
    x, f = rng.normal(size=(2, 4, 3, 5, 5))
    for gate in (rng.uniform(0.01, 1.0, (4, 3, 1, 1)), 1.0):
        np.testing.assert_allclose(nsi(x, ((x + gate * f) - x) / gate), nsi(x, f), rtol=1e-12)


def test_equation_14_bounds_nothing():
    """Norms within [k1, k2] = [1, 2] and h = 1, yet a block at rest has NSI 0, below |k1 - k2| / k2 = 0.5."""
    trajectory = np.array([[1.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    assert nsi(trajectory[:-1], np.diff(trajectory, axis=0)).tolist() == [1.0, 0.0]


def test_euler_at_the_block_level_papers_step_is_inaccurate_but_stable():
    """Section 4.1, y' = -1000 y + ... at h = 0.0015: |1 - 1.5| < 1. The limit is 0.002."""
    problem = stiff_linear().replace(t_span=(0.0, 0.09))
    for h, worst, last in ((0.0015, (0.7, 0.8), (0.0, 1e-5)), (0.00225, (1e3, 1e5), (1e3, 1e5))):
        run = solve(problem, EULER, fixed(h=h))
        error = np.abs(run.u - problem.exact(run.t, problem.params)).ravel()
        assert worst[0] < error.max() < worst[1]
        assert last[0] <= error[-1] < last[1]


def test_gradients():
    generator = torch.Generator().manual_seed(0)
    x, f = (torch.randn(3, 2, 4, dtype=torch.float64, generator=generator, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(nsi, (x, f))
    J = torch.randn(4, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda A: si(A + A.mT), (J,))
    assert torch.autograd.gradcheck(si, (J,))


ones = np.ones((2, 3))
REFUSED = [
    (lambda: nsi(ones * [1.0, np.nan, 1.0], ones), ValueError, r"`state` must be finite, got nan at \(0, 1\)"),
    (lambda: nsi(ones, ones * np.inf), ValueError, r"`slope` must be finite, got inf"),
    (lambda: nsi(ones * [[1.0], [0.0]], ones), ValueError, "`state` is zero at 1"),
    (lambda: nsi(np.ones((0, 3)), np.ones((0, 3))), ValueError, "`state` is empty"),
    (lambda: nsi(ones, np.ones((2, 4))), ValueError, r"`slope` has shape \(2, 4\), but `state` \(2, 3\)"),
    (lambda: nsi(ones[0], ones[0]), ValueError, "`state` must be a batch"),
    (lambda: nsi(ones + 0j, ones), TypeError, "`state` must hold real numbers"),
    (lambda: nsi(ones * 1e-300, ones * 1e300), ValueError, "`slope` over `state` overflows"),
    (lambda: si(ones), ValueError, r"`J` must be square.*got shape \(2, 3\).*singular values"),
    (lambda: si(np.full((2, 2), np.nan)), ValueError, r"`J` must be finite, got nan at \(0, 0\)"),
    (lambda: si(np.ones((0, 2, 2))), ValueError, "`J` is empty"),
    (lambda: si([[1.0, 2.0], [3.0]]), ValueError, "`J` is no array"),
    (lambda: sai(), TypeError, "either a run"),
    (lambda: sai(t=np.arange(2.0)), TypeError, "`u` is missing"),
    (lambda: sai(t=np.arange(3.0), u=ones), ValueError, r"`u` must hold one state per time, \(3, n\)"),
    (lambda: sai(t=np.array([0.0]), u=ones[:1]), ValueError, "`t` must hold at least two times"),
    (lambda: sai(t=np.array([0.0, 0.0]), u=ones), ValueError, "`t` must run strictly one way, got 0.0 then 0.0 at 1"),
    (lambda: sai(t=np.array([0.0, 2.0, 1.0]), u=np.ones((3, 1))), ValueError, "got 2.0 then 1.0 at 2"),
    (lambda: sai(t=np.arange(2.0), u=ones * np.nan), ValueError, "`u` must be finite"),
    (lambda: sai(t=np.arange(2.0), u=ones * 0.0), ValueError, "`u` is zero at 0"),
    (lambda: sai(SimpleNamespace(u=ones, slope=ones, t=[0, 1])), ValueError, "`sol` must hold one state more"),
    (lambda: sai(SimpleNamespace(u=ones * np.nan, slope=ones[:1], t=[0, 1])), ValueError, "`sol.u` must be finite"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refusals_name_the_argument_and_the_value(call, error, words):
    with pytest.raises(error, match=words):
        call()
