"""The rows of the page on stiff problems, section by section: who is set against whom, and the goal."""

import functools
import statistics
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import odelab as ol
from benchmarks.harness.rows import Goal, Row, at_least, at_most, below
from benchmarks.harness.timing import Contestant, check
from benchmarks.ode import cases, contestants, stiff_c, stiff_cases
from benchmarks.ode.peers import peer
from benchmarks.ode.reference_c import NoCompiler
from benchmarks.ode.works import equations

METHODS = ("RODAS4", "RODAS5P")


def ours(case: stiff_cases.Stiff, method: str, rtol: float, law: str | None = None, first_step=None) -> Contestant:
    """One run through `ol.solve`; `fixed` is what a call costs whatever it solves."""
    control = ol.adaptive(rtol, rtol * case.atol, law=law, first_step=first_step)

    def solve(problem):
        return ol.solve(problem, getattr(ol, method), control, engine="compiled", max_steps=contestants.MANY).u[-1]

    nothing = case.problem.replace(t_span=(0.0, contestants.NEXT_TO_NOTHING))
    start = functools.partial(solve, nothing)
    return Contestant(f"odelab {method}", lambda: solve(case.problem), case.error, warm=start, fixed=start)


def through_the_door(contestant: Contestant) -> Contestant:
    """The whole call, with what it costs before it solves anything."""
    return contestant._replace(fixed=None)


def in_c(case: stiff_cases.Stiff, method: str, rtol: float, cvode: bool = False) -> Contestant:
    """The same method in C, or CVODE."""
    label = "CVODE in C" if cvode else f"scalar C {method}"
    problem = case.problem
    try:
        run = stiff_c.runs(
            case.key, problem, getattr(ol, method), problem.u0, problem.params, rtol, rtol * case.atol,
            stiff_cases.FIRST_STEP, cvode,
        )  # fmt: skip
    except (NoCompiler, OSError) as reason:
        return contestants.absent(label, str(reason))
    return Contestant(label, lambda: run().u[0], case.error)


def library(case: stiff_cases.Stiff, name: str, method: str, rtol: float) -> Contestant:
    """A library's own stiff method."""
    label = f"{name} {method}"
    try:
        run = peer(name).single(case.problem, rtol, rtol * case.atol, method=method)
    except ImportError:
        return contestants.absent(label, "not installed")
    return Contestant(label, run, case.error)


def coarsest(build: Callable[[float], Contestant], wanted: float) -> Contestant:
    """With the largest tolerance whose error is as small as is wanted."""
    return contestants.coarsest(build, wanted, contestants.SHARP)


def best(case: stiff_cases.Stiff, wanted: float, methods=METHODS) -> Contestant:
    """The cheaper of our methods for an error."""
    return min((coarsest(functools.partial(ours, case, method), wanted) for method in methods), key=contestants.seconds)


def compare(size: equations.Size, *arguments, **options) -> list[Row]:
    return size.compare(*arguments, **{"seconds": 0.25 * size.seconds, **options})


def kernels(size: equations.Size) -> Iterable[Row]:
    """One run against scalar C of the same method, law and tolerance; the fixed cost of a call is taken off."""
    for case in stiff_cases.singles(size.quick):
        for method in METHODS:
            mine = ours(case, method, 1e-6, "i", stiff_cases.FIRST_STEP)
            goal = at_most(1.15 if case.problem.size <= 8 else 1.25)
            theirs = {in_c(case, method, 1e-6): goal}
            yield from compare(size, f"{case.label}, {method}", mine, theirs, allowed=1e-2, equal=float("inf"))


def fixed(size: equations.Size) -> Iterable[Row]:
    """What a call of `ol.solve` costs before it solves anything."""
    for case in stiff_cases.singles(size.quick)[:2]:
        start = Contestant("odelab", ours(case, "RODAS4", 1e-6).fixed, warm=ours(case, "RODAS4", 1e-6).fixed)
        yield from compare(size, f"fixed cost of a call, {case.key}", start, {equations.NOBODY: below(45.0)}, unit="us")


