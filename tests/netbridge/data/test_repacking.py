"""Shards of smaller pictures: the same order and labels, whole or not there, and the same bytes however made."""

import numpy as np
import pytest

from netbridge import data


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """Twelve pictures to train on, six to test with, 40 pixels high; one is grey and one CMYK."""
    folder = tmp_path_factory.mktemp("imagenet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETBRIDGE_DATA", str(folder))
        yield data.imagenet(data.miniature("imagenet", folder, classes=3, each=4, height=40) / "archives", 16, 20)


def shards(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("*.tar")}


def test_pictures_are_smaller_and_otherwise_the_same(big, tmp_path):
    small = data.imagenet(data.repack(big, tmp_path / "small", short=20, each=5), 16, 20)
    assert len(shards(tmp_path / "small")) == 3 + 2
    for index, original in ((small.train, big.train), (small.test, big.test)):
        assert index.labels.tolist() == original.labels.tolist()
        for number in range(len(index)):
            now, before = index.picture(number), original.picture(number)
            assert min(now.size) == 20
            assert now.width == round(before.width / 2)
            apart = np.asarray(now, float) - np.asarray(before.resize(now.size), float)
            assert abs(apart).mean() < 6  # levels of 255: another filter, and JPEG once more


def test_small_pictures_keep_their_bytes(big, tmp_path):
    same = data.imagenet(data.repack(big, tmp_path / "same", short=40), 16, 20)
    for index, original in ((same.train, big.train), (same.test, big.test)):
        assert [index.read(n) for n in range(len(index))] == [original.read(n) for n in range(len(original))]


def test_it_goes_on_with_what_is_missing_in_any_number_of_processes(big, tmp_path, monkeypatch):
    whole = shards(data.repack(big, tmp_path / "whole", short=30, each=4))
    reads, read = [], data.Index.read

    def killed(index, number):
        reads.append(number)
        if len(reads) == 12:
            raise KeyboardInterrupt
        return read(index, number)

    monkeypatch.setattr(data.Index, "read", killed)
    with pytest.raises(KeyboardInterrupt):
        data.repack(big, tmp_path / "parts", short=30, each=4)
    monkeypatch.undo()
    assert not (tmp_path / "parts").exists()
    begun = shards(tmp_path / "parts.unfinished")
    assert 0 < len(begun) < len(whole)
    assert begun.items() <= whole.items()
    with pytest.raises(ValueError, match="was begun with another short; remove it"):
        data.repack(big, tmp_path / "parts", short=29, each=4)
    assert shards(data.repack(big, tmp_path / "parts", short=30, each=4, workers=1)) == whole
    assert not (tmp_path / "parts.unfinished").exists()


def test_what_is_there_is_not_written_over_and_numbers_make_sense(big, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there is there already"):
        data.repack(big, tmp_path / "there")
    with pytest.raises(ValueError, match="`quality` must be a whole number from 1 to 95, got 100"):
        data.repack(big, tmp_path / "new", quality=100)
    with pytest.raises(ValueError, match="`short` must be a whole number from 1 on, got 0"):
        data.repack(big, tmp_path / "new", short=0)
