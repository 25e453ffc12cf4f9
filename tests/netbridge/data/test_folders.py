"""Folders of pictures and arrays of one's own become data sets, and what does not fit is named."""

import numpy as np
import pytest
import torch
from PIL import Image

from netbridge import data


def paint(folder, classes, count, size=(12, 12), seed=0):
    """Pictures of noise that know their class: its number is the first pixel's red."""
    chance = np.random.default_rng(seed)
    for label, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = chance.integers(0, 256, (*size, 3), np.uint8)
            pixels[0, 0, 0] = label
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


class TestFolder:
    def test_pictures_come_as_they_are_where_the_size_fits(self, tmp_path):
        paint(tmp_path / "pets", ["dogs", "cats"], 5)
        pets = data.folder(tmp_path / "pets", size=12)
        assert pets.name == "pets"
        assert pets.names == ("cats", "dogs")  # painted 1 and 0
        for images, labels in ((pets.train_images, pets.train_labels), (pets.test_images, pets.test_labels)):
            assert torch.equal(1 - images[:, 0, 0, 0].long(), labels)
        assert (len(pets.train_images), len(pets.test_images)) == (8, 2)
        seen = torch.cat([pets.train_images, pets.test_images]).flatten(1)
        assert len(seen.unique(dim=0)) == 10

    def test_the_split_is_drawn_from_the_seed(self, tmp_path):
        paint(tmp_path, ["a", "b"], 10)
        one, again, other = (data.folder(tmp_path, 12, seed=seed).test_images for seed in (0, 0, 1))
        assert torch.equal(one, again)
        assert not torch.equal(one, other)

    def test_a_train_and_a_test_folder(self, tmp_path):
        paint(tmp_path / "train", ["a", "b"], 3)
        paint(tmp_path / "val", ["a", "b"], 2, seed=1)
        found = data.folder(tmp_path, 12)
        assert (len(found.train_images), len(found.test_images)) == (6, 4)

    def test_other_shapes_are_resized_and_cut_in_the_middle(self, tmp_path):
        paint(tmp_path, ["a", "b"], 2, size=(20, 60))
        assert data.folder(tmp_path, size=16).train_images.shape == (2, 3, 16, 16)

    def test_pictures_of_more_than_eight_bits_are_named(self, tmp_path):
        paint(tmp_path, ["a", "b"], 3)
        Image.fromarray(np.full((12, 12), 4000, np.uint16)).save(tmp_path / "b" / "2.png")
        with pytest.raises(ValueError, match=r"2.png: no picture .* mode I;16 has more than eight bits"):
            data.folder(tmp_path, 12)

    def test_what_does_not_fit_is_named(self, tmp_path):
        with pytest.raises(ValueError, match="is not a folder"):
            data.folder(tmp_path / "nowhere")
        paint(tmp_path, ["a"], 2)
        with pytest.raises(ValueError, match="1 folders with pictures, but a data set needs one for each"):
            data.folder(tmp_path)
        paint(tmp_path, ["b"], 1)
        with pytest.raises(ValueError, match="b holds one picture"):
            data.folder(tmp_path)
        (tmp_path / "b" / "7.jpg").write_bytes(b"no picture")
        with pytest.raises(ValueError, match=r"7\.jpg: no picture that can be read"):
            data.folder(tmp_path)
        paint(tmp_path / "both" / "train", ["a", "b"], 1)
        paint(tmp_path / "both" / "test", ["a", "c"], 1)
        with pytest.raises(ValueError, match=r"\['b', 'c'\] are classes of only one of train and test"):
            data.folder(tmp_path / "both")


def arrays(**changes):
    images, labels = np.zeros((6, 3, 8, 8), np.uint8), np.arange(6) % 3
    return {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels} | changes


