"""Events of compiled runs are those of plain Python, and cost little."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from tests.clock import cost

problems = ol.problems
TURNS = problems.van_der_pol(1.0).replace(t_span=(0.0, 20.0))


def crossing(t, u, params):
    return u[0] - params[0]


def height(t, u, params):
    return u[1]


def product(t, u, params):
    x, v = u
    return x * v


def ripples(t, u, params):
    return math.sin(50.0 * t)


def touch(t, u, params):
    return (u[0] - 0.5) ** 2


def jump(t, u, params):
    return 1.0 if t > 3.3 else -1.0


def gap(t, u, params):
    return math.sqrt(u[0]) - 1.0


def is_positive(t, u, params):
    return u[0] > 0.5


def writes_it_down(t, u, params):
    return float(str(u[0]))  # of a number without value there is no text


SLOW = [pytest.param(function, marks=pytest.mark.slow) for function in (product, ripples, touch, jump, is_positive)]


def both(problem, method, event):
    engines = ("compiled", "python")
    return [ol.solve(problem, method, ol.adaptive(1e-6), events=event, engine=engine) for engine in engines]


@pytest.mark.parametrize("function", [crossing, gap, writes_it_down, *SLOW])
@pytest.mark.parametrize("options", [{}, {"direction": 1}, {"terminal": 2}])
def test_both_engines_find_the_same_events(function, options):
    compiled, plain = both(TURNS, ol.DOPRI5, ol.Event(function, **options))
    assert (compiled.engine, plain.engine) == ("compiled", "python")
    assert compiled.status == plain.status
    ours, theirs = compiled.events[0], plain.events[0]
    np.testing.assert_allclose(ours.t, theirs.t, rtol=0, atol=1e-7)
    np.testing.assert_allclose(ours.u, theirs.u, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(ours.direction, theirs.direction)
    assert ours.undefined == theirs.undefined


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.BS32, ol.RKF45, ol.DOP853, ol.HEUN, ol.RODAS4, ol.ESDIRK43])
@pytest.mark.parametrize("span", [(0.0, 20.0), (20.0, 0.0)])
def test_with_every_kind_of_dense_output(method, span):
    problem = problems.kepler().replace(t_span=span)
    compiled, plain = both(problem, method, height)
    assert len(plain.events[0].t) > 2
    np.testing.assert_allclose(compiled.events[0].t, plain.events[0].t, rtol=0, atol=1e-6)


@pytest.mark.slow
@given(level=st.floats(-1.9, 1.9), stretch=st.floats(0.2, 40.0))
@settings(max_examples=20)
def test_a_zero_lies_on_the_dense_output(level, stretch):
    problem = TURNS.replace(t_span=(0.0, stretch), params=(1.0,))
    run = ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-5), events=at_level(level), engine="compiled")
    found = run.events[0]
    np.testing.assert_allclose(run(found.t), found.u, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.u[:, 0], level, rtol=0, atol=1e-11)


LEVEL = np.zeros(1)


def at_level(level):
    LEVEL[0] = level
    return beside_level


def beside_level(t, u, params):
    return u[0] - LEVEL[0]


def test_a_value_the_event_captured_is_read_again():
    moved = [ol.solve(TURNS, ol.DOPRI5, events=at_level(level), engine="compiled") for level in (0.0, 1.0)]
    for level, run in zip((0.0, 1.0), moved, strict=True):
        np.testing.assert_allclose(run.events[0].u[:, 0], level, rtol=0, atol=1e-12)


TABLE = np.linspace(-1.0, 1.0, 11)


def from_table(t, u, params):
    return TABLE[int(t)]


def test_an_index_out_of_bounds_is_pythons_error():
    for engine in ("compiled", "python"):
        with pytest.raises(IndexError, match="index 11 is out of bounds for axis 0 with size 11"):
            ol.solve(TURNS, ol.DOPRI5, events=from_table, engine=engine)


@pytest.mark.slow
def test_more_zeros_than_fit_into_one_call():
    run = ol.solve(TURNS, ol.DOPRI5, events=ripples, engine="compiled")
    np.testing.assert_allclose(run.events[0].t, np.pi / 50 * np.arange(1, len(run.events[0].t) + 1), atol=1e-9)
    assert len(run.events[0].t) == int(20.0 / (np.pi / 50))


def test_a_ball_that_bounces_within_compiled_runs():
    ball = ol.Problem(lambda t, u, params: (u[1], -9.81), [10.0, 0.0], (0.0, 5.0))
    floor = ol.Event(crossing_zero, direction=-1, change=lambda t, u, params: [0.0, -0.9 * u[1]])
    compiled, plain = both(ball, ol.DOPRI5, floor)
    np.testing.assert_allclose(compiled.events[0].t, plain.events[0].t, rtol=0, atol=1e-12)
    assert len(plain.events[0].t) == 2


def crossing_zero(t, u, params):
    return u[0]


@pytest.mark.parametrize("end", [20.0, pytest.param(500.0, marks=pytest.mark.slow)])
def test_an_event_makes_a_run_three_times_as_long_at_most(end):
    problem = TURNS.replace(t_span=(0.0, end))

    def run(**events):
        return [ol.solve(problem, ol.DOPRI5, engine="compiled", **events) for _ in range(20)]

    run(events=ol.Event(crossing_zero, direction=1))
    assert cost(lambda: run(events=ol.Event(crossing_zero, direction=1)), run, enough=2.9) < 3.0
