"""What is stiffness? Every index against what explicit and implicit methods cost at equal error (about 3 min).

Claims examined: SAI tells where a problem is stiff and stands for SI (Huang, Liang et al., Understanding
Self-attention Mechanism via Dynamical System Perspective, 2023); and claims that follow from theory. Stiffness is
defined here as the cost of an explicit method over that of an implicit one at equal error, on windows of solutions;
`design.py` has the definition and the rules of the verdicts. Last full run (1,633 windows of 90 problems and 3,000
forced systems, 2026-11-19, in shipped/): SAI contradicted, it points the other way (area under the curve 0.29 to 0.34);
chi = h_acc/h_stab 0.94 to 0.96, above every index of the problem alone, with exponents that miss theory's.
"""

import dataclasses
import shutil
import time
from pathlib import Path
from typing import Literal

import numpy as np

import odelab as ol
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.page import Page
from studies.switching import (
    analysis,
    factorial,
    figures,
    findings,
    measures,
    measuring,
    networks,
    policies,
    scenes,
    sensitivity,
    tables,
)
from studies.switching.design import PRESETS, Preset
from studies.switching.observations import Lab, usable

STUDY = "switching"
SHIPPED = Path(__file__).parent / "shipped"
KEPT = ("record.json", "report.md")  # what `--ship` takes beside the figures


