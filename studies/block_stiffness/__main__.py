"""Tables 1-11 and Figure 2 of the block-level paper on trained networks, and what their numbers are (about 4 min).

Claim examined: late residual blocks of a ResNet are stiff, and their stiffness correlates with accuracy and loss
(Block-level Stiffness Analysis of Residual Networks). Three readings of "the Jacobian of a block" stand side by side:
the H x W slices that an unflattened Jacobian tensor gives, the whole block, and the branch. A verdict is that of the
best evidence there is, the record that comes with the study; a quick run shows whether it reproduces it.

Last result (ResNet-20, CIFAR-10, 2026-11-19): the printed numbers are those of slices, by all 24 counts and by level,
order and S of untrained networks, against both other readings. By the paper's two measures late blocks are the stiffer
ones: from the first stage to the last S falls by 4.5 [3.6, 5.4] over 23 networks, because late blocks decay more
slowly. The stiffest block of a network does not reach Euler's limit at a typical image, -1.78 [-1.87, -1.69]. Asked
with the paper's 3,400 images (2026-11-20), the last stage shows no difference (Tables 1, 4, 7): S goes with accuracy by
-0.01 [-0.05, +0.03] and with the loss by +0.02 [-0.02, +0.06], the percentage by -0.00 [-0.04, +0.03] and -0.01 [-0.04,
+0.03], where 400 images had shown +0.14; of single blocks, S of the last one goes with the loss by +0.14, with live
outputs held fixed, too. Labels have certainly more than 5 % of the variance in 2 of 18 cases. S orders the blocks by
Euler's error (-0.96 [-1.00, -0.50]); of networks and images that is open. Whether a ResNet is an ODE-net depends on how
long both were fitted. ResNet-14 of the digits, run as equations by dopri5, fall from 90 % to 14 %.
"""

import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
from pathlib import Path
from typing import Literal

import torch

from studies.block_stiffness import (
    constant_gates,
    gathering,
    measures,
    ode_nets,
    record,
    slices_alone,
    subjects,
    trainings,
)
from studies.block_stiffness.findings import evidence, judge_all
from studies.block_stiffness.gathering import submit
from studies.block_stiffness.report import sections
from studies.block_stiffness.subjects import STUDY
from studies.lab.command import command_line, require_at_least, start
from studies.lab.networks import images_or_fallback
from studies.lab.options import Options
from studies.lab.page import Page

EPOCHS = {"smoke": (1, 1), "quick": (16, 5), "full": (16, 20), "paper": (16, 20)}  # and images of each look
DEPTH_EPOCHS, ODE_EPOCHS = 8, 4  # of networks of several depths and of ODE-nets on the digits, in full runs
FITS = {"smoke": (3, 5), "quick": (5, 300), "full": (8, 1500), "paper": (8, 1500)}  # seeds, rounds


