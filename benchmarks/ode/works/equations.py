"""The rows of the benchmark page, section by section: who is set against whom, and the goal."""

import statistics
from collections.abc import Callable, Iterable
from typing import NamedTuple

from benchmarks.harness.rows import Goal, Row, at_least, at_most, below
from benchmarks.harness.timing import Contestant, compare
from benchmarks.ode import cases, contestants, fresh

NOBODY = Contestant("", None)


class Size(NamedTuple):
    """How much of the page: all of it, or a quick look."""

    quick: bool = False

    @property
    def seconds(self) -> float:
        return 2.0 if self.quick else 60.0  # for the rounds of one comparison

    @property
    def runs(self) -> int:
        return 1_000 if self.quick else 10_000

    def compare(self, work, ours, peers, **options) -> list[Row]:
        return compare(work, ours, peers, **{"seconds": self.seconds, "clock": "processor", **options})


def single(size: Size) -> Iterable[Row]:
    """Single runs against scalar C, the fixed cost of a call taken off both sides."""
    against_c = []
    for case in cases.singles():
        for method in ("DOPRI5",) if size.quick else ("DOPRI5", "RKF45"):
            rows = size.compare(
                f"{case.label}, {method}", contestants.our_single(case, method),
                {contestants.c_single(case, method): at_most(1.10)}, allowed=case.allowed, luck=case.luck,
            )  # fmt: skip
            against_c += rows
            yield from rows
    known = [row.ratio for row in against_c if row.ratio is not None]
    if known:
        middle = statistics.median(known)
        yield Row("single runs, median", "odelab", "scalar C", middle, 1.0, middle, goal=at_most(1.05), unit="")


def fixed(size: Size) -> Iterable[Row]:
    """What a call costs before it solves anything."""
    for case in cases.singles(quick=True)[:2]:
        single = contestants.our_single(case)
        ours = Contestant("odelab", single.fixed, warm=single.run)  # after a run that is long enough to be compiled
        yield from size.compare(f"fixed cost of a call, {case.key}", ours, {NOBODY: below(40.0)}, unit="us")


def peers(size: Size) -> Iterable[Row]:
    """The three named single runs against the other libraries, every call with its fixed cost."""
    goals = {"scipy": at_least(350), "diffrax": at_least(5), "torchdiffeq": at_least(5000), "cyrk": None}
    for case in cases.singles(size.quick)[:3]:
        others = {contestants.peer_single(name, case): goal for name, goal in goals.items()}
        ours = contestants.our_single(case)._replace(fixed=None)
        yield from size.compare(case.label, ours, others, allowed=case.allowed, luck=case.luck)


