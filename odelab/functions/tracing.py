"""A user's function as a function of nodes: right-hand sides, events and projections.

Whatever goes wrong here is a refusal, `Untraceable`, which names the line of the user's code that is in the way.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from odelab.functions.copies import Trace
from odelab.graph.arrays import Array, entries
from odelab.graph.forks import joined, place_of
from odelab.graph.graphs import Graph, Node, lift
from odelab.graph.numpy_functions import filled
from odelab.graph.trails import Untraceable
from odelab.right_hand_side import IN_PLACE

__all__ = ["Trace", "traced", "traced_change", "traced_event", "traced_projection"]


def traced(graph: Graph, function: Callable, form: str, n: int, trace: Trace | None = None) -> Callable:
    """A right-hand side of n components as `slopes(t, u, params)`, an Array of n nodes without branches.

    function    the user's, in the form COMPONENT, ARRAY or IN_PLACE of `odelab.right_hand_side`
    trace       notes what the function reads

    Raises Untraceable where the function cannot be written as a graph. `graph.raised` then holds the conditions under
    which the user's function raises, or may raise, an error of its own; the slopes are NaN there.

    >>> from odelab.graph.nodes import Graph
    >>> from odelab.functions.tracing import traced
    >>> graph = Graph()
    >>> def spring(t, u, params):
    ...     return u[1], -params[0] * u[0]
    >>> slopes = traced(graph, spring, "component", 2)
    >>> [node.op for node in slopes(graph.input("t"), graph.inputs("u", 2), (graph.input("p0"),))]
    ['in', 'mul']
    """
    trace = Trace() if trace is None else trace
    copy = located(function, trace.copy)(function)

    def slopes(t, u, params):
        state, params = read_only(u), trace.copy(params)
        if form == IN_PLACE:
            out = filled(n, math.nan)
            copy(t, state, params, out)
            return numbers_of(graph, out, n)
        return numbers_of(graph, copy(t, state, params), n)

    return located(function, joined(graph, guarded(graph, trace, slopes)))


def traced_event(graph: Graph, function: Callable, trace: Trace | None = None) -> Callable:
    """An event function as `value(t, u, params)`, one node."""
    trace = Trace() if trace is None else trace
    copy = located(function, trace.copy)(function)

    def value(t, u, params):
        return number_of(graph, copy(t, read_only(u), trace.copy(params)))

    return located(function, joined(graph, guarded(graph, trace, value)))


def traced_projection(graph: Graph, function: Callable, n: int, trace: Trace | None = None) -> Callable:
    """A projection as `projected(u)`, an Array of n nodes; the function may write to the state it gets."""
    trace = Trace() if trace is None else trace
    copy = located(function, trace.copy)(function)

    def projected(u):
        return numbers_of(graph, copy(entries(u).copy().view(Array)), n)

    return located(function, joined(graph, guarded(graph, trace, projected)))


def traced_change(graph: Graph, function: Callable, n: int, trace: Trace | None = None) -> Callable:
    """What an event makes of a state, as `changed(t, u, params)`, an Array of n nodes; it may write to the state."""
    trace = Trace() if trace is None else trace
    copy = located(function, trace.copy)(function)

    def changed(t, u, params):
        return numbers_of(graph, copy(t, entries(u).copy().view(Array), trace.copy(params)), n)

    return located(function, joined(graph, guarded(graph, trace, changed)))


def guarded(graph: Graph, trace: Trace, function: Callable) -> Callable:
    """A function during whose run the graph knows whether a handler of exceptions may be open.

    Constants are computed without warnings, as a run in plain Python computes them.
    """

    def call(*arguments):
        before = trace.graph, graph.guarded
        trace.graph, graph.guarded = graph, trace.handles
        try:
            with np.errstate(all="ignore"):
                return function(*arguments)
        finally:
            trace.graph, graph.guarded = before

    return call


def read_only(u) -> Array:
    """A state that the function must not write to, as plain Python has it."""
    state = entries(u).copy().view(Array)
    state.flags.writeable = False
    return state


def numbers_of(graph: Graph, answer, n: int) -> Array:
    """What a function returned, as n real numbers."""
    if not isinstance(answer, tuple | list | np.ndarray):
        raise Untraceable(f"returns {named(answer)} where {n} numbers are wanted", "return a tuple, a list or an array")
    items = entries(answer)
    if items.shape != (n,):
        raise Untraceable(
            f"returns numbers of shape {items.shape} for {n} components", "return one slope per component"
        )
    result = Array.of([real(graph, item) for item in items.tolist()])
    result.flags.writeable = False
    return result


def number_of(graph: Graph, answer) -> Node:
    items = entries(answer).reshape(-1).tolist()
    if len(items) != 1:
        raise Untraceable(f"returns {len(items)} numbers where one is wanted", "return one number")
    return real(graph, items[0])


def real(graph: Graph, item) -> Node:
    node = lift(graph, item)
    if node is None:
        raise Untraceable(f"returns {named(item)} where a number is wanted", "return numbers")
    return node.real()


def named(answer) -> str:
    return "nothing" if answer is None else "a number" if isinstance(answer, Node) else f"a {type(answer).__name__}"


def located(function: Callable, call: Callable) -> Callable:
    """`call`, whose refusals name the line of the user's code; any error of the tracer's is a refusal, too."""

    def locate(*arguments):
        try:
            return call(*arguments)
        except Untraceable as refusal:
            refusal.place = refusal.place or name_of(function)
            raise
        except Exception as error:
            reason = f"cannot be followed ({type(error).__name__}: {error})"
            raise Untraceable(reason, place=place_of(error) or name_of(function)) from error

    return locate


def name_of(function: Callable) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__qualname__", type(function).__qualname__)
