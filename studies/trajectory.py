"""First paper, Definition 3: ground truth trajectories, block importance, large features, first blocks (about 2 min).

Claims examined: there are trajectories of high-performance networks; the closer another network comes to one, the
better it is, and attention brings networks closer (Section 2.3, Figures 1 and 10); for most inputs they are stiff
(property (1)), because large features matter (Section 3.1); the first block of a stage is inflated (Section 2.2); step
size and stiffness along a trajectory (Figure 9b). Huang, Liang et al., Understanding Self-attention Mechanism via
Dynamical System Perspective, 2023. Features of two networks share no coordinates, so the study compares indices, and
which images lie near which (CKA).

Last result (22 ResNet-20 on CIFAR-10, 500 images, 2026-11-20): by NSI as it is seven of nine controllers with attention
are nearer to the best network than plain ones and two farther, but that is mostly the scale of the branches; with the
scale divided out, and by CKA, it depends on which of the three best stands in. The deviation grows with depth by CKA
and not by NSI. Networks that are nearer are not better beyond chance; no first block has twice the index of the others;
whether stiff blocks and large features are the important ones three controllers do not decide. On two ResNet-56 of
CIFAR-10, with SE and StepNet, step sizes fall where NSI is larger along 25 % of the trajectories only (of the digits:
86 %); one seed of each decides nothing.
"""

import dataclasses
import functools
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from rich.progress import Progress
from scipy import stats
from torch.nn import functional as F

import netbridge as nb
import odelab as ol
from netbridge.surgery.alteration import without_largest, without_smallest
from netbridge.tracing.similarity import profile_distance
from odelab.plot import style
from studies.lab import networks, stiffness
from studies.lab.command import start
from studies.lab.comparisons import dunnett, signed_cell
from studies.lab.exhibits import Exhibit, write
from studies.lab.figures import (
    SYMBOL,
    draw_trajectory,
    in_a_row,
    label_panels,
    legend_below,
    looks,
    mark_stages,
    panels,
    reach_of,
    use_axes,
)
from studies.lab.networks import Subject, groups
from studies.lab.options import TracingOptions
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.statistics import (
    Estimate,
    Signs,
    bootstrap_mean,
    chance_text,
    choices,
    correlate_rows,
    correlation_of_few,
    draw_halves,
    estimate,
    interval_text,
    listing,
    mean_with_interval,
    rank_correlation,
    relate_kinds,
    signs_beyond_chance,
)
from studies.lab.stiffness import BATCH, READINGS, Measured, OfNetwork, prepare, step_sizes_of, wording
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_ASKABLE,
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
    of_cases,
    of_correlation,
    of_each,
    of_interval,
    of_kinds,
    rule,
)

STUDY = "trajectory"

# ---- What is fixed before anything is measured: sizes, distances, and the stand-in for a ground truth ----
PRESETS = {"quick": {"images": 500, "resamples": 100}, "full": {"images": 10_000, "resamples": 1000}}
SIMILAR = 500  # test images over which CKA is computed, from all pairs of them at once
HALVES = 60  # of these images, for the intervals of CKA
FEATURED = 200  # test images whose features are removed
SHARE = 0.1  # of the elements of a slope that counts as its large ones
DEGREES = (0.1, 0.25, 0.5)  # M1 of property (1)
LARGE = 2.0  # a first block with this many times the index of the others counts as "extremely large"
FEWEST_BLOCKS = 5  # counted blocks of a stage that a correlation along a trajectory needs
FEWEST_SEEDS = 2  # of every controller whose distances are compared
FEWEST_DEEP = 3  # seeds of a deep network
DROPPED = ("constant", "SE", "StepNet")  # the networks whose blocks are dropped; --all for every one
NSI, SHAPE, CKA = "NSI", "shape", "CKA"
MEASURES = (NSI, SHAPE, CKA)
LEFT = (SHAPE, CKA)  # what does not see how large the branches of a network are in all
WORDS = {
    NSI: "|log NSI - log NSI of the proxy|",
    SHAPE: "|log - log of the proxy| of NSI over its scale",
    CKA: "1 - CKA with the proxy",
}
PROXIES = 3  # of the best networks that stand in for a ground truth in turn
PROXY = (
    "The stand-in for a ground truth trajectory (Definition 3) is that of the network with the highest test accuracy. "
    "The paper says that such trajectories are not unique: how far other seeds of the same controller are from it is "
    "the floor that any distance must be seen against, and the next best networks take its place in turn."
)


@dataclasses.dataclass
class Arguments(TracingOptions):
    """Trajectories of trained networks beside that of the best of them: figures, tables, conclusions."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 500 test images; full: all of them, and more resamples."""
    depth: int | None = None
    """Only networks with so many layers, 56 for the deep ones; all but these by default."""
    all: bool = False
    """Drop blocks of every network, not only of those with constant step sizes, SE and StepNet."""
    out: Path = Path("results/trajectory")
    """Where figures, tables, report.html and record.json go."""


# ---- What is measured of every network: its indices, the norms of its states, and how far it is from the proxy ----


@dataclasses.dataclass(eq=False)
class Course(OfNetwork):
    """What was measured of one network on N images at its T blocks.

    found     indices, step sizes and answers, as every study measures them
    grams     Gram matrices of the states behind every block, on the first images; removed when no longer needed
    norms     of these states, (images, T)
    along     what `along_of` says of each image; empty without a step size that varies
    distance  per measure the distance from the proxy, in all and block by block; empty for the proxy itself
    """

    measured: Measured
    grams: dict[str, np.ndarray]
    norms: np.ndarray
    along: np.ndarray
    distance: dict[str, Estimate] = dataclasses.field(default_factory=dict)
    blocks: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


def measure_course(subject: Subject, data, images: int, device, progress=lambda n: None) -> Course:
    """Everything about one network but its distance, on the first `images` test images."""
    measured = stiffness.measure(subject, data, images, device, progress)
    few = prepare(subject.net, data, data.test_images[: min(images, SIMILAR)].to(device))
    grams = nb.state_grams(subject.net, few)
    norms = np.sqrt([np.diag(gram) for gram in grams.values()]).T
    return Course(measured, grams, norms, along_of(measured.records["slope"]))


def best(courses: list[Course], count: int = 1) -> list[Course]:
    """The networks with the highest test accuracy, the proxy first; of equal ones the first of the list."""
    return sorted(courses, key=lambda course: -course.measured.accuracy)[:count]


def set_distances(courses: list[Course], proxy: Course, chosen: np.ndarray) -> None:
    """All distances of every network but the proxy; `chosen` are the resamples of the images."""
    for one in courses:
        one.distance, one.blocks = {}, {}
        if one is proxy:
            continue
        record, other = (course.measured.records["slope"] for course in (one, proxy))
        for of_nsi in (NSI, SHAPE):
            apart = profile_distance(record, other, scaled=of_nsi == SHAPE)
            one.blocks[of_nsi] = apart.mean(0)
            one.distance[of_nsi] = bootstrap_mean(apart[:, ~record.first].mean(1), chosen)
        images = len(one.norms)
        everything = np.arange(images)[None]
        one.blocks[CKA] = dissimilarity(one, proxy, everything)[0]
        parts = dissimilarity(one, proxy, draw_halves(images, HALVES, seed=0))
        one.distance[CKA] = estimate(one.blocks[CKA].mean(), parts.mean(1))


