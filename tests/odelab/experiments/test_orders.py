"""Observed orders: what a method promises shows on a nonlinear, driven problem, and damage shows too."""

from fractions import Fraction

import numpy as np
import pytest

import odelab as ol
from odelab.experiments.observed_order import known_end
from tests.odelab.solver_cases import EXPLICIT, NAMED, PENDULUM, unchecked


@pytest.mark.parametrize("method", EXPLICIT, **NAMED)
@pytest.mark.parametrize("name", ["pendulum", "rigid_body"])
def test_observed_order_is_the_stated_one(method, name):
    problem = PENDULUM if name == "pendulum" else ol.problems.rigid_body().replace(t_span=(0.0, 4.0))
    seen = ol.observed_order(method, problem, engine="python")
    assert float(seen) == pytest.approx(method.order, abs=0.2)
    assert seen.h.shape == seen.error.shape
    assert (np.diff(seen.h) < 0).all()
    assert (np.diff(seen.error) < 0).all()


@pytest.mark.parametrize("row", [1, 2, 3])
def test_a_damaged_stage_is_seen(row):
    a = list(ol.RK4.a)
    a[row] = (a[row][0] + Fraction(1, 100), *a[row][1:])
    damaged = unchecked(ol.RK4, a=tuple(a))
    assert float(ol.observed_order(damaged, PENDULUM, engine="python")) < 3.2


def test_a_damaged_weight_is_seen():
    b = (*ol.DOPRI5.b[:2], ol.DOPRI5.b[2] + Fraction(1, 100), *ol.DOPRI5.b[3:])
    damaged = unchecked(ol.DOPRI5, b=b)
    assert abs(float(ol.observed_order(damaged, PENDULUM, engine="python"))) < 0.2  # not even consistent


def test_the_truth_is_exact_where_it_is_known():
    problem = ol.problems.rigid_body()
    np.testing.assert_array_equal(known_end(problem), problem.exact(20.0, problem.params))
    without = problem.replace(exact=None)
    np.testing.assert_array_equal(known_end(without), problem.references[0].u)
    assert known_end(without.replace(t_span=(0.0, 4.0))) is None


def test_without_a_known_end_the_errors_are_the_same():
    problem = ol.problems.rigid_body().replace(t_span=(0.0, 4.0))
    known = ol.observed_order(ol.RK4, problem)
    unknown = ol.observed_order(ol.RK4, problem.replace(exact=None, references=()))
    np.testing.assert_allclose(unknown.error, known.error, rtol=1e-3, atol=1e-13)


@pytest.mark.parametrize("h", [[0.1, 0.2], [0.1, -0.2, 0.3], [[0.1, 0.2, 0.3]], [0.1, 0.2, float("nan")]])
def test_steps_that_cannot_tell_an_order_are_refused(h):
    with pytest.raises(ValueError, match=r"`h` must hold at least three positive step sizes, got"):
        ol.observed_order(ol.RK4, PENDULUM, h=h)


def test_errors_down_at_rounding_are_not_fitted():
    with pytest.raises(ValueError, match=r"fewer than three errors between rounding and .* use larger steps"):
        ol.observed_order(ol.DOP853, PENDULUM, h=[0.02, 0.01, 0.005], engine="python")


LINEAR = ol.Problem(lambda t, u, params: (-u[0] + ol.maths.sin(t),), [1.0], (0.0, 2.0), name="linear")


@pytest.mark.parametrize("method", [ol.RK4, ol.DOPRI5], ids=lambda method: method.name)
def test_small_errors_above_rounding_count(method):
    """Errors of 1e-12 were left out as rounding: RK4 had 3.7 here, and DOPRI5 was refused at its default steps."""
    assert float(ol.observed_order(method, LINEAR, engine="python")) == pytest.approx(method.order, abs=0.3)


def test_an_order_that_has_not_settled_is_told():
    """DOP853 had order 4.2 here, without a word."""
    with pytest.warns(RuntimeWarning, match="errors of DOP853 fall with no one power of h here"):
        ol.observed_order(ol.DOP853, LINEAR, engine="python")


def test_a_reference_of_few_digits_leaves_out_errors_below_it():
    problem = PENDULUM.replace(t_span=(0.0, 4.0))
    sharp = ol.solve(problem, ol.DOP853, ol.adaptive(1e-13, 1e-15)).end_u
    rough = problem.replace(references=(ol.Reference(4.0, sharp * (1.0 + 1e-9), 9.0, "rounded"),))
    assert float(ol.observed_order(ol.RK4, rough)) == pytest.approx(4.0, abs=0.2)


@pytest.mark.parametrize("method", [ol.RADAU, ol.AUTO, "RK4"])
def test_a_method_without_fixed_steps_is_refused(method):
    with pytest.raises(TypeError, match="`method` must be one that takes fixed steps"):
        ol.observed_order(method, PENDULUM)


SHORT_LORENZ = ol.problems.lorenz().replace(t_span=(0.0, 1.0))


@pytest.mark.parametrize("method", [ol.EULER, ol.DOP853], ids=lambda method: method.name)
def test_runs_that_blew_up_have_no_part_in_the_order(method):
    """Of Euler's runs one had an error of 4e26, and passed; one of DOP853's overflowed, and no order was returned."""
    with pytest.warns(RuntimeWarning, match=f"runs of {method.name} with h = .* are left out") as said:
        found = ol.observed_order(method, SHORT_LORENZ, 2.0 ** -np.arange(2, 10), engine="python")
    left = np.array([f"{size:.3g}" in str(said[0].message) for size in found.h])
    size = np.linalg.norm(ol.solve(SHORT_LORENZ, ol.DOP853, ol.adaptive(1e-12, 1e-12)).end_u)
    np.testing.assert_array_equal(left, found.error > size)
    assert float(found) == float(ol.observed_order(method, SHORT_LORENZ, found.h[~left], engine="python"))
    assert ol.plot.orders({method.name: found}).axes


def test_where_the_smallest_step_blows_up_the_run_has_failed():
    pole = ol.Problem(lambda t, u, params: (u[0] * u[0],), [1.0], (0.0, 2.0), exact=lambda t, params: np.array([1.0]))
    with pytest.raises(ol.RunFailed, match="blows up"):
        ol.observed_order(ol.RK4, pole, engine="python")