@dataclasses.dataclass
class Arguments(Options):
    """Spectra of every residual block of a trained network, in three readings: tables, figures, verdicts."""

    device: str | None = None
    """cpu (the default), cuda, mps; on a GPU everything runs there, in one process, which has not been tried yet."""
    preset: Literal["quick", "full", "paper"] = "quick"
    """quick: 2 to 4 images a label; full: 10 to 40; paper: for networks of your own, slices of all rows."""
    dataset: Literal["cifar10", "digits"] = "cifar10"
    """What the network was trained on."""
    fallback: Literal["digits"] | None = None
    """Run on this instead where the data set cannot be had; without it, that is an error."""
    network: str | None = None
    """A shipped network, as `nb.pretrained()` lists them; by default the plain one of seed 0."""
    checkpoint: tuple[Path, ...] = ()
    """Networks of your own in place of a shipped one, or folders of them: .safetensors of this repository, or published
    weights. The first is looked at in everything, the others by block."""
    stem: Literal["imagenet", "cifar", "cifar-pooled"] | None = None
    """How published weights begin, which a file does not tell: the paper's geometry is cifar-pooled, a 3x3 convolution
    and a max-pool."""
    mean: tuple[float, ...] = ()
    """Of published weights: the mean of red, green and blue, from 0 to 1, that was taken off the images they were
    trained on; with --std. Without them, 0.4914 0.4822 0.4465 and 0.2023 0.1994 0.2010, which many but not all use."""
    std: tuple[float, ...] = ()
    """Of published weights: the deviations that the images were divided by, such as 0.2471 0.2435 0.2616."""
    expect: float | None = None
    """The accuracy in per cent that the network is known to have; a run that measures another one, by more than a point
    beyond chance, ends before it begins. Without it, what was measured is printed."""
    controllers: tuple[str, ...] = ()
    """Of all the shipped networks, only those with these step sizes, e.g. constant se "asr(se)"; all by default."""
    seeds: tuple[int, ...] = ()
    """Of all the shipped networks, only those of these seeds; all by default."""
    parts: tuple[Literal["residual", "block", "slices", "correlations"], ...] = ("residual", "block", "slices")
    """Readings of "the Jacobian of a block": its branch, the whole block, slices of the unflattened Jacobian. The
    branch belongs to every choice, because the error of a step is compared with it. "correlations" is a run of its own:
    slices alone at many images, against accuracy and loss; 36 minutes of one core for a ResNet-20, resumable."""
    slice_images: int = slices_alone.IMAGES
    """Test images of "correlations"; the paper's tables allow about 3,400."""
    images: int | None = None
    """Images a label for every measure, instead of the preset's numbers; a smaller run is part of a larger one."""
    full_spectra: int = 0
    """Images at which all eigenvalues of the first stage are found, instead of its ends alone: half a minute and 0.9 GB
    for each block of 16,384 units."""
    epochs: int | None = None
    """Epochs of the training on the digits that is followed; 0 leaves it out; 16 by default."""
    train: bool = False
    """Train a ResNet-18 of the paper's geometry, a quarter as wide, and look at it after every epoch; about 10 minutes
    on one core. A stopped training goes on."""
    ode_net: bool = True
    """Fit residual networks and ODE-nets to random points (Figure 2); full: also train ODE-nets on the digits."""
    precision: Literal["float32", "float64"] = "float32"
    """Of spectra: float32 is two to four times faster and counts the signs of reduced blocks exactly."""
    resamples: int = 200
    """How many resamples the bootstrap of variance shares draws."""
    every_network: int | None = None
    """Look at every shipped network of the data set at this many test images, hours for a hundred; full: 100. Otherwise
    what the last such run found, which comes with the study, is shown with its date."""
    more: bool = False
    """Also what full adds, an hour: networks of 14 to 56 layers and ODE-nets on the digits, and constants in the place
    of learnt step sizes."""
    ship: bool = False
    """Write what this run and every network showed into the study's folder, in place of what came with it."""
    workers: int = 2
    """Processes that compute, one thread each."""
    scheduler: str | None = None
    """Address of a Dask scheduler, whose workers compute the spectra instead."""
    cache: Path | None = None
    """A folder that keeps every spectrum, so that a stopped run goes on; results/block_stiffness/cache by default."""
    out: Path = Path("results/block_stiffness")
    """Where figures, tables, report.html and record.json go."""


def main(arguments: Arguments):
    require_at_least(1, arguments, "workers", "resamples", "every_network", "images", "slice_images")
    require_at_least(0, arguments, "full_spectra", "epochs")
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, dataset="digits", workers=1, resamples=20, slice_images=20)
    parts = tuple(dict.fromkeys(("residual", *arguments.parts)))
    arguments = dataclasses.replace(arguments, device=arguments.device or "cpu", parts=parts)
    if arguments.device != "cpu" and (arguments.workers > 1 or arguments.scheduler):
        print("On a GPU one process computes everything: `--workers 1`.", flush=True)
        arguments = dataclasses.replace(arguments, workers=1, scheduler=None)
    with contextlib.ExitStack() as stack:
        executor = None
        if arguments.scheduler is not None:
            from distributed import Client

            executor = stack.enter_context(Client(arguments.scheduler))
        elif arguments.workers > 1:  # one pool for everything: a process takes seconds to start
            context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads, and hang
            pool = concurrent.futures.ProcessPoolExecutor(
                arguments.workers, context, initializer=torch.set_num_threads, initargs=(1,)
            )
            stack.callback(pool.shutdown, cancel_futures=True)
            executor = pool
        run_study(arguments, executor)


