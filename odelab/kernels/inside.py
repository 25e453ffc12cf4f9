"""The state inside a step as a graph, by the continuous extension of the method (`odelab.methods.extension`)."""

from collections.abc import Callable

from odelab import core
from odelab.graph.arrays import Array
from odelab.graph.nodes import Graph, Node, choose
from odelab.kernels.attempt import Asked
from odelab.methods import extension
from odelab.methods.rosenbrock import RosenbrockMethod


def inside(asked: Asked, slopes_at: Callable, graph: Graph, params) -> list[Node]:
    """The state at time `at` of a step that began at `began` and led to t and u.

    The inputs are those that `Attempt.step` names, "at", and the carried time and state after the step.
    """
    n, method = asked.n, asked.method
    at, t, began, dt = (graph.input(name) for name in ("at", "t", "began", "dt"))
    old, new = graph.inputs("old", n), graph.inputs("u", n)
    stages = [graph.inputs(f"k{j}_", n) for j in range(method.stages)]
    parts = extension_parts(method, slopes_at, params, began, dt, old, new, stages)
    theta = (at - began) / dt
    state = state_at(theta, old, parts)
    return [choose(at == t, end, within) for end, within in zip(new, state, strict=True)]


def extension_parts(method, slopes_at: Callable, params, began, dt, old, new, stages) -> list[Array]:
    """The coefficients of theta, theta^2, ... in the change of the state within a step, n nodes each.

    stages    what a step of the method returns: slopes, or increments of a linearly implicit one
    """
    if isinstance(method, RosenbrockMethod):
        return [core.combine(row.tolist(), stages, len(row)) for row in method.extension_weights]
    slopes = extension.finish_stages(core.combine, slopes_at, params, method, began, old, dt, new, stages)
    return [dt * core.combine(row.tolist(), slopes, len(row)) for row in extension.weights(method).T]


def state_at(theta, old, parts) -> Array:
    """The state at a fraction of a step, by Horner's rule."""
    change = parts[-1]
    for part in parts[-2::-1]:
        change = change * theta + part
    return Array.of(list(old + theta * change))
