"""Training: one loop for one process or many, that can be killed at any moment and goes on from its last epoch.

    net = netbridge.train.train(net, data, recipe("short"), seed=0, path="se.safetensors", about={"controller": "se"})

`path` receives the network (`nb.load` reads it), `path` with .jsonl its log, and while training lasts .resume what the
next start needs. The header's `about` holds controller, depth, seed, recipe, dataset, test_accuracy (a share of 1),
test_errors, test_loss, epochs, seconds; mean and std stand in the header's `normalisation`.
"""

import contextlib
import json
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from netbridge import checkpoint
from netbridge.files import sweep, whole
from netbridge.progress import Progress
from netbridge.train import distributed, resume
from netbridge.train.augment import Batches, generator
from netbridge.train.evaluation import evaluate
from netbridge.train.optimizer import floats, make_optimizer

WATCH = 25  # steps between two looks at whether the loss is still a number
AVERAGE_EVERY, AVERAGE_DECAY = 5, 0.95**5  # steps; Jordan 2024, Section 3.4


class Diverged(RuntimeError):
    """The loss is not a number any more; the text says where and what would help."""


def best_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda", distributed.local_rank())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def train(
    net: nn.Module,
    data,
    recipe,
    seed: int = 0,
    path=None,
    about: dict | None = None,
    device=None,
    dtype=torch.float32,
    parts: int = 1,
    compiled: bool = False,
    stop_after: int | None = None,
    quiet: bool = False,
) -> nn.Module:
    """Train `net` in place by `recipe` and return it in evaluation mode, with what it scored in `net.about`.

    parts: the batch is normalised in so many equal parts, as so many processes would do it. stop_after: end this
    session after so many epochs in all; the next call goes on.
    """
    run = Run(net, data, recipe, seed, path, about, device, dtype, parts, compiled, quiet)
    run.restore()
    last = recipe.epochs if stop_after is None else min(stop_after, recipe.epochs)
    with Progress(run.title, recipe.epochs * run.steps, done=run.epoch * run.steps) as run.progress:
        while run.epoch < last:
            run.one_epoch()
    if run.epoch == recipe.epochs:
        run.finish()
    return net.eval()


