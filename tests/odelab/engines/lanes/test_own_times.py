"""Ensembles whose runs have spans, stops, wanted times and events of their own are the runs one by one."""

from concurrent.futures import ThreadPoolExecutor
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.engines.lanes import plain
from tests.odelab.solver_cases import NAMED


def hares_and_lynxes(t, u, params):
    hares, lynxes = u
    return hares - hares * lynxes, params[0] * (hares * lynxes - lynxes)


def switched(t, u, params):
    rate = params[0] if floor(t) % 2 else 1.0
    return (-rate * (u[0] - ol.maths.sin(t)) + ol.maths.cos(t),)


HARES = ol.Problem(hares_and_lynxes, [2.0, 1.0], (0.0, 10.0), (1.0,))
SWITCHED = ol.Problem(switched, [0.0], (0.0, 10.0), (1e5,))
CONTROL = ol.adaptive(1e-6, 1e-8)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4], **NAMED)
@pytest.mark.parametrize("engine", ["compiled", "python"])
@settings(max_examples=3)
@given(seed=st.integers(0, 1000), stops=st.integers(0, 3), backwards=st.booleans())
def test_runs_with_their_own_times_are_those_of_solve(method, engine, seed, stops, backwards):
    count, draw = 5, np.random.default_rng(seed)
    spans = np.column_stack([draw.uniform(0.0, 2.0, count), draw.uniform(5.0, 12.0, count)])
    own = np.sort(draw.uniform(2.5, 4.5, (count, stops)), axis=1)
    own[::2, stops - 1 :] = np.nan
    problem = HARES
    if backwards:
        spans, own, problem = spans[:, ::-1], own[:, ::-1], HARES.replace(t_span=(10.0, 0.0))
    wanted = np.linspace(spans[:, 0], spans[:, 1], 7).T
    sets = draw.uniform(0.5, 1.5, (count, 1))
    runs = ol.ensemble(
        problem, method, CONTROL, params=sets, t_span=spans, tstops=own, t_eval=wanted, engine=engine, exact=True
    )
    assert runs.ok
    for i in range(count):
        alone = ol.solve(
            problem.replace(t_span=tuple(spans[i]), params=tuple(sets[i])),
            method,
            CONTROL,
            tstops=own[i][np.isfinite(own[i])],
            t_eval=wanted[i],
            exact=True,
        )
        assert (runs.steps[i], runs.rejected[i], runs.t[i]) == (alone.steps, alone.rejected, spans[i, 1])
        np.testing.assert_allclose(runs.u[i], alone.u, rtol=0, atol=1e-13)


def test_stops_of_all_runs_isolate_their_jumps():
    rates = np.array([[1e5], [1e3], [10.0]])
    runs = ol.ensemble(SWITCHED, ol.RODAS5P, CONTROL, params=rates, tstops=np.arange(1.0, 10.0))
    assert np.abs(runs.u[:, 0] - np.sin(10.0)).max() < 1e-6
    assert runs.rejected.max() <= 5


@pytest.mark.slow
@pytest.mark.parametrize("by", ["dense", "step"])
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.DOP853, ol.ROS2, ol.RODAS4, ol.RODAS5P, ol.ESDIRK43], **NAMED)
def test_states_inside_steps_are_shown_the_times_of_their_own_piece(method, by):
    """The derivative by time, which Rosenbrock methods need, passes through the window of times as well."""
    problem, wanted = SWITCHED.replace(params=(50.0,), t_span=(0.0, 3.0)), np.array([0.0, 0.3, 1.0, 1.003, 1.55, 2.9])
    options = {"tstops": [1.0, 2.0], "t_eval": wanted, "t_eval_by": by, "exact": True}
    runs = ol.ensemble(problem, method, CONTROL, params=[[50.0], [20.0]], **options)
    for rate, found in zip((50.0, 20.0), runs.u, strict=True):
        alone = ol.solve(problem.replace(params=(rate,)), method, CONTROL, **options)
        np.testing.assert_allclose(found, alone.u, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RODAS4, ol.AUTO], **NAMED)
