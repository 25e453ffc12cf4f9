"""Every figure of `detect`: pictures with boxes, AP with intervals, loss curves, stiffness before and after."""

import numpy as np

from netbridge.detect.coco import Coco
from netbridge.detect.evaluation import NAMES
from odelab.plot import style
from studies.detect import design
from studies.detect.findings import ap, by_row, stiffness
from studies.lab.figures import MARKS, hide_scales, looks_of, reach_of
from studies.lab.statistics import mean_over_networks
from studies.lab.stiffness import QUANTITIES, QUANTITY_NAMES, READINGS, wording

SURE = 0.5  # detections below this score are not drawn


def colours_by_row(rows) -> dict[str, str]:
    """A colour per row; constant step sizes are black."""
    return {row: colour for row, (colour, _) in looks_of(rows, "constant").items()}


def detection_figure(data: Coco, found: list):
    """The first test pictures: what is there in white and dashed, what each row's first detector finds in colour."""
    count = min(design.SHOWN, len(data.test))
    with style.figure(len(found), count, height=1.55 * len(found) + 0.3) as (drawing, axes):
        for line, one in zip(axes, found, strict=True):
            for number, axis in enumerate(line):
                draw_picture(axis, data, number, one.numbers["shown"])
            name = f"{one.specification['controller']}, seed {one.specification['seed']}"
            line[0].set_title(name, loc="left")
    return drawing


def draw_picture(axis, data: Coco, number: int, detections: list[dict]):
    from matplotlib.patches import Rectangle

    image, colours = data.test.images[number], [style.COLOURS[k % len(style.COLOURS)] for k in (1, 5, 4, 0, 3, 2, 7)]
    axis.imshow(np.asarray(data.test.picture(number)))
    for left, top, right, bottom in data.test.truths[number].boxes.tolist():
        frame = Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor="white", linestyle=":")
        frame.set_linewidth(1.6)
        axis.add_patch(frame)
    for one in detections:
        if one["image_id"] != image["id"] or one["score"] < SURE:
            continue
        left, top, width, height = one["bbox"]
        kind = data.categories.index(one["category_id"])
        colour = colours[kind % len(colours)]
        axis.add_patch(Rectangle((left, top), width, height, fill=False, edgecolor=colour, linewidth=1.1))
        words = f"{data.names[kind]} {one['score']:.2f}"
        box = {"facecolor": colour, "edgecolor": "none", "pad": 0.6}
        axis.text(left, top, words, fontsize=4.5, color="white", verticalalignment="bottom", bbox=box, clip_on=True)
    hide_scales(axis)
    axis.spines[:].set_visible(False)


def precision_figure(found: list):
    """AP, AP50 and AP75 by row."""
    panels = {name: by_row(found, lambda one, n=name: one.numbers[n]) for name in NAMES[:3]}
    return rows_figure(panels, "per cent")


def parts_figure(found: list):
    """TNS of the trained backbones by row, and what it is a product of: slope index, mean of the sample."""
    reading = READINGS[0]
    panels = {
        QUANTITY_NAMES[what]: by_row(found, lambda one, what=what: stiffness(one, what, QUANTITIES[what][0]))
        for what in QUANTITIES
    }
    return rows_figure(panels, wording(*reading))


def rows_figure(panels: dict[str, dict[str, list[float]]], label: str):
    """Numbers by row, a panel each: every seed a mark, the mean with Student's interval over seeds."""
    with style.figure(1, len(panels), height=2.5) as (drawing, axes):
        for axis, (name, rows) in zip(axes[0], panels.items(), strict=True):
            groups = {row: values for row, values in rows.items() if values}
            colours = colours_by_row(groups)
            for place, (row, values) in enumerate(groups.items()):
                axis.plot(np.full(len(values), place), values, ".", color=style.GREY, markersize=4)
                mean = mean_over_networks(values)
                reach = reach_of([mean]) if len(values) > 1 else None
                axis.errorbar(place + 0.2, mean.value, reach, fmt="o", color=colours[row], markersize=4, capsize=2)
            axis.set_xticks(range(len(groups)), list(groups), rotation=35, ha="right")
            axis.set_title(name, loc="left")
        axes[0, 0].set_ylabel(label)
    return drawing


def loss_figure(found: list):
    """The training loss of every detector over the epochs."""
    colours = colours_by_row(by_row(found, ap))
    with style.figure(height=2.4) as (drawing, axes):
        for one in found:
            row, seed = one.specification["controller"], one.specification["seed"]
            log = [record for record in one.numbers["log"] if "loss" in record]
            epochs, losses = ([record[key] for record in log] for key in ("epoch", "loss"))
            axes[0, 0].plot(epochs, losses, "o-", markersize=2.5, color=colours[row], label=row if seed == 0 else None)
        axes[0, 0].set(xlabel="epoch", ylabel="sum of the four losses")
        axes[0, 0].locator_params(axis="x", integer=True)
        axes[0, 0].legend()
    return drawing


def stiffness_figure(found: list):
    """NSI of every block of the backbone, before and after training: mean over pictures, thin lines are seeds."""
    rows = [row for row, values in by_row(found, ap).items() if values]
    colours = colours_by_row(rows)
    with style.figure(1, 2, height=2.8, sharey=True) as (drawing, axes):
        for axis, moment in zip(axes[0], ("before", "after"), strict=True):
            for mark, row in zip(MARKS, rows, strict=False):
                own = [one for one in found if one.specification["controller"] == row]
                curves = np.array([one.numbers[moment]["nsi"] for one in own])
                first = np.array(own[0].numbers["first"])
                blocks = np.arange(1, curves.shape[1] + 1)
                for curve in curves:
                    axis.plot(blocks, curve, color=colours[row], linewidth=0.5, alpha=0.4)
                mean = curves.mean(0)
                axis.plot(blocks, mean, color=colours[row], label=row)
                axis.plot(blocks[~first], mean[~first], mark, color=colours[row], markersize=4)
                axis.plot(blocks[first], mean[first], mark, color=colours[row], markersize=4, markerfacecolor="white")
            axis.set_title(f"{moment} training", loc="left")
            axis.set_xlabel("block of the backbone")
        axes[0, 0].set_ylabel("NSI (slope)")
        drawing.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=len(rows))
    return drawing


def relation_figure(found: list):
    """AP against TNS of the trained backbone, under all four readings."""
    colours = colours_by_row(by_row(found, ap))
    with style.figure(1, 4, height=2.6, sharey=True) as (drawing, axes):
        for k, (axis, reading) in enumerate(zip(axes[0], READINGS, strict=True)):
            for one in found:
                row = one.specification["controller"]
                label = row if one.specification["seed"] == 0 else None
                axis.plot(one.numbers["after"]["tns"][k], ap(one), "o", markersize=3.5, color=colours[row], label=label)
            axis.set_title(wording(*reading).replace(", ", ",\n"), loc="left")
            axis.set_xlabel("TNS of the backbone")
            axis.locator_params(axis="x", nbins=4)
        axes[0, 0].set_ylabel("AP (%)")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(colours))
    return drawing
