"""NSI along depth: of single images, and averaged over images for every network."""

import numpy as np

from odelab.plot import style
from studies.lab.networks import groups

DASHES = ("-", "--", ":", "-.")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
SYMBOL = {"slope": r"$\|f(x_t)\|\,/\,\|x_t\|$", "increment": r"$\|x_{t+1}-x_t\|\,/\,\|x_t\|$"}


def looks(subjects) -> dict[str, tuple[str, str]]:
    """A colour and a mark per name, constant step sizes black."""
    colours = [*(c for c in style.COLOURS if c != "#000000"), "#6A3D9A"]
    found, used = {}, 0
    for name in groups(subjects):
        if name.split(",")[0] == "constant" and "#000000" not in [colour for colour, _ in found.values()]:
            found[name] = "#000000", MARKS[0]
        else:
            found[name] = colours[used % len(colours)], MARKS[(used + 1) % len(MARKS)]
            used += 1
    return found


def panels(count: int, columns: int = 3, height: float = 1.75, extra: float = 0.6, **options):
    """A figure of `count` panels in rows of three; the panels left over are blank."""
    columns = min(columns, count)
    rows = -(-count // columns)
    return style.figure(rows, columns, height=height * rows + extra, **options)


def filled(axes, count):
    """The axes in use, and the rest put out of sight."""
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.set_axis_off()
    return flat[:count]


def bottom(axes, count, columns):
    """The lowest axis in use of each column."""
    return [list(axes.flat)[i] for i in range(count) if i + columns >= count]


def stages_of(axis, record):
    """Lines between stages; hollow where a block opens its stage and is not counted."""
    for k in np.flatnonzero(record.first):
        if k:
            axis.axvline(k + 0.5, color=style.GREY, linewidth=0.6, linestyle=(0, (1, 2)))
    axis.set_xlim(0.5, len(record.names) + 0.5)
    axis.set_xticks(range(1, len(record.names) + 1, max(1, len(record.names) // 9)))


def trajectory(axis, record, values, **options):
    """One line per stage, broken where the state changes its shape; the opening blocks hollow."""
    blocks = np.arange(1, len(values) + 1)
    colour = options.pop("color")
    mark, label = options.pop("marker", None), options.pop("label", None)
    for stage in np.unique(record.stage):
        at = record.stage == stage
        axis.plot(blocks[at], values[at], color=colour, label=label, **options)
        label = None
        if mark is not None:
            inner, outer = at & ~record.first, at & record.first
            axis.plot(blocks[inner], values[inner], mark, color=colour, markersize=3.2)
            axis.plot(blocks[outer], values[outer], mark, color=colour, markersize=3.2, markerfacecolor="white")


def shown_first(subjects, count=4) -> list[int]:
    """The first network of a few names: those the paper shows before the others."""
    places = [members[0] for members in groups(subjects).values()]
    wanted = ("constant", "SE", "StepNet")
    return sorted(places, key=lambda p: (subjects[p].controller not in wanted, p))[:count]


def single_figure(results, of, images=6):
    """Figures 1 and 3: a few images through the constant network and through networks with attention."""
    firsts = shown_first([r.subject for r in results])
    with panels(len(firsts), columns=2, height=2.1, sharex=False, sharey=True) as (drawing, axes):
        shown = filled(axes, len(firsts))
        for axis, place in zip(shown, firsts, strict=True):
            found = results[place]
            record = found.records[of]
            for i in range(min(images, len(record))):
                trajectory(
                    axis, record, record.nsi[i], color=style.COLOURS[i % 6], marker="o", linewidth=0.9, label=str(i)
                )
            stages_of(axis, record)
            seed = "" if found.subject.seed is None else f", seed {found.subject.seed}"
            axis.set_title(f"{found.name}{seed}", loc="left")
        finish(drawing, axes, len(firsts), of)
        drawing.legend(*shown[0].get_legend_handles_labels(), title="test image", loc="outside right upper")
    return drawing


def averaged_figure(results, of):
    """Figures 3 and 10: the mean over images, a line per seed; the band holds nine images of ten of the first seed."""
    names = groups([r.subject for r in results])
    colours = looks([r.subject for r in results])
    with panels(len(names), sharex=False, sharey=True) as (drawing, axes):
        shown = filled(axes, len(names))
        for axis, (name, places) in zip(shown, names.items(), strict=True):
            record = results[places[0]].records[of]
            band(axis, record, colours[name][0])
            for line, place in enumerate(places):
                found = results[place]
                trajectory(
                    axis,
                    found.records[of],
                    found.records[of].nsi.mean(axis=0),
                    color=colours[name][0],
                    marker="o" if line == 0 else None,
                    linestyle=DASHES[line % len(DASHES)],
                    label=None if found.subject.seed is None else f"seed {found.subject.seed}",
                )
            stages_of(axis, record)
            axis.set_title(name, loc="left")
        finish(drawing, axes, len(names), of)
        handles, labels = max((axis.get_legend_handles_labels() for axis in shown), key=lambda pair: len(pair[1]))
        if len(labels) > 1:
            for handle in handles:
                handle.set_markersize(0)
            drawing.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return drawing


def band(axis, record, colour):
    blocks = np.arange(1, len(record.names) + 1)
    low, high = np.percentile(record.nsi, [5, 95], axis=0)
    for stage in np.unique(record.stage):
        at = record.stage == stage
        axis.fill_between(blocks[at], low[at], high[at], color=colour, alpha=0.15, linewidth=0)


def finish(drawing, axes, count, of):
    for axis in bottom(axes, count, axes.shape[1]):
        axis.set_xlabel("block")
    for row in axes:
        row[0].set_ylabel("NSI")
    axes[0, 0].set_ylim(bottom=0)  # shared by all; set last, for it ends the scaling to what is drawn
    drawing.suptitle(f"NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
