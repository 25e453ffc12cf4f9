"""Kernels by what they are made for: they are made when they are first wanted, and kept while they fit.

The user's function is run on nodes once. Whatever it has captured may change between two calls: a `Watch` tells in a
few microseconds whether it has. Then the function is run on nodes again, and a kernel with the same operations is used.
"""

import hashlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.functions.checking import difference, refuse_if
from odelab.functions.tracing import Trace, traced, traced_change, traced_event, traced_projection
from odelab.functions.watch import Watch
from odelab.graph.arrays import Array
from odelab.graph.nodes import Graph, Untraceable
from odelab.graph.recorded import Recorded, recorded
from odelab.kernels.parameters import Parameters
from odelab.right_hand_side import ARRAY

IN_PROCESS = 64  # kernels that are kept; one holds about a megabyte
FUNCTIONS = 256  # of the user's that are remembered at once: what they have captured may keep them alive


class Traced(NamedTuple):
    """A user's function as operations.

    recorded      the operations
    digest        of them
    parameters    how its parameters are handed over
    watch         tells whether what it has captured is unchanged
    """

    recorded: Recorded
    digest: bytes
    parameters: Parameters
    watch: Watch

    @property
    def key(self) -> tuple:
        """Equal for functions that one kernel serves."""
        return self.digest, len(self.parameters.values)


class Refused(NamedTuple):
    """A function that cannot be followed, as long as what it has captured is unchanged."""

    refusal: Untraceable
    watch: Watch


functions: weakref.WeakKeyDictionary[Callable, tuple] = weakref.WeakKeyDictionary()
kernels: OrderedDict[tuple, Any] = OrderedDict()
lock = threading.RLock()


def slopes_of(problem) -> Traced:
    """The right-hand side of a problem as operations; raises `Untraceable` where it cannot be followed.

    What is found is compared with the function itself at some states before it is trusted. A problem remembers it, for
    short runs of one problem again and again.
    """
    before = vars(problem).get("slopes_of_graph")
    if before is not None and before.watch.is_unchanged():
        return before
    rhs, form, n = problem.rhs, problem.form, problem.size

    def record(parameters, trace):
        def call(graph):
            slopes = traced(graph, rhs, form, n, trace)
            return slopes(graph.input("t"), graph.inputs("u", n), parameters.nodes(graph))

        found = recorded(call)
        given = dict(zip(parameters.names, parameters.values, strict=True))
        refuse_if(difference(found.outputs, rhs, form, problem.t_span, problem.u0, problem.params, given), rhs)
        return found

    slopes = known(rhs, ("slopes", form, n), Parameters(problem.params), record)
    if slopes.parameters.are_lasting:
        vars(problem)["slopes_of_graph"] = slopes
    return slopes


def compared(found: Recorded, function, plain: Callable, t_span, u0, parameters: Parameters) -> Recorded:
    """The operations of an event or a projection, if they are what the function computes; `plain` calls it."""
    given = dict(zip(parameters.names, parameters.values, strict=True))
    refuse_if(difference(found.outputs, plain, ARRAY, t_span, u0, parameters.params, given), function)
    return found


def known(function: Callable, purpose: tuple, parameters: Parameters, record: Callable) -> Traced:
    """The operations of a function, from before if nothing has changed since; refusals are remembered, too.

    Where they cannot be told without knowing the whole numbers among the parameters, these are a part of the kernel.
    """
    with lock:
        try:
            owner, found = functions.setdefault(function, (weakref.ref(function), {}))
            if owner() is not function:  # one that is equal to it, and may be another function all the same
                found = {}
            if len(functions) > FUNCTIONS:
                functions.pop(next(iter(functions)))
        except TypeError:  # nothing can refer to it weakly, or it has no hash
            found = {}
        try:
            return known_for(function, found, purpose, parameters, record)
        except Untraceable:
            if not parameters.has_whole_numbers:
                raise
        return known_for(function, found, purpose, Parameters(parameters.params, "built in"), record)


