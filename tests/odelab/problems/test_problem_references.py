"""Reference values keep the invariants, lie on the exact solutions, and are reached by SciPy's solvers."""

import numpy as np
import pytest
from scipy.integrate import DOP853, solve_ivp

from odelab import problems
from tests.rounding import EPS, ROUNDINGS, amplification, spread

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
    rounding = amplification(lambda t: problem.exact(t, problem.params), reference.t)
    assert (np.abs(reference.u - exact) <= 10.0**-reference.digits * np.abs(exact) + ROUNDINGS * rounding).all()


def radau(problem, **options):
    """SciPy's solution of a stiff problem to the last of its references."""
    solution = solve_ivp(
        problem.slope,
        (0.0, problem.references[-1].t),
        problem.u0,
        method="Radau",
        jac=lambda t, u: problem.jacobian(t, u, problem.params),
        dense_output=True,
        **options,
    )
    assert solution.success
    return solution


@pytest.mark.parametrize("name", STIFF)
def test_radau_reaches_the_references(name):
    problem = PROBLEMS[name]
    smallest = min(np.abs(reference.u).min() for reference in problem.references)
    solution = radau(problem, rtol=1e-8, atol=1e-6 * smallest)
    for reference in problem.references:
        np.testing.assert_allclose(solution.sol(reference.t), reference.u, rtol=3e-7)


def test_radau_reaches_the_references_of_e5():
    """y2 - y3 - y4 is zero but for rounding: each step rounds each of the three, and what it adds to them."""
    problem, tolerance = PROBLEMS["e5"], 1e-28
    solution = radau(problem, rtol=1e-8, atol=tolerance)
    sizes = np.abs(solution.y[1:]).max(axis=0)
    for reference in problem.references:
        state = solution.sol(reference.t)
        drift = abs(problem.invariants[0].function(reference.t, state, problem.params))
        assert drift <= 2.0 * EPS * sizes[: np.searchsorted(solution.t, reference.t) + 1].sum()
        np.testing.assert_allclose(state, reference.u, rtol=3e-7, atol=tolerance + drift)
    assert np.abs(state[[0, 3]]).max() < 1e-30


def explicit_states(problem, move):
    """SciPy's states at the times of the references, each step's result moved by `move`."""
    states, times = [], [reference.t for reference in problem.references]
    solver = DOP853(problem.slope, 0.0, move(problem.u0), times[-1], rtol=3e-14, atol=1e-14)
    while len(states) < len(times):
        assert solver.step() is None
        while len(states) < len(times) and solver.t >= times[len(states)]:
            states.append(solver.dense_output()(times[len(states)]))
        solver.y = move(solver.y)
    return np.array(states)


@pytest.mark.slow
@pytest.mark.parametrize("name", NON_STIFF)
def test_an_explicit_solver_reaches_the_references(name):
    """As nearly as a run whose steps are rounded can: some of these problems amplify an ulp by ten million."""
    problem = PROBLEMS[name]
    states = explicit_states(problem, np.asarray)
    rounding = spread(lambda move: explicit_states(problem, move), draws=4).max(axis=1)
    for reference, state, amplified in zip(problem.references, states, rounding, strict=True):
        error, size = np.abs(state - reference.u).max(), np.abs(reference.u).max()
        assert error <= 10.0**-reference.digits * size + ROUNDINGS * amplified
