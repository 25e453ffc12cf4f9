"""First paper, Figure 8 and Appendix A: training tricks, accuracy and stiffness (about 10 s; an hour or two to train).

Claims examined: a network that is better because of better training has a larger TNS; stiffness makes training hard
(Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The paper names no
trick: eight usual ones are taken, one at a time. A ninth, all of them but SAM at once, joined later. By default the
study shows the measurements that come with the repository; `--train` makes what is missing.

Last result (30 ResNet-20 of 8 channels, 5,000 images of 16 pixels, 20 epochs, three seeds of ten recipes, 2026-11-20):
no trick is better than the plain recipe beyond what seeds do, so the claim of Figure 8 is undecided. Mixup, cutmix,
cutout and TrivialAugment are 4 to 6 points worse, all tricks at once 15. Over recipes the worse ones have the larger
TNS (Kendall's tau -0.69 to -0.38 by reading), and the larger scale and shape: with ten recipes as units that is
undecided, where thirty networks as units called Figure 7's claim contradicted. Stiffer epochs do not gain less.
"""

import dataclasses
import itertools
from collections.abc import Mapping
from itertools import starmap
from pathlib import Path

import numpy as np

import netbridge as nb
import odelab as ol
from netbridge.data import name_of
from netbridge.data.datasets import MINIATURE
from netbridge.train.recipes import Recipe, recipe
from odelab.plot import style
from studies.lab import definitions, jobs, measurements
from studies.lab.command import require_at_least, start
from studies.lab.comparisons import interval_cell, seed_deviation, tukey
from studies.lab.exhibits import Exhibit, write
from studies.lab.figures import legend_below, looks_of
from studies.lab.jobs import Job
from studies.lab.measurements import Measurement
from studies.lab.options import ThreadOptions
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.statistics import (
    LEVEL,
    Estimate,
    choices,
    estimate,
    interval_text,
    kendall_rows,
    kendall_within,
    listing,
    mean_with_interval,
    relate_kinds,
)
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, SCALE, SHAPE, TNS, quantity_of, wording
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    agreeing,
    corrected,
    draw_seeds,
    enough,
    joint,
    of_each,
    of_interval,
    of_kinds,
    rule,
)

STUDY = "tricks"
SHIPPED = Path(__file__).parent / "shipped" / STUDY


@dataclasses.dataclass
class Arguments(ThreadOptions):
    """Compare training tricks by what they do to accuracy and to stiffness."""

    train: bool = False
    """Train and measure what is missing. If it is stopped, start it again. Processes with one --out share the work."""
    full: bool = False
    """The paper's depth, images, epochs and number of seeds; give it a GPU."""
    seeds: int | None = None
    """How many seeds of every recipe: 3, with --full 5."""
    epochs: int | None = None
    """Another number of epochs than 20, with --full 164."""
    dataset: str = "cifar10"
    """What to train on: cifar10, cifar100, stl10, digits, or a name from a file of --define."""
    define: tuple[Path, ...] = ()
    """Python files with controllers, networks (NETWORKS) or data sets (DATASETS) of your own. With --train every recipe
    trains them, too. They are shown beside the networks of the study, whose verdicts stay its own."""
    out: Path = Path("results/tricks")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""


# ---- The recipes: ten, each the plain one with one change, and the networks that they train ----
#
# They were written before any network was trained, but for the last. The paper's text names no trick, its figure is not
# to be had, and there is no public code. So the usual ones are taken, one at a time, each with the value of its own
# paper where a short training allows it. Plain: SGD with momentum 0.9, rate 0.1 divided by 10 at half and at three
# quarters of the epochs, decay 1e-4 of all weights, crops off by an eighth of the width, random flips: the paper's
# Table 6 in fewer epochs. Random depth: step sizes of 0 or 1 / (1 - p), p rising to 0.2 in the last block. Averaging:
# an exponential mean of the weights over about 1 / (1 - decay) steps. SAM costs twice the time. *All*, all of them but
# SAM at once, mixup and cutmix in turns, joined after the others had been trained and looked at.
#
# Scale. About half an hour of one core was available: ResNet-20 with 8 channels in the first stage, CIFAR-10 shrunk to
# 16 pixels, the first 5,000 training images only, so that regularisation has something to prevent, 20 epochs of batch
# 64. `--full` is the paper's: ResNet-164, all images at 32 pixels, STL-10's at their 96, 164 epochs of batch 128 (on
# STL-10 of 16, as Zhong et al. have it in ASR, Appendix C), 5 seeds.

PIXELS, IMAGES, SEEDS = 16, 5000, 3
SMALL_SHAPE = (20, 8)  # depth and channels of the first stage
FULL_SHAPE, FULL_SEEDS = (164, 16), 5
CIFAR_PIXELS, STL10_PIXELS = 32, 96
PLAIN, ALL = "plain", "all"
AVERAGING = "averaging"
NEGLIGIBLE = 0.1  # a share of plain's TNS
TRACED = 256  # test images on which stiffness is followed through training
SMOKE_TRACED = 32
RESAMPLES = 2000  # of images and networks
FEWEST_SEEDS = 2  # of every recipe; one has no interval
SMALL = dataclasses.replace(
    recipe("paper", epochs=20, batch=64, drops=(10, 15), shift=2, bfloat16=True, evaluate_every=5), name=PLAIN
)


def plain_recipe(full: bool = False, dataset: str = "cifar10", epochs: int | None = None) -> Recipe:
    """The recipe that every other one differs from in its trick alone; `epochs` in place of its own, if given."""
    plain = dataclasses.replace(jobs.recipe_of("paper", dataset, evaluate_every=4), name=PLAIN) if full else SMALL
    return dataclasses.replace(plain, epochs=epochs or plain.epochs)


