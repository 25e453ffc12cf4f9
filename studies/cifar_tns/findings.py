"""The paper's claims about networks on real images: the rules, as functions of what `evidence` has gathered."""


from studies.cifar_tns import worlds
from studies.cifar_tns.evidence import (
    DEGREES,
    FEW,
    FEWEST_NETWORKS,
    FEWEST_SEEDS,
    Gates,
    Relation,
    Seeds,
    Shares,
)
from studies.lab.statistics import Estimate, interval_text, listing, mean_with_interval
from studies.lab.stiffness import QUANTITIES, SCALE, SHAPE, TNS, wording
from studies.lab.verdicts import (
    NOT_ASKABLE,
    NOT_RUN,
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
    of_robust,
    rule,
)

CALLED = {TNS: "TNS", SCALE: "scale of NSI", SHAPE: "shape of TNS"}
LATER = (
    "after the data: 22 ResNet-20 and three ResNet-56 had been seen when TNS was taken apart into scale and shape, "
    "seeds became the units and a relation had to hold without any one controller"
)
COUNTED_RULE = (
    "after the data: the older rule, most degrees of a grid with at most 10 % of the blocks stiff, said supported, and "
    "says so of random numbers as well"
)


def judge_correlation(found: dict[tuple, Relation]) -> tuple[Verdict, str]:
    """Kendall's tau with the accuracy, by bootstrap over networks. Under each reading: supported where the interval
    lies above 0, contradicted where it lies below; the same must be said where any one controller is left out. The
    intervals hold together under all readings. Spearman's rho is shown and judges nothing; nothing is judged with fewer
    than ten networks."""
    verdicts = {reading: of_relation(one) for reading, one in found.items()}
    parts = [
        f"{wording(*reading)}: tau {interval_text(one.tau, '+.2f')}, rho {one.rho:+.2f} ({verdicts[reading]})"
        for reading, one in found.items()
    ]
    n = max(one.tau.n for one in found.values())
    return joint(verdicts), f"Rank correlation with the accuracy over n = {n} networks. {'; '.join(parts)}."


def of_relation(found: Relation) -> Verdict:
    """The verdict under one reading."""
    if found.tau.n < FEWEST_NETWORKS:
        return UNDECIDED.because(f"n = {found.tau.n}, judged from {FEWEST_NETWORKS} on")
    return of_robust(found.tau, found.without)


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


def judge_larger(found: dict[tuple, Seeds]) -> tuple[Verdict, str]:
    """Mean over the images of each network; each controller minus constant step sizes of the same depth, by Dunnett
    over seeds, the intervals holding together over controllers and readings. Under each reading: supported where every
    controller is above, contradicted where every one is below, true or false of some where only some are beyond 0.
    Judged from three seeds of every controller on."""
    if not any(one.beyond for one in found.values()):
        return NOT_RUN, "n = 0: nothing to compare with constant step sizes."
    verdicts = {reading: of_seeds(one) for reading, one in found.items()}
    parts = [
        f"{wording(*reading)}: {listing(one.beyond, '+.3f')} ({verdicts[reading]})" for reading, one in found.items()
    ]
    first = next(iter(found.values()))
    return joint(verdicts), f"{why_open(first)}Above constant step sizes. {'; '.join(parts)}."


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
    return (NOT_ASKABLE.because(f"{found.blocks} counted blocks a stage") if limit else of_cases(verdicts)), words


def of_share(ours: Estimate, permuted: Estimate, n: int) -> Verdict:
    """The verdict at one degree."""
    if n < FEWEST_SEEDS:
        return UNDECIDED.because(f"n = {n}, judged from {FEWEST_SEEDS} on")
    said, of_noise = (of_interval(e.less(FEW), sign=-1) for e in (ours, permuted))
    return NOT_ASKABLE.because("permuted numbers say the same") if said == of_noise else said


def percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.value, 100 * e.low, 100 * e.high, n=e.n)


def judge_gates(found: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI over images, averaged over the counted blocks whose mean step size
    moves by a standard deviation of at least 0.01 over the images; the mean over the networks of a controller with
    Student's interval, those of the controllers and of both indices holding together. Supported where every controller
    is below 0, contradicted where every one is above. Judged from three networks of each controller on."""
    verdicts, parts = {}, []
    asked = sum(map(len, found.correlations.values()))
    for of, groups in found.correlations.items():
        usable = {name: values for name, values in groups.items() if len(values)}
        means = {name: mean_with_interval(values, corrected(asked)) for name, values in usable.items()}
        said = of_each(means, sign=-1) if usable and not enough(usable, FEWEST_SEEDS) else UNDECIDED
        verdicts[of] = said if usable else NOT_ASKABLE.because("no gate moves")
        parts.append(f"{of} NSI: {listing(means) or 'no step size moves'} ({verdicts[of]})")
    if not parts:
        return NOT_ASKABLE.because("no step size moves"), "No network here has a step size that moves with the image."
    few = next((why for groups in found.correlations.values() if (why := enough(groups, FEWEST_SEEDS))), "")
    still = f" Step sizes that stand still, and are not counted: {found.still} of {found.cells} blocks."
    return joint(verdicts), f"{few}Mean correlation of step size and NSI. {'; '.join(parts)}.{still}"


def rule_of_gates(claim: str, variant: str) -> Rule:
    made = Worlds(worlds.gates, n=8, units="networks", effect="a correlation of -0.5 in every block", now=3)
    fixed = (
        "after the data: the older rule counted single blocks of single networks beyond chance, however little the step "
        "size moved; it contradicted the claim on one SENet-56"
    )
    options = {"fewest": FEWEST_SEEDS, "fixed": fixed, "worlds": made, "variant": variant}
    return rule(claim, "Figure 9, Appendix D", **options)(judge_gates)


def rule_of_correlation(what: str) -> Rule:
    made = Worlds(worlds.relations_of(what), n=60, units="networks", effect="Kendall's tau of 0.5", now=12)
    options = {"worlds": made, "fixed": LATER, "variant": what}
    return rule(f"The better the network, the larger its {CALLED[what]}.", "Figure 7, Section 3.1", **options)(
        judge_correlation
    )


def rule_of_comparison(what: str) -> Rule:
    made = Worlds(
        worlds.stiffness_of(what), n=5, units="seeds", effect="half as much again as constant step sizes have", now=3
    )
    options = {"fewest": FEWEST_SEEDS, "worlds": made, "fixed": LATER, "variant": what}
    return rule(f"Networks with attention have a larger {CALLED[what]}.", "Figure 2, Section 2.3", **options)(
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
