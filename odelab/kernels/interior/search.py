"""The kernel that searches the steps of a run for the zeros of an event's function.

For every step it takes the stages again, forms the polynomial of the dense output and evaluates the function at the
same places as `odelab.runs.events` does; `odelab.runs.roots` judges the step and finds its zero, run on nodes. The few
steps of which it is not sure are left to `odelab.runs.events`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab import core
from odelab.functions.tracing import Trace
from odelab.graph.forks import joined
from odelab.graph.llvm import Function, Variable
from odelab.graph.nodes import Graph, Node, call_two, choose, logical
from odelab.kernels import store
from odelab.kernels.attempt import WINDOW, Asked, in_window, mass_of, steps_of
from odelab.kernels.interior.states import state_at
from odelab.kernels.machine import Machine, address
from odelab.kernels.modules import module_of_run
from odelab.kernels.store import Traced
from odelab.runs import roots

# knots is 1 where each step begins where the one before it ends, else 2; apart is the distance of the params of steps
ARGUMENTS = {
    **dict.fromkeys(("times", "states", "sizes", "params", "last", "places", "zeros", "unsure"), "p"),
    **dict.fromkeys(("count", "room", "knots", "apart"), "l"),
}
PLACES = ("step", "found", "doubts", "failed")  # whole numbers: the next step, zeros, steps in `unsure`, an error
ROWS = 64  # zeros in one call of the kernel, at first


class Search(NamedTuple):
    """A compiled search for the zeros of one function.

    machine    the code, which lives as long as this object
    call       the function `search`, as `ARGUMENTS` names its arguments
    """

    machine: Machine
    call: Callable


def search_of(problem, method, function: Callable) -> Callable:
    """The search for zeros of an event's function; raises `Untraceable` where there is none.

    It is called with times (m+1,), states (m+1, n), step sizes (m,) and the function's value at the start, and returns
    (t, directions, states) of the zeros it found, and the numbers of the steps of which it is not sure. Parameters,
    those of the event behind those of the right-hand side, and the window are those of the problem unless others are
    given, `own`.
    """
    found, params = kernel_of(problem, method, function)

    def search(t, u, h, before, own=params):
        zeros, unsure = zeros_found(found, own, t, u, h, before)
        return zeros[:, 0], zeros[:, 1].astype(int), zeros[:, 3:], unsure

    return search


def search_of_many(problem, method, function: Callable) -> Callable:
    """The same for steps of many runs.

    It is called with times (m, 2) and states (m, 2, n) at both ends, step sizes (m,) and `own`, a row for each step,
    and returns rows (t, direction, number of the step, state) of the zeros it found, and the numbers of the steps of
    which it is not sure.
    """
    found = kernel_of(problem, method, function)[0]
    return lambda t, u, h, own: zeros_found(found, own, t.ravel(), u.reshape(-1, u.shape[-1]), h, 0.0)


def zeros_found(search: Search, params, t, u, h, before):
    """The zeros on some steps, by a kernel that is called until all have been searched, and the unsure steps."""
    t, u, h, params = map(np.ascontiguousarray, (t, u, h, params))
    knots, apart = (2, params.shape[1]) if params.ndim == 2 else (1, 0)
    places, unsure = np.zeros(len(PLACES), np.int64), np.empty(len(h), np.int64)
    last, rows, found = np.array([float(before)]), ROWS, []
    while places[0] < len(h):
        zeros = np.empty((rows, 3 + u.shape[1]))
        places[1] = 0
        search.call(*map(address, (t, u, h, params, last, places, zeros, unsure)), len(h), rows, knots, apart)
        if places[3]:
            raise ArithmeticError("the function of an event raises an error, which plain Python shall tell")
        found.append(zeros[: places[1]])
        rows *= 4
    return np.concatenate(found) if found else np.empty((0, 3 + u.shape[1])), unsure[: places[2]]


def made(asked: Asked, slopes: Traced, event: Traced) -> Search:
    module = module_of_run(False, slopes, event)
    Writer(module.function("search", ARGUMENTS), asked, slopes, event).write()
    machine = Machine(module.text())
    return Search(machine, machine.function("search", len(ARGUMENTS)))


def kernel_of(problem, method, function: Callable) -> tuple[Search, np.ndarray]:
    """The kernel of the search, and what the problem itself gives it as `params`."""
    slopes, event = store.slopes_of(problem), store.event_of(function, problem)
    asked = Asked(problem.size, method, None, windowed=problem.window is not None, mass=mass_of(problem))
    key = ("search", id(method), problem.size, asked.windowed, asked.mass, slopes.key, event.key)
    found = store.kernel(key, lambda: made(asked, slopes, event), method)
    return found, np.array([*slopes.parameters.values, *event.parameters.values, *(problem.window or ())])


class Looked(NamedTuple):
    """Nodes of what is seen of a step."""

    graph: Graph
    clear: Node
    crosses: Node
    after: Node
    bracket: list[Node]
    coefficients: list[Node]
    fails: Node


def event_at(event: Traced, graph: Graph, t, u) -> Node:
    """An event's function on nodes of a graph."""
    own = {name: graph.input(f"e{name}") for name in event.parameters.names}
    state = {f"u{i}": x for i, x in enumerate(u)}
    return event.recorded.put(graph, {"t": t, **state, **own})[0]


