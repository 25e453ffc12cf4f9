"""What the population says about the paper's claims, by the rules of `design.py` and no others."""

import numpy as np

from studies.lab.statistics import (
    CONTRADICTED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Estimate,
    Finding,
    interval_text,
    joint_verdict,
    listing,
)
from studies.lab.stiffness import READINGS, wording
from studies.population import design
from studies.population.analysis import ACCURACY, CONSTANT, STEPNET, TNS, WAYS, Comparison, Explained

BETTER = "The better the network, the larger its TNS"
LARGER = "Networks with attention have a larger TNS."
HIGHER = "Attention raises the accuracy."
MOST = "StepNet raises the accuracy most."
BEYOND = "NSI explains accuracy beyond simple rivals."


def findings(relations: dict, comparisons: dict, explanations: dict) -> list[Finding]:
    """One finding per way of claim 1, then claims 2, 3 and 4; the arguments are those of `analysis`."""
    return [
        *(relation_finding(way, {reading: relations[way, reading] for reading in READINGS}) for way in WAYS),
        larger_finding({reading: comparisons[reading, CONSTANT] for reading in READINGS}),
        higher_finding(comparisons[ACCURACY, CONSTANT]),
        most_finding(comparisons[ACCURACY, STEPNET]),
        beyond_finding(explanations),
    ]


def of_sign(n: int, e: Estimate) -> str:
    """The verdict by the rule of claims 1 and 4: above 0, below 0 or next to nothing, or not known."""
    if n < design.FEWEST_NETWORKS or not np.isfinite(e.low):
        return UNDECIDED
    if e.low > 0.0:
        return SUPPORTED
    negligible = max(-e.low, e.high) <= design.NEGLIGIBLE
    return CONTRADICTED if e.high < 0.0 or negligible else UNDECIDED


def outcome(n: int, e: Estimate) -> str:
    """The estimate with its verdict, in words that keep "smaller" and "no relation" apart."""
    verdict = of_sign(n, e)
    if verdict == CONTRADICTED:
        verdict += ": smaller" if e.high < 0.0 else f": within {design.NEGLIGIBLE} of 0"
    return f"{interval_text(e, '+.2f')} ({verdict})"


def relation_finding(way: str, relations: dict) -> Finding:
    """Claim 1 in one of its four ways."""
    verdicts = [of_sign(found.n, found.tau) for found in relations.values()]
    parts = [
        f"{wording(*reading)}, n = {found.n}: {outcome(found.n, found.tau)}" for reading, found in relations.items()
    ]
    words = f"Kendall's tau-b of TNS and accuracy. {'; '.join(parts)}."
    return Finding(
        f"{BETTER}: {way}.", "Figure 7, Section 3.1", joint_verdict(verdicts), f"{too_few(relations)}{words}"
    )


def too_few(found: dict) -> str:
    """What comes first where a reading has fewer networks than the design asks for."""
    n = min(one.n for one in found.values())
    few = n < design.FEWEST_NETWORKS
    return f"n = {n} networks, and the design judges from {design.FEWEST_NETWORKS} on. So far: " if few else ""


def of_each(beyond: dict[str, Estimate]) -> str:
    """The verdict by the rule of claims 2 and 3: all above, all below, some beyond 0, or none."""
    above, below = beyond_zero(beyond)
    if beyond and above == len(beyond):
        return SUPPORTED
    if beyond and below == len(beyond):
        return CONTRADICTED
    return PARTLY if above or below else UNDECIDED


def beyond_zero(beyond: dict[str, Estimate]) -> tuple[int, int]:
    """How many intervals lie above 0, and how many below."""
    return sum(e.low > 0.0 for e in beyond.values()), sum(e.high < 0.0 for e in beyond.values())


def why_undecided(found: Comparison) -> str:
    """What comes first where controllers cannot be compared yet, or ""."""
    if not found.beyond:
        return f"n = 0: no networks of the core to compare with {found.control}."
    few = min(map(len, found.groups.values()))
    if few >= design.FEWEST_SEEDS:
        return ""
    names = [name for name, values in found.groups.items() if len(values) == few]
    several = "every controller" if len(names) == len(found.groups) else f"{len(names)} controllers"
    of = names[0] if len(names) == 1 else several
    seeds = "seed" if few == 1 else "seeds"
    return f"n = {few} {seeds} of {of}, and the design judges from {design.FEWEST_SEEDS} on. So far: "


def counts(found: Comparison) -> str:
    above, below = beyond_zero(found.beyond)
    return f"{above} of {len(found.beyond)} above, {below} below"


def larger_finding(found: dict[tuple[str, str], Comparison]) -> Finding:
    """Claim 2: networks with attention have a larger TNS."""
    verdicts = [UNDECIDED if why_undecided(one) else of_each(one.beyond) for one in found.values()]
    parts = "; ".join(f"{wording(*reading)}: {counts(one)}" for reading, one in found.items())
    first = next(iter(found.values()))
    words = why_undecided(first)
    if first.beyond:
        words += (
            "Controllers whose interval of TNS minus that of constant step sizes leaves out 0 (Dunnett, over seeds). "
            f"{parts}."
        )
    return Finding(LARGER, "Figure 2, Section 2.3", joint_verdict(verdicts), words)


def higher_finding(found: Comparison) -> Finding:
    """Claim 3: attention raises the accuracy."""
    return Finding(HIGHER, "Table 1", UNDECIDED if why_undecided(found) else of_each(found.beyond), points(found))


def most_finding(found: Comparison) -> Finding:
    """Claim 3, of StepNet: all others below it, or one above it."""
    above, below = beyond_zero(found.beyond)
    verdict = SUPPORTED if below == len(found.beyond) else CONTRADICTED if above else UNDECIDED
    return Finding(MOST, "Table 1", UNDECIDED if why_undecided(found) else verdict, points(found))


def points(found: Comparison) -> str:
    if not found.beyond:
        return why_undecided(found)
    words = f"{counts(found)} ({listing(found.beyond)})"
    return f"{why_undecided(found)}Points above {found.control}, intervals of Dunnett over seeds: {words}."


def beyond_finding(explanations: dict[tuple[str, str], Explained]) -> Finding:
    """Claim 4; the shares of explained variance are shown and judge nothing."""
    verdicts = [of_sign(found.n, found.coefficient) for found in explanations.values()]
    parts = [
        f"{wording(*reading)}, n = {found.n}: {outcome(found.n, found.coefficient)}{share_of_tns(found)}"
        for reading, found in explanations.items()
    ]
    return Finding(
        BEYOND,
        "Section 3.1, Figure 7",
        joint_verdict(verdicts),
        f"{too_few(explanations)}Coefficient of TNS in a regression of the ranks of accuracy, beside norm of the "
        f"logits, training loss, width and sharpness. {'; '.join(parts)}.",
    )


def share_of_tns(found: Explained) -> str:
    whole = sum(share.value for share in found.shares.values())
    own = found.shares[TNS].value
    return f", {100 * own:.0f} of the {100 * whole:.0f} % explained" if np.isfinite(whole) else ""
