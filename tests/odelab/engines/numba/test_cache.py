"""Kernels on disk: found again, checked before they run, and named by all that a result depends on."""

import importlib
import inspect
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import odelab as ol
from odelab.engines.numba import cache
from odelab.engines.numba.module import environment, module_for
from odelab.engines.numba.request import request_for

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
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "cache" / "kernels"


def loaded(text):
    """The kernel of a text as a new process would load it: (function, was it found on disk?)."""
    for name in [name for name in sys.modules if name.startswith("odelab_kernel_test")]:
        del sys.modules[name]
    advance = cache.load(text, "test")["advance"]
    return advance, sum(advance.stats.cache_hits.values()) > 0


def test_a_kernel_is_found_again(here):
    text = SMALL.format(shift=1.0)
    advance, found = loaded(text)
    assert (advance(3.0), found) == (7.0, False)
    advance, found = loaded(text)
    assert (advance(3.0), found) == (7.0, True)
    assert loaded(SMALL.format(shift=2.0))[1] is False
    assert len(list(here.iterdir())) == 2


def flip(path: Path):
    """Turn one bit over in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def cut(path: Path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [flip, cut, empty])
@pytest.mark.parametrize(
    "file", ["kernel.py", "sums.txt", "__pycache__/*.nbi", "__pycache__/*.nbc", "__pycache__/*.pyc"]
)
def test_a_damaged_file_is_noticed_and_put_right(here, damage, file):
    text = SMALL.format(shift=1.0)
    loaded(text)
    (place,) = here.iterdir()
    (path,) = place.glob(file)
    damage(path)
    advance, found = loaded(text)
    assert advance(3.0) == 7.0
    assert file == "kernel.py" or not found  # machine code of the right text is good although its text was damaged
    assert (place / "kernel.py").read_text() == text
    assert cache.intact(place)
    assert loaded(text)[1]


def test_machine_code_is_checked_before_it_runs(here):
    """The sums are what notices: without them a flipped bit would be executed."""
    loaded(SMALL.format(shift=1.0))
    (place,) = here.iterdir()
    assert cache.intact(place)
    flip(next(place.glob("__pycache__/*.nbc")))
    assert not cache.intact(place)


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
        loaded(SMALL.format(shift=float(number)))
        for age, place in enumerate(sorted(here.iterdir(), key=cache.last_used)):
            os.utime(place / "sums.txt", (number * 100 + age, number * 100 + age))
    assert len(list(here.iterdir())) == 3
    assert loaded(SMALL.format(shift=4.0))[1]


# The name of a kernel is a hash of its text, so everything a result depends on must be in the text.


def text_of(rhs, method=ol.DOPRI5, controller=None, u0=(1.0,), params=(2.0,), layout="single"):
    problem = ol.Problem(rhs, list(u0), (0.0, 1.0), params)
    return module_for(request_for(layout, problem, method, controller or ol.adaptive())).text


def made(rate, power=2):
    def rhs(t, u, params):
        return (-rate * u[0] ** power,)

    return rhs


def test_the_same_question_has_the_same_text():
    assert text_of(made(1.0)) == text_of(made(1.0))


@pytest.mark.parametrize(
    "other",
    [
        {"rhs": made(1.0 + 2**-52)},
        {"rhs": made(1)},
        {"rhs": made(1.0, 3)},
        {"method": ol.RKF45},
        {"controller": ol.adaptive(law="i")},
        {"controller": ol.fixed(0.1)},
        {"controller": ol.adaptive(atol=[1e-9])},
        {"params": (1.0, 2.0)},
        {"layout": "lanes"},
    ],
)
def test_another_question_has_another_text(other):
    assert text_of(**({"rhs": made(1.0)} | other)) != text_of(made(1.0))


@pytest.mark.parametrize("same", [{"controller": ol.adaptive(1e-3, 1e-5)}, {"params": (7.0,)}, {"u0": (3.0,)}])
def test_tolerances_states_and_parameters_are_not_in_the_text(same):
    assert text_of(made(1.0), **same) == text_of(made(1.0))


def test_versions_and_processor_are_in_the_text():
    import numba
    from llvmlite import binding

    text = text_of(made(1.0))
    for part in (ol.kernels.module.metadata.version("odelab"), numba.__version__, np.__version__):
        assert part in text
    assert binding.get_host_cpu_name() in text


def in_place(t, u, params, out):
    out[:] = -params[0] * u


def compiled_along():
    """The modules of odelab that the texts of all layouts take something from."""
    asked = [{"rhs": made(1.0), "layout": "single"}, {"rhs": made(1.0), "layout": "lanes"}]
    asked += [{"rhs": in_place, "layout": "large"}, {"rhs": in_place, "layout": "stabilised", "method": ol.RKC2}]
    names = set()
    for text in (text_of(**question) for question in asked):
        for home, found in re.findall(r"^from (odelab\S*) import (.+)$", text, re.MULTILINE):
            of_names = [f"{home}.{name}" for name in found.split(", ")]
            names |= {
                name if getattr(importlib.util.find_spec(home), "submodule_search_locations", None) else home
                for name in of_names
            }
    return sorted(names)


@pytest.mark.parametrize("name", [*compiled_along(), "odelab.maths", "odelab.engines.numba.rows"])
def test_what_is_compiled_along_is_in_the_text(name, monkeypatch):
    """Another source of it is another kernel."""
    part, read, before = importlib.import_module(name), inspect.getsource, environment()
    monkeypatch.setattr(inspect, "getsource", lambda module: read(module) + "# edited" * (module is part))
    assert environment.__wrapped__() != before
