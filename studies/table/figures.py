"""The figure of `table`: gains over the plain network, as the paper prints them and as the networks found have them."""

import numpy as np

from odelab.plot import style
from studies.lab.comparisons import seed_deviation
from studies.lab.figures import MARKS
from studies.lab.networks import USUAL
from studies.table.design import Table
from studies.table.networks import Trained


def gain_figure(table: Table, found: list[Trained]):
    """Points above the plain network, by controller: open marks are printed, full ones found, with their spread."""
    names = [row for row in table.rows if row != "constant"]
    with style.figure(height=3.0) as (drawing, axes):
        axis = axes[0, 0]
        axis.axhline(0.0, color=style.GREY, linewidth=0.8)
        places = np.arange(len(names))
        several = len({scale.name for _, scale in table.columns}) > 1
        for number, (dataset, scale) in enumerate(table.columns):
            if table.paper.get("constant"):
                gains = [table.paper[name][number][0] - table.paper["constant"][number][0] for name in names]
                label = f"paper, {USUAL.get(dataset, dataset)}" + (f", {scale.name}" if several else "")
                axis.plot(places, gains, MARKS[number], color=style.GREY, markerfacecolor="white", label=label)
        shown = 0
        family = table.columns[0][1].family
        alike = {(one.dataset, one.scale) for one in found if one.scale.family == family}
        for dataset, scale in sorted(alike, key=lambda pair: pair[1].label):
            here = [one for one in found if (one.dataset, one.scale) == (dataset, scale)]
            groups = {name: [one.accuracy for one in here if one.controller == name] for name in ("constant", *names)}
            if groups["constant"] and any(groups[name] for name in names):
                shift = 0.12 * (shown + 1)
                points = [(x, groups[name]) for x, name in zip(places, names, strict=True) if groups[name]]
                axis.errorbar(
                    [x + shift for x, _ in points],
                    [np.mean(values) - np.mean(groups["constant"]) for _, values in points],
                    yerr=[np.nan_to_num(seed_deviation(values)) for _, values in points],
                    fmt=MARKS[shown],
                    color=style.COLOURS[shown % len(style.COLOURS)],
                    markersize=4.5,
                    label=f"found, {USUAL.get(dataset, dataset)}, {scale.label}",
                )
                shown += 1
        axis.set_xticks(places, names)
        axis.set_xlim(-0.5, len(names) - 0.4)  # so that a single row keeps its marks together
        axis.set_ylabel("points above the plain network")
        axis.grid(axis="x", visible=False)
        drawing.legend(loc="outside lower center", ncols=2)
    return drawing
