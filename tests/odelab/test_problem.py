"""A Problem: what it accepts, how it is changed, and what a change leaves true."""

import pickle

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


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_parameters_are_pythons_numbers(form):
    problem = ol.Problem(decay, [1.0], (0.0, 1.0), form([np.float64(0.1), np.float64(2.0)]))
    assert repr(problem) == "Problem(decay, n = 1, t in [0, 1], params = (0.1, 2.0))"
    assert all(type(number) is float for number in problem.params)
    assert ol.Problem(decay, [1.0], (0.0, 1.0), np.arange(1, 3)).params == (1, 2)


def one_number(t, u, params):
    return -params[0] * u[0]


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.RKC2, ol.BDF], ids=lambda one: one.name)
@pytest.mark.parametrize("engine", ["python", "auto"])
def test_one_component_may_be_a_number(method, engine):
    """`return -u[0]`, where n = 1; in every engine the same as a tuple of one."""
    number, row = (ol.Problem(rhs, [1.0], (0.0, 1.0), (2.0,)) for rhs in (one_number, decay))
    assert number.form == "component"
    runs = [ol.solve(problem, method, engine=engine) for problem in (number, row)]
    assert runs[0].engine == runs[1].engine
    np.testing.assert_array_equal(runs[0].u, runs[1].u)
    np.testing.assert_array_equal(runs[0]([0.25, 0.75]), runs[1]([0.25, 0.75]))
    sets = {"params": [[1.0], [2.0]], "engine": engine}
    if method is not ol.BDF:
        ends = [ol.ensemble(problem, method, **sets).u for problem in (number, row)]
        np.testing.assert_array_equal(*ends)
    assert number.replace(t_span=(0.0, 2.0)).form == "component"
    assert pickle.loads(pickle.dumps(number)).slope(0.0, np.ones(1)) == [-2.0]
