"""Tables 1-11 and Figure 2 of the block-level paper on trained networks, and what their numbers are (about 4 min).

Claim examined: late residual blocks of a ResNet are stiff, and their stiffness correlates with accuracy and loss
(Block-level Stiffness Analysis of Residual Networks). Three readings of "the Jacobian of a block" stand side by side:
the H x W slices that an unflattened Jacobian tensor gives, the whole block, and the branch. A verdict is that of the
best evidence there is, the record that comes with the study; a quick run shows whether it reproduces it.

Last result (ResNet-20, CIFAR-10, 2026-11-19): S orders the blocks of a network by Euler's error, Spearman's correlation
-0.84 [-0.89, -0.79], the mean over 23 networks and the largest of nine measures; over the means of the seven blocks it
is -0.96 [-1.00, -0.50], and of networks and images it is open. The printed numbers are those of slices, by all 24
counts and by level, order and S of untrained networks, against both other readings. By the paper's two measures late
blocks are the stiffer ones: from the first stage to the last S falls by 4.5 [3.6, 5.4] over 23 networks, because late
blocks decay more slowly. The stiffest block of a network does not reach Euler's limit at a typical image, -1.78 [-1.87,
-1.69]. Asked with the paper's 3,400 images (2026-11-20), the last stage shows no difference (Tables 1, 4, 7): S goes
with accuracy by -0.01 [-0.05, +0.03] and with the loss by +0.02 [-0.02, +0.06], the percentage by -0.00 [-0.04, +0.03]
and -0.01 [-0.04, +0.03], where 400 images had shown +0.14; of single blocks, S of the last one goes with the loss by
+0.14, with live outputs held fixed, too. Labels have certainly more than 5 % of the variance in 2 of 18 cases. Whether
a ResNet is an ODE-net depends on how long both were fitted. ResNet-14 of the digits, run as equations by dopri5, fall
from 90 % to 14 %.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import multiprocessing
from pathlib import Path
from typing import Literal

import numpy as np
import torch

import netbridge as nb
from studies.block_stiffness import answers, blocks, evidence, measures, networks, printed, trained
from studies.block_stiffness.evidence import SHIPPED, STUDY, Evidence, digest_of
from studies.block_stiffness.measures import READINGS, SPECTRA, Measured
from studies.lab.command import command_line, plain_errors, require_at_least, start
from studies.lab.exhibits import Exhibit, judge, show
from studies.lab.networks import checkpoints, images_or_fallback, read_subject, select
from studies.lab.options import Options
from studies.lab.page import Page
from studies.lab.stiffness import prepare
from studies.lab.verdicts import Finding

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
    slice_images: int = answers.IMAGES
    """Test images of "correlations"; the paper's tables allow about 3,400."""
    images: int | None = None
    """Images a label for every measure, instead of the preset's numbers; a smaller run is part of a larger one."""
    epochs: int | None = None
    """Epochs of the training on the digits that is followed; 0 leaves it out; 16 by default."""
    train: bool = False
    """Train a ResNet-18 of the paper's geometry, a quarter as wide, and look at it after every epoch; about 10 minutes
    on one core. A stopped training goes on."""
    ode_net: bool = True
    """Fit residual networks and ODE-nets to random points (Figure 2); full: also train ODE-nets on the digits."""
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


PLAIN = {"cifar10": "cifar10/resnet20-constant-seed0", "digits": "digits/resnet32-width4-constant-seed0"}
NETWORKS = {"full": 100}  # images of every shipped network
SWAPPED_IMAGES = 2  # at which learnt step sizes are compared with constants


