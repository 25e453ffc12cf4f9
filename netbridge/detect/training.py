"""Training of detectors: the loop of `netbridge.train`, with the losses and the pictures of detection."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from netbridge.detect.coco import Coco
from netbridge.detect.detector import Detector
from netbridge.detect.evaluation import NAMES, average_precision, results
from netbridge.detect.scenes import SceneBatches, steps_of
from netbridge.train import distributed, loop
from netbridge.train.epochs import Training
from netbridge.train.mixing import SAMPLES, step_chance
from netbridge.train.recipes import Recipe
from netbridge.train.stepping import Stepper

# MMDetection's standard schedule on COCO's 117,266 training pictures with objects: 500 steps of warm-up
ONCE = Recipe("coco-1x", 12, 16, lr=0.02, drops=(8, 11), warmup=500 / 7329, architectures="Faster R-CNN, StepNet paper")
SMALL = Recipe("coco-small", 8, 8, lr=0.02, schedule="cosine", warmup=1.0, clip=10.0, evaluate_every=8)
SCHEDULES = {recipe.name: recipe for recipe in (ONCE, SMALL)}
REFUSED = ("mixup", "cutmix", "cutout", "erasing", "smoothing", "small", "drop_path", "policy")
USUAL = Recipe("usual", 1)  # what is refused is meant for images of one size with one label


def train(
    net: Detector,
    data: Coco,
    recipe: Recipe | str = "coco-1x",
    seed: int = 0,
    path=None,
    about: dict | None = None,
    device=None,
    parts: int | None = None,
    workers: int = 0,
    stop_after: int | None = None,
    quiet: bool = False,
    checkpoint_minutes: float | None = None,
    on_epoch: Callable[[nn.Module, dict], dict | None] | None = None,
    extend: bool = False,
) -> nn.Module:
    """Train a detector in place, so that killing and restarting it changes no bit of the result.

    net                 a `Detector`
    data                a `Coco`
    recipe              a `netbridge.train.Recipe`, or "coco-1x" (MMDetection's standard schedule, the default) or
                        "coco-small" (for small made-up pictures)
    seed                of the order of the pictures, of what is mirrored, and of the samples of the losses
    path                as in `netbridge.train.train`
    about               as in `netbridge.train.train`
    device              as in `netbridge.train.train`
    parts               as in `netbridge.train.train`
    workers             processes that decode pictures (0: this one does)
    stop_after          as in `netbridge.train.train`
    quiet               as in `netbridge.train.train`
    checkpoint_minutes  as in `netbridge.train.train`
    on_epoch            as in `netbridge.train.train`; the record has AP, AP50, ... in per cent where it was tested, and
                        as train_accuracy the share of sampled proposals whose class was right
    extend              as in `netbridge.train.train`

    Returns the detector in evaluation mode, with `net.about` as `netbridge.train.train` leaves it.

    >>> import tempfile, netbridge as nb
    >>> from netbridge import detect, train
    >>> data = detect.load(detect.shapes(tempfile.mkdtemp(), train=4, test=2, size=64), short=64)
    >>> net = detect.Detector(nb.resnet(8, stem="imagenet", widths=(8, 8, 16)), data.names, detect.SMALL, 0, False)
    >>> recipe = train.Recipe("two steps", epochs=1, batch=2, lr=0.01)
    >>> detect.train(net, data, recipe, quiet=True, device="cpu").about["epochs"]
    1
    """
    if isinstance(recipe, str):
        if recipe not in SCHEDULES:
            raise ValueError(f"`recipe` must be a Recipe or one of {list(SCHEDULES)}, got {recipe!r}.")
        recipe = SCHEDULES[recipe]
    training = DetectorTraining(net, data, recipe, seed, device, parts=parts, workers=workers)
    return loop.carry_through(training, path, about, stop_after, quiet, checkpoint_minutes, on_epoch, extend=extend)


class DetectorTraining(Training):
    """One detector on its way through a recipe."""

    scores = NAMES

    def check(self, net, data, recipe) -> None:
        if not isinstance(net, Detector):
            raise TypeError(f"`net` must be a netbridge.detect.Detector, got {type(net).__name__}.")
        if not isinstance(data, Coco):
            raise TypeError(f"`data` must be a netbridge.detect.Coco, got {type(data).__name__}.")
        if len(net.names) != len(data.names):
            raise ValueError(f"`net` knows {len(net.names)} classes, and `data` ({data.name}) has {len(data.names)}.")
        if wrong := [name for name in REFUSED if getattr(recipe, name) != getattr(USUAL, name)]:
            raise ValueError(f"a detector's `recipe` cannot have {', '.join(wrong)}.")
        if not steps_of(data, recipe.batch):
            wide, high = map(len, data.train.shapes())
            raise ValueError(
                f"`batch` = {recipe.batch} is more than the pictures there are: {wide} wide ones and {high} others, "
                "which do not share a batch."
            )

    def make_stepper(self, compiled: bool) -> Stepper:
        return DetectorStepper(
            self.net, self.data, self.recipe, self.seed, self.parts, self.dtype, self.precision, compiled
        )

    def count_steps(self) -> int:
        return steps_of(self.data, self.recipe.batch)

    def prepare(self) -> None:
        if self.size is None:
            self.batches = SceneBatches(self.data, self.recipe, self.workers, self.device, self.dtype)
            self.size = self.data.short

    def evaluate(self) -> dict:
        found = results(self.net, self.data, self.recipe.batch, self.device, self.dtype, self.workers)
        return average_precision(self.data, found)

    def line(self, title: str, record: dict) -> str:
        text = f"{title}: epoch {record['epoch']}, loss {record['loss']:.3f}"
        if record.get("AP") is not None:
            text += f", AP {record['AP']:.1f}, AP50 {record['AP50']:.1f}"
        return text + f", {record['seconds']:.0f} s"


class DetectorStepper(Stepper):
    """Takes the steps of a detector's training; its targets are `Truth`s instead of labels."""

    ours = Detector

    def backward(self, images, truths, mixing, rows: slice, factors) -> tuple[torch.Tensor, torch.Tensor]:
        """One part's share of the gradient; `rows` are its places in the batch."""
        chances = [place_chance(mixing.place, row) for row in range(rows.start, rows.stop)]
        with self.precision.autocast():
            losses = self.forward(images, truths, chances)
        right = losses.pop("right")
        loss = sum(losses.values()) / (self.parts / distributed.world())
        self.precision.backward(loss)
        return loss.detach(), right * len(truths)


def place_chance(place: tuple[int, int, int], row: int) -> torch.Generator:
    """The random numbers of the picture in a row of the batch of a (seed, epoch, step)."""
    seed = int(step_chance(*place, SAMPLES).integers(2**62)) ^ int(np.uint64(row))
    return torch.Generator().manual_seed(seed)
