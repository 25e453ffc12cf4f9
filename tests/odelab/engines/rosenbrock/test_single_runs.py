"""Kernels of linearly implicit methods equal plain Python, and ask it for pivots where theirs fail."""

import numpy as np
import pytest

import odelab as ol
from tests.odelab.engines.rosenbrock.stiff_cases import (
    FORCED,
    ROBERTSON,
    TURNING,
    VAN_DER_POL,
    assert_same_grid,
    assert_same_work,
    both,
)

slow = pytest.mark.slow
METHODS = [ol.RODAS4, pytest.param(ol.ROS2, marks=slow), pytest.param(ol.RODAS5P, marks=slow)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize(
    ("problem", "h"),
    [
        pytest.param(FORCED, 0.02, id="forced"),
        pytest.param(VAN_DER_POL, 0.02, id="van_der_pol", marks=slow),
        # longer steps than these through the initial layer blow Robertson's problem up, in every engine
        pytest.param(ROBERTSON.replace(t_span=(0.0, 0.4)), 1e-3, id="robertson", marks=slow),
    ],
)
def test_on_one_grid_they_differ_by_rounding(problem, h, method):
    assert_same_grid(*both(problem, method, ol.fixed(h)))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize(
    "problem", [VAN_DER_POL, pytest.param(FORCED, marks=slow), pytest.param(ROBERTSON, marks=slow)]
)
def test_adaptive_runs_take_the_same_steps(problem, method):
    kernel, plain = both(problem, method, ol.adaptive(1e-5, 1e-8))
    assert_same_work(kernel, plain)
    assert plain.rejected > 0 or problem is not VAN_DER_POL or method is ol.ROS2
    # Times agree to 1e-6, but for what they inherit: an estimate that cancels almost to zero has few digits in either
    # engine, and the law of sizes hands its relative difference on to the steps after it.
    differ = np.abs(kernel.error - plain.error) / np.maximum(plain.error, 1e-300)
    allowed = (1e-6 + np.maximum.accumulate(differ)) * plain.step_t[1:]
    assert (np.abs(kernel.step_t - plain.step_t)[1:] <= allowed).all()
    np.testing.assert_allclose(kernel.error, plain.error, rtol=1e-3, atol=1e-3)


@slow
@pytest.mark.parametrize("law", ol.LAWS)
def test_every_law(law):
    kernel, plain = both(VAN_DER_POL, ol.RODAS4, ol.adaptive(1e-5, [1e-8, 1e-7], law))
    assert_same_work(kernel, plain)


def test_times_events_projections_and_states_between_are_plain_pythons():
    """`t_eval` and events look between the steps; a projection is applied to every new state."""
    asked = np.linspace(0.0, 3.0, 7)

    def crossing(t, u, params):
        return u[1] - 0.6

    def rounded(u):
        return np.maximum(u, 0.1)

    options = {"t_eval": asked, "events": ol.Event(crossing, terminal=False), "project": rounded}
    kernel, plain = both(FORCED, ol.RODAS4, ol.fixed(0.02), **options)
    assert_same_grid(kernel, plain)
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-11)
    np.testing.assert_allclose(kernel.events[0].t, plain.events[0].t, rtol=1e-11)
    assert kernel.step_u.min() == 0.1


def test_a_pivot_that_is_zero_is_handed_to_pivoted_factors():
    kernel, plain = both(TURNING, ol.RODAS4, ol.fixed(0.5))
    assert (kernel.status, kernel.steps) == ("ok", plain.steps)
    np.testing.assert_allclose(kernel.step_u, plain.step_u, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel.sai, plain.sai, rtol=1e-12)


@slow
def test_a_pivot_that_is_zero_by_accident_is_a_rejected_attempt():
    kernel, plain = both(TURNING, ol.RODAS4, ol.adaptive(1e-3, 1e-3, first_step=0.5))
    assert kernel.ok
    assert kernel.rejected > 0
    np.testing.assert_allclose(kernel.end_u, plain.end_u, atol=0.02)


def test_a_derivative_that_is_infinite_ends_the_run_in_the_same_words():
    root = ol.Problem(lambda t, u, params: (ol.maths.sqrt(u[0]) + 0.0 * u[1], -u[1]), [0.0, 1.0], (0.0, 1.0))
    kernel, plain = both(root, ol.RODAS4, ol.adaptive(1e-5, 1e-8))
    assert kernel.status == plain.status == "not_finite"
    assert kernel.message.split(":")[:1] == plain.message.split(":")[:1]
    assert "Jacobian" in kernel.message


def listed(t, u, params):
    held = np.array([u[0], -u[1]])
    return (held[1], -100.0 * held[0] - held.sum())


@pytest.mark.parametrize(
    "problem",
    [
        ol.Problem(listed, [1.0, 0.0], (0.0, 0.1)),
        ol.Problem(lambda t, u, params: -u, [1.0], (0.0, 1.0)),
        ol.Problem(lambda t, u, params: (-params["rate"] * u[0],), [1.0], (0.0, 1.0), {"rate": 2.0}),
    ],
)
def test_arrays_and_parameters_of_any_form_are_differentiated(problem):
    kernel, plain = both(problem, ol.RODAS4, ol.fixed(0.01))
    assert (kernel.engine, kernel.steps, kernel.evaluations) == ("compiled", plain.steps, plain.evaluations)
    np.testing.assert_allclose(kernel.u, plain.u, rtol=1e-10)


def test_what_has_no_kernel_is_said():
    problem = ol.Problem(lambda t, u, params: (-float(str(u[0])),), [1.0], (0.0, 1.0))
    with pytest.raises(ol.NotCompilable, match=r"line \d+ of test_single_runs.py asks for the value of a number"):
        ol.solve(problem, ol.RODAS4, ol.fixed(0.1), engine="compiled")


@slow
@pytest.mark.parametrize("name", ["oregonator", "e5", "hires", "pollu"])
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P], ids=lambda method: method.name)
def test_the_references_of_the_catalogue(name, method):
    problem = getattr(ol.problems, name)()
    known = problem.references[0]
    atol = {"e5": 1e-24, "oregonator": 1e-9}.get(name, 1e-12)
    end = ol.solve(problem.replace(t_span=(0.0, known.t)), method, ol.adaptive(1e-7, atol), engine="compiled").end_u
    np.testing.assert_allclose(end, known.u, rtol=1e-4)


@slow
def test_robertsons_mass_is_kept_over_eleven_decades():
    run = ol.solve(ROBERTSON.replace(t_span=(0.0, 1e11)), ol.RODAS4, ol.adaptive(1e-6, 1e-12), engine="compiled")
    assert np.abs(run.u.sum(axis=1) - 1.0).max() < 1e-12
    assert (run.u >= 0.0).all()


def test_a_wrong_jacobian_has_no_part_in_a_compiled_run():
    """Neither in its steps, nor in what repeats them: states between them, events, steps with pivots."""
    wrong = VAN_DER_POL.replace(jacobian=lambda t, u, params: np.zeros((2, 2)))
    options = {"engine": "compiled", "events": ol.Event(lambda t, u, params: u[0] - 1.9)}
    own, derived = (ol.solve(one, ol.RODAS4, **options) for one in (wrong, VAN_DER_POL.replace(jacobian=None)))
    between = np.linspace(0.0, 30.0, 200)
    np.testing.assert_array_equal(own(between), derived(between))
    np.testing.assert_array_equal(own.events[0].t, derived.events[0].t)
    assert own.problem is wrong
    few = ol.solve(wrong, ol.RODAS4, engine="compiled", t_eval=between, dense=False)
    np.testing.assert_array_equal(few.u, derived(between))
