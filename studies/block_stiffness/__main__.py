"""Tables 1-11 and Figure 2 of the block-level paper on trained networks, and what their numbers are (about 3 min).

Claim examined: late residual blocks of a ResNet are stiff, and their stiffness correlates with accuracy and loss
(Block-level Stiffness Analysis of Residual Networks). Three readings of "the Jacobian of a block" stand side by side:
the H x W slices that an unflattened Jacobian tensor gives, the whole block, and the branch.

Last result (ResNet-20, CIFAR-10, quick, 2026-11-19): all 24 printed counts are those of slices, and slices of an
untrained ResNet-18 follow Table 2 (r = 0.96); late blocks are the less stiff ones (-0.82), and no mode is stiff for a
step of size 1; index and percentage correlate with neither accuracy nor loss once p-values are corrected for the number
of tests. Of the 23 shipped ResNet-20, at 4 images each, 12 have modes with Re h lambda < -2, all of them in the first
stage; -min Re falls by 1.05 [0.95, 1.14] from the first stage to the last, and rises by 0.13 [0.04, 0.22] within a
stage.
"""

import contextlib
import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from rich.progress import Progress

import netbridge as nb
from studies.block_stiffness import analysis, epochs, every_network, figures, findings, measures, ode_net, tables
from studies.lab import networks
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.images import images_or_fallback
from studies.lab.measure import prepared
from studies.lab.page import Page

STUDY = "block_stiffness"
TOLD = ("stiffness_index", "negative", "max_re", "min_re", "spectral_radius")
CLAIMED = {"stiffness_index": 1, "negative": -1}  # signs of the correlation with accuracy that the paper's words claim
TURNED = {"stiffness_index": -1, "negative": 1, "spectral_radius": 1}  # signs with flipped answers, if stiffness did it
HELD = ("stiffness_index", "negative", "max_re", "min_re")
EPOCHS = {"smoke": (1, 1), "quick": (16, 5), "full": (16, 20), "paper": (16, 20)}  # and images of each look
NETWORKS = {"full": 100}  # images of every shipped network
FITS = {"smoke": (1, 5), "quick": (2, 300), "full": (5, 1500), "paper": (5, 1500)}  # seeds, rounds


@dataclasses.dataclass
class Arguments:
    """Spectra of every residual block of a trained network, in three readings: tables, figures, verdicts."""

    preset: Literal["quick", "full", "paper"] = "quick"
    """quick: 2 to 6 images a label; full: 10 to 40; paper: for networks of your own, slices of all rows."""
    dataset: Literal["cifar10", "digits"] = "cifar10"
    """What the network was trained on."""
    fallback: Literal["digits"] | None = None
    """Run on this instead where the data set cannot be had; without it, that is an error."""
    network: str | None = None
    """A shipped network, as `nb.pretrained()` lists them; by default the plain one of seed 0."""
    checkpoint: Path | None = None
    """A network of your own in place of a shipped one: .safetensors of this repository, or published weights."""
    stem: Literal["imagenet", "cifar", "cifar-pooled"] | None = None
    """How published weights begin, which a file does not tell: the paper's geometry is cifar-pooled, a 3x3 convolution
    and a max-pool."""
    expect: float | None = None
    """The accuracy in per cent that the network is known to have; a run that measures another one, by more than a point
    beyond chance, ends before it begins. Without it, what was measured is printed."""
    resamples: int = 200
    """How many resamples the bootstrap of variance shares draws."""
    every_network: int | None = None
    """Look at every shipped network of the data set at this many test images, hours for a hundred; full: 100. Otherwise
    what the last such run found, which comes with the study, is shown with its date."""
    ship: bool = False
    """Write what every network showed into the study's folder, in place of what came with it."""
    workers: int = 2
    """Processes that compute spectra, one thread each."""
    scheduler: str | None = None
    """Address of a Dask scheduler, whose workers compute the spectra instead."""
    cache: Path | None = None
    """A folder that keeps every spectrum, so that a stopped run goes on; results/block_stiffness/cache by default."""
    data_root: Path | None = None
    """Where data sets live; the shared cache by default."""
    out: Path = Path("results/block_stiffness")
    """Where figures, tables, report.html and record.json go."""
    smoke: bool = False
    """A run of seconds on the digits that only shows that everything works."""


