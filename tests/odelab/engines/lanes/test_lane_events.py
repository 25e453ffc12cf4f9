"""Events of runs in lanes: each run is what it is alone, whoever its neighbours are."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import odelab as ol
from odelab.engines.lanes import plain, rounds

CONTROL = ol.adaptive(1e-6, 1e-8)
HARES = ol.Problem(
    lambda t, u, params: (params[0] * u[0] - u[0] * u[1], u[0] * u[1] - u[1]), [2.0, 1.0], (0.0, 12.0), (1.0,)
)
SETS = np.linspace(0.6, 1.6, 37)[:, None]
FEW = ol.Event(lambda t, u, params: u[0] - 0.5, direction=-1, name="few hares")
EVENTS = {
    "recorded": [FEW, lambda t, u, params: u[1] - params[0]],
    "terminal": ol.Event(FEW.function, terminal=2),
    "both": [FEW, ol.Event(lambda t, u, params: u[1] - params[0], terminal=3)],
    "changing": ol.Event(FEW.function, direction=-1, change=lambda t, u, params: [2.0 * u[0], 0.9 * u[1]]),
    "in time": ol.Event(lambda t, u, params: np.sin(3.0 * t), change=lambda t, u, params: [u[0] + 0.1, u[1]]),
    "never": ol.Event(lambda t, u, params: u[0] + u[1] + 1.0, terminal=True),
}


@pytest.fixture
def lanes_alone(monkeypatch):
    """No run may be solved one by one."""

    def refused(*given):
        raise AssertionError("runs have left the lanes")

    monkeypatch.setattr(plain, "one_by_one", refused)


def alone(problem, method, control, sets, run: int, **options):
    one = problem.replace(params=tuple(sets[run].tolist()))
    return ol.solve(one, method, control, throw=False, **options)


def assert_equal_to_single_runs(runs, problem, method, control, sets, some=(0, 11, 36), **options):
    for run in some:
        single = alone(problem, method, control, sets, run, **options)
        assert runs.status[run] == single.status
        assert (runs.steps[run], runs.rejected[run]) == (single.steps, single.rejected)
        np.testing.assert_allclose(runs.t[run], single.step_t[-1], rtol=1e-12)
        for record, expected in zip(runs.events[run], single.events, strict=True):
            assert record.name == expected.name
            np.testing.assert_allclose(record.t, expected.t, rtol=1e-11)
            np.testing.assert_allclose(record.u, expected.u, rtol=1e-10)
            np.testing.assert_array_equal(record.direction, expected.direction)
        if runs.t_eval is None:
            np.testing.assert_allclose(runs.u[run], single.step_u[-1], rtol=1e-10)
        else:
            reached = len(single.t)
            np.testing.assert_allclose(runs.u[run, :reached], single.u, rtol=1e-10)
            assert np.isnan(runs.u[run, reached:]).all()


@pytest.mark.parametrize(
    "events", [pytest.param(name, marks=pytest.mark.slow) if name == "terminal" else name for name in EVENTS]
)
def test_a_run_in_lanes_is_what_it_is_alone(events, lanes_alone):
    given = EVENTS[events]
    runs = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS, events=given)
    assert_equal_to_single_runs(runs, HARES, ol.DOPRI5, CONTROL, SETS, events=given)


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.BS32, ol.DOP853, ol.RODAS4, ol.ROS2])
def test_whatever_the_method(method):
    control = ol.adaptive(1e-4, 1e-6)
    runs = ol.ensemble(HARES, method, control, params=SETS, events=EVENTS["both"])
    assert_equal_to_single_runs(runs, HARES, method, control, SETS, (0, 36), events=EVENTS["both"])


@pytest.mark.parametrize(
    ("events", "by"),
    [("both", "dense"), ("changing", "step")]
    + [pytest.param(*one, marks=pytest.mark.slow) for one in (("both", "step"), ("changing", "dense"))],
)
def test_wanted_times_and_stops_with_events(events, by, lanes_alone):
    given = {"t_eval": np.linspace(0.0, 12.0, 61), "tstops": [2.5, 7.0], "t_eval_by": by, "events": EVENTS[events]}
    runs = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS, **given)
    assert_equal_to_single_runs(runs, HARES, ol.DOPRI5, CONTROL, SETS, **given)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.AUTO])
def test_one_row_of_wanted_times_stays_one(method):
    """So that quantiles over time can be drawn of runs with events, too."""
    times = np.linspace(0.0, 12.0, 4)
    runs = ol.ensemble(HARES, method, CONTROL, params=SETS[:2], t_eval=times, tstops=[2.5], events=EVENTS["both"])
    np.testing.assert_array_equal(runs.t_eval, times)
    assert runs.plot("fan") is not None


def test_fixed_steps_have_events_too(lanes_alone):
    runs = ol.ensemble(HARES, ol.RK4, ol.fixed(0.05), params=SETS, events=EVENTS["both"])
    assert_equal_to_single_runs(runs, HARES, ol.RK4, ol.fixed(0.05), SETS, events=EVENTS["both"])


def test_both_crossings_within_one_step_are_found(lanes_alone):
    turn = ol.Problem(lambda t, u, params: (u[1], -params[0] * u[0]), [1.0, 0.0], (0.0, 20.0), (1.0,))
    peak = ol.Event(lambda t, u, params: u[0] + 0.9999)
    sets = np.linspace(0.5, 2.0, 37)[:, None]
    runs = ol.ensemble(turn, ol.DOPRI5, ol.adaptive(1e-4, 1e-6), params=sets, events=peak)
    assert_equal_to_single_runs(runs, turn, ol.DOPRI5, ol.adaptive(1e-4, 1e-6), sets, range(0, 37, 4), events=peak)
    assert sum(len(records[0].t) for records in runs.events) > 50


def test_an_event_that_almost_happens_is_none():
    """All steps that may hold a zero are looked at, and none does."""
    turn = ol.Problem(lambda t, u, params: (u[1], -params[0] * u[0]), [1.0, 0.0], (0.0, 6.0), (1.0,))
    hardly = ol.Event(lambda t, u, params: u[0] * u[0] + 1e-8)
    runs = ol.ensemble(turn, ol.DOPRI5, ol.adaptive(1e-4, 1e-6), params=[[1.0], [2.0]], events=hardly)
    assert [len(records[0].t) for records in runs.events] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.DOP853, ol.RODAS4])
@pytest.mark.parametrize("options", [{}, {"exact": True}, {"t_eval": np.linspace(0.0, 12.0, 7)}])
def test_an_event_that_never_happens_changes_no_bit(method, options):
    plainly = ol.ensemble(HARES, method, CONTROL, params=SETS, **options)
    watched = ol.ensemble(HARES, method, CONTROL, params=SETS, events=EVENTS["never"], **options)
    np.testing.assert_array_equal(plainly.u, watched.u)
    np.testing.assert_array_equal(plainly.steps, watched.steps)
    assert all(not len(records[0].t) for records in watched.events)


@pytest.mark.parametrize("events", ["recorded", "terminal", "changing"])
def test_neighbours_do_not_matter(events):
    together = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS, events=EVENTS[events])
    for some in ([7], [36, 0, 20]):
        few = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS[some], events=EVENTS[events])
        np.testing.assert_array_equal(few.u, together.u[some])
        for place, run in enumerate(some):
            for record, expected in zip(few.events[place], together.events[run], strict=True):
                np.testing.assert_array_equal(record.t, expected.t)
                np.testing.assert_array_equal(record.u, expected.u)


def test_a_full_log_and_many_threads_change_nothing(monkeypatch):
    usual = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS, events=EVENTS["recorded"])
    with ThreadPoolExecutor(2) as pool:
        spread = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS, events=EVENTS["recorded"], executor=pool)
    monkeypatch.setattr(rounds, "MOST", 3)
    full = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS, events=EVENTS["recorded"], threads=2)
    for other in (spread, full):
        np.testing.assert_array_equal(usual.u, other.u)
        for records, expected in zip(other.events, usual.events, strict=True):
            for one, two in zip(records, expected, strict=True):
                np.testing.assert_allclose(one.t, two.t, rtol=1e-13)


def test_a_stiff_component_hides_no_event():
    driven = ol.Problem(lambda t, u, params: (-params[0] * (u[0] - np.sin(t)) + np.cos(t),), [0.0], (0.0, 30.0), (1e6,))
    half, sets = ol.Event(lambda t, u, params: u[0] - 0.5, direction=1), np.array([[1e6], [1.0]])
    control = ol.adaptive(1e-4)
    runs = ol.ensemble(driven, ol.RODAS4, control, params=sets, events=half)
    assert_equal_to_single_runs(runs, driven, ol.RODAS4, control, sets, (0, 1), events=half)


def test_where_a_function_is_not_defined_a_run_is_what_it_is_alone():
    root = ol.Event(lambda t, u, params: np.sqrt(u[0] - 1.0) - 0.5)
    runs = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS[:3], events=root)
    assert_equal_to_single_runs(runs, HARES, ol.DOPRI5, CONTROL, SETS, (0, 2), events=root)
    assert runs.events[0][0].undefined > 0


def test_a_projection_runs_in_lanes(lanes_alone):
    def at_least(u):
        return np.maximum(u, 0.6)

    for given in ({"t_eval": np.linspace(0.0, 12.0, 31)}, {"events": EVENTS["both"]}):
        runs = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=SETS, project=at_least, **given)
        assert np.nanmin(runs.u) >= 0.6
        for run in (0, 36):
            single = alone(HARES, ol.DOPRI5, CONTROL, SETS, run, project=at_least, **given)
            assert runs.steps[run] == single.steps
            np.testing.assert_allclose(runs.u[run], single.u if runs.t_eval is not None else single.step_u[-1])


def test_a_change_without_time_passing_ends_the_run_in_words():
    stuck = ol.Event(lambda t, u, params: u[0] - 0.5, direction=-1, change=lambda t, u, params: u)
    falls = ol.Problem(lambda t, u, params: (-params[0],), [1.0], (0.0, 2.0), (1.0,))
    runs = ol.ensemble(falls, ol.DOPRI5, params=[[1.0], [0.1]], events=stuck)
    singles = [ol.solve(falls.replace(params=(rate,)), ol.DOPRI5, events=stuck, throw=False) for rate in (1.0, 0.1)]
    assert runs.status.tolist() == [single.status for single in singles]
