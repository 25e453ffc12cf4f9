"""Kernels on disk: found again, loaded from safe places only, and named by all that a result depends on."""

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
from odelab.engines.numba.module import digest_of, environment, module_for
from odelab.engines.numba.request import request_of_run

SMALL = """
from numba import njit, types
CACHE = "__file__" in globals()

@njit([(types.float64,)], cache=CACHE)
def advance(x):
    return 2.0 * x + {shift}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "warned", set())
    return tmp_path / "cache" / "kernels"


def loaded(text, name="test"):
    """The kernel of a text as a new process would load it: (function, was it found on disk?)."""
    advance = cache.load(text, name)["advance"]
    return advance, sum(advance.stats.cache_hits.values()) > 0


def test_a_kernel_is_found_again(here):
    text = SMALL.format(shift=1.0)
    advance, found = loaded(text)
    assert (advance(3.0), found) == (7.0, False)
    advance, found = loaded(text)
    assert (advance(3.0), found) == (7.0, True)
    assert loaded(SMALL.format(shift=2.0), "other")[1] is False
    assert len(list(here.iterdir())) == 2


def cut(path: Path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, empty])
@pytest.mark.parametrize("file", ["kernel.py", "__pycache__/*.nbi", "__pycache__/*.nbc"])
def test_a_damaged_file_is_compiled_anew_and_put_right(here, damage, file):
    text = SMALL.format(shift=1.0)
    loaded(text)
    (place,) = here.iterdir()
    (path,) = place.glob(file)
    damage(path)
    advance, found = loaded(text)
    assert advance(3.0) == 7.0
    assert file == "kernel.py" or not found  # machine code of the right text is good although its text was damaged
    assert (place / "kernel.py").read_text() == text
    assert loaded(text)[1]


def test_a_folder_that_cannot_be_made_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "file"))
    advance, found = loaded(SMALL.format(shift=3.0))
    assert (advance(1.0), found) == (5.0, False)


def test_a_folder_nobody_can_write_to_does_no_harm(here, monkeypatch):
    def refused(*arguments, **options):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(cache.tempfile, "mkstemp", refused)
    advance, found = loaded(SMALL.format(shift=3.0))
    assert (advance(1.0), found) == (5.0, False)


# Machine code is executed, so it is loaded from nowhere that somebody else can write to.


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
def test_a_new_folder_is_for_its_owner_alone(here):
    before = os.umask(0o002)
    try:
        loaded(SMALL.format(shift=1.0))
    finally:
        os.umask(before)
    for path in (here.parent, here, *here.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
@pytest.mark.parametrize("place", [".", "kernels", "kernels/test", "kernels/test/__pycache__", "nbc"])
def test_nothing_is_loaded_that_others_can_write_to(here, place):
    text = SMALL.format(shift=1.0)
    loaded(text)
    path = next(here.rglob("*.nbc")) if place == "nbc" else here.parent / place
    path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="can be written by others.*ODELAB_CACHE") as caught:
        advance, found = loaded(text)
    assert (advance(3.0), found) == (7.0, False)
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded(text)  # said once
    path.chmod(0o700)
    assert loaded(text)[1]


@pytest.mark.skipif(os.name != "posix", reason="the owners of files")
def test_nothing_is_loaded_that_belongs_to_another_user(here, monkeypatch):
    text = SMALL.format(shift=1.0)
    loaded(text)
    myself = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: myself + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        advance, found = loaded(text)
    assert (advance(3.0), found) == (7.0, False)


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
@pytest.mark.parametrize("file", ["nbc", "__pycache__"])
def test_nothing_is_loaded_through_a_link(here, tmp_path, file):
    text = SMALL.format(shift=1.0)
    loaded(text)
    path = next(here.rglob(f"*{file}"))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="is a symbolic link"):
        assert loaded(text)[1] is False


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
def test_a_folder_that_another_could_exchange_is_not_loaded_from(tmp_path, monkeypatch):
    """Its own rights are good, and it could be moved away at any moment for one whose rights were never looked at."""
    monkeypatch.setattr(cache, "warned", set())
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "everybody" / "cache"))
    text = SMALL.format(shift=1.0)
    loaded(text)
    (tmp_path / "everybody").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="everybody can be written by others"):
        assert loaded(text)[1] is False
    (tmp_path / "everybody").chmod(0o1777)  # as /tmp: others cannot move what is not theirs
    assert loaded(text)[1]


@pytest.mark.skipif(os.name != "posix", reason="the rights of files")
def test_a_link_to_the_cache_is_followed_once(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("ODELAB_CACHE", str(tmp_path / "link"))
    text, private = SMALL.format(shift=1.0), cache.is_private
    loaded(text)
    assert loaded(text)[1]

    def exchanged(place):
        found = private(place)
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(tmp_path)
        return found

    monkeypatch.setattr(cache, "is_private", exchanged)
    assert loaded(text)[1]  # what was looked at is what is loaded
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
        loaded(SMALL.format(shift=float(number)), f"test{number}")
        os.utime(here / f"test{number}", (number * 100, number * 100))
    assert sorted(path.name for path in here.iterdir()) == ["test2", "test3", "test4"]
    assert loaded(SMALL.format(shift=4.0), "test4")[1]


# The name of a kernel covers everything a result depends on; what the right-hand side reaches: test_fingerprint.py.


def name_of(rhs, method=ol.DOPRI5, controller=None, u0=(1.0,), params=(2.0,)):
    problem = ol.Problem(rhs, list(u0), (0.0, 1.0), params)
    return module_for(request_of_run(problem, method, controller or ol.adaptive())).name


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
