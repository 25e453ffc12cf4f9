"""The first state of a run as a graph: the slope at the start, the size of the first step, and an empty history."""

import math
from collections.abc import Callable
from typing import Any

from odelab.control import controllers
from odelab.control.controllers import Start
from odelab.functions.tracing import Trace
from odelab.graph import nodes
from odelab.graph.forks import joined
from odelab.graph.llvm import Function, Module
from odelab.graph.nodes import Graph, Node, choose
from odelab.kernels.attempt import Asked, in_window, named
from odelab.kernels.start import algebra_of


def beginning(asked: Asked, slopes_at: Callable, graph: Graph, params) -> dict[str, Node]:
    """{name: node} of the first values of a run, as `odelab.kernels.attempt` carries them, and "evaluations".

    The slope at the start has the names "first_slope0", ..., too, for methods that do not carry one.

    The input "given_step" is the size of the first step, 0 where it is to be found.
    """
    t0, t1, given = (graph.input(name) for name in ("t0", "t1", "given_step"))
    u, slopes_at = graph.inputs("u", asked.n), in_window(asked, graph, slopes_at)
    slope, algebra = slopes_at(t0, u, params), algebra_of(asked, graph)
    first = {"t": t0, **named("u", u), **named("slope", slope), **named("first_slope", slope)}
    first["largest_rho"] = graph.constant(-1.0)  # below the square of any
    if asked.law is None:
        return first | {"evaluations": graph.constant(1)}
    copies = Trace()
    slopes_at = slopes_at if algebra is None else algebra.slopes(slopes_at)
    span_and_state: Any = (t0, t1, u, slope if algebra is None else slopes_at(t0, u, params))
    start = Start(asked.method, slopes_at, params, *span_and_state)
    find = joined(graph, copies.copy(controllers.initial_step))
    found, evaluations = find(start, graph.input("rtol"), asked.tolerance(graph))
    told = given > 0.0
    span = t1 - t0
    largest = graph.input("largest") if asked.limited else math.inf
    size = nodes.minimum(choose(told, given, found), largest, abs(span))
    return first | {
        "next_step": nodes.call_two("copysign", graph.constant(0.0) + size, span),
        "evaluations": graph.constant(1) + choose(told, 0, nodes.whole(evaluations)),
    }


def add_begin(
    module: Module, graph: Graph, first: dict[str, Node], carried, fixed, parameters, apart=1, search=None
) -> Function:
    """The function `begin(u, fixed, params, carried, evaluations)` of a module.

    It writes the first values of what a loop carries, zeros where `first` names none, and then the number of
    evaluations, which is -1 where the right-hand side raises an error.

    carried, fixed, parameters    the names of these values, in order
    apart                         how far apart the values in `carried` lie
    search                        `odelab.kernels.start.search_of`: the state `u` then needs not satisfy the algebraic
                                  equations of a problem, and is NaN where no state was found that does
    """
    names = ("u", "fixed", "params", "carried", "evaluations")
    function = module.function("begin", dict.fromkeys(names, "p"))
    inputs = {name: function.load("d", "%u", int(name[1:])) for name in first if name[0] == "u"}
    inputs |= {name: function.load("d", "%fixed", k) for k, name in enumerate(fixed)}
    inputs |= {name: function.load("d", "%params", k) for k, name in enumerate(parameters)}
    if search is not None:
        search(function, inputs)
    wanted = [first.get(name, graph.constant(0.0)) for name in carried]
    evaluations = first["evaluations"]
    for condition in graph.raised:
        evaluations = choose(condition, -1, evaluations)
    *values, count = function.graph(graph, [*wanted, evaluations], inputs)
    for k, (node, value) in enumerate(zip(wanted, values, strict=True)):
        function.store(node.kind, value, "%carried", k * apart)
    function.store("l", count, "%evaluations", 0)
    return function