@dataclasses.dataclass(frozen=True)
class FromProxy:
    """Distances of networks from one that stands in for a ground truth.

    name, controller  of that network
    distances         by measure and controller, one per network
    """

    name: str
    controller: str
    distances: dict[str, dict[str, list[float]]]

    def by(self, measures) -> "FromProxy":
        """By these measures alone."""
        return dataclasses.replace(self, distances={measure: self.distances[measure] for measure in measures})


def from_proxy(courses: list[Course], proxy: Course) -> FromProxy:
    """The distances from the proxy that `set_distances` has left, without their intervals over images."""
    others = [course for course in courses if course is not proxy]
    distances = {
        measure: by_controller(others, lambda course, m=measure: course.distance[m].value) for measure in MEASURES
    }
    return FromProxy(proxy.name, proxy.subject.name, distances)


def by_controller(courses, number: Callable) -> dict[str, list]:
    """What `number` says of every network, by its controller."""
    places_of = groups([course.subject for course in courses])
    return {name: [number(courses[index]) for index in indices] for name, indices in places_of.items()}


def dissimilarity(one: Course, proxy: Course, parts: np.ndarray) -> np.ndarray:
    """1 - CKA on each part of the images, behind every block, (parts, T)."""
    pairs = list(zip(one.grams.values(), proxy.grams.values(), strict=True))

    def compare(one, other, rows) -> float:
        among = np.ix_(rows, rows)
        return 1 - nb.cka(one[among], other[among], grams=True)

    return np.array([[compare(*pair, rows) for pair in pairs] for rows in parts])


PLAIN = "constant"
LARGEST, AS_MANY, EQUAL = "largest", "smallest, as many", "smallest, equal norm"
Lines = dict[str, list[np.ndarray]]  # one per network, by controller


def after(was: str, why: str) -> str:
    """When a rule was fixed that changed when the twenty-two ResNet-20 had been seen."""
    return f"after the data: with 22 ResNet-20 seen, {why}. By the rule before: {was}"


def over_seeds(of: Mapping[str, Sequence]) -> np.ndarray:
    """The mean over the seeds of each controller, (controllers, ...)."""
    return np.array([np.mean(each, axis=0) for each in of.values() if len(each)])


def both(first: Verdict, second: Verdict) -> Verdict:
    """What two tests say that both have to hold: their common verdict, or nothing."""
    return first if first == second else UNDECIDED.because("the two tests do not say the same")


CONTROLLERS = ("constant", *(f"controller {k}" for k in range(10)))
OF_SEEDS = 0.1  # deviation of distances over seeds, where plain networks have 1
SEEDS = 2  # of every controller, where controllers are the units


def by_kind(chance, means, spread: float) -> dict[str, list]:
    """Values of the seeds of kinds with these means."""
    return {
        str(kind): [mean + spread * chance.normal(size=np.shape(mean)) for _ in range(SEEDS)]
        for kind, mean in enumerate(means)
    }


def correlated(chance, effect, n) -> tuple[np.ndarray, np.ndarray]:
    second = chance.normal(size=n)
    return agreeing(chance, second, 0.5 * effect), second


@dataclasses.dataclass(eq=False)
class Evidence:
    """What the study shows.

    courses  of all networks, with their distances from the proxy
    proxy    the best network, which stands in for a ground truth
    nearer   distances from each network that stands in for one, the best first
    losses   what is lost without blocks and features
    ratios   from `first_ratios`, one per network
    draws    resamples of the images
    deep, deeper  how deep networks are called, and those of them whose step sizes vary
    """

    courses: list[Course]
    proxy: Course
    nearer: list[FromProxy]
    losses: "list[Importance]"
    ratios: list[dict[str, np.ndarray]]
    draws: np.ndarray
    deep: str = ""
    deeper: "Sequence[Along]" = ()


# ---- Section 2.3, Figures 1 and 10: closeness to the ground truth ----


def worlds_of_proxies(measures, chance: np.random.Generator, effect: float, n: int) -> tuple[list[FromProxy]]:
    """Distances of n seeds of every controller from three proxies; attention halves them, or does nothing."""
    means = {name: 1.0 - 0.5 * effect * (name != CONTROLLERS[0]) for name in CONTROLLERS}
    return (
        [
            FromProxy(name, name, {measure: draw_seeds(chance, means, OF_SEEDS, n) for measure in measures})
            for name in CONTROLLERS[-PROXIES:]
        ],
    )


def judge_nearer(proxies: Sequence[FromProxy]) -> tuple[Verdict, str]:
    """Distances from the best network, and from the next two in its place, minus those of networks with constant step
    sizes, by Dunnett over seeds. Supported under a measure and a proxy where every controller with attention is nearer,
    contradicted where every one is farther, true or false of some where only some are. The controller of the proxy is
    left out. The intervals hold together over controllers, measures and proxies. Cannot be asked where the proxy is a
    plain network; judged from two seeds of every controller on."""
    asked, said, words = sum(len(proxy.distances) for proxy in proxies), [], []
    for proxy in proxies:
        parts = []
        for measure, of in proxy.distances.items():
            values = {name: seeds for name, seeds in of.items() if name != proxy.controller}
            verdict, text = of_distances(values, proxy.controller, corrected(asked))
            floor = of.get(proxy.controller, ())
            other = f", other seeds of the proxy's controller {np.mean(floor):.3f}" if floor else ""
            parts.append(f"by {WORDS[measure]}: {verdict} (constant {mean_text(values.get(PLAIN, ()))}{other}{text})")
            said.append(verdict)
        words.append(f"Proxy {proxy.name}: {'; '.join(parts)}.")
    return joint(said), " ".join(words)


def of_distances(values: dict[str, list[float]], proxy: str, level: float) -> tuple[Verdict, str]:
    if proxy == PLAIN:
        return NOT_ASKABLE.because("the proxy is a plain network itself"), ""
    if PLAIN not in values or len(values) < 2:
        return NOT_RUN, ""
    few = enough(values, FEWEST_SEEDS)
    beyond = dunnett(PLAIN, values, level)
    signs = {name: of_interval(e, -1) for name, e in beyond.items()}
    listed = "".join(
        f"; {word} {', '.join(names)}"
        for word, kind in (("nearer", SUPPORTED), ("farther", CONTRADICTED))
        if (names := [name for name, sign in signs.items() if sign == kind])
    )
    return (UNDECIDED.because(few.removesuffix(". So far: ")) if few else of_each(beyond, sign=-1)), listed


def mean_text(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f}" if len(values) else "none"


def rule_of_nearness(claim: str, measures: Sequence[str], why: str) -> Rule:
    """Closeness to the proxy by some of the measures."""
    made = Worlds(
        functools.partial(worlds_of_proxies, measures),
        n=6,
        units="seeds",
        effect="attention halves the distance",
        now=2,
    )
    fixed = after("true of some, false of others", why)
    options = {"variant": " and ".join(measures), "fixed": fixed, "fewest": FEWEST_SEEDS, "worlds": made}
    return rule(claim, "Section 2.3, Figure 1", **options)(judge_nearer)


NEARER = rule_of_nearness(
    "Networks with attention are closer to the ground truth trajectory, whatever the size of their branches.",
    LEFT,
    "seeds became the units, where intervals over images and the order of two seeds had been, and the distance of NSI "
    "was freed of the scale of the branches",
)
NEARER_AS_IT_IS = rule_of_nearness(
    "Networks with attention are closer to the ground truth trajectory by NSI as it is.",
    (NSI,),
    "seeds became the units; most of this distance is the scale of the branches, which a gate below 1 lets grow",
)


