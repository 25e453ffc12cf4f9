"""The figures of the study."""

import numpy as np

from odelab.plot import style as stylesheet
from studies.asr import design, style
from studies.asr.design import PLAIN
from studies.asr.findings.evidence import Evidence, group_by_name, over_seeds
from studies.lab.figures import MARKS, hide_scales, label_panels, panels, reach_of, use_axes

SCALE_TITLES = {"small": "small scale", "controls": "large scale"}
WHAT = ("input, trained", "gate, trained", "gate, untrained")


def stripes_figure(shares):
    """20 images by 60 channels: what a module sees, its gates, and its gates before training; two blocks of each."""
    first = [networks[0] for networks in group_by_name(shares).values()]
    blocks = [(one.name, stripes) for one in first for stripes in one.stripes]
    with stylesheet.figure(len(blocks), len(WHAT), height=0.85 * len(blocks) + 0.5) as (drawing, axes):
        for number, ((name, stripes), row) in enumerate(zip(blocks, axes, strict=True)):
            for what, axis in zip(WHAT, row, strict=True):
                hide_scales(axis)
                if number == 0:
                    axis.set_title(what)
                if what not in stripes.values:  # a network of which it is not known how it began
                    axis.spines[:].set_visible(False)
                    continue
                values = stripes.values[what]
                values = np.broadcast_to(values, (20, values.shape[1])) if len(values) == 1 else values
                image = axis.imshow(values, aspect="auto", cmap="viridis", interpolation="nearest")
                drawing.colorbar(image, ax=axis, shrink=0.9)
            row[0].set_ylabel(f"{name}, {stripes.which}\nblock {stripes.block}: {stripes.share:.2f}", fontsize=6.5)
        for axis in axes[-1]:
            axis.set_xlabel("channel")
    return drawing


def shares_figure(shares):
    """Per module the share that is channel, block by block; dotted before training."""
    grouped = group_by_name(shares)
    with panels(len(grouped), height=1.9, sharey=True) as (drawing, axes):
        used = use_axes(axes, len(grouped))
        for axis, (name, networks) in zip(used, grouped.items(), strict=True):
            for colour, mark, one in zip(stylesheet.COLOURS, MARKS, networks, strict=False):
                blocks = np.arange(1, len(one.share) + 1)
                label = f"seed {one.seed}"
                axis.errorbar(
                    blocks,
                    [part.value for part in one.share],
                    reach_of(one.share),
                    color=colour,
                    marker=mark,
                    markersize=3,
                    label=label,
                )
                axis.plot(blocks, one.untrained, ":", color=colour, label=f"{label}, untrained")
            axis.set(title=name, ylim=(-0.03, 1.05))
            axis.set_xlabel("block")
        for axis in axes[:, 0]:
            axis.set_ylabel("share")
        used[0].legend(fontsize=6.5, handlelength=1.5)
    return drawing


def origin_figure(shares):
    """The mean gate of every channel before training and after it."""
    chosen = [one for one in shares if np.isfinite(one.origin).any()]
    grouped = group_by_name(chosen)
    with panels(len(grouped), height=2.0) as (drawing, axes):
        used = use_axes(axes, len(grouped))
        for axis, (name, networks) in zip(used, grouped.items(), strict=True):
            for colour, one in zip(stylesheet.COLOURS, networks, strict=False):
                start, end = np.concatenate(one.start), np.concatenate(one.end)
                axis.plot(start, end, ".", color=colour, markersize=2.5, label=f"seed {one.seed}")
            ends = [*axis.get_xlim(), *axis.get_ylim()]
            axis.plot([min(ends), max(ends)], [min(ends), max(ends)], color=stylesheet.GREY, linewidth=0.8)
            axis.set(title=name, xlabel="mean gate, untrained")
        used[0].set_ylabel("mean gate, trained")
        used[0].legend(loc="lower right", fontsize=7, handletextpad=0.1, markerscale=2)
    return drawing


def replacement_figure(replaced):
    """What constants cost, by how constant the gates are."""
    with stylesheet.figure(height=2.8) as (drawing, axes):
        axis = axes[0, 0]
        grouped = group_by_name(replaced)
        for colour, mark, (name, networks) in zip(stylesheet.COLOURS, MARKS, grouped.items(), strict=False):
            share = [one.share for one in networks]
            for what, filling, label in (("change", "full", name), ("anew", "none", None)):
                found = [getattr(one, what) for one in networks]
                look = {"fmt": mark, "color": colour, "fillstyle": filling, "markersize": 5, "label": label}
                axis.errorbar(share, [part.value for part in found], reach_of(found), **look)
        axis.axhline(-28, color=stylesheet.GREY, linestyle="--", linewidth=1)
        axis.annotate("paper: 28 %", (0.99, -27.5), xycoords=("axes fraction", "data"), ha="right", fontsize=7)
        axis.set(xlabel="mean share of the gates' variance that is the channel's", xlim=(-0.03, 1.03))
        axis.set_ylabel("points gained")
        drawing.legend(loc="outside upper center", ncols=len(grouped))
    return drawing


