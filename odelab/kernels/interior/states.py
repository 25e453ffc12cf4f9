"""The state inside a step as a graph, by the continuous extension of the method or by a step of its own."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from odelab import core
from odelab.graph.arrays import Array
from odelab.graph.derivatives import derivatives
from odelab.graph.nodes import Graph, Node, choose
from odelab.kernels import store
from odelab.kernels.attempt import WINDOW, Asked, in_window, mass_of, steps_of
from odelab.kernels.implicit import Factors, rows_of, weigh_of
from odelab.kernels.machine import Machine, address
from odelab.kernels.modules import module_of_run
from odelab.methods.extension import LOOKED_AT, squared_error_inside


def inside(
    asked: Asked, slopes_at: Callable, graph: Graph, params, by: str, project: Callable | None = None
) -> tuple[list[Node], Node]:
    """The state at time `at` of a step that began at `began` and led to t and u, and by how much it is doubtful.

    The inputs are those that `Attempt.step` names, "at", the carried time and state after the step, and the tolerance.
    The doubt is `squared_error_inside`, zero where a method has no Jacobian or steps are fixed.

    by         "dense", by the continuous extension (`odelab.methods.extension`), or "step", by a step that ends there
    project    the user's projection as a function of nodes, None where there is none
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
            step = params, began, old, dt, parts, theta, float(method.gamma)
            solve = Factors(rows, dt * float(method.gamma), rows_of(asked.mass, n)).solve
            weigh, atol = weigh_of(asked.mass), asked.tolerance(graph)
            doubt = doubt + squared_error_inside(slopes_at, *step, solve, graph.input("rtol"), atol, weigh)
    state = state if project is None else project(state)
    return [choose(at == t, end, within) for end, within in zip(new, state, strict=True)], choose(at == t, 0.0, doubt)


def state_at(theta, old, parts) -> Array:
    """The state at a fraction of a step, by Horner's rule."""
    change = parts[-1]
    for part in parts[-2::-1]:
        change = change * theta + part
    return Array.of(list(old + theta * change))


class OverSteps(NamedTuple):
    """A compiled function of many steps.

    machine    the code, which lives as long as this object
    call       the function, of addresses of times, states, step sizes, what is given and results, then how many steps
               there are and how far apart in memory what is given to them lies
    """

    machine: Machine
    call: Callable

    def __call__(self, t, u, h, given, width: int) -> np.ndarray:
        """The results (m, width) for times (m,), states (m, n) and sizes (m,).

        given    numbers for all steps, or a row of them for each
        """
        out = np.zeros((len(h), width))
        if len(h):
            arrays = [np.ascontiguousarray(x, dtype=float) for x in (t, u, h, given)]
            self.call(*map(address, (*arrays, out)), len(h), given.shape[-1] if given.ndim == 2 else 0)
        return out


def over_steps(asked: Asked, slopes: store.Traced, names: list[str], results: Callable) -> OverSteps:
    """The machine code of what is computed of single steps.

    names      of what is given, in order
    results    results(graph, slopes_at, t, old, h): the nodes of what is computed of a step
    """
    n, graph, module = asked.n, Graph(trusted=True), module_of_run(False, slopes)
    arrays = ("times", "states", "sizes", "given", "out")
    function = module.function("steps", {**dict.fromkeys(arrays, "p"), "count": "l", "apart": "l"})
    slopes_at = in_window(asked, graph, store.slopes_in(graph, slopes))
    found = results(graph, slopes_at, graph.input("began"), graph.inputs("old", n), graph.input("dt"))
    with function.over("%count") as k:
        row, own = function.whole("mul", k, n), function.place("%given", function.whole("mul", k, "%apart"))
        inputs = {name: function.load("d", own, place) for place, name in enumerate(names)}
        inputs |= {f"old{i}": function.load("d", "%states", function.whole("add", row, i)) for i in range(n)}
        inputs |= {"began": function.load("d", "%times", k), "dt": function.load("d", "%sizes", k)}
        first = function.whole("mul", k, len(found))
        for place, value in enumerate(function.graph(graph, found, inputs)):
            function.store("d", value, "%out", function.whole("add", first, place))
    machine = Machine(module.text())
    return OverSteps(machine, machine.function("steps", 7))


