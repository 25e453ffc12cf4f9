"""Mixtures and holes: shares are exact, what is drawn depends on the step alone, and a part takes its rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from netbridge import train
from netbridge.train import mixing
from netbridge.train.mixing import Mixing, Targets

SIZE = (12, 10)
IMAGES = torch.arange(8 * 2 * 12 * 10, dtype=torch.float64).view(8, 2, *SIZE) + 1
LABELS = torch.arange(8)
WHOLE = slice(0, 8)


def recipe(**changes):
    return train.recipe("paper", batch=8, **changes)


def mixed(step=0, rows=WHOLE, **changes):
    return Mixing(recipe(**changes), 3, 1, step, SIZE)(IMAGES[rows], LABELS[rows], rows)


def test_without_anything_the_images_are_the_same_object():
    images, targets = Mixing(recipe(), 0, 0, 0, SIZE)(IMAGES, LABELS, WHOLE)
    assert images is IMAGES
    assert targets.share == 1.0


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_mixup_is_the_mixture_of_two_images_of_the_part(step):
    for rows in (WHOLE, slice(0, 4), slice(4, 8)):
        images, targets = mixed(step, rows, mixup=1.0)
        assert 0 <= targets.share <= 1
        others = IMAGES[rows].flip(0)
        torch.testing.assert_close(images, targets.share * IMAGES[rows] + (1 - targets.share) * others)
        assert torch.equal(targets.others, LABELS[rows].flip(0))


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_cutmix_shares_are_counted_pixels(step):
    images, targets = mixed(step, cutmix=1.0)
    own = (images == IMAGES).all(1)
    assert torch.equal(torch.where(own[:, None], IMAGES, IMAGES.flip(0)), images)
    assert targets.share == pytest.approx(own.double().mean().item(), abs=1e-12)
    assert (own == own[0]).all()  # one box for all


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14))
def test_cutout_removes_a_square_or_what_lies_within(step, side):
    images, targets = mixed(step, cutout=side)
    gone = (images == 0).all(1)
    assert targets.share == 1.0
    assert torch.equal(torch.where(gone[:, None], 0.0, IMAGES), images)
    for hole in gone:
        assert 1 <= hole.sum() <= side**2
        rows, columns = hole.any(1), hole.any(0)
        assert torch.equal(hole, rows[:, None] & columns[None, :])  # a rectangle
        assert max(rows.sum(), columns.sum()) <= side


def test_a_part_gets_its_rows_of_what_is_drawn():
    whole, _ = mixed(cutout=5)
    parts = [mixed(rows=rows, cutout=5)[0] for rows in (slice(0, 2), slice(2, 8))]
    assert torch.equal(torch.cat(parts), whole)
    assert mixed(rows=slice(2, 6), mixup=1.0)[1].share == mixed(mixup=1.0)[1].share


def test_with_both_a_coin_decides():
    boxes = [Mixing(recipe(mixup=1.0, cutmix=1.0), 0, 0, step, SIZE).box is None for step in range(200)]
    assert 60 < sum(boxes) < 140


def test_steps_epochs_seeds_and_streams_differ():
    draws = {
        mixing.step_chance(*which).random()
        for which in ((0, 0, 0, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1), (0, 0, 0, 2), (-1, 0, 0, 1))
    }
    assert len(draws) == 6


@given(st.floats(0, 1), st.floats(0, 0.5))
def test_the_loss_is_linear_in_the_share(share, smoothing):
    torch.manual_seed(0)
    logits = torch.randn(8, 8, dtype=torch.float64)
    labels, others = LABELS, LABELS.flip(0)
    ends = [F.cross_entropy(logits, x, label_smoothing=smoothing) for x in (labels, others)]
    found = Targets(labels, others, share).loss(logits, smoothing)
    torch.testing.assert_close(found, share * ends[0] + (1 - share) * ends[1])
    soft = share * F.one_hot(labels, 8) + (1 - share) * F.one_hot(others, 8)
    torch.testing.assert_close(found, F.cross_entropy(logits, soft.double(), label_smoothing=smoothing))


def test_an_answer_counts_as_much_as_its_share():
    logits = F.one_hot(torch.tensor([0, 6, 2]), 8).double()
    hits = Targets(torch.tensor([0, 1, 2]), torch.tensor([7, 6, 2]), 0.75).hits(logits)
    assert float(hits) == pytest.approx(0.75 + 0.25 + 1.0)


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_erasing_removes_a_box_of_the_areas_its_authors_allow(step):
    images, targets = mixed(step, erasing=0.5)
    gone = (images == 0).all(1)
    assert targets.share == 1.0
    assert torch.equal(torch.where(gone[:, None], 0.0, IMAGES), images)
    for hole in gone:
        rows, columns = hole.any(1), hole.any(0)
        assert torch.equal(hole, rows[:, None] & columns[None, :])  # a rectangle, or nothing
        assert hole.sum() <= 1.3 * 120 / 3  # a third of the area, but for the rounding of its sides


def test_so_many_images_lose_a_box():
    found = torch.stack([(mixed(step, erasing=0.25)[0] == 0).flatten(1).any(1) for step in range(200)])
    assert found.double().mean().item() == pytest.approx(0.25, abs=0.04)
    assert torch.equal(mixed(rows=slice(2, 6), erasing=1.0)[0], mixed(erasing=1.0)[0][2:6])
    places = torch.stack([(mixed(step, erasing=1.0)[0] == 0).all(1).double().mean(0) for step in range(300)]).mean(0)
    assert places.min() > 0.01  # every pixel is erased now and then
