"""The user's functions of large systems as rows by classes, and what loops over them are handed; kept as in `store`."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab.functions.checking import PlainSlopes, difference_at, states_near
from odelab.graph.classes import CONDITION, Classes, classes_of
from odelab.graph.nodes import Graph, TooLarge, Untraceable
from odelab.graph.recorded import Recorded, lifted
from odelab.functions.tracing import traced, traced_projection
from odelab.kernels import store
from odelab.kernels.parameters import Parameters
from odelab.kernels.row_loops import is_autonomous, pattern_of, table_of_runs
from odelab.linear.solvers import BANDED, band_of

LARGEST = 400_000  # operations before rows are found to be alike; running so many takes a second
EACH = 8  # of the states at which graphs are compared with their functions, which take longer here


class BandPlaces(NamedTuple):
    """The band of a Jacobian.

    below, above    the diagonals below and above the main one
    order           (n,), the unknown at each place of the band
    where           where each entry stands in the band, row after row, in the order of `pattern_of`
    """

    below: int
    above: int
    order: np.ndarray
    where: np.ndarray


class Rows:
    """The rows of a function.

    classes    as its loops compute them
    alone      the same, each an expression of the state alone, of which derivatives are known; None where they are not
               wanted
    key        equal for functions that one kernel serves
    """

    def __init__(self, recorded: Recorded, has_jacobian: bool):
        self.classes = classes_of(recorded)
        self.alone = rows_alone(recorded) if has_jacobian else None
        self.key = self.classes.key, self.alone and self.alone.key

    @functools.cached_property
    def raises(self) -> bool:
        return any(one.purpose == CONDITION for one in self.classes.classes)

    @functools.cached_property
    def is_autonomous(self) -> bool:
        return self.alone is None or is_autonomous(self.alone)

    @functools.cached_property
    def runs(self) -> np.ndarray:
        return table_of_runs(self.classes, has_jacobian=False)

    @functools.cached_property
    def runs_alone(self) -> np.ndarray:
        assert self.alone is not None
        return table_of_runs(self.alone, has_jacobian=True)

    @functools.cached_property
    def band(self) -> BandPlaces:
        """The band of the Jacobian; raises Untraceable where it is too wide."""
        from scipy.sparse import csc_array

        assert self.alone is not None
        n = self.alone.size
        rows, columns = pattern_of(self.alone)
        order, below, above = band_of(csc_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)))
        if below + above > BANDED:
            raise Untraceable(f"has a Jacobian with a band of {below} + 1 + {above} diagonals, too many for a kernel")
        place = np.argsort(order)
        where = place[rows] * (below + above) + below + place[columns]
        return BandPlaces(below, above, np.array(order, dtype=np.int64), where)


def rows_alone(recorded: Recorded) -> Classes:
    """The rows of which derivatives are known."""
    try:
        return classes_of(recorded, shares=False)
    except TooLarge as refusal:
        reason = "has too many different entries in its Jacobian for a kernel"
        raise Untraceable(reason, "take engine='python'") from refusal


def rows_of(problem, has_jacobian: bool) -> store.Traced:
    """The right-hand side of a problem by classes, `recorded` being `Rows`; raises Untraceable where it has none.

    What is found is compared with the function itself at some states before it is trusted.

    has_jacobian    whether its Jacobian is wanted, too
    """
    rhs, form, n = problem.rhs, problem.form, problem.size

    def record(parameters, trace):
        graph = Graph(limit=LARGEST)
        slopes = traced(graph, rhs, form, n, trace)
        outputs = slopes(graph.input("t"), graph.inputs("u", n), parameters.nodes(graph))
        found = Rows(Recorded(graph, [lifted(graph, x) for x in outputs]), has_jacobian)
        wrong = difference(found.classes, problem, np.array(parameters.values))
        if wrong is not None:
            raise Untraceable(f"is not what its operations compute: {wrong}", "", store.rhs_name(rhs))
        return found

    return store.known(rhs, ("rows", form, n, has_jacobian), Parameters(problem.params), record)


def difference(classes: Classes, problem, params: np.ndarray) -> str | None:
    """What classes compute differently from the plain function, in words; None where they agree."""
    times, states = states_near(problem.t_span, problem.u0)
    for t, u in zip(times[::EACH], states[::EACH], strict=True):
        values, raised = classes(float(t), u, params)
        plain = PlainSlopes(problem.rhs, problem.form, problem.params)
        found = difference_at(plain, float(t), u, values, raised)
        if found:
            return f"at t = {t:g} {found}"
    return None


def projection_of(function: Callable, n: int) -> store.Traced:
    """The user's projection of states by classes."""

    def record(parameters, trace):
        graph = Graph(limit=LARGEST)
        outputs = traced_projection(graph, function, n, trace)(graph.inputs("u", n))
        return Rows(Recorded(graph, [lifted(graph, x) for x in outputs]), has_jacobian=False)

    return store.known(function, ("projection of rows", n), Parameters(()), record)
