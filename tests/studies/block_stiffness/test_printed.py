"""What the block-level paper prints, what follows from it without a network, and what untrained networks have there."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import netbridge as nb
from netbridge.data import datasets
from studies.block_stiffness import printed
from studies.lab.verdicts import CONTRADICTED, UNDECIDED


def test_all_printed_counts_are_those_of_slices():
    """Tables 10 and 11: elements divided by the height of the input, in 24 of 24 rows and in both totals."""
    assert printed.agreeing_counts() == (24, 24)
    for depth, total, elements in ((18, 62_914_560, 801_112_064), (34, 115_343_360, 1_275_068_416)):
        assert sum(printed.EIGENVALUES[depth]) == total
        assert sum(printed.ELEMENTS[depth]) == elements == sum(shape.elements for shape in printed.shapes(depth))


def test_the_jacobians_have_far_fewer_and_three_have_none():
    shapes = printed.shapes(18)
    assert [shape.eigenvalues for shape in shapes] == [16384, 16384, None, 8192, None, 4096, None, 2048]


def test_the_labels_are_balanced_in_the_tables():
    """The mean of the ten label rows is the mean of the block rows, so labels and blocks are of the same images."""
    for depth in (18, 34):
        assert np.mean(printed.INDEX_BY_LABEL[depth]) == pytest.approx(np.mean(printed.INDEX[depth]), abs=0.01)
        assert np.mean(printed.PERCENT_BY_LABEL[depth]) == pytest.approx(np.mean(printed.PERCENT[depth]), abs=0.01)
        index, percent = printed.OVERALL[depth]
        assert np.mean(printed.INDEX[depth]) == pytest.approx(index, abs=0.01)
        assert np.mean(printed.PERCENT[depth]) == pytest.approx(percent, abs=0.01)


def test_labels_matter_by_the_papers_own_tables():
    """Tables 3 and 6: two networks agree on which labels have many negative eigenvalues."""
    assert np.corrcoef(printed.PERCENT_BY_LABEL[18], printed.PERCENT_BY_LABEL[34])[0, 1] == pytest.approx(
        0.92, abs=0.01
    )
    assert np.argmax(printed.PERCENT_BY_LABEL[18]) == np.argmax(printed.PERCENT_BY_LABEL[34]) == 3


def test_the_index_contradicts_the_papers_reading_where_it_is_significant():
    """S is negative and stiffer is more negative: r(accuracy, S) < 0 says the stiffer the block, the better."""
    for depth, late in ((18, (6, 8)), (34, (10, 11, 12, 15, 16)), (50, (1,))):
        for block in late:
            row = printed.CORRELATIONS[depth][block - 1]
            assert row[0] < 0 < row[4]


def test_no_block_has_a_majority_of_negative_eigenvalues():
    assert max(*printed.PERCENT[18], *printed.PERCENT[34], printed.OVERALL[50][1]) < 50


def test_the_two_samples_of_images_are_not_the_same():
    """The printed correlations and p-values of Tables 1 and 4 allow numbers of images that do not meet."""
    ranges = {}
    for depth in (18, 34):
        pairs = [(row[i], row[i + 1]) for row in printed.CORRELATIONS[depth] for i in (0, 2, 4, 6)]
        ranges[depth] = printed.sample_sizes(pairs)
    assert ranges[18] == pytest.approx((2943, 3895), abs=5)
    assert ranges[34] == pytest.approx((1064, 1189), abs=5)


@given(st.integers(200, 4000), st.lists(st.floats(-0.3, 0.3), min_size=20, max_size=40))
@settings(deadline=None, max_examples=25)
def test_the_number_of_images_is_found_again(n, correlations):
    pairs = [(round(r, 2), round(printed.p_value(abs(r), n), 2)) for r in correlations]
    low, high = printed.sample_sizes(pairs)
    assert low <= n <= high


def test_correlations_that_fall_when_their_number_is_counted():
    """108 tests at .05: p < .05 / 108 asks |r| >= .06 of Table 1 and .104 of Table 4, at the images they allow."""
    by_block = sum(4 * len(rows) for rows in printed.CORRELATIONS.values())
    chance = 0.05 / (by_block + 2 * 4)  # two rows are of all blocks
    assert chance == pytest.approx(0.05 / 108)
    assert printed.p_value(0.06, 3419) < chance < printed.p_value(0.055, 3419)
    assert printed.p_value(0.104, 1127) == pytest.approx(chance, rel=0.05)
    fallen = {}
    for name, column in (("accuracy, S", 0), ("loss, percentage", 6)):
        rows = printed.CORRELATIONS[34]
        fallen[name] = {
            block
            for block, row in enumerate(rows, 1)
            if row[column + 1] < 0.05 and printed.p_value(abs(row[column]) + 0.005, 1189) > chance
        }
    assert fallen == {"accuracy, S": {1, 6, 8, 9}, "loss, percentage": {14}}


def test_blocks_lie_too_far_apart_to_be_pooled():
    """A correlation over images of all blocks together would be one of block means."""
    for table in (printed.INDEX, printed.PERCENT):
        for depth in (18, 34):
            sizes = np.abs(table[depth])
            assert 10 <= sizes.max() / sizes.min() < 16


def test_the_index_doubles_in_two_of_the_last_eight_blocks():
    factors = np.array(printed.INDEX[34][-8:]) / np.mean(printed.INDEX[34])
    np.testing.assert_allclose(factors, (1.86, 1.21, 1.33, 1.66, 1.44, 0.24, 1.73, 2.15), atol=0.01)


def test_the_last_blocks_of_resnet_50_are_of_one_size():
    """Bottlenecks that end in 2,048 channels: blocks 15 and 16 map 2,048 x 2 x 2 to the same."""
    assert printed.Shape(2048, 2, 2048, 2).elements == 67_108_864 == (2048 * 2 * 2) ** 2


def test_the_papers_columns_are_those_of_the_papers_networks():
    with torch.device("meta"):
        nets = {depth: nb.resnet(depth, 10, stem="cifar-pooled") for depth in (18, 34, 50)}
        other = nb.resnet(50, 10, widths=(32, 64, 128, 256))
    assert {depth: printed.depth_of(net.config) for depth, net in nets.items()} == {18: 18, 34: 34, 50: 50}
    assert printed.depth_of(other.config) is None
    assert printed.printed_block(18, 8) == (-12.99, 21.92)
    assert printed.printed_block(34, 16) == (-16.82, 22.34)
    assert [printed.printed_block(50, number) for number in (1, 15, 16)] == [None, None, (-35.32, 31.96)]
    assert printed.printed_block(None, 1) is None


def made_up():
    """Rows in which every number says where it is from: depth, block, reading and seed."""
    return [
        {"depth": depth, "seed": seed, "reading": reading, "block": block, "negative": 10.0 * block + seed, "S": -block}
        for depth in printed.BLOCKS
        for block, shape in enumerate(printed.shapes(depth), 1)
        for reading in ("slices", "block", "residual")
        for seed in printed.SEEDS
        if shape.square or reading == "slices"
    ]


def test_columns_stand_beside_the_block_that_was_printed():
    found = printed.beside_the_tables(made_up())
    numbers = np.r_[1:9, 1:17]
    np.testing.assert_allclose(found.ours["slices"], 10.0 * numbers + 1.0)
    np.testing.assert_allclose(found.slices, -numbers)
    np.testing.assert_array_equal(np.isnan(found.ours["block"]), ~found.square)
    assert (found.percent[7], found.index[-1], found.seeds) == (21.92, -16.82, 3)
    assert (~found.square).sum() == 6
    rows = printed.untrained_rows(made_up())
    assert [row["%, branch"] for row in rows if row["block"] == 3] == ["no eigenvalues", 31.0]
    assert rows[0]["over seeds"] == "10.00 to 12.00"


@pytest.mark.slow
def test_the_same_networks_are_looked_at_in_three_readings():
    rows = printed.measure_untrained(datasets.load("digits"), printed.NARROW, {"workers": 1})
    found = printed.beside_the_tables(rows)
    for reading, column in found.ours.items():
        np.testing.assert_array_equal(np.isfinite(column), found.square | (reading == "slices"))
    opening, others = (np.abs(found.slices[chosen]).mean() for chosen in (~found.square, found.square))
    assert opening < 0.7 * others  # there is no identity on the diagonal


def made_up_print(**changed):
    (found,) = printed.worlds_of_the_print(np.random.default_rng(1), 1.0, 24)
    return dataclasses.replace(found, **changed)


def test_slices_of_other_counts_are_not_what_was_printed():
    assert printed.judge_print(made_up_print(counts=(3, 24))).verdict == CONTRADICTED
    assert printed.judge_print(made_up_print(counts=(20, 24))).verdict == UNDECIDED


@pytest.mark.parametrize("rival", ["block", "residual"])
def test_a_rival_that_is_as_near_to_the_print_leaves_the_claim_open(rival):
    """The null that would have seen the fault: the percentages follow the print, and those of another reading too."""
    found = made_up_print()
    ours = found.ours | {rival: np.where(found.square, found.ours["slices"], np.nan)}
    noise = np.exp(0.05 * np.random.default_rng(0).standard_normal(24))
    ours[rival] = ours[rival] * noise
    assert printed.judge_print(dataclasses.replace(found, ours=ours)).verdict == UNDECIDED


def test_the_order_alone_does_not_make_slices_of_the_print():
    """Percentages that rise with the printed ones, at a level that has nothing to do with them, or without S."""
    found = made_up_print()
    far = found.ours | {"slices": 80.0 + 0.1 * found.ours["slices"]}
    assert printed.judge_print(dataclasses.replace(found, ours=far)).verdict == CONTRADICTED
    flat = -np.exp(0.1 * np.random.default_rng(3).standard_normal(24))
    assert printed.judge_print(dataclasses.replace(found, slices=flat)).verdict == UNDECIDED
