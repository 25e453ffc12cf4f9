"""First paper, Section 3.1: TNS in the loss, for choosing architectures and for pruning (about 20 s).

The paper proposes TNS for architecture search and for pruning but reports no experiment; a loss that rewards TNS
follows from its central claim. All three are tried on small networks: on the digits with measurements that are shipped,
on CIFAR-10 with `--dataset cifar10 --train`; pruning is shown of both.

Last result (2026-11-20): dropping the blocks of smallest NSI keeps 17 points more than dropping random ones with eight
controllers of the digits, and 6 fewer [-14, +2] with eleven of CIFAR-10, where pruning by the loss keeps 17 more than
by NSI: true of some. Punishing TNS with weight 0.1 lowers it, the other weights decide nothing (strong rewards end four
of ten trainings and scatter the others between 10 and 91 %); whether rewarding TNS moves accuracy is undecided. Nor do
36 architectures decide whether TNS before training, its scale or its shape ranks them.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

import netbridge as nb
from netbridge.common.batches import channels_last
from netbridge.common.devices import best_device
from netbridge.train import epochs, loop
from netbridge.train.recipes import recipe
from odelab.plot import style
from studies import population
from studies.lab import definitions, jobs, measurements
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.comparisons import deviation_cell, interval_cell, welch
from studies.lab.exhibits import Exhibit, write
from studies.lab.figures import MARKS
from studies.lab.jobs import Job
from studies.lab.measurements import Measurement
from studies.lab.networks import Subject, load_images, read_subject, shipped_files
from studies.lab.options import ThreadOptions, which_jobs
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.results import source
from studies.lab.statistics import Estimate, interval_text, kendall_within, listing, mean_with_interval
from studies.lab.stiffness import (
    KINDS,
    QUANTITIES,
    QUANTITY_NAMES,
    READINGS,
    SCALE,
    SHAPE,
    TNS,
    mean_stiffness,
    prepare,
    quantity_of,
    trace_both,
    wording,
)
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    agreeing,
    corrected,
    enough,
    joint,
    of_cases,
    of_each,
    of_interval,
    rule,
)

STUDY = "tns_at_work"
SHIPPED = Path(__file__).parent / "shipped" / STUDY

# ---- The design: what is trained. Written before anything was ----
#
# The design of `tns_at_work`: what is trained. Written before anything was.
#
# *In the loss.* One small ResNet-20, constant step sizes, ten seeds for each weight of the mean TNS of a batch (slope
# index, mean of the sample) in the loss: -0.1 and -0.01 reward TNS, 0.01 and 0.1 punish it, 0 is the usual training. A
# training whose TNS is not defined any more, because a state has become zero, counts as diverged: it is named and left
# out. (Of a pilot with one seed it was known that this happens at weights of -1.)
#
# *Before training.* Networks of 20, 26 and 32 layers, two widths, six controllers: 36 architectures, one seed each (on
# CIFAR-10 the networks of `population` that are measured, of the recipe `brief`). TNS before training is the mean over
# 256 test images, after the batch normalisations have seen 256 training images once. Rivals: the number of parameters,
# and the norm of the gradient of the first loss (Abdelfattah et al. 2021, "grad norm").
#
# *Pruning.* Trained networks that come with the repository. k of the counted blocks are dropped without training again:
# those of the smallest mean NSI (slope), of the largest, those whose dropping alone raises the loss least, or random
# ones (five draws). NSI and losses are of 250 training images, accuracies of 250 test images. A network's number is the
# mean over k of the difference of accuracies.
#
# The rules stand with what they judge. They were fixed before anything was trained, and changed when
# it had been seen: deviations of weights may differ, controllers and shapes are what is resampled, controllers are the
# units of pruning, which is shown of two families of networks. `docs/papers.md` has the verdicts of before.
#
# Made-up numbers scatter as the measured ones do (2026-11-20): accuracies over seeds by 4 points, and nine times as far
# at the largest reward; TNS by a quarter of its mean, and ten times as far there; points of pruning over controllers by
# 10, and beside pruning by the loss by 4 (with the digits; with CIFAR-10 by 11).


WEIGHTS = (0.0, -0.1, -0.01, 0.01, 0.1)
SEEDS = 10
CONTROLLERS = ("constant", "se", "eca", "srm", "cbam", "stepnet")
DEPTHS, WIDTHS = (20, 26, 32), (4, 8)
DROPPED = (1, 2, 4)
DRAWS = 5  # of random blocks
SHOWN = 256  # images before training
FAMILIES = ("digits", "cifar10")  # data sets whose networks are pruned
PRUNED_ON = 250  # images to choose blocks by, and as many to test with
MARGIN = 1.0  # points
NEGLIGIBLE = population.NEGLIGIBLE  # a tau so near to 0 is no relation to speak of
FEWEST_SEEDS, FEWEST_ARCHITECTURES, FEWEST_PRUNED = 3, population.FEWEST_NETWORKS, 5
DIGITS = recipe("digits", epochs=4, evaluate_every=100)


@dataclasses.dataclass
class Arguments(ThreadOptions):
    """TNS as a term of the loss, as a measure of untrained architectures, and as a guide to pruning."""

    dataset: str = "digits"
    """What the networks see: digits, cifar10, cifar100, stl10, or a name from a file of --define."""
    train: bool = False
    """Train and measure what is missing. If it is stopped, start it again. Processes with one --out share the work."""
    seeds: int = SEEDS
    """How many seeds of every weight of TNS in the loss."""
    pruned: int | None = None
    """Show and prune only so many networks of each data set that come with the repository; all by default."""
    define: tuple[Path, ...] = ()
    """Python files with controllers, networks (NETWORKS) or data sets (DATASETS) of your own. With --train controllers
    are trained with every weight and in every shape, networks once; the verdicts stay those of the study's networks."""
    out: Path = Path("results/tns_at_work")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A job, and the weight of TNS in its loss."""

    job: Job
    weight: float = 0.0

    @property
    def stem(self) -> str:
        return self.job.stem + (f"-tns{self.weight:+g}" if self.weight else "")

    @property
    def specification(self) -> dict:
        return self.job.specification | ({"tns_weight": self.weight} if self.weight else {})


def weighted_runs(dataset: str, seeds: int = SEEDS) -> list[Run]:
    """The networks of the first part, seed by seed."""
    like = Job("digits", "constant", 0, DIGITS, 20, 4)
    if dataset != "digits":
        like = Job(dataset, "constant", 0, population.BRIEF, *population.CORE, size=population.PIXELS)
    return [Run(dataclasses.replace(like, seed=seed), weight) for seed in range(seeds) for weight in WEIGHTS]


def architectures(dataset: str) -> list[Run]:
    """The networks of the second part: on CIFAR-10 those of `population`, else every shape with every controller."""
    if dataset == "cifar10":
        runs = (job for job in population.queue() if job.recipe.name == population.BRIEF.name and job.depth > 14)
        return [Run(job) for job in runs]
    return [Run(dataclasses.replace(job, controller=name)) for job in shapes(dataset) for name in CONTROLLERS]


def shapes(dataset: str) -> list[Job]:
    """Networks with constant step sizes, one of every depth and width of the second part."""
    how, size = (DIGITS, None) if dataset == "digits" else (population.BRIEF, population.PIXELS)
    return [Job(dataset, "constant", 100, how, depth, width, size=size) for depth in DEPTHS for width in WIDTHS]


def of_ones_own(files, dataset: str, seeds: int = SEEDS) -> tuple[list[Run], list[Run]]:
    """What the files of `--define` add: every controller to both parts, every network to the second."""
    first = [
        Run(job, run.weight)
        for run in weighted_runs(dataset, seeds)
        for job in jobs.of_ones_own([run.job], files, networks=False)
    ]
    return first, [Run(job) for job in jobs.of_ones_own(shapes(dataset), files)]


def smoke() -> tuple[list[Run], list[Run]]:
    """A few networks of either part that only show that everything works."""

    def small(run: Run) -> Run:
        recipe = dataclasses.replace(DIGITS, epochs=1)
        return dataclasses.replace(run, job=dataclasses.replace(run.job, images=256, recipe=recipe))

    first = [small(run) for run in weighted_runs("digits", 2) if run.weight in (0.0, -0.1)]
    return first, [small(run) for run in architectures("digits")[:3]]


# ---- What is measured ----
PARAMETERS = "parameters"
RIVALS = {PARAMETERS: "number of parameters", "gradient": "norm of the first gradient"}
KEYS = tuple((what, reading) for what in QUANTITIES for reading in QUANTITIES[what])
ORDERS = SMALLEST, LARGEST, BY_LOSS, RANDOM = "smallest NSI", "largest NSI", "smallest loss", "random"


def carry_out(run: Run, work: Path, root: Path | None = None, device=None) -> Measurement:
    """Train the network of a run with its term in the loss, and keep what it scored and what it was before."""
    data = measurements.images_of(run.job.dataset, run.job.size, root)
    data = run.job.data_of(data)
    net = run.job.untrained_network(len(data.names), data.size)
    numbers: dict[str, Any] = {"before": before_training(run, data, device)}
    try:
        with nb.stiffness_term(net, run.weight):
            loop.train(net, data, run.job.recipe, run.job.seed, device=device, quiet=True)
    except ValueError as error:
        if not str(error).startswith(("`state`", "`slope`")):
            raise  # a wrong option, and no state that has become zero, by whose norm the index divides
        raise epochs.Diverged(f"TNS is not defined any more: {error}") from None
    records = trace_both(net, data, measurements.TRACED, device or best_device())
    numbers |= {key: net.about[key] for key in ("test_accuracy", "test_loss", "seconds")}
    numbers["made"] = {"threads": torch.get_num_threads(), "torch": torch.__version__, **source()}
    numbers |= totals(records)
    measured = Measurement(run.specification, numbers, {})
    measurements.write(measured, work / f"{run.stem}.npz")
    return measured


def before_training(run: Run, data, device=None) -> dict:
    """Of an untrained network: TNS under every reading, its scale, parameters and the norm of the first gradient."""
    device = device or best_device()
    net = run.job.untrained_network(len(data.names), data.size).to(device)
    images = prepare(net, data, data.train_images[:SHOWN].to(device))
    labels = data.train_labels[:SHOWN].to(device)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # a running mean of what has been seen, which is one batch
    F.cross_entropy(net.train()(images), labels).backward()
    gradient = float(torch.stack([p.grad.norm() for p in net.parameters() if p.grad is not None]).norm())
    records = trace_both(net, data, SHOWN, device)
    return {
        **totals(records),
        "parameters": sum(p.numel() for p in net.parameters()),
        "gradient": gradient,
    }


def totals(records: nb.Records) -> dict:
    """TNS under every reading, and its scale by index."""
    return {
        "tns": [mean_stiffness(records[of], mu) for of, mu in READINGS],
        "scale": {of: float(records[of].counted().nsi.mean()) for of in KINDS},
    }


def describe(measured: measurements.Measurement) -> str:
    numbers = measured.numbers
    return f"{100 * numbers['test_accuracy']:.2f} % on the test set, {numbers['seconds']:.0f} s of training."


Groups = dict[float, list[float]]  # one number for each seed, by weight of TNS in the loss
TRAIN = "n = 0: `--train` makes the networks."


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What the study shows.

    tns, accuracies  of networks trained with TNS in their loss, by its weight
    searched         architectures before and after their training
    pruned           what networks have left without some of their blocks, by family
    own_weighted     TNS and accuracies, by weight, of each controller of the user's
    own_searched, own_names  the user's architectures, and what they are called
    own_planned      how many networks of the user's there are to be
    """

    tns: Groups
    accuracies: Groups
    searched: "Architectures"
    pruned: "dict[str, list[Pruned]]"
    own_weighted: dict[str, tuple[Groups, Groups]]
    own_searched: "Architectures"
    own_names: Sequence[str] = ()
    own_planned: int = 0


