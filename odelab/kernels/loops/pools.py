"""The loop of an ensemble by two methods: a pool of lanes for each of them, between which runs move.

A sweep makes one attempt in every lane of one pool, with the rule behind it, by vector instructions. A lane for which
the rule asks for more, a look, a trial or the other method, is looked after by itself. A run that the other method is
to go on with leaves its lane with all that the lane keeps, and waits until one of the other pool's is free.

There are twice as many runs in flight as a pool has lanes, so that one of both has a run for every lane of it as long
as there are runs in the queue: that one is swept. What a run computes depends on none of this.
"""

from collections.abc import Callable
from typing import NamedTuple

from odelab.control import turns
from odelab.functions.tracing import Trace
from odelab.graph.forks import joined
from odelab.graph.llvm import Function, Module
from odelab.graph.nodes import Graph, logical
from odelab.kernels.attempt import Asked, Attempt, fixed_names
from odelab.kernels.beginning import add_begin
from odelab.kernels.loops.lanes import (
    ARGUMENTS,
    LANES,
    NARROW,
    NOBODY,
    SHARE,
    WIDE,
    Parts,
    Rows,
    add_fill_points,
    add_inside,
    begin_run,
    copy_numbers,
    hand_in,
    next_run,
    sweep,
)
from odelab.kernels.loops.turns import first_values, is_explicit, is_implicit, is_trial, names_of
from odelab.kernels.loops.two_methods import RULE, Stage, Stages, turns_in

IN_FLIGHT = 2 * LANES  # runs of a thread
MANY = 8  # components, from which on implicit attempts have no room for wide vectors
UNCOUNTED = ("evaluated", "jacobians", "factorisations", "prepared")  # what ensembles do not tell
BOOK = ("pool", "short", "left", "drained", "busy0", "busy1", "waiting0", "waiting1")  # whole numbers of a thread


class Pool(NamedTuple):
    """One of the two pools.

    number    0 of the explicit one, 1 of the implicit one
    asked     what its attempts depend on
    stage     its attempt
    """

    number: int
    asked: Asked
    stage: Stage

    @property
    def other(self) -> int:
        return 1 - self.number

    @property
    def attempt(self) -> Attempt:
        assert self.stage.one is not None
        return self.stage.one


class Layout(NamedTuple):
    """Where things lie in the block of a thread, in numbers: two tables of lanes, the runs that wait, and the book."""

    rows: Rows

    @property
    def numbers(self) -> int:
        """How many numbers a run has."""
        return len(self.rows.all)

    def table(self, pool: int) -> int:
        return pool * self.numbers * LANES

    def waiting(self, pool: int) -> int:
        return (2 * LANES + pool * IN_FLIGHT) * self.numbers

    @property
    def book(self) -> int:
        return 2 * (LANES + IN_FLIGHT) * self.numbers

    @property
    def tall(self) -> int:
        """How many rows of LANES numbers a block has."""
        return self.book // LANES + 1

    @property
    def indices(self) -> tuple[int, int]:
        """The rows that hold the numbers of the runs in both tables."""
        return self.numbers - 1, 2 * self.numbers - 1


def add_pools(
    module: Module, stages: Stages, slopes_in: Callable, parameters: list[str], points: str, own=()
) -> Layout:
    """The function `lanes(...)` of a module, as `odelab.kernels.loops.lanes.add_lanes` has it for one method."""
    pair, parameters = stages.pair, [*parameters, *own]
    fixed = [name for name in [*fixed_names(pair.explicit), "ratio"] if name not in own]
    carried = [name for name in names_of(stages) if name not in UNCOUNTED]
    pools = Pool(0, pair.explicit, stages.explicit), Pool(1, pair.implicit, stages.implicit)
    step = list(dict.fromkeys(name for pool in pools for name in pool.attempt.step)) if points else []
    whole = [*(["point"] if points else []), "status", "index"]
    rows = Rows(carried, parameters, step, [], ["due"] if points else [], whole)
    writer = Writer(Parts(module, pair.explicit, rows, fixed, bool(own), None), Layout(rows), stages)
    graph = Graph(trusted=True)
    begin = add_begin(module, graph, first_values(stages, slopes_in(graph), graph), carried, fixed, parameters, LANES)
    between = writer.add_between()
    refills = [writer.add_refill(pool, begin, between) for pool in pools]
    for pool, refill in zip(pools, refills, strict=True):
        parts, name = writer.parts._replace(asked=pool.asked), str(pool.number)
        fill = add_fill_points(parts, add_inside(parts, slopes_in, None, points, name), name) if points else None
        writer.add_sweeps(pool, writer.add_look_after(pool, between, refill, fill))
    writer.add_loop(refills)
    return writer.layout


