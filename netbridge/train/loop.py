"""The training loop, for one process or many: it can be killed at any moment and goes on from its last epoch."""

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.data.datasets import Dataset
from netbridge.data.pictures import Pictures
from netbridge.progress import progress_bar
from netbridge.tracing.batches import channels_last
from netbridge.train import distributed, recipes
from netbridge.train.augment import Batches, generator
from netbridge.train.journal import Journal
from netbridge.train.loading import PictureBatches, to_test
from netbridge.train.pausing import Beats, Pauses
from netbridge.train.precision import Precision
from netbridge.train.recipes import Recipe
from netbridge.train.stepping import Stepper

MANY, TOP = 20, 5  # with more classes than `MANY`, the first `TOP` guesses are counted too
Module = TypeVar("Module", bound=nn.Module)

WATCH = 25  # steps between two looks at whether the loss is still a number


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


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGUSR1 stopped a training; the text says what is kept and how to go on.

    `code` is what a program should end with: 130 after Ctrl-C, 0 where a signal asked for an end and all is kept.

    >>> import netbridge as nb
    >>> from netbridge import data, train
    >>> def press_ctrl_c(net, record):
    ...     raise KeyboardInterrupt
    >>> digits, net = data.load("digits"), nb.resnet(8, widths=(4, 8, 8))
    >>> try:
    ...     net = train.train(net, digits, "digits", quiet=True, device="cpu", on_epoch=press_ctrl_c)
    ... except train.Interrupted as stop:
    ...     print(stop)
    stopped in epoch 1 of 16. Nothing is kept, because no `path` was given.
    """

    code = 130


def train(
    net: Module,
    data: Dataset | Pictures,
    recipe: Recipe | str,
    seed: int = 0,
    path=None,
    about: dict | None = None,
    device=None,
    dtype: torch.dtype = torch.float32,
    parts: int | None = None,
    compiled: bool = False,
    workers: int = 0,
    stop_after: int | None = None,
    quiet: bool = False,
    checkpoint_minutes: float | None = None,
    heartbeat: float | None = None,
    on_epoch: Callable[[nn.Module, dict], dict | None] | None = None,
) -> Module:
    """Train a network in place by a recipe, so that killing and restarting it changes no bit of the result.

    net         any module that maps images (N, C, H, W) to logits (N, classes), of netbridge or not
    data        a `netbridge.data.Dataset` (`data.load`, `data.folder`, or `data.dataset` for tensors of your own), or
                `netbridge.data.Pictures`, which stay on the disk (`data.imagenet`)
    recipe      a `Recipe`, or the name of one in `recipes.RECIPES`
    seed        of the order of the images, their shifts and flips, and of layers that draw; weights are drawn before,
                so call `torch.manual_seed` ahead of building `net` where they shall be the same again
    path        file for the network, which `nb.load` reads; beside it `path` with .jsonl receives the log, and while
                training lasts .resume what the next start needs. If `path` holds this run, it
                is continued, or loaded if it is finished; a file of another run is refused. None (the default):
                nothing is written
    about       plain values to keep in the file and in `net.about`, beside what is recorded anyway
    device      default: the first GPU, else the CPU
    dtype       of weights and images; recipes with bfloat16=True compute in bfloat16 where this is float32
    parts       a batch is normalised in so many equal parts, of which the processes take turns: any number of processes
                up to `parts` computes the same but for rounding, and each needs the memory of one part only. Default:
                as many parts as there are processes
    compiled    pass the network through torch.compile
    workers     processes that decode pictures from the disk (default 0: this one does); changes no bit of the result
    stop_after  end this session after so many epochs in all; the next call with the same `path` goes on
    quiet       print nothing
    checkpoint_minutes  write the state down within an epoch, too, when so many minutes have passed; default: only at
                its end, and on SIGTERM or SIGUSR1, which end the session after the step
    heartbeat   print a line with epoch, step and loss when so many seconds have passed since the last one, by which the
                log of a long run shows that it is alive; default: only the line of each epoch
    on_epoch    called as on_epoch(net, record) after every epoch, in evaluation mode; record has epoch, loss,
                train_accuracy, rate, size, seconds, and test_accuracy, test_errors, test_loss where it was tested. What
                it returns, None or a dict of plain values, joins the record in the log

    Returns `net` in evaluation mode, with `net.normalisation` (mean, std) and, when the recipe is through, `net.about`:
    controller, depth, width, seed, recipe, dataset, test_accuracy (a share of 1), test_errors, test_loss, epochs,
    seconds, and `run`, all that names the run. Raises Diverged when the loss is no number any more, Interrupted (a
    KeyboardInterrupt) on Ctrl-C, ValueError or TypeError where the arguments do not fit together.

    >>> import netbridge as nb
    >>> from netbridge import data, train
    >>> digits = data.load("digits")
    >>> net = nb.resnet(8, controller="se", widths=(4, 8, 8))
    >>> net = train.train(net, digits, train.recipe("digits", epochs=1), quiet=True, device="cpu")
    >>> net.about["controller"], net.about["depth"], net.about["epochs"], "test_accuracy" in net.about
    ('se', 8, 1, True)
    """
    recipe = recipes.recipe(recipe) if isinstance(recipe, str) else recipe
    training = Training(net, data, recipe, seed, device, dtype, parts, compiled, workers)
    carry_through(training, path, about, stop_after, quiet, checkpoint_minutes, on_epoch, heartbeat)
    return net


def carry_through(training, path, about, stop_after, quiet, checkpoint_minutes, on_epoch, heartbeat=None) -> nn.Module:
    """Carry a `Training` through its recipe, from wherever its files say that it is; the parameters are `train`'s."""
    net, recipe = training.net, training.recipe
    pauses, beats = Pauses(checkpoint_minutes), Beats(heartbeat)
    journal = Journal(path, training, about)
    if journal.load_finished():
        say(quiet, training, f"{journal.path} is trained already.")
        return net.eval()
    journal.restore()
    last = recipe.epochs if stop_after is None else min(stop_after, recipe.epochs)
    try:
        done = training.epoch * training.steps + training.number
        with (
            pauses.listening(),
            training.precision.kernels(),
            progress_bar(journal.title, recipe.epochs * training.steps, done) as advance,
        ):

            def after_step():
                advance(1, f"epoch {training.epoch + 1}/{recipe.epochs}")
                if beats.due():
                    say(quiet, training, f"{journal.title}: {training.position()}")
                pause(journal, *pauses.due(training.number))

            while training.epoch < last:
                record = training.one_epoch(after_step)
                if on_epoch is not None and training.rank == 0:
                    with training.stepper.tested_weights():
                        record |= on_epoch(net.eval(), record) or {}
                say(quiet, training, training.line(journal.title, record))
                journal.add(record)
                distributed.wait()
                if training.epoch < last and pauses.must_stop():
                    raise stop_exception(journal, journal.going_on())
    except Diverged as error:
        journal.note_divergence(str(error))
        raise
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(journal.going_on()) from None
    if training.epoch == recipe.epochs:
        journal.finish()
        distributed.wait()
    return net.eval()


