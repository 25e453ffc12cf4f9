"""Figures 1-3, 6, 7, 9, 10 and Table 1 of the first paper on trained networks and real images (about 1 min).

Claim examined: networks with attention measure more stiffness, and the more of it, the better they are (Huang, Liang et
al., Understanding Self-attention Mechanism via Dynamical System Perspective, 2023). The report gives a
verdict on each claim, under every reading that the paper leaves open, and the rule that it comes from. Deep networks,
which count eight blocks a stage, are judged where three of one kind come along; others stand in an appendix.

Last result (12 ResNet-56 on CIFAR-10, three seeds each of constant step sizes, SE, ECA and StepNet, 500 images,
2026-11-20): attention raises the accuracy, by 1.2 to 1.6 points, each with its whole interval. By the slope all three
have a larger scale of NSI, by the increment SE and StepNet a smaller one; no reading has a larger TNS or shape beyond
constant step sizes, and StepNet's TNS is smaller by the increment over the data set. Relations over four kinds of
networks cannot be decided; few stiff blocks are what permuted numbers give as well. Until 2026-11-19 the study judged
ResNet-20, which count two blocks a stage, and said supported of few blocks, by a rule that random numbers pass as well.
"""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import stats

import netbridge as nb
from odelab.plot import style
from studies import population
from studies.lab import jobs, networks
from studies.lab.claims import (
    BLOCKS,
    DEGREES,
    FEWEST_SEEDS,
    SPREAD,
    Arms,
    Gates,
    Shares,
    compare_seeds,
    correlate_gates,
    gate_table,
    judge_correlations,
    judge_few_blocks,
    judge_larger,
    share_stiff_blocks,
)
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.comparisons import chance_cell, deviation_cell, interval_cell, seed_deviation, signed_cell
from studies.lab.exhibits import Exhibit, judge, show
from studies.lab.figures import (
    DASHES,
    SYMBOL,
    draw_cloud,
    draw_trajectory,
    heat_map,
    in_a_row,
    label_panels,
    legend_below,
    looks,
    mark_stages,
    panels,
    row_name,
    use_axes,
)
from studies.lab.networks import CONTROLLERS, groups
from studies.lab.options import TracingOptions
from studies.lab.page import STEPNET_PAPER, Page
from studies.lab.report.charts import DepthChart, Line, NetworksChart, Point, SurfaceChart
from studies.lab.statistics import FEWEST, LEVEL, Estimate, KindRelation, choices, interval_text, listing, relate_kinds
from studies.lab.stiffness import (
    KINDS,
    QUANTITIES,
    QUANTITY_NAMES,
    READINGS,
    SHAPE,
    SWITCH,
    TNS,
    Measured,
    measure,
    measure_each,
    set_stiffness,
    wording,
)
from studies.lab.verdicts import (
    NOT_RUN,
    Finding,
    Rule,
    Verdict,
    Worlds,
    agreeing,
    corrected,
    joint,
    of_kinds,
    rule,
)

STUDY = "cifar_tns"
PRESETS = {"quick": {"images": 500, "resamples": 200}, "full": {"images": 10_000, "resamples": 1000}}


@dataclasses.dataclass
class Arguments(TracingOptions):
    """Stiffness of trained networks on test images: figures, tables, conclusions, and report.html with all of it."""

    preset: Literal["quick", "full"] = "quick"
    """quick: 500 test images; full: all of them, and more resamples."""
    depth: int | None = None
    """Only networks with so many layers, 56 for the deep ones; all but these by default, 20 with --train."""
    train: bool = False
    """First train what is missing of these controllers and seeds, then look at those networks. A training that is
    stopped goes on from its last finished epoch when the same command is given again."""
    recipe: str = "short"
    """How to train: short, medium, paper, ...; see python -m studies.train --help."""
    out: Path = Path("results/cifar_tns")
    """Where figures, tables, report.html and record.json go."""


