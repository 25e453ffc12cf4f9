"""The graphs of a run by two methods: an attempt of each with the rule behind it, and what the rule asks for between.

The attempts are those of `odelab.kernels.attempt`, the rule is `odelab.control.turns`, run on the same nodes.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.control import controllers, turns
from odelab.control.controllers import Start
from odelab.control.turns import Rule, Turns, rule_of
from odelab.functions.tracing import Trace
from odelab.graph.arrays import Array
from odelab.graph.derivatives import derivatives
from odelab.graph.forks import joined
from odelab.graph.nodes import Graph, Node, call_two, choose, logical, minimum, used, whole
from odelab.graph.operations import OF_ONE, OF_TWO
from odelab.graph.ufuncs import total
from odelab.kernels.attempt import HISTORY, Asked, Attempt, attempt, in_window, remembered
from odelab.kernels.loops.single import usual
from odelab.methods.spectral_radius import rough_direction

RULE = [f"turns_{field}" for field in Turns._fields]
FORGOTTEN = set(HISTORY) - {"next_step", "error"}  # of the history when the method changes
CHEAP = ("neg", "abs", "floor", "ceil", "trunc", "rint", "sqrt", "copysign")  # functions of a processor's own
WEIGHTS = {"const": 0.0, "in": 0.0, "div": 4.0, "sqrt": 5.0}  # of operations, in additions
WEIGHTS |= {name: 20.0 for name in (*OF_ONE, *OF_TWO) if name not in CHEAP}
COUNTS = ("evaluated", "jacobians", "factorisations")  # the first without those within an attempt


class Pair(NamedTuple):
    """What the attempts of two methods depend on, beside the user's functions."""

    explicit: Asked
    implicit: Asked

    @property
    def n(self) -> int:
        return self.explicit.n

    @property
    def rough(self) -> np.ndarray:
        return rough_direction(self.n)

    def rule(self, graph: Graph) -> Rule:
        """The numbers of the rule; the ratio of costs is handed over."""
        return rule_of(self.explicit.method, self.implicit.method, graph.input("ratio"))


class Stage(NamedTuple):
    """A graph that the loop goes through.

    graph       the graph
    carried     {name: node}: what it changes of what the loop carries
    goes_on     whether the same stage comes next, where a run goes on
    one         the attempt that it makes, None where it makes none
    row, usual  of the attempt: what is recorded of it, and the usual outcomes of conditions
    """

    graph: Graph
    carried: dict[str, Node]
    goes_on: Any = None
    one: Attempt | None = None
    row: tuple[Node, ...] = ()
    usual: dict[int, bool] | None = None


def explicit_attempt(pair: Pair, slopes_at: Callable, graph: Graph, project=None, in_lanes: bool = False) -> Stage:
    """An explicit attempt, and the rule behind it.

    in_lanes    whether the turns of a run that ends here do not matter
    """
    one = attempt(pair.explicit, slopes_at, graph, (), project)
    outcomes = usual(one)  # of the attempt alone: those of the rule are not usual ones
    made, accepted = outcome(one)
    before = turns_in(graph)
    assert one.twins is not None  # `odelab.auto` has seen to that
    now = closed(graph, turns.after_explicit)(pair.rule(graph), before, accepted, abs(one.row[1]), *one.twins)
    carried = {name: node for name, (_, node) in one.carried.items()}
    carried |= turns_after(None if in_lanes else made, before, now)
    if "slope0" not in one.carried:  # an attempt begins with an evaluation
        carried |= {"fresh": choose(accepted, 0, graph.constant(1))} | counted(graph, 1 - graph.input("fresh", "l"))
    goes_on = logical("and", carried["turns_seen"] < before.patience, carried["turns_even"] < before.wait)
    return Stage(graph, carried, goes_on, one, (*one.row, graph.constant(0.0)), outcomes)


def implicit_attempt(pair: Pair, slopes_at: Callable, graph: Graph, project=None) -> Stage:
    """An implicit attempt, and the rule behind it."""
    one = attempt(pair.implicit, slopes_at, graph, (), project)
    outcomes = usual(one)
    made, accepted = outcome(one)
    proposed, square = one.carried["next_step"][1], one.carried["error"][1]
    before = turns_in(graph)
    given = (before, accepted, abs(one.row[1]), square, abs(proposed))
    now, size, over = closed(graph, turns.after_implicit)(pair.rule(graph), *given)
    over = logical("and", made > 0, over)
    carried = {name: node for name, (_, node) in one.carried.items()} | turns_after(made, before, now)
    carried |= forgotten(pair, graph, carried, over)
    carried["next_step"] = choose(made > 0, with_sign(pair, graph, size, proposed), proposed)
    fresh, prepared, known = graph.input("fresh", "l"), graph.input("prepared", "l"), choose(accepted, 0, 1)
    lost = choose(over, known, 0)  # the slope of a state that is not left, which the loop has to evaluate again
    carried |= {"fresh": known - lost, "prepared": known}
    carried |= counted(graph, 1 - fresh - lost, 1 - prepared, made)
    goes_on = logical("and", carried["turns_mode"] != turns.EXPLICIT, carried["turns_even"] < before.wait)
    return Stage(graph, carried, goes_on, one, (*one.row, graph.constant(1.0)), outcomes)


