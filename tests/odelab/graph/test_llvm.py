"""The printer: every operation as machine code gives what NumPy gives, for numbers and for vectors alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odelab.graph.arithmetic import lines_of
from odelab.graph.evaluation import evaluate
from odelab.graph.llvm import Module
from odelab.graph.nodes import Graph, call_two, choose, logical, one, whole
from odelab.graph.recorded import recorded
from odelab.kernels.machine import Machine, address, processor

X = np.array([0.3, -1.7, 2.5, 0.0, -0.0, 1e-300, 7.0, -3.0, 1e10, 0.5, -0.25, 4.0, np.inf, -np.inf, np.nan, 1.0])
Y = np.array([1.5, 2.0, -2.5, 1.0, 3.0, -4.0, 7.0, 0.1, -1e-9, 2.0, 0.0, -0.0, 2.0, 1.0, 1.0, np.nan])


def by_machine(graph, node, width, flags="", exact=(), points=(X, Y)):
    """The value of a node at the points (x, y), by machine code of this width."""
    module = Module(flags, exact)
    function = module.function("run", {"x": "p", "y": "p", "out": "p", "count": "l"}, width)
    with function.over("%count", width) as i:
        inputs = {name: function.load("d", f"%{name}", i) for name in ("x", "y")}
        function.store("d", function.graph(graph, [node], inputs)[0], "%out", i)
    machine, out = Machine(module.text()), np.empty_like(points[0])
    machine.function("run", 4)(*map(address, (*points, out)), len(out))
    return out


EXACT_OPERATIONS = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "opposite": lambda x, y: -x,
    "size": lambda x, y: abs(x),
    "root": lambda x, y: one("sqrt", x),
    "floor": lambda x, y: one("floor", x),
    "ceiling": lambda x, y: one("ceil", x),
    "nearest": lambda x, y: one("rint", x),
    "remainder": lambda x, y: call_two("fmod", x, y),
    "sign of": lambda x, y: call_two("copysign", x, y),
    "choice": lambda x, y: choose(x < y, x, y),
    "both": lambda x, y: choose(logical("and", x <= y, x == x), 1.0, 0.0),
    "either": lambda x, y: choose(logical("or", x > y, x != x), 1.0, 0.0),
    "not": lambda x, y: choose(logical("not", x >= y), 1.0, 0.0),
    "whole": lambda x, y: whole(choose(abs(x) < 100.0, x, 0.0)) * 3 + 1.0,
}


@pytest.mark.parametrize("width", [1, 2, 8])
@pytest.mark.parametrize("name", EXACT_OPERATIONS)
def test_an_operation_is_numpys_to_the_bit(name, width):
    graph = Graph(trusted=True)
    node = graph.constant(0.0) + EXACT_OPERATIONS[name](graph.input("x"), graph.input("y"))
    (expected,) = evaluate(graph, [node], {"x": X, "y": Y})
    np.testing.assert_array_equal(by_machine(graph, node, width), np.broadcast_to(expected, X.shape))


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("op", ["sin", "exp", "log", "tanh", "log1p", "erf", "cbrt", "atan"])
def test_a_function_is_the_librarys(op, width):
    graph = Graph()
    node = one(op, graph.input("x"))
    (expected,) = evaluate(graph, [node], {"x": X, "y": Y})
    np.testing.assert_allclose(by_machine(graph, node, width), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("width", [1, 8])
def test_tables_are_looked_up_from_both_ends_and_are_nan_outside(width):
    graph = Graph(trusted=True)
    table = graph.table(np.array([10.0, 20.0, 30.0]))
    place = whole(choose(abs(graph.input("x")) < 100.0, graph.input("x"), 99.0))
    node = graph.add("gather", "d", table, place.i)
    where = np.where(np.abs(X) < 100.0, X, 99.0).astype(int)
    expected = [[10.0, 20.0, 30.0][k] if -3 <= k < 3 else np.nan for k in where]
    np.testing.assert_array_equal(by_machine(graph, node, width), expected)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("width", [1, 8])
def test_entries_that_are_not_larger_are_counted(count, width):
    graph = Graph(trusted=True)
    table = np.linspace(-2.0, 3.0, count)
    node = graph.add("search", "l", graph.table(table), graph.input("x").i).real()
    expected = np.where(np.isnan(X), 0, np.searchsorted(table, X, side="right"))
    np.testing.assert_array_equal(by_machine(graph, node, width), expected)


def test_a_product_and_a_sum_may_become_one_operation_but_not_of_times():
    graph = Graph()
    node = graph.input("x") * graph.input("y") + graph.input("x")
    points = np.random.default_rng(0).uniform(1.0, 2.0, (2, 64))
    (plain,) = evaluate(graph, [node], dict(zip("xy", points, strict=True)))
    if "+fma" in processor()[1]:
        assert not np.array_equal(by_machine(graph, node, 8, "contract", points=points), plain)
    np.testing.assert_array_equal(by_machine(graph, node, 8, "contract", ("x", "y"), points), plain)


def test_a_function_may_be_put_into_a_larger_graph_at_any_place():
    def call(graph):
        return [graph.input("a") * graph.input("a") + 1.0]

    square, graph = recorded(call), Graph()
    (inner,) = square.put(graph, {"a": graph.input("x")})
    (outer,) = square.put(graph, {"a": inner})
    found = evaluate(graph, [outer, *square.put(graph, {"a": 3.0})], {"x": 2.0})
    assert [float(x) for x in found] == [26.0, 10.0]
    assert square.put(graph, {"a": inner})[0].i == outer.i  # nothing is computed twice


@given(x=st.floats(-10, 10), y=st.floats(-10, 10))
@settings(max_examples=50)
def test_arithmetic_says_what_is_computed(x, y):
    """The lines that `ol.show_kernel` prints are Python, and give the values of the graph."""
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    shared = (a - b) * (a + 2.0)
    node = choose(a < b, -(shared / (abs(b) + 1.0)), shared - (a - (b - 1.0)))
    names: dict = {"a": x, "b": y}
    exec("\n".join(lines_of(graph, {"found": node})), names)
    (expected,) = evaluate(graph, [node], {"a": x, "b": y})
    assert names["found"] == float(expected)
