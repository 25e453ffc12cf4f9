"""What the three uses of TNS are worth here, by the rules of `design.py`."""

import numpy as np

from studies.lab.comparisons import dunnett, welch
from studies.lab.statistics import (
    CONTRADICTED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Estimate,
    Finding,
    interval_text,
    joint_verdict,
    kendall_within,
    listing,
    mean_over_networks,
    sign_of,
)
from studies.lab.stiffness import READINGS, wording
from studies.population.findings import of_sign, outcome
from studies.tns_at_work import design
from studies.tns_at_work.measures import BY_LOSS, RANDOM, SMALLEST, Pruned

IN_LOSS = "Section 3.1: a measure that training could aim at"
SEARCH = "Section 3.1: architecture search"
PRUNING = "Section 3.1: network pruning"
RIVALS = {"parameters": "number of parameters", "gradient": "norm of the first gradient"}
RESAMPLES = 2000


def by_weight(groups: dict[float, list[float]]) -> dict[str, Estimate]:
    """How far the mean at every weight lies above that without the term: Dunnett, over seeds."""
    return dunnett("0", {f"{weight:g}": values for weight, values in groups.items()})


def by_weight_apart(groups: dict[float, list[float]]) -> dict[str, Estimate]:
    """The same by Welch, each interval for itself: seeds of one weight may lie farther apart than those of another."""
    return welch("0", {f"{weight:g}": values for weight, values in groups.items()})


def signs_by_weight(groups: dict[float, list[float]]) -> dict[float, int]:
    """On which side of 0 both intervals of a weight lie, 1 or -1; 0 where either holds it, or they disagree."""
    apart = by_weight_apart(groups)
    pairs = {name: (sign_of(one), sign_of(apart[name])) for name, one in by_weight(groups).items() if name in apart}
    return {float(name): first if first == second else 0 for name, (first, second) in pairs.items()}


def why_undecided(groups: dict[float, list[float]]) -> str:
    few = min((len(groups.get(weight, ())) for weight in design.WEIGHTS), default=0)
    if few >= design.FEWEST_SEEDS:
        return ""
    return f"n = {few} seeds of some weight, and the design judges from {design.FEWEST_SEEDS} on. "


def counts(groups: dict[float, list[float]]) -> str:
    return ", ".join(f"{weight:g}: {len(groups[weight])}" for weight in sorted(groups))


def moves_finding(tns: dict[float, list[float]]) -> Finding:
    """Claim 1: the term does what it should."""
    signs = [sign if weight < 0 else -sign for weight, sign in signs_by_weight(tns).items()]
    verdict = UNDECIDED
    if not why_undecided(tns) and signs:
        verdict = CONTRADICTED if -1 in signs else SUPPORTED if set(signs) == {1} else UNDECIDED
    return Finding(
        "TNS as a term of the loss moves TNS: rewarded it grows, punished it shrinks.",
        IN_LOSS,
        verdict,
        f"{why_undecided(tns)}TNS (slope NSI, sample mean) above that without the term, by weight: "
        f"{listing(by_weight(tns), '+.3f')}; with deviations that may differ (Welch, each interval for itself): "
        f"{listing(by_weight_apart(tns), '+.3f')}. "
        f"Networks by weight: {counts(tns)}; a training whose TNS became undefined on the way is left out.",
    )


def reward_finding(accuracies: dict[float, list[float]]) -> Finding:
    """Claim 2: networks whose TNS is rewarded are better."""
    rewards = [sign for weight, sign in signs_by_weight(accuracies).items() if weight < 0]
    above, below = 1 in rewards, -1 in rewards
    verdict = PARTLY if above and below else SUPPORTED if above else CONTRADICTED if below else UNDECIDED
    return Finding(
        "Rewarding TNS in the loss raises the accuracy.",
        IN_LOSS,
        UNDECIDED if why_undecided(accuracies) else verdict,
        f"{why_undecided(accuracies)}Points above training without the term, by weight (negative weights reward TNS), "
        f"intervals of Dunnett over seeds: {listing(by_weight(accuracies))}; with deviations that may differ (Welch, "
        f"each interval for itself): {listing(by_weight_apart(accuracies))}. Networks by weight: {counts(accuracies)}.",
    )


