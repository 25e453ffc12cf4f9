"""Data sets of torch's kind: whatever an image is, the bytes are the same; what cannot be is named."""

import numpy as np
import pytest
import torch
from PIL import Image

from netbridge import data

CHANCE = np.random.default_rng(0)
PIXELS = CHANCE.integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
KINDS = {
    "Pillow": Image.fromarray,
    "array": lambda pixels: pixels,
    "bytes": lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1),
    "numbers": lambda pixels: torch.from_numpy(pixels).permute(2, 0, 1) / 255,
}


class Source(list):
    classes = ("cat", "dog")


def pairs(make):
    return Source((make(pixels), number % 2) for number, pixels in enumerate(PIXELS))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_image_gives_the_same_bytes(kind):
    found = data.from_torch("mine", pairs(KINDS[kind]), pairs(KINDS[kind])[:4])
    assert np.array_equal(found.train_images.numpy(), PIXELS.transpose(0, 3, 1, 2))
    assert found.test_labels.tolist() == [0, 1, 0, 1]
    assert found.names == ("cat", "dog")


def test_grey_images_and_labels_without_names():
    grey = [(Image.fromarray(PIXELS[0, :, :, 0]), torch.tensor(4)), (PIXELS[1, :, :, 0], 0)]
    found = data.from_torch("grey", grey, grey)
    assert found.train_images.shape == (2, 1, 5, 4)
    assert found.names == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([PIXELS[0]], "`train`: item 0 is no pair"),
        ([], "`train` must have a length and items"),
        (iter([]), "`train` must have a length and items"),
        ([(torch.randn(3, 5, 4), 0)], "item 0: numbers must be .* from 0 to 1; leave out normalisation"),
        ([(torch.zeros(3, 5, 4, dtype=torch.int64), 0)], "item 0: an image must be a Pillow image"),
    ],
)
def test_what_is_no_image_is_named(items, words):
    with pytest.raises(TypeError, match=words):
        data.from_torch("mine", items, pairs(KINDS["array"]))


def test_sizes_that_differ():
    items = [(PIXELS[0], 0), (PIXELS[1][:3], 1)]
    with pytest.raises(ValueError, match=r"item 1 is \(3, 3, 4\) and item 0 \(3, 5, 4\)"):
        data.from_torch("mine", items, items)


@pytest.mark.parametrize("mode", ["P", "1", "CMYK", "YCbCr", "HSV"])
def test_pillow_images_of_any_mode_are_pixels(mode):
    """A palette's entries, or the numbers of another colour space, are none."""
    images = Source((Image.fromarray(pixels).convert(mode), number % 2) for number, pixels in enumerate(PIXELS))
    expected = np.stack([np.asarray(image.convert("RGB")) for image, _ in images])
    found = data.from_torch("mine", images, images)
    assert np.array_equal(found.train_images.numpy(), expected.transpose(0, 3, 1, 2))


def test_numbers_in_an_array_do_not_say_where_their_channels_are():
    with pytest.raises(TypeError, match="item 0: numbers must be a tensor"):
        data.from_torch("mine", pairs(lambda pixels: pixels / 255), pairs(lambda pixels: pixels / 255))


@pytest.mark.parametrize("label", [0.7, torch.tensor([0, 1])])
def test_labels_that_are_no_class(label):
    with pytest.raises(TypeError, match="item 0: a label must be the number of a class, got"):
        data.from_torch("mine", [(PIXELS[0], label)], [(PIXELS[0], label)])
