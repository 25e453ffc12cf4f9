"""One pass of the loop of `odelab.core.integrate`, run on nodes: step, error, judgement and next size as one graph.

Nothing of a step is written here. The sources are `core.integrate`, `core.rk_step_of`, `core.rosenbrock_step_of`,
`control.feedback` (propose and judge with all laws), `controllers.squared_error` and `control.powers`.
"""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab import core
from odelab.control import controllers, feedback, powers
from odelab.control.feedback import Counted, History, Listed, Memory
from odelab.control.laws import Law
from odelab.functions.tracing import Trace
from odelab.graph import nodes
from odelab.graph.arrays import Array
from odelab.graph.forks import join, joined
from odelab.graph.nodes import Graph, Node, choose
from odelab.kernels import implicit
from odelab.status import Status

WINDOW = ("earliest", "latest")  # inputs: the first and the last time that the right-hand side is shown
FAILURES = 3  # after so many failures of the factors in a row, the step size is not to blame for them


class Asked(NamedTuple):
    """What an attempt depends on, beside the user's functions.

    n                   the number of components
    method              one that can be made as a graph
    law                 the law of step size; None for fixed steps
    vector_tolerance    whether there is an absolute tolerance for each component
    limited             whether there is a largest step
    rows                whether accepted steps are recorded
    maxima              whether the largest SAI and h rho are carried along
    windowed            whether the right-hand side is shown the times of a window alone, from "earliest" to "latest"
    listed              whether fixed steps end at listed times
    pivots              whether the run ends where factors without pivoting fail, so that others can go on with pivots;
                        otherwise such an attempt is one that is rejected
    mass                the `odelab.mass.Entries` of the mass matrix; None where M = I
    """

    n: int
    method: Any
    law: Law | None
    vector_tolerance: bool = False
    limited: bool = False
    rows: bool = False
    maxima: bool = False
    windowed: bool = False
    listed: bool = False
    pivots: bool = True
    mass: tuple | None = None

    def tolerance(self, graph: Graph):
        """The absolute tolerance as inputs of a graph, one for all components or one for each."""
        return graph.inputs("atol", self.n) if self.vector_tolerance else graph.input("atol")


class Attempt(NamedTuple):
    """The graph of an attempt.

    graph     the graph
    carried   {name: (node before, node after)}: what a loop carries from attempt to attempt
    status    the node of the `Status` after the attempt, ATTEMPTS_SPENT while the run goes on
    row       what is recorded of an accepted step: time, size, error, SAI, h rho and the state
    step      {name: node}: what the states inside the step depend on
    new       the state after the step, whether or not it is accepted
    twins     as `twin_squares` has them, where steps are recorded and the method has twin stages; else None
    end       the place of the input "end" among the parameters, of listed steps; else None
    """

    graph: Graph
    carried: dict[str, tuple[Node, Node]]
    status: Node
    row: list[Node]
    step: dict[str, Node]
    new: list[Node]
    twins: tuple[Node, Node, Node] | None = None
    end: Node | None = None


