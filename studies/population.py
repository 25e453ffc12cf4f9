"""First paper, Figures 2 and 7 and Table 1 decided by a population of small networks (about 15 s; hours to train).

Claims examined: the better the network, the larger its TNS; attention raises TNS and accuracy; NSI says more about
accuracy than simple rivals do (Huang, Liang et al., Understanding Self-attention Mechanism via Dynamical System
Perspective, 2023). The population has 240 networks on CIFAR-10 at 16 pixels; its design and the rules of its analysis
were fixed before any was trained. By default the study shows the measurements that are there; `--train`
works on those that are not.

Last result (75 of 240 networks, 66 of which have a TNS under every reading, three seeds of every controller,
2026-11-20): under the slope's readings attention raises the scale of NSI for nine of ten controllers, by 1.5 to 4.9
times, and lowers it for one; the shape, TNS over the scale, differs from that of constant step sizes for none. Under
the increment's the scale is smaller for all ten and the shape larger for one, SEM. TNS mixes the two: larger for two
and four of ten by slope, for none and one by increment. No controller raises the accuracy, and SEM lowers it by 4.0
points [2.8, 5.2]. No relation of accuracy with TNS, its scale or its shape is decided.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

import netbridge as nb
from netbridge.train.recipes import Recipe, recipe
from odelab.plot import style
from studies.lab import definitions, jobs, measurements, verdicts
from studies.lab.claims import FEWEST_SEEDS, Arms
from studies.lab.command import require_at_least, start
from studies.lab.comparisons import deviation_cell, interval_cell
from studies.lab.exhibits import Exhibit, judge, write
from studies.lab.figures import MARKS, heat_map, legend_below, looks_of
from studies.lab.jobs import Job
from studies.lab.measurements import Measurement
from studies.lab.networks import CONTROLLERS, MULTIPLE, controller_name
from studies.lab.options import ThreadOptions
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.report.charts import NetworksChart, Point
from studies.lab.statistics import FEWEST, Estimate, draw_kinds, estimate, interval_text, kendall_within, listing
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, SCALE, SHAPE, SWITCH, TNS, wording
from studies.lab.verdicts import (
    NOT_RUN,
    UNDECIDED,
    Finding,
    Rule,
    Verdict,
    Worlds,
    corrected,
    joint,
    of_interval,
    of_robust,
    rule,
)

STUDY = "population"
SHIPPED = Path(__file__).parent / "shipped" / STUDY
NETWORKS_NOW = len([*SHIPPED.glob("*.npz")])  # of 240; tests ask whether words and calibration know it

# ---- The design: its networks and their order. Written before any was trained ----
#
# The design of `population`: its networks, their order, and how they are judged. Written before any was trained.
#
# The networks. All see CIFAR-10 shrunk to 16 pixels and compute in bfloat16. Ten rounds, one per seed, of 24 networks:
#
# - *core*, 12 networks: ResNet-20, 16 channels, recipe `brief` (3 epochs), each of the eleven controllers once and
#   constant step sizes a second time with another seed, because every other controller is compared with them. Claims
#   about controllers are judged on the core alone; its seeds are the units.
# - *spread*, 12 networks: depths 14, 20, 26, 32 times 8, 12, 16 channels; `brief` and `longer` (6 epochs) in turn, the
#   controllers in rotation (FCA shares 16 frequencies out among the channels, so it serves 16 channels only). Over two
#   rounds every shape has both recipes, that of the core only `longer`; over ten (nearly) every controller. Claims
#   about networks are judged on core and spread together.
#
# The order is round by round, core and spread in turn, each round starting at another place, so that the queue is
# balanced wherever it is stopped. Of what is shipped the core of the second and third round was trained ahead of their
# spread, so that claims about controllers have three seeds; that was decided before any of these networks was trained.
#
# The measures. TNS of a network is the mean over 1,000 test images, under the four readings of `studies.lab.stiffness`.
# ResNet-14 counts one block a stage: compared with the mean of that one block its TNS is 0 for every image, so it is
# left out of the readings with mu per image. Accuracy is that on the 10,000 test images after the last epoch. Training
# loss is measured on 5,000 training images without augmentation. A network whose training diverged is named and left
# out.
#
# The rules stand with the functions that judge by them, each with the time when it was written.


PIXELS = 16
ROUNDS = 10
SECOND = 100  # added to the seed of the second network with constant step sizes
DEPTHS, WIDTHS = (14, 20, 26, 32), (8, 12, 16)
CORE = (20, 16)  # depth and width
NEIGHBOURS = 12  # networks in a group of equal training loss
NEGLIGIBLE = 0.15  # a rank correlation within so much of 0 is no relation to speak of
FEWEST_NETWORKS = 24
RESAMPLES = 2000
BRIEF = dataclasses.replace(recipe("short", epochs=3, small=(), shift=1, evaluate_every=100), name="brief")
LONGER = dataclasses.replace(BRIEF, name="longer", epochs=6)


def network_of(dataset: str, controller: str, seed: int, shape: tuple[int, int], how: Recipe) -> Job:
    return Job(dataset, controller, seed, how, *shape, size=PIXELS)


def core(seed: int, dataset: str = "cifar10") -> list[Job]:
    """The networks of one round in the *core*, on which claims about controllers rest."""
    runs = [network_of(dataset, controller, seed, CORE, BRIEF) for controller in CONTROLLERS]
    return [*runs, network_of(dataset, "constant", seed + SECOND, CORE, BRIEF)]


def spread_networks(seed: int, dataset: str = "cifar10") -> list[Job]:
    """The networks of one round in the *spread*: depth, width, recipe and controller differ at once."""
    runs = []
    for cell, (depth, width) in enumerate((depth, width) for depth in DEPTHS for width in WIDTHS):
        serving = [name for name in CONTROLLERS if width % MULTIPLE.get(name, 1) == 0]
        how = LONGER if (depth, width) == CORE else (BRIEF, LONGER)[(cell + seed) % 2]
        runs.append(network_of(dataset, serving[(cell + seed) % len(serving)], seed, (depth, width), how))
    return runs


def queue(rounds: int = ROUNDS, dataset: str = "cifar10") -> list[Job]:
    """All networks in the order of training."""
    runs = []
    for seed in range(rounds):
        turns = [run for pair in zip(core(seed, dataset), spread_networks(seed, dataset), strict=True) for run in pair]
        start = 10 * seed % len(turns)  # even, so that core and spread keep their turns
        runs += turns[start:] + turns[:start]
    return runs


def of_ones_own(files, rounds: int = ROUNDS, dataset: str = "cifar10") -> list[Job]:
    """Every controller and network of the files of `--define`, trained as the core's are, one seed a round."""
    return jobs.of_ones_own([network_of(dataset, "constant", seed, CORE, BRIEF) for seed in range(rounds)], files)