# ---- What the claims are judged by, gathered from what every network did on the test images ----


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the study shows, and what its claims are judged by; relations and comparisons by quantity and reading.

    results      what was measured of every network
    test_images  how many images their accuracies are of
    """

    results: list[Measured]
    test_images: int
    relations: dict[str, dict[tuple, KindRelation]]
    accuracies: Arms
    compared: dict[str, dict[tuple, Arms]]
    shares: Shares
    example: Gates
    gates: Gates

    @functools.cached_property
    def surfaces(self) -> dict[tuple, tuple]:
        """The shares of stiff images and blocks over both degrees, by share and reading."""
        return {(which, reading): surfaces(self.results, *reading, which) for which in SHARES for reading in READINGS}


def gather(results: list[Measured], test_images: int = 10_000) -> Evidence:
    """The evidence that these networks give."""
    senets = [network for network in results if network.subject.controller.split("(")[0] == "SE"]
    return Evidence(
        results,
        test_images,
        {what: {reading: relate(results, what, reading) for reading in QUANTITIES[what]} for what in QUANTITIES},
        compare_seeds(results, [network.accuracy for network in results], LEVEL),
        {
            what: {
                reading: compare_seeds(
                    results, [network.stiffness[what][reading].value for network in results], corrected(len(readings))
                )
                for reading in readings
            }
            for what, readings in QUANTITIES.items()
        },
        share_stiff_blocks(results),
        correlate_gates(senets, first_stage=True),
        correlate_gates(results),
    )


def relate(results, what: str, reading) -> KindRelation:
    """Rank correlations of one quantity under one reading with the accuracy, over kinds of networks."""
    stiffness: dict[str, list[float]] = {}
    accuracies: dict[str, list[float]] = {}
    for network in results:
        stiffness.setdefault(network.name, []).append(network.stiffness[what][reading].value)
        accuracies.setdefault(network.name, []).append(network.accuracy)
    return relate_kinds(stiffness, accuracies, corrected(len(QUANTITIES[what])))


LATER = (
    "after the data: 22 ResNet-20 and three ResNet-56 had been seen when TNS was taken apart into scale and shape, "
    "seeds became the units and a relation had to hold without any one controller"
)
NAMES = ("constant", "SE", "ECA", "StepNet")
SHARES = {"delta": "images", "proportion": "blocks"}  # what the surfaces of Figures 2 and 6 are shares of
POINTS, GAIN = 0.4, 1.2


def draw_seeds_of(chance, effect: float, n: int, spread: float, level: float, common=None) -> Arms:
    """Values of n seeds of every controller around 0; those with attention are `effect` higher."""
    drawn = chance.normal(0.0, spread, (len(NAMES), n)) + (0.0 if common is None else common)
    groups = {name: (row + effect * (name != NAMES[0])).tolist() for name, row in zip(NAMES, drawn, strict=True)}
    return Arms.against(NAMES[0], groups, level)


def names_of(results) -> dict[str, list[int]]:
    return groups([r.subject for r in results])


INDEX = {
    "slope": "the branch before its gate and the final ReLU, over the state",
    "increment": "Eq. 4 as printed, the change of the state over the state; undefined where a block changes the shape",
}
COUNTED = "The first block of every stage is drawn hollow and not counted."
TWO_BLOCKS = (
    " A stage counts two blocks here, so that its TNS is the difference of two numbers times the larger one over their "
    "mean, and one of the two is never below it."
)


def warn_of_two(results) -> str:
    """What a caption says of networks whose stages have few counted blocks; "" for others."""
    record = results[0].records["slope"].counted()
    return TWO_BLOCKS if max(np.bincount(record.stage.astype(int))) <= 2 else ""


# ---- What stands below the claims: every network as a point, and the surfaces with a slider for each degree ----


def show_first_figures(page: Page, evidence: Evidence):
    page.switch(SWITCH)
    page.chart(
        chart_networks(evidence),
        "networks",
        "A point is a network, with 95 % intervals over test images. Point at it, or go with Tab and the arrow keys.",
        hero=True,
    )
    page.chart(
        chart_surfaces(evidence),
        "surface",
        "TNS is the volume below the share of images that are stiff to the degree (M1, M2), Figure 2. Move the degree; "
        "the share of blocks is Figure 6.",
        hero=True,
    )


def chart_networks(evidence: Evidence) -> NetworksChart:
    """Figures 2 and 7: TNS, scale and shape of every network, and its accuracy against them."""
    results = evidence.results
    errors = accuracy_errors(results, evidence.test_images)
    points = [
        Point(
            network.name,
            row_name(network),
            network.subject.source,
            (network.accuracy, network.accuracy - below, network.accuracy + above),
            {what: {reading: ends(e) for reading, e in by.items()} for what, by in network.stiffness.items()},
        )
        for network, (below, above) in zip(results, errors, strict=True)
    ]
    notes = {
        what: {
            reading: f"Kendall's tau {interval_text(relation.whole.kendall, '+.2f')} over {relation.whole.n} kinds of "
            f"networks: {of_kinds(relation).kind}."
            for reading, relation in by.items()
        }
        for what, by in evidence.relations.items()
    }
    plain = next((network.name for network in results if network.subject.controller == "constant"), "")
    return NetworksChart(points, colours_of(results), "accuracy, %", plain, notes)


def ends(e: Estimate) -> tuple[float, float, float]:
    return e.value, e.low, e.high


def colours_of(results) -> dict[str, str]:
    return {name: colour for name, (colour, _) in looks([network.subject for network in results]).items()}


def chart_surfaces(evidence: Evidence) -> SurfaceChart:
    """Figures 2 and 6: shares of stiff images and blocks over both degrees."""
    readings = {reading: surface for (which, reading), surface in evidence.surfaces.items() if which == "delta"}
    return SurfaceChart(
        {reading: m1 for reading, (m1, _, _) in readings.items()},
        {reading: m2 for reading, (_, m2, _) in readings.items()},
        {words: {r: evidence.surfaces[which, r][2] for r in readings} for which, words in SHARES.items()},
        colours_of(evidence.results),
    )


# ---- Table 1: attention raises the accuracy ----


def worlds_of_accuracy(chance, effect, n):
    return (draw_seeds_of(chance, GAIN * effect, n, POINTS, LEVEL),)


@rule(
    "Attention raises the accuracy.",
    "Table 1",
    fewest=FEWEST_SEEDS,
    fixed="after the data: the older rule compared means of two seeds by an analysis of variance and said undecided",
    worlds=Worlds(worlds_of_accuracy, n=5, units="seeds", effect="+1.2 points, the mean of Table 1's gains", now=3),
    paper="+1.2 points",
    unit="points",
)
def judge_accuracy(compared: Arms) -> tuple[Verdict, str]:
    """Accuracy of each controller minus that of constant step sizes of the same depth, by Dunnett over seeds. Supported
    where every controller is above, contradicted where every one is below, true or false of some where only some are
    beyond 0. Judged from three seeds of every controller on."""
    if not compared.beyond:
        return NOT_RUN, "n = 0: nothing to compare with constant step sizes."
    words = f"Points above constant step sizes, intervals of Dunnett over seeds: {listing(compared.beyond)}."
    return compared.verdict(), f"{compared.why_open}{words}"


def judge_table_1(evidence: Evidence) -> list[Finding]:
    return [judge_accuracy(evidence.accuracies)]


def show_table_1(page: Page, evidence: Evidence):
    results, test_images = evidence.results, evidence.test_images
    page.table(
        "accuracy",
        rows_of_accuracy(results),
        "Test accuracy",
        f"On all {test_images} test images as the training measured it, on the traced ones where a checkpoint does not "
        "say: mean and standard deviation over networks, and the gain over constant step sizes in points, with 95 % "
        "intervals of Dunnett over seeds.",
    )


def rows_of_accuracy(results) -> Iterator[dict]:
    """Table 1: accuracy over seeds, and the gain over constant step sizes."""
    beyond = compare_seeds(results, [network.accuracy for network in results], LEVEL).beyond
    for name, indices in names_of(results).items():
        members = [results[index] for index in indices]
        accuracies = [m.accuracy for m in members]
        yield {
            "controller": name,
            "parameters (M)": f"{np.mean([m.subject.parameters for m in members]) / 1e6:.4f}",
            "networks": len(members),
            "accuracy (%)": f"{np.mean(accuracies):.2f}",
            "standard deviation": deviation_cell(accuracies, "one network"),
            "gain": interval_cell(beyond, name),
            "on the traced images (%)": f"{np.mean([m.measured_accuracy for m in members]):.2f}",
        }


# ---- Figures 1, 3 and 10: stiffness along depth ----


def show_depth(page: Page, evidence: Evidence):
    results = evidence.results
    page.chart(
        chart_depth(results),
        "nsi_depth",
        f"NSI of every network at every block: its mean over the images, or of one of the first {SINGLE} test images. "
        f"{COUNTED}",
    )
    for of in KINDS:
        page.figure(
            draw_single(results, of),
            f"nsi_single_{of}",
            "NSI of single test images along depth. One line per image, the same images in every panel; NSI is "
            f"{INDEX[of]}. The paper's Figures 1 and 3 show such lines. {COUNTED}",
            reading=(of,),
        )
        page.figure(
            draw_averaged(results, of),
            f"nsi_depth_{of}",
            "NSI along depth, averaged over the images. One line per seed (Figure 10); the band holds nine images of "
            f"ten for the first of them. {COUNTED}",
            reading=(of,),
        )


SINGLE = 6  # images that are shown one by one


def chart_depth(results) -> DepthChart:
    """Figures 1, 3 and 10: NSI of every network at every block, averaged over the images and of single ones."""
    lines = [
        Line(
            network.name,
            row_name(network),
            {(of,): np.vstack([network.records[of].nsi.mean(0), network.records[of].nsi[:SINGLE]]) for of in KINDS},
        )
        for network in results
    ]
    return DepthChart(lines, results[0].records[KINDS[0]].first, colours_of(results), "NSI")


def draw_single(results, of, images=SINGLE):
    """Figures 1 and 3: a few images through the constant network and through networks with attention."""
    firsts = places_shown_first([r.subject for r in results])
    with panels(len(firsts), columns=2, height=2.1, sharex=False, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(firsts))
        for axis, index in zip(shown, firsts, strict=True):
            network = results[index]
            record = network.records[of]
            for i in range(min(images, len(record))):
                draw_trajectory(
                    axis, record, record.nsi[i], color=style.COLOURS[i % 6], marker="o", linewidth=0.9, label=str(i)
                )
            mark_stages(axis, record)
            axis.set_title(row_name(network), loc="left")
        finish(drawing, axes, len(firsts), of)
        drawing.legend(*shown[0].get_legend_handles_labels(), title="test image", loc="outside right upper")
    return drawing


def places_shown_first(subjects, count=4) -> list[int]:
    """The places of up to `count` networks of different names, those that the paper shows first."""
    indices = [members[0] for members in groups(subjects).values()]
    wanted = ("constant", "SE", "StepNet")
    return sorted(indices, key=lambda p: (subjects[p].controller not in wanted, p))[:count]


def draw_averaged(results, of):
    """Figures 3 and 10: the mean over images, a line per seed; the band holds nine images of ten of the first seed."""
    names = groups([r.subject for r in results])
    colours = looks([r.subject for r in results])
    with panels(len(names), columns=in_a_row(len(names)), sharex=False, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(names))
        for axis, (name, indices) in zip(shown, names.items(), strict=True):
            record = results[indices[0]].records[of]
            band(axis, record, colours[name][0])
            for line, index in enumerate(indices):
                network = results[index]
                draw_trajectory(
                    axis,
                    network.records[of],
                    network.records[of].nsi.mean(axis=0),
                    color=colours[name][0],
                    marker="o" if line == 0 else None,
                    linestyle=DASHES[line % len(DASHES)],
                    label=None if network.subject.seed is None else f"seed {network.subject.seed}",
                )
            mark_stages(axis, record)
            axis.set_title(name, loc="left")
        finish(drawing, axes, len(names), of)
        handles, labels = max((axis.get_legend_handles_labels() for axis in shown), key=lambda pair: len(pair[1]))
        if len(labels) > 1:
            for handle in handles:
                handle.set_markersize(0)
            drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return drawing


def band(axis, record, colour):
    blocks = np.arange(1, len(record.names) + 1)
    low, high = np.percentile(record.nsi, [5, 95], axis=0)
    for stage in np.unique(record.stage):
        at = record.stage == stage
        axis.fill_between(blocks[at], low[at], high[at], color=colour, alpha=0.15, linewidth=0)


def finish(drawing, axes, count, of):
    label_panels(axes, count, "block", "NSI")
    axes[0, 0].set_ylim(bottom=0)  # all panels share the axis; set last, because it ends the automatic scaling
    drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)


# ---- Figure 2: total neural stiffness, its scale and its shape ----


def worlds_of_stiffness(what: str):
    """Worlds in which networks with attention have half as much again of a quantity, or as much."""

    def make(chance, effect, n):
        readings, common = QUANTITIES[what], chance.normal(0.0, 0.9 * SPREAD[what], (len(NAMES), n))
        level = corrected(len(readings))
        return ({r: draw_seeds_of(chance, 0.5 * effect, n, 0.4 * SPREAD[what], level, common) for r in readings},)

    return make


def rule_of_comparison(what: str) -> Rule:
    made = Worlds(
        worlds_of_stiffness(what), n=5, units="seeds", effect="half as much again as constant step sizes have", now=3
    )
    options = {"fewest": FEWEST_SEEDS, "worlds": made, "fixed": LATER, "variant": what}
    return rule(f"Networks with attention have a larger {QUANTITY_NAMES[what]}.", "Figure 2, Section 2.3", **options)(
        judge_larger
    )


COMPARED = {what: rule_of_comparison(what) for what in QUANTITIES}


def judge_figure_2(evidence: Evidence) -> list[Finding]:
    """A finding for TNS, scale and shape each."""
    return [COMPARED[what](evidence.compared[what]) for what in COMPARED]


def show_figure_2(page: Page, evidence: Evidence):
    results = evidence.results
    page.words(
        "TNS grows in proportion to NSI: a network whose branches are three times larger, because a gate of 0.3 "
        "follows them, has three times the TNS. The scale is the mean NSI of the counted blocks; the shape is TNS "
        "divided by it, and says how far the stiffest blocks lie above the mean of their stage."
    )
    for reading in READINGS:
        page.figure(
            draw_surfaces(evidence, *reading, "delta"),
            f"tns_surface_{'_'.join(reading)}",
            f"The share of images that are stiff to the degree (M1, M2), with {wording(*reading)}. TNS is the "
            f"volume below the surface, and is computed exactly, without this grid. Means over the seeds."
            f"{warn_of_two(results)}",
            reading=reading,
        )
    page.figure(
        draw_parts(results),
        "tns",
        "Exact TNS, its scale and its shape, of every network with 95 % bootstrap intervals over images. Dashed: the "
        f"mean of the networks with constant step sizes.{warn_of_two(results)}",
    )
    page.table(
        "tns",
        rows_of_stiffness(results),
        "TNS, scale and shape per controller: mean and standard deviation over seeds",
        printed=False,
    )
    page.table(
        "tns_over_constant",
        rows_of_excess(results, evidence.compared),
        "TNS, scale and shape beyond those of constant step sizes",
        "Intervals of Dunnett over seeds; all of one quantity, over its readings, hold together with 95 %.",
    )


GRID = 31  # degrees along each side of a surface
LEVELS = (0.01, 0.1, 0.5, 0.9)


def draw_surfaces(evidence: Evidence, of, mu, which):
    """Figure 2 (`which` = "delta") or Figure 6 ("proportion"), one panel per controller."""
    results, (m1, m2, by_name) = evidence.results, evidence.surfaces[which, (of, mu)]
    levels = LEVELS if which == "delta" else LEVELS[:2]
    top = 1.0 if which == "delta" else max(0.2, max(float(s.max()) for s in by_name.values()))
    with panels(len(by_name), columns=in_a_row(len(by_name)), sharex=True, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(by_name))
        for axis, (name, shares) in zip(shown, by_name.items(), strict=True):
            image = axis.imshow(
                shares, cmap="viridis", vmin=0.0, vmax=top, interpolation="bilinear", aspect="auto", origin="lower",
                extent=frame_of(m1, m2),
            )  # fmt: skip
            axis.set(xlim=(m1[0], m1[-1]), ylim=(m2[0], m2[-1]))
            crossed = [level for level in levels if shares.min() < level < shares.max()]
            if crossed:
                axis.contour(m1, m2, shares, levels=crossed, colors="white", linewidths=0.7)
            axis.grid(False)
            axis.set_title(title(results, name, of, mu, which), loc="left")
        label_panels(axes, len(by_name), "$M_1$", "$M_2$")
        label = r"$\delta(M_1, M_2)$, share of images" if which == "delta" else r"$\hat p(M_1, M_2)$, share of blocks"
        drawing.colorbar(image, ax=axes, label=label, shrink=0.8, aspect=30, pad=0.02)
        lines = ", ".join(f"{100 * level:g}" for level in levels)
        drawing.suptitle(f"{wording(of, mu)}; lines, from outside in, at {lines} %", x=0.01, ha="left", fontsize=9)
    return drawing


def frame_of(m1, m2) -> tuple[float, float, float, float]:
    """The edges of a picture whose points stand in the middle of its cells."""
    across, up = (m1[1] - m1[0]) / 2, (m2[1] - m2[0]) / 2
    return m1[0] - across, m1[-1] + across, m2[0] - up, m2[-1] + up


def surfaces(results, of, mu, which) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """`which` ("delta" or "proportion") over M1 (columns) and M2 (rows), per name, the mean over its seeds."""
    m1, m2 = degrees(results, of, mu)
    by_name = {}
    for name, indices in groups([r.subject for r in results]).items():
        members = [getattr(results[index].records[of], which)(m1, m2[:, None], mu) for index in indices]
        by_name[name] = np.mean(members, axis=0)
    return m1, m2, by_name


def degrees(results, of, mu) -> tuple[np.ndarray, np.ndarray]:
    """M1 and M2 up to where fewer than one image in a hundred is stiff, the same for all networks."""
    ends = []
    for most, shares in (
        (max(len(network.records[of].names) for network in results), lambda record, m: record.delta(m, 0.0, mu)),
        (
            max(network.records[of].counted().nsi.max() for network in results),
            lambda record, m: record.delta(0.0, m, mu),
        ),
    ):
        grid = np.linspace(0.0, float(most), 150)
        stiff = max(int(np.count_nonzero(shares(network.records[of], grid) >= LEVELS[0])) for network in results)
        ends.append(np.linspace(0.0, grid[min(stiff + 1, len(grid) - 1)], GRID))
    return ends[0], ends[1]


def title(results, name, of, mu, which):
    if which != "delta":
        return name
    indices = groups([r.subject for r in results])[name]
    return f"{name}, TNS {np.mean([results[index].tns[of, mu].value for index in indices]):.3f}"


def draw_parts(results):
    """TNS, its scale and its shape of every network with intervals over images; one colour a controller."""
    subjects = [r.subject for r in results]
    names, colours = groups(subjects), looks(subjects)
    columns = [(what, reading) for what, readings in QUANTITIES.items() for reading in readings]
    height = 0.15 * sum(map(len, names.values())) + 0.1 * len(names) + 0.5
    with style.figure(2, 5, height=2 * height + 0.6, sharey=True) as (drawing, axes):
        for axis, (what, reading) in zip(axes.flat, columns, strict=True):
            y, ticks = 0.0, []
            for name, indices in names.items():
                ticks.append(y + 0.5 * (len(indices) - 1))
                for index in indices:
                    e = results[index].stiffness[what][reading]
                    axis.plot([e.low, e.high], [y, y], color=colours[name][0], linewidth=1.6, solid_capstyle="butt")
                    axis.plot(e.value, y, "o", color=colours[name][0], markersize=3.5)
                    y += 1.0
                y += 0.6
            baseline(axis, results, names, what, reading)
            axis.set_yticks(ticks, list(names))
            axis.grid(axis="y", visible=False)
            axis.set_title(f"{what}\n" + wording(*reading).replace(", ", ",\n"), loc="left")
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].invert_yaxis()
    return drawing


def baseline(axis, results, names, what, reading):
    """A line at the mean of constant step sizes."""
    if "constant" in names:
        mean = np.mean([results[index].stiffness[what][reading].value for index in names["constant"]])
        axis.axvline(mean, color=style.GREY, linewidth=0.8, linestyle="--")


def rows_of_stiffness(results) -> Iterator[dict]:
    """Per controller the mean of TNS, scale and shape over its networks, and the seeds' standard deviation."""
    for name, indices in names_of(results).items():
        row = {"controller": name, "networks": len(indices)}
        for what, readings in QUANTITIES.items():
            for reading in readings:
                values = [results[index].stiffness[what][reading].value for index in indices]
                spread = f" +- {seed_deviation(values):.3f}" if len(values) > 1 else ""
                row[f"{what}, {wording(*reading)}"] = f"{np.mean(values):.3f}{spread}"
        yield row


