"""What is kept of many small networks, whose weights are not: what is measured, its files, and the queue.

A job is trained, measured and forgotten. What is kept is one small file whose name says which job it is: a `Score`, in
JSON, says how well the network answers; a `Measurement`, in .npz, also how stiff it is, image by image. Any number of
processes, or a Dask cluster, work through a list of jobs together.
"""

import concurrent.futures
import dataclasses
import functools
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch.func import functional_call
from torch.nn import functional as F

import netbridge as nb
from netbridge import data as datasets
from netbridge.common.devices import best_device
from netbridge.data.datasets import Dataset
from netbridge.train import epochs, recipes, scoring
from odelab.files import replacing
from studies.lab import definitions, jobs
from studies.lab.networks import controller_of
from studies.lab.options import which_jobs
from studies.lab.results import choose_current, remember_source, source
from studies.lab.stiffness import KINDS, READINGS, SCALE, follower, image_stiffness, quantity_of, trace_both

FORMAT = 1
TRACED = 1000  # test images of which stiffness and losses are kept one by one
FITTED = 5000  # training images, without augmentation, on which the training loss is measured
SHARPENED = 1000  # training images that sharpness is measured on
RADIUS = 0.5  # of adaptive sharpness, the value of Kwon et al. 2021


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """What a network scored on the test set after its last epoch; a study adds fields of its own.

    specification, recipe  everything that determines the network; the recipe in full
    test_errors, test_images, test_loss  its score on the test set
    parameters  how many numbers were trained
    log         one record per epoch, as training wrote it
    made        seconds, threads, device, version of torch, and what `results.source` gives: which code made it
    """

    study: ClassVar[str]  # whose results these are
    tuples: ClassVar[tuple[str, ...]] = ()  # fields that are tuples; JSON keeps them as lists

    specification: dict
    recipe: dict
    test_errors: int
    test_images: int
    test_loss: float
    parameters: int
    log: list
    made: dict = dataclasses.field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The accuracy on the test set, in per cent."""
        return 100.0 * (self.test_images - self.test_errors) / self.test_images

    @property
    def seed(self) -> int:
        return self.specification["seed"]

    def __str__(self):
        return f"{self.accuracy:.2f} % on the test set, {self.made['seconds']:.0f} s of training."

    def write(self, path: Path) -> Path:
        """Write the file, one line per field; whoever reads it sees all of it or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"format": FORMAT, **dataclasses.asdict(self)}
        lines = [f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in record.items()]
        with replacing(path) as unfinished:
            unfinished.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return path

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; the study ends with a line that names it where it is damaged."""
        try:
            record = json.loads(path.read_text())
            if record.pop("format") != FORMAT:
                raise ValueError(f"another format than {FORMAT}")
            tuples = {key: None if record[key] is None else tuple(record[key]) for key in cls.tuples}
            return cls(**record | tuples)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{path}: damaged, or no result of {cls.study} ({error}). Delete it to train anew."
            raise SystemExit(message) from None

    @classmethod
    def find(cls, stem: str, specification: dict, recipe, folders) -> Self | None:
        """The result of exactly this network in the first of the folders that has one; None where none has.

        One that today's code has measured goes before others.
        """

        def holds_it(result: Self) -> bool:
            return result.specification == specification and jobs.same_recipe(result.recipe, recipe)

        return find_current(f"{stem}.json", folders, cls.read, holds_it)


def score_of(net, data, specification: dict, log: Path, rooms: tuple[str, ...] = ()) -> dict:
    """The fields of a `Score`, from a network whose training is finished and the log of that training.

    rooms  what its measurement goes through beside what every one does, see `results.source`
    """
    head, *records = map(json.loads, log.read_text().splitlines())
    return {
        "specification": specification,
        "recipe": head["recipe"],
        "test_errors": net.about["test_errors"],
        "test_images": len(data.test_labels),
        "test_loss": net.about["test_loss"],
        "parameters": sum(p.numel() for p in net.parameters()),
        "log": records,
        "made": {
            "seconds": net.about["seconds"],
            "threads": torch.get_num_threads(),
            "device": head["device"],
            "torch": head["torch"],
            **source(measured=rooms),
        },
    }


def remove_training(path: Path) -> None:
    """Delete a trained network, its log and the state from which its training would go on."""
    for ending in (".safetensors", ".jsonl", ".resume"):
        path.with_suffix(ending).unlink(missing_ok=True)


@dataclasses.dataclass(frozen=True, eq=False)
class Measurement:
    """What is kept of one trained network.

    specification  of its job
    numbers        its scores and summaries: accuracy and loss on the test set, loss and accuracy on training images,
                   norm of the logits, sharpness, parameters, width, per block mean and standard deviation of both
                   indices and of the step size, stages, and how it was made
    arrays         for each of the first TRACED test images: nsi_slope (N, T), tns (readings, N), loss (N,),
                   correct (N,)
    """

    specification: dict
    numbers: dict
    arrays: dict[str, np.ndarray]

    def tns(self, reading) -> float | None:
        """The mean total neural stiffness under a reading of `stiffness.READINGS`; None where it is not defined."""
        return self.numbers["tns"][READINGS.index(tuple(reading))]

    def stiffness(self, what: str, reading) -> float:
        """TNS, its scale or its shape, by the names of `stiffness.QUANTITIES`; NaN where it is not defined."""
        means, first = self.numbers[f"nsi_{reading[0]}"]["mean"], self.numbers["first"]
        scale = float(np.mean([mean for mean, opens in zip(means, first, strict=True) if not opens]))
        return quantity_of(what, None if what == SCALE else self.tns(reading), scale)

    @property
    def made(self) -> dict:
        """Seconds, threads, device and version of torch of its making, and what `results.source` gave, or {}."""
        return self.numbers.get("made", {})

    def __str__(self):
        seconds = self.made["seconds"]
        return f"{100 * self.numbers['test_accuracy']:.2f} % on the test set, {seconds:.0f} s of training."


def write(measured: Measurement, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = json.dumps({"format": FORMAT, "specification": measured.specification, "numbers": measured.numbers})
    arrays: dict[str, Any] = {"about": np.array(about)} | measured.arrays
    with replacing(path) as unfinished, Path(unfinished).open("wb") as file:
        np.savez_compressed(file, **arrays)
    return path


def read(path: Path) -> Measurement:
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            about = json.loads(str(file["about"]))
            if about["format"] != FORMAT:
                raise ValueError(f"another format than {FORMAT}")
            arrays = {name: file[name] for name in file.files if name != "about"}
        return Measurement(about["specification"], about["numbers"], arrays)
    except Exception as error:  # a damaged archive can fail in many ways
        raise SystemExit(f"{path}: damaged, or no measurement ({error}). Delete it to train anew.") from None


def find_current(name: str, folders, read_file: Callable[[Path], Any], holds_it: Callable[[Any], bool]):
    """What the first folder that has a file of this name has in it; a result of today's code goes before others.

    read_file  reads a file
    holds_it   says whether what was read is what the name says; if not, the study ends with a line that names the file

    Returns None where no folder has the file.
    """
    every = []
    for folder in folders:
        path = Path(folder) / name
        if path.is_file():
            result = read_file(path)
            if not holds_it(result):
                raise SystemExit(
                    f"{path}: holds the result of another network than its name says. Delete it to train anew."
                )
            every.append(result)
    return choose_current(every)


def find(job: jobs.Planned, folders) -> Measurement | None:
    """The measurement of exactly this job in the first folder that has one; one by today's code goes before others."""
    return find_current(f"{job.stem}.npz", folders, read, lambda found: found.specification == job.specification)