# ---- TNS as a term of the loss ----
IN_LOSS = "Section 3.1: a measure that training could aim at"
WELCH = (
    "after the data: with 46 networks seen, of which those of one weight scatter nine times as far as the others, "
    "intervals with deviations that may differ replaced Dunnett's. By the rule before (Dunnett and Welch's): undecided"
)


def in_loss(runs, folders) -> tuple[Groups, Groups]:
    """TNS (the first reading) and accuracy by weight."""
    tns: Groups = {weight: [] for weight in WEIGHTS}
    accuracies: Groups = {weight: [] for weight in WEIGHTS}
    for run in runs:
        measured = measurements.find(run, folders)
        if measured is not None:
            tns[run.weight].append(measured.numbers["tns"][0])
            accuracies[run.weight].append(100 * measured.numbers["test_accuracy"])
    return tns, accuracies


def by_weight(groups: Mapping[float, Sequence[float]], asked: int = 1) -> dict[str, Estimate]:
    """How far the mean at every weight lies above that without the term: Welch, over seeds.

    Seeds of one weight may lie farther apart than those of another. `asked` weights are judged together.
    """
    return welch("0", {f"{weight:g}": list(values) for weight, values in groups.items()}, corrected(asked))


def counts(groups: Mapping[float, Sequence[float]]) -> str:
    return ", ".join(f"{weight:g}: {len(groups[weight])}" for weight in sorted(groups))


