"""Runs that keep no states but those asked for (`dense=False`): they know of themselves what other runs know."""

import functools

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import NAMED

TOLERANCE = ol.adaptive(1e-5, 1e-8)
OSCILLATOR = ol.problems.van_der_pol(100.0).replace(t_span=(0.0, 20.0))
HEAT = ol.problems.heat_1d(50)  # in-place form


def relaxing(t, u, params):
    return -params[0] * (u - np.cos(t))


RELAXING = ol.Problem(relaxing, np.linspace(0.0, 2.0, 40), (0.0, 1.0), (1000.0,))  # array form: no kernel
CASES = {
    "plain component": (OSCILLATOR, "python"),
    "plain array": (RELAXING, "python"),
    "plain in-place": (HEAT, "python"),
    "generic compiled": (RELAXING, "compiled"),
    "small kernel": (OSCILLATOR, "compiled"),
    "large kernel": (HEAT, "compiled"),
}
METHODS = [ol.DOPRI5, ol.RKF45, ol.DOP853, ol.RKC2]
RUNS = [(case, method) for case in CASES for method in (METHODS if "plain" in case else METHODS[:1])]
RUNS += [pytest.param("generic compiled", ol.RKC2, marks=pytest.mark.slow)]
every_run = pytest.mark.parametrize(("case", "method"), RUNS, **NAMED)
every_engine = pytest.mark.parametrize("engine", ["python", "compiled"])


@functools.cache
def both(case, method):
    problem, engine = CASES[case]
    return tuple(ol.solve(problem, method, TOLERANCE, engine=engine, dense=dense) for dense in (True, False))


@every_run
def test_a_run_without_states_took_the_same_steps_and_ends_at_the_same_state(case, method):
    full, spare = both(case, method)
    assert spare.step_u is None
    np.testing.assert_array_equal(spare.step_t, full.step_t)
    np.testing.assert_array_equal(spare.error, full.error)
    np.testing.assert_array_equal(full.end_u, full.step_u[-1])
    np.testing.assert_allclose(spare.end_u, full.end_u, rtol=1e-12, atol=1e-13)
    assert (spare.rejected, spare.evaluations, spare.status) == (full.rejected, full.evaluations, full.status)


@every_run
def test_states_at_the_times_asked_for_are_those_of_a_full_run(case, method):
    problem, engine = CASES[case]
    times = np.linspace(*problem.t_span, 9)
    full, _ = both(case, method)
    spare = ol.solve(problem, method, TOLERANCE, engine=engine, t_eval=times, dense=False)
    np.testing.assert_array_equal(spare.t, times)
    np.testing.assert_allclose(spare.u, full(times), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(spare.step_t, full.step_t)
    with pytest.raises(ValueError, match="dense=False"):
        spare(times[1])


@every_run
def test_a_run_without_states_knows_how_stiff_its_steps_were(case, method):
    full, spare = both(case, method)
    np.testing.assert_allclose(spare.sai, full.sai, rtol=1e-6)
    np.testing.assert_allclose(spare.h_rho, full.h_rho, rtol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_a_stiff_run_without_states_says_what_held_it_back(case):
    _, spare = both(case, ol.DOPRI5)
    assert "held back by stability, not by accuracy: h*rho = " in spare.message
    said = float(spare.message.split("h*rho = ")[1].split()[0])
    assert said == pytest.approx(ol.DOPRI5.real_boundary, rel=0.12)


@every_engine
def test_a_spent_budget_is_explained_before_the_first_point_was_reached(engine):
    options = {"t_eval": [19.0], "max_steps": 600, "throw": False, "engine": engine}
    full, spare = (ol.solve(OSCILLATOR, ol.DOPRI5, TOLERANCE, dense=dense, **options) for dense in (True, False))
    assert spare.u.shape == (0, 2)
    assert "the step is limited by stability, h*rho = 3.3" in spare.message
    assert spare.message == full.message
    assert str(spare) == str(full)


def explodes(t, u, params):
    return (u[0] * u[0],)


@every_engine
@pytest.mark.parametrize("times", [[2.0], []])
def test_a_run_that_reached_no_point_can_be_printed(engine, times):
    problem = ol.Problem(explodes, [1.0], (0.0, 3.0))
    run = ol.solve(problem, ol.DOPRI5, t_eval=times, dense=False, throw=False, engine=engine)
    assert (run.status, run.u.shape) == ("blow_up", (0, 1))
    assert run.end_u[0] > 1e8
    assert f"u(end)  [{run.end_u[0]:.6e}]" in str(run)


@every_engine
def test_a_run_that_never_began_has_no_steps_to_tell_of(engine):
    problem = ol.Problem(lambda t, u, params: (np.nan * u[0],), [1.0], (0.0, 1.0))
    run = ol.solve(problem, ol.DOPRI5, dense=False, throw=False, engine=engine)
    assert "u(end)  [1.]" in str(run)
    assert run.sai.shape == run.h_rho.shape == (0,)


def test_measuring_the_steps_costs_no_evaluations():
    calls = [0]

    def counted(t, u, params):
        calls[0] += 1
        return relaxing(t, u, params)

    problem = RELAXING.replace(rhs=counted)
    calls[0] = 0
    run = ol.solve(problem, ol.DOPRI5, TOLERANCE, dense=False)
    assert calls[0] == run.evaluations
    assert np.isfinite(run.h_rho).all()
    assert calls[0] == run.evaluations


@pytest.mark.parametrize(
    "asked",
    [
        lambda run: ol.indicators(run.problem, run),
        lambda run: run.plot(),
        lambda run: ol.plot.stability_region(ol.DOPRI5, run),
        lambda run: run.slope,
        lambda run: ol.sai(run),
    ],
    ids=["indicators", "plot", "stability_region", "slope", "sai"],
)
def test_what_needs_states_says_so(asked):
    _, spare = both("plain component", ol.DOPRI5)
    with pytest.raises(
        ValueError, match=r"made with dense=False and kept no states.*; solve again without dense=False"
    ):
        asked(spare)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [HEAT, RELAXING, OSCILLATOR], ids=["in-place", "array", "component"])
@pytest.mark.parametrize("stops", [None, [0.5]], ids=["one piece", "two pieces"])
def test_a_run_by_two_methods_knows_its_indices_without_states(problem, stops):
    problem = problem.replace(t_span=(0.0, 1.0))
    full, spare = (ol.solve(problem, ol.AUTO, TOLERANCE, tstops=stops, dense=dense) for dense in (True, False))
    np.testing.assert_array_equal(spare.step_t, full.step_t)
    np.testing.assert_allclose(spare.sai, full.sai, rtol=1e-6)
