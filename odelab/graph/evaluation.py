"""The value of a graph by NumPy, for many states at once: to compare it with the plain function, and to see which way
branches usually go."""

import importlib
import math

import numpy as np
from odelab.graph.nodes import arguments_of, used


NAMES = {"abs": np.abs, "neg": np.negative, "sqrt": np.sqrt, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
         "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power, "erf": lambda x: importlib.import_module("scipy.special").erf(x), "erfc": lambda x: importlib.import_module("scipy.special").erfc(x),
         "div": np.divide, "add": np.add, "sub": np.subtract, "mul": np.multiply, "lt": np.less, "le": np.less_equal, "gt": np.greater,
         "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
         "lshl": np.left_shift, "lshr": np.right_shift, "select": np.where}  # fmt: skip


def evaluate(graph, outputs, inputs):
    """Values of the output nodes; `inputs` maps the names of inputs to numbers or arrays."""
    found = {}
    with np.errstate(all="ignore"):
        for i in used(graph, outputs):
            found[i] = value_of(graph, graph.ops[i], found, inputs)
    return [found[node.i] for node in outputs]


def value_of(graph, operation, found, inputs):
    op, kind, *arguments = operation
    if op == "const":
        return np.float64(arguments[0]) if kind == "d" else np.int64(arguments[0]) if kind == "l" else np.bool_(arguments[0])
    if op == "in":
        return np.asarray(inputs[arguments[0]], dtype=np.float64 if kind == "d" else np.int64)
    x = [found[a] for a in arguments_of(operation)]
    if op == "gather":
        table = graph.tables[arguments[0]]
        place = np.where(x[0] < 0, x[0] + len(table), x[0])
        inside = (place >= 0) & (place < len(table))
        return np.where(inside, table[np.where(inside, place, 0)], math.nan if kind == "d" else -1)
    if op == "search":
        return np.searchsorted(graph.tables[arguments[0]], x[0], side="right")
    if op == "real":
        return np.asarray(x[0]).astype(float)
    if op == "whole":
        return np.asarray(np.nan_to_num(np.trunc(x[0]), nan=0.0, posinf=9e18, neginf=-9e18)).astype(np.int64)
    if op == "bits":
        return np.asarray(x[0]).view(np.int64 if kind == "l" else np.float64)
    if op == "ldiv":
        a, b = x
        safe = np.where(b == 0, 1, b)
        return (np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe))).astype(np.int64)
    name = op[1:] if kind in "lb" and op[0] == "l" and op[1:] in ("add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne") else op
    function = NAMES.get(name) or getattr(np, name)
    return function(*x)
