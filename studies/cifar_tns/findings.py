"""The paper's claims, each with a verdict and a sentence, both computed from the numbers."""

import numpy as np

from studies.cifar_tns import tables
from studies.cifar_tns.figures import surfaces
from studies.lab.comparisons import chance_of_one_mean
from studies.lab.statistics import (
    CONTRADICTED,
    FEWEST,
    LEVEL,
    MIXED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Correlation,
    Finding,
    chance_text,
    joint_verdict,
    verdict_of_counts,
)
from studies.lab.stiffness import READINGS, wording


def correlation_finding(correlations: dict[tuple[str, str], Correlation], more: str = "") -> Finding:
    """The central claim: the better network has the larger TNS; judged under every reading."""
    verdicts = {reading: found.verdict for reading, found in correlations.items()}
    n = next(iter(correlations.values())).n
    verdict = joint_verdict(verdicts.values())
    if n < FEWEST:
        words = (
            f"With n = {n} no order of networks is unlikely enough by chance ({FEWEST} are the least): these data "
            "cannot decide."
        )
        more = ""
    else:
        coefficients = [found.kendall.value for found in correlations.values() if np.isfinite(found.kendall.value)]
        between = f"{min(coefficients):+.2f} to {max(coefficients):+.2f}" if coefficients else "undefined"
        words = {
            SUPPORTED: "These data support the claim under all four readings of NSI and its mean",
            CONTRADICTED: "These data contradict the claim under all four readings: better networks have a smaller TNS",
            UNDECIDED: "These data do not support the claim"
            if CONTRADICTED in verdicts.values()
            else "These data neither support the claim nor contradict it",
            MIXED: "Whether these data support the claim depends on how the paper is read",
        }[verdict]
        words += f" (n = {n} networks, Kendall's tau {between})."
        if len(set(verdicts.values())) > 1:
            words += by_reading(verdicts)
        if n < 10:
            words += f" With n = {n} networks only a strong relation could be detected."
    return Finding("The better the network, the larger its TNS.", "Figure 7, Section 3.1", verdict, f"{words}{more}")


def by_reading(verdicts) -> str:
    parts = []
    for verdict in (SUPPORTED, CONTRADICTED, UNDECIDED):
        chosen = [wording(*reading) for reading, said in verdicts.items() if said == verdict]
        if chosen:
            parts.append(f"{verdict} for {'; '.join(chosen)}")
    return f" By reading: {', and '.join(parts)}."


def ranked_accuracies(results) -> str:
    accuracies = [r.accuracy for r in results]
    return f" The accuracies to be ranked lie between {min(accuracies):.2f} and {max(accuracies):.2f} %."


def gain_finding(results) -> Finding | None:
    """Table 1: does attention raise accuracy? Decided only where controllers differ by more than seeds do."""
    accuracies = {name: [results[p].accuracy for p in places] for name, places in tables.names_of(results).items()}
    gains = {}
    for name in accuracies:
        plain = tables.constant_beside(results, name)
        if plain and not name.startswith("constant"):
            gains[name] = float(np.mean(accuracies[name]) - np.mean([m.accuracy for m in plain]))
    if not gains:
        return None
    better = [name for name, gain in gains.items() if gain > 0]
    best, least = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
    p = chance_of_one_mean(accuracies.values())
    told_apart = p < 1.0 - LEVEL
    verdict = UNDECIDED
    if told_apart:
        as_claimed = len(better) == len(gains) and best.startswith("StepNet")
        verdict = SUPPORTED if as_claimed else PARTLY if better else CONTRADICTED
    if not np.isfinite(p):
        seeds = "One network of each cannot tell a controller from its seed."
    else:
        verb = "differ" if told_apart else "do not differ"
        seeds = f"Controllers {verb} by more than seeds do (analysis of variance, p {chance_text(p)})."
    words = (
        f"{len(better)} of {len(gains)} controllers have a higher mean accuracy than constant step sizes; the largest "
        f"gain is {gains[best]:+.2f} points ({best}), the smallest {gains[least]:+.2f} ({least}). {seeds}"
    )
    return Finding("Attention raises the accuracy, StepNet's most.", "Table 1", verdict, words)


