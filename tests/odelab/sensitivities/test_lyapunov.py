"""Lyapunov exponents."""

import numpy as np
import pytest

import odelab as ol


def test_a_linear_problem_has_the_real_parts_of_its_eigenvalues():
    matrix = np.array([[-1.0, 2.0, 0.0], [-2.0, -1.0, 0.0], [0.0, 0.0, 0.3]])
    problem = ol.Problem(lambda t, u, params: matrix @ u, [1.0, 0.0, 0.0], (0.0, 1.0))
    found = ol.lyapunov(problem, ol.DOPRI5, t=40.0)
    np.testing.assert_allclose(found.exponents, [0.3, -1.0, -1.0], atol=1e-7)


@pytest.mark.parametrize(
    "method", [ol.DOP853, pytest.param(ol.DOPRI5, marks=pytest.mark.slow)], ids=["DOP853", "DOPRI5"]
)
def test_lorenz(method):
    """The largest is 0.90566 (Viswanath 1998); the sum is the trace of the Jacobian, which is constant.

    Rounding changes a chaotic run: from one processor to another the mean over 1000 units of time differs by 0.005.
    """
    found = ol.lyapunov(ol.problems.lorenz(), method)
    assert abs(found.exponents.sum() + 10.0 + 1.0 + 8.0 / 3.0) <= 1e-6
    assert abs(found.exponents[0] - 0.90566) <= found.half_widths[0] < 0.05
    assert f"Lyapunov exponents over 1000 units of time: {found.exponents[0]:.4g} +- " in str(found)


def test_some_of_them():
    every = ol.lyapunov(ol.problems.lorenz(), ol.DOP853, t=50.0)
    one = ol.lyapunov(ol.problems.lorenz(), ol.DOP853, t=50.0, count=1)
    assert one.exponents.shape == (1,)
    assert abs(one.exponents[0] - every.exponents[0]) <= 1.0  # chaos: they are two runs


@pytest.mark.parametrize(
    ("options", "word"), [({"t": 0.0}, "`t`"), ({"every": -1.0}, "`every`"), ({"transient": -1.0}, "`transient`")]
)
def test_times_must_be_positive(options, word):
    with pytest.raises(ValueError, match=word):
        ol.lyapunov(ol.problems.lorenz(), ol.DOPRI5, **options)


@pytest.mark.parametrize("count", [0, 4])
def test_there_are_as_many_as_components(count):
    with pytest.raises(ValueError, match="`count`"):
        ol.lyapunov(ol.problems.lorenz(), ol.DOPRI5, count=count)
