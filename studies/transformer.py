"""First paper, Appendix G: Table 7, stiffness and step sizes of ViTs, attention as a step (about 1 min).

Claims examined: StepNet raises the accuracy of a ViT (Table 7); a transformer's attention is an adaptive step size
below 1 (Eq. 32) that depends on the stiffness because its queries are a function of its values (Eq. 33); and the claims
of Figures 2, 6 and 9, which the paper makes for convolutional residual networks. Huang, Liang et al., Understanding
Self-attention Mechanism via Dynamical System Perspective, 2023.

Last result (ViTs of 0.5 million parameters, CIFAR-10, six epochs, constant, SE, StepNet, one seed each, 1,000 images,
2026-11-19): 69.01, 69.10 and 69.33 %, which decides nothing; rows of the attention sum to 1; Eq. 33 holds for all heads
together (value maps of condition 416 to 33,720) and for no head alone; a larger NSI goes with smaller step sizes at 9
of SE's 11 counted steps, and with larger ones at 10 of StepNet's, which stay where they start, at 0.27.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import stats

import netbridge as nb
from netbridge import data as datasets
from netbridge.tracing.attention import AttentionValues
from odelab.plot import style
from studies.lab import jobs, networks
from studies.lab.claims import (
    SPREAD,
    TABLE_7,
    Arms,
    Gates,
    compare_seeds,
    correlate_gates,
    gate_table,
    judge_correlations,
    judge_few_blocks,
    judge_larger,
    share_stiff_blocks,
)
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.comparisons import deviation_cell, interval_cell, signed_cell, tukey
from studies.lab.exhibits import Exhibit, write
from studies.lab.figures import (
    DASHES,
    SYMBOL,
    draw_cloud,
    in_a_row,
    label_panels,
    legend_below,
    looks,
    panels,
    use_axes,
)
from studies.lab.networks import SHAPES, Subject
from studies.lab.options import TracingOptions
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.statistics import Estimate, choices, correlate_rows, interval_text, listing, rank_correlation
from studies.lab.stiffness import (
    KINDS,
    MEANS,
    QUANTITIES,
    QUANTITY_NAMES,
    TNS,
    Measured,
    OfNetwork,
    measure,
    measure_each,
    prepare,
    set_stiffness,
    step_sizes_of,
    stiffness_of,
    wording,
)
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    corrected,
    enough,
    of_cases,
    of_interval,
    rule,
)

STUDY = "transformer"

# ---- The design, fixed before anything is measured: the paper's numbers, the readings, and what to train ----
DATASETS = ("cifar10", "cifar100", "stl10")
TOGETHER, APART = "all steps together", "attention and MLP apart"
READINGS: tuple[tuple[str, str, str], ...] = tuple(
    (of, mu, kinds) for kinds in (TOGETHER, APART) for of in KINDS for mu in MEANS
)
ATTENDED = 250  # test images whose attention is looked at
PRESETS = {
    "quick": {"images": 1000, "resamples": 200, "recipe": "short", "seeds": (0, 1)},
    "full": {"images": 10_000, "resamples": 1000, "recipe": "vit", "seeds": (0, 1, 2, 3, 4)},
}
TRAINED = ("constant", "stepnet")  # the two rows of Table 7
EXACT = 1e-4  # how far a sum of weights in single precision may be from 1
FEWEST_SEEDS = 3  # networks of a controller below which nothing is said of it


@dataclasses.dataclass
class Arguments(TracingOptions):
    """Vision transformers whose attentions and MLPs are steps of the solver: figures, tables, conclusions."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 1,000 test images of the shipped networks; full: all of them; with --train five seeds by recipe vit."""
    train: bool = False
    """First train what is missing, then look at those networks; stopped and given again, it goes on. With --preset full
    every data set of Table 7 that can be had is trained on."""
    recipe: str | None = None
    """How to train: short (6 epochs on pictures that grow), or vit (40); the preset's by default."""
    epochs: int | None = None
    """Another number of epochs than the recipe's."""
    out: Path = Path("results/transformer")
    """Where figures, tables, report.html and record.json go, and trained networks."""


def shape_of(dataset: str) -> dict:
    """Which transformer a data set gets: a small one on patches for the digits, else one with convolutions first."""
    return SHAPES["digits-vit"] if dataset == "digits" else SHAPES["cifar10-vit"]


def queue(dataset: str, arguments) -> list[jobs.Job]:
    """The networks to train, the two rows of Table 7 first, one seed after the other."""
    recipe = jobs.recipe_of(arguments.recipe, dataset, "auto", "vit", epochs=arguments.epochs)
    like = jobs.Job(dataset, "constant", 0, recipe, **shape_of(dataset))
    names = arguments.controllers or TRAINED
    wanted = [
        dataclasses.replace(like, controller=text if text in nb.controllers() else text.lower(), seed=seed)
        for seed in arguments.seeds
        for text in names
    ]
    for job in wanted[: len(names)]:
        job.untrained_network(10)  # a wrong name ends the run before hours
    return wanted


