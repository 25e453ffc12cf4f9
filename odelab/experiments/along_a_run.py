"""Stiffness along a run: indices of the solution and of the Jacobian, and what limited the size of each step."""

import dataclasses
import math

import numpy as np

from odelab.problem import Problem
from odelab.results import Result
from odelab.runs import h_rho as stability
from odelab.runs.complex_runs import ComplexTrajectory
from odelab.runs.trajectory import Trajectory, require_states
from odelab.stiffness.indices import sai
from odelab.stiffness.jacobian import reduced_jacobian
from odelab.stiffness.log_norm import log_norm, soderlind
from odelab.stiffness.spectrum import spectrum

SPECTRA, COMPONENTS = 200, 64  # spectra taken along a run unless `every` says otherwise; fewer for larger systems


@dataclasses.dataclass(frozen=True, eq=False)
class Indicators(
    Result,
    kinds={"measures": "odelab.plot.along_a_run:draw_measures", "reasons": "odelab.plot.along_a_run:draw_reasons"},
):
    """Stiffness along a run, as `odelab.indicators` returns it: one row per accepted step, taken at its start.

    Measures that need a spectrum are NaN except at the steps `sampled`.

    t                the time at the start of each step, (m,)
    h                the size of each step, (m,)
    sai              ||S|| / ||u||
    h_rho            |h| times the spectral radius along the solution: the method's own estimate where it has one,
                     else the sampled radius between samples
    limited_by       "stability" where h_rho is at the method's boundary, "accuracy" elsewhere, "fixed" for fixed steps
    sampled          the numbers of the steps whose spectrum was taken
    si               max |Re lambda(J)|
    spectral_radius  max |lambda(J)|
    log_norm         (m, 3): mu_1, mu_2, mu_inf of J
    soderlind        half the sum of the extreme eigenvalues of (J + J')/2: stiff where T times it is far below -1
    non_normality    Henrici's departure over the Frobenius norm, 0 (normal) to 1; NaN where only the ends are known
    boundary         how far the stability region of the method reaches along the negative real axis

    Of a problem with a mass matrix they are those of `odelab.reduced_jacobian`, whose eigenvalues are the finite ones
    of the pencil (J, M); where M is singular, mu_1 and mu_inf are NaN.

    `ratio` is SAI / SI and `share_limited` the share of steps held back by stability; `print` sums all of it up.
    """

    t: np.ndarray
    h: np.ndarray
    sai: np.ndarray
    h_rho: np.ndarray
    limited_by: np.ndarray
    sampled: np.ndarray
    si: np.ndarray
    spectral_radius: np.ndarray
    log_norm: np.ndarray
    soderlind: np.ndarray
    non_normality: np.ndarray
    boundary: float

    def table(self):
        """A row per step; NaN where no spectrum was taken."""
        single = ("t", "h", "sai", "h_rho", "limited_by", "si", "spectral_radius", "soderlind", "non_normality")
        norms = {f"mu_{name}": self.log_norm[:, i] for i, name in enumerate(("1", "2", "inf"))}
        return {**{name: getattr(self, name) for name in single}, **norms}

    @property
    def ratio(self) -> np.ndarray:
        """SAI / SI: 1 where the solution moves as fast as the stiffest mode would, tiny on a slow manifold."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.sai / self.si

    @property
    def share_limited(self) -> float:
        """The share of steps that stability and not accuracy has chosen."""
        return float(np.mean(self.limited_by == "stability")) if len(self.limited_by) else 0.0

    def __str__(self):
        at = self.sampled
        limits = f"{100 * self.share_limited:.0f} % limited by stability"
        if len(self.limited_by) and (self.limited_by == "fixed").all():
            limits = "of one size"
            known = self.h_rho[np.isfinite(self.h_rho)]
            if known.size and np.isfinite(self.boundary):
                beyond = 100 * np.mean(known > self.boundary)
                limits += f", {beyond:.0f} % of them with h rho beyond the stability boundary {self.boundary:.2f}"
        lines = [f"{len(self.t)} steps, {limits}, {len(at)} spectra"]
        for name in ("sai", "si", "spectral_radius", "soderlind", "non_normality", "h_rho"):
            values = getattr(self, name)
            values = values[np.isfinite(values)]
            if values.size:
                low, middle, high = np.quantile(values, (0.0, 0.5, 1.0))
                lines.append(f"  {name:16s} {low:.3g} ... {high:.3g}, median {middle:.3g}")
        return "\n".join(lines)


def indicators(problem: Problem, sol: Trajectory, every: int | None = None) -> Indicators:
    """The measures of stiffness along a run: SI, SAI, h rho, log norms, and what limited each step.

    problem  the Problem that was solved
    sol      the Trajectory, which must hold all of its states
    every    take a spectrum at every so many steps; 0 takes none. By default 200 are spread over the run, fewer for
             systems beyond 64 components. Everything else is there for every step and costs little

    Returns an Indicators, whose fields are arrays with one entry per step.

    >>> import odelab as ol
    >>> problem = ol.problems.linear_symmetric([-1000.0, -1.0]).replace(t_span=(0.0, 1.0))
    >>> sol = ol.solve(problem, ol.DOPRI5, engine="python")
    >>> found = ol.indicators(problem, sol, every=20)
    >>> found.share_limited > 0.5, found.si[0].round(3)
    (True, np.float64(1000.0))
    """
    if not isinstance(sol, Trajectory) or sol.steps == 0:
        raise ValueError(f"`sol` must be a Trajectory with at least one step, got {sol!r}; solve the problem first.")
    require_states(sol, "indicators")
    if isinstance(sol, ComplexTrajectory):
        sol = sol.parts
    if problem.size != np.shape(sol.step_u)[1]:
        raise ValueError(f"`sol` has {np.shape(sol.step_u)[1]} components, but `problem` {problem.size}.")
    if every is not None and not (isinstance(every, int) and every >= 0):
        raise ValueError(f"`every` must be a whole number, 0 for no spectra, got {every!r}.")
    steps = sol.steps
    spectra = max(12, min(SPECTRA, SPECTRA * COMPONENTS // problem.size))
    stride = max(1, math.ceil(steps / spectra)) if every is None else every
    sampled = np.arange(0, steps, stride) if stride else np.zeros(0, dtype=int)
    t, h = np.asarray(sol.step_t)[:-1], np.asarray(sol.h)
    columns = spectral_columns(problem, sol, sampled)
    h_rho = step_h_rho(sol, sampled, columns["spectral_radius"])
    boundary = sol.method.real_boundary
    return Indicators(
        t=t,
        h=h,
        sai=sai(sol),
        h_rho=h_rho,
        limited_by=reasons(sol, h_rho, boundary),
        sampled=sampled,
        boundary=boundary,
        **columns,
    )


def spectral_columns(problem: Problem, sol: Trajectory, sampled) -> dict[str, np.ndarray]:
    """The measures that need the Jacobian: numbers at the sampled steps, NaN elsewhere."""
    steps = sol.steps
    columns = {name: np.full(steps, np.nan) for name in ("si", "spectral_radius", "soderlind", "non_normality")}
    norms = np.full((steps, 3), np.nan)
    for i in sampled:
        J = reduced_jacobian(problem, sol.step_t[i], sol.step_u[i])
        found = spectrum(J)
        for name in ("si", "spectral_radius", "non_normality"):
            columns[name][i] = getattr(found, name)
        columns["soderlind"][i] = soderlind(J)
        in_coordinates = J.shape[0] < problem.size  # of its own choice, on which these two norms depend
        norms[i] = [log_norm(J, p) if p == 2 or not in_coordinates else np.nan for p in (1, 2, np.inf)]
    return {**columns, "log_norm": norms}


def step_h_rho(sol: Trajectory, sampled, radius) -> np.ndarray:
    """|h| rho for every step: from the method's stages where they determine it, else from the sampled radii."""
    told = sol.h_rho
    if not len(sampled):
        return told
    between = np.interp(np.arange(sol.steps), sampled, radius[sampled])
    return np.where(np.isnan(told), np.abs(np.asarray(sol.h)) * between, told)


def reasons(sol: Trajectory, h_rho, boundary) -> np.ndarray:
    """Why each step has its size; the last one, cut to land on t1, counts as chosen by accuracy."""
    if sol.controller is not None and not sol.controller.needs_error:
        return np.full(sol.steps, "fixed", dtype="<U9")
    with np.errstate(invalid="ignore"):
        bound = h_rho >= stability.NEAR * boundary
    return np.where(bound, "stability", "accuracy").astype("<U9")
