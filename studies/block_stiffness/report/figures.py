"""The figures of the block study."""

import itertools

import numpy as np
from scipy import stats

from odelab.plot import style
from studies.block_stiffness import paper
from studies.block_stiffness.measures import READINGS, Measured, rows_of, values_of_images

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
    with style.figure(height=3.6) as (drawing, axes):
        axis = axes[0, 0]
        sizes = sorted(SHARE_OF_WINDOW, reverse=True)
        values = [row["%, untrained slices"] for row in untrained]
        groups = (
            ("paper, ResNet-18", paper.shapes(18), paper.PERCENT[18], "o", style.COLOURS[0]),
            ("paper, ResNet-34", paper.shapes(34), paper.PERCENT[34], "s", style.COLOURS[1]),
            ("slices, untrained ResNet-18", paper.shapes(18), values, "D", "black"),
        )
        for number, (name, shapes, percent, mark, colour) in enumerate(groups):
            for square in (True, False):
                some = [(shape, p) for shape, p in zip(shapes, percent, strict=True) if shape.square == square]
                x = [sizes.index(shape.height_in) + 0.16 * (number - 1) for shape, _ in some]
                fill = {"color": colour, "markerfacecolor": colour if square else "white"}
                label = name if square else None
                axis.plot(x, [p for _, p in some], mark, markersize=4.5, linestyle="", label=label, **fill)
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
                errors = rows_of(found, block, "error")
                rows = errors if measure == "nsi" else rows_of(found, block, "residual")
                shared = np.intersect1d(rows["image"], errors["image"])
                x, y = (table[np.searchsorted(table["image"], shared)] for table in (rows, errors))
                colour = style.COLOURS[number % len(style.COLOURS)]
                label = str(found.blocks.index(block) + 1) if axis is axes[0, -1] else None
                look = {"markersize": 2.5, "alpha": 0.6, "color": colour, "label": label}
                mark = "o^s"[number // len(style.COLOURS) % 3]
                axis.plot(np.abs(x[measure]), y["step_error"], mark, **look)
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
                    values[place] = one.r.value
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


def labels_by_network(rows: list[dict], names, measures=("max_re", "min_re")):
    """Means by label of the last block, less the network's mean; a line is a network, black the mean over networks."""
    last = max(row["block"] for row in rows)
    rows = [row for row in rows if row["block"] == last]
    with style.figure(len(measures), 1, height=1.5 * len(measures) + 0.7, sharex=True) as (drawing, axes):
        for axis, measure in zip(axes[:, 0], measures, strict=True):
            values = np.array([row[f"{measure}_by_label"] for row in rows if f"{measure}_by_label" in row])
            values = values - values.mean(1, keepdims=True)
            axis.plot(values.T, color="#9A9A9A", linewidth=0.6, alpha=0.8)
            axis.plot(values.mean(0), "o-", color="black", markersize=4)
            axis.axhline(0.0, color="black", linewidth=0.5)
            axis.set_ylabel(f"{LABELS[measure]}, less mean")
        axes[-1, 0].set_xticks(range(len(names)), names, rotation=30, ha="right")
    return drawing


def depths(rows: list[dict], measures=("sigma, median", "rho, median")):
    """Medians of two measures against the number of blocks, with the law 1 / blocks through the first point."""
    from matplotlib.ticker import NullLocator

    with style.figure(height=2.6) as (drawing, axes):
        axis = axes[0, 0]
        blocks = np.array([row["blocks"] for row in rows])
        for measure, mark, name in zip(measures, "os", ("largest singular value", "spectral radius"), strict=True):
            values = np.array([row[measure] for row in rows])
            (line,) = axis.plot(blocks, values, f"{mark}-", markersize=4, label=name)
            axis.plot(blocks, values[0] * blocks[0] / blocks, "--", color=line.get_color(), linewidth=0.9)
        axis.plot([], [], "--", color="#666666", linewidth=0.9, label="1 / blocks, through the first")
        axis.set(xscale="log", yscale="log", xlabel="blocks that keep the shape", ylabel="median over branches")
        plain_ticks(axis.yaxis)
        axis.set_xticks(blocks, [str(block) for block in blocks])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.legend()
    return drawing


def tolerances(rows: list[dict]):
    """Accuracy and evaluations a block against the tolerance of dopri5, for networks trained in two ways."""
    from matplotlib.lines import Line2D

    solvers = ["Euler", *sorted({row["tolerance"] for row in rows if row["run by"] != "Euler"}, reverse=True)]
    ticks = ["Euler", *(f"{tolerance:.0e}".replace("e-0", "e-") for tolerance in solvers[1:])]
    looks = dict(zip(sorted({row["seed"] for row in rows}), ("o-", "s--", "D:", "^-."), strict=False))
    with style.figure(1, 2, height=2.8) as (drawing, axes):
        for measure, axis in zip(("accuracy, %", "evaluations a block"), axes[0], strict=True):
            for trained, colour in zip(dict.fromkeys(row["trained by"] for row in rows), style.COLOURS, strict=False):
                for seed, look in looks.items():
                    some = [row for row in rows if row["trained by"] == trained and row["seed"] == seed]
                    solved = [row for row in some if row["run by"] != "Euler"]
                    x, y = [solvers.index(row["tolerance"]) for row in solved], [row[measure] for row in solved]
                    label = f"trained by {trained}" if seed == min(looks) else None
                    axis.plot(x, y, look, color=colour, markersize=3.5, label=label)
                    y = [row[measure] for row in some if row["run by"] == "Euler"]
                    axis.plot([0] * len(y), y, look[0], color=colour, markersize=4.5)
            axis.axvline(0.5, color="#CCCCCC", linewidth=0.8)
            axis.set_xticks(range(len(solvers)), ticks)
            axis.set(xlabel="run by Euler, or by dopri5 of this tolerance", ylabel=measure)
        axes[0, 1].set_yscale("log")
        plain_ticks(axes[0, 1].yaxis)
        handles, names = axes[0, 0].get_legend_handles_labels()
        handles += [Line2D([], [], color="#666666", linestyle=look[1:], marker=look[0]) for look in looks.values()]
        names += [f"seed {seed}" for seed in looks]
        drawing.legend(handles, names, loc="outside lower center", ncols=len(names))
    return drawing


def through_training(rows: list[dict], measures=("max_re", "min_re", "step_error")):
    """Each branch's measures against the epochs of its network's training; the first point is before training."""
    with style.figure(1, len(measures), height=2.5) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for number, block in enumerate(dict.fromkeys(row["block"] for row in rows)):
                some = [row for row in rows if row["block"] == block]
                x, y = [row["epoch"] for row in some], [row[measure] for row in some]
                look = {"color": style.COLOURS[number], "markersize": 3, "label": f"{block}"}
                axis.plot(x, y, "o-", **look)
            axis.set_xscale("symlog", base=2, linthresh=1.0)
            ticks = sorted({row["epoch"] for row in rows})
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.set(xlabel="epoch", title=LABELS[measure])
        axes[0, 1].axhline(-2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, -1].set_yscale("log")
        plain_ticks(axes[0, -1].yaxis)
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, title="block", loc="outside right center")
    return drawing


