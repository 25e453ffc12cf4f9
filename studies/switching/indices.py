"""Which index tells where stiffness is: SAI, the simplified SAI, chi, SI/SAI, s[J]; and what R owes to choices.

First come the windows themselves, then the claims about indices, each with its rule and the worlds in which the rule
was tried, and what is shown of them; then how much R, and with it the ranking of indices, owes to choices: of methods,
costs, windows, starts and errors.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy import stats

from odelab.plot import style
from studies.lab.page import Page
from studies.lab.statistics import Estimate, interval_text
from studies.lab.verdicts import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Verdict,
    agreement,
    corrected,
    of_closeness,
    of_each,
    of_interval,
    of_parts,
    of_strength,
)
from studies.switching.evidence import (
    BANDS,
    DOUBTED,
    ERRORS,
    EXPONENTS,
    OPEN,
    WINDOWS,
    Evidence,
    MadeUp,
    Powers,
    Ranking,
    Rankings,
    Windows,
    area_under_curve,
    areas,
    at_each,
    clear,
    correlations,
    made_up_powers,
    of_exponent,
    of_families,
    only_support,
    over_all_errors,
    power_of_ten,
    rule_over_families,
    spread,
    together,
    usable,
)
from studies.switching.runs import DOUBTING, INDICES, OTHERS, REFERENCE, SYMBOLS, YOURS

CHANCE = 0.5  # the area under the curve of a coin
INDEX_TELLS, INDEX_NONE = 0.8, 0.65  # areas above which an index tells, and up to which it is no better than a coin
CHI_TELLS, CHI_NONE = 0.85, 0.75  # the same of chi, of which theory says more
WITHIN = 0.5  # the median rank correlation within problems above which an index tells
SAME_AREA = 0.05  # areas so near to one another are the same
COIN = (
    "An area that is certainly that of a coin now shows no difference, and the claim is contradicted where the index "
    "certainly points the other way; before, an interval below the lower threshold contradicted the claim"
)


def gaps(by_error: Rankings, name: str, other: str) -> dict[float, Estimate]:
    """By how much the area of an index is above that of another one, on the same resamples of the families."""
    return {eps: table[name].auc.minus(table[other].auc, corrected(2)) for eps, table in by_error.items()}


def words_on_bands(far: Rankings, name: str) -> str:
    """The areas of the index on windows beyond a factor of two, in a sentence."""
    return f"On windows where one method costs more than twice the other: {at_each(areas(far, name))}."


# ---- Where stiffness is ----

RANGE = 3.0  # decades of R on either side of 1 that the colours span


def show_truth(page: Page, evidence: Evidence):
    windows, eps_values = evidence.windows, evidence.preset.eps
    page.figure(
        draw_truth(windows, evidence.middle, eps_values[0], eps_values[-1]),
        "truth",
        "What the explicit method costs over the implicit one, by window. Red: stiff. Hatched: the class changes "
        f"between errors of {eps_values[0]:.0e} and {eps_values[-1]:.0e}. Problems of one family stand together.",
    )
    seen, doubt = np.isfinite(windows.doubt), windows.doubt
    if seen.any():
        lost = ", ".join(f"{(doubt > DOUBTED * eps).sum()} at {eps:.0e}" for eps in eps_values)
        page.words(
            f"The exact states at the ends of {seen.sum()} of {len(doubt)} windows, those that the explicit method "
            f"gets through at a tolerance of {DOUBTING:.0e}, were computed by it a second time: they differ "
            f"by {np.median(doubt[seen]):.1e} in the median and {doubt[seen].max():.1e} at most. Where they differ by "
            f"more than a tenth of the error, R counts as not known: {lost}."
        )
    rows = truth_rows(windows, eps_values)
    page.table("truth", rows, "Share of stiff windows, and median of log10 R", printed=False)


def truth_rows(windows: Windows, eps_values) -> Iterator[dict]:
    """By problem: the share of stiff windows and the median of R at each error."""
    for problem in windows.problems:
        row = {"problem": problem["name"], "family": problem["family"], "windows": len(problem["windows"])}
        for eps in eps_values:
            ratio = windows.ratio(eps)[windows.name == problem["name"]]
            ratio = ratio[np.isfinite(ratio)]
            row[f"stiff at {eps:.0e}"] = float(np.mean(ratio > 1.0)) if len(ratio) else "unknown"
            row[f"log10 R at {eps:.0e}"] = float(np.median(np.log10(ratio))) if len(ratio) else "unknown"
        given_up = sum(any(window["explicit"]["censored"]) for window in problem["windows"])
        yield row | {"windows with a run given up": given_up}


def draw_truth(windows: Windows, eps: float, loose: float, sharp: float):
    """Every window of every problem, coloured by R; hatched where the class changes between two errors."""
    ratio = np.log10(windows.ratio(eps))
    changed = (windows.ratio(loose) > 1.0) != (windows.ratio(sharp) > 1.0)
    top, heights, before = 0.0, {}, None
    for name, family in windows.family_of.items():  # a gap between families
        top += 1.0 if before in (None, family) else 1.35
        heights[name], before = top, family
    with style.figure(height=0.108 * top + 1.0) as (drawing, axes):
        plane = axes[0, 0]
        for name, y in heights.items():
            mask = windows.name == name
            edges = np.linspace(0.0, 1.0, mask.sum() + 1)
            cells = np.clip(ratio[mask], -RANGE, RANGE)[None, :]
            image = plane.pcolormesh(edges, [y - 0.45, y + 0.45], cells, cmap="RdBu_r", vmin=-RANGE, vmax=RANGE)
            for sides, flag in zip(np.stack([edges[:-1], edges[1:]], 1), changed[mask], strict=True):
                if flag:
                    hatched = {"facecolor": "none", "edgecolor": "#333333", "hatch": "//////", "lw": 0}
                    plane.fill_between(sides, y - 0.45, y + 0.45, **hatched)
        plane.set_yticks(list(heights.values()), list(heights), fontsize=5.5)
        plane.set(ylim=(top + 0.8, 0.2), xlim=(0.0, 1.0), xlabel="windows in order of time")
        plane.set_xticks([])
        plane.tick_params(length=0)
        plane.grid(False)
        plane.spines[:].set_visible(False)
        bar = drawing.colorbar(image, ax=plane, shrink=0.5, aspect=30, extend="both")
        bar.set_label(f"$\\log_{{10}} R$ at an error of {power_of_ten(eps)}")
    return drawing


# ---- SAI tells, and the simplified SAI suffices to rank ----


def rankings_of_sai(chance, effect: float, n: int) -> tuple:
    """SAI that tells where R is large, and a simplified one that is nearly the same."""
    logs = spread(chance, n)
    sai = logs + spread(chance, n, 0.4, 0.4)
    simplified = sai + chance.normal(0.0, 0.02, logs.shape)
    return MadeUp.of(chance, logs, effect, {"SAI": sai, "simplified SAI": simplified}).ranked()


def of_sai(table: dict[str, Ranking]) -> Verdict:
    """Whether SAI tells, at one error."""
    sai = table["SAI"]
    tells = of_strength(sai.auc.less(CHANCE), INDEX_TELLS - CHANCE, negligible=INDEX_NONE - CHANCE)
    return of_parts([tells, only_support(of_interval(sai.within.less(WITHIN)))])


@rule_over_families(
    "SAI tells where a problem is stiff",
    "first paper, Sections 2.1.2 and 2.4",
    rankings_of_sai,
    "an area under the curve of 0.95",
    f"{COIN}. {OPEN}. The median rank correlation has an interval. The verdict on the full run is "
    "the one it was, contradicted",
    negligible=INDEX_NONE - CHANCE,
)
def judge_sai(everywhere: Rankings, far: Rankings, families: Sequence[str]) -> tuple[Verdict, str]:
    """Supported where the area under the curve of SAI is certainly above 0.8 and the median of its rank correlations
    with R within problems certainly above 0.5. Contradicted where the area is certainly below 0.5: SAI points the other
    way. No difference where it is certainly within 0.15 of 0.5: a coin. All errors have to agree, and the windows
    beyond a factor of two with all windows; intervals are over families of problems, of which ten are the fewest."""
    verdict = agreement([of_sai(table) for some in (everywhere, far) for table in some.values()], BANDS)
    within = ", ".join(f"{table['SAI'].within.value:+.2f}" for table in everywhere.values())
    backwards = (
        "It points the other way: where SAI is large the solution moves fast, and an explicit method is right."
        if verdict == CONTRADICTED
        else ""
    )
    words = (
        f"Area under the curve by error: {at_each(areas(everywhere, 'SAI'))}; 0.5 is chance. "
        f"{words_on_bands(far, 'SAI')} "
        f"Within problems its median rank correlation with the ratio of costs is {within}. {backwards}"
    )
    return of_families(families, verdict, words.rstrip())


@rule_over_families(
    "the simplified SAI, |f|, suffices to rank",
    "first paper, Section 2.1.2",
    rankings_of_sai,
    "areas of 0.95 of both",
    "Of the difference of the two areas the whole interval now has to be small, not the number "
    "alone. The verdict on the full run is the one it was, contradicted",
    negligible=SAME_AREA,
)
def judge_simplified(everywhere: Rankings, far: Rankings, families: Sequence[str]) -> tuple[Verdict, str]:
    """Supported where SAI tells where a problem is stiff, by the rule above, and the area of the simplified SAI is
    certainly within 0.05 of that of SAI at every error. Contradicted where the claim about SAI is: what ranks the wrong
    way does not suffice to rank, however alike the two are."""
    whole = agreement([of_sai(table) for some in (everywhere, far) for table in some.values()])
    apart = {eps: table["simplified SAI"].auc.minus(table["SAI"].auc) for eps, table in everywhere.items()}
    near = agreement([of_closeness(gap, 0.0, SAME_AREA) for gap in apart.values()])
    verdict = of_parts([whole, only_support(near)])
    return of_families(families, verdict, f"Its area under the curve minus that of SAI: {at_each(apart, '+.2f')}.")


# ---- chi tells ----


def rankings_and_powers_of_chi(chance, effect: float, n: int) -> tuple:
    """chi that tells and two indices of the problem that tell less, and powers as theory has them."""
    logs = spread(chance, n)
    columns = {"h_acc/h_stab": logs + spread(chance, n, 0.3, 0.3)}
    columns |= {name: logs + spread(chance, n, 1.2, 1.2) for name in ("SI", "rho_ng")}
    everywhere, far, _ = MadeUp.of(chance, logs, effect, columns).ranked()
    return everywhere, far, *made_up_powers(chance, effect, n, EXPONENTS["SAI"])


def of_exponents(powers: Powers | None) -> Verdict:
    """Whether all exponents are those of theory."""
    if powers is None:
        return UNDECIDED
    asked = 2 * len(powers.by_name)  # the areas are asked, too
    return of_parts([of_exponent(together(e, asked), EXPONENTS[name]) for name, e in powers.by_name.items()])


def above_others(table: dict[str, Ranking]) -> dict[str, Estimate]:
    """By how much chi is above every index of the problem alone, on the same resamples."""
    chi = table["h_acc/h_stab"].auc
    return {name: chi.minus(table[name].auc) for name in INDICES["problem"] if name in table}


def of_chi(table: dict[str, Ranking]) -> Verdict:
    """Whether chi tells, and better than every index of the problem alone, at one error."""
    chi = together(table["h_acc/h_stab"].auc, 2).less(CHANCE)
    tells = of_strength(chi, CHI_TELLS - CHANCE, negligible=CHI_NONE - CHANCE)
    return of_parts([tells, only_support(of_each(above_others(table)))])


@rule_over_families(
    "chi = h_acc/h_stab, the step that accuracy allows over the one that stability does, tells",
    "theory, see odelab.chi",
    rankings_and_powers_of_chi,
    "areas of 0.97 and 0.79, and theory's exponents",
    f"{COIN}. An exponent is theory's where its whole interval is within a half of it; before, the "
    "interval had to hold theory's value, which a wide one does. The verdict on the full run is the one it was, "
    "undecided",
    negligible=CHI_NONE - CHANCE,
)
def judge_chi(
    everywhere: Rankings, far: Rankings, powers: Powers | None, families: Sequence[str]
) -> tuple[Verdict, str]:
    """Supported where the area under the curve of chi is certainly above 0.85 and, by paired intervals, above that of
    every index of the problem alone, and where the exponents of log R where stability binds are certainly within a half
    of theory's: of the spectral radius 1, of SAI -1, of the error 1/4. Contradicted where the area is certainly below
    0.5 or an exponent certainly has the other sign; no difference where the area is certainly within 0.25 of 0.5 or an
    exponent within a half of theory's of 0. Areas and exponents have intervals that hold together. All errors have to
    agree, and the windows beyond a factor of two with all windows."""
    tells = agreement([of_chi(table) for some in (everywhere, far) for table in some.values()], BANDS)
    names = [name for name in INDICES["problem"] if name in next(iter(everywhere.values()))]
    best = max(names, key=lambda name: np.mean([table[name].auc.value for table in everywhere.values()]))
    gaps = [gap for table in everywhere.values() for gap in above_others(table).items()]
    lost = {name for name, gap in gaps if of_interval(gap) != SUPPORTED}
    beaten = (
        f"Not beaten by paired intervals at every error: {', '.join(sorted(lost))}."
        if lost
        else "It beats every index of the problem alone by paired intervals."
    )
    exponents = (
        f"Exponents where stability binds, of which theory has +1, -1 and +1/4: {powers}."
        if powers
        else "Too few families have windows that stability binds to estimate exponents."
    )
    words = (
        f"Its area under the curve: {at_each(areas(everywhere, 'h_acc/h_stab'))}. "
        f"{words_on_bands(far, 'h_acc/h_stab')} "
        f"{beaten} The best of those, {best}: {at_each(areas(everywhere, best))}. {exponents}"
    )
    return of_families(families, of_parts([tells, of_exponents(powers)]), words)


# ---- SI/SAI does what neither of its parts does alone ----


def rankings_of_the_ratio(chance, effect: float, n: int) -> tuple:
    """SI and SAI that tell a little, SAI the wrong way round, and their ratio that tells much."""
    logs = spread(chance, n)
    both = spread(chance, n, 0.7, 0.7)
    si, sai = 0.7 * logs + both, -0.3 * logs + 0.8 * both + spread(chance, n, 0.3, 0.3)
    return MadeUp.of(chance, logs, effect, {"SI": si, "SAI": sai, "SI/SAI": si - sai}).ranked()


def of_ratio(by_error: Rankings, ratio: str, parts: tuple[str, str]) -> list[Verdict]:
    """Whether a ratio of indices has a larger area than both of its parts, at each error."""
    by_part = [gaps(by_error, ratio, name) for name in parts]
    return [of_parts([of_interval(part[eps]) for part in by_part]) for eps in by_error]


@rule_over_families(
    "the ratio SI/SAI does what neither of its parts does alone",
    "theory, with the first paper's two indices",
    rankings_of_the_ratio,
    "areas of 0.9 of the ratio, 0.8 and 0.3 of its parts",
    "The two intervals now hold together. The verdict on the full run is the one it was, supported",
)
def judge_ratio(everywhere: Rankings, far: Rankings, families: Sequence[str]) -> tuple[Verdict, str]:
    """Supported where the area under the curve of SI/SAI is certainly above that of SI and above that of SAI, by paired
    intervals that hold together; contradicted where it is certainly below either. All errors have to agree, and the
    windows beyond a factor of two. The same with rho_ng in place of SI is told beside."""

    def verdict_on(ratio, parts):
        return agreement([one for some in (everywhere, far) for one in of_ratio(some, ratio, parts)], BANDS)

    words = (
        f"Its area under the curve: {at_each(areas(everywhere, 'SI/SAI'))}; minus that of SI: "
        f"{at_each(gaps(everywhere, 'SI/SAI', 'SI'), '+.2f')}."
    )
    if all("rho_ng/SAI" in table for table in everywhere.values()):
        words += (
            " With rho_ng, which sees fast oscillations too, in place of SI the same claim is "
            f"{verdict_on('rho_ng/SAI', ('rho_ng', 'SAI')).kind}: rho_ng/SAI has "
            f"{at_each(areas(everywhere, 'rho_ng/SAI'))}; "
            f"minus rho_ng: {at_each(gaps(everywhere, 'rho_ng/SAI', 'rho_ng'), '+.2f')}."
        )
    return of_families(families, verdict_on("SI/SAI", ("SI", "SAI")), words)


# ---- Stability binds only where T s[J] is far below -1 ----

MILD = (4.0, 0.5, 30.0)  # R of windows with hardly any damping, without an effect, with one and with its opposite


def mild_windows(chance, effect: float, n: int) -> tuple:
    """Windows with hardly any damping and what they cost, beside others that are damped and cost any multiple."""
    mild = chance.random((n, WINDOWS)) < 0.2
    logs = np.where(mild, np.log10(MILD[int(effect)]) + chance.normal(0.0, 0.05), spread(chance, n))
    columns = {"-s[J]": np.where(mild, -1.0, 3.0)}
    windows = MadeUp.of(chance, logs, 1.0, columns)
    return {eps: bound_without_damping(windows, eps) for eps in ERRORS}, windows.family


def bound_without_damping(windows: Windows, eps: float) -> tuple[int, int, list[str]]:
    """Windows with T s[J] > -1 and R above 2, those with R above 10, and the families of the latter."""
    ratio = windows.ratio(eps)
    mild = windows.index("-s[J]") * windows.column("span") < 1.0
    grave = mild & (ratio > 10.0)
    return int((mild & (ratio > 2.0)).sum()), int(grave.sum()), sorted(set(windows.family[grave].tolist()))


@rule_over_families(
    "stability binds an explicit method only where T s[J] is far below -1",
    "Söderlind, Jay and Calvo 2015, as the definition is often read",
    mild_windows,
    "mild windows that cost half as much (without an effect: four times as much, between the thresholds)",
    'A sentence with "only" falls at every error with one counterexample at any of them; before, '
    "all errors had to agree, and the verdict on the full run, with none beyond a factor of ten at 1e-8, was that it "
    "depends on the tolerance",
)
def judge_damping(counts: Mapping[float, tuple[int, int, list[str]]], families: Sequence[str]) -> tuple[Verdict, str]:
    """A sentence with "only" falls with one counterexample. Contradicted where windows of at least one family have
    T s[J] > -1 and cost an explicit method more than ten times as much as an implicit one, at any error; supported
    where no window with T s[J] > -1 costs it more than twice as much, at every error."""
    by_error = [
        CONTRADICTED if grave else SUPPORTED if mild == 0 else UNDECIDED for mild, _, grave in counts.values()
    ]  # fmt: skip
    words = (
        "Windows with T s[J] > -1 that cost an explicit method more than twice as much: "
        f"{', '.join(f'{eps:.0e}: {mild}' for eps, (mild, _, _) in counts.items())}. More than ten times: "
        + "; ".join(f"{eps:.0e}: {', '.join(grave) or 'none'}" for eps, (_, _, grave) in counts.items())
        + "."
    )
    if CONTRADICTED in by_error:
        words += " A mode that oscillates fast and decays slowly has no damping to show."
    return of_families(families, of_parts(by_error), words)


# ---- What is shown of all indices ----

SHOWN = ("SAI", "SI", "SI/SAI", "rho_ng/SAI", "h_acc/h_stab", "Hairer-Wanner: h rho > boundary")
DECADES = (-8.0, 8.0)  # of an index that are drawn; what lies beyond is drawn at the end
HEADS = {  # what the groups of the forest are called, in its order
    "solution": "of the solution",
    "problem": "of the problem",
    "ratio": "ratios of the two",
    "with tolerance": "with the tolerance",
    "of the run": "of an explicit run",
    YOURS: "yours",
    REFERENCE: "reference",
}


def judge_indices(evidence: Evidence) -> list[Finding]:
    """The claims about single indices and their ratio."""
    ranked = (evidence.everywhere, evidence.clear)
    families = evidence.families
    mild = {eps: bound_without_damping(evidence.windows, eps) for eps in evidence.preset.eps}
    return [
        judge_sai(*ranked, families),
        judge_simplified(*ranked, families),
        judge_chi(*ranked, evidence.powers, families),
        judge_ratio(*ranked, families),
        judge_damping(mild, families),
    ]


def show_indices(page: Page, evidence: Evidence):
    windows, eps, preset = evidence.windows, evidence.middle, evidence.preset
    page.figure(
        draw_ratio_against_indices(windows, eps, evidence.everywhere[eps]),
        "indices",
        f"R against six indices at an error of {eps:.0e}. A point is a window, a colour and a mark a family. What "
        "lies beyond an axis is drawn at its end. Dashed: theory, (c_E/c_I) max(1, chi), without constants.",
    )
    page.figure(
        draw_forest(windows, evidence.everywhere),
        "forest",
        "How well each index ranks windows. Darker: smaller errors. The trial step is nearly the truth itself and only "
        "shown as the upper limit.",
    )
    at_once = over_all_errors(windows, preset.eps, preset.resamples)
    rows = ranking_rows(windows, evidence.everywhere, evidence.clear, at_once)
    page.table("rankings", rows, "Area under the curve, and median rank correlation within problems")
    ratio, values = windows.ratio(eps), windows.values(eps)
    sai, moving = (correlations(windows, values[name], ratio, usable(ratio)) for name in ("SAI", "rho_ng/SAI"))
    page.figure(
        draw_within(sai, moving, windows.family_of),
        "within",
        "Within one problem: how SAI and the ratio rank its windows. A dot is a problem whose R spans a factor of "
        "three, a colour some of the families.",
    )


def ranking_rows(windows: Windows, everywhere: Rankings, far: Rankings, at_once) -> Iterator[dict]:
    """By index: areas and rank correlations at each error, areas beyond a factor of two, and areas of all errors."""
    for name, group in windows.groups.items():
        row = {"index": name, "of": group}
        for eps, table in everywhere.items():
            row[f"AUC at {eps:.0e}"] = interval_text(table[name].auc, ".2f")
            row[f"beyond 2 at {eps:.0e}"] = f"{far[eps][name].auc.value:.2f}"
            row[f"within at {eps:.0e}"] = f"{table[name].within.value:+.2f} ({table[name].counted})"
        yield row | {"AUC, one threshold for all errors": interval_text(at_once[name], ".2f")}


def draw_ratio_against_indices(windows: Windows, eps: float, ranked: dict[str, Ranking]):
    """R against six indices, a point per window, a colour and a mark per family."""
    ratio, values = windows.ratio(eps), windows.values(eps)
    families = list(dict.fromkeys(windows.family.tolist()))
    shown = [name for name in SHOWN if np.isfinite(values[name]).any()]
    highest = 3.0 * np.max(ratio[np.isfinite(ratio)], initial=1e8)
    with style.figure(2, 3, height=4.6 + 0.125 * -(-len(families) // 5), sharey=True) as (drawing, axes):
        for axis, name in zip(axes.flat, shown, strict=False):
            share = name.startswith("Hairer")
            bottom, top = (0.0, 1.0) if share else (10.0 ** DECADES[0], 10.0 ** DECADES[1])
            for i, family in enumerate(families):
                mask = (windows.family == family) & (values[name] >= 0.0) & (ratio > 0.0)
                axis.plot(
                    np.clip(values[name][mask], bottom, top),
                    ratio[mask],
                    "o^sDv"[i // len(style.COLOURS) % 5],
                    color=style.COLOURS[i % len(style.COLOURS)],
                    markersize=2.6,
                    markeredgewidth=0.0,
                    alpha=0.65,
                    label=family if axis is axes[0, 0] else None,
                )
            axis.set(yscale="log", xscale="linear" if share else "log", xlabel=SYMBOLS[name])
            axis.axhline(1.0, color="black", linewidth=0.8)
            if name == "h_acc/h_stab":
                offset = float(np.median(windows.attempt("explicit") / windows.attempt("implicit")))
                x = np.logspace(0.0, DECADES[1], 20)
                axis.plot(x, offset * x, "--", color="black", linewidth=1.0, zorder=5)
                axis.plot([10.0 ** DECADES[0], 1.0], [offset] * 2, "--", color="black", linewidth=1.0, zorder=5)
            area = f"AUC {ranked[name].auc.value:.2f}"
            axis.text(0.97, 0.03, area, transform=axis.transAxes, ha="right", fontsize=8)
            if not share:
                axis.set_xticks(10.0 ** np.arange(DECADES[0], DECADES[1] + 1.0, 4.0))
                axis.xaxis.minorticks_off()
        for axis in axes[:, 0]:
            axis.set(ylabel="R", ylim=(10.0**-2.6, highest))
        drawing.legend(loc="outside lower center", ncols=5, fontsize=5.8, markerscale=1.4, columnspacing=0.9)
    return drawing


def draw_forest(windows: Windows, by_error: Rankings):
    """The area under the curve of every index with its interval, a shade per error, in groups."""
    worth = {name: np.mean([table[name].auc.value for table in by_error.values()]) for name in windows.groups}
    rows: list[tuple[str, str]] = []  # a head has no group
    for group, head in HEADS.items():
        names = sorted((name for name in worth if windows.groups[name] == group), key=lambda name: -worth[name])
        rows += [(head, ""), *((name, group) for name in names)] if names else []
    shades, colours = np.linspace(0.3, 1.0, len(by_error)), dict(zip(HEADS, style.COLOURS, strict=False))
    with style.figure(height=0.185 * len(rows) + 0.8) as (drawing, axes):
        plane = axes[0, 0]
        plane.axvline(0.5, color="black", linewidth=0.8)
        for i, (name, group) in enumerate(rows):
            if not group:
                plane.text(0.003, i + 0.1, name, fontsize=7.5, fontweight="bold", va="center")
                continue
            for k, (eps, table) in enumerate(by_error.items()):
                e, y = table[name].auc, i + 0.19 * (k - 0.5 * (len(by_error) - 1))
                look = {"color": colours[group], "alpha": shades[k]}
                plane.plot([e.low, e.high], [y] * 2, linewidth=1.1, **look)
                label = f"error {power_of_ten(eps)}" if name == "SAI" else None
                plane.plot(e.value, y, "o", markersize=2.6, label=label, **look)
        ticks = {i: SYMBOLS.get(name, name) for i, (name, group) in enumerate(rows) if group}
        plane.set_yticks(list(ticks), list(ticks.values()), fontsize=7.5)
        plane.set(ylim=(len(rows) - 0.3, -0.7), xlim=(0.0, 1.0))
        plane.grid(axis="y", visible=False)
        plane.set_xlabel("area under the curve, with 95 % intervals over families; 0.5 is chance")
        drawing.legend(loc="outside upper right", ncols=4, fontsize=7)
    return drawing


def draw_within(sai: dict[str, float], ratio: dict[str, float], family_of: dict[str, str]):
    """Within each problem: the rank correlation of SAI with R, and that of rho_ng/SAI."""
    families = sorted(set(family_of.values()))
    quarters = {
        (-1.0, 1.36, "left", "top"): "the ratio tells,\nSAI points the other way",
        (1.0, 1.36, "right", "top"): "both tell",
        (-1.0, -1.36, "left", "bottom"): "both point the other way",
        (1.0, -1.36, "right", "bottom"): "SAI tells,\nthe ratio does not",
    }
    with style.figure(height=3.9, width=4.4) as (drawing, axes):
        plane = axes[0, 0]
        plane.axhline(0.0, color="black", linewidth=0.8)
        plane.axvline(0.0, color="black", linewidth=0.8)
        for i, name in enumerate(name for name in sai if name in ratio):
            colour = style.COLOURS[families.index(family_of[name]) % len(style.COLOURS)]
            look = {"markersize": 4.5, "alpha": 0.75, "markeredgewidth": 0, "zorder": 3 + i}
            plane.plot(sai[name], ratio[name], "o", color=colour, **look)
        for (x, y, left, top), words in quarters.items():
            plane.text(x, y, words, fontsize=7, ha=left, va=top, color="#444444", zorder=1)
        plane.set(xlim=(-1.05, 1.05), ylim=(-1.42, 1.42), yticks=np.linspace(-1.0, 1.0, 5))
        plane.set(xlabel="rank correlation of SAI with R", ylabel=r"rank correlation of $\rho_{ng}$/SAI with R")
    return drawing


# ---- How much R, and with it the ranking of indices, owes to choices ----

JUDGED = ("SAI", "rho_ng/SAI", "h_acc/h_stab")
IMPLICIT = ("RODAS5P", "ROS2")
UNITS = {  # of costs, beside evaluations
    "attempts": "cost in attempts",
    "parts": "cost with Jacobians, factors and solutions as long as they take",
    "seconds": "cost in seconds",
}
PARTS = "What attempts take, and the parts of an implicit one in evaluations; all that a problem is measured by"
CONFUSION = "By family, windows: stiff and called so / stiff and missed / called and not stiff / neither"
FIXED = (("h_acc/h_stab", 1.0), ("h_R/h_stab", 1.0), ("rho_ng/SAI", 26.0))  # thresholds that no data chose


def show_choices(page: Page, evidence: Evidence):
    windows, eps, preset = evidence.windows, evidence.middle, evidence.preset
    rows = choice_rows(windows, eps, preset.eps)
    page.table("sensitivity", rows, f"R under other choices, against the base at an error of {eps:.0e}", printed=False)
    if preset.timed:
        page.table("parts", part_rows(windows), PARTS, printed=False)
    page.table("confusion", confusion_rows(windows, eps), CONFUSION, printed=False)
    page.table("graves", grave_rows(windows, preset.eps), "Grave mistakes, by problem", printed=False)


def choice_rows(windows: Windows, eps: float, eps_values) -> Iterator[dict]:
    """A row per change: how R differs from the base on the same windows, and AUC of three indices under the new R."""
    timed = all("parts" in problem for problem in windows.problems)
    for unit, words in UNITS.items():
        if timed or unit == "attempts":
            yield choice_row(words, windows, eps, windows.ratio(eps, unit))
    yield choice_row("equal tolerance, not equal error", windows, eps, windows.ratio_at_tolerance(eps))
    for other in eps_values:
        if other != eps:
            yield choice_row(f"error {other:.0e}", windows, eps, windows.ratio(other))
    some = windows.with_windows(lambda problem: [row for row in problem["windows"] if "others" in row])
    if not some.problems:
        return

    def replaced(roles: dict[str, str], where: str = "others") -> np.ndarray:
        return replace_runs(some, roles, where).ratio(eps)

    others = some.rows[0]["others"]
    yield choice_row("cold starts", some, eps, replaced({"explicit": "explicit", "implicit": "implicit"}, "cold"))
    for name in OTHERS:
        if name in others:
            role = "implicit" if name in IMPLICIT else "explicit"
            yield choice_row(f"{name} as the {role} method", some, eps, replaced({role: name}))
    if {"BS32", "ROS2"} <= set(others):
        yield choice_row("BS32 against ROS2", some, eps, replaced({"explicit": "BS32", "implicit": "ROS2"}))
    for name in some.problems[0]["rules"]:
        cut = Windows([problem | {"windows": problem["rules"][name]} for problem in some.problems], some.own)
        ratio = cut.ratio(eps)
        yield {"change": f"windows: {name}", "windows": int(usable(ratio).sum())} | judged_areas(cut, eps, ratio)


def replace_runs(windows: Windows, roles: dict[str, str], where: str) -> Windows:
    """The same windows run by other methods: {role: name in window[where]}."""
    changed = [
        problem
        | {
            "windows": [row | {role: row[where][name] for role, name in roles.items()} for row in problem["windows"]],
            "work": problem["work"] | {role: problem["work"][name] for role, name in roles.items()},
        }
        for problem in windows.problems
    ]
    return Windows(changed, windows.own)


def choice_row(change: str, windows: Windows, eps: float, ratio) -> dict:
    base = windows.ratio(eps)
    reached = usable(base) & usable(ratio)
    a, b = base[reached], ratio[reached]
    same, far = (a > 1.0) == (b > 1.0), clear(a, 3.0)
    return {
        "change": change,
        "windows": int(reached.sum()),
        "Spearman": float(stats.spearmanr(a, b).statistic) if len(a) > 2 else float("nan"),
        "same class": float(same.mean()) if len(a) else float("nan"),
        "same class, R beyond 3": float(same[far].mean()) if far.any() else float("nan"),
        "shift of log10 R": float(np.median(np.log10(b / a))) if len(a) else float("nan"),
    } | judged_areas(windows, eps, ratio)


def judged_areas(windows: Windows, eps: float, ratio) -> dict[str, float]:
    """AUC of the judged indices where this ratio is the truth."""
    reached, values = usable(ratio), windows.values(eps)
    masks = {name: reached & ~np.isnan(values[name]) for name in JUDGED}
    return {
        f"AUC {name}": area_under_curve(values[name][mask], ratio[mask] > 1.0, windows.weight[mask])
        for name, mask in masks.items()
    }


def part_rows(windows: Windows) -> Iterator[dict]:
    """By problem: what an evaluation takes, what Jacobian, factors and a solution take over it, and whole attempts."""
    for problem in windows.problems:
        parts, seconds = problem["parts"], problem["seconds"]
        yield {
            "problem": problem["name"],
            "components": problem["n"],
            "engine": parts["engine"],
            "evaluation (ns)": 1e9 * parts["evaluation"],
            "Jacobian": parts["jacobian"] / parts["evaluation"],
            "factors": parts["factorisation"] / parts["evaluation"],
            "solution": parts["solve"] / parts["evaluation"],
            "explicit attempt (ns)": 1e9 * seconds["explicit"],
            "implicit attempt (ns)": 1e9 * seconds["implicit"],
        }


def confusion_rows(windows: Windows, eps: float) -> Iterator[dict]:
    """By family and index: windows stiff and called so, stiff and missed, called stiff and not, neither."""
    ratio, values = windows.ratio(eps), windows.values(eps)
    for family in dict.fromkeys(windows.family.tolist()):
        mask, row = usable(ratio) & (windows.family == family), {"family": family}
        stiff = ratio[mask] > 1.0
        for name, threshold in FIXED:
            called = values[name][mask] > threshold
            cells = (stiff & called, stiff & ~called, ~stiff & called, ~stiff & ~called)
            row[f"{name} > {threshold:g}"] = " / ".join(str(cell.sum()) for cell in cells)
        yield row


def grave_rows(windows: Windows, eps_values) -> Iterator[dict]:
    """Problems with windows that an index calls stiff and R < 1/2, and the other way round with R > 2, by index."""
    for eps in eps_values:
        ratio, values = windows.ratio(eps), windows.values(eps)
        for name, threshold in FIXED:
            called = values[name] > threshold
            needless, missed = (dict.fromkeys(windows.name[mask].tolist()) for mask in
                                (called & (ratio < 0.5), ~called & (ratio > 2.0)))  # fmt: skip
            yield {
                "error": f"{eps:.0e}",
                "index": f"{name} > {threshold:g}",
                "called stiff, R < 1/2": ", ".join(needless) or "none",
                "missed, R > 2": ", ".join(missed) or "none",
            }