def rank_correlation(values, accuracy) -> tuple[int, Estimate]:
    """Kendall's tau-b of the networks for which a measure is defined."""
    there = np.isfinite(values)
    return int(there.sum()), kendall_within(values[there], accuracy[there], np.zeros(there.sum()), RESAMPLES)


def search_finding(before: dict, accuracy: np.ndarray) -> Finding:
    """Claim 3; `before` has a row of numbers per network for every reading and every rival."""
    found = {reading: rank_correlation(before[reading], accuracy) for reading in READINGS}
    parts = [f"{wording(*reading)}: {outcome(n, tau)}" for reading, (n, tau) in found.items()]
    return Finding(
        "TNS before training ranks architectures as their accuracy does.",
        SEARCH,
        joint_verdict(of_sign(n, tau) for n, tau in found.values()),
        f"{few(len(accuracy))}Kendall's tau-b over {len(accuracy)} networks. {'; '.join(parts)}.",
    )


def better_finding(before: dict, accuracy: np.ndarray) -> Finding:
    """Claim 4: the differences of tau-b are resampled on the same networks."""
    verdicts, parts = [], []
    for reading in READINGS:
        there = np.isfinite(before[reading])
        ours, theirs = (rank_correlation(before[key][there], accuracy[there])[1] for key in (reading, "parameters"))
        difference = ours.minus(theirs)
        enough = there.sum() >= design.FEWEST_ARCHITECTURES
        sign = SUPPORTED if difference.low > 0 else CONTRADICTED if difference.high < 0 else UNDECIDED
        verdicts.append(sign if enough else UNDECIDED)
        parts.append(f"{wording(*reading)}: {interval_text(difference, '+.2f')}")
    rivals = [
        f"{name} {interval_text(rank_correlation(before[key], accuracy)[1], '+.2f')}" for key, name in RIVALS.items()
    ]
    return Finding(
        "TNS before training ranks architectures better than the number of parameters does.",
        SEARCH,
        joint_verdict(verdicts),
        f"{few(len(accuracy))}Tau-b of TNS minus that of the number of parameters. {'; '.join(parts)}. By themselves: "
        f"{'; '.join(rivals)}.",
    )


def few(n: int) -> str:
    fewest = design.FEWEST_ARCHITECTURES
    return f"n = {n} networks, and the design judges from {fewest} on. " if n < fewest else ""


def pruning_findings(found: list[Pruned]) -> list[Finding]:
    """Claims 5 and 6; none without a network."""
    if not found:
        return []
    enough = len(found) >= design.FEWEST_PRUNED
    short = "" if enough else f"n = {len(found)} networks, and the design judges from {design.FEWEST_PRUNED} on. "
    random, loss = (
        mean_over_networks([one.advantage(SMALLEST, other) for one in found]) for other in (RANDOM, BY_LOSS)
    )
    against_random = SUPPORTED if random.low > 0 else CONTRADICTED if random.high < 0 else UNDECIDED
    margin = -design.MARGIN
    against_loss = SUPPORTED if loss.low > margin else CONTRADICTED if loss.high < margin else UNDECIDED
    return [
        Finding(
            "Blocks of small NSI can be pruned.",
            PRUNING,
            against_random if enough else UNDECIDED,
            f"{short}Points of accuracy that dropping the blocks of smallest NSI keeps above random ones, mean over "
            f"the number dropped and {len(found)} networks: {interval_text(random, '+.2f')}.",
        ),
        Finding(
            "NSI prunes as well as the loss does.",
            PRUNING,
            against_loss if enough else UNDECIDED,
            f"{short}Points above dropping the blocks whose dropping alone raises the loss least: "
            f"{interval_text(loss, '+.2f')}; {design.MARGIN:g} point less would be as well.",
        ),
    ]
