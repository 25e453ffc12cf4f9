"""A function that was run once on nodes, to be put into larger graphs at any place."""

from collections.abc import Callable
from typing import Any, NamedTuple

from odelab.graph.nodes import Graph, Node, arguments_of, used


class Recorded(NamedTuple):
    """The operations of a function, in a graph of their own.

    graph      the graph; its inputs have names
    outputs    the nodes of the results
    """

    graph: Graph
    outputs: list[Node]

    @property
    def key(self) -> tuple:
        """Equal for functions that do the same operations in the same order, tables included."""
        tables = tuple((table.dtype.str, table.shape, table.tobytes()) for table in self.graph.tables)
        return tuple(self.graph.ops), tuple(node.i for node in self.outputs), tables, self.raised

    @property
    def raised(self) -> tuple[int, ...]:
        return tuple(node.i for node in self.graph.raised)

    def put(self, graph: Graph, inputs: dict[str, Any]) -> list[Node]:
        """Add the operations to another graph, for inputs that are nodes of it or numbers; returns the results.

        The conditions under which the function raises an error are added to those of the graph.
        """
        names: dict[int, int] = {}
        wanted = [*self.outputs, *self.graph.raised]
        for i in used(self.graph, wanted):
            op, kind, *arguments = operation = self.graph.ops[i]
            if op == "in":
                names[i] = lifted(graph, inputs[arguments[0]]).i
            elif op == "const":
                names[i] = graph.add(*operation).i
            else:
                head = [graph.table(self.graph.tables[arguments[0]])] if op in ("gather", "search") else []
                names[i] = graph.add(op, kind, *head, *(names[one] for one in arguments_of(operation))).i
        graph.raised += [Node(graph, names[node.i]) for node in self.graph.raised if names[node.i] not in known(graph)]
        return [Node(graph, names[node.i]) for node in self.outputs]


def known(graph: Graph) -> set[int]:
    return {node.i for node in graph.raised}


def lifted(graph: Graph, x) -> Node:
    """A real node of the graph."""
    return (x if isinstance(x, Node) else graph.constant(float(x))).real()


def recorded(call: Callable[[Graph], Any]) -> Recorded:
    """Run `call` on a new graph, whose inputs it makes; it returns the results."""
    graph = Graph()
    return Recorded(graph, [lifted(graph, x) for x in call(graph)])