def cvode(size: equations.Size) -> Iterable[Row]:
    """Against CVODE in C (BDF, dense, exact Jacobian) at equal error: through `ol.solve`, and the kernel's time."""
    for case in stiff_cases.singles(size.quick):
        for wanted, goal in ((1e-4, 7.0),) if size.quick else ((1e-4, 7.0), (1e-6, 10.0)):
            mine = best(case, wanted)
            theirs = coarsest(functools.partial(in_c, case, "RODAS4", cvode=True), wanted)
            label = f"{case.label}, error {wanted:.0e}"
            both = ((label, through_the_door(mine), goal), (f"{label}, kernel time", mine, 20.0))
            for title, one, limit in both:
                options = {"allowed": wanted, "equal": float("inf"), "unit": "us"}
                yield from compare(size, title, one, {theirs: at_least(limit)}, **options)


LIBRARIES = (
    ("scipy", "Radau", 200.0),
    ("scipy", "BDF", None),
    ("scipy", "LSODA", None),
    ("sundae", "BDF", 80.0),
    ("diffsol", "bdf", None),
    ("diffsol", "esdirk34", None),
    ("cyrk", "LSODA", None),
    ("cyrk", "RADAU", None),
    ("diffrax", "Kvaerno5", 20.0),
    ("numbalsoda", "lsoda", 2.0),
)


def libraries(size: equations.Size) -> Iterable[Row]:
    """Against other libraries at an error of 1e-5, every call with its fixed cost; the goals are for the medians."""
    ratios: dict[int, list[float]] = {}
    for case in stiff_cases.singles(size.quick):
        mine = through_the_door(best(case, 1e-5))
        for number, (name, method, _) in enumerate(LIBRARIES):
            theirs = coarsest(functools.partial(library, case, name, method), 1e-5)
            for row in compare(
                size, f"{case.label}, error 1e-05", mine, {theirs: None}, allowed=1e-5, equal=float("inf"), rounds=5
            ):
                if row.ratio is not None:
                    ratios.setdefault(number, []).append(row.ratio)
                yield row
    for number, found in ratios.items():
        name, method, goal = LIBRARIES[number]
        if goal:
            middle, limit = statistics.median(found), at_least(goal)
            yield Row("median of the above", "odelab", f"{name} {method}", middle, 1.0, middle, goal=limit, unit="")


def algebraic(size: equations.Size) -> Iterable[Row]:
    """Robertson's reactions with an algebraic equation, at equal error, every call with its fixed cost."""
    case = stiff_cases.stiff("Robertson with an algebraic equation, to 1e5", "robertson_dae", 1e5, 1e-4)
    for wanted in (1e-4,) if size.quick else (1e-4, 1e-6):
        mine = through_the_door(best(case, wanted))
        for name, method in (("sundae", "BDF"), ("diffsol", "bdf")):
            theirs = coarsest(functools.partial(library, case, name, method), wanted)
            yield from compare(
                size, f"{case.label}, error {wanted:.0e}", mine, {theirs: at_least(1.0)}, allowed=wanted,
                equal=float("inf"), rounds=5,
            )  # fmt: skip


def ensembles(size: equations.Size) -> Iterable[Row]:
    """Many runs in lanes on one thread, against scalar C of the same method, and against CVODE in a C loop."""
    for case, goal in stiff_cases.ensembles(size.runs):
        for method in METHODS[:1]:
            control = ol.adaptive(case.rtol, case.atol, law="i", first_step=case.first_step)

            def run(rows=slice(None), case=case, method=method, control=control):
                options = {"u0": case.u0[rows], "params": case.params[rows], "threads": 1, "engine": "compiled"}
                return ol.ensemble(case.problem, getattr(ol, method), control, **options).u

            mine = Contestant(f"odelab {method}", run, case.error, warm=functools.partial(run, slice(64)))
            others: dict[Contestant, Goal | None] = {ensemble_in_c(case, method): at_least(goal)}
            limit = at_least(150.0) if case.key == "robertson" else None
            others[ensemble_in_c(case, method, cvode=True)] = limit
            yield from compare(size, case.label, mine, others, allowed=case.allowed, equal=float("inf"))


