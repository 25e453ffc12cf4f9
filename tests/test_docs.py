"""The documentation site: its grammar of docstrings, its reference, its figures; it builds without a warning."""

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import netbridge as nb
import odelab as ol
from docs.site.__main__ import groups, public, reference
from docs.site.entries import entries, parts
from tests.clock import HANGS

ROOT = Path(__file__).parent.parent
GALLERY = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))
SLOW = ("block_spectrum", "pseudospectrum", "costs", "nsi_depth", "doctor", "amplifier")


def test_names_and_texts_of_entries_are_told_apart():
    assert entries("t, u   time and state\nh      the step\n       of the method") == [
        (["t", "u"], "time and state"),
        (["h"], "the step of the method"),
    ]
    assert entries("one, two\nthree\n       three names") == [(["one", "two", "three"], "three names")]
    assert entries("A sentence, which is no list.") is None
    assert entries("Word") is None
    assert [kind for kind, _ in parts("Text.\n\na   b\n\n    code\n\n>>> 1\n1")] == [
        "text",
        "entries",
        "code",
        "example",
    ]


@pytest.mark.parametrize("package", [ol, nb], ids=["odelab", "netbridge"])
def test_every_public_name_is_on_exactly_one_page(package):
    grouped = [name for names in groups(package).values() for name in names]
    assert sorted(grouped) == sorted(name for name in vars(package) if public(package, name))
    text = "\n".join(reference().values())
    for name in grouped:
        assert len(re.findall(rf"^\.\. auto\w+:: {package.__name__}\.{name}$", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("package", [ol, nb], ids=["odelab", "netbridge"])
def test_the_site_finds_the_parameters_of_every_public_function(package):
    for name in vars(package):
        value = getattr(package, name)
        if public(package, name) and inspect.isfunction(value):
            listed = {
                one.strip("*")
                for kind, body in parts(inspect.getdoc(value))
                if kind == "entries"
                for names, _ in body
                for one in names
            }
            asked = {one for one in inspect.signature(value).parameters if not one.startswith("_")}
            assert asked <= listed, name


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=pytest.mark.slow if p.stem[5:] in SLOW else ()) for p in GALLERY],
    ids=lambda path: path.stem[5:],
)  # fmt: skip
def test_a_figure_of_the_gallery_is_drawn_in_at_most_twenty_lines(path, tmp_path):
    source = path.read_text()
    assert len(source.splitlines()) <= 20
    variables: dict = {}
    exec(compile(source, str(path), "exec"), variables)
    variables["figure"].savefig(tmp_path / "figure.png", dpi=40)
    assert len(set((tmp_path / "figure.png").read_bytes())) > 100


def test_there_are_two_dozen_figures():
    assert len(GALLERY) >= 24


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_asks_for_nothing(tmp_path):
    for name in ("sphinx", "pydata_sphinx_theme", "myst_parser", "sphinx_gallery", "sphinx_copybutton"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (make docs installs it)")
    command = [sys.executable, "-m", "docs.site", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=6 * HANGS)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = [*(tmp_path / "site").rglob("*.html")]
    assert len(pages) > 50
    for page in pages:
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="(https?:[^"]+)"', page.read_text())
        loaded += re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="(https?:[^"]+)"', page.read_text())
        assert not loaded, f"{page.name} loads {loaded}"
