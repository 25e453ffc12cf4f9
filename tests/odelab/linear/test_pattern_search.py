"""The pattern of a Jacobian from few products: every entry is found, and a band takes few products."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import odelab as ol
from odelab.linear import linearisation
from odelab.linear.linearisation import Linearisation
from odelab.linear.pattern_search import pattern_of_products
from odelab.problem import array_form


def found_and_counted(J):
    """The pattern that is found from products with J, as a full array of booleans, and how many products it took."""
    taken = []

    def products(seeds):
        taken.append(len(seeds))
        return (J @ seeds.T).T

    pattern = pattern_of_products(products, J.shape[0])
    return None if pattern is None else pattern.toarray() != 0.0, sum(taken)


@given(st.integers(1, 300), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_every_entry_is_found_and_no_other(n, entries, seed):
    random = np.random.default_rng(seed)
    J = np.diag(random.choice([0.0, 1e-12, 1.0], n))
    J[random.integers(0, n, n * entries), random.integers(0, n, n * entries)] = random.choice([-1.0, 1e9], n * entries)
    pattern, _ = found_and_counted(J)
    if pattern is None:
        assert (J != 0.0).mean() > 1.0 / 8.0
    else:
        np.testing.assert_array_equal(pattern, J != 0.0)


@pytest.mark.parametrize("n", [33, 1000, 4001])
def test_a_band_takes_some_sixty_products_whatever_its_size(n):
    J = sparse.diags_array((np.ones(n - 1), np.full(n, -2.0), np.ones(n - 1)), offsets=(-1, 0, 1)).tocsr()
    pattern, products = found_and_counted(J)  # the rows add up to zero: without weights the blocks would vanish
    np.testing.assert_array_equal(pattern, J.toarray() != 0.0)
    assert products <= 80


def test_a_full_matrix_has_no_pattern():
    assert found_and_counted(np.ones((200, 200)))[0] is None


def laplacian(t, u, params):
    out = np.empty_like(u)
    out[1:-1] = u[:-2] - 2.0 * u[1:-1] + u[2:]
    out[0], out[-1] = u[1] - 2.0 * u[0], u[-2] - 2.0 * u[-1]
    return out


def test_a_pattern_is_kept_for_later_runs_and_confirmed_by_each(monkeypatch):
    searches = []
    search = linearisation.pattern_of_products
    monkeypatch.setattr(linearisation, "pattern_of_products", lambda *given: searches.append(1) or search(*given))
    reach = [1]

    def neighbours(t, u, params):
        return np.roll(u, reach[0]) - u

    problem = ol.Problem(neighbours, np.linspace(1.0, 2.0, 100), (0.0, 1.0))
    for far in (1, 1, 3):
        reach[0] = far
        linear = Linearisation(problem, array_form(problem), 1e-6)
        J, _ = linear.derivatives(0.0, problem.u0, neighbours(0.0, problem.u0, ()))
        np.testing.assert_array_equal(J.toarray(), np.roll(np.eye(100), far, axis=0) - np.eye(100))
        searches.append(0)
    assert searches == [1, 1, 0, 0, 1, 1, 0]  # at two states by the first run, and by the one that reaches farther


def test_whole_arrays_of_thousands_take_as_many_products_as_a_hundred():
    """What a run computes with is counted, not its time: products of the Jacobian with a vector."""
    counts = []
    for n in (200, 3200):

        def counted(t, u, params):
            counts[-1] += len(u.part) if hasattr(u, "part") else 0
            return laplacian(t, u, params)

        counts.append(0)
        start = np.sin(np.linspace(0.0, np.pi, n))
        sol = ol.solve(ol.Problem(counted, start, (0.0, 1.0)), ol.RODAS4, ol.fixed(0.5), engine="python")
        assert "3 colours" in str(sol)
    assert counts[1] < 1.5 * counts[0]
