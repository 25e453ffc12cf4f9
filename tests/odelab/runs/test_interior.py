"""States inside linearly implicit steps: what is said of their errors is true, and said only where it matters."""

import numpy as np
import pytest

import odelab as ol
from odelab.runs.interior import interior_error, interior_errors
from tests.odelab.solver_cases import NAMED


def following(t, u, params):
    """A stiff component that follows a sine: the error at the ends of steps is divided by its rate."""
    return (-params[0] * (u[0] - ol.maths.sin(t)) + ol.maths.cos(t),)


FOLLOWING = ol.Problem(following, [0.0], (0.0, 100.0), (1e6,))
TIMES = np.linspace(0.0, 100.0, 2001)


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P, ol.AUTO], **NAMED)
def test_a_run_whose_steps_hold_whole_oscillations_says_so(method):
    sol = ol.solve(FOLLOWING, method, ol.adaptive(1e-6, 1e-7), engine="python")
    assert np.abs(sol.step_u[:, 0] - np.sin(sol.step_t)).max() < 1e-6
    assert np.abs(sol(TIMES)[:, 0] - np.sin(TIMES)).max() > 1e-2
    assert interior_error(sol).ratio > 1e4
    assert "inside its steps states are less exact than at their ends" in sol.message
    assert 'give `t_eval_by="step"` or a `max_step`' in str(sol)
    short = ol.solve(FOLLOWING, method, ol.adaptive(1e-6, 1e-7, max_step=0.05), engine="python")
    assert np.abs(short(TIMES)[:, 0] - np.sin(TIMES)).max() < 1e-5
    assert "inside" not in short.message


@pytest.mark.parametrize("name", ["robertson", "oregonator", "hires", "curtiss_hirschfelder", "flame"])
def test_where_it_does_not_matter_nothing_is_said(name):
    problem = getattr(ol.problems, name)()
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-5, 1e-11), engine="python")
    assert interior_error(sol).ratio < 50.0
    assert sol.message == f"reached t = {problem.t_span[1]:g} in {sol.steps} steps"


def test_the_middle_is_not_the_only_place():
    """The error of the last step is 40 times the tolerance in its middle, and 1,100 times elsewhere."""

    def pulled(t, u, params):
        return (-1e4 * (u[0] - ol.maths.cos(t)),)

    sol = ol.solve(ol.Problem(pulled, [0.0], (0.0, 3.0)), ol.RODAS4, ol.adaptive(1e-6), engine="python")
    inside = np.linspace(*sol.step_t[-2:], 50)
    actual = np.abs(sol(inside)[:, 0] - np.cos(inside) - 1e-4 * np.sin(inside)).max() / 1e-6
    assert 0.3 * actual < interior_error(sol).ratio < 3.0 * actual
    assert actual > 500.0


def test_it_is_of_the_size_of_the_error():
    problem = ol.problems.van_der_pol(mu=20.0).replace(t_span=(0.0, 10.0))
    sol = ol.solve(problem, ol.RODAS4, ol.adaptive(1e-6, 1e-6, max_step=1.0), engine="python")
    fine = ol.solve(problem, ol.RODAS5P, ol.adaptive(1e-10, 1e-12), engine="python")
    longest = np.argsort(sol.h)[-12:]
    inside = np.concatenate([sol.step_t[longest] + theta * sol.h[longest] for theta in (0.25, 0.5, 0.75)])
    actual = (np.abs(sol(inside) - fine(inside)) / (1e-6 + 1e-6 * np.abs(fine(inside)))).max()
    assert 0.1 * actual < interior_error(sol).ratio < 10.0 * actual


def test_runs_that_have_no_such_steps():
    for sol in (
        ol.solve(ol.problems.lorenz().replace(t_span=(0.0, 1.0)), ol.DOPRI5),
        ol.solve(ol.problems.lorenz().replace(t_span=(0.0, 1.0)), ol.AUTO, engine="python"),
        ol.solve(FOLLOWING.replace(t_span=(0.0, 1.0)), ol.RODAS4, ol.fixed(0.1)),
        ol.solve(FOLLOWING, ol.RODAS4, dense=False, engine="python"),
    ):
        assert interior_error(sol) is None
        assert "inside" not in sol.message


@pytest.mark.slow
@pytest.mark.parametrize("method", [ol.RODAS4, ol.RODAS5P, ol.ESDIRK43], **NAMED)
@pytest.mark.parametrize("name", ["robertson", "hires", "van_der_pol"])
def test_the_compiled_look_inside_steps_is_that_of_plain_python(name, method):
    problem, control = getattr(ol.problems, name)(), ol.adaptive(1e-5, 1e-9)
    sol = ol.solve(problem, method, control, engine="compiled", events=lambda t, u, params: u[0] + 100.0)
    dense, steps = sol.interpolant, np.arange(sol.steps)
    assert dense.look_inside is not None
    compiled = interior_errors(dense, control, steps)
    dense.look_inside = None
    plain = interior_errors(dense, control, steps)
    np.testing.assert_allclose(compiled[0], plain[0], rtol=1e-4, atol=1e-4)