def pause(journal: Journal, keep: bool, stop: bool) -> None:
    """In the middle of an epoch: write the state down, end the session, or neither."""
    if keep:
        journal.keep_within()
        distributed.wait()
    if stop:
        raise stop_exception(journal, journal.going_on(kept_within=True))


def stop_exception(journal: Journal, words: str) -> Interrupted:
    """The exception that ends a session which a signal has asked to stop."""
    error = Interrupted(words)
    error.code = 0 if journal.path is not None else Interrupted.code
    return error


def say(quiet: bool, training, text: str) -> None:
    if not quiet and training.rank == 0:
        print(text, flush=True)


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
        self.net, self.data, self.recipe, self.seed, self.dtype = net, data, recipe, seed, dtype
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
        loss, right = (float(distributed.mean(x)) * self.world for x in self.sums)
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
        total, right = distributed.mean(self.sums[0]), distributed.mean(self.sums[1]) * self.world
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


def usable_device(name) -> torch.device:
    """The device of this name; ValueError where torch has none such here."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:  # torch raises either
        raise ValueError(f"`device` = {str(name)!r} cannot be used here: {str(error).splitlines()[0]}.") from None
    return device


def check_parts(parts: int, world: int, batch: int) -> int:
    if parts < world:
        raise ValueError(f"`parts` = {parts} leaves some of the {world} processes without work; start fewer of them.")
    if batch % parts:
        raise ValueError(f"`batch` = {batch} must divide into {parts} equal parts.")
    return parts


def drawing_state(device: torch.device) -> torch.Tensor:
    """The state of the random numbers that layers draw on a device, as bytes; on a GPU behind the processor's."""
    state = torch.get_rng_state()
    return torch.cat([state, torch.cuda.get_rng_state(device)]) if device.type == "cuda" else state


