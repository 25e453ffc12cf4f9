"""The figures of one network, block by block."""

import numpy as np
from scipy import stats

from odelab.plot import style
from studies.block_stiffness import paper
from studies.block_stiffness.measures import READINGS, Measured, rows_of, shared_columns, values_of_images
from studies.lab.figures import plain_ticks

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
    """Percentages of Tables 2 and 5 against the size of the input map, beside three readings of untrained networks."""
    with style.figure(height=3.8) as (drawing, axes):
        axis = axes[0, 0]
        sizes = sorted(SHARE_OF_WINDOW, reverse=True)
        groups: list[tuple[str, int, list[float], str, str]] = [
            (f"paper, ResNet-{depth}", depth, list(paper.PERCENT[depth]), "os"[number], style.COLOURS[number])
            for number, depth in enumerate(paper.BLOCKS)
        ]
        looks = (("slices", "slices", "D", "black"), ("block", "whole block", "v", "#888888"))
        for reading, words, mark, colour in (*looks, ("residual", "branch", "^", "#888888")):
            for depth in paper.BLOCKS:
                rows = [row for row in untrained if (row["depth"], row["reading"]) == (depth, reading)]
                by_block = [[row["negative"] for row in rows if row["block"] == k] for k in range(1, 17)]
                values = [float(np.mean(v)) if v else np.nan for v in by_block[: len(paper.PERCENT[depth])]]
                groups.append((f"{words}, untrained" if depth == 18 else "", depth, values, mark, colour))
        for number, (name, depth, percent, mark, colour) in enumerate(groups):
            place = 0.12 * (min(number, 2 + (number - 2) // 2) - 2)
            for square in (True, False):
                some = [
                    (shape, p) for shape, p in zip(paper.shapes(depth), percent, strict=True) if shape.square == square
                ]
                x = [sizes.index(shape.height_in) + place for shape, _ in some]
                fill = {"color": colour, "markerfacecolor": colour if square else "white"}
                fill |= {"label": name} if square and name else {}
                axis.plot(x, [p for _, p in some], mark, markersize=4, linestyle="", **fill)
        for opens, line in ((0, "--"), (1, ":")):
            bound = [50.0 * SHARE_OF_WINDOW[size][opens] for size in sizes]
            label = f"half of what a window can fill{', blocks that open a stage (hollow)' if opens else ''}"
            axis.plot(range(len(sizes)), bound, line, color="#666666", linewidth=1, label=label)
        axis.set_xticks(range(len(sizes)), [f"{size} x {size}" for size in sizes])
        axis.set(
            xlabel="size of the block's input map", ylabel="eigenvalues with negative real part, %", ylim=(0, None)
        )
        drawing.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


def along_depth(found: Measured):
    """Index, percentage and smallest real part of every block, in the three readings; the bars hold the images."""
    panels = (("stiffness_index", "S = max Re / min Re"), ("negative", "share with Re < 0"), ("min_re", "min Re"))
    with style.figure(1, 3, height=2.8) as (drawing, axes):
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
            axis.set(xlabel="block", xticks=range(1, len(found.blocks) + 1, 1 + len(found.blocks) // 10))
            axis.set_title(label, loc="left")
        axes[0, 0].set_yscale("symlog", linthresh=1.0)
        axes[0, 0].yaxis.set_major_formatter("{x:g}")
        axes[0, 2].axhline(-2.0, color="black", linewidth=0.8, linestyle=":")
        handles, names = axes[0, 0].get_legend_handles_labels()
        words = {"slices": "slices", "block": "whole block", "residual": "branch"}
        drawing.legend(handles, [words[name] for name in names], loc="outside lower center", ncols=3)
    return drawing


def error_against(found: Measured, blocks, measures=("max_re", "min_re", "stiffness_index", "nsi")):
    """Euler's error of a block against measures of its branch; a point is an image, a colour a block."""
    with style.figure(1, len(measures), height=2.8, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for number, block in enumerate(blocks):
                _, x, y = shared_columns(found, block, measure, "step_error")
                colour = style.COLOURS[number % len(style.COLOURS)]
                label = str(found.blocks.index(block) + 1) if axis is axes[0, -1] else None
                look = {"markersize": 2.5, "alpha": 0.6, "color": colour, "label": label}
                mark = "o^s"[number // len(style.COLOURS) % 3]
                axis.plot(np.abs(x), y, mark, **look)
            negated = measure in ("min_re", "stiffness_index")
            axis.set(xscale="log", yscale="log", xlabel=f"{'-' if negated else ''}{LABELS[measure]}")
            plain_ticks(axis.xaxis, axis.yaxis)
        axes[0, 0].set_ylabel("Euler's error of the step")
        drawing.legend(title="block", loc="outside right center", markerscale=2)
    return drawing


LABELS = {
    "stiffness_index": "index S", "negative": "negative share", "max_re": "max Re", "min_re": "min Re",
    "spectral_radius": "spectral radius", "zero": "zero share", "positive": "positive share", "si": "SI",
    "non_normality": "non-normality", "amplified": "amplified share", "stiff": "stiff share",
    "stable_step": "largest stable step", "log_norm": "log norm", "soderlind": "Söderlind's s[J]",
    "largest_singular": "largest singular value", "nsi": "NSI", "alive": "live outputs", "step_error": "Euler's error",
}  # fmt: skip


def correlation_map(related, found: Measured, blocks: list[str], titles: dict[str, str], readings=("residual",)):
    """Rank correlations within blocks, a panel per target; cells that hold after Holm's correction are framed."""
    targets = [target for target in titles if any(one.target == target for one in related)]
    measures = [measure for measure in LABELS if any(one.measure == measure for one in related)]
    with style.figure(1, len(targets), height=0.9 + 0.24 * len(measures), sharey=True) as (drawing, axes):
        for axis, target in zip(axes[0], targets, strict=True):
            values = np.full((len(measures), len(blocks)), np.nan)
            for one in related:
                if one.target == target and one.reading in readings:
                    place = measures.index(one.measure), blocks.index(one.block)
                    values[place] = one.r
                    if one.holm < 0.05:
                        axis.add_patch(frame(*place))
            image = axis.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
            axis.set_facecolor("#EFEFEF")  # shows where nothing could be correlated
            axis.set_title(titles[target], loc="left")
            every = 1 + len(blocks) // 9
            numbers = [found.blocks.index(block) + 1 for block in blocks[::every]]
            axis.set_xticks(range(0, len(blocks), every), numbers)
            axis.set_yticks(range(len(measures)), [LABELS[measure] for measure in measures])
            axis.set_xlabel("block")
            axis.grid(False)
            axis.tick_params(length=0)
        drawing.colorbar(image, ax=list(axes[0]), label="Spearman", shrink=0.9, pad=0.01)
    return drawing


def frame(row: int, column: int):
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=1.3)


def label_means(found: Measured, blocks: list[str], names, measures=("max_re", "min_re", "negative")):
    """Means by label with 95 % intervals over images, a panel per measure and a line per block of the last stage."""
    labels = np.unique(found.labels)
    with style.figure(len(measures), 1, height=1.35 * len(measures) + 0.7, sharex=True) as (drawing, axes):
        for axis, measure in zip(axes[:, 0], measures, strict=True):
            for number, (block, mark) in enumerate(zip(blocks, "osD^v", strict=False)):
                rows = rows_of(found, block, "residual")
                by_label = [rows[measure][values_of_images(found, found.labels, rows) == label] for label in labels]
                usable = [k for k, values in enumerate(by_label) if len(values) > 1]
                if not usable:
                    continue
                middle = [by_label[k].mean() for k in usable]
                half = [
                    stats.t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / np.sqrt(len(v))
                    for v in (by_label[k] for k in usable)
                ]
                places = np.array(usable) + 0.12 * (number - (len(blocks) - 1) / 2)
                look = {
                    "markersize": 4,
                    "capsize": 2,
                    "linewidth": 1,
                    "label": f"block {found.blocks.index(block) + 1}",
                }
                axis.errorbar(places, middle, half, fmt=mark, **look)
            axis.set_ylabel(LABELS[measure])
        axes[-1, 0].set_xticks(range(len(labels)), [names[label] for label in labels], rotation=30, ha="right")
        axes[0, 0].legend(ncols=len(blocks), loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
    return drawing