def rows_of_excess(results, compared) -> Iterator[dict]:
    """Per controller how far TNS, scale and shape lie above those of constant step sizes, over seeds."""
    for name in names_of(results):
        row = {
            f"{what}, {wording(*reading)}": interval_cell(compared_seeds.beyond, name, "+.3f")
            for what, readings in compared.items()
            for reading, compared_seeds in readings.items()
        }
        if any(row.values()):
            yield {"controller": name, **row}


# ---- Figure 6: few blocks are stiff ----


def judge_figure_6(evidence: Evidence) -> list[Finding]:
    return [judge_few_blocks(evidence.shares)]


def show_figure_6(page: Page, evidence: Evidence):
    results = evidence.results
    for reading in READINGS:
        page.figure(
            draw_surfaces(evidence, *reading, "proportion"),
            f"proportion_{'_'.join(reading)}",
            f"The expected share of counted blocks that are stiff to the degree (M1, M2), with {wording(*reading)}."
            f" The paper finds at most 10 % for most degrees.{warn_of_two(results)}",
            reading=reading,
        )
    page.table(
        "degrees",
        rows_of_degrees(results),
        "Shares of images and of counted blocks that are stiff to three degrees M1, in per cent",
        "M2 is M1 times the mean NSI of the network's counted blocks.",
        printed=False,
    )


