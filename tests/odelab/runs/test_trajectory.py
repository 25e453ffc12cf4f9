"""What a run leaves behind, and how it is told."""

import re

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import CIRCLE, PENDULUM

TOLERANCE = ol.adaptive(1e-6, 1e-9)


def test_shapes_and_kinds():
    run = ol.solve(PENDULUM, ol.DOPRI5, TOLERANCE, engine="python")
    m = run.steps
    assert run.t.shape == run.step_t.shape == (m + 1,)
    assert run.u.shape == run.step_u.shape == (m + 1, 2)
    assert run.h.shape == run.error.shape == (m,)
    assert run.slope.shape == (m, 2)
    assert isinstance(run.rejected, int)
    assert isinstance(run.evaluations, int)
    assert isinstance(run.message, str)
    assert (run.status, run.ok, run.engine) == ("ok", True, "python")
    assert (run.problem, run.method, run.controller) == (PENDULUM, ol.DOPRI5, TOLERANCE)
    np.testing.assert_allclose(np.diff(run.t), run.h, rtol=1e-12)
    assert run.events == ()


def test_printing_tells_how_it_went():
    run = ol.solve(PENDULUM, ol.DOPRI5, TOLERANCE, events=lambda t, u, p: u[0], engine="python")
    lines = str(run).splitlines()
    assert lines[0] == (
        "pendulum with DOPRI5, order 5(4), 7 stages, adaptive(rtol=1e-06, atol=1e-09, law='pi42'), engine python"
    )
    assert lines[1] == "  t       0 ... 4 (asked for 4)"
    assert lines[2] == f"  steps   {run.steps} accepted, {run.rejected} rejected, {run.evaluations} evaluations"
    assert lines[3].startswith(f"  h       {run.h.min():.3g} ... {run.h.max():.3g}, median ")
    assert lines[4].startswith("  u(end)  [")
    assert lines[5] == f"  event 0  {len(run.events[0].t)} found"
    assert lines[6] == f"  ok: reached t = 4 in {run.steps} steps"
    assert repr(run) == f"Trajectory(pendulum, {run.steps} steps, ok)"


def test_printing_a_run_that_never_began():
    problem = ol.Problem(lambda t, u, params: (np.nan * u[0],), [1.0], (0.0, 1.0))
    run = ol.solve(problem, ol.DOPRI5, TOLERANCE, throw=False)
    assert "0 accepted" in str(run)
    assert "not_finite: the right-hand side returned nan" in str(run)


@pytest.mark.parametrize("method", [ol.RADAU, ol.BDF, ol.LSODA], ids=lambda m: m.name)
def test_implicit_runs_are_trajectories_too(method):
    run = ol.solve(CIRCLE, method, ol.adaptive(1e-8, 1e-10))
    m = run.steps
    assert (run.t.shape, run.u.shape, run.h.shape, run.slope.shape) == ((m + 1,), (m + 1, 2), (m,), (m, 2))
    assert (run.status, run.engine, run.message) == ("ok", "scipy", f"reached t = 10 in {m} steps")
    assert run.evaluations >= m
    np.testing.assert_allclose(run.u, CIRCLE.exact(run.t, ()), rtol=0, atol=1e-4)
    np.testing.assert_allclose(run.u[:-1] + run.h[:, None] * run.slope, run.u[1:], rtol=0, atol=1e-13)
    assert f"{method.name}, order {method.order}, implicit (SciPy)" in str(run)


def test_an_implicit_controller_passes_its_options_on():
    run = ol.solve(CIRCLE, ol.RADAU, ol.adaptive(1e-3, 1e-3, first_step=1e-4, max_step=0.1))
    assert run.h[0] == pytest.approx(1e-4)
    assert run.h.max() <= 0.1 + 1e-12


def test_the_state_of_a_problem_is_not_shared_with_its_runs():
    run = ol.solve(PENDULUM, ol.RK4, ol.fixed(1.0))
    assert not np.shares_memory(run.u, PENDULUM.u0)
    with pytest.raises(ValueError, match="read-only"):
        PENDULUM.u0[0] = 99.0


@pytest.mark.parametrize(
    ("name", "here"),
    [("y", "`sol.u.T`"), ("success", "`ok`"), ("nfev", "`evaluations`"), ("t_events", "`events[k].t`")],
)
def test_names_of_other_libraries_lead_to_those_of_here(name, here):
    sol = ol.solve(ol.problems.brusselator(), ol.DOPRI5)
    with pytest.raises(AttributeError, match=re.escape(here)):
        getattr(sol, name)
    assert not hasattr(sol, name)


def test_errors_within_what_is_computed_when_asked_for_are_told_as_they_are(monkeypatch):
    sol = ol.solve(ol.problems.brusselator(), ol.DOPRI5)
    with pytest.raises(AttributeError, match="no attribute 'velocity'"):
        _ = sol.velocity
    monkeypatch.setattr("odelab.runs.limits.stability_limit", lambda trajectory: trajectory.h.lenght)
    with pytest.raises(AttributeError, match="lenght"):
        _ = sol.limit
