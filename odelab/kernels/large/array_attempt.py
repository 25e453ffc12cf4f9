"""One attempt of `odelab.core.integrate` on whole arrays: as `odelab.kernels.attempt`, for systems of any size."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from odelab import core
from odelab.functions.tracing import Trace
from odelab.graph import nodes
from odelab.graph.forks import join, joined
from odelab.graph.nodes import Node, choose
from odelab.kernels.attempt import Asked, control, in_window, place_of_end, squares, unless_singular, value_of
from odelab.kernels.implicit import Nothing
from odelab.kernels.large.array_graph import ArrayGraph
from odelab.status import Status


class Large(NamedTuple):
    """What a kernel of a large system is made for.

    asked         what the attempts depend on; the number of components is that of one run alone
    projects      whether the user's projection is applied to new states
    raises        whether the user's functions may raise errors
    autonomous    whether the right-hand side does not depend on time
    """

    asked: Asked
    projects: bool
    raises: bool
    autonomous: bool

    @property
    def implicit(self) -> bool:
        return self.asked.method.needs_jacobian


class ArrayAttempt(NamedTuple):
    """The graph of an attempt.

    graph      the graph; "u", "slope" and, where the right-hand side depends on time, "slope_t" are arrays
    carried    {name: (node before, node after)}: the numbers that a loop carries from attempt to attempt
    status     the node of the `Status` after the attempt
    passed     whether the time "until" is passed
    row        what is recorded of an accepted step: time, size, error, SAI and h rho
    new        the new state
    latest     the slope at the new state; None where it is not known
    end        the place of the input "end" among the parameters, of listed steps; else None
    """

    graph: ArrayGraph
    carried: dict[str, tuple[Node, Node]]
    status: Node
    passed: Node
    row: list[Node]
    new: Node
    latest: Node | None
    end: Node | None


def array_attempt(large: Large) -> ArrayAttempt:
    """The graph of one attempt on arrays."""
    graph, asked = ArrayGraph(), large.asked
    t, t1, u, slope = graph.input("t"), graph.input("t1"), graph.array("u"), graph.array("slope")
    propose, judge, memory, controls = control(asked, graph)
    step, prepare, is_solved = steps_of(large, graph)
    slopes_at, project = in_window(asked, graph, graph.slopes), graph.project if large.projects else core.no_projection
    integrate, steps, kept = Trace().copy(core.integrate), graph.input("steps", "l"), {}  # type: ignore[var-annotated]

    def record(count, memory, t, dt, h, u, slopes, mean_slope, u_new):
        kept.update(dt=dt, memory=memory, new=u_new, slopes=slopes)
        kept["squares"] = squares(asked.method, u, dt, slopes, mean_slope)
        return count + 1

    def once():
        start = core.State(t, u, slope, True, memory)
        return integrate(step, prepare, slopes_at, (), propose, judge, project, record, steps, start, t1, 1)

    graph.assume(t == t1, False)  # no attempt is made at the end of the span
    status, after, steps_after, refused, evaluated = join(graph, once)
    accepted = steps_after > steps
    carried = {"t": (t, after.t), "steps": (steps, steps.lift(steps_after))}
    for name, before in controls.items():
        carried[name] = (before, before.lift(value_of(name, after.memory)))
    fsal = not large.implicit and asked.method.fsal and not large.projects
    carried |= counts_of(large, graph, accepted, refused, evaluated, after.fresh if fsal else ~accepted)
    status = graph.constant(0) + status
    if is_solved is not None:
        status, carried = unless_singular(asked, graph, status, carried, is_solved())
    status, carried = unless_raised(large, graph, status, carried)
    passed = (carried["t"][1] - graph.input("until")) * kept["dt"] >= 0.0
    latest = kept["slopes"][-1] if fsal else None
    row, end = row_of(asked, after.t, kept), place_of_end(asked, graph)
    return ArrayAttempt(graph, carried, status, passed, row, kept["new"], latest, end)


def counts_of(large: Large, graph: ArrayGraph, accepted, refused, evaluated, fresh) -> dict[str, tuple[Node, Node]]:
    """What is counted: where a slope or a Jacobian was not known before the attempt, it was computed for it.

    fresh    whether the slope is known after the attempt
    """
    names = ["fresh", "turn", "rejected", "evaluations"]
    before = {name: graph.input(name, "l") for name in names}
    after = {
        "fresh": choose(fresh, 1, 0),
        "turn": before["turn"] if large.implicit else choose(accepted, 1 - before["turn"], before["turn"]),
        "rejected": before["rejected"] + refused,
        "evaluations": before["evaluations"] + (1 - before["fresh"]) + evaluated,
    }
    if large.implicit:
        before |= {name: graph.input(name, "l") for name in ("prepared", "jacobians", "factorisations")}
        after |= {
            "prepared": choose(accepted, 0, 1),
            "jacobians": before["jacobians"] + (1 - before["prepared"]),
            "factorisations": before["factorisations"] + choose(graph.constant(0) + evaluated == 0, 0, 1),
        }
    return {name: (node, node.lift(after[name])) for name, node in before.items()}


def steps_of(large: Large, graph: ArrayGraph) -> tuple[Callable, Callable, Callable[[], Node] | None]:
    """step, prepare, and what tells whether a linear system was solved, None for explicit methods."""
    tableau = large.asked.method.tableau
    if not large.implicit:
        return joined(graph, core.rk_step_of(core.combine, tableau)), core.slope_alone, None
    checks: list[Node] = []
    slope_t = Nothing() if large.autonomous else graph.array("slope_t")

    def factor(J, hg):
        return graph.factors(hg)

    def substitute(factors, right):
        x = graph.solution(factors, right)
        checks[:] = checks or [graph.is_solved(right, x)]
        return x

    def prepare(t, u, slope, params):
        return slope, None, slope_t

    step = core.rosenbrock_step_of(core.combine, factor, substitute, tableau)

    def checked_step(*given):
        u_new, mean_slope, (error,), increments, fsal = step(*given)
        if large.asked.law is None:  # nothing else is judged of a fixed step
            u_new = choose(checks[0], u_new, math.nan)
        return u_new, mean_slope, [choose(checks[0], error, math.nan)], increments, fsal

    return joined(graph, checked_step), prepare, lambda: checks[0]


def unless_raised(large: Large, graph: ArrayGraph, status, carried):
    """Where the user's function raises an error, nothing has happened, so that plain Python may do it again."""
    if not large.raises:
        return status, carried
    raised = graph.input("raised", "b")
    status = choose(raised, int(Status.RAISED), status)
    return status, {name: (before, choose(raised, before, now)) for name, (before, now) in carried.items()}


def row_of(asked: Asked, t, kept: dict[str, Any]) -> list[Node]:
    """What `odelab.engines.rows.LargeRows` keeps of a step, beside its state."""
    error = kept["memory"].history.error if asked.law is not None else math.nan
    roots = [nodes.one("sqrt", t.lift(x).real()) for x in (error, *kept["squares"])]
    return [t, kept["dt"], *roots]
