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

from odelab.graph.llvm import Function, Module, Variable
from odelab.graph.nodes import Graph, Node, arguments_of, choose, logical, used
from odelab.kernels.attempt import Asked, Attempt, attempt, fixed_names
from odelab.kernels.beginning import add_begin, beginning
from odelab.kernels.interior import watching
from odelab.kernels.interior.states import inside
from odelab.kernels.interior.watching import Watched
from odelab.kernels.start import search_of
from odelab.status import Status

NOBODY, RETIRED = -1, -2  # instead of a run's index: the lane waits for a run; the queue was empty when it asked
LANES = 32
WIDE, NARROW = 16, 8  # lanes in one vector
MANY, AT_ONCE = 1_700, 8  # vectors are narrow from so many operations on, or from so many that wait for no other
ARGUMENTS = {
    **dict.fromkeys(("queue", "share", "fixed", "starts", "params", "block", "ends", "times", "counts", "codes"), "p"),
    **dict.fromkeys(("maxima", "at", "points", "doubts", "turned", "left", "resumes", "longest", "log", "logged"), "p"),
    **dict.fromkeys(("runs", "sweeps", "most", "wanted", "room"), "l"),
}
TURNED = ["by_implicit", "turns_changes", "turns_tried", "turns_refused"]  # what is told of a run by two methods
SHARE = ("following", "after", "portion", "idle")  # whole numbers of a thread


class Rows(NamedTuple):
    """The names of the numbers a lane keeps, in order; the last ones are whole.

    carried       what an attempt carries
    parameters    of the run
    step          what the states inside the last step depend on, where they are looked at
    longest       the same of the longest step, where events are looked for that it may hide
    due           "due", the next time wanted
    whole         "point", the number of that time, "near", whether the last step may hold an event, "status" and
                  "index", the number of the run
    """

    carried: list[str]
    parameters: list[str]
    step: list[str]
    longest: list[str]
    due: list[str]
    whole: list[str]

    @property
    def all(self) -> list[str]:
        return [*self.carried, *self.parameters, *self.step, *self.longest, *self.due, *self.whole]

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


def add_lanes(
    module: Module,
    asked: Asked,
    slopes_in: Callable,
    parameters: list[str],
    points: str,
    own=(),
    watched: Watched | None = None,
    project_in: Callable | None = None,
) -> Rows:
    """The function `lanes(...)` of a module, with the arguments that `ARGUMENTS` names; returns what a lane keeps.

    slopes_in    slopes_in(graph): the right-hand side as a function of nodes of a graph
    parameters   the names of the inputs that each run has of its own
    points       how states at the times `at` are found, "dense" or "step"; "" where none are wanted
    own          those of `odelab.kernels.attempt.fixed_names` that each run has of its own, behind its parameters; then
                 `at` has a row for each run, too
    watched      the events of the runs; None where there are none
    project_in   project_in(graph): the projection as a function of nodes, None where there is none
    """
    graph, parameters = Graph(trusted=True), [*parameters, *own]
    fixed = [name for name in fixed_names(asked) if name not in own]
    one = attempt(asked, slopes_in(graph), graph, (), project_in and project_in(graph))
    step = list(one.step) if points else watching.step_rows(asked) if watched else []
    longest = watching.longest_rows(asked) if watched else []
    whole = [*(["point"] if points else []), *(["near"] if watched else []), "status", "index"]
    rows = Rows(list(one.carried), parameters, step, longest, ["due"] if points else [], whole)
    begin_graph = Graph(trusted=True)
    first = beginning(asked, slopes_in(begin_graph), begin_graph, ())
    begin = add_begin(module, begin_graph, first, rows.carried, fixed, parameters, LANES, search_of(asked, slopes_in))
    parts = Parts(module, asked, rows, fixed, bool(own), watched)
    fill = add_fill_points(parts, add_inside(parts, slopes_in, project_in, points)) if points else None
    look_after = add_look_after(parts, begin, fill)
    near = watching.near(asked, watched) if watched else None
    function = module.function("lanes", ARGUMENTS, vector_width(one))
    given = {name: function.everywhere("d", function.load("d", "%fixed", k, 1)) for k, name in enumerate(fixed)}
    given["most"] = function.everywhere("l", "%most")
    flagged, made = function.variable("b", "true", 1), function.variable("l", "0", 1)
    with function.repeat() as again_when:
        with function.when(flagged.get()):
            function.call(look_after, *(f"%{name}" for name in ARGUMENTS))
        flagged.set("false")
        busy = function.compare("slt", function.load("l", "%share", SHARE.index("idle"), 1), LANES)
        left = function.compare("slt", made.get(), "%sweeps")
        more = function.logical("and", busy, left, 1)
        with function.when(more), function.over(LANES, function.width) as group:
            some = function.any(sweep(function, one, rows, group, given, near))
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
    watched: Watched | None

    def value_of(self, function: Function, name: str) -> str:
        """The value of a row of a column, or of what all runs have in common.

        Parameters of events are those of runs.
        """
        name = name[1:] if name[0] == "e" and name[1:] in self.rows.parameters else name
        if name in self.fixed:
            return function.load("d", "%fixed", self.fixed.index(name))
        return function.load("d", "%column", self.rows.at(name))

    def wanted_of(self, function: Function, run: str) -> str:
        """Where the wanted times of a run begin."""
        if not self.has_own_times:
            return "%at"
        return function.place("%at", function.whole("mul", run, function.whole("add", "%wanted", 1)))


