"""Failures: every one answers in under a second, with a status and words that name time, cause and remedy."""

import math
import re

import numpy as np
import pytest

import odelab as ol
from tests.odelab.solver_cases import CIRCLE, NAMED, PENDULUM
from tests.without import needs_numba

METHODS = [ol.DOPRI5, ol.RKF45, ol.DOP853, ol.RADAU, ol.BDF, ol.LSODA]
TOLERANCE = ol.adaptive(1e-6, 1e-9)
every_method = pytest.mark.parametrize("method", METHODS, **NAMED)


def soon_over(problem, method=ol.DOPRI5, controller=TOLERANCE, **options):
    """A run that may fail, and its words; it notices soon, long before its million attempts are spent."""
    run = ol.solve(problem, method, controller, throw=False, **{"engine": "python", **options})
    assert run.evaluations < 20_000
    assert run.message == run.message
    return run


def nan_at_once(t, u, params):
    return (-u[0], math.nan * u[1])


def nan_from_one_half(t, u, params):
    return (-u[0], ol.maths.where(t > 0.5, math.nan, -1.0) * u[1])


def infinite_from_one_half(t, u, params):
    return (-u[0], ol.maths.where(t > 0.5, math.inf, -1.0) * u[1])


def square_root(t, u, params):
    """u1 reaches zero at t = 1/2, and there is no root of what lies below."""
    return (-u[0], -2.0 - 0.0 * ol.maths.sqrt(u[1]))


def by_pythons_root(t, u, params):
    return (-u[0], -2.0 - 0.0 * math.sqrt(u[1]))


def blow_up(t, u, params):
    return (-u[0], u[1] * u[1])


def start(rhs, span=(0.0, 2.0)):
    return ol.Problem(rhs, [1.0, 1.0], span)


@every_method
def test_nan_at_once(method):
    run = soon_over(start(nan_at_once), method)
    assert run.status == "not_finite"
    assert "returned nan in component 1 at t = 0;" in run.message
    assert "guard it inside the function" in run.message
    assert (run.steps, run.u.tolist()) == (0, [[1.0, 1.0]])


@every_method
@pytest.mark.parametrize(("rhs", "what"), [(nan_from_one_half, "nan"), (infinite_from_one_half, "inf")])
@pytest.mark.parametrize("span", [(0.0, 2.0), (-1.0, 2.0)])
def test_nan_or_infinity_on_the_way(method, rhs, what, span):
    run = soon_over(start(rhs, span), method)
    assert run.status == "not_finite"
    latest = "[5-7]" if method is ol.LSODA else "5"
    assert re.match(rf"the right-hand side returned {what} in component 1 at t = 0\.{latest}", run.message)
    assert "guard it inside the function" in run.message
    assert "end the run with an event, or `t_span`, before" in run.message
    assert 0.3 < run.t[-1] <= 0.55
    assert np.isfinite(run.u).all()


@every_method
@pytest.mark.parametrize(
    ("rhs", "did"),
    [
        (square_root, "returned nan in component 1"),
        (by_pythons_root, r"raised ValueError \((math domain|expected a non).*\)"),
    ],
)
def test_the_end_of_the_domain(method, rhs, did):
    run = soon_over(start(rhs), method)
    assert run.status == "not_finite"
    assert re.match(rf"the right-hand side {did} at t = 0\.[45]", run.message)
    assert run.t[-1] == pytest.approx(0.5, abs=0.1)
    assert run.u[-1, 1] >= 0.0


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.RADAU], **NAMED)
def test_a_step_out_of_the_domain_may_be_tried_smaller(method):
    """A first step of 1 goes far below zero, where there is no logarithm."""

    def towards_one(t, u, params):
        return (-20.0 * math.log(u[0]) * u[0] + 0.0 * math.sqrt(u[0]),)

    run = soon_over(ol.Problem(towards_one, [5.0], (0.0, 2.0)), method, ol.adaptive(1e-4, 1e-6, first_step=1.0))
    assert run.ok
    assert run.u[-1, 0] == pytest.approx(1.0, abs=1e-3)


