"""The rows of the page on `ol.AUTO`: against the better of its two methods, in evaluations and in processor time."""

import functools
import math
import statistics
from collections.abc import Callable, Iterable

import numpy as np

import odelab as ol
from benchmarks.harness.rows import Row, at_most
from benchmarks.ode.works import equations
from odelab.experiments.clock import interleave
from odelab.linear.colouring import colour_columns

METHODS = (ol.DOPRI5, ol.RODAS4, ol.AUTO)
RTOL, ATOL = 1e-5, 1e-8  # of `evaluations`
TOLERANCES = (1e-4, 1e-6, 1e-8)  # of `times`; the absolute ones are a thousandth of them
TINY = {"robertson": 1e-3, "e5": 1e-14}  # times smaller still where the smallest components need it
ROUNDS = 40  # of which the shortest counts: on a busy machine nine are too few
SMALL = 24  # components of the problems that `times` runs
STEPS = 8_000  # what takes more of them is no contestant, when evaluations are counted
MANY = 200_000  # the same, when time is measured
FIELDS = 200  # points along each side of the grid
BANDS = ((0.1, 5.0, 20.0), (5.0, 50.0, 50.0), (100.0, 1000.0, 500.0))  # of van der Pol's mu, and the end of the span
MIXED = (0.1, 1000.0, 50.0)
RUNS, BUDGET = 4_000, 20_000  # of an ensemble, and the attempts of a run, after which its method is no contestant


def evaluations(size: equations.Size) -> Iterable[Row]:
    """AUTO over the catalogue against the better of DOPRI5 and RODAS4, in evaluations; the goals are at the end.

    A Jacobian counts as one evaluation per column, or per colour of its columns for systems by lines.
    """
    ratios = []
    for name, factory in list(ol.problems.catalogue().items())[: 5 if size.quick else None]:
        problem = factory()
        explicit, implicit, auto = (work_of(problem, method, ATOL * TINY.get(name, 1.0)) for method in METHODS)
        best = min(explicit, implicit)
        if not best < np.inf:
            continue
        ratios.append(auto / best)
        peer = "DOPRI5" if explicit <= implicit else "RODAS4"
        limit = at_most(1.05 if peer == "DOPRI5" else 1.5)
        yield Row(name, "odelab AUTO", peer, auto, best, auto / best, goal=limit, unit="evaluations")
    yield from summary(ratios, 1.10, 1.5)


def work_of(problem, method, atol: float) -> float:
    """What a run takes in all, in evaluations, infinity where it fails."""
    sol = ol.solve(problem, method, ol.adaptive(RTOL, atol), engine="python", max_steps=STEPS, throw=False)
    columns = problem.size
    if sol.jacobians and problem.form == "in-place" and problem.jacobian is not None:
        columns = len(colour_columns(problem.jacobian(problem.t_span[0], problem.u0, problem.params)).seeds)
    return float(sol.evaluations + sol.jacobians * columns) if sol.ok else np.inf


def times(size: equations.Size) -> Iterable[Row]:
    """AUTO over the small problems of the catalogue at three tolerances, in processor time of later calls."""
    ratios = []
    small = {name: problem for name, problem in problems() if problem.size <= SMALL}
    for rtol in TOLERANCES[1:2] if size.quick else TOLERANCES:
        for name, problem in list(small.items())[: 5 if size.quick else None]:
            control = ol.adaptive(rtol, 1e-3 * rtol * TINY.get(name, 1.0))
            row = timed(f"{name}, {rtol:g}", problem, control, size.seconds / 6.0, at_most(1.15))
            assert row.ratio is not None  # every problem of the catalogue is solved by one of both methods
            ratios.append(row.ratio)
            yield row
    yield from summary(ratios, 1.0, 1.15)


def grid(size: equations.Size) -> Iterable[Row]:
    """Two reacting fields on a grid (Gray and Scott), which linear systems make dear."""
    points = 50 if size.quick else FIELDS
    yield timed(f"two fields, {points} x {points}", fields(points), ol.adaptive(1e-4, 1e-6), 60.0, at_most(1.5), False)


