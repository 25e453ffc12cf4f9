"""The state inside a step as a graph, by the continuous extension of the method or by a step of its own."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab import core
from odelab.graph.arrays import Array
from odelab.graph.derivatives import derivatives
from odelab.graph.nodes import Graph, Node, choose
from odelab.kernels import store
from odelab.kernels.attempt import WINDOW, Asked, in_window, steps_of
from odelab.kernels.implicit import Factors
from odelab.kernels.machine import Machine, address
from odelab.kernels.modules import module_of_run
from odelab.methods.extension import LOOKED_AT, squared_error_inside


def inside(asked: Asked, slopes_at: Callable, graph: Graph, params, by: str) -> tuple[list[Node], Node]:
    """The state at time `at` of a step that began at `began` and led to t and u, and by how much it is doubtful.

    The inputs are those that `Attempt.step` names, "at", the carried time and state after the step, and the tolerance.
    The doubt is `squared_error_inside`, zero where a method has no Jacobian or steps are fixed.

    by    "dense", by the continuous extension (`odelab.methods.extension`), or "step", by a step that ends there
    """
    n, method = asked.n, asked.method
    slopes_at = in_window(asked, graph, slopes_at)
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


class Look(NamedTuple):
    """A compiled look inside steps.

    machine    the code, which lives as long as this object
    call       the function `look`
    """

    machine: Machine
    call: Callable


def look_of(problem, method, controller) -> Callable:
    """The largest errors inside many steps of a method with a Jacobian; raises `Untraceable` where there is none.

    It is called with times (m,), states (m, n) and step sizes (m,) and returns the squares of the errors over the
    tolerance, summed over components, and at which fractions of the steps they are.
    """
    slopes, vector = store.slopes_of(problem), np.ndim(controller.atol) > 0
    asked = Asked(problem.size, method, controller.law, vector, windowed=problem.window is not None)
    key = ("look", id(method), problem.size, vector, asked.windowed, slopes.key)
    found = store.kernel(key, lambda: made_look(asked, slopes), method)
    given = np.array(
        [*slopes.parameters.values, controller.rtol, *np.atleast_1d(controller.atol), *(problem.window or ())]
    )

    def look(t, u, h):
        arrays = [np.ascontiguousarray(x, dtype=float) for x in (t, u, h)]
        squares, fractions = np.zeros(len(h)), np.zeros(len(h))
        if len(h):
            found.call(*map(address, (*arrays, given, squares, fractions)), len(h))
        return squares, fractions

    return look


def made_look(asked: Asked, slopes: store.Traced) -> Look:
    n, method, graph = asked.n, asked.method, Graph(trusted=True)
    module = module_of_run(False, slopes)
    names = ("times", "states", "sizes", "given", "squares", "fractions")
    function = module.function("look", {**dict.fromkeys(names, "p"), "count": "l"})
    slopes_at = in_window(asked, graph, store.slopes_in(graph, slopes))
    t, h, old = graph.input("began"), graph.input("dt"), graph.inputs("old", n)
    atol = graph.inputs("atol", n) if asked.vector_tolerance else graph.input("atol")
    step, prepare, _ = steps_of(asked, graph)
    known = prepare(t, old, slopes_at(t, old), ())
    new, _, _, increments, _ = step(slopes_at, (), t, old, known, h, h)
    parts = method.coefficients_inside(core.combine, slopes_at, (), t, old, h, new, increments[method.final])
    solve = Factors(known[1], h * float(method.gamma)).solve
    worst, place = graph.constant(0.0), graph.constant(LOOKED_AT[0])
    for theta in LOOKED_AT:
        square = squared_error_inside(
            slopes_at, (), t, old, h, parts, theta, float(method.gamma), solve, graph.input("rtol"), atol
        )
        worst, place = choose(square > worst, square, worst), choose(square > worst, theta, place)
    tolerances = [f"atol{i}" for i in range(n)] if asked.vector_tolerance else ["atol"]
    given = [*slopes.parameters.names, "rtol", *tolerances, *(WINDOW if asked.windowed else ())]
    inputs = {name: function.load("d", "%given", k) for k, name in enumerate(given)}
    with function.over("%count") as k:
        row = function.whole("mul", k, n)
        here = {f"old{i}": function.load("d", "%states", function.whole("add", row, i)) for i in range(n)}
        here |= {"began": function.load("d", "%times", k), "dt": function.load("d", "%sizes", k)}
        for array, value in zip(
            ("squares", "fractions"), function.graph(graph, [worst, place], inputs | here), strict=True
        ):
            function.store("d", value, f"%{array}", k)
    machine = Machine(module.text())
    return Look(machine, machine.function("look", 7))
