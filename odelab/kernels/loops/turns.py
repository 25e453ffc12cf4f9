"""The loop of a run by two methods: attempts of the one whose turn it is, with what the rule asks for in between."""

from collections.abc import Callable

from odelab.control import turns
from odelab.functions.tracing import Trace
from odelab.graph.forks import joined
from odelab.graph.llvm import Module
from odelab.graph.nodes import Graph, Node
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.loops import two_methods as graphs
from odelab.kernels.loops.single import ADVANCE, store_row
from odelab.kernels.loops.two_methods import COUNTS, RULE, Stage, Stages, turns_in

WHOLE = ("steps", "rejected", "unsolved", "fresh", "prepared", *COUNTS)


def names_of(stages: Stages) -> list[str]:
    """The names of what the loop carries, in order; those of the rule and the counts lie together."""
    vectors = [f"{name}{i}" for name in ("slope", "direction") for i in range(stages.pair.n)]
    last = [*RULE, *COUNTS]
    names = dict.fromkeys([*stages.explicit.carried, *stages.implicit.carried, *stages.slope.carried, *vectors])
    return [name for name in names if name not in last] + last


def add_functions(module: Module, stages: Stages, slopes_in: Callable, fixed, parameters) -> list[str]:
    """The functions `begin` and `advance` of a module, as those of a run by one method; returns what the loop carries.

    slopes_in    the right-hand side on the nodes of a graph, as a function of the graph
    """
    names, fixed = names_of(stages), [*fixed, "ratio"]
    Loop(module, names, fixed, parameters).write(stages)
    graph = Graph(trusted=True)
    add_begin(module, graph, first_values(stages, slopes_in(graph), graph), names, fixed, parameters)
    return names


def first_values(stages: Stages, slopes_at: Callable, graph: Graph) -> dict[str, Node]:
    """The first values of a run, as `odelab.kernels.beginning.beginning` has them for one method."""
    first = beginning(stages.pair.explicit, slopes_at, graph, ())
    now = turns.first_turns(abs(first["next_step"]))
    return first | graphs.named_turns(graph, now) | {"fresh": graph.constant(1)}


class Loop:
    """Writes the function `advance`, with the arguments of that of `odelab.kernels.loops.single`."""

    def __init__(self, module: Module, names: list[str], fixed: list[str], parameters: list[str]):
        self.function = function = module.function("advance", ADVANCE)
        self.inputs = {name: function.load("d", "%fixed", k) for k, name in enumerate(fixed)}
        self.inputs |= {name: function.load("d", "%params", k) for k, name in enumerate(parameters)}
        self.variables = {
            name: function.variable(kind_of(name), function.load(kind_of(name), "%carried", k))
            for k, name in enumerate(names)
        }
        self.made, self.ended = function.variable("l", "0"), function.variable("l", "0")

    def write(self, stages: Stages):
        function = self.function
        with function.repeat() as again_when:
            with function.when(self.holds(is_explicit)):
                self.know_slope(stages.slope)
                with function.when(self.holds(turns.is_to_look)):
                    self.go_through(stages.look)
                with function.either(self.holds(turns.is_to_weigh)) as otherwise:
                    otherwise()
                    self.repeat(stages.explicit)
                with function.when(self.holds(turns.is_to_weigh)):
                    self.go_through(stages.weighing)
                with function.when(self.holds(is_trial)):
                    self.know_slope(stages.slope)
                    self.go_through(stages.opening)
            with function.when(function.logical("and", self.holds(is_implicit), self.goes_on())):
                with function.when(self.holds(turns.is_to_measure)):
                    self.go_through(stages.measure)
                self.repeat(stages.implicit)
            again_when(self.goes_on())
        for k, (name, variable) in enumerate(self.variables.items()):
            function.store(kind_of(name), variable.get(), "%carried", k)
        function.store("l", self.ended.get(), "%status", 0)

    def know_slope(self, slope: Stage):
        """Evaluate the slope at the present state, where it is not known."""
        with self.function.when(self.function.compare("eq", self.variables["fresh"].get(), 0)):
            self.go_through(slope)

    def holds(self, condition: Callable) -> str:
        """Does a condition on the turns hold?"""
        graph = Graph(trusted=True)
        node = joined(graph, Trace().copy(condition))(turns_in(graph))
        return self.function.graph(graph, [node], self.now())[0]

    def now(self) -> dict[str, str]:
        return {name: variable.get() for name, variable in self.variables.items()}

    def go_through(self, stage: Stage) -> list[str]:
        """Compute what a stage changes; returns the further values of an attempt."""
        further = [] if stage.one is None else [stage.goes_on, stage.one.status]
        nodes = [*stage.carried.values(), *further, *stage.row]
        found = self.function.graph(stage.graph, nodes, self.inputs | self.now(), stage.usual)
        for name, value in zip(stage.carried, found, strict=False):
            self.variables[name].set(value)
        return found[len(stage.carried) :]

    def repeat(self, stage: Stage):
        """Attempts of one method, as long as it is its turn and the run goes on."""
        function = self.function
        with function.repeat() as again_when:
            steps = self.variables["steps"].get()
            turn, status, *row = self.go_through(stage)
            self.ended.set(status)
            store_row(function, steps, row)
            self.made.set(function.whole("add", self.made.get(), 1))
            again_when(function.logical("and", turn, self.goes_on()))

    def goes_on(self) -> str:
        """Has the run not ended, and are there attempts and room for them?"""
        function = self.function
        room = function.compare("slt", self.variables["steps"].get(), "%capacity")
        more = function.logical("and", function.compare("slt", self.made.get(), "%attempts"), room)
        return function.logical("and", more, function.compare("eq", self.ended.get(), 0))


def kind_of(name: str) -> str:
    return "l" if name in WHOLE else "d"


def is_explicit(now):
    return now.mode == turns.EXPLICIT


def is_implicit(now):
    return now.mode != turns.EXPLICIT


def is_trial(now):
    return now.mode == turns.FIRST
