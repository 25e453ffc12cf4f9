"""Nine claims and the verdicts of these data; the rules are those of `design`, which says when each was fixed.

Each function takes numbers by error {eps: ...} and returns a Finding, so that made-up numbers reach every verdict.
Where windows are ranked, it takes those numbers twice: of all windows, and of those beyond a factor of two.
"""

import dataclasses

import numpy as np

from studies.lab.statistics import CONTRADICTED, SUPPORTED, UNDECIDED, Estimate, Finding, interval_text
from studies.switching.analysis import Powers, Ranking
from studies.switching.design import EXPONENTS, FEWEST_FAMILIES, RULES, SWITCH, THEORY
from studies.switching.observations import OF_THE_PROBLEM
from studies.switching.policies import Policy

BY_TOLERANCE = "depends on the tolerance"
BY_BAND = "depends on the band"
PAPER = "first paper, Sections 2.1.2 and 2.4"

Rankings = dict[float, dict[str, Ranking]]


def agree_over_errors(verdicts) -> str:
    """The verdict of all errors, or that it depends on them."""
    said = set(verdicts)
    return said.pop() if len(said) == 1 else BY_TOLERANCE if said else UNDECIDED


def agree_over_bands(everywhere: str, beyond: str) -> str:
    """The verdict of all windows where that of the windows beyond a factor of two is the same."""
    return everywhere if everywhere == beyond else BY_BAND


def require_families(found: list[Finding], families: int) -> list[Finding]:
    """The findings, all undecided where there are too few families."""
    if families >= FEWEST_FAMILIES:
        return found
    few = f"Only {families} families, {FEWEST_FAMILIES} are asked for. "
    return [dataclasses.replace(one, verdict=UNDECIDED, words=few + one.words) for one in found]


def at_each(found: dict, form=".2f") -> str:
    """ "1e-04: 0.35 [0.25, 0.44]; ..." """
    return "; ".join(f"{eps:.0e}: {interval_text(e, form)}" for eps, e in found.items())


def aucs(rankings: Rankings, name: str) -> dict[float, Estimate]:
    return {eps: table[name].auc for eps, table in rankings.items()}


def words_on_bands(rankings: Rankings, name: str) -> str:
    """The same index on windows beyond a factor of two, in a sentence."""
    return f"On windows where one method costs more than twice the other: {at_each(aucs(rankings, name))}."


def of_sai(rankings: Rankings) -> str:
    return agree_over_errors(
        SUPPORTED
        if r.auc.low > RULES["ranks"] and r.within > RULES["within"]
        else CONTRADICTED
        if r.auc.high < RULES["fails"]
        else UNDECIDED
        for r in (table["SAI"] for table in rankings.values())
    )


def sai_tells(rankings: Rankings, beyond: Rankings) -> Finding:
    """P1: AUC above 0.8 for certain and a median rank correlation above 0.5, or an AUC below 0.65 for certain."""
    found = {eps: table["SAI"] for eps, table in rankings.items()}
    backwards = all(r.auc.high < 0.5 for r in found.values())
    within = ", ".join(f"{r.within:+.2f}" for r in found.values())
    return Finding(
        "SAI tells where a problem is stiff",
        PAPER,
        agree_over_bands(of_sai(rankings), of_sai(beyond)),
        f"Area under the curve by error: {at_each(aucs(rankings, 'SAI'))}; 0.5 is chance. "
        f"{words_on_bands(beyond, 'SAI')} "
        f"Within problems its median rank correlation with the ratio of costs is {within}. "
        + ("It points the other way: where SAI is large the solution moves fast, and an explicit method is right. "
           if backwards else ""),
    )  # fmt: skip


def simplified_suffices(rankings: Rankings, first: Finding) -> Finding:
    """P2: supported if P1 is and both AUCs are within 0.05; contradicted if P1 is."""
    gaps = {eps: table["simplified SAI"].auc.minus(table["SAI"].auc) for eps, table in rankings.items()}
    near = all(abs(gap.value) <= RULES["same"] for gap in gaps.values())
    verdict = SUPPORTED if first.verdict == SUPPORTED and near else UNDECIDED
    verdict = CONTRADICTED if first.verdict == CONTRADICTED else verdict
    return Finding(
        "the simplified SAI, |f|, suffices to rank",
        "first paper, Section 2.1.2",
        verdict,
        f"Its area under the curve minus that of SAI: {at_each(gaps, '+.2f')}."
        + (" What ranks the wrong way does not suffice to rank, however alike the two are."
           if verdict == CONTRADICTED else ""),
    )  # fmt: skip


def in_words(found: Powers, pace: str) -> str:
    """The powers with their intervals."""
    told = {"rho_ng": found.rho_ng, pace: found.pace} | ({} if found.eps is None else {"eps": found.eps})
    return ", ".join(f"{name} {interval_text(e, '+.2f')}" for name, e in told.items())


