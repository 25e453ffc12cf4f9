"""Rows that are one expression up to a shift of its indices: a system of any size becomes a few loops.

Every row of a right-hand side is an expression in a graph. Two rows are of one class where the operations are the same
and only the places differ from which they read components, parameters and constants. Within a class, consecutive rows
whose places move on by the same strides are a run: a loop. The expressions and the strides make up the kernel; the
places, the lengths of the runs and the constants are numbers that it is handed, so that one kernel serves every size.

A function such as the exponential that several rows need of the same number is an entry of a column, which is computed
before them.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from odelab.graph.evaluation import evaluate
from odelab.graph.graphs import Graph, Node
from odelab.graph.operations import OF_ONE
from odelab.graph.recorded import Recorded
from odelab.graph.shapes import COLUMN, CONSTANTS, PARAMETERS, STATE, Shape, order_of, shape_of
from odelab.graph.trails import TooLarge

SHORTEST = 3  # rows of a run that moves on; fewer are runs of one row each
FARTHEST = 8  # the largest stride of a run
MOST_VISITS = 4_000_000  # operations of all rows together
MOST_OPERATIONS = 6_000  # of all classes together: what is compiled
PLAIN = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)  # constants that stay in the kernel: no size makes them
SLOPE, CONDITION = "slope", "condition"  # what a row is, beside an entry of the column
COSTLY = {*OF_ONE, "pow", "atan2", "hypot", "fmod"} - {"neg", "abs", "sqrt", "floor", "ceil", "trunc", "rint"}


class Leaf(NamedTuple):
    """What an expression reads, such as a component or a constant, `stride` places further in the next row."""

    source: str
    stride: int


class RowClass(NamedTuple):
    """Rows with one expression.

    recorded    the expression of a row, with the inputs "t" and "x0", "x1", ... for its leaves
    leaves      what these are
    stride      from the number of a row to that of the next one in a run
    purpose     SLOPE, COLUMN or CONDITION, under which the user's function raises
    runs        (runs, 2 + leaves): the first row of each run, how many there are, the first places of its leaves
    """

    recorded: Recorded
    leaves: tuple[Leaf, ...]
    stride: int
    purpose: str
    runs: np.ndarray

    @property
    def key(self) -> tuple:
        return self.recorded.key, self.leaves, self.stride, self.purpose

    def rows(self) -> np.ndarray:
        """The numbers of its rows, run after run."""
        return self.places(self.runs[:, 0], self.stride)

    def places(self, first: np.ndarray, stride: int) -> np.ndarray:
        """Places that begin at `first` in each run and move on by a stride."""
        counts = self.runs[:, 1]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(first, counts) + stride * within

    def columns(self, leaf: int) -> np.ndarray:
        """The places that a leaf has in the rows, run after run."""
        return self.places(self.runs[:, 2 + leaf], self.leaves[leaf].stride)


class Classes(NamedTuple):
    """All rows of a function by their classes.

    size         how many slopes there are
    entries      how many entries the column has
    classes      one RowClass for each expression and its strides, those of the column first
    constants    the numbers in expressions, where they are handed over
    """

    size: int
    entries: int
    classes: list[RowClass]
    constants: np.ndarray

    @property
    def key(self) -> tuple:
        """Equal for functions that one kernel serves."""
        return tuple(one.key for one in self.classes)

    def __call__(self, t: float, u: np.ndarray, params: np.ndarray) -> tuple[np.ndarray, bool]:
        """The slopes, by NumPy, and whether the user's function raises there: what a kernel computes in loops."""
        slopes, column, raised = np.full(self.size, np.nan), np.full(self.entries, np.nan), False
        sources = {STATE: u, PARAMETERS: params, CONSTANTS: self.constants, COLUMN: column}
        for one in self.classes:
            inputs: dict[str, Any] = {"t": t}
            for k, leaf in enumerate(one.leaves):
                inputs[f"x{k}"] = sources[leaf.source][one.columns(k)]
            (values,) = evaluate(one.recorded.graph, one.recorded.outputs, inputs)
            if one.purpose == CONDITION:
                raised |= bool(np.any(values))
            else:
                (slopes if one.purpose == SLOPE else column)[one.rows()] = values
        return slopes, raised