def find_all(wanted: Sequence[jobs.Planned], folders) -> list[Measurement]:
    """The measurements there are of these jobs, in their order."""
    return [measured for job in wanted if (measured := find(job, folders)) is not None]


@functools.cache
def images_of(dataset: str, size: int | None, root: Path | None) -> Dataset:
    """The data set with its images shrunk, once for all jobs of a process; `--define` may have given it its name."""
    job = jobs.Job(dataset, "constant", 0, recipes.RECIPES["short"], size=size)
    make = definitions.datasets.get(dataset)
    data = datasets.load(dataset, root) if make is None else make(root)
    if not isinstance(data, Dataset):
        raise SystemExit(
            f"The data set {dataset!r} must be in memory, as data.dataset and data.folder of netbridge make one; got "
            f"{type(data).__name__}."
        )
    return job.data_of(data)


def carry_out(job: jobs.Job, work: Path, root: Path | None = None, device=None, follow: int = 0) -> Measurement:
    """Train the network of a job in the folder `work`, or go on with it, measure it, and delete it again.

    `follow`: after every epoch the stiffness on so many test images joins the log.
    """
    data = images_of(job.dataset, job.size, root)
    path = work / f"{job.stem}.safetensors"
    watch = follower(job.data_of(data), follow) if follow else None
    net = jobs.train(job, data, path, "lab", device, on_epoch=watch)
    head, *log = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
    measured = measure_network(job, net, job.data_of(data), device)
    measured.numbers["log"] = log
    measured.numbers["made"] |= {"device": head["device"], "torch": head["torch"]}
    write(measured, work / f"{job.stem}.npz")
    remove_training(path)
    return measured