def test_the_budget_is_that_of_all_pieces(method):
    sets, stops = [[1.0], [0.25]], np.arange(1.0, 10.0)
    runs = ol.ensemble(HARES, method, CONTROL, params=sets, tstops=stops, max_steps=40, t_eval=[2.0, 10.0])
    for i, parameters in enumerate(sets):
        problem = HARES.replace(params=tuple(parameters))
        alone = ol.solve(problem, method, CONTROL, tstops=stops, max_steps=40, throw=False)
        assert alone.status == "max_steps"
        assert runs.status[i] == alone.status
        assert (runs.steps[i], runs.rejected[i], runs.t[i]) == (alone.steps, alone.rejected, alone.step_t[-1])
    assert np.isnan(runs.u[:, 1]).all()
    assert np.isfinite(runs.u[:, 0]).all()


def test_engines_that_take_turns_within_a_run_are_named_once(monkeypatch):
    names = iter(["python and compiled", "compiled", "compiled and python"])

    def solved(*given, **options):
        run = ol.solve(*given, **options)
        run.engine = next(names)
        return run

    monkeypatch.setattr(plain, "solve", solved)
    runs = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=[[1.0], [1.1], [1.2]], engine="python")
    assert runs.engine == "python and compiled"


def test_no_run_sees_its_neighbours():
    spans = np.column_stack([np.zeros(40), np.linspace(1.0, 10.0, 40)])
    sets = np.linspace(0.5, 1.5, 40)[:, None]
    together = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=sets, t_span=spans, tstops=[0.5])
    for some in ([7], [39, 0, 20]):
        few = ol.ensemble(HARES, ol.DOPRI5, CONTROL, params=sets[some], t_span=spans[some], tstops=[0.5])
        np.testing.assert_array_equal(few.u, together.u[some])


def test_what_was_not_computed_is_nan():
    explosion = ol.Problem(lambda t, u, params: (params[0] * u[0] * u[0],), [1.0], (0.0, 2.0), (1.0,))
    wanted = np.tile([0.25, 0.75, 1.5], (2, 1))
    runs = ol.ensemble(explosion, ol.DOPRI5, CONTROL, params=[[1.0], [0.1]], tstops=[0.5, 1.25], t_eval=wanted)
    assert runs.status.tolist() == ["blow_up", "ok"]
    assert np.isnan(runs.u[0, 2]).all()
    np.testing.assert_allclose(runs.u[0, :2, 0], [4.0 / 3.0, 4.0], rtol=1e-4)
    np.testing.assert_allclose(runs.u[1, :, 0], 1.0 / (1.0 - 0.1 * wanted[1]), rtol=1e-5)


def test_the_table_holds_the_state_in_which_a_run_has_ended():
    """Also of a run that a wanted time was too late for, and where the last wanted time is earlier than the end."""
    half = ol.Event(lambda t, u, params: u[0] - 0.5, terminal=True)
    decay = ol.Problem(lambda t, u, params: (-params[0] * u[0],), [1.0], (0.0, 2.0), (1.0,))
    given = {"params": [[0.1], [1.0]], "events": half}
    runs = ol.ensemble(decay, ol.DOPRI5, CONTROL, t_eval=[0.5, 1.5], **given)
    assert np.isnan(runs.u[1, 1, 0])
    np.testing.assert_allclose(runs.table()["u0"], [np.exp(-0.2), 0.5], rtol=1e-5)
    np.testing.assert_allclose(ol.ensemble(decay, ol.DOPRI5, CONTROL, **given).table()["u0"], runs.table()["u0"])


