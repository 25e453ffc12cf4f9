"""Sensitivities across events: columns jump as the state does, and the times of events move."""

import itertools

import numpy as np
import pytest

import odelab as ol


def falling(t, u, params):
    return u[1], -params[0]


def height(t, u, params):
    return u[0]


def bounced(t, u, params):
    return [0.0, -params[1] * u[1]]


def bounced_in_place(t, u, params):
    u[0], u[1] = 0.0, -params[1] * u[1]
    return u


BALL = ol.Problem(falling, [1.0, 0.0], (0.0, 1.0), params=(9.81, 0.8))
CHOSEN = ol.wrt(params=True, u0=[0])
FIRST = np.sqrt(2.0 / 9.81)  # the time of the first bounce


def closed_form(gravity, kept, start, t=1.0):
    """Height and speed between the first bounce and the second one."""
    first = np.sqrt(2.0 * start / gravity)
    up, after = kept * np.sqrt(2.0 * gravity * start), t - first
    return np.array([up * after - 0.5 * gravity * after**2, up - gravity * after])


def derivative(function, place, at, h=1e-5):
    """A central difference, whose error is below 1e-9 for the functions here."""
    ends = [np.array(function(*at[:place], at[place] + d, *at[place + 1 :])) for d in (-h, h)]
    return (ends[1] - ends[0]) / (2.0 * h)


@pytest.mark.parametrize("change", [bounced, bounced_in_place])
@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], ids=["DOPRI5", "RODAS4"])
def test_a_bouncing_ball(method, engine, change):
    """The columns behind a bounce are the derivatives of the closed form to 1e-7."""
    floor = ol.Event(height, direction=-1, change=change)
    sol = ol.solve(BALL, method, events=floor, sensitivities=CHOSEN, engine=engine)
    for j in range(3):
        expected = derivative(closed_form, j, (9.81, 0.8, 1.0))
        np.testing.assert_allclose(sol.end_sensitivities[:, j], expected, rtol=0.0, atol=1e-7)