def pixels(full: bool = False, dataset: str = "cifar10") -> int:
    """Height and width of the images that networks are trained on."""
    if not full:
        return PIXELS
    return STL10_PIXELS if dataset.removesuffix(MINIATURE) == "stl10" else CIFAR_PIXELS


def tricks(full: bool = False, dataset: str = "cifar10") -> dict[str, dict]:
    """What each trick changes of the plain recipe."""
    changed: dict[str, dict] = {
        PLAIN: {},
        "smoothing": {"smoothing": 0.1},
        "mixup": {"mixup": 1.0},
        "cutmix": {"cutmix": 1.0},
        "cutout": {"cutout": pixels(full, dataset) // 2},
        "random depth": {"drop_path": 0.2},
        "TrivialAugment": {"policy": "trivial"},
        AVERAGING: {"ema": 0.999 if full else 0.98},
        "SAM": {"sam": 0.05},
    }
    together = {key: value for name, change in changed.items() if name != "SAM" for key, value in change.items()}
    return changed | {ALL: together}


def recipe_of(trick: str, full: bool = False, dataset: str = "cifar10", epochs: int | None = None) -> Recipe:
    return dataclasses.replace(plain_recipe(full, dataset, epochs), name=trick, **tricks(full, dataset)[trick])


def job_of(trick: str, seed: int, full: bool = False, dataset: str = "cifar10", epochs: int | None = None) -> Job:
    how = recipe_of(trick, full, dataset, epochs)
    if full:
        return Job(dataset, "constant", seed, how, *FULL_SHAPE, size=pixels(full, dataset))
    return Job(dataset, "constant", seed, how, *SMALL_SHAPE, images=IMAGES, size=PIXELS)


def queue(full=False, dataset: str = "cifar10", seeds: int | None = None, epochs: int | None = None) -> list[Job]:
    """All networks in the order of training: seed by seed, so that every recipe has as many wherever it stops."""
    count = seeds or (FULL_SEEDS if full else SEEDS)
    return [job_of(trick, seed, full, dataset, epochs) for seed in range(count) for trick in tricks(full)]


def smoke() -> list[Job]:
    """A few networks on the digits that only show that everything works."""
    how = recipe("digits", epochs=2, batch=32, evaluate_every=100, average=False)
    changed: dict[str, dict] = {PLAIN: {}, "mixup": {"mixup": 1.0}}
    recipes = [dataclasses.replace(how, name=name, **changes) for name, changes in changed.items()]
    return [Job("digits", "constant", seed, one, 20, 4, images=256, size=16) for seed in range(2) for one in recipes]


# ---- What was measured, by recipe: on 1,000 test images TNS, per image and per stage, and NSI per block; accuracy on
# ---- all test images; TNS and NSI of 256 test images after every epoch
#
# What is compared is named by ACCURACY, by a name in `numbers`, or by a quantity and a reading, such as
# ("scale", ("slope",)), see `stiffness.QUANTITIES`. Differences to `plain` paired over images (bootstrap, the mean over
# seeds) say what these networks differ by, whatever other seeds would say; they judge nothing.

ACCURACY = "accuracy"
STIFF = {  # what networks are compared by, beside their accuracy
    (what, reading): f"{QUANTITY_NAMES[what]}, {wording(*reading)}"
    for what in QUANTITIES
    for reading in QUANTITIES[what]
}
Groups = dict[str, list[float]]  # one number for each seed, by recipe


@dataclasses.dataclass(frozen=True, eq=False)
class Runs:
    """The measurements that are there, by recipe, in the order of the design."""

    groups: dict[str, list[Measurement]]

    @classmethod
    def of(cls, networks: list[Measurement]) -> "Runs":
        groups: dict[str, list[Measurement]] = {}
        for network in networks:
            groups.setdefault(network.specification["recipe"]["name"], []).append(network)
        return cls(groups)

    @property
    def all(self) -> list[Measurement]:
        return [network for group in self.groups.values() for network in group]

    def values(self, what) -> dict[str, list[float]]:
        """Per recipe one number for each seed."""
        every = {name: [value_of(network, what) for network in group] for name, group in self.groups.items()}
        return {name: [x for x in values if np.isfinite(x)] for name, values in every.items()}

    def by_reading(self, what: str) -> dict[tuple, dict[str, list[float]]]:
        """TNS, scale or shape under each of its readings."""
        return {reading: self.values((what, reading)) for reading in QUANTITIES[what]}

    def beyond(self, what, level: float = LEVEL) -> dict[str, Estimate]:
        """Every recipe's mean minus that of the plain one, intervals over seeds (Tukey and Kramer)."""
        return tukey(PLAIN, self.values(what), level)

    def paired_differences(self, what) -> dict[str, Estimate]:
        """Differences of ACCURACY or TNS for these very networks: paired by image, means over seeds, over images."""
        plain = {network.numbers["seed"]: per_image(network, what) for network in self.groups.get(PLAIN, [])}
        differences = {}
        for name, group in self.groups.items():
            pairs = [
                (per_image(network, what), plain[seed])
                for network in group
                if (seed := network.numbers["seed"]) in plain
            ]
            if name != PLAIN and pairs:
                difference = np.mean([here - there for here, there in pairs], axis=0)
                rows = choices(len(difference), RESAMPLES, seed=0)
                differences[name] = estimate(difference.mean(), difference[rows].mean(1))
        return differences

    def relation_within(self, reading) -> Estimate:
        """Kendall's tau-b of accuracy and TNS counting pairs of one recipe only."""
        recipes = np.repeat(np.arange(len(self.groups)), [len(group) for group in self.groups.values()])
        tns, accuracy = (np.array([value_of(one, what) for one in self.all]) for what in ((TNS, reading), ACCURACY))
        defined = np.isfinite(tns)
        return kendall_within(tns[defined], accuracy[defined], recipes[defined], RESAMPLES)


def value_of(network: Measurement, what) -> float:
    if what == ACCURACY:
        return 100.0 * network.numbers["test_accuracy"]
    value = network.numbers[what] if isinstance(what, str) else network.stiffness(*what)
    return float("nan") if value is None else float(value)


def per_image(network: Measurement, what) -> np.ndarray:
    """Of each traced image: 100 where it is classified correctly, else 0; or its TNS."""
    if what == ACCURACY:
        return 100.0 * network.arrays["correct"]
    return network.arrays["tns"][READINGS.index(tuple(what[1]))].astype(float)


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What the study shows.

    runs     of the study, on which its verdicts rest
    own      of each controller and network of the user's, by its name
    planned  how many networks of the user's there are to be
    """

    runs: Runs
    own: dict[str, Runs] = dataclasses.field(default_factory=dict)
    planned: int = 0


def looks(runs: Runs) -> dict[str, tuple[str, str]]:
    """A colour and a mark per recipe; the plain one is black."""
    return looks_of(runs.groups, PLAIN)


def mean_cell(values: list[float], form: str) -> str:
    """Mean and standard deviation over seeds."""
    if not values:
        return "undefined"
    deviation = seed_deviation(values)
    return f"{np.mean(values):{form}} ± {deviation:{form}}" if np.isfinite(deviation) else f"{np.mean(values):{form}}"


def cell_of(value: float) -> str:
    """A number; empty where it is not defined."""
    return f"{value:.3f}" if np.isfinite(value) else ""


# ---- Figure 8 and Appendix A: what raises the accuracy, raises TNS ----
#
# Worlds: seeds scatter as those of the 30 shipped networks do (2026-11-19).

POINTS = 1.1  # standard deviation of the accuracy over seeds
SPREAD = {TNS: 0.33, SCALE: 0.04, SHAPE: 0.3}  # the same of stiffness, where the plain recipe has 1
PLANTED = ("smoothing", "mixup", "cutmix")  # tricks that are five points better
RECIPES = tuple(tricks())
TRAIN = "n = 0: `--train` makes the networks."
NEEDED = {"TNS": 24, "scale": 3, "shape": 20}  # seeds of every recipe


def later(was: str, why: str) -> str:
    return f"after the data: with 30 networks of 10 recipes seen, {why}. By the rule before, of TNS alone: {was}"


def worlds_of_raising(what: str):
    """Worlds in which good tricks have half as much again of a quantity, or as much as the plain recipe."""

    def make(chance: np.random.Generator, effect: float, n: int):
        accuracy = draw_seeds(chance, {name: 50.0 + 5.0 * (name in PLANTED) for name in RECIPES}, POINTS, n)
        means = {name: 1.0 + 0.5 * effect * (name in PLANTED) for name in RECIPES}
        common = draw_seeds(chance, means, 0.9 * SPREAD[what], n)
        stiff = {}
        for reading in QUANTITIES[what]:
            own = draw_seeds(chance, dict.fromkeys(RECIPES, 0.0), 0.4 * SPREAD[what], n)
            stiff[reading] = {name: np.add(common[name], own[name]).tolist() for name in RECIPES}
        return accuracy, stiff

    return make


def tricks_by_accuracy(accuracy: Groups) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """The tricks that are better than the plain recipe beyond what seeds do, and those that are worse."""
    beyond = tukey(PLAIN, accuracy)
    verdicts = {name: of_interval(e) for name, e in beyond.items()}
    better, worse = (
        {name: beyond[name] for name in beyond if verdicts[name] == kind} for kind in (SUPPORTED, CONTRADICTED)
    )
    return better, worse


def judge_raising(accuracy: Groups, stiff: Mapping[tuple, Groups]) -> tuple[Verdict, str]:
    """A trick is a good one where its accuracy is above that of the plain recipe with the whole interval of Tukey and
    Kramer over seeds. Its stiffness minus that of plain, by Tukey and Kramer over seeds, the intervals holding together
    over recipes and readings. Under a reading: supported where that of every good trick is above, contradicted where
    every one is below, no difference where every interval lies within a tenth of what plain has, true or false of some
    where only some are decided. Without a good trick nothing is decided."""
    if not accuracy.get(PLAIN) or len(accuracy) < 2:
        return NOT_RUN, TRAIN
    few = enough(accuracy, FEWEST_SEEDS)
    better, worse = tricks_by_accuracy(accuracy)
    verdicts, parts = [], []
    for reading, groups in stiff.items():
        plain = float(np.mean(groups[PLAIN])) if groups.get(PLAIN) else float("nan")
        beyond = tukey(PLAIN, groups, corrected(len(stiff)))
        good = {name: beyond[name] for name in better if name in beyond}
        verdicts.append(of_each(good, negligible=NEGLIGIBLE * plain) if good else UNDECIDED)
        shown = good | {name: beyond[name] for name in worse if name in beyond}
        if shown:
            parts.append(f"{wording(*reading)} (plain {plain:.3f}): {listing(shown, '+.3f')} ({verdicts[-1]})")
    if few:
        return UNDECIDED.because("too few seeds"), f"{few}{'; '.join(parts)}".strip()
    if better:
        which, verdict = f"Better than the plain recipe, in points: {listing(better)}.", joint(verdicts)
    else:
        which, verdict = "No trick is better than the plain recipe beyond what seeds do.", UNDECIDED
        verdict = verdict.because("no trick is better than the plain recipe")
    which += f" Worse: {listing(worse)}." if worse else ""
    which += f" Minus plain, only the better ones being judged: {'; '.join(parts)}." if parts else ""
    return verdict, which


def rule_of_raising(what: str) -> Rule:
    """Claim 1 for one of TNS, scale and shape."""
    effect = "half as much again with every good trick"
    made = Worlds(worlds_of_raising(what), n=NEEDED[what], units="seeds", effect=effect, now=3)
    fixed = later("undecided", "TNS was taken apart, and intervals hold together over the readings")
    claim = f"What raises the accuracy, raises the {QUANTITY_NAMES[what]}."
    options = {"fixed": fixed, "fewest": FEWEST_SEEDS, "negligible": NEGLIGIBLE, "worlds": made}
    return rule(claim, "Figure 8, Appendix A", variant=what, **options)(judge_raising)


RAISING = {what: rule_of_raising(what) for what in QUANTITIES}


def judge_figure_8(evidence: Evidence) -> list[Finding]:
    """One finding for TNS, scale and shape each."""
    accuracy = evidence.runs.values(ACCURACY)
    return [RAISING[what](accuracy, evidence.runs.by_reading(what)) for what in QUANTITIES]


def show_figure_8(page: Page, evidence: Evidence):
    runs = evidence.runs
    page.figure(
        draw_recipes(runs),
        "recipes",
        "Every recipe: a bar for the mean over seeds, a dot for each; dashed, the plain recipe. TNS under four "
        "readings, its scale (the mean NSI of the counted blocks) and its shape (TNS over the scale). The axis of the "
        "accuracy does not begin at 0.",
    )
    if AVERAGING in runs.groups:
        page.words(
            f"With {AVERAGING} only other weights are kept: a network of it went through the training of the plain "
            "one of the same seed, and the two are alike for that reason."
        )
    accuracy, beyond, paired = runs.values(ACCURACY), runs.beyond(ACCURACY), runs.paired_differences(ACCURACY)
    losses, norms = runs.values("train_loss"), runs.values("logits_norm")
    rows = [
        {
            "recipe": name,
            "seeds": len(group),
            "accuracy (%)": mean_cell(accuracy[name], ".2f"),
            "minus plain, over seeds [95 %]": interval_cell(beyond, name, "+.2f"),
            "minus plain, over images [95 %]": interval_cell(paired, name, "+.2f"),
            "training loss": mean_cell(losses[name], ".3f"),
            "norm of the logits": mean_cell(norms[name], ".2f"),
        }
        for name, group in runs.groups.items()
    ]
    page.table("accuracy", rows, "Accuracy by recipe")
    rows = []
    for what, reading in STIFF:
        values, beyond = runs.values((what, reading)), runs.beyond((what, reading))
        paired = runs.paired_differences((what, reading)) if what == TNS else {}
        rows += [
            {
                "of": QUANTITY_NAMES[what],
                "reading": wording(*reading),
                "recipe": name,
                "mean": mean_cell(values[name], ".3f"),
                "minus plain, over seeds [95 %]": interval_cell(beyond, name, "+.3f"),
                "minus plain, over images [95 %]": interval_cell(paired, name, "+.3f"),
            }
            for name in runs.groups
        ]
    page.table(
        "tns",
        rows,
        "TNS, its scale and its shape by recipe, under every reading",
        "Over images: what these networks differ by, whatever other seeds would say.",
        printed=False,
    )


BARS: dict[str | tuple[str, tuple], str] = {
    ACCURACY: "test accuracy (%)",
    **{key: title for key, title in STIFF.items() if key[0] != SHAPE or key[1] == READINGS[0]},
    "logits_norm": "norm of the logits",
}


def draw_recipes(runs: Runs):
    """Every recipe's mean with its seeds; dashed, the plain one."""
    names, seen = list(runs.groups), looks(runs)
    with style.figure(3, 3, height=0.66 * len(names) + 2.2, sharey=True) as (drawing, axes):
        for axis, (what, title) in zip(axes.flat, BARS.items(), strict=True):
            values = runs.values(what)
            for y, name in enumerate(names):
                if values[name]:
                    mean, colour = np.mean(values[name]), seen[name][0]
                    axis.barh(y, mean, color=colour, alpha=0.35, height=0.7)
                    axis.plot(values[name], np.full(len(values[name]), y), "o", color=colour, markersize=3)
            if values.get(PLAIN):
                axis.axvline(np.mean(values[PLAIN]), color=style.GREY, linewidth=0.8, linestyle="--")
            if what == ACCURACY:
                every = [x for group in values.values() for x in group]
                axis.set_xlim(min(every) - 0.3 * max(np.ptp(every), 1.0), max(every) + 0.1 * max(np.ptp(every), 1.0))
            axis.set_yticks(range(len(names)), names)
            axis.set_title(title.replace("NSI, ", "NSI,\n"), loc="left")
            axis.grid(axis="y", visible=False)
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].set_ylim(len(names) - 0.4, -0.6)
    return drawing