def too_few(groups: Mapping[float, Sequence[float]]) -> str:
    return enough({f"weight {weight:g}": groups.get(weight, ()) for weight in WEIGHTS}, FEWEST_SEEDS)


LARGEST_REWARD = min(WEIGHTS)


def draw_weights(chance: np.random.Generator, means: dict[float, float], spread: float, times: float, n: int) -> dict:
    """n seeds at every weight; at the largest reward they scatter `times` as far, and four of ten are left out."""
    return {
        weight: chance.normal(mean, spread * (times if weight == LARGEST_REWARD else 1.0), count).tolist()
        for weight, mean in means.items()
        for count in [round(0.6 * n) if weight == LARGEST_REWARD else n]
    }


def worlds_of_term(chance, effect, n):
    """TNS at every weight: half as much again where it is rewarded and half where it is punished, or as it was."""
    return (
        draw_weights(
            chance, {weight: 0.1 * (1.0 - 0.5 * effect * np.sign(weight)) for weight in WEIGHTS}, 0.025, 10.0, n
        ),
    )


@rule(
    "TNS as a term of the loss moves TNS: rewarded it grows, punished it shrinks.",
    IN_LOSS,
    fixed=WELCH,
    fewest=FEWEST_SEEDS,
    worlds=Worlds(worlds_of_term, n=24, units="seeds", effect="half as much again, or half of it", now=10),
)
def judge_term(tns: Mapping[float, Sequence[float]]) -> tuple[Verdict, str]:
    """TNS on test images at each weight of TNS in the loss minus that without, by Welch over seeds, the intervals of
    all four weights holding together. Supported where every reward lies above 0 and every punishment below,
    contradicted where every one lies on the other side, true or false of some where only some are decided. Judged from
    three seeds of each weight on."""
    if not any(len(values) for values in tns.values()):
        return NOT_RUN, TRAIN
    few, beyond = too_few(tns), by_weight(tns, len(WEIGHTS) - 1)
    cases = [of_interval(e, sign=-1 if float(weight) > 0 else 1) for weight, e in beyond.items()]
    words = (
        f"{few}TNS (slope NSI, sample mean) above that without the term, by weight: {listing(beyond, '+.3f')}. "
        f"Networks by weight: {counts(tns)}; a training whose TNS became undefined on the way is left out."
    )
    return (UNDECIDED.because("too few seeds") if few else of_cases(cases)), words


def worlds_of_reward(chance, effect, n):
    """Accuracies at every weight: 4 points more where TNS is rewarded, or as many."""
    return (draw_weights(chance, {weight: 90.0 + 4.0 * effect * (weight < 0) for weight in WEIGHTS}, 4.0, 9.0, n),)


@rule(
    "Rewarding TNS in the loss raises the accuracy.",
    IN_LOSS,
    fixed=WELCH,
    fewest=FEWEST_SEEDS,
    worlds=Worlds(
        worlds_of_reward, n=24, units="seeds", effect="+4 points, as far as seeds scatter without it", now=10
    ),
)
def judge_reward(accuracies: Mapping[float, Sequence[float]]) -> tuple[Verdict, str]:
    """Accuracies at the two weights that reward TNS minus those without the term, by Welch over seeds, both intervals
    holding together. Supported where both lie above 0, contradicted where both lie below, true or false of some where
    only one is decided. Judged from three seeds of each weight on."""
    if not any(len(values) for values in accuracies.values()):
        return NOT_RUN, TRAIN
    rewards = {weight: values for weight, values in accuracies.items() if weight <= 0}
    few, beyond = too_few(accuracies), by_weight(rewards, len(rewards) - 1)
    words = (
        f"{few}Points above training without the term, by weight (negative weights reward TNS): {listing(beyond)}. "
        f"Networks by weight: {counts(accuracies)}."
    )
    return (UNDECIDED.because("too few seeds") if few else of_each(beyond)), words


