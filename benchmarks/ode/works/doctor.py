"""The rows of the page on the doctor: what `ol.diagnose` advises against the measured best method.

The best is found without the doctor: every method of `METHODS` is run at a row of tolerances, and the shortest run
counts that makes the error of the plain call, judged by states that SciPy has computed.
"""

import functools
import statistics
import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

import odelab as ol
from benchmarks.harness.rows import Row, at_most, below
from benchmarks.harness.timing import EQUAL_FACTOR
from benchmarks.ode.literature import literature
from benchmarks.ode.works import equations
from benchmarks.ode.works.auto import TINY
from odelab.doctor.costs import ALIKE, Exactness
from odelab.experiments.clock import interleave, measure

METHODS = (ol.AUTO, ol.DOPRI5, ol.RKF45, ol.BS32, ol.DOP853, ol.RODAS4, ol.RODAS5P, ol.ROS2, ol.ESDIRK43, ol.RKC2)
RTOLS = (1e-4, 1e-6, 1e-8)
FACTORS = 10.0 ** np.arange(2.0, -4.1, -0.5)  # of the tolerances at which methods are run
LOOSEST, TIMES, LIMIT = 2e-2, 20, 30.0  # rtol; times that are compared; times the shortest run until a run is given up
SMALL = 128  # components of the problems of the catalogue that are judged
GOOD = 1.3  # times the least cost is a good advice


class Advice(NamedTuple):
    """What the doctor's advice costs over the least cost, its method, the best one, and the error of the advised run
    over that of the plain call."""

    ratio: float
    advised: str
    best: str
    seconds: tuple[float, float]
    error: float


def judge(problem: ol.Problem, rtol: float, atol: float) -> Advice:
    """Compare the doctor's advice with the measured best."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        advised = ol.diagnose(problem, rtol, atol).advice
    exact = Exactness(*reference(problem, rtol, atol), rtol, atol)
    goal = error_of(problem, ol.AUTO, ol.adaptive(rtol, atol), exact)
    runs = [cheapest(problem, method, rtol, atol, exact, goal) for method in METHODS]
    able = [one for one in runs if one is not None]
    first = min(seconds for seconds, *_ in able)
    rivals = [run for seconds, *run in able if seconds <= 3.0 * first]
    error = error_of(problem, advised.method, advised.controller, exact) / goal
    call = (advised.method, advised.controller)
    if error > EQUAL_FACTOR:  # at other times than the doctor's the tolerance was too loose: the method is judged
        call = next((one[1:] for one in able if one[1] is advised.method), call)
    calls = [functools.partial(run_of, problem, *pair) for pair in [call, *rivals]]
    times = [min(sample.processor) for sample in interleave(calls, rounds=15, seconds=5.0)]
    place = int(np.argmin(times[1:]))
    least = min(times)  # the advised run itself may be the shortest
    return Advice(times[0] / least, advised.name, rivals[place][0].name, (times[0], least), error)


def reference(problem: ol.Problem, rtol: float, atol: float) -> tuple[np.ndarray, np.ndarray]:
    """Times, half of them evenly and half by steps, and SciPy's states there."""
    from scipy.integrate import solve_ivp

    steps = np.asarray(ol.solve(problem, ol.AUTO, ol.adaptive(rtol, atol)).step_t)
    spread = np.linspace(0, len(steps) - 1, TIMES // 2 + 1)[1:]
    t = np.unique(np.concatenate([np.linspace(*problem.t_span, TIMES // 2 + 1)[1:], steps[spread.astype(int)]]))

    def slope(t, u):
        return problem.slope(t, u)

    stiff = ol.diagnose(problem, rtol, atol, allowed=0.1).stiff
    found = solve_ivp(
        slope, problem.t_span, problem.u0, method="Radau" if stiff else "DOP853", t_eval=t,
        rtol=max(1e-4 * rtol, 3e-13), atol=1e-5 * atol,
    )  # fmt: skip
    return t, found.y.T


def cheapest(problem, method, rtol: float, atol: float, exact: Exactness, goal: float):
    """(seconds, method, controller) of the shortest run that makes an error, None where there is none."""
    best = None
    for factor in FACTORS[FACTORS * rtol <= LOOSEST]:
        if factor * rtol < method.smallest_rtol:
            continue
        controller = ol.adaptive(factor * rtol, factor * atol)
        limit = 1.0 if best is None else max(0.05, LIMIT * best[0])
        if not run_of(problem, method, controller, time_limit=limit).ok:
            break  # sharper ones take longer still
        if error_of(problem, method, controller, exact) <= ALIKE * goal:
            seconds = min(measure(functools.partial(run_of, problem, method, controller), 1)[1] for _ in range(3))
            if best is not None and seconds > 1.5 * best[0]:
                break
            best = (seconds, method, controller) if best is None or seconds < best[0] else best
    return best


def error_of(problem, method, controller, exact: Exactness) -> float:
    by = "dense" if method in (ol.RKC2,) else "step"
    return exact.error(run_of(problem, method, controller, t_eval=exact.t, t_eval_by=by).u)


def run_of(problem, method, controller, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return ol.solve(problem, method, controller, throw=False, max_steps=10**7, **how)


def judged(found: Iterable[tuple[str, ol.Problem, float]], size: equations.Size) -> Iterable[Row]:
    """A row per problem and tolerance, and one that sums them up."""
    ratios = []
    for name, problem, smallest in list(found)[: 4 if size.quick else None]:
        for rtol in RTOLS[1:2] if size.quick else RTOLS:
            one = judge(problem, rtol, 1e-3 * rtol * smallest)
            ratios.append(one.ratio)
            ours, theirs = (1e3 * seconds for seconds in one.seconds)
            note = f"advised {one.advised}, error {one.error:.2g} times that of the plain call"
            work, goal = f"{name}, {rtol:g}", at_most(GOOD)
            yield Row(work, "the advised call", one.best, ours, theirs, one.ratio, goal=goal, note=note)
    share = 100.0 * statistics.mean(ratio <= GOOD for ratio in ratios)
    yield Row("good advice", "odelab.diagnose", "", share, goal=below(100.0, least=95.0), unit="%")


def catalogue(size: equations.Size) -> Iterable[Row]:
    """The advice on the small problems of the catalogue."""
    found = ((name, factory(), TINY.get(name, 1.0)) for name, factory in ol.problems.catalogue().items())
    yield from judged((one for one in found if one[1].size <= SMALL), size)


def elsewhere(size: equations.Size) -> Iterable[Row]:
    """The advice on thirty problems of the literature that are not in the catalogue."""
    yield from judged(((name, *known) for name, known in literature().items()), size)


SECTIONS: dict[str, Callable[[equations.Size], Iterable[Row]]] = {
    section.__name__: section for section in (elsewhere, catalogue)
}
