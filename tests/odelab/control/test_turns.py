"""The rule of `ol.auto`: laws of what it decides, whatever run it is in."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.control import turns
from odelab.control.turns import EXPLICIT, FIRST, IMPLICIT, SECOND

RULE = turns.rule_of(ol.DOPRI5, ol.RODAS4, 2.0)
sizes, positive = st.floats(1e-6, 1e6), st.floats(1e-3, 1e3)


def explicit_steps(now, count, h_rho, size=1.0):
    for _ in range(count):
        now = explicit_step(now, True, size, h_rho)
    return now


def explicit_step(now, accepted, size, h_rho):
    return turns.after_explicit(RULE, now, accepted, size, h_rho**2, 1.0, not math.isnan(h_rho))


def tried(gone=1.0):
    """The turns at the beginning of a trial."""
    return turns.after_weighing(RULE, explicit_steps(turns.first_turns(gone), 4, 3.0, gone), 1e6 * gone)


def test_a_run_begins_with_a_look():
    assert turns.is_to_look(turns.first_turns(1e-3))


@given(size=sizes, count=st.integers(1, 200))
def test_steps_far_below_the_boundary_never_ask_for_a_trial(size, count):
    assert not turns.is_to_weigh(explicit_steps(turns.first_turns(size), count, 0.4 * RULE.boundary, size))


@given(size=sizes, share=st.floats(0.6, 1.9))
def test_four_steps_near_the_boundary_ask_for_one(size, share):
    now = explicit_steps(turns.first_turns(size), 3, share * RULE.boundary, size)
    assert not turns.is_to_weigh(now)
    assert turns.is_to_weigh(explicit_steps(now, 1, share * RULE.boundary, size))


def test_one_step_far_beyond_it_is_enough():
    assert turns.is_to_weigh(explicit_steps(turns.first_turns(1.0), 1, 2.5 * RULE.boundary))


def test_after_trials_were_refused_steps_far_beyond_it_are_waited_for_as_well():
    now = turns.first_turns(1.0)._replace(patience=16.0)
    assert not turns.is_to_weigh(explicit_steps(now, 3, 2.5 * RULE.boundary))
    assert turns.is_to_weigh(explicit_steps(now, 4, 2.5 * RULE.boundary))


@given(size=sizes, count=st.integers(4, 20))
def test_rejected_attempts_count_for_nothing_but_the_mean_length(size, count):
    before = now = explicit_steps(turns.first_turns(size), 5, 0.1, size)
    for _ in range(count):
        now = explicit_step(now, False, size, math.nan)
    assert now._replace(gone=0.0, level=0.0) == before._replace(gone=0.0, level=0.0)
    assert now.gone == pytest.approx(0.75**count * before.gone)


@pytest.mark.parametrize("h_rho", [0.5, math.nan])
def test_steps_of_one_size_and_stages_that_do_not_tell_ask_for_looks_that_become_rare(h_rho):
    now, looks = explicit_steps(turns.first_turns(1.0)._replace(wait=4.0), 1, h_rho), 0
    for k in range(1000):
        if turns.is_to_look(now):
            now, looks = turns.after_look(RULE, now, 1.0, 0.0), looks + 1
        now = explicit_step(now, True, 1.0 if h_rho == 0.5 else 2.0**k, h_rho)
    assert 10 < looks < 15


def test_a_look_that_finds_a_fast_component_asks_for_a_trial():
    now = explicit_steps(turns.first_turns(1.0)._replace(wait=4.0), 5, 0.1)
    assert turns.is_to_weigh(turns.after_look(RULE, now, 1.0, RULE.boundary))
    assert not turns.is_to_weigh(turns.after_look(RULE, now, 1.0, 0.1 * RULE.boundary))


def test_looks_that_find_one_outweigh_the_steps_that_did_not_see_it():
    now = turns.first_turns(1.0)._replace(wait=4.0, patience=64.0)
    for _ in range(200):
        if turns.is_to_look(now):
            now = turns.after_look(RULE, now, 1.0, RULE.boundary)
        now = explicit_step(now, True, 1.0, math.nan)
    assert turns.is_to_weigh(now)


def test_no_trial_costs_more_than_a_part_of_what_is_left():
    now = explicit_steps(turns.first_turns(1.0), 4, 3.0)
    assert turns.after_weighing(RULE, now, left=100.0).mode == FIRST
    assert turns.after_weighing(RULE, now, left=5.0).mode == EXPLICIT
    assert turns.after_weighing(RULE._replace(ratio=100.0), now, left=100.0).mode == EXPLICIT
    often = now._replace(refused=20.0)
    assert turns.after_weighing(RULE, often, left=100.0).mode == EXPLICIT


def test_before_the_first_step_a_trial_has_to_promise_twice_as_much():
    first = turns.after_look(RULE, turns.first_turns(1.0), 1.0, RULE.boundary)
    assert turns.after_weighing(RULE, first, 1e6).enough == 2.0 * tried().enough
    assert turns.after_weighing(RULE, first, 1e6).promised == 0.0


@given(gone=sizes, longer=st.floats(1.01, 100.0))
def test_a_trial_stays_where_its_error_promises_longer_steps_than_explicit_ones_are_worth(gone, longer):
    now = tried(gone)
    size = longer * now.enough
    after, following, over = turns.after_implicit(RULE, now, True, size, 1e-4, size)
    assert (after.mode, over) == (IMPLICIT, False)
    assert now.enough < following <= turns.FARTHEST * size
    assert after.changes == 1.0


@given(gone=sizes)
def test_a_refused_trial_gives_the_run_back_and_makes_it_wait_twice_as_long(gone):
    now = tried(gone)
    second, _, over = turns.after_implicit(RULE, now, True, 0.01 * now.enough, 1.0, now.enough)
    assert (second.mode, over) == (SECOND, False)
    after, following, over = turns.after_implicit(RULE, second, True, 0.01 * now.enough, 1.0, now.enough)
    assert (after.mode, over, following, after.patience) == (EXPLICIT, True, now.gone, 2.0 * now.patience)
    assert after.changes == 0.0


@pytest.mark.parametrize("square", [math.nan, math.inf])
def test_an_error_that_is_no_number_refuses_at_once(square):
    after, _, over = turns.after_implicit(RULE, tried(), False, 1.0, square, 0.1)
    assert (after.mode, over) == (EXPLICIT, True)


@given(rho=positive)
def test_implicit_steps_that_explicit_ones_could_take_give_the_run_back(rho):
    now = turns.after_measure(tried()._replace(mode=IMPLICIT, even=100.0, promised=0.0), 1.0 / rho)
    size = 0.4 * RULE.boundary / rho
    for k in range(4):
        assert now.mode == IMPLICIT, k
        now, following, over = turns.after_implicit(RULE, now, True, size, 0.5, size)
    assert over
    assert following * rho <= turns.BACK * RULE.boundary * (1.0 + 1e-15)
    assert now.patience == turns.COUNT


def test_who_comes_back_at_once_waits_longer_the_next_time():
    now = tried()._replace(mode=IMPLICIT)
    for _ in range(4):
        now, _, _ = turns.after_implicit(RULE, now, True, 1e-3, 0.5, 1e-3)
    assert (now.mode, now.patience) == (EXPLICIT, 2.0 * turns.COUNT)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_fastest_rate_of_a_symmetric_matrix_is_found_from_below(n):
    rates = np.append(np.full(n - 1, -1.0), -1000.0)
    turned = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
    J = turned @ np.diag(rates) @ turned.T
    u, unit = np.ones(n), np.full(n, 1e-3)
    given = (lambda t, u, params: J @ u, (), 0.0, u, J @ u, unit, np.zeros(n), np.ones(n) / math.sqrt(n))
    rate, direction = turns.fastest_rate(*given)
    assert 300.0 < rate < 1001.0
    again, _ = turns.fastest_rate(*given[:6], direction, given[7])
    assert again == pytest.approx(1000.0, rel=1e-2)
    shortest, _ = turns.shortest_along(J @ direction, unit, direction, given[7])
    assert shortest == pytest.approx(1e-3, rel=1e-2)
