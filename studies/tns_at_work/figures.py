"""Every figure of `tns_at_work`: what the term does, what TNS before training says, what pruning costs."""

import numpy as np

from odelab.plot import style
from studies.lab.figures import MARKS
from studies.lab.stiffness import READINGS, wording
from studies.tns_at_work.measures import ORDERS, Pruned


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


def search_figure(before: dict, accuracy: np.ndarray, own: dict, accuracy_of_own: np.ndarray):
    """Accuracy after training against TNS before it, under all four readings; hollow, networks of the user's."""
    with style.figure(1, 4, height=2.3, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes[0], READINGS, strict=True):
            axis.plot(before[reading], accuracy, "o", markersize=3.5, alpha=0.8)
            axis.plot(own[reading], accuracy_of_own, "o", color="#000000", markerfacecolor="none", markersize=4.5)
            axis.set_title(wording(*reading).replace(", ", ",\n"), loc="left")
            axis.set_xlabel("TNS before training")
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].set_ylabel("accuracy after it (%)")
    return drawing


def pruning_figure(found: list[Pruned]):
    """Accuracy that is left without k blocks, by the order in which they are dropped: mean over networks."""
    with style.figure(height=2.8) as (drawing, axes):
        axis = axes[0, 0]
        dropped = [0, *found[0].accuracy[ORDERS[0]]]
        for mark, order in zip(MARKS, ORDERS, strict=False):
            kept = [[one.whole, *one.accuracy[order].values()] for one in found]
            axis.plot(dropped, np.mean(kept, axis=0), f"{mark}-", markersize=4.5, label=order)
        axis.set_xticks(dropped)
        axis.set_xlabel("blocks dropped")
        axis.set_ylabel("test accuracy (%)")
        axis.legend()
    return drawing
