"""Runs of RKC2: slopes, dense output, events, engines, and honest words where it is out of place."""

import numpy as np
import pytest

import odelab as ol
from tests.odelab.engines.numba.rkc_cases import METHOD, PARABOLIC, spiral
from tests.odelab.solver_cases import CIRCLE


def test_slopes_steps_and_dense_output():
    problem = ol.problems.heat_1d_wave(n=30)
    run = ol.solve(problem, METHOD, ol.adaptive(1e-6, 1e-9), engine="python")
    np.testing.assert_allclose(run.slope, np.diff(run.u, axis=0) / run.h[:, None], rtol=1e-9, atol=1e-9)
    assert np.shape(ol.sai(run)) == (run.steps,)
    middle = 0.5 * (run.t[1:] + run.t[:-1])
    np.testing.assert_array_equal(run(run.t), run.u)
    ends = np.abs(run.u - problem.exact(run.t, problem.params)).max()
    inside = np.abs(run(middle) - problem.exact(middle, problem.params)).max()
    assert inside <= 1.5 * ends
    step = 1e-6 * run.h[5]
    rate = (run(run.t[5] + step) - run(run.t[5] - step)) / (2.0 * step)
    np.testing.assert_allclose(rate, problem.slope(run.t[5], run.u[5]), rtol=1e-5, atol=1e-5)


def test_the_cubic_has_order_three_between_exact_ends():
    sizes, errors = np.array([0.4, 0.2, 0.1]), []
    for h in sizes:
        t = np.array([0.3, 0.3 + h])
        states = CIRCLE.exact(t, ())
        between = ol.solve(CIRCLE.replace(t_span=(0.3, 0.3 + h), u0=states[0]), METHOD, ol.fixed(h)).interpolant
        object.__setattr__(between, "u", states)
        errors.append(np.abs(between(0.3 + 0.5 * h) - CIRCLE.exact(0.3 + 0.5 * h, ())).max())
    np.testing.assert_allclose(np.diff(np.log(errors)) / np.diff(np.log(sizes)), 4.0, atol=0.2)


def test_events_end_a_run_and_keep_its_slopes():
    problem = ol.problems.heat_1d(n=20)

    def cooled(t, u, params):
        return u.max() - 0.5

    run = ol.solve(problem, METHOD, ol.adaptive(1e-6, 1e-9), events=ol.Event(cooled, terminal=True))
    assert run.status == "event"
    assert abs(run.u[-1].max() - 0.5) < 1e-9
    np.testing.assert_allclose(run.slope, np.diff(run.u, axis=0) / run.h[:, None], rtol=1e-8, atol=1e-8)
    late = run.t[-1] - 0.3 * run.h[-1]
    np.testing.assert_allclose(run(late), problem.exact(late, problem.params), rtol=1e-4)


def test_backwards_projected_and_at_requested_times():
    growth = ol.problems.heat_1d(n=20, diffusivity=-1.0).replace(t_span=(0.0, -0.05))
    run = ol.solve(growth, METHOD, ol.adaptive(1e-5, 1e-8), t_eval=[0.0, -0.02, -0.05])
    exact = ol.problems.heat_1d(n=20).exact(np.array([0.0, 0.02, 0.05]), (1.0,))
    np.testing.assert_allclose(run.u, exact, rtol=1e-3, atol=1e-5)
    kept = ol.solve(ol.problems.heat_1d(n=20), METHOD, ol.adaptive(1e-4, 1e-7), project=lambda u: np.maximum(u, 0.2))
    assert kept.u[1:].min() == 0.2