def judge_loss(evidence: Evidence) -> list[Finding]:
    return [judge_term(evidence.tns), judge_reward(evidence.accuracies)]


def show_loss(page: Page, evidence: Evidence):
    tns, accuracies = evidence.tns, evidence.accuracies
    page.words(
        "The loss is the cross-entropy plus a weight times the mean TNS of the batch (slope NSI, sample mean): "
        "negative weights reward stiffness, positive ones punish it. `nb.stiffness_term` does it in any training loop."
    )
    if not all(accuracies.values()):
        page.words("Of some weight no network is there.")
        return
    page.figure(
        draw_loss(tns, accuracies),
        "weight",
        "TNS and accuracy on test images against the weight. Grey: single seeds. The line joins their means.",
    )
    page.table(
        "weights",
        rows_of_weights(tns, accuracies),
        "TNS and accuracy over seeds",
    )


def draw_loss(tns: Groups, accuracies: Groups):
    """TNS and accuracy against the weight of TNS in the loss, every seed a mark, their means a line."""
    weights = sorted(tns)
    with style.figure(1, 2, height=2.4) as (drawing, axes):
        for axis, groups, label in zip(axes[0], (tns, accuracies), ("TNS", "test accuracy (%)"), strict=True):
            for index, weight in enumerate(weights):
                axis.plot(np.full(len(groups[weight]), index), groups[weight], ".", color=style.GREY, markersize=4)
            axis.plot(range(len(weights)), [np.mean(groups[weight]) for weight in weights], "o-", markersize=4)
            axis.set_xticks(range(len(weights)), [f"{weight:g}" for weight in weights])
            axis.set_xlabel("weight of TNS in the loss")
            axis.set_ylabel(label)
        axes[0, 0].set_yscale("log")
    return drawing


def rows_of_weights(tns, accuracies) -> list[dict]:
    """One row per weight of which a network is there."""
    return [
        {
            "weight": f"{weight:g}",
            "seeds": len(tns[weight]),
            "TNS": f"{np.mean(tns[weight]):.3f}",
            "its standard deviation": deviation_cell(tns[weight], form=".3f"),
            "accuracy (%)": f"{np.mean(accuracies[weight]):.2f}",
            "standard deviation": deviation_cell(accuracies[weight]),
        }
        for weight in sorted(tns)
        if tns[weight]
    ]


# ---- TNS before training ----
SEARCH = "Section 3.1: architecture search"
CROSSED = (
    "after the data: with 36 networks seen, controllers and shapes became what is resampled, where networks had been, "
    "and scale and shape of TNS were taken apart. By the rule before, of TNS alone: undecided"
)
RESAMPLES = 2000


@dataclasses.dataclass(frozen=True, eq=False)
class Architectures:
    """What n networks were before training, and how good they became.

    before       one number for each network, by (quantity, reading) of `stiffness.QUANTITIES`, "parameters", "gradient"
    accuracy     after training, per cent
    controllers  a name for each
    shapes       depth and width, a name for each
    """

    before: dict[Any, np.ndarray]
    accuracy: np.ndarray
    controllers: np.ndarray
    shapes: np.ndarray

    def __len__(self):
        return len(self.accuracy)

    def of(self, chosen: np.ndarray) -> "Architectures":
        """The chosen ones alone."""
        before = {key: values[chosen] for key, values in self.before.items()}
        return Architectures(before, self.accuracy[chosen], self.controllers[chosen], self.shapes[chosen])


def search(runs: list[Run], folders, root: Path | None = None, device=None) -> Architectures:
    """The architectures that are measured; what a file does not say of the untrained network is measured now."""
    rows: list[list[float]] = []
    about: list[tuple[float, str, str]] = []
    for run in runs:
        measured = measurements.find(run, folders)
        if measured is None:
            continue
        untrained = measured.numbers.get("before", {})
        if "scale" not in untrained:  # of the study of the population, which looks at trained networks alone
            untrained = before_training(run, measurements.images_of(run.job.dataset, run.job.size, root), device)
        rows.append([quantity(untrained, what, reading) for what, reading in KEYS] + [untrained[key] for key in RIVALS])
        shape = f"{run.job.depth} layers, {run.job.width} channels"
        about.append((100.0 * measured.numbers["test_accuracy"], run.job.label, shape))
    table = np.array(rows, dtype=float).reshape(-1, len(KEYS) + len(RIVALS))
    accuracy, controllers, shapes = zip(*about, strict=True) if about else ((), (), ())
    before = dict(zip((*KEYS, *RIVALS), table.T, strict=True))
    return Architectures(before, np.array(accuracy, dtype=float), np.array(controllers), np.array(shapes))


def quantity(untrained: dict, what: str, reading: tuple) -> float:
    """TNS, its scale or its shape, of what `before_training` returns; NaN where it is not defined."""
    tns = untrained["tns"][READINGS.index(reading)] if len(reading) == 2 else None
    return quantity_of(what, tns, untrained["scale"][reading[0]])


def rank_correlation(searched: Architectures, key, level: float = 0.95, resamples: int = RESAMPLES) -> Estimate:
    """Kendall's tau-b with the accuracy, over the architectures for which a measure is defined.

    Controllers and shapes are resampled, each whole: networks of one are alike.
    """
    defined = np.isfinite(searched.before[key])
    kinds = [searched.controllers[defined], searched.shapes[defined]]
    return kendall_within(
        searched.before[key][defined], searched.accuracy[defined], np.zeros(defined.sum()), resamples, level, kinds
    )


FEW_RESAMPLES = 50
SIDE = 6  # controllers, and shapes, of the design