def ensemble_in_c(case: cases.Ensemble, method: str, cvode: bool = False) -> Contestant:
    """One run after the other in C; of CVODE a twentieth of them, scaled up."""
    some = case.part(20 if cvode else 1)
    label = f"CVODE in a C loop ({len(some.u0)} runs, scaled)" if cvode else f"scalar C {method}"
    try:
        run = stiff_c.runs(
            some.key, some.problem, getattr(ol, method), some.u0, some.params, some.rtol, some.atol, some.first_step,
            cvode,
        )  # fmt: skip
    except (NoCompiler, OSError) as reason:
        return contestants.absent(label, str(reason))
    return Contestant(label, lambda: run().u, some.error, per=len(some.u0) / len(case.u0))


def lines(size: equations.Size) -> Iterable[Row]:
    """The Brusselator by lines at an error of 1e-4: against SciPy's BDF with the exact sparse Jacobian, and RKC2.

    It is written as a loop, and then in arithmetic of whole arrays, without a Jacobian, which runs in plain Python.
    """
    for points, end in ((100, 1.0),) if size.quick else ((2000, 1.0), (2000, 10.0)):
        case, wanted = cases.brusselator(points, end), 1e-4
        mine = coarsest_on_lines(case, wanted, "compiled")
        bdf = equations.coarsest_bdf(case, "jac", wanted)
        others = {bdf: at_least(6), equations.our_coarsest(case, "RKC2", wanted): None}
        if end > 1.0:
            others = dict(zip(others, (at_least(6), at_least(3)), strict=True))
        title = f"{equations.grid_label(case)} to 1e-4"
        yield from compare(size, title, mine, others, allowed=wanted, equal=float("inf"), rounds=5)
        problem = case.problem
        rhs: Any = problem.rhs
        arrays = ol.Problem(rhs.array_form, problem.u0, problem.t_span, problem.params)
        whole = coarsest_on_lines(case._replace(problem=arrays), wanted, "python")
        title = f"{title}, whole arrays in plain Python"
        yield from compare(size, title, whole, {bdf: None, mine: None}, allowed=wanted, equal=float("inf"), rounds=5)


def coarsest_on_lines(case: cases.Grid, wanted: float, engine: str) -> Contestant:
    """The faster of both methods, each with the largest tolerance that meets an error."""

    def build(rtol: float, method: str) -> Contestant:
        return contestants.our_grid(case, method, rtol, law="pc11", engine=engine)

    found = [contestants.coarsest(functools.partial(build, method=method), wanted) for method in METHODS]
    return min(found, key=contestants.seconds)


def proportion(size: equations.Size) -> Iterable[Row]:
    """Do errors follow the tolerance? The slope of log error over log rtol, 1e-3 to 1e-10, and the scatter about it.

    The scatter is the root mean square, in decades. E5 goes to 1e-7: its published data have no more digits.
    """
    for case in stiff_cases.singles(size.quick):
        rtols = 10.0 ** -np.arange(3.0, 7.1 if case.key == "e5" else 10.1, 0.5)
        for method in METHODS:
            errors = [error_of(ours(case, method, rtol)) for rtol in rtols.tolist()]
            slope, scatter = line_through(np.log10(rtols), np.log10(errors))
            label = f"odelab {method}"
            yield Row(f"{case.label}, slope", label, "", slope, goal=below(1.15, least=0.75), unit="")
            yield Row(f"{case.label}, scatter", label, "", scatter, goal=below(0.4), unit="decades")


def error_of(contestant: Contestant) -> float:
    """The error of one run; a run that fails ends the benchmark."""
    found = check(contestant)
    if found.error is None:
        raise RuntimeError(f"{contestant.name}: {found.failure}")
    return found.error


def line_through(x, y) -> tuple[float, float]:
    """The slope of the line nearest to some points, and the root mean square of their distances from it."""
    slope, offset = np.polyfit(x, y, 1)
    return float(slope), float(np.sqrt(np.mean((y - slope * x - offset) ** 2)))


SECTIONS: dict[str, Callable[[equations.Size], Iterable[Row]]] = {
    section.__name__: section for section in (kernels, fixed, cvode, libraries, algebraic, ensembles, lines, proportion)
}
