"""Plain Python with the bits of the kernels: the operations of the right-hand side one by one, in their own order."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from odelab import elementary
from odelab.engines.python import PythonEngine
from odelab.graph.derivatives import derivatives
from odelab.graph.evaluation import evaluate
from odelab.graph.nodes import Node
from odelab.kernels import store
from odelab.kernels.implicit import Factors, Nothing, rejected_unless
from odelab.kernels.store import Traced
from odelab.methods.interface import StepMethod, Stepper
from odelab.problem import Problem, array_form


@dataclasses.dataclass
class ExactEngine(PythonEngine):
    """Runs a problem in plain Python whose every bit is that of a kernel without contraction."""

    def __post_init__(self):
        super().__post_init__()
        self.rhs = slopes_of(self.problem)
        if self.method.needs_jacobian:
            self.stepper = stepper_of(self.method, store.slopes_of(self.problem), self.problem)
        if self.project is not None:
            projected = values_of(store.projection_of(self.project, self.problem.size), None)
            self.after = lambda u: projected(math.nan, u, ())


def slopes_of(problem: Problem) -> Callable:
    """The right-hand side of a problem, with the bits of the kernels."""
    return values_of(store.slopes_of(problem), array_form(problem), problem.seen)


def values_of(traced: Traced, plain: Callable | None, seen: Callable = float) -> Callable:
    """The operations of a function of (t, u, params), carried out by NumPy with odelab's own elementary functions.

    plain    the function itself, which is called where it raises an error, to raise it
    seen     seen(t): the time that it is shown at time t
    """
    graph, count = traced.recorded.graph, len(traced.recorded.outputs)
    known = dict(zip(traced.parameters.names, traced.parameters.values, strict=True))

    def values(t, u, params):
        inputs = {"t": seen(t), **known, **{f"u{i}": x for i, x in enumerate(u.tolist())}}
        found = evaluate(graph, [*traced.recorded.outputs, *graph.raised], inputs, elementary.of_floats)
        if plain is not None and any(found[count:]):
            plain(t, u, params)
        return np.array(found[:count], dtype=float)

    return values


class Counts:
    """What linear systems have cost, as `odelab.linear.linearisation.Linearisation` counts it."""

    how = "exact Jacobian, eliminated straight through"
    own = None  # no Jacobian of the problem's takes part

    def __init__(self):
        self.jacobians = self.factorisations = self.evaluations = 0


def stepper_of(method: StepMethod, slopes: Traced, problem: Problem) -> Stepper:
    """The step of a linearly implicit method by the elimination of the kernels."""
    graph, counts, made, n = slopes.recorded.graph, Counts(), [], problem.size
    at: list = [None, None, None]  # t, u and the derivatives there, which rejected attempts ask for again
    inputs = [graph.input(name) for name in (*(f"u{i}" for i in range(n)), "t")]
    rows = derivatives(graph, slopes.recorded.outputs, inputs)
    entries = [(i, j) for i, row in enumerate(rows) for j in row]
    nodes = [x if isinstance(x, Node) else graph.constant(float(x)) for row in rows for x in row.values()]
    known = dict(zip(slopes.parameters.names, slopes.parameters.values, strict=True))

    def prepare(t, u, slope, params):
        if at[0] != t or at[1] is not u:
            at[:] = t, u, derivatives_at(t, u)
            counts.jacobians += 1
        return slope, *at[2]

    def derivatives_at(t, u):
        inputs = {"t": problem.seen(t), **known, **{f"u{i}": x for i, x in enumerate(u.tolist())}}
        found = [float(x) for x in evaluate(graph, nodes, inputs, elementary.of_floats)]
        J: list[dict] = [{} for _ in range(n)]
        for (i, j), value in zip(entries, found, strict=True):
            J[i][j] = value
        by_time = [row.pop(n, 0.0) for row in J]
        depends_on_time = any(isinstance(row.get(n), Node) for row in rows)
        return J, np.array(by_time) if depends_on_time else Nothing()

    def factor(J, hg):
        counts.factorisations += 1
        made.append(Factors(J, hg))
        return made[-1]

    def substitute(factors, right):
        return np.array(factors.solve(right), dtype=float)

    one_step = method.step_of(factor, substitute)

    def step(*given):
        made.clear()
        u_new, mean_slope, errors, increments, fsal = one_step(*given)
        return u_new, mean_slope, rejected_unless(made[-1].sound, errors), increments, fsal

    return Stepper(step, prepare, counts)