def main(arguments: Arguments):
    with contextlib.ExitStack() as stack:
        client = None
        if arguments.scheduler is not None:
            from distributed import Client

            client = stack.enter_context(Client(arguments.scheduler))
        tell(arguments, client)


def tell(arguments: Arguments, client):
    """The whole study, in the order of its page."""
    require_at_least(1, arguments, "workers", "resamples", "every_network")
    preset = "smoke" if arguments.smoke else arguments.preset
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, dataset="digits", workers=1, resamples=20)
    data, notice, arguments = images_or_fallback(STUDY, arguments, "looks at a network trained on")
    net, name = chosen(arguments, data)
    check_accuracy(net, name, data, arguments)
    work = {"workers": arguments.workers, "executor": client, "cache": arguments.cache or arguments.out / "cache"}
    page = Page(
        STUDY,
        arguments,
        "Jacobians of residual blocks, and what they say",
        f"{name} on {data.name}. After Block-level Stiffness Analysis of Residual Networks (ICLR 2023 submission).",
        notice,
    )
    found = measured(net, name, data, preset, work)
    untrained = untrained_slices(data, preset, work)
    fits = [ode_net.fit_both(seed, FITS[preset][1]) for seed in range(FITS[preset][0])]
    inner = [block for block in found.blocks if len(measures.rows_of(found, block, "residual"))]
    answers = {"accuracy": found.right.astype(float), "loss": found.loss}
    seen = np.unique(found.table["image"])
    flips = {f"flips at {size}/255": measures.flipped(net, data, seen, size / 255).astype(float) for size in (1, 2)}
    related = analysis.relations(found, answers, CLAIMED, measures.READINGS, inner)
    turned = analysis.relations(found, flips, TURNED, ("residual",), inner)
    errors = analysis.error_relations(found, measures.MEASURES, inner)
    between = analysis.between_blocks(found, (*measures.MEASURES, "nsi", "alive"), inner)
    shares = variances(found, inner, arguments.resamples)
    mapped = [
        *analysis.relations(found, answers, measures.MEASURES, ("residual",), inner),
        *errors,
        *analysis.error_relations(found, measures.MEASURES, inner, "nsi"),
    ]
    held = analysis.relations_held(found, answers, HELD, ("residual",), inner)
    everything = every_network_of(data, preset, arguments, work)
    inputs = measures.other_inputs(
        net, data, inner[-3:] if arguments.smoke else inner, measures.SIZES[preset].inputs, work
    )
    accuracies = measures.accuracy_by_flow(net, data, measures.SIZES[preset].flows)
    trained = epochs.through_training(*EPOCHS[preset])
    untrained_table = tables.untrained_rows(untrained) if untrained is not None else []

    page.heading("What these data say")
    page.findings(
        verdicts(found, untrained_table, related, turned, errors, between, shares, fits, inner, everything, inputs)
    )
    counts(page)
    by_block(page, net, found, untrained_table, data)
    by_label(page, found, inner, data, shares)
    by_input(page, inputs)
    answers_and_errors(page, found, [*related, *turned], held, errors, mapped, inner)
    by_flow(page, found, accuracies)
    all_networks(page, everything)
    by_epoch(page, trained)
    equivalence(page, fits)
    page.close()


def every_network_of(data, preset, arguments, work):
    """Measured now where that is asked for, else what the last large run left; None where there is neither."""
    images = arguments.every_network or NETWORKS.get(preset)
    if images is None:
        return every_network.shipped(data.name)
    count = len(every_network.networks_of(data.name))
    with Progress(transient=True) as progress:
        task = progress.add_task("every shipped network", total=count)
        found = every_network.look_at_all(data, images, work, lambda _: progress.advance(task))
    if arguments.ship:
        every_network.write(found)
    return found


def chosen(arguments, data):
    """The network, ready to be looked at, and what it is called."""
    if arguments.checkpoint is not None:
        networks.files([arguments.checkpoint])  # ends the study where there is no such file
        with plain_errors(STUDY):
            one = networks.subject(arguments.checkpoint, arguments.stem)
        return one.net.eval(), one.source
    name = arguments.network
    if name is None:
        name = "cifar10/resnet20-constant-seed0" if data.name == "cifar10" else "digits/resnet32-width4-constant-seed0"
    with plain_errors(STUDY):
        return nb.pretrained(name).eval(), name


