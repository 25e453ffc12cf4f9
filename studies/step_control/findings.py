"""What Table 4 and the tickets support of the paper's claims: verdicts and sentences computed from the numbers."""

import numpy as np

from studies.lab.comparisons import chance_of_one_mean, verdict_of_intervals
from studies.lab.statistics import LEVEL, UNDECIDED, Estimate, Finding, chance_text, listing
from studies.step_control import design
from studies.step_control.design import Row
from studies.step_control.tables import gains

DRAWN = " Figure 5 is a drawing that does not settle what a to d are; these are four readings of it."


PLACES = {design.EVERY: "lottery tickets among all blocks", design.COUNTED: "lottery tickets among counted blocks"}


def findings(cells: dict[str, Row], tickets: dict[str, dict[str, Row]]) -> list[Finding]:
    """All findings; `tickets` holds the rows of the lottery tickets by which blocks may have a controller."""
    found = [
        gain_finding(cells),
        worse_finding(
            cells, [*design.INPUTS], "x_t and x_{t+1} together are the better input.", "Table 4, Section 3.1"
        ),
        worse_finding(cells, [*design.ADAPTORS], "The chosen adaptor is the better one.", "Table 4, Figure 5", DRAWN),
    ]
    for reading, rows in tickets.items():
        found += [finding(rows, f"{PLACES[reading]}, Section 3.1") for finding in TICKET_FINDINGS]
    return [finding for finding in found if finding is not None]


def gain_finding(rows) -> Finding | None:
    """Every row of Table 4 against the plain network."""
    if not there(rows, design.PLAIN):
        return None
    ours = [name for name in rows if name not in (design.PLAIN, design.SE)]
    beyond = known_estimates(gains(rows, design.PLAIN), ours)
    if not beyond:
        return None
    all_of_them = [rows[name].accuracies for name in ours if rows[name].found]
    p = chance_of_one_mean(all_of_them)
    among = (
        f" Among the {len(all_of_them)} StepNets themselves an analysis of variance finds p {chance_text(p)}: "
        + ("they differ beyond chance." if p < 1.0 - LEVEL else "their order may be that of other seeds.")
        if np.isfinite(p)
        else ""
    )
    return Finding(
        "StepNet raises the accuracy, with any input and any adaptor.",
        "Table 4",
        verdict_of_intervals(beyond, +1),
        f"Points above the plain network: {listing(beyond)}.{noise(beyond)}{among}",
    )


def worse_finding(rows, others, claim, where, more="") -> Finding | None:
    """The row that the paper chose against the alternatives to it."""
    beyond = known_estimates(gains(rows, design.OURS), others) if there(rows, design.OURS) else {}
    if not beyond:
        return None
    words = f"Points above {design.OURS}, negative where the paper is right: {listing(beyond)}.{noise(beyond)}{more}"
    return Finding(claim, where, verdict_of_intervals(beyond, -1), words)


def few_finding(rows, where) -> Finding | None:
    if not there(rows, design.STIFFEST, design.NONE):
        return None
    beyond = known_estimates(gains(rows, design.NONE), [design.STIFFEST])
    few = len(rows[design.STIFFEST].found[0][0].acting)
    blocks = "block" if few == 1 else f"{few} blocks"
    return Finding(
        "Controllers on a small number of blocks are a remarkable improvement.",
        where,
        verdict_of_intervals(beyond, +1),
        f"On the stiffest {blocks}, points above the plain network: {listing(beyond)}.{noise(beyond)}",
    )


def stiff_finding(rows, where) -> Finding | None:
    """The stiffest blocks against other choices of as many: by the paper's explanation the stiffest are the best."""
    others = [design.RANDOM, design.LEAST]
    beyond = known_estimates(gains(rows, design.STIFFEST), others) if there(rows, design.STIFFEST) else {}
    if not beyond:
        return None
    return Finding(
        "The blocks that need a controller are the stiff ones.",
        where,
        verdict_of_intervals(beyond, -1),
        f"Points above the stiffest blocks, negative where the paper is right: {listing(beyond)}.{noise(beyond)}"
        f"{coinciding(rows)}",
    )


def coinciding(rows) -> str:
    """Names the seeds whose random choice is the stiffest blocks: one network then stands in two rows."""
    stiffest = {run.stem for run, _ in rows[design.STIFFEST].found}
    seeds = (
        [str(run.seed) for run, _ in rows[design.RANDOM].found if run.stem in stiffest] if design.RANDOM in rows else []
    )
    return f" With seed {', '.join(seeds)} the random blocks are the stiffest ones." if seeds else ""


def all_finding(rows, where) -> Finding | None:
    """The few blocks against all: no visible difference is no proof of "as good", so the interval bounds the loss."""
    if not there(rows, design.STIFFEST, design.ALL):
        return None
    beyond = known_estimates(gains(rows, design.STIFFEST), [design.ALL])
    estimate = beyond[design.ALL]
    words = f"Points of all blocks above the stiffest: {listing(beyond)}."
    if verdict_of_intervals(beyond, -1) == UNDECIDED and np.isfinite(estimate.high):
        words += f" The few may lose up to {max(estimate.high, 0):.2f} points against all."
    return Finding(
        "The stiffest blocks alone do as well as all.", where, verdict_of_intervals(beyond, -1), words + noise(beyond)
    )


TICKET_FINDINGS = (few_finding, stiff_finding, all_finding)


def there(rows, *names) -> bool:
    return all(name in rows and rows[name].found for name in names)


def known_estimates(estimates: dict[str, Estimate], names) -> dict[str, Estimate]:
    return {name: estimates[name] for name in names if name in estimates}


def noise(beyond: dict[str, Estimate]) -> str:
    """A sentence for differences that are no larger than those between seeds."""
    if not all(np.isfinite(e.low) for e in beyond.values()):
        return " With one seed the effect of another seed is unknown: there is no interval and no verdict."
    within = [name for name, e in beyond.items() if e.low <= 0.0 <= e.high]
    if not within:
        return ""
    which = "This is" if len(beyond) == 1 else "All are" if len(within) == len(beyond) else f"{', '.join(within)}:"
    return f" {which} within the noise of the seeds."
