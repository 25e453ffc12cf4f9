"""Linearly and diagonally implicit methods in whole runs: full and reduced orders, what they need, what they keep."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab import core
from tests.odelab.solver_cases import NAMED, PENDULUM

ROSENBROCK = [ol.ROS2, ol.RODAS4, ol.RODAS5P]
METHODS = [*ROSENBROCK, ol.ESDIRK43]
every_method = pytest.mark.parametrize("method", METHODS, **NAMED)


def driven(t, u, params):
    """Smooth, coupled and driven: every elementary differential and every derivative in time takes part."""
    x, y = u
    wave = ol.maths.cos(3.0 * t)
    return -x * y + wave * y, x * x * ol.maths.exp(-t) - ol.maths.sin(y) + t * t


DRIVEN = ol.Problem(driven, [1.0, 0.5], (0.0, 1.5))


@every_method
def test_the_order_away_from_stiffness(method):
    sizes = 1.5 / np.array([24, 32, 48, 64, 96])
    assert abs(float(ol.observed_order(method, DRIVEN, sizes, engine="python")) - method.order) < 0.2 + 0.2 * (
        method is ol.RODAS4
    )  # 4.3
    assert abs(float(ol.observed_order(method, PENDULUM, engine="python")) - method.order) < 0.2


@pytest.mark.parametrize(("method", "reduced"), [(ol.ROS2, 2), (ol.RODAS4, 1), (ol.RODAS5P, 2)], **NAMED)
def test_without_the_derivative_in_time_rodas_loses_its_order(method, reduced):
    """ROS2 does not feel it, so that a test with ROS2 alone would never notice."""
    from odelab.problem import array_form

    truth = ol.solve(DRIVEN, ol.DOP853, ol.adaptive(1e-13, 1e-15), engine="python").end_u
    rhs = array_form(DRIVEN)
    errors = []
    for count in (32, 64, 128):
        stepper = method.stepper(DRIVEN, rhs)
        t, u, h = 0.0, DRIVEN.u0, 1.5 / count
        for _ in range(count):
            slope, J, slope_t = stepper.prepare(t, u, rhs(t, u, ()), ())
            assert np.abs(slope_t).max() > 0.0
            u = stepper.step(rhs, (), t, u, (slope, J, 0.0), h, h)[0]
            t += h
        errors.append(np.abs(u - truth).max())
    observed = np.log2(errors[1] / errors[2])
    assert abs(observed - reduced) < 0.2


def prothero_robinson(rate):
    def rhs(t, u, params):
        return (rate * (u[0] - ol.maths.sin(t + ol.maths.pi / 4.0)) + ol.maths.cos(t + ol.maths.pi / 4.0),)

    return ol.Problem(
        rhs, [np.sin(np.pi / 4.0)], (0.0, 1.0), exact=lambda t, params: np.sin(np.atleast_1d(t) + np.pi / 4.0)
    )


@pytest.mark.parametrize(
    ("method", "rate", "low", "high"),
    [
        (ol.ROS2, -1e6, 1.8, 2.2),
        (ol.RODAS4, -1e4, 0.9, 1.3),
        (ol.RODAS4, -1e6, 0.8, 1.2),
        (ol.RODAS5P, -1e4, 2.9, 3.5),
        (ol.RODAS5P, -1e6, 2.7, 3.3),
        (ol.ESDIRK43, -1e4, 1.9, 2.1),
        (ol.ESDIRK43, -1e6, 1.9, 2.1),
    ],
    **NAMED,
)
def test_orders_are_reduced_where_the_solution_is_stiffly_tied(method, rate, low, high):
    """Prothero and Robinson: RODAS4 falls to h / rate, ESDIRK43 to h^2 / rate, RODAS5P, made for it, to h^3 / rate."""
    problem = prothero_robinson(rate)
    worst = []
    for count in (8, 16):
        sol = ol.solve(problem, method, ol.fixed(1.0 / count), engine="python")
        worst.append(np.abs(sol.step_u[:, 0] - np.sin(sol.step_t + np.pi / 4.0)).max())
    assert low < np.log2(worst[0] / worst[1]) < high
    assert worst[0] < 1e-2


@every_method
@pytest.mark.parametrize("engine", ["python", pytest.param("compiled", marks=pytest.mark.slow)])
def test_between_its_steps_a_stiff_component_is_not_multiplied_by_its_rate(method, engine):
    """A cubic through the slopes would be: at a rate of 1e9 the error of a step makes a slope of 1e5."""
    problem = prothero_robinson(-1e9)
    sol = ol.solve(problem, method, ol.adaptive(1e-3, 1e-4, max_step=0.2), engine=engine)
    inside = np.linspace(0.0, 1.0, 301)
    assert np.abs(sol(inside)[:, 0] - np.sin(inside + np.pi / 4.0)).max() < 3e-3
    if engine == "compiled":
        starts = np.tile(problem.u0, (17, 1))
        lanes = ol.ensemble(problem, method, sol.controller, u0=starts, t_eval=inside)
        np.testing.assert_allclose(lanes.u[3], sol(inside), rtol=1e-6)


def matrices():
    """Symmetric, non-normal and defective Jacobians of two to four components."""

    def made(kind, n, size, seed):
        rng = np.random.default_rng(seed)
        if kind == "defective":
            return size * (np.eye(n, k=1) - np.eye(n))
        full = rng.standard_normal((n, n))
        return -size * (full @ full.T) if kind == "symmetric" else size * (np.triu(full, 1) - np.diag(np.abs(full[0])))

    kinds = st.sampled_from(["symmetric", "non-normal", "defective"])
    return st.builds(made, kinds, st.integers(2, 4), st.sampled_from([0.1, 1.0, 30.0, 1e4]), st.integers(0, 999))


def rational(method, Z):
    """R(Z) = I + Z (b' x I) (I - B x Z)^-1 (1 x I), of a matrix."""
    n, s = len(Z), method.stages
    B = method.square if method is ol.ESDIRK43 else method.alpha + method.Gamma
    inner = np.eye(s * n) - np.kron(B, Z)
    stages = np.linalg.solve(inner, np.kron(np.ones((s, 1)), np.eye(n)))
    return np.eye(n) + Z @ np.kron(method.b, np.eye(n)) @ stages


@every_method
@pytest.mark.parametrize("rate", [-1e2, -1e4, -1e6, -1e12])
def test_a_stiff_component_that_follows_a_driven_one_is_as_exact_as_asked_for(method, rate):
    """An estimate that vanishes on stiff components sees no error here, and steps grow without bound."""
    problem = prothero_robinson(rate).replace(t_span=(0.0, 5.0))
    run = ol.solve(problem, method, ol.adaptive(1e-3, 1e-5), engine="python")
    assert np.abs(run.step_u[:, 0] - np.sin(run.step_t + np.pi / 4.0)).max() < 3e-3


@every_method
@given(J=matrices())
def test_one_step_of_a_linear_problem_is_r_of_its_matrix(method, J):
    u = np.linspace(1.0, 2.0, len(J))
    problem = ol.Problem(lambda t, u, params: J @ u, u, (0.0, 1.0))
    sol = ol.solve(problem, method, ol.fixed(1.0), engine="python")
    expected = rational(method, J) @ u
    assert np.abs(sol.end_u - expected).max() <= 1e-11 * max(1.0, np.abs(expected).max(), np.abs(u).max())


@every_method
@given(rate=st.floats(1.0, 12.0))
def test_l_stability_is_a_law_of_runs(method, rate):
    """The stiffer a component, the more one step damps it: u_1 -> 0 like 1 / rate."""
    problem = ol.Problem(lambda t, u, params: (params[0] * u[0],), [1.0], (0.0, 1.0), params=(-(10.0**rate),))
    assert abs(ol.solve(problem, method, ol.fixed(1.0), engine="python").end_u[0]) < 20.0 / 10.0**rate


def with_time_as_a_component(t, u, params):
    x, y, time = u
    return (*driven(time, (x, y), params), 1.0 + 0.0 * time)


@pytest.mark.parametrize("method", ROSENBROCK, **NAMED)
@settings(max_examples=8)
@given(h=st.floats(0.03, 0.4))
def test_the_autonomous_form_gives_the_same(method, h):
    plain = ol.solve(DRIVEN, method, ol.fixed(h), engine="python")
    apart = ol.Problem(with_time_as_a_component, [1.0, 0.5, 0.0], (0.0, 1.5))
    np.testing.assert_allclose(
        ol.solve(apart, method, ol.fixed(h), engine="python").step_u[:, :2], plain.step_u, rtol=1e-11, atol=1e-13
    )


@pytest.mark.parametrize("law", ol.LAWS)
def test_every_law_leads_a_run(law):
    problem = ol.problems.robertson()
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5, 1e-11, law=law), engine="python")
    known = next(reference for reference in problem.references if reference.t == problem.t_span[1])
    np.testing.assert_allclose(sol.end_u, known.u, rtol=1e-3)


