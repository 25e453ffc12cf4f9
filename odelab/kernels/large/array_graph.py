"""A graph whose nodes may stand for whole arrays, each by the expression of one of its components.

The functions of a step (`odelab.core`) run on it as they run on numbers. What needs all components at once, a sum or
an evaluation of the right-hand side, is an `Action`: its result is an input of the graph, and it is done between loops.
"""

from typing import NamedTuple

from odelab.graph.graphs import Graph, Node, arguments_of

SUM, SLOPES, PROJECTION, FACTORS, SOLUTION, CHECK = "sum", "slopes", "projection", "factors", "solution", "check"


class Action(NamedTuple):
    """What is done with a whole array.

    what      SUM, SLOPES, PROJECTION, FACTORS, SOLUTION or CHECK
    result    an input of the graph: an array, or a number
    given     the array and the number that it is done with, of which one may be missing
    """

    what: str
    result: Node
    given: tuple[Node, ...]


class ArrayGraph(Graph):
    """A graph of numbers and arrays; `arrays` holds the numbers of the nodes that are arrays."""

    def __init__(self):
        super().__init__(trusted=True)
        self.arrays: set[int] = set()
        self.actions: dict[int, Action] = {}  # by the numbers of their results
        self.by_key: dict[tuple, Node] = {}

    def add(self, op: str, kind: str, *arguments) -> Node:
        node = super().add(op, kind, *arguments)
        if any(i in self.arrays for i in arguments_of((op, kind, *arguments))):
            self.arrays.add(node.i)
        return node

    def array(self, name: str) -> Node:
        node = self.input(name)
        self.arrays.add(node.i)
        return node

    def inputs(self, name: str, n: int) -> Node:
        """An array of any number of components, in the place of so many inputs."""
        return self.array(name)

    def size_of(self, node: Node):
        return self.input("n") if node.i in self.arrays else 1

    def sum_of(self, node: Node) -> Node:
        return self.act(SUM, (node,), False) if node.i in self.arrays else node

    def act(self, what: str, given: tuple[Node, ...], gives_array: bool, kind: str = "d") -> Node:
        """The result of an action, the same one for equal arguments."""
        key = (what, *(node.i for node in given))
        if key not in self.by_key:
            result = self.input(f"{what} {len(self.actions)}", kind)
            if gives_array:
                self.arrays.add(result.i)
            self.by_key[key] = result
            self.actions[result.i] = Action(what, result, given)
        return self.by_key[key]

    def slopes(self, t, u: Node, params=()) -> Node:
        """The right-hand side at a time and a state."""
        return self.act(SLOPES, (u, u.lift(t).real()), True)

    def project(self, u: Node) -> Node:
        """The user's projection of a state."""
        return self.act(PROJECTION, (u,), True)

    def factors(self, hg) -> Node:
        """The factors of I - hg J, a truth value that only `solution` reads."""
        return self.act(FACTORS, (self.constant(0.0).lift(hg),), False, "b")

    def solution(self, factors: Node, right: Node) -> Node:
        return self.act(SOLUTION, (right, factors), True)

    def is_solved(self, right: Node, x: Node) -> Node:
        """Does the last solution satisfy its system as nearly as rounding allows?"""
        return self.act(CHECK, (right, x), False, "b")
