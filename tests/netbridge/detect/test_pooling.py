"""RoIAlign is what it says: means of bilinear samples, exact on linear maps, taken from the right level."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from netbridge import detect
from netbridge.detect.pooling import level_of, pool_boxes


def literal_alignment(features, box, stride, cells, samples):
    """Sample by sample, as the paper describes it."""
    channels, height, width = features.shape
    left, top, right, bottom = (float(side) / stride - 0.5 for side in box)
    found = torch.zeros(channels, cells, cells, dtype=features.dtype)
    for row in range(cells):
        for column in range(cells):
            for down in range(samples):
                for across in range(samples):
                    y = top + (row + (down + 0.5) / samples) * (bottom - top) / cells
                    x = left + (column + (across + 0.5) / samples) * (right - left) / cells
                    found[:, row, column] += bilinear(features, y, x, height, width) / samples**2
    return found


def bilinear(features, y, x, height, width):
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    row, column = min(math.floor(y), height - 2), min(math.floor(x), width - 2)
    down, across = y - row, x - column
    return (
        (1 - down) * (1 - across) * features[:, row, column]
        + (1 - down) * across * features[:, row, column + 1]
        + down * (1 - across) * features[:, row + 1, column]
        + down * across * features[:, row + 1, column + 1]
    )


PLACES = st.floats(0.0, 30.0)


@st.composite
def inner_boxes(draw, count=3):
    rows = []
    for _ in range(count):
        left, top, width, height = (draw(PLACES) for _ in range(4))
        rows.append([left, top, min(left + width + 1.0, 36.0), min(top + height + 1.0, 28.0) + (top > 26.0) * 3.0])
    return torch.tensor(rows, dtype=torch.float64)


@given(inner_boxes(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3))
def test_it_is_the_mean_of_bilinear_samples(boxes, cells, samples, seed):
    features = torch.randn(2, 7, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    found = detect.roi_align(features, boxes, 4, cells, samples)
    wanted = torch.stack([literal_alignment(features, box, 4, cells, samples) for box in boxes])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@given(st.floats(2.0, 20.0), st.floats(2.0, 15.0), st.floats(1.0, 12.0), st.floats(1.0, 9.0))
def test_a_linear_map_is_reproduced_exactly(left, top, width, height):
    rows, columns = torch.meshgrid(torch.arange(7.0).double(), torch.arange(9.0).double(), indexing="ij")
    features = (3.0 * columns - 2.0 * rows + 1.0)[None]
    box = torch.tensor([[left, top, left + width, top + height]], dtype=torch.float64)
    found = detect.roi_align(features, box, 4, cells=5)[0, 0]
    middles = (torch.arange(5).double() + 0.5) / 5
    x, y = (left + width * middles) / 4 - 0.5, (top + height * middles) / 4 - 0.5
    torch.testing.assert_close(found, 3.0 * x[None, :] - 2.0 * y[:, None] + 1.0)


def test_gradients_are_those_of_finite_differences():
    features = torch.randn(1, 4, 5, dtype=torch.float64, requires_grad=True)
    boxes = torch.tensor([[1.0, 2.0, 11.0, 9.0], [0.0, 0.0, 20.0, 16.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda maps: detect.roi_align(maps, boxes, 4, 2), (features,))


def test_the_level_follows_the_size_as_in_the_pyramid_paper():
    sides = torch.tensor([10.0, 111.0, 113.0, 223.0, 225.0, 449.0, 9000.0])
    boxes = torch.stack((torch.zeros(7), torch.zeros(7), sides, sides), 1)
    assert level_of(boxes, 4).tolist() == [0, 0, 1, 1, 2, 3, 3]


def test_boxes_of_all_pictures_come_in_their_order():
    pyramid = [torch.randn(2, 3, 16, 16), torch.randn(2, 3, 8, 8)]
    chance = torch.Generator().manual_seed(1)
    boxes = []
    for count in (5, 0):
        corners = 30 * torch.rand(count, 2, generator=chance)
        boxes.append(torch.cat((corners, corners + 30 * torch.rand(count, 2, generator=chance) + 2), 1))
    boxes = [boxes[1], boxes[0]]
    found = pool_boxes(pyramid, [4, 8], boxes, canonical=32.0, cells=3)
    levels = level_of(boxes[1], 2, 32.0)
    assert 0 < int(levels.sum()) < 5  # both levels are used
    for one, box, level in zip(found, boxes[1], levels.tolist(), strict=True):
        torch.testing.assert_close(one, detect.roi_align(pyramid[level][1], box[None], [4, 8][level], 3)[0])


def test_sizes_that_are_no_sizes_are_refused():
    with pytest.raises(ValueError, match="`cells` and `samples` must be at least 1, got 0 and 2"):
        detect.roi_align(torch.zeros(1, 2, 2), torch.zeros(1, 4), 4, cells=0)