def rows_of_degrees(results) -> Iterator[dict]:
    """The share of images and of blocks that are stiff to three degrees, in per cent; M2 is M1 times the mean NSI."""
    for of, mu in READINGS:
        for name, indices in names_of(results).items():
            row = {"reading": wording(of, mu), "controller": name}
            records = [results[index].records[of] for index in indices]
            scales = [results[index].stiffness["scale"][(of,)].value for index in indices]
            for m1 in DEGREES:
                pairs = list(zip(records, scales, strict=True))
                row[f"images at {m1:g}"] = percent([record.delta(m1, m1 * scale, mu) for record, scale in pairs])
                row[f"blocks at {m1:g}"] = percent([record.proportion(m1, m1 * scale, mu) for record, scale in pairs])
            yield row


def percent(values) -> str:
    return f"{100.0 * np.mean(values):.1f}"


# ---- Figure 9: step size and stiffness ----


def worlds_of_gates(chance, effect, n) -> tuple[Gates]:
    """Mean correlations of n networks of every controller; between networks they differ by 0.15."""
    drawn = {f"{of} NSI": {name: chance.normal(-0.5 * effect, 0.15, n).tolist() for name in NAMES[1:]} for of in KINDS}
    return (Gates(drawn, 0, n * BLOCKS),)


