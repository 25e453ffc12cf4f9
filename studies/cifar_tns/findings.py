"""The paper's claims about networks on real images: the rules, as functions of what `evidence` has gathered."""

import numpy as np

from studies.cifar_tns import worlds
from studies.cifar_tns.evidence import (
    DEGREES,
    FEW,
    FEWEST_SEEDS,
    Gates,
    Seeds,
    Shares,
)
from studies.lab.statistics import FEWEST, Estimate, KindRelation, interval_text, listing, mean_with_interval
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, wording
from studies.lab.verdicts import (
    NOT_ASKABLE,
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
    of_cases,
    of_each,
    of_interval,
    of_kinds,
    rule,
)

LATER = (
    "after the data: 22 ResNet-20 and three ResNet-56 had been seen when TNS was taken apart into scale and shape, "
    "seeds became the units and a relation had to hold without any one controller"
)
COUNTED_RULE = (
    "after the data: the older rule, most degrees of a grid with at most 10 % of the blocks stiff, said supported, and "
    "says so of random numbers as well"
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
    paper="+1.2 points",
    unit="points",
)
def judge_accuracy(found: Seeds) -> tuple[Verdict, str]:
    """Accuracy of each controller minus that of constant step sizes of the same depth, by Dunnett over seeds. Supported
    where every controller is above, contradicted where every one is below, true or false of some where only some are
    beyond 0. Judged from three seeds of every controller on."""
    if not found.beyond:
        return NOT_RUN, "n = 0: nothing to compare with constant step sizes."
    words = f"Points above constant step sizes, intervals of Dunnett over seeds: {listing(found.beyond)}."
    return of_seeds(found), f"{why_open(found)}{words}"


def judge_larger(found: dict[tuple, Seeds]) -> tuple[Verdict, str]:
    """Mean over the images of each network; each controller minus constant step sizes of the same depth, by Dunnett
    over seeds, the intervals holding together over controllers and readings. Under each reading: supported where every
    controller is above, contradicted where every one is below, true or false of some where only some are beyond 0.
    Judged from three seeds of every controller on."""
    if not any(one.beyond for one in found.values()):
        return NOT_RUN, "n = 0: nothing to compare with constant step sizes."
    verdicts, first = {reading: of_seeds(one) for reading, one in found.items()}, next(iter(found.values()))
    parts = []
    for reading, one in found.items():
        above, below = (
            [name for name, e in one.beyond.items() if of_interval(e, sign) == SUPPORTED] for sign in (1, -1)
        )
        sides = [f"{side}: {', '.join(names)}" for side, names in (("above", above), ("below", below)) if names]
        parts.append(f"{wording(*reading)}, {'; '.join(sides) or 'none beyond'}")
    words = f"Beyond constant step sizes with the whole interval, of {len(first.beyond)}: {'. '.join(parts)}."
    return joint(verdicts), f"{why_open(first)}{words}"


def of_seeds(found: Seeds) -> Verdict:
    return UNDECIDED.because("too few seeds") if why_open(found) else of_each(found.beyond)


def why_open(found: Seeds) -> str:
    return enough(found.groups, FEWEST_SEEDS)


@rule(
    "Only a few blocks of a trajectory are stiff, at most 10 % for most degrees.",
    "Figure 6, Section 3.1",
    fewest=FEWEST_SEEDS,
    fixed=COUNTED_RULE,
    worlds=Worlds(
        worlds.shares,
        n=8,
        units="networks",
        effect="one block of eight with three times the index of the others",
        now=12,
    ),
    paper="at most 10 %",
    unit="%",
)
def judge_few_blocks(found: Shares) -> tuple[Verdict, str]:
    """The share of counted blocks that are stiff to the degrees M1 = 0.1, 0.25 and 0.5, with M2 = M1 times the mean NSI
    of the network, under the sample's mean, and the same of its NSI permuted within stages over images and blocks. At
    each degree: supported where the interval over networks lies below 10 %, contradicted where it lies above; where the
    permuted numbers give the same answer, it cannot be asked. Under the mean over the data set permuting changes
    nothing, so that it can never be asked there."""
    if not found.measured:
        return NOT_RUN, "n = 0."
    verdicts, parts = [], []
    for degree in DEGREES:
        ours, permuted = (
            mean_with_interval(shares[degree], corrected(len(DEGREES))) for shares in (found.measured, found.permuted)
        )
        verdicts.append(of_share(ours, permuted, len(found.measured[degree])))
        parts.append(
            f"at M1 = {degree:g} {interval_text(percent(ours), '.1f')} %, permuted "
            f"{interval_text(percent(permuted), '.1f')} % ({verdicts[-1]})"
        )
    limit = (
        f" A stage has {found.blocks} counted blocks here, and one of them is never below their mean: with so few the "
        "claim says little."
        if found.blocks < 4
        else ""
    )
    words = f"Stiff blocks, over {len(found.measured[DEGREES[0]])} networks: {'; '.join(parts)}.{limit}"
    verdict = NOT_ASKABLE.because(f"{found.blocks} counted blocks a stage") if limit else of_cases(verdicts)
    return verdict.resting_on(*verdicts, names=[f"M1 = {degree:g}" for degree in DEGREES]), words


def of_share(ours: Estimate, permuted: Estimate, n: int) -> Verdict:
    """The verdict at one degree."""
    if n < FEWEST_SEEDS:
        return UNDECIDED.because(f"n = {n}, judged from {FEWEST_SEEDS} on")
    said, of_noise = (of_interval(percent(e).less(100 * FEW), sign=-1) for e in (ours, permuted))
    return NOT_ASKABLE.because("permuted numbers say the same").resting_on(said) if said == of_noise else said


def percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, n=e.n)


def judge_gates(found: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI over images, averaged over the counted blocks whose mean step size
    moves by a standard deviation of at least 0.01 over the images; the mean over the networks of a controller with
    Student's interval, those of the controllers and of both indices holding together. Supported where every controller
    is below 0, contradicted where every one is above. Judged from three networks of each controller on."""
    still = f" Step sizes that stand still, and are not counted: {found.still} of {found.cells} blocks."
    verdict, words = judge_correlations(found, "correlation of step size and NSI")
    return verdict, f"{words}{still}"


def judge_correlations(found: Gates, what: str) -> tuple[Verdict, str]:
    """Means over the networks of each controller, of correlations that a claim says are below 0."""
    verdicts, parts, few = {}, [], ""
    asked = sum(map(len, found.correlations.values()))
    for kind, groups in found.correlations.items():
        usable = {name: values for name, values in groups.items() if len(values)}
        means = {name: mean_of_few(values, corrected(asked)) for name, values in usable.items()}
        why = enough(usable, FEWEST_SEEDS, "networks") if usable else ""
        said = of_each(means, sign=-1) if not why else UNDECIDED.because("too few networks")
        verdicts[kind] = said if usable else NOT_ASKABLE.because("no step size moves")
        parts.append(f"{kind}: {listing(means) or 'no step size moves'} ({verdicts[kind]})")
        few = few or why
    if not parts:
        return NOT_ASKABLE.because("no step size moves"), "No network here has a step size that moves with the image."
    return joint(verdicts), f"{few}Mean {what}. {'; '.join(parts)}."


def mean_of_few(values: list[float], level: float) -> Estimate:
    """The mean with Student's interval, which says nothing for fewer networks than the rule asks for."""
    e = mean_with_interval(values, level)
    return e if len(values) >= FEWEST_SEEDS else Estimate(e.value, np.nan, np.nan, n=e.n)


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