def worlds_of_lines(chance, effect, n):
    """Distances at n blocks, whose differences of 30 % all networks share; the last is fourfold, or as the first."""

    def network(common):
        return np.exp(common + 0.15 * chance.normal(size=n))

    made = {}
    for measure in LEFT:
        common = effect * np.log(4.0) * np.linspace(0.0, 1.0, n) + 0.3 * chance.normal(size=n)
        made[measure] = {name: [network(common) for _ in range(SEEDS)] for name in CONTROLLERS}
    return (made,)


@rule(
    "A deviation from the ground truth accumulates along the trajectory.",
    "Section 2.3",
    fixed=after(
        "supported by CKA and undecided by NSI",
        "a line of distances that all networks share became one observation, where each network had been one",
    ),
    worlds=Worlds(
        worlds_of_lines,
        n=27,
        units="blocks",
        effect="a fourfold distance at the last block, blocks scattering by 30 %",
        now=9,
    ),
)
def judge_accumulation(lines: Mapping[str, Lines]) -> tuple[Verdict, str]:
    """The distance from the proxy at each block, by the shape of NSI and by CKA. Networks of one depth share their
    stages, so two things are asked: whether the mean over networks rises with depth (Kendall and Spearman
    over blocks, by intervals and p-values), and whether the correlation within networks, averaged over the seeds of
    each controller, lies above 0 (Student over controllers). Supported where both say so, contradicted where both say
    the opposite. The intervals hold together over the two measures."""
    level, said, words = corrected(len(lines)), [], []
    for measure, of in lines.items():
        every = [line for each in of.values() for line in each]
        if not every:
            return NOT_RUN, "n = 0 networks beside the proxy."
        depth = np.arange(len(every[0]))
        along = correlation_of_few(depth, np.mean(every, axis=0), level)
        within = {name: [correlation_of_few(depth, line).kendall.value for line in each] for name, each in of.items()}
        over = mean_with_interval([np.mean(each) for each in within.values() if each], level)
        verdict = both(of_correlation(along), of_interval(over))
        rising = sum(tau > 0 for each in within.values() for tau in each)
        said.append(verdict)
        words.append(
            f"by {WORDS[measure]}: {verdict}; it rises in {rising} of {len(every)} networks, mean tau over controllers "
            f"{interval_text(over, '+.2f')}, tau of the mean over {along.n} blocks "
            f"{interval_text(along.kendall, '+.2f')} (p {chance_text(along.kendall_p)})"
        )
    return joint(said), f"The distance from the proxy, block by block: {'; '.join(words)}."


def worlds_of_nearness(chance, effect, n):
    """Nearness and accuracy of n controllers, whose means have a tau of 0.5, or of 0; seeds scatter a third as far."""
    near, skill = correlated(chance, effect, n)
    distances = {measure: by_kind(chance, -near + 0.2 * chance.normal(size=n), 0.3) for measure in LEFT}
    return distances, by_kind(chance, skill, 0.3)


@rule(
    "The closer to the ground truth trajectory, the better the network.",
    "Section 2.3",
    fixed=after("undecided", "controllers became the units, where networks had been"),
    worlds=Worlds(
        worlds_of_nearness, n=30, units="controllers", effect="Kendall's tau of 0.5 over controllers", now=11
    ),
)
def judge_better(distances: Mapping[str, dict[str, list[float]]], accuracies: dict[str, list[float]]):
    """Rank correlations of nearness and accuracy over controllers, the means over their seeds without the proxy, by the
    shape of NSI and by CKA. Supported where Kendall's tau and Spearman's rho lie above 0 by their intervals and
    p-values, contradicted where below, and nothing where leaving out any one controller would change it. The intervals
    hold together over the two measures."""
    related = {
        measure: relate_kinds(
            {name: [-value for value in values] for name, values in of.items()}, accuracies, corrected(len(distances))
        )
        for measure, of in distances.items()
    }
    if not any(relation.names for relation in related.values()):
        return NOT_RUN, "n = 0 networks beside the proxy."
    verdicts = {measure: of_kinds(relation) for measure, relation in related.items()}
    words = "; ".join(
        f"by {WORDS[measure]} Kendall's tau {interval_text(relation.whole.kendall, '+.2f')} ({verdicts[measure]})"
        for measure, relation in related.items()
    )
    return joint(verdicts), f"Accuracy and nearness over {next(iter(related.values())).whole.n} controllers: {words}."


def judge_closeness(evidence: Evidence) -> list[Finding]:
    """Two findings about attention, one about depth, one about accuracy."""
    others = [course for course in evidence.courses if course is not evidence.proxy]
    blocks, distances = (
        {m: by_controller(others, lambda course, m=m, of=of: of(course)[m]) for m in LEFT}
        for of in (lambda course: course.blocks, lambda course: {m: e.value for m, e in course.distance.items()})
    )
    return [
        NEARER([proxy.by(LEFT) for proxy in evidence.nearer]),
        NEARER_AS_IT_IS([proxy.by((NSI,)) for proxy in evidence.nearer]),
        judge_accumulation(blocks),
        judge_better(distances, by_controller(others, lambda course: course.measured.accuracy)),
    ]


def show_distances(page: Page, evidence: Evidence):
    courses, proxy = evidence.courses, evidence.proxy
    page.figure(
        draw_courses(courses, proxy, "slope"),
        "courses",
        "NSI along depth, mean over images, of the proxy and of all other networks. Hollow: the first block of a "
        "stage, not counted. The vertical axis is logarithmic, as distances between indices are.",
    )
    page.figure(
        draw_distances(courses, proxy),
        "distances",
        f"How far every network is from the proxy, block by block. CKA is of the states behind the blocks, on "
        f"{len(proxy.norms)} images. Above the black line a distance exceeds that of another seed.",
    )
    page.figure(
        draw_nearness(courses, proxy),
        "nearness",
        "Accuracy against the distance from the proxy, whose accuracy is the dashed line. Bars: 95 % intervals over "
        "images.",
    )
    page.table(
        "distances",
        rows_of_distances(courses, proxy),
        "Distances from the proxy with 95 % intervals over images",
        "NSI, and shape (NSI over its scale): mean over the counted blocks; CKA: over all. The floor is the distance "
        "of the proxy's other seeds. tau: Kendall's correlation with depth within the network.",
    )


def draw_courses(courses, proxy, of: str):
    """Figure 1 with what stands for a ground truth: NSI along depth, the proxy in black over all the others."""
    from matplotlib.ticker import LogLocator

    with style.figure(height=3.2) as (drawing, axes):
        axis = axes[0, 0]
        record = proxy.measured.records[of]
        for kind, colour, width in (
            ("with attention", style.COLOURS[0], 0.7),
            ("constant", style.COLOURS[1], 0.9),
            ("the proxy's other seeds", style.GREY, 1.4),
            ("the proxy", "#000000", 1.8),
        ):
            label: str | None = kind
            for course in courses:
                if kind_of(course, proxy) == kind:
                    values = course.measured.records[of].nsi.mean(0)
                    mark = "o" if course is proxy else None
                    draw_trajectory(axis, record, values, color=colour, linewidth=width, label=label, marker=mark)
                    label = None
        mark_stages(axis, record)
        axis.set(xlabel="block", ylabel=f"NSI = {SYMBOL[of]}")
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_title(f"proxy: {proxy.name}, {proxy.measured.accuracy:.2f} %", loc="left")
        drawing.legend(loc="outside lower center", ncols=4)
    return drawing


