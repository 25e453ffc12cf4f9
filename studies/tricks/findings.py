"""What the recipes say about the paper's claims: the rules, and the sentences that their numbers give."""

from collections.abc import Mapping

import numpy as np

from studies.lab.comparisons import tukey
from studies.lab.statistics import Estimate, interval_text, listing, mean_with_interval, relate_kinds
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, TNS, wording
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    corrected,
    enough,
    joint,
    of_each,
    of_interval,
    of_kinds,
    rule,
)
from studies.tricks import design, worlds
from studies.tricks.analysis import ACCURACY, Hardness, Runs, hardness
from studies.tricks.design import PLAIN

Groups = dict[str, list[float]]  # one number for each seed, by recipe
TRAIN = "n = 0: `--train` makes the networks."
NEEDED = {"TNS": 24, "scale": 3, "shape": 20}  # seeds of every recipe


def findings(runs: Runs) -> list[Finding]:
    """One finding for TNS, scale and shape each, of every claim; none about difficulty where nothing was followed."""
    accuracy = runs.values(ACCURACY)
    stiff = {what: runs.by_reading(what) for what in QUANTITIES}
    hard = {what: {r: hardness(runs, what, r) for r in QUANTITIES[what]} for what in QUANTITIES}
    within = {reading: runs.relation_within(reading) for reading in READINGS}
    return [
        *(RAISING[what](accuracy, stiff[what]) for what in QUANTITIES),
        *(RELATED[what](accuracy, stiff[what], within=within if what == TNS else None) for what in QUANTITIES),
        *(HARD[what](hard[what]) for what in QUANTITIES if any(any(of.values()) for of in hard[what].values())),
    ]


def tricks_by_accuracy(accuracy: Groups) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """The tricks that are better than the plain recipe beyond what seeds do, and those that are worse."""
    beyond = tukey(PLAIN, accuracy)
    verdicts = {name: of_interval(e) for name, e in beyond.items()}
    better, worse = (
        {name: beyond[name] for name in beyond if verdicts[name] == kind} for kind in (SUPPORTED, CONTRADICTED)
    )
    return better, worse


def judge_raising(accuracy: Groups, stiff: Mapping[tuple, Groups]) -> tuple[Verdict, str]:
    """A trick is a good one where its accuracy is above that of the plain recipe with the whole interval of Tukey and
    Kramer over seeds. Its stiffness minus that of plain, by Tukey and Kramer over seeds, the intervals holding together
    over recipes and readings. Under a reading: supported where that of every good trick is above, contradicted where
    every one is below, no difference where every interval lies within a tenth of what plain has, true or false of some
    where only some are decided. Without a good trick nothing is decided."""
    if not accuracy.get(PLAIN) or len(accuracy) < 2:
        return NOT_RUN, TRAIN
    few = enough(accuracy, design.FEWEST_SEEDS)
    better, worse = tricks_by_accuracy(accuracy)
    verdicts, parts = [], []
    for reading, groups in stiff.items():
        plain = float(np.mean(groups[PLAIN])) if groups.get(PLAIN) else float("nan")
        beyond = tukey(PLAIN, groups, corrected(len(stiff)))
        good = {name: beyond[name] for name in better if name in beyond}
        verdicts.append(of_each(good, negligible=design.NEGLIGIBLE * plain) if good else UNDECIDED)
        shown = good | {name: beyond[name] for name in worse if name in beyond}
        if shown:
            parts.append(f"{wording(*reading)} (plain {plain:.3f}): {listing(shown, '+.3f')} ({verdicts[-1]})")
    if few:
        return UNDECIDED.because("too few seeds"), f"{few}{'; '.join(parts)}".strip()
    if better:
        which, verdict = f"Better than the plain recipe, in points: {listing(better)}.", joint(verdicts)
    else:
        which, verdict = "No trick is better than the plain recipe beyond what seeds do.", UNDECIDED
        verdict = verdict.because("no trick is better than the plain recipe")
    which += f" Worse: {listing(worse)}." if worse else ""
    which += f" Minus plain, only the better ones being judged: {'; '.join(parts)}." if parts else ""
    return verdict, which


