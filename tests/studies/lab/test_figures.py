"""Looks of networks in the figures: none is taken for another."""

import pytest

from studies.lab.figures import BLACK, COLOURS, MARKS, looks_of


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
