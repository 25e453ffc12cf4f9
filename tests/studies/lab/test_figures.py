"""Looks of networks in the figures: none is taken for another, and labels can be read."""

import itertools

import numpy as np
import pytest

from studies.lab.figures import BLACK, COLOURS, MARKS, heat_map, looks_of


@pytest.mark.parametrize("count", [1, 10, 11])
def test_eleven_networks_beside_the_black_one_have_colours_of_their_own(count):
    """Ten controllers were drawn in eight colours: SE and StepNet were both blue."""
    names = ["plain", *(f"c{k}" for k in range(count))]
    found = looks_of(names, "plain")
    assert list(found) == names
    assert found["plain"] == (BLACK, MARKS[0])
    assert len({colour for colour, _ in found.values()}) == count + 1


def test_more_differ_by_colour_and_mark():
    found = looks_of([f"c{k}" for k in range(60)], "none")
    assert len(set(found.values())) == 60
    assert BLACK not in COLOURS


@pytest.mark.parametrize("blocks", [3, 18, 27, 54, 81])
def test_labels_of_a_heat_map_do_not_overlap_whatever_the_depth(blocks):
    drawing = heat_map(np.zeros((4, blocks)), list("abcd"), [str(k + 1) for k in range(blocks)], "tau", numbers=False)
    drawing.canvas.draw()
    boxes = [label.get_window_extent() for label in drawing.axes[0].get_xticklabels()]
    assert len(boxes) > min(blocks, 8) - 1
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