def judge_gates(gates: Gates) -> tuple[Verdict, str]:
    """Spearman's correlation of step size and NSI over images, averaged over the counted blocks whose mean step size
    moves by a standard deviation of at least 0.01 over the images; the mean over the networks of a controller with
    Student's interval, those of the controllers and of both indices holding together. Supported where every controller
    is below 0, contradicted where every one is above. Judged from three networks of each controller on."""
    still = f" Step sizes that stand still, and are not counted: {gates.still} of {gates.cells} blocks."
    verdict, words = judge_correlations(gates, "correlation of step size and NSI")
    return verdict, f"{words}{still}"


def rule_of_gates(claim: str, variant: str) -> Rule:
    made = Worlds(worlds_of_gates, n=8, units="networks", effect="a correlation of -0.5 in every block", now=3)
    fixed = (
        "after the data: the older rule counted single blocks of single networks beyond chance, however little the "
        "step size moved; it contradicted the claim on one SENet-56"
    )
    options = {"fewest": FEWEST_SEEDS, "fixed": fixed, "worlds": made, "variant": variant}
    return rule(claim, "Figure 9, Appendix D", **options)(judge_gates)


EXAMPLE = rule_of_gates("In the first stage of SENet a larger NSI goes with a smaller gate.", "SENet, first stage")
EVERYWHERE = rule_of_gates("A larger NSI goes with a smaller step size.", "all controllers")


def judge_figure_9(evidence: Evidence) -> list[Finding]:
    """Of the first stage of SENets, which the paper shows, and of all networks."""
    return [EXAMPLE(evidence.example), EVERYWHERE(evidence.gates)]


