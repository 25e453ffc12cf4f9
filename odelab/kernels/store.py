"""Kernels by what they are made for: they are made when they are first wanted, and kept while they fit.

The user's function is run on nodes once. Whatever it has captured may change between two calls: where that can be seen,
a `Watch` tells in a few microseconds whether it has; elsewhere the function is run on nodes again at each call, and a
kernel with the same operations is used again.
"""

import hashlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.engines.numba.fingerprint import Unseen, Watch, fingerprint
from odelab.engines.refusals import NotCompilable
from odelab.graph.arrays import Array
from odelab.graph.recorded import Recorded, recorded
from odelab.graph.nodes import Graph, Untraceable
from odelab.graph.tracing import traced, traced_projection
from odelab.kernels.parameters import Parameters

IN_PROCESS = 64  # kernels that are kept; one holds about a megabyte


class Traced(NamedTuple):
    """A user's function as operations.

    recorded      the operations
    digest        of them
    parameters    how its parameters are handed over
    watch         tells whether what it has captured is unchanged; None where that cannot be seen
    """

    recorded: Recorded
    digest: bytes
    parameters: Parameters
    watch: Watch | None


functions: weakref.WeakKeyDictionary[Callable, dict[tuple, Traced]] = weakref.WeakKeyDictionary()
kernels: OrderedDict[tuple, Any] = OrderedDict()
lock = threading.RLock()


def slopes_of(problem) -> Traced:
    """The right-hand side of a problem as operations; raises `Untraceable` where it cannot be followed."""
    parameters = Parameters(problem.params)

    def record(parameters):
        def call(graph):
            return traced(graph, problem.rhs, problem.form, problem.size)(
                graph.input("t"), graph.inputs("u", problem.size), parameters.nodes(graph)
            )

        return recorded(call)

    return known(problem.rhs, ("slopes", problem.form, problem.size), parameters, record)


def known(function: Callable, purpose: tuple, parameters: Parameters, record: Callable) -> Traced:
    """The operations of a function, from before if nothing has changed since."""
    with lock:
        try:
            found = functions.setdefault(function, {})
        except TypeError:  # nothing can refer to it weakly
            found = {}
        key = (*purpose, parameters.made_for)
        before = found.get(key)
        if before is not None and before.watch is not None and before.watch.is_unchanged():
            return before._replace(parameters=built_in(parameters) if before.parameters.builds_in else parameters)
        try:
            watch = fingerprint(function).watch
        except (Unseen, AttributeError, TypeError):
            watch = None
        try:
            operations = record(parameters)
        except Untraceable:
            if not parameters.has_whole_numbers:
                raise
            parameters = built_in(parameters)
            operations = record(parameters)
        found[key] = Traced(operations, hashlib.sha256(repr(operations.key).encode()).digest(), parameters, watch)
        return found[key]


def projection_of(function: Callable, n: int) -> Traced:
    """The user's projection of states as operations."""

    def record(parameters):
        return recorded(lambda graph: traced_projection(graph, function, n)(graph.inputs("u", n)))

    return known(function, ("projection", n), Parameters(()), record)


def projection_in(graph: Graph, traced: Traced) -> Callable:
    """The projection as a function of nodes of a graph."""

    def projected(u):
        return Array.of(traced.recorded.put(graph, {f"u{i}": x for i, x in enumerate(u)}))

    return projected


def built_in(parameters: Parameters) -> Parameters:
    return Parameters(parameters.params, "built in")


def kernel(key: tuple, make: Callable[[], Any]) -> Any:
    """The kernel of this key, made if it is not there."""
    with lock:
        if key not in kernels:
            kernels[key] = make()
            if len(kernels) > IN_PROCESS:
                kernels.popitem(last=False)
        kernels.move_to_end(key)
        return kernels[key]


def inputs_of(t, u, parameters: Parameters, graph: Graph) -> dict[str, Any]:
    """The inputs of recorded slopes: time, state and the numbers among the parameters, which are inputs of the graph."""
    state = {f"u{i}": x for i, x in enumerate(u)}
    return {"t": t, **state, **{name: graph.input(name) for name in parameters.names}}


def slopes_in(graph: Graph, traced: Traced) -> Callable:
    """The right-hand side as a function (t, u, params) of nodes of a graph; its parameters are inputs of the graph."""

    def slopes_at(t, u, params=None):
        return Array.of(traced.recorded.put(graph, inputs_of(t, u, traced.parameters, graph)))

    return slopes_at