def check_accuracy(net, name, data, arguments) -> None:
    """Print what the network scores, and end the study where that is not what it is expected to score.

    With a wrong stem or a wrong normalisation the spectra would be those of another network, without any error message.
    """
    count = min(50 if arguments.smoke else 1000, len(data.test_images))
    share = float(measures.answers(net, data, np.arange(count))[1].mean())
    print(f"{name}: {100 * share:.1f} % of the first {count} test images are classified correctly.", flush=True)
    if arguments.expect is None:
        return
    wanted = arguments.expect / 100
    slack = 0.01 + 3.0 * np.sqrt(max(0.0, wanted * (1.0 - wanted)) / count)
    if abs(share - wanted) > slack:
        raise SystemExit(
            f"studies.{STUDY}: {name} classifies {100 * share:.1f} % of {count} test images correctly, `--expect` says "
            f"{arguments.expect:g} %. Try another `--stem`, or look at how its images were normalised."
        )


def measured(net, name, data, preset, work):
    size = measures.SIZES[preset]
    with Progress(transient=True) as progress:
        task = progress.add_task("spectra", total=2 * len(net.stages) + 2)
        return measures.measure(net, name, data, size, work, lambda *_: progress.advance(task))


def untrained_slices(data, preset, work):
    """Slices of an untrained ResNet-18 of the paper's geometry at test images; in a smoke run a narrow one."""
    images = data.test_images[: 1 if preset == "smoke" else 2]
    if images.shape[-1] != 32:
        images = torch.nn.functional.interpolate(images.float(), size=(32, 32)).to(torch.uint8)
    torch.manual_seed(0)
    widths = (8, 16, 32, 64) if preset == "smoke" else (64, 128, 256, 512)
    net = nb.resnet(18, len(data.names), stem="cifar-pooled", widths=widths).eval()
    rows = 10 if preset == "smoke" else 150
    return nb.block_survey(net, prepared(net, data, images), "slices", rows=rows, **work)


def variances(found, inner, resamples):
    """Shares of variance of the measures that the paper tells, in branch and whole block, blocks of the last stage."""
    last = [block for block in inner if block.split(".blocks")[0] == inner[-1].split(".blocks")[0]]
    made = [
        analysis.variance_shares(found, reading, measure, last, resamples)
        for reading in ("residual", "block")
        for measure in ("negative", "max_re", "min_re", "spectral_radius")
    ]
    return [one for one in made if one is not None]


def verdicts(found, untrained, related, turned, errors, between, shares, fits, inner, everything, inputs):
    agreeing, total = tables.agreeing_counts()
    ours, printed = ([row[key] for row in untrained] for key in ("%, untrained slices", "%, paper"))
    smallest = {block: float(measures.rows_of(found, block, "residual")["min_re"].min()) for block in inner}
    stiff = {block: share_of_stiff(measures.rows_of(found, block, "residual")) for block in inner}
    depth = {name: tables.depth_relation(found, name) for name in ("residual", "block")}
    loss = {measure: -sign for measure, sign in CLAIMED.items()}
    orders = {f"{name} {one}": tables.halves(found, name, one) for name in ("residual", "block") for one in TOLD[2:]}
    for row in tables.input_rows(inputs)[1:]:
        orders |= {f"{row['input']}, {measure}": row[f"order of {measure}"] for measure in tables.ENDS}
    rows = [] if everything is None else everything.rows
    across = {}
    if rows:
        across = {
            "last stage less first": every_network.late_minus_early(rows),
            "last block of a stage less its first": every_network.within_stages(rows),
        }
    return [
        findings.printed_numbers(agreeing, total, correlation(ours, printed), tables.rank_correlation(ours, printed)),
        findings.late_blocks(depth, tables.slice_relation(found), across),
        findings.block_or_label(shares),
        findings.correlates("accuracy", "Tables 1, 4, 7", CLAIMED, [r for r in related if r.target == "accuracy"]),
        findings.correlates("loss", "Tables 1, 4, 7", loss, [r for r in related if r.target == "loss"]),
        findings.anything_stiff(smallest, stiff, rows),
        findings.same_as_ode_net(fits),
        findings.generalises(orders),
        findings.predicts_error(errors, between, every_network.error_relations(rows)),
        findings.correlates("adversarial examples (FGSM)", "Section 1", TURNED, turned),
    ]