def show_figure_9(page: Page, evidence: Evidence):
    results = evidence.results
    drawn = False
    for of in KINDS:
        moving, table, _ = gate_table(results, of)
        if not len(table):
            continue
        drawn = True
        example = next((i for i, network in enumerate(moving) if network.subject.controller.split("(")[0] == "SE"), 0)
        blocks = clearest(table[example])
        page.figure(
            draw_cloud(moving[example], of, blocks, table[example]),
            f"gate_cloud_{of}",
            f"Mean step size of an image against its NSI ({of}) at {len(blocks)} blocks. In the title Spearman's "
            "correlation; the paper shows three blocks of the first stage of SENet-164.",
            reading=(of,),
        )
        rows = [row_name(network) for network in moving]
        page.figure(
            draw_gates(rows, table, of),
            f"gate_{of}",
            f"Spearman's correlation of step size and NSI ({of}) over images, for every network and block. A dot "
            "stands where the step size moves by less than 0.01 (standard deviation over the images), or the index is "
            "undefined.",
            reading=(of,),
        )
        page.table(
            f"gate_{of}",
            [
                {"network": name, **{f"block {k + 1}": signed_cell(value) for k, value in enumerate(line)}}
                for name, line in zip(rows, table, strict=True)
            ],
            f"Spearman's correlation of step size and NSI ({of})",
            printed=of == KINDS[0],
            told=False,  # the report shows the figure instead, which has the same numbers
        )
    if not drawn:
        page.words("No network here has a step size that changes from image to image: nothing to correlate.")


def clearest(line) -> list[int]:
    """The first three blocks with a correlation: those of the first stage, as far as it has them."""
    return [int(k) for k in np.flatnonzero(np.isfinite(line))[:3]]


def draw_gates(rows: list[str], table: np.ndarray, of: str):
    """Figure 9b, for every network and block: Spearman's correlation of gate and NSI over images."""
    blocks = [str(k + 1) for k in range(table.shape[1])]
    drawing = heat_map(table, rows, blocks, "rank correlation of h and NSI", numbers=len(blocks) <= 18)
    drawing.axes[0].set_xlabel("block")
    drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
    return drawing


# ---- Figure 7: the better the network, the larger its TNS ----


def worlds_of_relations(what: str):
    """Worlds in which a quantity and the accuracy of n kinds of networks have Kendall's tau of 0.5, or none."""

    def make(chance, effect, n):
        readings, skill = QUANTITIES[what], chance.normal(size=n)
        stiff, level = agreeing(chance, skill, 0.5 * effect), corrected(len(readings))
        accuracies = {str(kind): [value] for kind, value in enumerate(skill)}
        related: dict[tuple, KindRelation] = {}
        for reading in readings:
            values = 0.95 * stiff + 0.3 * chance.normal(size=n)
            related[reading] = relate_kinds({str(kind): [x] for kind, x in enumerate(values)}, accuracies, level)
        return (related,)

    return make


def judge_correlation(related: dict[tuple, KindRelation]) -> tuple[Verdict, str]:
    """Kendall's tau and Spearman's rho with the accuracy, over kinds of networks (controller and depth), each with the
    mean of its seeds: networks of one kind are alike. Under each reading: supported where both coefficients are above 0
    with their whole intervals and their p-values, contradicted where below; the same must be said where any one kind is
    left out. The intervals hold together under all readings. Five kinds are the least."""
    verdicts = {reading: of_kinds(relation) for reading, relation in related.items()}
    parts = [
        f"{wording(*reading)}: tau {interval_text(relation.whole.kendall, '+.2f')}{say_extremes(relation)} "
        f"({verdicts[reading]})"
        for reading, relation in related.items()
    ]
    n = max(relation.whole.n for relation in related.values())
    return joint(verdicts), f"Rank correlation with the accuracy over n = {n} kinds of networks. {'; '.join(parts)}."


def say_extremes(relation: KindRelation) -> str:
    """The least and the largest tau where one kind is left out."""
    rest = {
        name: correlation.kendall.value
        for name, correlation in relation.without.items()
        if np.isfinite(correlation.kendall.value)
    }
    if relation.whole.n < FEWEST or not rest:
        return ""
    least, most = min(rest, key=rest.__getitem__), max(rest, key=rest.__getitem__)
    return f", {rest[least]:+.2f} without {least} and {rest[most]:+.2f} without {most}"


def rule_of_correlation(what: str) -> Rule:
    made = Worlds(worlds_of_relations(what), n=45, units="kinds of networks", effect="Kendall's tau of 0.5", now=11)
    options = {"worlds": made, "fixed": LATER, "variant": what}
    return rule(f"The better the network, the larger its {QUANTITY_NAMES[what]}.", "Figure 7, Section 3.1", **options)(
        judge_correlation
    )


RELATED = {what: rule_of_correlation(what) for what in QUANTITIES}


def judge_figure_7(evidence: Evidence) -> list[Finding]:
    """A finding for TNS, scale and shape each."""
    return [RELATED[what](evidence.relations[what]) for what in RELATED]


def show_figure_7(page: Page, evidence: Evidence):
    results, relations = evidence.results, evidence.relations
    page.figure(
        draw_relation(results, relations, accuracy_errors(results, evidence.test_images)),
        "accuracy_tns",
        "Accuracy against TNS and against its shape, one mark per network, under all four readings. Bars: 95 % "
        "intervals over images. In the titles Kendall's tau over kinds of networks, each with the mean of its seeds."
        f"{warn_of_two(results)}",
    )
    page.table(
        "correlations",
        rows_of_correlations(relations),
        "Rank correlation of the accuracy with TNS, scale and shape, over kinds of networks",
        "Intervals of Fieller, Hartley and Pearson; those of one quantity hold together over its readings.",
        printed=False,
    )
    page.table("networks", rows_of_networks(results), "Every network", printed=False)