class Writer:
    """Writes the functions of a module. They have the arguments of `lanes`, and the number of a lane."""

    def __init__(self, parts: Parts, layout: Layout, stages: Stages):
        self.parts, self.module, self.rows, self.fixed = parts, parts.module, parts.rows, parts.fixed
        self.layout, self.stages = layout, stages
        self.sweeps: list[Function] = []

    def function_of_lane(self, name: str) -> Function:
        return self.module.function(name, {**ARGUMENTS, "lane": "l"}, internal=True)

    def column(self, function: Function, pool: int, lane: str = "%lane") -> str:
        return function.place("%block", function.whole("add", lane, self.layout.table(pool)))

    def entry(self, function: Function, name: str) -> str:
        """Where a number of the book is."""
        return function.place("%block", self.layout.book + BOOK.index(name))

    def read(self, function: Function, name: str) -> str:
        return function.load("l", self.entry(function, name), 0, 1)

    def write(self, function: Function, name: str, value):
        function.store("l", value, self.entry(function, name), 0, 1)

    def add_to(self, function: Function, name: str, by: int):
        self.write(function, name, function.whole("add", self.read(function, name), by))

    def add_between(self) -> Function:
        """The function `between(column, fixed)`: what the rule asks for between two attempts of a lane."""
        function = self.module.function("between", {"column": "p", "fixed": "p"}, internal=True)
        stages = self.stages
        with function.when(self.holds(function, turns.is_to_weigh)):
            self.go_through(function, stages.weighing)
        with function.when(self.holds(function, is_explicit)):
            self.know_slope(function)
            with function.when(self.holds(function, turns.is_to_look)):
                self.go_through(function, stages.look)
            with function.when(self.holds(function, turns.is_to_weigh)):
                self.go_through(function, stages.weighing)
        with function.when(self.holds(function, is_trial)):
            self.know_slope(function)
            self.go_through(function, stages.opening)
        return function

    def know_slope(self, function: Function):
        fresh = function.load("l", "%column", self.rows.at("fresh"))
        with function.when(function.compare("eq", fresh, 0)):
            self.go_through(function, self.stages.slope)

    def holds(self, function: Function, condition: Callable, column: str = "%column") -> str:
        """Does a condition on the turns hold?"""
        graph = Graph(trusted=True)
        node = joined(graph, Trace().copy(condition))(turns_in(graph))
        now = {name: function.load("d", column, self.rows.at(name)) for name in RULE}
        return function.graph(graph, [node], now)[0]

    def go_through(self, function: Function, stage: Stage, column: str = "%column"):
        """Compute what a stage changes in a lane."""
        known = {operation[2]: operation[1] for operation in stage.graph.ops if operation[0] == "in"}
        inputs = {name: function.load("d", "%fixed", self.fixed.index(name)) for name in known if name in self.fixed}
        inputs |= {
            name: function.load(kind, column, self.rows.at(name))
            for name, kind in known.items()
            if name not in self.fixed and name not in UNCOUNTED
        }
        carried = {name: node for name, node in stage.carried.items() if name not in UNCOUNTED}
        values = function.graph(stage.graph, list(carried.values()), inputs)
        for (name, node), value in zip(carried.items(), values, strict=True):
            function.store(node.kind, value, column, self.rows.at(name))

    def add_refill(self, pool: Pool, begin: Function, between: Function) -> Function:
        """The function that gives a lane that is free a run which waits for it, or one of the queue."""
        function, number = self.function_of_lane(f"refill{pool.number}"), pool.number
        column, index = self.column(function, number), self.rows.at("index")
        waiting = self.read(function, f"waiting{number}")
        with function.when(function.compare("ne", waiting, 0)):
            self.add_to(function, f"waiting{number}", -1)
            copy_numbers(function, self.place_of_waiting(function, number), 1, column, LANES, self.layout.numbers)
            self.add_to(function, f"busy{number}", 1)
        if number == 0:
            with function.repeat() as again_when:
                with function.when(self.may_begin(function, column)):
                    run = next_run(function)
                    with function.either(function.compare("slt", run, "%runs")) as otherwise:
                        begin_run(function, self.parts, column, begin, run)
                        self.add_to(function, "busy0", 1)
                        function.call(between, column, "%fixed")
                        with function.when(self.holds(function, is_implicit, column)):
                            self.leave(function, pool, column)
                        otherwise()
                        self.write(function, "drained", 1)
                again_when(self.may_begin(function, column))
        with function.when(function.compare("slt", function.load("l", column, index), 0)):
            self.write(function, "short", 1)
        return function

    def may_begin(self, function: Function, column: str) -> str:
        """Is the lane free, is there room for one more run, and may there be one in the queue?"""
        free = function.compare("slt", function.load("l", column, self.rows.at("index")), 0)
        room = function.compare("slt", self.in_flight(function), IN_FLIGHT)
        queue = function.compare("eq", self.read(function, "drained"), 0)
        return function.logical("and", free, function.logical("and", room, queue))

    def in_flight(self, function: Function) -> str:
        total = "0"
        for name in ("busy0", "busy1", "waiting0", "waiting1"):
            total = function.whole("add", total, self.read(function, name))
        return total

    def place_of_waiting(self, function: Function, pool: int) -> str:
        """Where the last run that waits for a pool is, if one more waited."""
        numbers = function.whole("mul", self.read(function, f"waiting{pool}"), self.layout.numbers)
        return function.place("%block", function.whole("add", numbers, self.layout.waiting(pool)))

    def leave(self, function: Function, pool: Pool, column: str):
        """Let the run of a lane wait for the other pool."""
        copy_numbers(function, column, LANES, self.place_of_waiting(function, pool.other), 1, self.layout.numbers)
        self.add_to(function, f"waiting{pool.other}", 1)
        self.release(function, pool, column)

    def release(self, function: Function, pool: Pool, column: str):
        function.store("l", str(NOBODY), column, self.rows.at("index"))
        self.add_to(function, f"busy{pool.number}", -1)

    def add_look_after(self, pool: Pool, between: Function, refill: Function, fill: Function | None) -> Function:
        """The function that does for a lane what its sweep has flagged it for."""
        function = self.function_of_lane(f"look_after{pool.number}")
        column, rows = self.column(function, pool.number), self.rows

        def number(name: str) -> str:
            return function.load("l", column, rows.at(name))

        index = number("index")
        if fill is not None:
            at = self.parts.wanted_of(function, index)
            function.call(fill, column, index, "%fixed", at, "%points", "%doubts", "%wanted")
        spent = function.compare("sge", function.whole("add", number("steps"), number("rejected")), "%most")
        over = function.logical("or", function.compare("ne", number("status"), 0), spent)
        with function.either(over) as otherwise:
            hand_in(function, self.parts, column, index)
            self.release(function, pool, column)
            otherwise()
            if pool.number == 1:
                assert self.stages.settling is not None
                with function.when(self.holds(function, turns.is_to_settle, column)):
                    self.go_through(function, self.stages.settling, column)
            function.call(between, column, "%fixed")
            with function.when(self.holds(function, is_implicit if pool.number == 0 else is_explicit, column)):
                self.leave(function, pool, column)
        with function.when(function.compare("slt", number("index"), 0)):
            function.call(refill, *(f"%{name}" for name in ARGUMENTS), "%lane")
        return function

    def add_sweeps(self, pool: Pool, look_after: Function):
        """The function that sweeps over the lanes of a pool until there is no run for one of them."""
        names = [f"%{name}" for name in ARGUMENTS]
        width = WIDE if pool.number == 1 and pool.asked.n < MANY else NARROW
        function = self.module.function(f"sweeps{pool.number}", ARGUMENTS, width, internal=True)
        numbers = [function.load("d", "%fixed", k, 1) for k in range(len(self.fixed))]
        given = {name: function.everywhere("d", x) for name, x in zip(self.fixed, numbers, strict=True)}
        given["most"] = function.everywhere("l", "%most")
        carried, graph = pool.stage.carried.items(), pool.stage.graph
        both = {name: (graph.input(name, now.kind), now) for name, now in carried if name not in UNCOUNTED}
        one, leaves = pool.attempt._replace(carried=both), logical("not", pool.stage.goes_on)
        with function.repeat() as again_when:
            with function.over(LANES, function.width) as group:
                place = function.whole("add", group, self.layout.table(pool.number))
                flagged = sweep(function, one, self.rows, place, given, leaves=leaves)
                with function.each(flagged) as lane:
                    function.call(look_after, *names, function.whole("add", group, lane))
            self.add_to(function, "left", -1)
            left = function.compare("sgt", self.read(function, "left"), 0)
            full = function.compare("eq", self.read(function, "short"), 0)
            again_when(function.logical("and", left, full, 1))
        self.sweeps.append(function)

    def add_loop(self, refills: list[Function]):
        """The function `lanes`."""
        names = [f"%{name}" for name in ARGUMENTS]
        function = self.module.function("lanes", ARGUMENTS)
        self.write(function, "left", "%sweeps")
        idle = function.place("%share", SHARE.index("idle"))
        with function.repeat() as again_when:
            for pool, refill in enumerate(refills):
                with function.over(LANES) as lane:
                    index = function.load("l", self.column(function, pool, lane), self.rows.at("index"))
                    with function.when(function.compare("slt", index, 0)):
                        function.call(refill, *names, lane)
            self.write(function, "short", 0)
            self.choose_pool(function)
            more = function.compare("sgt", self.in_flight(function), 0)
            with function.either(more) as otherwise:
                with function.either(function.compare("eq", self.read(function, "pool"), 0)) as other_pool:
                    function.call(self.sweeps[0], *names)
                    other_pool()
                    function.call(self.sweeps[1], *names)
                otherwise()
                function.store("l", str(LANES), idle, 0)
            left = function.compare("sgt", self.read(function, "left"), 0)
            again_when(function.logical("and", more, left))

    def choose_pool(self, function: Function):
        """The pool at work stays so as long as there is a run for each of its lanes; otherwise it is the fuller one."""
        now, first, second = (self.read(function, name) for name in ("pool", "busy0", "busy1"))
        fuller = function.choose(function.compare("sgt", second, first), "l", 1, 0)
        busy = function.choose(function.compare("eq", now, 0), "l", first, second)
        full = function.compare("eq", busy, LANES)
        self.write(function, "pool", function.choose(full, "l", now, fuller))
