"""Rows by classes compute what the graph computes, each row once, and their kernel knows no size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odelab as ol
from odelab.functions.tracing import traced
from odelab.graph.classes import CONDITION, SLOPE, classes_of
from odelab.graph.evaluation import evaluate
from odelab.graph.nodes import Graph
from odelab.graph.recorded import Recorded
from odelab.graph.shapes import COLUMN
from odelab.graph.trails import TooLarge

PARAMETERS = np.array([0.7, 1.3])
GRID = 6  # points in each line of a grid


def recorded(function, form: str, n: int) -> Recorded:
    graph = Graph(limit=100_000)
    params = tuple(graph.input(f"p{i}") for i in range(len(PARAMETERS)))
    slopes = traced(graph, function, form, n)(graph.input("t"), graph.inputs("u", n), params)
    return Recorded(graph, list(slopes))


def of_graph(case: Recorded, t: float, u: np.ndarray) -> np.ndarray:
    named = {"t": t} | {f"u{i}": x for i, x in enumerate(u)} | {f"p{i}": x for i, x in enumerate(PARAMETERS)}
    return np.array([float(value) for value in evaluate(case.graph, case.outputs, named)])


def diffusion(t, u, params, out):
    """A boundary of its own on each side, and a coefficient that differs from row to row."""
    n = u.size
    for i in range(n):
        left = u[i - 1] if i > 0 else np.sin(t)
        right = u[i + 1] if i < n - 1 else 0.0
        out[i] = params[0] * (1.0 + i / n) * (left - 2.0 * u[i] + right) + params[1] * u[i] ** 2


def periodic(t, u, params):
    return (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)) * (u.size + 1.0) ** 2 - params[0] * u**3


def interleaved(t, u, params, out):
    """Two unknowns at each point, one behind the other."""
    for i in range(0, u.size - 1, 2):
        out[i] = u[i + 1] - params[0] * u[i]
        out[i + 1] = -u[i] * u[i + 1]
    if u.size % 2:
        out[u.size - 1] = -u[u.size - 1]


def plane(t, u, params, out):
    """A grid of lines of GRID points."""
    for i in range(u.size):
        total = -4.0 * u[i]
        if i >= GRID:
            total += u[i - GRID]
        if i + GRID < u.size:
            total += u[i + GRID]
        if i % GRID > 0:
            total += u[i - 1]
        if i % GRID < GRID - 1 and i + 1 < u.size:
            total += u[i + 1]
        out[i] = params[1] * total


def exponentials(t, u, params):
    """Neighbours share the exponential of each component."""
    e = np.exp(-u)
    return np.concatenate(([e[1] - e[0]], e[2:] - 2.0 * e[1:-1] + e[:-2], [e[-2] - e[-1]])) * params[0]


FUNCTIONS = [
    *((diffusion, "in-place"), (periodic, "array"), (interleaved, "in-place")),
    *((plane, "in-place"), (exponentials, "array")),
]
each_function = pytest.mark.parametrize(("function", "form"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", ""))


@each_function
@given(n=st.integers(3, 40), seed=st.integers(0, 10**6))
def test_they_compute_what_the_graph_computes_to_the_bit(function, form, n, seed):
    case = recorded(function, form, n)
    u = np.random.default_rng(seed).normal(size=n)
    for shares in (True, False):
        slopes, raised = classes_of(case, shares)(0.3, u, PARAMETERS)
        np.testing.assert_array_equal(slopes, of_graph(case, 0.3, u))
        assert not raised


@each_function
@given(n=st.integers(3, 60))
def test_every_row_is_in_one_run(function, form, n):
    classes = classes_of(recorded(function, form, n))
    for purpose, count in ((SLOPE, n), (COLUMN, classes.entries)):
        rows = [one.rows() for one in classes.classes if one.purpose == purpose]
        np.testing.assert_array_equal(np.sort(np.concatenate([np.zeros(0, int), *rows])), np.arange(count))


@each_function
def test_what_is_compiled_does_not_depend_on_the_size(function, form):
    sizes = (6 * GRID, 9 * GRID, 17 * GRID)
    keys = [classes_of(recorded(function, form, n)).key for n in sizes]
    assert keys[0] == keys[1] == keys[2]
    assert len(keys[0]) <= 6


def test_a_costly_function_is_computed_once_where_rows_share_it():
    classes = classes_of(recorded(exponentials, "array", 50))
    assert classes.entries == 50
    counts = dict.fromkeys((SLOPE, COLUMN), 0)
    for one in classes.classes:
        has_exponential = any(operation[0] == "exp" for operation in one.recorded.graph.ops)
        counts[one.purpose] += has_exponential * len(one.rows())
    assert counts == {SLOPE: 0, COLUMN: 50}


def test_conditions_under_which_the_function_raises_are_rows():
    table = np.array([1.0, 3.0, 2.0, 5.0])

    def rhs(t, u, params, out):
        for i in range(u.size):
            out[i] = table[int(u[i])]

    classes = classes_of(recorded(rhs, "in-place", 30))
    assert any(one.purpose == CONDITION for one in classes.classes)
    u = np.ones(30)
    assert classes(0.0, u, PARAMETERS)[1] is False
    u[17] = 4.5
    assert classes(0.0, u, PARAMETERS)[1] is True


def test_rows_that_have_nothing_in_common_are_refused():
    adds = np.random.default_rng(1).random((200, 40)) < 0.5

    def rhs(t, u, params, out):
        for i in range(u.size):
            total = 1.0
            for j in range(40):
                total = total + u[j] if adds[i, j] else total * u[j]
            out[i] = total

    with pytest.raises(TooLarge, match="too different"):
        classes_of(recorded(rhs, "in-place", 200))


@pytest.mark.parametrize("make", [ol.problems.brusselator_1d, ol.problems.heat_1d, ol.problems.burgers_1d])
def test_the_catalogue_in_both_forms_is_one_kernel(make):
    problem = make(20)
    keys = []
    for form, function in (("in-place", problem.rhs), ("array", problem.rhs.array_form)):
        graph = Graph(limit=100_000)
        params = tuple(graph.input(f"p{i}") for i in range(len(problem.params)))
        n = problem.size
        slopes = traced(graph, function, form, n)(graph.input("t"), graph.inputs("u", n), params)
        classes = classes_of(Recorded(graph, list(slopes)))
        keys.append(len(classes.key))
        found, _ = classes(0.1, problem.u0, np.array(problem.params))
        np.testing.assert_allclose(found, problem.slope(0.1, problem.u0), rtol=1e-12, atol=1e-12)
    assert max(keys) <= 6
