"""What the three uses of TNS are worth here: the rules, and the sentences that their numbers give."""

from collections.abc import Mapping, Sequence

import numpy as np

from studies.lab.comparisons import welch
from studies.lab.statistics import Estimate, interval_text, kendall_within, listing, mean_with_interval
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, wording
from studies.lab.verdicts import (
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
    rule,
)
from studies.tns_at_work import design, worlds
from studies.tns_at_work.measures import BY_LOSS, RANDOM, SMALLEST, Architectures, Pruned

IN_LOSS = "Section 3.1: a measure that training could aim at"
SEARCH = "Section 3.1: architecture search"
PRUNING = "Section 3.1: network pruning"
PARAMETERS = "parameters"
RIVALS = {PARAMETERS: "number of parameters", "gradient": "norm of the first gradient"}
RESAMPLES = 2000
TRAIN = "n = 0: `--train` makes the networks."
WELCH = (
    "after the data: with 46 networks seen, of which those of one weight scatter nine times as far as the others, "
    "intervals with deviations that may differ replaced Dunnett's. By the rule before (Dunnett and Welch's): undecided"
)
CROSSED = (
    "after the data: with 36 networks seen, controllers and shapes became what is resampled, where networks had been, "
    "and scale and shape of TNS were taken apart. By the rule before, of TNS alone: undecided"
)


def findings(
    tns: dict[float, list[float]], accuracies: dict[float, list[float]], searched: Architectures, pruned: dict
) -> list[Finding]:
    """Every claim.

    tns, accuracies  by weight of TNS in the loss
    searched         the architectures, before and after training
    pruned           by family of networks
    """
    return [
        judge_term(tns),
        judge_reward(accuracies),
        *(RANKING[what](searched, what) for what in QUANTITIES),
        *(BETTER[what](searched, what) for what in QUANTITIES),
        judge_pruning(pruned),
        judge_pruning_by_loss(pruned),
    ]


def by_weight(groups: Mapping[float, Sequence[float]], asked: int = 1) -> dict[str, Estimate]:
    """How far the mean at every weight lies above that without the term: Welch, over seeds.

    Seeds of one weight may lie farther apart than those of another. `asked` weights are judged together.
    """
    return welch("0", {f"{weight:g}": list(values) for weight, values in groups.items()}, corrected(asked))


def counts(groups: Mapping[float, Sequence[float]]) -> str:
    return ", ".join(f"{weight:g}: {len(groups[weight])}" for weight in sorted(groups))


def too_few(groups: Mapping[float, Sequence[float]]) -> str:
    return enough({f"weight {weight:g}": groups.get(weight, ()) for weight in design.WEIGHTS}, design.FEWEST_SEEDS)


@rule(
    "TNS as a term of the loss moves TNS: rewarded it grows, punished it shrinks.",
    IN_LOSS,
    fixed=WELCH,
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(worlds.term, n=24, units="seeds", effect="half as much again, or half of it", now=10),
)
def judge_term(tns: Mapping[float, Sequence[float]]) -> tuple[Verdict, str]:
    """TNS on test images at each weight of TNS in the loss minus that without, by Welch over seeds, the intervals of
    all four weights holding together. Supported where every reward lies above 0 and every punishment below,
    contradicted where every one lies on the other side, true or false of some where only some are decided. Judged from
    three seeds of each weight on."""
    if not any(len(values) for values in tns.values()):
        return NOT_RUN, TRAIN
    few, beyond = too_few(tns), by_weight(tns, len(design.WEIGHTS) - 1)
    cases = [of_interval(e, sign=-1 if float(weight) > 0 else 1) for weight, e in beyond.items()]
    words = (
        f"{few}TNS (slope NSI, sample mean) above that without the term, by weight: {listing(beyond, '+.3f')}. "
        f"Networks by weight: {counts(tns)}; a training whose TNS became undefined on the way is left out."
    )
    return (UNDECIDED.because("too few seeds") if few else of_cases(cases)), words


