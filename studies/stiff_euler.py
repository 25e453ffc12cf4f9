"""Block-level paper, Figure 3, put right: explicit Euler on y' = -1000y + 3000 - 2000e^-t (about 3 s).

Claim examined: "even with a step size as small as 0.0015, the approximate solution is very inaccurate and unstable".
Result: at h = 0.0015 Euler is stable, |1 - 1000h| = 0.5, and only inaccurate during its first steps; the limit is
h = 0.002. Below it every error dies out, at it the error of the first step never dies, above it the error doubles
every few steps. Controllers find the limit by themselves: RKF45 and DOPRI5 take steps at their own stability boundary
whatever the tolerance, an implicit method does not.
"""

import dataclasses
from pathlib import Path

import numpy as np

import odelab as ol
from odelab.plot import stability_region, style
from studies.lab.command import plain_errors, require_positive, start
from studies.lab.page import Page
from studies.lab.statistics import Estimate
from studies.lab.verdicts import NOT_RUN, Verdict, of_interval, rule

STUDY = "stiff_euler"
PAPER_STEP = 0.0015
STEPS = (0.0005, 0.001, PAPER_STEP, 0.0019, 0.002, 0.0021, 0.0025)


@dataclasses.dataclass
class Arguments:
    """Explicit Euler at, below and above its stability limit, against RK4, RKF45, DOPRI5 and Radau."""

    out: Path = Path("results/stiff_euler")
    """Where figures, tables and record.json go."""
    horizon: float = 0.1
    """End of the long interval; the paper's is 0.1."""
    tolerances: tuple[float, ...] = (1e-3, 1e-5, 1e-7)
    """Relative tolerances of the adaptive runs."""
    adaptive_horizon: float = 5.0
    """End of the interval the adaptive methods are compared on."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, tolerances=(1e-3,), adaptive_horizon=0.5)
    require_positive(arguments, "horizon", "adaptive_horizon")
    with plain_errors(STUDY):
        for rtol in arguments.tolerances:
            ol.adaptive(rtol)
    page = Page(STUDY, arguments, "Explicit Euler on y' = -1000y + 3000 - 2000e^-t")
    problem = ol.problems.stiff_linear().replace(t_span=(0.0, arguments.horizon))
    rate = float(np.squeeze(ol.jacobian(problem)))

    fixed = list(fixed_rows(problem, rate))
    page.findings([judge_paper_step(fixed)])
    page.figure(
        paper_figure(problem, arguments.horizon),
        "figure3_of_the_paper",
        f"The paper's Figure 3: Euler at h = {PAPER_STEP:g}, during the first steps and over the whole interval.",
    )
    page.figure(error_figure(problem), "error_over_time", "Error over time at, below and above the limit of stability.")
    page.figure(stability_figure(problem), "stability_region", "Regions of stability, with the steps RKF45 takes.")
    page.table("fixed_steps", fixed, f"Fixed steps on [0, {arguments.horizon:g}], lambda = {rate:g}")
    longer = problem.replace(t_span=(0.0, arguments.adaptive_horizon))
    adapted = adaptive_rows(longer, arguments.tolerances)
    adapted = page.table("adaptive_steps", adapted, f"Adaptive steps on [0, {arguments.adaptive_horizon:g}]")
    page.conclusions(conclusions(rate, adapted))
    page.close()


def errors(problem, method, h):
    """(t, |error|) of a fixed-step run."""
    run = ol.solve(problem, method, ol.fixed(h), throw=False)
    return run, np.abs(run.u - problem.exact(run.t, problem.params))[:, 0]


def fixed_rows(problem, rate):
    for method in (ol.EULER, ol.RK4):
        for h in STEPS:
            run, error = errors(problem, method, h)
            growth = abs(method.stability(h * rate))
            yield {
                "method": method.name,
                "h": h,
                "h*lambda": h * rate,
                "|R(h*lambda)|": growth,
                "steps": run.steps,
                "largest error": error.max(),
                "error at the end": error[-1],
                "verdict": verdict(growth),
            }


def verdict(growth):
    if abs(growth - 1.0) < 1e-9:
        return "at the limit"
    return "stable" if growth < 1.0 else "unstable"


def adaptive_rows(problem, tolerances):
    for method in (ol.RKF45, ol.DOPRI5, ol.RADAU):
        for rtol in tolerances:
            run = ol.solve(problem, method, ol.adaptive(rtol, 1e-3 * rtol))
            error = np.abs(run.u - problem.exact(run.t, problem.params)).max()
            yield {
                "method": method.name,
                "rtol": rtol,
                "steps": run.steps,
                "rejected": run.rejected,
                "evaluations": run.evaluations,
                "median h": float(np.median(run.h)),
                "largest error": error,
                "held back by stability": run.held_back,
            }


def paper_figure(problem, horizon):
    with style.figure(1, 2, height=2.9) as (drawing, axes):
        for axis, end in zip(axes[0], (4 * PAPER_STEP, horizon), strict=True):
            run = ol.solve(problem.replace(t_span=(0.0, end)), ol.EULER, ol.fixed(PAPER_STEP))
            t = np.linspace(0.0, end, 2000)
            axis.plot(t, problem.exact(t, problem.params), color="black", label="exact")
            axis.plot(
                run.t, run.u[:, 0], "o-", markersize=3, color=style.COLOURS[1], label=f"Euler, h = {PAPER_STEP:g}"
            )
            axis.set(xlabel="t", title=f"[0, {end:g}]")
        axes[0, 0].set_ylabel("y")
        axes[0, 1].legend(loc="lower right")
    return drawing


def error_figure(problem):
    with style.figure(1, 2, height=3.3, sharey=True) as (drawing, axes):
        for axis, method in zip(axes[0], (ol.EULER, ol.RK4), strict=True):
            for h, colour in zip(STEPS, style.COLOURS, strict=False):
                run, error = errors(problem, method, h)
                axis.plot(run.t[1:], np.clip(error[1:], 1e-16, 1e16), color=colour, label=f"{h:g}")
            axis.set(xlabel="t", yscale="log", title=method.name, ylim=(1e-14, 1e12))
        axes[0, 0].set_ylabel("|error|")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", title="h")
    return drawing


def stability_figure(problem):
    run = ol.solve(problem, ol.RKF45, ol.adaptive(1e-5, 1e-8))
    return stability_region([ol.RKF45, ol.RK4, ol.EULER], run)


@rule(
    f"even with a step size as small as {PAPER_STEP:g} Euler's method is unstable",
    "block-level paper, Section 4.1 and Figure 3",
    exempt="the factor by which the method multiplies an error is computed, nothing is drawn",
)
def judge_paper_step(rows) -> tuple[Verdict, str]:
    """Supported where Euler's method with the paper's step makes an error of the solution grow, |1 + h lambda| above 1;
    contradicted where it damps it."""
    paper = next((row for row in rows if row["method"] == "EULER" and row["h"] == PAPER_STEP), None)
    if paper is None:
        return NOT_RUN, f"n = 0: Euler's method was not run with h = {PAPER_STEP:g}."
    growth = paper["|R(h*lambda)|"]
    return of_interval(Estimate(*[growth] * 3).less(1.0)), (
        f"|1 + h lambda| = {growth:.3g}. The largest error, {paper['largest error']:.3g}, belongs to the first steps; "
        f"at the end {paper['error at the end']:.2g} is left. Inaccurate at first, not unstable."
    )


def conclusions(rate, adapted):
    limit = ol.EULER.real_boundary / abs(rate)
    held = [row for row in adapted if row["held back by stability"]]
    spread = {
        row["method"]: [other["steps"] for other in adapted if other["method"] == row["method"]] for row in adapted
    }
    lines = [
        f"The limit is h = {limit:.4g}, where |R| = 1.",
        f"Runs whose steps stability chose: {', '.join(sorted({row['method'] for row in held})) or 'none'}.",
    ]
    lines += [
        f"{name}: {' / '.join(map(str, counts))} steps from the loosest to the sharpest tolerance."
        for name, counts in spread.items()
    ]
    return lines


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