def most_negative(rows: list[dict]):
    """The most negative real part of h lambda of every block of every network, against Euler's limit."""
    with style.figure(height=2.9) as (drawing, axes):
        axis = axes[0, 0]
        blocks = sorted({row["block"] for row in rows})
        places = {block: place for place, block in enumerate(blocks)}
        named = [name for name in networks(rows) if "/resnet20-constant" in name or "medium" in name]
        named = named or [name for name in networks(rows) if "constant" in name]
        others = {"color": "#9A9A9A", "linewidth": 0.7, "markersize": 2.5, "alpha": 0.8}
        first = True
        for name in networks(rows):
            some = [row for row in rows if row["network"] == name]
            x, y = [places[row["block"]] for row in some], [row["min_re"][2] for row in some]
            if name not in named:
                axis.plot(x, y, "o-", label="learnt step sizes" if first else None, **others)
                first = False
        for name, colour in zip(named, style.COLOURS, strict=False):
            some = [row for row in rows if row["network"] == name]
            x, y = [places[row["block"]] for row in some], [row["min_re"][2] for row in some]
            label = f"constant, {100 * some[0]['accuracy']:.1f} %, seed {some[0]['seed']}"
            axis.plot(x, y, "s-", color=colour, markersize=4, label=label, zorder=3)
        axis.axhline(-2.0, color="black", linewidth=0.9, linestyle=":")
        axis.text(places[blocks[-1]], -2.0, "Euler's limit on the real axis", ha="right", va="top", fontsize=8)
        for place, (one, next_one) in enumerate(itertools.pairwise(blocks)):
            if next_one - one > 1:
                axis.axvline(place + 0.5, color="#CCCCCC", linewidth=0.8)
        axis.set_xticks(range(len(blocks)), blocks)
        axis.set(xlabel="block (those that change the shape have no eigenvalues)", ylabel="most negative Re h lambda")
        drawing.legend(loc="outside right center")
    return drawing


def networks(rows: list[dict]) -> list[str]:
    return list(dict.fromkeys(row["network"] for row in rows))


def error_of_every_block(rows: list[dict], measures=("max_re", "min_re", "nsi")):
    """Euler's error against measures of the step, a point a block of a network, coloured by stage."""
    with style.figure(1, len(measures), height=2.5, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for stage in sorted({row["stage"] for row in rows}):
                some = [row for row in rows if row["stage"] == stage and row[measure] and row["step_error"]]
                x, y = ([abs(row[name][0]) for row in some] for name in (measure, "step_error"))
                look = {"color": style.COLOURS[stage], "markersize": 3, "alpha": 0.7, "label": f"stage {stage + 1}"}
                axis.plot(x, y, "o", **look)
            axis.set(xscale="log", yscale="log", xlabel=f"{'-' if measure == 'min_re' else ''}{LABELS[measure]}")
            plain_ticks(axis.xaxis, axis.yaxis)
        axes[0, 0].set_ylabel("Euler's error of the step")
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, loc="outside right center")
    return drawing


def plain_ticks(*sides):
    """1, 3, 10, 30 on logarithmic axes, as they are and not as powers; 2 and 5 as well where the axis is short."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for side in sides:
        low, high = side.get_view_interval()
        short = 0.0 < low < high < 20.0 * low
        side.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0) if short else (1.0, 3.0)))
        side.set_major_formatter("{x:g}")
        side.set_minor_formatter(NullFormatter())


def ode_net(fits):
    """How far residual steps and the exact flow of one field are apart, against h rho."""
    with style.figure(height=2.6) as (drawing, axes):
        for fit in fits:
            x, y = np.transpose(fit.scales)
            axes[0, 0].plot(x, y, "o-", markersize=3, label=f"seed {fit.seed}")
        axes[0, 0].axvline(2.0, color="black", linewidth=0.8, linestyle=":")
        axes[0, 0].set(xscale="log", yscale="log", xlabel="h rho", ylabel="ResNet to the flow of its own field")
        plain_ticks(axes[0, 0].xaxis, axes[0, 0].yaxis)
        axes[0, 0].legend()
    return drawing
