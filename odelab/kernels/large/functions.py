"""The user's functions of large systems as rows by classes, and what loops over them are handed; kept as in `store`."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.functions.checking import PlainSlopes, difference_at, refuse_if, states_near
from odelab.functions.tracing import traced, traced_projection
from odelab.graph.classes import CONDITION, Classes, classes_of
from odelab.graph.nodes import Graph, TooLarge, Untraceable
from odelab.graph.recorded import Recorded, lifted
from odelab.kernels import store
from odelab.kernels.large.row_loops import is_autonomous, pattern_of, table_of_runs
from odelab.kernels.parameters import Parameters
from odelab.linear.solvers import BANDED, band_of
from odelab.right_hand_side import ARRAY

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
        self.key = self.classes.key, None if self.alone is None else self.alone.key

    @property
    def with_jacobian(self) -> Classes:
        """The rows of which derivatives are known."""
        if self.alone is None:
            raise ValueError("the derivatives of these rows were not wanted; ask `rows_of` for them.")
        return self.alone

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
        return table_of_runs(self.with_jacobian, has_jacobian=True)

    @functools.cached_property
    def band(self) -> BandPlaces:
        """The band of the Jacobian; raises Untraceable where it is too wide."""
        from scipy.sparse import csc_array

        n = self.with_jacobian.size
        rows, columns = pattern_of(self.with_jacobian)
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


class Function(NamedTuple):
    """A user's function.

    rows          its rows
    key           equal for functions that one kernel serves
    parameters    how its parameters are handed over
    """

    rows: Rows
    key: tuple
    parameters: Parameters


def function_of(traced: store.Traced) -> Function:
    rows: Any = traced.recorded
    return Function(rows, traced.key, traced.parameters)


def rows_of(problem, has_jacobian: bool) -> Function:
    """The right-hand side of a problem by classes of rows; raises Untraceable where it cannot be followed.

    What is found is compared with the function itself at some states before it is trusted.

    has_jacobian    whether its Jacobian is wanted, too
    """
    rhs, form, n = problem.rhs, problem.form, problem.size

    def record(parameters, trace):
        graph = Graph(limit=LARGEST)
        slopes = traced(graph, rhs, form, n, trace)
        outputs = slopes(graph.input("t"), graph.inputs("u", n), parameters.nodes(graph))
        found = Rows(Recorded(graph, [lifted(graph, x) for x in outputs]), has_jacobian)
        plain = PlainSlopes(rhs, form, problem.params)
        refuse_if(difference(found.classes, plain, problem.t_span, problem.u0, np.array(parameters.values)), rhs)
        return found

    return function_of(store.known(rhs, ("rows", form, n, has_jacobian), Parameters(problem.params), record))


def difference(classes: Classes, plain: PlainSlopes, t_span, u0, params: np.ndarray) -> str | None:
    """What classes compute differently from the plain function, in words; None where they agree."""
    times, states = states_near(t_span, u0)
    for t, u in zip(times[::EACH], states[::EACH], strict=True):
        values, raised = classes(float(t), u, params)
        found = difference_at(plain, float(t), u, values, raised)
        if found:
            return f"at t = {t:g} {found}"
    return None


def projection_of(function: Callable, n: int) -> Function:
    """The user's projection of states by classes."""

    def record(parameters, trace):
        graph = Graph(limit=LARGEST)
        outputs = traced_projection(graph, function, n, trace)(graph.inputs("u", n))
        found = Rows(Recorded(graph, [lifted(graph, x) for x in outputs]), has_jacobian=False)
        plain = PlainSlopes(lambda t, u, params: function(np.array(u)), ARRAY, None)
        refuse_if(difference(found.classes, plain, (0.0, 1.0), np.ones(n), np.zeros(0)), function)
        return found

    return function_of(store.known(function, ("projection of rows", n), Parameters(()), record))
