"""Numbers by which runs are compared: laws of what they do not depend on, and examples that a pencil can check."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.experiments import cost_at_error, invariant_drift, step_jitter
from tests.odelab.solver_cases import PENDULUM


@given(
    order=st.floats(0.5, 8.0),
    constant=st.floats(1e-3, 1e3),
    at=st.floats(1e-9, 1e-2),
    shuffle=st.permutations(range(6)),
)
def test_a_power_law_is_read_off_exactly_in_any_order(order, constant, at, shuffle):
    costs = np.array([1e2, 3e2, 1e3, 1e4, 3e5, 1e6])[list(shuffle)]
    errors = constant * costs**-order
    found = cost_at_error(errors, costs, at)
    if errors.min() <= at <= errors.max():
        assert found == pytest.approx((constant / at) ** (1.0 / order), rel=1e-9)
    else:
        assert math.isnan(found)


def test_the_ends_of_a_curve_are_reached_and_nothing_beyond_them():
    errors, costs = np.array([0.3e-3, 0.7e-6, 1.1e-9]), np.array([10.0, 20.0, 40.0])
    np.testing.assert_allclose(cost_at_error(errors, costs, np.exp(np.log(errors))), costs, rtol=1e-9)
    assert np.isnan(cost_at_error(errors, costs, [1.01e-9 * 0.9, 0.31e-3])).all()


def test_failed_and_exact_runs_are_left_out_of_a_curve():
    assert cost_at_error([np.inf, 1e-2, 0.0, 1e-4, np.nan], [1, 10, 5, 1000, 7], 1e-3) == pytest.approx(100.0)
    assert math.isnan(cost_at_error([np.inf, 1e-2], [1, 10], 1e-2))


def test_a_table_is_asked_for_the_cost_of_an_error():
    problem = ol.problems.rigid_body().replace(t_span=(0.0, 5.0))
    table = ol.work_precision(problem, [ol.DOPRI5, ol.RK4], (1e-3, 1e-5, 1e-7), ["i", "pi"], h=[0.5, 0.1, 0.02])
    found = table.cost(1e-6)
    assert list(found) == list(table.curves())
    for name, rows in table.curves().items():
        assert min(row.evaluations for row in rows) < found[name] < max(row.evaluations for row in rows)
    rows = table.curves()["RK4", "fixed"]
    assert table.cost(rows[0].error, of="steps")["RK4", "fixed"] == pytest.approx(rows[0].steps)
    assert all(math.isnan(cost) for cost in table.cost(1e-30).values())


@given(st.floats(1e-9, 1e9), st.floats(0.5, 2.0), st.floats(0.5, 2.0))
def test_jitter_sees_neither_the_unit_nor_steady_growth(unit, growth, swing):
    steady = unit * growth ** np.arange(20)
    assert step_jitter(steady) == pytest.approx(0.0, abs=1e-9)
    restless = steady * np.where(np.arange(20) % 2, swing, 1.0)
    assert step_jitter(restless, late=1.0) == pytest.approx(abs(np.log2(swing)), rel=1e-9, abs=1e-9)


def test_jitter_of_a_run_is_that_of_the_second_half_of_its_steps_without_the_last():
    run = ol.solve(ol.problems.van_der_pol(mu=5.0).replace(t_span=(0.0, 20.0)), ol.DOPRI5, engine="python")
    late = np.log2(run.h[len(run.h) // 2 : -1])
    assert step_jitter(run) == step_jitter(run.h) == float(np.std(np.diff(late)))
    assert math.isnan(step_jitter([0.1, 0.1]))


def test_the_drift_of_an_invariant_falls_with_the_tolerance():
    problem = ol.problems.arenstorf()
    ends = (ol.solve(problem, ol.DOPRI5, ol.adaptive(tol, tol), engine="python").end_u for tol in (1e-5, 1e-9))
    coarse, fine = (invariant_drift(problem, problem.u0, end, "Jacobi constant") for end in ends)
    assert 0.0 < fine < 1e-2 * coarse


def test_the_drift_of_many_states_is_that_of_each():
    rest = ol.Problem(
        lambda t, u, params: (u[1], -u[0]),
        [1.0, 0.0],
        (0.0, 1.0),
        invariants=(ol.Invariant("energy", lambda t, u, params: u[0] ** 2 + u[1] ** 2),),
    )
    before = np.array([[1.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(invariant_drift(rest, before, 2.0 * before), [3.0, 3.0])
    assert invariant_drift(rest, before[1], -before[1]) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cost_at_error([1.0, 2.0], [1.0], 1.5), "`costs` must hold one number per error"),
        (lambda: cost_at_error([1.0, 2.0], [1.0, 2.0], -1.0), "`at` must be a positive error, got -1.0"),
        (lambda: step_jitter([1.0, 2.0], late=0.0), "`late` must be a share of the run"),
        (lambda: invariant_drift(PENDULUM, [1.0, 0.0], [1.0, 0.0], "spin"), "`invariant` must be one of .*got 'spin'"),
        (lambda: ol.experiments.work_precision.WorkPrecision("", "", ()).cost(1.0, of="money"), "`of` must be"),
    ],
)
def test_wrong_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
