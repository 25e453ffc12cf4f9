"""Who takes part: odelab through its public door, the C reference, and the peers, each as a `Contestant`.

What odelab does not offer yet is named from its design and reported as not available.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

import odelab as ol
from benchmarks.harness.timing import Contestant, check
from benchmarks.ode import reference_c
from benchmarks.ode.cases import Ensemble, Grid, Single
from benchmarks.ode.peers import peer
from odelab.experiments.clock import measure

NEXT_TO_NOTHING = 1e-9  # a time span that one step covers: what a call costs whatever it solves
MANY = 10**8  # attempts, for stability-limited runs
TOLERANCES = tuple(10.0 ** np.arange(-2.0, -8.01, -0.25))
SHARP = tuple(10.0 ** np.arange(-2.0, -14.01, -0.5))  # for errors that sharper tolerances are needed for


def absent(name: str, reason: str) -> Contestant:
    return Contestant(name, None, missing=reason)


def missing_names(*names: str) -> str:
    """Why odelab cannot take part: the first public name it does not have yet; empty when it has all."""
    return next((f"ol.{name} is not there yet" for name in names if not hasattr(ol, name)), "")


def our_single(case: Single, method: str = "DOPRI5", law: str = "i", label: str = "odelab") -> Contestant:
    missing = missing_names(method)
    if missing:
        return absent(label, missing)
    solve = functools.partial(our_end, method=getattr(ol, method), control=ol.adaptive(case.rtol, case.atol, law=law))
    start = functools.partial(solve, case.problem.replace(t_span=(0.0, NEXT_TO_NOTHING)))
    return Contestant(label, lambda: solve(case.problem), checking(case, solve), fixed=start, warm=start)


def our_end(problem, method, control, dense=True, engine="auto"):
    return ol.solve(problem, method, control, dense=dense, max_steps=MANY, engine=engine).u[-1]


def checking(case: Single, solve):
    """The error of the run itself, or of the shorter one that stands for it."""
    if case.checked is case.problem:
        return case.error
    return lambda answer: case.error(solve(case.checked))


def c_single(case: Single, method: str = "DOPRI5", law: str = "i") -> Contestant:
    def build(problem):
        run = reference_c.ensemble(
            case.key, problem.u0, problem.params, problem.t_span, case.rtol, case.atol, method, law
        )
        return lambda: run().u[0]

    name = f"scalar C {method}"
    try:
        start = build(case.problem.replace(t_span=(0.0, NEXT_TO_NOTHING)))
        check = build(case.checked)
        return Contestant(name, build(case.problem), lambda answer: case.error(check()), fixed=start)
    except reference_c.NoCompiler as reason:
        return absent(name, str(reason))


def peer_single(name: str, case: Single, **options) -> Contestant:
    """`options` go to the peer, a `method` for example."""
    module = peer(name)
    label = " ".join((name, options["method"])) if options else module.NAME
    try:
        build = functools.partial(module.single, rtol=case.rtol, atol=case.atol, **options)
        run = build(case.problem)
        return Contestant(label, run, checking(case, lambda problem: build(problem)()))
    except ImportError:
        return absent(label, "not installed")


def our_ensemble(
    case: Ensemble, method: str = "DOPRI5", law: str = "i", threads: int = 1, label: str = "odelab"
) -> Contestant:
    name = label if threads == 1 else f"{label}, {threads} threads"
    missing = missing_names("ensemble", method)
    if missing:
        return absent(name, missing)
    control = ol.adaptive(case.rtol, case.atol, law=law, first_step=case.first_step)

    def run(rows=slice(None)):
        u0, params = case.u0[rows], case.params[rows]
        return ol.ensemble(case.problem, getattr(ol, method), control, u0=u0, params=params, threads=threads).u

    return Contestant(name, run, case.error, warm=lambda: run(slice(64)))


def c_ensemble(case: Ensemble) -> Contestant:
    return c_contestant("scalar C", reference_c.ensemble, case, method="DOPRI5")


def c_lanes(case: Ensemble) -> Contestant:
    found = reference_c.lanes_compiler()
    name = f"C by hand ({found[0]}, {found[1]} lanes)" if found else "C by hand"

    def build(_key, u0, params, t_span, rtol, atol, first_step):
        return reference_c.lanes(u0, params, t_span, rtol, atol, first_step)

    return c_contestant(name, build, case)


def c_contestant(name, build, case: Ensemble, **options) -> Contestant:
    try:
        run = build(
            case.key, case.u0, case.params, case.problem.t_span, case.rtol, case.atol,
            first_step=case.first_step, **options,
        )  # fmt: skip
        return Contestant(name, lambda: run().u, case.error)
    except reference_c.NoCompiler as reason:
        return absent(name, str(reason))


def peer_ensemble(name: str, case: Ensemble, every: int = 1, **options) -> Contestant:
    """`every`: run only each so many-th trajectory and scale the time up."""
    module, some = peer(name), case.part(every)
    label = " ".join((name, options["method"])) if options else module.NAME
    if every > 1:
        label += f" ({len(some.u0)} runs, scaled)"
    try:
        run = module.ensemble(some.problem, some.u0, some.params, case.rtol, case.atol, case.first_step, **options)
        return Contestant(label, run, some.error, per=len(some.u0) / len(case.u0))
    except ImportError:
        return absent(label, "not installed")


def our_grid(
    case: Grid, method: str, rtol: float, first_step: float | None = None, law: str = "i", engine: str = "auto"
) -> Contestant:
    missing = missing_names(method)
    if missing:
        return absent(f"odelab {method}", missing)
    control = ol.adaptive(rtol, rtol, law=law, first_step=first_step)
    # C keeps no steps either.
    solve = functools.partial(our_end, method=getattr(ol, method), control=control, dense=False, engine=engine)
    start = case.problem.replace(t_span=(0.0, NEXT_TO_NOTHING))
    return Contestant(f"odelab {method}", lambda: solve(case.problem), case.error, warm=lambda: solve(start))


def c_grid(case: Grid, rtol: float, first_step: float) -> Contestant:
    try:
        problem = case.problem
        run = reference_c.grid(problem.u0, problem.params, problem.t_span, rtol, rtol, first_step)
        return Contestant("C DOPRI5", lambda: run().u[0], case.error)
    except reference_c.NoCompiler as reason:
        return absent("C DOPRI5", str(reason))


def scipy_bdf(case: Grid, rtol: float, told: str) -> Contestant:
    """`told` is "jac" (the problem's own sparse Jacobian) or "jac_sparsity" (only where it has entries)."""
    name = {"jac": "scipy BDF, sparse Jacobian", "jac_sparsity": "scipy BDF, jac_sparsity"}[told]
    return Contestant(name, peer("scipy").sparse_bdf(case.problem, rtol, rtol, told), case.error)


def coarsest(build: Callable[[float], Contestant], allowed: float, tolerances=TOLERANCES) -> Contestant:
    """The contestant with the largest tolerance whose error is still `allowed`: the fair choice for every method."""
    contestant = absent("", "")
    for rtol in tolerances:
        contestant = build(rtol)
        if contestant.run is None:
            return contestant
        if check(contestant).within(allowed):
            return contestant._replace(name=f"{contestant.name} rtol {rtol:.0e}")
    return absent(contestant.name, f"reaches an error of {allowed:.0e} at none of the tolerances tried")


def seconds(contestant: Contestant) -> float:
    """The processor time of its shortest call of a few; infinity where it does not take part."""
    return math.inf if contestant.run is None else min(measure(contestant.run, 1)[1] for _ in range(20))
