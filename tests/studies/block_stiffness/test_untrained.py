"""Untrained networks of the paper's geometry: three readings of the same networks, set beside the tables."""

import numpy as np
import pytest

from netbridge.data import datasets
from studies.block_stiffness import paper, untrained
from studies.block_stiffness.report import tables


def made_up():
    """Rows in which every number says where it is from: depth, block, reading and seed."""
    return [
        {"depth": depth, "seed": seed, "reading": reading, "block": block, "negative": 10.0 * block + seed, "S": -block}
        for depth in paper.BLOCKS
        for block, shape in enumerate(paper.shapes(depth), 1)
        for reading in ("slices", "block", "residual")
        for seed in untrained.SEEDS
        if shape.square or reading == "slices"
    ]


def test_columns_stand_beside_the_block_that_was_printed():
    found = untrained.beside_the_tables(made_up(), (24, 24))
    numbers = np.r_[1:9, 1:17]
    np.testing.assert_allclose(found.ours["slices"], 10.0 * numbers + 1.0)
    np.testing.assert_allclose(found.slices, -numbers)
    np.testing.assert_array_equal(np.isnan(found.ours["block"]), ~found.square)
    assert (found.percent[7], found.index[-1], found.seeds) == (21.92, -16.82, 3)
    assert (~found.square).sum() == 6
    rows = tables.untrained_rows(made_up())
    assert [row["%, branch"] for row in rows if row["block"] == 3] == ["no eigenvalues", 31.0]
    assert rows[0]["over seeds"] == "10.00 to 12.00"


@pytest.mark.slow
def test_the_same_networks_are_looked_at_in_three_readings():
    rows = untrained.measure(datasets.load("digits"), "smoke", {"workers": 1})
    found = untrained.beside_the_tables(rows, (24, 24))
    for reading, column in found.ours.items():
        np.testing.assert_array_equal(np.isfinite(column), found.square | (reading == "slices"))
    opening, others = (np.abs(found.slices[chosen]).mean() for chosen in (~found.square, found.square))
    assert opening < 0.7 * others  # there is no identity on the diagonal
