"""Branches on values: a function is run once for each outcome, and the results are joined by choices.

`joined(graph, function)` is a function of nodes without branches. For the same nodes it runs once: because equal
operations are one node, a loop around it that follows its own branches adds nothing to the graph.
"""

import math
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.graph.arrays import Array
from odelab.graph.graphs import Graph, Node, is_number
from odelab.graph.nodes import choose, raises_where
from odelab.graph.trails import HOMES, Trail, Untraceable, innermost, is_users_code

MOST_PATHS = 128
# What an operation on a node raises where a number would not: nobody can tell it from a mistake of the function's own.
TRACERS_ERRORS = (
    *(TypeError, AttributeError, NameError, ImportError, NotImplementedError),
    *(RecursionError, MemoryError, SystemError),
)


class OutOfDomain(ValueError):
    """What `math` raises outside of the domain of a function, for a handler of the user's."""


class OutOfRange(OverflowError):
    """What `math` raises for a result beyond the largest number, for a handler of the user's."""


class Path:
    """One way through the branches: the outcomes on it, and its result; `error` where it raises."""

    def __init__(self, trail: Trail, result: Any, error: Exception | None):
        self.outcomes, self.result, self.error = list(trail.seen.items()), result, error


def follow(call: Callable, outcomes: list[bool], graph: Graph) -> Path:
    """Run a function on the path that begins with these outcomes."""
    trail = Trail(outcomes, innermost.get())
    token = innermost.set(trail)
    result, error = None, None
    try:
        result = call()
    except Exception as raised:
        if trail.refusal is None:
            refuse_own_errors(raised)
        error = raised
    finally:
        if error is not None and trail.refusal is None:
            raises_where(graph, True)
        innermost.reset(token)
    if trail.refusal is not None:
        raise trail.refusal
    return Path(trail, result, error)


def refuse_own_errors(error: Exception):
    """Turn what the tracer raises, or may have raised, into a refusal; the rest are errors of the user's function."""
    place = place_of(error)
    if "read-only" in str(error):
        raise Untraceable(
            "writes to the state, or to an array that outlives the call", "write to a copy", place
        ) from error
    if isinstance(error, TRACERS_ERRORS) or (
        comes_from_here(error) and not isinstance(error, OutOfDomain | OutOfRange)
    ):
        raise Untraceable(f"raises {type(error).__name__}: {error}", "", place) from error


def place_of(error: BaseException) -> str:
    """The innermost line of the user's code on the way to an error; empty where there is none."""
    place, step = "", error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        place = f"line {step.tb_lineno} of {os.path.basename(file)}" if is_users_code(file) else place
        step = step.tb_next
    return place


def comes_from_here(error: Exception) -> bool:
    """Was an error raised by this package?"""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return isinstance(last, types.TracebackType) and os.path.dirname(last.tb_frame.f_code.co_filename) in HOMES


def paths_of(call: Callable, graph: Graph) -> list[Path]:
    """Every way through a function."""
    paths, todo = [], [[]]  # type: ignore[var-annotated]
    while todo:
        outcomes = todo.pop()
        path = follow(call, outcomes, graph)
        paths.append(path)
        if len(paths) > MOST_PATHS:
            raise Untraceable(
                f"has more than {MOST_PATHS} ways through its branches",
                "write np.where for branches that follow one another",
            )
        taken = [outcome for _, outcome in path.outcomes]
        todo += [[*taken[:k], False] for k in range(len(outcomes), len(taken))]
    return paths


def join(graph: Graph, call: Callable):
    """The result of `call()` over all its paths, NaN where it raises (`Graph.raised` tells where)."""
    paths = paths_of(call, graph)
    model = next((path.result for path in paths if path.error is None), None)
    if all(path.error is not None for path in paths):
        error = paths[0].error
        raise Untraceable(f"raises {type(error).__name__} on every path: {error}") from error
    if len(paths) == 1:
        return model
    shape = shape_of(model)
    rows = [(path.outcomes, results_of(path, model, shape)) for path in paths]
    return rebuilt(model, iter(merge(graph, rows, 0)))


def results_of(path: Path, model, shape) -> list:
    """The numbers that a path returns; NaN for those of a path that raises."""
    if path.error is not None:
        return [math.nan if is_number(leaf) or isinstance(leaf, Node) else leaf for leaf in leaves(model)]
    if shape_of(path.result) != shape:
        raise Untraceable("returns something else in one branch than in another", "return as many numbers in each")
    return leaves(path.result)


def merge(graph: Graph, rows: list, depth: int) -> list:
    """The results of paths that agree in their first `depth` outcomes, as choices."""
    if len(rows) == 1:
        return rows[0][1]
    condition = Node(graph, rows[0][0][depth][0])
    yes, no = ([row for row in rows if row[0][depth][1] is side] for side in (True, False))
    sides = merge(graph, yes, depth + 1), merge(graph, no, depth + 1)
    return [one_of(condition, a, b) for a, b in zip(*sides, strict=True)]


def one_of(condition: Node, a, b):
    """The choice between two results; objects that are no numbers have to be equal."""
    if a is b:
        return a
    numbers = all(is_number(x) or isinstance(x, Node) for x in (a, b))
    if numbers:
        return choose(condition, a, b)
    if type(a) is type(b) and a == b:
        return a
    raise Untraceable("returns different objects in its branches", "return numbers")


def leaves(tree) -> list:
    """The numbers in nested tuples, lists and arrays, in order."""
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    if isinstance(tree, np.ndarray):
        return tree.reshape(-1).tolist()
    return [tree]


def shape_of(tree):
    """How numbers are nested, which two results have to share; lists, tuples and rows of an array are alike."""
    if isinstance(tree, np.ndarray):
        return shape_of(tree.tolist())
    return [shape_of(part) for part in tree] if isinstance(tree, tuple | list) else None


def rebuilt(tree, numbers):
    """Nested tuples, lists and arrays with other numbers in them."""
    if isinstance(tree, tuple | list):
        parts = [rebuilt(part, numbers) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, np.ndarray):
        return Array.of([next(numbers) for _ in range(tree.size)]).reshape(tree.shape)
    return next(numbers)


def key_of(leaf):
    """What tells equal arguments: the number of a node, the text of a number, the identity of anything else."""
    if isinstance(leaf, Node):
        return leaf.i
    if isinstance(leaf, tuple | list):
        return (type(leaf), *map(key_of, leaf))
    if isinstance(leaf, np.ndarray):
        return (leaf.shape, *map(key_of, leaf.reshape(-1).tolist()))
    return (type(leaf), repr(leaf)) if is_number(leaf) else (type(leaf), id(leaf))


def joined(graph: Graph, function: Callable) -> Callable:
    """`function` without branches, run once for equal arguments; its arguments and results must not be written to."""
    known: dict = {}

    def call(*arguments):
        key = tuple(map(key_of, arguments))
        if key not in known:
            known[key] = (join(graph, lambda: function(*arguments)), arguments)  # which keeps their identity
        return known[key][0]

    return call