def test_the_usual_law_is_that_of_the_method():
    problem = ol.problems.robertson()
    own = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5), engine="python")
    named = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5, law="pc11"), engine="python")
    other = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5, law="pi"), engine="python")
    assert own.controller.law.name == "pc11"
    np.testing.assert_array_equal(own.step_u, named.step_u)
    assert other.controller.law.name == "pi42"
    assert len(other.h) != len(own.h)
    explicit = ol.solve(ol.problems.lorenz(), ol.DOPRI5, engine="python")
    assert explicit.controller.law.name == "pi42"


@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], **NAMED)
def test_robertson_to_the_very_end_keeps_its_mass(method):
    known = ol.problems.robertson().references[-1]
    problem = ol.problems.robertson().replace(t_span=(0.0, known.t))
    sol = ol.solve(problem, method, ol.adaptive(1e-6, 1e-12), engine="python")
    assert known.t == 1e11
    assert np.abs(sol.step_u.sum(axis=1) - 1.0).max() < 1e-13
    np.testing.assert_allclose(sol.end_u, known.u, rtol=2e-5)
    assert sol.steps < 500


@every_method
def test_errors_follow_the_tolerance(method):
    problem = ol.problems.hires()
    known = problem.references[-1]
    problem = problem.replace(t_span=(0.0, known.t))
    tolerances = (1e-3, 1e-5) if method is ol.ROS2 else (1e-3, 1e-5, 1e-7)
    errors = [
        np.abs(ol.solve(problem, method, ol.adaptive(tol, 1e-4 * tol), engine="python").end_u / known.u - 1.0).max()
        for tol in tolerances
    ]
    assert all(error < 10.0 * tol for error, tol in zip(errors, tolerances, strict=True))
    assert errors[-1] < 0.05 * errors[0]