def test_an_executor_takes_them_too():
    spans = np.column_stack([np.zeros(9), np.linspace(1.0, 5.0, 9)])
    wanted = np.linspace(0.1 * spans[:, 1], spans[:, 1], 4).T
    given = {"u0": np.tile(HARES.u0, (9, 1)), "t_span": spans, "t_eval": wanted}
    with ThreadPoolExecutor(2) as pool:
        spread = ol.ensemble(HARES, ol.DOPRI5, CONTROL, executor=pool, **given)
    np.testing.assert_array_equal(spread.u, ol.ensemble(HARES, ol.DOPRI5, CONTROL, **given).u)


CAUGHT = ol.Event(lambda t, u, params: u[0] - 0.5, direction=-1, change=lambda t, u, params: [2.0 * u[0], u[1]])


@pytest.mark.parametrize("options", [{"tstops": [3.0, 5.0]}, {"events": CAUGHT}], ids=["stops", "events"])
def test_ctrl_c_in_a_later_round_leaves_each_run_where_it_was(options):
    """Times, states and steps of each are those of its last whole piece; none that is on its way counts as finished."""
    starts = np.array(HARES.u0) * np.linspace(0.8, 1.2, 8)[:, None]
    reports = []

    def press_in_the_second_round(done, total):
        reports.append(done)
        if reports.count(total) and done < total:
            raise KeyboardInterrupt

    given = {"u0": starts, **options}
    with ThreadPoolExecutor(1) as pool:
        runs = ol.ensemble(HARES, ol.DOPRI5, CONTROL, executor=pool, progress=press_in_the_second_round, **given)
    left = np.flatnonzero(runs.t != HARES.t_span[1])
    assert left.size
    assert (runs.status[left] == "interrupted").all()
    for i in left:
        alone = ol.solve(HARES.replace(u0=starts[i]), ol.DOPRI5, CONTROL, **options)
        place = np.searchsorted(alone.step_t, runs.t[i] * (1.0 - 1e-9))
        assert 0 < place == runs.steps[i]
        np.testing.assert_allclose(runs.t[i], alone.step_t[place], rtol=1e-12)
        states = [alone.step_u[place], CAUGHT.change(0.0, alone.step_u[place], ())]  # before a change, and behind it
        assert min(np.abs(u - runs.u[i]).max() for u in states) <= 1e-9


def test_events_and_projections_of_runs():
    ball = ol.Problem(lambda t, u, params: (u[1], -params[0]), [10.0, 0.0], (0.0, 5.0), (9.81,))
    ground = ol.Event(lambda t, u, params: u[0], direction=-1, terminal=True, name="the ground")
    gravity = np.array([[9.81], [1.62], [0.5]])
    runs = ol.ensemble(ball, ol.DOPRI5, params=gravity, events=ground)
    assert runs.ok
    assert runs.status.tolist() == ["event", "event", "ok"]
    np.testing.assert_allclose(runs.t[:2], np.sqrt(20.0 / gravity[:2, 0]), rtol=1e-13)
    assert [len(records[0].t) for records in runs.events] == [1, 1, 0]
    kept = ol.ensemble(ball, ol.DOPRI5, params=gravity, project=lambda u: np.maximum(u, [0.0, -np.inf]))
    assert (kept.u[:, 0] >= 0.0).all()
    with pytest.raises(ValueError, match="takes the work of kernels only"), ThreadPoolExecutor(1) as pool:
        ol.ensemble(ball, ol.DOPRI5, params=gravity, events=ground, maxima=True, executor=pool)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"t_span": [[0.0, 1.0], [1.0, 0.0]]}, "in the direction of the problem's own"),
        ({"t_span": [[0.0, 1.0]] * 3}, "a row for each of 2 runs"),
        ({"tstops": [[1.0], [11.0]]}, "= 11.0 of run 1 lies outside its span"),
        ({"t_eval": [[1.0, 2.0], [2.0, 1.0]]}, "sorted in the direction"),
        ({"tstops": "noon"}, "must hold times"),
    ],
)
def test_times_that_cannot_be_are_refused(given, word):
    with pytest.raises(ValueError, match=word):
        ol.ensemble(HARES, ol.DOPRI5, params=[[1.0], [1.1]], **given)