def set_drawing_state(state: torch.Tensor, device: torch.device) -> None:
    length = len(torch.get_rng_state())
    torch.set_rng_state(state[:length])
    if device.type == "cuda" and len(state) > length:
        torch.cuda.set_rng_state(state[length:], device)


def best_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda", distributed.local_rank())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


@torch.no_grad()
def evaluate(net: nn.Module, data: Dataset | Pictures, device=None, dtype=torch.float32, batch=250, workers=0) -> dict:
    """What a network scores on the test images; of several processes each looks at its share, and all get the answer.

    net      the network; it is put into evaluation mode and stays there
    data     a `netbridge.data.Dataset` or `netbridge.data.Pictures`
    device   of the computation; default: where the network is
    dtype    of the images (float32)
    batch    images at a time (250); it changes memory and time only
    workers  processes that decode pictures from the disk (0: this one does)

    Returns a dictionary: test_accuracy (a share of 1), test_errors (a count), test_loss (mean cross-entropy); with more
    than 20 classes also test_top5, the share of images whose class is among the five largest logits.

    >>> import netbridge as nb
    >>> from netbridge import data, train
    >>> train.evaluate(nb.pretrained("digits/resnet32-width4-se-seed0"), data.load("digits"))["test_errors"]
    4
    """
    device = next(net.parameters()).device if device is None else device
    net.eval()
    rank, world = distributed.rank(), distributed.world()
    shown = to_test(data, batch, rank, world, workers, device, dtype)
    sums = torch.zeros(4, dtype=torch.float64)  # images, errors, not among the first five, loss
    for images, labels in shown:
        logits = net(images.contiguous(memory_format=torch.channels_last)).to(dtype)
        loss = F.cross_entropy(logits, labels, reduction="sum")
        place = place_of(labels, logits)
        missed = [int((place >= first).sum()) for first in (1, TOP)]
        sums += torch.tensor([len(labels), *missed, float(loss)], dtype=torch.float64)
    if world > 1:
        sums = distributed.total(sums.to(device))
    count, errors, missed, total = sums.tolist()
    scores = {"test_accuracy": (count - errors) / count, "test_errors": round(errors), "test_loss": total / count}
    return scores | ({"test_top5": (count - missed) / count} if len(data.names) > MANY else {})


def place_of(labels: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """How many classes a network holds for likelier than the right one, int64 (N,): 0 where its answer is right.

    Of equal logits the first class counts as the likelier, and NaN as likelier than any number: a network whose logits
    are all alike has guessed one class, not all of them.
    """
    own = logits.gather(1, labels[:, None])
    before = torch.arange(logits.shape[1], device=logits.device) < labels[:, None]
    return (~(logits <= own) | ((logits == own) & before)).sum(1)


def check_arguments(net, data, recipe) -> None:
    if not isinstance(net, nn.Module):
        raise TypeError(f"`net` must be a torch module, got {type(net).__name__}.")
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
