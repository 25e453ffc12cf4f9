"""The values of a graph by NumPy, for many states at once: to compare it with the plain function, and to test it."""

from collections.abc import Callable

import numpy as np

from odelab.graph.nodes import Graph, arguments_of, used
from odelab.graph.operations import numpys

LARGEST = 2.0**62  # what a whole number is held to here; beyond it plain Python is asked (`Graph.raised`)
SIMPLE: dict[str, Callable] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide},
    **{
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
    },
    **{"and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "select": np.where},
    **{"lshl": np.left_shift, "lshr": np.right_shift},
}
OF_INTEGERS = {f"l{op}": SIMPLE[op] for op in ("add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne")}


def evaluate(graph: Graph, outputs, inputs: dict, elementary: dict | None = None) -> list[np.ndarray]:
    """The values of nodes.

    outputs    nodes
    inputs     {name of an input: a number, or an array of its values}
    elementary  functions that take the place of NumPy's, by the names of their operations

    >>> from odelab.graph.evaluation import evaluate
    >>> from odelab.graph.nodes import Graph
    >>> graph = Graph()
    >>> x = graph.input("x")
    >>> [values.tolist() for values in evaluate(graph, [x * x + 1.0], {"x": [0.0, 2.0]})]
    [[1.0, 5.0]]
    """
    values: dict[int, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for number in used(graph, outputs):
            operation = graph.ops[number]
            x = [values[i] for i in arguments_of(operation)]
            own = None if elementary is None else elementary.get(operation[0])
            values[number] = value_of(graph, operation, x, inputs) if own is None else np.asarray(own(*x))
    return [values[node.i] for node in outputs]


def value_of(graph: Graph, operation: tuple, x: list, inputs: dict) -> np.ndarray:
    op, kind, *arguments = operation
    if op in ("const", "in"):
        value = arguments[0] if op == "const" else inputs[arguments[0]]
        return np.asarray(value, dtype={"d": np.float64, "l": np.int64, "b": np.bool_}[kind])
    if op == "gather":
        return entry_of(graph.tables[arguments[0]], x[0])
    if op == "search":
        return np.searchsorted(graph.tables[arguments[0]], x[0], side="right")
    if op in CONVERSIONS:
        return CONVERSIONS[op](*x)
    function = SIMPLE.get(op) or OF_INTEGERS.get(op) or numpys(op)
    return function(*x)


def entry_of(table: np.ndarray, place) -> np.ndarray:
    """An entry of a table at a place, which may count from the end; NaN, or -1, outside of the table."""
    place = np.where(place < 0, place + len(table), place)
    inside = (place >= 0) & (place < len(table))
    return np.where(inside, table[np.where(inside, place, 0)], np.nan if table.dtype.kind == "f" else -1)


def to_real(x) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


def to_whole(x) -> np.ndarray:
    return np.clip(np.nan_to_num(np.trunc(x)), -LARGEST, LARGEST).astype(np.int64)


def bits(x) -> np.ndarray:
    x = np.asarray(x)
    return x.view(np.float64 if x.dtype == np.int64 else np.int64)


def divide_integers(a, b) -> np.ndarray:
    """The quotient of whole numbers, rounded to zero as processors do."""
    divisor = np.where(b == 0, 1, b)
    quotient = a // divisor
    return quotient + ((quotient < 0) & (quotient * divisor != a))


CONVERSIONS: dict[str, Callable] = {"real": to_real, "whole": to_whole, "bits": bits, "ldiv": divide_integers}
