"""The spectral radius behind RKC2: found, kept, asked for anew, given by the user, and what it costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.methods import chebyshev, stabilised
from odelab.methods import spectral_radius as radius
from tests.odelab.engines.numba.rkc_cases import METHOD
from tests.odelab.solver_cases import Recorder


def test_the_power_method_seldom_falls_short_on_symmetric_systems():
    """Random matrices, whose largest eigenvalues lie close together: harder for it than a grid's."""
    enough = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 41))
        matrix = rng.standard_normal((n, n))
        matrix, u = -(10.0 ** rng.uniform(-2, 6)) * (matrix @ matrix.T), rng.standard_normal(n)
        found, direction, count = estimated(matrix, u)
        largest = np.abs(np.linalg.eigvalsh(matrix)).max()
        assert 0.5 * largest <= found <= 1.2001 * largest
        again = estimated(matrix, u, direction, fewest=2)
        assert again[2] <= count
        assert again[0] >= 0.98 * found
        enough.append(found >= largest)
    assert np.mean(enough) >= 0.97


def estimated(matrix, u, direction=None, fewest=8):
    def rhs(t, u, params):
        return matrix @ u

    slope = rhs(0.0, u, ())
    direction = radius.first_direction(slope) if direction is None else direction
    return radius.power_method(radius.norm)(rhs, (), 0.0, u, slope, direction, fewest)


@given(decay=st.floats(0.0, 100.0), frequency=st.floats(1.0, 100.0))
def test_the_power_method_finds_the_modulus_of_complex_pairs(decay, frequency):
    matrix = np.array([[-decay, -frequency], [frequency, -decay]])
    found = estimated(matrix, np.array([1.0, 2.0]))[0]
    np.testing.assert_allclose(found, 1.2 * np.hypot(decay, frequency), rtol=1e-4)


def test_a_radius_is_asked_for_anew_after_25_steps_and_after_a_rejection():
    asked, at = [], []
    verdicts = [1] * 30 + [0, 1, 0, 0, 1]  # accepted: 30, then 1, then 1

    def estimate(rhs, params, t, u, slope, direction, fewest):
        asked.append((len(at), fewest))
        return 10.0, direction, 4

    propose, judge = radius.steering(estimate, chebyshev.stage_number, chebyshev.most_stable, radius.LIFE)(
        lambda memory, t, t1, u, slope: (1.0, 1.0, memory),
        lambda memory, dt, errors, u, u_new: (verdicts[len(at)], memory),
        None,
    )
    memory = radius.Steered("inner", radius.Steering((), 0.0, None, -1.0, 1e9, 0.0, 0.0))
    for _ in verdicts:
        dt, h, memory = propose(memory, 0.0, 1.0, None, None)
        assert (dt, h) == (1.0, (1.0, chebyshev.stage_number(10.0)))
        _, memory = judge(memory, dt, None, None, None)
        at.append(1)
    assert asked == [(0, 8), (25, 2), (31, 8), (33, 8)]  # the second of two rejections in a row knows the radius here
    assert memory.control == "inner"
    assert stabilised.unseen(memory) == 4 * len(asked) + (chebyshev.stage_number(10.0) - 1) * len(verdicts)


def test_a_step_of_too_many_stages_is_shortened():
    propose, _ = radius.steering(
        radius.given_radius(lambda t, u, params: 1e6), chebyshev.stage_number, chebyshev.most_stable, 1.0
    )(lambda memory, t, t1, u, slope: (-2.0, -2.0, memory), None, None)
    dt, (h, s), _ = propose(
        radius.Steered("inner", radius.Steering((), 0.0, None, -1.0, 30.0, 0.0, 0.0)), 0.0, -9.0, None, None
    )
    assert s == 30
    assert dt == h < 0
    assert METHOD.boundary(30) >= 1e6 * abs(dt) > 0.98 * METHOD.boundary(30)


def test_a_tolerance_out_of_reach_is_refused_and_the_last_within_it_is_kept():
    problem = ol.problems.heat_1d(n=20).replace(t_span=(0.0, 0.002))
    with pytest.raises(ValueError, match="`rtol` = 1e-10 is out of reach of RKC2"):
        ol.solve(problem, METHOD, ol.adaptive(1e-10, 1e-12))
    run = ol.solve(problem, METHOD, ol.adaptive(1e-9, 1e-12), engine="python")
    exact = problem.exact(0.002, problem.params)
    assert np.linalg.norm(run.u[-1] - exact) < 1e-8 * np.linalg.norm(exact)


def test_every_evaluation_is_counted():
    for method in (METHOD, ol.rkc2(500.0), ol.rkc2(lambda t, u, params: 450.0 + 10.0 * t)):
        for controller in (ol.adaptive(1e-4, 1e-6), ol.fixed(0.03)):
            recorder = Recorder(lambda t, u, params: ol.problems.allen_cahn_1d().slope(t, u))
            problem = ol.Problem(recorder, ol.problems.allen_cahn_1d().u0, (0.0, 1.0))
            recorder.times.clear()
            run = ol.solve(problem, method, controller, engine="python")
            assert run.ok
            assert run.evaluations == len(recorder.times)


def test_a_given_radius_spares_evaluations_and_changes_little():
    problem = ol.problems.heat_1d(n=60)
    exact = problem.exact(0.1, problem.params)
    found = ol.solve(problem, METHOD, ol.adaptive(1e-4, 1e-7))
    for given_radius in (4.0 * 61.0**2, lambda t, u, params: 4.0 * params[0] * (u.size + 1.0) ** 2):
        run = ol.solve(problem, ol.rkc2(given_radius), ol.adaptive(1e-4, 1e-7))
        assert run.evaluations < found.evaluations
        assert np.linalg.norm(run.u[-1] - exact) < 1e-3 * np.linalg.norm(exact)


@pytest.mark.parametrize("wrong", [-1.0, np.inf, np.nan, "large", [1.0]])
def test_a_wrong_radius_is_refused(wrong):
    with pytest.raises(ValueError, match="`spectral_radius` must be a number from 0 up or a function"):
        ol.rkc2(wrong)
