"""Derivatives of a graph are those of the function: by the complex step, and by differences where there is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odelab.graph.derivatives import derivatives
from odelab.graph.evaluation import evaluate
from odelab.graph.graphs import Graph, Node
from odelab.graph.nodes import call_two, choose, modulo, one, power
from odelab.graph.operations import OF_ONE
from odelab.right_hand_side import COMPONENT
from tests.odelab.graph.tracing_of import random_states, trace
from tests.rounding import EPS, amplification

FLAT = ("floor", "ceil", "trunc", "rint")
INSIDE = {"acosh": 2.3, "log": 0.7, "log2": 0.7, "log10": 0.7, "sqrt": 0.7}
OF_A_COMPLEX_NUMBER = (
    *("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "expm1", "log1p", "log2", "log10"),
    *("exp2", "neg"),
)


def values_of(graph: Graph, nodes, inputs: dict) -> list[float]:
    return [float(value) for value in evaluate(graph, nodes, inputs)]


def slope(function, x: float) -> float:
    """The derivative that the graph has."""
    graph = Graph()
    node = graph.input("x")
    (row,) = derivatives(graph, [function(node)], [node])
    return values_of(graph, [row[0]], {"x": x})[0] if 0 in row else 0.0


def by_complex_step(op: str, x: float) -> float:
    function = {"neg": np.negative}.get(op) or getattr(np, op)
    return float(np.imag(function(complex(x, 1e-200)))) / 1e-200


@pytest.mark.parametrize("op", OF_A_COMPLEX_NUMBER)
def test_a_derivative_is_that_of_the_complex_step(op):
    x = INSIDE.get(op, 0.37)
    assert slope(lambda node: one(op, node), x) == pytest.approx(by_complex_step(op, x), rel=16 * EPS)


@pytest.mark.parametrize("op", [op for op in OF_ONE if op not in FLAT])
def test_a_derivative_is_the_limit_of_differences(op):
    """The central difference of step h is wrong by h^2 of the third derivative, and by rounding over h."""
    x, h = INSIDE.get(op, 0.37), 1e-4

    def value(at):
        graph = Graph()
        return values_of(graph, [one(op, graph.input("x"))], {"x": at})[0]

    middle = (value(x + h) - value(x - h)) / (2 * h)
    wide = (value(x + 2 * h) - value(x - 2 * h)) / (4 * h)
    rounding = 8 * EPS * abs(value(x)) / h
    assert abs(slope(lambda node: one(op, node), x) - middle) <= abs(wide - middle) + rounding + 1e-12


@pytest.mark.parametrize("op", FLAT)
def test_a_staircase_has_no_derivative(op):
    assert slope(lambda node: one(op, node), 0.37) == 0.0


@given(st.floats(0.1, 5.0), st.floats(-3.0, 3.0))
def test_products_quotients_and_powers(x, y):
    graph = Graph()
    a, b = graph.inputs("u", 2)
    rows = derivatives(graph, [a * b, a / (1.0 + b * b), power(a, b), power(a, 3)], [a, b])
    wanted = [
        *(y, x, 1 / (1 + y * y), -2 * x * y / (1 + y * y) ** 2),
        *(y * x ** (y - 1), x**y * np.log(x), 3 * x * x, 0.0),
    ]
    found = values_of(graph, [graph.constant(0.0) if k not in row else row[k] for row in rows for k in (0, 1)],
                      {"u0": x, "u1": y})  # fmt: skip
    np.testing.assert_allclose(found, wanted, rtol=32 * EPS, atol=1e-300)


@given(st.floats(-5.0, 5.0), st.floats(0.3, 2.0))
def test_functions_of_two_numbers(x, y):
    graph = Graph()
    a, b = graph.inputs("u", 2)
    functions = [call_two("atan2", a, b), call_two("hypot", a, b), call_two("fmod", a, b), modulo(a, b)]
    rows = derivatives(graph, functions, [a, b])
    square = x * x + y * y
    wanted = [
        *(y / square, -x / square, x / np.sqrt(square), y / np.sqrt(square)),
        *(1.0, -np.trunc(x / y), 1.0, -np.floor(x / y)),
    ]
    if abs(np.mod(x, y)) > 1e-6 and abs(np.mod(x, y) - y) > 1e-6:
        found = values_of(graph, [row.get(k, graph.constant(0.0)) for row in rows for k in (0, 1)], {"u0": x, "u1": y})
        np.testing.assert_allclose(found, wanted, rtol=32 * EPS, atol=1e-300)


@given(st.floats(-3.0, 3.0))
def test_a_choice_has_the_derivative_of_the_side_that_is_taken(x):
    found = slope(lambda node: choose(node > 0.5, node * node, 3.0 * node), x)
    assert found == (2.0 * x if x > 0.5 else 3.0)


def test_entries_that_are_zero_at_every_state_are_not_there():
    graph = Graph()
    u = graph.inputs("u", 3)
    rows = derivatives(graph, [u[0] * u[2], graph.constant(1.0), one("floor", u[1]), u[1]], u)
    assert [sorted(row) for row in rows] == [[0, 2], [], [], [1]]
    assert all(isinstance(entry, Node) for row in rows for entry in row.values())


def test_the_jacobian_of_a_function_is_that_of_the_complex_step():
    def rhs(t, u, params):
        x, y, z = u
        product = x * y * z + (x - y) ** 3 / (2.0 + z * z)
        return product, x / (1.0 + y * y), (y - z) ** 2 * x

    found = trace(rhs, COMPONENT, 3, 0)
    inputs = [found.graph.input(f"u{i}") for i in range(3)]
    rows = derivatives(found.graph, found.slopes, inputs)
    for state in random_states(3, 5)[1]:
        named = {f"u{i}": x for i, x in enumerate(state)}
        for i, row in enumerate(rows):
            for k in range(3):
                shifted = state.astype(complex)
                shifted[k] += 1e-200j
                wanted = np.imag(rhs(0.0, shifted, ())[i]) / 1e-200
                value = values_of(found.graph, [row[k]], named)[0] if k in row else 0.0
                size = amplification(lambda u, i=i: rhs(0.0, u, ())[i], state).max() / EPS
                assert abs(value - wanted) <= 64 * EPS * max(abs(wanted), size)
