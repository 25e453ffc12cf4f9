"""Linear systems: the spectrum, symmetry and departure from normality are those asked for."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odelab import problems
from odelab.problems.linear_systems import COMPONENTS, matrix_of

seeds = st.integers(0, 2**32 - 1)
rates = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)
frequencies = st.lists(st.floats(0.1, 50.0), max_size=4)


def departure_of(matrix, eigenvalues):
    """Henrici's: the Frobenius norm that the eigenvalues do not account for."""
    return np.sqrt(max(0.0, np.sum(matrix**2) - np.sum(np.abs(eigenvalues) ** 2)))


@given(rates=rates, seed=seeds)
@settings(deadline=None, max_examples=30)
def test_a_symmetric_system_has_the_spectrum_asked_for(rates, seed):
    matrix = matrix_of(problems.linear_symmetric(rates, seed=seed).params)
    scale = max(1.0, np.abs(rates).max())
    assert np.array_equal(matrix, matrix.T)
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), np.sort(rates), rtol=0.0, atol=1e-12 * scale)


@given(rates=rates, frequencies=frequencies, departure=st.floats(0.0, 100.0), seed=seeds)
@settings(deadline=None, max_examples=30)
def test_a_non_normal_system_has_trace_powers_and_departure_asked_for(rates, frequencies, departure, seed):
    eigenvalues = np.array([*rates, *(a for f in frequencies for a in (-1.0 + 1j * f, -1.0 - 1j * f))])
    if len(eigenvalues) - len(frequencies) == 1:
        departure = 0.0  # one block leaves no room above it
    matrix = matrix_of(problems.linear_non_normal(eigenvalues, departure, seed=seed).params)
    scale = max(1.0, np.abs(eigenvalues).max(), departure)
    power = np.eye(len(matrix))
    for k in (1, 2, 3):  # eigenvalues of a non-normal matrix are too sensitive to be compared themselves
        power = power @ matrix
        assert np.trace(power) == pytest.approx(np.sum(eigenvalues**k).real, rel=1e-10, abs=1e-9 * scale**k)
    assert np.sum(matrix**2) == pytest.approx(np.sum(np.abs(eigenvalues) ** 2) + departure**2, rel=1e-10, abs=1e-10)


def test_departure_is_henricis():
    eigenvalues = [-1.0, -2.0, -3.0 + 4.0j, -3.0 - 4.0j]
    matrix = matrix_of(problems.linear_non_normal(eigenvalues, 7.0, seed=3).params)
    found = np.linalg.eigvals(matrix)
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(eigenvalues), rtol=1e-9)
    assert departure_of(matrix, found) == pytest.approx(7.0, rel=1e-9)


def test_seeds_differ_and_repeat():
    once, again, other = (problems.linear_symmetric([-1.0, -5.0, -9.0], seed=seed).params for seed in (1, 1, 2))
    assert once == again
    assert once != other


@pytest.mark.parametrize("n", [1, 2, COMPONENTS, COMPONENTS + 1, 40])
def test_both_forms_multiply_by_the_matrix(n):
    rng = np.random.default_rng(n)
    matrix, state = rng.standard_normal((n, n)), rng.standard_normal(n)
    problem = problems.linear(matrix, state)
    assert problem.form == ("component" if n <= COMPONENTS else "array")
    np.testing.assert_allclose(problem.slope(0.0, state), matrix @ state, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(problem.jacobian(0.0, state, problem.params), matrix)
    assert np.array_equal(problem.u0, state)


def test_the_component_form_can_be_read():
    assert "a0_1 * u1" in inspect.getsource(problems.linear().rhs)


def test_the_default_is_the_textbook_example():
    problem = problems.linear()
    t = np.linspace(0.0, 1.0, 7)
    slow, fast = np.exp(-t), np.exp(-1000.0 * t)
    expected = np.stack([2.0 * slow - fast, fast - slow], axis=1)
    np.testing.assert_allclose(problem.exact(t, problem.params), expected, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: problems.linear([[1.0, 2.0]]), r"`matrix` must be square, got shape \(1, 2\)"),
        (lambda: problems.linear([[np.inf]]), "`matrix` must be finite"),
        (lambda: problems.linear([[1.0]], [1.0, 2.0]), r"`u0` must have 1 components.* got shape \(2,\)"),
        (lambda: problems.linear_symmetric([1.0j]), "`eigenvalues` must be a row of finite real numbers"),
        (lambda: problems.linear_non_normal([1.0j, 2.0], 0.0), "in conjugate pairs"),
        (lambda: problems.linear_non_normal([1.0, np.nan], 0.0), "`eigenvalues` must be a row of finite numbers"),
        (lambda: problems.linear_non_normal([1.0, 2.0], -1.0), "`departure` must be at least 0"),
        (lambda: problems.linear_non_normal([1.0], 1.0), "0 where there is only one block"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_a_driven_solution_are_those_of_a_polynomial_through_it(order):
    problem = problems.forced_linear(((-1.0, 4.0), (0.0, -2.0)), frequency=2.0, u0=(1.0, 4.0))
    t = 0.5 - 0.05 * np.cos(np.pi * (np.arange(12) + 0.5) / 12)
    weights = np.polynomial.chebyshev.chebfit((t - 0.5) / 0.05, problem.exact(t, problem.params), 11)
    wanted = np.polynomial.chebyshev.chebval(0.0, np.polynomial.chebyshev.chebder(weights, order)) / 0.05**order
    found = problems.forced_linear_derivative(problem, 0.5, order)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_allclose(
        problems.forced_linear_derivative(problem, t, 0), problem.exact(t, problem.params), rtol=1e-14
    )


def test_the_solution_of_a_sheared_driven_system_is_a_number():
    """Squaring the exponential of a sheared matrix overflows, and its rounding grows: the solution is exact still."""
    made = problems.linear_non_normal([-100.0, -60.0, -30.0, -10.0], 1e5, seed=0)
    sheared = made.jacobian(0.0, made.u0, made.params)
    on_the_way = problems.forced_linear(sheared, offset=0.0)
    np.testing.assert_array_equal(on_the_way.exact(6.0, on_the_way.params), np.cos(6.0) * np.ones(4))
    alive = problems.forced_linear(sheared / 5.0, offset=5.0, u0=np.array([6.01, 6.0, 5.99, 6.0]))
    later = alive.exact(20.0, alive.params)
    np.testing.assert_allclose(later, 5.0 + np.cos(20.0), atol=1e-6)


def test_what_derivatives_of_driven_solutions_refuse():
    with pytest.raises(ValueError, match="`order` must be a whole number"):
        problems.forced_linear_derivative(problems.forced_linear(), 0.0, 1.5)
    with pytest.raises(ValueError, match="`problem` must be one that `forced_linear` made"):
        problems.forced_linear_derivative(problems.lorenz(), 0.0, 1)