def share_of_stiff(rows) -> float:
    """The mean share of stiff modes; of blocks of which only the ends are known, one in n where an end is beyond -2."""
    known = rows["stiff"][np.isfinite(rows["stiff"])]
    return float(known.mean()) if len(known) else float(((rows["min_re"] < -2.0) / rows["n"]).mean())


def correlation(x, y) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 else float("nan")


def counts(page):
    page.heading("What the printed numbers are (Tables 10 and 11)")
    page.table(
        "counts",
        tables.count_rows(),
        "Elements and eigenvalues of Jacobians",
        'The column "eigenvalues" of the paper is the elements divided by the height of the input in every row: the '
        "eigenvalues of the H x W slices of the Jacobian before it is flattened. A block that halves the map has a "
        "Jacobian that is not square, and no eigenvalues.",
        printed=False,
    )
    page.table(
        "sample_sizes",
        tables.sample_size_rows(),
        "How many images the printed correlations allow",
        "Each correlation and p-value, printed to two decimals, bounds the number of images; these numbers "
        "agree with all pairs of a printed table.",
        printed=False,
    )


def by_block(page, net, found, untrained, data):
    page.heading("By block (Tables 2, 5 and 8)")
    if untrained:
        page.table(
            "untrained",
            untrained,
            "Slices of an untrained ResNet-18 beside Table 2",
            "The paper's geometry: a 3x3 stem, a max-pool, widths 64 to 512; random weights, output units sampled.",
        )
        page.figure(
            figures.percentages(untrained),
            "percentages",
            "The printed percentages jump with the size of the input map. A slice has at most as many eigenvalues that "
            "are not zero as its rows and columns share inside the window of two convolutions; half of them are of "
            "either sign.",
        )
    page.table(
        "by_block",
        tables.block_rows(found),
        "Every block in three readings",
        "S is undefined where the smallest real part is zero. Stiff modes decay and grow under a step of size 1.",
    )
    page.table(
        "readings",
        tables.reading_rows(found),
        "What each reading gives",
        "The paper does not say which matrix its numbers belong to. The sign and the size of S depend on the reading, "
        "and in some readings S is not defined.",
    )
    page.figure(
        figures.along_depth(found),
        "along_depth",
        "Index, share of negative real parts and smallest real part along depth, in three readings. Points are medians "
        "over images, bars hold nine of ten. The dotted line is Euler's limit on the real axis.",
    )
    spectra = clouds_of(net, data, found)
    page.figure(
        figures.clouds(spectra, "residual"),
        "clouds",
        "Eigenvalues of the branch at the first test image. Grey: the disc in which a step of size 1 is stable.",
    )


def clouds_of(net, data, found):
    """All eigenvalues of the branch at the first test image, for blocks of which that is cheap."""
    states = nb.block_states(net, prepared(net, data, data.test_images[:1]))
    result = {}
    for number, block in enumerate(found.blocks, 1):
        if len(measures.rows_of(found, block, "residual")) and states[block].numel() <= 8192:
            spectrum = nb.block_spectrum(net.get_submodule(block), states[block], values="full", dtype=torch.float32)
            result[f"block {number}"] = spectrum.values
    return result


def by_label(page, found, inner, data, shares):
    page.heading("By label (Tables 3, 6 and 9)")
    if shares:
        page.table(
            "variance",
            tables.share_rows(shares),
            "Where the variance is: block, label or image",
            "Shares of the sum of squares over the blocks of the last stage, with intervals over images within labels.",
        )
    last = [block for block in inner if block.split(".blocks")[0] == inner[-1].split(".blocks")[0]]
    page.table(
        "by_label",
        tables.label_rows(found, "residual", last, data.names),
        "By label, branches of the last stage",
        "Means over images; accuracy is on more images than the spectra.",
        printed=False,
    )
    if shares:
        page.figure(
            figures.label_means(found, last, data.names),
            "label_means",
            "Means by label over the images of the label, with 95 % intervals, for the branches of the last stage.",
        )


def by_input(page, inputs):
    page.heading("By input (Section 5)")
    page.table(
        "inputs",
        tables.input_rows(inputs),
        "Branches at inputs that are no test images",
        "Ends of the spectra over all branches, and Spearman's correlation of the blocks' means with those at test "
        "images: does a block stay where it is among the others?",
    )


