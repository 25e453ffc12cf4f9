"""Machine code on disk: found again, loaded from safe places only, and named by all that a result depends on."""

import os
import shutil
import stat
import sys
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import odelab as ol
from odelab.engines.numba import cache
from odelab.engines.numba.cache import digest_of, environment
from odelab.engines.numba.fingerprint import fingerprint
from odelab.engines.numba.load import name_of_kernel
from odelab.engines.numba.request import request_of_run

SMALL = """
def small(shift, name="test"):
    from numba import njit
    from odelab.engines.numba import cache

    cache.names_are_apart()
    advance = njit(lambda x: 2.0 * x + shift)
    advance._cache = cache.OnDisk(name)
    return advance
"""
exec(SMALL)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "warned", set())
    return tmp_path / "cache" / "kernels"


def loaded(shift, name="test"):
    """2 * 3 + shift by a kernel as a new process would load it: (the number, was it found on disk?)."""
    advance = globals()["small"](shift, name)
    return advance(3.0), sum(advance.stats.cache_hits.values()) > 0


def test_a_kernel_is_found_again(here):
    assert loaded(1.0) == (7.0, False)
    assert loaded(1.0) == (7.0, True)
    assert loaded(2.0, "other") == (8.0, False)
    assert len(list(here.iterdir())) == 2


def cut(path: Path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path):
    path.write_bytes(b"")


def flip(path: Path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, empty, flip])
def test_a_damaged_file_is_compiled_anew_and_put_right(here, damage):
    loaded(1.0)
    (path,) = here.iterdir()
    before = path.stat().st_size
    damage(path)
    assert loaded(1.0) == (7.0, False)
    assert path.stat().st_size > 0.9 * before
    assert loaded(1.0) == (7.0, True)


def test_a_file_under_the_name_of_another_is_not_taken_for_it(here):
    loaded(1.0, "one")
    (path,) = here.iterdir()
    path.rename(path.with_name(path.name.replace("one", "two")))
    assert loaded(2.0, "two") == (8.0, False)


def test_a_folder_that_cannot_be_made_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "file"))
    assert loaded(3.0) == (9.0, False)


def test_a_folder_nobody_can_write_to_does_no_harm(here, monkeypatch):
    def refused(*arguments, **options):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(cache.tempfile, "mkstemp", refused)
    assert loaded(3.0) == (9.0, False)


# Machine code is executed, so it is loaded from nowhere that somebody else can write to.


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
def test_a_new_folder_is_for_its_owner_alone(here):
    before = os.umask(0o002)
    try:
        loaded(1.0)
    finally:
        os.umask(before)
    for path in (here.parent, here):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in here.iterdir()] == [0o600]


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
@pytest.mark.parametrize("place", [".", "kernels", "file"])
def test_nothing_is_loaded_that_others_can_write_to(here, place):
    loaded(1.0)
    path = next(here.iterdir()) if place == "file" else here.parent / place
    path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="can be written by others.*ODELAB_CACHE") as caught:
        assert loaded(1.0) == (7.0, False)
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded(1.0)  # said once
    path.chmod(0o700)
    assert loaded(1.0)[1]


