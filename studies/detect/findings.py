"""What the detectors say about Table 3 of the first paper, by the rules of `design.py`."""

import numpy as np

from netbridge.detect.evaluation import NAMES
from studies.detect import design
from studies.lab.comparisons import deviation_cell, dunnett
from studies.lab.statistics import (
    CONTRADICTED,
    PARTLY,
    SUPPORTED,
    UNDECIDED,
    Estimate,
    Finding,
    correlation,
    interval_text,
    joint_verdict,
    listing,
    mean_over_networks,
)
from studies.lab.stiffness import READINGS, wording

PLAIN, STEPNET = "constant", "stepnet"
TABLE = "Table 3"
PRINTED = {  # Table 3: AP, AP50, AP75, APS, APM, APL of Faster R-CNN on COCO, by depth of the backbone
    50: {
        "constant": (36.9, 57.5, 39.4, 22.1, 39.6, 46.4),
        "se": (38.3, 60.1, 41.5, 23.0, 42.1, 49.2),
        "eca": (38.5, 60.4, 41.5, 23.2, 42.2, 48.9),
        "sge": (38.9, 60.0, 42.0, 23.2, 41.9, 49.0),
        "stepnet": (39.8, 61.2, 41.9, 23.8, 43.1, 51.0),
    },
    101: {
        "constant": (38.9, 60.3, 41.4, 22.1, 43.9, 50.0),
        "se": (39.8, 61.2, 43.4, 23.6, 44.2, 51.1),
        "eca": (40.4, 62.7, 44.5, 24.1, 45.1, 51.8),
        "sge": (40.2, 61.4, 43.2, 24.1, 44.5, 51.2),
        "stepnet": (41.9, 62.6, 44.4, 25.4, 46.8, 53.2),
    },
}


def by_row(found: list, number) -> dict[str, list[float]]:
    """A number of every detector, by row; `number` is a function of a measurement."""
    groups: dict[str, list[float]] = {row: [] for row in design.ROWS}
    for one in found:
        groups.setdefault(one.specification["controller"], []).append(number(one))
    return groups


def ap(one) -> float:
    return one.numbers["AP"]


def why_undecided(groups: dict[str, list[float]]) -> str:
    """Why nothing is judged; "" where there is enough."""
    few = min((len(groups[row]) for row in design.ROWS), default=0)
    if few >= design.FEWEST_SEEDS:
        return ""
    return f"n = {few} seeds of some row, and the design judges from {design.FEWEST_SEEDS} on. "


def rule_of_rows(beyond: dict[str, Estimate]) -> str:
    """The rule of claim 1."""
    above, below = sum(e.low > 0 for e in beyond.values()), sum(e.high < 0 for e in beyond.values())
    if above and below:
        return PARTLY
    whole = len(beyond) or None
    return SUPPORTED if above == whole else CONTRADICTED if below == whole else UNDECIDED


def counts(groups: dict[str, list[float]]) -> str:
    return ", ".join(f"{row} {len(values)}" for row, values in groups.items())


def gain_finding(found: list) -> Finding:
    """Claim 1: every attention module raises AP."""
    groups = by_row(found, ap)
    beyond = dunnett(PLAIN, groups)
    return Finding(
        "Every attention module raises the AP of a detector above that of the plain backbone.",
        TABLE,
        UNDECIDED if why_undecided(groups) else rule_of_rows(beyond),
        f"{why_undecided(groups)}Points of AP above plain, intervals of Dunnett over seeds: "
        f"{listing(beyond) or 'none'}. "
        f"Detectors by row: {counts(groups)}.",
    )


def best_finding(found: list) -> Finding:
    """Claim 2: StepNet has the highest AP."""
    groups = by_row(found, ap)
    beyond = dunnett(STEPNET, groups)
    verdict = UNDECIDED
    if beyond and not why_undecided(groups):
        if any(e.low > 0 for e in beyond.values()):
            verdict = CONTRADICTED
        elif all(e.high < 0 for e in beyond.values()):
            verdict = SUPPORTED
    return Finding(
        "StepNet has the highest AP of all rows.",
        TABLE,
        verdict,
        f"{why_undecided(groups)}Points of AP above StepNet, the same intervals: {listing(beyond) or 'none'}.",
    )


def stiffness_finding(found: list) -> Finding:
    """Claim 3: backbones with attention have a larger TNS in a detector, too."""
    verdicts, parts = [], []
    for k, reading in enumerate(READINGS):
        groups = by_row(found, lambda one, k=k: one.numbers["after"]["tns"][k])
        beyond = dunnett(PLAIN, groups)
        verdicts.append(UNDECIDED if why_undecided(groups) else rule_of_rows(beyond))
        parts.append(f"{wording(*reading)} ({verdicts[-1]}): {listing(beyond, '+.3f') or 'none'}")
    return Finding(
        "In a detector, too, backbones with attention measure more stiffness than plain ones.",
        "Figure 2, asked of Table 3",
        joint_verdict(verdicts),
        f"{why_undecided(by_row(found, ap))}TNS above plain, intervals of Dunnett over seeds. {'; '.join(parts)}.",
    )


def relation_finding(found: list) -> Finding:
    """Claim 4: detectors of larger TNS have a higher AP."""
    verdicts, parts = [], []
    few = len(found) < design.FEWEST_NETWORKS
    for k, reading in enumerate(READINGS):
        tns, values = (
            [number(one) for one in found] for number in (lambda one, k=k: one.numbers["after"]["tns"][k], ap)
        )
        relation = correlation(tns, values)
        verdicts.append(UNDECIDED if few else relation.verdict)
        parts.append(f"{wording(*reading)}: tau-b {interval_text(relation.kendall, '+.2f')} ({verdicts[-1]})")
    short = f"n = {len(found)} networks, and the design judges from {design.FEWEST_NETWORKS} on. " if few else ""
    return Finding(
        "Detectors whose backbones measure more stiffness have a higher AP.",
        "Figure 7, asked of Table 3",
        joint_verdict(verdicts),
        f"{short}Over {len(found)} detectors. {'; '.join(parts)}.",
    )


def mean_text(values: list) -> str:
    """The mean over seeds with Student's interval; "none" where no object is of that size."""
    if not values or None in values:
        return "none"
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return interval_text(mean_over_networks(np.array(values)), ".1f")


def table_rows(found: list) -> list[dict]:
    """Table 3 of these detectors: mean of every number, with its interval over seeds."""
    rows = []
    for row in dict.fromkeys((*design.ROWS, *by_row(found, ap))):
        own = [one for one in found if one.specification["controller"] == row]
        if own:
            numbers = {name: mean_text([one.numbers[name] for one in own]) for name in NAMES}
            deviation = deviation_cell([ap(one) for one in own], "none")
            parameters = own[0].numbers["parameters"]
            rows.append(
                {"backbone": row, "seeds": len(own), **numbers, "s.d. of AP": deviation, "parameters": parameters}
            )
    return rows


def printed_rows() -> list[dict]:
    """Table 3 as the paper prints it."""
    return [
        {"backbone": f"ResNet-{depth}, {row}"} | dict(zip(NAMES, values, strict=True))
        for depth, rows in PRINTED.items()
        for row, values in rows.items()
    ]
