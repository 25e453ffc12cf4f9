"""Steps taken again: events that end a run, and states inside doubtful steps, are as exact as the ends of steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.runs.dense import Dense
from tests.odelab.solver_cases import NAMED

ENGINES = ["python", "compiled"]
IMPLICIT = [ol.RODAS4, ol.RODAS5P, ol.AUTO]


def following(t, u, params):
    return (-1e6 * (u[0] - ol.maths.sin(t)) + ol.maths.cos(t),)


FOLLOWING = ol.Problem(following, [0.0], (0.0, 100.0))
CROSSINGS = np.pi / 6 + 2 * np.pi * np.arange(16)
HALF = ol.Event(lambda t, u, params: u[0] - 0.5, direction=1, name="one half")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
@pytest.mark.parametrize("method", [*IMPLICIT, ol.ESDIRK43], **NAMED)
def test_a_terminal_event_in_a_stiff_step_ends_where_it_should(method, rtol, engine):
    ending = ol.Event(HALF.function, direction=1, terminal=2, name="one half")
    sol = ol.solve(FOLLOWING, method, ol.adaptive(rtol, 1e-3 * rtol), events=ending, engine=engine)
    assert sol.status == "event"
    assert abs(sol.t[-1] - CROSSINGS[1]) < 1e-6
    assert abs(sol.u[-1, 0] - 0.5) < 1e-12
    assert sol.message.startswith("ended by one half (rising) at t = 6.8067")


def test_no_remark_is_lost_where_an_event_ends_the_run():
    ending = ol.Event(HALF.function, direction=1, terminal=2)
    sol = ol.solve(FOLLOWING, ol.RODAS4, ol.adaptive(1e-6, 1e-9), events=ending)
    assert "inside its steps states are less exact" in sol.message
    stopped = ol.solve(FOLLOWING, ol.RODAS4, ol.adaptive(1e-6, 1e-9), events=ending, tstops=[1.0])
    assert stopped.message.startswith("ended by")
    assert "inside its steps states are less exact" in stopped.message


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", IMPLICIT, **NAMED)
def test_an_event_in_time_alone_ends_in_the_right_state(method, engine):
    at = ol.Event(lambda t, u, params: t - 6.80678, terminal=True)
    sol = ol.solve(FOLLOWING, method, ol.adaptive(1e-6, 1e-9), events=at, engine=engine)
    assert sol.t[-1] == pytest.approx(6.80678, abs=1e-14)
    assert abs(sol.u[-1, 0] - np.sin(6.80678)) < 1e-6


@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("method", IMPLICIT, **NAMED)
def test_crossings_that_long_steps_hide_are_found(method, rtol):
    """A step of ten time units holds three of them."""
    sol = ol.solve(FOLLOWING, method, ol.adaptive(rtol, 1e-3 * rtol), events=HALF)
    assert sol.events[0].t.shape == CROSSINGS.shape
    assert np.abs(sol.events[0].t - CROSSINGS).max() < max(rtol, 1e-6)
    assert np.abs(sol.events[0].u[:, 0] - 0.5).max() < 1e-9


@pytest.mark.parametrize("method", IMPLICIT, **NAMED)
@pytest.mark.parametrize("dense", [True, False])
def test_states_at_wanted_times_by_steps(method, dense):
    times, control = np.linspace(0.5, 99.5, 199), ol.adaptive(1e-6, 1e-9)
    with pytest.warns(RuntimeWarning, match="t_eval_by='step'"):
        inexact = ol.solve(FOLLOWING, method, control, t_eval=times, dense=dense)
    exact = ol.solve(FOLLOWING, method, control, t_eval=times, t_eval_by="step", dense=dense)
    assert np.abs(inexact.u[:, 0] - np.sin(times)).max() > 1e-2
    assert np.abs(exact.u[:, 0] - np.sin(times)).max() < 5e-6
    np.testing.assert_array_equal(exact.step_t, inexact.step_t)


def test_with_stops_the_same_is_said_and_done():
    times, options = np.linspace(0.5, 99.5, 199), {"tstops": [30.0, 60.0]}
    with pytest.warns(RuntimeWarning, match="much less exact"):
        ol.solve(FOLLOWING, ol.RODAS4, ol.adaptive(1e-6, 1e-9), t_eval=times, **options)
    sol = ol.solve(FOLLOWING, ol.RODAS4, ol.adaptive(1e-6, 1e-9), t_eval=times, t_eval_by="step", **options)
    assert np.abs(sol.u[:, 0] - np.sin(times)).max() < 5e-6


@pytest.mark.parametrize("name", ["robertson", "van_der_pol", "hires", "oregonator"])
def test_nothing_is_said_where_states_inside_are_right(name):
    problem = getattr(ol.problems, name)()
    times = np.linspace(*problem.t_span, 50)
    ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5, 1e-11), t_eval=times)  # a warning would be an error


def test_who_cannot_take_a_step_again_says_so():
    for method, word in ((ol.RKC2, "number of its stages"), (ol.BDF, "is SciPy's")):
        with pytest.raises(ValueError, match=word):
            ol.solve(FOLLOWING, method, t_eval=[1.0], t_eval_by="step")
    with pytest.raises(ValueError, match="must be 'dense' or 'step', got 'exact'"):
        ol.solve(FOLLOWING, ol.RODAS4, t_eval=[1.0], t_eval_by="exact")


@given(st.sampled_from(["DOPRI5", "DOP853", "RODAS4", "ESDIRK43"]), st.floats(0.0, 1.0), st.booleans())
def test_a_step_taken_again_to_its_own_end_is_itself(name, theta, projects):
    """And to any time it is the method's own step to there."""
    method = {**ol.METHODS, "RODAS4": ol.RODAS4, "ESDIRK43": ol.ESDIRK43}[name]
    project = (lambda u: np.minimum(u, 1.9)) if projects else None
    problem = ol.problems.van_der_pol(5.0).replace(t_span=(0.0, 2.0))
    sol = ol.solve(problem, method, ol.adaptive(1e-5, 1e-8), engine="python", project=project)
    i = sol.steps // 2
    dense = sol.interpolant
    assert isinstance(dense, Dense)
    np.testing.assert_allclose(dense.retaken.to(i, sol.step_t[i + 1]), sol.step_u[i + 1], rtol=1e-12)
    there = dense.retaken.inside(i, theta)
    one = ol.solve(
        problem.piece(sol.step_t[i], sol.step_t[i] + 1.0, sol.step_u[i]),
        method,
        ol.fixed(max(theta * sol.h[i], 1e-12)),
        engine="python",
        max_steps=1,
        throw=False,
        project=project,
    )
    np.testing.assert_allclose(there, one.step_u[1], rtol=1e-9, atol=1e-11)