def run_study(arguments: Arguments, executor):
    """The whole study, in the order of its page."""
    preset = "smoke" if arguments.smoke else arguments.preset
    data, notice, arguments = images_or_fallback(STUDY, arguments, "looks at a network trained on")
    (net, name), *others = subjects.choose_networks(arguments, data)
    for one, its_name in ((net, name), *others):
        subjects.check_accuracy(one, its_name, data, arguments)
    folder = arguments.cache or arguments.out / "cache"
    work = {"workers": arguments.workers, "executor": executor, "cache": folder}
    work["dtype"] = getattr(torch, arguments.precision)
    if "correlations" in arguments.parts:
        return slices_alone.run(arguments, net, name, data, work)
    size = measures.size_of(preset, arguments.images)
    count, looks = EPOCHS[preset]
    rounds = count if arguments.epochs is None else arguments.epochs
    trained = submit(executor, trainings.rows_through_training, rounds, looks) if rounds else list
    seeds, steps = FITS[preset] if arguments.ode_net else (0, 0)
    fitted = [submit(executor, ode_nets.fit_both, seed, steps) for seed in range(seeds)]
    if data.name == "cifar10":
        minutes = measures.planned_seconds(size) / 60
        print(f"The spectra of a ResNet-20 take about {minutes:.0f} minutes of processor time.", flush=True)
    more = preset == "full" or arguments.more
    deeper = submit(executor, trainings.rows_of_depths, folder, DEPTH_EPOCHS) if more else list
    solved = submit(executor, ode_nets.rows_of_seeds, folder, ODE_EPOCHS) if more and arguments.ode_net else list
    page = Page(
        STUDY,
        arguments,
        "Jacobians of residual blocks, and what they say",
        f"{name} on {data.name}. After Block-level Stiffness Analysis of Residual Networks (ICLR 2023 submission).",
        notice,
    )
    found = gathering.measure_blocks(net, name, data, size, work, arguments)
    inner = [block for block in found.blocks if len(measures.rows_of(found, block, "residual"))]
    told = gathering.compute_all(net, data, found, inner, arguments, preset, size, work)
    told |= {"depths": deeper(), "tolerances": solved(), "swapped": []}
    if more:
        told["swapped"] = constant_gates.summary_rows(gathering.constants_for_gates(data, work))
    told["trained"] = trained()
    told["geometry"] = []
    if arguments.train:
        print("Training a ResNet-18 of the paper's geometry, a quarter as wide.", flush=True)
        for seed in arguments.seeds or (0,):
            told["geometry"] += trainings.train_papers_geometry(data, seed, 4, folder, arguments.device)
    told["fits"] = [fit for fits in fitted for fit in fits()]
    own = evidence.of_run(found, told, inner, bool(arguments.checkpoint))
    digest, kept = record.digest_of(net), None if arguments.smoke else record.read(record.path_of(data.name))
    kept = kept if kept and (kept[0]["network"], kept[0]["digest"]) == (name, digest) else None
    best = evidence.best_of(own, evidence.of_record(kept))
    alone = None if arguments.smoke else slices_alone.find(name, digest, arguments.out, record.SHIPPED)
    if alone is not None:
        best = evidence.best_of(best, slices_alone.evidence_of(alone))
    told |= {"related": best.relations, "components": best.components, "errors": best.errors, "turned": best.turned}

    page.heading("What these data say")
    size_of_net = f"{sum(p.numel() for p in net.parameters()):,}"
    page.words(
        f"The paper looks at ResNet-18, ResNet-34 and ResNet-50, of 11 to 24 million parameters; this network has "
        f"{size_of_net}. Values are this network's, and only patterns can be compared with the paper's."
    )
    judged = judge_all(best, found.blocks)
    page.findings(judged)
    clouds = ["residual"] if arguments.smoke else arguments.parts
    sections.write_sections(page, net, data, found, told, inner, clouds, looks)
    for number, (other, its_name) in enumerate(others, 2):
        looked = gathering.measure_blocks(other, its_name, data, size, work, arguments)
        sections.another(page, other, looked, its_name, number)
    sections.this_run(page, found, kept, judged, judge_all(own, found.blocks))
    if arguments.ship:
        ship(arguments, digest, name, data, size, told | page.numbers | evidence.to_record(own))
    elif not more and not arguments.smoke:
        sections.from_the_record(page, found, record.read(record.path_of(data.name)), size)
    page.close()


def ship(arguments: Arguments, digest: str, name: str, data, size: measures.Size, numbers: dict):
    """Write what this run showed into the folder of the study."""
    about = {
        "dataset": data.name,
        "network": name,
        "digest": digest,
        "command": command_line(STUDY, without_places(arguments)),
        "images a label": size._asdict(),
    }
    record.write(about, numbers, record.path_of(data.name))


def without_places(arguments: Arguments) -> Arguments:
    """The options without what is one machine's own: folders, a processor, the address of a scheduler."""
    nowhere = {name: getattr(Arguments, name) for name in ("out", "cache", "data_root", "device", "scheduler")}
    return dataclasses.replace(arguments, **nowhere, checkpoint=tuple(Path(one.name) for one in arguments.checkpoint))


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
