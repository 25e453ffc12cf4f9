"""`diagnose`: one question about a problem, whether it is stiff and what to do, answered by measuring."""

import dataclasses
import math
from pathlib import Path

import numpy as np

from odelab._solve import RunFailed, solve
from odelab.control.controllers import Controller, adaptive
from odelab.doctor import page, sheet
from odelab.doctor.costs import WRONG, Cost, Exactness, costs, number
from odelab.doctor.step_limits import LARGEST, STIFF, StepLimits, dense_jacobian, step_limits
from odelab.methods.explicit import BS32, DOP853, DOPRI5
from odelab.methods.implicit import RODAS4, RODAS5P
from odelab.methods.interface import StepMethod
from odelab.methods.stabilised import RKC2
from odelab.methods.switching import AUTO
from odelab.problem import Problem
from odelab.results import Result
from odelab.runs.trajectory import Trajectory
from odelab.stiffness.modes.at_a_state import Modes, modes_of
from odelab.stiffness.spectrum import Spectrum, spectrum

__all__ = ["Diagnosis", "diagnose"]

TIMES = 12  # at which runs are compared where no windows say at which
SHARPER = 1e-3  # the tolerance of the run that they are compared with, over the one asked for
AS_GOOD = 1.05  # a method that costs at most so much more than the cheapest one, and is easier to take, is advised
UNCERTAIN = 1e-2  # of the spectral radius: eigenvalues that rounding may move by more are not to be trusted
MANY = 16  # components of which a system of real eigenvalues may be one where RKC2 pays
NON_NORMAL = 100.0  # the condition number of an eigenvalue from which on transients matter


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result, kinds={"steps": "odelab.doctor.page:step_limits", "costs": "odelab.doctor.page:costs"}):
    """What `odelab.diagnose` found about a problem; `print` says it in five sentences, `report` shows it on a page.

    problem      the problem
    controller   the tolerance that was asked about
    sol          the run by odelab.AUTO at this tolerance
    limits       what limits the steps of an explicit method, on windows of the solution: `limits.times_more`,
                 `limits.binding`, `limits.ratio`; None where it was not measured
    modes        the modes at the state where stability costs most, or at the end where it costs nothing; None where
                 they were not computed
    eigenvalues  the spectrum there, with the condition of its ends; None where it was not computed
    costs        a `Cost` for each method that was run: seconds, evaluations, error, tolerances
    error        the error of the plain call, `odelab.solve(problem)` at this tolerance, over the tolerance
    measured_in  how the errors were judged, in words
    not_measured  why `limits` or `modes` are None; empty where they are not

    `stiff` says whether stability at least doubles an explicit method's steps, `advice` which `Cost` is the best.

    >>> import odelab as ol
    >>> found = ol.diagnose(ol.problems.robertson())
    >>> found.stiff, found.advice.method.is_explicit
    (True, False)
    """

    problem: Problem
    controller: Controller
    sol: Trajectory
    limits: StepLimits | None
    modes: Modes | None
    eigenvalues: Spectrum | None
    costs: tuple[Cost, ...]
    error: float
    measured_in: str
    not_measured: str = ""

    @property
    def stiff(self) -> bool | None:
        """Does stability at least double the steps of the explicit method? None where the problem admits none."""
        if self.problem.mass is not None:
            return None
        if self.limits is not None:
            return self.limits.stiff
        explicit, others = (
            min(
                (one.seconds for one in self.costs if one.method.is_explicit is kind and one.finished), default=math.inf
            )
            for kind in (True, False)
        )
        return explicit > STIFF * others

    @property
    def advice(self) -> Cost:
        """The method that made the error at the least cost, with its tolerances."""
        finished = [one for one in self.costs if one.finished]
        best = min(one.seconds for one in finished)
        return next(one for one in finished if one.seconds <= AS_GOOD * best)

    @property
    def call(self) -> str:
        """The call that is advised, as Python code."""
        controller = self.advice.controller
        atol = controller.atol
        atol = f"{atol:.2g}" if np.ndim(atol) == 0 else np.array2string(np.asarray(atol), precision=2, separator=", ")
        return f"ol.solve(problem, ol.{self.advice.name}, ol.adaptive(rtol={controller.rtol:.2g}, atol={atol}))"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Is it stiff, in what, what does it cost, what should be taken, and how far can this be trusted?"""
        return self._verdict(), self._where(), self._prices(), self._take(), self._trust()

    def _verdict(self) -> str:
        at = f"{self.problem.name} at rtol = {self.controller.rtol:g}"
        if self.problem.mass is not None:
            return f"{at} has a mass matrix, so that its steps are linearly implicit whether it is stiff or not."
        if self.limits is None:
            words = "is stiff: the explicit method is the dearer one by far" if self.stiff else "is not stiff"
            return f"{at} {words}, as the costs below show; its step limits were not measured, as {self.not_measured}."
        limits = self.limits
        if not limits.binding or limits.times_more < 1.05:
            return (
                f"{at} is not stiff: accuracy chooses the steps of {limits.method.name}, about {number(limits.steps)} "
                f"of them, which are at most {number(limits.ratio.max())} times the largest stable ones."
            )
        word = "is stiff" if self.stiff else "is hardly stiff"
        spans = [f"{start:.3g} to {end:.3g}" for start, end in limits.binding]
        shown = ", ".join(spans[:3]) + (f" and {len(spans) - 3} times more" if len(spans) > 3 else "")
        return (
            f"{at} {word}: stability multiplies the steps of {limits.method.name} by {number(limits.times_more)}, to "
            f"about {number(limits.steps)}; it binds over {100 * limits.share:.0f} % of the time (t = {shown}), where "
            f"accuracy would allow steps up to {number(limits.ratio.max())} times the stable ones."
        )

    def _where(self) -> str:
        if self.modes is None:
            fast = f"; in the run it was the {self.sol.fast_modes}" if self.sol.fast_modes else ""
            return f"Which components are fast was not computed, as {self.not_measured}{fast}."
        if self.limits is not None and self.limits.binding:
            return f"Where stability costs most, at t = {self.limits.worst.start:.4g}: {self.modes}."
        return f"At the end, t = {self.problem.t_span[1]:.4g}: {self.modes}."

    def _prices(self) -> str:
        kinds: dict[str, list[Cost]] = {"explicit": [], "implicit": [], "automatic": []}
        for one in self.costs:
            kinds["automatic" if one.method.switches else "explicit" if one.method.is_explicit else "implicit"].append(
                one
            )
        best = self.advice  # which may cost a little more than the cheapest of its kind
        parts = [
            str(min(some, key=lambda one: (one is not best, not one.finished, one.seconds)))
            for some in kinds.values()
            if some
        ]
        return f"At one error ({self.measured_in}), {'; '.join(parts)}."

    def _take(self) -> str:
        law = self.advice.controller.suited_to(self.advice.method).law
        return f"Take {self.call}, with its usual law{'' if law is None else f', {law.name!r}'}."

    def _trust(self) -> str:
        said = []
        if math.isfinite(self.error):
            size = self.error * self.controller.rtol
            if size > WRONG:
                said.append(
                    "states at later times depend so much on the start that no tolerance near this one tells them"
                )
            else:
                said.append(f"the plain call is {number(self.error)} times its tolerance off, in the median over time")
        if self.eigenvalues is not None and self.eigenvalues.values is not None:
            found = self.eigenvalues
            if found.error_bound > UNCERTAIN * found.spectral_radius:
                said.append(f"its eigenvalues cannot be told: rounding moves them by up to {found.error_bound:.2g}")
            elif found.condition > NON_NORMAL:
                said.append(
                    f"eigenvalues have condition numbers up to {number(found.condition)}: the Jacobian is not normal, "
                    "and errors may grow for a while at steps that are stable"
                )
            else:
                known = found.error_bound / found.spectral_radius if found.spectral_radius else 0.0
                said.append(f"its eigenvalues are known to {known:.1g} of the largest")
        else:
            said.append("no eigenvalues were needed")
        said.append("times are processor times of this machine, compiled before")
        text = "; ".join(said)
        return text[0].upper() + text[1:] + "."

    def __str__(self):
        return "\n".join(self.sentences)

    def __repr__(self):
        return f"Diagnosis({self.problem.name}, stiff={self.stiff}, advice={self.advice.name})"

    def table(self):
        """A row per method: what it costs, and with which tolerances."""
        names = ("seconds", "evaluations", "steps", "error", "reached")
        columns = {name: [getattr(one, name) for one in self.costs] for name in names}
        return {"method": [one.name for one in self.costs], **columns}

    def report(self, folder=".") -> Path:
        """Write the diagnosis as one page, `diagnosis.html`, with its pictures in it; returns the path.

        folder    where to; it is made where it is not there

        >>> import odelab as ol
        >>> path = ol.diagnose(ol.problems.van_der_pol(mu=5.0)).report("out")
        >>> path.name, path.stat().st_size < 500_000
        ('diagnosis.html', True)
        """
        title = f"{self.problem.name}: is it stiff, and what should be done?"
        return sheet.write(folder, title, self.sentences, self.call, page.sections(self))


def diagnose(problem: Problem, rtol: float = 1e-6, atol=1e-9, *, allowed: float = 10.0, names=None) -> Diagnosis:
    """Is a problem stiff at a tolerance, where and in what, what does it cost, and which method should be taken?

    Everything is measured. The step that accuracy would allow an explicit method is set beside the largest stable one,
    on forty windows of the solution; the modes are taken where stability costs most; and methods of each kind are run,
    judged by far more exact states, run again at the tolerance with which they make the error of the plain call
    `odelab.solve(problem)`, and timed.

    problem     the Problem
    rtol, atol  the tolerance that is asked about; 1e-6 and 1e-9
    allowed     about how many seconds the runs of the comparison may take; 10. What is compiled first is not counted
    names       of the components for printing, (n,); by default u[0], u[1] and so on

    Returns a `Diagnosis`. Raises RunFailed where not even odelab.AUTO gets through the problem, and ValueError where no
    method does within the seconds that are allowed.

    >>> import odelab as ol
    >>> found = ol.diagnose(ol.problems.van_der_pol(mu=1.0))
    >>> print(found.sentences[0])
    van_der_pol at rtol = 1e-06 is not stiff: accuracy chooses the steps of DOPRI5, ...
    >>> found.call
    'ol.solve(problem, ol...'
    """
    controller = adaptive(rtol, atol)
    sol = solve(problem, AUTO, controller)
    limits = modes = eigenvalues = None
    obstacle = obstacle_to_eigenvalues(problem)
    if not obstacle:
        try:
            limits = step_limits(problem, controller.rtol, controller.atol)
        except (ValueError, RunFailed) as reason:  # too few steps for windows, backwards in time, nothing to measure by
            obstacle = f"no windows could be cut ({str(reason).rstrip('.')})"
        t, u = problem.t_span[1], sol.end_u
        if limits is not None and limits.binding:
            t, u = limits.worst.start, limits.worst.at_start
        J = dense_jacobian(problem, t, u)
        modes, eigenvalues = modes_of(J, np.asarray(problem.slope(t, u)), u, names=names), spectrum(J)
    exact = exactness(problem, sol, limits, controller)
    found = costs(problem, candidates(problem, controller, limits, eigenvalues), controller, exact, allowed)
    if not any(one.finished for one in found):
        raise ValueError(f"`allowed` = {allowed:g} seconds are too few: no method got through {problem.name}.")
    error = found[0].error
    same = "that of the plain call" if error * controller.rtol < WRONG else "or rather one tolerance"
    return Diagnosis(problem, controller, sol, limits, modes, eigenvalues, tuple(found), error, same, obstacle)


def obstacle_to_eigenvalues(problem: Problem) -> str:
    """Why the eigenvalues of the Jacobian do not say what limits the steps; empty where they do."""
    if problem.mass is not None:
        return "it has a mass matrix (odelab.reduced_jacobian has its modes)"
    if problem.is_complex:
        return "its states are complex"
    return f"it has more than {LARGEST} components" if problem.size > LARGEST else ""


def exactness(problem: Problem, sol: Trajectory, limits: StepLimits | None, controller: Controller) -> Exactness:
    """States by which errors are judged: the exact ones of the windows, else those of a much sharper run."""
    if limits is not None:
        t = np.array([window.end for window in limits.windows])
        u = np.array([window.at_end for window in limits.windows])
    else:
        ends = np.asarray(sol.step_t)[1:]
        t = np.unique(ends[np.linspace(0, len(ends) - 1, TIMES).astype(int)])
        t = t if problem.t_span[1] > problem.t_span[0] else t[::-1]
        sharp = RODAS5P if problem.mass is not None or implicit_steps(sol) else DOP853
        rtol = max(SHARPER * controller.rtol, 10.0 * sharp.smallest_rtol)
        u = solve(
            problem, sharp, adaptive(rtol, controller.atol * rtol / controller.rtol), t_eval=t, t_eval_by="step"
        ).u
    return Exactness(t, u, controller.rtol, controller.atol)


def implicit_steps(sol: Trajectory) -> bool:
    """Has AUTO taken most of its steps by the implicit method?"""
    return sol.took is not None and np.mean(sol.took == RODAS4.name) > 0.5


def candidates(problem: Problem, controller: Controller, limits, eigenvalues) -> list[StepMethod]:
    """The methods that are worth a run, the one of the plain call first."""
    if problem.mass is not None:
        return [RODAS4, RODAS5P]
    chosen = [AUTO, DOPRI5, RODAS4, RODAS5P, DOP853]
    if controller.rtol >= 1e-4:
        chosen.append(BS32)
    if MANY < problem.size <= LARGEST and limits is not None and limits.stiff and real(eigenvalues.values):
        chosen.append(RKC2)
    return chosen


def real(values) -> bool:
    """Do the eigenvalues that are fast lie near the negative real axis?"""
    fast = values[np.abs(values) > 0.1 * np.abs(values).max()]
    return bool((fast.real < 0.0).all() and (np.abs(fast.imag) < 0.15 * np.abs(fast)).all())