def measure_network(job: jobs.Job, net: nb.Network, data: Dataset, device=None) -> Measurement:
    """What is kept of a trained network."""
    device = device or best_device()
    records = trace_both(net, data, TRACED, device)
    logits = torch.from_numpy(records.outputs).double()
    labels = data.test_labels[:TRACED]
    losses = F.cross_entropy(logits, labels, reduction="none")
    tns = np.array([image_stiffness(records[of], mu) for of, mu in READINGS])
    fitted = dataclasses.replace(data, test_images=data.train_images[:FITTED], test_labels=data.train_labels[:FITTED])
    fit = scoring.evaluate(net, fitted, device)
    numbers = {key: net.about[key] for key in ("test_accuracy", "test_errors", "test_loss")} | {
        "train_loss": fit["test_loss"],
        "train_accuracy": fit["test_accuracy"],
        "logits_norm": float(logits.norm(dim=1).mean()),
        "sharpness": sharpness(net, data, device),
        "parameters": sum(p.numel() for p in net.parameters()),
        "controller": job.network if job.network in definitions.networks else controller_of(net.config),
        "depth": job.depth,
        "width": job.width,
        "seed": job.seed,
        "tns": numbers_of(tns.mean(1)),
        "stages": records.stage.tolist(),
        "first": records.first.tolist(),
        "step_size": moments(records.step_sizes),
        "made": {"seconds": net.about["seconds"], "threads": torch.get_num_threads(), **source()},
    }
    numbers |= {f"nsi_{of}": moments(records[of].nsi) for of in KINDS}
    arrays = {
        "nsi_slope": round_bits(records["slope"].nsi, 4),
        "tns": round_bits(tns, 6),
        "loss": round_bits(losses.numpy(), 5),
        "correct": (logits.argmax(1) == labels).numpy(),
    }
    return Measurement(job.specification, numbers, arrays)


def moments(values: np.ndarray) -> dict:
    """Mean and standard deviation over the images, per block."""
    return {"mean": numbers_of(values.mean(0)), "sd": numbers_of(values.std(0))}