def classes_of(recorded: Recorded, shares: bool = True) -> Classes:
    """The classes of the rows of a function, whose inputs are "t", "u0", "u1", ... and parameters "p0", "p1", ...

    shares    whether rows may share entries of a column; otherwise each is an expression of the state alone, in which
              a component is one leaf, so that there is one derivative for it

    Raises TooLarge where the rows are too long, or too different from each other.
    """
    graph = recorded.graph
    constants = Constants()
    found: list[RowClass] = []
    entries = shared(graph, [*recorded.outputs, *graph.raised]) if shares else []
    numbers = {node.i: number for number, node in enumerate(entries)}
    for purpose, outputs in ((COLUMN, entries), (SLOPE, recorded.outputs), (CONDITION, graph.raised)):
        column = {} if purpose == COLUMN else numbers
        for shape, members in members_by_shape(graph, outputs, column, shares).items():
            found += classes_of_shape(graph, shape, members, purpose, constants)
    if sum(len(one.recorded.graph.ops) for one in found) > MOST_OPERATIONS:
        raise TooLarge("has rows that are too different from each other", "write the same expression for each row")
    return Classes(len(recorded.outputs), len(entries), found, constants.numbers())


def shared(graph: Graph, outputs: list[Node]) -> list[Node]:
    """The costly functions that more than one row needs; what is inside of them is not looked for."""
    costly = {i for i, operation in enumerate(graph.ops) if operation[0] in COSTLY}
    counts: Counter[int] = Counter()
    for node in outputs if costly else []:
        counts.update(i for i in order_of(graph, node.i, costly) if i in costly)
    return [Node(graph, i) for i in sorted(counts) if counts[i] > 1]


def members_by_shape(graph: Graph, outputs: list[Node], column: dict, by_use: bool) -> dict[Shape, list[tuple]]:
    """{shape: [(row, places and constants of its leaves)]}; `column` and `by_use` are those of a Reader."""
    members: dict[Shape, list[tuple]] = {}
    visits = 0
    for row, node in enumerate(outputs):
        shape, places = shape_of(graph, node.i, column, by_use)
        visits += len(shape.operations)
        if visits > MOST_VISITS:
            raise TooLarge("has rows that depend on too much", "write sums over all components as a component")
        members.setdefault(shape, []).append((row, *places))
    return members


def classes_of_shape(graph: Graph, shape: Shape, members: list[tuple], purpose: str, constants) -> list[RowClass]:
    """The classes of the rows of one shape: one for each way in which the places move on."""
    moving = [k for k, source in enumerate(shape.sources) if source != CONSTANTS]
    places = np.array([[row, *(leaves[k] for k in moving)] for row, *leaves in members], dtype=np.int64)
    found = []
    for strides, runs in runs_by_stride(places).items():
        first = np.array([start for start, _ in runs])
        counts = np.array([count for _, count in runs])
        table = np.concatenate([places[first, :1], counts[:, None], places[first, 1:]], axis=1)
        rows = np.concatenate([np.arange(start, start + count) for start, count in runs])
        values = {
            k: np.array([members[row][1 + k] for row in rows])
            for k, source in enumerate(shape.sources)
            if source == CONSTANTS
        }
        leaves = {k: (Leaf(shape.sources[k], strides[1 + m]), table[:, 2 + m]) for m, k in enumerate(moving)}
        found.append(row_class(graph, shape, strides[0], purpose, table[:, :2], leaves, values, constants))
    return found


def runs_by_stride(places: np.ndarray) -> dict[tuple, list[tuple[int, int]]]:
    """{strides: [(the first of consecutive lines, how many)]} of lines that move on by the same strides."""
    found: dict[tuple, list[tuple[int, int]]] = {}
    steps = np.diff(places, axis=0)
    turns = np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1)) + 1
    firsts = [0, *turns.tolist()]
    line = 0
    for first, last in zip(firsts, [*turns.tolist(), len(steps)], strict=True):
        count = last - max(first, line) + 1
        if count >= SHORTEST and np.abs(steps[first]).max() <= FARTHEST:
            start = max(first, line)
            alone(found, places, line, start)
            found.setdefault(tuple(steps[first].tolist()), []).append((start, count))
            line = last + 1
    alone(found, places, line, len(places))
    return found


def alone(found: dict, places: np.ndarray, first: int, last: int):
    """Lines that are runs of their own."""
    if last > first:
        found.setdefault((0,) * places.shape[1], []).extend((line, 1) for line in range(first, last))


def row_class(graph, shape: Shape, stride: int, purpose: str, head, leaves, values, constants) -> RowClass:
    """The class of rows whose places are known.

    head      first rows and counts of the runs
    leaves    {number of a leaf: (Leaf, its first places)} of components and parameters
    values    {number of a leaf: its values in all rows} of constants
    """
    own = Graph(limit=MOST_OPERATIONS)
    table, known = [head], {}
    kinds: list[Leaf] = []
    named: dict[int, Node] = {}
    for k in range(len(shape.sources)):
        if k in values and is_plain(values[k]):
            named[k] = own.constant(values[k][0])
            continue
        leaf, places = leaves[k] if k in leaves else constants.leaf(values[k], head[:, 1])
        key = (leaf, places.tobytes())
        if key not in known:
            known[key] = own.input(f"x{len(kinds)}")
            kinds.append(leaf)
            table.append(places[:, None])
        named[k] = known[key]
    output = replayed(graph, own, shape, named)
    return RowClass(Recorded(own, [output]), tuple(kinds), stride, purpose, np.concatenate(table, axis=1))


def is_plain(values: np.ndarray) -> bool:
    """Are they one number that may stay in a kernel?"""
    first = values[0]
    same = bool((values.view(np.int64) == values.view(np.int64)[0]).all())
    is_simple = first in PLAIN and not (first == 0.0 and np.signbit(first))
    return same and (is_simple or not np.isfinite(first))


def replayed(graph: Graph, own: Graph, shape: Shape, named: dict[int, Node]) -> Node:
    """The operations of a shape in a graph of their own."""
    nodes: list[Node] = []
    for op, kind, *arguments in shape.operations:
        if op == "leaf":
            nodes.append(named[arguments[0]])
        elif op in ("const", "in"):
            nodes.append(own.add(op, kind, *arguments))
        else:
            head = [own.table(graph.tables[arguments.pop(0)])] if op in ("gather", "search") else []
            nodes.append(own.add(op, kind, *head, *(nodes[i].i for i in arguments)))
    return nodes[-1]


class Constants:
    """The constants that are handed over, each column of them once."""

    def __init__(self):
        self.columns: list[np.ndarray] = []
        self.size = 0

    def leaf(self, values: np.ndarray, counts: np.ndarray) -> tuple[Leaf, np.ndarray]:
        """A leaf for the values in consecutive rows, and its first places in runs of so many rows."""
        first = self.size
        if (values.view(np.int64) == values.view(np.int64)[0]).all():
            self.keep(values[:1])
            return Leaf(CONSTANTS, 0), np.full(len(counts), first)
        self.keep(values)
        return Leaf(CONSTANTS, 1), first + np.cumsum(counts) - counts

    def keep(self, values: np.ndarray):
        self.columns.append(values)
        self.size += len(values)

    def numbers(self) -> np.ndarray:
        return np.concatenate([np.zeros(0), *self.columns])
