"""Nine claims and the verdicts of these data; the rules are those of `design`, which says when each was fixed.

Each function takes numbers by error {eps: ...} and returns a Finding, so that made-up numbers reach every verdict.
"""

import dataclasses

import numpy as np

from studies.lab.statistics import CONTRADICTED, SUPPORTED, UNDECIDED, Estimate, Finding, shown_interval
from studies.switching.analysis import OF_THE_PROBLEM, Ranking
from studies.switching.design import FEWEST_FAMILIES, RULES, SWITCH, THEORY

BY_TOLERANCE = "depends on the tolerance"
PAPER = "first paper, Sections 2.1.2 and 2.4"


def agreed(verdicts) -> str:
    """The verdict of all errors, or that it depends on them."""
    said = set(verdicts)
    return said.pop() if len(said) == 1 else BY_TOLERANCE if said else UNDECIDED


def guarded(found: list[Finding], families: int) -> list[Finding]:
    """The findings, all undecided where there are too few families."""
    if families >= FEWEST_FAMILIES:
        return found
    few = f"Only {families} families, {FEWEST_FAMILIES} are asked for. "
    return [dataclasses.replace(one, verdict=UNDECIDED, words=few + one.words) for one in found]


def at_each(found: dict, form=".2f") -> str:
    """ "1e-04: 0.35 [0.25, 0.44]; ..." """
    return "; ".join(f"{eps:.0e}: {shown_interval(e, form)}" for eps, e in found.items())


def sai_tells(rankings: dict[float, dict[str, Ranking]]) -> Finding:
    """P1: AUC above 0.8 for certain and a median rank correlation above 0.5, or an AUC below 0.65 for certain."""
    found = {eps: table["SAI"] for eps, table in rankings.items()}
    verdicts = [
        SUPPORTED
        if r.auc.low > RULES["ranks"] and r.within > RULES["within"]
        else CONTRADICTED
        if r.auc.high < RULES["fails"]
        else UNDECIDED
        for r in found.values()
    ]
    backwards = all(r.auc.high < 0.5 for r in found.values())
    within = ", ".join(f"{r.within:+.2f}" for r in found.values())
    return Finding(
        "SAI tells where a problem is stiff",
        PAPER,
        agreed(verdicts),
        f"Area under the curve by error: {at_each({e: r.auc for e, r in found.items()})}; 0.5 is chance. Within "
        f"problems its median rank correlation with the ratio of costs is {within}. "
        + ("It points the other way: where SAI is large the solution moves fast, and an explicit method is right. "
           if backwards else ""),
    )  # fmt: skip


def simplified_suffices(rankings, first: Finding) -> Finding:
    """P2: supported if P1 is and both AUCs are within 0.05; contradicted if P1 is."""
    gaps = {eps: table["simplified SAI"].auc.minus(table["SAI"].auc) for eps, table in rankings.items()}
    near = all(abs(gap.value) <= RULES["same"] for gap in gaps.values())
    verdict = SUPPORTED if first.verdict == SUPPORTED and near else UNDECIDED
    verdict = CONTRADICTED if first.verdict == CONTRADICTED else verdict
    return Finding(
        "the simplified SAI, |f|, suffices to rank",
        "first paper, Section 2.1.2",
        verdict,
        f"Its area under the curve minus that of SAI: {at_each(gaps, '+.2f')}. What ranks the wrong way does not "
        "suffice to rank, however alike the two are.",
    )


def stands_for_si(powers: dict[str, Estimate] | None) -> Finding:
    """P3: the exponent of SAI lies in [0.5, 1.5], or below 0 for certain."""
    claim, where = "SAI stands for SI: it enters the cost as SI does", "first paper, Theorem 2"
    if powers is None:
        return Finding(claim, where, UNDECIDED, "Too few families have windows that stability binds.")
    b = powers["SAI"]
    verdict = SUPPORTED if b.low >= 0.5 and b.high <= 1.5 else CONTRADICTED if b.high < 0.0 else UNDECIDED
    told = ", ".join(f"{name} {shown_interval(e, '+.2f')}" for name, e in powers.items())
    return Finding(
        claim,
        where,
        verdict,
        f"Where stability binds, the ratio of costs goes with powers: {told}; theory has rho_ng +1, SAI -1, eps +1/4. "
        "SAI is the reciprocal of the solution's time scale; stiffness is rho times that scale, so SAI divides.",
    )


def of_the_problem(change: float, counted: int) -> Finding:
    """P4: below 5 % of the windows change class between errors of 1e-3 and 1e-8, or above 15 %."""
    verdict = SUPPORTED if change < RULES["few"] else CONTRADICTED if change > RULES["many"] else UNDECIDED
    return Finding(
        "stiffness is a property of the problem, not of the tolerance",
        "first paper, Section 2.1.2",
        verdict if np.isfinite(change) else UNDECIDED,
        f"{100 * change:.0f} % of {counted} windows, problems counting alike, are stiff at one of the errors 1e-3 and "
        "1e-8 and not at the other."
        if np.isfinite(change)
        else "Only one error was asked for.",
    )