def stands_for_si(found: Powers | None) -> Finding:
    """P3: the exponent of SAI lies in [0.5, 1.5], or below 0 for certain."""
    claim, where = "SAI stands for SI: it enters the cost as SI does", "first paper, Theorem 2"
    if found is None:
        return Finding(claim, where, UNDECIDED, "Too few families have windows that stability binds.")
    b = found.pace
    verdict = SUPPORTED if b.low >= 0.5 and b.high <= 1.5 else CONTRADICTED if b.high < 0.0 else UNDECIDED
    return Finding(
        claim,
        where,
        verdict,
        f"Where stability binds, the ratio of costs goes with powers: {in_words(found, 'SAI')} (R2 "
        f"{found.explained:.2f}); theory has rho_ng +1, SAI -1, eps +1/4."
        + (" SAI is the reciprocal of the solution's time scale; stiffness is rho times that scale, so SAI divides."
           if verdict == CONTRADICTED else ""),
    )  # fmt: skip


def of_the_problem(change: float, counted: int) -> Finding:
    """P4: below 5 % of the windows change class between errors of 1e-3 and 1e-8, or above 15 %."""
    verdict = SUPPORTED if change < RULES["few"] else CONTRADICTED if change > RULES["many"] else UNDECIDED
    return Finding(
        "stiffness is a property of the problem, not of the tolerance",
        "first paper, Section 2.1.2",
        verdict if np.isfinite(change) else UNDECIDED,
        f"{100 * change:.0f} % of {counted} windows, problems counting alike, are stiff at one of the smallest and the "
        "largest error and not at the other."
        if np.isfinite(change)
        else "Only one error was asked for.",
    )


def of_chi(rankings: Rankings) -> tuple[str, list[str]]:
    """The verdict of the areas alone, and the indices of the problem that chi does not beat for certain."""
    verdicts, not_beaten = [], set()
    for table in rankings.values():
        chi = table["h_acc/h_stab"].auc
        lost = [name for name in OF_THE_PROBLEM if name in table and not chi.minus(table[name].auc).low > 0.0]
        not_beaten |= set(lost)
        good = chi.low > THEORY["ranks"] and not lost
        verdicts.append(SUPPORTED if good else CONTRADICTED if chi.high < THEORY["fails"] else UNDECIDED)
    return agree_over_errors(verdicts), sorted(not_beaten)


def of_powers(found: Powers | None) -> tuple[str, str]:
    """Whether the exponents are those of theory: the verdict, and what of it in words."""
    if found is None:
        return UNDECIDED, "Too few families have windows that stability binds to estimate exponents."
    told = {"rho_ng": found.rho_ng, "SAI": found.pace} | ({} if found.eps is None else {"eps": found.eps})
    missed = [name for name, e in told.items() if not e.low <= EXPONENTS[name] <= e.high]
    wrong = [name for name, e in told.items() if (e.high < 0.0) if EXPONENTS[name] > 0.0]
    wrong += [name for name, e in told.items() if (e.low > 0.0) if EXPONENTS[name] < 0.0]
    verdict = CONTRADICTED if wrong else UNDECIDED if missed else SUPPORTED
    holds = "All intervals hold theory's +1, -1 and +1/4." if not missed else (
        f"The interval of {' and that of '.join(missed)} misses theory's value (+1, -1 and +1/4)."
    )  # fmt: skip
    return verdict, f"Exponents where stability binds: {in_words(found, 'SAI')}. {holds}"


def theory_tells(rankings: Rankings, beyond: Rankings, found: Powers | None) -> Finding:
    """T1: AUC above 0.85, above every index of the problem alone, and exponents of theory; or an AUC below 0.75 or a
    wrong sign of an exponent."""
    (everywhere, lost), (far, _) = of_chi(rankings), of_chi(beyond)
    exponents, words = of_powers(found)
    areas = agree_over_bands(everywhere, far)
    if CONTRADICTED in (areas, exponents):
        verdict = CONTRADICTED
    elif areas == exponents == SUPPORTED:
        verdict = SUPPORTED
    else:
        verdict = areas if areas in (BY_TOLERANCE, BY_BAND) else UNDECIDED
    names = [name for name in OF_THE_PROBLEM if name in next(iter(rankings.values()))]
    best = max(names, key=lambda name: np.mean([table[name].auc.value for table in rankings.values()]))
    beaten = (
        "It beats every index of the problem alone by paired intervals."
        if not lost
        else f"Not beaten by paired intervals at every error: {', '.join(lost)}."
    )
    return Finding(
        "chi = h_acc/h_stab, the step that accuracy allows over the one that stability does, tells",
        "theory, see odelab.chi",
        verdict,
        f"Its area under the curve: {at_each(aucs(rankings, 'h_acc/h_stab'))}. "
        f"{words_on_bands(beyond, 'h_acc/h_stab')} "
        f"{beaten} The best of those, {best}: {at_each(aucs(rankings, best))}. {words}",
    )


