"""One network on its way through a recipe, epoch by epoch: its optimiser, its batches and its position."""

import contextlib
import numbers
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from netbridge.common.batches import channels_last
from netbridge.common.devices import best_device, drawing_state, set_drawing_state, usable_device
from netbridge.data.datasets import Dataset
from netbridge.data.pictures import Pictures
from netbridge.train import distributed, recipes
from netbridge.train.augment import Batches, generator
from netbridge.train.loading import PictureBatches
from netbridge.train.precision import Precision
from netbridge.train.recipes import Recipe
from netbridge.train.scoring import evaluate
from netbridge.train.stepping import Stepper

WATCH = 25  # steps between two looks at whether the loss is still a number
LARGEST_SEED = 2**40  # seeds of epochs are a million times as large, and must fit into 64 bits


class Diverged(RuntimeError):
    """The loss, a parameter or a running statistic is not a number any more; the text says where, and what would help.

    >>> import netbridge as nb
    >>> from netbridge import data, train
    >>> digits, net = data.load("digits"), nb.resnet(8, widths=(4, 8, 8))
    >>> try:
    ...     net = train.train(net, digits, train.recipe("digits", lr=1e30), quiet=True, device="cpu")
    ... except train.Diverged as error:
    ...     print(error)
    the loss is no number any more in epoch 1, step 20 of 20, at learning rate ...
    """


class Training:
    """One network on its way through a recipe: its optimiser, its batches, and the epochs done.

    Parameters are those of `train`. `one_epoch` does the next one; `epoch` counts those that are done. A subclass says
    what is different where a network does not map images to logits, as `netbridge.detect.training` does; `scores` are
    the entries of an epoch's record that the finished network keeps.
    """

    scores: tuple[str, ...] = ("test_accuracy", "test_errors", "test_loss")

    def __init__(
        self,
        net: nn.Module,
        data: Any,
        recipe: Recipe,
        seed: int = 0,
        device=None,
        dtype: torch.dtype = torch.float32,
        parts: int | None = None,
        compiled: bool = False,
        workers: int = 0,
    ):
        self.check(net, data, recipe)
        check_at_least_zero("workers", workers)
        self.net, self.data, self.recipe, self.seed, self.dtype = net, data, recipe, whole_seed(seed), dtype
        self.device = best_device() if device is None else usable_device(device)
        self.rank, self.world = distributed.rank(), distributed.world()
        self.parts_asked = parts is not None
        self.parts = self.world if parts is None else check_parts(parts, self.world, recipe.batch)
        net.normalisation = data.normalisation
        channels_last(net.to(self.device, dtype)).train()
        self.precision = Precision(recipe, self.device, dtype)
        self.stepper = self.make_stepper(compiled)
        self.epoch = 0
        self.number = 0  # steps of this epoch that are done
        self.sums: tuple = (0.0, 0.0)  # of the losses and of the right answers in them
        self.drawing: list[torch.Tensor] = []  # states of random numbers to go on with within an epoch
        self.elapsed = 0.0  # seconds that the epoch took in earlier sessions
        self.size: int | None = None
        self.workers = workers
        self.batches: Any = None
        self.steps = self.count_steps()
        self.always_infinite = set(not_finite(net))  # masks, for example

    def check(self, net, data, recipe) -> None:
        """Raise where the arguments do not fit together."""
        check_arguments(net, data, recipe)

    def make_stepper(self, compiled: bool) -> Stepper:
        """What takes the steps."""
        return Stepper(self.net, self.data, self.recipe, self.seed, self.parts, self.dtype, self.precision, compiled)

    def count_steps(self) -> int:
        """The steps of an epoch."""
        return self.data.train_count // self.recipe.batch

    def line(self, title: str, record: dict) -> str:
        """An epoch's record in one line."""
        return line(title, record)

    def share_out(self, parts: int) -> None:
        """Cut batches into another number of parts from now on."""
        self.parts = parts
        self.stepper.share_out(parts)

    def position(self) -> str:
        """How far the epoch is, in words, with the mean loss of this process so far."""
        where = f"epoch {self.epoch + 1} of {self.recipe.epochs}, step {self.number} of {self.steps}"
        return f"{where}, loss {float(self.sums[0]) / max(self.number, 1):.3f}"

    def within(self) -> tuple[dict, list[torch.Tensor]]:
        """The position within the epoch, and the random states of all processes, which must all call this at once."""
        loss, right = (float(distributed.total(x)) for x in self.sums)
        seconds = self.elapsed + time.perf_counter() - self.began
        record = {"step": self.number, "loss": loss, "right": right, "seconds": seconds}
        return record, distributed.gather(drawing_state(self.device))

    def go_on_within(self, record: dict, drawing: list[torch.Tensor]) -> None:
        """Go on in the middle of an epoch; `record` and `drawing` are those of `within`."""
        self.number, self.elapsed, self.drawing = record["step"], record["seconds"], drawing
        if self.rank == 0:
            self.sums = record["loss"], record["right"]

    def one_epoch(self, after_step: Callable[[], None] = lambda: None) -> dict:
        """Train for an epoch and evaluate where the recipe asks for it; returns the epoch's record."""
        self.began = time.perf_counter()
        check_parts(self.parts, self.world, self.recipe.batch)
        self.prepare()
        torch.manual_seed(generator(self.seed, self.epoch).initial_seed())  # for layers that draw
        if self.drawing:
            set_drawing_state(self.drawing[self.rank % len(self.drawing)], self.device)
        self.net.train()
        wide = torch.float32 if self.device.type == "mps" else torch.float64  # MPS has no doubles
        self.sums = tuple(torch.tensor(x, device=self.device, dtype=wide) for x in self.sums)
        for images, labels in self.batches.epoch(self.seed, self.epoch, self.rank, self.world, self.number, self.parts):
            loss, hits = self.stepper.step(images, labels, self.epoch, self.number, self.steps)
            self.sums = self.sums[0] + loss, self.sums[1] + hits
            self.number += 1
            if self.number % WATCH == 0 or self.number == self.steps:
                self.watch(self.sums[0])
            after_step()
        total, right = distributed.mean(self.sums[0]), distributed.total(self.sums[1])
        seconds = self.elapsed + time.perf_counter() - self.began
        self.epoch, self.number, self.sums, self.drawing, self.elapsed = self.epoch + 1, 0, (0.0, 0.0), [], 0.0
        if self.epoch == self.recipe.epochs:
            self.stepper.finish()
        record = {
            "epoch": self.epoch,
            "loss": float(total) / self.steps,
            "train_accuracy": float(right) / (self.steps * self.recipe.batch),
            "rate": self.stepper.optimizer.param_groups[0]["lr"],
            "size": self.size,
            "seconds": round(seconds, 2),
        }
        return record | self.scores_if_due()

    def scores_if_due(self) -> dict:
        """The scores on the test images, where the recipe asks for them now."""
        done = self.epoch == self.recipe.epochs
        if not (done or self.epoch % self.recipe.evaluate_every == 0):
            return {}
        # the scores after the last epoch are in full precision, in which a loaded network will be used
        with self.stepper.tested_weights(), contextlib.nullcontext() if done else self.precision.autocast():
            return self.evaluate()

    def evaluate(self) -> dict:
        """Score the network on the test images, as it is."""
        return evaluate(self.net, self.data, self.device, self.dtype, workers=self.workers)

    def prepare(self) -> None:
        """Batches of this epoch's image size."""
        size = self.recipe.size(self.epoch, self.data.size)
        if size != self.size:
            d = self.data
            self.batches = (
                PictureBatches(d, self.recipe, size, self.workers, self.device, self.dtype)
                if isinstance(d, Pictures)
                else Batches(d.train_images, d.train_labels, d.mean, d.std, self.recipe, size, self.device, self.dtype)
            )
            self.size = size

    def watch(self, total: torch.Tensor) -> None:
        """Raise Diverged where the sum of the losses so far is no number, or at the end of an epoch the network is not.

        The last step of an epoch may have made the weights infinite, and statistics overflow where no loss shows it.
        """
        lost = not bool(torch.isfinite(distributed.mean(total)))
        if not lost and self.number < self.steps:
            return
        broken = [name for name in not_finite(self.net) if name not in self.always_infinite]
        if not lost and not broken:
            return
        rate = self.stepper.optimizer.param_groups[0]["lr"]
        what = "the loss is no number any more" if lost else "the network does not hold numbers any more"
        where = "the network is still finite"
        if broken:
            where = f"{len(broken)} tensors of the network are not finite, {broken[0]} first"
        raise Diverged(
            f"{what} in epoch {self.epoch + 1}, step {self.number} of {self.steps}, at learning rate {rate:.3g}; "
            f"{where}. Start again with a lower rate (`lr`) or in full precision "
            "(`bfloat16=False`), under another `path`."
        )


