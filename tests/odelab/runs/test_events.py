"""Events: every sign change is found, located on the dense output, and ends the run where it should."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import odelab as ol
from tests.odelab.solver_cases import CIRCLE

LOOSE = ol.adaptive(1e-3, 1e-3)
TIGHT = ol.adaptive(1e-12, 1e-12)


def clock(t, u, params):
    return (1.0 + 0.0 * t,)


RAMP = ol.Problem(clock, [0.0], (0.0, 10.0))  # u = t in a handful of steps, exactly
BACK = RAMP.replace(u0=[10.0], t_span=(10.0, 0.0))


def height(t, u, params):
    return u[0]


def times(run, number=0):
    return run.events[number].t


def test_zeros_of_the_cosine():
    run = ol.solve(CIRCLE, ol.DOPRI5, TIGHT, events=height)
    np.testing.assert_allclose(times(run), [np.pi / 2, 3 * np.pi / 2, 5 * np.pi / 2], rtol=0, atol=1e-11)
    np.testing.assert_allclose(run.events[0].u, [[0, -1], [0, 1], [0, -1]], rtol=0, atol=1e-11)
    assert run.events[0].direction.tolist() == [-1, 1, -1]
    assert (run.status, run.ok) == ("ok", True)


@pytest.mark.parametrize("direction", [-1, 0, 1])
@pytest.mark.parametrize("span", [(0.0, 10.0), (10.0, 0.0)])
def test_direction_is_that_of_the_run(direction, span):
    """Backward in time a zero is passed the other way."""
    run = ol.solve(CIRCLE.replace(t_span=span), ol.DOPRI5, TIGHT, events=ol.Event(height, direction=direction))
    everything = ol.solve(CIRCLE.replace(t_span=span), ol.DOPRI5, TIGHT, events=height).events[0]
    kept = everything.t[(everything.direction == direction) | (direction == 0)]
    np.testing.assert_array_equal(times(run), kept)
    assert len(everything.t) == 3
    assert (np.diff(everything.t) * (span[1] - span[0]) > 0).all()


@pytest.mark.parametrize("engine", ["python", "compiled"])
@pytest.mark.parametrize("which", [1, 2, 3])
def test_a_terminal_event_ends_the_run_at_its_count(engine, which):
    ending = ol.Event(height, terminal=which, name="the axis")
    run = ol.solve(CIRCLE, ol.DOPRI5, ol.adaptive(1e-8, 1e-8), events=ending, engine=engine)
    end = (which - 0.5) * np.pi
    assert run.status == "event"
    assert run.ok
    assert run.t[-1] == times(run)[-1] == pytest.approx(end, abs=1e-7)
    assert len(times(run)) == which
    ending = f"ended by the axis ({'falling' if which % 2 else 'rising'}) at t = {run.t[-1]:.9g} (step taken again, "
    assert re.fullmatch(re.escape(ending) + r"\d+ trials\)", run.message)
    assert run.u[-1, 0] == pytest.approx(0.0, abs=1e-13)
    assert run.t.shape == (run.steps + 1,)
    np.testing.assert_allclose(run.h, np.diff(run.t), rtol=1e-12)
    np.testing.assert_allclose(run.u[:-1] + run.h[:, None] * run.slope, run.u[1:], rtol=0, atol=1e-12)


def test_dense_output_after_a_terminal_event():
    run = ol.solve(CIRCLE, ol.DOPRI5, ol.adaptive(1e-8, 1e-8), events=ol.Event(height, terminal=True))
    t = np.linspace(0.0, run.t[-1], 57)
    np.testing.assert_allclose(run(t), CIRCLE.exact(t, ()), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(run(run.t), run.u)
    with pytest.raises(ValueError, match="outside the run's span"):
        run(run.t[-1] + 0.01)


def test_t_eval_stops_at_the_event():
    run = ol.solve(CIRCLE, ol.DOPRI5, TIGHT, events=ol.Event(height, terminal=True), t_eval=np.arange(11.0))
    assert run.t.tolist() == [0.0, 1.0]
    assert run.step_t[-1] == pytest.approx(np.pi / 2, abs=1e-11)


def test_nothing_is_recorded_beyond_the_end():
    crossing = [height, ol.Event(lambda t, u, p: t - 2.0, terminal=True), lambda t, u, p: t - 1.999, clockwise]
    run = ol.solve(CIRCLE, ol.DOPRI5, LOOSE, events=crossing, engine="python")
    assert [len(event.t) for event in run.events] == [1, 1, 1, 0]


def clockwise(t, u, params):
    return t - 2.001


@pytest.mark.slow
@settings(max_examples=40)
@given(
    roots=st.lists(st.floats(0.2, 9.8), min_size=1, max_size=5, unique=True),
    forward=st.booleans(),
    first=st.floats(0.01, 10.0),
)
def test_polynomial_events_are_located_to_1e12(roots, forward, first):
    roots = np.sort(roots)
    assume(np.diff(roots).min(initial=1.0) > 1e-3)

    def g(t, u, params):
        return np.prod(u[0] - roots)

    run = ol.solve(RAMP if forward else BACK, ol.DOPRI5, ol.adaptive(1e-3, 1e-3, first_step=first), events=g)
    expected = roots if forward else roots[::-1]
    np.testing.assert_allclose(times(run), expected, rtol=0, atol=1e-12 * 10.0 / np.diff(roots).min(initial=1.0))
    signs = run.events[0].direction
    assert (signs[1:] == -signs[:-1]).all()


@pytest.mark.parametrize("rate", [1, 3, 10, 30, 100, 300])
def test_none_is_missed_however_many_lie_in_a_step(rate):
    run = ol.solve(RAMP, ol.DOPRI5, LOOSE, events=lambda t, u, params: np.sin(rate * t + 0.1))
    expected = (np.arange(1, int((10 * rate + 0.1) / np.pi) + 1) * np.pi - 0.1) / rate
    assert run.steps < 10
    np.testing.assert_allclose(times(run), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("depth", [1e-2, 1e-4, 1e-6, 1e-9, 1e-12])
def test_two_zeros_close_to_each_other_within_one_step(depth):
    """A parabola that dips below zero by `depth` only."""
    run = ol.solve(RAMP, ol.DOPRI5, ol.fixed(5.0), events=lambda t, u, params: (u[0] - 3.3) ** 2 - depth)
    expected = 3.3 + np.sqrt(depth) * np.array([-1.0, 1.0])
    np.testing.assert_allclose(times(run), expected, rtol=0, atol=1e-13 / np.sqrt(depth))
    assert run.events[0].direction.tolist() == [-1, 1]


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("place", [3.3, 5.0, 2.5, 7.5])
def test_a_touch_is_no_crossing(gap, place):
    run = ol.solve(RAMP, ol.DOPRI5, ol.fixed(5.0), events=lambda t, u, params: (t - place) ** 2 + gap)
    assert len(times(run)) == 0


def test_a_touch_between_crossings():
    run = ol.solve(CIRCLE, ol.DOPRI5, TIGHT, events=lambda t, u, params: (t - 3.0) ** 2 * (t - 7.0))
    np.testing.assert_allclose(times(run), [7.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("place", [2.5, 5.0, 7.5, 10.0])
@pytest.mark.parametrize("direction", [-1, 1])
def test_a_zero_exactly_at_the_end_of_a_step_counts_once(place, direction):
    run = ol.solve(RAMP, ol.EULER, ol.fixed(2.5), events=lambda t, u, params: direction * (t - place))
    assert times(run).tolist() == [place]
    assert run.events[0].direction.tolist() == [direction]
    np.testing.assert_array_equal(run.events[0].u, [[place]])


def test_a_terminal_zero_exactly_at_the_end_of_a_step():
    run = ol.solve(RAMP, ol.EULER, ol.fixed(2.5), events=ol.Event(lambda t, u, p: u[0] - 5.0, terminal=True))
    assert run.t.tolist() == [0.0, 2.5, 5.0]
    assert run.h.tolist() == [2.5, 2.5]
    assert (run.status, run.steps) == ("event", 2)


def test_a_zero_at_the_start_does_not_count():
    run = ol.solve(CIRCLE, ol.DOPRI5, TIGHT, events=[lambda t, u, params: u[1], lambda t, u, params: t])
    np.testing.assert_allclose(times(run), np.pi * np.arange(1, 4), rtol=0, atol=1e-11)
    assert len(times(run, 1)) == 0


def test_a_start_just_before_a_terminal_zero():
    run = ol.solve(RAMP, ol.RK4, ol.fixed(2.5), events=ol.Event(lambda t, u, p: t - 1e-300, terminal=True))
    assert run.status == "event"
    assert run.t[-1] == pytest.approx(0.0, abs=1e-200)
    assert np.isfinite(run.slope).all()


def test_an_event_that_is_always_zero_never_happens():
    run = ol.solve(CIRCLE, ol.DOPRI5, LOOSE, events=lambda t, u, params: 0.0)
    assert len(times(run)) == 0


def test_leaving_a_zero_is_no_event():
    run = ol.solve(RAMP, ol.DOPRI5, ol.fixed(2.0), events=lambda t, u, params: max(u[0] - 5.0, 0.0))
    assert len(times(run)) == 0


def test_rounding_noise_around_zero_costs_no_search():
    """Noise has no shape: to resolve it would take the whole allowance of every step."""
    calls = [0]

    def noise(t, u, params):
        calls[0] += 1
        return u[0] - t

    run = ol.solve(RAMP, ol.DOPRI5, ol.fixed(0.1), events=noise)
    assert calls[0] < 40 * run.steps


@pytest.mark.parametrize("method", [ol.EULER, ol.RK4, ol.DOPRI5], ids=lambda m: m.name)
def test_an_event_on_a_projected_run(method):
    """Positivity keeps the state at zero: arriving there is the event, and it happens once."""
    seen = []

    def emptied(t, u, params):
        seen.append(u[0])
        return u[0]

    problem = ol.Problem(lambda t, u, params: (-1.0 + 0.0 * u[0],), [0.37], (0.0, 1.0))
    run = ol.solve(problem, method, ol.fixed(0.1), events=emptied, project=lambda u: np.maximum(u, 0.0))
    assert min(seen) == 0.0
    np.testing.assert_allclose(times(run), [0.37], rtol=0, atol=1e-13)
    assert run.events[0].direction.tolist() == [-1]
    np.testing.assert_array_equal(run.events[0].u, [[0.0]])


def test_a_discontinuous_event_is_located_too():
    run = ol.solve(RAMP, ol.DOPRI5, LOOSE, events=lambda t, u, params: 1.0 if u[0] > 3.7 else -1.0)
    np.testing.assert_allclose(times(run), [3.7], rtol=0, atol=1e-13)


def test_a_gap_in_the_domain_is_no_crossing():
    calls = [0]

    def root(t, u, params):
        calls[0] += 1
        return np.sqrt((t - 4.0) * (t - 6.0)) * np.sign(t - 5.0)

    run = ol.solve(RAMP, ol.DOPRI5, LOOSE, events=root)
    assert len(times(run)) == 0
    assert calls[0] < 40 * run.steps


@settings(max_examples=8)
@given(level=st.floats(-0.99, 0.99), tolerance=st.sampled_from([1e-2, 1e-5, 1e-9]))
def test_crossings_of_a_level_alternate_and_interlace(level, tolerance):
    def above(t, u, params):
        return u[0] - level

    run = ol.solve(CIRCLE.replace(t_span=(0.0, 30.0)), ol.DOPRI5, ol.adaptive(tolerance, tolerance), events=above)
    signs = run.events[0].direction
    assert (signs[1:] == -signs[:-1]).all()
    grid = np.linspace(0.0, 30.0, 20_001)
    assert len(signs) == np.count_nonzero(np.diff(np.sign(run(grid)[:, 0] - level)))
    assert np.abs(run.events[0].u[:, 0] - level).max() < 1e-12


def test_events_from_scipys_attributes():
    def hit(t, u, params):
        return u[0]

    hit.terminal, hit.direction = True, 1
    run = ol.solve(CIRCLE, ol.DOPRI5, TIGHT, events=[hit])
    assert run.t[-1] == pytest.approx(1.5 * np.pi, abs=1e-11)
    assert "ended by hit (rising)" in run.message


def test_parameters_reach_the_event():
    problem = ol.Problem(lambda t, u, params: (params[0] + 0.0 * t,), [0.0], (0.0, 1.0), (2.0,))
    run = ol.solve(problem, ol.RK4, ol.fixed(0.25), events=lambda t, u, params: u[0] - 0.3 * params[0])
    np.testing.assert_allclose(times(run), [0.3], rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("events", "error", "word"),
    [
        (3, TypeError, "`events` must be a function g"),
        ([height, "no"], TypeError, "got 'no'"),
        (ol.Event(height, direction=2), ValueError, "`direction` of an event must be -1, 0 or 1, got 2"),
        (ol.Event(height, terminal=-1), ValueError, "`terminal` of an event must be .*, got -1"),
        (lambda t, u, params: u, ValueError, "`events` functions must return one number, got shape"),
    ],
)
def test_what_is_no_event_is_refused(events, error, word):
    with pytest.raises(error, match=word):
        ol.solve(CIRCLE, ol.DOPRI5, LOOSE, events=events)


def test_an_event_that_is_nan_is_told():
    run = ol.solve(RAMP, ol.DOPRI5, ol.fixed(1.0), events=lambda t, u, params: np.sqrt(t - 4.5))
    assert run.events[0].undefined == 5
    assert "event 0 (<lambda>) was not a finite number on 5 of 10 steps: no zero can be found there" in run.message


def test_simultaneous_terminal_events_are_both_recorded():
    ends = [
        ol.Event(lambda t, u, params: t - 2.0, terminal=True),
        ol.Event(lambda t, u, params: 2.0 - t, terminal=True),
    ]
    for engine in ("python", "compiled"):
        run = ol.solve(CIRCLE, ol.DOPRI5, LOOSE, events=ends, engine=engine)
        assert [event.t.tolist() for event in run.events] == [[2.0], [2.0]]


@pytest.mark.parametrize("function", [lambda t, u: u[0], lambda t, u, p: u[0], lambda t, u, p: min(u[0], 9.0)])
def test_events_that_take_arrays_and_events_that_do_not_find_the_same(function):
    run = ol.solve(CIRCLE.replace(t_span=(0.0, 28.0)), ol.DOPRI5, TIGHT, events=function)
    np.testing.assert_allclose(times(run), np.pi * np.arange(0.5, 9.5), rtol=0, atol=1e-10)


@pytest.mark.parametrize("direction", [-1, 0, 1])
@pytest.mark.parametrize("which", [1, 77, 1000])
def test_a_run_looked_at_in_chunks_finds_what_one_looked_at_as_a_whole_finds(which, direction):
    """A terminal event is looked for while the run is under way, others when it is over."""
    problem, control = CIRCLE.replace(t_span=(0.0, 600.0)), ol.adaptive(1e-6, 1e-9)
    whole = ol.solve(problem, ol.DOPRI5, control, events=[ol.Event(height, direction=direction), turned])
    ending = [ol.Event(height, terminal=which, direction=direction), turned]
    chunks = ol.solve(problem, ol.DOPRI5, control, events=ending, engine="compiled")
    assert chunks.status == ("event" if which <= len(times(whole)) else "ok")
    np.testing.assert_allclose(times(chunks)[: which - 1], times(whole)[: which - 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(times(chunks)[which - 1 :], times(whole)[which - 1 : which], rtol=0, atol=1e-5)
    before = times(whole, 1)[times(whole, 1) <= chunks.t[-1]]
    np.testing.assert_allclose(times(chunks, 1), before, rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", ["python", "compiled", "auto"])
def test_a_run_that_an_event_ends_is_not_troubled_by_what_lies_beyond(engine):
    """Compiled attempts are made many at a time, some of them beyond the event."""
    table = np.ones(60)

    def known_until_60(t, u, params):
        return (table[int(t)] - u[0],)

    def refusing(t, u, params):
        if t > 60.0:
            raise ValueError("beyond")
        return (1.0 - u[0],)

    for rhs in (known_until_60, refusing):
        problem = ol.Problem(rhs, [0.0], (0.0, 150.0))
        ending = ol.Event(lambda t, u, params: t - 50.0, terminal=True)
        assert ol.solve(problem, ol.RK4, ol.fixed(0.25), events=ending, engine=engine).status == "event"
        with pytest.raises((IndexError, ValueError), match=r"index 60 is out of bounds|beyond"):
            ol.solve(problem, ol.RK4, ol.fixed(0.25), engine=engine)


def turned(t, u, params):
    return u[1] - 0.5


def test_an_event_of_another_signature_is_refused():
    with pytest.raises(TypeError, match=r"`function` of an event must take \(t, u, params\), got .*\(t\)"):
        ol.solve(CIRCLE, ol.DOPRI5, LOOSE, events=lambda t: t)


def test_the_summary_counts_events():
    assert "event 0  3 found" in str(ol.solve(CIRCLE, ol.DOPRI5, LOOSE, events=height))


@pytest.mark.parametrize("method", [ol.RADAU, ol.BDF, ol.LSODA], ids=lambda m: m.name)
@pytest.mark.parametrize("span", [(0.0, 10.0), (10.0, 0.0)])
def test_implicit_methods_meet_events_too(method, span):
    problem = CIRCLE.replace(t_span=span)
    run = ol.solve(
        problem, method, ol.adaptive(1e-9, 1e-10), events=[height, lambda t, u, params: np.sin(20.0 * t + 0.1)]
    )
    zeros = np.pi * np.array([0.5, 1.5, 2.5])
    np.testing.assert_allclose(times(run), zeros if span[0] == 0.0 else 10.0 - zeros, rtol=0, atol=1e-5)
    assert len(times(run, 1)) == 63
    ended = ol.solve(problem, method, ol.adaptive(1e-9, 1e-10), events=ol.Event(height, terminal=2))
    assert ended.status == "event"
    assert ended.t[-1] == times(ended)[-1] == times(run)[1]
    assert ended.message.startswith("ended by height (rising) at t = ")
    assert ended.u.shape == (ended.steps + 1, 2)
    np.testing.assert_array_equal(ended(ended.t), ended.u)


BY_NUMBA = pytest.param(ol.RKC2, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "method", [ol.DOPRI5, ol.RODAS4, ol.ESDIRK43, ol.AUTO, BY_NUMBA], ids=lambda method: method.name
)
def test_the_work_of_a_run_is_that_up_to_its_event(method):
    """Whatever the engine, and however many attempts it makes at once: what lies beyond the event is not counted."""
    problem, control = ol.problems.van_der_pol(mu=10.0), ol.adaptive(1e-6, 1e-8)
    down = ol.Event(lambda t, u, params: u[0], direction=-1, terminal=True)
    runs = [ol.solve(problem, method, control, events=down, engine=engine) for engine in ("python", "compiled")]
    runs.append(ol.solve(problem, method, control, events=down, engine="compiled", progress=lambda done, total: None))
    whole = ol.solve(problem, method, control, engine="compiled")
    for name in ("steps", "rejected", "evaluations", "jacobians", "factorisations"):
        first, *others = (getattr(run, name) for run in runs)
        assert set(others) == {first}, name
        assert first <= getattr(whole, name)
    assert len({run.turns for run in runs}) == 1
