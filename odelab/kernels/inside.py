"""The state inside a step as a graph, by the continuous extension of the method or by a step of its own."""

from collections.abc import Callable

from odelab import core
from odelab.graph.arrays import Array
from odelab.graph.derivatives import derivatives
from odelab.graph.nodes import Graph, Node, choose
from odelab.kernels.attempt import Asked, steps_of
from odelab.kernels.implicit import Factors
from odelab.runs.interior import squared_error_inside


def inside(asked: Asked, slopes_at: Callable, graph: Graph, params, by: str) -> tuple[list[Node], Node]:
    """The state at time `at` of a step that began at `began` and led to t and u, and by how much it is doubtful.

    The inputs are those that `Attempt.step` names, "at", the carried time and state after the step, and the tolerance.
    The doubt is `odelab.runs.interior.squared_error_inside`, zero where a method has no Jacobian or steps are fixed.

    by    "dense", by the continuous extension (`odelab.methods.extension`), or "step", by a step that ends there
    """
    n, method = asked.n, asked.method
    at, t, began, dt = (graph.input(name) for name in ("at", "t", "began", "dt"))
    old, new = graph.inputs("old", n), graph.inputs("u", n)
    stages = [graph.inputs(f"k{j}_", n) for j in range(method.stages)]
    doubt = graph.constant(0.0)
    if by == "step":
        step, prepare, _ = steps_of(asked, graph)
        h = at - began
        known = prepare(began, old, slopes_at(began, old, params), params)
        state = step(slopes_at, params, began, old, known, h, h)[0]
    else:
        parts = method.coefficients_inside(core.combine, slopes_at, params, began, old, dt, new, stages)
        theta = (at - began) / dt
        state = state_at(theta, old, parts)
        if method.needs_jacobian and asked.law is not None:
            rows = derivatives(graph, list(slopes_at(began, old, params)), list(old))
            atol = graph.inputs("atol", n) if asked.vector_tolerance else graph.input("atol")
            step = params, began, old, dt, parts, theta, float(method.gamma)
            solve = Factors(rows, dt * float(method.gamma)).solve
            doubt = doubt + squared_error_inside(slopes_at, *step, solve, graph.input("rtol"), atol)
    return [choose(at == t, end, within) for end, within in zip(new, state, strict=True)], choose(at == t, 0.0, doubt)


def state_at(theta, old, parts) -> Array:
    """The state at a fraction of a step, by Horner's rule."""
    change = parts[-1]
    for part in parts[-2::-1]:
        change = change * theta + part
    return Array.of(list(old + theta * change))
