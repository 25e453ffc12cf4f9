"""Work-precision tables and curves: what an error costs, in evaluations of the right-hand side and in time."""

import dataclasses
import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from odelab._solve import solve
from odelab.control.controllers import adaptive, fixed
from odelab.control.laws import Law
from odelab.engines.implicit import RADAU
from odelab.experiments.comparisons import cost_at_error
from odelab.experiments.observed_order import known_end
from odelab.methods.implicit import RODAS5P
from odelab.problem import Problem
from odelab.results import Result


class Work(NamedTuple):
    """One run: how exact it was and what it cost. A failed run has an infinite error and its status."""

    method: str
    law: str
    tolerance: float
    error: float
    evaluations: int
    steps: int
    rejected: int
    seconds: float
    status: str


@dataclasses.dataclass(frozen=True)
class WorkPrecision(Result, kinds={"costs": "odelab.plot.cost:work_precision", "cost": "odelab.plot.cost:draw_cost"}):
    """Errors and costs of methods, laws and tolerances on one problem, as `odelab.work_precision` returns them.

    problem  the name of the problem
    truth    what errors are measured against: "exact solution", "reference value", "RADAU at rtol 1e-12", or with a
             mass matrix "RODAS5P at rtol 1e-12"
    rows     one `Work` per run: method, law, tolerance, error, evaluations, steps, rejected, seconds, status

    `print` shows a table, `curves()` groups the rows, `cost(error)` reads the cost of an error off each curve, `plot()`
    draws them.
    """

    problem: str
    truth: str
    rows: tuple[Work, ...]

    def curves(self) -> dict[tuple[str, str], list[Work]]:
        """The rows of each (method, law), sharpest tolerance last."""
        grouped: dict[tuple[str, str], list[Work]] = {}
        for row in sorted(self.rows, key=lambda row: -row.tolerance):
            grouped.setdefault((row.method, row.law), []).append(row)
        return grouped

    def __str__(self):
        columns = ("method", "law", "tolerance", "error", "evaluations", "steps", "rejected", "seconds", "status")
        table = [columns, *([cell_text(getattr(row, name)) for name in columns] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table)
        return "\n".join([f"{self.problem}, errors against the {self.truth}", *lines])

    def cost(self, error: float, of: str = "evaluations") -> dict[tuple[str, str], float]:
        """What a relative error costs each (method, law), by interpolation on logarithmic axes.

        error  the error asked about
        of     "evaluations", "steps" or "seconds"

        Returns {(method, law): cost}; NaN where a curve does not reach the error on both sides.
        """
        if of not in ("evaluations", "steps", "seconds"):
            raise ValueError(f'`of` must be "evaluations", "steps" or "seconds", got {of!r}.')
        return {
            name: float(cost_at_error([row.error for row in rows], [getattr(row, of) for row in rows], error))
            for name, rows in self.curves().items()
        }

    def table(self):
        """A row per run."""
        return {name: [getattr(row, name) for row in self.rows] for name in Work._fields}


def work_precision(
    problem: Problem,
    methods: Iterable,
    rtol: Iterable[float] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    laws: Iterable[str | Law] | str | Law | None = None,
    atol_factor: float = 1e-3,
    h: Iterable[float] | None = None,
    engine: str = "auto",
    repeat: int = 1,
    max_steps: int = 200_000,
) -> WorkPrecision:
    """Run every method with every law at every tolerance, and record the error and the cost of each run.

    problem      the Problem; errors are ||u - truth|| / ||truth|| at the end of its span, where the truth is its exact
                 solution, its reference value, or else a run at rtol 1e-12, by RADAU or, with a mass matrix, RODAS5P
    methods      one method or several; those without an error estimate (EULER, RK4) take the fixed steps `h`
    rtol         relative tolerances, sharpest last or in any order
    laws         one law of step-size control or several, each a name or an `odelab.Law` as `odelab.adaptive` takes it.
                 None, the default, is the usual law of each method; RADAU, BDF, LSODA and AUTO have laws of their own,
                 whose name is empty in the table
    atol_factor  atol = atol_factor * rtol; 1e-3
    h            fixed step sizes of methods without an estimate; by default the span over 100, 200, 400, 800 and 1600
    engine       "auto", "python" or "compiled", as in `odelab.solve`
    repeat       runs that are timed; `seconds` is the shortest. One more goes before and is not counted where there are
                 several or a kernel may have been compiled
    max_steps    attempts after which a run is given up; its error is then infinite and its status "max_steps"

    Returns a WorkPrecision.

    >>> import odelab as ol
    >>> problem = ol.problems.rigid_body().replace(t_span=(0.0, 5.0))
    >>> table = ol.work_precision(problem, [ol.DOPRI5, ol.BS32], rtol=(1e-3, 1e-5, 1e-7), engine="python")
    >>> [(row.method, row.tolerance, row.status) for row in table.rows][-1]
    ('BS32', 1e-07, 'ok')
    >>> cost = table.cost(1e-5)
    >>> cost["DOPRI5", "pi42"] < cost["BS32", "pi42"]
    True
    """
    methods, rtol = as_tuple(methods), as_tuple(rtol)
    laws = laws if laws is None else (laws,) if isinstance(laws, Law) else as_tuple(laws)
    truth, whence = best_known_end(problem)
    rows = []
    for method in methods:
        if method.embedded:
            plans = [
                (name, tol, adaptive(tol, atol_factor * tol, law))
                for name, law in named_laws(laws, method).items()
                for tol in rtol
            ]
        else:
            span = abs(problem.t_span[1] - problem.t_span[0])
            sizes = as_tuple(h) if h is not None else span / np.array([100, 200, 400, 800, 1600])
            plans = [("fixed", float(size), fixed(float(size))) for size in sizes]
        measured = {}
        for law, tolerance, controller in sorted(
            plans, key=lambda plan: plan[1]
        ):  # the kernel of a long run serves all
            measured[law, tolerance] = measure(
                problem, method, law, tolerance, controller, truth, engine, repeat, max_steps
            )
        rows += [measured[law, tolerance] for law, tolerance, _ in plans]
    return WorkPrecision(problem.name, whence, tuple(rows))


def cell_text(value) -> str:
    """A number of a table with three digits, anything else as it is."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def named_laws(laws, method) -> dict:
    """The laws to run a method with, under the names that rows and legends give them."""
    if laws is None:
        return {method.law or "": None}
    return {law.name if isinstance(law, Law) else law: law for law in laws}


def as_tuple(given) -> tuple:
    """A tuple of what is given, be it one value or several."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def measure(problem, method, law, tolerance, controller, truth, engine, repeat, max_steps) -> Work:
    seconds, again = np.inf, max(1, repeat)
    while again:
        start = time.perf_counter()
        run = solve(problem, method, controller, engine=engine, max_steps=max_steps, throw=False)
        again -= seconds < np.inf or not (repeat > 1 or run.engine == "compiled")
        seconds = min(seconds, time.perf_counter() - start)
    error = float(np.linalg.norm(run.step_u[-1] - truth) / np.linalg.norm(truth)) if run.ok else np.inf
    return Work(method.name, law, tolerance, error, run.evaluations, run.steps, run.rejected, seconds, run.status)


def best_known_end(problem: Problem):
    truth = known_end(problem)
    if truth is not None:
        return truth, "exact solution" if problem.exact is not None else "reference value"
    method = RADAU if problem.mass is None else RODAS5P
    return solve(problem, method, adaptive(1e-12, 1e-14)).step_u[-1], f"{method.name} at rtol 1e-12"