def larger_finding(results) -> Finding | None:
    """Does attention raise TNS? A controller does if its interval excludes 0 and each seed is above each plain one."""
    verdicts, counts = {}, {}
    for reading in READINGS:
        above = below = total = 0
        for name, places in tables.names_of(results).items():
            beyond = tables.over_constant(results, name, reading)[1]
            if beyond is None:
                continue
            here = [results[p].tns[reading].value for p in places]
            plain = [m.tns[reading].value for m in tables.constant_beside(results, name)]
            above += beyond.low > 0 and min(here) > max(plain)
            below += beyond.high < 0 and max(here) < min(plain)
            total += 1
        if not total:
            return None
        counts[reading] = f"{wording(*reading)}: {above} above, {below} below, of {total}"
        verdicts[reading] = verdict_of_counts(above, below, total)
    words = (
        "Controllers whose mean TNS is above or below that of constant step sizes, with an interval over images that "
        f"leaves out zero and all seeds on that side: {'; '.join(counts.values())}."
    )
    fewest = min(map(len, tables.names_of(results).values()))
    if fewest == 1:
        words += " Where there is one network of a controller, another seed could reverse this."
    return Finding(
        "Networks with attention have a larger TNS.", "Figure 2, Section 2.3", joint_verdict(verdicts.values()), words
    )


def few_blocks_finding(results, which: str = "") -> Finding:
    """The paper: at most 10 % of the blocks are stiff, for most degrees (M1, M2). `which` names the networks."""
    verdicts, words = {}, []
    for of, mu in READINGS:
        _, _, found = surfaces(results, of, mu, "proportion")
        least = min(float(np.mean(surface <= 0.1)) for surface in found.values())
        verdicts[of, mu] = SUPPORTED if least > 0.5 else CONTRADICTED
        words.append(f"{wording(of, mu)}, {100 * least:.0f} %")
    record = results[0].records["slope"].counted()
    blocks = max(int(np.count_nonzero(record.stage == stage)) for stage in np.unique(record.stage))
    limit = (
        f" A stage has {blocks} counted blocks here, and one of them is never below their mean: with so few the claim "
        "says little."
        if blocks < 4
        else ""
    )
    return Finding(
        "Only a few blocks of a trajectory are stiff, at most 10 % for most degrees.",
        "Figure 6, Section 3.1",
        UNDECIDED if limit else joint_verdict(verdicts.values()),
        f"{which}Share of the degrees drawn in Figure 6 at which at most 10 % of the blocks are stiff, for the "
        f"controller with the smallest such share: {'; '.join(words)}.{limit}",
    )


def gate_finding(results, which: str = "") -> Finding | None:
    """Correlations of gate and NSI, counted: in the first stage of SENet, the paper's example, and everywhere."""
    kept, table, chances = tables.gate_table(results, "slope")
    if not len(table):
        return None
    certain = chances < (1.0 - LEVEL) / np.count_nonzero(np.isfinite(table))  # Bonferroni
    negative, positive = int((certain & (table < 0)).sum()), int((certain & (table > 0)).sum())
    total = int(np.isfinite(table).sum())
    words = (
        f"Of all {total} correlations of gate and NSI, over networks and blocks, {negative} are negative and "
        f"{positive} positive beyond chance (Bonferroni, {100 * LEVEL:.0f} %)."
    )
    claim, verdict = "A larger NSI goes with a smaller gate.", verdict_of_counts(negative, positive, total)
    example = [i for i, found in enumerate(kept) if found.subject.controller == "SE"]
    if example:
        first = kept[example[0]].records["slope"].stage == 0
        here = np.ix_(np.array(example), np.flatnonzero(first))
        below, above = (int((certain & sign)[here].sum()) for sign in (table < 0, table > 0))
        inside = int(np.isfinite(table[here]).sum())
        claim = "In the first stage of SENet a larger NSI goes with a smaller gate."
        verdict = verdict_of_counts(below, above, inside)
        words = (
            f"In the first stage of SE networks, {len(example)} of them, {below} of {inside} correlations are "
            f"negative and {above} positive beyond chance. {words}"
        )
    return Finding(claim, "Figure 9, Appendix D", verdict, f"{which}{words}")


def findings(results, correlations, deep=(), named: str = "") -> list[Finding]:
    """All findings that these networks allow, the central claim first.

    Claims about the blocks of a stage are judged on the networks `deep` where there are any; `named` says which.
    """
    which = f"On {named}. " if deep else ""
    all_of_them = [
        correlation_finding(correlations, ranked_accuracies(results)),
        gain_finding(results),
        larger_finding(results),
        few_blocks_finding(deep or results, which),
        gate_finding(results),
        gate_finding(deep, which) if deep else None,
    ]
    return [finding for finding in all_of_them if finding is not None]
