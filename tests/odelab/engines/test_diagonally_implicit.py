"""Diagonally implicit runs: one step in plain Python, kernels and lanes; Newton's method, and what it refuses."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import odelab as ol
from odelab import core
from odelab.methods import esdirk
from odelab.problem import array_form
from tests.odelab.kernels.kernel_cases import assert_same_run, both, small_systems
from tests.rounding import EPS

METHOD = ol.ESDIRK43
SYSTEMS = small_systems()
few = settings(max_examples=4, deadline=None)
stretches = st.floats(0.9, 1.1)


def stretched(problem, start, rate):
    return problem.replace(u0=start * problem.u0, params=tuple(rate * p for p in problem.params))


@pytest.mark.parametrize("name", ["logistic", "driven", "van_der_pol", "brusselator backwards", "rigid_body", "hires"])
@few
@given(start=stretches, rate=stretches, rtol=st.sampled_from([1e-3, 1e-5, 1e-6]))
@example(start=0.9147432865249076, rate=0.9492811938101952, rtol=1e-3)  # the first estimate is almost zero
def test_a_kernel_takes_the_steps_of_plain_python(name, start, rate, rtol):
    problem = stretched(SYSTEMS[name], start, rate)
    kernel, plain = both(problem, METHOD, ol.adaptive(rtol, 0.01 * rtol))
    assert_same_run(kernel, plain)
    assert (kernel.jacobians, kernel.factorisations) == (plain.jacobians, plain.factorisations)
    inside = np.linspace(*problem.t_span, 101)
    np.testing.assert_allclose(kernel(inside), plain(inside), rtol=0, atol=1e-6 * np.abs(plain.step_u).max())


@pytest.mark.parametrize(
    ("problem", "controller"),
    [
        (SYSTEMS["driven"], ol.fixed(0.1)),
        (SYSTEMS["van_der_pol"], ol.adaptive(1e-5, [1e-8, 1e-7])),
        (ol.problems.robertson(), ol.adaptive(1e-5, 1e-11)),
    ],
    ids=["driven fixed", "van_der_pol", "robertson"],
)
def test_runs_in_lanes_are_the_runs_alone(problem, controller):
    """Counts are equal, states but for what steps carry on of rounding; more runs than there are lanes."""
    params = np.array(problem.params) * np.linspace(0.95, 1.05, 37)[:, None]
    asked = np.linspace(*problem.t_span, 9)
    lanes = ol.ensemble(problem, METHOD, controller, params=params, t_eval=asked, maxima=True, engine="compiled")
    assert lanes.ok
    for place in (0, 18, 36):
        one = problem.replace(params=tuple(params[place].tolist()))
        run = ol.solve(one, METHOD, controller, t_eval=asked, engine="python")
        assert (lanes.steps[place], lanes.rejected[place]) == (run.steps, run.rejected)
        rtol = 1e-11 if controller.law is None else 1e-6
        np.testing.assert_allclose(lanes.u[place], run.u, rtol=rtol, atol=1e-3 * rtol)
        np.testing.assert_allclose(lanes.sai_max[place], run.sai.max(), rtol=1e3 * rtol)


@pytest.mark.slow
@few
@given(start=stretches, rate=stretches, steps=st.integers(5, 300))
@pytest.mark.parametrize("name", ["driven", "van_der_pol", "hires"])
def test_exact_runs_have_the_same_bits_everywhere(name, start, rate, steps):
    problem = stretched(SYSTEMS[name], start, rate)
    for controller in (ol.adaptive(1e-4, 1e-7), ol.fixed(1.0 / steps)):
        options = {"exact": True, "throw": False, "max_steps": steps}
        runs = [ol.solve(problem, METHOD, controller, engine=engine, **options) for engine in ("python", "compiled")]
        for field in ("step_t", "step_u", "error"):
            np.testing.assert_array_equal(*(getattr(run, field) for run in runs))
        lanes = ol.ensemble(problem, METHOD, controller, u0=problem.u0[None], exact=True, max_steps=steps)
        np.testing.assert_array_equal(lanes.u[0], runs[0].step_u[-1])


def test_work_is_counted_as_it_is_done():
    calls = []

    def decay(t, u, params):
        calls.append(t)
        return -u * u

    sol = ol.solve(ol.Problem(decay, [1.0, 2.0], (0.0, 5.0), form="array"), METHOD, engine="python", dense=False)
    attempts = sol.steps + sol.rejected
    assert METHOD.evaluations == 5 * esdirk.ITERATIONS
    assert sol.factorisations == attempts
    assert sol.jacobians == sol.steps
    assert sol.evaluations == sol.steps + METHOD.evaluations * attempts + 1  # one finds the first step


def stage_problem(J, u):
    """One step of u' = J u with the true J, recording where the right-hand side is evaluated."""
    states = []

    def rhs(t, u, params):
        states.append(u)
        return J @ u

    def factor(J, hg):
        return np.eye(len(J)) - hg * J

    step = METHOD.step_of(factor, np.linalg.solve)
    return step(rhs, (), 0.0, u, (J @ u, J, 0.0), 1.0, 1.0), states


@given(rate=st.floats(-3.0, 6.0), seed=st.integers(0, 99))
def test_a_linear_problem_is_solved_by_the_first_correction(rate, seed):
    """What the others change is what rounding has left."""
    u = np.random.default_rng(seed).standard_normal(2)
    J = np.array([[-(10.0**rate), 1.0], [0.0, -1.0]])
    (u_new, _, _, returned, _), _ = stage_problem(J, u)
    assert np.isfinite(u_new).all()
    solved = np.array(returned)
    for k in range(1, len(solved), esdirk.ITERATIONS):
        size = 10.0 ** max(rate, 0.0) * np.abs(u).max() + np.abs(solved[: k + 1]).max()
        assert np.abs(solved[k + esdirk.ITERATIONS - 1] - solved[k]).max() <= 100.0 * EPS * size


