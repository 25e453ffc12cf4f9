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


def looks(subjects) -> dict[str, tuple[str, str]]:
    """A colour and a mark per name of a network; constant step sizes are black."""
    names = groups(subjects)
    return looks_of(names, next((name for name in names if name.split(",")[0] == "constant"), ""))


def looks_of(names: Iterable[str], black: str) -> dict[str, tuple[str, str]]:
    """A colour and a mark for each name, `black` black with the first mark; the colours of eleven others all differ."""
    others = [name for name in names if name != black]
    found = {name: (COLOURS[k % len(COLOURS)], MARKS[1 + k % (len(MARKS) - 1)]) for k, name in enumerate(others)}
    return {name: found.get(name, (BLACK, MARKS[0])) for name in names}


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
