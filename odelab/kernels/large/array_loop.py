"""The loop of one run of a large system: attempt after attempt, each of which is a few loops over components.

A step's new state is written into its row of the recorded states, so that keeping it costs nothing but memory; where
states are not kept, there are two rows that are used in turn. The slope at the state and that at the new one lie in the
first two rows of the work memory, which change places after an accepted step.
"""

from collections.abc import Iterable
from typing import NamedTuple

from odelab.graph.classes import Classes
from odelab.graph.graphs import Graph, Node
from odelab.graph.llvm import Function, Module
from odelab.kernels.attempt import fixed_names, seen
from odelab.kernels.large.array_attempt import ArrayAttempt, Large, array_attempt
from odelab.kernels.large.array_graph import CHECK, FACTORS, PROJECTION, SLOPES, Action
from odelab.kernels.large.band_loops import Band, add_band
from odelab.kernels.large.passes import Pass, Plan
from odelab.kernels.large.row_loops import add_jacobian, add_slopes, add_slopes_by_time

SLOPE_ROWS, SLOPE_T = 2, 2  # rows of the work memory before the buffers; the third is the derivative by time
POINTERS = ("carried", "status", "fixed", "atol", "params", "record", "states", "work", "raised")
OF_SLOPES = ("constants", "runs", "column")
OF_PROJECTION = ("constants_of_projection", "runs_of_projection", "column_of_projection")
OF_JACOBIAN = ("constants_alone", "runs_alone")
OF_BAND = ("order", "where", "J", "factors", "ordered")
SIZES = ("n", "stride", "rows", "attempts", "capacity")
ROW = 5  # numbers that are recorded of a step


class Advance(NamedTuple):
    """The function `advance`.

    function    the function, whose parameters are `POINTERS`, those of slopes, projection and band, and `SIZES`
    names       of the numbers that the loop carries
    kinds       of these
    buffers     rows of the work memory
    """

    function: Function
    names: list[str]
    kinds: list[str]
    buffers: int


class Functions(NamedTuple):
    """The functions that an attempt calls; those of a linearly implicit method, and the projection, may be missing."""

    slopes: Function
    projection: Function | None
    jacobian: Function | None
    slopes_by_time: Function | None
    band: Band | None


def fixed_of(large: Large) -> list[str]:
    """The numbers that stay as they are during a run, beside the absolute tolerance where it is an array."""
    names = fixed_names(large.asked._replace(n=0))
    return [*names, "until", "n"]


def add_array_advance(
    module: Module,
    large: Large,
    classes: Classes,
    alone: Classes | None,
    projection: Classes | None,
    band: tuple[int, int] | None,
) -> Advance:
    """Add the function `advance` to a module.

    classes       of the right-hand side
    alone         the same without a column, for derivatives
    projection    the classes of the user's projection; None where there is none
    band          (below, above), the diagonals of the Jacobian; `alone` and `band` are None for explicit methods
    """
    functions = Functions(
        add_slopes(module, "slopes", classes),
        None if projection is None else add_slopes(module, "project", projection),
        None if alone is None else add_jacobian(module, alone),
        None if alone is None or large.autonomous else add_slopes_by_time(module, alone),
        None if band is None else add_band(module, *band),
    )
    return Loop(module, large, functions).advance()


