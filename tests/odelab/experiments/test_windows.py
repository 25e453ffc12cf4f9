"""What a method costs on a window: curves that are made up, and problems whose costs are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab.experiments import least_cost, state_indices, windows


@given(st.lists(st.tuples(st.floats(1e-9, 1.0), st.floats(1.0, 1e4)), min_size=2, max_size=12), st.floats(1e-8, 0.5))
@settings(deadline=None)
def test_a_sharper_error_never_costs_less_on_a_monotone_curve(points, at):
    errors = sorted((e for e, _ in points), reverse=True)
    costs = sorted(c for _, c in points)
    one, other = least_cost(errors, costs, at), least_cost(errors, costs, 0.5 * at)
    assert not other < one * (1 - 1e-12)
    if not np.isnan(one):
        assert costs[0] * (1 - 1e-12) <= one <= costs[-1] * (1 + 1e-12)


def test_plateaus_crossings_and_errors_that_are_not_reached():
    assert least_cost([1e-6, 1e-7, 1e-8], [70, 71, 90], 1e-3) == 70.0  # a plateau: the loosest run is exact enough
    assert least_cost([1e-2, 1e-6], [10, 1000], 1e-4) == pytest.approx(100.0)
    assert np.isnan(least_cost([1e-2, 1e-3], [10, 100], 1e-4))
    assert least_cost([np.nan, 1e-6], [5, 500], 1e-4) == 500.0  # nothing is interpolated towards a lost run
    # exact enough by luck at a loose tolerance, and not at the next: the loose run does not count
    assert least_cost([1e-5, 1e-2, 1e-6], [10, 20, 2000], 1e-4) == pytest.approx(200.0)


def test_what_least_cost_refuses():
    with pytest.raises(ValueError, match="`costs` must hold one number per error"):
        least_cost([1e-2], [1, 2], 1e-3)


def test_windows_follow_the_solution_and_hold_exact_states():
    problem = ol.problems.prothero_robinson(-1e3).replace(t_span=(0.0, 10.0))
    scale, found = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=3)
    assert len(found) == 3
    assert scale == pytest.approx(1e-3, rel=0.1)
    for window in found:
        assert window.before < window.start < window.end
        for t, u in ((window.before, window.at_before), (window.start, window.at_start), (window.end, window.at_end)):
            np.testing.assert_allclose(u, problem.exact(t, problem.params), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(window.states, problem.exact(window.times, problem.params), rtol=1e-12, atol=1e-14)
        assert ((window.start < window.times) & (window.times < window.end)).all()


def test_exact_states_of_a_problem_without_a_solution_are_those_of_a_sharp_run():
    problem = ol.problems.van_der_pol(5.0).replace(t_span=(0.0, 5.0))
    times = np.array([0.0, 0.7, 2.0, 5.0])
    exact = windows.exact_states(problem, ol.RADAU, np.array([1e-3, 1e-3]), times)
    known = ol.solve(problem, ol.DOP853, ol.adaptive(1e-12, 1e-14), t_eval=times, engine="python").u
    np.testing.assert_allclose([exact[t] for t in times], known, rtol=1e-7)


def test_a_run_that_stability_holds_back_costs_the_same_at_every_loose_tolerance():
    problem = ol.problems.prothero_robinson(-1e3).replace(t_span=(0.0, 10.0))
    scale, (window,) = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=1)
    loose, sharp = (windows.warm_run(problem, ol.DOPRI5, window, rtol, scale) for rtol in (1e-2, 1e-4))
    assert loose.attempts == pytest.approx(sharp.attempts, rel=0.25)
    # the boundary of DOPRI5 on the real axis says how many steps there are
    assert loose.attempts == pytest.approx((window.end - window.start) * 1e3 / ol.DOPRI5.real_boundary, rel=0.3)
    assert sharp.error < 1e-3
    assert sharp.flagged < 0.9


def test_a_run_that_is_given_up_is_extended():
    problem = ol.problems.prothero_robinson(-1e6).replace(t_span=(0.0, 10.0))
    scale, (window,) = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=1)
    run = windows.warm_run(problem, ol.DOPRI5, window, 1e-4, scale, most=300)
    assert run.censored
    assert np.isnan(run.error)
    assert run.attempts == pytest.approx((window.end - window.start) * 1e6 / ol.DOPRI5.real_boundary, rel=0.5)


def test_a_run_that_blows_up_has_no_cost():
    """A few steps before an explosion tell nothing of what a window costs."""
    problem = ol.Problem(lambda t, u, params: (u[0] * u[0],), [1.0], (0.0, 10.0))
    window = windows.Window(0.0, 5.0, 10.0, *(np.array([1.0]),) * 3, np.zeros(8), np.zeros((8, 1)))
    failed = windows.warm_run(problem, ol.DOPRI5, window, 0.1, np.array([1e-3]))
    assert (failed.attempts, failed.censored) == (np.inf, False)
    assert np.isnan(failed.error)


def test_indices_of_a_state_are_those_of_the_measures():
    problem = ol.problems.forced_linear(((-2.0, -30.0), (30.0, -2.0)))
    t, u = 0.4, np.array([1.0, 2.0])
    found = state_indices(problem, t, u, ol.DOPRI5)
    J = problem.jacobian(t, u, problem.params)
    assert found["SI"] == pytest.approx(2.0)
    assert found["rho"] == found["rho_ng"] == pytest.approx(np.hypot(2.0, 30.0))
    assert found["-s[J]"] == pytest.approx(-ol.soderlind(J))
    assert found["SAI"] == pytest.approx(np.linalg.norm(problem.slope(t, u)) / np.linalg.norm(u))
    later = (problem.slope(t + 1e-6, u) - problem.slope(t - 1e-6, u)) / 2e-6
    assert found["rate"] == pytest.approx(ol.motion_rate(J, problem.slope(t, u), later), rel=1e-6)


@given(st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=10)
def test_under_another_unit_of_time_rates_scale_and_ratios_stay(a):
    """Every index of the problem alone changes with the unit of time; what decides the cost cannot."""
    one, other = (ol.problems.linear(f * np.array([[-50.0, 3.0], [-3.0, -1.0]]), u0=[1.0, 2.0]) for f in (1.0, a))
    x, y = (state_indices(p, 0.0, p.u0, ol.DOPRI5) for p in (one, other))
    for name in ("SI", "rho", "rho_ng", "|J|_2", "mu_2", "-s[J]", "SAI", "rate"):
        assert y[name] == pytest.approx(a * x[name], rel=1e-6), name
    for name in ("h_stab", "h_power"):
        assert y[name] == pytest.approx(x[name] / a, rel=1e-6), name
