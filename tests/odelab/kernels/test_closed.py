"""Elementary functions in kernels have the bits of their source, for numbers and for vectors."""

import numpy as np
import pytest

from odelab import elementary
from odelab.graph.llvm import Module
from odelab.graph.nodes import Graph, call_two, one
from odelab.kernels.closed import EXACT, FAST
from odelab.kernels.machine import Machine, address

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, 1e308, 2.0**40]
OF_TWO = ("pow", "atan2", "hypot")


def points():
    draw = np.random.default_rng(0)
    sizes = 10.0 ** draw.uniform(-20.0, 20.0, 300) * draw.choice([-1.0, 1.0], 300)
    x = np.concatenate([draw.uniform(-4.0, 4.0, 490), sizes, SPECIAL])
    return x, draw.permutation(x)


def values(op, width, elementary_functions):
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    node = call_two(op, x, y) if op in OF_TWO else one(op, x)
    module = Module("contract", (), elementary_functions)
    function = module.function("run", {"x": "p", "y": "p", "out": "p", "count": "l"}, width)
    with function.over("%count", width) as i:
        inputs = {name: function.load("d", f"%{name}", i) for name in ("x", "y")}
        function.store("d", function.graph(graph, [node], inputs)[0], "%out", i)
    given, machine = points(), Machine(module.text())
    out = np.empty_like(given[0])
    machine.function("run", 4)(*map(address, (*given, out)), len(out))
    return given, out


@pytest.mark.parametrize("op", sorted(EXACT.names))
@pytest.mark.parametrize("width", [1, 8])
def test_they_have_the_bits_of_their_source(op, width):
    given, found = values(op, width, EXACT)
    expected = elementary.of_arrays[op](*given[: 1 + (op in OF_TWO)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
def test_far_arguments_of_the_sine_may_be_left_to_the_library(op):
    (x, _), found = values(op, 8, FAST)
    near = np.abs(x) < 2.0**30
    np.testing.assert_array_equal(found[near], elementary.of_arrays[op](x[near]))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found[~near], getattr(np, op)(x[~near]), rtol=1e-14, atol=1e-16)
