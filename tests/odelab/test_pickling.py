"""What goes into a run and what comes out of it can be kept in a file and sent to another process."""

import functools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import odelab as ol
from odelab.problems import catalogue
from tests.odelab.solver_cases import NAMED, PENDULUM

METHODS = [*ol.METHODS.values(), ol.RKC2, ol.RADAU, ol.BDF, ol.LSODA]


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("name", catalogue())
def test_every_problem_of_the_catalogue(name):
    problem = catalogue()[name]()
    copy = again(problem)
    t, u = problem.t_span[0], np.array(problem.u0)
    np.testing.assert_array_equal(copy.slope(t, u), problem.slope(t, u))
    assert (copy.name, copy.form, copy.params, copy.t_span) == (
        problem.name,
        problem.form,
        problem.params,
        problem.t_span,
    )
    for one, other in zip(copy.invariants, problem.invariants, strict=True):
        assert one.function(t, u, problem.params) == other.function(t, u, problem.params)
    if problem.exact is not None:
        np.testing.assert_array_equal(copy.exact(0.1, problem.params), problem.exact(0.1, problem.params))


@pytest.mark.parametrize("method", METHODS, **NAMED)
def test_a_method_stays_the_one_it_was(method):
    assert again(method) == method
    if method in ol.METHODS.values() or method is ol.RKC2:
        assert again(method) is method


def test_methods_of_ones_own():
    own = ol.Method("OWN", order=2, a=[[], ["1/2"]], b=[0, 1])
    copy = again(own)
    assert (copy.name, copy.a, copy.b, copy.order) == (own.name, own.a, own.b, own.order)
    assert again(ol.rkc2(100.0)).spectral_radius == 100.0


@pytest.mark.parametrize(
    "controller",
    [ol.fixed(0.1), ol.adaptive(1e-4, [1e-6, 1e-7], "h211b", 0.01, 0.5), *(ol.adaptive(law=law) for law in ol.LAWS)],
    ids=str,
)
def test_controllers_decide_as_before(controller):
    copy = again(controller)
    assert str(copy) == str(controller)
    problem = PENDULUM.replace(t_span=(0.0, 1.0))
    one, other = (ol.solve(problem, ol.DOPRI5, each, engine="python") for each in (controller, copy))
    np.testing.assert_array_equal(one.u, other.u)


def crossing(t, u, params):
    return u[0]


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RKC2, ol.RADAU, ol.LSODA], **NAMED)
@pytest.mark.parametrize(
    "options",
    [{}, {"t_eval": [0.5, 1.0]}, {"events": crossing}, {"tstops": [1.0]}],
    ids=lambda options: next(iter(options), "plain"),
)
def test_trajectories(method, options):
    problem = ol.problems.van_der_pol(5.0).replace(t_span=(0.0, 2.0))
    run = ol.solve(problem, method, ol.adaptive(1e-5, 1e-7), **options)
    assert run.message
    copy = again(run)
    for name in ("t", "u", "h", "step_t", "step_u", "slope", "sai", "h_rho", "error"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(run, name))
    assert (copy.status, copy.message, copy.steps) == (run.status, run.message, run.steps)
    np.testing.assert_array_equal(copy([0.3, 1.7]), run([0.3, 1.7]))
    assert str(copy) == str(run)


def test_failures():
    with pytest.raises(ol.RunFailed) as raised:
        ol.solve(ol.problems.lorenz(), ol.DOPRI5, max_steps=5)
    copy = again(raised.value)
    assert str(copy) == str(raised.value)
    assert copy.trajectory.status == "max_steps"


def test_ensembles():
    runs = ol.ensemble(ol.problems.van_der_pol(1.0), ol.DOPRI5, u0=[[2.0, 0.0], [1.0, 0.0]], engine="python")
    copy = again(runs)
    np.testing.assert_array_equal(copy.u, runs.u)
    assert str(copy) == str(runs)


def test_a_pool_of_processes_maps_solve_itself():
    problems = [ol.problems.van_der_pol(mu) for mu in (1.0, 2.0)]
    solve = functools.partial(ol.solve, method=ol.DOPRI5, controller=ol.adaptive(1e-6, 1e-9), engine="python")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(solve, problems))
    for problem, run in zip(problems, found, strict=True):
        np.testing.assert_array_equal(run.u, solve(problem).u)
        assert run.method is ol.DOPRI5
