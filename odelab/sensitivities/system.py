"""The state of a problem and its columns S = du/d(parameter) as one problem: u' = f, S' = f_u S + f_p."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from odelab.control.controllers import Controller, adaptive
from odelab.engines.not_compilable import NotCompilable
from odelab.graph.derivatives import derivatives
from odelab.graph.nodes import Graph, Node, Untraceable, two
from odelab.graph.recorded import lifted
from odelab.kernels import store
from odelab.kernels.parameters import Parameters
from odelab.kernels.store import Traced
from odelab.problem import Problem
from odelab.sensitivities.selection import Column, Wrt, columns_of, places
from odelab.sensitivities.writing import written

UNMEASURED = 1e300  # an absolute tolerance under which no error counts
SHARPEST = 2.3e-14  # the smallest relative tolerance that `odelab.adaptive` takes


class System:
    """A problem together with the columns of its derivatives.

    A state of it is u and, behind it, one column after the other.

    problem         the problem of the user's
    chosen          what is differentiated by, from `odelab.wrt`
    by_columns      whether the errors of the columns count when a step is judged

    columns         the `Column`s
    whole           the problem of u and all columns
    """

    def __init__(self, problem: Problem, chosen: Wrt, by_columns: bool):
        if problem.mass is not None or problem.is_complex:
            kind = "a mass matrix" if problem.mass is not None else "complex states"
            raise ValueError(f"`sensitivities` are not known of problems with {kind}; leave them out.")
        self.problem, self.by_columns = problem, by_columns
        slopes = followed(lambda: store.slopes_of(problem))
        self.columns = columns_of(chosen, problem, slopes.parameters)
        rhs = followed(lambda: right_hand_side(slopes, self.columns, problem.size))
        params = tuple(slopes.parameters.values)
        self.whole = Problem(rhs, self.starts(problem.u0), problem.t_span, params, name=problem.name)

    def controller(self, controller: Controller, sizes: list[float] | None = None) -> Controller:
        """The controller of the whole system: no part of it has a larger error than the given one allows to u.

        An error is the root of a mean over all components. With tolerances divided by the root of the number of blocks,
        it is the root of the sum of the squares of what the blocks have by themselves. The scale of a column is that of
        u, divided by the size of its parameter (as in CVODES), or by the `sizes` given.
        """
        if controller.law is None:
            return controller
        blocks = math.sqrt(1 + len(self.columns))
        atol = np.broadcast_to(controller.atol, self.problem.size) / blocks
        sizes = [column.size for column in self.columns] if sizes is None else sizes
        of_columns = [atol / size if self.by_columns else np.full_like(atol, UNMEASURED) for size in sizes]
        return adaptive(
            max(controller.rtol / blocks, SHARPEST),
            np.concatenate([atol, *of_columns]),
            None if controller.law_by_method else controller.law,
            controller.first_step,
            controller.max_step,
        )

    def engine(self, name: str, method) -> str:
        """The engine for the whole system: numba takes minutes for so long a function, and is left out of "auto"."""
        if name != "auto" or method.switches:
            return name
        try:
            store.slopes_of(self.whole)
        except Untraceable:
            return "python"
        return "auto" if method.has_graph else "python"

    def starts(self, u0) -> np.ndarray:
        """The states of the whole system in which runs start, from those of u, (..., n)."""
        columns = first_columns(self.columns, self.problem.size).T.ravel()
        return np.concatenate([u0, np.broadcast_to(columns, (*u0.shape[:-1], columns.size))], axis=-1)

    def parts(self, states) -> tuple[np.ndarray, np.ndarray]:
        """u (..., n) and its columns (..., n, m), of states of the whole system (..., n + n m)."""
        n = self.problem.size
        columns = states[..., n:].reshape(*states.shape[:-1], len(self.columns), n)
        return np.ascontiguousarray(states[..., :n]), np.ascontiguousarray(np.swapaxes(columns, -1, -2))

    def named(self, found: re.Match) -> str:
        """What a message calls a component of the whole system."""
        block, i = divmod(int(found[1]), self.problem.size)
        return f"component {i}" + (f" of du/d {self.columns[block - 1].label}" if block else "")


def followed(record: Callable[[], Any]) -> Any:
    """What comes of the operations of a user's function; raises `NotCompilable` where they cannot be had."""
    try:
        return record()
    except Untraceable as reason:
        raise NotCompilable(
            f"`sensitivities` needs functions whose operations can be followed, to differentiate them: {reason}."
        ) from reason


def first_columns(columns: tuple[Column, ...], n: int) -> np.ndarray:
    """The columns at the start, (n, m): zero, but for an initial value its own unit vector."""
    start = np.zeros((n, len(columns)))
    for j, column in enumerate(columns):
        if column.of_u0:
            start[column.path[0], j] = 1.0
    return start


def inputs_of(columns: tuple[Column, ...], parameters: Parameters) -> list[str]:
    """The names of the inputs of a graph that the columns are; "" for initial values, which are none."""
    known = places(parameters)
    fixed = [column.label for column in columns if not column.of_u0 and column.path not in known]
    if fixed:
        raise ValueError(
            f"`sensitivities` cannot be taken by {fixed[0]}, a whole number that counts or names a place in an event; "
            "leave it out, or make it a float."
        )
    return ["" if column.of_u0 else parameters.names[known[column.path][1]] for column in columns]


def right_hand_side(slopes: Traced, columns: tuple[Column, ...], n: int) -> Callable:
    """The right-hand side of the whole system in component form, one function for equal operations."""
    names = inputs_of(columns, slopes.parameters)

    def make():
        graph = Graph()
        states = [f"u{i}" for i in range(n)]
        nodes = {name: graph.input(name) for name in ("t", *states, *slopes.parameters.names)}
        outputs = slopes.recorded.put(graph, nodes)
        by = [*states, *filter(None, names)]
        rows = derivatives(graph, outputs, [nodes[name] for name in by])
        place = {name: k for k, name in enumerate(by)}
        whole = list(outputs)
        for j, name in enumerate(names):
            column = [graph.input(f"s{j}_{i}") for i in range(n)]
            states += [f"s{j}_{i}" for i in range(n)]
            whole += [slope_of_column(graph, row, column, place.get(name)) for row in rows]
        return written(graph, whole, states, slopes.parameters.names, "state_and_columns")

    return store.kernel(("columns", slopes.key, n, tuple(names)), make)


def slope_of_column(graph: Graph, row: dict, column: list[Node], place: int | None) -> Node:
    """One component of f_u S + f_p, from the derivatives of one component of f."""
    total = row.get(place)
    for k, entry in row.items():
        if k < len(column):
            term = two("mul", entry, column[k])
            total = term if total is None else two("add", total, term)
    return lifted(graph, 0.0 if total is None else total)