def implicit_in_lanes(pair: Pair, slopes_at: Callable, graph: Graph) -> Stage:
    """An implicit attempt that is counted, and before it the stage `measure` in the lanes that it is time for.

    What the rule decides behind trials and where the explicit method may take over is the stage `settling`.
    """
    one = attempt(pair.implicit, slopes_at, graph, ())
    _, accepted = outcome(one)
    before, size = turns_in(graph), abs(one.row[1])
    is_due = closed(graph, turns.is_to_measure)(before)
    carried = measure(pair, in_window(pair.implicit, graph, slopes_at), graph).carried
    carried = {name: choose(is_due, node, graph.input(name)) for name, node in carried.items()}
    now = before._replace(shortest=carried["turns_shortest"], wait=carried["turns_wait"])
    now = closed(graph, turns.after_counting)(pair.rule(graph), now, accepted, size)
    carried |= {name: node for name, (_, node) in one.carried.items()} | turns_after(None, before, now)
    carried |= {"size": size, "by_implicit": graph.input("by_implicit") + choose(accepted, 1.0, graph.constant(0.0))}
    return Stage(graph, carried, logical("not", closed(graph, turns.is_to_settle)(now)), one)


def settling(pair: Pair, graph: Graph) -> Stage:
    """What the rule decides behind an implicit attempt in a lane."""
    size, error, proposed = (graph.input(name) for name in ("size", "error", "next_step"))
    before, accepted = turns_in(graph), graph.input("was_rejected") == 0.0
    given = (pair.rule(graph), before, accepted, size, error, abs(proposed))
    now, following, over = closed(graph, turns.after_settling)(*given)
    carried = turns_after(None, before, now) | forgotten(pair, graph, {}, over)
    carried["next_step"] = with_sign(pair, graph, following, proposed)
    return Stage(graph, carried | {"fresh": graph.constant(0)})


def look(pair: Pair, slopes_at: Callable, graph: Graph) -> Stage:
    """A look for fast components that the stages do not see."""
    t, u, slope = graph.input("t"), graph.inputs("u", pair.n), graph.inputs("slope", pair.n)
    direction, rough = graph.inputs("direction", pair.n), Array.of(pair.rough.tolist())
    given = (slopes_at, (), t, u, slope, unit_of(pair, graph, u), direction, rough)
    rate, along = closed(graph, turns.fastest_rate)(*given)
    now = closed(graph, turns.after_look)(pair.rule(graph), turns_in(graph), abs(graph.input("next_step")), rate)
    carried = named_turns(graph, now) | {f"direction{i}": x for i, x in enumerate(along)}
    return Stage(graph, carried | counted(graph, min(turns.PRODUCTS, pair.n)))


def measure(pair: Pair, slopes_at: Callable, graph: Graph) -> Stage:
    """The fastest rate, by a product of the Jacobian with a vector."""
    t, u, direction = graph.input("t"), graph.inputs("u", pair.n), graph.inputs("direction", pair.n)
    rows = derivatives(graph, list(slopes_at(t, u, ())), list(u))
    product = [total([entry * direction[j] for j, entry in row.items()]) for row in rows]
    given = (Array.of(product), unit_of(pair, graph, u), direction, Array.of(pair.rough.tolist()))
    shortest, along = closed(graph, turns.shortest_along)(*given)
    now = closed(graph, turns.after_measure)(turns_in(graph), shortest)
    return Stage(graph, turns_after(None, turns_in(graph), now) | {f"direction{i}": x for i, x in enumerate(along)})


def weighing(pair: Pair, slopes_at: Callable, graph: Graph) -> Stage:
    """Whether an implicit step is to be tried."""
    left = abs(graph.input("t1") - graph.input("t"))
    now = closed(graph, turns.after_weighing)(pair.rule(graph), turns_in(graph), left)
    return Stage(graph, named_turns(graph, now))


def opening(pair: Pair, slopes_at: Callable, graph: Graph) -> Stage:
    """The first size of an implicit step that is tried, and an empty history."""
    t, u, slope = graph.input("t"), graph.inputs("u", pair.n), graph.inputs("slope", pair.n)
    span: Any = (t, graph.input("t1"), u, slope)
    start = Start(pair.implicit.method, slopes_at, (), *span)
    usual, evaluations = closed(graph, controllers.initial_step)(
        start, graph.input("rtol"), pair.explicit.tolerance(graph)
    )
    size = closed(graph, turns.size_of_trial)(turns_in(graph), usual)
    carried = {"next_step": with_sign(pair, graph, size, graph.input("next_step"))}
    carried |= forgotten(pair, graph, {}, True) | {"prepared": graph.constant(0)}
    return Stage(graph, carried | counted(graph, whole(graph.constant(0) + evaluations)))


