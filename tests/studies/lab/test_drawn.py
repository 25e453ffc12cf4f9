"""The CSV beside a figure has the numbers that the figure draws, in the coordinates of its axes."""

import matplotlib.collections
import numpy as np

from odelab.plot import style
from studies.lab.report.drawn import rows_of


def rows(draw):
    with style.figure() as (drawing, axes):
        draw(axes[0, 0])
        axes[0, 0].set_title("A panel\nof two lines", loc="left")
    found = list(rows_of(drawing))
    assert {row["panel"] for row in found} <= {"A panel of two lines"}
    return found


def numbers(found, *columns):
    return [tuple(float(row[column]) for column in columns) for row in found]


def test_lines_points_and_intervals():
    found = rows(lambda axis: axis.plot([1, 2], [3, 4], label="a line"))
    assert numbers(found, "x", "y") == [(1, 3), (2, 4)]
    assert {row["label"] for row in found} == {"a line"}
    assert numbers(rows(lambda axis: axis.scatter([1, 2], [3, 4])), "x", "y") == [(1, 3), (2, 4)]
    found = rows(lambda axis: axis.errorbar([1.0], [2.0], yerr=[[0.5], [1.0]], fmt="none"))
    assert numbers(found, "x", "y") == [(1, 1.5), (1, 3)]
    assert found[0]["what"] == "intervals"


def test_maps_have_the_middles_of_their_cells():
    values = np.arange(6.0).reshape(2, 3)
    wanted = [(x, y, values[y, x]) for y in range(2) for x in range(3)]
    assert numbers(rows(lambda axis: axis.imshow(values)), "x", "y", "value") == wanted
    found = rows(lambda axis: axis.imshow(values, origin="lower", extent=(-0.5, 2.5, -0.5, 1.5)))
    assert numbers(found, "x", "y", "value") == wanted
    assert numbers(rows(lambda axis: axis.pcolormesh(values)), "x", "y") == [(x + 0.5, y + 0.5) for x, y, _ in wanted]
    smooth = rows(lambda axis: axis.pcolormesh([0, 1, 2], [0, 1], values, shading="gouraud"))
    assert numbers(smooth, "x", "y", "value") == wanted


def test_bars_and_what_is_no_number():
    assert numbers(rows(lambda axis: axis.bar([1.0], [5.0], width=1.0)), "x", "y") == [(1.5, 5)]
    assert rows(lambda axis: axis.axhline(3.0)) == []  # marks a place of the axis
    assert rows(lambda axis: axis.imshow(np.zeros((2, 2, 3)))) == []  # a picture in colours
    empty = matplotlib.collections.LineCollection([])
    assert rows(lambda axis: axis.add_collection(empty)) == []
