"""Methods and step-size laws over the catalogue: work against precision, and how smooth the steps are (about 2 min).

Söderlind (2003) designed eight digital filters so that step sequences stay smooth. This study shows what a given
error costs with every method on every problem that the method can solve. On runs whose steps are limited by stability
it also shows how many steps of each law are rejected and how much its step sizes jitter. The filters are not designed
for such runs, and most have more rejections there than the PI laws, which were designed for them (Gustafsson 1991; Hall
and Higham 1988).
"""

import dataclasses
from pathlib import Path

import numpy as np
from rich.progress import track

import odelab as ol
from odelab.control.laws import FILTERS
from odelab.experiments import step_jitter
from odelab.plot import style
from odelab.plot import work_precision as work_precision_figure
from studies.lab.command import plain_errors, start
from studies.lab.page import Page

STUDY = "work_precision"
EXPLICIT = (ol.HEUN, ol.BS32, ol.RKF45, ol.DOPRI5, ol.DOP853)
PROBLEMS = {
    "lorenz": lambda: ol.problems.lorenz(),
    "brusselator": lambda: ol.problems.brusselator(),
    "arenstorf": lambda: ol.problems.arenstorf(),
    "pleiades": lambda: ol.problems.pleiades(),
    "rigid_body": lambda: ol.problems.rigid_body(),
    "van_der_pol": lambda: ol.problems.van_der_pol(mu=5.0).replace(t_span=(0.0, 20.0)),
    "hires": lambda: ol.problems.hires().replace(t_span=(0.0, 5.0)),
    "robertson": lambda: ol.problems.robertson().replace(t_span=(0.0, 0.3)),
    "brusselator_1d": lambda: ol.problems.brusselator_1d(n=40).replace(t_span=(0.0, 1.0)),
    "oregonator": lambda: ol.problems.oregonator().replace(t_span=(0.0, 360.0)),
}
IMPLICIT_TOO = ("hires", "robertson", "van_der_pol", "brusselator_1d", "oregonator")
STABILISED_TOO = ("hires", "brusselator_1d")  # spectra along the negative real axis
IMPLICIT_ONLY = ("oregonator",)
HELD_BACK = {
    "linear, -1000 and -1": lambda: ol.problems.linear_symmetric([-1000.0, -1.0]).replace(t_span=(0.0, 5.0)),
    "Robertson": lambda: ol.problems.robertson().replace(t_span=(0.0, 2.0)),
    "van der Pol, mu = 100": lambda: ol.problems.van_der_pol(mu=100.0).replace(t_span=(0.0, 20.0)),
    "Curtiss-Hirschfelder": lambda: ol.problems.curtiss_hirschfelder().replace(t_span=(0.0, 60.0)),
}
LAWS: tuple[str, ...] = ("i", "pi42", "pi33", "pi34", "pc11", *FILTERS)


