"""A run that fails says how, as it would alone, and disturbs no other."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.engines.lanes import causes
from odelab.engines.lanes.result import STATUSES, empty_arrays
from odelab.engines.lanes.runs import Runs
from odelab.engines.python import State
from odelab.runs import diagnosis
from odelab.status import Status
from tests.odelab.engines.lanes.ensemble_cases import alone, assert_same_bits, run_all, spread

TIGHT = ol.adaptive(1e-7, 1e-10)
SMALL = settings(max_examples=8, deadline=None)


def troubled(t, u, params):
    """Blows up at t = 1 / (growth x0), and has no answer once t is past `until`."""
    (x,) = u
    growth, until = params
    return (growth * x * x + 0.01 * ol.maths.sqrt(until - t),)


TROUBLED = ol.Problem(troubled, [1.0], (0.0, 2.0), (-1.0, 9.0))
BLOWS_UP, RUNS_INTO_NAN, HARMLESS = (1.0, 9.0), (-1.0, 1.5), (-1.0, 9.0)


def lanes(starts, sets, controller=TIGHT, **options):
    return ol.ensemble(TROUBLED, ol.DOPRI5, controller, u0=starts, params=sets, engine="compiled", **options)


@functools.cache
def undisturbed():
    return lanes(np.full((1, 1), 1.0), np.array([HARMLESS]))


@SMALL
@given(st.lists(st.sampled_from([BLOWS_UP, RUNS_INTO_NAN, HARMLESS, (np.nan, 9.0)]), min_size=1, max_size=70))
def test_a_run_that_fails_disturbs_no_other(sets):
    many = lanes(np.full((len(sets), 1), 1.0), np.array(sets))
    expected = undisturbed()
    assert expected.ok
    for i, (growth, until) in enumerate(sets):
        if (growth, until) == HARMLESS:
            assert_same_bits(expected, many, [i])
        elif growth > 0:
            assert many.status[i] == "blow_up"
            assert many.t[i] == pytest.approx(1.0, abs=0.01)
        elif np.isnan(growth):
            assert many.status[i] == "not_finite"
            assert (many.t[i], many.steps[i]) == (0.0, 0)
        else:
            assert many.status[i] in ("not_finite", "step_too_small")
            assert 1.4 < many.t[i] <= 1.5
    np.testing.assert_array_equal(many.failed, [i for i, pair in enumerate(sets) if pair != HARMLESS])


def test_failures_are_those_of_single_runs():
    sets = [BLOWS_UP, HARMLESS, RUNS_INTO_NAN]
    many = lanes(np.ones((3, 1)), sets)
    runs = [
        ol.solve(TROUBLED.replace(params=params), ol.DOPRI5, TIGHT, engine="compiled", throw=False) for params in sets
    ]
    assert many.status[:2].tolist() == [run.status for run in runs[:2]]
    # A single run asks the right-hand side once more why it was lost; a lane has its last error to tell by only.
    assert (many.status[2] in ("not_finite", "step_too_small"), runs[2].status) == (True, "not_finite")
    np.testing.assert_allclose(many.t, [run.t[-1] for run in runs], rtol=1e-10)
    assert "1 blow_up (the first is run 0, at t = 0.99" in many.message


def grows(t, u, params):
    """Blows up at t = 1/x for a positive rate, decays for a negative one; NaN where x is negative."""
    (x,) = u
    (rate,) = params
    root = ol.maths.sqrt(x)
    return (rate * x * root * root,)


GROWS = ol.Problem(grows, [1.0], (0.0, 3.0), (-1.0,))


@pytest.mark.parametrize("controller", [ol.adaptive(1e-6), ol.fixed(0.01)], ids=["adaptive", "fixed"])
def test_failures_among_sixty_runs_have_their_status_and_counts(controller):
    starts, params = np.linspace(0.5, 1.5, 60)[:, None], np.full((60, 1), -1.0)
    good = ol.ensemble(GROWS, ol.DOPRI5, controller, u0=starts, params=params)
    assert good.ok
    params[7] = 1.0
    starts[20] = -1.0
    starts[33] = np.nan
    found = ol.ensemble(GROWS, ol.DOPRI5, controller, u0=starts, params=params)
    assert list(found.failed) == [7, 20, 33]
    # a fixed step may overflow from a state that is still small: then infinity is all there is to see
    assert found.status[7] in ("blow_up", "not_finite")
    assert list(found.status[[20, 33]]) == ["not_finite", "not_finite"]
    kept = np.delete(np.arange(60), [7, 20, 33])
    np.testing.assert_array_equal(found.u[kept], good.u[kept])
    np.testing.assert_array_equal(found.steps[kept], good.steps[kept])
    assert "57 ok" in found.message
    assert "the first is run 7" in found.message
    for place in (7, 20):
        run = alone(GROWS, ol.DOPRI5, controller, starts[place], params[place])
        assert run.status == found.status[place]
        assert (run.steps, run.rejected) == (found.steps[place], found.rejected[place])


def test_a_failed_run_has_no_states_past_its_end():
    times = np.linspace(0.0, 2.0, 9)
    many = lanes(np.ones((2, 1)), [BLOWS_UP, HARMLESS], t_eval=times, maxima=True)
    np.testing.assert_array_equal(np.isfinite(many.u[0, :, 0]), times <= many.t[0])
    assert np.isfinite(many.u[1]).all()
    times = [0.0, 0.5, 2.0]
    found = ol.ensemble(GROWS, ol.DOPRI5, ol.adaptive(1e-6), params=[[-1.0], [1.0]], t_eval=times)
    np.testing.assert_allclose(found.u[0, :, 0], [1.0, 1 / 1.5, 1 / 3.0], rtol=1e-5)
    np.testing.assert_allclose(found.u[1, :, 0], [1.0, 2.0, np.nan], rtol=1e-5)
    np.testing.assert_array_equal(found.t_eval, times)


def test_max_steps_counts_each_run_for_itself():
    starts, params = spread(100)
    free = run_all(starts, params)
    attempts = free.steps + free.rejected
    limit = int(np.median(attempts))
    few = run_all(starts, params, max_steps=limit)
    enough = attempts <= limit
    assert 0 < enough.sum() < 100
    np.testing.assert_array_equal(few.status == "ok", enough)
    np.testing.assert_array_equal(few.status == "max_steps", ~enough)
    assert (few.steps + few.rejected)[~enough].tolist() == [limit] * int((~enough).sum())
    np.testing.assert_array_equal(few.u[enough], free.u[enough])


def driven_past_its_domain(t, u, params):
    (edge,) = params
    _, y = u
    return (-1.0, ol.maths.sqrt(u[0] - edge) - y)


def test_a_lane_that_leaves_the_domain_says_what_a_single_run_says():
    problem = ol.Problem(driven_past_its_domain, [1.0, 0.0], (0.0, 1.0), (0.5,))
    edges = np.linspace(0.05, 0.95, 201)  # near 1, t is known more finely than x: a few runs creep up to the edge
    many = ol.ensemble(problem, ol.DOPRI5, ol.adaptive(1e-6), params=edges[:, None])
    assert set(many.status) <= {"not_finite", "max_steps"}
    assert np.mean(many.status == "not_finite") > 0.9
    for i in np.flatnonzero(many.status == "not_finite")[::20]:
        one = problem.replace(params=(edges[i],))
        assert ol.solve(one, ol.DOPRI5, ol.adaptive(1e-6), throw=False).status == "not_finite"


# Causes, found for all lost runs at once


def by_square_roots(t, u, params):
    """Leaves its domain, blows up, or stands at a pole of the slope, as its parameters say."""
    x, y = u
    edge, pole = params
    return (x * x - ol.maths.sqrt(x - edge), 1.0 / (y - pole) - ol.maths.exp(t))


def by_plain_numbers(t, u, params):
    """The same: the functions of `math` take no arrays, and raise where they have no answer."""
    x, y = u
    edge, pole = params
    return (x * x - math.sqrt(x - edge), 1.0 / (y - pole) - math.exp(t))


def by_branches(t, u, params):
    """The same: a comparison of arrays is neither true nor false."""
    x, y = u
    edge, pole = params
    if x < edge:
        return (np.nan, 0.0)
    return (x * x - (x - edge) ** 0.5, 1.0 / (y - pole) - ol.maths.exp(t))


def mixing(t, u, params):
    """Of an array of states it would take the sum of all."""
    edge, pole = params
    return (np.sum(u) - ol.maths.sqrt(u[0] - edge), u[1] - pole)


SPELLINGS = [by_square_roots, by_plain_numbers, by_branches, mixing]


def lost_runs(count, seed):
    """States next to edges, poles and infinity, and far from them."""
    random = np.random.default_rng(seed)
    sets = random.uniform(-1.0, 1.0, (count, 2))
    ends = sets + 10.0 ** random.uniform(-17.0, 1.0, (count, 2))
    ends[random.random(count) < 0.2] *= 1e12
    ends[random.random(count) < 0.1] *= 1e290
    return random.uniform(0.0, 1.0, count), ends, sets


def told(rhs, t, ends, sets, controller):
    problem = ol.Problem(rhs, [2.0, 3.0], (0.0, 2.0), (0.0, 0.0))
    found = empty_arrays(ends, 0.0, None, False)._replace(times=t)
    found.statuses[:] = Status.STEP_LOST
    with np.errstate(all="raise"):  # none of the arithmetic in there may be heard outside
        causes.diagnose(found, Runs(problem, ol.DOPRI5, controller, np.tile(problem.u0, (len(ends), 1)), sets))
    return np.array(STATUSES)[found.statuses]


@pytest.mark.slow
@pytest.mark.parametrize("controller", [TIGHT, ol.fixed(0.125)], ids=["adaptive", "fixed"])
@pytest.mark.parametrize("rhs", SPELLINGS)
@SMALL
@given(seed=st.integers(0, 2**32 - 1))
def test_many_causes_are_those_found_one_by_one(rhs, controller, seed):
    t, ends, sets = lost_runs(60, seed)
    statuses = told(rhs, t, ends, sets, controller)
    assert len(set(statuses)) > 1
    for i in range(60):
        one = ol.Problem(rhs, [2.0, 3.0], (0.0, 2.0), tuple(sets[i].tolist()))
        step = controller.h or 4.0 * float(np.spacing(t[i]))
        state = State(t[i], ends[i], None, False, None)
        with np.errstate(all="ignore"):
            assert statuses[i] == diagnosis.diagnose_stop(one, ol.DOPRI5, state, step, controller.h is not None)[0]


@pytest.mark.slow
@pytest.mark.parametrize("rhs", SPELLINGS)
def test_a_cause_does_not_depend_on_how_many_others_failed(rhs):
    t, ends, sets = lost_runs(40, 1)
    alone_told = [told(rhs, t[i : i + 1], ends[i : i + 1], sets[i : i + 1], TIGHT)[0] for i in range(40)]
    copies = 150  # more than are looked at together
    many = told(rhs, np.tile(t, copies), np.tile(ends, (copies, 1)), np.tile(sets, (copies, 1)), TIGHT)
    np.testing.assert_array_equal(many.reshape(copies, 40), np.tile(alone_told, (copies, 1)))


def falls_out(t, u, params):
    return (-ol.maths.sqrt(u[0]) - 1.0,)


def test_three_thousand_runs_that_fail_alike_say_the_same():
    problem = ol.Problem(falls_out, [1.0], (0.0, 3.0))
    one = ol.ensemble(problem, ol.DOPRI5, ol.adaptive(1e-6), u0=[[1.0]], engine="compiled")
    many = ol.ensemble(problem, ol.DOPRI5, ol.adaptive(1e-6), u0=np.ones((3000, 1)), engine="compiled")
    assert set(many.status) == set(one.status) == {"not_finite"}


def test_a_step_that_overflows_is_seen_at_its_end():
    """Euler's step has no inner state to tell: from 1.7e308, growth by an eighth leaves the numbers there are."""
    problem = ol.Problem(lambda t, u, params: (u[0],), [1e308], (0.0, 1.0))
    found = empty_arrays(np.array([[1.7e308], [1e308]]), 0.0, None, False)
    found.statuses[:] = Status.STEP_LOST
    causes.diagnose(found, Runs(problem, ol.EULER, ol.fixed(0.125), np.full((2, 1), 1e308), np.zeros((2, 0))))
    assert np.array(STATUSES)[found.statuses].tolist() == ["blow_up", "step_too_small"]


def test_no_array_of_one_state_is_asked_for():
    """It would pass where more do not, through a branch or a function of plain numbers."""
    shapes = set()

    def watched(t, u, params):
        shapes.add(np.shape(u))
        return by_square_roots(t, u, params)

    t, ends, sets = lost_runs(12, 3)
    for count in (1, 12):
        told(watched, t[:count], ends[:count], sets[:count], TIGHT)
    assert (2, 12) in shapes
    assert (2, 1) not in shapes


@pytest.mark.parametrize("sets", [None, [[1.0], [2.0], [3.0]]])
def test_a_jacobian_that_is_not_finite_is_the_cause_as_it_is_alone(sets):
    problem = ol.Problem(lambda t, u, params: (-params[0] * ol.maths.sqrt(u[0]),), [1.0], (0.0, 0.1), (1.0,))
    starts = np.array([[1.0], [0.0], [2.0]])
    runs = ol.ensemble(problem, ol.RODAS4, u0=starts, params=sets)
    assert runs.engine == "compiled"
    own = [problem.params] * 3 if sets is None else sets
    for status, u0, params in zip(runs.status, starts, own, strict=True):
        assert status == ol.solve(problem.replace(u0=u0, params=params), ol.RODAS4, throw=False).status
