"""What figures of several studies share: colours and marks of networks, panels, heat maps, the learning curve."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from odelab.plot import style
from studies.lab.networks import groups

LABELS = 18  # of so many columns of a heat map there is room for all names, if these are numbers
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


BLACK = "#000000"
COLOURS = [*(colour for colour in style.COLOURS if colour != BLACK), "#6A3D9A", "#A6611A", "#B2182B", "#1B5E20"]
DASHES = ("-", "--", ":", "-.")
SYMBOL = {"slope": r"$\|f(x_t)\|\,/\,\|x_t\|$", "increment": r"$\|x_{t+1}-x_t\|\,/\,\|x_t\|$"}
CLOUD = 1500  # points in a cloud: with more of them they cover one another


def looks(subjects) -> dict[str, tuple[str, str]]:
    """A colour and a mark per name of a network; constant step sizes are black."""
    names = groups(subjects)
    return looks_of(names, next((name for name in names if name.split(",")[0] == "constant"), ""))


def looks_of(names: Iterable[str], black: str) -> dict[str, tuple[str, str]]:
    """A colour and a mark for each name, `black` black with the first mark; the colours of eleven others all differ."""
    others = [name for name in names if name != black]
    found = {name: (COLOURS[k % len(COLOURS)], MARKS[1 + k % (len(MARKS) - 1)]) for k, name in enumerate(others)}
    return {name: found.get(name, (BLACK, MARKS[0])) for name in names}


def legend_below(drawing, axis, columns: int = 5) -> None:
    """One legend below all panels of a figure, with the names of what is in this one of them."""
    drawing.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def in_a_row(count: int) -> int:
    """How many panels stand in a row: two where there are two or four panels, else three."""
    return 2 if count in (2, 4) else 3


def panels(count: int, columns: int = 3, height: float = 1.75, extra: float = 0.6, **options):
    """A figure of `count` panels, `columns` in a row, `height` inches each; `use_axes` blanks the panels left over."""
    columns = min(columns, count)
    rows = -(-count // columns)
    return style.figure(rows, columns, height=height * rows + extra, **options)


def use_axes(axes, count: int) -> list:
    """The first `count` axes; the others are made invisible."""
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.set_axis_off()
    return flat[:count]


def label_panels(axes, count: int, x: str, y: str) -> None:
    """Name both axes of `count` panels: x below the lowest panel in use of each column, y beside the first one."""
    for place in range(max(0, count - axes.shape[1]), count):
        axes.flat[place].set_xlabel(x)
        axes.flat[place].xaxis.set_tick_params(labelbottom=True)
    for row in axes:
        row[0].set_ylabel(y)


def hide_scales(axis) -> None:
    """No ticks and no grid, as suits a picture."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)


def reach_of(estimates) -> np.ndarray:
    """How far the interval of each estimate reaches below and above it, (2, n), as `errorbar` takes it."""
    return np.array([[e.value - e.low for e in estimates], [e.high - e.value for e in estimates]]).clip(0)


def plain_ticks(*sides):
    """1, 3, 10, 30 on logarithmic axes, as they are and not as powers; 2 and 5 as well where the axis is short."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for side in sides:
        low, high = side.get_view_interval()
        short = 0.0 < low < high < 20.0 * low
        side.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0) if short else (1.0, 3.0)))
        side.set_major_formatter("{x:g}")
        side.set_minor_formatter(NullFormatter())


def heat_map(table, rows: list[str], columns: list[str], label: str, title: str = "", numbers: bool = True):
    """Correlations between -1 and 1 as colours, with their numbers in the cells; a dot stands for NaN."""
    with style.figure(height=0.25 * len(rows) + 1.5) as (drawing, axes):
        plane = axes[0, 0]
        image = plane.imshow(table, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        for (i, j), value in np.ndenumerate(table) if numbers else ():
            word = "·" if np.isnan(value) else f"{value:+.2f}"
            colour = "white" if abs(value) > 0.65 else "black"
            plane.text(j, i, word, ha="center", va="center", fontsize=7 if len(columns) <= 12 else 5, color=colour)
        every = -(-len(columns) // LABELS)
        plane.set_xticks(range(0, len(columns), every), columns[::every])
        plane.set_yticks(range(len(rows)), rows)
        plane.grid(False)
        plane.spines[:].set_visible(False)
        plane.tick_params(length=0)
        plane.set_title(title, loc="left")
        drawing.colorbar(image, ax=plane, label=label)
    return drawing


def row_name(network) -> str:
    """A network's name with its seed, as far as that is known."""
    return network.name if network.subject.seed is None else f"{network.name}, seed {network.subject.seed}"


def mark_stages(axis, record):
    """Lines between stages; hollow where a block opens its stage and is not counted."""
    for k in np.flatnonzero(record.first):
        if k:
            axis.axvline(k + 0.5, color=style.GREY, linewidth=0.6, linestyle=(0, (1, 2)))
    axis.set_xlim(0.5, len(record.names) + 0.5)
    axis.set_xticks(range(1, len(record.names) + 1, max(1, len(record.names) // 9)))


def draw_trajectory(axis, record, values, **options):
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


def draw_cloud(network, of, blocks, coefficients, called="block"):
    """Figure 9a: the mean gate of an image against its NSI, at three blocks of one network; `called` names a block."""
    with style.figure(1, len(blocks), height=2.5) as (drawing, axes):
        record = network.records[of]
        for axis, k in zip(axes[0], blocks, strict=True):
            axis.plot(record.nsi[:CLOUD, k], network.gates[:CLOUD, k], ".", markersize=2.5, alpha=0.5, rasterized=True)
            axis.set_title(rf"{called} {k + 1}, $\rho$ = {coefficients[k]:+.2f}", loc="left")
            axis.set_xlabel("NSI")
            axis.ticklabel_format(useOffset=False)
            axis.locator_params(nbins=4)
        axes[0, 0].set_ylabel("mean step size h")
        drawing.suptitle(f"{row_name(network)}; NSI = {SYMBOL[of]}", x=0.01, ha="left", fontsize=9)
    return drawing


def learning_curve(log: Path) -> list[Path]:
    """Loss, error rates and learning rate over the epochs of a training log, beside the log as PNG and SVG."""
    head, *records = [json.loads(line) for line in log.read_text().splitlines()]
    records = [record for record in records if "loss" in record]
    epochs = [record["epoch"] for record in records]
    with style.figure(1, 3, height=2.4) as (drawing, axes):
        loss, error, rate = axes[0]
        loss.plot(epochs, [record["loss"] for record in records], "o-", markersize=2.5)
        loss.set(xlabel="epoch", title="training loss", yscale="log")
        for kind, look in (("train", "-"), ("test", "o-")):
            shown = [record for record in records if f"{kind}_accuracy" in record]
            errors = [100 - 100 * record[f"{kind}_accuracy"] for record in shown]
            error.plot([record["epoch"] for record in shown], errors, look, markersize=2.5, label=kind)
        error.set(xlabel="epoch", title="errors, %", ylim=(0, None))
        error.legend()
        rate.plot(epochs, [record["rate"] for record in records], color=style.COLOURS[2])
        rate.set(xlabel="epoch", title="learning rate", ylim=(0, None))
        drawing.suptitle(f"{head.get('controller', 'network')}, seed {head['seed']}, {head['dataset']}", fontsize=9)
    return style.save(drawing, log.with_suffix(""))