def main(arguments: Arguments):
    require_at_least(1, arguments, "workers", "resamples", "every_network", "images", "slice_images")
    require_at_least(0, arguments, "epochs")
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
    data, notice, arguments = images_or_fallback(STUDY, arguments, "looks at a network trained on")
    subjects = choose_networks(arguments, data)
    for net, name in subjects:
        check_accuracy(net, name, data, arguments)
    net, name = subjects[0]
    folder = arguments.cache or arguments.out / "cache"
    work = {"workers": arguments.workers, "executor": executor, "cache": folder}
    if "correlations" in arguments.parts:
        return look_at_slices(arguments, net, name, data, work)
    size = measures.size_of("smoke" if arguments.smoke else arguments.preset, arguments.images)
    page = Page(
        STUDY,
        arguments,
        "Jacobians of residual blocks, and what they say",
        f"{name} on {data.name}. After Block-level Stiffness Analysis of Residual Networks (ICLR 2023 submission).",
        notice,
    )
    own = measure_all(arguments, data, subjects, size, work)
    record = None if arguments.smoke else evidence.read_record(evidence.record_of(data.name))
    best = choose_best(own, record, name, digest_of(net), arguments)
    page.lead(networks.say_best(best.networks))
    page.findings(findings(best))
    page.heading("What these data say")
    page.words(
        f"The paper looks at ResNet-18, ResNet-34 and ResNet-50, of 11 to 24 million parameters; this network has "
        f"{sum(p.numel() for p in net.parameters()):,}. Values are this network's, and only patterns can be compared "
        "with the paper's."
    )
    show(page, EXHIBITS, best)
    compare_with_record(page, own, best, size)
    if arguments.ship:
        about = {"dataset": data.name, "network": name, "digest": digest_of(net)}
        about |= {"command": command_line(STUDY, without_places(arguments)), "images a label": size._asdict()}
        anew = {"depths": own.depths, "swapped": own.swapped, "tolerances": own.solved}  # the page may show older ones
        evidence.write_record(about, page.numbers | anew, own, evidence.record_of(data.name))
    page.close()


def submit(executor, function, *arguments):
    """Start a call at once where there is an executor, at the latest when its result is asked for; returns a getter."""
    if executor is None:
        return functools.partial(function, *arguments)
    return executor.submit(function, *arguments).result


def measure_all(arguments: Arguments, data, subjects: list[tuple], size: measures.Size, work: dict) -> Evidence:
    """Everything that is computed, of the networks that were asked for and of those that the study trains itself."""
    (net, name), *others = subjects
    preset, folder = "smoke" if arguments.smoke else arguments.preset, work["cache"]
    more, start_call = preset == "full" or arguments.more, functools.partial(submit, work["executor"])
    epochs, looks = EPOCHS[preset]
    epochs = epochs if arguments.epochs is None else arguments.epochs
    in_training = start_call(trained.rows_through_training, epochs, looks) if epochs else list
    seeds, rounds = FITS[preset] if arguments.ode_net else (0, 0)
    fits = [start_call(trained.fit_both, seed, rounds) for seed in range(seeds)]
    deeper = start_call(trained.rows_of_depths, folder, DEPTH_EPOCHS) if more else list
    solved = start_call(trained.rows_of_seeds, folder, ODE_EPOCHS) if more and arguments.ode_net else list

    def measure(net, name: str) -> Measured:
        return measures.measure(net, name, data, size, work, arguments.parts)

    measured = measure(net, name)
    inner = tuple(block for block in measured.blocks if len(measures.rows_of(measured, block, "residual")))
    seen = prepare(net, data, data.test_images[: size.flows])
    flows = start_call(answers.accuracy_by_flow, net, seen, data.test_labels[: size.flows])
    everything = find_every_network(data, preset, arguments, work)
    own = bool(arguments.checkpoint) or not everything.about
    targets = answers.robustness(net, data, np.unique(measured.table["image"]))
    inputs = blocks.other_inputs(net, data, inner[-3:] if arguments.smoke else inner, size.inputs, work)
    readings = [reading for reading in READINGS if reading in arguments.parts]
    spectra = [reading for reading in SPECTRA if reading in arguments.parts]
    relations = functools.partial(evidence.relations, measured)
    return Evidence(
        measured=measured,
        others=tuple(measure(*other) for other in others),
        inner=inner,
        label_names=tuple(data.names),
        untrained=tuple(printed.measure_untrained(data, printed.NARROW if arguments.smoke else printed.QUARTER, work)),
        everything=everything,
        networks=tuple(networks.rows_of_network(measured, inner) if own else everything.rows),
        components=(
            *blocks.label_components(measured, spectra, blocks.LABELLED, inner),
            *blocks.label_components(measured, ["slices"], answers.CLAIMED, measured.blocks),
        ),
        resamples=arguments.resamples,
        relations=tuple(relations(answers.targets_of(measured), answers.CLAIMED, readings, measured.blocks)),
        targets=targets,
        turned=tuple(relations(targets, answers.TURNED, ["residual"], inner)),
        errors=tuple(answers.error_relations(measured, measures.MEASURES, inner)),
        inputs=inputs,
        orders=tuple(blocks.orders_of(measured, inputs, len(inner))),
        accuracies=flows(),
        precision=() if arguments.smoke else tuple(blocks.precision_rows(net, data, inner, work)),
        clouds={
            part: blocks.clouds_of(net, data, measured, part) for part in (["residual"] if arguments.smoke else spectra)
        },
        depths=tuple(deeper()),
        solved=tuple(solved()),
        swapped=tuple(constants_for_gates(data, work)) if more else (),
        trained=tuple(in_training()),
        looks=looks,
        geometry=tuple(
            row
            for seed in (arguments.seeds or (0,) if arguments.train else ())
            for row in trained.train_papers_geometry(data, seed, 4, folder, arguments.device)
        ),
        fits=tuple(fit for fitted in fits for fit in fitted()),
    )