def draw_relation(results, relations, errors):
    """Figure 7: accuracy against TNS and against its shape, under every reading; bars are intervals of both."""
    subjects = [r.subject for r in results]
    names, colours = groups(subjects), looks(subjects)
    with style.figure(2, 4, height=6.0, sharey=True) as (drawing, axes):
        for row, what in zip(axes, (TNS, SHAPE), strict=True):
            for axis, reading in zip(row, READINGS, strict=True):
                for name, indices in names.items():
                    colour, mark = colours[name]
                    estimates = [results[index].stiffness[what][reading] for index in indices]
                    x = np.array([e.value for e in estimates])
                    bars = [x - [e.low for e in estimates], [e.high for e in estimates] - x]
                    axis.errorbar(
                        x,
                        [results[index].accuracy for index in indices],
                        xerr=np.maximum(bars, 0.0),
                        yerr=np.transpose([errors[index] for index in indices]),
                        fmt=mark,
                        color=colour,
                        markersize=4.0,
                        elinewidth=0.6,
                        alpha=0.9,
                        label=name,
                    )
                whole = relations[what][reading].whole
                axis.set_title(
                    wording(*reading).replace(", ", ",\n") + f"\n$\\tau$ = {whole.kendall.value:+.2f}", loc="left"
                )
                axis.set_xlabel(what)
                axis.locator_params(axis="x", nbins=4)
        for row in axes:
            row[0].set_ylabel("test accuracy (%)")
        legend_below(drawing, axes[0, 0], 6)
    return drawing


def accuracy_errors(results, images: int) -> list[tuple[float, float]]:
    """Below and above each accuracy, in per cent: the exact binomial interval for so many test images."""
    errors = []
    for network in results:
        count = images if network.subject.accuracy is not None else len(network.correct)
        right = round(network.accuracy / 100.0 * count)
        reach = stats.binomtest(right, count).proportion_ci(LEVEL)
        errors.append((100.0 * (right / count - reach.low), 100.0 * (reach.high - right / count)))
    return errors


def rows_of_correlations(relations) -> Iterator[dict]:
    """Figure 7: the accuracy with TNS, scale and shape over kinds of networks."""
    for what, readings in relations.items():
        for reading, relation in readings.items():
            whole = relation.whole
            yield {
                "quantity": what,
                "reading": wording(*reading),
                "kinds": whole.n,
                "Kendall": interval_text(whole.kendall, "+.2f"),
                "p (Kendall)": chance_cell(whole.kendall_p),
                "Spearman": interval_text(whole.spearman, "+.2f"),
                "p (Spearman)": chance_cell(whole.spearman_p),
                "positive": of_kinds(relation),
            }


def rows_of_networks(results) -> Iterator[dict]:
    """Every network with its accuracy, and TNS, scale and shape under every reading."""
    for network in results:
        row = {
            "controller": network.name,
            "seed": "unknown" if network.subject.seed is None else network.subject.seed,
            "accuracy (%)": f"{network.accuracy:.2f}",
        }
        for what, readings in QUANTITIES.items():
            for reading in readings:
                row[f"{what}, {wording(*reading)}"] = interval_text(network.stiffness[what][reading])
        yield {**row, "file": network.subject.source}


FIGURE_7 = Exhibit("Accuracy and TNS (Figure 7)", show_figure_7, judge_figure_7)
EXHIBITS = (
    Exhibit("", show_first_figures),
    Exhibit("Accuracy (Table 1)", show_table_1, judge_table_1),
    Exhibit("Stiffness along depth (Figures 1, 3 and 10)", show_depth),
    Exhibit("Total neural stiffness, its scale and its shape (Figure 2)", show_figure_2, judge_figure_2),
    Exhibit("Stiffness proportion (Figure 6)", show_figure_6, judge_figure_6),
    Exhibit("Step size and stiffness (Figure 9)", show_figure_9, judge_figure_9),
    FIGURE_7,
)


# ---- The same claims beside a population of small networks, and on other networks ----


def claims(evidence: Evidence) -> list[Finding]:
    """All findings that the evidence of these networks allows; the paper's first claim, Figure 7's, comes first."""
    return judge(sorted(EXHIBITS, key=lambda exhibit: exhibit is not FIGURE_7), evidence)


def show_population(page, said, which):
    """The verdicts of the study of that name, where its measurements are shipped."""
    count, cited = population.shipped_findings()
    if count:
        page.table(
            "population",
            rows_beside(said, cited, which, f"{count} small networks"),
            "The same claims beside a population of small networks",
            f"{count} of {len(population.queue())} networks of 14 to 32 layers, trained for 3 or 6 epochs at "
            f"{population.PIXELS} pixels. `python -m studies.population` shows numbers, rules and intervals, and with "
            "`--train` trains the rest.",
            printed=False,
        )
        page.words(page.name_older(population.shipped_sources(), population.REMEDY))


def show_appendix(page: Page, which: str, evidence: Evidence, said: list[Finding]):
    """Other networks by the same rules: their verdicts, and what these rest on; `said` is said of those above."""
    results = evidence.results
    page.heading(f"Appendix: {which}")
    page.words(f"The same rules on {which}.{warn_of_two(results)}")
    page.table(
        "appendix_claims",
        rows_beside(said, claims(evidence), "the networks above", "these"),
        "The same claims, judged on these networks",
        printed=False,
    )
    page.table("appendix_accuracy", rows_of_accuracy(results), "Their test accuracy", printed=False)
    page.figure(
        draw_averaged(results, KINDS[0]),
        "appendix_nsi_depth",
        f"NSI along depth, averaged over the images, a line per seed. {COUNTED}",
    )
    page.figure(
        draw_parts(results),
        "appendix_tns",
        f"Exact TNS, its scale and its shape, with 95 % bootstrap intervals over images.{warn_of_two(results)}",
    )
    page.figure(
        draw_relation(results, evidence.relations, accuracy_errors(results, evidence.test_images)),
        "appendix_accuracy_tns",
        "Accuracy against TNS and its shape, one mark per network; in the titles Kendall's tau over controllers."
        f"{warn_of_two(results)}",
    )
    page.table(
        "appendix_correlations", rows_of_correlations(evidence.relations), "Their rank correlations", printed=False
    )
    page.table("appendix_networks", rows_of_networks(results), "These networks", printed=False, told=False)


