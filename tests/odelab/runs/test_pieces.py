"""Runs in pieces: steps that end where they are told to, and events that change the state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from tests.odelab.solver_cases import CIRCLE, PENDULUM

TIGHT = ol.adaptive(1e-10, 1e-12)
GRAVITY = 9.81


def fall(t, u, params):
    height, speed = u
    return (speed, -GRAVITY + 0.0 * height)


BALL = ol.Problem(fall, [10.0, 0.0], (0.0, 8.0))


def height(t, u, params):
    return u[0]


def bounce(t, u, params):
    return [0.0, -0.9 * u[1]]


FLOOR = ol.Event(height, direction=-1, name="floor", change=bounce)


def bounces(until):
    """When a ball from 10 m that keeps 0.9 of its speed meets the floor."""
    found = [np.sqrt(2.0 * 10.0 / GRAVITY)]
    speed = GRAVITY * found[0]
    while True:
        speed *= 0.9
        found.append(found[-1] + 2.0 * speed / GRAVITY)
        if found[-1] > until:
            return np.array(found[:-1])


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RADAU, ol.RKC2], ids=lambda method: method.name)
def test_a_ball_bounces_in_one_call(method):
    run = ol.solve(BALL, method, ol.adaptive(1e-8, 1e-10), events=FLOOR)
    expected = bounces(8.0)
    np.testing.assert_allclose(run.events[0].t, expected, rtol=0, atol=1e-6)
    assert (run.status, run.ok, run.t[-1]) == ("ok", True, 8.0)
    assert run.t.shape == (run.steps + 1,)
    assert run.u.shape == run.step_u.shape == (run.steps + 1, 2)
    assert run.h.shape == run.error.shape == run.sai.shape == run.h_rho.shape == (run.steps,)
    assert (np.diff(run.t) > 0.0).all()
    assert run.u[:, 0].min() > -1e-9
    assert run.message.startswith(f"reached t = 8 in {run.steps} steps")


def test_dense_output_is_right_on_both_sides_of_a_change():
    run = ol.solve(BALL, ol.DOPRI5, TIGHT, events=FLOOR, t_eval=np.linspace(0.0, 8.0, 41))
    first = run.events[0].t[0]
    speed = GRAVITY * first
    before, at, after = run([first - 1e-6, first, first + 1e-6])
    np.testing.assert_allclose(before, [1e-6 * speed, -speed], rtol=0, atol=1e-4)
    np.testing.assert_allclose(at, [0.0, 0.9 * speed], rtol=0, atol=1e-8)
    np.testing.assert_allclose(after, [0.9e-6 * speed, 0.9 * speed], rtol=0, atol=1e-4)
    np.testing.assert_allclose(run.events[0].u[0], [0.0, -speed], rtol=0, atol=1e-8)
    np.testing.assert_array_equal(run.u, run(run.t))
    np.testing.assert_array_equal(run(run.step_t), run.step_u)


def test_each_step_between_changes_is_what_its_slope_says():
    run = ol.solve(BALL, ol.DOPRI5, TIGHT, events=FLOOR)
    ends = run.step_u[:-1] + run.h[:, None] * run.slope
    changed = np.isin(run.step_t[1:], run.events[0].t)
    assert changed.sum() == len(bounces(8.0))
    np.testing.assert_allclose(ends[~changed], run.step_u[1:][~changed], rtol=0, atol=1e-9)
    np.testing.assert_allclose(ends[changed], run.events[0].u, rtol=0, atol=1e-9)


def test_terminal_counts_go_on_over_changes():
    run = ol.solve(BALL, ol.DOPRI5, TIGHT, events=[FLOOR, ol.Event(height, terminal=3, direction=-1, name="third")])
    assert run.status == "event"
    assert run.message.startswith("ended by third (falling) at t = ")
    assert run.t[-1] == pytest.approx(bounces(8.0)[2], abs=1e-8)
    run = ol.solve(BALL, ol.DOPRI5, TIGHT, events=ol.Event(height, terminal=2, direction=-1, change=bounce))
    assert run.t[-1] == pytest.approx(bounces(8.0)[1], abs=1e-8)
    assert run.end_u[1] < 0.0


def test_a_kick_at_a_time():
    kick = ol.Event(lambda t, u, params: t - 1.0, change=lambda t, u, params: (u[0], u[1] + 5.0))
    run = ol.solve(CIRCLE, ol.DOPRI5, TIGHT, events=kick)
    at_one = np.array([np.cos(1.0), 5.0 - np.sin(1.0)])
    expected = [np.cos(9.0) * at_one[0] + np.sin(9.0) * at_one[1], -np.sin(9.0) * at_one[0] + np.cos(9.0) * at_one[1]]
    np.testing.assert_allclose(run.end_u, expected, rtol=0, atol=1e-7)
    assert run.events[0].t.tolist() == [pytest.approx(1.0, abs=1e-12)]


def test_changes_without_end_are_told():
    stop = ol.Event(height, direction=-1, name="floor", change=lambda t, u, params: [0.0, -0.1 * u[1]])
    run = ol.solve(BALL, ol.DOPRI5, TIGHT, events=stop, throw=False)
    assert run.status == "step_too_small"
    assert "the event floor changes the state again and again" in run.message


def test_a_change_that_is_no_state_is_refused():
    with pytest.raises(ValueError, match=r"`change` of an event returned \[1.\] at t = .*must return the new state, 2"):
        ol.solve(BALL, ol.DOPRI5, events=ol.Event(height, change=lambda t, u, params: [1.0]))


def pulse(t, u, params):
    return (1.0 if 50.0 < t <= 50.1 else 0.0 * u[0],)


PULSE = ol.Problem(pulse, [0.0], (0.0, 100.0))


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RADAU, ol.RKC2], ids=lambda method: method.name)
@pytest.mark.parametrize("dense", [True, False])
def test_a_pulse_between_stops_is_not_stepped_over(method, dense):
    if method is ol.RADAU and not dense:
        return
    assert ol.solve(PULSE, method).end_u[0] == 0.0
    run = ol.solve(PULSE, method, tstops=[50.0, 50.1], dense=dense, engine="python")
    assert run.end_u[0] == pytest.approx(0.1, abs=2e-2)
    assert {50.0, 50.1} <= set(run.step_t)


@settings(max_examples=6)
@given(stops=st.lists(st.floats(0.01, 3.99), min_size=1, max_size=4, unique=True), forward=st.booleans())
def test_steps_end_at_the_stops_and_the_solution_stays(stops, forward):
    span = (0.0, 4.0) if forward else (4.0, 0.0)
    problem = PENDULUM.replace(t_span=span)
    stops = sorted(stops, reverse=not forward)
    times = np.linspace(*span, 7)
    run = ol.solve(problem, ol.DOPRI5, TIGHT, tstops=stops, t_eval=times, engine="python")
    plain = ol.solve(problem, ol.DOPRI5, TIGHT, t_eval=times, engine="python")
    assert set(stops) <= set(run.step_t)
    np.testing.assert_allclose(run.u, plain.u, rtol=0, atol=1e-7)
    few = ol.solve(problem, ol.DOPRI5, TIGHT, tstops=stops, t_eval=times, dense=False, engine="python")
    np.testing.assert_array_equal(few.t, times)
    np.testing.assert_allclose(few.u, run.u, rtol=0, atol=1e-14)


def test_the_budget_is_that_of_all_pieces():
    run = ol.solve(BALL, ol.DOPRI5, TIGHT, events=FLOOR, tstops=[0.01], max_steps=20, throw=False)
    assert (run.status, run.steps + run.rejected) == ("max_steps", 20)
    assert run.message.startswith("max_steps = 20 spent at t = "), "those of all pieces, not what is left for the last"


def test_stops_outside_the_span_are_refused():
    with pytest.raises(ValueError, match=r"`tstops` = 9\.0 lies outside `t_span`"):
        ol.solve(BALL, ol.DOPRI5, tstops=[9.0])


def test_ends_of_the_span_are_no_pieces():
    run = ol.solve(PENDULUM, ol.DOPRI5, TIGHT, tstops=[0.0, 4.0], engine="python")
    np.testing.assert_array_equal(run.u, ol.solve(PENDULUM, ol.DOPRI5, TIGHT, engine="python").u)
