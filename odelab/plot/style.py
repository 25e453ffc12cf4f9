"""One look for every figure of the laboratory."""

import contextlib
import functools
import io
from pathlib import Path
from typing import Any

# Okabe and Ito's palette: told apart by readers who do not see red and green.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8A00")
GREY = "#808080"
WIDTH = 6.4  # inches, a text column

SETTINGS: dict[Any, Any] = {
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "odelab",  # the same figure twice is the same file
}


@contextlib.contextmanager
def panel(ax=None, height=3.6, width=WIDTH):
    """`with panel(ax) as (drawing, axes):` - the axes that were given, or those of a new figure."""
    if ax is not None:
        import matplotlib as mpl

        with mpl.rc_context(SETTINGS):
            yield ax.figure, ax
    else:
        with figure(height=height, width=width) as (drawing, axes):
            yield drawing, axes[0, 0]


@contextlib.contextmanager
def figure(rows=1, columns=1, height=None, width=WIDTH, **options):
    """`with figure(2) as (drawing, axes):` - a new figure in the house's style, axes as an array of rows x columns."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        raise ModuleNotFoundError("figures need matplotlib: pip install matplotlib", name="matplotlib") from None
    from cycler import cycler

    with mpl.rc_context({**SETTINGS, "axes.prop_cycle": cycler(color=COLOURS)}):
        drawing = figure_class()(figsize=(width, height or 2.2 * rows + 0.6), dpi=SETTINGS["savefig.dpi"])
        yield drawing, drawing.subplots(rows, columns, squeeze=False, **options)


@functools.cache
def figure_class():
    """matplotlib's Figure, which a notebook shows without pyplot."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self):
            data = io.BytesIO()
            self.savefig(data, format="png", dpi=110)
            return data.getvalue()

    return ShownFigure


def save(drawing, path, formats=("png", "svg")) -> list:
    """Write a figure beside `path` in each format, laid out as in the first; returns the paths written."""
    import matplotlib as mpl

    written, layout = [], drawing.get_layout_engine()
    with mpl.rc_context(SETTINGS):
        for extension in formats:
            target = Path(path).with_suffix(f".{extension}")
            # no date inside: the same numbers give the same bytes
            drawing.savefig(target, metadata={"Date": None} if extension == "svg" else None)
            drawing.set_layout_engine("none")  # to find places for everything takes a third of the time
            written.append(target)
    drawing.set_layout_engine(layout)
    return written
