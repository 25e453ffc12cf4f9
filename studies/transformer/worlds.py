"""Made-up transformers without an effect, or with the paper's: what the rules are tried on.

Accuracies scatter by 0.7 points over seeds, the mean of Table 7's deviations on CIFAR-10.
"""

from studies.cifar_tns.evidence import Gates, Seeds
from studies.cifar_tns.worlds import SPREAD
from studies.lab.comparisons import dunnett
from studies.lab.stiffness import QUANTITIES, TNS
from studies.lab.verdicts import corrected
from studies.transformer.design import READINGS
from studies.transformer.measures import STEPS

NAMES = ("constant", "SE", "StepNet")
POINTS, GAIN = 0.7, 1.24


def gains(chance, effect, n):
    drawn = 89.0 + chance.normal(0.0, POINTS, (len(NAMES), n))
    drawn[NAMES.index("StepNet")] += GAIN * effect
    return (dict(zip(NAMES, drawn.tolist(), strict=True)),)


def stiffness_of(what: str):
    """Worlds in which transformers with step-size control have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        readings, common = READINGS if what == TNS else QUANTITIES[what], chance.normal(size=(len(NAMES), n))
        found: dict[tuple, Seeds] = {}
        for reading in readings:
            drawn = 1.0 + SPREAD[what] * (0.9 * common + 0.4 * chance.normal(size=common.shape))
            drawn[1:] += 0.5 * effect
            groups = dict(zip(NAMES, drawn.tolist(), strict=True))
            found[reading] = Seeds(groups, dunnett(NAMES[0], groups, corrected(len(readings))))
        return (found,)

    return make


def correlations(chance, effect, n):
    """Mean correlations of n networks of two controllers, over three kinds of steps; networks differ by 0.15."""
    drawn = {kind: {name: chance.normal(-0.5 * effect, 0.15, n).tolist() for name in NAMES[1:]} for kind in STEPS}
    return (Gates(drawn, 0, 0),)