class Run:
    """One training of one network: what `resume` keeps, and the steps between."""

    def __init__(self, net, data, recipe, seed, path, about, device, dtype, parts, compiled, quiet):
        self.net, self.data, self.recipe, self.seed, self.parts, self.quiet = net, data, recipe, seed, parts, quiet
        self.device = torch.device(device) if device is not None else best_device()
        self.rank, self.world = distributed.rank(), distributed.world()
        if recipe.batch % (self.world * parts):
            raise ValueError(f"`batch` = {recipe.batch} must divide into {self.world * parts} equal parts.")
        self.path = None if path is None else Path(path)
        self.about = (
            described(net.config) | dict(about or {}) | {"seed": seed, "recipe": recipe.name, "dataset": data.name}
        )
        net.normalisation = data.normalisation
        net.to(device=self.device, dtype=dtype, memory_format=torch.channels_last).train()
        self.dtype = dtype
        self.forward = distributed.wrap(torch.compile(net) if compiled else net)
        self.optimizer = make_optimizer(net, recipe)
        self.averaged = [x.clone() for x in floats(net)] if recipe.average else None
        self.epoch, self.seconds, self.log = 0, 0.0, []
        self.size, self.batches = None, None
        self.steps = len(data.train_labels) // recipe.batch
        self.title = " ".join(str(self.about[key]) for key in ("controller", "seed") if key in self.about)

    def autocast(self):
        able = self.device.type == "cpu" or (self.device.type == "cuda" and torch.cuda.is_bf16_supported())
        if self.recipe.bfloat16 and able and self.dtype == torch.float32:
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def one_epoch(self):
        began = time.perf_counter()
        self.prepare()
        torch.manual_seed(generator(self.seed, self.epoch).initial_seed())  # for layers that draw
        self.net.train()
        wide = torch.float32 if self.device.type == "mps" else torch.float64  # MPS has no doubles
        total, right = torch.zeros(2, device=self.device, dtype=wide)
        for number, (images, labels) in enumerate(self.batches.epoch(self.seed, self.epoch, self.rank, self.world)):
            step = self.epoch * self.steps + number
            for group in self.optimizer.param_groups:
                group["lr"] = self.recipe.rate(step, self.steps)
            loss, hits = self.step(images, labels)
            total = total + loss
            right = right + hits
            if number % WATCH == WATCH - 1 or number == self.steps - 1:
                self.watch(total, number)
            if self.averaged is not None and (step + 1) % AVERAGE_EVERY == 0:
                self.average((step + 1) / (self.recipe.epochs * self.steps))
            self.progress.advance(note="" if self.quiet else f"epoch {self.epoch + 1}/{self.recipe.epochs}")
        distributed.average_buffers(self.net)
        total, right = distributed.mean(total), distributed.mean(right) * self.world
        self.epoch += 1
        if self.epoch == self.recipe.epochs and self.averaged is not None:
            self.average(1.0, towards=True)
        self.seconds += time.perf_counter() - began
        self.note(
            loss=float(total) / self.steps,
            train_accuracy=float(right) / (self.steps * self.recipe.batch),
            rate=self.optimizer.param_groups[0]["lr"],
            size=self.size,
            seconds=round(time.perf_counter() - began, 2),
        )

    def prepare(self):
        """Batches of this epoch's image size."""
        size = self.recipe.size(self.epoch, self.data.train_images.shape[-1])
        if size != self.size:
            d = self.data
            self.batches = Batches(
                d.train_images, d.train_labels, d.mean, d.std, self.recipe, size, self.device, self.dtype
            )
            self.size = size

    def step(self, images, labels):
        """One step of the optimiser; (loss, hits)."""
        self.optimizer.zero_grad()
        if self.parts == 1:
            loss, hits = self.backward(images, labels, 1)
        else:
            loss, hits = self.step_in_parts(images, labels)
        self.optimizer.step()
        return loss, hits

    def backward(self, images, labels, parts):
        with self.autocast():
            logits = self.forward(images)
        loss = F.cross_entropy(logits.to(self.dtype), labels, label_smoothing=self.recipe.smoothing) / parts
        loss.backward()
        return loss.detach(), (logits.detach().argmax(1) == labels).sum()

    def step_in_parts(self, images, labels):
        """Each part meets the statistics that stood before the step; what it leaves is averaged, as processes do."""
        everything = list(self.net.buffers())  # counters too: one step is one step, whatever its parts
        before = [x.clone() for x in everything]
        buffers = [x for x in everything if x.is_floating_point()]
        after = [torch.zeros_like(x) for x in buffers]
        loss = hits = 0
        for some_images, some_labels in zip(images.chunk(self.parts), labels.chunk(self.parts), strict=True):
            for buffer, old in zip(everything, before, strict=True):
                buffer.copy_(old)
            part_loss, part_hits = self.backward(some_images, some_labels, self.parts)
            loss, hits = loss + part_loss, hits + part_hits
            for buffer, total in zip(buffers, after, strict=True):
                total.add_(buffer, alpha=1 / self.parts)
        for buffer, total in zip(buffers, after, strict=True):
            buffer.copy_(total)
        return loss, hits

    @torch.no_grad()
    def average(self, progress: float, towards: bool = False):
        """The running average takes in the weights and the weights go back to it; less and less so towards the end."""
        distributed.average_buffers(self.net)
        held = floats(self.net)
        if not towards:
            torch._foreach_lerp_(self.averaged, held, 1 - AVERAGE_DECAY * progress**3)
        torch._foreach_copy_(held, self.averaged)

    def watch(self, total, number):
        if bool(torch.isfinite(distributed.mean(total.clone()))):
            return
        rate = self.optimizer.param_groups[0]["lr"]
        broken = [name for name, x in self.net.named_parameters() if not bool(torch.isfinite(x).all())]
        where = f"{len(broken)} parameters are no numbers, {broken[0]} first" if broken else "the parameters still are"
        text = (
            f"the loss is no number any more in epoch {self.epoch + 1}, step {number + 1} of {self.steps}, at learning "
            f"rate {rate:.3g}; {where}. A lower rate (--lr) or full precision (--precision float32) may help."
        )
        if self.path is not None and self.rank == 0:
            self.log.append({"epoch": self.epoch + 1, "diverged": text})
            self.write_log()
        raise Diverged(text)

    def note(self, **numbers):
        """Evaluate when it is due, log, and keep what the next start needs."""
        record = {"epoch": self.epoch, **numbers}
        done = self.epoch == self.recipe.epochs
        if self.rank == 0 and (done or self.epoch % self.recipe.evaluate_every == 0):
            # the last word is in full precision, as whoever loads the network will use it
            with contextlib.nullcontext() if done else self.autocast():
                record |= evaluate(self.net, self.data, self.device, self.dtype)
        self.log.append(record)
        if not self.quiet and self.rank == 0:
            print(line(self.title, record), flush=True)
        if self.path is not None and self.rank == 0:
            tensors = resume.flat_state(self.net, self.optimizer, self.averaged)
            resume.write(self.resume_path, tensors, self.kept())
            self.write_log()
        distributed.wait()

    @property
    def resume_path(self) -> Path:
        return self.path.with_suffix(".resume")

    @property
    def log_path(self) -> Path:
        return self.path.with_suffix(".jsonl")

    def kept(self) -> dict:
        return {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "log": self.log,
            "recipe": self.recipe.as_json(),
            "config": self.net.config,
            "seed": self.seed,
        }

    def write_log(self):
        head = {**self.about, "recipe": self.recipe.as_json(), "torch": torch.__version__, "device": str(self.device)}
        lines = [head, *self.log]
        with whole(self.log_path) as unfinished:
            unfinished.write_text("".join(json.dumps(record) + "\n" for record in lines))

    def restore(self):
        """Go on where the last session ended; refuse what belongs to another run."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.rank == 0:
            for place in (self.path, self.resume_path):
                sweep(place, age=0.0)  # a path belongs to one run, and this is it
        found = resume.read(self.resume_path)
        if found is None:
            return
        tensors, record = found
        wanted = json.loads(json.dumps(self.kept()))
        for key in ("recipe", "config", "seed"):
            if record[key] != wanted[key]:
                raise ValueError(
                    f"{self.resume_path} belongs to a run with another {key}; delete it, or choose another `path`."
                )
        resume.restore(tensors, self.net, self.optimizer, self.averaged)
        self.epoch, self.seconds, self.log = record["epoch"], record["seconds"], record["log"]

    def finish(self):
        last = self.log[-1]
        results = {key: last[key] for key in ("test_accuracy", "test_errors", "test_loss") if key in last}
        self.net.about = {**self.about, **results, "epochs": self.recipe.epochs, "seconds": round(self.seconds, 1)}
        if self.path is not None and self.rank == 0:
            checkpoint.save(self.net.to(memory_format=torch.contiguous_format), self.path)
            self.resume_path.unlink(missing_ok=True)
        distributed.wait()


def described(config: dict) -> dict:
    """Controller and depth of a network, for a header whose writer did not name them."""
    named = {one if isinstance(one, str) else json.dumps(one, sort_keys=True) for one in config["controllers"]}
    chosen = sorted(named - {"constant"}) or ["constant"]
    layers = 3 if config["bottleneck"] else 2
    return {"controller": " and ".join(chosen), "depth": layers * sum(config["blocks"]) + 2}


def line(title: str, record: dict) -> str:
    text = (
        f"{title}: epoch {record['epoch']}, loss {record['loss']:.3f}, training {100 * record['train_accuracy']:.2f} %"
    )
    if "test_accuracy" in record:
        text += f", test {100 * record['test_accuracy']:.2f} %"
    return text + f", {record['seconds']:.0f} s"