def worlds_of_search(what: str):
    """Worlds of as many controllers as shapes, which differ in both numbers, each on its own.

    What single networks have in common beside that makes a Kendall's tau of about 0.5, or of 0.
    """

    def make(chance, effect, n):
        side = math.isqrt(n)
        controllers, shapes = (names.ravel() for names in np.meshgrid(np.arange(side), np.arange(side)))

        def number(own):
            return own + 0.5 * chance.normal(size=side)[controllers] + 0.5 * chance.normal(size=side)[shapes]

        skill = chance.normal(size=side * side)
        stiff = number(agreeing(chance, skill, 0.75 * effect))
        before: dict = {(what, reading): stiff + 0.3 * chance.normal(size=len(stiff)) for reading in QUANTITIES[what]}
        before["parameters"] = number(chance.normal(size=len(stiff)))
        searched = Architectures(before, number(skill), controllers.astype(str), shapes.astype(str))
        return searched, what, FEW_RESAMPLES

    return make


def judge_ranking(searched: Architectures, what: str, resamples: int = RESAMPLES) -> tuple[Verdict, str]:
    """Kendall's tau-b of a number of untrained networks and their accuracy after training, one network for each
    controller and shape; the bootstrap draws controllers and shapes, so that none of them makes a relation alone.
    Supported under a reading where the interval lies above 0, contradicted where below, no difference where it lies
    within 0.15 of 0. The intervals hold together over the readings; nothing is judged with fewer than 24 networks."""
    n = len(searched)
    if not n:
        return NOT_RUN, TRAIN
    verdicts, parts = {}, []
    for reading in QUANTITIES[what]:
        level = corrected(len(QUANTITIES[what]))
        tau = rank_correlation(searched, (what, reading), level, resamples)
        verdicts[reading] = UNDECIDED.because(f"n = {n} networks, judged from {FEWEST_ARCHITECTURES} on")
        if n >= FEWEST_ARCHITECTURES:
            verdicts[reading] = of_interval(tau, negligible=NEGLIGIBLE)
        parts.append(f"{wording(*reading)}: {interval_text(tau, '+.2f')} ({verdicts[reading]})")
    return joint(verdicts), f"Kendall's tau-b over {n} networks. {'; '.join(parts)}."


def rule_of_ranking(what: str) -> Rule:
    """Claim 3 for one of TNS, scale and shape."""
    made = Worlds(worlds_of_search(what), n=100, units="networks", effect="Kendall's tau of 0.5", now=36)
    claim = f"Before training, {QUANTITY_NAMES[what]} ranks architectures as their accuracy does."
    options = {"fixed": CROSSED, "fewest": FEWEST_ARCHITECTURES, "negligible": NEGLIGIBLE}
    return rule(claim, SEARCH, variant=what, worlds=made, **options)(judge_ranking)


RANKING = {what: rule_of_ranking(what) for what in QUANTITIES}


def judge_better(searched: Architectures, what: str, resamples: int = RESAMPLES) -> tuple[Verdict, str]:
    """Kendall's tau-b of a number of untrained networks with their accuracy after training, minus that of the number of
    parameters; the bootstrap draws controllers and shapes, the same for both. Supported under a reading where the
    interval lies above 0, contradicted where below. The intervals hold together over the readings; nothing is judged
    with fewer than 24 networks."""
    n = len(searched)
    if not n:
        return NOT_RUN, TRAIN
    verdicts, parts = {}, []
    for reading in QUANTITIES[what]:
        level, defined = corrected(len(QUANTITIES[what])), searched.of(np.isfinite(searched.before[what, reading]))
        ours, theirs = (rank_correlation(defined, key, level, resamples) for key in ((what, reading), PARAMETERS))
        difference = ours.minus(theirs, level)
        verdicts[reading] = UNDECIDED.because(f"n = {n} networks, judged from {FEWEST_ARCHITECTURES} on")
        if n >= FEWEST_ARCHITECTURES:
            verdicts[reading] = of_interval(difference)
        parts.append(f"{wording(*reading)}: {interval_text(difference, '+.2f')} ({verdicts[reading]})")
    rivals = "; ".join(
        f"{name} {interval_text(rank_correlation(searched, key, resamples=resamples), '+.2f')}"
        for key, name in RIVALS.items()
        if key in searched.before
    )
    words = f"Tau-b minus that of the number of parameters. {'; '.join(parts)}. By themselves: {rivals}."
    return joint(verdicts), words


def rule_of_better(what: str) -> Rule:
    """Claim 4 for one of TNS, scale and shape."""
    effect = "a tau of 0.5 where that of the number of parameters is 0"
    made = Worlds(worlds_of_search(what), n=144, units="networks", effect=effect, now=36)
    claim = f"Before training, {QUANTITY_NAMES[what]} ranks architectures better than the number of parameters does."
    options = {"fixed": CROSSED, "fewest": FEWEST_ARCHITECTURES, "worlds": made, "variant": what}
    return rule(claim, SEARCH, **options)(judge_better)


BETTER = {what: rule_of_better(what) for what in QUANTITIES}


def judge_search(evidence: Evidence) -> list[Finding]:
    """Two findings for TNS, scale and shape each."""
    return [rules[what](evidence.searched, what) for rules in (RANKING, BETTER) for what in QUANTITIES]


