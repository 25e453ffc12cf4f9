"""The recipes of `tricks` and their order. Written before any network of them was trained.

The paper's text names no trick, its figure is not to be had, and there is no public code. So the usual ones are taken,
one at a time, each with the value of its own paper where a short training allows it:

- *plain*: SGD with momentum 0.9, rate 0.1 divided by 10 at half and at three quarters of the epochs, decay 1e-4 of all
  weights, crops off by an eighth of the width, random flips: the paper's Table 6 in fewer epochs;
- *smoothing*: label smoothing 0.1; *mixup*: alpha 1; *cutmix*: alpha 1; *cutout*: a square of half the width;
- *random depth*: step sizes of 0 or 1 / (1 - p), p rising to 0.2 in the last block;
- *TrivialAugment*; *averaging*: an exponential mean of the weights over about 1 / (1 - decay) steps; *SAM*: radius
  0.05, which costs twice the time;
- *all*: all of these but SAM at once, mixup and cutmix in turns. This row joined after the others had been trained and
  looked at.

Scale. About half an hour of one core was available: ResNet-20 with 8 channels in the first stage, CIFAR-10 shrunk
to 16 pixels, the first 5,000 training images only, so that regularisation has something to prevent, 20 epochs of batch
64. `--full` is the paper's scale: ResNet-164, all images at 32 pixels, STL-10's at their 96, 164 epochs of batch 128
(on STL-10 of 16, as Zhong et al. have it in ASR, Appendix C), 5 seeds.

The measures, on 1,000 test images: TNS under the four readings of `studies.lab.stiffness`, per image, per stage, and
NSI per block; accuracy on all test images; TNS and NSI of 256 test images after every epoch.

The rules are in `findings.py`, each with its text. They were fixed before any network was trained, and changed when the
thirty had been seen: TNS was taken apart into scale and shape, recipes became the units where networks had been, and
intervals hold together over the readings. `docs/papers.md` has the verdicts of before.

Beside what is said of good tricks stand differences to `plain` paired over images (bootstrap, the mean over seeds):
what these networks differ by, whatever other seeds would say; they judge nothing. Mixup and smoothing shrink the logits
and the last stage's norms by themselves; so TNS is also shown per stage and NSI per block.
"""

import dataclasses

from netbridge.data.datasets import MINIATURE
from netbridge.train.recipes import Recipe, recipe
from studies.lab import jobs
from studies.lab.jobs import Job

PIXELS, IMAGES, SEEDS = 16, 5000, 3
SHAPE = (20, 8)  # depth and channels of the first stage
FULL_SHAPE, FULL_SEEDS = (164, 16), 5
CIFAR_PIXELS, STL10_PIXELS = 32, 96
PLAIN, ALL = "plain", "all"
NEGLIGIBLE = 0.1  # a share of plain's TNS
TRACED = 256  # test images on which stiffness is followed through training
SMOKE_TRACED = 32
RESAMPLES = 2000  # of images and networks
FEWEST_SEEDS = 2  # of every recipe; one has no interval

SMALL = dataclasses.replace(
    recipe("paper", epochs=20, batch=64, drops=(10, 15), shift=2, bfloat16=True, evaluate_every=5), name=PLAIN
)


def plain_recipe(full: bool = False, dataset: str = "cifar10", epochs: int | None = None) -> Recipe:
    """The recipe that every other one differs from in its trick alone; `epochs` in place of its own, if given."""
    plain = dataclasses.replace(jobs.recipe_of("paper", dataset, evaluate_every=4), name=PLAIN) if full else SMALL
    return dataclasses.replace(plain, epochs=epochs or plain.epochs)


def pixels(full: bool = False, dataset: str = "cifar10") -> int:
    """Height and width of the images that networks are trained on."""
    if not full:
        return PIXELS
    return STL10_PIXELS if dataset.removesuffix(MINIATURE) == "stl10" else CIFAR_PIXELS


def tricks(full: bool = False, dataset: str = "cifar10") -> dict[str, dict]:
    """What each trick changes of the plain recipe."""
    changed: dict[str, dict] = {
        PLAIN: {},
        "smoothing": {"smoothing": 0.1},
        "mixup": {"mixup": 1.0},
        "cutmix": {"cutmix": 1.0},
        "cutout": {"cutout": pixels(full, dataset) // 2},
        "random depth": {"drop_path": 0.2},
        "TrivialAugment": {"policy": "trivial"},
        "averaging": {"ema": 0.999 if full else 0.98},
        "SAM": {"sam": 0.05},
    }
    together = {key: value for name, change in changed.items() if name != "SAM" for key, value in change.items()}
    return changed | {ALL: together}


def recipe_of(trick: str, full: bool = False, dataset: str = "cifar10", epochs: int | None = None) -> Recipe:
    return dataclasses.replace(plain_recipe(full, dataset, epochs), name=trick, **tricks(full, dataset)[trick])


def job_of(trick: str, seed: int, full: bool = False, dataset: str = "cifar10", epochs: int | None = None) -> Job:
    how = recipe_of(trick, full, dataset, epochs)
    if full:
        return Job(dataset, "constant", seed, how, *FULL_SHAPE, size=pixels(full, dataset))
    return Job(dataset, "constant", seed, how, *SHAPE, images=IMAGES, size=PIXELS)


def queue(
    full: bool = False, dataset: str = "cifar10", seeds: int | None = None, epochs: int | None = None
) -> list[Job]:
    """All networks in the order of training: seed by seed, so that every recipe has as many wherever it stops."""
    count = seeds or (FULL_SEEDS if full else SEEDS)
    return [job_of(trick, seed, full, dataset, epochs) for seed in range(count) for trick in tricks(full)]


def of_ones_own(files, **scale) -> list[Job]:
    """The same with every controller and network of the files of `--define` in place of constant step sizes."""
    return jobs.of_ones_own(queue(**scale), files)


def smoke() -> list[Job]:
    """A few networks on the digits that only show that everything works."""
    how = recipe("digits", epochs=2, batch=32, evaluate_every=100, average=False)
    changed: dict[str, dict] = {PLAIN: {}, "mixup": {"mixup": 1.0}}
    recipes = [dataclasses.replace(how, name=name, **changes) for name, changes in changed.items()]
    return [Job("digits", "constant", seed, one, 20, 4, images=256, size=16) for seed in range(2) for one in recipes]