# ---- Figure 7, of recipes: accuracy and stiffness ----


def worlds_of_relations(what: str):
    """Worlds of n recipes that differ in accuracy and stiffness, whose means have a Kendall's tau of 0.5, or of 0.

    Seeds scatter a third as far as recipes do, and under all readings recipes differ in nearly the same way.
    """

    def make(chance, effect, n):
        skill = chance.normal(size=n)
        stiff = agreeing(chance, skill, 0.5 * effect)

        def seeds(means):
            return {str(k): (mean + chance.normal(0.0, 0.3, SEEDS)).tolist() for k, mean in enumerate(means)}

        return seeds(skill), {reading: seeds(stiff + 0.2 * chance.normal(size=n)) for reading in QUANTITIES[what]}

    return make


def judge_relation(
    accuracy: Groups, stiff: Mapping[tuple, Groups], within: Mapping[tuple, Estimate] | None = None
) -> tuple[Verdict, str]:
    """Rank correlations of accuracy and stiffness over recipes, the means over their seeds: networks of one recipe are
    alike. Supported under a reading where Kendall's tau and Spearman's rho lie above 0 by their intervals and p-values,
    contradicted where below; and nothing where leaving out any one recipe would change it. The intervals hold together
    over the readings. Pairs of seeds within recipes are shown and judge nothing."""
    related = {reading: relate_kinds(groups, accuracy, corrected(len(stiff))) for reading, groups in stiff.items()}
    recipes = max((len(relation.names) for relation in related.values()), default=0)
    if not recipes:
        return NOT_RUN, TRAIN
    verdicts = {reading: of_kinds(relation) for reading, relation in related.items()}
    parts = [
        f"{wording(*reading)}: Kendall {interval_text(relation.whole.kendall, '+.2f')}, Spearman "
        f"{interval_text(relation.whole.spearman, '+.2f')}"
        + (f", within recipes {interval_text(within[reading], '+.2f')}" if within else "")
        + f" ({verdicts[reading]})"
        for reading, relation in related.items()
    ]
    return joint(verdicts), f"Over {recipes} recipes. {'; '.join(parts)}."