def kind_of(course, proxy) -> str:
    if course is proxy:
        return "the proxy"
    if course.subject.name == proxy.subject.name:
        return "the proxy's other seeds"
    return "constant" if course.subject.controller == "constant" else "with attention"


def draw_distances(courses, proxy):
    """How far every network is from the proxy, block by block."""
    colours = {"with attention": style.COLOURS[0], "constant": style.COLOURS[1], "the proxy's other seeds": "#000000"}
    record = proxy.measured.records["slope"]
    with style.figure(1, len(MEASURES), height=2.9) as (drawing, axes):
        for axis, measure in zip(axes[0], MEASURES, strict=True):
            labelled = set()
            for course in sorted(
                (course for course in courses if course is not proxy),
                key=lambda course: list(colours).index(kind_of(course, proxy)),
            ):
                kind = kind_of(course, proxy)
                label = None if kind in labelled or axis is not axes[0, 0] else kind
                labelled.add(kind)
                width = 0.7 if kind == "with attention" else 1.5
                draw_trajectory(axis, record, course.blocks[measure], color=colours[kind], linewidth=width, label=label)
            mark_stages(axis, record)
            axis.set_xlabel("block")
            axis.set_ylim(bottom=0)
            axis.set_title(in_lines(measure), loc="left")
        drawing.legend(loc="outside lower center", ncols=3)
    return drawing


def in_lines(measure: str) -> str:
    """What a measure is, in lines that a small panel holds."""
    return "\n".join(textwrap.wrap(WORDS[measure], 24))


def draw_nearness(courses, proxy):
    """Accuracy against the distance from the proxy."""
    others = [course for course in courses if course is not proxy]
    seen = looks([course.subject for course in courses])
    with style.figure(1, len(MEASURES), height=3.6, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], MEASURES, strict=True):
            for name, indices in groups([course.subject for course in others]).items():
                colour, mark = seen[name]
                estimates = [others[index].distance[measure] for index in indices]
                axis.errorbar(
                    [e.value for e in estimates],
                    [others[index].measured.accuracy for index in indices],
                    xerr=reach_of(estimates),
                    fmt=mark,
                    color=colour,
                    markersize=4.5,
                    elinewidth=0.6,
                    label=name,
                )
            axis.axhline(proxy.measured.accuracy, color=style.GREY, linewidth=0.8, linestyle="--")
            axis.set_xlabel(in_lines(measure))
            axis.locator_params(axis="x", nbins=5)
        axes[0, 0].set_ylabel("test accuracy (%)")
        legend_below(drawing, axes[0, 0], 5)
    return drawing


ABOUT_A_DISTANCE = (" distance", ", above the floor", ", tau")


def rows_of_distances(courses, proxy) -> Iterator[dict]:
    """Every network, the best first: accuracy, distances from the proxy, and whether they grow with depth.

    What is above the floor is the distance without that of the proxy's other seeds, where there are any.
    """
    seeds = [course for course in courses if course is not proxy and course.subject.name == proxy.subject.name]
    floor = {measure: np.mean([course.distance[measure].value for course in seeds]) for measure in MEASURES if seeds}
    for course in sorted(courses, key=lambda course: -course.measured.accuracy):
        row = {"network": course.name, "accuracy (%)": f"{course.measured.accuracy:.2f}"}
        if course is proxy:
            row |= dict.fromkeys((f"{measure}{what}" for measure in MEASURES for what in ABOUT_A_DISTANCE), "")
            row[f"{MEASURES[0]}{ABOUT_A_DISTANCE[0]}"] = "the proxy"
            yield row
            continue
        for measure in MEASURES:
            e = course.distance[measure]
            above = f"{e.value - floor[measure]:+.3f}" if floor else ""
            cells = interval_text(e), above, f"{with_depth(course.blocks[measure]):+.2f}"
            row |= {f"{measure}{what}": cell for what, cell in zip(ABOUT_A_DISTANCE, cells, strict=True)}
        yield row


def with_depth(line: np.ndarray) -> float:
    """Kendall's correlation of a distance with depth."""
    return rank_correlation(np.arange(len(line)), line, stats.kendalltau)[0]


# ---- Section 3.1: which blocks and features matter ----
REMOVED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "largest": lambda slope: without_largest(slope, SHARE),
    "smallest, as many": lambda slope: without_smallest(slope, SHARE),
    "smallest, equal norm": lambda slope: without_smallest(slope, SHARE, equal_norm=True),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Importance:
    """What one network loses without a block or a part of its slope; the rise of the loss is given per image.

    course    the network
    rise      the rise of the loss without each block, (N, T)
    accuracy  the accuracy without each block, in per cent, (T,)
    features  the rise of the loss without some elements of each counted block's slope, {which: (images, counted)}
    """

    course: Course
    rise: np.ndarray
    accuracy: np.ndarray
    features: dict[str, np.ndarray]


def measure_importance(one: Course, data, images: int, device, progress=lambda: None) -> Importance:
    """Drop every block of a network in turn, then remove features of the counted ones; `progress` after each block."""
    net = one.subject.net.to(device).eval()
    labels = data.test_labels[:images]
    shown = data.test_images[:images]
    whole = losses_on(net, data, shown, labels, device)[0]
    rises, right = [], []
    for block in range(len(net.blocks)):
        with nb.altered(net, block):
            loss, correct = losses_on(net, data, shown, labels, device)
        rises.append(loss - whole)
        right.append(100 * correct.mean())
        progress()
    few = min(images, FEATURED)
    features: dict[str, list] = {name: [] for name in REMOVED}
    for block in np.flatnonzero(~one.measured.records["slope"].first).tolist():
        for name, change in REMOVED.items():
            with nb.altered(net, block, change):
                loss, _ = losses_on(net, data, shown[:few], labels[:few], device)
            features[name].append(loss - whole[:few])
        progress()
    net.cpu()
    return Importance(one, np.array(rises).T, np.array(right), {k: np.array(v).T for k, v in features.items()})


@torch.no_grad()
def losses_on(net, data, images, labels, device) -> tuple[np.ndarray, np.ndarray]:
    """Cross-entropy of every image, and whether it is classified correctly."""
    parts = [net(prepare(net, data, part.to(device))).double().cpu() for part in images.split(BATCH)]
    logits = torch.cat(parts)
    return F.cross_entropy(logits, labels, reduction="none").numpy(), (logits.argmax(1) == labels).numpy()


def importance_of(losses, course):
    """What was lost without the blocks of one network."""
    return next(loss for loss in losses if loss.course is course)


def profile_of(losses, course) -> tuple[np.ndarray, np.ndarray]:
    """NSI of the counted blocks of a network, and the rise of the loss without each; means over images."""
    record, loss = course.measured.records["slope"], importance_of(losses, course)
    return record.nsi.mean(0)[~record.first], loss.rise.mean(0)[~record.first]


def image_correlations(losses) -> Signs:
    """The signs of the correlations of NSI and rise over images, one per network and counted block."""
    return signs_beyond_chance(
        (record.nsi[:, k], loss.rise[:, k])
        for loss in losses
        for record in [loss.course.measured.records["slope"]]
        for k in np.flatnonzero(~record.first)
    )


def block_correlation(loss) -> float:
    """Spearman's correlation of mean NSI and mean rise of the loss, over the counted blocks of one network."""
    return rank_correlation(*profile_of([loss], loss.course), stats.spearmanr)[0]


