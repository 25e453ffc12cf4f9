"""The named works of the benchmark: what is solved, at which tolerances, and what the right answer is.

References not in the catalogue were computed by DOPRI5 in 80-bit floats at the tolerances 1e-13, 1e-15 and 1e-16; the
digits given are those that no longer changed.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

import odelab as ol


@dataclasses.dataclass(frozen=True)
class Single:
    """One run. `checked` is the problem whose end state is compared: the same, or a shorter one where chaos forbids.

    Below `luck`, which step happened to be the last decides the error: on a stability limit, or with a kink on the way.
    """

    label: str
    key: str  # the problem's name in limit.c
    problem: ol.Problem
    rtol: float
    atol: float
    checked: ol.Problem
    reference: np.ndarray
    allowed: float  # relative error of an answer that is not wrong
    luck: float = 0.0

    def error(self, u) -> float:
        return float(np.max(np.abs(np.asarray(u).ravel() - self.reference) / np.abs(self.reference)))


class Ensemble(NamedTuple):
    """Many runs of one problem; rows of `u0` (N, n) and `params` (N, k)."""

    label: str
    key: str
    problem: ol.Problem
    u0: np.ndarray
    params: np.ndarray
    rtol: float
    atol: float
    first_step: float
    reference: np.ndarray  # (N, n); rows of NaN where it is not known
    allowed: float

    def error(self, u) -> float:
        """RMS over runs and components, each component in units of its own RMS.

        The worst runs, one in a hundred, are left out: in chaos a few are far off whatever the solver. A wrong lane
        would spoil one in 32.
        """
        known = np.isfinite(self.reference[:, 0])
        reference = self.reference[known]
        size = np.sqrt(np.mean(np.square(reference), axis=0))
        each = np.mean(np.square((np.asarray(u)[known] - reference) / size), axis=1)
        if not np.isfinite(each).all():
            return float("inf")
        return float(np.sqrt(np.mean(np.sort(each)[: -(-99 * len(each) // 100)])))

    def part(self, step: int) -> "Ensemble":
        """Every `step`-th run, for contestants too slow for all."""
        return self._replace(u0=self.u0[::step], params=self.params[::step], reference=self.reference[::step])


class Grid(NamedTuple):
    """The 1-D Brusselator at n grid points, from 0 to `end`."""

    n: int
    end: float
    problem: ol.Problem
    reference: np.ndarray

    def error(self, u) -> float:
        return float(np.max(np.abs(np.asarray(u).ravel() - self.reference) / np.abs(self.reference)))


def morse_rhs(t, u, params):
    x, v = u
    damping, drive, frequency = params
    e = ol.maths.exp(-x)
    return (v, 2.0 * (e * e - e) - damping * v + drive * ol.maths.sin(frequency * t))


def two_springs_rhs(t, u, params):
    x, v = u
    mu, left = params
    return (v, mu * (1.0 - x * x) * v - ol.maths.where(x < 0.0, left * x, x))


def single(label, key, problem, rtol, atol, allowed, end, checked_at=None, reference=None, luck=0.0) -> Single:
    whole = problem.replace(t_span=(0.0, end))
    checked = whole if checked_at is None else problem.replace(t_span=(0.0, checked_at))
    if reference is None:
        reference = next(known.u for known in problem.references if known.t == checked.t_span[1])
    return Single(label, key, whole, rtol, atol, checked, np.asarray(reference, dtype=float), allowed, luck)


def singles(quick: bool = False) -> list[Single]:
    """The three named runs, then HIRES, one with exp and sin, one with a branch. Quick ones end earlier."""
    morse = ol.Problem(morse_rhs, [1.0, 0.0], (0.0, 1000.0), (0.1, 0.2, 1.2), name="driven Morse oscillator")
    springs = ol.Problem(two_springs_rhs, [2.0, 0.0], (0.0, 100.0), (5.0, 4.0), name="van der Pol on two springs")
    far = (1.81652962828196, -0.155900835147409)
    swing = (-0.445882764268161, 0.270402969017745) if quick else (0.185020354951900, -0.911968223223780)
    ends = (10.0, 20.0, 0.3, 5.0, 200.0) if quick else (100.0, 1000.0, 40.0, 321.8122, 1000.0)
    names = ("Lorenz", "van der Pol mu=5", "Robertson", "HIRES", "Morse (exp, sin)")
    labels = [f"{name} t={end:g}" for name, end in zip(names, ends, strict=True)]
    van_der_pol, lorenz = ol.problems.van_der_pol(mu=5.0), ol.problems.lorenz()
    return [
        single(labels[0], "lorenz", lorenz, 1e-8, 1e-8, 1e-4, ends[0], checked_at=10.0),
        single(labels[1], "van_der_pol", van_der_pol, 1e-8, 1e-8, 1e-4, ends[1], reference=None if quick else far),
        single(labels[2], "robertson", ol.problems.robertson(), 1e-6, 1e-10, 1e-4, ends[2], luck=2e-5),
        single(labels[3], "hires", ol.problems.hires(), 1e-6, 1e-9, 1e-4, ends[3], luck=2e-5),
        single(labels[4], "morse", morse, 1e-8, 1e-8, 1e-4, ends[4], reference=swing),
        single("two springs (branch) t=700", "two_springs", springs, 1e-8, 1e-8, 1e-4, 700.0,
               reference=(-1.58743249433, 0.75443936486), luck=2e-5),
    ]  # fmt: skip


def ensembles(runs: int = 10_000) -> list[Ensemble]:
    """Van der Pol with mu from 0.5 to 5, Lorenz with rho from 10 to 28, HIRES with y1 starting from 0.5 to 1.5; then
    the oscillators with exp and sin, and with a branch, from 10,000 places."""
    i = np.arange(runs)
    share, mixed = i / max(runs - 1, 1), (i * 7919 % runs) / runs
    one = np.ones(runs)
    morse = ol.Problem(morse_rhs, [1.0, 0.0], (0.0, 30.0), (0.1, 0.2, 1.2))
    springs = ol.Problem(two_springs_rhs, [2.0, 0.0], (0.0, 20.0), (5.0, 4.0))
    return [
        ensemble("van der Pol", "van_der_pol", ol.problems.van_der_pol(), 20.0, 1e-6,
                 [2.0 * one, 0.5 * mixed], [0.5 + 4.5 * share]),
        ensemble("Lorenz", "lorenz", ol.problems.lorenz(), 5.0, 1e-6,
                 [1.0 + mixed, 1.0 - mixed, 20.0 * mixed], [10.0 * one, 10.0 + 18.0 * share, 8.0 / 3.0 * one]),
        ensemble("HIRES", "hires", ol.problems.hires(), 5.0, 1e-9,
                 [0.5 + share, *np.zeros((6, runs)), 0.0057 * one], [280.0 * one]),
        ensemble("Morse (exp, sin)", "morse", morse, 30.0, 1e-6,
                 [share, 0.5 * mixed], [0.1 * one, 0.2 * one, 1.0 + 0.5 * mixed]),
        ensemble("two springs (branch)", "two_springs", springs, 20.0, 1e-6,
                 [2.0 * one, 0.5 * mixed], [0.5 + 4.5 * share, 4.0 * one],
                 every=200),  # the kinks of 10,000 runs are everywhere: together they would take minutes
    ]  # fmt: skip


def ensemble(label, key, problem, end, atol, u0, params, allowed=1e-2, every=1) -> Ensemble:
    """The reference is known for each so many-th run."""
    problem = problem.replace(t_span=(0.0, end))
    u0, params = np.stack(u0, axis=1), np.stack(params, axis=1)
    reference = np.full_like(u0, np.nan)
    reference[::every] = end_states(problem, u0[::every], params[::every])
    return Ensemble(f"{len(u0):,} {label} t={end:g}", key, problem, u0, params, 1e-6, atol, 1e-3, reference, allowed)


def exactly(case: Ensemble, every: int) -> Ensemble:
    """With references for each so many-th run that are as exact as doubles allow, some 1e-12."""
    reference = np.full_like(case.u0, np.nan)
    for i in range(0, len(case.u0), every):
        reference[i] = end_states(case.problem, case.u0[i : i + 1], case.params[i : i + 1], 2.3e-14, 1e-16)[0]
    return case._replace(reference=reference)


def end_states(problem, u0, params, rtol=1e-10, atol=1e-12) -> np.ndarray:
    """All runs as one large system, solved by SciPy's DOP853: slow, and nothing of ours."""
    from scipy.integrate import solve_ivp

    shape = u0.T.shape

    def slope(t, u):
        return np.stack(problem.rhs(t, u.reshape(shape), params.T)).ravel()

    solution = solve_ivp(
        slope, problem.t_span, u0.T.ravel(), method="DOP853", rtol=rtol, atol=atol, t_eval=[problem.t_span[1]]
    )
    return solution.y[:, -1].reshape(shape).T


def brusselator(n: int, end: float, rtol: float = 1e-9) -> Grid:
    """Its reference comes from SciPy's Radau with the sparse Jacobian."""
    from scipy.integrate import solve_ivp

    problem = ol.problems.brusselator_1d(n).replace(t_span=(0.0, end))
    rhs: Any = problem.rhs
    slope, jacobian = rhs.array_form, problem.jacobian
    solution = solve_ivp(
        slope, (0.0, end), problem.u0, method="Radau", rtol=rtol, atol=rtol, args=(problem.params,), jac=jacobian
    )
    return Grid(n, end, problem, solution.y[:, -1])
