"""Every figure of `population`: accuracy against TNS, tau in four ways, controllers over seeds, shares, ranks."""

import numpy as np

from odelab.plot import style
from studies.lab.figures import MARKS, heat_map, looks_of
from studies.lab.report.charts import NetworksChart, Point
from studies.lab.statistics import FEWEST, Estimate, interval_text
from studies.lab.stiffness import READINGS, TNS, wording
from studies.population import design
from studies.population.analysis import (
    ACCURACY,
    CONSTANT,
    OVER_ALL,
    WAYS,
    Explained,
    Networks,
    rank_correlations,
)


def networks_chart(networks: Networks, related) -> NetworksChart:
    """Figures 2 and 7 for the page: every network by its controller, and its accuracy against TNS, scale and shape."""
    words_of, none = "{} layers of {} channels, {}, seed {}", float("nan")
    about = zip(networks.depth, networks.width, networks.recipe, networks.seed, strict=True)
    points = [
        Point(
            controller,
            f"{controller}, {words_of.format(*words)}",
            "",
            (networks.accuracy[place], none, none),
            {
                what: {reading: (values[place], none, none) for reading, values in by.items()}
                for what, by in networks.stiffness.items()
            },
        )
        for place, (controller, words) in enumerate(zip(networks.controller, about, strict=True))
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


def relation_figure(networks: Networks, own: Networks):
    """Figure 7: accuracy against TNS, a mark per network; colours are depths, marks recipes, hollow ones the user's."""
    depths, recipes = np.unique(networks.depth), np.unique(networks.recipe.astype(str))
    with style.figure(2, 2, height=5.6, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes.flat, READINGS, strict=True):
            for colour, depth in zip(style.COLOURS, depths, strict=False):
                for mark, recipe in zip(MARKS, recipes, strict=False):
                    here = (networks.depth == depth) & (networks.recipe == recipe)
                    if here.any():
                        x, y = networks.stiffness[TNS][reading][here], networks.accuracy[here]
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
        drawing.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return drawing


def tau_figure(relations: dict):
    """Kendall's tau of every way under every reading; the band is "no relation to speak of"."""
    ends = [abs(end) for found in relations.values() for end in (found.tau.low, found.tau.high, found.tau.value)]
    reach = min(1.05, 1.1 * max([2 * design.NEGLIGIBLE, *(end for end in ends if np.isfinite(end))]))
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


def controllers_figure(comparisons: dict):
    """Figure 2 and Table 1: TNS, scale, shape and accuracy of each controller minus those of another one, by seed."""
    names = list(comparisons[ACCURACY, (), CONSTANT].groups)
    with style.figure(4, 3, height=0.72 * len(names) + 3.6, sharey=True) as (drawing, axes):
        for axis, ((what, reading, control), found) in zip(axes.flat, comparisons.items(), strict=True):
            axis.axvline(0.0, color=style.GREY, linewidth=0.8)
            for y, name in enumerate(names if control in found.groups else ()):
                seeds = np.array(found.groups[name]) - np.mean(found.groups[control])
                axis.plot(seeds, np.full(len(seeds), y + 0.25), ".", color=style.GREY, markersize=3)
                if name != control:
                    interval(axis, found.beyond[name], y, style.COLOURS[0])
            axis.set_yticks(range(len(names)), names)
            axis.set_title("accuracy,\npoints" if what == ACCURACY else f"{what}, {two_lines(reading)}", loc="left")
            axis.set_xlabel(f"minus {control}")
            axis.grid(axis="y", visible=False)
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].set_ylim(len(names) - 0.4, -0.6)
    return drawing


def two_lines(reading) -> str:
    """A reading in two lines, for the titles of narrow panels."""
    return wording(*reading).replace(", ", ",\n")


def shares_figure(explanations: dict[tuple[str, str], Explained]):
    """Claim 4: shares of the explained variance of accuracy, TNS beside its rivals."""
    with style.figure(1, 4, height=2.2, sharey=True, sharex=True) as (drawing, axes):
        for axis, (reading, found) in zip(axes.flat, explanations.items(), strict=True):
            for y, (name, share) in enumerate(found.shares.items()):
                interval(axis, share, y, style.COLOURS[1 if name == TNS else 0])
            axis.set_yticks(range(len(found.shares)), list(found.shares))
            axis.set_ylim(len(found.shares) - 0.5, -0.5)
            axis.set_title(two_lines(reading), loc="left")
            axis.set_xlabel("share of variance")
            axis.set_xlim(0.0, 1.0)
            axis.grid(axis="y", visible=False)
    return drawing


def ranks_figure(networks: Networks):
    """Spearman's correlations of everything that enters claim 4."""
    columns = {"accuracy": networks.accuracy} | networks.rivals()
    columns |= {f"TNS, {wording(*reading)}": tns for reading, tns in networks.stiffness[TNS].items()}
    there = np.isfinite(np.stack(list(columns.values())).astype(float)).all(0)
    values = np.stack(list(columns.values())).astype(float)[:, there]
    table = rank_correlations(values) if there.sum() >= FEWEST else np.full((len(columns), len(columns)), np.nan)
    numbers = [str(place + 1) for place in range(len(columns))]
    rows = [f"{name}  {number}" for name, number in zip(columns, numbers, strict=True)]
    return heat_map(table, rows, numbers, "Spearman's correlation")


def interval(axis, e: Estimate, y: float, colour: str):
    """An estimate as a mark on a line; the mark alone where there is no interval."""
    if np.isfinite(e.low):
        axis.plot([e.low, e.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    axis.plot(e.value, y, "o", color=colour, markersize=4)


def negligible_band(axis):
    axis.axvspan(-design.NEGLIGIBLE, design.NEGLIGIBLE, color="#EEEEEE", zorder=0)
    axis.axvline(0.0, color=style.GREY, linewidth=0.8)
