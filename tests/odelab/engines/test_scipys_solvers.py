"""SciPy's implicit solvers behind `ol.solve`: they get the Jacobian that linearly implicit methods derive."""

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import NAMED, Recorder

with_newton = pytest.mark.parametrize("method", [ol.RADAU, ol.BDF], **NAMED)


def heat(n):
    """u_t = u_xx on n inner points, by slices."""

    def rhs(t, u, params):
        padded = np.concatenate(([0.0], u, [0.0]))
        return (n + 1) ** 2 * (padded[2:] - 2.0 * u + padded[:-2])

    return ol.Problem(rhs, np.sin(np.pi * np.arange(1, n + 1) / (n + 1)), (0.0, 0.1))


@with_newton
def test_the_evaluations_do_not_grow_with_the_number_of_components(method):
    small, large = (ol.solve(heat(n), method) for n in (200, 800))
    assert "3 colours" in small.derivatives
    assert abs(large.evaluations - small.evaluations) <= 0.2 * small.evaluations
    assert large.jacobians > 0


@with_newton
def test_a_jacobian_too_large_to_be_stored_in_full(method):
    """20,000 components: all of J would take 3.2 GB, in BDF twice."""
    sol = ol.solve(heat(20_000), method, ol.adaptive(1e-4, 1e-7), t_eval=[0.1])
    np.testing.assert_allclose(sol.u[-1, 9_999], np.exp(-(np.pi**2) * 0.1), rtol=1e-2)


@with_newton
def test_a_derivative_that_is_infinite_at_the_start(method):
    """That of a square root at zero. The solution is implicit: t = -2 (s + log(1 - s)), with s the root of u."""
    sol = ol.solve(ol.Problem(lambda t, u, params: 1.0 - np.sqrt(u), [0.0], (0.0, 1.0)), method)
    root = np.sqrt(sol.end_u[0])
    assert -2.0 * (root + np.log(1.0 - root)) == pytest.approx(1.0, rel=1e-4)


@with_newton
def test_every_evaluation_is_counted_where_differences_are_needed(method):
    def opaque(t, u, params):
        return np.array([float(-50.0 * (value - np.cos(t))) if value else 0.0 for value in memoryview(u)])

    rhs = Recorder(opaque)
    problem = ol.Problem(rhs, np.full(3, 2.0), (0.0, 1.0))
    before = len(rhs.times)
    sol = ol.solve(problem, method)
    assert "by differences" in sol.derivatives
    assert len(rhs.times) - before >= sol.evaluations > 4 * sol.jacobians
