"""Every figure of `transformer`: stiffness along depth, its total, gates along trajectories, what attention is."""

import numpy as np

from odelab.plot import style
from studies.cifar_tns.figures import DASHES, SYMBOL
from studies.lab.figures import in_a_row, label_panels, looks, panels, use_axes
from studies.lab.stiffness import wording
from studies.transformer.design import READINGS
from studies.transformer.findings import by_controller
from studies.transformer.measures import STEPS
from studies.transformer.tables import tokens_of

KIND_LOOKS = (("attention", style.COLOURS[0], "o"), ("MLP", style.COLOURS[1], "s"))
BINS = np.linspace(-1, 1, 21)


def depth_figure(studied, of: str):
    """NSI along depth, attention and MLP steps each on a line of their own; a dash pattern per seed."""
    groups = by_controller(studied)
    with panels(len(groups), height=2.2, sharey=True) as (drawing, axes):
        shown = use_axes(axes, len(groups))
        for axis, (name, members) in zip(shown, groups.items(), strict=True):
            for line, one in enumerate(members):
                kinds(axis, one.found.records[of], DASHES[line % len(DASHES)], marked=line == 0)
            axis.set_title(name, loc="left")
        label_panels(axes, len(groups), "step", "NSI")
        axes[0, 0].set_ylim(bottom=0)
        drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
        drawing.legend(*shown[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


def kinds(axis, record, dashes, marked: bool):
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


def tns_figure(studied):
    """The exact TNS of every network under the eight readings, with intervals over images."""
    colours = looks([one.subject for one in studied])
    height = 4 * (0.17 * len(studied) + 0.65)
    with style.figure(4, 2, height=height, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes.T.flat, READINGS, strict=True):
            for y, one in enumerate(studied):
                e, colour = one.tns[reading], colours[one.subject.name][0]
                axis.plot([e.low, e.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
                axis.plot(e.value, y, "o", color=colour, markersize=4)
            axis.set_yticks(range(len(studied)), [one.name for one in studied])
            axis.grid(axis="y", visible=False)
            axis.set_title(wording(*reading), loc="left", fontsize=8)
            axis.locator_params(axis="x", nbins=5)
        for axis in axes[-1]:
            axis.set_xlabel("TNS")
        axes[0, 0].set_ylim(len(studied) - 0.5, -0.5)
    return drawing


def step_size_figure(studied):
    """The mean step size of every step, and how much it varies over images."""
    with panels(len(studied), in_a_row(len(studied)), height=2.1, sharey=True) as (drawing, axes):
        for axis, one in zip(use_axes(axes, len(studied)), studied, strict=True):
            sizes = one.found.gates
            steps = np.arange(1, sizes.shape[1] + 1)
            for kind, (name, colour, mark) in enumerate(KIND_LOOKS):
                at = steps % 2 != kind
                low, high = np.percentile(sizes[:, at], [5, 95], axis=0)
                axis.fill_between(steps[at], low, high, color=colour, alpha=0.15, linewidth=0)
                axis.plot(
                    steps[at], sizes[:, at].mean(0), mark, linestyle="-", color=colour, markersize=3.6, label=name
                )
            axis.set_title(one.name, loc="left")
            axis.set_xticks(steps[:: max(1, len(steps) // 6)])
        label_panels(axes, len(studied), "step", "step size h")
        axes[0, 0].set_ylim(bottom=0)
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


def along_figure(studied):
    """Figure 9b as worded: a histogram over images of the correlation along each one's steps."""
    with panels(len(studied), in_a_row(len(studied)), height=2.0, sharex=True, sharey=True) as (drawing, axes):
        for axis, one in zip(use_axes(axes, len(studied)), studied, strict=True):
            for kind, colour in zip(STEPS, ("#000000", *(look[1] for look in KIND_LOOKS)), strict=True):
                if kind in one.along:
                    values = one.along[kind]
                    shares = np.full(len(values), 100 / len(values))
                    axis.hist(values, BINS, weights=shares, histtype="step", color=colour, label=f"{kind} steps")
            axis.axvline(0, color=style.GREY, linewidth=0.6)
            axis.set_title(one.name, loc="left")
        label_panels(axes, len(studied), "rank correlation of h and NSI", "images (%)")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawing


def attention_figure(studied):
    """What attention keeps of a token, its largest weights, and Eq. 33: condition of the values and error of Q."""
    from matplotlib.ticker import LogLocator

    colours = looks([one.subject for one in studied])
    with style.figure(2, 2, height=5.0, sharex=True) as (drawing, axes):
        (diagonal, largest), (condition, error) = axes
        lines = [DASHES[line % len(DASHES)] for group in by_controller(studied).values() for line in range(len(group))]
        for one, dashes in zip(studied, lines, strict=True):
            colour, mark = colours[one.subject.name]
            steps = np.arange(1, len(one.attention) + 1)
            look = {"color": colour, "marker": mark, "markersize": 3.6, "linewidth": 0.9, "linestyle": dashes}
            diagonal.plot(steps, [step.diagonal.mean() for step in one.attention], label=one.name, **look)
            largest.plot(steps, [step.largest.mean() for step in one.attention], **look)
            condition.semilogy(steps, [step.condition for step in one.attention], **look)
            error.semilogy(steps, [step.recovered for step in one.attention], **look)
            error.semilogy(steps, [step.rounding for step in one.attention], ":", color=colour, linewidth=0.9)
        for axis in (diagonal, largest):
            axis.axhline(1 / tokens_of(studied[0]), color=style.GREY, linewidth=0.8, linestyle="--")
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
        drawing.legend(*diagonal.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawing
