"""Networks to train: the options that determine one, a queue that several processes share, and finished ones."""

import contextlib
import dataclasses
import fnmatch
import hashlib
import json
import re
from pathlib import Path
from typing import Any, Protocol

import filelock
import torch

import netbridge as nb
from netbridge.data.datasets import MINIATURE
from netbridge.train import epochs, loop, recipes
from netbridge.train.augment import shrink
from odelab.files import replacing
from studies.lab import definitions
from studies.lab.command import plain_errors
from studies.lab.results import is_current, remember_source

ASIDE = ("architectures", "evaluate_every")  # fields of a recipe that change nothing about the network
SHAPES = {  # depth and width of a network where none is given
    "resnet": (20, 16), "vit": (6, 96), "vit-conv": (6, 96), "vit-s": (12, 384), "vit-b": (12, 768)
}  # fmt: skip
TRANSFORMERS = {  # stem, height of a patch, features of an attention's head, width of the MLP over that of a token
    "vit": ("patch", 4, 32, 2.0),
    "vit-conv": ("conv", 4, 32, 2.0),
    "vit-s": ("patch", 16, 64, 4.0),  # Dosovitskiy et al. 2021, and the ASR paper's Table 2
    "vit-b": ("patch", 16, 64, 4.0),
}
PAPERS = ("paper", "paper-vgg", "paper-repvgg", "paper-acnet")  # recipes of the papers' tables for CIFAR
PAPERS_ON_STL10 = "paper-stl10"


class Planned(Protocol):
    """What a queue works off: the name of its file, and in plain JSON everything that determines its result."""

    @property
    def stem(self) -> str: ...

    @property
    def specification(self) -> dict: ...


