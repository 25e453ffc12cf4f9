"""The rows of the page on sensitivities: the derivatives of a run's end by all parameters, at equal error of these.

Ours come with the run; CVODES's and diffsol's too; diffrax differentiates its steps forward, torchdiffeq backward, once
for each component; SciPy has differences of runs."""

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

import odelab as ol
from benchmarks.harness.rows import Goal, Row, at_least
from benchmarks.harness.timing import Contestant
from benchmarks.ode import contestants, stiff_cases
from benchmarks.ode.peers import peer
from benchmarks.ode.works import equations

TINY = 1e-30  # times i: a complex increment, whose derivative has no error of differences


class Columns(NamedTuple):
    """One problem; `atol` is the absolute tolerance over the relative one.

    `reference` computes the derivatives, (n, parameters); `large` problems are no kernels of ours, and take seconds.
    """

    label: str
    problem: ol.Problem
    atol: float
    stiff: bool
    reference: Callable[[], np.ndarray]

    @property
    def large(self) -> bool:
        return self.problem.size > 10

    def error(self, columns) -> float:
        """Of the worst column, relative to its largest entry."""
        exact = self.reference()
        return float(np.max(np.abs(columns - exact).max(axis=0) / np.abs(exact).max(axis=0)))


def problems(quick: bool) -> list[Columns]:
    """The label of each names its end."""
    lorenz, oscillator = ol.problems.lorenz().replace(t_span=(0.0, 5.0)), ol.problems.van_der_pol(mu=5.0)
    named = [("Lorenz to 5", lorenz, 1.0, False), ("van der Pol mu=5", oscillator, 1.0, False)]
    chosen = ("robertson", "oregonator", "hires", "pollu")
    named += [
        (one.label.split(",")[0], one.problem, one.atol, True) for one in stiff_cases.singles() if one.key in chosen
    ]
    found = [
        Columns(f"{label}, {problem.size} x {len(problem.params)}", problem, atol, stiff, exactly(problem, atol, stiff))
        for label, problem, atol, stiff in named
    ]
    return found[:3] if quick else found


def exactly(problem, atol: float, stiff: bool) -> Callable[[], np.ndarray]:
    """The columns by SciPy on the variational equations, when they are asked for: nothing of ours."""
    from scipy.integrate import solve_ivp

    n, params = problem.size, np.array(problem.params, dtype=float)
    increments = 1j * TINY * np.eye(len(params))

    def slope(t, y):
        u, *columns = y.reshape(-1, n)
        pairs = [(u + 1j * TINY * column, params + one) for column, one in zip(columns, increments, strict=True)]
        return np.concatenate([problem.rhs(t, u, params), *(np.imag(problem.rhs(t, *pair)) / TINY for pair in pairs)])

    def jacobian(t, y):  # without what the columns take from u, so that Newton's method needs a turn more
        return np.kron(np.eye(1 + len(params)), problem.jacobian(t, y[:n], problem.params))

    @functools.cache
    def columns() -> np.ndarray:
        how = {"method": "LSODA", "jac": jacobian} if stiff else {"method": "DOP853"}
        start = np.concatenate([problem.u0, np.zeros(n * len(params))])
        found = solve_ivp(slope, problem.t_span, start, rtol=1e-11, atol=1e-11 * atol, **how)
        return found.y[n:, -1].reshape(-1, n).T

    return columns


def ours(case: Columns, method: str, rtol: float) -> Contestant:
    control = ol.adaptive(rtol, rtol * case.atol)
    run = functools.partial(ol.solve, case.problem, getattr(ol, method), control, sensitivities=ol.wrt(params=True))
    return Contestant(f"odelab {method}", lambda: run().end_sensitivities, case.error)


def theirs(case: Columns, name: str, method: str, rtol: float) -> Contestant:
    label = f"{name} {method}"
    try:
        run = peer(name).sensitivities(case.problem, rtol, rtol * case.atol, method)
    except ImportError:
        return contestants.absent(label, "not installed")
    return Contestant(label, run, case.error)


COMPILED = (("diffsol", "tsit45", "bdf"), ("casadi", "adams", "bdf"))  # methods where a problem is not stiff, and where
OTHERS = (("diffrax", "Dopri5", "Kvaerno5"), ("torchdiffeq", "dopri5", ""), ("scipy", "RK45", "LSODA"))


def sensitivities(size: equations.Size) -> Iterable[Row]:
    """The derivatives of the end by all parameters, with the run, at equal error; every call with its fixed cost."""
    for case in problems(size.quick):
        for wanted, peers in ((1e-4, COMPILED),) if case.large else ((1e-4, COMPILED + OTHERS), (1e-6, COMPILED)):
            others: dict[Contestant, Goal | None] = {}
            for name, *methods in peers:
                if method := methods[case.stiff]:
                    goal = at_least(1.0) if name in ("diffsol", "casadi") else None
                    others[coarsest(functools.partial(theirs, case, name, method), wanted)] = goal
            work = f"{case.label}, error {wanted:.0e}"
            yield from size.compare(
                work,
                best(case, wanted),
                others,
                allowed=wanted,
                equal=float("inf"),
                rounds=5,
                seconds=0.5 * size.seconds,
            )


def best(case: Columns, wanted: float) -> Contestant:
    """The cheaper of two methods of ours; of a large problem, whose runs take seconds, the one with fewer steps."""
    methods = ("RODAS5P", "RODAS4") if case.stiff else ("DOP853", "DOPRI5")
    if case.large:
        return coarsest(functools.partial(ours, case, methods[0]), wanted)
    return min((coarsest(functools.partial(ours, case, one), wanted) for one in methods), key=contestants.seconds)


def coarsest(build: Callable[[float], Contestant], wanted: float) -> Contestant:
    return contestants.coarsest(build, wanted, contestants.SHARP)


SECTIONS: dict[str, Callable[[equations.Size], Iterable[Row]]] = {"sensitivities": sensitivities}
