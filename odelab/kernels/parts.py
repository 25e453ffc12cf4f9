"""The parts of a linearly implicit attempt as functions that repeat them, so that each can be timed alone.

A repetition waits for the result of the one before, as in a run: what it is handed is changed by TINY times a sum of
the results, which changes no result by more than its rounding error.
"""

from odelab.graph.arrays import Array
from odelab.graph.derivatives import derivatives
from odelab.graph.llvm import Module
from odelab.graph.nodes import Graph, Node, choose
from odelab.graph.ufuncs import total
from odelab.kernels import store
from odelab.kernels.implicit import Factors

TINY = 1e-30
NAMES = ("nothing", "evaluation", "jacobian", "factorisation", "solve")


class Part:
    """A part as a graph.

    graph     the graph; its inputs have names
    moving    the inputs that change from repetition to repetition
    outputs   the results, as nodes
    """

    def __init__(self, graph: Graph, moving: list[str], outputs: list[Node]):
        self.graph, self.moving, self.outputs = graph, moving, outputs

    @property
    def inputs(self) -> list[str]:
        return sorted({operation[2] for operation in self.graph.ops if operation[0] == "in"} | set(self.moving))


def parts_of(traced: store.Traced, n: int) -> dict[str, Part]:
    """The parts for a right-hand side of n components, by `NAMES`.

    The Jacobian's entries are the inputs j0_1, ... of the factorisation, which includes the check of a first solution,
    and the factors those of the solution: P0, L1_0, W0_1, ...
    """
    graph = Graph()
    t, u, slopes_at = graph.input("t"), graph.inputs("u", n), store.slopes_in(graph, traced)
    slope = slopes_at(t, u)
    rows = derivatives(graph, list(slope), [*u, t])
    entries = [entry for row in rows for entry in row.values() if isinstance(entry, Node)]
    pattern = [[j for j in row if j < n] for row in rows]
    state = [f"u{i}" for i in range(n)]
    nothing = Graph()
    found = {
        "nothing": Part(nothing, state, list(nothing.inputs("u", n))),
        "evaluation": Part(graph, state, list(slope)),
        "jacobian": Part(graph, state, entries or list(u)),
    }
    graph = Graph()
    J = [{j: graph.input(f"j{i}_{j}") for j in row} for i, row in enumerate(pattern)]
    factors = Factors(J, graph.input("hg"))
    x = factors.solve(graph.inputs("b", n))
    found["factorisation"] = Part(graph, ["hg"], [choose(factors.sound, one, 0.0) for one in x])
    graph = Graph()
    factors = Factors([dict.fromkeys(row, 1.0) for row in pattern], 0.0)
    factors.P = {k: graph.input(f"P{k}") for k in factors.P}
    factors.L = {(i, k): graph.input(f"L{i}_{k}") for i, k in factors.L}
    factors.W = {(i, k): graph.input(f"W{i}_{k}") for i, k in factors.W}
    factors.sound = True  # it was checked when the factors were made
    right = [f"b{i}" for i in range(n)]
    found["solve"] = Part(graph, right, list(factors.solve(Array.of([graph.input(name) for name in right]))))
    return found


def add_repeated(module: Module, name: str, part: Part):
    """The function `name(inputs, found, repeats)`: the sum of the results of the last repetition goes to `found`."""
    function = module.function(name, {"inputs": "p", "found": "p", "repeats": "l"})
    given = {one: function.load("d", "%inputs", k) for k, one in enumerate(part.inputs)}
    graph = Graph()
    change = graph.input("change")
    moved = {one: graph.input(one) + change for one in part.moving}
    results = Graph()
    summed = total([results.input(f"r{k}") for k in range(len(part.outputs))])
    feedback = function.variable("d", function.constant("d", 0.0))
    with function.over("%repeats"):
        now = function.graph(graph, list(moved.values()), {**given, "change": feedback.get()})
        values = function.graph(part.graph, part.outputs, given | dict(zip(moved, now, strict=True)))
        (found,) = function.graph(results, [summed], {f"r{k}": value for k, value in enumerate(values)})
        function.store("d", found, "%found", 0)
        scaled = Graph()
        feedback.set(function.graph(scaled, [scaled.input("x") * TINY], {"x": found})[0])