@every_method
@pytest.mark.parametrize("span", [(0.0, 3.0), (3.0, 0.0)])
def test_dense_output_has_its_order_and_meets_the_steps(method, span):
    problem = ol.Problem(driven, [1.0, 0.5], span)
    fine = ol.solve(problem, ol.DOP853, ol.adaptive(1e-12, 1e-13), engine="python")
    worst = []
    for h in (0.1, 0.05):
        sol = ol.solve(problem, method, ol.fixed(h), engine="python")
        times = np.linspace(*span, 301)
        worst.append(np.abs(sol(times) - fine(times)).max())
        np.testing.assert_array_equal(sol(sol.step_t), sol.step_u)
    assert np.log2(worst[0] / worst[1]) > min(method.order, method.dense_order + 1) - 0.4
    inside = sol(sol.step_t[1:] - 1e-9 * np.diff(sol.step_t))
    np.testing.assert_allclose(inside, sol.step_u[1:], rtol=1e-7)


@pytest.mark.parametrize("method", METHODS[1:], **NAMED)
def test_an_event_inside_a_huge_step_is_found(method):
    """Robertson's first component passes 0.01 where steps are of the size of 1e6."""
    problem = ol.problems.robertson().replace(t_span=(0.0, 1e7))
    low = ol.Event(lambda t, u, params: u[0] - 0.01, terminal=True)
    sol = ol.solve(problem, method, ol.adaptive(1e-6, 1e-12), events=low, engine="python")
    fine = ol.solve(problem, ol.RODAS5P, ol.adaptive(1e-8, 1e-14), events=low)
    assert sol.status == "event"
    assert sol.h[-2] > 1e4
    np.testing.assert_allclose(sol.t[-1], fine.t[-1], rtol=2e-4)
    np.testing.assert_allclose(sol.end_u[0], 0.01, rtol=1e-9)
    np.testing.assert_allclose(sol(sol.t[-1]), sol.end_u)