class Loop:
    """Writes the function."""

    def __init__(self, module: Module, large: Large, functions: Functions):
        self.module, self.large, self.functions = module, large, functions
        self.attempt: ArrayAttempt = array_attempt(large)
        self.graph = self.attempt.graph
        self.names = list(self.attempt.carried)
        self.kinds = [before.kind for before, _ in self.attempt.carried.values()]
        written = {self.attempt.new.i: "new"}
        if self.attempt.latest is not None:
            written[self.attempt.latest.i] = "latest"
        after = [now for _, now in self.attempt.carried.values()]
        self.outputs = [*after, self.attempt.status, self.attempt.passed, *self.attempt.row]
        self.plan = Plan(self.graph, self.outputs, written)
        self.memory, self.buffers = self.plan.memory()
        of_projection = OF_PROJECTION if large.projects else ()
        of_band = (*OF_JACOBIAN, *OF_BAND) if large.implicit else ()
        pointers = [*POINTERS, *OF_SLOPES, *of_projection, *of_band]
        self.passes = [self.add_pass(level, one) for level, one in enumerate(self.plan.passes)]
        self.function = module.function("advance", {**dict.fromkeys(pointers, "p"), **dict.fromkeys(SIZES, "l")})

    def advance(self) -> Advance:
        function, names = self.function, self.names
        inputs = {name: function.load("d", "%fixed", k) for k, name in enumerate(fixed_of(self.large))}
        self.pointers = self.fixed_pointers()
        first = [function.load(kind, "%carried", k) for k, kind in enumerate(self.kinds)]
        variables = [function.variable(kind, value) for kind, value in zip(self.kinds, first, strict=True)]
        made, ended = function.variable("l", "0"), function.variable("l", "0")
        with function.repeat() as again_when:
            now = {name: variable.get() for name, variable in zip(names, variables, strict=True)}
            if self.attempt.end is not None:
                (place,) = function.graph(self.graph, [self.attempt.end], inputs | now)
                now["end"] = function.load("d", "%params", place)
            self.pointers |= self.moving_pointers(now)
            self.add_preparation(now, self.shown(now["t"], inputs))
            found = self.add_attempt(inputs | now)
            for variable, value in zip(variables, found, strict=False):
                variable.set(value)
            status, passed, *row = found[len(names) :]
            ended.set(status)
            at = function.whole("mul", function.whole("add", now["steps"], 1), ROW)
            for k, value in enumerate(row):
                function.store("d", value, "%record", function.whole("add", at, k))
            count = function.whole("add", made.get(), 1)
            made.set(count)
            room = function.compare("slt", found[names.index("steps")], "%capacity")
            more = function.logical("and", function.compare("slt", count, "%attempts"), room)
            before = function.compare("eq", function.choose(passed, "l", 1, 0), 0)
            going = function.logical("and", function.compare("eq", status, 0), before)
            again_when(function.logical("and", more, going))
        for k, (kind, variable) in enumerate(zip(self.kinds, variables, strict=True)):
            function.store(kind, variable.get(), "%carried", k)
        function.store("l", ended.get(), "%status", 0)
        return Advance(function, names, self.kinds, SLOPE_T + 1 + self.buffers)

    def row_of_work(self, number) -> str:
        return self.function.place("%work", self.function.whole("mul", number, "%stride"))

    def fixed_pointers(self) -> dict[str, str]:
        buffers = {f"buffer{k}": self.row_of_work(SLOPE_T + 1 + k) for k in range(self.buffers)}
        return {"atol": "%atol", "slope_t": self.row_of_work(SLOPE_T), **buffers}

    def moving_pointers(self, now: dict[str, str]) -> dict[str, str]:
        """Where the state, the new one, and the slopes at both are in this attempt."""
        function = self.function
        following = function.whole("add", now["steps"], 1)
        rows = [function.whole("mul", function.whole("urem", at, "%rows"), "%n") for at in (now["steps"], following)]
        other = function.whole("sub", 1, now["turn"])
        return {
            **{"u": function.place("%states", rows[0]), "new": function.place("%states", rows[1])},
            **{"slope": self.row_of_work(now["turn"]), "latest": self.row_of_work(other)},
        }

    def call(self, called: Function, u: str, t: str, tables: Iterable[str], *others: str):
        """Call a function of `odelab.kernels.large.row_loops`."""
        self.function.call(called, u, t, "%params", *(f"%{name}" for name in tables), *others)

    def shown(self, t: str, inputs: dict[str, str]) -> str:
        """The time that the right-hand side is shown at time t."""
        graph = Graph(trusted=True)
        return self.function.graph(graph, [seen(self.large.asked, graph, graph.input("t"))], {**inputs, "t": t})[0]

    def add_preparation(self, now: dict[str, str], t: str):
        """Compute what is not known at the state: the slope, the Jacobian, the derivative by time.

        t    the time that the right-hand side is shown
        """
        function, functions, pointers = self.function, self.functions, self.pointers
        with function.when(function.compare("eq", now["fresh"], 0)):
            self.call(functions.slopes, pointers["u"], t, OF_SLOPES, pointers["slope"], "%raised")
        if functions.jacobian is None:
            return
        with function.when(function.compare("eq", now["prepared"], 0)):
            self.call(functions.jacobian, pointers["u"], t, OF_JACOBIAN, "%where", "%J")
            if functions.slopes_by_time is not None:
                self.call(functions.slopes_by_time, pointers["u"], t, OF_JACOBIAN, pointers["slope_t"])

    def add_attempt(self, inputs: dict[str, str]) -> list[str]:
        """One attempt, pass after pass; returns the values of the outputs."""
        function, names = self.function, {}  # type: ignore[var-annotated]
        for one, called in zip(self.plan.passes, self.passes, strict=True):
            numbers = function.graph(self.graph, [Node(self.graph, i) for i in one.numbers], inputs, names=names)
            if called is not None:
                sums = function.block_of_memory(max(1, len(one.sums)))
                arrays = [self.pointer(i) for i in [*one.loaded, *one.stored]]
                function.call(called, *arrays, *numbers, sums, "%n")
                for k, action in enumerate(one.sums):
                    names[action.result.i] = function.load("d", sums, k)
            for action in one.actions:
                self.add_action(action, inputs, names)
        if self.large.raises:
            inputs["raised"] = function.compare("ne", function.load("l", "%raised", 0), 0)
        return function.graph(self.graph, self.outputs, inputs, names=names)

    def pointer(self, i: int) -> str:
        op = self.graph.ops[i]
        return self.pointers[self.memory[i] if i in self.memory else op[2]]

    def add_action(self, action: Action, inputs: dict[str, str], names: dict[int, str]):
        function, functions = self.function, self.functions
        result, given = action.result.i, [node.i for node in action.given]
        if action.what == SLOPES:
            (t,) = function.graph(self.graph, [action.given[1]], inputs, names=names)
            self.call(functions.slopes, self.pointer(given[0]), t, OF_SLOPES, self.pointer(result), "%raised")
        elif action.what == PROJECTION and functions.projection is not None:
            zero = function.constant("d", 0.0)
            out = self.pointer(result)
            self.call(functions.projection, self.pointer(given[0]), zero, OF_PROJECTION, out, "%raised")
        elif functions.band is not None:
            self.add_elimination(functions.band, action, inputs, names)

    def add_elimination(self, band: Band, action: Action, inputs: dict[str, str], names: dict[int, str]):
        function, given = self.function, [node.i for node in action.given]
        if action.what == FACTORS:
            (self.hg,) = function.graph(self.graph, list(action.given), inputs, names=names)
            function.call(band.eliminate, "%J", self.hg, "%factors", "%n")
            names[action.result.i] = function.constant("b", True)
        elif action.what == CHECK:
            sound = function.block_of_memory(1)
            function.call(band.check, "%J", self.hg, "%order", self.pointer(given[0]), "%ordered", sound, "%n")
            names[action.result.i] = function.compare("ne", function.load("l", sound, 0), 0)
        else:
            arrays = self.pointer(given[0]), "%ordered", self.pointer(action.result.i)
            function.call(band.substitute, "%factors", "%order", *arrays, "%n")

    def add_pass(self, level: int, one: Pass) -> Function | None:
        """The function of a pass: (arrays that it reads, arrays that it writes, numbers, sums, n)."""
        if not one.stored and not one.sums:
            return None
        graph = self.graph
        kinds = {**{f"a{i}": "p" for i in one.loaded}, **{f"o{i}": "p" for i in one.stored}}
        kinds |= {f"x{i}": graph.ops[i][1] for i in one.numbers}
        function = self.module.function(f"pass{level}", {**kinds, "sums": "p", "n": "l"}, internal=True)
        totals = [function.variable("d", function.constant("d", 0.0)) for _ in one.sums]
        with function.over("%n") as k:
            names = {i: function.load("d", f"%a{i}", k) for i in one.loaded}
            names |= {i: f"%x{i}" for i in one.numbers}
            wanted = [Node(graph, i) for i in one.stored] + [action.given[0] for action in one.sums]
            values = function.graph(graph, wanted, {}, names=names)
            for i, value in zip(one.stored, values, strict=False):
                function.store("d", value, f"%o{i}", k)
            for total, value in zip(totals, values[len(one.stored) :], strict=True):
                total.set(function.add_up(total.get(), value))
        for place, total in enumerate(totals):
            function.store("d", total.get(), "%sums", place)
        return function