# ---- What is measured on one transformer ----
STEPS = ("all", "attention", "MLP")
LEAST = 3  # steps that a correlation along a trajectory needs


@dataclasses.dataclass(eq=False)
class Studied(OfNetwork):
    """One transformer on N images, at T steps.

    measured   indices, step sizes and answers, as every study measures them
    tns        total neural stiffness under each of `design.READINGS`
    along      Spearman's correlation of step size and NSI along the counted steps of each image, (N,): over all steps,
               over attentions, over MLPs; empty without a step size that varies
    attention  what the attention of every attention step is, on the first images
    """

    measured: Measured
    tns: dict[tuple[str, str, str], Estimate]
    along: dict[str, np.ndarray]
    attention: list[AttentionValues]

    @property
    def seen(self) -> int:
        """How many images the attention was looked at on."""
        return len(self.attention[0].diagonal)


def study_network(subject: Subject, data, images: int, device, chosen: np.ndarray, progress=lambda n: None) -> Studied:
    """Everything about one network, on the first `images` test images; `chosen` are the resamples of them."""
    measured = measure(subject, data, images, device, progress)
    set_stiffness(measured, chosen)
    tns = {
        reading: stiffness_of(with_kinds(measured.records[reading[0]], reading[2]), reading[1], chosen)
        for reading in READINGS
    }
    shown = prepare(subject.net, data, data.test_images[: min(images, ATTENDED)].to(device))
    return Studied(measured, tns, along_steps(measured.records["slope"]), nb.attention_values(subject.net, shown))


def with_kinds(record: nb.Record, kinds: str) -> nb.Record:
    """The record with its steps in one stage, or with attention and MLP in stages of their own."""
    return record if kinds == TOGETHER else record.by_kind()


def along_steps(record: nb.Record) -> dict[str, np.ndarray]:
    """Per image, over the steps it passes: the correlation of step size and NSI, over all and within each kind."""
    apart = record.by_kind().counted()
    whole = record.counted()
    parts = {"all": (step_sizes_of(whole), whole.nsi)}
    parts |= {
        name: (step_sizes_of(apart)[:, apart.stage == kind], apart.nsi[:, apart.stage == kind])
        for kind, name in enumerate(STEPS[1:])
    }
    correlations = {name: correlate_rows(sizes, nsi) for name, (sizes, nsi) in parts.items() if sizes.shape[1] >= LEAST}
    return {name: values for name, values in correlations.items() if np.isfinite(values).all()}


def classes_fit(net: nb.Network, data) -> bool:
    return net.config["num_classes"] == len(data.names)


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the study shows: the transformers with what was measured on them, and the name of the data set."""

    transformers: list[Studied]
    dataset: str = ""


def by_controller(transformers) -> dict[str, list]:
    """The networks of every controller, as the list has them."""
    groups: dict[str, list] = {}
    for network in transformers:
        groups.setdefault(network.subject.controller, []).append(network)
    return groups


def tokens_of(network) -> int:
    """How many tokens an image of the network's own size has."""
    config = network.subject.net.config
    return (config["size"] // config["patch"]) ** 2


NAMES = ("constant", "SE", "StepNet")
POINTS, GAIN = 0.7, 1.24
ARITHMETIC = "what a transformer computes is arithmetic: nothing is drawn"
LATER = (
    "after the data: three transformers of CIFAR-10 and six of the digits had been seen when seeds became the units; "
    "nothing had been decided by the older rule where there was one seed"
)
KIND_LOOKS = (("attention", style.COLOURS[0], "o"), ("MLP", style.COLOURS[1], "s"))
BINS = np.linspace(-1, 1, 21)

# ---- Table 7: accuracy ----


def worlds_of_gain(chance, effect, n):
    drawn = 89.0 + chance.normal(0.0, POINTS, (len(NAMES), n))
    drawn[NAMES.index("StepNet")] += GAIN * effect
    return (dict(zip(NAMES, drawn.tolist(), strict=True)),)


@rule(
    "StepNet raises the accuracy of a ViT.",
    "Table 7",
    fewest=FEWEST_SEEDS,
    worlds=Worlds(worlds_of_gain, n=8, units="seeds", effect="+1.24 points, Table 7's gain on CIFAR-10", now=2),
)
def judge_gain(accuracies: dict[str, list[float]]) -> tuple[Verdict, str]:
    """StepNet's accuracy minus that of constant step sizes, by Tukey and Kramer over seeds, with those of all other
    controllers: supported where the interval lies above 0, contradicted where below. Judged from three seeds on."""
    beyond = tukey("constant", accuracies)
    if "StepNet" not in beyond:
        return NOT_RUN, "n = 0: no network with StepNet beside one with constant step sizes."
    few = enough({name: accuracies[name] for name in ("constant", "StepNet")}, FEWEST_SEEDS)
    words = f"{few}Points above constant step sizes: {listing(beyond)}."
    return (UNDECIDED.because("too few seeds") if few else of_interval(beyond["StepNet"])), words


def judge_table_7(evidence: Evidence) -> list[Finding]:
    groups = by_controller(evidence.transformers)
    return [judge_gain({name: [network.measured.accuracy for network in group] for name, group in groups.items()})]


def show_table_7(page: Page, evidence: Evidence):
    transformers = evidence.transformers
    about = transformers[0].subject.net.about
    page.words(
        f"The paper names neither the size of its ViT, nor how it was trained, nor where StepNet stands in it. These "
        f"networks have {transformers[0].subject.parameters / 1e6:.2f} million parameters and saw the training images "
        f"{about.get('epochs', 'an unknown number of')} times: their accuracies are not to be held against the "
        "paper's, only their differences. StepNet here sets the step size of every attention and of every MLP; a block "
        "without attention would have nothing left that mixes tokens."
    )
    page.table(
        "table7",
        rows_of_table_7(transformers, evidence.dataset),
        "Test accuracy beside the paper's",
        "Mean and standard deviation over seeds; gains over constant step sizes in points, intervals by Tukey-Kramer.",
    )
    if evidence.dataset in DATASETS:
        page.table(
            "missing",
            rows_missing(evidence.dataset),
            "Rows of Table 7 that are not here",
            "Their data must be had first.",
        )
    page.table("networks", rows_of_networks(transformers), "Every network", printed=False)


USUAL = {"constant": "constant", "StepNet": "stepnet"}  # the two rows of Table 7, as we and as files call them


def rows_of_table_7(transformers, dataset: str) -> Iterator[dict]:
    """Accuracy of every controller beside what the paper prints, and the gain over constant step sizes."""
    groups = by_controller(transformers)
    accuracies = {name: [network.measured.accuracy for network in members] for name, members in groups.items()}
    gains = tukey("constant", accuracies)
    for name, members in groups.items():
        printed = TABLE_7.get((USUAL.get(name, name), dataset))
        about = members[0].subject.net.about
        yield {
            "network": "ViT" if name == "constant" else f"ViT + {name}",
            "data set": dataset,
            "paper (%)": "" if printed is None else f"{printed[0]:.2f} ± {printed[1]:.2f}",
            "here (%)": f"{np.mean(accuracies[name]):.2f}",
            "standard deviation": deviation_cell(accuracies[name], "one network"),
            "networks": len(members),
            "epochs": about.get("epochs", ""),
            "parameters (M)": f"{members[0].subject.parameters / 1e6:.3f}",
            "gain [95 %]": interval_cell(gains, name),
        }


def rows_missing(dataset: str) -> Iterator[dict]:
    """The rows of Table 7 that no network here stands for, and the command that makes them."""
    for (controller, other), (mean, deviation) in TABLE_7.items():
        if other != dataset:
            yield {
                "network": "ViT" if controller == "constant" else "ViT + StepNet",
                "data set": other,
                "paper (%)": f"{mean:.2f} ± {deviation:.2f}",
                "to be made by": f"python -m studies.transformer --train --preset full --dataset {other}",
            }


def rows_of_networks(transformers) -> Iterator[dict]:
    for network in transformers:
        about = network.subject.net.about
        yield {
            "network": network.name,
            "file": network.subject.source,
            "accuracy (%)": f"{network.measured.accuracy:.2f}",
            "on the traced images (%)": f"{network.measured.measured_accuracy:.2f}",
            "recipe": about.get("recipe", ""),
            "epochs": about.get("epochs", ""),
        }


# ---- Figures 2 and 6: stiffness along depth, and in all ----


def compare_stiffness(transformers, what: str) -> dict[tuple, Arms]:
    """TNS, its scale or its shape against constant step sizes, over seeds; TNS under each of eight readings."""
    readings = READINGS if what == TNS else QUANTITIES[what]
    level = corrected(len(readings))

    def value(network, reading) -> Estimate:
        return network.tns[reading] if what == TNS else network.measured.stiffness[what][reading]

    measured = [network.measured for network in transformers]
    return {
        reading: compare_seeds(measured, [value(network, reading).value for network in transformers], level)
        for reading in readings
    }


def worlds_of_stiffness(what: str):
    """Worlds in which transformers with step-size control have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        readings, common = READINGS if what == TNS else QUANTITIES[what], chance.normal(size=(len(NAMES), n))
        compared: dict[tuple, Arms] = {}
        for reading in readings:
            drawn = 1.0 + SPREAD[what] * (0.9 * common + 0.4 * chance.normal(size=common.shape))
            drawn[1:] += 0.5 * effect
            groups = dict(zip(NAMES, drawn.tolist(), strict=True))
            compared[reading] = Arms.against(NAMES[0], groups, corrected(len(readings)))
        return (compared,)

    return make


def rule_of_comparison(what: str) -> Rule:
    """Figure 2 on transformers, for one quantity."""
    effect = "half as much again as constant step sizes have"
    made = Worlds(worlds_of_stiffness(what), n=5, units="seeds", effect=effect, now=1)
    claim = f"Transformers with step-size control have a larger {QUANTITY_NAMES[what]}."
    options = {"fewest": FEWEST_SEEDS, "fixed": LATER, "worlds": made, "variant": f"transformers, {what}"}
    return rule(claim, "Figure 2", **options)(judge_larger)


COMPARED = {what: rule_of_comparison(what) for what in QUANTITIES}
INDEX = "NSI is the branch before its gate over the state"
HOLLOW = "Hollow: the first step of its kind; the very first is never counted."


def judge_depth(evidence: Evidence) -> list[Finding]:
    """A finding for TNS, scale and shape each, and one about few blocks."""
    return [
        *(COMPARED[what](compare_stiffness(evidence.transformers, what)) for what in COMPARED),
        judge_few_blocks(share_stiff_blocks([network.measured for network in evidence.transformers])),
    ]


def show_depth(page: Page, evidence: Evidence):
    transformers = evidence.transformers
    page.figure(
        draw_depth(transformers, "slope"),
        "nsi_depth_slope",
        f"NSI of attention and MLP steps along depth, mean over images. A dash pattern per seed; the band holds nine "
        f"images of ten for the first of them. {INDEX}. {HOLLOW}",
    )
    page.figure(
        draw_depth(transformers, "increment"),
        "nsi_depth_increment",
        "The same by the other index, the change of the state over the state. Without a gate the two are one: a "
        "transformer's step has no final ReLU. A gate below 1 (StepNet's starts at 0.27 on every step) leaves the "
        "branch free to be larger: what only the slope shows may be no more than that.",
    )
    page.figure(
        draw_tns(transformers),
        "tns",
        "Exact TNS of every network under eight readings, with 95 % intervals over images. Left: all steps as one "
        "stage; right: attentions compared with attentions, MLPs with MLPs.",
    )
    page.table("tns", rows_of_tns(transformers), "TNS with 95 % intervals over images", printed=False)
    page.table("steps", rows_of_steps(transformers), "Every step", printed=False, told=False)


def draw_depth(transformers, of: str):
    """NSI along depth, attention and MLP steps each on a line of their own; a dash pattern per seed."""
    groups = by_controller(transformers)
    with panels(len(groups), height=2.2, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(groups))
        for axis, (name, members) in zip(shown, groups.items(), strict=True):
            for line, network in enumerate(members):
                draw_kinds(axis, network.measured.records[of], DASHES[line % len(DASHES)], marked=line == 0)
            axis.set_title(name, loc="left")
        label_panels(axes, len(groups), "step", "NSI")
        axes[0, 0].set_ylim(bottom=0)
        drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
        legend_below(drawing, shown[0], 2)
    return drawing


def draw_kinds(axis, record, dashes, marked: bool):
    """The mean over images of both kinds of steps, and for the first network the band of nine images of ten."""
    steps = np.arange(1, len(record.names) + 1)
    mean, (low, high) = record.nsi.mean(0), np.percentile(record.nsi, [5, 95], axis=0)
    first = record.by_kind().first
    for kind, (name, colour, mark) in enumerate(KIND_LOOKS):
        at = steps % 2 != kind
        axis.plot(steps[at], mean[at], dashes, color=colour)
        if not marked:
            continue
        axis.fill_between(steps[at], low[at], high[at], color=colour, alpha=0.15, linewidth=0)
        axis.plot(steps[at & ~first], mean[at & ~first], mark, color=colour, markersize=3.6, label=name)
        axis.plot(steps[at & first], mean[at & first], mark, color=colour, markersize=3.6, markerfacecolor="white")
    axis.set_xticks(steps[:: max(1, len(steps) // 6)])


def draw_tns(transformers):
    """The exact TNS of every network under the eight readings, with intervals over images."""
    colours = looks([network.subject for network in transformers])
    height = 4 * (0.17 * len(transformers) + 0.65)
    with style.figure(4, 2, height=height, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes.T.flat, READINGS, strict=True):
            for y, network in enumerate(transformers):
                e, colour = network.tns[reading], colours[network.subject.name][0]
                axis.plot([e.low, e.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
                axis.plot(e.value, y, "o", color=colour, markersize=4)
            axis.set_yticks(range(len(transformers)), [network.name for network in transformers])
            axis.grid(axis="y", visible=False)
            axis.set_title(wording(*reading), loc="left", fontsize=8)
            axis.locator_params(axis="x", nbins=5)
        for axis in axes[-1]:
            axis.set_xlabel("TNS")
        axes[0, 0].set_ylim(len(transformers) - 0.5, -0.5)
    return drawing


def rows_of_tns(transformers) -> Iterator[dict]:
    for reading in READINGS:
        yield {"reading": wording(*reading)} | {
            network.name: interval_text(network.tns[reading]) for network in transformers
        }


def rows_of_steps(transformers) -> Iterator[dict]:
    """Every step of every network: its kind, index and step size."""
    for network in transformers:
        record = network.measured.records["slope"]
        increment = network.measured.records["increment"]
        for k in range(len(record.names)):
            yield {
                "network": network.name,
                "step": k + 1,
                "kind": "MLP" if k % 2 else "attention",
                "counted": "no" if record.first[k] else "yes",
                "NSI (slope)": f"{record.nsi[:, k].mean():.3f}",
                "NSI (increment)": f"{increment.nsi[:, k].mean():.3f}",
                "standard deviation": f"{record.nsi[:, k].std():.3f}",
                "step size": f"{record.step_sizes[:, k].mean():.3f}",
            }


# ---- Figure 9: step size and stiffness ----
KIND_NAMES = {"all": "all steps", "attention": "attentions", "MLP": "MLPs"}


def correlate_along(transformers) -> Gates:
    """Step size and NSI along the counted steps of each image, averaged over the images of each network."""
    kinds: dict[str, dict[str, list[float]]] = {}
    for network in transformers:
        for kind, values in network.along.items():
            kinds.setdefault(kind, {}).setdefault(network.subject.controller, []).append(float(np.mean(values)))
    return Gates({KIND_NAMES[kind]: named for kind, named in kinds.items()}, 0, 0)


def correlate_diagonals(transformers) -> Gates:
    """What a token keeps of itself and NSI over images, averaged over the counted attention steps of each network."""
    groups: dict[str, list[float]] = {}
    for network in transformers:
        record = network.measured.records["slope"]
        columns = {step.name: record.names.index(step.name) for step in network.attention}
        counted = [step for step in network.attention if not record.first[columns[step.name]]]
        values = [
            rank_correlation(step.diagonal, record.nsi[: network.seen, columns[step.name]], stats.spearmanr)[0]
            for step in counted
        ]
        groups.setdefault(network.subject.controller, []).append(float(np.nanmean(values)))
    return Gates({"slope": groups}, 0, 0)


def worlds_of_correlations(chance, effect, n):
    """Mean correlations of n networks of two controllers, over three kinds of steps; networks differ by 0.15."""
    drawn = {kind: {name: chance.normal(-0.5 * effect, 0.15, n).tolist() for name in NAMES[1:]} for kind in STEPS}
    return (Gates(drawn, 0, 0),)


def rule_of_correlations(judge, claim: str, where: str) -> Rule:
    effect = "a correlation of -0.5 in every network"
    made = Worlds(worlds_of_correlations, n=8, units="networks", effect=effect, now=1)
    return rule(claim, where, fewest=FEWEST_SEEDS, fixed=LATER, worlds=made)(judge)


def judge_gates(gates: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI over images, averaged over the counted steps whose mean step size
    moves by a standard deviation of at least 0.01; the mean over the networks of a controller with Student's interval,
    those of controllers and of both indices holding together. Supported where every controller is below 0, contradicted
    where every one is above. Judged from three networks of each controller on."""
    return judge_correlations(gates, "correlation of step size and NSI over images")


GATES = rule_of_correlations(judge_gates, "At a step, a larger NSI goes with a smaller step size.", "Figure 9a")


def judge_along(gates: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI along the counted steps of single images, over all steps, over
    attentions and over MLPs; its mean over the images of a network, and over the networks of a controller with
    Student's interval, all holding together. Supported where every controller is below 0, contradicted where every one
    is above. Judged from three networks of each controller on."""
    return judge_correlations(gates, "correlation of step size and NSI along trajectories")


ALONG = rule_of_correlations(
    judge_along, "Along a trajectory a larger NSI goes with a smaller step size.", "Figure 9b, as worded"
)


def judge_diagonals(gates: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation, over images, of the share of itself that a token keeps in an attention and of NSI there,
    averaged over the counted attention steps; the mean over the networks of a controller with Student's interval, those
    of the controllers holding together. Supported where every controller is below 0, contradicted where every one is
    above. Judged from three networks of each controller on."""
    return judge_correlations(gates, "correlation of the share that a token keeps and NSI")


DIAGONALS = rule_of_correlations(
    judge_diagonals, "Where NSI is larger, tokens keep less of themselves.", "Figure 9, on attention"
)


def judge_step_sizes(evidence: Evidence) -> list[Finding]:
    transformers = evidence.transformers
    return [
        GATES(correlate_gates([network.measured for network in transformers])),
        ALONG(correlate_along(transformers)),
        DIAGONALS(correlate_diagonals(transformers)),
    ]


def show_step_sizes(page: Page, evidence: Evidence):
    transformers = evidence.transformers
    gated = [network for network in transformers if network.along]
    if not gated:
        page.words("No network here has a step size that changes from image to image: nothing to correlate.")
        return
    page.figure(
        draw_step_sizes(gated),
        "step_sizes",
        "The step size that a controller gives each step, averaged over features. Mean over images; the band holds "
        "nine images of ten.",
    )
    moving, table, _ = gate_table([network.measured for network in gated], "slope")
    if not moving:
        page.words("No step size moves by a standard deviation of 0.01 over the images: nothing to correlate.")
        return
    names = [network.name for network in gated if network.measured in moving]
    blocks = strongest(table[0])
    page.figure(
        draw_cloud(moving[0], "slope", blocks, table[0], "step"),
        "gate_cloud",
        f"Mean step size of an image against its NSI at {len(blocks)} steps, the three counted ones with the strongest "
        "correlation (Figure 9a). Odd steps are attentions, even ones MLPs.",
    )
    page.table(
        "gate",
        [
            {"network": name, **{f"{k + 1}": signed_cell(value) for k, value in enumerate(line)}}
            for name, line in zip(names, table, strict=True)
        ],
        "Spearman's correlation of step size and NSI over images, step by step",
    )
    page.figure(
        draw_along(gated),
        "gate_along",
        "The correlation of step size and NSI along the counted steps of single images, a histogram over images "
        "(Figure 9b as worded). Over all steps the two kinds are mixed, whose step sizes and indices differ by nature.",
    )


def strongest(line) -> list[int]:
    """The three steps with the strongest correlations, in their order, the first step aside."""
    blocks = [k for k in range(1, len(line)) if line[k] == line[k]]
    return sorted(sorted(blocks, key=lambda k: -abs(line[k]))[:3])


def draw_step_sizes(transformers):
    """The mean step size of every step, and how much it varies over images."""
    with panels(len(transformers), in_a_row(len(transformers)), height=2.1, sharey=True) as (drawing, axes):
        for axis, network in zip(use_axes(axes, len(transformers)), transformers, strict=True):
            sizes = network.measured.gates
            steps = np.arange(1, sizes.shape[1] + 1)
            for kind, (name, colour, mark) in enumerate(KIND_LOOKS):
                at = steps % 2 != kind
                low, high = np.percentile(sizes[:, at], [5, 95], axis=0)
                axis.fill_between(steps[at], low, high, color=colour, alpha=0.15, linewidth=0)
                axis.plot(
                    steps[at], sizes[:, at].mean(0), mark, linestyle="-", color=colour, markersize=3.6, label=name
                )
            axis.set_title(network.name, loc="left")
            axis.set_xticks(steps[:: max(1, len(steps) // 6)])
        label_panels(axes, len(transformers), "step", "step size h")
        axes[0, 0].set_ylim(bottom=0)
        legend_below(drawing, axes[0, 0], 2)
    return drawing


def draw_along(transformers):
    """Figure 9b as worded: a histogram over images of the correlation along each one's steps."""
    with panels(len(transformers), in_a_row(len(transformers)), height=2.0, sharex=True, sharey=True) as (
        drawing,
        axes,
    ):
        for axis, network in zip(use_axes(axes, len(transformers)), transformers, strict=True):
            for kind, colour in zip(STEPS, ("#000000", *(look[1] for look in KIND_LOOKS)), strict=True):
                if kind in network.along:
                    values = network.along[kind]
                    shares = np.full(len(values), 100 / len(values))
                    axis.hist(values, BINS, weights=shares, histtype="step", color=colour, label=f"{kind} steps")
            axis.axvline(0, color=style.GREY, linewidth=0.6)
            axis.set_title(network.name, loc="left")
        label_panels(axes, len(transformers), "rank correlation of h and NSI", "images (%)")
        legend_below(drawing, axes[0, 0], 3)
    return drawing


# ---- Appendix G, Eqs. 32 and 33: attention as a step size ----


@rule(
    "A transformer's attention is a step size below 1, as a gate of channels is.",
    "Appendix G, Eq. 32",
    exempt=ARITHMETIC,
)
def judge_average(attention) -> tuple[Verdict, str]:
    """Contradicted where every row of an attention sums to 1 within 1e-4: an average over tokens is a step of 1."""
    least, greatest = min(a.row_sums[0] for a in attention), max(a.row_sums[1] for a in attention)
    ones = max(abs(least - 1), abs(greatest - 1)) <= EXACT
    words = (
        f"Rows of the attention sum to {least:.6f} at the least and {greatest:.6f} at the most, over {len(attention)} "
        f"attention steps. Eq. 32 prints a product of attention and values element by element; what a transformer "
        "computes is an average over tokens, whose weights sum to 1: a step of exactly 1, which no input makes smaller."
    )
    return (CONTRADICTED if ones else UNDECIDED), words


@rule("The queries are a function of the values, so attention sees the slope.", "Appendix G, Eq. 33", exempt=ARITHMETIC)
def judge_inverse(attention) -> tuple[Verdict, str]:
    """With the value map of all heads together: supported at an attention step where the error of Q computed from V
    lies below ten rounding errors times the condition of the value map."""
    worst = max(attention, key=lambda a: a.recovered)
    conditions = [a.condition for a in attention]
    words = (
        f"Q computed from V alone errs by at most {worst.recovered:.1e}, below ten rounding errors times the condition "
        f"of the value map at {sum(a.recovered <= a.rounding for a in attention)} of {len(attention)} steps (condition "
        f"{min(conditions):.0f} to {max(conditions):.0f}). About stiffness that says little: any invertible map of the "
        "tokens would do."
    )
    return of_cases(SUPPORTED if a.recovered <= a.rounding else CONTRADICTED for a in attention), words


@rule("The same holds in every head, where attention is computed.", "Appendix G, Eq. 33", exempt=ARITHMETIC)
def judge_heads(attention, features: int) -> tuple[Verdict, str]:
    """Contradicted at an attention step where the value map of a head has a lower rank than tokens have features."""
    losses = [a.head_loss for a in attention]
    words = (
        f"A head's value map has rank {max(a.head_rank for a in attention)} for tokens of {features} features: it has "
        f"no inverse, and the best guess of a head's queries from its own values errs by {min(losses):.2f} to "
        f"{max(losses):.2f} of their norm. Attention is computed head by head."
    )
    return of_cases(CONTRADICTED if a.head_rank < features else SUPPORTED for a in attention), words


def judge_attention(evidence: Evidence) -> list[Finding]:
    steps = [step for network in evidence.transformers for step in network.attention]
    (features,) = {network.subject.net.config["widths"][0] for network in evidence.transformers} or {0}
    return [judge_average(steps), judge_inverse(steps), judge_heads(steps, features)]


def show_attention(page: Page, evidence: Evidence):
    transformers = evidence.transformers
    page.figure(
        draw_attention(transformers),
        "attention",
        f"What attention is, step by step, on {transformers[0].seen} test images. Above: the mean diagonal and the "
        "mean largest weight of a row; below: the condition number of the value map of all heads, and the relative "
        "error of the queries computed from the values by its inverse, beside ten rounding errors times that number.",
    )
    page.table("attention", rows_of_attention(transformers), "Every attention step", printed=False)


def draw_attention(transformers):
    """What attention keeps of a token, its largest weights, and Eq. 33: condition of the values and error of Q."""
    from matplotlib.ticker import LogLocator

    colours = looks([network.subject for network in transformers])
    with style.figure(2, 2, height=5.0, sharex=True) as (drawing, axes):
        (diagonal, largest), (condition, error) = axes
        lines = [
            DASHES[line % len(DASHES)] for group in by_controller(transformers).values() for line in range(len(group))
        ]
        for network, dashes in zip(transformers, lines, strict=True):
            colour, mark = colours[network.subject.name]
            steps = np.arange(1, len(network.attention) + 1)
            look = {"color": colour, "marker": mark, "markersize": 3.6, "linewidth": 0.9, "linestyle": dashes}
            diagonal.plot(steps, [step.diagonal.mean() for step in network.attention], label=network.name, **look)
            largest.plot(steps, [step.largest.mean() for step in network.attention], **look)
            condition.semilogy(steps, [step.condition for step in network.attention], **look)
            error.semilogy(steps, [step.recovered for step in network.attention], **look)
            error.semilogy(steps, [step.rounding for step in network.attention], ":", color=colour, linewidth=0.9)
        for axis in (diagonal, largest):
            axis.axhline(1 / tokens_of(transformers[0]), color=style.GREY, linewidth=0.8, linestyle="--")
            axis.set_ylim(bottom=0)
        diagonal.set_title("what a token keeps of itself (dashed: uniform)", loc="left")
        largest.set_title("largest weight of a row (dashed: uniform)", loc="left")
        condition.set_title("condition of the value map", loc="left")
        error.set_title("error of Q from V (dotted: allowed)", loc="left")
        for axis in (condition, error):
            axis.set_xlabel("attention step")
            axis.set_xticks(steps)
            axis.yaxis.set_minor_formatter("")
        condition.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        condition.yaxis.set_major_formatter("{x:g}")
        legend_below(drawing, diagonal, 3)
    return drawing


def rows_of_attention(transformers) -> Iterator[dict]:
    for network in transformers:
        tokens = tokens_of(network)
        for number, step in enumerate(network.attention):
            yield {
                "network": network.name,
                "attention": number + 1,
                "row sums": f"{step.row_sums[0]:.6f} to {step.row_sums[1]:.6f}",
                "diagonal": f"{step.diagonal.mean():.4f}",
                "if uniform": f"{1 / tokens:.4f}",
                "largest weight": f"{step.largest.mean():.3f}",
                "condition of W_V": f"{step.condition:.0f}",
                "error of Q from V": f"{step.recovered:.1e}",
                "allowed": f"{step.rounding:.1e}",
                "rank of a head": step.head_rank,
                "error of a head's Q": f"{step.head_loss:.2f}",
            }


EXHIBITS = (
    Exhibit("Accuracy (Table 7)", show_table_7, judge_table_7),
    Exhibit("Stiffness along depth, and in all", show_depth, judge_depth),
    Exhibit("Step size and stiffness (Figure 9)", show_step_sizes, judge_step_sizes),
    Exhibit("Attention as a step size (Eqs. 32 and 33)", show_attention, judge_attention),
)

# ---- The study ----


def main(arguments: Arguments):
    require_at_least(1, arguments, "epochs")
    small = {"controllers": ("constant", "stepnet"), "seeds": (0,)}
    about = "shows transformers trained on", no_networks
    data, notice, arguments = networks.open_traced(STUDY, arguments, PRESETS, 4, *about, **small)
    arguments = fill_in_preset(arguments)
    folders = (train_networks(arguments, data),) if arguments.train else arguments.checkpoint
    subjects = choose_networks(networks.checkpoints(folders) or shipped_networks(data.name), arguments, data)
    page = Page(
        STUDY,
        arguments,
        f"Transformers as trajectories, on {data.name}",
        f"{len(subjects)} networks, {len({s.controller for s in subjects})} controllers, {arguments.images} test "
        f"images. After {STEPNET_PAPER}, Appendix G.",
        notice,
    )
    transformers = measure_networks(subjects, data, arguments)
    page.heading("What these data say")
    page.words(networks.scale_of(subjects, "of its ViT the paper states neither size nor recipe"))
    write(page, EXHIBITS, Evidence(transformers, data.name))
    page.close()


def no_networks(arguments) -> str:
    """The message where a data set is there and no network trained on it; "" where there are networks."""
    if arguments.checkpoint or arguments.train or shipped_networks(arguments.dataset):
        return ""
    return f"no transformers trained on {arguments.dataset} come with this copy of the repository."


def shipped_networks(dataset: str) -> list[Path]:
    return sorted((networks.ZOO / f"{dataset}-vit").glob("*.safetensors"))


def fill_in_preset(arguments):
    """The options with the recipe that the preset says; with --train its seeds, too."""
    preset = PRESETS[arguments.preset]
    seeds = arguments.seeds or (preset["seeds"] if arguments.train else ())
    return dataclasses.replace(arguments, recipe=arguments.recipe or preset["recipe"], seeds=seeds)


def train_networks(arguments, data) -> Path:
    """The folder of the networks asked for, those of Table 7's other data sets trained beside them."""
    for name, images, wanted in plan_trainings(arguments, data):
        jobs.train_all(wanted, images, arguments.out / "networks" / name, STUDY, arguments.device)
    return arguments.out / "networks" / data.name


def plan_trainings(arguments, data) -> Iterator[tuple]:
    """The name, the images and the jobs of this data set and, at full size, of the others that can be had."""
    every = arguments.preset == "full" and data.name in DATASETS
    for name in (data.name, *(other for other in DATASETS if every and other != data.name)):
        try:
            images = data if name == data.name else datasets.load(name, arguments.data_root)
        except datasets.DataUnavailable:
            print(f"{name} cannot be had here; its rows of Table 7 are left out.", flush=True)
            continue
        with plain_errors(STUDY):
            yield name, images, queue(name, arguments)


def choose_networks(paths, arguments, data) -> list[networks.Subject]:
    """The networks at `paths` that the options ask for; the study ends with a message where there are none."""
    subjects = networks.name_subjects([networks.read_subject(path) for path in paths])
    for subject in subjects:
        if subject.net.config.get("family") != "vit":
            raise SystemExit(
                f"{subject.source} is no transformer; python -m studies.cifar_tns looks at residual networks."
            )
        if not classes_fit(subject.net, data):
            raise SystemExit(
                f"{subject.source} tells another number of classes apart than {data.name} has: choose its `--dataset`."
            )
        if subject.net.config["blocks"][0] < 4:
            raise SystemExit(
                f"{subject.source} has a single block, and first steps are not counted: take a deeper one."
            )
    return networks.select(subjects, arguments, data.name, "`--train` makes what is missing.")


def measure_networks(subjects, data, arguments):
    """Everything about every network."""
    draws = choices(arguments.images, arguments.resamples, seed=0)

    def look(subject, progress):
        return study_network(subject, data, arguments.images, arguments.device, draws, progress)

    return measure_each(subjects, arguments.images, look)


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
