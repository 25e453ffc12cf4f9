"""Made-up trainings, architectures and prunings, in which nothing is there or the claims are true.

What the rules of `findings` are tried on. Numbers scatter as the measured ones do (2026-11-20): accuracies over seeds
by 4 points, and nine times as far at the largest reward; TNS by a quarter of its mean, and ten times as far there;
points of pruning over controllers by 10, and beside pruning by the loss by 4 (with the digits; with CIFAR-10 by 11).
"""

import numpy as np

from studies.lab.stiffness import QUANTITIES
from studies.lab.verdicts import agreeing
from studies.tns_at_work import design
from studies.tns_at_work.measures import Architectures, Pruned

LARGEST_REWARD = min(design.WEIGHTS)
RESAMPLES = 50
SIDE = 6  # controllers, and shapes, of the design


def seeds(chance: np.random.Generator, means: dict[float, float], spread: float, times: float, n: int) -> dict:
    """n seeds at every weight; at the largest reward they scatter `times` as far, and four of ten are left out."""
    return {
        weight: chance.normal(mean, spread * (times if weight == LARGEST_REWARD else 1.0), count).tolist()
        for weight, mean in means.items()
        for count in [round(0.6 * n) if weight == LARGEST_REWARD else n]
    }


def term(chance, effect, n):
    """TNS at every weight: half as much again where it is rewarded and half where it is punished, or as it was."""
    return (
        seeds(
            chance, {weight: 0.1 * (1.0 - 0.5 * effect * np.sign(weight)) for weight in design.WEIGHTS}, 0.025, 10.0, n
        ),
    )


def reward(chance, effect, n):
    """Accuracies at every weight: 4 points more where TNS is rewarded, or as many."""
    return (seeds(chance, {weight: 90.0 + 4.0 * effect * (weight < 0) for weight in design.WEIGHTS}, 4.0, 9.0, n),)


def searches(what: str):
    """Worlds of as many controllers as shapes, which differ in both numbers, each on its own.

    What single networks have in common beside that makes a Kendall's tau of about 0.5, or of 0.
    """

    def make(chance, effect, n):
        side = round(n**0.5)
        controllers, shapes = (names.ravel() for names in np.meshgrid(np.arange(side), np.arange(side)))

        def number(own):
            return own + 0.5 * chance.normal(size=side)[controllers] + 0.5 * chance.normal(size=side)[shapes]

        skill = chance.normal(size=side * side)
        stiff = number(agreeing(chance, skill, 0.75 * effect))
        before: dict = {(what, reading): stiff + 0.3 * chance.normal(size=len(stiff)) for reading in QUANTITIES[what]}
        before["parameters"] = number(chance.normal(size=len(stiff)))
        searched = Architectures(before, number(skill), controllers.astype(str), shapes.astype(str))
        return searched, what, RESAMPLES

    return make


def prunings(chance, mean: float, spread: float, n: int) -> tuple[dict[str, list[Pruned]]]:
    """Two families of n controllers with two seeds each, whose smallest NSI keeps so many points above other orders."""
    made: dict[str, list[Pruned]] = {}
    for family in ("digits", "cifar10"):
        made[family] = []
        for controller, points in enumerate(mean + spread * chance.normal(size=n)):
            for seed in range(2):
                left = {"smallest NSI": {1: points + chance.normal()}, "random": {1: 0.0}, "smallest loss": {1: 0.0}}
                made[family].append(Pruned(str(controller), seed, 90.0, left))
    return (made,)


def pruning(chance, effect, n):
    return prunings(chance, 17.0 * effect, 10.0, n)


def pruning_by_loss(chance, effect, n):
    return prunings(chance, -design.MARGIN * (1.0 - effect), 4.0, n)