def rule_of_relation(what: str) -> Rule:
    """Claim 2 for one of TNS, scale and shape."""
    made = Worlds(worlds_of_relations(what), n=36, units="recipes", effect="Kendall's tau of 0.5 over recipes", now=10)
    fixed = later("contradicted", "recipes became the units, where networks had been, and TNS was taken apart")
    claim = f"The better the network, the larger its {QUANTITY_NAMES[what]}, whatever it was trained with."
    return rule(claim, "Figures 7 and 8", variant=what, fixed=fixed, worlds=made)(judge_relation)


RELATED = {what: rule_of_relation(what) for what in QUANTITIES}


def judge_figure_7(evidence: Evidence) -> list[Finding]:
    """One finding for TNS, scale and shape each; beside TNS stands its relation within recipes."""
    accuracy = evidence.runs.values(ACCURACY)
    within = {reading: evidence.runs.relation_within(reading) for reading in READINGS}
    return [
        RELATED[what](accuracy, evidence.runs.by_reading(what), within=within if what == TNS else None)
        for what in QUANTITIES
    ]


def show_figure_7(page: Page, evidence: Evidence):
    own = evidence.own
    shown = [*((TNS, reading) for reading in READINGS), (SCALE, QUANTITIES[SCALE][0]), (SHAPE, READINGS[0])]
    with style.figure(3, 2, height=7.6, sharey=True) as (drawing, axes):
        for axis, key in zip(axes.flat, shown, strict=True):
            for name, (colour, mark) in looks(evidence.runs).items():
                theirs = [network for runs in own.values() for network in runs.groups.get(name, [])]
                for group, look in (
                    (evidence.runs.groups.get(name, []), {"label": name}),
                    (theirs, {"markerfacecolor": "white"}),
                ):
                    x, y = ([value_of(network, what) for network in group] for what in (key, ACCURACY))
                    axis.plot(x, y, mark, color=colour, markersize=4.5, **look)
            axis.set_title(STIFF[key].split(", ", 1)[1], loc="left")
            axis.set_xlabel(QUANTITY_NAMES[key[0]])
        for row in axes:
            row[0].set_ylabel("test accuracy (%)")
        legend_below(drawing, axes[0, 0])
    hollow = f" Hollow: {', '.join(own)}." if own else ""
    page.figure(
        drawing,
        "accuracy_tns",
        f"Accuracy against TNS, its scale and its shape, one mark per network.{hollow}",
    )


