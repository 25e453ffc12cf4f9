"""The design of `detect`: what is trained. Written before anything was trained for it.

The rows are those of Table 3: plain (constant step sizes), SE, ECA, SGE, StepNet. SGE has 8 groups on made-up scenes,
whose narrowest stage has 16 channels.

*Made-up scenes.* 640 pictures to train on and 100 to test with, 96 x 96 pixels, one to three ellipses, rectangles and
triangles each. The backbone is a ResNet-20 with ImageNet's stem and widths 16, 32, 64, from fresh weights, since there
is nothing to pretrain it on: no stage and no normalisation is frozen. 240 steps of 8 pictures, cosine schedule, three
seeds of each row, the scenes the same for all. (Of a pilot with one seed, 128 pixels and 250 steps it was known that
the plain row reaches an AP50 of 53.)

*COCO.* With `--data-root`: MMDetection's standard schedule, pictures of 800 to 1333 pixels, backbones as `--weights`
has them, the stem and the first stage frozen, every normalisation of the backbone with its running statistics.

The rules are in `findings.py`, each with its text. Those of claims 1 and 2, that every module has a higher AP than the
plain backbone and StepNet the highest, were fixed beforehand: Dunnett over seeds, from 3 seeds of each row on. Those of
claims 3 and 4, about stiffness, changed when the detectors had been seen; what they were is in `docs/papers.md`.
"""

import dataclasses
import hashlib
import json

import torch

import netbridge as nb
from netbridge import detect
from netbridge.train.recipes import Recipe
from studies.lab.jobs import changed_fields, spec_of_text

ROWS = ("constant", "se", "eca", "sge", "stepnet")
SEEDS = 3
PICTURES, SIZE = (640, 100), 96
TRACED = 64  # test pictures
SHOWN = 4  # test pictures whose detections are kept to be drawn
FEWEST_SEEDS, FEWEST_ROWS = 3, 6
MADE_UP, REHEARSED = "coco-miniature", "coco-rehearsed"  # scenes of the study; made-up scenes in the place of COCO
COCO_SIZE = 800
SMALL = dataclasses.replace(detect.SMALL, features=32, canonical=48.0)
RECIPE = Recipe("detect", 3, 8, lr=0.02, schedule="cosine", warmup=0.5, clip=10.0, evaluate_every=3)


@dataclasses.dataclass(frozen=True)
class Run:
    """One detector to train; the fields are everything that determines what it becomes.

    controller  of the backbone
    seed        of its fresh weights, of the order of the pictures and of the samples
    dataset     "coco-miniature" for made-up scenes, "coco", or "coco-rehearsed" for scenes in the place of COCO
    recipe      a `Recipe`
    depth       of the backbone: 20, or 50 and 101 for COCO
    pictures    how many made-up scenes there are to train on and to test with
    size        height and width of made-up scenes; the shorter side of COCO's pictures
    weights     the digest of the backbone's file; None: fresh weights
    """

    controller: str
    seed: int
    dataset: str = MADE_UP
    recipe: Recipe = RECIPE
    depth: int = 20
    pictures: tuple[int, int] = PICTURES
    size: int = SIZE
    weights: str | None = None

    @property
    def stem(self) -> str:
        """The name of its files, made unique by the digest of the specification."""
        return f"resnet{self.depth}-{self.controller}-seed{self.seed}-{self.digest}"

    @property
    def specification(self) -> dict:
        """Everything that determines the detector, in plain JSON."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        settings = (SMALL if self.dataset == MADE_UP else detect.Settings()).as_json()
        return json.loads(json.dumps(record | {"recipe": changed_fields(self.recipe), "settings": settings}))

    @property
    def digest(self) -> str:
        """Eight letters that tell specifications apart."""
        return hashlib.sha256(json.dumps(self.specification, sort_keys=True).encode()).hexdigest()[:8]

    def untrained_detector(self, names, weights=None) -> detect.Detector:
        """The detector before it is trained; `weights` is a trained backbone."""
        torch.manual_seed(self.seed)
        if self.dataset == MADE_UP:
            spec = nb.controller("sge", groups=8) if self.controller == "sge" else spec_of_text(self.controller)
            body = nb.resnet(self.depth, controller=spec, stem="imagenet", widths=(16, 32, 64))
            return detect.Detector(body, names, SMALL, frozen_stages=0, frozen_norms=False)
        body = nb.resnet(self.depth, 1000, spec_of_text(self.controller)) if weights is None else weights
        return detect.Detector(body, names, frozen_stages=int(weights is not None), frozen_norms=weights is not None)


def made_up(seeds: int = SEEDS, rows=ROWS, **changes) -> list[Run]:
    """The runs on made-up scenes, seed by seed, so that whatever is there is a comparison of all rows."""
    return [Run(row, seed, **changes) for seed in range(seeds) for row in rows]


def smoke() -> list[Run]:
    """Two detectors that only show that everything works."""
    recipe = dataclasses.replace(RECIPE, epochs=1, batch=4, evaluate_every=1)
    return made_up(1, ("constant", "stepnet"), recipe=recipe, pictures=(8, 4), size=64)


def schedule(schedule: str, batch: int | None = None, epochs: int | None = None) -> Recipe:
    """MMDetection's schedule for so many times 12 epochs, such as 1x or 2x; the rate is in proportion to the batch.

    epochs  another number of them, to try things with: the rate drops where it would
    """
    times = schedule.removesuffix("x")
    if not times.isdigit() or not int(times):
        raise ValueError(f"`--schedule` must be 1x, 2x, ..., got {schedule!r}.")
    once, k = detect.SCHEDULES["coco-1x"], int(times)
    batch = batch or once.batch
    drops = tuple(k * drop for drop in once.drops)
    return dataclasses.replace(
        once, epochs=epochs or k * once.epochs, drops=drops, batch=batch, lr=once.lr * batch / once.batch
    )
