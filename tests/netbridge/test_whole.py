"""A file is whole or not there."""

import os

import pytest

from netbridge.whole import whole


def test_what_was_there_stays_until_all_is_written(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with whole(path) as unfinished:
        unfinished.write_text("ne")
        assert path.read_text() == "old"
    assert path.read_text() == "ne"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail():
        with whole(path) as unfinished:
            unfinished.write_text("ne")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk"):
        fail()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_others_may_read_it(tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        with whole(path) as unfinished:
            os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_only_abandoned_halves_are_swept(tmp_path):
    old, young, other = (tmp_path / name for name in (".file.1.part", ".file.2.part", ".another.1.part"))
    for half in (old, young, other):
        half.write_text("half")
    for half in (old, other):
        os.utime(half, (0, 0))
    with whole(tmp_path / "file") as unfinished:
        unfinished.write_text("new")
    assert sorted(file.name for file in tmp_path.iterdir()) == [".another.1.part", ".file.2.part", "file"]
