"""The stiff works of the benchmark: six problems of the literature, with states known to more digits than are asked."""

from typing import NamedTuple

import numpy as np

import odelab as ol
from benchmarks.ode.cases import Ensemble

FIRST_STEP = 1e-6


class Stiff(NamedTuple):
    """One problem to the time of its reference; `atol` is the absolute tolerance over the relative one."""

    label: str
    key: str  # in `ol.problems`
    problem: ol.Problem
    atol: float
    reference: np.ndarray

    def error(self, u) -> float:
        return float(np.max(np.abs(np.asarray(u).ravel() / self.reference - 1.0)))


def singles(quick: bool = False) -> list[Stiff]:
    found = [
        stiff("Robertson to 1e11", "robertson", 1e11, 1e-6),
        stiff("van der Pol mu=1000", "van_der_pol", 2000.0, 1e-4, mu=1000.0),
        stiff("Oregonator", "oregonator", 360.0, 1e-3),
        stiff("HIRES", "hires", 321.8122, 1e-4),
        stiff("E5 to 1e7", "e5", 1e7, 1e-18),
        stiff("POLLU", "pollu", 60.0, 1e-6),
    ]
    return found[:2] if quick else found


def stiff(label: str, key: str, end: float, atol: float, **options) -> Stiff:
    problem = getattr(ol.problems, key)(**options)
    reference = next(known.u for known in problem.references if known.t == end)
    return Stiff(f"{label}, n = {problem.size}", key, problem.replace(t_span=(0.0, end)), atol, reference)


def ensembles(runs: int) -> list[tuple[Ensemble, float]]:
    """(ensemble, how many times faster than scalar C it is to be); one parameter varies from half to three halves."""
    return [
        (ensemble("robertson", 1e5, 1, runs, 1e-6), 10.0),
        (ensemble("hires", 321.8122, 0, runs, 1e-4), 7.0),
        (ensemble("pollu", 60.0, 0, runs // 5, 1e-6), 5.0),
    ]


def ensemble(key: str, end: float, varied: int, runs: int, atol: float) -> Ensemble:
    problem = getattr(ol.problems, key)().replace(t_span=(0.0, end))
    params = np.tile(np.array(problem.params, dtype=float), (runs, 1))
    params[:, varied] *= 0.5 + (np.arange(runs) * 7919 % runs) / runs
    u0 = np.tile(problem.u0, (runs, 1))
    reference = np.full(u0.shape, np.nan)
    for i in range(0, runs, max(1, runs // 5)):
        exactly = problem.replace(params=tuple(params[i].tolist()))
        control = ol.adaptive(1e-10, 1e-10 * atol)
        reference[i] = ol.solve(exactly, ol.RODAS5P, control, engine="compiled").u[-1]
    label = f"{runs:,} {key} to {end:g}"
    return Ensemble(label, key, problem, u0, params, 1e-6, 1e-6 * atol, FIRST_STEP, reference, 1e-3)
