"""The check of a graph: it agrees with what is right, and notices what is not; the function sees nothing of it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odelab.functions.checking import STATES, difference, states_near
from odelab.graph.graphs import Graph
from odelab.graph.nodes import one
from odelab.right_hand_side import ARRAY, COMPONENT, IN_PLACE
from tests.odelab.graph.tracing_of import trace

U0, SPAN, PARAMS = [0.4, -0.3], (0.0, 1.0), (0.7,)


def spring(t, u, params):
    return u[1], -params[0] * u[0] * u[0]


def checked(slopes, function, form=COMPONENT, **options):
    return difference(list(slopes), function, form, SPAN, U0, PARAMS, **options)


def test_a_graph_agrees_with_its_function():
    assert checked(trace(spring, COMPONENT, 2, 1).slopes, spring) is None


@given(st.sampled_from([1e-10, 1e-6, 1e-3, 2.0]), st.integers(0, 1))
def test_a_coefficient_that_is_changed_is_noticed(change, component):
    slopes = trace(spring, COMPONENT, 2, 1).slopes
    slopes[component] = slopes[component] * (1.0 + change)
    assert f"component {component} is" in checked(slopes, spring)


def test_a_branch_that_is_left_out_is_noticed():
    def plain(t, u, params):
        return (u[1] if u[0] > 0.0 else 2.0 * u[1]), u[0]

    graph = Graph()
    u = graph.inputs("u", 2)
    assert "component 0" in checked([u[1], u[0]], plain)


def test_rounding_is_no_difference():
    """A sine that cancels: what an ulp in the inputs does to it is what its rounding may be."""

    def plain(t, u, params):
        return math.sin(1e6 * u[0]), (u[0] - u[1]) * (u[0] + u[1])

    graph = Graph()
    x, y = graph.inputs("u", 2)
    sine = trace(plain, COMPONENT, 2, 1).slopes[0]
    other = one("sin", sine.graph.input("u0") * 1e3 * 1e3)
    assert checked([other, sine], lambda t, u, params: (plain(t, u, params)[0],) * 2) is None
    assert checked([x * x - y * y, y], lambda t, u, params: (plain(t, u, params)[1], u[1])) is None
    assert checked([x * x - y * y * (1.0 + 1e-9), y], lambda t, u, params: (plain(t, u, params)[1], u[1])) is not None


def test_an_error_that_the_graph_does_not_know_is_noticed():
    def raising(t, u, params):
        if u[0] > 0.0:
            raise RuntimeError("too large")
        return u[1], u[0]

    graph = Graph()
    u = graph.inputs("u", 2)
    assert "raises RuntimeError: too large" in checked([u[1], u[0]], raising)
    assert checked(trace(raising, COMPONENT, 2, 1).slopes, raising) is None


def test_an_error_of_arithmetic_is_no_difference():
    def rooted(t, u, params):
        return math.sqrt(u[0]), math.log(u[1])

    assert checked(trace(rooted, COMPONENT, 2, 1).slopes, rooted) is None


def test_a_function_that_remembers_is_noticed():
    calls = []

    def remembering(t, u, params):
        calls.append(t)
        return u[1] + len(calls), u[0]

    graph = Graph()
    u = graph.inputs("u", 2)
    assert "remembers something" in checked([u[1] + 1.0, u[0]], remembering)


def test_complex_slopes_are_noticed():
    graph = Graph()
    u = graph.inputs("u", 2)
    assert "must be real" in checked([u[1], u[0]], lambda t, u, params: (u[1] + 0j, u[0]))


@pytest.mark.parametrize("form", [COMPONENT, ARRAY, IN_PLACE])
def test_the_function_is_called_as_plain_python_calls_it(form):
    seen = []

    def function(t, u, params, out=None):
        seen.append((type(t), type(u), u.flags.writeable, params))
        if out is not None:
            assert np.isnan(out).all()
            out[:] = -u
        return -u if form == ARRAY else (-u[0], -u[1])

    graph = Graph()
    slopes = [-x for x in graph.inputs("u", 2)]
    call = (lambda t, u, p: function(t, u, p)) if form != IN_PLACE else (lambda t, u, p, out: function(t, u, p, out))
    assert checked(slopes, call, form) is None
    assert set(seen) == {(float, np.ndarray, False, PARAMS)}
    assert len(seen) == 2 * STATES


def test_states_are_of_both_signs_near_and_far_and_always_the_same():
    times, states = states_near(SPAN, np.array(U0))
    np.testing.assert_array_equal(states, states_near(SPAN, np.array(U0))[1])
    np.testing.assert_array_equal(states[0], U0)
    assert times[0] == SPAN[0]
    assert len(states) == STATES
    assert (states > 0).any(axis=0).all()
    assert (states < 0).any(axis=0).all()
    assert np.abs(states).max() > 3.0
    assert (np.abs(states - U0).max(axis=1) < 0.1).sum() >= 5


def test_a_state_of_zeros_has_states_near_it():
    states = states_near((0.0, 1.0), np.zeros(3))[1]
    assert np.isfinite(states).all()
    assert (states[1:] != 0.0).all()


def test_further_inputs_are_handed_on():
    graph = Graph()
    slopes = [graph.input("rate") * x for x in graph.inputs("u", 2)]
    assert checked(slopes, lambda t, u, params: 3.0 * u, ARRAY, inputs={"rate": 3.0}) is None