def test_steps_end_where_they_are_told_to_and_states_are_projected():
    problem = ol.problems.robertson()
    times = np.array([0.1, 1.0, 10.0])
    stopped = ol.solve(problem, ol.RODAS4, tstops=times, engine="python")
    assert np.isin(times, stopped.step_t).all()
    assert stopped.jacobians >= stopped.steps
    positive = ol.solve(problem, ol.RODAS4, project=lambda u: np.maximum(u, 0.0), engine="python")
    np.testing.assert_allclose(positive.end_u, stopped.end_u, rtol=1e-5)
    sparse = ol.solve(problem, ol.RODAS4, t_eval=times, dense=False, engine="python")
    whole = ol.solve(problem, ol.RODAS4, t_eval=times, engine="python")
    np.testing.assert_allclose(sparse.u, whole.u, rtol=1e-12)


def test_work_is_counted_and_said():
    sol = ol.solve(ol.problems.oregonator(), ol.RODAS4, ol.adaptive(1e-4, 1e-7), engine="python")
    assert sol.rejected > 5
    assert sol.jacobians == sol.steps  # kept over rejections
    assert sol.factorisations == sol.steps + sol.rejected
    assert sol.evaluations == 6 * sol.steps + 5 * sol.rejected + 1
    assert f"{sol.jacobians} Jacobians, {sol.factorisations} factorisations" in str(sol)
    assert "the problem's own Jacobian, dense" in str(sol)
    watched = ol.solve(
        ol.problems.oregonator(),
        ol.RODAS4,
        ol.adaptive(1e-4, 1e-7),
        events=ol.Event(lambda t, u, params: u[0] + 1.0, terminal=True),
        engine="python",
    )
    assert (watched.jacobians, watched.factorisations) == (sol.jacobians, sol.factorisations)
    explicit = ol.solve(ol.problems.lorenz(), ol.DOPRI5, engine="python")
    assert (explicit.jacobians, explicit.factorisations, explicit.derivatives) == (0, 0, "")


def test_runs_of_these_methods_are_pickled():
    sol = ol.solve(ol.problems.robertson(), ol.RODAS5P, engine="python")
    expected = sol(3.0)
    again = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(again(3.0), expected)
    assert again.method is ol.RODAS5P
    assert again.controller.law.name == "pc11"


def grows(t, u, params):
    return (8.0 * u[0],)


def test_a_singular_matrix_rejects_an_attempt_and_no_more():
    """With RODAS4, h = 1/2 and J = 8 the matrix 1 - h gamma J is zero."""
    problem = ol.Problem(grows, [1.0], (0.0, 1.0))
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5, first_step=0.5), engine="python")
    assert sol.rejected >= 1
    np.testing.assert_allclose(sol.end_u, np.exp(8.0), rtol=1e-3)
    with pytest.raises(ol.RunFailed, match=r"is singular, as an eigenvalue of the Jacobian is 1 / \(h gamma\) = 8"):
        ol.solve(problem, ol.RODAS4, ol.fixed(0.5), engine="python")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_jacobian_that_is_never_finite_is_named(value):
    problem = ol.Problem(
        lambda t, u, params: -u,
        [1.0, 2.0],
        (0.0, 1.0),
        jacobian=lambda t, u, params: np.array([[-1.0, 0.0], [value, -1]]),
    )
    with pytest.raises(ol.RunFailed, match="derivative of component 1 with respect to component 0") as failure:
        ol.solve(problem, ol.RODAS4, engine="python")
    assert failure.value.trajectory.status == "not_finite"
    assert "check `jacobian`" in str(failure.value)


