"""Ensembles of stiff runs in lanes: each run is the one it would be alone, and none is lost to a pivot."""

import numpy as np
import pytest

import odelab as ol
from tests.odelab.engines.rosenbrock.stiff_cases import FORCED, ROBERTSON, TURNING, VAN_DER_POL

slow = pytest.mark.slow


def alone(problem, method, controller, params, **options):
    return [ol.solve(problem.replace(params=tuple(row)), method, controller, **options) for row in params.tolist()]


@pytest.mark.parametrize(
    ("problem", "method", "controller"),
    [
        pytest.param(FORCED, ol.RODAS4, ol.fixed(0.02), id="forced RODAS4 fixed"),
        pytest.param(FORCED, ol.ROS2, ol.fixed(0.02), id="forced ROS2 fixed", marks=slow),
        pytest.param(FORCED, ol.RODAS5P, ol.adaptive(1e-5, [1e-8, 1e-7]), id="forced RODAS5P", marks=slow),
        pytest.param(ROBERTSON, ol.RODAS4, ol.adaptive(1e-5, 1e-9), id="robertson RODAS4", marks=slow),
        pytest.param(ROBERTSON, ol.ROS2, ol.adaptive(1e-4, 1e-8, "i"), id="robertson ROS2", marks=slow),
        pytest.param(VAN_DER_POL, ol.RODAS4, ol.adaptive(1e-6, 1e-8), id="van_der_pol RODAS4", marks=slow),
    ],
)
def test_runs_in_lanes_are_the_runs_alone(problem, method, controller):
    """States at the end and between the steps, counts and maxima; more runs than there are lanes."""
    params = np.array(problem.params) * np.linspace(0.8, 1.2, 21)[:, None]
    asked = np.linspace(*problem.t_span, 9)
    lanes = ol.ensemble(problem, method, controller, params=params, t_eval=asked, maxima=True, engine="compiled")
    runs = alone(problem, method, controller, params, engine="python", t_eval=asked)
    assert lanes.engine == "compiled"
    assert lanes.ok
    # Their steps differ by rounding, which an adaptive run of a sensitive problem carries on.
    rtol = 1e-10 if controller.law is None else 1e-6
    np.testing.assert_allclose(lanes.u, [run.u for run in runs], rtol=rtol, atol=1e-3 * rtol)
    np.testing.assert_allclose(lanes.sai_max, [run.sai.max() for run in runs], rtol=1e3 * rtol)
    if controller.law is None:
        assert lanes.steps.tolist() == [run.steps for run in runs]


@slow
@pytest.mark.parametrize("name", ["robertson", "van_der_pol", "oregonator", "hires"])
def test_they_equal_single_kernels_to_ten_digits(name):
    problem = getattr(ol.problems, name)()
    problem = problem.replace(t_span=(0.0, min(problem.t_span[1], 300.0)))
    controller = ol.adaptive(1e-6, 1e-10)
    params = np.array(problem.params) * np.linspace(0.9, 1.1, 20)[:, None]
    lanes = ol.ensemble(problem, ol.RODAS4, controller, params=params, engine="compiled")
    runs = alone(problem, ol.RODAS4, controller, params, engine="compiled")
    assert lanes.steps.tolist() == [run.steps for run in runs]
    np.testing.assert_allclose(lanes.u, [run.end_u for run in runs], rtol=1e-10, atol=1e-14)


@slow
@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_wherever_a_run_stands(threads):
    params = np.array(ROBERTSON.params) * np.linspace(0.8, 1.2, 50)[:, None]
    order = np.random.default_rng(0).permutation(50)
    one = ol.ensemble(ROBERTSON, ol.RODAS4, params=params, threads=1)
    other = ol.ensemble(ROBERTSON, ol.RODAS4, params=params[order], threads=threads)
    np.testing.assert_array_equal(one.u[order], other.u)


def test_runs_whose_factors_fail_are_finished_alone():
    """The first pivot of half of the runs is zero at every step."""
    params = np.array([[8.0, 9.0], [7.0, 9.0]] * 10)
    lanes = ol.ensemble(TURNING, ol.RODAS4, ol.fixed(0.5), params=params, t_eval=[4.0, 8.0], engine="compiled")
    assert lanes.ok
    assert (lanes.steps == 16).all()
    runs = alone(TURNING, ol.RODAS4, ol.fixed(0.5), params[:2], engine="python", t_eval=[4.0, 8.0])
    for place in range(20):
        np.testing.assert_allclose(lanes.u[place], runs[place % 2].u, rtol=1e-11, atol=1e-11)


@slow
def test_a_run_that_leaves_its_domain_disturbs_no_other():
    problem = ol.Problem(lambda t, u, params: (-params[0] * ol.maths.sqrt(u[0]), -u[1]), [1.0, 1.0], (0.0, 3.0), (0.5,))
    params = np.array([[0.5], [np.nan], [1.5], [0.25]])
    lanes = ol.ensemble(problem, ol.RODAS4, params=params, engine="compiled")
    runs = [ol.solve(problem.replace(params=(row,)), ol.RODAS4, throw=False) for row in (0.5, 1.5, 0.25)]
    assert lanes.status[[0, 3]].tolist() == ["ok", "ok"]
    assert lanes.status[1] == "not_finite"
    assert lanes.status[2] == runs[1].status != "ok"
    np.testing.assert_allclose(lanes.u[[0, 3]], [runs[0].end_u, runs[2].end_u], rtol=1e-8)
