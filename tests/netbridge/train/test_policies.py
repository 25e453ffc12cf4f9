"""The operations of TrivialAugment do what Pillow does, and a picture's result is its own."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from netbridge.train import policies as ta

CHANCE = np.random.default_rng(0)
SMOOTH = CHANCE.integers(0, 256, (5, 4, 4, 3), dtype=np.uint8).repeat(6, 1).repeat(6, 2)
PICTURES = np.concatenate([SMOOTH, CHANCE.integers(30, 220, (4, 24, 24, 3), dtype=np.uint8)])
TOP = ta.STRENGTHS - 1


def ours(kind: str, strength: int, sign: int = 0, pictures=PICTURES) -> np.ndarray:
    operations = torch.tensor([[ta.KINDS.index(kind), strength, sign]]).repeat(len(pictures), 1)
    return ta.augment(torch.from_numpy(pictures), operations).numpy()


def theirs(function) -> np.ndarray:
    return np.stack([np.asarray(function(Image.fromarray(picture))) for picture in PICTURES])


@pytest.mark.parametrize("strength", [0, 7, TOP])
@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize(
    ("kind", "enhancer"),
    [
        ("brightness", ImageEnhance.Brightness),
        ("colour", ImageEnhance.Color),
        ("contrast", ImageEnhance.Contrast),
        ("sharpness", ImageEnhance.Sharpness),
    ],
)
def test_blends_are_pillows(kind, enhancer, strength, sign):
    factor = 1 + (1 - 2 * sign) * 0.99 * strength / TOP
    expected = theirs(lambda picture: enhancer(picture).enhance(factor))
    assert np.abs(ours(kind, strength, sign).astype(int) - expected).max() <= 2  # Pillow rounds grey on its way


def test_tables_are_pillows():
    assert np.array_equal(ours("equalise", 3), theirs(ImageOps.equalize))
    assert np.array_equal(ours("bits", TOP), theirs(lambda picture: ImageOps.posterize(picture, 2)))
    assert np.array_equal(ours("bits", 0), PICTURES)
    half = theirs(lambda picture: ImageOps.solarize(picture, 128))
    assert np.array_equal(ours("solarise", TOP // 2), half)
    assert np.array_equal(ours("solarise", 0), PICTURES)
    assert np.abs(ours("spread", 5).astype(int) - theirs(ImageOps.autocontrast)).max() <= 1


def test_a_shift_is_by_whole_pixels_where_it_is():
    """Half of the strongest shift of a picture 24 pixels wide: 12 pixels to the left; black comes in."""
    moved = ours("shift across", TOP // 2)
    assert np.array_equal(moved[:, :, :12], PICTURES[:, :, 12:])
    assert not moved[:, :, 12:].any()
    assert np.array_equal(ours("shift down", TOP // 2, 1)[:, 12:], PICTURES[:, :12])


def test_a_turn_keeps_the_middle_and_is_pillows():
    turned = ours("turn", 20)  # by 90 degrees
    ways = [np.rot90(PICTURES, k, axes=(1, 2)) for k in (1, 3)]
    assert any(np.array_equal(turned, way) for way in ways)


def test_a_shear_moves_rows_against_each_other():
    sheared = ours("shear across", TOP)
    assert np.array_equal(sheared[:, 11:13, 2:-2], PICTURES[:, 11:13, 2:-2])  # the middle stays
    assert not sheared[:, 0, :11].any() or not sheared[:, 0, -11:].any()


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_a_pictures_result_does_not_depend_on_the_others(seed, first):
    operations = ta.draw_operations(len(PICTURES), seed, 0, 0)
    whole = ta.augment(torch.from_numpy(PICTURES), operations)
    part = ta.augment(torch.from_numpy(PICTURES[first:]), operations[first:])
    assert torch.equal(whole[first:], part)


def test_what_is_drawn_is_everything_and_depends_on_the_step():
    drawn = ta.draw_operations(5000, 0, 1, 2)
    assert [len(column.unique()) for column in drawn.T] == [14, 31, 2]
    assert torch.equal(drawn, ta.draw_operations(5000, 0, 1, 2))
    assert not torch.equal(drawn, ta.draw_operations(5000, 0, 1, 3))


def test_pictures_of_one_channel():
    grey = PICTURES[..., :1]
    for kind in ta.KINDS:
        assert ours(kind, 12, 0, grey).shape == grey.shape