def worlds_of_profiles(chance, effect, n):
    """NSI and importance of n blocks, much of which all networks share; the two have a tau of 0.5, or of 0."""
    nsi, rise = correlated(chance, effect, n)

    def network():
        return nsi + 0.3 * chance.normal(size=n), rise + 0.3 * chance.normal(size=n)

    return ({name: [network() for _ in range(SEEDS)] for name in ("constant", "SE", "StepNet")},)


@rule(
    "The stiff blocks are the important ones.",
    "Section 3.1",
    fixed=after(
        "undecided", "a profile that all networks share became one observation, where each network had been one"
    ),
    worlds=Worlds(
        worlds_of_profiles,
        n=24,
        units="counted blocks",
        effect="Kendall's tau of 0.5 over the blocks of every network",
        now=6,
    ),
)
def judge_importance(profiles: Mapping[str, list[tuple]], over_images: Signs | None = None) -> tuple[Verdict, str]:
    """NSI of the counted blocks and the rise of the loss without each, means over images. Two things are asked: whether
    the means over networks correlate over blocks (Kendall and Spearman, by intervals and p-values), and whether the
    correlations within networks, averaged over the seeds of each controller, lie above 0 (Student over controllers).
    Supported where both say so, contradicted where both say the opposite."""
    every = [pair for each in profiles.values() for pair in each]
    if not every:
        return NOT_RUN, "n = 0 networks."
    nsi, rise = (np.mean([pair[k] for pair in every], axis=0) for k in (0, 1))
    along = correlation_of_few(nsi, rise)
    within = [
        np.mean([correlation_of_few(*pair).spearman.value for pair in each]) for each in profiles.values() if each
    ]
    over = mean_with_interval(within)
    words = (
        f"Spearman's correlation of NSI and rise of the loss over the counted blocks: mean over {len(within)} "
        f"controllers {interval_text(over, '+.2f')}; of the means over networks, {along.n} blocks, "
        f"{interval_text(along.spearman, '+.2f')}."
    )
    if over_images is not None:
        words += (
            f" Over images at one block, {over_images.positive} of {len(over_images.values)} correlations are positive "
            f"and {over_images.negative} negative beyond chance (Bonferroni)."
        )
    return both(of_correlation(along), of_interval(over)), words


def worlds_of_features(chance, effect, n):
    """Rises of the loss of n controllers, whose ratio is 2, or 1."""
    of = by_kind(chance, effect * np.log(2.0) + 0.4 * chance.normal(size=n), 0.3)
    plain = {"smallest, as many": 0.0, "smallest, equal norm": 0.1}
    return ({name: [plain | {"largest": 0.1 * float(np.exp(one))} for one in each] for name, each in of.items()},)


@rule(
    "Large features contribute most to the performance.",
    "Section 3.1",
    fixed=after(
        "true of some, false of others",
        "one number for each network replaced intervals over images for each of its blocks, 36 of them at 95 % each",
    ),
    worlds=Worlds(worlds_of_features, n=11, units="controllers", effect="twice the rise of the loss", now=3),
)
def judge_features(rises: Mapping[str, list[dict[str, float]]]) -> tuple[Verdict, str]:
    """How much the loss rises without the 10 % largest elements of a counted block's slope, beside so many of the
    smallest as have the same norm: the difference of the two divided by their sum, each the mean over images and
    blocks, and then over the seeds of each controller. Supported where Student's interval over controllers lies above
    0, contradicted where below."""
    contrasts = [
        np.mean([contrast(network[LARGEST], network[EQUAL]) for network in each]) for each in rises.values() if each
    ]
    if not contrasts:
        return NOT_RUN, "n = 0 networks."
    e = mean_with_interval(contrasts)
    every = [network for each in rises.values() for network in each]
    means = {which: np.mean([network[which] for network in every]) for which in (LARGEST, AS_MANY, EQUAL)}
    return of_interval(e), (
        f"Without the largest elements of a slope the loss rises by {means[LARGEST]:.3f} on average, without as many "
        f"of the smallest by {means[AS_MANY]:.3f}, without so many of the smallest as have the same norm by "
        f"{means[EQUAL]:.3f}. The difference of largest and smallest at equal norm over their sum is "
        f"{interval_text(e, '+.2f')}, mean over {len(contrasts)} controllers."
    )


def contrast(one: float, other: float) -> float:
    """The difference of two numbers over the sum of their magnitudes: 1/3 where one is twice the other."""
    whole = abs(one) + abs(other)
    return (one - other) / whole if whole else 0.0


def judge_blocks_and_features(evidence: Evidence) -> list[Finding]:
    losses = evidence.losses
    courses = [loss.course for loss in losses]

    def rises(course) -> dict[str, float]:
        return {which: float(x.mean()) for which, x in importance_of(losses, course).features.items()}

    profiles = by_controller(courses, lambda course: profile_of(losses, course))
    return [judge_importance(profiles, image_correlations(losses)), judge_features(by_controller(courses, rises))]


def show_importance(page: Page, evidence: Evidence):
    losses = evidence.losses
    page.figure(
        draw_importance(losses),
        "importance",
        "The rise of the loss when a block is dropped, against the block's mean NSI. One mark per block with its "
        "number, a colour per stage; hollow: the first block of a stage. The vertical axis is linear below 0.1 "
        "and logarithmic above.",
    )
    page.table("importance", rows_of_importance(losses), "What is lost without each block", printed=False)
    page.table(
        "importance_correlations",
        rows_of_correlations(losses),
        "Spearman's correlation of a block's NSI and the rise of the loss without it",
    )
    page.figure(
        draw_features(losses),
        "features",
        f"The rise of the loss without some elements of a counted block's slope, on "
        f"{len(losses[0].features['largest'])} images: the {100 * SHARE:g} % with the largest magnitude, so "
        "many of the smallest as have the same norm, and as many of the smallest. Bars: mean over networks, the dots.",
    )
    page.table("features", rows_of_features(losses), "Rise of the loss without features", printed=False, told=False)


def draw_importance(losses):
    """The rise of the loss without a block against its NSI, one panel per network."""
    with panels(len(losses), in_a_row(len(losses)), height=2.0, sharex=True, sharey=True) as (drawing, axes):
        for axis, loss in zip(use_axes(axes, len(losses)), losses, strict=True):
            record = loss.course.measured.records["slope"]
            nsi, rise = record.nsi.mean(0), loss.rise.mean(0)
            for stage in np.unique(record.stage):
                colour = style.COLOURS[int(stage) % len(style.COLOURS)]
                at = record.stage == stage
                axis.plot(nsi[at & ~record.first], rise[at & ~record.first], "o", color=colour, markersize=4.5)
                axis.plot(
                    nsi[at & record.first],
                    rise[at & record.first],
                    "o",
                    color=colour,
                    markersize=4.5,
                    markerfacecolor="white",
                )
            for k in range(len(nsi)):
                axis.annotate(str(k + 1), (nsi[k], rise[k]), (3, 3), textcoords="offset points", fontsize=6)
            axis.set_title(loss.course.name, loc="left")
            axis.set_yscale("symlog", linthresh=0.1)
        label_panels(axes, len(losses), "NSI", "loss rises by")
    return drawing