@dataclasses.dataclass
class Arguments:
    """Every method on every problem; then every law on runs that stability holds back."""

    out: Path = Path("results/work_precision")
    """Where figures, tables and record.json go."""
    tolerances: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    """Relative tolerances."""
    held_back_rtol: float = 1e-5
    """Tolerance of the runs held back by stability."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


def main(arguments: Arguments):
    problems, laws, held_back = PROBLEMS, LAWS, HELD_BACK
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, tolerances=(1e-3, 1e-4))
        problems = {name: PROBLEMS[name] for name in ("brusselator", "robertson")}
        laws, held_back = ("i", "pi42", "h211b"), {"Robertson": HELD_BACK["Robertson"]}
    with plain_errors(STUDY):
        for rtol in (*arguments.tolerances, arguments.held_back_rtol):
            ol.adaptive(rtol)
    page = Page(STUDY, arguments, "Work against precision, and how smooth the steps are")

    measured = {}
    for name, make in track(problems.items(), description="methods", transient=True):
        methods: list = [] if name in IMPLICIT_ONLY else [*EXPLICIT]
        methods += [ol.RKC2] if name in STABILISED_TOO else []
        methods += [ol.RADAU, ol.BDF] if name in IMPLICIT_TOO else []
        measured[name] = ol.work_precision(make(), methods, rtol=arguments.tolerances, max_steps=400_000)
        page.figure(
            work_precision_figure(measured[name], against=("evaluations",)),
            f"methods_{name}",
            f"Every method on {name}: the error against the evaluations it took.",
        )
    title = (
        "Evaluations for a relative error of 1e-6, interpolated; Jacobians and factorisations are not counted, and nan "
        "means that no run is so exact, or all are more exact"
    )
    costs = page.table("cost_of_six_digits", cost_rows(measured), title)
    page.numbers["methods"] = {name: data.rows for name, data in measured.items()}

    filters = {}
    for name in ("brusselator", "van_der_pol"):
        if name in problems:
            filters[name] = ol.work_precision(problems[name](), [ol.DOPRI5], rtol=arguments.tolerances, laws=laws)
            page.figure(
                work_precision_figure(filters[name], against=("evaluations",)),
                f"laws_{name}",
                f"Every law with DOPRI5 on {name}.",
            )
    rows, runs = smoothness(held_back, laws, arguments.held_back_rtol)
    page.table("laws_held_back", rows, f"DOPRI5 held back by stability, rtol {arguments.held_back_rtol:g}")
    page.figure(
        sequences_figure(runs, laws), "step_sequences", "The last steps of each law where stability holds it back."
    )
    page.conclusions(conclusions(costs, rows))
    page.close()


def cost_rows(measured, error=1e-6):
    """Evaluations each method needs for one error, read off its curve on log axes."""
    names = sorted({method for data in measured.values() for method, _ in data.curves()}, key=order_of_names)
    for name, data in measured.items():
        row = {"problem": name}
        costs = {method: cost for (method, _), cost in data.cost(error).items()}
        yield row | {method: costs.get(method, float("nan")) for method in names}


def order_of_names(name):
    return [*(method.name for method in EXPLICIT), "RKC2", "RADAU", "BDF"].index(name)


def smoothness(problems, laws, rtol):
    rows, runs = [], {}
    for name, make in problems.items():
        for law in laws:
            run = ol.solve(make(), ol.DOPRI5, ol.adaptive(rtol, 1e-3 * rtol, law), max_steps=200_000, throw=False)
            runs[name, law] = run
            rows.append(
                {
                    "problem": name,
                    "law": law,
                    "steps": run.steps,
                    "rejected": run.rejected,
                    "evaluations": run.evaluations,
                    "jitter": step_jitter(run),
                    "held back": run.held_back,
                }
            )
    return rows, runs


def sequences_figure(runs, laws, shown=120):
    """The last steps of each law on the first problem, each in its own row."""
    name = next(iter(runs))[0]
    columns = 2
    height = -(-len(laws) // columns)
    with style.figure(height, columns, height=0.85 * height + 0.8, sharex=True, sharey=True) as (drawing, axes):
        for axis, law in zip(axes.flat, laws, strict=False):
            h = runs[name, law].h[-shown - 1 : -1]
            axis.plot(h / np.median(h), linewidth=0.9)
            axis.set_title(f"{law}, {runs[name, law].rejected} rejected", loc="left", pad=2)
            axis.set(ylim=(0.5, 1.6))
        for axis in axes.flat[len(laws) :]:
            axis.set_axis_off()
        drawing.supylabel("h / median", fontsize=9)
        drawing.supxlabel(f"the last {shown} steps on {name}", fontsize=9)
    return drawing


def conclusions(costs, rows):
    lines = []
    for row in costs:
        reached = {method: cost for method, cost in row.items() if method != "problem" and np.isfinite(cost)}
        if reached:
            best = min(reached, key=lambda method: reached[method])
            lines.append(f"{row['problem']}: {best} is cheapest for an error of 1e-6, {reached[best]:.0f} evaluations.")
    for name in dict.fromkeys(row["problem"] for row in rows):
        here = [row for row in rows if row["problem"] == name]
        by = {row["law"]: row for row in here}
        calm = min(here, key=lambda row: row["jitter"])
        worse = [law for law, row in by.items() if row["rejected"] > by["i"]["rejected"]]
        lines.append(
            f"Held back on {name}: i is rejected {by['i']['rejected']} times, pi42 {by['pi42']['rejected']}; more "
            f"often than i: {', '.join(worse) or 'none'}; smoothest steps: {calm['law']}."
        )
    return lines


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
