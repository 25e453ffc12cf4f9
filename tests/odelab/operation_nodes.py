"""A minimal expression graph: what a function of `odelab.elementary` does to its argument, without a value.

Equal operations are one node, as in a compiler. A node has no truth value, so that a function that branches fails.
"""

import operator

import numpy as np

from odelab.elementary import Machine

BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "lshift": operator.lshift, "rshift": operator.rshift, "and": operator.and_,
    "lt": operator.lt, "gt": operator.gt, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
REFLECTED = ("add", "sub", "mul", "truediv")
CASTS = ("bits", "number")  # they read a register as another type, and cost nothing


def _bits(x):
    return np.asarray(x, float).view(np.int64)


def _number(bits):
    return np.asarray(bits, np.int64).view(np.float64)


MEANINGS = {
    **BINARY, "neg": operator.neg, "abs": np.abs, "sqrt": np.sqrt, "where": np.where, "bits": _bits, "number": _number
}  # fmt: skip


class Node:
    """An operation and what it is applied to: nodes and numbers."""

    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("a node has no truth value: use `where` in the place of a branch")

    def __neg__(self):
        return node("neg", self)

    def __abs__(self):
        return node("abs", self)


_known: dict = {}


def node(name, *arguments):
    """The node of an operation; the same one for the same operation."""
    key = (name, *(id(argument) if isinstance(argument, Node) else repr(argument) for argument in arguments))
    if key not in _known:
        _known[key] = Node(name, arguments)
    return _known[key]


def _operator(name, swapped):
    def method(self, other):
        return node(name, other, self) if swapped else node(name, self, other)

    return method


for _name in BINARY:
    setattr(Node, f"__{_name}__", _operator(_name, swapped=False))
for _name in REFLECTED:
    setattr(Node, f"__r{_name}__", _operator(_name, swapped=True))


def _where(condition, x, y):
    return node("where", condition, x, y)


def _rarely(condition, usual, unusual):
    return tuple(_where(condition, there, here) for here, there in zip(usual, unusual(), strict=True))


def _usually(condition, usual, unusual):
    return usual


def _named(name):
    def operation(x):
        return node(name, x)

    return operation


NODES = Machine(_where, _rarely, _named("bits"), _named("number"), _named("sqrt"))
USUAL_NODES = Machine(_where, _usually, _named("bits"), _named("number"), _named("sqrt"))  # `unusual` is left out


def _in_order(output):
    """The nodes under an output, each behind its arguments."""
    ordered: dict = {}

    def visit(item):
        if isinstance(item, Node) and item not in ordered:
            for argument in item.arguments:
                visit(argument)
            ordered[item] = None

    visit(output)
    return list(ordered)


def operations(output):
    """How many operations a processor does for an output."""
    return sum(item.name not in ("input", *CASTS) for item in _in_order(output))


def evaluate(output, inputs):
    """The values of an output in 64-bit arithmetic, given arrays for its inputs."""
    values: dict = {}
    for item in _in_order(output):
        arguments = [
            values.get(argument, argument) if isinstance(argument, Node) else argument for argument in item.arguments
        ]
        values[item] = inputs[arguments[0]] if item.name == "input" else MEANINGS[item.name](*arguments)
    return values[output]
