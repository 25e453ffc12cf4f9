"""Events of runs in lanes: which steps may hold a zero of an event's function, told while the runs are in flight.

A short look at every step compares the values of g at both ends of a step with its slopes there. Where g may come to
zero, the one lane is looked at as a single run is (`odelab.kernels.interior.search`), and where that shows a zero, or
cannot tell, the run leaves its lane: `odelab.engines.lanes.watched` finds the zero and lets the run go on.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab import core
from odelab.graph.arrays import Array
from odelab.graph.derivatives import derivatives
from odelab.graph.llvm import Function, Module
from odelab.graph.nodes import Graph, Node, Untraceable, choose, logical, used
from odelab.kernels import store
from odelab.kernels.attempt import Asked, Attempt, in_window
from odelab.kernels.interior.search import event_at, look_at
from odelab.kernels.store import Traced

BETWEEN = 100.0  # times the tolerance: how far g may go inside an accepted step without its ends showing it


class Watched(NamedTuple):
    """The events of runs in lanes.

    slopes        the right-hand side
    events        the functions
    directions    the directions of zeros that count
    ends          of each, whether it may end a run or change a state
    projection    the user's projection of states, None where there is none
    """

    slopes: Traced
    events: tuple[Traced, ...]
    directions: tuple[int, ...]
    ends: tuple[bool, ...]
    projection: Traced | None = None

    @property
    def key(self) -> tuple:
        """Equal for what one kernel serves."""
        return *(one.key for one in self.events), self.directions, self.ends, self.projection and self.projection.key


def logged_rows(asked: Asked) -> list[str]:
    """The names of what is written down of a step in which an event may lie that does not end the run."""
    return ["index", "t", *step_rows(asked), *(f"u{i}" for i in range(asked.n))]


def step_rows(asked: Asked) -> list[str]:
    """The names of what a look at the last step depends on."""
    return ["began", "dt", *(f"old{i}" for i in range(asked.n))]


def longest_rows(asked: Asked) -> list[str]:
    """The names of the longest step of a run so far, where states inside steps may be doubtful."""
    keeps = asked.method.needs_jacobian and asked.law is not None
    return [f"longest_{name}" for name in step_rows(asked)] if keeps else []


def longest_step(attempt: Attempt, rows: list[str]) -> dict[str, Node]:
    """What these rows are after an attempt."""
    if not rows:
        return {}
    graph, (before, after) = attempt.graph, attempt.carried["steps"]
    kept = {name: graph.input(name) for name in rows}
    longer = logical("and", abs(attempt.step["dt"]) > abs(kept["longest_dt"]), after != before)
    return {name: choose(longer, attempt.step[name.removeprefix("longest_")], one) for name, one in kept.items()}


def near(asked: Asked, watched: Watched) -> Any:
    """May g of some event come to zero within the step of an attempt, if it is accepted?

    The inputs are those of `odelab.kernels.interior.states.inside` but for t, and u is the state after the step.

    Where the product of both values is larger than the squares of the change, of what the slopes come to over the step
    and of a multiple of the tolerance, the cubic that has the values and slopes of g at both ends keeps away from zero.
    How far g may be from the cubic is bounded by error control.
    """
    n, graph = asked.n, Graph(trusted=True)
    began, dt = graph.input("began"), graph.input("dt")
    old, new = graph.inputs("old", n), graph.inputs("u", n)
    if asked.law is None:  # the error of a fixed step is not known
        return graph.constant(True)
    slopes = slopes_at_ends(asked, watched, graph)
    atol = asked.tolerance(graph) if asked.vector_tolerance else [asked.tolerance(graph)] * n
    rtol = BETWEEN * graph.input("rtol")
    passes: Any = graph.constant(True)
    for event in watched.events:
        values, squares, scale = [], [], graph.constant(0.0)
        for time, state, slope in ((began, old, slopes[0]), (began + dt, new, slopes[1])):
            values.append(event_at(event, graph, time, state))
            (row,) = derivatives(graph, values[-1:], [*state, time])
            squares.append(added(graph, [row[i] * (slope[i] if i < n else dt) for i in row]))
        scale = added(graph, [abs(row[i]) * (BETWEEN * atol[i] + rtol * abs(new[i])) for i in row if i < n])
        squares = [x * x for x in (*squares, values[1] - values[0], scale)]
        passes = logical("and", passes, values[0] * values[1] > added(graph, squares))
    for condition in graph.raised:
        passes = logical("and", passes, logical("not", condition))
    return logical("not", passes)


def added(graph: Graph, terms: list) -> Any:
    """The sum of some terms; zero where there are none."""
    return functools.reduce(operator.add, terms) if terms else graph.constant(0.0)


def slopes_at_ends(asked: Asked, watched: Watched, graph: Graph) -> tuple[Any, Any]:
    """What the slopes at both ends of a step come to over all of it."""
    n, method = asked.n, asked.method
    began, dt, new = graph.input("began"), graph.input("dt"), graph.inputs("u", n)
    if method.needs_jacobian:
        stages = [graph.inputs(f"k{j}_", n) for j in range(method.stages)]
        weights = method.extension_weights
        at_end = np.arange(1, len(weights) + 1) @ weights
        return tuple(core.combine(row.tolist(), stages, len(row)) for row in (weights[0], at_end))
    first = graph.inputs("k0_", n)
    if method.fsal and watched.projection is None:
        return dt * first, dt * graph.inputs(f"k{method.stages - 1}_", n)
    slopes_at = in_window(asked, graph, store.slopes_in(graph, watched.slopes))
    return dt * first, dt * Array.of(list(slopes_at(began + dt, new)))


def add_near(function: Function, node: Node, values: dict[str, str], fixed: dict[str, str]) -> str:
    """Add the short look to a function, apart from what is there: no operation of an attempt is shared with it.

    An operation with a second use would not be joined with the addition that follows it, and an event that never
    happens would change the last bits of a run.
    """
    inputs = {name: fixed[name] if name in fixed else function.fenced(values[name]) for name in inputs_of(node)}
    return function.graph(node.graph, [node], inputs)[0]


def inputs_of(*nodes: Node) -> list[str]:
    """The names of the inputs that some nodes of a graph depend on."""
    graph = nodes[0].graph
    return [graph.ops[i][2] for i in used(graph, nodes) if graph.ops[i][0] == "in"]


def add_look(module: Module, asked: Asked, watched: Watched, value_of: Callable) -> Function:
    """The function `look(column, fixed, told)`: may an event happen in the last step of a lane?

    It writes 1 or 0 for the events that may end a run or change its state, and then for the others.

    value_of    value_of(function, name): the value of a row, or of what all runs have in common
    """
    function = module.function("look", dict.fromkeys(("column", "fixed", "told"), "p"), internal=True)
    told = {True: "false", False: "false"}
    asked = asked._replace(law=None, maxima=False)
    for event, direction, ends in zip(watched.events, watched.directions, watched.ends, strict=True):
        looked = look_at(asked, watched.slopes, event)
        graph = looked.graph
        counts = looked.crosses
        if direction:
            counts = logical("and", counts, looked.after * float(direction) > 0.0)
        some = logical("or", logical("not", looked.clear), logical("or", counts, looked.fails))
        start = Graph(trusted=True)
        before = event_at(event, start, start.input("began"), start.inputs("old", asked.n))
        (first,) = function.graph(start, [before], {name: value_of(function, name) for name in inputs_of(before)})
        inputs = {name: value_of(function, name) for name in inputs_of(some) if name != "before"}
        (found,) = function.graph(graph, [some], {**inputs, "before": first})
        told[ends] = function.logical("or", told[ends], found)
    for k, ends in enumerate((True, False)):
        function.store("l", function.choose(told[ends], "l", 1, 0), "%told", k)
    return function


def watched_of(problem, watched, project, slopes: Traced) -> Watched:
    """The events and the projection as operations; raises `Untraceable` where they cannot be followed."""
    events = tuple(store.event_of(event.function, problem) for event in watched)
    if any(one.parameters.builds_in != slopes.parameters.builds_in for one in events):
        raise Untraceable("uses whole numbers of `params` as counts or places", "", "an event")
    projection = None if project is None else store.projection_of(project, problem.size)
    directions = tuple(event.direction for event in watched)
    return Watched(slopes, events, directions, tuple(may_end(event) for event in watched), projection)


def may_end(event) -> bool:
    """May an event end a run, or a piece of it?"""
    return bool(event.terminal) or event.change is not None
