"""Solvers of (I - hg J) x = b: right to rounding, and NaN where there is no solution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from odelab.linear import solvers

SEED = st.integers(0, 10_000)


def banded_matrix(n, below, above, seed):
    """A banded matrix whose unknowns have been put in disorder."""
    rng = np.random.default_rng(seed)
    full = np.triu(np.tril(rng.standard_normal((n, n)), above), -below)
    order = rng.permutation(n)
    return sparse.csc_array(full[np.ix_(order, order)])


def solved(solver, J, hg, right):
    return solver.backsub(solver.factor(J, hg), right)


@given(seed=SEED, n=st.integers(1, 12), hg=st.floats(-2.0, 2.0))
def test_the_dense_solver(seed, n, hg):
    rng = np.random.default_rng(seed)
    J, right = rng.standard_normal((n, n)), rng.standard_normal(n)
    matrix = np.eye(n) - hg * J
    x = solved(solvers.DenseSolver(), J, hg, right)
    assert np.abs(matrix @ x - right).max() <= 1e-13 * n * (1.0 + np.abs(matrix).max() * np.abs(x).max())


@given(seed=SEED, n=st.integers(40, 80), below=st.integers(0, 3), above=st.integers(0, 3))
def test_banded_and_sparse_solve_what_dense_solves(seed, n, below, above):
    J = banded_matrix(n, below, above, seed)
    right = np.random.default_rng(seed + 1).standard_normal(n)
    chosen = solvers.solver_for(J)
    assert isinstance(chosen, solvers.BandedSolver)
    expected = solved(solvers.DenseSolver(), J.toarray(), 0.1, right)
    for solver in (chosen, solvers.SparseSolver()):
        np.testing.assert_allclose(solved(solver, J, 0.1, right), expected, rtol=1e-9, atol=1e-12)


def test_a_band_serves_matrices_of_another_pattern():
    first, second = (banded_matrix(50, 2, 1, seed) for seed in (1, 1))
    second.data[:10] = 0.0
    second.eliminate_zeros()
    solver = solvers.solver_for(first)
    right = np.ones(50)
    for J in (first, second, first):
        np.testing.assert_allclose(
            solved(solver, J, 0.3, right), np.linalg.solve(np.eye(50) - 0.3 * J.toarray(), right)
        )


def test_a_wide_band_goes_to_superlu():
    assert solvers.solver_for(sparse.csc_array(np.random.default_rng(0).random((200, 200)) < 0.1)).name == "sparse"
    assert solvers.solver_for(np.eye(3)).name == "dense"


@pytest.mark.parametrize(
    "solver", [solvers.DenseSolver(), solvers.SparseSolver(), solvers.BandedSolver(np.arange(3), 0, 0)]
)
@pytest.mark.parametrize("entry", [2.0, np.nan, np.inf])
def test_singular_and_not_finite_matrices_leave_nan(solver, entry):
    J = np.diag([1.0, entry, 3.0])  # singular at hg = 1/2
    J = J if solver.name == "dense" else sparse.csc_array(J)
    assert np.isnan(solved(solver, J, 0.5, np.ones(3))).all()


def test_a_sparse_solution_that_is_wrong_without_exchanging_rows_is_found_again_with_it():
    """Pivots on the diagonal let the last column grow by a factor of 900 a row, to 1e115."""
    n = 40
    full = np.eye(n) + np.diag(np.full(n - 1, 900.0), -1)
    full[:, -1] += 1.0
    J, right = sparse.csc_array(np.eye(n) - full), np.linspace(1.0, 2.0, n)
    solver = solvers.SparseSolver()
    factors = solver.factor(J, 1.0)
    for wanted in (right, right[::-1]):
        np.testing.assert_allclose(full @ solver.backsub(factors, wanted), wanted, rtol=1e-9)


def grid(points, dimensions):
    """The Laplacian on a grid of so many points along each dimension."""
    line = sparse.diags_array([np.ones(points - 1), np.full(points, -2.0), np.ones(points - 1)], offsets=[-1, 0, 1])
    J = line
    for _ in range(dimensions - 1):
        J = sparse.kronsum(J, line)
    return sparse.csc_array(J)


def test_the_work_of_elimination_grows_on_grids_and_is_little_elsewhere():
    assert solvers.elimination_work(grid(900, 1)) == 0.0
    assert solvers.elimination_work(np.eye(5)) == 0.0
    small, large, cube = (solvers.elimination_work(grid(*size)) for size in ((30, 2), (60, 2), (10, 3)))
    assert 10.0 < small < large
    assert cube > small  # of 1,000 and 900 points
    assert solvers.elimination_work(sparse.csc_array(np.zeros((900, 900)))) == 0.0
