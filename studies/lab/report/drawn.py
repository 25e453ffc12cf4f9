"""What a figure draws, as rows of numbers: the CSV that stands beside every figure."""

from collections.abc import Iterator

import numpy as np


def rows_of(drawing) -> Iterator[dict]:
    """The points, lines, intervals, bars and maps of a figure, in the coordinates of its axes.

    drawing  a figure of matplotlib

    Yields a row per point: panel (its title, else its number), what it belongs to, its label, x, y, and the value of a
    map there. Pictures in colours and lines that mark a place on an axis are left out.
    """
    for number, axis in enumerate(drawing.axes, 1):
        panel = " ".join((axis.get_title(loc="left") or axis.get_title() or str(number)).split())
        for what, label, x, y, values in [*lines(axis), *collections(axis), *maps(axis), *bars(axis)]:
            for place, (one, other) in enumerate(zip(x, y, strict=True)):
                value = "" if values is None else f"{values[place]:.6g}"
                row = {"panel": panel, "what": what, "label": label, "x": f"{one:.6g}", "y": f"{other:.6g}"}
                yield {**row, "value": value}


def named(artist) -> str:
    """The label of an artist; those that matplotlib gives begin with an underscore."""
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def lines(axis) -> Iterator[tuple]:
    for line in axis.lines:
        if all(line.get_transform().contains_branch_seperately(axis.transData)):  # both x and y are the data's
            x, y = np.asarray(line.get_xydata(), dtype=float).T
            yield "line", named(line), x, y, None


def collections(axis) -> Iterator[tuple]:
    from matplotlib.collections import LineCollection, PathCollection, QuadMesh

    for one in axis.collections:
        if isinstance(one, QuadMesh):
            corners, values = np.asarray(one.get_coordinates(), dtype=float), filled(one.get_array())
            if values.shape != corners.shape[:2]:  # a value per cell: its middle
                corners = (corners[:-1, :-1] + corners[1:, 1:]) / 2
            yield "map", named(one), corners[..., 0].ravel(), corners[..., 1].ravel(), values.ravel()
        elif isinstance(one, LineCollection):
            points = [filled(segment) for segment in one.get_segments()]
            yield "intervals", named(one), *np.concatenate([np.empty((0, 2)), *points]).T, None
        elif isinstance(one, PathCollection):
            yield "points", named(one), *filled(one.get_offsets()).reshape(-1, 2).T, None


def filled(values) -> np.ndarray:
    """The numbers of an array, NaN where they are masked."""
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)


def maps(axis) -> Iterator[tuple]:
    for image in axis.images:
        values = filled(image.get_array())
        if values.ndim == 2:
            left, right, bottom, top = image.get_extent()
            first, last = (bottom, top) if image.origin == "lower" else (top, bottom)
            x, y = (middles(*ends) for ends in ((left, right, values.shape[1]), (first, last, values.shape[0])))
            yield "map", named(image), np.tile(x, len(y)), np.repeat(y, len(x)), values.ravel()


def middles(start: float, end: float, count: int) -> np.ndarray:
    """The middles of `count` cells from `start` to `end`."""
    edges = np.linspace(start, end, count + 1)
    return (edges[:-1] + edges[1:]) / 2


def bars(axis) -> Iterator[tuple]:
    from matplotlib.patches import Rectangle

    shown = [one for one in axis.patches if isinstance(one, Rectangle)]
    corners = [(one.get_x() + one.get_width(), one.get_y() + one.get_height()) for one in shown]
    if shown:
        yield "bars", "", *np.array(corners, dtype=float).T, None