@every_method
def test_blow_up_in_finite_time(method):
    run = soon_over(start(blow_up), method)
    assert run.status == "blow_up"
    assert "the solution blows up near t = 1.0000" in run.message or "near t = 0.9999" in run.message
    assert "component 1 has reached" in run.message
    assert "end `t_span` before" in run.message
    assert run.t[-1] == pytest.approx(1.0, abs=1e-4)
    assert np.isfinite(run.u).all()


@pytest.mark.parametrize(
    ("rhs", "status"),
    [
        (nan_at_once, "not_finite"),
        (nan_from_one_half, "not_finite"),
        (by_pythons_root, "not_finite"),
        (blow_up, "blow_up"),
    ],
)
def test_fixed_steps_fail_alike(rhs, status):
    run = soon_over(start(rhs), ol.RK4, ol.fixed(0.01))
    assert run.status == status
    assert "component 1" in run.message or "raised ValueError" in run.message
    assert np.isfinite(run.u).all()
    if rhs is not nan_at_once:
        assert run.steps > 40


def test_a_division_by_zero_is_named_where_it_happens():
    run = soon_over(ol.Problem(lambda t, u, p: (1.0 / (t - 0.5),), [0.0], (0.0, 1.0)), ol.RK4, ol.fixed(0.125))
    assert run.status == "not_finite"
    assert "the right-hand side raised ZeroDivisionError (float division by zero) at t = 0.5;" in run.message
    assert run.t[-1] == 0.375


def test_an_unstable_fixed_step_overflows():
    run = soon_over(ol.problems.stiff_linear(), ol.EULER, ol.fixed(0.0025))
    assert run.ok
    run = soon_over(ol.problems.stiff_linear().replace(t_span=(0.0, 10.0)), ol.EULER, ol.fixed(0.0025))
    assert run.status == "blow_up"
    assert "the fixed step is" in run.message
    assert "beyond the stability limit" in run.message
    assert "take smaller steps or an adaptive controller" in run.message


@pytest.mark.parametrize("rhs", [nan_from_one_half, blow_up])
def test_compiled_runs_fail_alike(rhs):
    ol.solve(start(rhs), ol.DOPRI5, TOLERANCE, engine="compiled", throw=False)  # compiles
    compiled = soon_over(start(rhs), engine="compiled")
    plain = soon_over(start(rhs))
    assert compiled.engine == "compiled"
    assert compiled.status == plain.status
    assert compiled.message[:40] == plain.message[:40]
    assert compiled.step_t[-1] == pytest.approx(plain.step_t[-1], rel=1e-12)
    # The error of a step below 1e-5 is rounding, and so is what it makes of the next step: nearer to the edge than this
    # the last bits decide how many steps there still are.
    far = [np.count_nonzero(run.h > 1e-5) for run in (compiled, plain)]
    assert far[0] == far[1]
    assert far[0] > 15


def later(answer):
    """A right-hand side that is sound until t = 0.5."""
    return lambda t, u, params: answer(u) if t > 0.5 else -u


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (lambda u: np.ones(3), "shape (3,) for a state of shape (2,)"),
        (lambda u: np.ones((2, 1)), "shape (2, 1) for a state of shape (2,)"),
        (lambda u: None, "None"),
        (lambda u: 1j * u, "dtype complex128"),
    ],
)
@every_method
def test_a_wrong_answer_from_the_right_hand_side(method, answer, word):
    run = soon_over(ol.Problem(later(answer), [1.0, 2.0], (0.0, 1.0)), method)
    assert run.status == "wrong_shape"
    assert f"the right-hand side returned {word} at t = 0.5" in run.message
    assert "one real slope per component" in run.message
    assert 0.2 < run.t[-1] <= 0.6