def draw_features(losses):
    """Mean rise of the loss without the largest or the smallest elements of each counted block's slope."""
    record = losses[0].course.measured.records["slope"]
    blocks = np.flatnonzero(~record.first)
    with style.figure(height=2.6) as (drawing, axes):
        axis = axes[0, 0]
        for index, which in enumerate((LARGEST, EQUAL, AS_MANY)):
            rises = np.array([loss.features[which].mean(0) for loss in losses])
            at = np.arange(len(blocks)) + 0.27 * (index - 1)
            axis.bar(at, rises.mean(0), 0.25, color=style.COLOURS[index], label=f"without the {which}")
            axis.plot(np.broadcast_to(at, rises.shape).T, rises.T, ".", color="#000000", markersize=2.5)
        axis.axhline(0, color=style.GREY, linewidth=0.6)
        axis.set_xticks(range(len(blocks)), [str(block + 1) for block in blocks])
        axis.set(xlabel="block", ylabel="loss rises by")
        drawing.legend(loc="outside lower center", ncols=3)
    return drawing


def rows_of_importance(losses) -> Iterator[dict]:
    """What every network loses without each of its blocks."""
    for loss in losses:
        record = loss.course.measured.records["slope"]
        for k, name in enumerate(record.names):
            yield {
                "network": loss.course.name,
                "block": name,
                "counted": "no" if record.first[k] else "yes",
                "NSI": f"{record.nsi[:, k].mean():.3f}",
                "loss rises by": f"{loss.rise[:, k].mean():.3f}",
                "accuracy without (%)": f"{loss.accuracy[k]:.1f}",
                "rank correlation over images": signed_cell(
                    rank_correlation(record.nsi[:, k], loss.rise[:, k], stats.spearmanr)[0]
                ),
            }


def rows_of_correlations(losses) -> Iterator[dict]:
    """One correlation of NSI and importance per network."""
    for loss in losses:
        everything = rank_correlation(
            loss.course.measured.records["slope"].nsi.mean(0), loss.rise.mean(0), stats.spearmanr
        )[0]
        yield {
            "network": loss.course.name,
            "accuracy (%)": f"{loss.course.measured.accuracy:.2f}",
            "over the counted blocks": signed_cell(block_correlation(loss)),
            "over all blocks": signed_cell(everything),
        }


def rows_of_features(losses) -> Iterator[dict]:
    """The rise of the loss without large or small elements, per network and counted block."""
    for loss in losses:
        record = loss.course.measured.records["slope"]
        for index, block in enumerate(np.flatnonzero(~record.first)):
            yield {"network": loss.course.name, "block": record.names[block]} | {
                f"without the {which}": f"{rises[:, index].mean():.4f}" for which, rises in loss.features.items()
            }


# ---- Figure 9b: step size and stiffness along a trajectory ----


@dataclasses.dataclass(eq=False)
class Along:
    """One network and what `along_of` says of each image."""

    subject: Subject
    along: np.ndarray


def along_of(record: nb.Record) -> np.ndarray:
    """Spearman's correlation of step size and NSI along the counted blocks of each image (Figure 9b as worded).

    Within each stage, averaged over the stages, where a stage counts blocks enough, because the indices of stages
    differ by their width; otherwise over the counted blocks of all stages. Empty where no image's step sizes vary.
    """
    counted = record.counted()
    stages = [counted.stage == stage for stage in np.unique(counted.stage)]
    if min(map(np.count_nonzero, stages)) < FEWEST_BLOCKS:
        stages = [np.ones(len(counted.names), dtype=bool)]
    sizes = step_sizes_of(counted)
    along = np.mean([correlate_rows(sizes[:, here], counted.nsi[:, here]) for here in stages], axis=0)
    return along if np.isfinite(along).all() else np.empty(0)


def worlds_of_along(chance, effect, n):
    """Mean correlations of n seeds of three controllers around -0.2, or around 0, and eight blocks a stage."""
    return draw_seeds(chance, dict.fromkeys(("SE", "ECA", "StepNet"), -0.2 * effect), 0.1, n), 8


@rule(
    "Along a trajectory a larger NSI goes with a smaller step size.",
    "Figure 9b, as worded",
    fixed=(
        "after the data: with one ResNet-56 each of SE and StepNet seen, seeds became the units, where images had "
        "been. By the rule before: contradicted"
    ),
    fewest=FEWEST_DEEP,
    worlds=Worlds(
        worlds_of_along, n=4, units="seeds", effect="a mean correlation of -0.2, as SE has with the digits", now=1
    ),
)
def judge_along(means: Mapping[str, list[float]], blocks: int, which: str = "", negative: float = np.nan):
    """Spearman's correlation of step size and NSI along the counted blocks of a stage, averaged over the stages, then
    over images: a number for each network. By controller Student's interval over seeds, all controllers together.
    Supported where every controller lies below 0, contradicted where every one lies above, true or false of some where
    only some do. Judged from three seeds of every controller on; cannot be asked where a stage counts fewer than five
    blocks."""
    several = {name: values for name, values in means.items() if values}
    if not several:
        return NOT_RUN, "n = 0 networks whose step sizes change from image to image."
    estimates = {name: mean_with_interval(values, corrected(len(several))) for name, values in several.items()}
    few = enough(several, FEWEST_DEEP)
    share = f"; {100 * negative:.0f} % of all correlations are negative" if np.isfinite(negative) else ""
    words = f"{few}{which}Mean correlation by controller: {listing(estimates)}{share}. A stage counts {blocks} blocks"
    if blocks < FEWEST_BLOCKS:
        reason = f"a stage counts {blocks} blocks, and {FEWEST_BLOCKS} are the least"
        return NOT_ASKABLE.because(reason), f"{words}; all stages are pooled, whose indices differ by their width."
    verdict = UNDECIDED.because("too few seeds") if few else of_each(estimates, sign=-1)
    return verdict, f"{words}; correlations are within stages, averaged over them."


def deep_along(deep: networks.Deep, arguments) -> list[Along]:
    """Figure 9b of deep networks: those whose step sizes vary."""
    images = min(arguments.images, len(deep.data.test_images))
    networks = []
    for subject in deep.subjects:
        measured = stiffness.measure(subject, deep.data, images, arguments.device)
        subject.net.cpu()
        networks.append(Along(subject, along_of(measured.records["slope"])))
    return [subject for subject in networks if len(subject.along)]


def finding_along(moving: Sequence, which: str = ""):
    """Figure 9b as worded, of networks whose step sizes vary; `which` says of which, where others are on the page."""
    means = by_controller(moving, lambda network: float(network.along.mean()))
    blocks = min((min(network.subject.net.config["blocks"]) for network in moving), default=0) - 1
    negative = float(np.mean([np.mean(network.along < 0) for network in moving])) if moving else np.nan
    return judge_along(means, blocks, which=which, negative=negative)


def judge_figure_9b(evidence: Evidence) -> list[Finding]:
    """Of the deep networks where there are such, else of those that are shown."""
    if evidence.deeper:
        return [finding_along(evidence.deeper, f"On {evidence.deep}. ")]
    return [finding_along([course for course in evidence.courses if len(course.along)])]


def show_along(page: Page, evidence: Evidence):
    courses, deep, deeper = evidence.courses, evidence.deep, evidence.deeper
    if deeper:
        page.figure(
            draw_along(deeper),
            "deep_gate_along",
            f"{deep}: Spearman's correlation of step size and NSI along the counted blocks of a stage, averaged over "
            "the stages, for single images; a histogram over images, a line per seed.",
        )
    if not any(len(course.along) for course in courses):
        page.words("No network here has a step size that changes from image to image: nothing to correlate.")
        return
    page.figure(
        draw_along(courses),
        "gate_along",
        "Spearman's correlation of step size and NSI along the counted blocks of single images, a histogram over "
        "images. A line per seed; the stages are pooled.",
    )