def find_every_network(data, preset: str, arguments: Arguments, work: dict) -> evidence.Everything:
    """Measured now where that is asked for, else what the last large run left.

    Of a run that has more, only the controllers and seeds that the options ask for are shown.
    """
    images = arguments.every_network or NETWORKS.get(preset)
    there = networks.networks_of(data.name)
    names = [net.name for net in select(there, arguments, data.name, "Leave the options out for all of them.")]
    if images is None:
        run = networks.shipped_run(data.name)
        return run._replace(rows=[row for row in run.rows if row["network"] in names])
    run = networks.look_at_all(data, images, work, names)
    if arguments.ship:
        networks.write_all(run)
    return run


def constants_for_gates(data, work: dict) -> list[dict]:
    """Learnt step sizes beside constants in their place; minutes, so that rows are kept in the folder of the cache."""
    made = functools.partial(networks.swapped_rows, data, SWAPPED_IMAGES, 500, work)
    path = work["cache"] / f"swapped-{data.name}-{SWAPPED_IMAGES}.json"
    return networks.swapped_summary(evidence.keep_rows(path, made))


def choose_best(own: Evidence, record: Evidence | None, name: str, digest: str, arguments: Arguments) -> Evidence:
    """The best evidence there is: of this run, of the record and of slices alone, where these are of this network."""
    if record is None:
        return own
    if (record.about["network"], record.about["digest"]) != (name, digest):
        record = Evidence(depths=record.depths, swapped=record.swapped, about=record.about)
    best = evidence.best_of(own, record)
    slices = answers.find_slices(name, digest, arguments.out, SHIPPED)
    return best if slices is None else evidence.best_of(best, slices.evidence())


def findings(best: Evidence) -> list[Finding]:
    """Every claim in the order of the page, in the words of the figures."""
    return [evidence.in_words(finding, best.blocks) for finding in judge(EXHIBITS, best)]


def compare_with_record(page: Page, own: Evidence, best: Evidence, size: measures.Size):
    """What this run alone would have said, beside the verdicts of the best evidence; does it reproduce the record?"""
    about, recorded = best.about, best.tables.get("by_block", [])
    if not about:
        return
    page.heading("Does this run reproduce the record?")
    page.words(
        f"The record comes with the study: {about['date']}, commit {about['commit']}, network {about['network']} "
        f"(weights {about['digest']}), `{about['command']}`. Networks of several depths, at several tolerances and "
        "with constants for learnt step sizes are of it where this run has none.",
        page.name_older([about], evidence.REMEDY),
    )
    if not recorded:
        return
    compared = blocks.reproduction_rows(own.measured, recorded)
    same = sum(row["reproduced"] == "yes" for row in compared)
    page.words(
        "The verdicts above are those of the best evidence there is of this network: the record where it has more "
        f"images. Of {len(compared)} means over images in it, {same} lie within the intervals of this run's images, "
        "which hold together."
    )
    page.table(
        "this_run",
        [
            {"claim": finding.claim, "verdict": str(finding.verdict), "by this run alone": str(alone.verdict)}
            for finding, alone in zip(findings(best), findings(own), strict=True)
        ],
        "The verdicts, and what this run alone would have said",
    )
    page.table("reproduced", compared, "Means over images: the record, and this run", told=False)
    if sum(about["images a label"]["spectra"]) > sum(size.spectra):
        page.table("large_by_block", recorded, "Every block in three readings", "As above, over more images.")