def ensembles(size: equations.Size) -> Iterable[Row]:
    """AUTO in lanes over ranges of van der Pol's mu, against the better of its methods for all runs, and for each."""
    count, seconds = RUNS // 10 if size.quick else RUNS, size.seconds / 2.0
    for first, last, end in (*BANDS, MIXED):
        rates = np.exp(np.random.default_rng(0).uniform(math.log(first), math.log(last), count))
        calls = [functools.partial(lanes, method, rates, end) for method in METHODS]
        able = [call for call in calls if call().ok]
        times = processor_times(able, seconds)
        ours, (theirs, best) = times[-1], min(zip(times, able[:-1], strict=False), key=lambda pair: pair[0])
        work, limit = (
            f"{count} runs, mu {first:g} to {last:g}, t = {end:g}",
            0.9 if (first, last, end) == MIXED else 1.15,
        )
        peer = best.args[0].name
        yield Row(work, "odelab AUTO", peer, 1e3 * ours, 1e3 * theirs, ours / theirs, goal=at_most(limit))
    ours, *parts = processor_times([able[-1], *shared(rates, end, seconds)], seconds)
    theirs = sum(parts)
    yield Row(work, "odelab AUTO", "each run's better", 1e3 * ours, 1e3 * theirs, ours / theirs, goal=at_most(0.9))


def lanes(method, rates, end: float):
    problem = ol.problems.van_der_pol().replace(t_span=(0.0, end))
    return ol.ensemble(problem, method, ol.adaptive(1e-6, 1e-9), params=rates[:, None], threads=1, max_steps=BUDGET)


def processor_times(calls, seconds: float) -> list[float]:
    return [min(sample.processor) for sample in interleave(calls, seconds=seconds)]


def shared(rates, end: float, seconds: float) -> list[Callable]:
    """Two calls that share the runs: each run goes by the method that is cheaper for it, at the costs of an attempt."""
    costs = []
    for method in METHODS[:2]:
        runs = lanes(method, rates, end)
        attempts, able = runs.steps + runs.rejected, runs.status == "ok"
        (time,) = processor_times([functools.partial(lanes, method, rates[able], end)], seconds)
        costs.append(np.where(able, time / attempts[able].sum() * attempts, np.inf))
    explicit = costs[0] <= costs[1]
    return [
        functools.partial(lanes, *one, end) for one in zip(METHODS, (rates[explicit], rates[~explicit]), strict=False)
    ]


def problems() -> list:
    return [(name, factory()) for name, factory in ol.problems.catalogue().items()]


def timed(work: str, problem, control, seconds: float, goal, implicit: bool = True) -> Row:
    """A row for AUTO and the better of its methods; without the implicit one where that would take hours."""
    methods = METHODS if implicit else (ol.DOPRI5, ol.AUTO)
    able = [method for method in methods if run(problem, method, control).ok]
    calls = [functools.partial(run, problem, one, control) for one in able]
    samples = interleave(calls, rounds=ROUNDS, seconds=seconds)
    found = {one.name: min(sample.processor) for one, sample in zip(able, samples, strict=True)}
    ours = found.pop(ol.AUTO.name)
    peer, theirs = min(found.items(), key=lambda item: item[1])
    return Row(work, "odelab AUTO", peer, 1e3 * ours, 1e3 * theirs, ours / theirs, goal=goal)


def run(problem, method, control):
    return ol.solve(problem, method, control, max_steps=MANY, throw=False, dense=problem.size <= SMALL)


def fields(points: int, feed: float = 0.04, kill: float = 0.06):
    """The model of Gray and Scott on a torus, from a square in the middle and some noise."""

    def spread(field):
        sides = np.roll(field, 1, 0) + np.roll(field, -1, 0) + np.roll(field, 1, 1) + np.roll(field, -1, 1)
        return sides - 4.0 * field

    def reaction(t, u, params):
        a, b = u.reshape(2, points, points)
        rate = a * b * b
        da = 0.16 * spread(a) - rate + feed * (1.0 - a)
        db = 0.08 * spread(b) + rate - (feed + kill) * b
        return np.concatenate([da.ravel(), db.ravel()])

    start = 0.01 * np.random.default_rng(0).random((2, points, points))
    start[0] += 1.0
    middle = slice(2 * points // 5, 3 * points // 5)
    start[:, middle, middle] += np.array([-0.5, 0.25])[:, None, None]
    return ol.Problem(reaction, start.ravel(), (0.0, 1000.0), name="fields")


def summary(ratios: list[float], middle: float, worst: float) -> Iterable[Row]:
    """The rows of the median and of the worst, with their goals."""
    for word, found, limit in (("median", statistics.median(ratios), middle), ("worst", max(ratios), worst)):
        assert math.isfinite(found)
        yield Row(f"{word} of all", "odelab AUTO", "the better", found, 1.0, found, goal=at_most(limit), unit="")


SECTIONS: dict[str, Callable[[equations.Size], Iterable[Row]]] = {
    section.__name__: section for section in (evaluations, times, ensembles, grid)
}