def add_inside(parts: Parts, slopes_in: Callable, project_in: Callable | None, points: str, pool: str = "") -> Function:
    """The function `inside(column, fixed, when, out, doubt)`: the state at a time within the last step of a lane.

    `doubt` keeps the largest of what makes the states of a run doubtful.

    pool    what the names of functions end with, where there are several of them
    """
    graph = Graph(trusted=True)
    state, doubt = inside(parts.asked, slopes_in(graph), graph, (), points, project_in and project_in(graph))
    names = ("column", "fixed", "when", "out", "doubt")
    function = parts.module.function(f"inside{pool}", dict.fromkeys(names, "p"), internal=True)
    known = {operation[2] for operation in graph.ops if operation[0] == "in"} - {"at"}
    inputs = {name: parts.value_of(function, name) for name in known}
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
    near: Node | None = None,
    leaves: Node | None = None,
) -> str:
    """One attempt in the lanes from `group` on; returns which of them have to be looked after.

    near      where an event may be, None where there are none
    leaves    which lanes the rule asks for, where there are two methods
    """
    graph, n = attempt.graph, sum(name.startswith("old") for name in rows.step)
    places = {name: function.whole("add", group, rows.at(name)) for name in rows.all}
    after = {name: now for name, (_, now) in attempt.carried.items()}
    kinds = {name: now.kind for name, now in after.items()} | dict.fromkeys(rows.whole, "l")
    read = [*rows.carried, *rows.parameters, *rows.longest, *rows.due, "index"]
    inputs = {name: function.load(kinds.get(name, "d"), "%block", places[name], aligned=64) for name in read}
    after["status"] = status_of_lane(attempt)
    flagged = logical("or", after["status"] != 0, after["steps"] + after["rejected"] >= graph.input("most", "l"))
    if leaves is not None:
        flagged = logical("or", flagged, leaves)
    if rows.due:
        ends = graph.input("t0"), graph.input("t1")
        flagged = logical("or", flagged, passed_by(graph.input("due"), after["t"], *ends))
    has_run = graph.input("index", "l") >= 0
    flagged = logical("and", flagged, has_run)
    after |= watching.longest_step(attempt, rows.longest)
    if rows.due:
        after |= {name: attempt.step[name].real() for name in rows.step if name in attempt.step}
    seen = [] if near is None else ["dt", *(name for name in watching.inputs_of(near) if name in attempt.step)]
    accepted = logical("and", has_run, after["steps"] != attempt.carried["steps"][0])
    new = {} if near is None else {f"u{i}": x for i, x in enumerate(attempt.new)}
    nodes = [*after.values(), flagged, accepted, *(attempt.step[name] for name in seen), *new.values()]
    found = function.graph(graph, nodes, inputs | fixed)
    some, accepted, *others = found[len(after) :]
    for name, value in zip(after, found, strict=False):
        function.store(kinds.get(name, "d"), value, "%block", places[name], aligned=64)
    if near is not None:
        now = inputs | dict(zip([*seen, *new], others, strict=True))
        now |= {f"e{name}": inputs[name] for name in rows.parameters}
        is_near = function.logical("and", accepted, watching.add_near(function, near, now, fixed))
        with function.when(function.any(is_near)):
            before = {"began": inputs["t"], "dt": now["dt"], **{f"old{i}": inputs[f"u{i}"] for i in range(n)}}
            for name, value in before.items():
                function.store("d", value, "%block", places[name], aligned=64)
            whole = function.value(f"zext {function.type('b')} {is_near} to {function.type('l')}")
            function.store("l", whole, "%block", places["near"], aligned=64)
        some = function.logical("or", some, is_near)
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
    """The function that hands in what the runs of lanes have come to, and lets the next ones begin where they ended.

    Its arguments are those of `lanes`. A run that has left its lane because of an event and goes on is looked after
    again: the states that are wanted of its last step are still due, or it may be over.
    """
    look = None
    if parts.watched is not None and parts.watched.projection is None:
        look = watching.add_look(parts.module, parts.asked, parts.watched, parts.value_of)
    function = parts.module.function("look_after", ARGUMENTS, internal=True)
    function.stands_apart = True
    with function.over(LANES) as lane:
        look_after_lane(function, parts, function.place("%block", lane), begin, fill, look)
    return function