def by_flow(page, found, accuracies):
    page.heading("How wrong a step is, and what that costs")
    page.table(
        "flows",
        tables.flow_rows(found, accuracies),
        f"One block at a time replaced by its exact flow; the network as it is: {100 * accuracies['']:.1f} %",
        "The flow of u' = f(u) over the time 1 by Runge-Kutta steps. The network was trained with Euler's steps, so a "
        "loss of accuracy is no sign of stiffness; it shows, as accuracy, how far the step is from the flow.",
    )


def all_networks(page, everything):
    if everything is None:
        return
    about, rows = everything
    page.heading("Every shipped network")
    page.words(
        f"From a run of {about['date']} (commit {about['commit']}) over {about['images']} test images of "
        f"{about['dataset']} a network, fewer where a table says so. Gates are held: eigenvalues are those of h f'."
    )
    page.figure(
        figures.most_negative(rows),
        "most_negative",
        "The most negative real part of h lambda at any image. A mode below the dotted line decays and grows under "
        "Euler's step of size 1; grey lines are networks with learnt step sizes.",
    )
    page.table(
        "every_network",
        every_network.network_rows(rows),
        "Where the networks are stiffest, and where their steps have the largest error",
        printed=False,
    )
    page.table(
        "controllers",
        every_network.controller_rows(rows),
        "Step-size controllers",
        "The difference of live and held is what the derivative of the step size adds to the ends of the spectrum.",
        printed=False,
    )
    page.figure(
        figures.error_of_every_block(rows),
        "errors_of_all",
        "Euler's error against measures of the step, medians over images. A point is a block of one network.",
    )


def by_epoch(page, rows):
    page.heading("Through training")
    page.figure(
        figures.through_training(rows),
        "through_training",
        f"A ResNet-{epochs.DEPTH} on the digits, from its first weights on: ends of each branch's spectrum and Euler's "
        "error, means over images.",
    )
    page.table("through_training", rows, "The same in numbers", printed=False)


def answers_and_errors(page, found, related, held, errors, mapped, inner):
    page.heading("Accuracy, loss and the error of the step (Tables 1, 4 and 7)")
    if not related or not errors:
        page.words("There are too few images for correlations within blocks.")
        return
    page.table(
        "correlations",
        tables.relation_rows(related),
        "Measures against accuracy, loss and flipped answers, image by image within each block",
        "Spearman's correlation with its 95 % interval. Holm's correction is over the rows of one question.",
        printed=False,
    )
    if held:
        page.table(
            "correlations_held",
            tables.relation_rows(held),
            "The same within labels, and beside activity and NSI",
            "Correlations of ranks minus the mean rank of the label, and minus a linear fit to the ranks of the "
            "share of live outputs and of NSI.",
            printed=False,
        )
    page.table(
        "predictors",
        tables.relation_rows(errors),
        "Measures of the branch against Euler's error, image by image within each block",
        "The error is the distance of the block's one step from the exact flow of its branch over the same time, "
        "relative to the step.",
        printed=False,
    )
    panels = {"accuracy": "right answer", "loss": "loss", "step_error": "Euler's error", "nsi": "NSI"}
    page.figure(
        figures.correlation_map(mapped, found, inner, panels),
        "correlations",
        "Rank correlations of measures of the branch, image by image within each block. Framed: p < 0.05 after Holm's "
        "correction over all cells of a panel (the first two together). Grey: nothing to correlate.",
    )
    page.figure(
        figures.error_against(found, inner),
        "errors",
        "Euler's error of a block against measures of its branch. A point is an image, a colour a block.",
    )


def equivalence(page, fits):
    page.heading("ResNet and ODE-net (Figure 2)")
    page.table(
        "ode_net",
        tables.fit_rows(fits),
        "Fits to random points",
        "64 points in the plane, a field of 32 tanh units, eight steps against dopri5 at 1e-5; the paper states none "
        "of these numbers.",
    )
    page.figure(
        figures.ode_net(fits),
        "ode_net",
        "How far eight residual steps and the exact flow of the same field are apart, when the field is scaled up.",
    )


if __name__ == "__main__":
    start(main, Arguments, STUDY, __doc__)
