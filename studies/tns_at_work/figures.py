"""Every figure of `tns_at_work`: what the term does, what TNS before training says, what pruning costs."""

import numpy as np

from odelab.plot import style
from studies.lab.figures import MARKS
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, SCALE, SHAPE, TNS, wording
from studies.tns_at_work.measures import ORDERS, Architectures, Pruned


def weight_figure(tns: dict[float, list[float]], accuracies: dict[float, list[float]]):
    """TNS and accuracy against the weight of TNS in the loss, every seed a mark, their means a line."""
    weights = sorted(tns)
    with style.figure(1, 2, height=2.4) as (drawing, axes):
        for axis, groups, label in zip(axes[0], (tns, accuracies), ("TNS", "test accuracy (%)"), strict=True):
            for place, weight in enumerate(weights):
                axis.plot(np.full(len(groups[weight]), place), groups[weight], ".", color=style.GREY, markersize=4)
            axis.plot(range(len(weights)), [np.mean(groups[weight]) for weight in weights], "o-", markersize=4)
            axis.set_xticks(range(len(weights)), [f"{weight:g}" for weight in weights])
            axis.set_xlabel("weight of TNS in the loss")
            axis.set_ylabel(label)
        axes[0, 0].set_yscale("log")
    return drawing


def search_figure(searched: Architectures, own: Architectures):
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


def pruning_figure(families: dict[str, list[Pruned]]):
    """Accuracy that is left without k blocks, by the order in which they are dropped: mean over the networks."""
    with style.figure(1, len(families), height=2.8, sharey=True) as (drawing, axes):
        for axis, (family, found) in zip(axes[0], families.items(), strict=True):
            dropped = [0, *found[0].accuracy[ORDERS[0]]]
            for mark, order in zip(MARKS, ORDERS, strict=False):
                left = [[one.whole, *one.accuracy[order].values()] for one in found]
                axis.plot(dropped, np.mean(left, axis=0), f"{mark}-", markersize=4.5, label=order)
            axis.set_xticks(dropped)
            axis.set_xlabel("blocks dropped")
            axis.set_title(f"{len(found)} networks, {family}", loc="left")
        axes[0, 0].set_ylabel("test accuracy (%)")
        axes[0, 0].legend()
    return drawing