def show_search(page: Page, evidence: Evidence):
    searched, own = evidence.searched, evidence.own_searched
    if len(searched) < 2:
        page.words("Fewer than two architectures are there.")
        return
    page.figure(
        draw_search(searched, own),
        "before_training",
        "Accuracy after training against TNS before it, its scale and its shape, one mark per architecture."
        + (" Hollow: architectures of your own, which no number counts." if own else ""),
    )
    names = {key: f"{QUANTITY_NAMES[key[0]]}, {wording(*key[1])}" for key in KEYS} | RIVALS
    rows = [
        {
            "before training": name,
            "networks": int(np.isfinite(searched.before[key]).sum()),
            "Kendall's tau-b": interval_text(rank_correlation(searched, key), "+.2f"),
        }
        for key, name in names.items()
    ]
    page.table(
        "before_training",
        rows,
        "Rank correlation with the accuracy after training, over architectures",
        "Intervals of 95 %, each for itself, by a bootstrap that draws controllers and shapes.",
    )


def draw_search(searched: Architectures, own: Architectures):
    """Accuracy after training against TNS before it, its scale and its shape; hollow, networks of the user's."""
    shown = [*((TNS, reading) for reading in READINGS), (SCALE, QUANTITIES[SCALE][0]), (SHAPE, READINGS[0])]
    with style.figure(2, 3, height=4.6, sharey=True) as (drawing, axes):
        for axis, key in zip(axes.flat, shown, strict=True):
            axis.plot(searched.before[key], searched.accuracy, "o", markersize=3.5, alpha=0.8)
            axis.plot(own.before[key], own.accuracy, "o", color="#000000", markerfacecolor="none", markersize=4.5)
            axis.set_title(wording(*key[1]).replace(", ", ",\n"), loc="left")
            axis.set_xlabel(f"{QUANTITY_NAMES[key[0]]} before training")
            axis.locator_params(axis="x", nbins=4)
        for row in axes:
            row[0].set_ylabel("accuracy after it (%)")
    return drawing


# ---- Pruning steps ----
PRUNING = "Section 3.1: network pruning"
BY_FAMILY = (
    "after the data: with 16 networks of the digits seen and supported, 22 of CIFAR-10 joined, and controllers became "
    "the units, where networks had been. By the rule before, of the digits alone: "
)


@dataclasses.dataclass(frozen=True)
class Pruned:
    """Accuracies of one network on test images without k of its counted blocks.

    controller, seed  of the network
    whole     accuracy of the whole network, per cent
    accuracy  by order and k; of random blocks the mean over the draws
    """

    controller: str
    seed: int | None
    whole: float
    accuracy: dict[str, dict[int, float]]

    @property
    def name(self) -> str:
        return self.controller if self.seed is None else f"{self.controller}, seed {self.seed}"

    def advantage(self, order: str, other: str) -> float:
        """By how many points the one order keeps more accuracy than the other, the mean over k."""
        pairs = zip(self.accuracy[order].values(), self.accuracy[other].values(), strict=True)
        return float(np.mean([a - b for a, b in pairs]))


@dataclasses.dataclass(frozen=True)
class Pruning:
    """The pruning of one network, which a file holds; the fields of the specification determine its result."""

    path: Path

    @property
    def family(self) -> str:
        """The folder of the network, which has the name of its data set."""
        return self.path.parent.name

    @property
    def stem(self) -> str:
        return f"pruned-{self.family}-{self.path.stem}"

    @property
    def specification(self) -> dict:
        digest = hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]
        record = {"network": f"{self.family}/{self.path.name}", "digest": digest, "images": PRUNED_ON}
        return record | {"dropped": list(DROPPED), "draws": DRAWS}

    def find(self, folders) -> Pruned | None:
        stored = measurements.find(self, folders)
        if stored is None:
            return None
        numbers = stored.numbers
        accuracy = {order: {int(k): x for k, x in of.items()} for order, of in numbers["accuracy"].items()}
        return Pruned(numbers["controller"], numbers["seed"], numbers["whole"], accuracy)

    def carry_out(self, data, work: Path, device) -> Pruned:
        measured = prune(read_subject(self.path), data, device)
        measurements.write(Measurement(self.specification, dataclasses.asdict(measured), {}), work / f"{self.stem}.npz")
        return measured


def prune(subject: Subject, data, device, seed: int = 0) -> Pruned:
    """A network without some of its blocks, chosen on training images and tested on others."""
    net = channels_last(subject.net.to(device)).eval()
    count = PRUNED_ON
    chosen_on = prepare(net, data, data.train_images[:count].to(device)), data.train_labels[:count].to(device)
    tested_on = prepare(net, data, data.test_images[:count].to(device)), data.test_labels[:count].to(device)
    record = nb.trace(net, chosen_on[0])
    candidates = np.flatnonzero(~record.first)
    stiffness = record.nsi.mean(0)[candidates]
    losses = np.array([score(net, [block], *chosen_on)[0] for block in candidates])
    generator = np.random.default_rng(seed)
    accuracy: dict[str, dict[int, float]] = {order: {} for order in ORDERS}
    for k in (k for k in DROPPED if k < len(candidates)):
        for order, values in ((SMALLEST, stiffness), (LARGEST, -stiffness), (BY_LOSS, losses)):
            accuracy[order][k] = score(net, candidates[np.argsort(values)[:k]], *tested_on)[1]
        draws = [generator.choice(candidates, k, replace=False) for _ in range(DRAWS)]
        accuracy[RANDOM][k] = float(np.mean([score(net, blocks, *tested_on)[1] for blocks in draws]))
    return Pruned(subject.controller, subject.seed, score(net, [], *tested_on)[1], accuracy)


@torch.no_grad()
def score(net, blocks, images, labels) -> tuple[float, float]:
    """Loss, and accuracy in per cent, of a network without these blocks."""
    with contextlib.ExitStack() as without:
        for block in blocks:
            without.enter_context(nb.altered(net, int(block)))
        logits = net(images)
    return float(F.cross_entropy(logits, labels)), 100 * float((logits.argmax(1) == labels).double().mean())