def test_a_wrong_answer_before_the_first_step():
    problem = ol.Problem(lambda t, u, params: np.ones(1) if t > 0.0 else -u, [1.0, 2.0], (0.0, 1.0))
    run = soon_over(problem)
    assert run.status == "wrong_shape"
    assert (run.steps, run.t.tolist()) == (0, [0.0])
    assert run.slope.shape == (0, 2)
    np.testing.assert_array_equal(run(0.0), [1.0, 2.0])


def shrinking(t, u, params):
    return np.ones(1) if t > 0.5 else -u


@pytest.mark.slow
@needs_numba
def test_a_wrong_answer_in_compiled_code():
    problem = ol.Problem(shrinking, [1.0, 2.0], (0.0, 1.0))
    steps = ol.fixed(0.125)
    ol.solve(problem, ol.EULER, steps, engine="compiled", throw=False)
    run = soon_over(problem, ol.EULER, steps, engine="compiled")
    assert run.status == "wrong_shape"
    assert "the right-hand side returned another number of slopes than the state has components" in run.message
    assert run.t[-1] == 0.625


def root_of_what_is_left(u):
    return u + 0.0 * np.sqrt(u - 1.0)


@pytest.mark.parametrize(("method", "controller"), [(ol.DOPRI5, None), (ol.RODAS4, None), (ol.EULER, ol.fixed(0.01))])
def test_a_projection_without_a_finite_value_is_named(method, controller):
    problem = ol.Problem(lambda t, u, params: (-u[0],), [2.0], (0.0, 2.0))
    run = ol.solve(problem, method, controller, project=root_of_what_is_left, engine="python", throw=False)
    assert run.status == "not_finite"
    assert run.t[-1] == pytest.approx(np.log(2.0), abs=0.02)
    assert "`project` returned nan in component 0" in run.message


def test_the_step_budget():
    run = soon_over(CIRCLE, max_steps=7)
    assert run.status == "max_steps"
    assert run.message.startswith("max_steps = 7 spent at t = ")
    assert "raise max_steps, loosen the tolerance, or shorten `t_span`" in run.message
    assert run.steps + run.rejected == 7
    run = soon_over(CIRCLE, ol.RK4, ol.fixed(0.01), max_steps=7)
    assert run.message == "max_steps = 7 spent at t = 0.07; raise max_steps, take larger steps, or shorten `t_span`"
    run = soon_over(CIRCLE, ol.RADAU, max_steps=7)
    assert (run.status, run.steps) == ("max_steps", 7)


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.DOP853, ol.RODAS4, ol.RODAS5P, ol.AUTO], **NAMED)
def test_chattering_is_named(method):
    sliding = ol.Problem(lambda t, u, params: (0.0 * u[0] + 1.0, -ol.maths.sign(u[1])), [0.0, 1.05], (0.0, 3.0))
    run = soon_over(sliding, method, ol.adaptive(1e-6, 1e-8), max_steps=1500)
    assert run.status == "max_steps"
    assert "the slope of component 1 changes its sign from step to step" in run.message
    assert "Replace the jump by a steep smooth function" in run.message


@pytest.mark.parametrize("method", [ol.DOPRI5, ol.DOP853, ol.RODAS4], **NAMED)
@pytest.mark.parametrize("rtol", [1e-2, 1e-6])
def test_an_oscillation_is_no_chattering(method, rtol):
    run = soon_over(CIRCLE.replace(t_span=(0.0, 1e6)), method, ol.adaptive(rtol, 1e-3 * rtol), max_steps=1500)
    assert run.status == "max_steps"
    assert "changes its sign" not in run.message


def test_a_budget_that_is_just_enough():
    needed = ol.solve(PENDULUM, ol.DOPRI5, TOLERANCE, engine="python")
    attempts = needed.steps + needed.rejected
    assert soon_over(PENDULUM, max_steps=attempts).ok
    assert not soon_over(PENDULUM, max_steps=attempts - 1).ok


