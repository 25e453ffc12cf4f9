"""The design of `tns_at_work`: what is trained. Written before anything was.

*In the loss.* One small ResNet-20, constant step sizes, ten seeds for each weight of the mean TNS of a batch (slope
index, mean of the sample) in the loss: -0.1 and -0.01 reward TNS, 0.01 and 0.1 punish it, 0 is the usual training. A
training whose TNS is not defined any more, because a state has become zero, counts as diverged: it is named and left
out. (Of a pilot with one seed it was known that this happens at weights of -1.)

*Before training.* Networks of 20, 26 and 32 layers, two widths, six controllers: 36 architectures, one seed each (on
CIFAR-10 the networks of `population` that are measured, of the recipe `brief`). TNS before training is the mean over
256 test images, after the batch normalisations have seen 256 training images once. Rivals: the number of parameters,
and the norm of the gradient of the first loss (Abdelfattah et al. 2021, "grad norm").

*Pruning.* Trained networks that come with the repository. k of the counted blocks are dropped without training again:
those of the smallest mean NSI (slope), of the largest, those whose dropping alone raises the loss least, or random ones
(five draws). NSI and losses are of 250 training images, accuracies of 250 test images. A network's number is
the mean over k of the difference of accuracies.

The rules are in `findings.py`, each with its text. They were fixed before anything was trained, and changed when it had
been seen: deviations of weights may differ, controllers and shapes are what is resampled, controllers are the units of
pruning, which is shown of two families of networks. `docs/papers.md` has the verdicts of before.
"""

import dataclasses

from netbridge.train.recipes import recipe
from studies import population
from studies.lab import jobs
from studies.lab.jobs import Job

WEIGHTS = (0.0, -0.1, -0.01, 0.01, 0.1)
SEEDS = 10
CONTROLLERS = ("constant", "se", "eca", "srm", "cbam", "stepnet")
DEPTHS, WIDTHS = (20, 26, 32), (4, 8)
DROPPED = (1, 2, 4)
DRAWS = 5  # of random blocks
SHOWN = 256  # images before training
FAMILIES = ("digits", "cifar10")  # data sets whose networks are pruned
PRUNED_ON = 250  # images to choose blocks by, and as many to test with
MARGIN = 1.0  # points
NEGLIGIBLE = population.NEGLIGIBLE  # a tau so near to 0 is no relation to speak of
FEWEST_SEEDS, FEWEST_ARCHITECTURES, FEWEST_PRUNED = 3, population.FEWEST_NETWORKS, 5

DIGITS = recipe("digits", epochs=4, evaluate_every=100)


@dataclasses.dataclass(frozen=True)
class Run:
    """A job, and the weight of TNS in its loss."""

    job: Job
    weight: float = 0.0

    @property
    def stem(self) -> str:
        return self.job.stem + (f"-tns{self.weight:+g}" if self.weight else "")

    @property
    def specification(self) -> dict:
        return self.job.specification | ({"tns_weight": self.weight} if self.weight else {})


def weighted_runs(dataset: str, seeds: int = SEEDS) -> list[Run]:
    """The networks of the first part, seed by seed."""
    like = Job("digits", "constant", 0, DIGITS, 20, 4)
    if dataset != "digits":
        like = Job(dataset, "constant", 0, population.BRIEF, *population.CORE, size=population.PIXELS)
    return [Run(dataclasses.replace(like, seed=seed), weight) for seed in range(seeds) for weight in WEIGHTS]


def architectures(dataset: str) -> list[Run]:
    """The networks of the second part: on CIFAR-10 those of `population`, else every shape with every controller."""
    if dataset == "cifar10":
        runs = (job for job in population.queue() if job.recipe.name == population.BRIEF.name and job.depth > 14)
        return [Run(job) for job in runs]
    return [Run(dataclasses.replace(job, controller=name)) for job in shapes(dataset) for name in CONTROLLERS]


def shapes(dataset: str) -> list[Job]:
    """Networks with constant step sizes, one of every depth and width of the second part."""
    how, size = (DIGITS, None) if dataset == "digits" else (population.BRIEF, population.PIXELS)
    return [Job(dataset, "constant", 100, how, depth, width, size=size) for depth in DEPTHS for width in WIDTHS]


def of_ones_own(files, dataset: str, seeds: int = SEEDS) -> tuple[list[Run], list[Run]]:
    """What the files of `--define` add: every controller to both parts, every network to the second."""
    first = [
        Run(job, run.weight)
        for run in weighted_runs(dataset, seeds)
        for job in jobs.of_ones_own([run.job], files, networks=False)
    ]
    return first, [Run(job) for job in jobs.of_ones_own(shapes(dataset), files)]


def smoke() -> tuple[list[Run], list[Run]]:
    """A few networks of either part that only show that everything works."""

    def small(run: Run) -> Run:
        recipe = dataclasses.replace(DIGITS, epochs=1)
        return dataclasses.replace(run, job=dataclasses.replace(run.job, images=256, recipe=recipe))

    first = [small(run) for run in weighted_runs("digits", 2) if run.weight in (0.0, -0.1)]
    return first, [small(run) for run in architectures("digits")[:3]]
