"""Made-up networks, in which nothing is related or the paper's claims are true: what the rules are tried on.

Seeds scatter as those of the core do (2026-11-19, 39 networks): accuracy by 0.6 points, TNS and its shape by a fifth of
what constant step sizes have, the scale by a twentieth.
"""

import functools

import numpy as np

from studies.lab import verdicts
from studies.lab.comparisons import dunnett
from studies.lab.networks import controller_name
from studies.lab.stiffness import QUANTITIES, READINGS, SCALE, SHAPE, TNS
from studies.population import design
from studies.population.analysis import (
    CONSTANT,
    STEPNET,
    Comparison,
    Explained,
    Networks,
    coefficient_of_tns,
    relate,
    resample_ranks,
)

POINTS = 0.6  # standard deviation of the accuracy over seeds
SPREAD = {TNS: 0.2, SCALE: 0.05, SHAPE: 0.2}  # the same of TNS and its parts, where constant step sizes have 1
RESAMPLES = 400
GAIN, MARGIN = 1.2, 0.7  # points above constant step sizes, and of StepNet above the others, in Table 1


def plain_spec(name: str):
    """What a header says of a controller: "se" as it is, asr(se) as a record."""
    outer, inner = name.removesuffix(")").split("(") if "(" in name else (name, "")
    return {"name": outer, "module": inner} if inner else name


@functools.cache
def columns(n: int) -> dict[str, np.ndarray]:
    """What the design says of its first n networks."""
    queue = design.queue()[:n]
    return {
        "controller": np.array([controller_name(plain_spec(job.label)) for job in queue], dtype=object),
        "depth": np.array([job.depth for job in queue]),
        "width": np.array([job.width for job in queue]),
        "seed": np.array([job.seed for job in queue]),
        "recipe": np.array([job.recipe.name for job in queue], dtype=object),
        "core": np.array([design.is_core(job.specification) for job in queue]),
    }


def networks(chance: np.random.Generator, effect: float, n: int) -> Networks:
    """The first n networks of the design: the controller moves accuracy and stiffness as much as the seed does.

    With effect = 1 both, of the controllers and of the seeds, have Kendall's tau of 0.5; without, none. The readings
    agree as far as measured ones do.
    """
    about = columns(n)
    controllers = np.unique(about["controller"].astype(str), return_inverse=True)[1]
    of_controllers, own = chance.normal(size=controllers.max() + 1), chance.normal(size=n)
    skill = of_controllers[controllers] + own
    stiff = verdicts.agreeing(chance, of_controllers, 0.5 * effect)[controllers]
    stiff += verdicts.agreeing(chance, own, 0.5 * effect)

    def quantity():
        return 10.0 + 0.95 * stiff + 0.3 * chance.normal(size=n)

    stiffness = {what: {reading: quantity() for reading in readings} for what, readings in QUANTITIES.items()}
    rivals = {name: chance.normal(size=n) for name in ("train_loss", "logits_norm", "sharpness")}
    return Networks(**about, **rivals, accuracy=70.0 + skill, stiffness=stiffness, seconds=np.ones(n))


def relations_by(what: str, way: str):
    """Worlds for the relation of one quantity and the accuracy, counting pairs of networks in one way."""

    def make(chance, effect, n):
        made = networks(chance, effect, n)
        return ({reading: relate(made, what, way, reading, RESAMPLES) for reading in QUANTITIES[what]},)

    return make


def explanations(chance, effect, n):
    made = networks(chance, effect, n)
    found = {}
    for reading in READINGS:
        usable, related = resample_ranks(made, reading, RESAMPLES)
        found[reading] = Explained(usable, coefficient_of_tns(usable, related), {})
    return (found,)


def core(chance, n: int, spread: float) -> dict[str, np.ndarray]:
    """Values of n seeds of every controller that scatter around 0; constant step sizes have twice as many."""
    names = dict.fromkeys(columns(len(design.queue(1)))["controller"])
    return {name: chance.normal(0.0, spread, 2 * n if name == CONSTANT else n) for name in names}


def compare(drawn: dict[str, np.ndarray], control: str, level: float) -> Comparison:
    groups = {name: values.tolist() for name, values in drawn.items()}
    return Comparison(control, groups, dunnett(control, groups, level))


def stiffness_of(what: str):
    """Worlds in which all networks with attention have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        level = verdicts.corrected(len(QUANTITIES[what]))
        common = core(chance, n, 0.9 * SPREAD[what])
        found = {}
        for reading in QUANTITIES[what]:
            own = core(chance, n, 0.4 * SPREAD[what])
            groups = {k: 1.0 + common[k] + own[k] + 0.5 * effect * (k != CONSTANT) for k in common}
            found[reading] = compare(groups, CONSTANT, level)
        return (found,)

    return make


def accuracies(chance, effect, n):
    groups = {k: 70.0 + v + GAIN * effect * (k != CONSTANT) for k, v in core(chance, n, POINTS).items()}
    return (compare(groups, CONSTANT, verdicts.LEVEL),)


def below_the_best(chance, effect, n):
    groups = {k: 70.0 + v + MARGIN * effect * (k == STEPNET) for k, v in core(chance, n, POINTS).items()}
    return (compare(groups, STEPNET, verdicts.LEVEL),)
