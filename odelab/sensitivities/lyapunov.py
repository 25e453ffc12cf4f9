"""Lyapunov exponents: how fast neighbours of a solution leave it or come to it, in the mean over a long time."""

import dataclasses
import math

import numpy as np

from odelab._solve import solve
from odelab.control.controllers import Controller, adaptive
from odelab.methods.interface import StepMethod
from odelab.problem import Problem
from odelab.results import Result
from odelab.sensitivities.selection import wrt
from odelab.sensitivities.system import System

BATCHES, QUANTILE = 20, 2.093  # of Student's distribution with 19 degrees of freedom, for 95 %
USUAL = adaptive(1e-9, 1e-9)  # the controller where the user gives none


@dataclasses.dataclass(eq=False)
class LyapunovExponents(Result, kinds={"exponents": "odelab.plot.of_results:draw_exponents"}):
    """What `odelab.lyapunov` returns.

    exponents      (m,), the exponents per unit of time, the largest first
    half_widths    (m,), of the intervals in which each is to be expected (95 %), from the scatter of 20 parts of the
                   time
    time           over which they are means
    evaluations    how often the right-hand side of state and neighbours was evaluated

    >>> import odelab as ol
    >>> shrinking = ol.Problem(lambda t, u, params: (-u[0], -3.0 * u[1]), [1.0, 1.0], (0.0, 1.0))
    >>> print(ol.lyapunov(shrinking, ol.DOPRI5, t=10.0).exponents.round(6))
    [-1. -3.]
    """

    exponents: np.ndarray
    half_widths: np.ndarray
    time: float
    evaluations: int

    def table(self):
        """A row per exponent."""
        return {"exponent": self.exponents, "half_width": self.half_widths}

    def __str__(self):
        rows = zip(self.exponents, self.half_widths, strict=True)
        found = ", ".join(f"{mean:.4g} +- {half:.1g}" for mean, half in rows)
        return f"Lyapunov exponents over {self.time:g} units of time: {found}; their sum {self.exponents.sum():.6g}"


def lyapunov(
    problem: Problem,
    method: StepMethod,
    controller: Controller | None = None,
    *,
    t: float = 1000.0,
    every: float = 0.5,
    transient: float | None = None,
    count: int | None = None,
) -> LyapunovExponents:
    """The largest Lyapunov exponents of a problem along its solution.

    The state is solved together with neighbours at an infinitesimal distance, in directions that are made orthogonal
    again from time to time (Benettin, Galgani, Giorgilli and Strelcyn 1980). Over a long time each direction grows like
    exp(exponent t).

    problem       the `Problem`; its span says where the time starts, and no more
    method        the method, as in `odelab.solve`
    controller    the controller; `ol.adaptive(1e-9, 1e-9)` by default
    t             the time over which the exponents are means; 1000 by default
    every         the time after which directions are made orthogonal again, in which none should grow by more than a
                  factor of a million; 0.5 by default
    transient     the time before that is not counted, in which the solution comes to its attractor; t / 10 by default
    count         how many exponents; all n by default

    Returns `LyapunovExponents`. Raises ValueError for times that are not positive, and `RunFailed` where the run fails.

    >>> import odelab as ol
    >>> saddle = ol.Problem(lambda t, u, params: (u[1], u[0]), [0.0, 0.0], (0.0, 1.0))
    >>> ol.lyapunov(saddle, ol.DOPRI5, t=20.0, transient=10.0).exponents.round(6)
    array([ 1., -1.])
    """
    controller = USUAL if controller is None else controller
    transient = 0.1 * t if transient is None else transient
    check(problem, t, every, transient, count)
    whole = System(problem, wrt(u0=range(problem.size if count is None else count)), True)
    m = len(whole.columns)
    own = whole.controller(controller, [1.0] * m)
    parts = BATCHES * math.ceil(t / every / BATCHES)
    before = math.ceil(transient / every)
    now, state, evaluations = problem.t_span[0], whole.whole.u0, 0
    logarithms = np.empty((before + parts, m))
    for k in range(before + parts):
        piece = whole.whole.piece(now, problem.t_span[0] + (k + 1) * every, state)
        run = solve(piece, method, own, dense=False)
        evaluations += run.evaluations
        u, S = whole.parts(run.end_u)
        Q, R = np.linalg.qr(S)
        logarithms[k] = np.log(np.abs(np.diag(R)))
        now, state = piece.t_span[1], np.concatenate([u, Q.T.ravel()])
    rates = logarithms[before:].reshape(BATCHES, -1, m).mean(axis=1) / every
    order = np.argsort(-rates.mean(axis=0), kind="stable")
    half = QUANTILE * rates.std(axis=0, ddof=1) / math.sqrt(BATCHES)
    return LyapunovExponents(rates.mean(axis=0)[order], half[order], parts * every, evaluations)


def check(problem: Problem, t, every, transient, count):
    for name, value, least in (("t", t, 0.0), ("every", every, 0.0), ("transient", transient, -1e-300)):
        if not (math.isfinite(value) and value > least):
            raise ValueError(f"`{name}` must be a positive, finite time, got {value!r}.")
    if count is not None and not 1 <= count <= problem.size:
        raise ValueError(f"`count` must be a number of exponents from 1 to {problem.size}, got {count!r}.")
