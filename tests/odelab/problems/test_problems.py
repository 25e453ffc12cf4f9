"""The catalogue: laws every problem keeps at random states, whatever its kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odelab import problems
from odelab.problem import Problem
from odelab.right_hand_side import IN_PLACE

NAMES = [
    *("dahlquist", "stiff_linear", "prothero_robinson", "curtiss_hirschfelder", "linear"),
    *("forced_linear", "van_der_pol", "robertson", "oregonator", "hires", "e5", "pollu", "brusselator"),
    *("brusselator_1d", "heat_1d", "heat_1d_wave", "allen_cahn_1d", "advection_1d", "burgers_1d"),
    *("davis_skodje", "flame", "fitzhugh_nagumo", "elastic_pendulum", "kepler"),
    *("lorenz", "rigid_body", "arenstorf", "pleiades", "three_body"),
]
CHEMISTRY = {"robertson", "oregonator", "hires", "e5", "pollu", "brusselator", "brusselator_1d"}
PROBLEMS = {name: factory() for name, factory in problems.catalogue().items()}
COMPONENT = [name for name, problem in PROBLEMS.items() if problem.form == "component"]
INVARIANT = [name for name, problem in PROBLEMS.items() if problem.invariants]
EXACT = [name for name, problem in PROBLEMS.items() if problem.exact]
seeds = st.integers(0, 2**32 - 1)


def admissible(problem: Problem, seed: int):
    """A random time, state and parameters at which the right-hand side is smooth."""
    rng = np.random.default_rng(seed)
    if problem.name in CHEMISTRY:
        state = rng.random(problem.size) * (rng.random(problem.size) < 0.8)  # some species absent
    else:
        state = problem.u0 + 0.2 * rng.uniform(-1.0, 1.0, problem.size)
    params = tuple(value * rng.uniform(0.5, 1.5) + (value == 0.0) * rng.random() for value in problem.params)
    return rng.random(), state, params


def slope(problem: Problem, t, u, params):
    """The right-hand side, also at complex states."""
    if problem.form == IN_PLACE:
        out = np.empty_like(u)
        problem.rhs(t, u, params, out)
        return out
    return np.array(problem.rhs(t, u, params))


def by_complex_step(function, u):
    """The derivative of an analytic function, exact but for rounding."""
    step = 1e-30
    columns = [np.imag(function(u + 1j * step * unit)) / step for unit in np.eye(u.size)]
    return np.stack(columns, axis=-1)


def test_the_catalogue_is_complete():
    assert list(problems.catalogue()) == NAMES
    assert all(problems.catalogue()[name] is getattr(problems, name) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_default_problem_is_ready(name):
    problem = PROBLEMS[name]
    assert problem.name == name
    assert len(problem.about) > 40
    assert problem.jacobian is not None
    assert problem.form == ("in-place" if problem.size > 32 else "component")
    assert all(type(value) is float for value in problem.params)
    assert np.isfinite(problem.slope(problem.t_span[0], problem.u0)).all()


def test_default_parameters_are_those_of_the_literature():
    expected = {
        "dahlquist": (-1.0,),
        "prothero_robinson": (-1e6,),
        "curtiss_hirschfelder": (-50.0,),
        "linear": (998.0, 1998.0, -999.0, -1999.0),
        "van_der_pol": (5.0,),
        "robertson": (0.04, 3e7, 1e4),
        "oregonator": (77.27, 8.375e-6, 0.161),
        "hires": (280.0,),
        "e5": (7.89e-10, 1.1e7, 1.13e3, 1e6),
        "brusselator": (1.0, 3.0),
        "brusselator_1d": (0.02, 1.0, 3.0),
        "heat_1d": (1.0,),
        "advection_1d": (1.0,),
        "burgers_1d": (0.02,),
        "davis_skodje": (10.0,),
        "fitzhugh_nagumo": (0.08, 0.5, 0.7, 0.8),
        "elastic_pendulum": (1e4,),
        "lorenz": (10.0, 28.0, 8.0 / 3.0),
        "rigid_body": (0.51,),
        "arenstorf": (0.012277471,),
        "three_body": (0.0,),
    }
    assert {name: PROBLEMS[name].params for name in expected} == expected


@pytest.mark.parametrize("name", NAMES)
@given(seed=seeds)
@settings(deadline=None, max_examples=15)
def test_jacobians_are_derivatives(name, seed):
    problem = PROBLEMS[name]
    t, u, params = admissible(problem, seed)
    expected = by_complex_step(lambda z: slope(problem, t, z, params), u)
    given_one = problem.jacobian(t, u, params)
    matrix = given_one if isinstance(given_one, np.ndarray) else given_one.toarray()
    rounding = 1e-14 * np.abs(expected).max(axis=1, keepdims=True)
    assert matrix.dtype == np.float64
    assert (np.abs(matrix - expected) <= 1e-11 * np.abs(expected) + rounding).all()


@pytest.mark.parametrize("name", INVARIANT)
@given(seed=seeds)
@settings(deadline=None, max_examples=15)
def test_invariants_do_not_move(name, seed):
    problem = PROBLEMS[name]
    t, u, params = admissible(problem, seed)
    for invariant in problem.invariants:
        gradient = by_complex_step(lambda z, function=invariant.function: function(t, z, params), u)
        rates = gradient * slope(problem, t, u, params)
        assert np.abs(gradient).max() > 0.0
        assert abs(rates.sum()) <= 1e-13 * np.abs(rates).sum(), invariant.name


@pytest.mark.parametrize("name", INVARIANT)
def test_invariants_take_batches(name):
    problem = PROBLEMS[name]
    draws = [admissible(problem, seed) for seed in range(3)]
    batch = np.stack([u for _, u, _ in draws], axis=1)
    params = draws[0][2]
    for invariant in problem.invariants:
        together = invariant.function(0.0, batch, params)
        apart = [invariant.function(0.0, u, params) for _, u, _ in draws]
        np.testing.assert_allclose(together, apart, rtol=1e-14, atol=1e-300)


# rates of change that a difference quotient has to resolve; Prothero and Robinson's solution does not feel its rate
FASTEST = {"stiff_linear": 1000.0, "curtiss_hirschfelder": 75.0, "linear": 1000.0, "heat_1d": 6e4, "heat_1d_wave": 20.0}
FASTEST |= {"forced_linear": 200.0, "advection_1d": 60.0, "davis_skodje": 15.0, "kepler": 20.0}


@pytest.mark.parametrize("name", EXACT)
@given(seed=seeds, share=st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=15)
def test_exact_solutions_solve_the_equation(name, seed, share):
    problem = PROBLEMS[name]
    if name != "linear":  # another matrix may have growing solutions
        problem = problem.replace(params=admissible(problem, seed)[2])
    if name == "rigid_body":
        problem = problem.replace(params=(min(problem.params[0], 1.0),))
    t0, t1 = problem.t_span
    fastest = FASTEST.get(name, 2.0)
    t = t0 + share * (t1 - t0)
    step = 0.002 / fastest
    around = problem.exact(t + step * np.array([-2.0, -1.0, 1.0, 2.0]), problem.params)
    derivative = np.array([1.0, -8.0, 8.0, -1.0]) @ around / (12.0 * step)
    difference = np.abs(derivative - problem.slope(t, problem.exact(t, problem.params))).max()
    assert difference <= 1e-9 * fastest


@pytest.mark.parametrize("name", EXACT)
def test_exact_solutions_start_right_and_take_many_times(name):
    problem = PROBLEMS[name]
    times = np.linspace(*problem.t_span, 5)
    path = problem.exact(times, problem.params)
    assert path.shape == (5, problem.size)
    np.testing.assert_allclose(path[0], problem.u0, rtol=1e-14, atol=1e-14)
    for t, state in zip(times, path, strict=True):
        single = problem.exact(float(t), problem.params)
        assert single.shape == (problem.size,)
        np.testing.assert_allclose(single, state, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("name", COMPONENT)
@given(seed=seeds)
@settings(deadline=None, max_examples=10)
def test_one_source_for_floats_batches_and_tensors(name, seed):
    torch = pytest.importorskip("torch")
    problem = PROBLEMS[name]
    draws = [admissible(problem, seed + lane) for lane in range(3)]
    t = draws[0][0]
    floats = [problem.rhs(t, tuple(u.tolist()), params) for _, u, params in draws]
    assert all(isinstance(value, float) for value in floats[0])
    states = np.stack([u for _, u, _ in draws], axis=1)
    params = tuple(np.array([lane[2] for lane in draws]).T)
    batch = problem.rhs(t, states, params)
    tensors = problem.rhs(t, torch.as_tensor(states), tuple(torch.as_tensor(value) for value in params))
    assert type(batch) is type(tensors) is tuple
    assert all(isinstance(value, torch.Tensor) and value.dtype == torch.float64 for value in tensors)
    terms = np.abs(states).max() * max(1.0, np.abs(params).max(initial=1.0))
    for component in range(problem.size):
        expected = [lane[component] for lane in floats]
        rounding = {"rtol": 1e-14, "atol": 1e-15 * terms}
        np.testing.assert_allclose(batch[component], expected, **rounding)
        np.testing.assert_allclose(tensors[component].numpy(), expected, **rounding)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: problems.van_der_pol(mu=np.nan), ValueError, "`mu` must be finite, got nan"),
        (lambda: problems.van_der_pol(mu="stiff"), TypeError, "`mu` must be a number, got 'stiff'"),
        (lambda: problems.heat_1d(n=1), ValueError, "`n` must be at least 2, got 1"),
        (lambda: problems.brusselator_1d(n=2.5), TypeError, "`n` must be a whole number, got 2.5"),
        (lambda: problems.heat_1d(n=3, u0=[1.0, 2.0]), ValueError, "`u0` must have 3 components"),
        (lambda: problems.rigid_body(m=1.5), ValueError, r"`m` must lie in \[0, 1\]"),
        (lambda: problems.pollu(rates=[1.0]), ValueError, "`rates` must hold 25 numbers"),
        (lambda: problems.flame(radius=1.0), ValueError, "`radius` must lie between 0 and 1"),
        (lambda: problems.kepler(eccentricity=1.0), ValueError, "`eccentricity` must be at least 0 and below 1"),
        (lambda: problems.elastic_pendulum(0.0), ValueError, "`stiffness` must be positive"),
        (lambda: problems.fitzhugh_nagumo(-1.0), ValueError, "`slowness` must be positive"),
        (lambda: problems.forced_linear(offset=[1.0]), ValueError, "`offset` must be one finite number or 2"),
        (lambda: problems.forced_linear(np.eye(17)), ValueError, "`matrix` may have at most 16 rows"),
        (lambda: problems.advection_1d(4, u0=[1.0]), ValueError, "`u0` must have 4 components"),
        (lambda: problems.three_body_starts(0), ValueError, "`count` must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
