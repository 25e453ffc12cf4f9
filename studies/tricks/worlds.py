"""Made-up recipes, in which nothing differs or the paper's claims are true: what the rules are tried on.

Seeds scatter as those of the 30 shipped networks do (2026-11-19): accuracy by 1.1 points, TNS and its shape by a third
of what the plain recipe has, the scale by a twenty-fifth.
"""

import numpy as np

from studies.lab.stiffness import QUANTITIES, SCALE, SHAPE, TNS
from studies.lab.verdicts import agreeing, draw_seeds
from studies.tricks import design
from studies.tricks.analysis import Hardness, relate_gains

POINTS = 1.1  # standard deviation of the accuracy over seeds
SPREAD = {TNS: 0.33, SCALE: 0.04, SHAPE: 0.3}  # the same of stiffness, where the plain recipe has 1
GOOD = ("smoothing", "mixup", "cutmix")  # tricks that are five points better
RECIPES = tuple(design.tricks())


def raising(what: str):
    """Worlds in which good tricks have half as much again of a quantity, or as much as the plain recipe."""

    def make(chance: np.random.Generator, effect: float, n: int):
        accuracy = draw_seeds(chance, {name: 50.0 + 5.0 * (name in GOOD) for name in RECIPES}, POINTS, n)
        means = {name: 1.0 + 0.5 * effect * (name in GOOD) for name in RECIPES}
        common = draw_seeds(chance, means, 0.9 * SPREAD[what], n)
        stiff = {}
        for reading in QUANTITIES[what]:
            own = draw_seeds(chance, dict.fromkeys(RECIPES, 0.0), 0.4 * SPREAD[what], n)
            stiff[reading] = {name: np.add(common[name], own[name]).tolist() for name in RECIPES}
        return accuracy, stiff

    return make


def relations(what: str):
    """Worlds of n recipes that differ in accuracy and stiffness, whose means have a Kendall's tau of 0.5, or of 0.

    Seeds scatter a third as far as recipes do, and under all readings recipes differ in nearly the same way.
    """

    def make(chance, effect, n):
        skill = chance.normal(size=n)
        stiff = agreeing(chance, skill, 0.5 * effect)

        def seeds(means):
            return {str(k): (mean + chance.normal(0.0, 0.3, design.SEEDS)).tolist() for k, mean in enumerate(means)}

        return seeds(skill), {reading: seeds(stiff + 0.2 * chance.normal(size=n)) for reading in QUANTITIES[what]}

    return make


def hardness(what: str):
    """Worlds of n recipes in training: loss and stiffness fall alike in all networks, epochs differ, and beside that a
    network's gain goes with its stiffness by a tau of -0.2, or of 0.
    """

    def make(chance, effect, n):
        rate, seeds = np.repeat((0.1, 0.01, 0.001), (10, 5, 5)), design.SEEDS
        count, epochs = n * seeds, len(rate)
        falling = np.exp(-np.arange(epochs) / 8.0) + 0.05 * chance.normal(size=(2, epochs))
        own = chance.normal(size=(count, epochs))
        gain = falling[0] + 0.05 * agreeing(chance, own.ravel(), -0.2 * effect).reshape(own.shape)
        loss = np.cumsum(np.column_stack([np.full(count, 20.0), -gain[:, :-1]]), axis=1)
        found = {}
        for reading in QUANTITIES[what]:
            stiffness = falling[1] + 0.05 * (own + 0.2 * chance.normal(size=own.shape))
            taus = np.transpose(relate_gains(loss, stiffness, rate)).reshape(n, seeds, 2)
            found[reading] = {str(k): [Hardness(*pair) for pair in group] for k, group in enumerate(taus)}
        return (found,)

    return make