def test_the_time_of_an_event_moves():
    """With g: d sqrt(2 x / g) / dg = -t / (2 g), d / dx = t / (2 x); the height there stays zero."""
    for event in (height, ol.Event(height, terminal=True), ol.Event(height, change=bounced)):
        sol = ol.solve(BALL.replace(t_span=(0.0, 0.6)), ol.DOPRI5, events=event, sensitivities=CHOSEN)
        (found,) = sol.event_sensitivities
        np.testing.assert_allclose(found.t, [[-FIRST / (2.0 * 9.81), 0.0, FIRST / 2.0]], rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(found.u[0, 0], 0.0, atol=1e-7)
        assert sol.events[0].u.shape == (1, 2)


def test_a_run_that_an_event_ends_keeps_derivatives_at_a_fixed_time():
    sol = ol.solve(BALL, ol.DOPRI5, events=ol.Event(height, terminal=True), sensitivities=CHOSEN)
    assert sol.status == "event"
    expected = [[-(FIRST**2) / 2.0, 0.0, 1.0], [-FIRST, 0.0, 0.0]]
    np.testing.assert_allclose(sol.end_sensitivities, expected, rtol=1e-7, atol=1e-9)


def test_many_bounces_are_the_derivative_of_the_run():
    problem, controller = BALL.replace(t_span=(0.0, 3.0)), ol.adaptive(1e-10, 1e-12)
    floor = ol.Event(height, direction=-1, change=bounced)
    sol = ol.solve(problem, ol.DOPRI5, controller, events=floor, sensitivities=CHOSEN, t_eval=[2.0, 3.0])
    assert len(sol.events[0].t) == 6

    def states(gravity, kept, start):
        one = problem.replace(params=(gravity, kept), u0=[start, 0.0])
        return ol.solve(one, ol.DOPRI5, controller, events=floor, t_eval=[2.0, 3.0]).u

    for j in range(3):
        expected = derivative(states, j, (9.81, 0.8, 1.0))
        np.testing.assert_allclose(sol.sensitivities[..., j], expected, rtol=1e-6, atol=1e-6)


def growing(t, u, params):
    return (params["rate"] * u[0],)


def full(t, u, params):
    return u[0] - params["most"] * (1.0 + 0.1 * t)


def emptied(t, u, params):
    return [params["rest"] * u[0] + t]


def test_events_that_depend_on_time_and_on_parameters_inside_of_others():
    def problem(**changes):
        return ol.Problem(growing, [1.0], (0.0, 2.0), {"rate": 1.0, "most": 3.0, "rest": 0.25} | changes)

    event, controller = ol.Event(full, change=emptied), ol.adaptive(1e-10, 1e-12)
    sol = ol.solve(problem(), ol.DOPRI5, controller, events=event, sensitivities=ol.wrt(params=True))
    assert len(sol.events[0].t) == 2
    for j, name in enumerate(("rate", "most", "rest")):
        h = 1e-5
        here = problem().params[name]
        ends = [ol.solve(problem(**{name: here + d}), ol.DOPRI5, controller, events=event).end_u for d in (-h, h)]
        np.testing.assert_allclose(sol.end_sensitivities[:, j], (ends[1] - ends[0]) / (2 * h), rtol=1e-6)


def test_an_event_that_jumps_across_zero_has_no_derivative():
    problem = ol.Problem(lambda t, u, params: (1.0,), [-1.0], (0.0, 2.0))
    sign = ol.Event(lambda t, u, params: 1.0 if u[0] > 0.3 else -1.0, change=lambda t, u, params: [5.0])
    with pytest.raises(ValueError, match="or a derivative of zero"):
        ol.solve(problem, ol.DOPRI5, events=sign, sensitivities=ol.wrt(u0=True))


def test_events_that_cannot_be_followed_are_refused():
    event = ol.Event(lambda t, u, params: float(str(float(u[0]))), terminal=True)
    with pytest.raises(ol.NotCompilable, match="`sensitivities` needs functions whose operations can be followed"):
        ol.solve(BALL, ol.DOPRI5, events=event, sensitivities=CHOSEN)


def heated(t, u, params):
    temperature, on = u
    return params[0] * on - temperature, 0.0


def warm(t, u, params):
    return u[0] - params[1]


def switched_off(t, u, params):
    return u[0], 0.0


def test_a_branch_as_an_event():
    """A heater goes off at a temperature: x = heat (1 - exp(-t)) up to x = most, and from there most exp(te - t)."""
    problem = ol.Problem(heated, [0.0, 1.0], (0.0, 2.0), params=(3.0, 1.5))
    off = ol.Event(warm, change=switched_off)
    sol = ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-9, 1e-11), events=off, sensitivities=ol.wrt(params=True))

    def end(heat, most):
        return most * (1.0 - most / heat) ** -1.0 * np.exp(-2.0)

    for j in range(2):
        assert sol.end_sensitivities[0, j] == pytest.approx(derivative(end, j, (3.0, 1.5)), rel=1e-7)


def test_a_time_of_switching_has_a_derivative_where_an_event_marks_it():
    """u' = -u + (a where t > s): du/ds = -a exp(s - t) behind s, however the function treats equality.

    Backwards from u(2) = 1 it is a exp(s - t) before s.
    """

    def after(t, u, params):
        s, a = params
        return (-u[0] + (a if t > s else 0.0),)

    def from_then_on(t, u, params):
        s, a = params
        return (-u[0] + (a if t >= s else 0.0),)

    mark = ol.Event(lambda t, u, params: t - params[0], change=lambda t, u, params: u)
    for rhs, span in itertools.product((after, from_then_on), ((0.0, 2.0), (2.0, 0.0))):
        problem = ol.Problem(rhs, [1.0], span, params=(0.7, 3.0))
        for method, stops in ((ol.DOPRI5, None), (ol.RODAS4, [0.7]), (ol.AUTO, None)):
            given = {"events": mark, "tstops": stops, "sensitivities": ol.wrt(params=[0])}
            sol = ol.solve(problem, method, ol.adaptive(1e-8, 1e-10), **given)
            exact = -3.0 * np.exp(0.7 - 2.0) if span[1] else 3.0 * np.exp(0.7)
            assert sol.end_sensitivities[0, 0] == pytest.approx(exact, rel=1e-6)