def numbers_of(values) -> list[float | None]:
    """As JSON: six digits, None for what is not defined."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]


def round_bits(values: np.ndarray, bits: int) -> np.ndarray:
    """In half precision with so many binary digits behind the point only, which compresses well."""
    digits, exponent = np.frexp(values)
    return np.ldexp(np.round(digits * 2.0 ** (bits + 1)), exponent - bits - 1).astype(np.float16)


def sharpness(net: nb.Network, data: Dataset, device=None, radius: float = RADIUS) -> float:
    """Adaptive sharpness (Kwon et al. 2021): how far the training loss rises within a ball of relative size `radius`.

    The loss is that of the first SHARPENED training images in evaluation mode; the way up is one step along the
    gradient, each weight scaled by its own size. The network stays as it is.
    """
    device = device or best_device()
    images, labels = data.train_images[:SHARPENED].to(device), data.train_labels[:SHARPENED].to(device)
    shown = data.normalised(images).contiguous(memory_format=torch.channels_last)
    weights = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}

    def loss(at):
        return F.cross_entropy(functional_call(net, at, (shown,)), labels)

    here = loss(weights)
    slopes = torch.autograd.grad(here, list(weights.values()))
    with torch.no_grad():
        scaled = [p.abs() * slope for p, slope in zip(weights.values(), slopes, strict=True)]
        length = torch.stack([x.norm() for x in scaled]).norm()
        there = {name: p + radius * p.abs() * x / length for (name, p), x in zip(weights.items(), scaled, strict=True)}
        return float(loss(there) - here)


@dataclasses.dataclass(frozen=True)
class Stored:
    """The measurements that a study shows.

    networks  of its own networks, in the order of its plan
    own       of the networks that the user's files define
    diverged  the names of those whose training diverged
    """

    networks: list[Measurement]
    own: list[Measurement]
    diverged: list[str]

    @property
    def made(self) -> list[dict]:
        """Of each of them which code made it, as `Page.name_older` takes it."""
        return [one.made for one in (*self.networks, *self.own)]

    def notice(self, planned: Sequence, more: str = "") -> str:
        """What stands above a report as long as networks are missing; `more` joins it."""
        if len(self.networks) == len(planned):
            return ""
        return (
            f"{len(self.networks)} of {len(planned)} networks are measured, and the verdicts are "
            f"{more or 'theirs.'} `--train` makes the rest."
        )


def obtain(
    study: str,
    arguments,
    planned: Sequence[jobs.Job],
    shipped: Path,
    own: Sequence[jobs.Job] = (),
    follow: int = 0,
    executor=None,
) -> Stored:
    """The measurements there are of the networks that a study plans, made first where the options ask for it.

    study      its name
    arguments  its options, those of `options.ThreadOptions` and `train`
    planned    its networks
    shipped    the folder of the measurements that come with the repository; a smoke run leaves them aside
    own        networks that the user's files define
    follow     after every epoch the stiffness on so many test images joins the log
    executor   carries the jobs out in place of this process, as `work_off_on` says

    The study ends with a line that says what to do where nothing is measured.
    """
    work = arguments.out / "runs"
    folders = (work,) if arguments.smoke else (work, shipped)
    wanted, which = [*planned, *own], which_jobs(arguments)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if executor is not None:
        work_off_on(executor, wanted, work, folders[1:], arguments.data_root, files=arguments.define, **which)
    elif arguments.train or arguments.remeasure:
        work_off(wanted, work, folders[1:], arguments.data_root, arguments.device, follow, **which)
    networks = find_all(planned, folders)
    if not networks:
        raise SystemExit(f"studies.{study}: no measurement is there; `--train` makes them, resumably.")
    return Stored(networks, find_all(own, (work,)), jobs.list_diverged(wanted, folders))


def work_off(
    wanted: list[jobs.Job], work: Path, folders, root: Path | None = None, device=None, follow: int = 0, **which: bool
) -> list[str]:
    """Train and measure what `folders` do not have, in order; returns the names of what diverged.

    `which`: as `jobs.finder` takes it, missing=True, older=False where nothing is said.
    """
    return jobs.work_off(
        lambda: wanted,
        jobs.finder(lambda job: find(job, (work, *folders)), **which),
        lambda job: carry_out(job, work, root, device, follow),
        work,
    )


def work_off_on(
    executor, wanted: list[jobs.Job], work: Path, folders, root: Path | None = None, say=print, files=(), **which: bool
) -> None:
    """`work_off` by an executor, such as a Dask cluster's; each result is written here as it arrives.

    executor  has `submit`, as those of `concurrent.futures` and `Client.get_executor()` of Dask have
    files     those of `--define`, which every worker must be able to read
    which     as `work_off` takes it
    """
    finished = jobs.finder(lambda job: find(job, (work, *folders)), **which)
    missing = [job for job in wanted if finished(job) is None]
    files = [str(Path(file).resolve()) for file in files]
    waiting = {executor.submit(carry_out_elsewhere, job, root, files): job for job in missing}
    for future in concurrent.futures.as_completed(waiting):
        job = waiting[future]
        try:
            measured = future.result()
        except epochs.Diverged as error:
            jobs.note_divergence(job, work, str(error))
            say(f"{job.stem}: {error}")
            continue
        write(measured, work / f"{job.stem}.npz")
        say(f"{job.stem}: {measured}")


def carry_out_elsewhere(job: jobs.Job, root: Path | None = None, files=()) -> Measurement:
    """`carry_out` on a worker that shares no folder with this process: it trains in its machine's temporary folder."""
    remember_source()
    for file in files:
        definitions.run_file(Path(file))
    work = Path(tempfile.gettempdir()) / "odelab-runs"
    work.mkdir(exist_ok=True)
    return carry_out(job, work, root)
