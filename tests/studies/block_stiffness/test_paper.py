"""What the block-level paper prints, and what follows from it without a network."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.block_stiffness import paper
from studies.block_stiffness.report import tables


def test_all_printed_counts_are_those_of_slices():
    """Tables 10 and 11: elements divided by the height of the input, in 24 of 24 rows and in both totals."""
    assert tables.agreeing_counts() == (24, 24)
    for depth, total, elements in ((18, 62_914_560, 801_112_064), (34, 115_343_360, 1_275_068_416)):
        assert sum(paper.EIGENVALUES[depth]) == total
        assert sum(paper.ELEMENTS[depth]) == elements == sum(shape.elements for shape in paper.shapes(depth))


def test_the_jacobians_have_far_fewer_and_three_have_none():
    shapes = paper.shapes(18)
    assert [shape.eigenvalues for shape in shapes] == [16384, 16384, None, 8192, None, 4096, None, 2048]


def test_the_labels_are_balanced_in_the_tables():
    """The mean of the ten label rows is the mean of the block rows, so labels and blocks are of the same images."""
    for depth in (18, 34):
        assert np.mean(paper.INDEX_BY_LABEL[depth]) == pytest.approx(np.mean(paper.INDEX[depth]), abs=0.01)
        assert np.mean(paper.PERCENT_BY_LABEL[depth]) == pytest.approx(np.mean(paper.PERCENT[depth]), abs=0.01)
        index, percent = paper.OVERALL[depth]
        assert np.mean(paper.INDEX[depth]) == pytest.approx(index, abs=0.01)
        assert np.mean(paper.PERCENT[depth]) == pytest.approx(percent, abs=0.01)


def test_labels_matter_by_the_papers_own_tables():
    """Tables 3 and 6: two networks agree on which labels have many negative eigenvalues."""
    assert np.corrcoef(paper.PERCENT_BY_LABEL[18], paper.PERCENT_BY_LABEL[34])[0, 1] == pytest.approx(0.92, abs=0.01)
    assert np.argmax(paper.PERCENT_BY_LABEL[18]) == np.argmax(paper.PERCENT_BY_LABEL[34]) == 3


def test_the_index_contradicts_the_papers_reading_where_it_is_significant():
    """S is negative and stiffer is more negative: r(accuracy, S) < 0 says the stiffer the block, the better."""
    for depth, late in ((18, (6, 8)), (34, (10, 11, 12, 15, 16)), (50, (1,))):
        for block in late:
            row = paper.CORRELATIONS[depth][block - 1]
            assert row[0] < 0 < row[4]


def test_no_block_has_a_majority_of_negative_eigenvalues():
    assert max(*paper.PERCENT[18], *paper.PERCENT[34], paper.OVERALL[50][1]) < 50


def test_the_two_samples_of_images_are_not_the_same():
    """The printed correlations and p-values of Tables 1 and 4 allow numbers of images that do not meet."""
    ranges = {}
    for depth in (18, 34):
        pairs = [(row[i], row[i + 1]) for row in paper.CORRELATIONS[depth] for i in (0, 2, 4, 6)]
        ranges[depth] = paper.sample_sizes(pairs)
    assert ranges[18] == pytest.approx((2943, 3895), abs=5)
    assert ranges[34] == pytest.approx((1064, 1189), abs=5)


@given(st.integers(200, 4000), st.lists(st.floats(-0.3, 0.3), min_size=20, max_size=40))
@settings(deadline=None, max_examples=25)
def test_the_number_of_images_is_found_again(n, correlations):
    pairs = [(round(r, 2), round(paper.p_value(abs(r), n), 2)) for r in correlations]
    low, high = paper.sample_sizes(pairs)
    assert low <= n <= high


def test_correlations_that_fall_when_their_number_is_counted():
    """108 tests at .05: p < .05 / 108 asks |r| >= .06 of Table 1 and .104 of Table 4, at the images they allow."""
    by_block = sum(4 * len(rows) for rows in paper.CORRELATIONS.values())
    chance = 0.05 / (by_block + 2 * 4)  # two rows are of all blocks
    assert chance == pytest.approx(0.05 / 108)
    assert paper.p_value(0.06, 3419) < chance < paper.p_value(0.055, 3419)
    assert paper.p_value(0.104, 1127) == pytest.approx(chance, rel=0.05)
    fallen = {}
    for name, column in (("accuracy, S", 0), ("loss, percentage", 6)):
        rows = paper.CORRELATIONS[34]
        fallen[name] = {
            block
            for block, row in enumerate(rows, 1)
            if row[column + 1] < 0.05 and paper.p_value(abs(row[column]) + 0.005, 1189) > chance
        }
    assert fallen == {"accuracy, S": {1, 6, 8, 9}, "loss, percentage": {14}}


def test_blocks_lie_too_far_apart_to_be_pooled():
    """A correlation over images of all blocks together would be one of block means."""
    for printed in (paper.INDEX, paper.PERCENT):
        for depth in (18, 34):
            sizes = np.abs(printed[depth])
            assert 10 <= sizes.max() / sizes.min() < 16


def test_the_index_doubles_in_two_of_the_last_eight_blocks():
    factors = np.array(paper.INDEX[34][-8:]) / np.mean(paper.INDEX[34])
    np.testing.assert_allclose(factors, (1.86, 1.21, 1.33, 1.66, 1.44, 0.24, 1.73, 2.15), atol=0.01)


def test_the_last_blocks_of_resnet_50_are_of_one_size():
    """Bottlenecks that end in 2,048 channels: blocks 15 and 16 map 2,048 x 2 x 2 to the same."""
    assert paper.Shape(2048, 2, 2048, 2).elements == 67_108_864 == (2048 * 2 * 2) ** 2