def look_after_lane(function: Function, parts: Parts, column: str, begin: Function, fill, look):
    """The same for one lane."""
    rows, resumed = parts.rows, function.variable("b", "false")

    def number(name: str) -> str:
        return function.load("l", column, rows.at(name))

    if parts.watched is not None:
        told = function.block_of_memory(2)
        with function.when(function.compare("ne", number("near"), 0)):
            function.store("l", "0", column, rows.at("near"))
            if look is None:
                leave(function, parts, column, number("index"))
            else:
                function.call(look, column, "%fixed", told)
                with function.when(function.compare("ne", function.load("l", told, 0), 0)):
                    leave(function, parts, column, number("index"))
                index = number("index")
                noted = function.compare("ne", function.load("l", told, 1), 0)
                with function.when(function.logical("and", noted, function.compare("sge", index, 0))):
                    place = function.fetch_add("%logged", 1)
                    with function.either(function.compare("slt", place, "%room")) as otherwise:
                        log_step(function, parts, column, place)
                        otherwise()
                        leave(function, parts, column, index)
    with function.repeat() as again_when:
        resumed.set("false")
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
            take_next(function, parts, column, begin, resumed)
        again_when(resumed.get())


def log_step(function: Function, parts: Parts, column: str, place: str):
    """Write the last step of a lane down."""
    names = watching.logged_rows(parts.asked)
    first = function.whole("mul", place, len(names))
    for k, name in enumerate(names):
        number = function.load("l", column, parts.rows.at(name))
        function.store("l", number, "%log", function.whole("add", first, k))


def leave(function: Function, parts: Parts, column: str, index: str):
    """Hand out a run in whose last step an event may lie, with all that its lane keeps."""
    hand_in(function, parts, column, index)
    copy_numbers(function, column, LANES, left_of(function, parts, index), 1, len(parts.rows.all))
    function.store("l", str(int(Status.EVENT)), "%codes", index)
    function.store("l", str(NOBODY), column, parts.rows.at("index"))


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
    if rows.longest:
        first, count = function.place(column, rows.at(rows.longest[0])), len(rows.longest)
        there = function.place("%longest", function.whole("mul", index, count))
        copy_numbers(function, first, LANES, there, 1, count)


def left_of(function: Function, parts: Parts, run: str) -> str:
    """Where the numbers of a run are kept when it leaves its lane."""
    return function.place("%left", function.whole("mul", run, len(parts.rows.all)))


def copy_numbers(function: Function, here: str, apart: int, there: str, distance: int, count: int):
    """Copy so many numbers, which lie `apart` from each other here and `distance` there."""
    with function.over(count) as k:
        value = function.load("l", here, function.whole("mul", k, apart))
        function.store("l", value, there, function.whole("mul", k, distance))


def take_next(function: Function, parts: Parts, column: str, begin: Function, resumed: Variable):
    """Begin the next run of the queue in a lane, or retire the lane where the queue is empty.

    A run that has left its lane because of an event goes on where it was. A retired lane keeps sweeping. It stands at
    t1, and therefore does not move.
    """
    rows, idle = parts.rows, function.place("%share", SHARE.index("idle"))
    run = next_run(function)
    with function.either(function.compare("slt", run, "%runs")) as otherwise:
        if parts.watched is None:
            begin_run(function, parts, column, begin, run)
        else:
            has_left = function.compare("ne", function.load("l", "%resumes", run), 0)
            with function.either(has_left) as begins:
                copy_numbers(function, left_of(function, parts, run), 1, column, LANES, len(rows.all))
                function.store("l", run, column, rows.at("index"))
                resumed.set("true")
                begins()
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
    """Begin a run in a lane."""
    rows = parts.rows
    state = function.place("%starts", function.whole("mul", run, parts.asked.n))
    own = function.place("%params", function.whole("mul", run, len(rows.parameters)))
    function.call(begin, state, "%fixed", own, column, function.block_of_memory(1))
    for k, name in enumerate(rows.parameters):
        function.store("d", function.load("d", own, k), column, rows.at(name))
    if rows.longest:
        first, count = function.place(column, rows.at(rows.longest[0])), len(rows.longest)
        copy_numbers(function, function.place("%longest", function.whole("mul", run, count)), 1, first, LANES, count)
    for name in rows.whole[:-1]:
        function.store("l", "0", column, rows.at(name))
    function.store("l", run, column, rows.at("index"))
    if rows.due:
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
