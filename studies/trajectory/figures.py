"""Every figure of `trajectory`: NSI along depth, distances from the proxy, blocks and features removed."""

import textwrap

import numpy as np

from odelab.plot import style
from studies.lab.figures import (
    SYMBOL,
    draw_trajectory,
    in_a_row,
    label_panels,
    looks,
    mark_stages,
    panels,
    reach_of,
    use_axes,
)
from studies.lab.networks import groups
from studies.trajectory.design import MEASURES, WORDS
from studies.trajectory.findings import AS_MANY, EQUAL, LARGEST

BINS = np.linspace(-1, 1, 21)


def course_figure(courses, proxy, of: str):
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
            for one in courses:
                if kind_of(one, proxy) == kind:
                    values = one.measured.records[of].nsi.mean(0)
                    mark = "o" if one is proxy else None
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


def kind_of(one, proxy) -> str:
    if one is proxy:
        return "the proxy"
    if one.subject.name == proxy.subject.name:
        return "the proxy's other seeds"
    return "constant" if one.subject.controller == "constant" else "with attention"


def distance_figure(courses, proxy):
    """How far every network is from the proxy, block by block."""
    colours = {"with attention": style.COLOURS[0], "constant": style.COLOURS[1], "the proxy's other seeds": "#000000"}
    record = proxy.measured.records["slope"]
    with style.figure(1, len(MEASURES), height=2.9) as (drawing, axes):
        for axis, measure in zip(axes[0], MEASURES, strict=True):
            labelled = set()
            for one in sorted(
                (one for one in courses if one is not proxy), key=lambda one: list(colours).index(kind_of(one, proxy))
            ):
                kind = kind_of(one, proxy)
                label = None if kind in labelled or axis is not axes[0, 0] else kind
                labelled.add(kind)
                width = 0.7 if kind == "with attention" else 1.5
                draw_trajectory(axis, record, one.blocks[measure], color=colours[kind], linewidth=width, label=label)
            mark_stages(axis, record)
            axis.set_xlabel("block")
            axis.set_ylim(bottom=0)
            axis.set_title(in_lines(measure), loc="left")
        drawing.legend(loc="outside lower center", ncols=3)
    return drawing


def in_lines(measure: str) -> str:
    """What a measure is, in lines that a small panel holds."""
    return "\n".join(textwrap.wrap(WORDS[measure], 24))


def nearness_figure(courses, proxy):
    """Accuracy against the distance from the proxy."""
    others = [one for one in courses if one is not proxy]
    seen = looks([one.subject for one in courses])
    with style.figure(1, len(MEASURES), height=3.6, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], MEASURES, strict=True):
            for name, places in groups([one.subject for one in others]).items():
                colour, mark = seen[name]
                found = [others[place].distance[measure] for place in places]
                axis.errorbar(
                    [e.value for e in found],
                    [others[place].measured.accuracy for place in places],
                    xerr=reach_of(found),
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
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawing


def importance_figure(losses):
    """The rise of the loss without a block against its NSI, one panel per network."""
    with panels(len(losses), in_a_row(len(losses)), height=2.0, sharex=True, sharey=True) as (drawing, axes):
        for axis, one in zip(use_axes(axes, len(losses)), losses, strict=True):
            record = one.course.measured.records["slope"]
            nsi, rise = record.nsi.mean(0), one.rise.mean(0)
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
            axis.set_title(one.course.name, loc="left")
            axis.set_yscale("symlog", linthresh=0.1)
        label_panels(axes, len(losses), "NSI", "loss rises by")
    return drawing


def features_figure(losses):
    """Mean rise of the loss without the largest or the smallest elements of each counted block's slope."""
    record = losses[0].course.measured.records["slope"]
    blocks = np.flatnonzero(~record.first)
    with style.figure(height=2.6) as (drawing, axes):
        axis = axes[0, 0]
        for place, which in enumerate((LARGEST, EQUAL, AS_MANY)):
            rises = np.array([one.features[which].mean(0) for one in losses])
            at = np.arange(len(blocks)) + 0.27 * (place - 1)
            axis.bar(at, rises.mean(0), 0.25, color=style.COLOURS[place], label=f"without the {which}")
            axis.plot(np.broadcast_to(at, rises.shape).T, rises.T, ".", color="#000000", markersize=2.5)
        axis.axhline(0, color=style.GREY, linewidth=0.6)
        axis.set_xticks(range(len(blocks)), [str(block + 1) for block in blocks])
        axis.set(xlabel="block", ylabel="loss rises by")
        drawing.legend(loc="outside lower center", ncols=3)
    return drawing


def along_figure(courses):
    """Figure 9b as worded: histograms over images of the correlation along each one's blocks."""
    kept = [one for one in courses if len(one.along)]
    names = groups([one.subject for one in kept])
    seen = looks([one.subject for one in courses])
    with panels(len(names), in_a_row(len(names)), height=1.7, sharex=True, sharey=True) as (drawing, axes):
        for axis, (name, places) in zip(use_axes(axes, len(names)), names.items(), strict=True):
            for line, place in enumerate(places):
                values = kept[place].along
                shares = np.full(len(values), 100 / len(values))
                style_of = "-" if line == 0 else "--"
                axis.hist(values, BINS, weights=shares, histtype="step", color=seen[name][0], linestyle=style_of)
            axis.axvline(0, color=style.GREY, linewidth=0.6)
            axis.set_title(name, loc="left")
        label_panels(axes, len(names), "rank correlation", "images (%)")
    return drawing


def first_figure(courses, ratios):
    """The first block of each stage against the others: NSI and norm, means over images of every network."""
    seen, labelled = looks([one.subject for one in courses]), set()
    with style.figure(1, 2, height=3.1) as (drawing, axes):
        for axis, (what, title) in zip(axes[0], (("NSI", "NSI"), ("norm", "norm of the state")), strict=True):
            for place, (one, found) in enumerate(zip(courses, ratios, strict=True)):
                means = found[what].mean(0)
                at = np.arange(1, len(means) + 1) + 0.5 * (place / max(len(courses) - 1, 1) - 0.5)
                name = one.subject.name
                label = None if name in labelled else name
                labelled.add(name)
                axis.plot(at, means, seen[name][1], color=seen[name][0], markersize=2.8, label=label)
            axis.axhline(1, color=style.GREY, linewidth=0.8, linestyle="--")
            axis.set_xticks(range(1, len(means) + 1))
            axis.set_xlabel("stage")
            axis.set_ylim(bottom=0)
            axis.set_title(f"{title}, first block over the others", loc="left")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return drawing