def test_a_derivative_in_time_that_is_not_finite_is_named():
    problem = ol.Problem(lambda t, u, params: (-u[0] + ol.maths.sqrt(t),), [1.0], (0.0, 1.0))
    with pytest.raises(ol.RunFailed, match="component 0 with respect to time is inf"):
        ol.solve(problem, ol.RODAS4, engine="python")


def test_a_right_hand_side_that_leaves_its_domain_is_named_as_ever():
    problem = ol.Problem(lambda t, u, params: (-ol.maths.sqrt(1.0 - t) * u[0],), [1.0], (0.0, 2.0))
    with pytest.raises(ol.RunFailed, match=r"the right-hand side returned nan in component 0 at t = 1\.0000"):
        ol.solve(problem, ol.RODAS4, engine="python")
    explosion = ol.Problem(lambda t, u, params: (u[0] * u[0],), [1.0], (0.0, 2.0))
    with pytest.raises(ol.RunFailed, match="blows up near t = 1"):
        ol.solve(explosion, ol.RODAS4, engine="python")


def test_lines_of_a_partial_differential_equation():
    """Banded, from the problem's own Jacobian or found in colours: the same run."""
    problem = ol.problems.brusselator_1d(n=60).replace(t_span=(0.0, 2.0))
    own = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5, 1e-7), engine="python")
    found = ol.solve(problem.replace(jacobian=None), ol.RODAS4, ol.adaptive(1e-5, 1e-7), engine="python")
    assert own.derivatives == "the problem's own Jacobian, banded, 2 + 1 + 2 diagonals"
    assert found.derivatives == "Jacobian by dual numbers in 6 colours, banded, 2 + 1 + 2 diagonals"
    assert own.steps == found.steps
    np.testing.assert_allclose(found.end_u, own.end_u, rtol=1e-9)
    truth = ol.solve(problem, ol.RADAU, ol.adaptive(1e-8, 1e-10))
    np.testing.assert_allclose(own.end_u, truth.end_u, rtol=1e-4)


def test_a_method_without_an_estimate_takes_fixed_steps_alone():
    euler = ol.RosenbrockMethod("EULER1", order=1, gamma=1.0, a=[[]], C=[[]], m=[1.0])
    problem = ol.Problem(grows, [1.0], (0.0, -1.0))
    np.testing.assert_allclose(ol.solve(problem, euler, ol.fixed(0.1), engine="python").end_u, 1.8**-10.0)
    with pytest.raises(ValueError, match="EULER1 has no embedded method"):
        ol.solve(problem, euler)


def test_the_formula_of_the_step_is_that_of_the_textbook():
    """l_i = h f(u + alpha l) + h J Gamma l + h^2 d_i f_t, u + b l: the form whose order conditions are checked."""
    from odelab.problem import array_form

    rhs, t, u, h = array_form(DRIVEN), 0.3, DRIVEN.u0, 0.2
    for method in ROSENBROCK:
        stepper = method.stepper(DRIVEN, rhs)
        known = _, J, slope_t = stepper.prepare(t, u, rhs(t, u, ()), ())
        inner: list = []
        for i in range(method.stages):
            state = u + core.combine(method.alpha[i], [*inner, 0.0 * u], i) if i else u
            right = h * rhs(t + method.c[i] * h, state, ()) + method.d[i] * h * h * slope_t
            if i:
                right = right + h * J @ core.combine(method.Gamma[i], inner, i)
            inner.append(np.linalg.solve(np.eye(2) - h * method.gamma * J, right))
        expected = u + core.combine(method.b, inner, method.stages)
        found = stepper.step(rhs, (), t, u, known, h, h)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-13)
