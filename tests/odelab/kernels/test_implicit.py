"""Straight-line elimination: the solution of every sparse system, and a check that sees factors that fail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.graph.derivatives import derivatives
from odelab.graph.evaluation import evaluate
from odelab.graph.nodes import Graph
from odelab.kernels import store
from odelab.kernels.elimination import elimination
from odelab.kernels.implicit import Factors


@st.composite
def systems(draw):
    """A pattern with entries, whatever the diagonal, and a right side."""
    n = draw(st.integers(1, 7))
    rows = tuple(tuple(sorted(draw(st.sets(st.integers(0, n - 1))))) for _ in range(n))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    jacobian = np.zeros((n, n))
    for i, row in enumerate(rows):
        jacobian[i, list(row)] = random.standard_normal(len(row))
    return rows, jacobian, random.standard_normal(n)


def run(rows, jacobian, right, hg, damage=1.0):
    """The factors of one elimination, whether they are sound, and the solution; `damage` falsifies a pivot."""
    graph = Graph()
    J = [{j: graph.input(f"j{i}_{j}") for j in row} for i, row in enumerate(rows)]
    factors = Factors(J, graph.input("hg"))
    factors.P[0] = factors.P[0] * damage
    solution = list(factors.solve(graph.inputs("b", len(rows))))
    inputs = {"hg": hg, **{f"b{i}": x for i, x in enumerate(right)}}
    inputs |= {f"j{i}_{j}": jacobian[i, j] for i, row in enumerate(rows) for j in row}
    *found, sound = evaluate(graph, [*solution, factors.sound], inputs)
    return factors, bool(sound), np.array(found, dtype=float)


@given(systems())
def test_it_solves(system):
    rows, jacobian, right = system
    _, sound, solution = run(rows, jacobian, right, 0.05)
    matrix = np.eye(len(rows)) - 0.05 * jacobian
    np.testing.assert_allclose(matrix @ solution, right, rtol=1e-12, atol=1e-12)
    assert sound


@given(systems())
def test_a_block_beside_the_diagonal_is_not_filled(system):
    """Of two equal systems, one of which depends on the other, the factors are those of both."""
    rows, _, _ = system
    n = len(rows)
    both = (*rows, *(tuple(sorted({*range(n), *(n + j for j in row)})) for row in rows))
    assert elimination(both).size == 2 * elimination(rows).size


@given(systems())
def test_fill_is_foreseen(system):
    """No entry of the factors is missing, and none is made that the order does not know of."""
    rows, jacobian, right = system
    factors, _, _ = run(rows, jacobian, right, 0.05)
    found = elimination(rows)
    assert len(factors.L) == sum(j < place for place, row in enumerate(found.entries) for j in row)
    assert len(factors.W) == sum(j > place for place, row in enumerate(found.entries) for j in row)
    assert len(factors.P) == len(rows)
    assert sorted(found.order) == list(range(len(rows)))


@given(systems().filter(lambda system: np.abs(system[2]).min() > 1e-3))
def test_a_wrong_factor_is_seen(system):
    rows, jacobian, right = system
    _, sound, _ = run(rows, jacobian, right, 0.05, damage=1.001)
    assert not sound


def test_a_pivot_that_has_lost_its_digits_is_seen():
    """A pivot that is rounding alone: without pivoting nothing is solved, though the system is harmless."""
    jacobian = np.array([[1.0 - 2.0**-53, -0.9], [-0.7, 0.1]])
    right = np.array([0.3, 0.7])
    _, sound, solution = run(((0, 1), (0, 1)), jacobian, right, 1.0)
    matrix = np.eye(2) - jacobian
    assert np.linalg.cond(matrix) < 4.0
    assert np.abs(matrix @ solution - right).max() > 1e-3
    assert not sound


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_sound(value):
    _, sound, _ = run(((0,),), np.array([[value]]), [1.0], 1.0)
    assert not sound


@pytest.mark.parametrize(
    ("name", "entries"), [("robertson", 8), ("oregonator", 7), ("e5", 12), ("hires", 27), ("pollu", 84)]
)
def test_the_order_keeps_the_factors_sparse(name, entries):
    problem = getattr(ol.problems, name)()
    recorded = store.slopes_of(problem).recorded
    inputs = [recorded.graph.input(f"u{i}") for i in range(problem.size)]
    rows = [tuple(row) for row in derivatives(recorded.graph, recorded.outputs, inputs)]
    assert elimination(rows).size == entries
