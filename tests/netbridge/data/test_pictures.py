"""Pictures that stay on the disk: three layouts, one sequence of bytes and labels; damage has a name."""

import dataclasses
import hashlib
import io
import os
import tarfile

import numpy as np
import pytest
from PIL import Image

from netbridge import data
from netbridge.data import layouts, pictures

LAYOUTS = ("archives", "tree", "shards")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A miniature of ImageNet, and a cache folder that is nobody's."""
    folder = tmp_path_factory.mktemp("imagenet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETBRIDGE_DATA", str(folder))
        yield data.miniature("imagenet", folder, classes=4, each=6, height=24)


def load(root, layout):
    return data.imagenet(root / layout, size=16, resize=20)


class TestLayouts:
    @pytest.mark.parametrize("part", ["train", "test"])
    def test_every_layout_gives_the_same_bytes_and_labels(self, root, part):
        sequences = []
        for layout in LAYOUTS:
            index = getattr(load(root, layout), part)
            sequences.append(
                [(hashlib.md5(index.read(n)).hexdigest(), int(index.labels[n])) for n in range(len(index))]
            )
        assert sequences[0] == sequences[1] == sequences[2]
        assert len(set(sequences[0])) == {"train": 24, "test": 12}[part]

    def test_classes_are_the_sorted_folders(self, root):
        assert load(root, "archives").names == load(root, "tree").names == tuple(sorted(load(root, "tree").names))

    def test_a_flat_validation_folder_takes_its_labels_from_the_devkit(self, root, tmp_path):
        (tmp_path / "val").mkdir()
        (tmp_path / "train").symlink_to(root / "tree" / "train")
        for file in (root / "tree" / "val").rglob("*.JPEG"):
            (tmp_path / "val" / file.name).write_bytes(file.read_bytes())
        with pytest.raises(data.DataUnavailable, match="put it there"):
            data.imagenet(tmp_path, size=16, resize=20)
        packed = root / "archives" / layouts.DEVKIT_ARCHIVE
        (tmp_path / packed.name).write_bytes(packed.read_bytes())
        flat = data.imagenet(tmp_path, size=16, resize=20)
        assert flat.test.labels.tolist() == load(root, "archives").test.labels.tolist()

    def test_the_index_is_kept_until_a_file_changes(self, root, monkeypatch):
        first = load(root, "shards")
        monkeypatch.setattr(layouts, "from_shards", lambda *_: pytest.fail("went through the shards again"))
        assert load(root, "shards").digest() == first.digest()
        shard = sorted((root / "shards").glob("*train*"))[0]
        os.utime(shard, (1, 1))
        with pytest.raises(pytest.fail.Exception, match="again"):
            load(root, "shards")

    def test_a_damaged_index_is_made_anew(self, root):
        first = load(root, "tree")
        for file in (root.parent / "imagenet").glob("index-*"):
            file.write_bytes(file.read_bytes()[:-8])
        assert load(root, "tree").digest() == first.digest()

    def test_a_folder_with_nothing_of_it_says_what_would_be_read(self, tmp_path):
        with pytest.raises(data.DataUnavailable, match=r"holds no ImageNet.*ILSVRC2012_img_train.tar"):
            data.imagenet(tmp_path)
        (tmp_path / layouts.TRAIN_ARCHIVE).touch()
        with pytest.raises(data.DataUnavailable, match=r"no ILSVRC2012_img_val.tar and no ILSVRC2012_devkit"):
            data.imagenet(tmp_path)

    def test_a_corrected_devkit_gives_other_labels(self, root, tmp_path):
        (tmp_path / "val").mkdir()
        (tmp_path / "train").symlink_to(root / "tree" / "train")
        for file in (root / "tree" / "val").rglob("*.JPEG"):
            (tmp_path / "val" / file.name).write_bytes(file.read_bytes())
        with tarfile.open(root / "archives" / layouts.DEVKIT_ARCHIVE) as packed:
            packed.extractall(tmp_path, filter="data")
        first = data.imagenet(tmp_path, size=16, resize=20).test.labels.tolist()
        truth = tmp_path / layouts.DEVKIT / layouts.TRUTH
        truth.write_text("\n".join(truth.read_text().split()[::-1]))
        assert data.imagenet(tmp_path, size=16, resize=20).test.labels.tolist() == first[::-1] != first

    @pytest.mark.parametrize(
        ("files", "words"),
        [
            ({"00.jpg": b""}, "00 has no label"),
            ({"00.jpg": b"", "00.cls": b"cat"}, r"00.cls holds b'cat'; a label must be the number of a class"),
            ({"00.jpg": b"", "00.cls": b"-100"}, r"00.cls holds b'-100'; a label must be the number of a class"),
            ({"00.jpg": b"", "00.png": b"", "00.cls": b"1"}, "00 has more than one picture"),
        ],
    )
    def test_a_shard_that_does_not_fit_is_named(self, files, words, tmp_path):
        for part in ("train", "val"):
            with tarfile.open(tmp_path / f"{part}-000000.tar", "w") as shard:
                for name, content in files.items():
                    entry = tarfile.TarInfo(name)
                    entry.size = len(content)
                    shard.addfile(entry, io.BytesIO(content))
        with pytest.raises(ValueError, match=rf"train-000000.tar: {words}"):
            data.imagenet(tmp_path)

    def test_a_shard_that_could_be_of_either_part_is_in_neither(self, tmp_path):
        for name in ("valve-train-0.tar", "valve-val-0.tar"):
            (tmp_path / name).touch()
        with pytest.raises(ValueError, match=r"valve-train-0.tar could be a shard of either part"):
            data.imagenet(tmp_path)

    def test_how_pictures_are_shown_tells_data_sets_apart(self, root):
        shown = [data.imagenet(root / "tree", size, resize) for size, resize in ((16, 20), (12, 20), (16, 24))]
        other = dataclasses.replace(shown[0], mean=(0.0, 0.0, 0.0))
        assert len({one.digest() for one in (*shown, other)}) == 4