def attempt(asked: Asked, slopes_at: Callable, graph: Graph, params, project: Callable | None = None) -> Attempt:
    """The graph of one attempt.

    slopes_at    the right-hand side as a function of nodes, (t, u, params)
    graph        the graph that it adds nodes to
    params       the parameters, with nodes of this graph in them
    project      the user's projection as a function of nodes
    """
    n, method = asked.n, asked.method
    slopes_at = in_window(asked, graph, slopes_at)
    fsal = method.fsal and project is None
    t, t1, u = graph.input("t"), graph.input("t1"), graph.inputs("u", n)
    slope = graph.inputs("slope", n) if fsal else Array.of([math.nan] * n)
    steps, rejected = graph.input("steps", "l"), graph.input("rejected", "l")
    largest = tuple(graph.input(name) for name in ("largest_sai", "largest_rho")) if asked.maxima else ()
    propose, judge, memory, controls = control(asked, graph)
    step, prepare, is_solved = steps_of(asked, graph)
    kept: dict[str, Any] = {}

    def record(carry, memory, t, dt, h, u, slopes, mean_slope, u_new):
        kept.update(began=t, dt=dt, old=u, slopes=slopes[method.final], mean_slope=mean_slope, new=u_new, memory=memory)
        sai, rho = squares(method, u, dt, slopes, mean_slope) if asked.maxima else (0.0, 0.0)
        largest = [choose(now > before, now, before) for now, before in zip((sai, rho), carry[0], strict=False)]
        return tuple(largest), carry[1] + 1

    integrate = Trace().copy(core.integrate)

    def once():
        start = core.State(t, u, slope, fsal, memory)
        after = core.no_projection if project is None else project
        given = (step, prepare, slopes_at, params, propose, judge, after, record, (largest, steps), start, t1, 1)
        return integrate(*given)

    graph.assume(t == t1, False)  # no attempt is made at the end of the span
    status, after, (largest_after, steps_after), refused, _ = join(graph, once)
    carried = {"t": (t, after.t), **pairs("u", u, after.u)}
    carried |= pairs("slope", slope, after.slope) if fsal else {}
    for name, before in controls.items():
        carried[name] = (before, before.lift(value_of(name, after.memory)))
    carried |= {"steps": (steps, steps.lift(steps_after)), "rejected": (rejected, rejected + refused)}
    if asked.maxima:
        carried |= {name: (largest[k], largest_after[k]) for k, name in enumerate(("largest_sai", "largest_rho"))}
    status = graph.constant(0) + status
    if is_solved is not None and asked.pivots:
        status, carried = unless_singular(asked, graph, status, carried, is_solved())
    if graph.raised:
        status, carried = unless_raised(graph, status, carried)
    row, twins = row_of(asked, graph, carried["t"][1], kept) if asked.rows else [], None
    if asked.rows and method.twin_stages is not None:
        twins = twin_squares(method, *(kept[name] for name in ("old", "dt", "slopes")))
    new = [graph_node(graph, x) for x in kept["new"]]
    return Attempt(graph, carried, status, row, step_of(graph, kept), new, twins, place_of_end(asked, graph))


def mass_of(problem):
    """`Asked.mass` of a problem."""
    return None if problem.mass is None else problem.mass_matrix.all_entries


def unless_raised(graph: Graph, status, carried):
    """Status and carried values where the user's function raises an error: all is then as it was before."""
    fails: Any = functools.reduce(operator.or_, graph.raised)
    now = {name: (before, choose(fails, before, after)) for name, (before, after) in carried.items()}
    return choose(fails, int(Status.RAISED), status), now


def step_of(graph: Graph, kept: dict[str, Any]) -> dict[str, Node]:
    """What the states inside a step depend on, by names."""
    found = {"began": kept["began"], "dt": kept["dt"], **named("old", kept["old"])}
    for j, stage in enumerate(kept["slopes"]):
        found |= named(f"k{j}_", stage)
    return {name: graph_node(graph, x) for name, x in found.items()}


def pairs(name: str, before, after) -> dict[str, tuple[Node, Node]]:
    return {f"{name}{i}": (one, one.lift(other)) for i, (one, other) in enumerate(zip(before, after, strict=True))}


def named(name: str, row) -> dict[str, Any]:
    return {f"{name}{i}": x for i, x in enumerate(row)}


def graph_node(graph: Graph, x) -> Node:
    return x if isinstance(x, Node) else graph.constant(float(x))


def fixed_names(asked: Asked) -> list[str]:
    """The names of the inputs, beside parameters, that stay as they are during a run."""
    window = WINDOW if asked.windowed else ()
    if asked.law is None:
        return ["t0", "t1", "list" if asked.listed else "h", *window]
    atol = [f"atol{i}" for i in range(asked.n)] if asked.vector_tolerance else ["atol"]
    return ["t0", "t1", "given_step", "rtol", *atol, "largest", *window]