def theory_tells(rankings) -> Finding:
    """T1: AUC above 0.85 and above every index of the problem alone for certain, or below 0.75 for certain."""
    verdicts = []
    for table in rankings.values():
        chi = table["h_acc/h_stab"].auc
        gaps = [chi.minus(table[name].auc) for name in OF_THE_PROBLEM if name in table]
        good = chi.low > THEORY["ranks"] and all(gap.low > 0.0 for gap in gaps)
        verdicts.append(SUPPORTED if good else CONTRADICTED if chi.high < THEORY["fails"] else UNDECIDED)
    return Finding(
        "chi = h_acc/h_stab, the step that accuracy allows over the one that stability does, tells",
        "theory, see odelab.chi",
        agreed(verdicts),
        f"Its area under the curve: {at_each({e: t['h_acc/h_stab'].auc for e, t in rankings.items()})}; that of the "
        f"best index of the problem alone, rho_ng: {at_each({e: t['rho_ng'].auc for e, t in rankings.items()})}.",
    )


def ratio_tells(rankings) -> Finding:
    """T2: rho_ng/SAI above rho_ng and above SAI for certain, or below either for certain."""
    verdicts, told = [], {}
    for eps, table in rankings.items():
        gaps = [table["rho_ng/SAI"].auc.minus(table[name].auc) for name in ("rho_ng", "SAI")]
        good, bad = all(gap.low > 0.0 for gap in gaps), any(gap.high < 0.0 for gap in gaps)
        verdicts.append(SUPPORTED if good else CONTRADICTED if bad else UNDECIDED)
        told[eps] = gaps[0]
    return Finding(
        "the ratio rho_ng/SAI does what neither of its parts does alone",
        "theory",
        agreed(verdicts),
        f"Its area under the curve: {at_each({e: t['rho_ng/SAI'].auc for e, t in rankings.items()})}; minus that of "
        f"rho_ng: {at_each(told, '+.2f')}. SI/SAI, whose numerator sees no oscillation: "
        f"{at_each({e: t['SI/SAI'].auc for e, t in rankings.items()})}.",
    )


def damping_alone(counts: dict[float, tuple[int, int, list[str]]]) -> Finding:
    """S1: no window has R > 2 and T s[J] > -1, or at least one family has windows with R > 10 there."""
    grave = {eps: families for eps, (_, _, families) in counts.items()}
    mild = {eps: windows for eps, (windows, _, _) in counts.items()}
    verdicts = [
        CONTRADICTED if grave[eps] else SUPPORTED if mild[eps] == 0 else UNDECIDED for eps in counts
    ]  # fmt: skip
    families = sorted({family for some in grave.values() for family in some})
    return Finding(
        "stability binds an explicit method only where T s[J] is far below -1",
        "Söderlind, Jay and Calvo 2015, as the definition is often read",
        agreed(verdicts),
        f"Windows with T s[J] > -1 that cost an explicit method more than twice as much: "
        f"{', '.join(f'{eps:.0e}: {n}' for eps, n in mild.items())}. More than ten times: "
        f"{', '.join(families) or 'no family'}. A mode that oscillates fast and decays slowly has no damping to show.",
    )


def powers_tell(rankings: dict[float, dict[str, Ranking]]) -> Finding:
    """H1: on non-normal problems h_acc/h_power above h_acc/h_stab for certain, or below it for certain."""
    gaps = {eps: t["h_acc/h_power"].auc.minus(t["h_acc/h_stab"].auc) for eps, t in rankings.items()}
    known = {eps: gap for eps, gap in gaps.items() if np.isfinite(gap.low)}
    verdicts = [SUPPORTED if gap.low > 0.0 else CONTRADICTED if gap.high < 0.0 else UNDECIDED for gap in known.values()]
    return Finding(
        "on non-normal problems pseudospectra tell better than eigenvalues",
        "Higham and Trefethen 1993",
        agreed(verdicts),
        f"Area under the curve of h_acc/h_power minus that of h_acc/h_stab: {at_each(gaps, '+.2f')}."
        if known
        else "There are too few non-normal problems here to resample them.",
    )


def switches(tables: dict[float, dict[str, dict]]) -> Finding:
    """A1: geometric mean of cost over the oracle's up to 1.25 and within 5 % of the best threshold; or above 1.5."""
    verdicts, told = [], []
    for eps, table in tables.items():
        free, fitted = table["h_R/h_stab > 1"]["mean"], table["h_R/h_stab"]["mean"]
        good = free <= SWITCH["good"] and free <= SWITCH["near"] * fitted
        verdicts.append(SUPPORTED if good else CONTRADICTED if free > SWITCH["bad"] else UNDECIDED)
        told.append(f"{eps:.0e}: {free:.2f} ({fitted:.2f} at {table['h_R/h_stab']['threshold']:.2g})")
    others = "; ".join(
        f"{name} {np.mean([t[name]['mean'] for t in tables.values()]):.2f}"
        for name in ("best of both", "always implicit", "SAI", "SI", "always explicit")
        if all(name in t for t in tables.values())
    )
    return Finding(
        "switching where h_R/h_stab passes 1 needs no fitted constant",
        "theory; the rule of ol.AUTO in implicit mode",
        agreed(verdicts),
        f"Cost over the oracle's, geometric mean over problems, and with the best threshold in hindsight: "
        f"{'; '.join(told)}. For comparison, each with its best threshold, mean over errors: {others}.",
    )
