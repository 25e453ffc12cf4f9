"""What the recipes say about the paper's claims, by the rules of `design.py` and no others."""

import numpy as np

from studies.lab.statistics import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    Estimate,
    Finding,
    interval_text,
    joint_verdict,
    listing,
    verdict_of_counts,
)
from studies.lab.stiffness import READINGS, wording
from studies.tricks import design
from studies.tricks.analysis import ACCURACY, Hardness, Runs, hardness


def findings(runs: Runs) -> list[Finding]:
    return [raising_finding(runs), relation_finding(runs), *hardness_findings(runs)]


def good_ones(runs: Runs) -> list[str]:
    """The tricks whose accuracy is above the plain recipe's with the whole interval over seeds."""
    return [name for name, e in runs.beyond(ACCURACY).items() if e.low > 0.0]


def raising(beyond: dict[str, Estimate], plain: float) -> str:
    """Rule 1 under one reading, of the TNS of the good tricks minus that of the plain recipe, `plain`."""
    if not beyond:
        return UNDECIDED
    above, below = sum(e.low > 0.0 for e in beyond.values()), sum(e.high < 0.0 for e in beyond.values())
    ends = [end for e in beyond.values() for end in (e.low, e.high)]
    if not above and not below and np.all(np.abs(ends) <= design.NEGLIGIBLE * plain):
        return CONTRADICTED
    return verdict_of_counts(above, below, len(beyond))


def raising_finding(runs: Runs) -> Finding:
    good, accuracy = good_ones(runs), runs.beyond(ACCURACY)
    worse = [name for name, e in accuracy.items() if e.high < 0.0]
    verdicts, parts = [], []
    for reading in READINGS:
        values, beyond = runs.values(reading), runs.beyond(reading)
        plain = float(np.mean(values[design.PLAIN])) if values.get(design.PLAIN) else float("nan")
        verdicts.append(raising({name: beyond[name] for name in good if name in beyond}, plain))
        if shown := {name: beyond[name] for name in (*good, *worse) if name in beyond}:
            parts.append(f"{wording(*reading)} (plain {plain:.3f}): {listing(shown, '+.3f')} ({verdicts[-1]})")
    which = (
        f"Better than the plain recipe beyond what seeds do, in points: {list_chosen(accuracy, good)}. "
        if good
        else "No trick is better than the plain recipe beyond what seeds do, so nothing is known of better networks. "
    )
    if worse:
        which += f"Worse beyond what seeds do: {list_chosen(accuracy, worse)}. "
    if parts:
        which += f"TNS of these minus that of plain, only the better ones being judged: {'; '.join(parts)}."
    where, claim = "Figure 8, Appendix A", "What raises the accuracy, raises TNS."
    return Finding(claim, where, joint_verdict(verdicts), f"{few_seeds(runs)}{which}".strip())


def list_chosen(beyond: dict[str, Estimate], names: list[str]) -> str:
    return listing({name: beyond[name] for name in names}, "+.2f")


def relation_finding(runs: Runs) -> Finding:
    found = {reading: runs.relation(reading) for reading in READINGS}
    parts = [
        f"{wording(*reading)}: Kendall {interval_text(one.kendall, '+.2f')}, Spearman "
        f"{interval_text(one.spearman, '+.2f')}, within recipes "
        f"{interval_text(runs.relation_within(reading), '+.2f')} ({one.verdict})"
        for reading, one in found.items()
    ]
    return Finding(
        "The better the network, the larger its TNS, whatever it was trained with.",
        "Figures 7 and 8",
        joint_verdict([one.verdict for one in found.values()]),
        f"Over {len(runs.all)} networks of {len(runs.groups)} recipes; networks of one recipe are alike, so that "
        f"intervals are narrower than they should be. Pairs within recipes judge nothing. {'; '.join(parts)}.",
    )


def below_zero(e: Estimate) -> str:
    """Rule 3: stiffer networks gain less."""
    if not np.isfinite(e.low):
        return UNDECIDED
    if e.high < 0.0:
        return SUPPORTED
    return CONTRADICTED if e.low > 0.0 else UNDECIDED


def hardness_findings(runs: Runs) -> list[Finding]:
    """None where stiffness was not followed."""
    found: dict[tuple[str, str], Hardness] = {reading: hardness(runs.all, reading) for reading in READINGS}
    if not any(one.plain for one in found.values()):
        return []
    verdicts = [below_zero(one.mean("partial")) for one in found.values()]
    parts = [
        f"{wording(*reading)}: {interval_text(one.mean('plain'), '+.2f')} as it is, "
        f"{interval_text(one.mean('partial'), '+.2f')} with the epoch's number taken out ({verdict})"
        for (reading, one), verdict in zip(found.items(), verdicts, strict=True)
    ]
    words = (
        "Mean over networks of Kendall's tau of an epoch's TNS and what the training loss gains until the next, "
        f"among epochs of one learning rate; negative where stiff networks gain less. {'; '.join(parts)}. Training as "
        "a whole is not made harder or easier here, only followed: a relation in time is no cause."
    )
    return [Finding("Stiffness makes training hard.", "abstract, Section 1", joint_verdict(verdicts), words)]


def few_seeds(runs: Runs) -> str:
    if runs.fewest >= design.SEEDS:
        return ""
    return f"With {runs.fewest} seed{'s' if runs.fewest > 1 else ''} of some recipes intervals are wide or missing. "