def fixed_values(problem, controller, place: int = 0) -> list[float]:
    """The values of these inputs in a run.

    place    where the ends of listed steps begin among the parameters
    """
    (t0, t1), window = problem.t_span, problem.window or ()
    if controller.law is None:
        return [t0, t1, place if controller.h is None else math.copysign(controller.h, t1 - t0), *window]
    atol = np.atleast_1d(controller.atol)
    return [t0, t1, controller.first_step or 0.0, controller.rtol, *atol, controller.max_step, *window]


def seen(asked: Asked, graph: Graph, t) -> Node:
    """The time that the right-hand side is shown at time t."""
    t = graph.constant(0.0).lift(t)
    if not asked.windowed:
        return t
    earliest, latest = map(graph.input, WINDOW)
    return choose(t < earliest, earliest, choose(t > latest, latest, t))


def in_window(asked: Asked, graph: Graph, slopes_at: Callable) -> Callable:
    """The right-hand side as a function of nodes (t, u, params) that is shown the times of a window alone."""
    if not asked.windowed:
        return slopes_at

    def shown(t, u, params=None):
        return slopes_at(seen(asked, graph, t), u, params)

    return shown


def value_of(name: str, memory):
    """What the controller remembers under a name."""
    return memory.n if isinstance(memory, Counted | Listed) else getattr(memory.history, FIELDS.get(name, name))


FIELDS = {"was_rejected": "rejected"}  # a run counts its rejections, too
HISTORY = [{field: name for name, field in FIELDS.items()}.get(field, field) for field in History._fields]


class MemoryPlaces:
    """Where a kernel carries the memory of the controller in a row of numbers.

    at    the place of each number that it carries, by its name
    """

    def __init__(self, at: dict[str, int]):
        self.count = at.get("count")
        self.history = [at.get(name) for name in HISTORY]
        self.read_history = operator.itemgetter(*(-1 if place is None else place for place in self.history))

    def write(self, memory, numbers):
        """Write a memory into the row."""
        if self.count is not None:
            numbers[self.count] = memory.n
            return
        for place, value in zip(self.history, memory.history, strict=True):
            if place is not None:
                numbers[place] = value

    def read(self, numbers: list[float], before) -> Any:
        """The memory that the row holds; what never changes is as it was before."""
        if self.count is not None:
            return before._replace(n=numbers[self.count])
        return Memory(before.settings, History._make(self.read_history([*numbers, 0.0])))


class Ends:
    """The ends of listed steps in a graph: the one that is asked for is the input "end"."""

    def __getitem__(self, n: Node) -> Node:
        return n.graph.input("end")


def place_of_end(asked: Asked, graph: Graph) -> Node | None:
    """The place of the input "end" among the parameters; None where steps are not listed."""
    return nodes.whole(graph.input("list") + graph.input("count")) if asked.listed else None


def control(asked: Asked, graph: Graph) -> tuple[Callable, Callable, Any, dict[str, Node]]:
    """propose, judge, the controller's memory before the attempt, and what of it changes, by names."""
    copies = Trace()

    def closed(function):
        return joined(graph, copies.copy(function))

    if asked.listed:
        count = graph.input("count")
        numbers: Any = (Ends(), count)
        return closed(feedback.propose_listed), closed(feedback.accept_listed), Listed(*numbers), {"count": count}
    if asked.law is None:
        count = graph.input("count")
        numbers = (graph.input("t0"), graph.input("h"), count)
        return closed(feedback.propose_counted), closed(feedback.accept_finite), Counted(*numbers), {"count": count}
    atol = asked.tolerance(graph)
    largest = graph.input("largest") if asked.limited else math.inf
    settings = controllers.settings_of(asked.law, asked.method.error_order, graph.input("rtol"), atol, largest)
    wanted = {name: graph.input(name) for name in remembered(asked)}
    fields: Any = (wanted.get(name, 0.0) for name in HISTORY)
    power = feedback.power_of_logarithm(closed(powers.exp2))
    limit = feedback.smooth_limiter(closed(powers.arctan)) if asked.law.smooth else feedback.clip
    parts = (closed(controllers.squared_error), closed(powers.log2), closed(power), closed(limit))
    judge = feedback.error_control(*parts, not asked.law.smooth)
    return closed(feedback.propose_next), closed(judge), Memory(settings, History(*fields)), wanted