# ---- Where the stiffness is: no claim, but what the others must be read with ----


def show_depth(page: Page, evidence: Evidence):
    runs = evidence.runs
    page.words(
        "Mixtures of labels and smoothing shrink the logits, and with them the norms of the last stage, by "
        "themselves: a TNS that differs there need not say anything about features. So here is NSI block by block, "
        "and TNS stage by stage."
    )
    with style.figure(2, 1, height=5.0, sharex=True) as (drawing, axes):
        for axis, kind in zip(axes[:, 0], ("slope", "increment"), strict=True):
            for name, (colour, mark) in looks(runs).items():
                group = runs.groups.get(name, [])
                if not group:
                    continue
                mean = np.mean(
                    [np.array(network.numbers[f"nsi_{kind}"]["mean"], dtype=float) for network in group], axis=0
                )
                first, blocks = np.array(group[0].numbers["first"]), np.arange(1, len(mean) + 1)
                axis.plot(blocks, mean, color=colour, linewidth=0.9, label=name, marker=mark, markersize=4)
                axis.plot(blocks[first], mean[first], mark, color=colour, markerfacecolor="white", markersize=4)
            axis.set_ylabel("mean NSI")
            axis.set_title(f"{kind} NSI", loc="left")
        axes[1, 0].set_xlabel("block")
        legend_below(drawing, axes[0, 0])
    page.figure(
        drawing,
        "nsi_blocks",
        "Mean NSI of every block, over seeds and 1,000 test images. Hollow: the first block of a stage, not "
        "counted; where it changes the shape there is no increment.",
    )
    rows = []
    for name, group in runs.groups.items():
        stages = np.transpose([stage_stiffness(network) for network in group])
        rows.append({"recipe": name} | {f"stage {k + 1}": mean_cell(list(x), ".3f") for k, x in enumerate(stages)})
    page.table(
        "stages",
        rows,
        "TNS of every stage alone",
        "The slope's index, compared with the mean over all images; mean and standard deviation over seeds.",
    )


