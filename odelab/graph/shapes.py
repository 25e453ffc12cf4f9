"""The shape of a row: its operations, without what it reads; rows of one shape are one expression at other places."""

from collections.abc import Container
from typing import Any, NamedTuple

from odelab.graph.graphs import Graph, arguments_of

STATE, PARAMETERS, CONSTANTS, COLUMN = "upcs"  # what a leaf is read from


class Shape(NamedTuple):
    """The operations of a row, whose leaves are numbered in the order in which they are met.

    operations    as in a graph; ("leaf", kind, number) stands for a leaf
    sources       of the leaves
    """

    operations: tuple
    sources: tuple[str, ...]


def shape_of(graph: Graph, root: int, column: dict[int, int], by_use: bool) -> tuple[Shape, list]:
    """The shape of a row, and the places of its leaves; of constants, their values."""
    reader = Reader(graph, column, by_use)
    for i in order_of(graph, root, column):
        reader.enter(i)
    reader.number_of(root)
    return Shape(tuple(reader.operations), tuple(reader.sources)), reader.places


class Reader:
    """Reads the operations of a row in their order.

    column    {number of an operation: its place in the column}
    by_use    whether a component is a leaf each time it is used, as constants are. Rows near a boundary, or rows that
              use all components, then have one shape; but a component may be two leaves, which no derivative may be
    """

    def __init__(self, graph: Graph, column: dict[int, int], by_use: bool):
        self.graph, self.column, self.by_use = graph, column, by_use
        self.numbers: dict[int, int] = {}
        self.operations: list[tuple] = []
        self.sources: list[str] = []
        self.places: list = []

    def enter(self, i: int):
        op, kind, *arguments = self.graph.ops[i]
        if self.leaf_of(i) is None:
            head = arguments[:1] if op in ("const", "in", "gather", "search") else []
            self.operations.append((op, kind, *head, *map(self.number_of, arguments_of(self.graph.ops[i]))))
            self.numbers[i] = len(self.operations) - 1

    def leaf_of(self, i: int) -> tuple[str, Any] | None:
        """The source and the place of a leaf; of a constant, its value. None of an operation."""
        op, _, *arguments = self.graph.ops[i]
        if i in self.column:
            return COLUMN, self.column[i]
        if op == "in" and arguments[0] != "t":
            return arguments[0][0], int(arguments[0][1:])
        return (CONSTANTS, float(arguments[0])) if is_constant(self.graph, i) else None

    def number_of(self, i: int) -> int:
        """The number of an operation, or of a new leaf."""
        leaf = None if i in self.numbers else self.leaf_of(i)
        if leaf is None:
            return self.numbers[i]
        source, place = leaf
        self.operations.append(("leaf", self.graph.ops[i][1], len(self.places)))
        self.sources.append(source)
        self.places.append(place)
        number = len(self.operations) - 1
        if not self.by_use and source != CONSTANTS:
            self.numbers[i] = number
        return number


def order_of(graph: Graph, root: int, known: Container[int]) -> list[int]:
    """The operations that a node needs, arguments first, in an order that only their shape decides.

    known    operations whose arguments are left out
    """
    order: list[int] = []
    done: set[int] = set()
    stack = [root]
    while stack:
        i = stack[-1]
        arguments = () if i in known else reversed(arguments_of(graph.ops[i]))
        waits = [a for a in arguments if a not in done and not is_constant(graph, a)]
        if waits:
            stack += waits
            continue
        stack.pop()
        if i not in done and not is_constant(graph, i):
            done.add(i)
            order.append(i)
    return order


def is_constant(graph: Graph, i: int) -> bool:
    """Is an operation a double that is known?"""
    return graph.ops[i][:2] == ("const", "d")
