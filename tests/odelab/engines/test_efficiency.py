"""Work at equal error: DOPRI5 beside SciPy's RK45, the same pair of formulas."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odelab as ol

problems = ol.problems
TOLERANCES = 10.0 ** -np.arange(3.0, 9.6, 0.5)
PROBLEMS = {
    "van_der_pol": problems.van_der_pol(5.0),
    "brusselator": problems.brusselator(),
    "lorenz": problems.lorenz(),
    "rigid_body": problems.rigid_body(),
    "arenstorf": problems.arenstorf(),
    "hires": problems.hires().replace(t_span=(0.0, 5.0)),
}


def end_of(problem):
    return next(reference.u for reference in problem.references if reference.t == problem.t_span[1])


def scipys(problem):
    """log error and log evaluations at every tolerance."""
    runs = [
        solve_ivp(problem.slope, problem.t_span, problem.u0, method="RK45", rtol=tol, atol=1e-3 * tol)
        for tol in TOLERANCES
    ]
    errors = [np.linalg.norm(run.y[:, -1] - end_of(problem)) for run in runs]
    return np.log(errors), np.log([run.nfev for run in runs])


def ours(problem, law):
    runs = [ol.solve(problem, ol.DOPRI5, ol.adaptive(tol, 1e-3 * tol, law), engine="python") for tol in TOLERANCES]
    errors = [np.linalg.norm(run.u[-1] - end_of(problem)) for run in runs]
    return np.log(errors), np.log([run.evaluations for run in runs])


def overhead(mine, theirs):
    """Our work over theirs at equal errors: errors scatter from one tolerance to the next, so smooth curves compare."""
    curves = [np.polynomial.Polynomial.fit(errors, work, 2) for errors, work in (mine, theirs)]
    least = max(mine[0].min(), theirs[0].min())
    most = min(mine[0].max(), theirs[0].max())
    errors = np.linspace(least, most, 60)
    return np.exp(curves[0](errors) - curves[1](errors))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_dopri5_needs_no_more_evaluations_than_scipys_rk45(name):
    theirs = scipys(PROBLEMS[name])
    elementary = ours(PROBLEMS[name], "i")  # SciPy's own law
    assert (np.exp(elementary[1] - theirs[1]) <= 1.01).all()
    assert overhead(elementary, theirs).max() <= 1.01
    default = ours(PROBLEMS[name], "pi")
    assert np.exp(np.log(overhead(default, theirs)).mean()) <= 1.1


def test_the_elementary_law_takes_scipys_steps():
    problem = PROBLEMS["lorenz"]
    theirs = solve_ivp(problem.slope, problem.t_span, problem.u0, method="RK45", rtol=1e-6, atol=1e-9)
    mine = ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-6, 1e-9, "i"), engine="python")
    np.testing.assert_allclose(mine.t[:50], theirs.t[:50], rtol=1e-9)
    assert mine.evaluations == theirs.nfev


@pytest.mark.parametrize(("method", "factor"), [(ol.BS32, 1.0), (ol.DOP853, 1.0)], ids=["BS32", "DOP853"])
def test_other_pairs_beside_scipys(method, factor):
    problem = PROBLEMS["brusselator"]
    name = {"BS32": "RK23", "DOP853": "DOP853"}[method.name]
    for tol in (1e-4, 1e-6):
        theirs = solve_ivp(problem.slope, problem.t_span, problem.u0, method=name, rtol=tol, atol=1e-3 * tol)
        mine = ol.solve(problem, method, ol.adaptive(tol, 1e-3 * tol, "i"), engine="python")
        assert mine.evaluations <= 1.01 * factor * theirs.nfev


def test_an_event_costs_no_evaluation_of_the_run():
    problem = PROBLEMS["brusselator"]
    plain = ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), engine="python")
    watched = ol.solve(problem, ol.DOPRI5, ol.adaptive(1e-6, 1e-9), events=lambda t, u, p: u[0] - 1.0, engine="python")
    assert watched.evaluations == plain.evaluations
    assert len(watched.events[0].t) > 3
