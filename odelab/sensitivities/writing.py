"""A graph as a Python function in component form, which every engine takes as it takes a user's own."""

import itertools
import linecache
import math
from collections.abc import Callable, Sequence

import numpy as np

from odelab.graph.arithmetic import CALL, Writer
from odelab.graph.nodes import Graph, Node
from odelab.graph.operations import OF_ONE, OF_TWO, numpys

NAMES = {
    **{"inf": math.inf, "nan": math.nan, "searchsorted": np.searchsorted, "where": np.where},
    **{"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_not": np.logical_not},
}
CALLS = {"and": "logical_and", "or": "logical_or", "not": "logical_not", "select": "where"}
CALLS |= {"real": "float", "whole": "int"}
number = itertools.count()


class Source(Writer):
    """Writes lines that Python runs, on numbers as on arrays and nodes: a choice computes both of its sides."""

    def expression(self, operation: Sequence) -> tuple[int, str]:
        op, _, *arguments = operation
        if op == "gather":
            return CALL, f"table{arguments[0]}[{self.plain(arguments[1])}]"
        if op == "search":
            return CALL, f"searchsorted(table{arguments[0]}, {self.plain(arguments[1])}, 'right')"
        if op in CALLS:
            return CALL, f"{CALLS[op]}({', '.join(map(self.plain, arguments))})"
        return super().expression(operation)


def written(graph: Graph, slopes: list[Node], states: list[str], parameters: list[str], name: str) -> Callable:
    """The function (t, u, params) that returns the values of some nodes as a tuple.

    graph         the graph, whose inputs are "t" and those of the next two
    slopes        the nodes
    states        the names of the components of u
    parameters    the names of the numbers in params, a row of them
    name          what the function is called
    """
    outputs = {f"slope{i}": node for i, node in enumerate(slopes)}
    lines = [f"def {name}(t, u, params):", f"    {', '.join(states)}, = u"]
    lines += [f"    {', '.join(parameters)}, = params"] if parameters else []
    lines += [f"    {line}" for line in Source(graph, outputs).lines]
    lines += [f"    return {', '.join(outputs)},", ""]
    return function_of("\n".join(lines), name, graph.tables)


def function_of(text: str, name: str, tables: list[np.ndarray]) -> Callable:
    """The function of this name that a text defines; `tables` are the arrays that it looks into."""
    file = f"<odelab {name} {next(number)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    called = {op: numpys(op) for op in (*OF_ONE, *OF_TWO) if f"{op}(" in text}
    names = {**NAMES, **called, **{f"table{k}": table for k, table in enumerate(tables)}}
    exec(compile(text, file, "exec"), names)
    made = names[name]
    made.pickled_as = function_of, (text, name, tables)
    return made
