"""Made-up detectors, in which nothing differs or the paper's claims are true: what the rules are tried on.

Seeds scatter as those of the 15 shipped detectors do (2026-11-19): AP by 1.9 points, TNS and its shape by a seventh of
what plain backbones have, the scale by a thirtieth.
"""

import numpy as np

from studies.detect import design
from studies.lab.stiffness import QUANTITIES, SCALE, SHAPE, TNS
from studies.lab.verdicts import agreeing, draw_seeds

POINTS = 1.9  # standard deviation of AP over seeds
SPREAD = {TNS: 0.14, SCALE: 0.034, SHAPE: 0.13}  # the same of the stiffness of backbones, where plain ones have 1
GAINS = dict(zip(design.ROWS, (0.0, 1.4, 1.6, 2.0, 2.9), strict=True))  # Table 3, ResNet-50: points of AP above plain


def precisions(chance: np.random.Generator, effect: float, n: int) -> tuple[dict]:
    """AP of n seeds of every row, which are alike or differ as those of Table 3 do."""
    return (draw_seeds(chance, {row: 30.0 + effect * gain for row, gain in GAINS.items()}, POINTS, n),)


def stiffness_of(what: str):
    """Worlds in which all backbones with attention have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        means = {row: 1.0 + 0.5 * effect * (row != design.ROWS[0]) for row in design.ROWS}
        common = draw_seeds(chance, means, 0.9 * SPREAD[what], n)
        own = {
            reading: draw_seeds(chance, dict.fromkeys(means, 0.0), 0.4 * SPREAD[what], n)
            for reading in QUANTITIES[what]
        }
        return (
            {reading: {row: np.add(common[row], rows[row]).tolist() for row in means} for reading, rows in own.items()},
        )

    return make


def relations_of(what: str):
    """Worlds of n rows of three seeds, which differ in both numbers; these have a Kendall's tau of 0.5, or of 0.

    Under all readings rows differ in nearly the same way, and seeds scatter a third as far as rows do.
    """

    def make(chance, effect, n):
        skill = chance.normal(size=n)
        stiff = agreeing(chance, skill, 0.5 * effect)

        def seeds(means):
            return {str(row): (mean + chance.normal(0.0, 0.3, design.SEEDS)).tolist() for row, mean in enumerate(means)}

        readings = {reading: seeds(stiff + 0.2 * chance.normal(size=n)) for reading in QUANTITIES[what]}
        return readings, seeds(skill)

    return make
