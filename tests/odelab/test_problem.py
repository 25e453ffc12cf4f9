"""A Problem: what it accepts, how it is changed, and what a change leaves true."""

import numpy as np
import pytest

import odelab as ol


def decay(t, u, params):
    return (-params[0] * u[0],)


def test_replace_keeps_what_stays_true():
    problem = ol.problems.stiff_linear()
    longer = problem.replace(t_span=(0.0, 2.0))
    assert longer.exact is problem.exact
    assert longer.references == problem.references
    assert problem.replace(name="another").jacobian is problem.jacobian


@pytest.mark.parametrize("change", [{"u0": [2.0, 1.0]}, {"t_span": (1.0, 2.0)}])
def test_another_start_has_no_known_solution(change):
    problem = ol.problems.van_der_pol(mu=5.0).replace(**change)
    assert problem.exact is None
    assert problem.references == ()
    assert problem.jacobian is not None


def test_other_parameters_have_no_references_but_the_exact_solution_takes_them():
    problem = ol.problems.dahlquist(rate=-1.0).replace(params=(-2.0,))
    np.testing.assert_allclose(problem.exact(1.0, problem.params), problem.u0 * np.exp(-2.0))
    assert ol.problems.robertson().replace(params=(0.04, 3e7, 2e4)).references == ()


def test_another_right_hand_side_keeps_nothing():
    problem = ol.problems.dahlquist().replace(rhs=decay)
    assert (problem.exact, problem.jacobian, problem.invariants, problem.references) == (None, None, (), ())


def test_what_is_given_is_kept():
    problem = ol.problems.dahlquist()
    again = problem.replace(u0=[3.0], exact=lambda t, params: 3.0 * np.exp(params[0] * np.asarray(t))[..., None])
    np.testing.assert_allclose(again.exact(0.0, again.params), [3.0])


def test_replace_names_an_unknown_field():
    with pytest.raises(TypeError, match="'t1', which is not a field"):
        ol.problems.lorenz().replace(t1=3.0)


def test_an_in_place_right_hand_side_may_bring_its_array_form():
    problem = ol.problems.brusselator_1d(n=30)
    out = np.empty_like(problem.u0)
    problem.rhs(0.0, problem.u0, problem.params, out)
    np.testing.assert_array_equal(problem.slope(0.0, problem.u0), out)
    assert problem.rhs.array_form is not None


@pytest.mark.parametrize("params", [2.0, np.float64(2.0), np.array(2.0), [2.0], np.array([2.0]), (2.0,)])
def test_one_number_as_params_is_one_parameter_however_it_is_given(params):
    problem = ol.Problem(decay, [1.0], (0.0, 1.0), params)
    assert problem.params == (2.0,)
    assert ol.solve(problem, ol.RK4, ol.fixed(0.1)).u[-1, 0] == pytest.approx(np.exp(-2.0), rel=1e-4)