@dataclasses.dataclass(frozen=True)
class Job:
    """One network to train; the fields are everything that determines what it becomes.

    dataset     name of the data set
    controller  a controller as text (see `spec_of_text`) or as `nb.resnet` takes it
    seed        of the first weights and of the order of the images
    recipe      a `netbridge.train.recipes.Recipe`
    depth       number of layers, default 20
    width       channels of the first stage, default 16; each further stage has twice as many
    on          numbers of the blocks that get the controller; None for all
    images      train on the first so many images; None for all
    start       pairs (pattern of parameter names, value): the parameters whose names match start at that value
    noise       (scale, shift, deviation) of every batch normalisation, as `nb.add_noise` takes them, the deviation one
                number or a pair; None for none
    size        shrink all images, of training and test, to this height and width; None leaves them
    network     "resnet"; "vit": a transformer of `depth` blocks with tokens of `width` features, its stem one linear
                map of each patch; "vit-conv": the same with a stem of two convolutions; "vit-s" and "vit-b": those of
                ImageNet, with patches of 16 pixels; a name of `definitions`, whose networks know no controller, depth
                or width; or another function of netbridge that builds a network, such as "vgg", whose shape `options`
                say
    options     more arguments of the function that builds the network, such as {"convolution": "asymmetric"}
    """

    dataset: str
    controller: str | dict
    seed: int
    recipe: recipes.Recipe
    depth: int = 20
    width: int = 16
    on: tuple[int, ...] | None = None
    images: int | None = None
    start: tuple[tuple[str, float], ...] = ()
    noise: tuple[float, float, float | tuple[float, float]] | None = None
    size: int | None = None
    network: str = "resnet"
    options: dict | None = None

    @property
    def label(self) -> str:
        return self.controller if isinstance(self.controller, str) else json.dumps(self.controller, sort_keys=True)

    @property
    def stem(self) -> str:
        """A file name: asr(se) becomes asr-se; a width is named where it is not the papers'.

        Start values, noise, an image size and options make it unique by the digest of the specification.
        """
        special = f"-{self.digest}" if self.start or self.noise or self.size or self.options else ""
        if self.network in definitions.networks:
            return f"{self.network}-seed{self.seed}{special}"
        controller = re.sub(r"\W+", "-", self.label).strip("-")
        width = "" if self.width == 16 else f"-width{self.width}"
        return f"{self.kind}{width}-{controller}-seed{self.seed}{special}"

    @property
    def kind(self) -> str:
        """What kind of network it is and how deep, in a word."""
        return f"{self.network}{self.depth if self.network in SHAPES else ''}"

    @property
    def specification(self) -> dict:
        """Everything that determines the network, in plain JSON; what is at its default is left out.

        So the names of old results stay valid when jobs or recipes gain a field. What a user's file defines is known by
        a digest of that file, since its name says nothing about it.
        """
        record: dict = {"dataset": self.dataset, "controller": self.controller, "seed": self.seed}
        record |= {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in {*record, "recipe"} and getattr(self, field.name) != field.default
        }
        own = definitions.origin(self.label, self.network, self.dataset)
        record |= {"defined": own} if own else {}
        return json.loads(json.dumps(record | {"recipe": changed_fields(self.recipe)}))

    @property
    def digest(self) -> str:
        """Eight letters that tell specifications apart."""
        return hashlib.sha256(json.dumps(self.specification, sort_keys=True).encode()).hexdigest()[:8]

    def untrained_network(self, classes: int, size: int = 32) -> nb.Network:
        """The untrained network for images of this height and width, its weights drawn from the seed."""
        torch.manual_seed(self.seed)
        if self.network in definitions.networks:
            return definitions.networks[self.network](classes)
        spec, more = spec_of_text(self.controller), self.options or {}
        if self.network == "resnet":
            widths = None if self.width == 16 else [self.width * factor for factor in (1, 2, 4)]
            net = nb.resnet(self.depth, classes, spec, on=self.on, widths=widths, **more)
        elif self.network not in SHAPES:
            net = getattr(nb, self.network)(num_classes=classes, controller=spec, on=self.on, **more)
        else:
            stem, patch, each, ratio = TRANSFORMERS[self.network]
            heads = max(self.width // each, 2)
            shape = (size, patch, self.width, self.depth, heads, ratio)
            net = nb.vit(*shape, classes, spec, on=self.on, stem=stem, **more)
        for pattern, value in self.start:
            matching = [x for name, x in net.named_parameters() if fnmatch.fnmatchcase(name, pattern)]
            if not matching:
                raise ValueError(f"`start`: no parameter of this network has a name like {pattern!r}.")
            for parameter in matching:
                torch.nn.init.constant_(parameter, value)
        return net if self.noise is None else nb.add_noise(net, *self.noise)

    def data_of(self, data):
        """The images that this job trains on and is tested on, of the whole data set."""
        if self.images is not None:
            some = {part: getattr(data, part)[: self.images] for part in ("train_images", "train_labels")}
            data = dataclasses.replace(data, **some)
        if self.size is not None and self.size != data.test_images.shape[-1]:
            small = {part: shrink(getattr(data, part), self.size) for part in ("train_images", "test_images")}
            data = dataclasses.replace(data, **small)
        return data


def of_ones_own(like: list[Job], files, networks: bool = True) -> list[Job]:
    """Jobs like these for everything that the files of `--define` hold, job by job in the order of `like`.

    like      jobs with constant step sizes
    files     files that `definitions.run_file` has run: each of their controllers takes the place of those steps
    networks  False: leave the networks of the files out. They have one shape each, whatever that of `like`
    """
    found: dict[str, Job] = {}
    for job in like:
        own = [dataclasses.replace(job, controller=name) for name in definitions.controllers(files)]
        if networks:
            shapeless = dataclasses.replace(job, depth=Job.depth, width=Job.width, options=None, on=None)
            own += [dataclasses.replace(shapeless, network=name) for name in definitions.names("networks", files)]
        found |= {one.stem: one for one in own if one.stem not in found}
    return list(found.values())


def count_ones_own(there: int, wanted: int) -> str:
    """What a report says first of the networks of `of_ones_own`: how many of them are measured."""
    rest = "" if there == wanted else "; `--train` makes the rest"
    return f"{there} of {wanted} networks of your own are measured{rest}."


def changed_fields(recipe: recipes.Recipe) -> dict:
    """The fields of a recipe that change what is trained and are not at their default."""
    pairs = ((field, getattr(recipe, field.name)) for field in dataclasses.fields(recipe) if field.name not in ASIDE)
    return {field.name: value for field, value in pairs if value != field.default}


def spec_of_text(text):
    """What `nb.resnet` takes as controller, from se, asr(se), ASR(SE) or JSON such as {"name": "stepnet", ...}."""
    if not isinstance(text, str):
        return text
    if text.startswith("{"):
        return json.loads(text)
    match = re.fullmatch(r"asr\((\w+)\)", text, re.IGNORECASE)
    if match:
        return nb.asr(match[1].lower())
    return text if text in nb.controllers() or "(" in text else text.lower()  # values of options keep their case


def recipe_of(name: str, dataset: str, precision: str = "auto", network: str = "resnet", **changes) -> recipes.Recipe:
    """The recipe `name`, with the changes that are not None.

    Of `short`, digits and transformers have variants of their own: `digits`, `vit-short`, `vit-digits`. The papers'
    recipes for CIFAR have the batches of `paper-stl10` on STL-10, as Appendix C of the ASR paper has all of its models.
    """
    if precision not in ("auto", "float32"):
        raise ValueError(f"`--precision` must be auto or float32, got {precision!r}.")
    changes = {key: value for key, value in changes.items() if value is not None}
    if name == "short" and network in TRANSFORMERS:
        name = "vit-digits" if dataset == "digits" else "vit-short"
    elif name == "short" and dataset == "digits":
        name = "digits"
    elif dataset.removesuffix(MINIATURE) == "stl10" and name in PAPERS:
        name = PAPERS_ON_STL10 if name == "paper" else name
        changes = {"batch": recipes.RECIPES[PAPERS_ON_STL10].batch} | changes
    return recipes.recipe(name, **changes | ({"bfloat16": False} if precision == "float32" else {}))


def same_recipe(record: dict, recipe) -> bool:
    """Is this the recipe of a log? Fields that recipes have gained, and those they have lost, are at their defaults."""
    now, usual = (json.loads(json.dumps(one.as_json())) | recipes.LOST for one in (recipe, type(recipe)("", 1)))
    return all(now[name] == record.get(name, usual[name]) for name in now if name not in ASIDE)


def train(job: Job, data, path: Path, study: str, device=None, **options) -> nb.Network:
    """The network of a job: trained here, or further where a run was interrupted, or read from `path` if finished.

    `options` are those of `netbridge.train.train`: compiled, workers, parts, checkpoint_minutes, heartbeat, on_epoch,
    extend. A `path` that holds anything but this job ends the study with one line that says what differs.
    """
    with plain_errors(study):
        data = job.data_of(data)
        net = job.untrained_network(len(data.names), data.size)
        about: dict[str, Any] = (
            {"network": job.network} if job.network in definitions.networks else {"controller": job.label}
        )
        if job.network == "resnet":
            about["depth"] = job.depth
        return loop.train(net, data, job.recipe, job.seed, path, about, device, **options)


def train_all(wanted: list[Job], data, folder: Path, study: str, device=None, compiled=False) -> list[str]:
    """The networks of all jobs in `folder`, as `work_off` does it; what lies there already is checked first."""
    folder.mkdir(parents=True, exist_ok=True)

    def place(job):
        return folder / f"{job.stem}.safetensors"

    def carry_out(job):
        net = train(job, data, place(job), study, device, compiled=compiled)
        return f"{100 * net.about['test_accuracy']:.2f} % on the test set."

    for job in wanted:
        if place(job).is_file():
            train(job, data, place(job), study)
    return work_off(lambda: wanted, lambda job: place(job).is_file() or None, carry_out, folder)


def work_off(planned, find, carry_out, locks: Path, say=print) -> list[str]:
    """Carry out all that `planned()` lists and `find` does not know, in order; returns the names of what diverged.

    planned    a function without arguments; it is asked again after every job, because what is wanted may depend on
               results. Its jobs have a `stem`, which is their name
    find       a function of a job; None where its result is not there
    carry_out  a function of a job that makes its result and returns a line to print
    locks      a folder; a job that another process holds the lock of is passed over
    say        what prints the lines
    """
    locks.mkdir(parents=True, exist_ok=True)
    remember_source()
    while True:
        for job in planned():
            if find(job) is not None or divergence(job, locks):
                continue
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(filelock.FileLock(locks / f"{job.stem}.lock", timeout=0))
                except filelock.Timeout:
                    continue
                if find(job) is not None:
                    continue
                try:
                    say(f"{job.stem}: {carry_out(job)}")
                except epochs.Diverged as error:
                    note_divergence(job, locks, str(error))
                    say(f"{job.stem}: {error}")
                else:
                    if find(job) is None:  # otherwise the job would stay in the queue, and this loop would never end
                        raise RuntimeError(f"the result of {job.stem} was written and is not found again.")
            break
        else:
            return [job.stem for job in planned() if divergence(job, locks)]


def finder(find, missing: bool = True, older: bool = False):
    """What `work_off` asks for the result of a job: None of those that are to be trained and measured, and of no other.

    find     a function of a job; it returns a result with `made`, what `results.source` gave, or None
    missing  whether jobs without a result are to be worked off
    older    whether those are whose result other code than today's has measured
    """

    def find_finished(job):
        result = find(job)
        if result is None:
            return None if missing else "not asked for"
        return None if older and not is_current(result.made) else result

    return find_finished


def note_divergence(job, folder: Path, message: str) -> None:
    """Notes that a training diverged, so that it is not tried again with the same result."""
    with replacing(folder / f"{job.stem}.diverged.txt") as unfinished:
        unfinished.write_text(message + "\n")


def divergence(job, folder: Path) -> str | None:
    """The message with which the training of this job diverged; None if it did not."""
    path = folder / f"{job.stem}.diverged.txt"
    return path.read_text().strip() if path.is_file() else None


def list_diverged(planned, folders) -> list[str]:
    """The names of the planned jobs whose training diverged, by the notes in any of the folders."""
    return [job.stem for job in planned if any(divergence(job, folder) for folder in folders)]


def describe_diverged(names: list[str]) -> str:
    """What a report says of trainings that diverged; "" where there is none."""
    return f"Training diverged and is left out: {', '.join(names)}." if names else ""
