"""Made-up evidence about networks without an effect, or with the paper's: what the rules are tried on.

Four controllers, as the deep networks have them. Seeds scatter as those of ResNet-20 do: accuracy by 0.4 points, TNS
and its shape by a tenth of their size, the scale by a twentieth.
"""

from studies.lab.claims import BLOCKS, SPREAD, Gates, Seeds
from studies.lab.comparisons import dunnett
from studies.lab.statistics import KindRelation, relate_kinds
from studies.lab.stiffness import KINDS, QUANTITIES
from studies.lab.verdicts import LEVEL, agreeing, corrected

NAMES = ("constant", "SE", "ECA", "StepNet")
POINTS, GAIN = 0.4, 1.2


def seeds(chance, effect: float, n: int, spread: float, level: float, common=None) -> Seeds:
    """Values of n seeds of every controller around 0; those with attention are `effect` higher."""
    drawn = chance.normal(0.0, spread, (len(NAMES), n)) + (0.0 if common is None else common)
    groups = {name: (row + effect * (name != NAMES[0])).tolist() for name, row in zip(NAMES, drawn, strict=True)}
    return Seeds(groups, dunnett(NAMES[0], groups, level))


def accuracies(chance, effect, n):
    return (seeds(chance, GAIN * effect, n, POINTS, LEVEL),)


def stiffness_of(what: str):
    """Worlds in which networks with attention have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        readings, common = QUANTITIES[what], chance.normal(0.0, 0.9 * SPREAD[what], (len(NAMES), n))
        level = corrected(len(readings))
        return ({r: seeds(chance, 0.5 * effect, n, 0.4 * SPREAD[what], level, common) for r in readings},)

    return make


def relations_of(what: str):
    """Worlds in which a quantity and the accuracy of n kinds of networks have Kendall's tau of 0.5, or none."""

    def make(chance, effect, n):
        readings, skill = QUANTITIES[what], chance.normal(size=n)
        stiff, level = agreeing(chance, skill, 0.5 * effect), corrected(len(readings))
        accuracies = {str(kind): [value] for kind, value in enumerate(skill)}
        found: dict[tuple, KindRelation] = {}
        for reading in readings:
            values = 0.95 * stiff + 0.3 * chance.normal(size=n)
            found[reading] = relate_kinds({str(kind): [x] for kind, x in enumerate(values)}, accuracies, level)
        return (found,)

    return make


def gates(chance, effect, n) -> tuple[Gates]:
    """Mean correlations of n networks of every controller; between networks they differ by 0.15."""
    drawn = {f"{of} NSI": {name: chance.normal(-0.5 * effect, 0.15, n).tolist() for name in NAMES[1:]} for of in KINDS}
    return (Gates(drawn, 0, n * BLOCKS),)