class TestDataset:
    def test_arrays_of_numpy_and_torch(self):
        mine = data.dataset("mine", arrays(), ["a", "b", "c"])
        assert (mine.train_labels.dtype, mine.names) == (torch.int64, ("a", "b", "c"))
        tensors = {name: torch.from_numpy(array) for name, array in arrays().items()}
        assert torch.equal(data.dataset("mine", tensors, "abc").train_images, mine.train_images)

    @pytest.mark.parametrize(
        ("change", "error", "words"),
        [
            ({"train_images": np.zeros((6, 3, 8, 8), np.float32)}, TypeError, "`train_images` must be uint8.*255"),
            ({"test_images": np.zeros((6, 8, 8), np.uint8)}, ValueError, r"`test_images` must be \(N, channels"),
            ({"test_images": np.zeros((6, 8, 8, 3), np.uint8)}, ValueError, r"looks like .*transpose\(0, 3, 1, 2\)"),
            ({"test_labels": np.zeros(5, int)}, ValueError, r"got \(6, 3, 8, 8\) and \(5,\)"),
            ({"train_labels": np.arange(6)}, ValueError, "`train_labels` must be whole numbers from 0 to 2"),
            ({"train_labels": np.zeros(6)}, ValueError, "`train_labels` must be whole numbers"),
            ({"test_images": np.zeros((6, 1, 8, 8), np.uint8)}, ValueError, "3 channels and `test_images` 1"),
        ],
    )
    def test_what_does_not_fit_is_named(self, change, error, words):
        with pytest.raises(error, match=words):
            data.dataset("mine", arrays(**change), "abc")

    def test_a_channel_that_never_changes_is_shown_as_zero(self):
        images = np.full((6, 3, 8, 8), 40, np.uint8)
        images[:3, 0] = 60
        mine = data.dataset("mine", arrays(train_images=images), "abc")
        assert mine.std == (pytest.approx(10 / 255), 1.0, 1.0)
        assert not mine.normalised(mine.train_images)[:, 1:].any()

    def test_a_number_is_no_list_of_names(self):
        with pytest.raises(TypeError, match="`names` must be the names of the classes, got 3"):
            data.dataset("mine", arrays(), 3)

    def test_without_names_the_labels_number_the_classes(self):
        mine = data.dataset("mine", arrays())
        assert mine.names == tuple(map(str, range(1 + int(max(arrays()["train_labels"])))))

    def test_it_prints_in_one_line(self):
        """It printed all of its pixels."""
        shape = arrays()["train_images"].shape
        said = repr(data.dataset("mine", arrays(), ["a", "b", "c"]))
        assert said.startswith(f"Dataset(mine, {shape[0]} and ")
        assert said.endswith(f"images of {shape[2]} x {shape[3]} x {shape[1]}, 3 classes)")

    def test_arrays_are_handed_over_by_name(self):
        with pytest.raises(TypeError, match=r"`arrays` must be a dictionary with train_images, .*, got Tensor"):
            data.dataset("mine", torch.zeros(2, 3, 8, 8, dtype=torch.uint8))

    def test_a_missing_part(self):
        some = arrays()
        del some["test_labels"]
        with pytest.raises(ValueError, match="test_labels is missing"):
            data.dataset("mine", some, "abc")


class TestRoot:
    def test_a_folder_that_is_not_there_is_refused_and_not_made(self, tmp_path, monkeypatch):
        with pytest.raises(data.DataUnavailable, match=r"`root` \(--data-root\) = .*typo' is not a folder"):
            data.load("cifar10", tmp_path / "typo")
        monkeypatch.setenv("NETBRIDGE_DATA", str(tmp_path / "typo"))
        with pytest.raises(data.DataUnavailable, match=r"\$NETBRIDGE_DATA = .*typo' is not a folder"):
            data.load("cifar10")
        assert list(tmp_path.iterdir()) == []

    def test_the_users_cache_is_made(self, tmp_path, monkeypatch):
        monkeypatch.delenv("NETBRIDGE_DATA", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        with pytest.raises(data.DataUnavailable, match="no cifar100 at hand"):
            data.load("cifar100", download=False)
        assert (tmp_path / "cache" / "netbridge" / "cifar100").is_dir()