class TestPictures:
    def test_grey_and_cmyk_come_as_rgb(self, root):
        index = load(root, "archives").train
        modes = {Image.open(io.BytesIO(index.read(n))).mode for n in range(len(index))}
        assert modes == {"RGB", "L", "CMYK"}
        assert {index.picture(n).mode for n in range(len(index))} == {"RGB"}

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_a_picture_cut_short_is_named_with_its_archive_and_member(self, root, layout):
        index = load(root, layout).train
        places = index.places.copy()
        places[5, 2] = 200
        if layout == "tree":  # a file has no length to shorten
            places[5, 1], places[5, 2] = 200, -1
        cut = pictures.Index(index.files, places, index.labels)
        member = {"archives": r"_img_train.tar, member n01440764.tar/n\w+.JPEG", "tree": r"n01440764_\d.JPEG"}
        with pytest.raises(ValueError, match=member.get(layout, r"train-000000.tar, member 00000005.jpg")):
            cut.picture(5)

    def test_more_than_eight_bits_are_refused(self, tmp_path):
        """Pillow would cut them off at 255: 16 bits become white, numbers from 0 to 1 black."""
        deep = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16
        for name, pixels in (("a.png", deep), ("b.tif", deep.astype(np.float32) / 65536)):
            Image.fromarray(pixels).save(tmp_path / name)
            index = pictures.index_of([tmp_path / name], [(0, 0, -1)], [0])
            with pytest.raises(ValueError, match=rf"{name}: no picture .* more than eight bits a channel"):
                index.picture(0)

    def test_a_damaged_archive_is_named(self, root, tmp_path):
        whole = (root / "archives" / layouts.TRAIN_ARCHIVE).read_bytes()
        (tmp_path / "cut.tar").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=r"cut.tar.*damaged archive"):
            list(pictures.members(tmp_path / "cut.tar", nested=True))


class TestMiniatures:
    @pytest.mark.parametrize("name", ["cifar100", "stl10"])
    def test_the_official_archive_loads_under_a_name_that_says_what_it_is(self, name, tmp_path):
        data.miniature(name, tmp_path, classes=3, each=4)
        loaded = data.load(name, tmp_path, download=False)
        assert loaded.name == f"{name}-miniature"
        assert np.bincount(loaded.train_labels).tolist() == [4, 4, 4]
        with pytest.raises(FileExistsError, match="there already"):
            data.miniature(name, tmp_path)

    def test_the_same_arguments_give_the_same_pictures(self, tmp_path):
        places = [data.miniature("imagenet", tmp_path / part, classes=2, each=2, height=16) for part in "ab"]
        one, other = ((place / "archives" / layouts.TRAIN_ARCHIVE).read_bytes() for place in places)
        assert one == other
