"""What the detectors say about Table 3 of the first paper: the rules, and the sentences that their numbers give."""

import numpy as np

import odelab as ol
from netbridge.detect.evaluation import NAMES
from studies.detect import design, worlds
from studies.lab.comparisons import deviation_cell, dunnett
from studies.lab.statistics import KindRelation, interval_text, listing, mean_over_networks, relate_kinds
from studies.lab.stiffness import KINDS, QUANTITIES, QUANTITY_NAMES, READINGS, SCALE, SHAPE, TNS, wording
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
    of_each,
    of_kinds,
    rule,
)

PLAIN, STEPNET = "constant", "stepnet"
TABLE = "Table 3"
TRAIN = "n = 0: `--train` makes the detectors."
WORDED = "before the data, but for its words: one row that is above was called undecided where the others were open"
APART = (
    "after the data: with 15 detectors seen, TNS was taken apart into scale and shape, and the intervals were made to "
    "hold together over the readings. By the rule before, of TNS alone: undecided"
)
ROWS = (
    "after the data: with 15 detectors seen, rows became the units, where detectors had been, and TNS was taken apart. "
    "By the rule before, of TNS alone: undecided"
)
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


def counts(groups: dict[str, list[float]]) -> str:
    return ", ".join(f"{row} {len(values)}" for row, values in groups.items())


def stiffness(one, what: str, reading: tuple) -> float:
    """TNS of the trained backbone, its scale or its shape, by the names of `QUANTITIES`; NaN where it was not measured.

    Detectors of before 2026-11-20 have the scale of the slope index alone, from the NSI of their blocks.
    """
    after, of = one.numbers["after"], reading[0]
    counted = [x for x, opens in zip(after["nsi"], one.numbers["first"], strict=True) if not opens]
    scales = after.get("scale", {KINDS[0]: float(np.mean(counted))})
    tns = after["tns"][READINGS.index(reading)] if len(reading) == 2 else None
    parts = ol.TnsParts(float("nan") if tns is None else tns, scales.get(of, float("nan")))
    return {TNS: parts.tns, SCALE: parts.scale, SHAPE: parts.shape}[what]


def by_reading(found: list, what: str) -> dict[tuple, dict[str, list[float]]]:
    """One of TNS, scale and shape by reading and row, under the readings for which all detectors have it."""
    groups = {
        reading: by_row(found, lambda one, reading=reading: stiffness(one, what, reading))
        for reading in QUANTITIES[what]
    }
    return {
        reading: rows
        for reading, rows in groups.items()
        if all(np.isfinite(values).all() for values in rows.values()) and any(rows.values())
    }


def findings(found: list) -> list[Finding]:
    """Every claim about the detectors that are there."""
    precision = by_row(found, ap)
    stiff = {what: by_reading(found, what) for what in QUANTITIES}
    return [
        judge_gains(precision),
        judge_best(precision),
        *(STIFFER[what](stiff[what]) for what in QUANTITIES),
        *(RELATED[what](stiff[what], precision) for what in QUANTITIES),
    ]


def against(
    control: str, groups: dict[str, list[float]], sign: int = 1, asked: int = 1, form: str = "+.2f"
) -> tuple[Verdict, str]:
    """The verdict on every row beside one, by Dunnett over seeds, and the numbers behind it."""
    several = {row: values for row, values in groups.items() if values}
    beyond = dunnett(control, several, corrected(asked))
    if not beyond:
        return NOT_RUN, TRAIN
    few = enough(groups, design.FEWEST_SEEDS)
    words = f"{few}{listing(beyond, form)}."
    return (UNDECIDED.because("too few seeds") if few else of_each(beyond, sign)), words


@rule(
    "Every attention module raises the AP of a detector above that of the plain backbone.",
    TABLE,
    fixed=WORDED,
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(worlds.precisions, n=10, units="seeds", effect="Table 3's gains, +1.4 to +2.9 points", now=3),
)
def judge_gains(groups: dict[str, list[float]]) -> tuple[Verdict, str]:
    """AP of each row minus that of plain, by Dunnett over seeds. Supported where every row is above, contradicted where
    every one is below, true or false of some where only some are beyond 0. Judged from three seeds of each row on."""
    verdict, words = against(PLAIN, groups)
    return verdict, words if verdict == NOT_RUN else f"Points of AP above plain: {words} By row: {counts(groups)}."