def look_of(problem, method, controller) -> Callable:
    """The largest errors inside many steps of a method with a Jacobian; raises `Untraceable` where there is none.

    It is called with times (m,), states (m, n) and step sizes (m,) and returns the squares of the errors over the
    tolerance, summed over components, and at which fractions of the steps they are. Parameters and windows of the
    problem are those of all steps, unless a row of them is given for each step.
    """
    slopes, vector = store.slopes_of(problem), np.ndim(controller.atol) > 0
    windowed, mass = problem.window is not None, mass_of(problem)
    asked = Asked(problem.size, method, controller.law, vector, windowed=windowed, mass=mass)
    key = ("look", id(method), problem.size, vector, windowed, mass, slopes.key)
    tolerances = [f"atol{i}" for i in range(asked.n)] if vector else ["atol"]
    names = ["rtol", *tolerances, *slopes.parameters.names, *(WINDOW if asked.windowed else ())]
    found = store.kernel(key, lambda: over_steps(asked, slopes, names, functools.partial(worst_inside, asked)), method)
    fixed = [controller.rtol, *np.atleast_1d(controller.atol)]
    usual = np.array([*slopes.parameters.values, *(problem.window or ())])

    def look(t, u, h, own=usual):
        before = np.broadcast_to(fixed, (*own.shape[:-1], len(fixed)))
        return tuple(found(t, u, h, np.concatenate([before, own], axis=-1), 2).T)

    return look


def worst_inside(asked: Asked, graph: Graph, slopes_at: Callable, t, old, h) -> list[Node]:
    """The square of the largest error that is found inside a step, and at which fraction of it."""
    method = asked.method
    atol = asked.tolerance(graph)
    step, prepare, _ = steps_of(asked, graph)
    known = prepare(t, old, slopes_at(t, old), ())
    new, _, _, increments, _ = step(slopes_at, (), t, old, known, h, h)
    parts = method.coefficients_inside(core.combine, slopes_at, (), t, old, h, new, increments[method.final])
    solve = Factors(known[1], h * float(method.gamma), rows_of(asked.mass, asked.n)).solve
    weigh = weigh_of(asked.mass)
    worst, place = graph.constant(0.0), graph.constant(LOOKED_AT[0])
    for theta in LOOKED_AT:
        square = squared_error_inside(
            slopes_at, (), t, old, h, parts, theta, float(method.gamma), solve, graph.input("rtol"), atol, weigh
        )
        worst, place = choose(square > worst, square, worst), choose(square > worst, theta, place)
    return [worst, place]


def step_of(problem, method) -> Callable:
    """Steps taken again to other ends; raises `Untraceable` where there are none.

    It is called with times (m,), states (m, n), step sizes (m,) and parameters and windows, a row for each step, and
    returns the states (m, n) after the steps, NaN where factors without pivoting do not solve their systems.
    """
    slopes, n = store.slopes_of(problem), problem.size
    asked = Asked(n, method, None, windowed=problem.window is not None, mass=mass_of(problem))
    names = [*slopes.parameters.names, *(WINDOW if asked.windowed else ())]

    def after(graph: Graph, slopes_at: Callable, t, old, h):
        step, prepare, _ = steps_of(asked, graph)
        return list(step(slopes_at, (), t, old, prepare(t, old, slopes_at(t, old), ()), h, h)[0])

    key = ("step", id(method), n, asked.windowed, asked.mass, slopes.key)
    found = store.kernel(key, lambda: over_steps(asked, slopes, names, after), method)
    return lambda t, u, h, own: found(t, u, h, own, n)
