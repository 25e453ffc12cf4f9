"""Ensembles by two methods: each run is that of `ol.solve`, whatever else is in flight, and says who took its steps."""

import concurrent.futures
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.engines.lanes import threads
from tests.odelab.engines.lanes.ensemble_cases import assert_same_bits

CONTROL = ol.adaptive(1e-5, 1e-8)
RELAXATION = ol.problems.van_der_pol(mu=10.0).replace(t_span=(0.0, 30.0))
RATES = np.geomspace(0.5, 1000.0, 150)[np.random.default_rng(0).permutation(150), None]  # more runs than are in flight
TINY = {"robertson": 1e-3, "e5": 1e-14}  # times smaller tolerances where the smallest components need it
FEW = ("robertson",)
SMALL = 24  # components of the problems that are made without loops


def swept(rates=RATES, problem=RELAXATION, controller=CONTROL, **options):
    return ol.ensemble(problem, controller=controller, params=rates, **({"threads": 1} | options))


@functools.cache
def whole_sweep():
    return swept()


def assert_is_the_run(runs, i, alone):
    """Run i of an ensemble made the steps of a single run, by the same methods; states agree to rounding."""
    assert (runs.steps[i], runs.rejected[i], runs.t[i]) == (alone.steps, alone.rejected, alone.step_t[-1])
    np.testing.assert_array_equal(runs.took[i], [np.sum(alone.took == name) for name in alone.method.names])
    np.testing.assert_array_equal(runs.turns[i], alone.turns)
    assert runs.status[i] == alone.status
    states = alone.end_u if runs.t_eval is None else alone.u
    np.testing.assert_allclose(runs.u[i], states, rtol=1e-8, atol=1e-10)


def test_each_run_is_that_of_solve():
    runs = whole_sweep()
    assert (runs.engine, runs.ok, runs.method) == ("compiled", True, ol.AUTO)
    for i in range(0, len(runs), 7):
        assert_is_the_run(runs, i, ol.solve(RELAXATION.replace(params=RATES[i]), ol.AUTO, CONTROL))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FEW else pytest.mark.slow)
        for name, factory in ol.problems.catalogue().items()
        if factory().size <= SMALL
    ],
)
def test_each_run_around_a_problem_of_the_catalogue_is_that_of_solve(name):
    problem = ol.problems.catalogue()[name]()
    starts = problem.u0 * (1.0 + 1e-3 * np.random.default_rng(0).standard_normal((3, problem.size)))
    control = ol.adaptive(1e-5, 1e-8 * TINY.get(name, 1.0))
    runs = ol.ensemble(problem, controller=control, u0=starts)
    assert runs.engine == "compiled"
    for i, start in enumerate(starts):
        assert_is_the_run(runs, i, ol.solve(problem.replace(u0=start), ol.AUTO, control, engine="compiled"))


@pytest.mark.parametrize("method", [ol.auto(ol.DOP853, ol.RODAS5P), ol.auto(ol.DOPRI5, ol.ESDIRK43, ratio=3.0)])
def test_other_pairs_of_methods_are_no_different(method):
    runs = ol.ensemble(RELAXATION, method, CONTROL, params=RATES[:40])
    assert runs.took.min(axis=1).any()
    for i in range(0, 40, 5):
        assert_is_the_run(runs, i, ol.solve(RELAXATION.replace(params=RATES[i]), method, CONTROL))


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, len(RATES) - 1), min_size=1, max_size=200), st.integers(1, 3))
def test_neighbours_order_and_threads_do_not_matter(chosen, count):
    some = swept(RATES[chosen], threads=count)
    assert_same_bits(some, whole_sweep(), chosen)
    np.testing.assert_array_equal(some.took, whole_sweep().took[chosen])
    np.testing.assert_array_equal(some.turns, whole_sweep().turns[chosen])


def test_an_executor_and_a_kernel_that_returns_now_and_then_do_not_matter(monkeypatch):
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        assert_same_bits(swept(threads=None, executor=executor), whole_sweep())
    monkeypatch.setattr(threads, "SLICE", 1e-9)
    told = []
    assert_same_bits(swept(progress=lambda done, total: told.append(done)), whole_sweep())
    assert len(told) > 2


@pytest.mark.parametrize("by", ["dense", "step"])
def test_states_at_wanted_times_are_those_of_solve(by):
    wanted = np.linspace(0.0, 30.0, 40)
    runs = swept(RATES[:40], t_eval=wanted, t_eval_by=by)
    for i in range(0, 40, 5):
        problem = RELAXATION.replace(params=RATES[i])
        assert_is_the_run(runs, i, ol.solve(problem, ol.AUTO, CONTROL, t_eval=wanted, t_eval_by=by))


@pytest.mark.parametrize("forward", [True, False])
def test_runs_with_spans_stops_and_wanted_times_of_their_own_are_those_of_solve(forward):
    """Backwards in time, van der Pol's oscillator with -mu is damped where it was driven."""
    draw, rates = np.random.default_rng(1), RATES[:20]
    spans = np.column_stack([draw.uniform(0.0, 1.0, 20), draw.uniform(8.0, 12.0, 20)])
    stops = np.sort(draw.uniform(2.0, 7.0, (20, 2)), axis=1)
    stops[::3, 1] = np.nan
    problem = RELAXATION
    if not forward:
        spans, stops, rates, problem = -spans, -stops, -rates, RELAXATION.replace(t_span=(0.0, -30.0))
    wanted = np.linspace(spans[:, 0], spans[:, 1], 9).T
    runs = swept(rates, problem, t_span=spans, tstops=stops, t_eval=wanted)
    for i in range(20):
        one = problem.replace(params=rates[i], t_span=tuple(spans[i]))
        own = stops[i][np.isfinite(stops[i])]
        assert_is_the_run(runs, i, ol.solve(one, ol.AUTO, CONTROL, tstops=own, t_eval=wanted[i]))