def look_at_slices(arguments: Arguments, net, name: str, data, work: dict):
    """Look at slices alone, keep what they say, and say what it answers."""
    page = Page(STUDY, arguments, "Slices of Jacobians, and right answers", f"{name} on {data.name}.")
    slices = answers.measure_slices(net, name, data, arguments.slice_images, work)
    answers.write_slices(slices, answers.path_of(SHIPPED if arguments.ship else arguments.out, name))
    page.findings([evidence.in_words(finding, slices.blocks) for finding in judge(answers.SLICES, slices)])
    show(page, answers.SLICES, slices)
    page.close()


def choose_networks(arguments, data) -> list[tuple]:
    """Networks, ready to be looked at, and what they are called."""
    if arguments.checkpoint:
        with plain_errors(STUDY):
            how = arguments.stem, normalisation_of(arguments)
            subjects = [read_subject(path, *how) for path in checkpoints(arguments.checkpoint)]
        return [(subject.net.eval().to(arguments.device), subject.source) for subject in subjects]
    name = arguments.network or PLAIN[data.name]
    with plain_errors(STUDY):
        return [(nb.pretrained(name).eval().to(arguments.device), name)]


def normalisation_of(arguments) -> dict | None:
    """The mean and the deviation that the options say published weights were trained with; None where they do not."""
    if not (arguments.mean or arguments.std):
        return None
    for name in ("mean", "std"):
        values = getattr(arguments, name)
        if len(values) != 3 or not all(0 <= value <= 1 for value in values):
            raise ValueError(
                f"`--{name}` must be three numbers from 0 to 1, of red, green and blue, and stand beside "
                f"`--{'std' if name == 'mean' else 'mean'}`; got {list(values)}."
            )
    return {"mean": list(arguments.mean), "std": list(arguments.std)}


def check_accuracy(net, name, data, arguments) -> None:
    """Print what the network scores, and end the study where that is not what it is expected to score.

    With a wrong stem or a wrong normalisation the spectra would be those of another network, without any error message.
    """
    count = min(50 if arguments.smoke else 1000, len(data.test_images))
    share = measures.accuracy_of(net, data, count)
    print(f"{name}: {100 * share:.1f} % of the first {count} test images are classified correctly.", flush=True)
    if arguments.expect is None:
        return
    wanted = arguments.expect / 100
    slack = 0.01 + 3.0 * np.sqrt(max(0.0, wanted * (1.0 - wanted)) / count)
    if abs(share - wanted) > slack:
        raise SystemExit(
            f"studies.{STUDY}: {name} classifies {100 * share:.1f} % of {count} test images correctly, `--expect` says "
            f"{arguments.expect:g} %. Try another `--stem`, or say by `--mean` and `--std` how images were normalised."
        )


def without_places(arguments: Arguments) -> Arguments:
    """The options without what is one machine's own: folders, a processor, the address of a scheduler."""
    nowhere = {name: getattr(Arguments, name) for name in ("out", "cache", "data_root", "device", "scheduler")}
    return dataclasses.replace(arguments, **nowhere, checkpoint=tuple(Path(path.name) for path in arguments.checkpoint))


EXHIBITS = (  # in the order of the page; a claim leads to the first heading that names its table or section
    *printed.EXHIBITS, *networks.EXHIBITS, *blocks.EXHIBITS, *answers.EXHIBITS, *trained.EXHIBITS,
    Exhibit("", blocks.show_others),
)  # fmt: skip

if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
