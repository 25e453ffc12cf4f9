"""Options that several studies have, as dataclasses from which a study's own `Arguments` inherit them."""

import dataclasses
from pathlib import Path
from typing import Any, Literal, TypeVar

from netbridge.common.devices import best_device
from studies.lab.command import require_at_least

Tracing = TypeVar("Tracing", bound="TracingOptions")
Training = TypeVar("Training", bound="TrainingOptions")


@dataclasses.dataclass
class Options:
    """What every study of networks asks."""

    device: str | None = None
    """cpu, cuda, mps; the fastest there is by default."""
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results")
    """Where figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""
    verbose: bool = False
    """Print the tables and the names of all files as well."""


@dataclasses.dataclass
class ThreadOptions(Options):
    """What studies ask that train many small networks, in any number of processes."""

    threads: int | None = None
    """Threads of the processor to use; all by default. Several processes of one thread each are the fastest."""
    remeasure: bool = False
    """Train and measure again what other code than today's has measured; with --train what is missing, too."""


@dataclasses.dataclass
class TracingOptions(Options):
    """What studies ask that look at finished networks: those that are shipped, or networks of your own."""

    dataset: Literal["cifar10", "cifar100", "stl10", "digits"] = "cifar10"
    """What the networks were trained on."""
    fallback: Literal["digits"] | None = None
    """Run on this instead where the data set cannot be had; without it, that is an error."""
    controllers: tuple[str, ...] = ()
    """Only networks with these, e.g. constant se "asr(se)"; all by default."""
    seeds: tuple[int, ...] = ()
    """Only networks of these seeds; all by default."""
    checkpoint: tuple[Path, ...] = ()
    """Networks of your own, or folders of them, in place of the shipped ones: .safetensors of this repository, or
    published weights of a known ResNet (.th, .pth, .pt)."""
    define: tuple[Path, ...] = ()
    """Python files that define controllers of your own, to train them or to read networks that have them."""
    images: int | None = None
    """How many test images; the preset's by default."""
    resamples: int | None = None
    """How many resamples the bootstrap draws; the preset's by default."""


@dataclasses.dataclass
class TrainingOptions(ThreadOptions):
    """What studies ask that train networks, and ship what the networks scored instead of their weights."""

    train: bool = False
    """Train what is missing first; killed and started again, it goes on. Processes with one --out share the work."""
    dataset: Literal["cifar10", "cifar100", "stl10", "digits"] = "cifar10"
    """What to train on, and whose networks to look at."""
    fallback: Literal["digits"] | None = None
    """Take this instead where the data set cannot be had; without it, that is an error."""
    epochs: int | None = None
    """Another number of epochs than the recipe's or the study's usual one."""
    images: int | None = None
    """Train on the first so many images only."""
    own: bool = False
    """Leave the results that come with the repository aside."""
    seeds: tuple[int, ...] = ()
    """One number: so many, from 0 on; several: these."""
    ship: bool = False
    """Put new results where those of the repository are."""
    keep: bool = False
    """Keep the trained networks, not only what they scored."""


def fill_in(arguments: Tracing, preset: dict, available: int, fewest: int) -> Tracing:
    """The options with the numbers of images and resamples and the device filled in and checked.

    Too many images are an error only where `--images` was given.

    preset     the numbers of images and resamples to take where an option is not given
    available  how many test images there are
    fewest     how many test images the study needs
    """
    require_at_least(2, arguments, "resamples")
    images = min(preset["images"], available) if arguments.images is None else arguments.images
    if not fewest <= images <= available:
        message = f"`--images` must be between {fewest} and {available}, the test images there are; got {images}."
        raise SystemExit(message)
    resamples = preset["resamples"] if arguments.resamples is None else arguments.resamples
    device = arguments.device or str(best_device())
    return dataclasses.replace(arguments, images=images, resamples=resamples, device=device)


def use_scale(arguments: Training, scale: dict[str, Any]) -> Training:
    """The options, those that were not given with the values that a study usually takes at this scale."""
    missing = {name: value for name, value in scale.items() if getattr(arguments, name) in (None, ())}
    return dataclasses.replace(arguments, **missing)


def which_jobs(arguments) -> dict[str, bool]:
    """What of a queue the options `train` and `remeasure` ask for, as `jobs.finder` takes it."""
    return {"missing": arguments.train or not arguments.remeasure, "older": arguments.remeasure}


def check_training(arguments: TrainingOptions) -> tuple[int, ...]:
    """The seeds that the option asks for, one number standing for so many from 0 on; `--own --ship` is an error."""
    seeds = arguments.seeds
    seeds = tuple(range(seeds[0])) if len(seeds) == 1 else tuple(dict.fromkeys(seeds))
    if not seeds or min(seeds) < 0:
        raise SystemExit(f"`--seeds` is a number of seeds, or several of them from 0 on; got {arguments.seeds}.")
    if arguments.own and arguments.ship:
        raise SystemExit("`--own` leaves the results of the repository aside and `--ship` adds to them: choose one.")
    return seeds
