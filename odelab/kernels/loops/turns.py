"""The loop of a run by two methods: attempts of the one whose turn it is, with what the rule asks for in between."""

from collections.abc import Callable

from odelab.control import turns
from odelab.functions.tracing import Trace
from odelab.graph.forks import joined
from odelab.graph.llvm import Function, Module
from odelab.graph.nodes import Graph, Node
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.loops import two_methods as graphs
from odelab.kernels.loops.single import ADVANCE, store_row
from odelab.kernels.loops.two_methods import COUNTS, RULE, Stage, Stages, turns_in

STAGE = {name if name != "status" else "counts": kind for name, kind in ADVANCE.items()}  # arguments of a stage
MADE, ENDED = range(2)  # places of `counts`: how many attempts were made, and the status after the last one
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
    """Writes the function `advance`, with the arguments of that of `odelab.kernels.loops.single`.

    Each stage is a function of its own, which reads what the loop carries and writes what it changes. In one function
    with all stages the registers of a processor do not suffice for any of them: attempts of twenty components by the
    implicit method took 1.4 times as long as without the other method.
    """

    def __init__(self, module: Module, names: list[str], fixed: list[str], parameters: list[str]):
        self.module, self.names, self.fixed, self.parameters = module, names, fixed, parameters
        self.function = module.function("advance", ADVANCE)
        self.counts = self.function.block_of_memory(2)

    def write(self, stages: Stages):
        function = self.function
        for place in (MADE, ENDED):
            function.store("l", "0", self.counts, place)
        with function.repeat() as again_when:
            with function.when(self.holds(is_explicit)):
                self.know_slope(stages)
                with function.when(self.holds(turns.is_to_look)):
                    self.go_through("look", stages)
                with function.either(self.holds(turns.is_to_weigh)) as otherwise:
                    otherwise()
                    self.go_through("explicit", stages)
                with function.when(self.holds(turns.is_to_weigh)):
                    self.go_through("weighing", stages)
                with function.when(self.holds(is_trial)):
                    self.know_slope(stages)
                    self.go_through("opening", stages)
            with function.when(function.logical("and", self.holds(is_implicit), self.goes_on(function, self.counts))):
                with function.when(self.holds(turns.is_to_measure)):
                    self.go_through("measure", stages)
                self.go_through("implicit", stages)
            again_when(self.goes_on(function, self.counts))
        function.store("l", function.load("l", self.counts, ENDED), "%status", 0)

    def know_slope(self, stages: Stages):
        """Evaluate the slope at the present state, where it is not known."""
        with self.function.when(self.function.compare("eq", self.now(self.function, "fresh"), 0)):
            self.go_through("slope", stages)

    def holds(self, condition: Callable) -> str:
        """Does a condition on the turns hold?"""
        graph = Graph(trusted=True)
        node = joined(graph, Trace().copy(condition))(turns_in(graph))
        return self.function.graph(graph, [node], {name: self.now(self.function, name) for name in RULE})[0]

    def now(self, function: Function, name: str) -> str:
        """What the loop carries under a name."""
        return function.load(kind_of(name), "%carried", self.names.index(name))

    def go_through(self, name: str, stages: Stages):
        """Call the function of a stage, which is written when it is called first."""
        written = {one.name: one for one in self.module.functions}
        function = written.get(name) or self.stage(name, getattr(stages, name))
        self.function.call(function, "%carried", self.counts, *(f"%{one}" for one in list(STAGE)[2:]))

    def stage(self, name: str, stage: Stage) -> Function:
        """The function of a stage: it computes once what the stage changes, or makes attempts as long as they go on."""
        function = self.module.function(name, STAGE)
        function.stands_apart = True
        inputs = {name: function.load("d", "%fixed", k) for k, name in enumerate(self.fixed)}
        inputs |= {name: function.load("d", "%params", k) for k, name in enumerate(self.parameters)}
        inputs |= {name: self.now(function, name) for name in self.names if name not in stage.carried}
        changed = {name: function.variable(kind_of(name), self.now(function, name)) for name in stage.carried}
        nodes = list(stage.carried.values())

        def compute(*further) -> list[str]:
            now = inputs | {name: variable.get() for name, variable in changed.items()}
            found = function.graph(stage.graph, [*nodes, *further], now, stage.usual)
            for variable, value in zip(changed.values(), found, strict=False):
                variable.set(value)
            return found[len(nodes) :]

        def write():
            for name, variable in changed.items():
                function.store(kind_of(name), variable.get(), "%carried", self.names.index(name))

        if stage.one is None:
            compute()
            write()
            return function
        made, ended = (function.variable("l", function.load("l", "%counts", place)) for place in (MADE, ENDED))
        with function.repeat() as again_when:
            steps = changed["steps"].get()
            turn, status, *row = compute(stage.goes_on, stage.one.status, *stage.row)
            ended.set(status)
            store_row(function, steps, row)
            made.set(function.whole("add", made.get(), 1))
            goes_on = self.is_free(function, changed["steps"].get(), made.get(), ended.get())
            again_when(function.logical("and", turn, goes_on))
        write()
        for place, count in ((MADE, made), (ENDED, ended)):
            function.store("l", count.get(), "%counts", place)
        return function

    def goes_on(self, function: Function, counts: str) -> str:
        """Has the run not ended, and are there attempts and room for them?"""
        made, ended = (function.load("l", counts, place) for place in (MADE, ENDED))
        return self.is_free(function, self.now(function, "steps"), made, ended)

    def is_free(self, function: Function, steps: str, made: str, ended: str) -> str:
        room = function.compare("slt", steps, "%capacity")
        more = function.logical("and", function.compare("slt", made, "%attempts"), room)
        return function.logical("and", more, function.compare("eq", ended, 0))


def kind_of(name: str) -> str:
    return "l" if name in WHOLE else "d"


def is_explicit(now):
    return now.mode == turns.EXPLICIT


def is_implicit(now):
    return now.mode != turns.EXPLICIT


def is_trial(now):
    return now.mode == turns.FIRST