@rule(
    "StepNet has the highest AP of all rows.",
    TABLE,
    fixed=WORDED,
    fewest=design.FEWEST_SEEDS,
    worlds=Worlds(worlds.precisions, n=10, units="seeds", effect="Table 3's differences, 0.9 to 2.9 points", now=3),
)
def judge_best(groups: dict[str, list[float]]) -> tuple[Verdict, str]:
    """AP of each other row minus that of StepNet, by Dunnett over seeds. Supported where every row is below,
    contradicted where every one is above, true or false of some where only some are beyond 0. Judged from three seeds
    of each row on."""
    verdict, words = against(STEPNET, groups, sign=-1)
    return verdict, words if verdict == NOT_RUN else f"Points of AP above StepNet: {words}"


def judge_stiffness(groups: dict[tuple, dict[str, list[float]]]) -> tuple[Verdict, str]:
    """A number of each trained backbone on 64 test pictures minus that of the plain one, by Dunnett over seeds, the
    intervals holding together over rows and readings. Under each reading: supported where every row is above,
    contradicted where every one is below, true or false of some where only some are beyond 0. Judged from three seeds
    of each row on."""
    said = {reading: against(PLAIN, rows, asked=len(groups), form="+.3f") for reading, rows in groups.items()}
    if not said:
        return NOT_RUN, TRAIN
    parts = "; ".join(
        f"{wording(*reading)}: {words.rstrip('.')} ({verdict})" for reading, (verdict, words) in said.items()
    )
    return joint([verdict for verdict, _ in said.values()]), f"Above plain: {parts}."


def judge_relation(stiff: dict[tuple, dict[str, list[float]]], precision: dict[str, list[float]]):
    """Rank correlations over rows, the means over their seeds: networks of one row are alike. Supported under a reading
    where Kendall's tau and Spearman's rho lie above 0 by their intervals and p-values, contradicted where below; and
    nothing where leaving out any one row would change it. The intervals hold together under all readings. Judged from
    six rows on, because of five even a perfect order has a p of 1.7 %."""
    related = {reading: relate_kinds(rows, precision, corrected(len(stiff))) for reading, rows in stiff.items()}
    if not related or not max(one.whole.n for one in related.values()):
        return NOT_RUN, TRAIN
    verdicts = {reading: of_rows(one) for reading, one in related.items()}
    parts = "; ".join(
        f"{wording(*reading)}: tau {interval_text(one.whole.kendall, '+.2f')} ({verdicts[reading]})"
        for reading, one in related.items()
    )
    return joint(verdicts), f"Over {next(iter(related.values())).whole.n} rows: {parts}."


def of_rows(found: KindRelation) -> Verdict:
    rows = found.whole.n
    if rows < design.FEWEST_ROWS:
        return UNDECIDED.because(f"n = {rows} rows, judged from {design.FEWEST_ROWS} on")
    return of_kinds(found)


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


def rule_of_stiffness(what: str) -> Rule:
    """Claim 3 for one of TNS, scale and shape."""
    made = Worlds(worlds.stiffness_of(what), n=6, units="seeds", effect="half as much again in every row", now=3)
    claim = f"In a detector, too, backbones with attention have a larger {QUANTITY_NAMES[what]} than plain ones."
    options = {"fixed": APART, "fewest": design.FEWEST_SEEDS, "worlds": made, "variant": what}
    return rule(claim, "Figure 2, asked of Table 3", **options)(judge_stiffness)


def rule_of_relation(what: str) -> Rule:
    """Claim 4 for one of TNS, scale and shape."""
    made = Worlds(worlds.relations_of(what), n=36, units="rows", effect="Kendall's tau of 0.5 over rows", now=5)
    claim = f"Detectors whose backbones have a larger {QUANTITY_NAMES[what]} have a higher AP."
    options = {"fixed": ROWS, "fewest": design.FEWEST_ROWS, "worlds": made, "variant": what}
    return rule(claim, "Figure 7, asked of Table 3", **options)(judge_relation)


STIFFER = {what: rule_of_stiffness(what) for what in QUANTITIES}
RELATED = {what: rule_of_relation(what) for what in QUANTITIES}
