"""Figures 1-3, 6, 7, 9, 10 and Table 1 of the first paper on trained networks and real images (about 1 min).

Claim examined: networks with attention measure more stiffness, and the more of it, the better they are (Huang, Liang et
al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The report says what these networks
and images have to say about it, under every reading the paper leaves open.
"""

import dataclasses
import resource
import shlex
import sys
from pathlib import Path
from typing import Literal

import torch
import tyro
from rich.progress import Progress

import netbridge as nb
from studies import train
from studies.cifar_tns.findings import findings
from studies.cifar_tns.page import Page, tell
from studies.cifar_tns.tables import correlations
from studies.lab import networks as _networks
from studies.lab.images import images_or_fallback
from studies.lab.measure import BATCH, measure, total_stiffness
from studies.lab.page import Report
from studies.lab.results import Record, commit, plain, versions
from studies.lab.statistics import choices

PRESETS = {"quick": {"images": 1000, "resamples": 200}, "full": {"images": 10_000, "resamples": 1000}}


@dataclasses.dataclass
class Arguments:
    """Stiffness of trained networks on test images: figures, tables, conclusions, and report.html with all of it."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 1,000 test images; full: all of them, and more resamples."""
    dataset: Literal["cifar10", "cifar100", "stl10", "digits"] = "cifar10"
    """What the networks were trained on."""
    fallback: Literal["digits"] | None = None
    """Run on this instead where the data set cannot be had; without it, that is an error."""
    depth: int | None = None
    """Only networks with so many layers."""
    controllers: tuple[str, ...] = ()
    """Only these, e.g. constant se "asr(se)"; all by default."""
    seeds: tuple[int, ...] = ()
    """Only these; all by default."""
    checkpoint: tuple[Path, ...] = ()
    """Networks of your own, or folders of them, in place of the shipped ones: .safetensors of this repository, or
    published weights of a known ResNet (.th, .pth, .pt)."""
    define: tuple[Path, ...] = ()
    """Python files that define controllers of your own, to train them or to read networks that have them."""
    train: bool = False
    """Train what is missing of these controllers and seeds first, resumably, and look at those networks."""
    recipe: str = "short"
    """How to train: short, medium, paper, ...; see python -m studies.train --help."""
    images: int | None = None
    """How many test images; the preset's by default."""
    resamples: int | None = None
    """For the bootstrap; the preset's by default."""
    device: str | None = None
    """cpu, cuda, mps; the fastest there is by default."""
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results/cifar_tns")
    """Where figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(
            arguments, dataset="digits", controllers=("constant", "se"), images=64, resamples=20
        )
    for path in arguments.define:
        _networks.adopt(path)
    data, notice, arguments = images_or_fallback(
        "studies.cifar_tns", arguments, "shows networks trained on", no_networks
    )
    if notice:
        print(f"{notice}\n", flush=True)
    arguments = settled(arguments, len(data.test_images))
    if arguments.train:
        arguments = dataclasses.replace(arguments, checkpoint=(trained(arguments),), train=False)
    subjects = chosen(arguments, data)
    record = Record("cifar_tns", arguments, arguments.out)
    results = measured(subjects, data, arguments)
    related = correlations(results, max(arguments.resamples, 100), seed=0)
    found = findings(results, related[0])

    report = Report(
        f"Stiffness and accuracy of residual networks on {data.name}",
        f"{len(results)} networks, {len({r.name for r in results})} controllers, {arguments.images} test images. After "
        "Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective (2023).",
        notice,
    )
    report.heading("What these data say")
    for finding in found:
        report.finding(finding)
    tell(Page(record, report), results, related, len(data.test_images))
    closing(report, arguments)
    report.write(arguments.out / "report.html")
    record.numbers["notice"] = notice
    record.numbers["findings"] = plain(found)
    record.numbers["command"] = command(arguments)
    record.numbers["peak memory (GB)"] = peak_memory()
    record.text("conclusions", conclusions(found, notice))
    print(f"\n{len(record.files)} files of figures (PNG, SVG) and tables (Markdown, CSV), all shown in report.html.")
    record.files = [arguments.out / "conclusions.md", arguments.out / "report.html"]
    record.close()


def no_networks(arguments) -> str:
    """Why the data set alone is not enough."""
    if arguments.checkpoint or arguments.train or shipped(arguments.dataset):
        return ""
    return f"no networks trained on {arguments.dataset} come with this copy of the repository."


def settled(arguments, available: int):
    """Every number given; more images than there are is an error only where they were asked for by number."""
    preset = PRESETS[arguments.preset]
    images = min(preset["images"], available) if arguments.images is None else arguments.images
    if not 2 <= images <= available:
        raise SystemExit(f"`--images` must be between 2 and {available}, the test images there are; got {images}.")
    resamples = preset["resamples"] if arguments.resamples is None else arguments.resamples
    if resamples < 2:
        raise SystemExit(f"`--resamples` must be at least 2, got {resamples}.")
    device = arguments.device or next((d for d in ("cuda", "mps") if getattr(torch, d).is_available()), "cpu")
    return dataclasses.replace(arguments, images=images, resamples=resamples, device=device)


def shipped(dataset: str) -> list[Path]:
    return sorted((train.SHIPPED / dataset).glob("*.safetensors"))


def trained(arguments) -> Path:
    """The folder of the networks asked for; what is there already is not trained again."""
    folder = Path("results/train") / f"{arguments.dataset}-{arguments.recipe}"
    for controller in arguments.controllers or train.CONTROLLERS:
        for seed in arguments.seeds or (0, 1):
            train.main(
                train.Arguments(
                    controller=controller if controller in nb.controllers() else controller.lower(),
                    seed=seed,
                    depth=arguments.depth or 20,
                    recipe=arguments.recipe,
                    dataset=arguments.dataset,
                    data_root=arguments.data_root,
                    out=folder,
                    device=arguments.device,
                )
            )
    return folder


def chosen(arguments, data) -> list[_networks.Subject]:
    """The networks asked for, or what stands in the way."""
    paths = _networks.files(arguments.checkpoint) if arguments.checkpoint else shipped(data.name)
    subjects = _networks.named([_networks.subject(path) for path in paths])
    kept = [
        one
        for one in subjects
        if arguments.depth in (None, one.depth)
        and (not arguments.controllers or one.controller.casefold() in map(str.casefold, arguments.controllers))
        and (not arguments.seeds or one.seed in arguments.seeds)
    ]
    if not kept:
        there = ", ".join(sorted({f"{s.controller} (depth {s.depth}, seed {s.seed})" for s in subjects})) or "none"
        raise SystemExit(
            f"no network for {data.name} fits `--depth`, `--controllers` and `--seeds`. There are: {there}. Train one "
            f"with `python -m studies.train --dataset {data.name}` and hand it over with --checkpoint."
        )
    for one in kept:
        if one.net.config["num_classes"] != len(data.names):
            raise SystemExit(
                f"{one.source} tells {one.net.config['num_classes']} classes apart, {data.name} has {len(data.names)}: "
                "choose its `--dataset`."
            )
        if max(one.net.config["blocks"]) < 2:
            raise SystemExit(
                f"{one.source} has one block in every stage, and none that opens a stage is counted: nothing of its "
                "stiffness can be measured. Take a deeper network: a CIFAR ResNet of 20 layers or more."
            )
    return kept


def measured(subjects, data, arguments) -> list:
    nb.tune_allocator()
    draws = choices(arguments.images, arguments.resamples, seed=0)
    results = []
    with Progress(transient=True) as progress:
        task = progress.add_task("tracing", total=len(subjects) * arguments.images)
        for one in subjects:
            progress.update(task, description=f"tracing {one.name}")
            found = measure(one, data, arguments.images, arguments.device, lambda n: progress.advance(task, n))
            total_stiffness(found, draws)
            one.net.cpu()
            results.append(found)
    return results


def conclusions(found, notice) -> list[str]:
    lines = ["# Conclusions", ""] + ([notice, ""] if notice else [])
    for finding in found:
        lines += [f"- {finding.claim} ({finding.where})", f"  {finding.verdict.capitalize()}. {finding.words}"]
    return lines


def closing(report, arguments):
    report.heading("Run it again")
    report.code(command(arguments))
    report.facts(
        {
            "Commit": commit(),
            "Versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
            "Python": sys.version.split()[0],
            "Device": f"{arguments.device}, {torch.get_num_threads()} threads, batches of {BATCH}",
            "Peak memory": f"{peak_memory():.2f} GB",
        }
    )


def command(arguments) -> str:
    """What to type for this run, every choice that is not a default spelled out."""
    words = ["python", "-m", "studies.cifar_tns"]
    for field in dataclasses.fields(arguments):
        value = getattr(arguments, field.name)
        default = field.default
        if field.name == "out" or value == default:
            continue
        words.append(f"--{field.name.replace('_', '-')}")
        if not isinstance(value, bool):
            words += [str(part) for part in (value if isinstance(value, tuple) else (value,))]
    return shlex.join(words)


def peak_memory() -> float:
    """Gigabytes at most so far; the system counts in kilobytes, on macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)


if __name__ == "__main__":
    main(tyro.cli(Arguments, prog="python -m studies.cifar_tns", description=__doc__))
