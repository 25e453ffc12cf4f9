"""Augmentation by arithmetic on whole batches is what it would be picture by picture."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from netbridge.train import augment, recipes
from netbridge.train.augment import choose_mirrored
from tests.netbridge.data import archives


class TestBatches:
    """Augmentation by arithmetic on whole batches is what it would be picture by picture."""

    @staticmethod
    def batches(count=20, size=8, dtype=torch.float64, **changes):
        images, labels = archives.pictures(count, size)
        recipe = recipes.recipe("paper", batch=5, **changes)
        return (
            images,
            labels,
            augment.Batches(
                torch.from_numpy(images), torch.from_numpy(labels).long(), (0.5,) * 3, (0.25,) * 3, recipe, dtype=dtype
            ),
        )

    @settings(deadline=None, max_examples=25)
    @given(
        shift=st.integers(0, 3),
        border=st.sampled_from(["constant", "reflect"]),
        flip=st.sampled_from(recipes.FLIPS),
        epoch=st.integers(0, 5),
    )
    def test_every_picture_once_shifted_and_mirrored_as_by_hand(self, shift, border, flip, epoch):
        images, labels, batches = self.batches(shift=shift, border=border, flip=flip)
        padded = np.pad(
            images, ((0, 0), (0, 0), (shift,) * 2, (shift,) * 2), "constant" if border == "constant" else "reflect"
        )
        seen = []
        for shown, their_labels in batches.epoch(seed=3, epoch=epoch):
            for picture, label in zip(shown, their_labels, strict=True):
                pixels = ((picture * 0.25 + 0.5) * 255).round().to(torch.uint8).numpy()
                found = [
                    number
                    for number in range(len(images))
                    for y in range(2 * shift + 1)
                    for x in range(2 * shift + 1)
                    for way in ((1, -1) if flip != "none" else (1,))
                    if np.array_equal(pixels, padded[number, :, y : y + 8, x : x + 8][:, :, ::way])
                ]
                assert len(set(found)) == 1
                assert labels[found[0]] == label
                seen.append(found[0])
        assert sorted(seen) == list(range(len(images)))

    def test_the_same_seed_and_epoch_show_the_same_pictures_and_no_others_do(self):
        _, _, batches = self.batches()
        first, again, later, other = (
            torch.cat([x for x, _ in batches.epoch(*which)]) for which in ((0, 0), (0, 0), (0, 1), (1, 0))
        )
        assert torch.equal(first, again)
        assert not torch.equal(first, later)
        assert not torch.equal(first, other)

    def test_alternating_flips_show_both_sides_in_two_epochs(self):
        _, _, batches = self.batches(shift=0, flip="alternating")
        even, odd = (choose_mirrored("alternating", batches.count, 0, epoch, None) for epoch in (4, 5))
        assert torch.equal(even, ~odd)
        assert 0 < int(even.sum()) < len(even)

    def test_ranks_share_every_batch(self):
        _, _, batches = self.batches(count=24, flip="random")
        batches.recipe = dataclasses.replace(batches.recipe, batch=6)
        whole = [x for x, _ in batches.epoch(0, 1)]
        parts = [[x for x, _ in batches.epoch(0, 1, rank, 2)] for rank in range(2)]
        for one, *halves in zip(whole, *parts, strict=True):
            assert torch.equal(one, torch.cat(halves))

    @pytest.mark.parametrize("policy", recipes.POLICIES)
    def test_processes_take_turns_with_the_parts(self, policy):
        """Two processes and three parts: the first process has the first and the last."""
        _, _, batches = self.batches(count=24, flip="random", policy=policy)
        batches.recipe = dataclasses.replace(batches.recipe, batch=6)
        whole = list(batches.epoch(0, 1, start=1))
        for rank, places in ((0, [0, 1, 4, 5]), (1, [2, 3])):
            shown = list(batches.epoch(0, 1, rank, 2, start=1, parts=3))
            assert len(shown) == len(whole) == 3
            for (images, labels), (all_images, all_labels) in zip(shown, whole, strict=True):
                assert torch.equal(images, all_images[places])
                assert torch.equal(labels, all_labels[places])

    def test_pictures_are_channels_last_without_a_copy(self):
        _, _, batches = self.batches(dtype=torch.float32)
        shown, _ = next(batches.epoch(0, 0))
        assert shown.is_contiguous(memory_format=torch.channels_last)
        assert shown.dtype == torch.float32

    def test_smaller_images(self):
        images, labels = archives.pictures(10, 32)
        batches = augment.Batches(
            torch.from_numpy(images), torch.from_numpy(labels).long(), (0.5,) * 3, (0.25,) * 3,
            recipes.recipe("short", batch=5), size=24,
        )  # fmt: skip
        assert next(batches.epoch(0, 0))[0].shape == (5, 3, 24, 24)

    @pytest.mark.parametrize(("shape", "size", "expected"), [((32, 64), 32, (16, 32)), ((64, 32), 16, (32, 16))])
    def test_smaller_images_keep_their_shape(self, shape, size, expected):
        assert augment.shrink(torch.zeros(2, 3, *shape, dtype=torch.uint8), size).shape[2:] == expected

    def test_too_large_a_batch(self):
        with pytest.raises(ValueError, match=r"`batch` = 5 is more than the 4 images"):
            self.batches(count=4)
