"""The sections of the report of `switching`, behind its verdicts: tables and figures with their captions."""

import numpy as np

from studies.lab.page import Page
from studies.switching import (
    analysis,
    batch,
    factorial,
    measures,
    networks,
    sensitivity,
)
from studies.switching.design import Preset
from studies.switching.observations import DOUBTED, Lab, usable
from studies.switching.report import figures, scenes, tables

PARTS = "What attempts take, and the parts of an implicit one in evaluations; all that a problem is measured by"
CONFUSION = "By family, windows: stiff and called so / stiff and missed / called and not stiff / neither"


def truth(page: Page, lab: Lab, preset: Preset, middle: float, everywhere, beyond):
    """Where stiffness is, and which index tells."""
    loose, sharp = preset.eps[0], preset.eps[-1]
    page.heading("Where stiffness is")
    page.figure(
        figures.truth_map(lab, middle, loose, sharp),
        "truth",
        "What the explicit method costs over the implicit one, by window. Red: stiff. Hatched: the class changes "
        f"between errors of {loose:.0e} and {sharp:.0e}. Problems of one family stand together.",
    )
    seen, doubt = np.isfinite(lab.doubt), lab.doubt
    if seen.any():
        lost = ", ".join(f"{(doubt > DOUBTED * eps).sum()} at {eps:.0e}" for eps in preset.eps)
        page.words(
            f"The exact states at the ends of {seen.sum()} of {len(doubt)} windows, those that the explicit method "
            f"gets through at a tolerance of {measures.DOUBTING:.0e}, were computed by it a second time: they differ "
            f"by {np.median(doubt[seen]):.1e} in the median and {doubt[seen].max():.1e} at most. Where they differ by "
            f"more than a tenth of the error, R counts as not known: {lost}."
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
        tables.rankings(lab, everywhere, beyond, analysis.over_all_errors(lab, preset.eps, preset.resamples)),
        "Area under the curve, and median rank correlation within problems",
    )
    family = dict(zip(lab.name.tolist(), lab.family.tolist(), strict=True))
    sai, ratio = (analysis.per_problem(lab, name, middle) for name in ("SAI", "rho_ng/SAI"))
    page.figure(
        figures.arrows(sai, ratio, family),
        "within",
        "Within one problem: how SAI and the ratio rank its windows. A dot is a problem whose R spans a factor of "
        "three, a colour some of the families.",
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
    if preset.timed:
        page.table("parts", tables.parts(lab), PARTS, printed=False)
    page.table("confusion", tables.confusion(lab, middle), CONFUSION, printed=False)
    page.table("graves", tables.graves(lab, preset.eps), "Grave mistakes, by problem", printed=False)


def forced_systems(page: Page, lab: Lab, forced: Lab, preset: Preset, middle: float, fits, pair):
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


def switches(page: Page, lab: Lab, middle: float, tables_of_costs):
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


def run_section(page: Page, preset: Preset, pair):
    if not preset.auto:
        return
    page.heading("One run told")
    explicit, implicit = pair
    told = measures.measure_one_run(preset, explicit, implicit, batch.SHARP)
    page.figure(
        scenes.run_figure(told, *pair),
        "one_run",
        "Van der Pol's oscillator at mu = 100. Where R is above 1 (shaded) the solution creeps: SAI is small there and "
        "chi large; in the jumps it is the other way round, and both methods take steps of one size. Where chi and "
        "h_R/h_stab leave the panel every mode grows, and no step is too large to be stable.",
    )


def of_networks(page: Page, arguments, preset: Preset, lab: Lab, middle: float):
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
        f"rho_ng/SAI where R is 1/2 to 2, {band[0]:.0f} to {band[1]:.0f})."
        + (
            " Right: steps of Euler's method over those of the linearly implicit one at an error of "
            f"{networks.ERROR:g} of a block's step, for one image and the blocks on which both reach it in "
            f"{networks.LADDER[-1]} steps."
            if any(np.isfinite(row["implicit steps"]) for row in rows)
            else ""
        ),
    )
    page.table(
        "networks", tables.networks(rows), "Time scales of blocks: medians over blocks and images", printed=False
    )
    page.numbers["blocks"] = rows