def of_ratio(rankings: Rankings, ratio: str, parts: tuple[str, str]) -> str:
    verdicts = []
    for table in rankings.values():
        gaps = [table[ratio].auc.minus(table[name].auc) for name in parts]
        good, bad = all(gap.low > 0.0 for gap in gaps), any(gap.high < 0.0 for gap in gaps)
        verdicts.append(SUPPORTED if good else CONTRADICTED if bad else UNDECIDED)
    return agree_over_errors(verdicts)


def ratio_tells(rankings: Rankings, beyond: Rankings) -> Finding:
    """T2: SI/SAI above SI and above SAI for certain, or below either for certain."""
    parts = ("SI", "SAI")
    gaps = {eps: table["SI/SAI"].auc.minus(table["SI"].auc) for eps, table in rankings.items()}
    other = agree_over_bands(*(of_ratio(some, "rho_ng/SAI", ("rho_ng", "SAI")) for some in (rankings, beyond)))
    against = {eps: table["rho_ng/SAI"].auc.minus(table["rho_ng"].auc) for eps, table in rankings.items()}
    return Finding(
        "the ratio SI/SAI does what neither of its parts does alone",
        "theory, with the first paper's two indices",
        agree_over_bands(of_ratio(rankings, "SI/SAI", parts), of_ratio(beyond, "SI/SAI", parts)),
        f"Its area under the curve: {at_each(aucs(rankings, 'SI/SAI'))}; minus that of SI: {at_each(gaps, '+.2f')}. "
        f"With rho_ng, which sees fast oscillations too, in place of SI the same claim is {other}: rho_ng/SAI has "
        f"{at_each(aucs(rankings, 'rho_ng/SAI'))}; minus rho_ng: {at_each(against, '+.2f')}.",
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
        agree_over_errors(verdicts),
        f"Windows with T s[J] > -1 that cost an explicit method more than twice as much: "
        f"{', '.join(f'{eps:.0e}: {n}' for eps, n in mild.items())}. More than ten times: "
        + "; ".join(f"{eps:.0e}: {', '.join(some) or 'none'}" for eps, some in grave.items())
        + "."
        + (" A mode that oscillates fast and decays slowly has no damping to show." if families else ""),
    )


def of_powers_and_values(rankings: Rankings) -> tuple[str, dict[float, Estimate]]:
    gaps = {eps: t["h_acc/h_power"].auc.minus(t["h_acc/h_stab"].auc) for eps, t in rankings.items()}
    known = {eps: gap for eps, gap in gaps.items() if np.isfinite(gap.low)}
    return agree_over_errors(
        SUPPORTED if gap.low > 0.0 else CONTRADICTED if gap.high < 0.0 else UNDECIDED for gap in known.values()
    ), gaps


def powers_tell(rankings: Rankings, beyond: Rankings) -> Finding:
    """H1: on forced non-normal systems h_acc/h_power above h_acc/h_stab for certain, or below it for certain."""
    (verdict, gaps), (far, _) = of_powers_and_values(rankings), of_powers_and_values(beyond)
    known = any(np.isfinite(gap.low) for gap in gaps.values())
    return Finding(
        "on forced non-normal systems powers of a step (pseudospectra) tell better than eigenvalues",
        "Higham and Trefethen 1993",
        agree_over_bands(verdict, far) if known else UNDECIDED,
        f"Area under the curve of h_acc/h_power minus that of h_acc/h_stab: {at_each(gaps, '+.2f')}; of h_acc/h_stab "
        f"itself: {at_each(aucs(rankings, 'h_acc/h_stab'))}."
        if known
        else "There are too few forced non-normal systems here to resample them.",
    )


def switches(tables: dict[float, dict[str, Policy]]) -> Finding:
    """A1: geometric mean of cost over the oracle's up to 1.25 and within 5 % of the best threshold; or above 1.5."""
    verdicts, told = [], []
    for eps, table in tables.items():
        free, best = table["h_R/h_stab > 1"].mean, table["h_R/h_stab"].mean
        good = free <= SWITCH["good"] and free <= SWITCH["near"] * best
        verdicts.append(SUPPORTED if good else CONTRADICTED if free > SWITCH["bad"] else UNDECIDED)
        told.append(f"{eps:.0e}: {free:.2f} ({best:.2f} at {table['h_R/h_stab'].threshold:.2g})")
    others = "; ".join(
        f"{name} {np.mean([t[name].mean for t in tables.values()]):.2f}"
        for name in ("best of both", "h_acc/h_stab > 1", "always implicit", "SAI", "SI", "always explicit")
        if all(name in t for t in tables.values())
    )
    return Finding(
        "switching where h_R/h_stab passes 1 needs no fitted constant",
        "theory; the rule of ol.AUTO in implicit mode",
        agree_over_errors(verdicts),
        f"Cost over the oracle's, geometric mean over problems, and with the best threshold in hindsight: "
        f"{'; '.join(told)}. For comparison, mean over errors, with the best threshold where none is named: {others}.",
    )
