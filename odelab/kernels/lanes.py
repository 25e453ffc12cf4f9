"""The loop of an ensemble: many runs in flight, each in a lane of its own with its own time, step and parameters.

A sweep makes one attempt in every lane, by vector instructions and without branches: accepting an attempt means
choosing between the old and the new value. Each lane executes the same instructions, so a run's result does not depend,
in any bit, on its lane or on which other runs are in flight. When the run in a lane is finished, its result is written
out and the lane takes the next run of its thread's share, a few neighbouring runs of the queue of all threads. If a
thread took runs one by one, two threads would wait for the same cache lines so often that together they reach 1.6 times
the speed of one thread instead of 1.9.

The lanes of a thread are a table in memory, with a column for each lane and a row for each number that a lane keeps.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from odelab.graph.llvm import Function, Module
from odelab.graph.nodes import Graph, Node, arguments_of, choose, logical, used
from odelab.kernels.attempt import Asked, Attempt, attempt, fixed_names
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.inside import inside
from odelab.status import Status

NOBODY, RETIRED = -1, -2  # instead of a run's index: the lane waits for a run; the queue was empty when it asked
LANES = 32
WIDE, NARROW = 16, 8  # lanes in one vector
MANY, AT_ONCE = 1_700, 8  # vectors are narrow from so many operations on, or from so many that wait for no other
ARGUMENTS = {
    **dict.fromkeys(("queue", "share", "fixed", "starts", "params", "block", "ends", "times", "counts", "codes"), "p"),
    **dict.fromkeys(("maxima", "at", "points", "doubts", "turned"), "p"),
    **dict.fromkeys(("runs", "sweeps", "most", "wanted"), "l"),
}
TURNED = ["by_implicit", "turns_changes", "turns_tried", "turns_refused"]  # what is told of a run by two methods
SHARE = ("following", "after", "portion", "idle")  # whole numbers of a thread


class Rows(NamedTuple):
    """The names of the numbers a lane keeps, in order; the last ones are whole.

    carried       what an attempt carries
    parameters    of the run
    step          what the states inside the last step depend on, and the next time wanted, "due"
    whole         "point", the number of that time, "status" and "index", the number of the run
    """

    carried: list[str]
    parameters: list[str]
    step: list[str]
    whole: list[str]

    @property
    def all(self) -> list[str]:
        return [*self.carried, *self.parameters, *self.step, *self.whole]

    def at(self, name: str) -> int:
        """Where a row begins, in numbers."""
        return self.all.index(name) * LANES


def vector_width(attempt: Attempt) -> int:
    """How many lanes one vector has.

    A wide one is two registers, whose operations need not wait for each other. That helps where those of an attempt
    wait for each other, and not where many of them can be made at once, which then do not find enough registers. The
    code of a wide one is twice as long, and slow if it does not fit into the processor's cache.
    """
    graph = attempt.graph
    depth: dict[int, int] = {}  # of an operation: the longest row of operations that wait for each other, to it
    for i in used(graph, [*(after for _, after in attempt.carried.values()), attempt.status]):
        depth[i] = 1 + max((depth[k] for k in arguments_of(graph.ops[i])), default=0)
    return WIDE if len(depth) < min(MANY, AT_ONCE * max(depth.values())) else NARROW


def add_lanes(module: Module, asked: Asked, slopes_in: Callable, parameters: list[str], points: str, own=()) -> Rows:
    """The function `lanes(...)` of a module, with the arguments that `ARGUMENTS` names; returns what a lane keeps.

    slopes_in    slopes_in(graph): the right-hand side as a function of nodes of a graph
    parameters   the names of the inputs that each run has of its own
    points       how states at the times `at` are found, "dense" or "step"; "" where none are wanted
    own          those of `odelab.kernels.attempt.fixed_names` that each run has of its own, behind its parameters; then
                 `at` has a row for each run, too
    """
    graph, parameters = Graph(trusted=True), [*parameters, *own]
    fixed = [name for name in fixed_names(asked) if name not in own]
    one = attempt(asked, slopes_in(graph), graph, ())
    step = [*one.step, "due"] if points else []
    rows = Rows(list(one.carried), parameters, step, [*(["point"] if points else []), "status", "index"])
    begin_graph = Graph(trusted=True)
    first = beginning(asked, slopes_in(begin_graph), begin_graph, ())
    begin = add_begin(module, begin_graph, first, rows.carried, fixed, parameters, LANES)
    within = add_inside(module, asked, slopes_in, rows, fixed, points) if points else None
    parts = Parts(module, asked, rows, fixed, bool(own))
    fill = None if within is None else add_fill_points(parts, within)
    look_after = add_look_after(parts, begin, fill)
    function = module.function("lanes", ARGUMENTS, vector_width(one))
    given = {name: function.everywhere("d", function.load("d", "%fixed", k, 1)) for k, name in enumerate(fixed)}
    given["most"] = function.everywhere("l", "%most")
    flagged, made = function.variable("b", "true", 1), function.variable("l", "0", 1)
    with function.repeat() as again_when:
        with function.when(flagged.get()), function.over(LANES) as lane:
            function.call(look_after, *(f"%{name}" for name in ARGUMENTS), lane)
        flagged.set("false")
        busy = function.compare("slt", function.load("l", "%share", SHARE.index("idle"), 1), LANES)
        left = function.compare("slt", made.get(), "%sweeps")
        more = function.logical("and", busy, left, 1)
        with function.when(more), function.over(LANES, function.width) as group:
            some = function.any(sweep(function, one, rows, group, given))
            flagged.set(function.logical("or", flagged.get(), some, 1))
        made.set(function.whole("add", made.get(), 1))
        again_when(more)
    return rows


class Parts(NamedTuple):
    """What the functions of the module have in common."""

    module: Module
    asked: Asked
    rows: Rows
    fixed: list[str]
    has_own_times: bool

    def wanted_of(self, function: Function, run: str) -> str:
        """Where the wanted times of a run begin."""
        if not self.has_own_times:
            return "%at"
        return function.place("%at", function.whole("mul", run, function.whole("add", "%wanted", 1)))


def add_inside(
    module: Module, asked: Asked, slopes_in: Callable, rows: Rows, fixed: list[str], points: str, pool: str = ""
) -> Function:
    """The function `inside(column, fixed, when, out, doubt)`: the state at a time within the last step of a lane.

    `doubt` keeps the largest of what makes the states of a run doubtful.

    pool    what the names of functions end with, where there are several of them
    """
    graph = Graph(trusted=True)
    state, doubt = inside(asked, slopes_in(graph), graph, (), points)
    names = ("column", "fixed", "when", "out", "doubt")
    function = module.function(f"inside{pool}", dict.fromkeys(names, "p"), internal=True)
    known = {operation[2] for operation in graph.ops if operation[0] == "in"} - {"at"}
    inputs = {name: function.load("d", "%fixed", fixed.index(name)) for name in known & set(fixed)}
    inputs |= {name: function.load("d", "%column", rows.at(name)) for name in known - set(fixed)}
    inputs["at"] = function.load("d", "%when", 0)
    before = graph.input("before")
    inputs["before"] = function.load("d", "%doubt", 0)
    *values, largest = function.graph(graph, [*state, choose(doubt > before, doubt, before)], inputs)
    for i, value in enumerate(values):
        function.store("d", value, "%out", i)
    function.store("d", largest, "%doubt", 0)
    return function


def sweep(
    function: Function,
    attempt: Attempt,
    rows: Rows,
    group: str,
    fixed: dict[str, str],
    leaves: Node | None = None,
) -> str:
    """One attempt in the lanes from `group` on; returns which of them have to be looked after.

    leaves    which lanes the rule asks for, where there are two methods
    """
    graph = attempt.graph
    places = {name: function.whole("add", group, rows.at(name)) for name in rows.all}
    after = {name: now for name, (_, now) in attempt.carried.items()}
    kinds = {name: now.kind for name, now in after.items()} | dict.fromkeys(rows.whole, "l")
    read = [*rows.carried, *rows.parameters, *(["due"] if rows.step else []), "index"]
    inputs = {name: function.load(kinds.get(name, "d"), "%block", places[name], aligned=64) for name in read}
    after["status"] = status_of_lane(attempt)
    flagged = logical("or", after["status"] != 0, after["steps"] + after["rejected"] >= graph.input("most", "l"))
    if leaves is not None:
        flagged = logical("or", flagged, leaves)
    if rows.step:
        ends = graph.input("t0"), graph.input("t1")
        flagged = logical("or", flagged, passed_by(graph.input("due"), after["t"], *ends))
        after |= {name: attempt.step[name].real() for name in rows.step if name in attempt.step}
    flagged = logical("and", flagged, graph.input("index", "l") >= 0)
    *values, some = function.graph(graph, [*after.values(), flagged], inputs | fixed)
    for name, value in zip(after, values, strict=True):
        function.store(kinds.get(name, "d"), value, "%block", places[name], aligned=64)
    return some


def status_of_lane(attempt: Attempt) -> Node:
    """The status of an attempt; a step that was lost because nothing finite came of it is said to be so."""
    if "error" not in attempt.carried:
        return attempt.status
    finite = attempt.carried["error"][0] < math.inf
    lost = attempt.status == int(Status.STEP_LOST)
    return choose(logical("and", lost, logical("not", finite)), int(Status.NOT_FINITE), attempt.status)


def passed_by(due: Node, t: Node, t0: Node, t1: Node) -> Node:
    """Has a run at time t come to the time that is due, or gone past it?"""
    return (due - t) * choose(t1 > t0, 1.0, -1.0) <= 0.0


def add_look_after(parts: Parts, begin: Function, fill: Function | None) -> Function:
    """The function that hands in what the run of one lane has come to, and lets the next one begin where it has ended.

    Its arguments are those of `lanes` and the number of the lane.
    """
    function, rows = parts.module.function("look_after", {**ARGUMENTS, "lane": "l"}, internal=True), parts.rows
    column = function.place("%block", "%lane")

    def number(name: str) -> str:
        return function.load("l", column, rows.at(name))

    index = number("index")
    with function.when(function.compare("sge", index, 0)):
        if fill is not None:
            at = parts.wanted_of(function, index)
            function.call(fill, column, index, "%fixed", at, "%points", "%doubts", "%wanted")
        spent = function.compare("sge", function.whole("add", number("steps"), number("rejected")), "%most")
        over = function.logical("or", function.compare("ne", number("status"), 0), spent)
        with function.when(over):
            hand_in(function, parts, column, index)
            function.store("l", str(NOBODY), column, rows.at("index"))
    with function.when(function.compare("eq", number("index"), NOBODY)):
        take_next(function, parts, column, begin)
    return function


def hand_in(function: Function, parts: Parts, column: str, index: str):
    """Write the result of a finished run into the arrays of the ensemble."""
    rows, n = parts.rows, parts.asked.n
    results = {"%ends": ("d", [f"u{i}" for i in range(n)]), "%times": ("d", ["t"]), "%codes": ("l", ["status"])}
    results["%counts"] = ("l", ["steps", "rejected"])
    if parts.asked.maxima:
        results["%maxima"] = ("d", ["largest_sai", "largest_rho"])
    if TURNED[0] in rows.carried:
        results["%turned"] = ("d", TURNED)
    for array, (kind, names) in results.items():
        first = function.whole("mul", index, len(names))
        for k, name in enumerate(names):
            value = function.load(kind, column, rows.at(name))
            function.store(kind, value, array, function.whole("add", first, k))


def take_next(function: Function, parts: Parts, column: str, begin: Function):
    """Begin the next run of the queue in a lane, or retire the lane where the queue is empty.

    A retired lane keeps sweeping. It stands at t1, and therefore does not move.
    """
    rows, idle = parts.rows, function.place("%share", SHARE.index("idle"))
    run = next_run(function)
    with function.either(function.compare("slt", run, "%runs")) as otherwise:
        begin_run(function, parts, column, begin, run)
        otherwise()
        function.store("l", str(RETIRED), column, rows.at("index"))
        end = ("%fixed", parts.fixed.index("t1")) if "t1" in parts.fixed else (column, rows.at("t1"))
        function.store("d", function.load("d", *end), column, rows.at("t"))
        function.store("l", function.whole("add", function.load("l", idle, 0), 1), idle, 0)


def next_run(function: Function) -> str:
    """Take the next run from a thread's share of the queue; a number that no run has where the queue is empty."""
    following, after, portion = (function.place("%share", k) for k in range(3))
    with function.when(function.compare("eq", function.load("l", following, 0), function.load("l", after, 0))):
        taken = function.fetch_add("%queue", function.load("l", portion, 0))
        function.store("l", taken, following, 0)
        function.store("l", function.whole("add", taken, function.load("l", portion, 0)), after, 0)
    run = function.load("l", following, 0)
    function.store("l", function.whole("add", run, 1), following, 0)
    return run