def bounds_figure(bounds):
    """The bound and what was measured, from block to block."""
    with stylesheet.figure(1, 2, height=2.6) as (drawing, axes):
        bound, growth = axes[0]
        colours = {
            name: stylesheet.COLOURS[number] for number, name in enumerate(dict.fromkeys(b["name"] for b in bounds))
        }
        for one in bounds:
            first = one is next(other for other in bounds if other["name"] == one["name"])
            look = {"color": colours[one["name"]], "linestyle": "-" if first else "--"}
            label = f"{one['name']}, seed {one['seed']}"
            bound.plot(range(1, len(one["bound"]) + 1), one["bound"], **look, label=label)
            growth.plot(range(1, len(one["growth"]) + 1), one["growth"], **look, label=label)
        bound.set(xlabel="block", title="log10 of the bound")
        growth.set(xlabel="block", title="growth measured")
        bound.legend()
    return drawing


def maps_figure(maps):
    """Mean class maps, the pictures straight and rolled."""
    first = list({one["name"]: one for one in reversed(maps)}.values())[::-1]
    top = max(one[what].max() for one in first for what in ("straight", "rolled"))
    with stylesheet.figure(2, len(first), height=3.4) as (drawing, axes):
        for column, one in enumerate(first):
            for row, what in enumerate(("straight", "rolled")):
                axis = axes[row, column]
                image = axis.imshow(one[what], cmap="magma", vmin=0, vmax=top)
                hide_scales(axis)
                if column == 0:
                    axis.set_ylabel(what)
            axes[0, column].set_title(one["name"])
        drawing.colorbar(image, ax=axes, shrink=0.8, label="share of the map's mass in a cell")
    return drawing


