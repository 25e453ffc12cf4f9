"""Reference values keep the invariants, lie on the exact solutions, and are reached by SciPy's solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from odelab import problems

PROBLEMS = {name: factory() for name, factory in problems.catalogue().items()}
PROBLEMS["van_der_pol 1000"] = problems.van_der_pol(mu=1000.0)
CASES = [(name, i) for name, problem in PROBLEMS.items() for i in range(len(problem.references))]
STIFF = ["robertson", "oregonator", "hires", "pollu", "van_der_pol 1000", "stiff_linear", "prothero_robinson"]
NON_STIFF = ["van_der_pol", "brusselator", "lorenz", "rigid_body", "arenstorf", "pleiades"]


@pytest.mark.parametrize(("name", "i"), CASES)
def test_references_fit_their_problem(name, i):
    problem, reference = PROBLEMS[name], PROBLEMS[name].references[i]
    assert reference.u.shape == problem.u0.shape
    assert reference.u.dtype == np.float64
    assert np.isfinite(reference.u).all()
    assert 10.0 < reference.digits < 16.0
    assert reference.t > 0.0
    assert "binary128" in reference.source


def test_every_problem_of_the_reference_set_has_its_values():
    counts = {name: len(problem.references) for name, problem in PROBLEMS.items() if problem.references}
    assert counts == {
        "stiff_linear": 2,
        "prothero_robinson": 1,
        "van_der_pol": 2,
        "van_der_pol 1000": 2,
        "robertson": 4,
        "oregonator": 2,
        "hires": 3,
        "e5": 7,
        "pollu": 2,
        "brusselator": 1,
        "lorenz": 1,
        "rigid_body": 1,
        "arenstorf": 1,
        "pleiades": 1,
    }


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
def test_the_default_span_ends_at_a_reference(name):
    problem = PROBLEMS[name]
    assert problem.t_span[0] == 0.0
    assert problem.t_span[1] in [reference.t for reference in problem.references]


def test_other_parameters_have_no_references():
    changed = (
        problems.robertson(k1=0.05),
        problems.van_der_pol(mu=6.0),
        problems.hires(binding=281.0),
        problems.rigid_body(m=0.5),
        problems.lorenz(rho=27.0),
        problems.pollu(rates=[1.0] * 25),
    )
    assert [problem.references for problem in changed] == [()] * len(changed)


@pytest.mark.parametrize(("name", "i"), [case for case in CASES if PROBLEMS[case[0]].invariants])
def test_references_keep_the_invariants(name, i):
    problem, reference = PROBLEMS[name], PROBLEMS[name].references[i]
    for invariant in problem.invariants:
        start = invariant.function(0.0, problem.u0, problem.params)
        end = invariant.function(reference.t, reference.u, problem.params)
        scale = np.abs(reference.u).max() if name == "e5" else max(1.0, abs(start))
        assert abs(end - start) <= 30.0 * 10.0**-reference.digits * scale, invariant.name


def test_the_published_end_value_of_e5_breaks_its_invariant():
    e5 = PROBLEMS["e5"]
    published = np.array([0.1152903278711829e-290, 0.8867655517642120e-22, 0.8854814626268838e-22, 0.0])
    ours = e5.references[-1].u
    assert abs(e5.invariants[0].function(1e13, published, e5.params)) > 1e-3 * published[1]
    assert e5.invariants[0].function(1e13, ours, e5.params) == 0.0
    # from t = 1e11 on y1 is gone and y2 = y3 decays by y' = -m c y^2 alone
    _, _, c, m = e5.params
    before = e5.references[-2]
    assert ours[1] == pytest.approx(before.u[1] / (1.0 + m * c * before.u[1] * (1e13 - 1e11)), rel=1e-10)


@pytest.mark.parametrize(("name", "i"), [case for case in CASES if PROBLEMS[case[0]].exact])
def test_references_lie_on_exact_solutions(name, i):
    problem, reference = PROBLEMS[name], PROBLEMS[name].references[i]
    exact = problem.exact(reference.t, problem.params)
    np.testing.assert_allclose(reference.u, exact, rtol=1e-14 + 3.0 * 10.0**-reference.digits)


def reached(problem, **options):
    """SciPy's solution of the problem at the times of its references."""
    times = [reference.t for reference in problem.references]
    solution = solve_ivp(problem.slope, (0.0, times[-1]), problem.u0, t_eval=times, **options)
    assert solution.success
    return zip(problem.references, solution.y.T, strict=True)


def radau(problem, **options):
    return reached(problem, method="Radau", jac=lambda t, u: problem.jacobian(t, u, problem.params), **options)


@pytest.mark.parametrize("name", STIFF)
def test_radau_reaches_the_references(name):
    problem = PROBLEMS[name]
    smallest = min(np.abs(reference.u).min() for reference in problem.references)
    for reference, state in radau(problem, rtol=1e-8, atol=1e-6 * smallest):
        np.testing.assert_allclose(state, reference.u, rtol=3e-7)


def test_radau_reaches_the_references_of_e5():
    problem = PROBLEMS["e5"]
    rounding = 2e-25  # what float64 leaves of y2 - y3 - y4 after y2's maximum, 1.4e-10
    for reference, state in radau(problem, rtol=1e-8, atol=1e-28):
        np.testing.assert_allclose(state, reference.u, rtol=3e-7, atol=rounding)
        assert abs(problem.invariants[0].function(reference.t, state, problem.params)) <= rounding
    assert np.abs(state[[0, 3]]).max() < 1e-30


@pytest.mark.parametrize("name", NON_STIFF)
def test_an_explicit_solver_reaches_the_references(name):
    for reference, state in reached(PROBLEMS[name], method="DOP853", rtol=3e-14, atol=1e-14):
        absolute = 10.0 * 10.0**-reference.digits if name == "arenstorf" else 0.0  # two of its components are 0
        np.testing.assert_allclose(state, reference.u, rtol=2e-11, atol=absolute)