def remembered(asked: Asked) -> list[str]:
    """The fields of the controller's history that a law uses; where steps are recorded, counts need the last one."""
    assert asked.law is not None
    (_, b2, b3), (a2, a3) = asked.law.b, asked.law.a
    needed = {"next_step": 1, "last_step": a2 or a3, "log_e1": b2 or b3, "log_e2": b3, "log_r1": a3}
    needed |= {"was_rejected": asked.rows or not asked.law.smooth, "error": 1}
    return [name for name, use in needed.items() if use]


def steps_of(asked: Asked, graph: Graph):
    """step, prepare, and what tells whether a linear system was solved, None for explicit methods."""
    if not asked.method.needs_jacobian:
        return joined(graph, asked.method.step_of()), core.slope_alone, None
    step, prepare, is_solved = implicit.step_and_preparation(
        graph, asked.method, lambda t: seen(asked, graph, t), asked.mass
    )

    def checked_step(*given):
        u_new, mean_slope, errors, increments, fsal = step(*given)
        if asked.law is None:  # nothing else is judged of a fixed step
            u_new = implicit.rejected_unless(is_solved(), [u_new])[0]
        return u_new, mean_slope, implicit.rejected_unless(is_solved(), errors), increments, fsal

    return joined(graph, checked_step), prepare, is_solved


def unless_singular(asked: Asked, graph: Graph, status, carried, is_solved):
    """Status and carried values where an attempt ends the run whose factors have failed too often.

    The size of the step is then as before, because it is not to blame.
    """
    if asked.law is None:
        return choose(is_solved, status, int(Status.SINGULAR)), carried
    before = graph.input("unsolved", "l")
    unsolved = choose(is_solved, 0, before + 1)
    singular = unsolved >= FAILURES
    for name in ("next_step", "rejected"):
        was, now = carried[name]
        carried[name] = (was, choose(singular, was, now))
    return choose(singular, int(Status.SINGULAR), status), {**carried, "unsolved": (before, unsolved)}


def squares(method, u, dt, slopes, mean_slope):
    """The squares of SAI and h rho; NaN in place of the second where the method has no twin stages."""
    sai = core.squared(mean_slope) / core.squared(u)
    if method.twin_stages is None:
        return sai, math.nan
    rate = core.twin_rate_of(core.combine, choose, core.squared, method.tableau, method.twin_stages)
    return sai, dt * dt * rate(u, dt, slopes)


def twin_squares(method, u, dt, slopes):
    """Numbers whose ratio is the square of h rho, and whether they tell it."""
    stiff, apart, told = core.twin_squares_of(core.combine, core.squared, method.tableau, method.twin_stages)(
        u, dt, slopes
    )
    return dt * dt * stiff, apart, told


def row_of(asked: Asked, graph: Graph, t, kept) -> list[Node]:
    """What `odelab.engines.rows.Rows` keeps of a step."""
    sai, rho = squares(asked.method, *(kept[name] for name in ("old", "dt", "slopes", "mean_slope")))
    error = kept["memory"].history.error if asked.law is not None else math.nan
    roots = [nodes.one("sqrt", graph_node(graph, x)) for x in (error, sai, rho)]
    return [t, kept["dt"], *roots, *(graph_node(graph, x) for x in kept["new"])]