def stage_stiffness(network: Measurement) -> list[float]:
    """TNS of every stage alone, of the slope's index and the data set's mean: with one counted block it exists, too."""
    stages, first = np.array(network.numbers["stages"]), np.array(network.numbers["first"])
    nsi = network.arrays["nsi_slope"].astype(float)
    counted = [(stages == stage) & ~first for stage in np.unique(stages)]
    return [float(ol.tns(nsi[:, blocks], np.zeros(blocks.sum()), "dataset").mean()) for blocks in counted]


# ---- Stiffness makes training hard (abstract, Section 1) ----


@dataclasses.dataclass(frozen=True, eq=False)
class Course:
    """One network through its training, after every epoch.

    loss, rate  of training, (T,)
    tns         under every reading, (T, readings)
    scale       the mean index of the counted blocks, by kind of index, (T,) each
    """

    loss: np.ndarray
    rate: np.ndarray
    tns: np.ndarray
    scale: dict[str, np.ndarray]

    def __len__(self):
        return len(self.loss)

    def stiffness(self, what: str, reading: tuple) -> np.ndarray:
        """TNS, its scale or its shape, (T,)."""
        tns = self.tns[:, READINGS.index(reading)] if len(reading) == 2 else np.full(len(self), np.nan)
        return quantity_of(what, tns, self.scale[reading[0]])


def course(network: Measurement) -> Course | None:
    """None where stiffness was not followed."""
    log = [record for record in network.numbers["log"] if "tns" in record]
    if not log:
        return None
    tns = np.array([[np.nan if x is None else x for x in record["tns"]] for record in log])
    counted = ~np.array(network.numbers["first"])
    alone = np.full(len(log), np.nan)  # one block a stage, which is not counted
    indices = {of: np.array([record["nsi"][of] for record in log], dtype=float)[:, counted] for of in log[0]["nsi"]}
    scale = {of: nsi.mean(1) if counted.any() else alone for of, nsi in indices.items()}
    loss, rate = (np.array([record[key] for record in log]) for key in ("loss", "rate"))
    return Course(loss, rate, tns, scale)


@dataclasses.dataclass(frozen=True)
class Hardness:
    """How the stiffness of one network after an epoch goes with what its loss gains until the next: Kendall's tau.

    plain    as it is
    changes  of the changes from epoch to epoch, beside what all networks do at that epoch
    """

    plain: float
    changes: float


def courses_of(runs: Runs) -> dict[str, list[Course]]:
    """By recipe, of every network whose stiffness was followed."""
    return {name: [way for network in group if (way := course(network))] for name, group in runs.groups.items()}


def hardness(runs: Runs, what: str, reading) -> dict[str, list[Hardness]]:
    """By recipe, of every network whose stiffness was followed and is defined."""
    courses = courses_of(runs)
    every = [way for group in courses.values() for way in group]
    if not every:
        return {name: [] for name in courses}
    loss, stiffness = np.array([way.loss for way in every]), np.array([way.stiffness(what, reading) for way in every])
    taus = iter(list(starmap(Hardness, zip(*relate_gains(loss, stiffness, every[0].rate), strict=True))))
    return {name: [tau for _ in group if np.isfinite((tau := next(taus)).changes)] for name, group in courses.items()}


