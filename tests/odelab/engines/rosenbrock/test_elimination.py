"""Straight-line elimination: the solution of every sparse system, and a check that sees factors that fail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.engines.rosenbrock import elimination as lu
from odelab.engines.rosenbrock.pattern import pattern_of


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


def run(rows, jacobian, right, hg, damage=None):
    """The names that the text of one solve leaves behind; `damage` falsifies a factor on the way."""
    found = lu.elimination(rows)
    names = {"hg": hg, **{f"b{i}": float(x) for i, x in enumerate(right)}}
    names |= {lu.entry_name("j", i, j, ""): float(jacobian[i, j]) for i, row in enumerate(rows) for j in row}
    lines = [*lu.matrix_lines(rows), *lu.factor_lines(rows, found)]
    lines += [damage] if damage else []
    lines += [*lu.solve_lines(found, "b", "x"), *lu.residual_lines(rows, "b", "x")]
    exec("\n".join(lines), names)
    return names, np.array([names[f"x{i}"] for i in range(len(rows))])


@given(systems())
def test_it_solves(system):
    rows, jacobian, right = system
    names, solution = run(rows, jacobian, right, 0.05)
    matrix = np.eye(len(rows)) - 0.05 * jacobian
    np.testing.assert_allclose(matrix @ solution, right, rtol=1e-12, atol=1e-12)
    assert names["sound"]


@given(systems())
def test_fill_is_foreseen(system):
    """No entry of the factors is missing, and none is written that the plan does not know of."""
    rows, jacobian, right = system
    names, _ = run(rows, jacobian, right, 0.05)
    found = lu.elimination(rows)
    written = sum(name[0] in "lp" and name[1].isdigit() for name in names)
    below = sum(j < place for place, row in enumerate(found.entries) for j in row)
    assert written == below + len(rows)
    assert sorted(found.order) == list(range(len(rows)))


@given(systems().filter(lambda system: np.abs(system[2]).min() > 1e-3))
def test_a_wrong_factor_is_seen(system):
    rows, jacobian, right = system
    names, _ = run(rows, jacobian, right, 0.05, damage="p0 = 1.001 * p0")
    assert not names["sound"]


def test_a_pivot_that_has_lost_its_digits_is_seen():
    """A pivot that is rounding alone: without pivoting nothing is solved, though the system is harmless."""
    jacobian = np.array([[1.0 - 2.0**-53, -0.9], [-0.7, 0.1]])
    right = np.array([0.3, 0.7])
    names, solution = run(((0, 1), (0, 1)), jacobian, right, 1.0)
    matrix = np.eye(2) - jacobian
    assert np.linalg.cond(matrix) < 4.0
    assert np.abs(matrix @ solution - right).max() > 1e-3
    assert not names["sound"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_sound(value):
    names, _ = run(((0,),), np.array([[value]]), [1.0], 1.0)
    assert not names["sound"]


@pytest.mark.parametrize(
    ("name", "entries"), [("robertson", 8), ("oregonator", 7), ("e5", 12), ("hires", 27), ("pollu", 93)]
)
def test_the_order_keeps_the_factors_sparse(name, entries):
    problem = getattr(ol.problems, name)()
    assert lu.elimination(pattern_of(problem.rhs, problem.size, len(problem.params)).rows).size == entries
