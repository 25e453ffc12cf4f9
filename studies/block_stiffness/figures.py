"""The figures of the block study."""

import numpy as np

from odelab.plot import style
from studies.block_stiffness import paper
from studies.block_stiffness.measures import READINGS, Measured, rows_of

SHARE_OF_WINDOW = {16: (0.085, 0.160), 8: (0.293, 0.500), 4: (0.781, 1.000), 2: (1.000, 1.000)}


def clouds(spectra: dict[str, np.ndarray], part: str):
    """The eigenvalues of one image, a panel for every block, with the disc in which Euler's step is stable."""
    columns = 4
    rows = -(-len(spectra) // columns)
    with style.figure(rows, columns, height=1.9 * rows + 0.3) as (drawing, axes):
        flat = list(axes.flat)
        centre = -1.0 if part == "residual" else 0.0
        angle = np.linspace(0.0, 2.0 * np.pi, 200)
        for axis, (name, values) in zip(flat, spectra.items(), strict=False):
            axis.fill(centre + np.cos(angle), np.sin(angle), color="#DDDDDD", zorder=0)
            axis.scatter(values.real, values.imag, s=1.5, linewidths=0, rasterized=True)
            axis.axvline(0.0, color="black", linewidth=0.5)
            axis.set_title(name, loc="left", fontsize=8)
            axis.set_aspect("equal", "datalim")
        for axis in flat[len(spectra) :]:
            axis.set_axis_off()
        drawing.supxlabel("Re", fontsize=8)
        drawing.supylabel("Im", fontsize=8)
    return drawing


def percentages(untrained: list[dict]):
    """Table 2's and Table 5's percentages against the size of the input map, beside slices of an untrained network."""
    with style.figure(height=3.0) as (drawing, axes):
        axis = axes[0, 0]
        for depth, mark in ((18, "o"), (34, "s")):
            heights = [shape.height_in for shape in paper.shapes(depth)]
            axis.plot(heights, paper.PERCENT[depth], mark, markersize=4, label=f"paper, ResNet-{depth}")
        heights = [shape.height_in for shape in paper.shapes(18)]
        values = [row["%, untrained slices"] for row in untrained]
        axis.plot(heights, values, "x", markersize=6, color="black", label="slices, untrained ResNet-18")
        sizes = sorted(SHARE_OF_WINDOW, reverse=True)
        bound = [50.0 * SHARE_OF_WINDOW[size][0] for size in sizes]
        axis.plot(sizes, bound, "--", color="#666666", linewidth=1, label="half of what a window can fill")
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, sizes)
        axis.invert_xaxis()
        axis.set(
            xlabel="height of the block's input map", ylabel="eigenvalues with negative real part, %", ylim=(0, None)
        )
        axis.legend()
    return drawing


def along_depth(found: Measured):
    """Index, percentage and smallest real part of every block, in the three readings; the bars hold the images."""
    panels = (("stiffness_index", "S = max Re / min Re"), ("negative", "negative, share"), ("min_re", "min Re"))
    with style.figure(1, 3, height=2.6) as (drawing, axes):
        for axis, (measure, label) in zip(axes[0], panels, strict=True):
            for reading, look in zip(READINGS, ("o-", "s-", "^-"), strict=True):
                places, middle, low, high = [], [], [], []
                for number, block in enumerate(found.blocks, 1):
                    values = rows_of(found, block, reading)[measure]
                    values = values[np.isfinite(values)]
                    if len(values):
                        places.append(number)
                        middle.append(np.median(values))
                        low.append(np.median(values) - np.percentile(values, 5))
                        high.append(np.percentile(values, 95) - np.median(values))
                axis.errorbar(
                    places, middle, (low, high), fmt=look, markersize=3, linewidth=1, capsize=2, label=reading
                )
            axis.set(xlabel="block", title=label, xticks=range(1, len(found.blocks) + 1))
        axes[0, 0].set_yscale("symlog", linthresh=1.0)
        axes[0, 2].axhline(-2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, 1].legend()
    return drawing


def error_against(found: Measured, blocks, measures=("max_re", "min_re", "stiffness_index", "nsi")):
    """Euler's error of a block against measures of its branch; a point is an image, a colour a block."""
    from matplotlib.ticker import LogLocator, NullFormatter

    with style.figure(1, len(measures), height=2.8, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for number, block in enumerate(blocks):
                errors = rows_of(found, block, "error")
                rows = errors if measure == "nsi" else rows_of(found, block, "residual")
                shared = np.intersect1d(rows["image"], errors["image"])
                x, y = (table[np.searchsorted(table["image"], shared)] for table in (rows, errors))
                colour = style.COLOURS[number % len(style.COLOURS)]
                label = str(found.blocks.index(block) + 1) if axis is axes[0, -1] else None
                look = {"markersize": 2.5, "alpha": 0.6, "color": colour, "label": label}
                axis.plot(np.abs(x[measure]), y["step_error"], "o", **look)
            axis.set(xscale="log", yscale="log", xlabel=f"|{measure}|")
            for side in (axis.xaxis, axis.yaxis):
                side.set_major_locator(LogLocator(subs=(1.0, 3.0)))
                side.set_major_formatter("{x:g}")
                side.set_minor_formatter(NullFormatter())
        axes[0, 0].set_ylabel("Euler's error of the step")
        drawing.legend(title="block", loc="outside right center", markerscale=2)
    return drawing


def ode_net(fits):
    """How far residual steps and the exact flow of one field are apart, against h rho."""
    with style.figure(height=2.6) as (drawing, axes):
        for fit in fits:
            x, y = np.transpose(fit.scales)
            axes[0, 0].plot(x, y, "o-", markersize=3, label=f"seed {fit.seed}")
        axes[0, 0].axvline(2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, 0].set(xscale="log", yscale="log", xlabel="h rho", ylabel="ResNet to the flow of its own field")
        axes[0, 0].legend()
    return drawing
