"""Problems by the method of lines: loops, arrays and compiled code agree, and the grids mean what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odelab import problems

numba = pytest.importorskip("numba")

FACTORIES = [problems.brusselator_1d, problems.heat_1d, problems.advection_1d, problems.burgers_1d]
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("factory", FACTORIES)
@given(n=st.integers(3, 30), seed=seeds)
@settings(deadline=None, max_examples=20)
def test_loop_and_array_form_agree_bit_for_bit(factory, n, seed):
    problem = factory(n)
    rng = np.random.default_rng(seed)
    batch = rng.standard_normal((problem.size, 3))
    params = tuple(rng.random(len(problem.params)))
    together = problem.rhs.array_form(0.0, batch, params)
    for lane, state in enumerate(batch.T):
        out = np.full(problem.size, np.nan)
        problem.rhs(0.0, np.ascontiguousarray(state), params, out)
        np.testing.assert_array_equal(problem.rhs.array_form(0.0, state, params), out)
        np.testing.assert_array_equal(together[:, lane], out)


@pytest.mark.parametrize("factory", FACTORIES)
def test_loops_compile(factory):
    problem = factory(50)
    compiled = numba.njit(fastmath={"contract"}, error_model="numpy")(problem.rhs)
    out = np.empty(problem.size)
    compiled(0.0, np.array(problem.u0), problem.params, out)
    np.testing.assert_allclose(out, problem.slope(0.0, problem.u0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("factory", FACTORIES)
def test_jacobians_are_sparse(factory):
    problem = factory(200)
    matrix = problem.jacobian(0.0, problem.u0, problem.params)
    assert matrix.format == "csc"
    assert matrix.shape == (problem.size, problem.size)
    assert matrix.nnz <= 5 * problem.size


@given(n=st.integers(2, 60), mode=st.integers(1, 60))
@settings(deadline=None, max_examples=30)
def test_sine_modes_are_eigenvectors_of_the_heat_equation(n, mode):
    mode = 1 + (mode - 1) % n
    shape = np.sin(mode * np.pi * np.arange(1, n + 1) / (n + 1))
    problem = problems.heat_1d(n, u0=shape)
    rate = -4.0 * (n + 1) ** 2 * np.sin(mode * np.pi / (2 * n + 2)) ** 2
    np.testing.assert_allclose(problem.slope(0.0, shape), rate * shape, rtol=0.0, atol=1e-11 * (n + 1) ** 2)
    t = 1.0 / abs(rate)
    np.testing.assert_allclose(problem.exact(t, problem.params), shape * np.exp(-1.0), rtol=0.0, atol=1e-13)


def test_the_uniform_state_of_the_brusselator_is_steady():
    n = 17
    uniform = np.repeat([1.0, 3.0], n)  # a and b / a, which the boundaries have too
    assert np.abs(problems.brusselator_1d(n).slope(0.0, uniform)).max() == 0.0


def test_without_diffusion_every_grid_point_is_a_brusselator():
    lines = problems.brusselator_1d(5, alpha=0.0)
    point = problems.brusselator()
    slopes = lines.slope(0.0, lines.u0)
    for i in range(5):
        np.testing.assert_array_equal(slopes[[i, 5 + i]], point.slope(0.0, lines.u0[[i, 5 + i]]))


def test_the_grid_leaves_the_boundaries_out():
    start = problems.brusselator_1d(3).u0
    np.testing.assert_allclose(start, [2.0, 1.0, 0.0, 3.0, 3.0, 3.0], atol=1e-15)
    np.testing.assert_array_equal(problems.heat_1d(3).u0, [0.75, 1.0, 0.75])


def test_the_grid_converges_to_the_partial_differential_equation():
    t = 0.05
    odd = np.arange(1, 400, 2)  # the parabola's sine series is 32 / (k pi)^3 over odd k
    middle = np.sum(32.0 / (np.pi * odd) ** 3 * np.sin(odd * np.pi / 2.0) * np.exp(-((odd * np.pi) ** 2) * t))
    errors = []
    for n in (9, 19, 39):
        problem = problems.heat_1d(n)
        errors.append(abs(problem.exact(t, problem.params)[n // 2] - middle))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2.0, atol=0.05)