@rule(
    "Rewarding TNS in the loss raises the accuracy.",
    IN_LOSS,
    fixed=WELCH,
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(worlds.reward, n=24, units="seeds", effect="+4 points, as far as seeds scatter without it", now=10),
)
def judge_reward(accuracies: Mapping[float, Sequence[float]]) -> tuple[Verdict, str]:
    """Accuracies at the two weights that reward TNS minus those without the term, by Welch over seeds, both intervals
    holding together. Supported where both lie above 0, contradicted where both lie below, true or false of some where
    only one is decided. Judged from three seeds of each weight on."""
    if not any(len(values) for values in accuracies.values()):
        return NOT_RUN, TRAIN
    rewards = {weight: values for weight, values in accuracies.items() if weight <= 0}
    few, beyond = too_few(accuracies), by_weight(rewards, len(rewards) - 1)
    words = (
        f"{few}Points above training without the term, by weight (negative weights reward TNS): {listing(beyond)}. "
        f"Networks by weight: {counts(accuracies)}."
    )
    return (UNDECIDED.because("too few seeds") if few else of_each(beyond)), words


def rank_correlation(searched: Architectures, key, level: float = 0.95, resamples: int = RESAMPLES) -> Estimate:
    """Kendall's tau-b with the accuracy, over the architectures for which a measure is defined.

    Controllers and shapes are resampled, each whole: networks of one are alike.
    """
    there = np.isfinite(searched.before[key])
    kinds = [searched.controllers[there], searched.shapes[there]]
    return kendall_within(
        searched.before[key][there], searched.accuracy[there], np.zeros(there.sum()), resamples, level, kinds
    )


def judge_ranking(searched: Architectures, what: str, resamples: int = RESAMPLES) -> tuple[Verdict, str]:
    """Kendall's tau-b of a number of untrained networks and their accuracy after training, one network for each
    controller and shape; the bootstrap draws controllers and shapes, so that none of them makes a relation alone.
    Supported under a reading where the interval lies above 0, contradicted where below, no difference where it lies
    within 0.15 of 0. The intervals hold together over the readings; nothing is judged with fewer than 24 networks."""
    n = len(searched)
    if not n:
        return NOT_RUN, TRAIN
    verdicts, parts = {}, []
    for reading in QUANTITIES[what]:
        level = corrected(len(QUANTITIES[what]))
        tau = rank_correlation(searched, (what, reading), level, resamples)
        verdicts[reading] = UNDECIDED.because(f"n = {n} networks, judged from {design.FEWEST_ARCHITECTURES} on")
        if n >= design.FEWEST_ARCHITECTURES:
            verdicts[reading] = of_interval(tau, negligible=design.NEGLIGIBLE)
        parts.append(f"{wording(*reading)}: {interval_text(tau, '+.2f')} ({verdicts[reading]})")
    return joint(verdicts), f"Kendall's tau-b over {n} networks. {'; '.join(parts)}."


def judge_better(searched: Architectures, what: str, resamples: int = RESAMPLES) -> tuple[Verdict, str]:
    """Kendall's tau-b of a number of untrained networks with their accuracy after training, minus that of the number of
    parameters; the bootstrap draws controllers and shapes, the same for both. Supported under a reading where the
    interval lies above 0, contradicted where below. The intervals hold together over the readings; nothing is judged
    with fewer than 24 networks."""
    n = len(searched)
    if not n:
        return NOT_RUN, TRAIN
    verdicts, parts = {}, []
    for reading in QUANTITIES[what]:
        level, there = corrected(len(QUANTITIES[what])), searched.of(np.isfinite(searched.before[what, reading]))
        ours, theirs = (rank_correlation(there, key, level, resamples) for key in ((what, reading), PARAMETERS))
        difference = ours.minus(theirs, level)
        verdicts[reading] = UNDECIDED.because(f"n = {n} networks, judged from {design.FEWEST_ARCHITECTURES} on")
        if n >= design.FEWEST_ARCHITECTURES:
            verdicts[reading] = of_interval(difference)
        parts.append(f"{wording(*reading)}: {interval_text(difference, '+.2f')} ({verdicts[reading]})")
    rivals = "; ".join(
        f"{name} {interval_text(rank_correlation(searched, key, resamples=resamples), '+.2f')}"
        for key, name in RIVALS.items()
        if key in searched.before
    )
    words = f"Tau-b minus that of the number of parameters. {'; '.join(parts)}. By themselves: {rivals}."
    return joint(verdicts), words


def advantages(pruned: Mapping[str, Sequence[Pruned]], other: str) -> dict[str, list[float]]:
    """By family the points that smallest NSI keeps above another order, a mean over the seeds of each controller."""
    found = {}
    for family, networks in pruned.items():
        groups: dict[str, list[float]] = {}
        for one in networks:
            groups.setdefault(one.controller, []).append(one.advantage(SMALLEST, other))
        found[family] = [float(np.mean(values)) for values in groups.values()]
    return found