BINS = np.linspace(-1, 1, 21)


def draw_along(courses):
    """Figure 9b as worded: histograms over images of the correlation along each one's blocks."""
    moving = [course for course in courses if len(course.along)]
    names = groups([course.subject for course in moving])
    seen = looks([course.subject for course in courses])
    with panels(len(names), in_a_row(len(names)), height=1.7, sharex=True, sharey=True) as (drawing, axes):
        for axis, (name, indices) in zip(use_axes(axes, len(names)), names.items(), strict=True):
            for line, index in enumerate(indices):
                values = moving[index].along
                shares = np.full(len(values), 100 / len(values))
                style_of = "-" if line == 0 else "--"
                axis.hist(values, BINS, weights=shares, histtype="step", color=seen[name][0], linestyle=style_of)
            axis.axvline(0, color=style.GREY, linewidth=0.6)
            axis.set_title(name, loc="left")
        label_panels(axes, len(names), "rank correlation", "images (%)")
    return drawing


# ---- Property (1): for most inputs the trajectory is stiff somewhere ----


def shares_of(course, reading, shuffle: np.random.Generator | None = None) -> np.ndarray:
    """The share of images with a counted block so far above the mean of its stage, (degrees,).

    shuffle  exchanges all values of a stage, over images and counted blocks
    """
    of, mu = reading
    record = course.measured.records[of].counted()
    nsi = np.array(record.nsi, dtype=float)
    if shuffle is not None:
        for stage in np.unique(record.stage):
            here = record.stage == stage
            nsi[:, here] = shuffle.permutation(nsi[:, here].ravel()).reshape(nsi[:, here].shape)
    return np.array([float(ol.delta(nsi, record.stage, degree, 0.0, mu)) for degree in DEGREES])


def worlds_of_shares(chance, effect, n):
    """Shares of n controllers, around 50 % in either order, or around 80 %, and around 40 % in random order."""

    def made(mean):
        middles = mean + 0.1 * chance.normal(size=(n, len(DEGREES)))
        return {
            reading: by_kind(chance, middles + 0.03 * chance.normal(size=middles.shape), 0.05) for reading in READINGS
        }

    return made(0.5 + 0.3 * effect), made(0.5 - 0.1 * effect)


@rule(
    "For most inputs the trajectory is stiff somewhere.",
    "property (1), Section 3.1",
    fixed=after(
        "true of some, false of others",
        "the shares got intervals over controllers, and the same NSI in random order became the measure of what is "
        "said of inputs",
    ),
    worlds=Worlds(
        worlds_of_shares, n=11, units="controllers", effect="80 % of the images, and 40 % where NSI is in random order"
    ),
)
def judge_property(shares: Mapping[tuple, Lines], shuffled: Mapping[tuple, Lines]) -> tuple[Verdict, str]:
    """The share of images with a counted block whose NSI is at least 1 + M1 times the mean of its stage, for M1 of 0.1,
    0.25 and 0.5, minus one half: Student over controllers, the intervals holding together over degrees and readings.
    At a degree: contradicted where the share is below one half, supported where it is above one half and above the
    share of the same NSI in random order (all values of a stage, over images and counted blocks, exchanged). Where it
    is above one half in random order, too, the claim is true of any such numbers and cannot be asked. Over degrees:
    true or false of some where only some are decided."""
    asked = len(shares) * len(DEGREES)
    verdicts, words = {}, []
    for reading, of in shares.items():
        if not any(of.values()):
            return NOT_RUN, "n = 0 networks."
        means, random = (over_seeds(of_controller) for of_controller in (of, shuffled[reading]))
        cases = [of_share(means[:, k], random[:, k], corrected(asked)) for k in range(means.shape[1])]
        verdicts[reading] = of_cases(cases)
        parts = ", ".join(
            f"{100 * mean:.0f} % ({100 * by_chance:.0f} % in random order; {case.kind})"
            for mean, by_chance, case in zip(means.mean(0), random.mean(0), cases, strict=True)
        )
        words.append(f"{wording(*reading)}: {parts}")
    degrees = ", ".join(f"{100 * degree:g} %" for degree in DEGREES)
    return joint(verdicts), (
        f"Share of images with a counted block at least {degrees} above the mean of its stage, mean over controllers: "
        f"{'; '.join(words)}. Of a stage's counted blocks one is never below their mean."
    )


def of_share(share: np.ndarray, random: np.ndarray, level: float) -> Verdict:
    """One degree of property (1), from a share per controller and the same of numbers in random order."""
    verdict = of_interval(mean_with_interval(share - 0.5, level))
    if verdict == SUPPORTED and of_interval(mean_with_interval(share - random, level)) != SUPPORTED:
        return NOT_ASKABLE.because("true of the same numbers in random order, too")
    return verdict


def judge_property_1(evidence: Evidence) -> list[Finding]:
    generator = np.random.default_rng(0)
    measured, shuffled = (
        {r: by_controller(evidence.courses, lambda course, r=r, of=of: shares_of(course, r, of)) for r in READINGS}
        for of in (None, generator)
    )
    return [judge_property(measured, shuffled)]


def show_property(page: Page, evidence: Evidence):
    page.table(
        "property1",
        rows_of_property(evidence.courses),
        "Share of images with a counted block at least (1 + M1) times as stiff as the mean of its stage",
        printed=False,
    )


def rows_of_property(courses) -> Iterator[dict]:
    """Property (1): the share of images that are stiff somewhere, per network and reading."""
    for course in courses:
        for of, mu in READINGS:
            record = course.measured.records[of]
            yield {"network": course.name, "reading": wording(of, mu)} | {
                f"M1 = {degree:g} (%)": f"{100 * float(record.delta(degree, 0.0, mu)):.1f}" for degree in DEGREES
            }


# ---- Section 2.2: the first block of a stage ----


def first_ratios(course: Course) -> dict[str, np.ndarray]:
    """NSI and norm of a stage's first block over the median of its others, per image, (N, stages)."""
    record = course.measured.records["slope"]
    by_quantity = {}
    for name, values in (("NSI", record.nsi), ("norm", course.norms)):
        ratios = [
            values[:, (record.stage == stage) & record.first][:, 0]
            / np.median(values[:, (record.stage == stage) & ~record.first], axis=1)
            for stage in np.unique(record.stage)
        ]
        by_quantity[name] = np.array(ratios).T
    return by_quantity


def worlds_of_ratios(chance, effect, n):
    """First blocks of three stages over the others, of n controllers: twice as large, or four times."""
    made = {}
    for what in ("NSI", "norm"):
        of = by_kind(chance, np.log(LARGE) * (1.0 + effect) + 0.2 * chance.normal(size=(n, 3)), 0.1)
        made[what] = {name: [np.exp(one) for one in each] for name, each in of.items()}
    return (made,)


