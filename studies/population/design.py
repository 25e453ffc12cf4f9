"""The design of `population`: its networks, their order, and how they are judged. Written before any was trained.

The networks. All see CIFAR-10 shrunk to 16 pixels and compute in bfloat16. Ten rounds, one per seed, of 24 networks:

- *core*, 12 networks: ResNet-20, 16 channels, recipe `brief` (3 epochs), each of the eleven controllers once and
  constant step sizes a second time with another seed, because every other controller is compared with them. Claims
  about controllers are judged on the core alone; its seeds are the units.
- *spread*, 12 networks: depths 14, 20, 26, 32 times 8, 12, 16 channels; `brief` and `longer` (6 epochs) in turn, the
  controllers in rotation (FCA shares 16 frequencies out among the channels, so it serves 16 channels only). Over two
  rounds every shape has both recipes, that of the core only `longer`; over ten (nearly) every controller. Claims about
  networks are judged on core and spread together.

The order is round by round, core and spread in turn, each round starting at another place, so that the queue is
balanced wherever it is stopped. Of what is shipped the core of the second and third round was trained ahead of their
spread, so that claims about controllers have three seeds; that was decided before any of these networks was trained.

The measures. TNS of a network is the mean over 1,000 test images, under the four readings of `studies.lab.stiffness`.
ResNet-14 counts one block a stage: compared with the mean of that one block its TNS is 0 for every image, so it is left
out of the readings with mu per image. Accuracy is that on the 10,000 test images after the last epoch. Training loss is
measured on 5,000 training images without augmentation. A network whose training diverged is named and left out.

The rules stand beside the functions that judge by them, in `findings.py`, each with the time when it was written.
"""

import dataclasses

from netbridge.train.recipes import Recipe, recipe
from studies.lab import jobs
from studies.lab.jobs import Job
from studies.train import CONTROLLERS, MULTIPLE

PIXELS = 16
ROUNDS = 10
SECOND = 100  # added to the seed of the second network with constant step sizes
DEPTHS, WIDTHS = (14, 20, 26, 32), (8, 12, 16)
CORE = (20, 16)  # depth and width
NEIGHBOURS = 12  # networks in a group of equal training loss
NEGLIGIBLE = 0.15  # a rank correlation within so much of 0 is no relation to speak of
FEWEST_SEEDS, FEWEST_NETWORKS = 3, 24
RESAMPLES = 2000

BRIEF = dataclasses.replace(recipe("short", epochs=3, small=(), shift=1, evaluate_every=100), name="brief")
LONGER = dataclasses.replace(BRIEF, name="longer", epochs=6)


def one(dataset: str, controller: str, seed: int, shape: tuple[int, int], how: Recipe) -> Job:
    return Job(dataset, controller, seed, how, *shape, size=PIXELS)


def core(seed: int, dataset: str = "cifar10") -> list[Job]:
    """The networks of one round in the *core*, on which claims about controllers rest."""
    runs = [one(dataset, controller, seed, CORE, BRIEF) for controller in CONTROLLERS]
    return [*runs, one(dataset, "constant", seed + SECOND, CORE, BRIEF)]


def spread_networks(seed: int, dataset: str = "cifar10") -> list[Job]:
    """The networks of one round in the *spread*: depth, width, recipe and controller differ at once."""
    runs = []
    for cell, (depth, width) in enumerate((depth, width) for depth in DEPTHS for width in WIDTHS):
        serving = [name for name in CONTROLLERS if width % MULTIPLE.get(name, 1) == 0]
        how = LONGER if (depth, width) == CORE else (BRIEF, LONGER)[(cell + seed) % 2]
        runs.append(one(dataset, serving[(cell + seed) % len(serving)], seed, (depth, width), how))
    return runs


def queue(rounds: int = ROUNDS, dataset: str = "cifar10") -> list[Job]:
    """All networks in the order of training."""
    runs = []
    for seed in range(rounds):
        turns = [run for pair in zip(core(seed, dataset), spread_networks(seed, dataset), strict=True) for run in pair]
        start = 10 * seed % len(turns)  # even, so that core and spread keep their turns
        runs += turns[start:] + turns[:start]
    return runs


def of_ones_own(files, rounds: int = ROUNDS, dataset: str = "cifar10") -> list[Job]:
    """Every controller and network of the files of `--define`, trained as the core's are, one seed a round."""
    return jobs.of_ones_own([one(dataset, "constant", seed, CORE, BRIEF) for seed in range(rounds)], files)


def is_core(specification: dict) -> bool:
    """Does a measurement belong to the core? The spread has no network of its shape and recipe."""
    shape = specification.get("depth", 20), specification.get("width", 16)
    return shape == CORE and specification["recipe"]["name"] == BRIEF.name


def smoke() -> list[Job]:
    """A few networks on the digits that only show that everything works."""
    how = recipe("digits", epochs=1, evaluate_every=100)
    shapes = [("constant", 0, 14), ("se", 0, 14), ("constant", 1, 20), ("se", 1, 20)]
    return [Job("digits", name, seed, how, depth, 4, images=256) for name, seed, depth in shapes]