@dataclasses.dataclass
class Arguments:
    """Judge every index of stiffness by what explicit and implicit methods cost."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 37 problems, up to 10 windows each, 400 forced systems, one network; full: 90 problems, up to 40 windows
    each, other methods and windows, 3,000 forced systems, ten networks, and 2,000 resamples."""
    eps: tuple[float, ...] = ()
    """Errors at which costs are compared; 1e-3, 1e-4, 1e-6 and 1e-8 by default."""
    explicit: str = "DOPRI5"
    """The explicit method, such as DOPRI5 or RKF45; it needs an error estimate."""
    implicit: str = "RODAS4"
    """The L-stable method: RODAS4, RODAS5P or ROS2."""
    problems: tuple[str, ...] = ()
    """Only problems whose names begin so; all by default."""
    define: Path | None = None
    """A Python file with problems and indices of your own; `studies.switching.measures.adopt` says how it looks."""
    networks: int | None = None
    """How many shipped networks are looked at; 0: none. quick: 1, full: 10. Without the images of CIFAR-10, those of
    the digits' networks."""
    workers: int = 1
    """Processes that measure."""
    executor: str | None = None
    """The address of a Dask scheduler whose workers measure, such as tcp://host:8786."""
    fresh: bool = False
    """Measure anew what is there from an earlier run with the same options; without it, a run goes on."""
    ship: bool = False
    """Write record, report and figures into the study's folder, in place of what came with it."""
    out: Path = Path("results/switching")
    """Where measurements (in windows/), figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""


def main(arguments: Arguments):
    began = time.perf_counter()
    require_at_least(1, arguments, "workers")
    require_at_least(0, arguments, "networks")
    preset = PRESETS["smoke" if arguments.smoke else arguments.preset]
    with plain_errors(STUDY):
        preset = with_errors(preset, arguments.eps)
        pair = check_pair(arguments)
        define = None if arguments.define is None else str(arguments.define)
        wanted = [one for one in measures.all_subjects(define) if one.knob <= preset.knob]
        if arguments.problems:
            wanted = [one for one in wanted if one.name.startswith(arguments.problems)]
        if not wanted:
            names = [one.name for one in measures.all_subjects(define)]
            raise SystemExit(f"studies.{STUDY}: `--problems` names none of {names}.")
        kept = arguments.out / "windows"
        found = measuring.measure_all(
            wanted, preset, pair, kept, define, arguments.workers, arguments.executor, arguments.fresh
        )
        lab = Lab(found, tuple(measures.adopt(define).indices))
        engine = "python" if arguments.smoke else "auto"  # making kernels would take longer than the few systems do
        ladder = preset.tolerances[:4] if arguments.smoke else preset.tolerances
        path = kept / f"factorial_{preset.systems}.json"
        forced = Lab(factorial.measure_or_read(path, preset.systems, ladder, *pair, engine, arguments.fresh))

    page = Page(
        STUDY,
        arguments,
        "What is stiffness?",
        f"{len(lab.windows)} windows of {len(lab.problems)} problems in {len(set(lab.family))} families, and "
        f"{len(forced.problems)} forced linear systems; {arguments.explicit} against {arguments.implicit}.",
    )
    page.began = began  # the time it tells includes the measurements
    middle = min(preset.eps, key=lambda eps: abs(np.log(eps / 1e-4)))
    everywhere = {eps: analysis.rankings(lab, eps, preset.resamples) for eps in preset.eps}
    beyond = {eps: analysis.rankings(lab, eps, preset.resamples, band=True) for eps in preset.eps}
    tables_of_costs = {eps: policies.policies(lab, eps) for eps in preset.eps}
    fits = fit_powers(lab, forced, preset)
    judge(page, lab, forced, preset, everywhere, beyond, tables_of_costs, fits)
    tell_truth(page, lab, preset, middle, everywhere, beyond)
    tell_forced(page, lab, forced, preset, middle, fits, pair)
    tell_switches(page, lab, middle, tables_of_costs)
    tell_one_run(page, preset, pair)
    tell_networks(page, arguments, preset, lab, middle)
    page.close()
    if arguments.ship:
        ship(arguments.out)


def with_errors(preset: Preset, eps: tuple[float, ...]) -> Preset:
    """The preset with the errors that were asked for, the largest first."""
    if not eps:
        return preset
    least, most = 1e-9, 1e-1
    if not all(least <= one <= most for one in eps):
        raise ValueError(f"`--eps` must lie between {least:g} and {most:g}, which the tolerances reach, got {eps}.")
    return dataclasses.replace(preset, eps=tuple(sorted(set(eps), reverse=True)))


def check_pair(arguments: Arguments) -> tuple[str, str]:
    """The names of both methods."""
    for name, kind in (("explicit", ol.Method), ("implicit", ol.RosenbrockMethod)):
        method = getattr(ol, getattr(arguments, name), None)
        if not isinstance(method, kind) or not method.embedded:
            raise ValueError(
                f"`--{name}` must name a {kind.__name__} of odelab with an error estimate, got "
                f"{getattr(arguments, name)!r}."
            )
    return arguments.explicit, arguments.implicit


def fit_powers(lab: Lab, forced: Lab, preset: Preset) -> dict[str, analysis.Powers | None]:
    """The powers of R where stability binds, over the windows and over the factorial."""
    kinds = np.array([problem["levels"]["kind"] for problem in forced.problems])
    origin = np.array([problem["levels"]["origin"] for problem in forced.problems])
    errors, few = preset.eps, min(preset.resamples, 300)
    told = {
        "windows, pace SAI": analysis.powers(lab, errors, preset.resamples),
        "windows, pace |f'|/|f|": analysis.powers(lab, errors, preset.resamples, "rate"),
        "factorial, pace SAI": analysis.powers(forced, errors, few),
        "factorial, pace SAI, origin 0": analysis.powers(forced, errors, few, only=origin == 0.0),
        "factorial, pace |f'|/|f|": analysis.powers(forced, errors, few, "rate"),
    }
    return told | {
        f"factorial, pace |f'|/|f|, {kind}": analysis.powers(forced, errors, few, "rate", kinds == kind)
        for kind in factorial.KINDS
    }


def judge(page: Page, lab: Lab, forced: Lab, preset: Preset, everywhere, beyond, tables_of_costs, fits):
    """The nine claims."""
    sheared = forced.column("non_normal")
    few = min(preset.resamples, 500)
    names = ("h_acc/h_stab", "h_acc/h_power")
    on_sheared = [
        {eps: analysis.rankings(forced, eps, few, sheared, band, names) for eps in preset.eps} for band in (False, True)
    ]
    loose, sharp = preset.eps[0], preset.eps[-1]
    change = analysis.share_that_changes(lab, loose, sharp) if loose != sharp else float("nan")
    page.heading("What these data say")
    page.words(
        "A window of a solution is stiff at an error where the explicit method needs more than the L-stable one to end "
        "it with that error: R, the ratio of their costs, is above 1. An index is judged by its area under the curve: "
        "the chance that it is larger on a stiff window than on another. Intervals, 95 %, come from resampling "
        "families of problems. All errors must agree, and windows beyond a factor of two with all windows."
    )
    first = findings.sai_tells(everywhere, beyond)
    found = [
        first,
        findings.simplified_suffices(everywhere, first),
        findings.stands_for_si(fits["windows, pace SAI"]),
        findings.of_the_problem(change, len(lab.windows)),
        findings.theory_tells(everywhere, beyond, fits["windows, pace SAI"]),
        findings.ratio_tells(everywhere, beyond),
        findings.damping_alone({eps: analysis.bound_without_damping(lab, eps) for eps in preset.eps}),
    ]
    families = len(set(lab.family))
    of_forced = findings.require_families([findings.powers_tell(*on_sheared)], len(set(forced.family[sheared])))
    last = findings.require_families([findings.switches(tables_of_costs)], families)
    page.findings([*findings.require_families(found, families), *of_forced, *last])


def tell_truth(page: Page, lab: Lab, preset: Preset, middle: float, everywhere, beyond):
    """Where stiffness is, and which index tells."""
    loose, sharp = preset.eps[0], preset.eps[-1]
    page.heading("Where stiffness is")
    page.figure(
        figures.truth_map(lab, middle, loose, sharp),
        "truth",
        "What the explicit method costs over the implicit one, by window. Red: stiff. Hatched: the class changes "
        f"between errors of {loose:.0e} and {sharp:.0e}. Problems of one family stand together.",
    )
    page.table("truth", tables.truth(lab, preset.eps), "Share of stiff windows, and median of log10 R", printed=False)
    page.heading("Which index tells")
    page.figure(
        figures.ratio_against_indices(lab, middle, everywhere[middle]),
        "indices",
        f"R against six indices at an error of {middle:.0e}. A point is a window, a colour and a mark a family. What "
        "lies beyond an axis is drawn at its end. Dashed: theory, (c_E/c_I) max(1, chi), without constants.",
    )
    page.figure(
        figures.forest(lab, everywhere),
        "forest",
        "How well each index ranks windows. Darker: smaller errors. The trial step is nearly the truth itself and only "
        "shown as the upper limit.",
    )
    page.table(
        "rankings",
        tables.rankings(lab, everywhere, beyond),
        "Area under the curve, and median rank correlation within problems",
    )
    family = dict(zip(lab.name.tolist(), lab.family.tolist(), strict=True))
    sai, ratio = (analysis.per_problem(lab, name, middle) for name in ("SAI", "rho_ng/SAI"))
    page.figure(
        figures.arrows(sai, ratio, family),
        "within",
        "Within one problem: how SAI and the ratio rank its windows. A dot is a problem whose R spans a factor of "
        "three.",
    )
    if loose != sharp:
        page.heading("What the tolerance does")
        page.figure(
            figures.tolerances(lab, preset.eps),
            "tolerances",
            "R of single windows against the error. Dashed: slopes of theory. Right: a slow rotation beside a fast "
            "one, of one Jacobian and one SAI; only the amplitude of the fast one differs.",
        )
        page.table("slopes", tables.slopes(lab, loose, sharp), "Slope of log R over log error", printed=False)
    page.heading("What R owes to choices")
    rows = sensitivity.rows(lab, middle, preset.eps)
    page.table(
        "sensitivity", rows, f"R under other choices, against the base at an error of {middle:.0e}", printed=False
    )
    page.table("confusion", tables.confusion(lab, middle), CONFUSION, printed=False)
    page.table("graves", tables.graves(lab, preset.eps), "Grave mistakes, by problem", printed=False)


CONFUSION = "By family, windows: stiff and called so / stiff and missed / called and not stiff / neither"


def tell_forced(page: Page, lab: Lab, forced: Lab, preset: Preset, middle: float, fits, pair):
    """The factorial: exponents, invariances, the plane, non-normality."""
    page.heading("Jacobian and solution, chosen apart")
    page.words(
        "The forced linear systems u' = A (u - g(t)) + g'(t) follow g = c + cos(w t) whatever A is. Kind and radius of "
        "A, the pace w, the origin c and the amplitude of fast modes that are alive at the start are the factors; no "
        "two of them are correlated. The origin changes SAI and nothing in R."
    )
    page.table("exponents", tables.exponents(fits), "Powers of R where stability binds, R in attempts")
    page.table(
        "invariances",
        tables.invariances(lab, forced, middle),
        f"Areas under changes that leave R as it is, error {middle:.0e}",
        printed=False,
    )
    if not preset.plane:
        return
    ratios = np.geomspace(1.0, 1e5, preset.plane)
    eps = 10.0 ** np.linspace(-2.0, -8.0, 25)
    planes = [factorial.plane(kind, ratios, eps, preset.tolerances, *pair) for kind in ("normal", "oscillating")]
    page.figure(
        scenes.forced_plane(planes),
        "plane",
        "R of forced systems over the rate rho of the modes, in units of the solution's pace w, and the error. Solid: "
        "R = 1, measured. Dashed: R = 1 of theory, (c_E/c_I) h_I / min(h_E, h_stab), without constants. Small errors "
        "at the end of a run depend on the phase in which it ends, hence the teeth.",
    )
    page.figure(
        scenes.non_normal(factorial.along_shear(preset.tolerances, *pair)),
        "non_normal",
        "One spectrum, further and further from normal: R in attempts, and what eigenvalues and powers of a step "
        "predict. Lines are medians over random vectors, bands their quartiles.",
    )


def tell_switches(page: Page, lab: Lab, middle: float, tables_of_costs):
    page.heading("Indices as switches")
    page.figure(
        figures.policies(tables_of_costs[middle]),
        "switches",
        f"What it costs to choose the method by an index, over choosing right in every window; error {middle:.0e}. "
        "Thresholds are the best in hindsight but for theory's.",
    )
    page.table("switches", tables.switches(tables_of_costs), "Switching by an index", printed=False)
    rows = tables.auto(lab)
    if rows:
        over = np.array([row["AUTO over the better"] for row in rows])
        lost = [row["problem"] for row in rows if np.isinf(row["AUTO over the better"])]
        over = over[np.isfinite(over)]
        page.words(
            f"Real runs of ol.AUTO over {len(over)} whole problems at a relative tolerance of {measures.WHOLE:.0e}: in "
            f"evaluations, over the better of its two methods, they cost {np.exp(np.log(over).mean()):.2f} in the "
            f"geometric mean, {np.median(over):.2f} in the median and {over.max():.2f} at worst."
            + (f" On {', '.join(lost)} it did not get there, and another method did." if lost else "")
        )
    page.table("auto", rows, "Evaluations of whole runs at equal tolerance", printed=False)


def tell_one_run(page: Page, preset: Preset, pair):
    if not preset.auto:
        return
    page.heading("One run told")
    explicit, implicit = pair
    told = measures.measure_one_run(preset, explicit, implicit, measuring.SHARP)
    page.figure(
        scenes.one_run(told, *pair),
        "one_run",
        "Van der Pol's oscillator at mu = 100. Where R is above 1 (shaded) the solution creeps: SAI is small there and "
        "chi large; in the jumps it is the other way round, and both methods take steps of one size.",
    )


def tell_networks(page: Page, arguments: Arguments, preset: Preset, lab: Lab, middle: float):
    count = preset.networks if arguments.networks is None else arguments.networks
    if not count:
        return
    from netbridge import data

    page.heading("Residual networks by the same ratio")
    kept = arguments.out / "windows"
    for dataset in ("cifar10", "digits"):
        try:
            names = networks.shipped_names(dataset)[:count]
            rows = networks.measure_networks(names, preset.truths, preset.images, kept, arguments.fresh)
            break
        except data.DataUnavailable:
            page.warn(f"The images of {dataset} are not here and cannot be had.")
    else:
        return
    ratio, values = lab.truth(middle), lab.values(middle)["rho_ng/SAI"]
    near = usable(ratio) & (ratio > 0.5) & (ratio < 2.0) & np.isfinite(values)
    band = tuple(np.quantile(values[near], (0.25, 0.75))) if near.any() else (10.0, 100.0)
    page.figure(
        scenes.networks(rows, band),
        "networks",
        "Blocks of trained networks: how fast the modes that do not grow are, against how fast the state moves. "
        "Dotted: lines of one ratio. Band: where windows of differential equations turn stiff (quartiles of "
        f"rho_ng/SAI where R is 1/2 to 2, {band[0]:.0f} to {band[1]:.0f}). Right: steps of Euler's method over those "
        f"of the linearly implicit one at an error of {networks.ERROR:g} of a block's step.",
    )
    page.table(
        "networks", tables.networks(rows), "Time scales of blocks: medians over blocks and images", printed=False
    )
    page.numbers["blocks"] = rows


def ship(out: Path) -> None:
    """Copy record, report and figures beside the study."""
    SHIPPED.mkdir(exist_ok=True)
    for old in SHIPPED.iterdir():
        old.unlink()
    for path in (*(out / name for name in KEPT), *sorted(out.glob("*.png"))):
        shutil.copy(path, SHIPPED / path.name)


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
