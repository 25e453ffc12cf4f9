"""Crops depend on the seed, the epoch and the picture alone; training from the disk resumes to the bit."""

import math
import signal

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
    def test_boxes_are_drawn_as_written_down_by_szegedy_and_others(self, width, height, seed):
        """The same draws, in the same order, by the words of the paper: area, then shape, then place; ten tries."""
        share, aspect = (0.08, 1.0), (3 / 4, 4 / 3)
        chance = np.random.default_rng(seed)
        expected = None
        for _ in range(10):
            area = (share[0] + (share[1] - share[0]) * chance.random()) * width * height
            low, high = np.log(aspect[0]), np.log(aspect[1])
            shape = np.exp(low + (high - low) * chance.random())
            w, h = int(np.rint((area * shape) ** 0.5)), int(np.rint((area / shape) ** 0.5))
            if 0 < w <= width and 0 < h <= height:
                left, top = chance.integers(width - w + 1), chance.integers(height - h + 1)
                expected = left, top, left + w, top + h
                break
        if expected is None:
            w, h = min(width, int(np.rint(height * 4 / 3))), min(height, int(np.rint(width * 4 / 3)))
            left, top = (width - w) // 2, (height - h) // 2
            expected = left, top, left + w, top + h
        assert loading.random_box(width, height, np.random.default_rng(seed), share, aspect) == expected

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


class Drawing(torch.nn.Module):
    """A network with a layer that draws; something happens in step `when`."""

    def __init__(self, when=None, happens=lambda: None):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.drop, self.head = torch.nn.Conv2d(3, 8, 3), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)
        self.when, self.happens, self.steps = when, happens, 0

    def forward(self, images):
        self.steps += self.training
        if self.training and self.steps == self.when:
            self.happens()
        return self.head(self.drop(self.body(images).relu().mean((2, 3))))


@pytest.mark.parametrize("workers", [0, 1])
def test_layers_that_draw_go_on_within_an_epoch(miniature, workers, tmp_path):
    """A loader that began in the middle of an epoch must not take a number from the source of the layers."""

    def run(path=None, when=None):
        net = Drawing(when, lambda: signal.raise_signal(signal.SIGTERM))
        return train.train(net, miniature, recipe(), path=path, quiet=True, device="cpu", workers=workers)

    path = tmp_path / "net.safetensors"
    with pytest.raises(train.Interrupted):
        run(path, when=6)
    assert runs.same(run(path), run())


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
            "mean": list(miniature.mean),
            "std": list(miniature.std),
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


class Guess(torch.nn.Module):
    """The same logits, whatever is shown."""

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def forward(self, images):
        return self.logits.expand(len(images), -1)


@pytest.mark.parametrize(
    ("logits", "errors", "top5"),
    [
        (-torch.arange(30.0), 38, 10 / 40),
        (torch.zeros(30), 38, 10 / 40),  # alike: a guess of the first class, not of all of them
        (torch.full((30,), math.nan), 40, 0.0),
    ],
)
def test_the_five_largest_logits_are_counted(logits, errors, top5):
    labels = torch.arange(40) % 30
    images = torch.arange(4, dtype=torch.uint8).expand(40, 3, 4, 4)
    arrays = {f"{part}_images": images for part in ("train", "test")}
    arrays |= {f"{part}_labels": labels for part in ("train", "test")}
    many = data.dataset("many", arrays, [str(number) for number in range(30)])
    scores = train.evaluate(Guess(logits), many)
    assert (scores["test_errors"], scores["test_top5"]) == (errors, top5)
