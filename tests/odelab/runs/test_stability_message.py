"""What a run says about stability: that it was held back by it, by how much, and what would help; and only then."""

import numpy as np
import pytest

import odelab as ol
from odelab.methods.spectral_radius import leading_eigenvalue, spectral_radius
from odelab.runs import h_rho as stability
from odelab.runs import limits
from tests.odelab.solver_cases import CIRCLE, NAMED, PENDULUM

problems = ol.problems
STIFF = {
    "stiff_linear": problems.stiff_linear(),
    "prothero_robinson": problems.prothero_robinson(-1e4).replace(t_span=(0.0, 0.2)),
    "hires": problems.hires().replace(t_span=(0.0, 20.0)),
    "robertson": problems.robertson().replace(t_span=(0.0, 1.0)),
    "van_der_pol 100": problems.van_der_pol(100.0).replace(t_span=(0.0, 20.0)),
    "heat_1d": problems.heat_1d(50),
    "linear": problems.linear(),
}
NOT_STIFF = {
    "van_der_pol": problems.van_der_pol(5.0),
    "brusselator": problems.brusselator(),
    "lorenz": problems.lorenz(),
    "rigid_body": problems.rigid_body(),
    "arenstorf": problems.arenstorf(),
    "pleiades": problems.pleiades(),
    "three_body": problems.three_body(),
    "growth": problems.dahlquist(1.0),
    "decay": problems.dahlquist(-1.0),
    "circle": CIRCLE,
    "pendulum": PENDULUM,
}
METHODS = [ol.BS32, ol.RKF45, ol.DOPRI5, ol.DOP853]
every_method = pytest.mark.parametrize("method", METHODS, **NAMED)


@every_method
@pytest.mark.parametrize("name", STIFF)
def test_a_stiff_run_gets_through_and_says_what_held_it_back(method, name):
    run = ol.solve(STIFF[name], method, ol.adaptive(1e-4, 1e-7), engine="python")
    assert run.status == "ok"
    assert run.message.startswith(f"reached t = {run.t[-1]:g} in {run.steps} steps; ")
    assert "% of them were held back by stability, not by accuracy: h*rho = " in run.message
    assert f"where the boundary is {method.real_boundary:.2f}" in run.message
    assert "an implicit method (odelab.RODAS4)" in run.message
    assert "would need far fewer steps" in run.message
    said = float(run.message.split("h*rho = ")[1].split()[0])
    assert said == pytest.approx(method.real_boundary, rel=0.12)


@every_method
@pytest.mark.parametrize("name", NOT_STIFF)
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_run_that_is_not_stiff_does_not_say_it(method, name, tol):
    run = ol.solve(NOT_STIFF[name], method, ol.adaptive(tol, 1e-3 * tol), engine="python")
    assert run.message == f"reached t = {run.t[-1]:g} in {run.steps} steps"


@every_method
def test_a_stiff_problem_at_a_sharp_tolerance_is_held_back_by_accuracy(method):
    run = ol.solve(problems.curtiss_hirschfelder(), method, ol.adaptive(1e-9, 1e-12), engine="python")
    assert "stability" not in run.message


@every_method
def test_a_spent_budget_names_itself_stability_and_the_remedy(method):
    run = ol.solve(
        problems.van_der_pol(1000.0), method, ol.adaptive(1e-4, 1e-7), max_steps=900, throw=False, engine="python"
    )
    assert run.status == "max_steps"
    assert run.message.startswith(
        f"max_steps = 900 spent at t = {run.t[-1]:g}; the step is limited by stability, h*rho = "
    )
    assert f"where the boundary is {method.real_boundary:.2f}: use odelab.RKC2" in run.message
    assert run.message.endswith("or an implicit method (odelab.RODAS4), or raise max_steps")


def test_a_spent_budget_without_stiffness_does_not_blame_stability():
    run = ol.solve(problems.lorenz(), ol.DOPRI5, ol.adaptive(1e-9, 1e-12), max_steps=300, throw=False)
    assert run.message.endswith("; raise max_steps, loosen the tolerance, or shorten `t_span`")


def test_fixed_steps_are_nobodys_choice():
    run = ol.solve(problems.stiff_linear(), ol.EULER, ol.fixed(0.0019), engine="python")
    assert run.message == "reached t = 1 in 527 steps"


