"""Made-up distances, shares and correlations, in which nothing is there or the paper's claims are true.

What the rules of `findings` are tried on. Networks scatter as the 22 ResNet-20 do (2026-11-19), see the constants.
"""

import numpy as np

from studies.lab.stiffness import READINGS
from studies.lab.verdicts import agreeing, draw_seeds
from studies.trajectory.design import DEGREES, LARGE, LEFT, PROXIES
from studies.trajectory.measures import FromProxy

CONTROLLERS = ("constant", *(f"controller {k}" for k in range(10)))
OF_SEEDS = 0.1  # deviation of distances over seeds, where plain networks have 1
SEEDS = 2  # of every controller, where controllers are the units


def proxies(measures, chance: np.random.Generator, effect: float, n: int) -> tuple[list[FromProxy]]:
    """Distances of n seeds of every controller from three proxies; attention halves them, or does nothing."""
    means = {name: 1.0 - 0.5 * effect * (name != CONTROLLERS[0]) for name in CONTROLLERS}
    return (
        [
            FromProxy(name, name, {measure: draw_seeds(chance, means, OF_SEEDS, n) for measure in measures})
            for name in CONTROLLERS[-PROXIES:]
        ],
    )


def lines(chance, effect, n):
    """Distances at n blocks, whose differences of 30 % all networks share; the last is fourfold, or as the first."""

    def network(common):
        return np.exp(common + 0.15 * chance.normal(size=n))

    made = {}
    for measure in LEFT:
        common = effect * np.log(4.0) * np.linspace(0.0, 1.0, n) + 0.3 * chance.normal(size=n)
        made[measure] = {name: [network(common) for _ in range(SEEDS)] for name in CONTROLLERS}
    return (made,)


def by_kind(chance, means, spread: float) -> dict[str, list]:
    """Values of the seeds of kinds with these means."""
    return {
        str(kind): [mean + spread * chance.normal(size=np.shape(mean)) for _ in range(SEEDS)]
        for kind, mean in enumerate(means)
    }


def nearness(chance, effect, n):
    """Nearness and accuracy of n controllers, whose means have a tau of 0.5, or of 0; seeds scatter a third as far."""
    near, skill = correlated(chance, effect, n)
    distances = {measure: by_kind(chance, -near + 0.2 * chance.normal(size=n), 0.3) for measure in LEFT}
    return distances, by_kind(chance, skill, 0.3)


def correlated(chance, effect, n) -> tuple[np.ndarray, np.ndarray]:
    second = chance.normal(size=n)
    return agreeing(chance, second, 0.5 * effect), second


def shares(chance, effect, n):
    """Shares of n controllers, around 50 % in either order, or around 80 %, and around 40 % in random order."""

    def made(mean):
        middles = mean + 0.1 * chance.normal(size=(n, len(DEGREES)))
        return {
            reading: by_kind(chance, middles + 0.03 * chance.normal(size=middles.shape), 0.05) for reading in READINGS
        }

    return made(0.5 + 0.3 * effect), made(0.5 - 0.1 * effect)


def ratios(chance, effect, n):
    """First blocks of three stages over the others, of n controllers: twice as large, or four times."""
    made = {}
    for what in ("NSI", "norm"):
        of = by_kind(chance, np.log(LARGE) * (1.0 + effect) + 0.2 * chance.normal(size=(n, 3)), 0.1)
        made[what] = {name: [np.exp(one) for one in each] for name, each in of.items()}
    return (made,)


def profiles(chance, effect, n):
    """NSI and importance of n blocks, much of which all networks share; the two have a tau of 0.5, or of 0."""
    nsi, rise = correlated(chance, effect, n)

    def network():
        return nsi + 0.3 * chance.normal(size=n), rise + 0.3 * chance.normal(size=n)

    return ({name: [network() for _ in range(SEEDS)] for name in ("constant", "SE", "StepNet")},)


def features(chance, effect, n):
    """Rises of the loss of n controllers, whose ratio is 2, or 1."""
    of = by_kind(chance, effect * np.log(2.0) + 0.4 * chance.normal(size=n), 0.3)
    plain = {"smallest, as many": 0.0, "smallest, equal norm": 0.1}
    return ({name: [plain | {"largest": 0.1 * float(np.exp(one))} for one in each] for name, each in of.items()},)


def along(chance, effect, n):
    """Mean correlations of n seeds of three controllers around -0.2, or around 0, and eight blocks a stage."""
    return draw_seeds(chance, dict.fromkeys(("SE", "ECA", "StepNet"), -0.2 * effect), 0.1, n), 8