def ensemble(size: Size) -> Iterable[Row]:
    """10,000 van der Pol against everyone."""
    case = cases.ensembles(size.runs)[0]
    others = {
        contestants.c_lanes(case): at_most(1.15),
        contestants.c_ensemble(case): at_least(12),
        contestants.peer_ensemble("diffrax", case): at_least(35),
        contestants.peer_ensemble("numbalsoda", case): at_least(25),
        contestants.peer_ensemble("torchode", case): at_least(40),
        contestants.peer_ensemble("scipy", case, every=size.runs // 50): at_least(5000),
    }
    yield from size.compare(case.label, contestants.our_ensemble(case), others, allowed=case.allowed)


def ensembles(size: Size) -> Iterable[Row]:
    """Other right-hand sides: larger ones, one with exp and sin, one with a branch."""
    for case in cases.ensembles(size.runs)[1:]:
        goal = at_most(1.10) if case.key in ("morse", "two_springs") else at_least(4)
        others: dict[Contestant, Goal | None] = {contestants.c_ensemble(case): goal}
        if not size.quick and case.key in ("lorenz", "hires"):
            others |= {contestants.peer_ensemble(name, case): None for name in ("diffrax", "numbalsoda", "torchode")}
        yield from size.compare(case.label, contestants.our_ensemble(case), others, allowed=case.allowed)


def sharp(size: Size) -> Iterable[Row]:
    """Many runs at small errors, everyone at the coarsest tolerance that makes them, on one thread.

    Against Taylor series in SIMD batches, and C++ called in a compiled loop.
    """
    for number in (0, 1):
        case = cases.exactly(cases.ensembles(size.runs)[number], size.runs // 20)
        for wanted in (1e-6,) if size.quick else (1e-6, 1e-9, 1e-11):
            mine = [
                coarsest_of(case, wanted, contestants.our_ensemble, method=name, label=f"odelab {name}")
                for name in ("DOPRI5", "DOP853")
            ]
            ours = min(mine, key=contestants.seconds)
            heyoka = coarsest_of(case, wanted, contestants.peer_ensemble, "heyoka")
            cyrk = coarsest_of(case, wanted, contestants.peer_ensemble, "cyrk", method="DOP853")
            work, others = f"{case.label}, error {wanted:.0e}", {heyoka: at_least(1.0), cyrk: None}
            yield from size.compare(work, ours, others, allowed=wanted, equal=float("inf"), rounds=5)


def coarsest_of(case: cases.Ensemble, wanted: float, build: Callable, *options, **named) -> Contestant:
    """An ensemble by one library and method, with the largest tolerance that makes an error."""

    def at(rtol: float) -> Contestant:
        return build(*options, case=case._replace(rtol=rtol, atol=rtol), **named)

    return contestants.coarsest(at, wanted, contestants.SHARP)


def threads(size: Size) -> Iterable[Row]:
    """Two threads against one, on the wall clock; in ten times the runs, starting a thread is no part of it."""
    for times in (1, 10):
        case = cases.ensembles(times * size.runs)[0]
        one = contestants.our_ensemble(case)._replace(name="odelab, 1 thread")
        two = contestants.our_ensemble(case, threads=2)
        yield from size.compare(case.label, two, {one: at_least(1.8)}, allowed=case.allowed, clock="wall")


def large(size: Size) -> Iterable[Row]:
    """The Brusselator with diffusion: n equations on n/2 grid points; DOPRI5 at the same tolerance as C."""
    for points, end, with_goal in grids(size):
        case, rtol, first = cases.brusselator(points, end), 1e-6, 1e-6
        ours = contestants.our_grid(case, "DOPRI5", rtol, first)
        others = {contestants.c_grid(case, rtol, first): at_most(1.10) if with_goal else None}
        yield from size.compare(grid_label(case), ours, others, allowed=1e-3)


def rkc(size: Size) -> Iterable[Row]:
    """RKC2 at error 1e-4, everyone at the coarsest tolerance that reaches it; t = 10 is the problem's own span."""
    for points, end, with_goal in ((100, 0.5, False), (200, 0.1, False)) if size.quick else RKC_GRIDS:
        case, wanted = cases.brusselator(points, end), 1e-4
        ours = our_coarsest(case, "RKC2", wanted)
        others: dict[Contestant, Goal | None] = {
            coarsest_bdf(case, "jac_sparsity", wanted): at_least(5),
            coarsest_bdf(case, "jac", wanted): at_least(5),
        }
        if end < 1.0:  # later on DOPRI5 only takes longer: 20 s to t = 10
            others[our_coarsest(case, "DOPRI5", wanted)] = at_least(60)
        if not with_goal:
            others = dict.fromkeys(others)
        yield from size.compare(f"{grid_label(case)} to 1e-4", ours, others, allowed=wanted, equal=float("inf"))


RKC_GRIDS = ((500, 0.5, False), (2000, 0.1, True), (2000, 1.0, True), (2000, 10.0, True))


def coarsest_bdf(case: cases.Grid, told: str, wanted: float) -> Contestant:
    return contestants.coarsest(lambda rtol: contestants.scipy_bdf(case, rtol, told), wanted)


def our_coarsest(case: cases.Grid, method: str, wanted: float) -> Contestant:
    return contestants.coarsest(lambda rtol: contestants.our_grid(case, method, rtol), wanted)


def grids(size: Size) -> tuple[tuple[int, float, bool], ...]:
    """(grid points, end, has it a goal)."""
    if size.quick:
        return (100, 0.5, False), (200, 0.1, False)
    return (500, 0.5, False), (2000, 0.1, True), (2000, 1.0, False)


def grid_label(case: cases.Grid) -> str:
    return f"Brusselator n={2 * case.n} t={case.end:g}"


def dop853(size: Size) -> Iterable[Row]:
    """DOP853 against numbalsoda's, one run at equal error; then in lanes."""
    for case in cases.singles()[:2]:
        ours = contestants.our_single(case, "DOP853", label="odelab DOP853")._replace(fixed=None)
        theirs = contestants.peer_single("numbalsoda", case, method="dop853")
        others = {theirs: at_least(1.3), contestants.peer_single("cyrk", case, method="DOP853"): None}
        yield from size.compare(f"{case.label}, DOP853", ours, others, allowed=case.allowed)
    many = cases.ensembles(size.runs)[0]
    ours = contestants.our_ensemble(many, "DOP853")
    others = {contestants.peer_ensemble("numbalsoda", many, method="dop853"): None}
    yield from size.compare(f"{many.label}, DOP853", ours, others, allowed=many.allowed)


def first(size: Size) -> Iterable[Row]:
    """Compiling, loading, and a whole fresh process."""
    return fresh.rows(fresh.WORKS[1:2], repeats=2) if size.quick else fresh.rows()


SECTIONS: dict[str, Callable[[Size], Iterable[Row]]] = {
    section.__name__: section
    for section in (single, fixed, peers, ensemble, ensembles, sharp, threads, large, rkc, dop853, first)
}
