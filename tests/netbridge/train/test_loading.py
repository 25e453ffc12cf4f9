"""Crops depend on the seed, the epoch and the picture alone; training from the disk resumes to the bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import netbridge as nb
from netbridge import data, train
from netbridge.train import loading
from tests.netbridge.train import runs


@pytest.fixture(scope="module")
def miniature(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETBRIDGE_DATA", str(folder))
        yield data.imagenet(data.miniature("imagenet", folder, classes=3, each=8, height=24) / "archives", 16, 20)


def recipe(**changes):
    return train.recipe("imagenet", **{"epochs": 2, "batch": 6, "evaluate_every": 1} | changes)


def whole(batches) -> torch.Tensor:
    return torch.cat([torch.cat([images.flatten(1), labels[:, None]], 1) for images, labels in batches])


class TestCrops:
    def test_workers_processes_and_a_later_start_change_nothing(self, miniature):
        alone = loading.PictureBatches(miniature, recipe(), 16)
        helped = loading.PictureBatches(miniature, recipe(), 16, workers=2)
        expected = whole(alone.epoch(3, 5))
        assert torch.equal(whole(helped.epoch(3, 5)), expected)
        assert torch.equal(whole(alone.epoch(3, 5, start=2)), expected[12:])
        shares = [list(alone.epoch(3, 5, rank, 2)) for rank in range(2)]
        both = [pair for batch in zip(*shares, strict=True) for pair in batch]
        assert torch.equal(whole(both), expected)

    def test_epochs_and_seeds_differ(self, miniature):
        batches = loading.PictureBatches(miniature, recipe(), 16)
        first, later, other = (whole(batches.epoch(*which)) for which in ((0, 0), (0, 1), (1, 0)))
        assert not torch.equal(first, later)
        assert not torch.equal(first, other)

    @given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 2**32))
    def test_a_box_lies_within_its_picture(self, width, height, seed):
        box = loading.random_box(width, height, np.random.default_rng(seed), (0.08, 1.0), (3 / 4, 4 / 3))
        assert 0 <= box[0] < box[2] <= width
        assert 0 <= box[1] < box[3] <= height

    def test_the_middle_of_a_square_is_its_middle(self):
        assert loading.middle_box(100, 60, 0.5) == (35, 15, 65, 45)

    def test_a_picture_shown_whole_and_straight_is_the_decoded_one(self, miniature):
        plain = recipe(crop=(1.0, 1.0), aspect=(1.0, 1.0), flip="none")
        crops = loading.Crops(miniature.train, plain, 16, 0, 0)
        pixels, label = crops[4, False]
        picture = miniature.train.picture(4)
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        middle = picture.resize((16, 16), 2, box=(left, top, left + side, top + side))
        assert np.array_equal(pixels, np.asarray(middle))
        assert label == miniature.train.labels[4]


class TestTraining:
    @staticmethod
    def run(miniature, path=None, **options):
        torch.manual_seed(0)
        net = nb.resnet(8, 3, widths=(4, 4, 4))
        return train.train(net, miniature, recipe(), path=path, quiet=True, device="cpu", **options)

    def test_an_interrupted_training_ends_with_the_same_bits(self, miniature, tmp_path):
        expected = self.run(miniature, tmp_path / "whole.safetensors")
        self.run(miniature, tmp_path / "parts.safetensors", stop_after=1)
        resumed = self.run(miniature, tmp_path / "parts.safetensors", workers=1)
        assert runs.same(expected, resumed)
        assert expected.about["run"]["dataset"] == {
            "name": "imagenet-of-24",
            "images": 24,
            "digest": miniature.digest(),
        }

    def test_scores_count_every_picture_once(self, miniature):
        net = self.run(miniature)
        shares = [whole(loading.to_test(miniature, 5, rank, 2)) for rank in range(2)]
        assert sum(map(len, shares)) == len(miniature.test)
        logits = net(torch.cat([images for images, _ in loading.to_test(miniature, 5)]))
        errors = int((logits.argmax(1).numpy() != miniature.test.labels).sum())
        scores = train.evaluate(net, miniature, batch=5)
        assert scores["test_errors"] == errors
        assert "test_top5" not in scores


def test_the_five_largest_logits_are_counted():
    labels = torch.arange(40) % 30
    images = torch.arange(4, dtype=torch.uint8).expand(40, 3, 4, 4)
    arrays = {f"{part}_images": images for part in ("train", "test")}
    arrays |= {f"{part}_labels": labels for part in ("train", "test")}
    many = data.dataset("many", arrays, [str(number) for number in range(30)])

    class Guess(torch.nn.Module):
        """Logits fall from the first class to the last, whatever is shown."""

        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, images):
            return -self.scale * torch.arange(30.0).expand(len(images), 30)

    scores = train.evaluate(Guess(), many)
    assert scores["test_errors"] == 38
    assert scores["test_top5"] == 10 / 40
