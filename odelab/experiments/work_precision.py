"""Work and precision: what an error costs, in evaluations and in time."""

import dataclasses
import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from odelab._solve import solve
from odelab.control.controllers import adaptive, fixed
from odelab.engines.implicit import RADAU
from odelab.experiments.observed_order import known_end
from odelab.methods.tableau import Method
from odelab.problem import Problem


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
class WorkPrecision:
    problem: str
    truth: str
    rows: tuple[Work, ...]

    def curves(self) -> dict[tuple[str, str], list[Work]]:
        """The rows of each (method, law), sharpest tolerance last."""
        grouped: dict[tuple[str, str], list[Work]] = {}
        for row in sorted(self.rows, key=lambda row: -row.tolerance):
            grouped.setdefault((row.method, row.law), []).append(row)
        return grouped

    def plot(self, **options):
        from odelab import plot

        return plot.work_precision(self, **options)


def work_precision(
    problem: Problem,
    methods: Iterable,
    rtol: Iterable[float] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    laws: Iterable[str] = ("pi",),
    atol_factor: float = 1e-3,
    h: Iterable[float] | None = None,
    engine: str = "auto",
    repeat: int = 1,
    max_steps: int = 200_000,
) -> WorkPrecision:
    """Run every method with every law at every tolerance; methods without an error estimate take the fixed steps `h`.

    error     ||u - truth|| / ||truth|| at the end of the span; the truth is exact or a reference where the problem has
              one, else a Radau run at rtol 1e-12
    seconds   the best of `repeat` runs, after one that is not counted where the engine compiles
    """
    methods, rtol, laws = several(methods), several(rtol), several(laws)
    truth, whence = best_known_end(problem)
    rows = []
    for method in methods:
        adaptive_method = not isinstance(method, Method) or method.embedded
        if adaptive_method:
            plans = [(law, tol, adaptive(tol, atol_factor * tol, law)) for law in laws for tol in rtol]
        else:
            span = abs(problem.t_span[1] - problem.t_span[0])
            sizes = several(h) if h is not None else span / np.array([100, 200, 400, 800, 1600])
            plans = [("fixed", float(size), fixed(float(size))) for size in sizes]
        for law, tolerance, controller in plans:
            rows.append(measured(problem, method, law, tolerance, controller, truth, engine, repeat, max_steps))
    return WorkPrecision(problem.name, whence, tuple(rows))


def several(given) -> tuple:
    """Many, or one of them."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def measured(problem, method, law, tolerance, controller, truth, engine, repeat, max_steps) -> Work:
    seconds = np.inf
    for _ in range(max(1, repeat) + (repeat > 1)):
        start = time.perf_counter()
        run = solve(problem, method, controller, engine=engine, max_steps=max_steps, throw=False)
        seconds = min(seconds, time.perf_counter() - start)
    error = float(np.linalg.norm(run.step_u[-1] - truth) / np.linalg.norm(truth)) if run.ok else np.inf
    return Work(method.name, law, tolerance, error, run.evaluations, run.steps, run.rejected, seconds, run.status)


def best_known_end(problem: Problem):
    truth = known_end(problem)
    if truth is not None:
        return truth, "exact solution" if problem.exact is not None else "reference value"
    run = solve(problem, RADAU, adaptive(1e-12, 1e-14))
    return run.step_u[-1], "RADAU at rtol 1e-12"