def slope_at_state(pair: Pair, slopes_at: Callable, graph: Graph) -> Stage:
    """The slope at the present state, which an explicit attempt begins with."""
    slope = slopes_at(graph.input("t"), graph.inputs("u", pair.n), ())
    carried = {f"slope{i}": x for i, x in enumerate(slope)} | {"fresh": graph.constant(1)}
    return Stage(graph, carried | counted(graph, 1))


class Stages(NamedTuple):
    """All graphs of a run by two methods; `ratio` is that of the costs.

    settling    behind implicit attempts, of lanes; None for single runs
    """

    pair: Pair
    explicit: Stage
    implicit: Stage
    look: Stage
    weighing: Stage
    opening: Stage
    measure: Stage
    slope: Stage
    settling: Stage | None = None

    @property
    def ratio(self) -> float:
        """The cost of an implicit attempt over that of an explicit one."""
        return cost(self.implicit) / cost(self.explicit)


def stages_of(explicit: Asked, implicit: Asked, slopes_in: Callable, project_in: Callable | None = None) -> Stages:
    """The graphs of a run by two methods.

    slopes_in, project_in    the user's functions on the nodes of a graph, as functions of the graph
    """
    pair, made = Pair(explicit, implicit), []
    for build in (explicit_attempt, implicit_attempt):
        graph = Graph(trusted=True)
        project = None if project_in is None else project_in(graph)
        made.append(build(pair, slopes_in(graph), graph, project))
    return Stages(pair, *made, *stages_between(pair, slopes_in))


def stages_of_lanes(explicit: Asked, implicit: Asked, slopes_in: Callable) -> Stages:
    """The same for runs in lanes."""
    pair, graphs = Pair(explicit, implicit), [Graph(trusted=True) for _ in range(3)]
    one = explicit_attempt(pair, slopes_in(graphs[0]), graphs[0], in_lanes=True)
    other = implicit_in_lanes(pair, slopes_in(graphs[1]), graphs[1])
    return Stages(pair, one, other, *stages_between(pair, slopes_in))._replace(settling=settling(pair, graphs[2]))


def stages_between(pair: Pair, slopes_in: Callable) -> list[Stage]:
    """What the rule asks for between attempts."""
    made = []
    for build in (look, weighing, opening, measure, slope_at_state):
        graph = Graph(trusted=True)
        made.append(build(pair, in_window(pair.explicit, graph, slopes_in(graph)), graph))
    return made


def cost(stage: Stage) -> float:
    """What an attempt costs, in additions, as far as its operations tell."""
    ops = stage.graph.ops
    return sum(WEIGHTS.get(ops[i][0], 1.0) for i in used(stage.graph, [*stage.carried.values(), *stage.row]))


def outcome(one: Attempt) -> tuple[Node, Node]:
    """How many attempts were made, one or none, and whether it was accepted."""
    steps, rejected = (one.carried[name][1] - one.carried[name][0] for name in ("steps", "rejected"))
    return steps + rejected, steps > 0


def turns_in(graph: Graph) -> Turns:
    """The turns before a stage, as inputs."""
    return Turns(*(graph.input(name) for name in RULE))


def named_turns(graph: Graph, now: Turns) -> dict[str, Node]:
    return {name: graph.constant(0.0) + value for name, value in zip(RULE, now, strict=True)}


def turns_after(made: Node | None, before: Turns, now: Turns) -> dict[str, Node]:
    """Those of the turns that are not as before.

    made    how many attempts were made: where none was, because the factors or the user's function failed, the turns
            are as before; None where that does not matter
    """
    after = {name: (y, y.lift(x).real()) for name, x, y in zip(RULE, now, before, strict=True)}
    changed = {name: pair for name, pair in after.items() if pair[0].i != pair[1].i}
    return {name: x if made is None else choose(made > 0, x, y) for name, (y, x) in changed.items()}


def forgotten(pair: Pair, graph: Graph, carried: dict[str, Node], over) -> dict[str, Node]:
    """The history of both laws, empty where the method changes."""
    names = {name for asked in (pair.explicit, pair.implicit) for name in remembered(asked)} & FORGOTTEN
    nothing = graph.constant(0.0)
    return {name: nothing + choose(over, nothing, carried.get(name, graph.input(name))) for name in sorted(names)}


def with_sign(pair: Pair, graph: Graph, size, direction) -> Node:
    """The size of a step with its sign, and no larger than allowed."""
    most = graph.input("largest") if pair.explicit.limited else math.inf
    return call_two("copysign", minimum(graph.constant(0.0) + size, most), direction)


def unit_of(pair: Pair, graph: Graph, u):
    """What each component is measured in, so that its tolerance is the same."""
    return abs(u) + pair.explicit.tolerance(graph) / graph.input("rtol")


def closed(graph: Graph, function: Callable) -> Callable:
    return joined(graph, Trace().copy(function))


def counted(graph: Graph, *more) -> dict[str, Node]:
    """The counts of work after a stage that adds so many evaluations, Jacobians and factorisations."""
    return {name: graph.input(name, "l") + by for name, by in zip(COUNTS, more, strict=False)}