def test_a_bouncing_ball_bounces_where_it_does():
    ball = ol.Problem(lambda t, u, params: (u[1], -9.81), [10.0, 0.0], (0.0, 5.0))
    floor = ol.Event(
        lambda t, u, params: u[0], direction=-1, change=lambda t, u, params: [0.0, -0.9 * u[1]], name="floor"
    )
    sol = ol.solve(ball, ol.DOPRI5, events=floor)
    fall = np.sqrt(20.0 / 9.81)
    np.testing.assert_allclose(sol.events[0].t, fall * np.array([1.0, 2.8]), rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], **NAMED)
def test_an_ensemble_says_which_of_its_runs_are_doubtful_and_can_step_there(method, engine):
    def pulled(t, u, params):
        return (-params[0] * (u[0] - ol.maths.sin(t)) + ol.maths.cos(t),)

    problem, times = ol.Problem(pulled, [0.0], (0.0, 100.0), (1.0,)), np.linspace(0.5, 99.5, 199)
    given = {"params": [[1e6], [1.0], [1e5], [10.0]], "t_eval": times, "engine": engine}
    control = ol.adaptive(1e-6, 1e-7)
    with pytest.warns(RuntimeWarning, match=r"in 2 of them states at `t_eval`.*the first is run 0"):
        dense = ol.ensemble(problem, method, control, **given)
    errors = np.abs(dense.u[:, :, 0] - np.sin(times)).max(axis=1)
    assert dense.inside_doubtful.tolist() == (errors > 1e-4).tolist() == [True, False, True, False]
    assert "in 2 of them states" in str(dense)
    by_steps = ol.ensemble(problem, method, control, t_eval_by="step", **given)
    assert np.abs(by_steps.u[:, :, 0] - np.sin(times)).max() < 5e-6
    assert not by_steps.inside_doubtful.any()
    np.testing.assert_array_equal(by_steps.steps, dense.steps)
