"""A function traced with the inputs t, u0, u1, ..., p0, p1, ..., and compared with itself at random states."""

from typing import NamedTuple

import numpy as np

from odelab.functions.tracing import traced
from odelab.graph.evaluation import evaluate
from odelab.graph.nodes import Graph, Node
from odelab.problem import array_form


class Traced(NamedTuple):
    """The graph of a right-hand side, its slopes, the function itself and its form."""

    graph: Graph
    slopes: list[Node]
    function: object
    form: str


def trace(function, form: str, n: int = 2, parameters: int = 2, **options) -> Traced:
    graph = Graph()
    params = tuple(graph.input(f"p{i}") for i in range(parameters))
    slopes = traced(graph, function, form, n, **options)(graph.input("t"), graph.inputs("u", n), params)
    return Traced(graph, list(slopes), function, form)


class PlainProblem(NamedTuple):
    """What `odelab.problem.array_form` reads of a problem."""

    rhs: object
    form: str

    def seen(self, t):
        return t


def values(case: Traced, times, states, params) -> tuple[np.ndarray, np.ndarray]:
    """The slopes of the graph at states (N, n), and where it says that the function raises."""
    named = {"t": times} | {f"u{i}": column for i, column in enumerate(states.T)}
    named |= {f"p{i}": value for i, value in enumerate(params)}
    found = [np.broadcast_to(x, len(times)) for x in evaluate(case.graph, [*case.slopes, *case.graph.raised], named)]
    n = states.shape[1]
    return np.array(found[:n]).T, np.any([np.zeros(len(times), bool), *found[n:]], axis=0)


def plain_values(case: Traced, times, states, params) -> tuple[np.ndarray, np.ndarray]:
    """The slopes of the plain function, NaN where it leaves its domain, and where it raises an error of its own."""
    function = array_form(PlainProblem(case.function, case.form))  # type: ignore[arg-type]
    slopes, raised = np.full(states.shape, np.nan), np.zeros(len(times), bool)
    for k, (t, u) in enumerate(zip(times, states, strict=True)):
        try:
            with np.errstate(all="ignore"):
                slopes[k] = function(float(t), u.copy(), params)
        except (RuntimeError, LookupError, ValueError, AssertionError, TypeError, np.exceptions.ComplexWarning):
            raised[k] = True
    return slopes, raised


def random_states(n: int = 2, count: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.uniform(0.0, 3.0, count), generator.normal(0.0, 1.5, (count, n))
