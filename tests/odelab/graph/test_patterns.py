"""Patterns: what a right-hand side depends on, found without a value; full where a value is asked for."""

import math

import numpy as np
import pytest

import odelab as ol
from odelab import maths
from odelab.engines.rosenbrock.pattern import full, pattern_of
from tests.odelab.engines.rosenbrock.dual_cases import FUNCTIONS

CATALOGUE = ("van_der_pol", "robertson", "oregonator", "e5", "hires", "pollu", "brusselator", "lorenz", "pleiades")


@pytest.mark.parametrize("name", CATALOGUE)
def test_it_is_that_of_the_catalogues_jacobian(name):
    problem = getattr(ol.problems, name)()
    pattern = pattern_of(problem.rhs, problem.size, len(problem.params))
    assert pattern.autonomous
    allowed = np.zeros((problem.size, problem.size), bool)
    allowed[tuple(np.transpose(pattern.entries))] = True
    random = np.random.default_rng(3)
    jacobians = [problem.jacobian(0.0, random.uniform(0.5, 1.5, problem.size), problem.params) for _ in range(4)]
    needed = np.any([np.asarray(jacobian) != 0.0 for jacobian in jacobians], axis=0)
    assert not (needed & ~allowed).any()
    assert allowed.sum() <= needed.sum() + problem.size


def reaching(t, u, params):
    """Helpers, functions of `math` by their own name, NumPy's numbers, and a condition that only `where` is asked."""
    a, b, c, d = u
    (rate,) = params
    return (
        sine(a) * np.float64(2.0) + rate,
        math.exp(-b) + maths.where(a > 0.0, b, rate * b),
        max(c, 0.0) + abs(np.interp(c, [0.0, 1.0], [0.0, 2.0])),
        helper(d, rate) + 0.0 * t,
    )


sine = math.sin


def helper(x, rate):
    return maths.maximum(x, rate) ** 2


def test_helpers_and_functions_are_followed():
    pattern = pattern_of(reaching, 4, 1)
    assert pattern.rows == ((0,), (1,), (2,), (3,))
    assert not pattern.autonomous


@pytest.mark.parametrize("branch", ["x > 0", "params[0] > 1", "t > 0", "int(x)", "x == y"])
def test_a_branch_makes_it_full(branch):
    """Other states, parameters or times might take the other way."""
    names: dict = {}
    exec(f"def rhs(t, u, params):\n    x, y = u\n    if {branch}:\n        return x, 1.0\n    return y, 1.0", names)
    assert pattern_of(names["rhs"], 2, 1) == full(2)


@pytest.mark.parametrize("rhs", FUNCTIONS, ids=lambda f: f.__name__)
def test_whatever_is_run_a_pattern_comes_back(rhs):
    rows = pattern_of(rhs, 2, 1).rows
    assert rows == full(2).rows


def test_the_users_functions_are_left_as_they_are():
    pattern_of(reaching, 4, 1)
    assert sine is math.sin
    assert reaching(0.0, (0.0, 0.0, 0.0, 1.0), (1.0,)) == (1.0, 1.0, 0.0, 1.0)
