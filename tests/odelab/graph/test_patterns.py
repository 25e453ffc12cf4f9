"""Patterns: on which components and whether on time a right-hand side depends, as the graph has it."""

import math

import numpy as np
import pytest

import odelab as ol
from odelab import maths
from tests.odelab.graph.written_cases import rows_of

CATALOGUE = ("van_der_pol", "robertson", "oregonator", "e5", "hires", "pollu", "brusselator", "lorenz", "pleiades")


@pytest.mark.parametrize("name", CATALOGUE)
def test_it_is_that_of_the_catalogues_jacobian(name):
    problem = getattr(ol.problems, name)()
    n = problem.size
    _, rows = rows_of(problem.rhs, n, len(problem.params))
    assert not any(n in row for row in rows)  # none depends on time
    allowed = np.array([[j in row for j in range(n)] for row in rows])
    random = np.random.default_rng(3)
    jacobians = [problem.jacobian(0.0, random.uniform(0.5, 1.5, n), problem.params) for _ in range(4)]
    needed = np.any([np.asarray(jacobian) != 0.0 for jacobian in jacobians], axis=0)
    assert not (needed & ~allowed).any()
    assert allowed.sum() <= needed.sum() + n


sine = math.sin


def helper(x, rate):
    return maths.maximum(x, rate) ** 2


def reaching(t, u, params):
    """Helpers, functions of `math` by their own name, NumPy's numbers, and a condition."""
    a, b, c, d = u
    (rate,) = params
    return (
        sine(a) * np.float64(2.0) + rate,
        math.exp(-b) + maths.where(a > 0.0, b, rate * b),
        max(c, 0.0) + abs(np.interp(c, [0.0, 1.0], [0.0, 2.0])),
        helper(d, rate) + 0.0 * t,
    )


def test_helpers_and_functions_are_followed():
    _, rows = rows_of(reaching, 4, 1)
    assert [sorted(row) for row in rows] == [[0], [1], [2], [3, 4]]


@pytest.mark.parametrize("branch", ["x > 0", "params[0] > 1", "t > 0", "int(x) > 2", "x == y"])
def test_both_sides_of_a_branch_are_in_it(branch):
    """Other states, parameters or times might take the other way."""
    names: dict = {}
    exec(f"def rhs(t, u, params):\n    x, y = u\n    if {branch}:\n        return x, 1.0\n    return y, 1.0", names)
    _, rows = rows_of(names["rhs"], 2, 1)
    assert [sorted(row) for row in rows] == [[0, 1], []]


def test_the_users_functions_are_left_as_they_are():
    rows_of(reaching, 4, 1)
    assert sine is math.sin
    assert reaching(0.0, (0.0, 0.0, 0.0, 1.0), (1.0,)) == (1.0, 1.0, 0.0, 1.0)