def judge_families(points: Mapping[str, Sequence[float]], least: float = 0.0) -> tuple[Verdict, str]:
    """The verdict on several families of networks, from one number for each controller, and the numbers behind it."""
    if not any(points.values()):
        return NOT_RUN, "n = 0 pruned networks: `--train` prunes them."
    several = {family: values for family, values in points.items() if values}
    few = enough(several, design.FEWEST_PRUNED, "controllers")
    estimates = {family: mean_with_interval(values, corrected(len(several))) for family, values in several.items()}
    shown = "; ".join(f"{family}, {e.n} controllers: {interval_text(e, '+.1f')}" for family, e in estimates.items())
    words = f"{few}{shown}."
    if few:
        return UNDECIDED.because("too few controllers"), words
    return of_each({family: e.less(least) for family, e in estimates.items()}), words


FAMILIES = (
    "after the data: with 16 networks of the digits seen and supported, 22 of CIFAR-10 joined, and controllers became "
    "the units, where networks had been. By the rule before, of the digits alone: "
)


@rule(
    "Blocks of small NSI can be pruned.",
    PRUNING,
    fixed=f"{FAMILIES}supported",
    fewest=design.FEWEST_PRUNED,
    worlds=Worlds(worlds.pruning, n=11, units="controllers", effect="17 points, as with the digits"),
)
def judge_pruning(pruned: Mapping[str, Sequence[Pruned]]) -> tuple[Verdict, str]:
    """The accuracy that is left without the counted blocks of smallest NSI minus that without as many random ones: the
    mean over 1, 2 and 4 blocks and over the seeds of each controller. By family of networks (data set) Student's
    interval over controllers, all families together. Supported where every family lies above 0, contradicted where
    every one lies below, true or false of some where only some are decided. Judged from five controllers on."""
    verdict, words = judge_families(advantages(pruned, RANDOM))
    return verdict, words if verdict == NOT_RUN else f"Points of accuracy kept above random blocks. {words}"


@rule(
    "NSI prunes as well as the loss does.",
    PRUNING,
    fixed=f"{FAMILIES}undecided",
    fewest=design.FEWEST_PRUNED,
    negligible=design.MARGIN,
    worlds=Worlds(
        worlds.pruning_by_loss, n=120, units="controllers", effect="no loss, where without it 1 point is lost", now=11
    ),
)
def judge_pruning_by_loss(pruned: Mapping[str, Sequence[Pruned]]) -> tuple[Verdict, str]:
    """The accuracy that is left without the counted blocks of smallest NSI minus that without as many whose dropping
    alone raises the loss least, as in the other rule of pruning. Supported where it lies above -1 point in every family
    of networks, contradicted where below in every one."""
    verdict, words = judge_families(advantages(pruned, BY_LOSS), -design.MARGIN)
    return verdict, words if verdict == NOT_RUN else f"Points kept above pruning by the loss; 1 less would do. {words}"


def rule_of_ranking(what: str) -> Rule:
    """Claim 3 for one of TNS, scale and shape."""
    made = Worlds(worlds.searches(what), n=100, units="networks", effect="Kendall's tau of 0.5", now=36)
    claim = f"Before training, {QUANTITY_NAMES[what]} ranks architectures as their accuracy does."
    options = {"fixed": CROSSED, "fewest": design.FEWEST_ARCHITECTURES, "negligible": design.NEGLIGIBLE}
    return rule(claim, SEARCH, variant=what, worlds=made, **options)(judge_ranking)


def rule_of_better(what: str) -> Rule:
    """Claim 4 for one of TNS, scale and shape."""
    effect = "a tau of 0.5 where that of the number of parameters is 0"
    made = Worlds(worlds.searches(what), n=144, units="networks", effect=effect, now=36)
    claim = f"Before training, {QUANTITY_NAMES[what]} ranks architectures better than the number of parameters does."
    options = {"fixed": CROSSED, "fewest": design.FEWEST_ARCHITECTURES, "worlds": made, "variant": what}
    return rule(claim, SEARCH, **options)(judge_better)


RANKING = {what: rule_of_ranking(what) for what in QUANTITIES}
BETTER = {what: rule_of_better(what) for what in QUANTITIES}
