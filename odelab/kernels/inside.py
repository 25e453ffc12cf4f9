"""The state inside a step as a graph, by the continuous extension of the method (`odelab.methods.extension`)."""

from collections.abc import Callable

from odelab import core
from odelab.graph.arrays import Array
from odelab.graph.nodes import Graph, Node, choose
from odelab.kernels.attempt import Asked


def inside(asked: Asked, slopes_at: Callable, graph: Graph, params) -> list[Node]:
    """The state at time `at` of a step that began at `began` and led to t and u.

    The inputs are those that `Attempt.step` names, "at", and the carried time and state after the step.
    """
    n, method = asked.n, asked.method
    at, t, began, dt = (graph.input(name) for name in ("at", "t", "began", "dt"))
    old, new = graph.inputs("old", n), graph.inputs("u", n)
    stages = [graph.inputs(f"k{j}_", n) for j in range(method.stages)]
    parts = method.coefficients_inside(core.combine, slopes_at, params, began, old, dt, new, stages)
    theta = (at - began) / dt
    state = state_at(theta, old, parts)
    return [choose(at == t, end, within) for end, within in zip(new, state, strict=True)]


def state_at(theta, old, parts) -> Array:
    """The state at a fraction of a step, by Horner's rule."""
    change = parts[-1]
    for part in parts[-2::-1]:
        change = change * theta + part
    return Array.of(list(old + theta * change))