def test_maxima_are_those_of_the_steps():
    runs = swept(RATES[:30], maxima=True)
    for i in range(0, 30, 5):
        alone = ol.solve(RELAXATION.replace(params=RATES[i]), ol.AUTO, CONTROL)
        assert runs.sai_max[i] == pytest.approx(alone.sai.max(), rel=1e-6)
        assert runs.h_rho_max[i] == pytest.approx(np.nanmax(alone.h_rho), rel=1e-4)


def test_a_budget_ends_the_runs_that_need_more_and_no_others():
    runs, most = swept(max_steps=100), 100
    needed = whole_sweep().steps + whole_sweep().rejected
    np.testing.assert_array_equal(runs.status == "max_steps", needed > most)
    np.testing.assert_array_equal(runs.u[needed <= most], whole_sweep().u[needed <= most])
    assert (runs.steps + runs.rejected)[needed > most].tolist() == [most] * np.sum(needed > most)


def blowing_up(t, u, params):
    x, y = u
    rate, growth = params
    return growth * x * x, -rate * (y - ol.maths.cos(t))


def test_a_run_that_fails_says_how_and_disturbs_no_other():
    problem = ol.Problem(blowing_up, [1.0, 0.0], (0.0, 3.0), (1e4, -1.0))
    sets = np.array([[1e4, -1.0], [1e4, 1.0], [1.0, 1.0], [np.nan, -1.0], [10.0, -1.0]] * 20)
    runs = ol.ensemble(problem, controller=CONTROL, params=sets)
    calm = ol.ensemble(problem, controller=CONTROL, params=sets[:1])
    assert runs.status[:5].tolist() == ["ok", "blow_up", "blow_up", "not_finite", "ok"]
    np.testing.assert_array_equal(runs.u[::5], np.repeat(calm.u, 20, axis=0))
    for i in (1, 2):
        alone = ol.solve(problem.replace(params=sets[i]), ol.AUTO, CONTROL, throw=False)
        assert (alone.status, alone.steps) == ("blow_up", runs.steps[i])


def test_the_print_sums_up_who_took_the_steps():
    runs = whole_sweep()
    by_explicit, by_implicit = runs.took.sum(axis=0)
    assert f"{by_explicit} by DOPRI5, {by_implicit} by RODAS4" in str(runs)
    assert f"{runs.turns[:, 0].sum()} changes of the method, in {np.sum(runs.turns[:, 0] > 0)} of the runs" in str(runs)
    assert by_explicit + by_implicit == runs.steps.sum()
    fixed = ol.ensemble(RELAXATION, ol.DOPRI5, CONTROL, params=RATES[:1])
    assert fixed.took is None
    assert fixed.turns is None


def test_what_lanes_do_not_do_goes_run_by_run_or_is_refused_in_words():
    own = ol.auto(index=lambda problem, t, u, h: 2.0)
    runs = ol.ensemble(RELAXATION, own, CONTROL, params=RATES[:2])
    assert_is_the_run(runs, 1, ol.solve(RELAXATION.replace(params=RATES[1]), own, CONTROL))
    with (
        concurrent.futures.ThreadPoolExecutor(1) as executor,
        pytest.raises(ValueError, match=r"own rule, and not by an `index`"),
    ):
        ol.ensemble(RELAXATION, own, CONTROL, params=RATES[:2], executor=executor)
    with pytest.raises(ValueError, match=r"`exact=True` works with one method alone"):
        swept(exact=True)
    with pytest.raises(ValueError, match=r"must be odelab.adaptive for AUTO"):
        swept(controller=ol.fixed(0.1))


@pytest.mark.parametrize(
    "given",
    [{"events": ol.Event(lambda t, u, params: u[0], terminal=2)}, {"project": lambda u: np.maximum(u, -2.5)}],
    ids=["events", "project"],
)
def test_with_events_or_a_projection_each_run_is_solved_alone(given):
    runs = swept(RATES[:2], **given)
    for i in range(2):
        assert_is_the_run(runs, i, ol.solve(RELAXATION.replace(params=RATES[i]), ol.AUTO, CONTROL, **given))
    assert (runs.events is not None) == ("events" in given)
    with (
        concurrent.futures.ThreadPoolExecutor(1) as executor,
        pytest.raises(ValueError, match=r"`events` and `project` with one method alone"),
    ):
        swept(RATES[:2], executor=executor, threads=None, **given)


def test_plain_python_tells_the_same_of_its_runs():
    sets = np.array([[0.5], [100.0]])
    plain, compiled = (swept(sets, engine=engine, max_steps=5000) for engine in ("python", "compiled"))
    assert (plain.engine, compiled.engine) == ("python", "compiled")
    np.testing.assert_array_equal(plain.took, compiled.took)
    np.testing.assert_array_equal(plain.turns, compiled.turns)
    np.testing.assert_allclose(plain.u, compiled.u, rtol=1e-6)