@pytest.mark.slow
def test_compiled_code_takes_the_same_steps():
    problem, controller = PARABOLIC["heat_1d_wave"], ol.adaptive(1e-4, 1e-7)
    plain = ol.solve(problem, METHOD, controller, engine="python")
    compiled = ol.solve(problem, METHOD, controller, engine="compiled")
    assert (compiled.steps, compiled.rejected, compiled.evaluations) == (plain.steps, plain.rejected, plain.evaluations)
    np.testing.assert_allclose(compiled.t, plain.t, rtol=1e-6)
    np.testing.assert_allclose(compiled.u[-1], plain.u[-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("decay", "frequency", "words"),
    [
        (1e3, 1e3, "use an implicit method"),
        (1e3, 176.0, "use an implicit method"),
        (100.0, 1e3, "use odelab.DOPRI5 or odelab.DOP853"),
    ],
)
def test_beside_the_strip_it_says_so(decay, frequency, words):
    run = ol.solve(spiral(decay, frequency), METHOD, ol.adaptive(1e-3, 1e-6), engine="python")
    with np.errstate(all="raise", under="ignore"):
        assert "held back by stability" in run.message
    assert "lie beside the narrow strip along the negative real axis where RKC2 is stable" in run.message
    assert words in run.message


def test_on_the_imaginary_axis_the_budget_ends_with_the_remedy():
    controller = ol.adaptive(1e-4, 1e-7)
    run = ol.solve(spiral(0.0, 1e4), METHOD, controller, engine="python", max_steps=2000, throw=False)
    assert run.status == "max_steps"
    assert "its leading eigenvalues, " in run.message
    assert "odelab.DOPRI5 or odelab.DOP853" in run.message


@pytest.mark.parametrize(
    "problem", [*PARABOLIC.values(), spiral(1e3, 0.0), spiral(1e3, 50.0), ol.problems.prothero_robinson()]
)
@pytest.mark.parametrize("rtol", [1e-3, 1e-5])
def test_on_the_axis_it_does_not(problem, rtol):
    run = ol.solve(problem, METHOD, ol.adaptive(rtol, 1e-3 * rtol), engine="python")
    assert run.message == f"reached t = {problem.t_span[1]:g} in {run.steps} steps"


def test_a_complex_pair_that_is_damped_holds_nothing_back():
    run = ol.solve(spiral(1e3, 364.0), METHOD, ol.adaptive(1e-6, 1e-9), engine="python")
    assert run.message == f"reached t = 1 in {run.steps} steps"


def test_a_radius_given_too_small_is_named():
    run = ol.solve(ol.problems.heat_1d(), ol.rkc2(1e3), ol.adaptive(1e-3, 1e-6), engine="python")
    assert "the spectral radius given, 1e+03, is below the one found, 4.0" in run.message
    assert "held back by stability" in run.message


def test_other_methods_recommend_it_where_the_spectrum_is_real_and_only_there():
    controller = ol.adaptive(1e-4, 1e-7)
    real = ol.solve(ol.problems.heat_1d(n=40).replace(t_span=(0.0, 0.02)), ol.DOPRI5, controller).message
    assert "odelab.RKC2" in real
    assert "odelab.RODAS4" in real
    turning = ol.solve(spiral(1e3, 1e3), ol.DOPRI5, controller).message
    assert "odelab.RKC2" not in turning
    assert "odelab.RODAS4" in turning
    spent = ol.solve(ol.problems.heat_1d(), ol.BS32, controller, max_steps=100, throw=False)
    assert "use odelab.RKC2" in spent.message
    assert spent.message.endswith("or raise max_steps")


def test_failures_have_their_names():
    def undefined(t, u, params):
        return (-u[0] if t < 0.5 else float("nan"),)

    def exploding(t, u, params):
        return (u[0] * u[0],)

    controller = ol.adaptive(1e-4, 1e-7)
    lost = ol.solve(ol.Problem(undefined, [1.0], (0.0, 1.0)), METHOD, controller, engine="python", throw=False)
    assert lost.status == "not_finite"
    assert "returned nan in component 0 at t = 0.5" in lost.message
    blown = ol.solve(ol.Problem(exploding, [1.0], (0.0, 2.0)), METHOD, controller, engine="python", throw=False)
    assert blown.status == "blow_up"
