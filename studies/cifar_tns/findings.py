"""The paper's claims about networks on real images: the rules, as functions of what `evidence` has gathered."""

import numpy as np

from studies.cifar_tns import worlds
from studies.lab.claims import (
    FEWEST_SEEDS,
    Gates,
    Seeds,
    judge_correlations,
    judge_few_blocks,
    judge_larger,
    of_seeds,
    why_open,
)
from studies.lab.statistics import FEWEST, KindRelation, interval_text, listing
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, wording
from studies.lab.verdicts import (
    NOT_RUN,
    Finding,
    Rule,
    Verdict,
    Worlds,
    joint,
    of_kinds,
    rule,
)

LATER = (
    "after the data: 22 ResNet-20 and three ResNet-56 had been seen when TNS was taken apart into scale and shape, "
    "seeds became the units and a relation had to hold without any one controller"
)


def judge_correlation(found: dict[tuple, KindRelation]) -> tuple[Verdict, str]:
    """Kendall's tau and Spearman's rho with the accuracy, over kinds of networks (controller and depth), each with the
    mean of its seeds: networks of one kind are alike. Under each reading: supported where both coefficients are above 0
    with their whole intervals and their p-values, contradicted where below; the same must be said where any one kind is
    left out. The intervals hold together under all readings. Five kinds are the least."""
    verdicts = {reading: of_kinds(one) for reading, one in found.items()}
    parts = [
        f"{wording(*reading)}: tau {interval_text(one.whole.kendall, '+.2f')}{say_extremes(one)} ({verdicts[reading]})"
        for reading, one in found.items()
    ]
    n = max(one.whole.n for one in found.values())
    return joint(verdicts), f"Rank correlation with the accuracy over n = {n} kinds of networks. {'; '.join(parts)}."


def say_extremes(found: KindRelation) -> str:
    """The least and the largest tau where one kind is left out."""
    rest = {name: one.kendall.value for name, one in found.without.items() if np.isfinite(one.kendall.value)}
    if found.whole.n < FEWEST or not rest:
        return ""
    least, most = min(rest, key=rest.__getitem__), max(rest, key=rest.__getitem__)
    return f", {rest[least]:+.2f} without {least} and {rest[most]:+.2f} without {most}"


@rule(
    "Attention raises the accuracy.",
    "Table 1",
    fewest=FEWEST_SEEDS,
    fixed="after the data: the older rule compared means of two seeds by an analysis of variance and said undecided",
    worlds=Worlds(worlds.accuracies, n=5, units="seeds", effect="+1.2 points, the mean of Table 1's gains", now=3),
)
def judge_accuracy(found: Seeds) -> tuple[Verdict, str]:
    """Accuracy of each controller minus that of constant step sizes of the same depth, by Dunnett over seeds. Supported
    where every controller is above, contradicted where every one is below, true or false of some where only some are
    beyond 0. Judged from three seeds of every controller on."""
    if not found.beyond:
        return NOT_RUN, "n = 0: nothing to compare with constant step sizes."
    words = f"Points above constant step sizes, intervals of Dunnett over seeds: {listing(found.beyond)}."
    return of_seeds(found), f"{why_open(found)}{words}"


def judge_gates(found: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI over images, averaged over the counted blocks whose mean step size
    moves by a standard deviation of at least 0.01 over the images; the mean over the networks of a controller with
    Student's interval, those of the controllers and of both indices holding together. Supported where every controller
    is below 0, contradicted where every one is above. Judged from three networks of each controller on."""
    still = f" Step sizes that stand still, and are not counted: {found.still} of {found.cells} blocks."
    verdict, words = judge_correlations(found, "correlation of step size and NSI")
    return verdict, f"{words}{still}"


def rule_of_gates(claim: str, variant: str) -> Rule:
    made = Worlds(worlds.gates, n=8, units="networks", effect="a correlation of -0.5 in every block", now=3)
    fixed = (
        "after the data: the older rule counted single blocks of single networks beyond chance, however little the "
        "step size moved; it contradicted the claim on one SENet-56"
    )
    options = {"fewest": FEWEST_SEEDS, "fixed": fixed, "worlds": made, "variant": variant}
    return rule(claim, "Figure 9, Appendix D", **options)(judge_gates)


def rule_of_correlation(what: str) -> Rule:
    made = Worlds(worlds.relations_of(what), n=45, units="kinds of networks", effect="Kendall's tau of 0.5", now=11)
    options = {"worlds": made, "fixed": LATER, "variant": what}
    return rule(f"The better the network, the larger its {QUANTITY_NAMES[what]}.", "Figure 7, Section 3.1", **options)(
        judge_correlation
    )


def rule_of_comparison(what: str) -> Rule:
    made = Worlds(
        worlds.stiffness_of(what), n=5, units="seeds", effect="half as much again as constant step sizes have", now=3
    )
    options = {"fewest": FEWEST_SEEDS, "worlds": made, "fixed": LATER, "variant": what}
    return rule(f"Networks with attention have a larger {QUANTITY_NAMES[what]}.", "Figure 2, Section 2.3", **options)(
        judge_larger
    )


RELATED = {what: rule_of_correlation(what) for what in QUANTITIES}
COMPARED = {what: rule_of_comparison(what) for what in QUANTITIES}
EXAMPLE = rule_of_gates("In the first stage of SENet a larger NSI goes with a smaller gate.", "SENet, first stage")
EVERYWHERE = rule_of_gates("A larger NSI goes with a smaller step size.", "all controllers")


def findings(evidence) -> list[Finding]:
    """All findings that the evidence of these networks allows, in the order of the paper's claims."""
    return [
        *(RELATED[what](evidence.relations[what]) for what in RELATED),
        judge_accuracy(evidence.accuracies),
        *(COMPARED[what](evidence.compared[what]) for what in COMPARED),
        judge_few_blocks(evidence.shares),
        EXAMPLE(evidence.example),
        EVERYWHERE(evidence.gates),
    ]