def look_at(asked: Asked, slopes: Traced, event: Traced) -> Looked:
    """What is seen of a step: the event's values within it, and what `roots.is_clear` makes of them."""
    n, method, graph = asked.n, asked.method, Graph(limit=200_000, trusted=True)
    began, t, dt, before = (graph.input(name) for name in ("began", "t", "dt", "before"))
    old, new = graph.inputs("old", n), graph.inputs("u", n)
    slopes_at = in_window(asked, graph, store.slopes_in(graph, slopes))
    step, prepare, _ = steps_of(asked, graph)
    known = prepare(began, old, slopes_at(began, old), ())
    stages = step(slopes_at, (), began, old, known, dt, dt)[3][method.final]
    parts = method.coefficients_inside(core.combine, slopes_at, (), began, old, dt, new, stages)
    span = t - began

    def value(theta: float) -> Node:
        return event_at(event, graph, began + theta * span, state_at(theta, old, parts))

    after = event_at(event, graph, t, new)
    nodes = [before, *(value(theta) for theta in roots.NODES[1:-1].tolist()), after]
    probes = [value(theta) for theta in roots.PROBES.tolist()]
    shapes = [core.combine(weights.tolist(), nodes, len(nodes)) for weights in roots.AT_PLACES]
    is_clear = joined(graph, Trace().copy(roots.is_clear))
    bracket: list[Any] = [roots.NODES[-2], roots.NODES[-1], nodes[-2], nodes[-1]]
    for j in range(len(nodes) - 2, 0, -1):  # the first node behind the change of sign
        behind = nodes[j] * after > 0.0
        ends = (roots.NODES[j - 1], roots.NODES[j], nodes[j - 1], nodes[j])
        bracket = [choose(behind, one, other) for one, other in zip(ends, bracket, strict=True)]
    fails: Any = graph.constant(False)
    for condition in graph.raised:
        fails = logical("or", fails, condition)
    real = [graph.constant(0.0) + x for part in parts for x in part]
    numbers = [graph.constant(0.0) + x for x in bracket]
    return Looked(graph, is_clear(shapes, probes, after), before * after < 0.0, after, numbers, real, fails)


