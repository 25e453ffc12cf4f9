"""What the population says about the paper's claims: the rules, as functions of what `analysis` has computed."""

from studies.lab.statistics import interval_text, listing
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, TNS, wording
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    enough,
    joint,
    of_each,
    of_interval,
    of_robust,
    rule,
)
from studies.population import design, worlds
from studies.population.analysis import ACCURACY, CONSTANT, OVER_ALL, STEPNET, WAYS, Comparison, Explained, Relation

BETTER = "The better the network, the larger its"
LARGER = "Networks with attention have a larger"
LATER = (
    "after the data: with 51 networks seen, TNS was taken apart into scale and shape, intervals were made to hold "
    "together over the readings, controllers became the units, and a relation has to hold without any one of them; the "
    "verdicts on networks were undecided before and after"
)
TAU = "Kendall's tau of 0.5"
HALF_AS_MUCH = "half as much again as constant step sizes have, for every controller"


def findings(relations: dict, comparisons: dict, explanations: dict) -> list[Finding]:
    """One finding per way of claim 1, then claims 2, 3 and 4; the arguments are those of `analysis`."""
    return [
        *(
            RELATED[what, way]({key[-1]: found for key, found in relations.items() if key[:2] == (what, way)})
            for what, way in RELATED
        ),
        *(
            COMPARED[what]({reading: comparisons[what, reading, CONSTANT] for reading in QUANTITIES[what]})
            for what in COMPARED
        ),
        judge_accuracy(comparisons[ACCURACY, (), CONSTANT]),
        judge_best(comparisons[ACCURACY, (), STEPNET]),
        judge_explanation(explanations),
    ]


def of_relation(found: Relation) -> Verdict:
    """The verdict under one reading, where leaving out any one controller does not change it."""
    if found.n < design.FEWEST_NETWORKS:
        return UNDECIDED.because(f"n = {found.n}, judged from {design.FEWEST_NETWORKS} on")
    return of_robust(found.tau, found.without, negligible=design.NEGLIGIBLE)


def judge_relation(found: dict[tuple, Relation]) -> tuple[Verdict, str]:
    """Kendall's tau-b with the accuracy; "within" counts pairs of one group alone. Bootstrap over controllers, as the
    networks of one are alike, and within controllers over networks. Under each reading: supported where the interval
    lies above 0, contradicted where it lies below, no difference where it lies within 0.15 of 0. Over all networks the
    same must be said where any one controller is left out. The intervals hold together under all readings; nothing is
    judged with fewer than 24 networks."""
    verdicts = {reading: of_relation(one) for reading, one in found.items()}
    parts = [
        f"{wording(*reading)}, n = {one.n}: {interval_text(one.tau, '+.2f')} ({verdicts[reading]})"
        for reading, one in found.items()
    ]
    return joint(verdicts), f"Kendall's tau-b with the accuracy. {'; '.join(parts)}."


def judge_larger(found: dict[tuple, Comparison]) -> tuple[Verdict, str]:
    """Core: the mean of each controller minus that of constant step sizes, by Dunnett over seeds, the intervals
    holding together over controllers and readings. Under each reading: supported where every controller is above,
    contradicted where every one is below, true or false of some where only some are beyond 0. Judged from three seeds
    of every controller on."""
    if not any(one.beyond for one in found.values()):
        return NOT_RUN, "n = 0: no networks of the core to compare; `--train` makes them."
    verdicts = {reading: of_controllers(one) for reading, one in found.items()}
    parts = "; ".join(f"{wording(*reading)}: {verdicts[reading]}" for reading in found)
    first = next(iter(found.values()))
    return joint(verdicts), f"{why_open(first)}Above constant step sizes, by reading. {parts}."


def of_controllers(found: Comparison, sign: int = 1) -> Verdict:
    return UNDECIDED.because("too few seeds") if why_open(found) else of_each(found.beyond, sign)


def why_open(found: Comparison) -> str:
    return enough(found.groups, design.FEWEST_SEEDS)


@rule(
    "Attention raises the accuracy.",
    "Table 1",
    fewest=design.FEWEST_SEEDS,
    fixed="before the data, but for its words: with one controller below and none above it once said true of some",
    worlds=Worlds(
        worlds.accuracies, n=design.ROUNDS, units="seeds", effect="+1.2 points, the mean of Table 1's gains", now=3
    ),
)
def judge_accuracy(found: Comparison) -> tuple[Verdict, str]:
    """Core: mean accuracy of each controller minus that of constant step sizes, by Dunnett over seeds. Supported where
    every controller is above, contradicted where every one is below, true or false of some where only some are beyond
    0. Judged from three seeds of every controller on."""
    return (of_controllers(found) if found.beyond else NOT_RUN), points(found)


