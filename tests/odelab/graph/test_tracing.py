"""Functions as people write them: their graph is what they compute."""

import functools
import math
import threading

import numpy as np
import pytest

import odelab as ol
from odelab import problems
from odelab.control import powers
from odelab.functions.checking import difference
from odelab.functions.tracing import Trace, traced, traced_event, traced_projection
from odelab.graph.evaluation import evaluate
from odelab.graph.forks import joined
from odelab.graph.nodes import Graph, Node, Untraceable
from odelab.right_hand_side import COMPONENT
from tests.odelab.graph.cases import CASES, PARAMS
from tests.odelab.graph.tracing_of import plain_values, random_states, trace, values


@functools.cache
def built(case):
    return case.build()


@pytest.mark.parametrize("case", CASES, ids=[f"{case.form}: {case.body[:50]}" for case in CASES])
def test_a_graph_is_what_the_function_computes(case):
    """To rounding, which `difference` bounds; where the function raises, the graph says so."""
    found = trace(built(case), case.form)
    assert difference(found.slopes, built(case), case.form, (0.0, 3.0), [0.4, -0.3], PARAMS) is None
    times, states = random_states()
    (_, says), (_, raises) = values(found, times, states, PARAMS), plain_values(found, times, states, PARAMS)
    assert (says | ~raises).all()


def test_there_are_a_hundred_cases():
    assert len(CASES) >= 100


@pytest.mark.parametrize("name", ["van_der_pol", "hires", "pollu", "robertson", "brusselator", "lorenz"])
def test_the_catalogue_is_traced_in_every_form(name):
    problem = getattr(problems, name)()
    found = trace(problem.rhs, problem.form, problem.size, len(problem.params))
    assert not found.graph.raised
    assert difference(found.slopes, problem.rhs, problem.form, problem.t_span, problem.u0, problem.params) is None


def test_products_and_sums_have_the_bits_of_the_function():
    def polynomial(t, u, params):
        x, y = u
        return x * y - params[0] * (x + 3.0) / (1.0 + y * y), math.sqrt(x * x + 0.1) - abs(y)

    found = trace(polynomial, COMPONENT)
    times, states = random_states()
    np.testing.assert_array_equal(
        values(found, times, states, PARAMS)[0], plain_values(found, times, states, PARAMS)[0]
    )


def test_parameters_may_be_any_object():
    def rhs(t, u, params):
        return params["rates"][0] * u[0], params["name"].k * u[1]

    class Law:
        k = 3.0

    graph = Graph()
    slopes = traced(graph, rhs, COMPONENT, 2)
    answer = slopes(graph.input("t"), graph.inputs("u", 2), {"rates": np.array([2.0]), "name": Law()})
    assert [float(x) for x in evaluate(graph, answer, {"u0": 5.0, "u1": 7.0})] == [10.0, 21.0]


def test_what_was_read_can_be_read_again():
    level, rows = 0.5, np.array([1.0, 2.0])

    def rhs(t, u, params, factor=2.0):
        return level * u[0] + rows[1], factor * u[1]

    log = Trace()
    trace(rhs, COMPONENT, trace=log)
    assert all(read() is value for read, value in log.reached)
    assert any(value is rows for _, value in log.reached)
    assert (2.0,) in [value for _, value in log.reached if isinstance(value, tuple)]


def test_an_attribute_that_changes_is_read_anew():
    class Law:
        def __init__(self):
            self.k = 1.0

        def rhs(self, t, u, params):
            return self.k * u[0], -u[1]

    law, log = Law(), Trace()
    trace(law.rhs, COMPONENT, trace=log)
    law.k = 2.0
    assert [value for read, value in log.reached if read() is not value] == [1.0]


def test_an_event_is_one_number_and_a_projection_may_write_to_its_state():
    graph = Graph()

    def event(t, u, params):
        return u[0] - 0.5 if t > 1.0 else u[1]

    def project(u):
        u[u < 0.0] = 0.0
        return u

    value = traced_event(graph, event)(graph.input("t"), graph.inputs("u", 2), ())
    state = traced_projection(graph, project, 2)(graph.inputs("u", 2))
    inputs = {"t": 2.0, "u0": -3.0, "u1": 4.0}
    assert [float(x) for x in evaluate(graph, [value, *state], inputs)] == [-3.5, 0.0, 4.0]


def test_a_graph_that_grows_without_end_is_refused():
    def rhs(t, u, params):
        x = u[0]
        while x > 0.0:
            x = x + 1.0
        return x, u[1]

    with pytest.raises(Untraceable, match="takes more than 20000 operations: shorten"):
        trace(rhs, COMPONENT)


def test_functions_are_traced_in_threads_at_the_same_time():
    def rhs(t, u, params):
        x = u[0]
        for _ in range(6):
            x = x * 0.5 if x > 1.0 else x + 0.1
        return x, u[1]

    found: list = []
    threads = [threading.Thread(target=lambda: found.append(trace(rhs, COMPONENT).graph.ops)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(ops == found[0] for ops in found)


def test_equal_operations_are_one_node():
    def rhs(t, u, params):
        return sum((u @ u) for _ in range(50)), u[1]

    assert len(trace(rhs, COMPONENT).graph.ops) < 70


def test_a_node_is_shown_as_its_operation():
    assert repr(Graph().input("x")) == "Node(0: ('in', 'd', 'x'))"
    assert isinstance(Graph().input("x"), Node)


@pytest.mark.parametrize("name", ["log2", "exp2", "arctan"])
def test_odelabs_own_elementary_functions_have_the_bits_of_plain_python(name):
    """They read and write the bits of doubles."""
    function = getattr(powers, name)
    graph = Graph()
    value = joined(graph, Trace().copy(function))(graph.input("x"))
    xs = np.linspace(0.01, 30.0, 200)
    np.testing.assert_array_equal(evaluate(graph, [value], {"x": xs})[0], [function(float(x)) for x in xs])
    assert not graph.raised


def test_a_right_hand_side_of_two_arguments_is_traced():
    problem = ol.Problem(lambda t, u: (u[1], -u[0] * t), [1.0, 0.0], (0.0, 1.0))
    found = trace(problem.rhs, problem.form, 2, 0)
    assert difference(found.slopes, problem.rhs, problem.form, (0.0, 1.0), [1.0, 0.0], ()) is None


def test_a_builtin_that_a_global_hides_later_is_noticed():
    names: dict = {"__name__": "written"}
    exec("def rhs(t, u, params):\n    return abs(u[0]), u[1]", names)
    log = Trace()
    trace(names["rhs"], COMPONENT, trace=log)
    names["abs"] = float
    assert [value for read, value in log.reached if read() is not value] == [None]


def test_constants_are_computed_without_warnings():
    zero = np.float64(0.0)
    found = trace(lambda t, u, params: (u[0] / (1.0 + 1.0 / zero), 1.0 / np.zeros(2)[0]), COMPONENT)
    assert [float(x) for x in evaluate(found.graph, found.slopes, {"u0": 1.0})] == [0.0, math.inf]