def begin_run(function: Function, parts: Parts, column: str, begin: Function, run: str):
    """Write the first values of a run into a lane."""
    rows = parts.rows
    state = function.place("%starts", function.whole("mul", run, parts.asked.n))
    own = function.place("%params", function.whole("mul", run, len(rows.parameters)))
    function.call(begin, state, "%fixed", own, column, function.block_of_memory(1))
    for k, name in enumerate(rows.parameters):
        function.store("d", function.load("d", own, k), column, rows.at(name))
    function.store("l", "0", column, rows.at("status"))
    function.store("l", run, column, rows.at("index"))
    if rows.step:
        function.store("l", "0", column, rows.at("point"))
        function.store("d", function.load("d", parts.wanted_of(function, run), 0), column, rows.at("due"))


def add_fill_points(parts: Parts, within: Function, pool: str = "") -> Function:
    """The function that computes the states at the wanted times which a lane has passed.

    The last entry of `at` is a time that is never passed.
    """
    given = {"column": "p", "index": "l", "fixed": "p", "at": "p", "points": "p", "doubts": "p", "wanted": "l"}
    function, rows = parts.module.function(f"fill_points{pool}", given, internal=True), parts.rows
    graph = Graph(trusted=True)
    passed = passed_by(*(graph.input(name) for name in ("due", "t", "t0", "t1")))
    known = {name: function.load("d", "%fixed", parts.fixed.index(name)) for name in {"t0", "t1"} & {*parts.fixed}}
    known |= {name: function.load("d", "%column", rows.at(name)) for name in {"t0", "t1"} - {*parts.fixed}}
    known["t"] = function.load("d", "%column", rows.at("t"))

    def is_due() -> str:
        due = function.load("d", "%column", rows.at("due"))
        return function.graph(graph, [passed], {**known, "due": due})[0]

    with function.when(is_due()), function.repeat() as again_when:
        point = function.load("l", "%column", rows.at("point"))
        row = function.whole("add", function.whole("mul", "%index", "%wanted"), point)
        out = function.place("%points", function.whole("mul", row, parts.asked.n))
        due = function.place("%column", rows.at("due"))
        function.call(within, "%column", "%fixed", due, out, function.place("%doubts", "%index"))
        following = function.whole("add", point, 1)
        function.store("l", following, "%column", rows.at("point"))
        function.store("d", function.load("d", "%at", following), "%column", rows.at("due"))
        again_when(is_due())
    return function
