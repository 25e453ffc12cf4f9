"""Gate against NSI, block by block, and accuracy against TNS, network by network."""

import numpy as np

from odelab.plot import style
from studies.cifar_tns.depth_figures import SYMBOL, looks
from studies.cifar_tns.stiffness_figures import wording
from studies.lab.measure import READINGS
from studies.lab.networks import groups

POINTS = 1500  # in a cloud; more would only hide one another


def cloud_figure(found, of, blocks, coefficients):
    """Figure 9a: the mean gate of an image against its NSI, at three blocks of one network."""
    with style.figure(1, len(blocks), height=2.5) as (drawing, axes):
        record = found.records[of]
        for axis, k in zip(axes[0], blocks, strict=True):
            axis.plot(record.nsi[:POINTS, k], found.gates[:POINTS, k], ".", markersize=2.5, alpha=0.5, rasterized=True)
            axis.set_title(rf"block {k + 1}, $\rho$ = {coefficients[k]:+.2f}", loc="left")
            axis.set_xlabel("NSI")
            axis.ticklabel_format(useOffset=False)
            axis.locator_params(nbins=4)
        axes[0, 0].set_ylabel("mean step size h")
        seed = "" if found.subject.seed is None else f", seed {found.subject.seed}"
        drawing.suptitle(f"{found.name}{seed}; NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
    return drawing


def gate_figure(rows: list[str], table: np.ndarray, of: str):
    """Figure 9b, for every network and block: Spearman's correlation of gate and NSI over images."""
    with style.figure(height=0.24 * len(rows) + 1.3) as (drawing, axes):
        plane = axes[0, 0]
        image = plane.imshow(table, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        size = 7 if table.shape[1] <= 12 else 5
        for (i, j), value in np.ndenumerate(table):
            if table.shape[1] <= 18:
                word = "·" if np.isnan(value) else f"{value:+.2f}"
                dark = abs(value) > 0.6
                plane.text(j, i, word, ha="center", va="center", fontsize=size, color="white" if dark else "black")
        plane.set_xticks(range(table.shape[1]), range(1, table.shape[1] + 1))
        plane.set_yticks(range(len(rows)), rows)
        plane.set_xlabel("block")
        plane.grid(False)
        plane.spines[:].set_visible(False)
        plane.tick_params(length=0)
        drawing.colorbar(image, ax=plane, label="rank correlation of h and NSI")
        drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
    return drawing


def relation_figure(results, correlations, errors):
    """Figure 7: accuracy against TNS under every reading; bars are intervals of both."""
    subjects = [r.subject for r in results]
    names, colours = groups(subjects), looks(subjects)
    with style.figure(2, 2, height=6.0, sharey=True) as (drawing, axes):
        for axis, reading in zip(axes.flat, READINGS, strict=True):
            for name, places in names.items():
                colour, mark = colours[name]
                members = [results[place] for place in places]
                x = np.array([m.tns[reading].value for m in members])
                bars = [x - [m.tns[reading].low for m in members], [m.tns[reading].high for m in members] - x]
                axis.errorbar(
                    x,
                    [m.accuracy for m in members],
                    xerr=np.maximum(bars, 0.0),
                    yerr=np.transpose([errors[place] for place in places]),
                    fmt=mark,
                    color=colour,
                    markersize=4.5,
                    elinewidth=0.6,
                    alpha=0.9,
                    label=name,
                )
            found = correlations[reading]
            axis.set_title(
                f"{wording(*reading)}\n"
                rf"Kendall's $\tau$ {shown(found.kendall)}" + "\n"
                rf"Spearman's $\rho$ {shown(found.spearman)}",
                loc="left",
            )
            axis.set_xlabel("TNS")
            axis.locator_params(axis="x", nbins=5)
        for row in axes:
            row[0].set_ylabel("test accuracy (%)")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawing


def shown(e) -> str:
    if not np.isfinite(e.value):
        return "undefined"
    interval = f" [{e.low:+.2f}, {e.high:+.2f}]" if np.isfinite(e.low) else ""
    return f"{e.value:+.2f}{interval}"
