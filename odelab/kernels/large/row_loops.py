"""Functions of whole states as loops over classes of rows: slopes, their Jacobian, their derivative by time."""

import contextlib
from typing import NamedTuple

import numpy as np

from odelab.graph.classes import CONDITION, SLOPE, Classes, RowClass
from odelab.graph.derivatives import derivatives
from odelab.graph.llvm import Function, Module
from odelab.graph.nodes import Node
from odelab.graph.shapes import COLUMN, CONSTANTS, PARAMETERS, STATE

POINTERS = {STATE: "%u", PARAMETERS: "%params", CONSTANTS: "%constants", COLUMN: "%column"}
HEAD = 3  # numbers of a run before the places of its leaves: first row, count, first entry of the Jacobian
GIVEN = {"u": "p", "t": "d", "params": "p", "constants": "p", "runs": "p"}  # parameters of all functions here


class Entry(NamedTuple):
    """An entry of the Jacobian in every row of a class.

    leaf    the component that it is the derivative with respect to, a number of the class's leaves
    node    the derivative
    """

    leaf: int
    node: Node


def entries_of(one: RowClass) -> list[Entry]:
    """The entries that the rows of a class have in the Jacobian."""
    if one.purpose != SLOPE:
        return []
    graph = one.recorded.graph
    state = [k for k, leaf in enumerate(one.leaves) if leaf.source == STATE]
    (row,) = derivatives(graph, one.recorded.outputs, [graph.input(f"x{k}") for k in state])
    return [Entry(state[k], node) for k, node in row.items()]


def by_time(one: RowClass) -> Node | None:
    """The derivative of the rows of a class with respect to time; None where it is zero."""
    graph = one.recorded.graph
    (row,) = derivatives(graph, one.recorded.outputs, [graph.input("t")])
    return row.get(0)


def is_autonomous(classes: Classes) -> bool:
    return all(one.purpose != SLOPE or by_time(one) is None for one in classes.classes)


def table_of_runs(classes: Classes, has_jacobian: bool) -> np.ndarray:
    """What loops are handed of the runs: where those of each class begin and how many there are, then the runs."""
    heads, tables, at, entry = [], [], 2 * len(classes.classes), 0
    for one in classes.classes:
        runs, count = one.runs, len(entries_of(one)) if has_jacobian else 0
        per_run = runs[:, 1] * count
        first_entry = entry + np.cumsum(per_run) - per_run
        table = np.concatenate([runs[:, :2], first_entry[:, None], runs[:, 2:]], axis=1)
        heads += [at, len(runs)]
        tables.append(table.ravel())
        at, entry = at + table.size, entry + int(per_run.sum())
    return np.concatenate([np.array(heads, dtype=np.int64), *tables])


def pattern_of(classes: Classes) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries of the Jacobian, in the order in which its loops compute them."""
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for one in classes.classes:
        entries = entries_of(one)
        ends = np.cumsum(one.runs[:, 1])[:-1]
        of_rows = np.split(one.rows(), ends)
        of_columns = [np.split(one.columns(entry.leaf), ends) for entry in entries]
        for run, numbers in enumerate(of_rows):
            rows += [numbers] * len(entries)
            columns += [of_entry[run] for of_entry in of_columns]
    return np.concatenate(rows), np.concatenate(columns)


def add_slopes(module: Module, name: str, classes: Classes) -> Function:
    """The function `name(u, t, params, constants, runs, column, out, raised)`: the slopes at a state.

    column    room for the entries that rows share
    raised    set to 1 where the user's function raises there
    """
    function = module.function(name, {**GIVEN, "column": "p", "out": "p", "raised": "p"}, internal=True)
    for number, one in enumerate(classes.classes):
        with each_run(function, number, one) as (row, count, _, places):
            if one.purpose == CONDITION:
                add_condition(function, one, count, places)
                continue
            target = "%out" if one.purpose == SLOPE else "%column"
            with function.over(count) as k:
                (value,) = function.graph(one.recorded.graph, one.recorded.outputs, inputs_at(function, one, places, k))
                function.store("d", value, function.place(target, row), along(function, one.stride, k))
    return function


def add_condition(function: Function, one: RowClass, count: str, places):
    """A loop that sets `raised` where the condition of a class holds in any row."""
    any_row = function.variable("b", function.constant("b", False))
    with function.over(count) as k:
        (value,) = function.graph(one.recorded.graph, one.recorded.outputs, inputs_at(function, one, places, k))
        any_row.set(function.logical("or", any_row.get(), value))
    with function.when(any_row.get()):
        function.store("l", "1", "%raised", 0)


def add_jacobian(module: Module, classes: Classes) -> Function:
    """The function `jacobian(u, t, params, constants, runs, where, J)`.

    where    where each entry goes in J, in the order of `pattern_of`
    """
    function = module.function("jacobian", {**GIVEN, "where": "p", "J": "p"}, internal=True)
    for number, one in enumerate(classes.classes):
        entries = entries_of(one)
        if not entries:
            continue
        with each_run(function, number, one) as (_, count, first, places):
            starts = [function.place("%where", first)]
            for _ in entries[1:]:
                starts.append(function.place(starts[-1], count))
            with function.over(count) as k:
                inputs = inputs_at(function, one, places, k)
                values = function.graph(one.recorded.graph, [entry.node for entry in entries], inputs)
                for value, start in zip(values, starts, strict=True):
                    function.store("d", value, "%J", function.load("l", start, k))
    return function


def add_slopes_by_time(module: Module, classes: Classes) -> Function:
    """The function `slopes_by_time(u, t, params, constants, runs, out)`: the derivative with respect to time."""
    function = module.function("slopes_by_time", {**GIVEN, "out": "p"}, internal=True)
    for number, one in enumerate(classes.classes):
        if one.purpose != SLOPE:
            continue
        node = by_time(one)
        with each_run(function, number, one) as (row, count, _, places), function.over(count) as k:
            value = function.constant("d", 0.0)
            if node is not None:
                (value,) = function.graph(one.recorded.graph, [node], inputs_at(function, one, places, k))
            function.store("d", value, function.place("%out", row), along(function, one.stride, k))
    return function


@contextlib.contextmanager
def each_run(function: Function, number: int, one: RowClass):
    """A loop over the runs of a class; yields (first row, count, first entry of the Jacobian, places of leaves)."""
    start, count = (function.load("l", "%runs", 2 * number + k) for k in (0, 1))
    with function.over(count) as run:
        first = function.whole("add", start, function.whole("mul", run, HEAD + len(one.leaves)))
        at = function.place("%runs", first)
        row, rows, entry = (function.load("l", at, k) for k in range(HEAD))
        places = []
        for k, leaf in enumerate(one.leaves):
            pointer = function.place(POINTERS[leaf.source], function.load("l", at, HEAD + k))
            places.append(pointer if leaf.stride else function.load("d", pointer, 0))
        yield row, rows, entry, places


def inputs_at(function: Function, one: RowClass, places: list[str], k: str) -> dict[str, str]:
    """The inputs of a row, the one of number `k` in its run; a leaf that does not move on is known for all rows."""
    inputs = {"t": "%t"}
    for number, (leaf, place) in enumerate(zip(one.leaves, places, strict=True)):
        inputs[f"x{number}"] = function.load("d", place, along(function, leaf.stride, k)) if leaf.stride else place
    return inputs


def along(function: Function, stride: int, k: str) -> str:
    return k if stride == 1 else function.whole("mul", k, stride)
