"""Every figure of `tricks`: recipes side by side, accuracy against TNS, NSI along depth, stiffness through training."""

import itertools

import numpy as np

from odelab.plot import style
from studies.lab.figures import looks_of
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, SCALE, SHAPE, TNS, wording
from studies.tricks.analysis import ACCURACY, STIFF, Runs, course, mean_nsi, value_of
from studies.tricks.design import PLAIN

BARS: dict[str | tuple[str, tuple], str] = {
    ACCURACY: "test accuracy (%)",
    **{key: title for key, title in STIFF.items() if key[0] != SHAPE or key[1] == READINGS[0]},
    "logits_norm": "norm of the logits",
}


def looks(runs: Runs) -> dict[str, tuple[str, str]]:
    """A colour and a mark per recipe; the plain one is black."""
    return looks_of(runs.groups, PLAIN)


def recipes_figure(runs: Runs):
    """Figure 8: every recipe's mean with its seeds; dashed, the plain one."""
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


def relation_figure(runs: Runs, own: dict[str, Runs]):
    """Accuracy against TNS, its scale and its shape, one mark per network; hollow, networks of the user's."""
    shown = [*((TNS, reading) for reading in READINGS), (SCALE, QUANTITIES[SCALE][0]), (SHAPE, READINGS[0])]
    with style.figure(3, 2, height=7.6, sharey=True) as (drawing, axes):
        for axis, key in zip(axes.flat, shown, strict=True):
            for name, (colour, mark) in looks(runs).items():
                group = runs.groups.get(name, [])
                x, y = ([value_of(one, what) for one in group] for what in (key, ACCURACY))
                axis.plot(x, y, mark, color=colour, markersize=4.5, label=name)
                mine = [one for group in own.values() for one in group.groups.get(name, [])]
                x, y = ([value_of(one, what) for one in mine] for what in (key, ACCURACY))
                axis.plot(x, y, mark, color=colour, markersize=4.5, markerfacecolor="white")
            axis.set_title(STIFF[key].split(", ", 1)[1], loc="left")
            axis.set_xlabel(QUANTITY_NAMES[key[0]])
        for row in axes:
            row[0].set_ylabel("test accuracy (%)")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawing


def blocks_figure(runs: Runs):
    """NSI along depth, the mean over seeds and images; hollow marks open a stage and are not counted."""
    with style.figure(2, 1, height=5.0, sharex=True) as (drawing, axes):
        for axis, kind in zip(axes[:, 0], ("slope", "increment"), strict=True):
            for name, (colour, mark) in looks(runs).items():
                group = runs.groups.get(name, [])
                if not group:
                    continue
                mean = mean_nsi(group, kind)
                first, blocks = np.array(group[0].numbers["first"]), np.arange(1, len(mean) + 1)
                axis.plot(blocks, mean, color=colour, linewidth=0.9, label=name, marker=mark, markersize=4)
                axis.plot(blocks[first], mean[first], mark, color=colour, markerfacecolor="white", markersize=4)
            axis.set_ylabel("mean NSI")
            axis.set_title(f"{kind} NSI", loc="left")
        axes[1, 0].set_xlabel("block")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawing


def training_figure(runs: Runs):
    """Training loss and TNS after every epoch, means over seeds; dotted: the learning rate drops."""
    titles = ["training loss", *(f"TNS, {wording(*reading)}" for reading in READINGS[:2])]
    with style.figure(3, 1, height=6.6, sharex=True) as (drawing, axes):
        for name, (colour, _) in looks(runs).items():
            ways = [way for one in runs.groups.get(name, []) if (way := course(one)) is not None]
            if not ways:
                continue
            epochs = np.arange(1, len(ways[0]) + 1)
            stiffness = np.mean([x.tns for x in ways], axis=0)
            lines = (np.mean([x.loss for x in ways], axis=0), *stiffness.T[:2])
            for axis, line in zip(axes[:, 0], lines, strict=True):
                axis.plot(epochs, line, color=colour, label=name)
            if name == PLAIN:
                for axis, epoch in itertools.product(axes[:, 0], epochs[1:][np.diff(ways[0].rate) < 0]):
                    axis.axvline(epoch - 0.5, color=style.GREY, linewidth=0.7, linestyle=":")
        for axis, title in zip(axes[:, 0], titles, strict=True):
            axis.set_title(title, loc="left")
        axes[-1, 0].set_xlabel("epoch")
        axes[-1, 0].locator_params(axis="x", integer=True)
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawing
