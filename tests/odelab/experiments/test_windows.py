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


METHODS = (ol.DOPRI5, ol.RKF45, ol.BS32, ol.DOP853, ol.ROS2, ol.RODAS4, ol.RODAS5P)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_evaluations_are_those_that_a_run_counts(method):
    """Of every attempt, and of every state that is kept; one more at the start where the last slope is kept."""
    run = ol.solve(ol.problems.van_der_pol(5.0), method, ol.adaptive(1e-4, 1e-6, first_step=0.5), engine="python")
    of_attempt, of_state = windows.evaluations_of(method)
    assert run.rejected > 0
    counted = of_attempt * (run.steps + run.rejected) + of_state * run.steps
    assert run.evaluations == counted + (of_state == 0)
    if isinstance(method, ol.RosenbrockMethod):
        assert (run.jacobians, run.factorisations) == (run.steps, run.steps + run.rejected)


def test_windows_of_a_run_backwards_are_refused():
    with pytest.raises(ValueError, match="`problem` must run forward in time"):
        windows.cut_into_windows(ol.problems.van_der_pol().replace(t_span=(2.0, 0.0)), ol.RADAU, ol.RADAU)


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


def test_windows_of_one_length_in_time():
    problem = ol.problems.van_der_pol(5.0).replace(t_span=(0.0, 2.0))
    _, found = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=3, even=True)
    assert np.ptp([window.end - window.start for window in found]) < 1e-9


def test_a_cold_start_costs_what_finding_the_step_costs():
    """It starts where the window does; a warm run comes in with its step."""
    problem = ol.problems.prothero_robinson(-1.0).replace(t_span=(0.0, 10.0))
    scale, (window,) = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=1)
    warm, cold = (windows.warm_run(problem, ol.DOPRI5, window, 1e-6, scale, cold=flag) for flag in (False, True))
    assert warm.attempts < cold.attempts
    assert cold.error < 1e-4


def test_the_share_near_the_boundary_is_at_least_that_above_it():
    problem = ol.problems.prothero_robinson(-1e3).replace(t_span=(0.0, 10.0))
    scale, (window,) = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=1)
    run = windows.warm_run(problem, ol.DOPRI5, window, 1e-4, scale)
    assert 0.1 < run.flagged < run.near <= 1.0


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.integers(1, 5), st.floats(1e-8, 1e-2))
@settings(deadline=None)
def test_an_effective_derivative_asks_for_as_many_steps(sizes, order, tolerance):
    one = windows.effective_derivative(sizes, order)
    steps = np.mean([1.0 / ol.accuracy_step(size, tolerance, order) for size in sizes])
    assert 1.0 / ol.accuracy_step(one, tolerance, order) == pytest.approx(steps)


def test_the_prediction_is_one_of_chi_beyond_the_boundary():
    """With both derivatives alike and orders apart, R = work ratio x tol^(1/4 - 1/5) x max(1, chi)."""
    work = 6.0 / (6.0 + 3.0)
    for values, bound in (([-1e4], True), ([-1e-3], False)):
        stable = ol.largest_stable_step(values, ol.DOPRI5, modes="nongrowing", gain=0.02)
        chi = ol.chi(values, 1.0, 1e-6, ol.DOPRI5)
        assert (chi > 1.0) == bound
        found = windows.predicted_ratio(stable, 1.0, 1.0, 1e-6, ol.DOPRI5, ol.RODAS4, 3)
        assert found == pytest.approx(work * 1e-6 ** (0.25 - 0.2) * max(1.0, chi))


def test_the_measured_ratio_of_a_scalar_problem_is_that_of_chi():
    """u' = -1000 (u - sin t) + cos t: explicit steps are those of the boundary, so R is h_R over h_stab."""
    problem = ol.problems.prothero_robinson(-1e3).replace(t_span=(0.0, 10.0))
    scale, (window,) = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=1)
    run = windows.warm_run(problem, ol.DOPRI5, window, 1e-4, scale)
    length = window.end - window.start
    stable = ol.largest_stable_step([-1e3], ol.DOPRI5, modes="nongrowing", gain=0.02)
    assert run.attempts == pytest.approx(length / stable, rel=0.2)


def test_doubling_the_attempts_leaves_an_extended_cost_where_it_was():
    problem = ol.problems.prothero_robinson(-1e6).replace(t_span=(0.0, 10.0))
    scale, (window,) = windows.cut_into_windows(problem, ol.RADAU, ol.RADAU, count=1)
    one, other = (windows.warm_run(problem, ol.DOPRI5, window, 1e-4, scale, most=most) for most in (300, 600))
    assert other.attempts == pytest.approx(one.attempts, rel=0.2)


def ratio_on_a_window(problem, unit: float):
    """R, in attempts at one tolerance, on the window from 3 to 4 of a problem whose solution is known."""
    times = np.array([2.0, 3.0, 4.0]) * unit
    inside = np.linspace(times[1], times[2], 8)
    states = problem.exact(np.append(times, inside), problem.params)
    window = windows.Window(*times, *states[:3], inside, states[3:])
    scale = np.full(problem.size, 1e-3)
    runs = [
        windows.warm_run(problem, method, window, 1e-4, scale, 0.01 * unit, most=100_000)
        for method in (ol.DOPRI5, ol.RODAS4)
    ]
    return runs[0].attempts / runs[1].attempts


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_ratio_of_costs_has_no_unit_of_time(factor):
    """u' = A (u - g) + g' with everything faster by a factor: every rate scales, R stays."""
    base = ol.problems.forced_linear(((-600.0, 0.0), (0.0, -20.0)))
    faster = ol.problems.forced_linear(((-600.0 * factor, 0.0), (0.0, -20.0 * factor)), frequency=factor)
    wanted = ratio_on_a_window(base, 1.0)
    assert wanted > 5.0
    assert ratio_on_a_window(faster, 1.0 / factor) == pytest.approx(wanted, rel=1e-6)


def test_the_ratio_of_costs_does_not_change_under_an_orthogonal_map():
    """One scale for all components: mixing them leaves every norm as it was."""
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    matrix, offset, amplitude = np.diag([-600.0, -50.0, -1.0]), np.array([2.0, 1.0, 0.0]), np.ones(3)
    ratios = []
    for turn in (np.eye(3), q):
        problem = ol.problems.forced_linear(turn @ matrix @ turn.T, turn @ offset, turn @ amplitude)
        controller = ol.adaptive(2.3e-14, 1e-6, first_step=0.01)
        runs = [ol.solve(problem, one, controller) for one in (ol.DOPRI5, ol.RODAS4)]
        ratios.append((runs[0].steps + runs[0].rejected) / (runs[1].steps + runs[1].rejected))
    assert ratios[1] == pytest.approx(ratios[0], rel=0.01)


def test_the_ratio_of_costs_does_not_change_with_the_units_of_components():
    """u -> M u with a diagonal M, and the scale of each component with it: every relative error stays as it was."""
    units = np.array([1e4, 1.0, 1e-5])
    matrix = np.array([[-600.0, 30.0, 0.0], [0.0, -50.0, 10.0], [0.0, 0.0, -1.0]])
    offset, amplitude, ratios = np.array([2.0, 1.0, 3.0]), np.ones(3), []
    for m in (np.ones(3), units):
        problem = ol.problems.forced_linear(m[:, None] * matrix / m, m * offset, m * amplitude)
        controller = ol.adaptive(1e-5, 1e-5 * m, first_step=0.01)
        runs = [ol.solve(problem, one, controller) for one in (ol.DOPRI5, ol.RODAS4)]
        ratios.append((runs[0].steps + runs[0].rejected) / (runs[1].steps + runs[1].rejected))
    assert ratios[1] == pytest.approx(ratios[0], rel=0.01)


def test_indices_of_other_norms_and_departures_are_those_of_the_measures():
    problem = ol.problems.forced_linear(((-2.0, -30.0), (0.0, -5.0)))
    found = state_indices(problem, 0.4, np.array([1.0, 2.0]), ol.DOPRI5, np.array([0.5, 2.0]))
    J = problem.jacobian(0.4, None, problem.params)
    assert found["mu_1"] == ol.log_norm(J, 1)
    assert found["mu_inf"] == ol.log_norm(J, np.inf)
    assert found["m_2"] + found["mu_2"] == pytest.approx(2.0 * ol.soderlind(J))
    assert found["Henrici"] == pytest.approx(ol.spectrum(J).non_normality)
    slope = problem.slope(0.4, np.array([1.0, 2.0]))
    assert found["weighted SAI"] == pytest.approx(np.sqrt(np.mean((slope / [0.5, 2.0]) ** 2)))
    assert found["-min Re"] == pytest.approx(5.0)
