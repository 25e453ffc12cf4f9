"""What is fixed before anything is measured: the paper's numbers, the readings, and what to train."""

import dataclasses

import netbridge as nb
from studies.lab import jobs
from studies.lab.networks import SHAPES
from studies.lab.stiffness import KINDS, MEANS

PAPER = {  # Table 7: per cent, with the standard deviation over five seeds
    ("constant", "cifar10"): (89.08, 0.84),
    ("constant", "cifar100"): (66.32, 1.03),
    ("constant", "stl10"): (62.58, 1.02),
    ("stepnet", "cifar10"): (90.32, 0.48),
    ("stepnet", "cifar100"): (68.88, 0.25),
    ("stepnet", "stl10"): (65.58, 0.59),
}
DATASETS = ("cifar10", "cifar100", "stl10")
TOGETHER, APART = "all steps together", "attention and MLP apart"
READINGS: tuple[tuple[str, str, str], ...] = tuple(
    (of, mu, kinds) for kinds in (TOGETHER, APART) for of in KINDS for mu in MEANS
)
ATTENDED = 250  # test images whose attention is looked at
PRESETS = {
    "quick": {"images": 1000, "resamples": 200, "recipe": "short", "seeds": (0, 1)},
    "full": {"images": 10_000, "resamples": 1000, "recipe": "vit", "seeds": (0, 1, 2, 3, 4)},
}
TRAINED = ("constant", "stepnet")  # the two rows of Table 7
EXACT = 1e-4  # how far a sum of weights in single precision may be from 1
FEWEST_SEEDS = 3  # networks of a controller below which nothing is said of it


def shape_of(dataset: str) -> dict:
    """Which transformer a data set gets: a small one on patches for the digits, else one with convolutions first."""
    return SHAPES["digits-vit"] if dataset == "digits" else SHAPES["cifar10-vit"]


def queue(dataset: str, arguments) -> list[jobs.Job]:
    """The networks to train, the two rows of Table 7 first, one seed after the other."""
    recipe = jobs.recipe_of(arguments.recipe, dataset, "auto", "vit", epochs=arguments.epochs)
    like = jobs.Job(dataset, "constant", 0, recipe, **shape_of(dataset))
    names = arguments.controllers or TRAINED
    found = [
        dataclasses.replace(like, controller=text if text in nb.controllers() else text.lower(), seed=seed)
        for seed in arguments.seeds
        for text in names
    ]
    for job in found[: len(names)]:
        job.untrained_network(10)  # a wrong name ends the run before hours
    return found
