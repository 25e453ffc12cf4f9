"""Three equal masses: the random starts are what their sources say, and close encounters are got through."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from odelab import problems
from odelab.problems.bodies.three_bodies import CIRCULAR
from tests.clock import cost

seeds = st.integers(0, 2**32 - 1)


def parts(starts):
    """Positions and velocities as complex numbers, (N, 3) each."""
    x, y, p, q = np.split(np.asarray(starts), 4, axis=1)
    return x + 1j * y, p + 1j * q


def circular(place):
    """Velocities on the circular orbit through these corners of a triangle."""
    return 1j * CIRCULAR * place * np.abs(place) ** -1.5


@given(seed=seeds, shared=st.booleans())
@settings(deadline=None, max_examples=25)
def test_starts_are_disturbed_circular_triangles(seed, shared):
    place, velocity = parts(problems.three_body_starts(50, seed, shared_perturbation=shared))
    radius = np.abs(place)
    assert (radius >= 0.9).all()
    assert (radius <= 1.2).all()
    np.testing.assert_allclose(place[:, 1:], place[:, :2] * np.exp(2j * np.pi / 3.0), rtol=1e-13)
    ideal = circular(place)
    factors = np.stack((velocity.real / ideal.real, velocity.imag / ideal.imag))
    assert (np.abs(factors - 1.0) <= 0.2 + 1e-9).all()
    same = np.ptp(factors, axis=1) < 1e-9
    assert same.all() if shared else not same.any()


@given(seed=seeds, few=st.integers(1, 20), more=st.integers(0, 20))
@settings(deadline=None, max_examples=20)
def test_the_first_starts_do_not_depend_on_their_number(seed, few, more):
    starts = problems.three_body_starts(few + more, seed)
    np.testing.assert_array_equal(starts[:few], problems.three_body_starts(few, seed))
    np.testing.assert_array_equal(problems.three_body(seed=seed).u0, starts[0])


def test_starts_spread_over_their_ranges():
    place, velocity = parts(problems.three_body_starts(4000, seed=5))
    first = place[:, 0]
    assert np.abs(first).mean() == pytest.approx(1.05, abs=0.01)
    assert np.abs(first).std() == pytest.approx(0.3 / np.sqrt(12.0), rel=0.05)
    assert np.abs(first.mean()) < 0.05
    factors = velocity.real / circular(place).real
    assert factors.std() == pytest.approx(0.4 / np.sqrt(12.0), rel=0.05)
    assert np.abs(np.corrcoef(factors.T) - np.eye(3)).max() < 0.05
    # a direction drawn in the square is more often diagonal than parallel to an axis
    angle = np.abs((np.angle(first) + np.pi / 4.0) % (np.pi / 2.0) - np.pi / 4.0)
    share = np.mean(angle > np.pi / 8.0)
    assert share == pytest.approx(1.0 - np.tan(np.pi / 8.0), abs=0.03)


@given(radius=st.floats(0.5, 2.0), angle=st.floats(0.0, 6.0))
@settings(deadline=None, max_examples=20)
def test_the_undisturbed_triangle_turns_in_a_circle(radius, angle):
    place = radius * np.exp(1j * (angle + 2.0 * np.pi / 3.0 * np.arange(3)))
    velocity = circular(place)
    problem = problems.three_body()
    slope = problem.slope(0.0, np.concatenate((place.real, place.imag, velocity.real, velocity.imag)))
    acceleration = slope[6:9] + 1j * slope[9:]
    np.testing.assert_allclose(acceleration, -place * np.abs(velocity) ** 2 / radius**2, rtol=1e-12)


def test_a_hundred_thousand_starts_cost_little_more_than_their_random_numbers():
    shape = (100_000, 12)
    assert problems.three_body_starts(100_000).shape == shape
    assert (
        cost(lambda: problems.three_body_starts(100_000), lambda: np.random.default_rng(0).normal(size=shape), 10) <= 10
    )


def test_close_encounters_are_got_through():
    problem = problems.three_body()
    energy = problem.invariants[0].function
    nearest = []
    for start in problems.three_body_starts(30, seed=0):
        run = solve_ivp(problem.slope, problem.t_span, start, method="DOP853", rtol=1e-9, atol=1e-12)
        assert run.success
        assert len(run.t) < 300
        drift = np.abs(energy(run.t, run.y, problem.params) - energy(0.0, start, problem.params))
        assert drift.max() < 1e-6
        x, y = run.y[:3], run.y[3:6]
        nearest.append(np.hypot(x - np.roll(x, 1, axis=0), y - np.roll(y, 1, axis=0)).min())
    assert min(nearest) < 0.1 < np.median(nearest)


def test_softening_removes_the_singularity():
    state = np.array([0.0, 0.0, 5.0, *np.zeros(9)])  # two bodies at one place
    with np.errstate(all="ignore"):
        assert not np.isfinite(problems.three_body().slope(0.0, state)).all()
    assert np.isfinite(problems.three_body(softening=0.1).slope(0.0, state)).all()


def test_three_and_seven_bodies_follow_one_law():
    three, seven = problems.three_body(), problems.pleiades()
    start = np.array(seven.u0).reshape(4, 7)
    start[:2, 3:] = 1e9 * np.arange(1.0, 5.0)  # four of the seven far away
    slope = seven.rhs(0.0, start.ravel(), (1.0,) * 7)
    expected = three.rhs(0.0, start[:, :3].ravel(), (0.0,))
    np.testing.assert_allclose(np.reshape(slope, (4, 7))[:, :3].ravel(), expected, rtol=1e-12, atol=1e-12)
