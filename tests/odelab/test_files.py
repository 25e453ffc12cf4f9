"""A file is whole or not there."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from odelab.files import replacing


def test_what_was_there_stays_until_all_is_written(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as unfinished:
        unfinished.write_text("ne")
        assert path.read_text() == "old"
    assert path.read_text() == "ne"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail():
        with replacing(path) as unfinished:
            unfinished.write_text("ne")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk"):
        fail()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.fixture
def umask():
    """Sets the umask; and puts it back, having found it as it was set."""
    given = []

    def set_to(mask):
        given.append((os.umask(mask), mask))

    yield set_to
    for before, mask in given:
        assert os.umask(before) == mask


def write_for_the_owner_only(unfinished, content):
    """As safetensors does: a file of its own in the place of the one that was there."""
    unfinished.unlink()
    descriptor = os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(descriptor, content)
    os.close(descriptor)


@pytest.mark.parametrize(("mask", "mode"), [(0o027, 0o640), (0o022, 0o644), (0o077, 0o600)], ids=oct)
def test_others_may_read_it(tmp_path, umask, mask, mode):
    path = tmp_path / "file"
    umask(mask)
    with replacing(path) as unfinished:
        write_for_the_owner_only(unfinished, b"new")
    assert path.stat().st_mode & 0o777 == mode
    assert path.read_bytes() == b"new"


def test_threads_write_at_once_and_nobody_sets_the_umask(tmp_path, umask, monkeypatch):
    umask(0o077)
    paths = [tmp_path / name for name in "abcd"]

    def write(number):
        with replacing(paths[number % len(paths)]) as unfinished:
            for _ in range(20):  # several writes, between which others come
                with unfinished.open("ab") as file:
                    file.write(b"%4d" % number)
        return unfinished

    with monkeypatch.context() as forbidding, ThreadPoolExecutor(16) as threads:
        forbidding.setattr(os, "umask", lambda mask: pytest.fail("the umask belongs to the process, not to a thread"))
        unfinished = list(threads.map(write, range(200)))
    assert len(set(unfinished)) == 200
    assert sorted(tmp_path.iterdir()) == paths
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in paths)
    for first, path in enumerate(paths):
        assert path.read_bytes() in {b"%4d" % number * 20 for number in range(first, 200, len(paths))}


def test_a_name_that_is_taken_is_not_written_to(tmp_path, monkeypatch):
    """Processes of two machines on a shared folder may have the same number, and even the same random one."""
    monkeypatch.setattr("secrets.token_hex", lambda count: "1")
    living = tmp_path / ".file.1.part"
    living.write_text("another's")
    with pytest.raises(FileExistsError), replacing(tmp_path / "file"):
        pass
    assert living.read_text() == "another's"


def test_only_abandoned_halves_are_swept(tmp_path):
    old, young, other = (tmp_path / name for name in (".file.1.part", ".file.2.part", ".another.1.part"))
    for half in (old, young, other):
        half.write_text("half")
    for half in (old, other):
        os.utime(half, (0, 0))
    with replacing(tmp_path / "file") as unfinished:
        unfinished.write_text("new")
    assert sorted(file.name for file in tmp_path.iterdir()) == [".another.1.part", ".file.2.part", "file"]