@pytest.mark.skipif(os.name != "posix", reason="the owners of files")
def test_nothing_is_loaded_that_belongs_to_another_user(here, monkeypatch):
    loaded(1.0)
    myself = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: myself + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert loaded(1.0) == (7.0, False)


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
def test_nothing_is_loaded_through_a_link(here, tmp_path):
    loaded(1.0)
    path = next(here.iterdir())
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="is a symbolic link"):
        assert loaded(1.0)[1] is False


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
def test_a_folder_that_another_could_exchange_is_not_loaded_from(tmp_path, monkeypatch):
    """Its own rights are good, and it could be moved away at any moment for one whose rights were never looked at."""
    monkeypatch.setattr(cache, "warned", set())
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "everybody" / "cache"))
    loaded(1.0)
    (tmp_path / "everybody").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="everybody can be written by others"):
        assert loaded(1.0)[1] is False
    (tmp_path / "everybody").chmod(0o1777)  # as /tmp: others cannot move what is not theirs
    assert loaded(1.0)[1]


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
def test_a_link_to_the_cache_is_followed_once(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "link"))
    private = cache.is_private
    loaded(1.0)
    assert loaded(1.0)[1]

    def exchanged(place):
        found = private(place)
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(tmp_path)
        return found

    monkeypatch.setattr(cache, "is_private", exchanged)
    assert loaded(1.0)[1]  # what was looked at is what is loaded
    assert not (tmp_path / "kernels").exists()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"ODELAB_CACHE": "/somewhere", "XDG_CACHE_HOME": "/xdg"}, "/somewhere"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/odelab"),
        ({}, "/home/user/.cache/odelab"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the rules of this system")
def test_where_kernels_are_kept(monkeypatch, environment, expected):
    for name in ("ODELAB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/user")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert str(cache.folder()) == expected


def test_the_folder_does_not_grow_for_ever(here, monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 3)
    for number in range(5):
        loaded(float(number), f"test{number}")
        (path,) = here.glob(f"test{number}_*")
        os.utime(path, (number * 100, number * 100))
    assert sorted(path.name[:5] for path in here.iterdir()) == ["test2", "test3", "test4"]
    assert loaded(4.0, "test4") == (10.0, True)


def test_folders_of_earlier_versions_are_removed_first(here, monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 1)
    for number in range(3):
        (here / f"old{number}" / "__pycache__").mkdir(parents=True, mode=0o700)
        os.utime(here / f"old{number}", (number, number))
    here.chmod(0o700)
    here.parent.chmod(0o700)
    loaded(1.0)
    assert [path.name[:4] for path in here.iterdir()] == ["test"]


def test_what_lies_on_a_read_only_file_system_is_loaded(here, monkeypatch):
    loaded(1.0)

    def refused(*arguments, **options):
        raise OSError("read-only file system")

    monkeypatch.setattr(cache.os, "utime", refused)
    assert loaded(1.0) == (7.0, True)


# The name of a kernel covers everything a result depends on; what the right-hand side reaches: test_fingerprint.py.


def name_of(rhs, method=ol.DOPRI5, controller=None, u0=(1.0,), params=(2.0,)):
    problem = ol.Problem(rhs, list(u0), (0.0, 1.0), params)
    request = request_of_run(problem, method, controller or ol.adaptive())
    return name_of_kernel(request, fingerprint(*request.functions.values()))


def made(rate, power=2):
    def rhs(t, u, params):
        return (-rate * u[0] ** power,)

    return rhs


def test_the_same_question_has_the_same_name():
    assert name_of(made(1.0)) == name_of(made(1.0))


@pytest.mark.parametrize(
    "other",
    [
        {"rhs": made(1.0 + 2**-52)},
        {"rhs": made(1)},
        {"rhs": made(1.0, 3)},
        {"method": ol.RKF45},
        {"controller": ol.adaptive(law="h211b")},
        {"controller": ol.fixed(0.1)},
    ],
)
def test_another_question_has_another_name(other):
    assert name_of(**({"rhs": made(1.0)} | other)) != name_of(made(1.0))


@pytest.mark.parametrize("same", [{"controller": ol.adaptive(1e-3, 1e-5)}, {"params": (7.0,)}, {"u0": (3.0,)}])
def test_tolerances_states_and_parameters_are_not_in_the_name(same):
    assert name_of(made(1.0), **same) == name_of(made(1.0))


def test_versions_and_processor_are_in_the_name(monkeypatch):
    """Also of a checkout that nobody has installed, of which no metadata are known."""
    import numba
    from llvmlite import binding

    known = metadata.distribution
    monkeypatch.setattr(metadata, "distribution", lambda name: known("no distribution" if name == "odelab" else name))
    described = environment.__wrapped__()
    for part in (ol.__version__, numba.__version__, np.__version__, binding.get_host_cpu_name()):
        assert part in described


def test_every_source_file_of_odelab_is_in_the_name(tmp_path):
    """Any of them may be compiled along."""
    package = tmp_path / "odelab"
    shutil.copytree(Path(ol.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = digest_of(package)
    assert before in environment()
    for name in ("core.py", "maths.py", "control/feedback.py", "engines/numba/jit.py"):
        content = (package / name).read_text()
        (package / name).write_text(content + "# edited")
        assert digest_of(package) != before
        (package / name).write_text(content)
    assert digest_of(package) == before