class Writer:
    """Writes the function `search`.

    names    of the inputs in `params`: parameters of the right-hand side and of the event, and the window of times that
             the right-hand side is shown
    """

    def __init__(self, function: Function, asked: Asked, slopes: Traced, event: Traced):
        self.function, self.asked, self.slopes, self.event = function, asked, slopes, event
        self.n = asked.n
        windowed = WINDOW if asked.windowed else ()
        self.names = [*slopes.parameters.names, *(f"e{name}" for name in event.parameters.names), *windowed]

    def write(self):
        function = self.function
        step = function.variable("l", function.load("l", "%places", 0))
        found = function.variable("l", function.load("l", "%places", 1))
        doubts = function.variable("l", function.load("l", "%places", 2))
        before = function.variable("d", function.load("d", "%last", 0))
        failed = function.variable("l", "0")
        with function.repeat() as again_when:
            self.one_step(step.get(), found, doubts, before, failed)
            step.set(function.whole("add", step.get(), 1))
            left = function.compare("slt", step.get(), "%count")
            room = function.compare("slt", found.get(), "%room")
            fine = function.compare("eq", failed.get(), 0)
            again_when(function.logical("and", function.logical("and", left, room), fine))
        for k, variable in enumerate((step, found, doubts, failed)):
            function.store("l", variable.get(), "%places", k)
        function.store("d", before.get(), "%last", 0)

    def one_step(self, step: str, found: Variable, doubts: Variable, before: Variable, failed: Variable):
        """Search one step."""
        function, n = self.function, self.n
        knot = function.whole("mul", step, "%knots")
        row = function.whole("mul", knot, n)
        after_row = function.whole("add", row, n)
        own = function.place("%params", function.whole("mul", step, "%apart"))
        inputs = {f"old{i}": function.load("d", "%states", function.whole("add", row, i)) for i in range(n)}
        inputs |= {f"u{i}": function.load("d", "%states", function.whole("add", after_row, i)) for i in range(n)}
        inputs |= {name: function.load("d", own, k) for k, name in enumerate(self.names)}
        inputs["began"] = function.load("d", "%times", knot)
        inputs["t"] = function.load("d", "%times", function.whole("add", knot, 1))
        inputs["dt"] = function.load("d", "%sizes", step)
        with function.when(function.compare("ne", "%knots", 1)):
            start = Graph(trusted=True)
            value = event_at(self.event, start, start.input("began"), start.inputs("old", n))
            before.set(function.graph(start, [value], inputs)[0])
        inputs["before"] = before.get()
        looked = look_at(self.asked, self.slopes, self.event)
        wanted = [looked.clear, looked.crosses, looked.after, *looked.bracket, *looked.coefficients, looked.fails]
        clear, crosses, after, *rest, fails = function.graph(looked.graph, wanted, inputs)
        bracket, coefficients = rest[:4], rest[4:]
        failed.set(function.choose(fails, "l", 1, 0))
        before.set(after)
        with function.either(clear) as otherwise:
            with function.when(crosses):
                named = {f"c{k}": value for k, value in enumerate(coefficients)}
                self.find_zero(bracket, {**inputs, **named, "after": after}, found, step)
            otherwise()
            function.store("l", step, "%unsure", doubts.get())
            doubts.set(function.whole("add", doubts.get(), 1))

    def find_zero(self, bracket: list[str], inputs: dict[str, str], found: Variable, step: str):
        """The zero between the ends of a bracket, by passes of `roots.narrower`."""
        function, n, graph = self.function, self.n, Graph(trusted=True)
        began, t = graph.input("began"), graph.input("t")
        old, new = graph.inputs("old", n), graph.inputs("u", n)
        degree = (sum(name[0] == "c" and name[1:].isdigit() for name in inputs)) // n
        parts = [type(old).of([graph.input(f"c{p * n + i}") for i in range(n)]) for p in range(degree)]

        def g(theta):
            return event_at(self.event, graph, began + theta * (t - began), state_at(theta, old, parts))

        narrower = joined(graph, Trace().copy(roots.narrower))
        names = ("a", "b", "fa", "fb", "fraction")
        best, done, following = narrower(g, *(graph.input(name) for name in names))
        left, right, at_left, at_right = bracket
        start = Graph(trusted=True)
        ends = {"l": at_left, "r": at_right}
        (fraction,) = function.graph(start, [start.input("r") / (start.input("r") - start.input("l"))], ends)
        variables = [function.variable("d", x) for x in (right, left, at_right, at_left, fraction)]
        theta, passes = function.variable("d", right), function.variable("l", "0")
        with function.repeat() as again_when:
            now = {name: variable.get() for name, variable in zip(names, variables, strict=True)}
            near, over, *rest = function.graph(graph, [best, done, *following], inputs | now)
            theta.set(near)
            for variable, value in zip(variables, rest, strict=True):
                variable.set(value)
            passes.set(function.whole("add", passes.get(), 1))
            left_over = function.compare("slt", passes.get(), roots.MOST_PASSES)
            again_when(function.choose(over, "b", "false", left_over))
        graph = Graph(trusted=True)
        at, began, t = graph.input("theta"), graph.input("began"), graph.input("t")
        old, new = graph.inputs("old", n), graph.inputs("u", n)
        parts = [type(old).of([graph.input(f"c{p * n + i}") for i in range(n)]) for p in range(degree)]
        at_end = at == 1.0
        states = [choose(at_end, end, x) for end, x in zip(new, state_at(at, old, parts), strict=True)]
        time = choose(at_end, t, began + at * (t - began))
        direction = call_two("copysign", graph.constant(1.0), graph.input("after"))
        values = function.graph(graph, [time, direction, *states], {**inputs, "theta": theta.get()})
        values.insert(2, function.value(f"sitofp i64 {step} to double"))
        row = function.whole("mul", found.get(), 3 + n)
        for k, value in enumerate(values):
            function.store("d", value, "%zeros", function.whole("add", row, k))
        found.set(function.whole("add", found.get(), 1))
