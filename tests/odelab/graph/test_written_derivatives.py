"""Derivatives of what people write, and those of the catalogue to twelve digits."""

import numpy as np
import pytest

import odelab as ol
from odelab.linear.linearisation import Linearisation
from tests.odelab.graph.written_cases import FUNCTIONS, derivatives_of

CATALOGUE = ("van_der_pol", "robertson", "oregonator", "e5", "hires", "pollu", "brusselator", "lorenz")
EPSILON = 1e-5


def by_differences(rhs, t, u, params):
    """(J, f_t) by differences of the eighth order, of errors near 1e-11."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    place = np.array([*u, t])

    def slope(at):
        return np.array([float(x) for x in rhs(float(at[-1]), tuple(map(float, at[:-1])), params)])

    columns = []
    for i in range(len(place)):
        step = 40 * EPSILON * np.eye(len(place))[i]
        columns.append(
            sum(w * (slope(place + k * step) - slope(place - k * step)) for k, w in weights.items()) / (40 * EPSILON)
        )
    found = np.array(columns).T
    return found[:, :-1], found[:, -1]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogues_jacobians_to_twelve_digits(name):
    problem = getattr(ol.problems, name)()
    derivatives = derivatives_of(problem.rhs, problem.size, len(problem.params))
    random = np.random.default_rng(1)
    for _ in range(20):
        u = random.uniform(0.1, 2.0, problem.size)
        expected = problem.jacobian(0.3, u, problem.params)
        found, by_time = derivatives(0.3, u, problem.params)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
        assert not by_time.any()


@pytest.mark.parametrize("rhs", FUNCTIONS, ids=lambda rhs: rhs.__name__)
def test_what_people_write_is_differentiated(rhs):
    derivatives = derivatives_of(rhs, 2, 1)
    random = np.random.default_rng(2)
    for t, x, y in random.uniform(0.2, 0.9, (30, 3)):
        if rhs.__name__ == "tables" and max(abs(4 * x % 1.0 - 0.5), abs(0.7 * y % 0.3 - 0.15) / 0.3) > 0.49:
            continue  # a difference across a jump of the table is not a derivative
        if rhs.__name__ == "in_pieces" and min(abs(x + y - 0.7), abs(2.0 * y - x), 0.95 - x) < 1e-2:
            continue
        found = derivatives(t, (x, y), (0.7,))
        for one, other in zip(found, by_differences(rhs, t, (x, y), (0.7,)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-9, atol=2e-9)


def test_a_derivative_that_is_infinite_or_undefined_is_told():
    derivatives = derivatives_of(lambda t, u, params: (ol.maths.sqrt(u[0]), u[0] / u[1]), 2, 0)
    found, _ = derivatives(0.0, (0.0, 0.0), ())
    assert np.isinf(found[0, 0])
    assert np.isnan(found[1]).any()


def bounded(t, u, params):
    """What is not chosen may have an infinite derivative where x is zero."""
    x, y = u
    root = np.sqrt(x)
    return max(0.5 * y, root) + min(y, np.log(x) + 9.0), ol.maths.where(x > 0.0, root, y) + x**y


def at_rest(t, u, params):
    """A speed, whose derivative at rest is infinite times zero."""
    x, y = u
    speed = ol.maths.sqrt(x * x + y * y)
    return -speed * x, np.hypot(1.0, x * y) ** 0.5 - (x * x) ** 0.25 * y + (y * y) ** -0.5 * (x + 1.0)


def test_a_derivative_of_zero_stays_zero_where_a_function_is_steep():
    derivatives = derivatives_of(at_rest, 2, 0)
    linear = Linearisation(ol.Problem(at_rest, [1.0, 2.0], (0.0, 1.0)), lambda *place: np.array(at_rest(*place)))
    for u in ([0.0, 0.0], [0.0, 2.0], [0.3, 2.0]):
        found, _ = derivatives(0.0, u, ())
        np.testing.assert_allclose(found, linear.derivatives(0.0, np.array(u), np.zeros(2))[0], rtol=1e-13)
        assert np.isfinite(found[0]).all()


def test_what_is_not_chosen_may_have_no_finite_derivative():
    derivatives = derivatives_of(bounded, 2, 0)
    linear = Linearisation(
        ol.Problem(bounded, [1.0, 2.0], (0.0, 1.0)), lambda t, u, params: np.array(bounded(t, u, ()))
    )
    for u in ([0.0, 2.0], [0.3, 2.0], [4.0, 0.5]):
        found, _ = derivatives(0.0, u, ())
        np.testing.assert_allclose(found, linear.derivatives(0.0, np.array(u), np.zeros(2))[0], rtol=1e-14)
        if u[0] == 0.0:
            np.testing.assert_array_equal(found, [[np.inf, 0.5], [0.0, 1.0]])
