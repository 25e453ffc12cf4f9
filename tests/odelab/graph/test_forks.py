"""Branches: every path is followed once, paths that raise are NaN, and calls with equal arguments are one call."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odelab.graph.arrays import Array
from odelab.graph.evaluation import evaluate
from odelab.graph.forks import MOST_PATHS, join, joined
from odelab.graph.nodes import Graph, Untraceable

numbers = st.floats(-10.0, 10.0)


@given(st.lists(numbers, min_size=1, max_size=4), numbers)
def test_a_staircase_of_branches_is_the_function(levels, value):
    def stairs(x):
        for place, level in enumerate(levels):
            if x < level:
                return float(place)
        return -1.0 if x > 5.0 else x

    graph = Graph()
    x = graph.input("x")
    (found,) = evaluate(graph, [x.lift(join(graph, lambda: stairs(x)))], {"x": value})
    assert found == stairs(value)


def test_results_keep_their_shape():
    graph = Graph()
    x = graph.input("x")

    def both():
        return (x, [1.0, 2]) if x > 0 else (-x, [2.0, 3])

    number, (first, second) = join(graph, both)
    inputs = {"x": np.array([-2.0, 2.0])}
    assert [values.tolist() for values in evaluate(graph, [number, first, second], inputs)] == [[2, 2], [2, 1], [3, 2]]
    assert second.kind == "l"


def test_a_path_that_raises_is_nan_and_says_where():
    graph = Graph()
    x = graph.input("x")

    def root():
        if x < 0.0:
            raise RuntimeError("negative")
        return x * 2.0

    number = join(graph, root)
    value, raised = evaluate(graph, [number, *graph.raised], {"x": np.array([-1.0, 1.0])})
    assert math.isnan(value[0])
    assert value[1] == 2.0
    assert raised.tolist() == [True, False]


def test_a_function_that_raises_on_every_path_is_refused():
    graph = Graph()

    def fails():
        raise RuntimeError("no slopes here")

    with pytest.raises(Untraceable, match="raises RuntimeError on every path: no slopes here"):
        join(graph, fails)


@pytest.mark.parametrize("error", [TypeError, AttributeError, NameError, NotImplementedError, RecursionError])
def test_what_may_be_an_error_of_the_tracer_is_a_refusal(error):
    graph = Graph()
    x = graph.input("x")

    def fails():
        if x > 0:
            raise error("something")
        return x

    with pytest.raises(Untraceable, match=error.__name__):
        join(graph, fails)


def test_too_many_paths_are_refused():
    graph = Graph()
    xs = graph.inputs("x", 8)
    with pytest.raises(Untraceable, match=f"more than {MOST_PATHS} ways"):
        join(graph, lambda: [1.0 if x > 0 else 2.0 for x in xs])


def test_equal_arguments_are_one_call():
    graph, calls = Graph(), []
    x = graph.input("x")

    def function(*arguments):
        calls.append(arguments)
        return x if x > 1.0 else 2.0 * x

    call = joined(graph, function)
    assert call(x, 1.0, [x]) is call(graph.input("x"), 1.0, [x])
    assert len(calls) == 2
    for other in ((x, 1, [x]), (x, -0.0, [x]), (x, 0.0, [x]), (x, 0.0, (x,)), (x, Array.of([x]), None)):
        before = len(calls)
        call(*other)
        assert len(calls) == before + 2


def test_a_join_inside_of_a_path_does_not_fork_it():
    graph = Graph()
    x, y = graph.inputs("u", 2)
    inner = joined(graph, lambda a: a if a > 0.0 else -a)
    result = join(graph, lambda: inner(x) + (1.0 if y > 0 else 2.0) + inner(x))
    value = evaluate(graph, [result], {"u0": -3.0, "u1": 1.0})[0]
    assert value == 7.0


def test_what_an_inner_call_raises_is_known_outside():
    graph = Graph()
    x, y = graph.inputs("u", 2)

    def positive(a):
        if a < 0.0:
            raise RuntimeError("negative")
        return a

    inner = joined(graph, positive)
    join(graph, lambda: inner(x) if y > 0 else inner(x) + 1.0)
    states = {"u0": np.array([-1.0, -1.0, 1.0]), "u1": np.array([-1.0, 1.0, 1.0])}
    raised = np.any(evaluate(graph, graph.raised, states), axis=0)
    assert raised.tolist() == [True, True, False]


def test_a_branch_outside_of_a_function_is_refused():
    with pytest.raises(Untraceable, match="outside of a traced function"):
        bool(Graph().input("x") > 0)