def spatial_figure(one, word: str):
    """The mean map of every block, and how much of its variance is the position's; ten blocks in a row."""
    count = len(one["maps"])
    columns = min(count, 10)
    rows = -(-count // columns)
    with stylesheet.figure(rows, columns, height=6.2 / columns * rows + 0.38 * rows) as (drawing, axes):
        used = use_axes(axes, count)
        for number, (axis, picture, share) in enumerate(zip(used, one["maps"], one["share"], strict=True), 1):
            axis.imshow(picture, cmap="viridis")
            axis.set_title(f"{word} {number}\n{share:.2f}", fontsize=7)
            hide_scales(axis)
    return drawing


def style_losses_figure(painted):
    """Content and style loss of every network: filled with running statistics, hollow with those of the batch."""
    pictures = list(dict.fromkeys(one.painting.style for one in painted))
    with stylesheet.figure(1, len(pictures), height=2.7) as (drawing, axes):
        for axis, picture in zip(axes[0], pictures, strict=True):
            for colour, mark, arm in zip(stylesheet.COLOURS, MARKS, style.ARMS, strict=False):
                own = [one for one in painted if (one.painting.style, one.painting.arm) == (picture, arm)]
                for mode, filling in (("evaluation", "full"), ("batch", "none")):
                    points = [getattr(one, mode)[:2] for one in own]
                    if points:
                        label = arm if filling == "full" else None
                        axis.plot(*zip(*points, strict=True), mark, color=colour, fillstyle=filling, label=label)
            axis.set(title=picture, xlabel="content loss")
        axes[0, 0].set_ylabel("style loss")
        axes[0, 0].legend(fontsize=7)
    return drawing


def style_figure(painted, originals):
    """What the networks of the first seed paint, a row per arm of the first style; the style and the originals above.

    originals  the pictures before they are repainted, (N, 3, H, W); None where they are not known
    """
    first = painted[0].painting
    chosen = [one for one in painted if (one.painting.style, one.painting.seed) == (first.style, first.seed)]
    rows = [(one.painting.arm, one.pictures) for one in chosen]
    rows = ([] if originals is None else [("original", originals[: len(chosen[0].pictures)])]) + rows
    with stylesheet.figure(len(rows), 1 + len(rows[-1][1]), height=0.95 * len(rows) + 0.2) as (drawing, axes):
        for number, ((name, pictures), row) in enumerate(zip(rows, axes, strict=True)):
            size = pictures.shape[-1]
            shown = [style.style_picture(first.style, size).numpy() if number == 0 else None, *pictures]
            for picture, axis in zip(shown, row, strict=True):
                hide_scales(axis)
                axis.spines[:].set_visible(False)
                if picture is not None:
                    axis.imshow(picture.transpose(1, 2, 0))
            row[1].set_ylabel(name, fontsize=7)
        axes[0, 0].set_title("style", fontsize=8)
    return drawing


def speed_figure(speeds):
    """Speed over the plain network's, a panel per size of the images."""
    names = list(next(iter(speeds.values())))[::-1]
    with stylesheet.figure(1, len(speeds), height=0.24 * len(names) + 0.9, sharey=True) as (drawing, axes):
        for axis, (size, found) in zip(axes[0], speeds.items(), strict=True):
            values = np.array([found[name][0] for name in names])
            quarters = [found[name][1] or (found[name][0],) * 2 for name in names]
            error = np.array([(v - q[0], q[1] - v) for v, q in zip(values, quarters, strict=True)]).T.clip(0)
            axis.barh(names, values, xerr=error, color=stylesheet.COLOURS[0], height=0.6)
            axis.axvline(1 - 0.36, color=stylesheet.GREY, linestyle="--", linewidth=1)
            axis.axvline(1, color="black", linewidth=0.8)
            axis.set(title=f"{size} pixels", xlabel="speed over the plain network's")
    return drawing


def controls_figure(scales: dict):
    """Every control against the plain network: single seeds, means and intervals, one panel per scale."""
    arms = [name for name in (*design.CONTROLS, *design.ORIGIN) if any(groups.get(name) for groups in scales.values())]
    arms = arms[::-1]
    with stylesheet.figure(1, len(scales), height=0.3 * len(arms) + 1.0, sharey=True) as (drawing, axes):
        for axis, (part, groups) in zip(axes[0], scales.items(), strict=True):
            plain = float(np.mean(groups[PLAIN])) if groups.get(PLAIN) else np.nan
            beyond = over_seeds(PLAIN, groups, [name for name in arms if name != PLAIN])
            for place, name in enumerate(arms):
                values = np.array(groups.get(name, []))
                colour = stylesheet.COLOURS[place % 6] if name != PLAIN else "#000000"
                axis.plot(values - plain, [place - 0.12] * len(values), "o", color=colour, markersize=3, alpha=0.5)
                axis.annotate(f"n = {len(values)}", (1.0, place), xycoords=("axes fraction", "data"), fontsize=6.5,
                              ha="right", va="bottom", color=stylesheet.GREY)  # fmt: skip
                if name in beyond and np.isfinite(beyond[name].low):
                    one = beyond[name]
                    axis.errorbar(one.value, place + 0.16, xerr=reach_of([one]), fmt="s", color=colour, markersize=3.5)
            axis.set_yticks(range(len(arms)), arms)
            axis.axvline(0, color=stylesheet.GREY, linewidth=0.8)
            low, high = axis.get_xlim()
            axis.set(xlim=(low, high + 0.15 * (high - low)), ylim=(-0.6, len(arms) - 0.3))  # room for the counts
            axis.set(title=SCALE_TITLES[part], xlabel="points above the plain networks' mean")
    return drawing


def noise_figure(e: Evidence):
    """Accuracy by noise and arm, every seed a mark: without noise first, then constant noise, then random."""
    columns = sorted(
        (name for name in design.NOISES if any(e.accuracies("noise", name).values())),
        key=lambda name: (design.NOISES[name] is not None, name in design.DEEPER, design.NOISES[name] or ()),
    )
    with stylesheet.figure(height=3.0) as (drawing, axes):
        axis = axes[0, 0]
        for number, (colour, mark, arm) in enumerate(zip(stylesheet.COLOURS, MARKS, design.NOISY, strict=False)):
            points = [
                (place + 0.17 * (number - 1.5), value)
                for place, column in enumerate(columns)
                for value in e.accuracies("noise", column).get(arm, [])
            ]
            if points:
                axis.plot(*zip(*points, strict=True), mark, color=colour, markersize=4, label=arm)
        names = [name.replace(", ResNet", ",\nResNet").replace("random ", "random\n") for name in columns]
        axis.set_xticks(range(len(columns)), names, fontsize=7)
        axis.set(ylabel="test accuracy (%)", xlim=(-0.6, len(columns) - 0.4))
        axis.legend(ncols=2)
    return drawing


def dynamics_figure(e: Evidence):
    """How far gates, scales and logits move in an epoch, relative to their spread."""
    rows = {name: found[0] for name, found in e.rows[("dynamics", "")].items() if found}
    with panels(len(rows), sharex=True, sharey=True) as (drawing, axes):
        used = use_axes(axes, len(rows))
        for axis, (name, one) in zip(used, rows.items(), strict=True):
            records = [record for record in one.log if "moved" in record]
            epochs = [record["epoch"] for record in records]
            gates = [[v for k, v in r["moved"].items() if k.startswith("gate") and v] for r in records]
            axis.plot(
                epochs,
                [np.median(values) if values else np.nan for values in gates],
                "o-",
                label="gates, median",
                markersize=3,
            )
            for what, look in (("scales", "s--"), ("logits", "^:")):
                axis.plot(epochs, [record["moved"][what] for record in records], look, label=what, markersize=3)
            axis.set(title=name, yscale="log")
        label_panels(axes, len(rows), "epoch", "change / spread")
        used[0].legend(fontsize=6)
    return drawing