def test_a_step_below_the_spacing_of_time():
    run = soon_over(CIRCLE.replace(t_span=(1e16, 1e16 + 100.0)), ol.RK4, ol.fixed(0.5))
    assert run.status == "step_too_small"
    assert "the step fell below the spacing of t, 2, at t = 10000000000000000" in run.message
    singular = ol.Problem(lambda t, u, params: (1.0 / ol.maths.abs(t - 0.7),), [0.0], (0.0, 1.0))
    run = soon_over(singular)
    assert run.status == "step_too_small"
    assert "at t = 0.69999" in run.message
    for remedy in ("`rtol` and `atol`", "as an event", "end `t_span` before"):
        assert remedy in run.message


def test_a_failed_run_raises_and_keeps_what_it_has():
    with pytest.raises(
        ol.RunFailed, match=r"blow_up: the solution blows up near t = .*sign of the right-hand side\.$"
    ) as raised:
        ol.solve(start(blow_up), ol.DOPRI5, TOLERANCE)
    run = raised.value.trajectory
    assert run.t[-1] == pytest.approx(1.0, abs=1e-4)
    assert not run.ok
    assert "blow_up: the solution" in str(run)
    t = np.linspace(0.0, 0.99, 12)
    np.testing.assert_allclose(run(t)[:, 1], 1.0 / (1.0 - t), rtol=1e-3)


def test_t_eval_of_a_failed_run_is_cut():
    run = soon_over(start(blow_up), t_eval=np.linspace(0.0, 2.0, 21))
    np.testing.assert_allclose(run.t, np.linspace(0.0, 0.9, 10) if len(run.t) == 10 else np.linspace(0.0, 1.0, 11))


@pytest.mark.parametrize("method", [ol.RADAU, ol.BDF, ol.LSODA], **NAMED)
def test_an_implicit_method_that_gives_up(method):
    run = soon_over(ol.Problem(lambda t, u, p: (1.0 / abs(t - 0.5),), [0.0], (0.0, 1.0)), method)
    assert run.status == "solver_failed"
    assert f"{method.name} gave up at t = 0.5: " in run.message or f"{method.name} gave up at t = 0.4999" in run.message
    assert "loosen the tolerance, check the Jacobian, or end `t_span` before" in run.message


def test_a_jacobian_that_is_not_finite_is_not_blamed_on_the_right_hand_side():
    problem = ol.Problem(lambda t, u, p: (-u[0],), [1.0], (0.0, 1.0), jacobian=lambda t, u, p: np.full((1, 1), np.nan))
    with pytest.raises(ValueError, match="infs or NaNs"):
        ol.solve(problem, ol.RADAU, TOLERANCE)


def test_the_advice_for_a_solution_that_reaches_the_edge_of_its_domain_works():
    """`project` sees states and not stages, and cannot help; a guard inside the function can, and so can an event."""

    def draining(t, u, params):
        return (-ol.maths.sqrt(u[0]),)

    def guarded(t, u, params):
        return (-ol.maths.sqrt(max(u[0], 0.0)),)

    drained = ol.Problem(draining, [1.0], (0.0, 5.0))
    for project in (None, lambda u: np.maximum(u, 0.0)):
        run = ol.solve(drained, ol.DOPRI5, TOLERANCE, project=project, throw=False)
        assert "guard it inside the function, as in sqrt(max(u, 0))" in run.message
        assert "project" not in run.message
    whole = ol.solve(drained.replace(rhs=guarded), ol.DOPRI5, TOLERANCE)
    assert abs(whole.end_u[0]) < 1e-6
    empty = ol.Event(lambda t, u, params: u[0] - 1e-6, terminal=True)
    assert ol.solve(drained, ol.DOPRI5, TOLERANCE, events=empty).status == "event"