def test_an_attempt_whose_stages_are_not_solved_is_refused():
    """With half of the true Jacobian or less, Newton's corrections grow on a stiff component."""
    rhs, u = array_form(ol.Problem(lambda t, u, params: (-1e4 * u[0],), [1.0], (0.0, 1.0))), np.ones(1)
    for share, is_solved in ((1.0, True), (0.8, True), (0.3, False), (0.0, False)):
        J = share * np.array([[-1e4]])
        step = METHOD.step_of(lambda J, hg: np.eye(1) - hg * J, np.linalg.solve)
        u_new, _, errors, returned, _ = step(rhs, (), 0.0, u, (rhs(0.0, u, ()), J, 0.0), 1.0, 1.0)
        assert np.isfinite(returned).all()
        assert np.isfinite(u_new).all() == is_solved
        assert errors[0] >= 0.24 * abs(returned[-1] - returned[-2])  # the last correction, times gamma, is in it
        unchecked = METHOD.step_of(lambda J, hg: np.eye(1) - hg * J, np.linalg.solve, None)
        assert np.isfinite(unchecked(rhs, (), 0.0, u, (rhs(0.0, u, ()), J, 0.0), 1.0, 1.0)[0]).all()


@given(first=st.floats(0.0, 1e3), share=st.floats(0.0, 2.0), state=st.floats(0.0, 1e3))
def test_a_stage_converges_by_its_share_or_by_its_size(first, share, state):
    last = share * first
    answer = core.contracts(np.array([first]), np.array([-last]), np.array([state]))
    if last <= 0.999 * core.CONTRACTION * first or last <= 0.999 * core.ROUNDING * state:
        assert answer or last < 1e-150  # its square is lost
    elif last > 1.001 * (core.CONTRACTION * first + core.ROUNDING * state):
        assert not answer or last < 1e-150
    assert not core.contracts(np.array([first]), np.array([np.nan]), np.array([state]))


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_fixed_steps_that_newtons_method_does_not_solve_say_so(engine):
    problem = ol.Problem(lambda t, u, params: (u[0] * u[0],), [1.0], (0.0, 3.0))
    sol = ol.solve(problem, METHOD, ol.fixed(0.3), engine=engine, throw=False)
    assert sol.status == "not_finite"
    assert sol.message.startswith("Newton's method does not solve the stages of ESDIRK43 for the step from t = 0.6")
    lanes = ol.ensemble(problem, METHOD, ol.fixed(0.3), u0=np.ones((3, 1)), engine=engine)
    assert set(lanes.status) == {"not_finite"}


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_adaptive_steps_shrink_where_newtons_method_does_not_converge(engine):
    """A first step of size 1 on exp(-20 u) is far too long for Newton's method, started at u = 1."""
    problem = ol.Problem(lambda t, u, params: (1.0 - ol.maths.exp(20.0 * u[0]),), [1.0], (0.0, 3.0))
    sol = ol.solve(problem, METHOD, ol.adaptive(1e-6, 1e-9, first_step=1.0), engine=engine)
    fine = ol.solve(problem, ol.RODAS5P, ol.adaptive(1e-9, 1e-12))
    assert sol.rejected > 0
    np.testing.assert_allclose(sol.end_u, fine.end_u, atol=1e-8)


REFERENCES = ["van_der_pol", "hires", "robertson", "oregonator", pytest.param("pollu", marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", REFERENCES)
def test_it_takes_fewer_steps_than_rodas4_at_errors_that_follow_the_tolerance(name):
    problem = getattr(ol.problems, name)()
    known = problem.references[0] if name != "robertson" else problem.references[1]
    problem, size = problem.replace(t_span=(0.0, known.t)), np.abs(known.u).max()
    for rtol in (1e-5, 1e-8):
        controller = ol.adaptive(rtol, 1e-3 * rtol * min(1.0, np.abs(known.u).min()))
        sol, other = (ol.solve(problem, method, controller) for method in (METHOD, ol.RODAS4))
        assert sol.steps < other.steps
        assert np.abs(sol.end_u - known.u).max() < 100.0 * rtol * size


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_it_takes_turns_with_an_explicit_method(engine):
    problem = ol.problems.van_der_pol(mu=100.0).replace(t_span=(0.0, 150.0))
    sol = ol.solve(problem, ol.auto(implicit=METHOD), ol.adaptive(1e-6, 1e-8), engine=engine)
    alone = ol.solve(problem, METHOD, ol.adaptive(1e-8, 1e-10))
    assert set(sol.took.tolist()) == {"DOPRI5", "ESDIRK43"}
    times = np.linspace(0.0, 80.0, 200)  # before the first turn, where a small error becomes one of time
    np.testing.assert_allclose(sol(times), alone(times), rtol=1e-4, atol=1e-4)


def test_large_systems_are_solved_by_the_factors_that_suit_them():
    problem = ol.problems.heat_1d(n=60)
    sol, fine = (
        ol.solve(problem, method, ol.adaptive(rtol, 1e-3 * rtol), engine="python")
        for method, rtol in ((METHOD, 1e-6), (ol.RODAS5P, 1e-9))
    )
    assert np.abs(sol.end_u - fine.end_u).max() < 10.0 * 1e-6 * np.abs(fine.end_u).max()
    assert sol.derivatives == fine.derivatives