@rule(
    "In the first block of a stage the norm is extremely large.",
    "Section 2.2",
    fixed=after("contradicted", "controllers became the units, where images had been"),
    worlds=Worlds(
        worlds_of_ratios, n=11, units="controllers", effect="four times the others, where twofold counts as large"
    ),
)
def judge_first(ratios: Mapping[str, Lines]) -> tuple[Verdict, str]:
    """A stage's first block over the median of its others, of NSI and of the state's norm, the mean over images: is its
    logarithm above that of 2? Student over controllers, all stages and both quantities together. Supported where it is
    in every stage, contradicted where it is below in every one, true or false of some where only some are decided."""
    verdicts, words = {}, []
    for what, of in ratios.items():
        if not any(of.values()):
            return NOT_RUN, "n = 0 networks."
        means = np.log(over_seeds(of))
        level = corrected(len(ratios) * means.shape[1])
        stages = {str(k): mean_with_interval(column, level).less(np.log(LARGE)) for k, column in enumerate(means.T)}
        verdicts[what] = of_each(stages)
        every = np.array([line for each in of.values() for line in each])
        words.append(
            f"{what} {every.min():.2f} to {every.max():.2f} times the others in {every.size} stages of networks "
            f"({verdicts[what]})"
        )
    return joint(verdicts), f"First block of a stage over the median of its others: {'; '.join(words)}."


def judge_first_blocks(evidence: Evidence) -> list[Finding]:
    means = [{what: of.mean(0) for what, of in ratios.items()} for ratios in evidence.ratios]
    of = {id(course): line for course, line in zip(evidence.courses, means, strict=True)}
    return [
        judge_first({what: by_controller(evidence.courses, lambda c, w=what: of[id(c)][w]) for what in ("NSI", "norm")})
    ]


def show_first_blocks(page: Page, evidence: Evidence):
    page.figure(
        draw_first_blocks(evidence.courses, evidence.ratios),
        "first_blocks",
        "A stage's first block over the median of its others, mean over images, one dot per network. Left NSI, right "
        "the norm of the state behind the block. Dashed: no difference.",
    )
    page.table(
        "first_blocks",
        rows_of_first_blocks(evidence.courses, evidence.draws),
        "First block over the median of the others, with 95 % intervals over images",
        printed=False,
    )


def draw_first_blocks(courses, ratios):
    """The first block of each stage against the others: NSI and norm, means over images of every network."""
    seen, labelled = looks([course.subject for course in courses]), set()
    with style.figure(1, 2, height=3.1) as (drawing, axes):
        for axis, (what, title) in zip(axes[0], (("NSI", "NSI"), ("norm", "norm of the state")), strict=True):
            for index, (course, quantities) in enumerate(zip(courses, ratios, strict=True)):
                means = quantities[what].mean(0)
                at = np.arange(1, len(means) + 1) + 0.5 * (index / max(len(courses) - 1, 1) - 0.5)
                name = course.subject.name
                label = None if name in labelled else name
                labelled.add(name)
                axis.plot(at, means, seen[name][1], color=seen[name][0], markersize=2.8, label=label)
            axis.axhline(1, color=style.GREY, linewidth=0.8, linestyle="--")
            axis.set_xticks(range(1, len(means) + 1))
            axis.set_xlabel("stage")
            axis.set_ylim(bottom=0)
            axis.set_title(f"{title}, first block over the others", loc="left")
        legend_below(drawing, axes[0, 0], 6)
    return drawing


def rows_of_first_blocks(courses, chosen) -> Iterator[dict]:
    """A stage's first block over the median of its others."""
    for course in courses:
        for what, ratios in first_ratios(course).items():
            yield {"network": course.name, "of": what} | {
                f"stage {stage + 1}": interval_text(bootstrap_mean(values, within(chosen, len(values))), ".2f")
                for stage, values in enumerate(ratios.T)
            }


def within(chosen: np.ndarray, images: int) -> np.ndarray:
    """The resamples folded onto fewer images."""
    return chosen[:, :images] % images


EXHIBITS = (
    Exhibit("Closeness to the proxy (Figures 1 and 10)", show_distances, judge_closeness),
    Exhibit("Which blocks and features matter (Section 3.1)", show_importance, judge_blocks_and_features),
    Exhibit("Step size and stiffness along a trajectory (Figure 9b)", show_along, judge_figure_9b),
    Exhibit("Property (1)", show_property, judge_property_1),
    Exhibit("The first block of a stage (Section 2.2)", show_first_blocks, judge_first_blocks),
)

# ---- The study ----


def main(arguments: Arguments):
    began = time.process_time()
    data, notice, arguments = networks.open_traced(STUDY, arguments, PRESETS, fewest=8, controllers=("constant", "se"))
    paths = networks.checkpoints(arguments.checkpoint)
    subjects = choose_networks(
        paths or networks.shipped_files(data.name, deep=arguments.depth is not None), arguments, data
    )
    page = Page(
        STUDY,
        arguments,
        f"Trajectories of networks and the best of them, on {data.name}",
        f"{len(subjects)} networks, {arguments.images} test images. After {STEPNET_PAPER}.",
        notice,
    )
    courses, losses, draws = measure_networks(subjects, data, arguments)
    proxy, *rivals = best(courses, PROXIES)
    nearer = []
    for one in (*rivals, proxy):  # the proxy comes last, because the distances of the last one are kept
        set_distances(courses, one, draws)
        nearer.append(from_proxy(courses, one))
    ratios = [first_ratios(one) for one in courses]

    page.heading("What these data say")
    page.words(networks.scale_of(subjects, "the paper's have 164 layers and 164 epochs"), PROXY)
    deep = None if paths or arguments.depth else networks.deep_networks(data)
    deeper = deep_along(deep, arguments) if deep else []
    write(page, EXHIBITS, Evidence(courses, proxy, nearer[::-1], losses, ratios, draws, str(deep), deeper))
    page.numbers["processor seconds"] = round(time.process_time() - began, 1)
    page.words(f"This run took {page.numbers['processor seconds']:.0f} s of processor time.")
    page.close()


def choose_networks(paths, arguments, data) -> list[networks.Subject]:
    """The networks at `paths` that the options ask for; the study ends with a message where there are none."""
    subjects = networks.name_subjects([networks.read_subject(path) for path in paths])
    chosen = networks.select(subjects, arguments, data.name, "`python -m studies.train` makes more.", fewest=2)
    shapes = {(tuple(subject.net.config["blocks"]), subject.net.config["num_classes"]) for subject in chosen}
    if len(shapes) > 1 or next(iter(shapes))[1] != len(data.names):
        raise SystemExit(
            f"all networks must have one depth and tell the {len(data.names)} classes of {data.name} apart; these have "
            f"{', '.join(f'blocks {list(blocks)} and {classes} classes' for blocks, classes in sorted(shapes))}."
        )
    if min(next(iter(shapes))[0]) < 2:
        raise SystemExit("every stage needs two blocks, for the first of each is not counted: take deeper networks.")
    return chosen


def measure_networks(subjects, data, arguments):
    """The course of every network, what those that are dropped from lose, and the images of every resample."""
    with Progress(transient=True) as progress:
        task = progress.add_task("tracing", total=len(subjects))
        courses = []
        for one in subjects:
            progress.update(task, description=f"tracing {one.name}")
            courses.append(measure_course(one, data, arguments.images, arguments.device))
            one.net.cpu()
            progress.advance(task)
        kept = [one for one in courses if arguments.all or one.subject.controller in DROPPED] or courses[:2]
        blocks = sum(2 * len(one.subject.net.blocks) for one in kept)
        task = progress.add_task("dropping blocks", total=blocks)
        losses = [
            measure_importance(one, data, arguments.images, arguments.device, lambda: progress.advance(task))
            for one in kept
        ]
    return courses, losses, choices(arguments.images, arguments.resamples, seed=0)


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