def is_core(specification: dict) -> bool:
    """Does a measurement belong to the core? The spread has no network of its shape and recipe."""
    shape = specification.get("depth", 20), specification.get("width", 16)
    return shape == CORE and specification["recipe"]["name"] == BRIEF.name


def smoke() -> list[Job]:
    """A few networks on the digits that only show that everything works."""
    how = recipe("digits", epochs=1, evaluate_every=100)
    shapes = [("constant", 0, 14), ("se", 0, 14), ("constant", 1, 20), ("se", 1, 20)]
    return [Job("digits", name, seed, how, depth, 4, images=256) for name, seed, depth in shapes]


@dataclasses.dataclass
class Arguments(ThreadOptions):
    """Decide claims about stiffness and accuracy on many small networks."""

    train: bool = False
    """Train and measure what is missing; killed and started again, it goes on. Processes with one --out share it."""
    scheduler: str | None = None
    """With --train: the address of a Dask scheduler whose workers do it, such as tcp://host:8786."""
    rounds: int = ROUNDS
    """How many rounds of 24 networks."""
    dataset: str = "cifar10"
    """What to train on: cifar10, cifar100, stl10, digits, or a name from a file of --define."""
    define: tuple[Path, ...] = ()
    """Python files with controllers, networks (NETWORKS) or data sets (DATASETS) of your own. With --train they are
    trained as the core's are, a seed a round, and shown beside them; the verdicts stay those of the 240 networks. With
    --scheduler every worker must be able to read the files."""
    out: Path = Path("results/population")
    """Where measurements (in runs/), figures, tables, report.html and record.json go."""


# ---- What is known of the networks ----
CONSTANT, STEPNET = "constant", "StepNet"  # as measurements name them
RIVALS = ("norm of the logits", "training loss", "width", "sharpness")
ACCURACY = "accuracy"


@dataclasses.dataclass(frozen=True, eq=False)
class Networks:
    """What is known of n networks, a number or a name for each.

    controller, depth, width, seed, recipe  what the network is
    core        does it belong to the part of the design that compares controllers?
    accuracy    per cent of the 10,000 test images
    train_loss, logits_norm, sharpness  see `measurements.Measurement`
    stiffness   TNS, its scale and its shape, each by its readings; NaN where they are not defined
    seconds     of training and one thread
    """

    controller: np.ndarray
    depth: np.ndarray
    width: np.ndarray
    seed: np.ndarray
    recipe: np.ndarray
    core: np.ndarray
    accuracy: np.ndarray
    train_loss: np.ndarray
    logits_norm: np.ndarray
    sharpness: np.ndarray
    stiffness: dict[str, dict[tuple, np.ndarray]]
    seconds: np.ndarray

    def __len__(self):
        return len(self.accuracy)

    @classmethod
    def of(cls, networks: list[Measurement]) -> "Networks":
        def column(name, factor=1.0):
            return np.array([factor * network.numbers[name] for network in networks])

        return cls(
            controller=np.array([network.numbers["controller"] for network in networks], dtype=object),
            depth=np.array([network.numbers["depth"] for network in networks], dtype=int),
            width=np.array([network.numbers["width"] for network in networks], dtype=int),
            seed=np.array([network.numbers["seed"] for network in networks], dtype=int),
            recipe=np.array([network.specification["recipe"]["name"] for network in networks], dtype=object),
            core=np.array([is_core(network.specification) for network in networks], dtype=bool),
            accuracy=column("test_accuracy", 100.0),
            train_loss=column("train_loss"),
            logits_norm=column("logits_norm"),
            sharpness=column("sharpness"),
            stiffness={
                what: {
                    reading: np.array([network.stiffness(what, reading) for network in networks], dtype=float)
                    for reading in readings
                }
                for what, readings in QUANTITIES.items()
            },
            seconds=np.array([network.numbers["made"]["seconds"] for network in networks], dtype=float),
        )

    def rivals(self) -> dict[str, np.ndarray]:
        """What may say as much about accuracy as TNS does, by the names of RIVALS."""
        columns = (self.logits_norm, self.train_loss, self.width, self.sharpness)
        return dict(zip(RIVALS, columns, strict=True))


def seeds_of(networks: Networks, values: np.ndarray) -> dict[str, list[float]]:
    """The values of the core's networks by controller, constant step sizes first; those without a value left out."""
    usable = networks.core & np.isfinite(values)
    names = sorted({str(name) for name in networks.controller[usable]}, key=lambda name: (name != CONSTANT, name))
    return {name: values[usable & (networks.controller == name)].tolist() for name in names}


def comparisons(networks: Networks) -> dict[tuple, Arms]:
    """TNS, its scale and its shape against constant step sizes, accuracy against these and against StepNet.

    The keys are (quantity, reading, constant), (ACCURACY, (), constant) and (ACCURACY, (), StepNet). The intervals of a
    quantity hold together over controllers and readings.
    """
    compared = {}
    for what, readings in QUANTITIES.items():
        for reading in readings:
            groups = seeds_of(networks, networks.stiffness[what][reading])
            compared[what, reading, CONSTANT] = Arms.against(CONSTANT, groups, corrected(len(readings)))
    accuracies = seeds_of(networks, networks.accuracy)
    for control in (CONSTANT, STEPNET):
        compared[ACCURACY, (), control] = Arms.against(control, accuracies)
    return compared


def two_lines(reading) -> str:
    """A reading in two lines, for the titles of narrow panels."""
    return wording(*reading).replace(", ", ",\n")