def prunings(images, arguments, folders) -> dict[str, list[Pruned]]:
    """By family, what every network has left without some of its blocks; those of `images` are pruned if need be."""
    families: dict[str, list[Pruned]] = {}
    for family in dict.fromkeys((*FAMILIES, images.name)):
        runs = [Pruning(path) for path in shipped_files(family)][: arguments.pruned]
        pruned = [network for run in runs if (network := find_or_prune(run, images, arguments, folders)) is not None]
        if pruned:
            families[family] = sorted(pruned, key=lambda network: (network.controller != "constant", network.name))
    return families


def find_or_prune(run: Pruning, images, arguments, folders) -> Pruned | None:
    pruned = run.find(folders)
    if pruned is not None or run.family != images.name:
        return pruned
    return run.carry_out(images, folders[0], arguments.device or "cpu")


def advantages(pruned: Mapping[str, Sequence[Pruned]], other: str) -> dict[str, list[float]]:
    """By family the points that smallest NSI keeps above another order, a mean over the seeds of each controller."""
    points = {}
    for family, networks in pruned.items():
        groups: dict[str, list[float]] = {}
        for network in networks:
            groups.setdefault(network.controller, []).append(network.advantage(SMALLEST, other))
        points[family] = [float(np.mean(values)) for values in groups.values()]
    return points


def judge_families(points: Mapping[str, Sequence[float]], least: float = 0.0) -> tuple[Verdict, str]:
    """The verdict on several families of networks, from one number for each controller, and the numbers behind it."""
    if not any(points.values()):
        return NOT_RUN, "n = 0 pruned networks: `--train` prunes them."
    several = {family: values for family, values in points.items() if values}
    few = enough(several, FEWEST_PRUNED, "controllers")
    estimates = {family: mean_with_interval(values, corrected(len(several))) for family, values in several.items()}
    shown = "; ".join(f"{family}, {e.n} controllers: {interval_text(e, '+.1f')}" for family, e in estimates.items())
    words = f"{few}{shown}."
    if few:
        return UNDECIDED.because("too few controllers"), words
    return of_each({family: e.less(least) for family, e in estimates.items()}), words


def draw_prunings(chance, mean: float, spread: float, n: int) -> tuple[dict[str, list[Pruned]]]:
    """Two families of n controllers with two seeds each, whose smallest NSI keeps so many points above other orders."""
    made: dict[str, list[Pruned]] = {}
    for family in ("digits", "cifar10"):
        made[family] = []
        for controller, points in enumerate(mean + spread * chance.normal(size=n)):
            for seed in range(2):
                left = {"smallest NSI": {1: points + chance.normal()}, "random": {1: 0.0}, "smallest loss": {1: 0.0}}
                made[family].append(Pruned(str(controller), seed, 90.0, left))
    return (made,)


def worlds_of_pruning(chance, effect, n):
    return draw_prunings(chance, 17.0 * effect, 10.0, n)


def worlds_of_pruning_by_loss(chance, effect, n):
    return draw_prunings(chance, -MARGIN * (1.0 - effect), 4.0, n)


@rule(
    "Blocks of small NSI can be pruned.",
    PRUNING,
    fixed=f"{BY_FAMILY}supported",
    fewest=FEWEST_PRUNED,
    worlds=Worlds(worlds_of_pruning, n=11, units="controllers", effect="17 points, as with the digits"),
)
def judge_pruning(pruned: Mapping[str, Sequence[Pruned]]) -> tuple[Verdict, str]:
    """The accuracy that is left without the counted blocks of smallest NSI minus that without as many random ones: the
    mean over 1, 2 and 4 blocks and over the seeds of each controller. By family of networks (data set) Student's
    interval over controllers, all families together. Supported where every family lies above 0, contradicted where
    every one lies below, true or false of some where only some are decided. Judged from five controllers on."""
    verdict, words = judge_families(advantages(pruned, RANDOM))
    return verdict, words if verdict == NOT_RUN else f"Points of accuracy kept above random blocks. {words}"


@rule(
    "NSI prunes as well as the loss does.",
    PRUNING,
    fixed=f"{BY_FAMILY}undecided",
    fewest=FEWEST_PRUNED,
    negligible=MARGIN,
    worlds=Worlds(
        worlds_of_pruning_by_loss,
        n=120,
        units="controllers",
        effect="no loss, where without it 1 point is lost",
        now=11,
    ),
)
def judge_pruning_by_loss(pruned: Mapping[str, Sequence[Pruned]]) -> tuple[Verdict, str]:
    """The accuracy that is left without the counted blocks of smallest NSI minus that without as many whose dropping
    alone raises the loss least, as in the other rule of pruning. Supported where it lies above -1 point in every family
    of networks, contradicted where below in every one."""
    verdict, words = judge_families(advantages(pruned, BY_LOSS), -MARGIN)
    return verdict, words if verdict == NOT_RUN else f"Points kept above pruning by the loss; 1 less would do. {words}"


def judge_prunings(evidence: Evidence) -> list[Finding]:
    return [judge_pruning(evidence.pruned), judge_pruning_by_loss(evidence.pruned)]


def show_pruning(page: Page, evidence: Evidence):
    families = evidence.pruned
    if not families:
        page.words("No trained network of this data set comes with the repository.")
        return
    page.figure(
        draw_pruning(families),
        "pruning",
        "Accuracy without some of the counted blocks, dropped without training again: mean over the networks.",
    )
    rows = [
        {
            "family": family,
            "networks": len(networks),
            "dropped": k,
            **{order: f"{np.mean([network.accuracy[order][k] for network in networks]):.2f}" for order in ORDERS},
        }
        for family, networks in families.items()
        for k in networks[0].accuracy[ORDERS[0]]
    ]
    whole = "; ".join(
        f"{family} {np.mean([network.whole for network in networks]):.2f} %" for family, networks in families.items()
    )
    page.table("pruning", rows, f"Accuracy in per cent; of the whole networks {whole}")
    page.table(
        "networks",
        [
            {"family": family, "network": network.name, "whole": f"{network.whole:.2f}"}
            | {f"{order}, {k}": f"{value:.2f}" for order in ORDERS for k, value in network.accuracy[order].items()}
            for family, networks in families.items()
            for network in networks
        ],
        "Every network, without so many blocks",
        printed=False,
        told=False,
    )