def rows_beside(here, there, networks: str, others: str) -> Iterator[dict]:
    """The verdicts on the same claims, of these networks and of others; what one of them was not asked is said."""
    verdicts = {finding.claim: finding.verdict for finding in here}
    for cited in there:
        way = f": {population.OVER_ALL}."
        claim = f"{cited.claim.removesuffix(way)}." if cited.claim.endswith(way) else cited.claim
        yield {"claim": cited.claim, networks: verdicts.get(claim, "not asked"), others: cited.verdict}


# ---- The study ----


def main(arguments: Arguments):
    require_at_least(1, arguments, "depth")
    data, notice, arguments = networks.open_traced(STUDY, arguments, PRESETS, fewest=2, controllers=("constant", "se"))
    folders = (train_networks(arguments, data),) if arguments.train else arguments.checkpoint
    paths = networks.checkpoints(folders)
    chosen = paths or networks.shipped_files(data.name, deep=arguments.depth is not None)
    subjects, others = choose_networks(chosen, arguments, data), []
    if not (paths or arguments.depth or arguments.controllers or arguments.seeds):
        subjects, others = put_deep_first(subjects, networks.deep_networks(data), data.name)

    # Measure both indices, step sizes and answers of every network, and TNS with its interval.
    page = Page(
        STUDY,
        arguments,
        f"Stiffness and accuracy of residual networks on {data.name}",
        f"{describe(subjects)}; {arguments.images} test images. After {STEPNET_PAPER}.",
        notice,
    )
    evidence = gather(measure_networks(subjects, data, arguments), len(data.test_images))
    beside = gather(measure_networks(others, data, arguments)) if others else None

    page.heading("What these data say")
    said = claims(evidence)
    page.findings(said)
    if data.name == "cifar10":
        show_population(page, said, describe(subjects))
    show(page, EXHIBITS, evidence)
    if beside:
        show_appendix(page, describe(others), beside, said)
    page.close()


def put_deep_first(shallow, deep: networks.Deep | None, dataset: str):
    """(networks that are judged, networks of the appendix): the deep ones are judged where there are seeds of them.

    Two counted blocks a stage make TNS the difference of two numbers; the paper's networks count seventeen.
    """
    deep_ones = deep.subjects if deep and deep.data.name == dataset else []
    plain = [subject for subject in deep_ones if subject.controller == "constant"]
    return (deep_ones, shallow) if len(plain) >= FEWEST_SEEDS else (shallow, deep_ones)


def describe(subjects) -> str:
    """How many networks of which kind they are, how long they were trained, and how good they are."""
    depths = " and ".join(f"ResNet-{depth}" for depth in sorted({subject.depth for subject in subjects}))
    widths = sorted({subject.net.config["widths"][0] for subject in subjects})
    epochs = sorted({subject.net.about["epochs"] for subject in subjects if "epochs" in subject.net.about})
    accuracies = [subject.accuracy for subject in subjects if subject.accuracy is not None]
    parts = [f"width {networks.span_of(widths)}"]
    parts += [f"{networks.span_of(epochs)} epochs"] if epochs else []
    parts += [f"{min(accuracies):.1f} to {max(accuracies):.1f} %"] if accuracies else []
    return f"{len(subjects)} {depths} ({', '.join(parts)})"


def train_networks(arguments, data) -> Path:
    """The folder of the networks asked for; what is there already is not trained again."""
    folder = Path("results/train") / f"{arguments.dataset}-{arguments.recipe}"
    jobs.train_all(plan_trainings(arguments), data, folder, STUDY, arguments.device)
    return folder


def plan_trainings(arguments) -> list[jobs.Job]:
    """The networks that `--train` asks for."""
    with plain_errors(STUDY):
        recipe = jobs.recipe_of(arguments.recipe, arguments.dataset)
        like = jobs.Job(arguments.dataset, "constant", 0, recipe, depth=arguments.depth or 20)
        wanted = [
            dataclasses.replace(like, controller=text if text in nb.controllers() else text.lower(), seed=seed)
            for text in arguments.controllers or CONTROLLERS
            for seed in arguments.seeds or (0, 1)
        ]
        for job in wanted:
            nb.resnet(job.depth, controller=jobs.spec_of_text(job.controller))  # a wrong name ends the run before hours
    return wanted


def choose_networks(paths, arguments, data) -> list[networks.Subject]:
    """The networks at `paths` that the options ask for; the study ends with a message where there are none."""
    subjects = networks.name_subjects([networks.read_subject(path) for path in paths])
    root = "" if arguments.data_root is None else f" --data-root {arguments.data_root}"
    train = f"python -m studies.train --dataset {data.name}{root}"
    remedy = f"Train one with `{train}` and hand it over with --checkpoint."
    chosen = networks.select(subjects, arguments, data.name, remedy)
    for subject in chosen:
        if subject.net.config["num_classes"] != len(data.names):
            raise SystemExit(
                f"{subject.source} tells {subject.net.config['num_classes']} classes apart, {data.name} has "
                f"{len(data.names)}: "
                "choose its `--dataset`."
            )
        if max(subject.net.config["blocks"]) < 2:
            raise SystemExit(
                f"{subject.source} has one block in every stage, and none that opens a stage is counted: nothing of "
                "its stiffness can be measured. Take a deeper network: a CIFAR ResNet of 20 layers or more."
            )
    return chosen


def measure_networks(subjects, data, arguments) -> list:
    draws = choices(arguments.images, arguments.resamples, seed=0)

    def look(subject, progress):
        measured = measure(subject, data, arguments.images, arguments.device, progress)
        set_stiffness(measured, draws)
        return measured

    return measure_each(subjects, arguments.images, look)


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