def interval(axis, e: Estimate, y: float, colour: str):
    """An estimate as a mark on a line; the mark alone where there is no interval."""
    if np.isfinite(e.low):
        axis.plot([e.low, e.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    axis.plot(e.value, y, "o", color=colour, markersize=4)


LATER = (
    "after the data: with 51 networks seen, TNS was taken apart into scale and shape, intervals were made to hold "
    "together over the readings, controllers became the units, and a relation has to hold without any one of them; the "
    "verdicts on networks were undecided before and after"
)

# ---- Made-up networks, in which nothing is related or the paper's claims are true: what the rules are tried on ----
#
# Made-up networks, in which nothing is related or the paper's claims are true: what the rules are tried on.
#
# Seeds scatter as those of the core do (2026-11-19, 39 networks): accuracy by 0.6 points, TNS and its shape by a fifth
# of what constant step sizes have, the scale by a twentieth.


POINTS = 0.6  # standard deviation of the accuracy over seeds
SPREAD = {TNS: 0.2, SCALE: 0.05, SHAPE: 0.2}  # the same of TNS and its parts, where constant step sizes have 1
FEW_RESAMPLES = 400
GAIN, MARGIN = 1.2, 0.7  # points above constant step sizes, and of StepNet above the others, in Table 1


def plain_spec(name: str):
    """What a header says of a controller: "se" as it is, asr(se) as a record."""
    outer, inner = name.removesuffix(")").split("(") if "(" in name else (name, "")
    return {"name": outer, "module": inner} if inner else name


@functools.cache
def columns(n: int) -> dict[str, np.ndarray]:
    """What the design says of its first n networks."""
    planned = queue()[:n]
    return {
        "controller": np.array([controller_name(plain_spec(job.label)) for job in planned], dtype=object),
        "depth": np.array([job.depth for job in planned]),
        "width": np.array([job.width for job in planned]),
        "seed": np.array([job.seed for job in planned]),
        "recipe": np.array([job.recipe.name for job in planned], dtype=object),
        "core": np.array([is_core(job.specification) for job in planned]),
    }


def draw_networks(chance: np.random.Generator, effect: float, n: int) -> Networks:
    """The first n networks of the design: the controller moves accuracy and stiffness as much as the seed does.

    With effect = 1 both, of the controllers and of the seeds, have Kendall's tau of 0.5; without, none. The readings
    agree as far as measured ones do.
    """
    about = columns(n)
    controllers = np.unique(about["controller"].astype(str), return_inverse=True)[1]
    of_controllers, own = chance.normal(size=controllers.max() + 1), chance.normal(size=n)
    skill = of_controllers[controllers] + own
    stiff = verdicts.agreeing(chance, of_controllers, 0.5 * effect)[controllers]
    stiff += verdicts.agreeing(chance, own, 0.5 * effect)

    def quantity():
        return 10.0 + 0.95 * stiff + 0.3 * chance.normal(size=n)

    stiffness = {what: {reading: quantity() for reading in readings} for what, readings in QUANTITIES.items()}
    rivals = {name: chance.normal(size=n) for name in ("train_loss", "logits_norm", "sharpness")}
    return Networks(**about, **rivals, accuracy=70.0 + skill, stiffness=stiffness, seconds=np.ones(n))


def draw_core(chance, n: int, spread: float) -> dict[str, np.ndarray]:
    """Values of n seeds of every controller that scatter around 0; constant step sizes have twice as many."""
    names = dict.fromkeys(columns(len(queue(1)))["controller"])
    return {name: chance.normal(0.0, spread, 2 * n if name == CONSTANT else n) for name in names}


def compare(drawn: dict[str, np.ndarray], control: str, level: float) -> Arms:
    return Arms.against(control, {name: values.tolist() for name, values in drawn.items()}, level)


# ---- The design, and what there is of it ----


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What the study shows.

    networks   the numbers of all networks
    related    of claim 1, see `relations`
    compared   of claims 2 and 3, see `comparisons`
    explained  of claim 4, by reading
    stored     the measurements, and those of the user's networks
    planned, planned_own  the jobs of either
    """

    networks: Networks
    related: "dict[tuple[str, str, tuple], Relation]"
    compared: dict[tuple, Arms]
    explained: "dict[tuple, Explained]"
    stored: measurements.Stored = dataclasses.field(default_factory=lambda: measurements.Stored([], [], []))
    planned: Sequence[Job] = ()
    planned_own: Sequence[Job] = ()

    @classmethod
    def of(cls, networks: Networks, resamples: int = RESAMPLES, **measured) -> "Evidence":
        """With the numbers of all claims; `measured` are the other fields."""
        explained = {reading: explain_accuracy(networks, reading, resamples) for reading in READINGS}
        return cls(networks, relations(networks, resamples), comparisons(networks), explained, **measured)


def show_progress(page: Page, evidence: Evidence):
    page.words(
        f"The core are ResNet-20 of 16 channels with every controller, {BRIEF.epochs} epochs; claims about "
        "controllers are judged on them alone, with seeds as units. The spread are ResNets of 14, 20, 26 and 32 layers "
        f"with 8, 12 and 16 channels, {BRIEF.epochs} or {LONGER.epochs} epochs, the controllers in "
        "rotation; claims about networks are judged on both. All are far smaller, and trained far more shortly, than "
        "the paper's ResNet-164: what is decided here is decided for such networks.",
        jobs.describe_diverged(evidence.stored.diverged),
    )
    page.table("progress", rows_of_progress(evidence), "Networks of the design")


def rows_of_progress(evidence: Evidence) -> Iterator[dict]:
    """How much of the design there is, and what the rest will cost."""
    wanted, measured, diverged = evidence.planned, evidence.stored.networks, evidence.stored.diverged
    parts = {
        "core": [is_core(job.specification) for job in wanted],
        "spread": [not is_core(job.specification) for job in wanted],
    }
    for part, inside in parts.items():
        done = [network for network in measured if is_core(network.specification) == (part == "core")]
        lost = sum(job.stem in diverged for job, is_part in zip(wanted, inside, strict=True) if is_part)
        seconds = float(np.mean([network.numbers["made"]["seconds"] for network in done])) if done else float("nan")
        left = sum(inside) - len(done) - lost
        yield {
            "part": part,
            "networks": sum(inside),
            "measured": len(done),
            "diverged": lost,
            "missing": left,
            "training of one (s)": f"{seconds:.0f}" if done else "",
            "core-hours left": f"{left * seconds / 3600:.1f}" if done else "",
        }


# ---- Figure 7: the better the network, the larger its TNS ----
BETTER = "The better the network, the larger its"
WAYS = OVER_ALL, BY_DEPTH, BY_CONTROLLER, BY_LOSS = (
    *("over all networks", "within depth", "within controller", "at equal training loss"),
)
FEWER = 500  # resamples where one controller is left out, which is asked of each


@dataclasses.dataclass(frozen=True)
class Relation:
    """Kendall's tau-b of n networks, of which `pairs` pairs stand in one group.

    without  tau over the networks of all controllers but one, by its name; empty where nobody asked
    """

    n: int
    pairs: int
    tau: Estimate
    without: dict[str, Estimate] = dataclasses.field(default_factory=dict)


def relations(networks: Networks, resamples: int = RESAMPLES) -> dict[tuple[str, str, tuple], Relation]:
    """Kendall's tau-b with the accuracy: of TNS in the four ways of the design, of scale and shape over all networks.

    The keys are (quantity, way, reading). The intervals of a claim hold together under all its readings.
    """
    return {
        (what, way, reading): relate(networks, what, way, reading, resamples)
        for what, readings in QUANTITIES.items()
        for way in (WAYS if what == TNS else (OVER_ALL,))
        for reading in readings
    }


def relate(networks: Networks, what: str, way: str, reading, resamples: int) -> Relation:
    """Kendall's tau-b of one quantity under one reading and the accuracy, counting pairs in one way."""
    values, level = networks.stiffness[what][reading], corrected(len(QUANTITIES[what]))
    defined = np.isfinite(values)
    groups = groups_of(networks, way, defined)
    kinds = None if way == BY_CONTROLLER else networks.controller[defined].astype(str)
    tau = kendall_within(values[defined], networks.accuracy[defined], groups, resamples, level, kinds)
    counts = np.unique(groups, return_counts=True)[1]
    without = {}
    if way == OVER_ALL:
        for name in np.unique(networks.controller[defined].astype(str)):
            rest = defined & (networks.controller != name)
            one_group = np.zeros(np.count_nonzero(rest))
            pairs = values[rest], networks.accuracy[rest]
            kinds = networks.controller[rest].astype(str)
            without[str(name)] = kendall_within(*pairs, one_group, min(resamples, FEWER), level, kinds)
    return Relation(len(groups), int((counts * (counts - 1) // 2).sum()), tau, without)


def groups_of(networks: Networks, way: str, defined: np.ndarray) -> np.ndarray:
    """The number of the group of every network that is `there`."""
    if way == BY_LOSS:
        return neighbours(networks.train_loss[defined])
    names = {OVER_ALL: np.zeros(len(networks)), BY_DEPTH: networks.depth, BY_CONTROLLER: networks.controller}[way]
    return np.unique(names[defined].astype(str), return_inverse=True)[1]


def neighbours(values: np.ndarray) -> np.ndarray:
    """Groups of NEIGHBOURS networks that follow one another in the order of their values; the last may be smaller."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable") // NEIGHBOURS


def worlds_of_relations(what: str, way: str):
    """Worlds for the relation of one quantity and the accuracy, counting pairs of networks in one way."""

    def make(chance, effect, n):
        made = draw_networks(chance, effect, n)
        return ({reading: relate(made, what, way, reading, FEW_RESAMPLES) for reading in QUANTITIES[what]},)

    return make


def of_relation(relation: Relation) -> Verdict:
    """The verdict under one reading, where leaving out any one controller does not change it."""
    if relation.n < FEWEST_NETWORKS:
        return UNDECIDED.because(f"n = {relation.n}, judged from {FEWEST_NETWORKS} on")
    return of_robust(relation.tau, relation.without, negligible=NEGLIGIBLE)


def judge_relation(related: dict[tuple, Relation]) -> tuple[Verdict, str]:
    """Kendall's tau-b with the accuracy; "within" counts pairs of one group alone. Bootstrap over controllers, as the
    networks of one are alike, and within controllers over networks. Under each reading: supported where the interval
    lies above 0, contradicted where it lies below, no difference where it lies within 0.15 of 0. Over all networks the
    same must be said where any one controller is left out. The intervals hold together under all readings; nothing is
    judged with fewer than 24 networks."""
    verdicts = {reading: of_relation(relation) for reading, relation in related.items()}
    parts = [
        f"{wording(*reading)}, n = {relation.n}: {interval_text(relation.tau, '+.2f')} ({verdicts[reading]})"
        for reading, relation in related.items()
    ]
    return joint(verdicts), f"Kendall's tau-b with the accuracy. {'; '.join(parts)}."


TAU = "Kendall's tau of 0.5"


def rule_of_relation(what: str, way: str) -> Rule:
    """Claim 1 for one quantity, counting pairs of networks in one way."""
    made = Worlds(worlds_of_relations(what, way), n=120, units="networks", effect=TAU, now=NETWORKS_NOW)
    claim = f"{BETTER} {QUANTITY_NAMES[what]}: {way}."
    options = {"fewest": FEWEST_NETWORKS, "negligible": NEGLIGIBLE, "worlds": made, "fixed": LATER}
    return rule(claim, "Figure 7, Section 3.1", variant=f"{what}, {way}", **options)(judge_relation)


RELATED = {
    (what, way): rule_of_relation(what, way) for what in QUANTITIES for way in (WAYS if what == TNS else (OVER_ALL,))
}


def judge_figure_7(evidence: Evidence) -> list[Finding]:
    """A finding for each quantity and way of counting."""
    return [
        RELATED[of]({key[-1]: relation for key, relation in evidence.related.items() if key[:2] == of})
        for of in RELATED
    ]


def show_figure_7(page: Page, evidence: Evidence):
    own = Networks.of(evidence.stored.own)
    page.switch(SWITCH)
    chart = chart_networks(evidence.networks, evidence.related)
    page.chart(chart, "networks", "A point is a network; point at it.", hero=True)
    page.figure(
        draw_relation(evidence.networks, own),
        "accuracy_tns",
        "Accuracy against TNS, one mark per network, under all four readings. ResNet-14 counts one block a stage, "
        "which is no stiffer than its own mean: with the sample's mean it has no TNS."
        + (" Hollow: networks of your own, which no number counts." if len(own) else ""),
    )
    page.figure(
        draw_taus(evidence.related),
        "tau",
        "Kendall's tau-b of TNS and accuracy, counting all pairs of networks or only those of one group, with 95 % "
        f"bootstrap intervals over networks. Grey: within {NEGLIGIBLE} of 0, no relation to speak of. Groups at "
        f"equal training loss are {NEIGHBOURS} neighbours in its order.",
    )
    page.table(
        "correlations",
        rows_of_relations(evidence.related),
        "Kendall's tau-b with the accuracy, bootstrap intervals over networks that hold together over the readings",
        "Least and largest tau where one controller is left out: a relation that one controller makes is none.",
    )


def chart_networks(networks: Networks, related) -> NetworksChart:
    """Figures 2 and 7 for the page: every network by its controller, and its accuracy against TNS, scale and shape."""
    words_of, none = "{} layers of {} channels, {}, seed {}", float("nan")
    about = zip(networks.depth, networks.width, networks.recipe, networks.seed, strict=True)
    points = [
        Point(
            controller,
            f"{controller}, {words_of.format(*words)}",
            "",
            (networks.accuracy[index], none, none),
            {
                what: {reading: (values[index], none, none) for reading, values in by.items()}
                for what, by in networks.stiffness.items()
            },
        )
        for index, (controller, words) in enumerate(zip(networks.controller, about, strict=True))
    ]
    notes = {
        what: {
            reading: f"Kendall's tau {interval_text(related[what, OVER_ALL, reading].tau, '+.2f')} over all networks."
            for reading in by
        }
        for what, by in networks.stiffness.items()
    }
    colours = {name: colour for name, (colour, _) in looks_of(dict.fromkeys(networks.controller), CONSTANT).items()}
    return NetworksChart(points, colours, "accuracy, %", CONSTANT, notes)


def draw_relation(networks: Networks, own: Networks):
    """Figure 7: accuracy against TNS, a mark per network; colours are depths, marks recipes, hollow ones the user's."""
    depths, recipes = np.unique(networks.depth), np.unique(networks.recipe.astype(str))
    with style.figure(2, 2, height=5.6, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes.flat, READINGS, strict=True):
            for colour, depth in zip(style.COLOURS, depths, strict=False):
                for mark, recipe in zip(MARKS, recipes, strict=False):
                    group = (networks.depth == depth) & (networks.recipe == recipe)
                    if group.any():
                        x, y = networks.stiffness[TNS][reading][group], networks.accuracy[group]
                        name = f"{depth} layers, {recipe}"
                        axis.plot(x, y, mark, color=colour, markersize=3.8, alpha=0.75, label=name)
            if len(own):
                axis.plot(
                    own.stiffness[TNS][reading],
                    own.accuracy,
                    "o",
                    color="#000000",
                    markerfacecolor="none",
                    markersize=4.5,
                )
            axis.set_title(wording(*reading), loc="left")
            axis.set_xlabel("TNS")
            axis.locator_params(axis="x", nbins=5)
        for row in axes:
            row[0].set_ylabel("test accuracy (%)")
        legend_below(drawing, axes[0, 1], 4)
    return drawing


def draw_taus(relations: dict):
    """Kendall's tau of every way under every reading; the band is "no relation to speak of"."""
    ends = [
        abs(end) for relation in relations.values() for end in (relation.tau.low, relation.tau.high, relation.tau.value)
    ]
    reach = min(1.05, 1.1 * max([2 * NEGLIGIBLE, *(end for end in ends if np.isfinite(end))]))
    with style.figure(1, 4, height=2.3, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes.flat, READINGS, strict=True):
            negligible_band(axis)
            for y, way in enumerate(WAYS):
                interval(axis, relations[TNS, way, reading].tau, y, style.COLOURS[0])
            axis.set_yticks(range(len(WAYS)), WAYS)
            axis.set_ylim(len(WAYS) - 0.5, -0.5)
            axis.set_xlim(-reach, reach)
            axis.set_title(two_lines(reading), loc="left")
            axis.set_xlabel(r"Kendall's $\tau_b$")
            axis.grid(axis="y", visible=False)
    return drawing


def negligible_band(axis):
    axis.axvspan(-NEGLIGIBLE, NEGLIGIBLE, color="#EEEEEE", zorder=0)
    axis.axvline(0.0, color=style.GREY, linewidth=0.8)


def rows_of_relations(relations: dict) -> Iterator[dict]:
    """Claim 1: every quantity in every way under every reading; over all networks, also without one controller."""
    for (what, way, reading), relation in relations.items():
        turning = {name: e for name, e in relation.without.items() if np.isfinite(e.value)}
        ends = sorted(turning, key=lambda name: turning[name].value)
        yield {
            "quantity": what,
            "pairs counted": way,
            "reading": wording(*reading),
            "networks": relation.n,
            "pairs": relation.pairs,
            "Kendall's tau-b": interval_text(relation.tau, "+.2f"),
            "half the interval": f"{0.5 * (relation.tau.high - relation.tau.low):.2f}",
            "without one controller": "; ".join(f"{turning[name].value:+.2f} ({name})" for name in (ends[0], ends[-1]))
            if ends
            else "",
            "better is larger": of_relation(relation),
        }


# ---- Figure 2 and Table 1: controllers against each other ----
LARGER = "Networks with attention have a larger"
HALF_AS_MUCH = "half as much again as constant step sizes have, for every controller"


def worlds_of_stiffness(what: str):
    """Worlds in which all networks with attention have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        level = verdicts.corrected(len(QUANTITIES[what]))
        common = draw_core(chance, n, 0.9 * SPREAD[what])
        compared = {}
        for reading in QUANTITIES[what]:
            own = draw_core(chance, n, 0.4 * SPREAD[what])
            groups = {k: 1.0 + common[k] + own[k] + 0.5 * effect * (k != CONSTANT) for k in common}
            compared[reading] = compare(groups, CONSTANT, level)
        return (compared,)

    return make


def judge_larger(compared: dict[tuple, Arms]) -> tuple[Verdict, str]:
    """Core: the mean of each controller minus that of constant step sizes, by Dunnett over seeds, the intervals
    holding together over controllers and readings. Under each reading: supported where every controller is above,
    contradicted where every one is below, true or false of some where only some are beyond 0. Judged from three seeds
    of every controller on."""
    if not any(each.beyond for each in compared.values()):
        return NOT_RUN, "n = 0: no networks of the core to compare; `--train` makes them."
    verdicts = {reading: each.verdict() for reading, each in compared.items()}
    parts = "; ".join(f"{wording(*reading)}: {verdicts[reading]}" for reading in compared)
    first = next(iter(compared.values()))
    return joint(verdicts), f"{first.why_open}Above constant step sizes, by reading. {parts}."


def rule_of_comparison(what: str) -> Rule:
    """Claim 2 for one quantity."""
    made = Worlds(worlds_of_stiffness(what), n=ROUNDS, units="seeds", effect=HALF_AS_MUCH, now=3)
    options = {"fewest": FEWEST_SEEDS, "worlds": made, "fixed": LATER}
    return rule(f"{LARGER} {QUANTITY_NAMES[what]}.", "Figure 2, Section 2.3", variant=what, **options)(judge_larger)


COMPARED = {what: rule_of_comparison(what) for what in QUANTITIES}


def worlds_of_accuracy(chance, effect, n):
    groups = {k: 70.0 + v + GAIN * effect * (k != CONSTANT) for k, v in draw_core(chance, n, POINTS).items()}
    return (compare(groups, CONSTANT, verdicts.LEVEL),)


@rule(
    "Attention raises the accuracy.",
    "Table 1",
    fewest=FEWEST_SEEDS,
    fixed="before the data, but for its words: with one controller below and none above it once said true of some",
    worlds=Worlds(
        worlds_of_accuracy, n=ROUNDS, units="seeds", effect="+1.2 points, the mean of Table 1's gains", now=3
    ),
)
def judge_accuracy(compared: Arms) -> tuple[Verdict, str]:
    """Core: mean accuracy of each controller minus that of constant step sizes, by Dunnett over seeds. Supported where
    every controller is above, contradicted where every one is below, true or false of some where only some are beyond
    0. Judged from three seeds of every controller on."""
    return compared.verdict(), points(compared)


def worlds_of_the_best(chance, effect, n):
    groups = {k: 70.0 + v + MARGIN * effect * (k == STEPNET) for k, v in draw_core(chance, n, POINTS).items()}
    return (compare(groups, STEPNET, verdicts.LEVEL),)


@rule(
    "StepNet raises the accuracy most.",
    "Table 1",
    fewest=FEWEST_SEEDS,
    worlds=Worlds(
        worlds_of_the_best, n=ROUNDS, units="seeds", effect="0.7 points, Table 1's mean, below StepNet", now=3
    ),
)
def judge_best(compared: Arms) -> tuple[Verdict, str]:
    """Core: mean accuracy of every other controller minus StepNet's, by Dunnett over seeds. Supported where every one
    is below, contradicted where every one is above, true or false of some where only some are beyond 0. Judged from
    three seeds of every controller on."""
    return compared.verdict(sign=-1), points(compared)


def points(compared: Arms) -> str:
    if not compared.beyond:
        return "n = 0: no networks of the core to compare; `--train` makes them."
    words = f"Points above {compared.control}, intervals of Dunnett over seeds: {listing(compared.beyond)}."
    return f"{compared.why_open}{words}"


def judge_controllers(evidence: Evidence) -> list[Finding]:
    """A finding for each quantity, and two about accuracy."""
    compared = evidence.compared
    return [
        *(COMPARED[what]({r: compared[what, r, CONSTANT] for r in QUANTITIES[what]}) for what in COMPARED),
        judge_accuracy(compared[ACCURACY, (), CONSTANT]),
        judge_best(compared[ACCURACY, (), STEPNET]),
    ]


def show_controllers(page: Page, evidence: Evidence):
    compared = evidence.compared
    if not any(each.groups for each in compared.values()):
        page.words("No network of the core is among them: nothing to compare.")
        return
    page.figure(
        draw_controllers(compared),
        "controllers",
        "TNS, its scale (the mean NSI of the counted blocks), its shape (TNS over the scale) and accuracy of the "
        "core's networks minus those of constant step sizes, and accuracy minus StepNet's. Lines: intervals of Dunnett "
        "over seeds; all of a quantity, over its readings, hold together with 95 %. Grey: the single seeds.",
    )
    page.table(
        "controllers",
        rows_of_controllers(compared),
        "Accuracy, TNS, scale and shape of the controllers, with 95 % intervals of Dunnett over seeds",
    )


def draw_controllers(comparisons: dict):
    """Figure 2 and Table 1: TNS, scale, shape and accuracy of each controller minus those of another one, by seed."""
    names = list(comparisons[ACCURACY, (), CONSTANT].groups)
    with style.figure(4, 3, height=0.72 * len(names) + 3.6, sharey=True) as (drawing, axes):
        for axis, ((what, reading, control), compared) in zip(axes.flat, comparisons.items(), strict=True):
            axis.axvline(0.0, color=style.GREY, linewidth=0.8)
            for y, name in enumerate(names if control in compared.groups else ()):
                seeds = np.array(compared.groups[name]) - np.mean(compared.groups[control])
                axis.plot(seeds, np.full(len(seeds), y + 0.25), ".", color=style.GREY, markersize=3)
                if name != control:
                    interval(axis, compared.beyond[name], y, style.COLOURS[0])
            axis.set_yticks(range(len(names)), names)
            axis.set_title("accuracy,\npoints" if what == ACCURACY else f"{what}, {two_lines(reading)}", loc="left")
            axis.set_xlabel(f"minus {control}")
            axis.grid(axis="y", visible=False)
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].set_ylim(len(names) - 0.4, -0.6)
    return drawing


def rows_of_controllers(comparisons: dict) -> Iterator[dict]:
    """Claims 2 and 3: the controllers of the core with their seeds."""
    for name, values in comparisons[ACCURACY, (), CONSTANT].groups.items():
        yield {
            "controller": name,
            "seeds": len(values),
            "accuracy (%)": f"{np.mean(values):.2f}",
            "standard deviation": deviation_cell(values),
            **{
                f"above {control}": interval_cell(comparisons[ACCURACY, (), control].beyond, name)
                for control in (CONSTANT, STEPNET)
            },
            **{
                f"{what} above {CONSTANT}, {wording(*reading)}": interval_cell(
                    comparisons[what, reading, CONSTANT].beyond, name, "+.3f"
                )
                for what, readings in QUANTITIES.items()
                for reading in readings
            },
        }


# ---- Networks of the user's; no verdict rests on them ----


def show_own(page: Page, evidence: Evidence):
    """What the files of `--define` hold, beside the core's networks that it is compared with."""
    own = evidence.stored.own
    if not evidence.planned_own:
        return
    page.words(
        f"{jobs.count_ones_own(len(own), len(evidence.planned_own))} They are trained as the core's are. No verdict, "
        "table or interval above counts them, and the comparisons below are theirs alone: with constant step sizes and "
        "with StepNet, of the core."
    )
    if own:
        core = [network for network in evidence.stored.networks if is_core(network.specification)]
        beside = [network for network in core if network.numbers["controller"] in (CONSTANT, STEPNET)]
        page.table(
            "own",
            rows_of_controllers(comparisons(Networks.of([*beside, *own]))),
            "Networks of your own beside the core's, with 95 % intervals of Dunnett over seeds",
        )


# ---- What explains accuracy ----


@dataclasses.dataclass(frozen=True)
class Explained:
    """Ranks of accuracy regressed on those of TNS and its rivals, for n networks.

    coefficient  of TNS, everything standardised
    shares       by name, of the variance explained: what one adds, averaged over all orders
    """

    n: int
    coefficient: Estimate
    shares: dict[str, Estimate]


def explain_accuracy(networks: Networks, reading, resamples: int = RESAMPLES) -> Explained:
    """What TNS says about accuracy beside its rivals, with bootstrap intervals over networks; of few nothing."""
    names, (n, related) = (TNS, *RIVALS), resample_ranks(networks, reading, resamples)
    if n < FEWEST:
        return Explained(n, estimate(math.nan, []), dict.fromkeys(names, estimate(math.nan, [])))
    added = shares(related)
    return Explained(
        n,
        coefficient_of_tns(n, related),
        {name: estimate(of[0], of[1:], n=n) for name, of in zip(names, added.T, strict=True)},
    )


def resample_ranks(networks: Networks, reading, resamples: int) -> tuple[int, np.ndarray]:
    """How many networks have a TNS, and the rank correlations of accuracy, TNS and rivals.

    Those of the networks stand first; behind them those of resamples, in which whole controllers are drawn.
    """
    tns = networks.stiffness[TNS][reading]
    defined = np.isfinite(tns)
    values = np.stack([networks.accuracy, tns, *networks.rivals().values()])[:, defined].astype(float)
    n = values.shape[1]
    if n < FEWEST:
        return n, np.empty((0, len(values), len(values)))
    rows = np.vstack([np.arange(n), draw_kinds(networks.controller[defined].astype(str), resamples)])
    return n, rank_correlations(values[:, rows].transpose(1, 0, 2))


def coefficient_of_tns(n: int, related: np.ndarray) -> Estimate:
    """The coefficient of TNS beside its rivals; the interval holds together with those of the other readings."""
    beta = coefficients(related, tuple(range(1, related.shape[-1])))[:, 0]
    return estimate(beta[0], beta[1:], corrected(len(READINGS)), n)


def rank_correlations(values: np.ndarray) -> np.ndarray:
    """Correlations of the ranks of values (..., quantities, networks); 0 with what does not vary."""
    ranks = stats.rankdata(values, axis=-1)
    ranks -= ranks.mean(-1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=-1, keepdims=True)
    ranks = np.divide(ranks, lengths, out=np.zeros_like(ranks), where=lengths > 0)
    return ranks @ ranks.swapaxes(-1, -2)


def coefficients(related: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    """Of the regression of the first quantity on the chosen ones, all standardised; NaN where the first is constant.

    The shortest of the solutions where the chosen ones are not independent: what does not vary has coefficient 0.
    """
    inside = related[..., chosen, :][..., chosen]
    found = (np.linalg.pinv(inside, hermitian=True) @ related[..., chosen, :1])[..., 0]
    return np.where(related[..., :1, 0] > 0, found, np.nan)


def shares(related: np.ndarray) -> np.ndarray:
    """The share of the first quantity's variance that each of the others explains, averaged over all orders.

    Lindeman, Merenda and Gold 1980 (Groemping 2006, Eq. 8): what one adds to the explained variance, averaged over all
    orders in which they can enter a regression. The shares sum to the variance that all explain together.
    """
    others = tuple(range(1, related.shape[-1]))
    subsets = [s for size in range(len(others) + 1) for s in itertools.combinations(others, size)]
    variance = {s: explained_variance(related, s) for s in subsets}
    total = np.zeros((*related.shape[:-2], len(others)))
    for index, one in enumerate(others):
        for rest in (s for s in subsets if one not in s):
            weight = 1.0 / (len(others) * math.comb(len(others) - 1, len(rest)))  # of all orders that begin so
            total[..., index] += weight * (variance[tuple(sorted((*rest, one)))] - variance[rest])
    return total


def explained_variance(related: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    """R squared of the regression of the first quantity on the chosen ones."""
    if not chosen:
        return np.where(related[..., 0, 0] > 0, 0.0, np.nan)
    return (coefficients(related, chosen) * related[..., 0, chosen]).sum(-1)


def worlds_of_explanations(chance, effect, n):
    made = draw_networks(chance, effect, n)
    explained = {}
    for reading in READINGS:
        usable, related = resample_ranks(made, reading, FEW_RESAMPLES)
        explained[reading] = Explained(usable, coefficient_of_tns(usable, related), {})
    return (explained,)


def of_coefficient(explained: Explained) -> Verdict:
    if explained.n < FEWEST_NETWORKS:
        return UNDECIDED.because(f"n = {explained.n}, judged from {FEWEST_NETWORKS} on")
    return of_interval(explained.coefficient, negligible=NEGLIGIBLE)


@rule(
    "NSI explains accuracy beyond simple rivals.",
    "Section 3.1, Figure 7",
    fewest=FEWEST_NETWORKS,
    negligible=NEGLIGIBLE,
    fixed="before the data; its intervals hold together over the readings since 51 networks were seen",
    worlds=Worlds(worlds_of_explanations, n=120, units="networks", effect="a coefficient of 0.5", now=NETWORKS_NOW),
)
def judge_explanation(explained: dict[tuple, Explained]) -> tuple[Verdict, str]:
    """Ranks of accuracy are regressed on those of TNS and of four rivals: norm of the logits, training loss, width,
    sharpness. The coefficient of TNS, by bootstrap over controllers: supported where its interval lies above 0,
    contradicted where below, no difference where it lies within 0.15 of 0. The shares of explained variance judge
    nothing. The intervals hold together under all readings; nothing is judged with fewer than 24 networks."""
    verdicts = {reading: of_coefficient(each) for reading, each in explained.items()}
    parts = [
        f"{wording(*reading)}, n = {each.n}: {interval_text(each.coefficient, '+.2f')} ({verdicts[reading]})"
        f"{share_of_tns(each)}"
        for reading, each in explained.items()
    ]
    return joint(verdicts), f"Coefficient of TNS beside its rivals. {'; '.join(parts)}."


def share_of_tns(explained: Explained) -> str:
    if TNS not in explained.shares:
        return ""
    whole, own = sum(share.value for share in explained.shares.values()), explained.shares[TNS].value
    return f", {100 * own:.0f} of the {100 * whole:.0f} % explained" if whole == whole else ""


def judge_shares(evidence: Evidence) -> list[Finding]:
    return [judge_explanation(evidence.explained)]


def show_explanation(page: Page, evidence: Evidence):
    explanations = evidence.explained
    if max(explained.n for explained in explanations.values()) < FEWEST:
        page.words(f"Fewer than {FEWEST} networks: no regression of ranks.")
        return
    page.figure(
        draw_shares(explanations),
        "shares",
        "Shares of the variance of ranks of accuracy (Lindeman, Merenda and Gold): what each adds to a regression, "
        "averaged over all orders, with 95 % bootstrap intervals over networks. The shares judge nothing.",
    )
    page.table(
        "explained",
        rows_of_shares(explanations),
        "Ranks of accuracy regressed on those of TNS and its rivals",
        "The coefficient of TNS is that beside all rivals; everything standardised.",
    )
    page.figure(
        draw_ranks(evidence.networks),
        "ranks",
        "Spearman's correlations of accuracy, rivals and TNS, over the networks for which all are defined. The columns "
        "are the rows in the same order.",
    )


def draw_shares(explanations: dict[tuple[str, str], Explained]):
    """Claim 4: shares of the explained variance of accuracy, TNS beside its rivals."""
    with style.figure(1, 4, height=2.2, sharey=True, sharex=True) as (drawing, axes):
        for axis, (reading, explained) in zip(axes.flat, explanations.items(), strict=True):
            for y, (name, share) in enumerate(explained.shares.items()):
                interval(axis, share, y, style.COLOURS[1 if name == TNS else 0])
            axis.set_yticks(range(len(explained.shares)), list(explained.shares))
            axis.set_ylim(len(explained.shares) - 0.5, -0.5)
            axis.set_title(two_lines(reading), loc="left")
            axis.set_xlabel("share of variance")
            axis.set_xlim(0.0, 1.0)
            axis.grid(axis="y", visible=False)
    return drawing


def rows_of_shares(explanations: dict[tuple[str, str], Explained]) -> Iterator[dict]:
    """Claim 4: the coefficient of TNS, and the shares of all."""
    for reading, explained in explanations.items():
        yield {
            "reading": wording(*reading),
            "networks": explained.n,
            "coefficient of TNS": interval_text(explained.coefficient, "+.2f"),
            "beyond rivals": of_coefficient(explained),
            **{f"share of {name} (%)": percent(share) for name, share in explained.shares.items()},
            "explained (%)": f"{100 * sum(share.value for share in explained.shares.values()):.0f}",
        }


def percent(share) -> str:
    if not np.isfinite(share.value):
        return "undefined"
    value, low, high = (round(100 * x) for x in (share.value, share.low, share.high))
    return f"{value} [{low}, {high}]"


def draw_ranks(networks: Networks):
    """Spearman's correlations of everything that enters claim 4."""
    columns = {"accuracy": networks.accuracy} | networks.rivals()
    columns |= {f"TNS, {wording(*reading)}": tns for reading, tns in networks.stiffness[TNS].items()}
    defined = np.isfinite(np.stack(list(columns.values())).astype(float)).all(0)
    values = np.stack(list(columns.values())).astype(float)[:, defined]
    table = rank_correlations(values) if defined.sum() >= FEWEST else np.full((len(columns), len(columns)), np.nan)
    numbers = [str(index + 1) for index in range(len(columns))]
    rows = [f"{name}  {number}" for name, number in zip(columns, numbers, strict=True)]
    return heat_map(table, rows, numbers, "Spearman's correlation")


# ---- Every network ----


def show_networks(page: Page, evidence: Evidence):
    """One row for every network, in a file."""
    networks = evidence.networks
    rows = [
        {
            "part": "core" if networks.core[i] else "spread",
            "controller": networks.controller[i],
            "depth": networks.depth[i],
            "width": networks.width[i],
            "recipe": networks.recipe[i],
            "seed": networks.seed[i],
            "accuracy (%)": f"{networks.accuracy[i]:.2f}",
            "training loss": f"{networks.train_loss[i]:.3f}",
            "norm of the logits": f"{networks.logits_norm[i]:.2f}",
            "sharpness": f"{networks.sharpness[i]:.3f}",
            **{
                f"{what}, {wording(*reading)}": f"{values[i]:.3f}" if np.isfinite(values[i]) else "undefined"
                for what, readings in networks.stiffness.items()
                for reading, values in readings.items()
            },
        }
        for i in range(len(networks))
    ]
    page.table("networks", rows, "Every network", printed=False, told=False)


EXHIBITS = (
    Exhibit("The design, and what there is of it", show_progress),
    Exhibit("Accuracy and TNS (Figure 7)", show_figure_7, judge_figure_7),
    Exhibit("Controllers against each other (Figure 2, Table 1)", show_controllers, judge_controllers),
    Exhibit("Controllers and networks of your own", show_own),
    Exhibit("What explains accuracy", show_explanation, judge_shares),
    Exhibit("Every network", show_networks),
)


# ---- What other reports cite: the findings of the measurements that come with the repository ----
REMEDY = "`python -m studies.population --remeasure` trains and measures them again."


def shipped_sources(folder: Path = SHIPPED) -> list[dict]:
    """Of each measurement that the findings rest on, which code made it, as `results.source` gave it."""
    return [network.made for network in measurements.find_all(queue(), (folder,))]


def shipped_findings(folder: Path = SHIPPED) -> tuple[int, list[Finding]]:
    """(how many networks, what they say); (0, []) where no measurement is shipped."""
    networks = Networks.of(measurements.find_all(queue(), (folder,)))
    return (len(networks), judge(EXHIBITS, Evidence.of(networks))) if len(networks) else (0, [])


# ---- The study ----


def main(arguments: Arguments, shipped: Path = SHIPPED):
    require_at_least(1, arguments, "rounds", "threads")
    definitions.take_all(STUDY, arguments.define, arguments.dataset)
    planned = queue(arguments.rounds, arguments.dataset)
    own = of_ones_own(arguments.define, arguments.rounds, arguments.dataset)
    if arguments.smoke:
        arguments, planned = dataclasses.replace(arguments, train=True, threads=1), smoke()
    with workers_of(arguments.scheduler) as executor:
        stored = measurements.obtain(STUDY, arguments, planned, shipped, own, executor=executor)
    networks = Networks.of(stored.networks)
    count = len(networks)
    name = "CIFAR-10" if arguments.dataset == "cifar10" else arguments.dataset
    data = "the digits" if arguments.smoke else f"{name} at {PIXELS} pixels"
    page = Page(
        STUDY,
        arguments,
        f"A population of {count} small networks on {data}",
        f"{count} of the {len(planned)} networks of a design that was fixed before any was trained. After "
        f"{STEPNET_PAPER}.",
        stored.notice(
            planned,
            f"those of these {count}. The rules of the design leave a claim undecided with fewer than "
            f"{FEWEST_NETWORKS} networks, or {FEWEST_SEEDS} seeds of every controller that it compares.",
        ),
    )
    page.heading("What these networks say")
    evidence = Evidence.of(networks, stored=stored, planned=planned, planned_own=own)
    write(page, EXHIBITS, evidence, page.name_older(stored.made))
    page.close()


@contextlib.contextmanager
def workers_of(scheduler: str | None):
    """The executor of a Dask cluster; None where there is no cluster to use."""
    if scheduler is None:
        yield None
        return
    from distributed import Client

    with Client(scheduler) as client:
        yield client.get_executor()


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