def known_for(function: Callable, found: dict, purpose: tuple, parameters: Parameters, record: Callable) -> Traced:
    """The same for parameters that are handed over in one way."""
    key = (*purpose, parameters.builds_in, parameters.made_for)
    before = found.get(key)
    if before is not None and before.watch.is_unchanged():
        if isinstance(before, Refused):
            raise before.refusal
        return Traced(before.recorded, before.digest, parameters, before.watch)
    trace = Trace()
    try:
        operations = record(parameters, trace)
    except Untraceable as refusal:
        found[key] = Refused(refusal.with_traceback(None), Watch(function, trace.reached))
        raise
    digest = hashlib.sha256(repr(operations.key).encode()).digest()
    made = found[key] = Traced(operations, digest, parameters, Watch(function, trace.reached))
    return made


def event_of(function: Callable, problem) -> Traced:
    """An event's function of (t, u, params) as operations."""

    def record(parameters, trace):
        def call(graph):
            value = traced_event(graph, function, trace)
            return [value(graph.input("t"), graph.inputs("u", problem.size), parameters.nodes(graph))]

        def plain(t, u, params):
            return np.reshape(function(t, u, params), 1)

        return compared(recorded(call), function, plain, problem.t_span, problem.u0, parameters)

    return known(function, ("event", problem.size), Parameters(problem.params), record)


def change_of(function: Callable, problem) -> Traced:
    """The function of (t, u, params) by which an event changes the state, as operations."""
    n = problem.size

    def record(parameters, trace):
        def call(graph):
            state = traced_change(graph, function, n, trace)
            return state(graph.input("t"), graph.inputs("u", n), parameters.nodes(graph))

        def plain(t, u, params):
            return np.asarray(function(t, np.array(u), params), dtype=float)

        return compared(recorded(call), function, plain, problem.t_span, problem.u0, parameters)

    return known(function, ("change", n), Parameters(problem.params), record)


def projection_of(function: Callable, n: int) -> Traced:
    """The user's projection of states as operations."""

    def record(parameters, trace):
        found = recorded(lambda graph: traced_projection(graph, function, n, trace)(graph.inputs("u", n)))
        return compared(found, function, lambda t, u, params: function(np.array(u)), (0.0, 1.0), np.ones(n), parameters)

    return known(function, ("projection", n), Parameters(()), record)


def projection_in(graph: Graph, traced: Traced) -> Callable:
    """The projection as a function of nodes of a graph."""

    def projected(u):
        return Array.of(traced.recorded.put(graph, {f"u{i}": x for i, x in enumerate(u)}))

    return projected


def kernel(key: tuple, make: Callable[[], Any], *alive) -> Any:
    """The kernel of this key, made if it is not there; that there is none is remembered, too.

    alive    objects whose identities are in the key: kept, so that no other object gets one of them
    """
    with lock:
        if key not in kernels:
            try:
                kernels[key] = make(), alive
            except Untraceable as refusal:
                kernels[key] = refusal.with_traceback(None), alive
            if len(kernels) > IN_PROCESS:
                kernels.popitem(last=False)
        kernels.move_to_end(key)
        found = kernels[key][0]
        if isinstance(found, Untraceable):
            raise found
        return found


def inputs_of(t, u, parameters: Parameters, graph: Graph) -> dict[str, Any]:
    """The inputs of recorded slopes: time, state and numbers among the parameters, which are inputs of the graph."""
    state = {f"u{i}": x for i, x in enumerate(u)}
    return {"t": t, **state, **{name: graph.input(name) for name in parameters.names}}


def slopes_in(graph: Graph, traced: Traced) -> Callable:
    """The right-hand side as a function (t, u, params) of nodes of a graph; its parameters are inputs of the graph."""

    def slopes_at(t, u, params=None):
        return Array.of(traced.recorded.put(graph, inputs_of(t, u, traced.parameters, graph)))

    return slopes_at
