"""Graphs of operations, and their nodes: numbers that have no value yet.

Equal operations are one node. The kinds of a node are "d" (a double), "l" (a 64-bit integer) and "b" (true or false).
The operators of a node are in `odelab.graph.nodes`.
"""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from odelab.graph.trails import TooLarge, Untraceable

NUMBERS = (int, float, np.number, np.bool_)


class Graph:
    """The operations of one or more functions, each of them once.

    ops       ops[i] is (operation, kind, arguments...); arguments that are operations are numbers below i
    tables    arrays of constants that "gather" and "search" look into
    raised    conditions under which the user's function raises or may raise: plain Python is to be asked there
    assumed   {number of a condition: the outcome that is taken for granted}
    bits      {number of an integer: how many bits it has at most}; what is not there may wrap, as NumPy's integers do
    guarded   a handler of exceptions may see a division by zero: its condition then goes to `raised`
    trusted   its functions are odelab's own: what they might raise, or count beyond 64 bits, is known not to happen
    limit     how many operations there may be

    >>> from odelab.graph.nodes import Graph
    >>> graph = Graph()
    >>> x = graph.input("x")
    >>> (x * x + 1.0).i == (x * x + 1.0).i
    True
    """

    def __init__(self, limit: int = 20_000, trusted: bool = False):
        self.ops: list[tuple] = []
        self.known: dict[tuple, Node] = {}
        self.tables: list[np.ndarray] = []
        self.raised: list[Node] = []
        self.assumed: dict[int, bool] = {}
        self.bits: dict[int, int] = {}
        self.guarded = False
        self.limit, self.trusted = limit, trusted

    def add(self, op: str, kind: str, *arguments) -> "Node":
        """The node of an operation, a new one unless the graph has it."""
        key = (op, kind, *arguments)
        node = self.known.get(key)
        if node is None:
            if len(self.ops) >= self.limit:
                raise TooLarge(
                    f"takes more than {self.limit} operations",
                    "shorten its loops, or write it in array form, which is not unrolled",
                )
            node = self.known[key] = Node(self, len(self.ops))
            self.ops.append(key)
        return node

    def constant(self, value) -> "Node":
        """A constant; a double is known by its text, which tells -0.0 from 0.0 and equals itself for NaN."""
        if isinstance(value, bool | np.bool_):
            return self.add("const", "b", bool(value))
        if isinstance(value, int | np.integer):
            return self.add("const", "l", int(value))
        return self.add("const", "d", repr(float(value)))

    def input(self, name: str, kind: str = "d") -> "Node":
        return self.add("in", kind, name)

    def inputs(self, name: str, n: int):
        """The inputs name0, name1, ... as an array of n nodes."""
        from odelab.graph.arrays import Array

        return Array.of([self.input(f"{name}{i}") for i in range(n)])

    def assume(self, condition, outcome: bool):
        """Take the outcome of a condition for granted: paths on which it is another one are not followed."""
        self.assumed[condition.i] = outcome

    def size_of(self, node: "Node"):
        """How many numbers a node stands for, as NumPy says it of one number; graphs of arrays have others."""
        return 1

    def sum_of(self, node: "Node") -> "Node":
        """The sum of the numbers that a node stands for."""
        return node

    def table(self, values) -> int:
        """The number of a table of constants; the graph keeps a copy, as the array may change."""
        values = np.asarray(values)
        for number, known in enumerate(self.tables):
            if known.dtype == values.dtype and known.tobytes() == values.tobytes():
                return number
        self.tables.append(values.copy())
        return len(self.tables) - 1


def arguments_of(operation: tuple) -> tuple:
    """The numbers of the nodes that an operation takes."""
    if operation[0] in ("const", "in"):
        return ()
    return operation[3:] if operation[0] in ("gather", "search") else operation[2:]


def used(graph: Graph, outputs, known=()) -> list[int]:
    """The numbers of the nodes that the outputs need, in the order in which they can be computed.

    known    numbers of nodes that are there already: neither they nor what they need is listed
    """
    found, stack = set(), [node.i for node in outputs]
    while stack:
        number = stack.pop()
        if number not in found and number not in known:
            found.add(number)
            stack += arguments_of(graph.ops[number])
    return sorted(found)


class Node:
    """A number of a graph that has no value yet."""

    __slots__ = ("graph", "i")
    __array_priority__ = 1000.0
    if TYPE_CHECKING:  # `odelab.graph.nodes.install` has them
        __add__ = __sub__ = __mul__ = __truediv__ = __radd__ = __rsub__ = __rmul__ = __rtruediv__ = cast(Any, None)
        __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = cast(Any, None)
    ndim, shape = 0, ()

    def __init__(self, graph: Graph, i: int):
        self.graph, self.i = graph, i

    @property
    def size(self):
        return self.graph.size_of(self)

    def sum(self) -> "Node":
        return self.graph.sum_of(self)

    @property
    def op(self) -> str:
        return self.graph.ops[self.i][0]

    @property
    def kind(self) -> str:
        return self.graph.ops[self.i][1]

    @property
    def dtype(self):
        return np.dtype({"d": float, "l": np.int64, "b": bool}[self.kind])

    @property
    def value(self):
        """The value of a constant, None of any other node."""
        op = self.graph.ops[self.i]
        if op[0] != "const":
            return None
        return float(op[2]) if op[1] == "d" else op[2]

    def lift(self, x) -> "Node":
        """A number or a node as a node of this graph."""
        lifted = lift(self.graph, x)
        if lifted is None:
            raise Untraceable(f"combines a number with a {type(x).__name__}")
        return lifted

    def real(self) -> "Node":
        """The node as a double."""
        if self.kind == "d":
            return self
        if self.op == "const":
            return self.graph.constant(float(self.value))
        return self.graph.add("real", "d", self.i)

    def refuse(self, *_):
        raise Untraceable(
            "asks for the value of a number (a place in a list or a slice, a key, a text, or the count of a loop)",
            "look up a captured array of numbers, take np.where for a slice, a fixed count and `break` for a loop",
        )

    __float__ = __int__ = __complex__ = __str__ = __format__ = __hash__ = refuse
    __reduce__ = __reduce_ex__ = refuse

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise Untraceable(f"reads `.{name}` of a number", "use operators and functions of math and numpy")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def copy(self):
        return self

    def conjugate(self):
        return self

    def item(self):
        return self


def is_number(x) -> bool:
    return isinstance(x, NUMBERS) and not isinstance(x, np.complexfloating)


def refuse_single(x):
    """Refuse a number or an array of NumPy's in single precision.

    Together with a float of Python's the result is in single precision, together with one of NumPy's it is not; a node
    may be either.
    """
    if isinstance(x, np.floating | np.ndarray) and x.dtype.kind == "f" and x.dtype.itemsize != 8:
        raise Untraceable(f"combines a number with one of {x.dtype}", "write float(x), or .astype(float) for an array")


def lift(graph: Graph, x) -> Node | None:
    """A number or a node as a node of the graph; None for what is neither."""
    if type(x) is Node:
        return x
    if is_number(x):
        refuse_single(x)
        return graph.constant(x)
    if isinstance(x, complex | np.complexfloating):
        raise Untraceable("uses complex numbers", "split them into real and imaginary parts")
    return None