def judge_relation(
    accuracy: Groups, stiff: Mapping[tuple, Groups], within: Mapping[tuple, Estimate] | None = None
) -> tuple[Verdict, str]:
    """Rank correlations of accuracy and stiffness over recipes, the means over their seeds: networks of one recipe are
    alike. Supported under a reading where Kendall's tau and Spearman's rho lie above 0 by their intervals and p-values,
    contradicted where below; and nothing where leaving out any one recipe would change it. The intervals hold together
    over the readings. Pairs of seeds within recipes are shown and judge nothing."""
    related = {reading: relate_kinds(groups, accuracy, corrected(len(stiff))) for reading, groups in stiff.items()}
    recipes = max((len(one.names) for one in related.values()), default=0)
    if not recipes:
        return NOT_RUN, TRAIN
    verdicts = {reading: of_kinds(one) for reading, one in related.items()}
    parts = [
        f"{wording(*reading)}: Kendall {interval_text(one.whole.kendall, '+.2f')}, Spearman "
        f"{interval_text(one.whole.spearman, '+.2f')}"
        + (f", within recipes {interval_text(within[reading], '+.2f')}" if within else "")
        + f" ({verdicts[reading]})"
        for reading, one in related.items()
    ]
    return joint(verdicts), f"Over {recipes} recipes. {'; '.join(parts)}."


def judge_hardness(taus: Mapping[tuple, Mapping[str, list[Hardness]]]) -> tuple[Verdict, str]:
    """Of each network the stiffness after an epoch and what the training loss gains until the next, among epochs of one
    learning rate: Kendall's tau of their changes from epoch to epoch, after what all networks do at an epoch has been
    taken out of both. The mean over the seeds of each recipe, then Student's interval over recipes, those of all
    readings holding together. Supported where it lies below 0 (stiff networks gain less), contradicted where above."""
    means = {
        reading: np.array([np.mean([(one.plain, one.changes) for one in each], axis=0) for each in of.values() if each])
        for reading, of in taus.items()
    }
    found = {
        reading: mean_with_interval(table[:, 1], corrected(len(taus))) for reading, table in means.items() if len(table)
    }
    if not found:
        return NOT_RUN, "n = 0 networks whose stiffness was followed through training."
    verdicts = {reading: of_interval(e, sign=-1) for reading, e in found.items()}
    parts = [
        f"{wording(*reading)}: {interval_text(e, '+.2f')} ({means[reading][:, 0].mean():+.2f} as it is; "
        f"{verdicts[reading]})"
        for reading, e in found.items()
    ]
    return joint(verdicts), (
        "Kendall's tau of changes in stiffness and in what the loss gains next, mean over "
        f"{max(map(len, means.values()))} recipes; negative where stiff networks gain less. {'; '.join(parts)}. "
        "Training as a whole is not made harder or easier here, only followed: a relation in time is no cause."
    )


def later(was: str, why: str) -> str:
    return f"after the data: with 30 networks of 10 recipes seen, {why}. By the rule before, of TNS alone: {was}"


def rule_of_raising(what: str) -> Rule:
    """Claim 1 for one of TNS, scale and shape."""
    effect = "half as much again with every good trick"
    made = Worlds(worlds.raising(what), n=NEEDED[what], units="seeds", effect=effect, now=3)
    fixed = later("undecided", "TNS was taken apart, and intervals hold together over the readings")
    claim = f"What raises the accuracy, raises the {QUANTITY_NAMES[what]}."
    options = {"fixed": fixed, "fewest": design.FEWEST_SEEDS, "negligible": design.NEGLIGIBLE, "worlds": made}
    return rule(claim, "Figure 8, Appendix A", variant=what, **options)(judge_raising)


def rule_of_relation(what: str) -> Rule:
    """Claim 2 for one of TNS, scale and shape."""
    made = Worlds(worlds.relations(what), n=36, units="recipes", effect="Kendall's tau of 0.5 over recipes", now=10)
    fixed = later("contradicted", "recipes became the units, where networks had been, and TNS was taken apart")
    claim = f"The better the network, the larger its {QUANTITY_NAMES[what]}, whatever it was trained with."
    return rule(claim, "Figures 7 and 8", variant=what, fixed=fixed, worlds=made)(judge_relation)


def rule_of_hardness(what: str) -> Rule:
    """Claim 3 for one of TNS, scale and shape."""
    made = Worlds(worlds.hardness(what), n=14, units="recipes", effect="a Kendall's tau of -0.2", now=10)
    why = (
        "recipes became the units, where networks had been, and changes beside what all networks do replaced a partial "
        "tau, which is +0.17 where stiffness and gain follow the epoch with noise and nothing else"
    )
    fixed = later("undecided, and contradicted under two of four readings", why)
    claim = f"Stiffness makes training hard, by {QUANTITY_NAMES[what]}."
    return rule(claim, "abstract, Section 1", variant=what, fixed=fixed, worlds=made)(judge_hardness)


RAISING = {what: rule_of_raising(what) for what in QUANTITIES}
RELATED = {what: rule_of_relation(what) for what in QUANTITIES}
HARD = {what: rule_of_hardness(what) for what in QUANTITIES}