def draw_pruning(families: dict[str, list[Pruned]]):
    """Accuracy that is left without k blocks, by the order in which they are dropped: mean over the networks."""
    with style.figure(1, len(families), height=2.8, sharey=True) as (drawing, axes):
        for axis, (family, networks) in zip(axes[0], families.items(), strict=True):
            dropped = [0, *networks[0].accuracy[ORDERS[0]]]
            for mark, order in zip(MARKS, ORDERS, strict=False):
                left = [[network.whole, *network.accuracy[order].values()] for network in networks]
                axis.plot(dropped, np.mean(left, axis=0), f"{mark}-", markersize=4.5, label=order)
            axis.set_xticks(dropped)
            axis.set_xlabel("blocks dropped")
            axis.set_title(f"{len(networks)} networks, {family}", loc="left")
        axes[0, 0].set_ylabel("test accuracy (%)")
        axes[0, 0].legend()
    return drawing


# ---- Networks of the user's; no verdict rests on them ----


def show_own(page: Page, evidence: Evidence):
    """What the files of `--define` hold."""
    if not evidence.own_planned:
        return
    weighted, own = evidence.own_weighted, evidence.own_searched
    measured = len(evidence.own_names) + sum(len(values) for tns, _ in weighted.values() for values in tns.values())
    page.words(
        f"{jobs.count_ones_own(measured, evidence.own_planned)} They are trained as those of the study are, and no "
        "verdict counts them. Only shipped networks are pruned."
    )
    rows: list[dict] = []
    for name, (tns, accuracies) in weighted.items():
        beyond = by_weight(accuracies, len(WEIGHTS) - 1)
        rows += [
            {"controller": name} | row | {"minus that at 0 [95 %]": interval_cell(beyond, row["weight"])}
            for row in rows_of_weights(tns, accuracies)
        ]
    page.table(
        "own_weights",
        rows,
        "TNS in the loss: TNS and accuracy over seeds, intervals of Welch, all weights together",
    )
    if own:
        page.table(
            "own_architectures",
            [
                {"network": name}
                | {
                    f"{QUANTITY_NAMES[key[0]]} before training, {wording(*key[1])}": f"{value:.3f}"
                    if np.isfinite(value := own.before[key][index])
                    else "undefined"
                    for key in KEYS
                }
                | {"accuracy (%)": f"{own.accuracy[index]:.2f}"}
                for index, name in enumerate(evidence.own_names)
            ],
            "Before training, and the accuracy after it",
        )


EXHIBITS = (
    Exhibit("TNS as a term of the loss", show_loss, judge_loss),
    Exhibit("TNS before training", show_search, judge_search),
    Exhibit("Pruning steps", show_pruning, judge_prunings),
    Exhibit("Controllers and networks of your own", show_own),
)

# ---- The study ----


def main(arguments: Arguments, shipped: Path = SHIPPED):
    require_at_least(1, arguments, "seeds", "pruned", "threads")
    definitions.take_all(STUDY, arguments.define, arguments.dataset)
    first, second = weighted_runs(arguments.dataset, arguments.seeds), architectures(arguments.dataset)
    own = of_ones_own(arguments.define, arguments.dataset, arguments.seeds)
    work = arguments.out / "runs"
    folders: tuple[Path, ...] = (work, shipped, population.SHIPPED)
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, dataset="digits", train=True, pruned=2)
        (first, second), folders = smoke(), (work,)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    images = load_images(STUDY, arguments)
    wanted = [run for turn in itertools.zip_longest(first, second) for run in turn if run is not None]
    wanted += [*own[0], *own[1]]
    if arguments.train or arguments.remeasure:
        with plain_errors(STUDY):
            jobs.work_off(
                lambda: wanted,
                jobs.finder(lambda run: measurements.find(run, folders), **which_jobs(arguments)),
                lambda run: describe(carry_out(run, work, arguments.data_root, arguments.device)),
                work,
            )

    page = Page(
        STUDY,
        arguments,
        f"TNS at work on {images.name}: in the loss, before training, for pruning",
        f"After {STEPNET_PAPER}, "
        "which tries none of them. What is trained was fixed beforehand; below every verdict stands its rule, and when "
        "it was fixed. The networks are ResNets of 20 to 32 layers with 4 to 16 channels, trained for a few epochs, "
        "where the paper's have 164 layers: what is said here is said about them.",
    )
    weighted, searched = ([run for run in runs if measurements.find(run, (work,))] for runs in own)
    labels = dict.fromkeys(run.job.label for run in weighted)
    evidence = Evidence(
        *in_loss(first, folders),
        search(second, folders, arguments.data_root, arguments.device),
        prunings(images, arguments, folders),
        {label: in_loss([run for run in weighted if run.job.label == label], (work,)) for label in labels},
        search(searched, (work,), arguments.data_root, arguments.device),
        [run.job.stem for run in searched],
        len(own[0]) + len(own[1]),
    )
    page.heading("What these data say")
    older = page.name_older([measured.made for measured in measurements.find_all(wanted, folders)])
    write(page, EXHIBITS, evidence, jobs.describe_diverged(jobs.list_diverged(wanted, folders)), older)
    page.close()


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