@rule(
    "StepNet raises the accuracy most.",
    "Table 1",
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(
        worlds.below_the_best, n=design.ROUNDS, units="seeds", effect="0.7 points, Table 1's mean, below StepNet", now=3
    ),
)
def judge_best(found: Comparison) -> tuple[Verdict, str]:
    """Core: mean accuracy of every other controller minus StepNet's, by Dunnett over seeds. Supported where every one
    is below, contradicted where every one is above, true or false of some where only some are beyond 0. Judged from
    three seeds of every controller on."""
    return (of_controllers(found, sign=-1) if found.beyond else NOT_RUN), points(found)


def points(found: Comparison) -> str:
    if not found.beyond:
        return "n = 0: no networks of the core to compare; `--train` makes them."
    words = f"Points above {found.control}, intervals of Dunnett over seeds: {listing(found.beyond)}."
    return f"{why_open(found)}{words}"


@rule(
    "NSI explains accuracy beyond simple rivals.",
    "Section 3.1, Figure 7",
    fewest=design.FEWEST_NETWORKS,
    negligible=design.NEGLIGIBLE,
    fixed="before the data; its intervals hold together over the readings since 51 networks were seen",
    worlds=Worlds(worlds.explanations, n=120, units="networks", effect="a coefficient of 0.5", now=51),
)
def judge_explanation(found: dict[tuple, Explained]) -> tuple[Verdict, str]:
    """Ranks of accuracy are regressed on those of TNS and of four rivals: norm of the logits, training loss, width,
    sharpness. The coefficient of TNS, by bootstrap over controllers: supported where its interval lies above 0,
    contradicted where below, no difference where it lies within 0.15 of 0. The shares of explained variance judge
    nothing. The intervals hold together under all readings; nothing is judged with fewer than 24 networks."""
    verdicts = {reading: of_coefficient(one) for reading, one in found.items()}
    parts = [
        f"{wording(*reading)}, n = {one.n}: {interval_text(one.coefficient, '+.2f')} ({verdicts[reading]})"
        f"{share_of_tns(one)}"
        for reading, one in found.items()
    ]
    return joint(verdicts), f"Coefficient of TNS beside its rivals. {'; '.join(parts)}."


def of_coefficient(found: Explained) -> Verdict:
    if found.n < design.FEWEST_NETWORKS:
        return UNDECIDED.because(f"n = {found.n}, judged from {design.FEWEST_NETWORKS} on")
    return of_interval(found.coefficient, negligible=design.NEGLIGIBLE)


def share_of_tns(found: Explained) -> str:
    if TNS not in found.shares:
        return ""
    whole, own = sum(share.value for share in found.shares.values()), found.shares[TNS].value
    return f", {100 * own:.0f} of the {100 * whole:.0f} % explained" if whole == whole else ""


def rule_of_relation(what: str, way: str) -> Rule:
    """Claim 1 for one quantity, counting pairs of networks in one way."""
    made = Worlds(worlds.relations_by(what, way), n=120, units="networks", effect=TAU, now=51)
    claim = f"{BETTER} {QUANTITY_NAMES[what]}: {way}."
    options = {"fewest": design.FEWEST_NETWORKS, "negligible": design.NEGLIGIBLE, "worlds": made, "fixed": LATER}
    return rule(claim, "Figure 7, Section 3.1", variant=f"{what}, {way}", **options)(judge_relation)


def rule_of_comparison(what: str) -> Rule:
    """Claim 2 for one quantity."""
    made = Worlds(worlds.stiffness_of(what), n=design.ROUNDS, units="seeds", effect=HALF_AS_MUCH, now=3)
    options = {"fewest": design.FEWEST_SEEDS, "worlds": made, "fixed": LATER}
    return rule(f"{LARGER} {QUANTITY_NAMES[what]}.", "Figure 2, Section 2.3", variant=what, **options)(judge_larger)


RELATED = {
    (what, way): rule_of_relation(what, way) for what in QUANTITIES for way in (WAYS if what == TNS else (OVER_ALL,))
}
COMPARED = {what: rule_of_comparison(what) for what in QUANTITIES}
