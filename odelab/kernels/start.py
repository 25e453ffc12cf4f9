"""Consistent starts on nodes: the passes of `odelab.core.approach_of`, and slopes that satisfy all equations.

Where elimination without pivoting cannot tell that a start is right, the state becomes NaN, and plain Python finds it.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab import core
from odelab.graph.arrays import Array
from odelab.graph.forks import joined
from odelab.graph.graphs import Graph
from odelab.graph.llvm import Function
from odelab.graph.nodes import choose, logical
from odelab.graph.ufuncs import total
from odelab.kernels.attempt import Asked, in_window, seen
from odelab.kernels.elimination import have_places
from odelab.kernels.implicit import Factors, linearised, times

SMALLEST_PIVOT = 1e-6  # of a matrix whose rows and columns are of size one: with smaller ones, LAPACK shall judge it


class Algebra:
    """The matrices of `odelab.mass.Parts` on nodes.

    graph    the graph
    n        the number of components
    mass     an `odelab.mass.Entries`
    seen     seen(t): the time that the right-hand side is shown at time t
    """

    def __init__(self, graph: Graph, n: int, mass, seen: Callable):
        self.graph, self.n, self.mass, self.seen = graph, n, mass, seen
        self.equations = 1 + max((row for row, _, _ in mass.left), default=-1)

    def reduce(self, f):
        return product(self.mass.left, f, self.equations)

    def spread(self, y):
        return product(self.mass.right, y, self.n)

    def particular(self, f):
        return product(self.mass.inverse, f, self.n)

    def matrix(self, J: list[dict[int, Any]], of: Callable = lambda x: x) -> list[dict[int, Any]]:
        """N' J Z as rows {column: entry}, where `of` changes each number first."""
        sums: list[dict[int, list]] = [{} for _ in range(self.equations)]
        columns: dict[int, list] = {}
        for j, column, z in self.mass.right:
            columns.setdefault(j, []).append((column, of(z)))
        for row, i, number in self.mass.left:
            for j, entry in J[i].items():
                for column, z in columns.get(j, ()):
                    sums[row].setdefault(column, []).append(times(of(number), times(z, of(entry))))
        return [{column: total(terms) for column, terms in sorted(row.items())} for row in sums]

    def factor(self, J: list[dict[int, Any]]) -> tuple[Factors, list[dict[int, Any]]] | None:
        """The factors of N' J Z, and J; None where N' J Z is singular whatever J is."""
        rows = self.matrix(J)
        return (Factors(rows, -1.0, [{} for _ in rows]), J) if have_places([*map(tuple, rows)]) else None

    def backsub(self, factors, right):
        return Array.of([float("nan")] * len(right)) if factors is None else factors[0].solve(right)

    def is_regular(self, factors) -> Any:
        """Are all pivots far from zero, in units in which the terms of rows and columns are at most one?"""
        if factors is None:
            return False
        lu, sizes = factors[0], self.matrix(factors[1], abs)
        rows = [Array.of(list(row.values())).max() for row in sizes]
        scaled = [{j: size / rows[i] for j, size in row.items()} for i, row in enumerate(sizes)]
        columns = [Array.of([row[j] for row in scaled if j in row]).max() for j in range(len(sizes))]
        sound: Any = True
        for k, inverse in lu.P.items():  # a comparison with NaN is false
            sound = logical("and", sound, SMALLEST_PIVOT * abs(inverse) * (rows[lu.places[k]] * columns[k]) <= 1.0)
        return sound

    def linearised(self, t, u, slope):
        """(f, J, df/dt) at a state."""
        rows, slope_t = linearised(self.graph, slope, u, self.seen(t))
        return slope, rows, slope_t

    def slopes(self, slopes_at: Callable) -> Callable:
        """u' as a function of nodes (t, u, params)."""
        given = (self.factor, self.backsub, self.reduce, self.spread, self.particular, times_rows)
        slope = core.consistent_slope_of(*given)

        def consistent_slopes(t, u, params):
            f = slopes_at(t, u, params)
            return slope(*self.linearised(t, u, f)) if self.equations else self.particular(f)

        return consistent_slopes


def algebra_of(asked: Asked, graph: Graph) -> Algebra | None:
    """The algebra of a run's mass matrix; None where it has none."""
    return None if asked.mass is None else Algebra(graph, asked.n, asked.mass, lambda t: seen(asked, graph, t))


def product(entries, x, rows: int) -> Array:
    """The product of a matrix with a row of nodes."""
    terms: list[list] = [[] for _ in range(rows)]
    for i, j, number in entries:
        terms[i].append(times(number, x[j]))
    return Array.of([total(row) if row else 0.0 for row in terms])


def times_rows(J: list[dict[int, Any]], x) -> Array:
    return Array.of([total([entry * x[j] for j, entry in row.items()]) if row else 0.0 for row in J])


def search_of(asked: Asked, slopes_in: Callable) -> Callable | None:
    """What adds the search for a consistent start to a function; None where every state is one.

    slopes_in    the right-hand side on the nodes of a graph, as a function of the graph
    """
    graph = Graph(trusted=True)
    algebra = algebra_of(asked, graph)
    if algebra is None or not algebra.equations:
        return None
    slopes_at = in_window(asked, graph, slopes_in(graph))
    return functools.partial(add_search, algebra=algebra, slopes_at=slopes_at)


def add_search(function: Function, inputs: dict[str, str], algebra: Algebra, slopes_at: Callable):
    """Add the search for a consistent state to a function; `inputs` then have the state that was found, else NaN.

    inputs    values of the inputs of the graph by their names: "t0", the state "u0", ..., and parameters
    """
    graph, n = algebra.graph, algebra.n
    t, u = graph.input("t0"), graph.inputs("u", n)
    given = (algebra.factor, algebra.backsub, algebra.is_regular, algebra.reduce, algebra.spread, choose, np.maximum)
    approach = joined(graph, core.approach_of(*given))
    known = algebra.linearised(t, u, slopes_at(t, u, ()))
    now: Any = core.Approach(u, graph.input("part"), graph.input("moved"))
    status, after = approach(slopes_at, (), t, known, now)
    for condition in graph.raised:
        status = choose(condition, core.LOST, status)
    status = graph.constant(0) + status
    state = [choose(status == core.LOST, float("nan"), x) for x in after.u]
    nodes = [*(graph.constant(0.0) + x for x in (*state, after.part, after.moved)), status]
    begun = {f"u{i}": inputs[f"u{i}"] for i in range(n)} | {"part": "1.0", "moved": "0.0"}
    variables = {name: function.variable("d", value) for name, value in begun.items()}
    passes = function.variable("l", "0")
    with function.repeat() as again_when:
        before = {name: variable.get() for name, variable in variables.items()}
        *values, status = function.graph(graph, nodes, inputs | before)
        for variable, value in zip(variables.values(), values, strict=True):
            variable.set(value)
        passes.set(function.whole("add", passes.get(), 1))
        is_open = function.compare("eq", status, core.ON_THE_WAY)
        again_when(function.logical("and", is_open, function.compare("slt", passes.get(), core.PASSES)))
    for i in range(n):
        lost = function.choose(is_open, "d", function.constant("d", float("nan")), variables[f"u{i}"].get())
        inputs[f"u{i}"] = lost