def not_finite(net: nn.Module) -> list[str]:
    """The names of the parameters and buffers that hold something that is no number."""
    return [name for name, x in (*net.named_parameters(), *net.named_buffers()) if not bool(torch.isfinite(x).all())]


def whole_seed(seed) -> int:
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or abs(int(seed)) > LARGEST_SEED:
        raise ValueError(f"`seed` must be a whole number of at most 2^40, got {seed!r}.")
    return int(seed)


def check_at_least_zero(name: str, count) -> None:
    if count is not None and (not isinstance(count, numbers.Integral) or int(count) < 0):
        raise ValueError(f"`{name}` must be a whole number from 0 on, got {count!r}.")


def check_parts(parts: int, world: int, batch: int) -> int:
    if not isinstance(parts, numbers.Integral) or parts < 1:
        raise ValueError(f"`parts` must be a whole number from 1 on, got {parts!r}.")
    if parts < world:
        raise ValueError(f"`parts` = {parts} leaves some of the {world} processes without work; start fewer of them.")
    if batch % parts:
        raise ValueError(f"`batch` = {batch} must divide into {parts} equal parts.")
    return parts


def check_arguments(net, data, recipe) -> None:
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a torch module, got {type(net).__name__}.")
    if not any(x.requires_grad for x in net.parameters()):
        raise ValueError(f"`net` has nothing to train: no parameter of {type(net).__name__} requires a gradient.")
    if not isinstance(data, Dataset | Pictures):
        raise TypeError(
            f"`data` must be a netbridge.data.Dataset, got {type(data).__name__}. "
            'netbridge.data.dataset(name, {"train_images": ..., "train_labels": ..., "test_images": ..., '
            '"test_labels": ...}, names) makes one of tensors: '
            "uint8 images (N, C, H, W), whole labels."
        )
    if not isinstance(recipe, Recipe):
        raise TypeError(
            f"`recipe` must be a Recipe or the name of one ({', '.join(recipes.RECIPES)}), got {type(recipe).__name__}."
        )


def line(title: str, record: dict) -> str:
    text = (
        f"{title}: epoch {record['epoch']}, loss {record['loss']:.3f}, training {100 * record['train_accuracy']:.2f} %"
    )
    if "test_accuracy" in record:
        text += f", test {100 * record['test_accuracy']:.2f} %"
    return text + f", {record['seconds']:.0f} s"