@pytest.mark.parametrize("method", [ol.EULER, ol.HEUN, ol.RK4, ol.BS32, ol.DOPRI5], **NAMED)
@pytest.mark.parametrize("factor", [0.97, 1.02, 3.0])
def test_fixed_steps_beyond_the_stability_limit_say_so(method, factor):
    h = factor * method.real_boundary / 1000.0
    problem = ol.Problem(lambda t, u, params: (-1000.0 * u[0],), [1.0], (0.0, 20.5 * h))
    run = ol.solve(problem, method, ol.fixed(h), engine="python")
    if factor < 1.0:
        assert run.message == f"reached t = {run.t[-1]:g} in 21 steps"
        return
    z = factor * method.real_boundary
    assert f"100 % of them were beyond the stability limit of {method.name}: h*rho = {z:.2f} where the" in run.message
    smaller = float(run.message.split("take steps of ")[1].split()[0])
    assert "stability" not in ol.solve(problem, method, ol.fixed(smaller), engine="python").message


def test_fixed_steps_of_an_oscillation_beyond_the_limit_say_so():
    turning = ol.Problem(lambda t, u, params: (u[1] - 0.01 * u[0], -u[0] - 0.01 * u[1]), [1.0, 0.0], (0.0, 200.0))
    assert "stability" not in ol.solve(turning, ol.RK4, ol.fixed(2.7), engine="python").message
    run = ol.solve(turning, ol.RK4, ol.fixed(3.0), engine="python")
    assert (
        "100 % of them were beyond the stability limit of RK4: h*lambda = -0.03 +- 3i, where each step" in run.message
    )


def test_a_run_that_exploded_is_told():
    explosion = ol.Problem(lambda t, u, params: -1e3 * u, [1.0], (0.0, 1.0))
    run = ol.solve(explosion, ol.EULER, ol.fixed(0.01))
    assert "h*rho = 10.00 where the boundary is 2.00" in run.message
    assert run.message.endswith("; component 0 has grown to 2.66e+95")


def test_whether_a_run_was_held_back_is_a_field():
    assert ol.solve(problems.stiff_linear(), ol.DOPRI5, ol.adaptive(1e-4, 1e-7), engine="python").held_back
    assert not ol.solve(problems.lorenz(), ol.DOPRI5, ol.adaptive(1e-4, 1e-7), engine="python").held_back
    assert not ol.solve(problems.stiff_linear(), ol.RADAU, ol.adaptive(1e-4, 1e-7)).held_back


def test_rkc2_needs_no_such_words():
    run = ol.solve(problems.heat_1d(50), ol.RKC2, ol.adaptive(1e-4, 1e-7), engine="python")
    assert "held back" not in run.message


@pytest.mark.parametrize("rate", [-10.0, -1e3, -1e6])
@pytest.mark.parametrize("method", [ol.DOPRI5, ol.DOP853, ol.BS32, ol.RKF45], **NAMED)
def test_h_rho_of_a_scalar_problem_is_exact(method, rate):
    problem = problems.dahlquist(rate)
    h = 0.7 / abs(rate)
    found = stability.h_rho(problem, method, np.array([0.0, 1.0]), np.array([[1.0], [-2.0]]), np.array([h, -h]))
    np.testing.assert_allclose(found, 0.7, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_power_iteration_finds_the_spectral_radius(seed):
    spectrum = [-1.0, -3.0, -200.0] if seed % 2 else [-1.0, -2.0, -50.0 + 80.0j, -50.0 - 80.0j]
    problem = problems.linear_non_normal(spectrum, 1.0, seed=seed)
    found = spectral_radius(problem, 0.0, problem.u0)
    assert found == pytest.approx(np.abs(spectrum).max(), rel=0.05)
    value = leading_eigenvalue(problem, 0.0, problem.u0)
    assert complex(value.real, abs(value.imag)) == pytest.approx(spectrum[2], rel=0.05)


def test_where_stages_differ_by_rounding_only_the_estimate_is_looked_at_again():
    run = ol.solve(problems.linear(), ol.DOPRI5, ol.adaptive(1e-9, 1e-12), engine="python")
    limit = limits.stability_limit(run)
    assert limit is not None
    assert float(limit.cause.split("= ")[1].split()[0]) == pytest.approx(3.31, abs=0.4)


def test_the_message_is_found_only_when_asked_for():
    calls = [0]

    def counted(t, u, params):
        calls[0] += 1
        return (-1000.0 * (u[0] - 1.0),)

    problem = ol.Problem(counted, [0.0], (0.0, 1.0))
    calls[0] = 0
    run = ol.solve(problem, ol.RKF45, ol.adaptive(1e-4, 1e-7), engine="python")
    assert calls[0] == run.evaluations
    assert "stability" in run.message
    assert calls[0] > run.evaluations