def relate_gains(loss: np.ndarray, stiffness: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two taus of `Hardness` of n networks, from loss and stiffness (n, T); only epochs of one rate are paired.

    Both fall as training goes on, for reasons of their own, and all networks go through the same epochs. So what an
    epoch is on average over networks is taken out, and then changes from one epoch to the next are compared: a partial
    tau, with the epoch's number taken out, is not 0 where both follow the epoch with noise and nothing else.
    """
    gain, stiffness = loss[:, :-1] - loss[:, 1:], stiffness[:, :-1]
    phase = np.unique(rate[:-1], return_inverse=True)[1]
    same = np.isclose(rate[1:], rate[:-1])
    plain = kendall_rows(stiffness[:, same], gain[:, same], phase[same])
    pairs = same[1:] & same[:-1]
    of_stiffness, of_gain = (np.diff(table - table.mean(0), axis=1)[:, pairs] for table in (stiffness, gain))
    return plain, kendall_rows(of_stiffness, of_gain, phase[1:][pairs])


def worlds_of_hardness(what: str):
    """Worlds of n recipes in training: loss and stiffness fall alike in all networks, epochs differ, and beside that a
    network's gain goes with its stiffness by a tau of -0.2, or of 0.
    """

    def make(chance, effect, n):
        rate, seeds = np.repeat((0.1, 0.01, 0.001), (10, 5, 5)), SEEDS
        count, epochs = n * seeds, len(rate)
        falling = np.exp(-np.arange(epochs) / 8.0) + 0.05 * chance.normal(size=(2, epochs))
        own = chance.normal(size=(count, epochs))
        gain = falling[0] + 0.05 * agreeing(chance, own.ravel(), -0.2 * effect).reshape(own.shape)
        loss = np.cumsum(np.column_stack([np.full(count, 20.0), -gain[:, :-1]]), axis=1)
        taus_of = {}
        for reading in QUANTITIES[what]:
            stiffness = falling[1] + 0.05 * (own + 0.2 * chance.normal(size=own.shape))
            taus = np.transpose(relate_gains(loss, stiffness, rate)).reshape(n, seeds, 2)
            taus_of[reading] = {str(k): [Hardness(*pair) for pair in group] for k, group in enumerate(taus)}
        return (taus_of,)

    return make


def judge_hardness(taus: Mapping[tuple, Mapping[str, list[Hardness]]]) -> tuple[Verdict, str]:
    """Of each network the stiffness after an epoch and what the training loss gains until the next, among epochs of one
    learning rate: Kendall's tau of their changes from epoch to epoch, after what all networks do at an epoch has been
    taken out of both. The mean over the seeds of each recipe, then Student's interval over recipes, those of all
    readings holding together. Supported where it lies below 0 (stiff networks gain less), contradicted where above."""
    means = {
        reading: np.array([np.mean([(tau.plain, tau.changes) for tau in each], axis=0) for each in of.values() if each])
        for reading, of in taus.items()
    }
    estimates = {
        reading: mean_with_interval(table[:, 1], corrected(len(taus))) for reading, table in means.items() if len(table)
    }
    if not estimates:
        return NOT_RUN, "n = 0 networks whose stiffness was followed through training."
    verdicts = {reading: of_interval(e, sign=-1) for reading, e in estimates.items()}
    parts = [
        f"{wording(*reading)}: {interval_text(e, '+.2f')} ({means[reading][:, 0].mean():+.2f} as it is; "
        f"{verdicts[reading]})"
        for reading, e in estimates.items()
    ]
    return joint(verdicts), (
        "Kendall's tau of changes in stiffness and in what the loss gains next, mean over "
        f"{max(map(len, means.values()))} recipes; negative where stiff networks gain less. {'; '.join(parts)}. "
        "Training as a whole is not made harder or easier here, only followed: a relation in time is no cause."
    )


def rule_of_hardness(what: str) -> Rule:
    """Claim 3 for one of TNS, scale and shape."""
    made = Worlds(worlds_of_hardness(what), n=14, units="recipes", effect="a Kendall's tau of -0.2", now=10)
    why = (
        "recipes became the units, where networks had been, and changes beside what all networks do replaced a partial "
        "tau, which is +0.17 where stiffness and gain follow the epoch with noise and nothing else"
    )
    fixed = later("undecided, and contradicted under two of four readings", why)
    claim = f"Stiffness makes training hard, by {QUANTITY_NAMES[what]}."
    return rule(claim, "abstract, Section 1", variant=what, fixed=fixed, worlds=made)(judge_hardness)


HARD = {what: rule_of_hardness(what) for what in QUANTITIES}


def judge_hardness_of_training(evidence: Evidence) -> list[Finding]:
    """One finding for TNS, scale and shape each, as far as it was followed."""
    taus = {what: {r: hardness(evidence.runs, what, r) for r in QUANTITIES[what]} for what in QUANTITIES}
    return [HARD[what](taus[what]) for what in QUANTITIES if any(any(of.values()) for of in taus[what].values())]


def show_training(page: Page, evidence: Evidence):
    courses = courses_of(evidence.runs)
    if not any(courses.values()):
        return
    page.figure(
        draw_training(courses, looks(evidence.runs)),
        "training",
        "Training loss, and TNS of test images under two readings, after every epoch; means over seeds. Dotted: the "
        "learning rate is divided by 10. Losses with mixed or smoothed labels are of another kind and lie higher; with "
        "averaging, TNS is that of the averaged weights.",
    )
    rows = [
        {
            "of": QUANTITY_NAMES[what],
            "reading": wording(*reading),
            "recipe": name,
            "networks": len(taus),
            "tau": interval_text(mean_with_interval([tau.plain for tau in taus]), "+.2f"),
            "tau of changes": interval_text(mean_with_interval([tau.changes for tau in taus]), "+.2f"),
        }
        for what, reading in STIFF
        for name, taus in hardness(evidence.runs, what, reading).items()
        if taus
    ]
    page.table(
        "hardness",
        rows,
        "Stiffness of an epoch and what the training loss gains until the next",
        "Kendall's tau among epochs of one learning rate, mean over networks with Student's interval: as it is, "
        "and of the changes from epoch to epoch beside what all networks do at that epoch.",
        printed=False,
    )


def draw_training(courses: dict[str, list[Course]], seen: dict[str, tuple[str, str]]):
    """Training loss and TNS after every epoch, means over seeds; dotted: the learning rate drops."""
    titles = ["training loss", *(f"TNS, {wording(*reading)}" for reading in READINGS[:2])]
    with style.figure(3, 1, height=6.6, sharex=True) as (drawing, axes):
        for name, ways in courses.items():
            if not ways:
                continue
            epochs, colour = np.arange(1, len(ways[0]) + 1), seen[name][0]
            stiffness = np.mean([way.tns for way in ways], axis=0)
            lines = (np.mean([way.loss for way in ways], axis=0), *stiffness.T[:2])
            for axis, line in zip(axes[:, 0], lines, strict=True):
                axis.plot(epochs, line, color=colour, label=name)
            if name == PLAIN:
                for axis, epoch in itertools.product(axes[:, 0], epochs[1:][np.diff(ways[0].rate) < 0]):
                    axis.axvline(epoch - 0.5, color=style.GREY, linewidth=0.7, linestyle=":")
        for axis, title in zip(axes[:, 0], titles, strict=True):
            axis.set_title(title, loc="left")
        axes[-1, 0].set_xlabel("epoch")
        axes[-1, 0].locator_params(axis="x", integer=True)
        legend_below(drawing, axes[0, 0])
    return drawing


# ---- Networks of the user's, and every network; no verdict rests on them ----


def show_own(page: Page, evidence: Evidence):
    """What the files of `--define` hold, recipe by recipe."""
    if not evidence.planned:
        return
    measured = sum(len(runs.all) for runs in evidence.own.values())
    page.words(
        f"{jobs.count_ones_own(measured, evidence.planned)} They are trained by the same recipes, on the same images "
        "and from the same seeds as the networks of the study, whose verdicts above do not count them. Each is "
        "compared with itself under the plain recipe."
    )
    columns = {"accuracy (%)": (ACCURACY, ".2f"), **{title: (key, ".3f") for key, title in STIFF.items()}}
    rows: list[dict] = []
    for network, runs in ({"constant step sizes": evidence.runs} | evidence.own if evidence.own else {}).items():
        values, beyond = {column: runs.values(what) for column, (what, _) in columns.items()}, runs.beyond(ACCURACY)
        rows += [
            {"network": network, "recipe": name, "seeds": len(group)}
            | {column: mean_cell(values[column][name], form) for column, (_, form) in columns.items()}
            | {"accuracy minus plain [95 %]": interval_cell(beyond, name, "+.2f")}
            for name, group in runs.groups.items()
        ]
    page.table("own", rows, "Beside the networks of the study, by recipe")


def show_networks(page: Page, evidence: Evidence):
    """One row for every network, in a file."""
    rows = [
        {
            "recipe": name,
            "seed": network.numbers["seed"],
            "accuracy (%)": f"{100 * network.numbers['test_accuracy']:.2f}",
            "training loss": f"{network.numbers['train_loss']:.3f}",
            **{title: cell_of(value_of(network, key)) for key, title in STIFF.items()},
            "training (s)": network.made["seconds"],
            "commit": network.made["commit"],
        }
        for name, group in evidence.runs.groups.items()
        for network in group
    ]
    page.table("networks", rows, "Every network", printed=False, told=False)


EXHIBITS = (
    Exhibit("Recipes side by side (Figure 8)", show_figure_8, judge_figure_8),
    Exhibit("Accuracy and TNS (Figure 7 for recipes)", show_figure_7, judge_figure_7),
    Exhibit("Where the stiffness is", show_depth),
    Exhibit("Stiffness through training", show_training, judge_hardness_of_training),
    Exhibit("Controllers and networks of your own", show_own),
    Exhibit("Every network", show_networks),
)


# ---- The study ----
UNNAMED = (
    "The paper's text names no trick: which recipes its Figure 8 shows is not known, and those below are the usual "
    f"ones. After {STEPNET_PAPER}, Figure 8 and Appendix A."
)


def main(arguments: Arguments, shipped: Path = SHIPPED):
    require_at_least(1, arguments, "seeds", "threads", "epochs")
    definitions.take_all(STUDY, arguments.define, arguments.dataset)
    arguments = dataclasses.replace(arguments, dataset=name_of(arguments.dataset, arguments.data_root))
    scale = arguments.full, arguments.dataset, arguments.seeds, arguments.epochs
    planned, traced = queue(*scale), TRACED
    planned_own = jobs.of_ones_own(planned, arguments.define)
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, train=True, threads=1)
        planned, traced = smoke(), SMOKE_TRACED
    stored = measurements.obtain(STUDY, arguments, planned, shipped, planned_own, traced)
    names = dict.fromkeys(network.numbers["controller"] for network in stored.own)
    own = {
        name: Runs.of([network for network in stored.own if network.numbers["controller"] == name]) for name in names
    }
    evidence = Evidence(Runs.of(stored.networks), own, len(planned_own))

    page = Page(STUDY, arguments, "Training tricks and stiffness", UNNAMED, stored.notice(planned))
    page.heading("What these networks say")
    page.words(describe_scale(stored.networks), jobs.describe_diverged(stored.diverged))
    write(page, EXHIBITS, evidence, page.name_older(stored.made))
    page.numbers["recipes"] = {name: tricks(*scale[:2]).get(name) for name in evidence.runs.groups}
    page.close()


def describe_scale(networks: list[Measurement]) -> str:
    """The limits of this run, which no number in its report can remove: scale, images, epochs and seeds."""
    job, how = networks[0].specification, networks[0].specification["recipe"]
    images = f"the first {job['images']:,} training images" if "images" in job else "all training images"
    size = f" of {job['size']} pixels" if "size" in job else ""
    words = (
        f"{len(networks)} ResNet-{job.get('depth', 20)} of {job.get('width', 16)} channels in the first stage on "
        f"{images}{size} of {job['dataset']}, {how['epochs']} epochs of batch {how.get('batch', 128)}, each recipe "
        "the plain one with one change. Intervals: 95 %; seeds are the units of what is said about a recipe (Tukey "
        "and Kramer, all differences at once), images those of what is said about these very networks."
    )
    if how["epochs"] < plain_recipe(full=True).epochs:
        words += (
            " The paper trains 164 layers on all images for 164 epochs (`--full`). In short trainings tricks that make "
            "the task harder cost accuracy which they give back later; which tricks are good ones here is said about "
            "this scale only."
        )
    return words


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
