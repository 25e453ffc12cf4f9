"""A user's helper functions on nodes: their branches end where they return.

A right-hand side that calls `limited(x)` for forty components, with a branch in `limited`, would have 2^40 ways through
its branches. A helper is therefore joined by itself, as `odelab.graph.forks` joins a right-hand side, wherever that
cannot change what it means: what it is handed cannot be written to, and nobody waits for its exceptions.
"""

import functools
from collections.abc import Callable

import numpy as np

from odelab.graph.forks import follow, join, key_of, leaves, rebuilt
from odelab.graph.graphs import Node, is_number


class Helper:
    """A copy of a helper function, joined at each call.

    trace       the Trace that made the copy; it knows the graph that is being made
    function    the copy
    """

    def __init__(self, trace, function: Callable):
        self.trace, self.function = trace, function
        self.known: dict = {}
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments, **named):
        graph = self.trace.graph
        if graph is None or graph.guarded or named or not self.may_join(arguments):
            return self.function(*arguments, **named)
        key = id(graph), *map(key_of, arguments)
        if key not in self.known:
            self.known[key] = (self.joined(graph, arguments), graph, arguments)  # which keeps their identity
        found = self.known[key][0]
        return rebuilt(found, iter(leaves(found)))  # the caller may write to it

    def may_join(self, arguments) -> bool:
        """Are there nodes among the arguments, and nothing that could be written to?"""
        return all(map(cannot_be_changed, arguments)) and any(isinstance(one, Node) for one in leaves(arguments))

    def joined(self, graph, arguments):
        first = follow(lambda: self.function(*arguments), [], graph)
        if not first.outcomes or first.error is not None or not all(map(is_value, leaves(first.result))):
            return self.function(*arguments)
        return join(graph, lambda: self.function(*arguments))


def cannot_be_changed(x) -> bool:
    if isinstance(x, tuple):
        return all(map(cannot_be_changed, x))
    if isinstance(x, np.ndarray):
        return not x.flags.writeable
    return is_value(x) or isinstance(x, str | type(None))


def is_value(x) -> bool:
    return isinstance(x, Node) or is_number(x)
