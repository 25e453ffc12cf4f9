"""Laws of boxes: their overlap, their coding, and the suppression of those that overlap too much."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from netbridge import detect
from netbridge.detect import boxes as geometry
from netbridge.detect.suppression import nms_within

SIDES = st.floats(4.0, 200.0)  # a box at most 62 times as long as its reference can be decoded
PLACES = st.floats(-100.0, 300.0)


@st.composite
def boxes(draw, most=8, least=1):
    rows = draw(st.lists(st.tuples(PLACES, PLACES, SIDES, SIDES), min_size=least, max_size=most))
    table = torch.tensor(rows, dtype=torch.float64).reshape(-1, 4)
    return torch.cat((table[:, :2], table[:, :2] + table[:, 2:]), 1)


@given(boxes(), boxes())
def test_overlap_is_symmetric_and_a_share(one, other):
    found = detect.box_iou(one, other)
    assert torch.equal(found, detect.box_iou(other, one).T)
    assert bool(((found >= 0) & (found <= 1)).all())


@given(boxes())
def test_a_box_overlaps_with_itself_entirely_and_not_with_one_elsewhere(found):
    torch.testing.assert_close(detect.box_iou(found, found).diagonal(), torch.ones(len(found), dtype=torch.float64))
    assert not detect.box_iou(found, found + 1000.0).any()


def test_overlap_of_whole_pixels_is_a_count_of_pixels():
    chance = torch.Generator().manual_seed(0)
    corners = torch.randint(0, 6, (10, 2), generator=chance)
    found = torch.cat((corners, corners + torch.randint(1, 6, (10, 2), generator=chance)), 1)
    covers = torch.zeros(10, 12, 12, dtype=torch.bool)
    for mask, (left, top, right, bottom) in zip(covers, found.tolist(), strict=True):
        mask[top:bottom, left:right] = True
    shared = (covers[:, None] & covers[None]).sum((2, 3))
    union = (covers[:, None] | covers[None]).sum((2, 3))
    torch.testing.assert_close(detect.box_iou(found.double(), found.double()), shared.double() / union)


@given(boxes(most=5, least=5), boxes(most=5, least=5), st.sampled_from([geometry.EVEN, (0.1, 0.1, 0.2, 0.2)]))
def test_decoding_undoes_encoding(references, found, spread):
    numbers = geometry.encode(references, found, spread)
    torch.testing.assert_close(geometry.decode(references, numbers, spread), found, rtol=0, atol=1e-8)


@given(boxes())
def test_a_reference_itself_is_four_zeros(found):
    assert not geometry.encode(found, found).any()


@given(boxes(), st.integers(1, 300))
def test_mirroring_twice_changes_nothing_and_keeps_sides(found, width):
    once = geometry.mirror(found, width)
    torch.testing.assert_close(geometry.mirror(once, width), found)
    torch.testing.assert_close(geometry.box_areas(once), geometry.box_areas(found))


@given(boxes(), st.tuples(st.integers(1, 200), st.integers(1, 200)))
def test_boxes_cut_off_at_the_edges_lie_within(found, size):
    cut = geometry.within(found, size)
    assert bool((cut >= 0).all())
    assert bool((cut[:, 2] <= size[1]).all())
    assert bool((cut[:, 3] <= size[0]).all())
    assert bool((cut[:, :2] <= cut[:, 2:]).all())
    assert torch.equal(geometry.within(cut, size), cut)


def literal_suppression(found, scores, threshold):
    """The definition: take the best box that is left, drop what overlaps with it, again."""
    left = sorted(range(len(found)), key=lambda k: (-float(scores[k]), k))
    kept = []
    while left:
        best, *others = left
        kept.append(best)
        overlap = detect.box_iou(found[best : best + 1], found)[0]
        left = [k for k in others if overlap[k] <= threshold]
    return kept


SCORES = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.9]), min_size=8, max_size=8)


@given(boxes(most=8, least=8), SCORES, st.floats(0.0, 1.0))
def test_suppression_is_its_definition(found, scores, threshold):
    found = found * 0.3  # so that many overlap
    scores = torch.tensor(scores)
    assert detect.nms(found, scores, threshold).tolist() == literal_suppression(found, scores, threshold)


@given(boxes(most=8, least=8), SCORES, st.floats(0.0, 1.0))
def test_suppressing_what_remains_removes_nothing(found, scores, threshold):
    scores = torch.tensor(scores)
    kept = detect.nms(found, scores, threshold)
    assert detect.nms(found[kept], scores[kept], threshold).tolist() == list(range(len(kept)))


def test_suppression_within_groups_leaves_other_groups_alone():
    found = torch.tensor([[0.0, 0.0, 4.0, 4.0]]).repeat(4, 1)
    scores, groups = torch.tensor([0.1, 0.4, 0.3, 0.2]), torch.tensor([0, 0, 1, 1])
    assert nms_within(found, scores, groups, 0.5, most=10).tolist() == [1, 2]
    assert nms_within(found, scores, groups, 0.5, most=1).tolist() == [1]
    assert nms_within(found[:0], scores[:0], groups[:0], 0.5, most=1).tolist() == []


def test_a_threshold_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match=r"`threshold` must be from 0 to 1, got 1\.5"):
        detect.nms(torch.zeros(1, 4), torch.zeros(1), 1.5)
