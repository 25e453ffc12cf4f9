"""The documentation site: its grammar of docstrings, its reference, its figures; it builds without a warning."""

import base64
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import odelab as ol
from docs.site import live
from docs.site.entries import entries, parts
from docs.site.rst import PACKAGES, public_names
from tests import browser
from tests.check_site import complaints
from tests.clock import HANGS

ROOT = Path(__file__).parent.parent
GALLERY = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))
MOVED = """(() => {{
  const slider = document.querySelector('.live input[type=range]');
  slider.value = {};
  slider.dispatchEvent(new Event('input'));
  return document.querySelector('.live .panel-title').textContent;
}})()"""
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


@pytest.fixture(scope="module")
def moving():
    """The numbers of the two pages that move, as their script has them."""
    pytest.importorskip("contourpy")
    return json.loads(live.script().removeprefix("const LIVE = ").removesuffix(";\n"))


def test_a_step_below_the_largest_one_is_stable_and_one_beyond_it_is_not(moving):
    """Both as the page rounds them, to four digits; modes that grow by themselves have no largest step."""
    for method, shown in zip(live.METHODS, moving["region"]["methods"], strict=True):
        pairs = zip(moving["region"]["eigenvalues"], shown["largest"], strict=True)
        some = [(complex(*one), most) for pair, steps in pairs for one, most in zip(pair, steps, strict=True)]
        assert all(value.real > 0.0 for value, most in some if most is None)
        for value, most in (both for both in some if both[1] is not None):
            assert abs(method.stability(0.998 * most * value)) <= 1.0
            assert abs(method.stability(1.002 * most * value)) > 1.0


def test_the_outline_of_a_region_lies_where_the_growth_is_one(moving):
    for method, shown in zip(live.METHODS, moving["region"]["methods"], strict=True):
        outline = np.concatenate([np.array(line) for line in shown["outline"]])
        nearby = outline[:, 0] + 1j * outline[:, 1] + 0.05 * np.exp(2j * np.pi * np.arange(16) / 16)[:, None]
        growth = np.abs(method.stability(nearby))  # a cell of the grid around each point
        assert ((growth.min(0) <= 1.0) & (growth.max(0) >= 1.0)).all()


def test_the_map_of_theorem_2_is_that_of_the_function(moving):
    shown = moving["theorem2"]
    values = np.frombuffer(base64.b64decode(shown["maps"][4]), "<i2").reshape(shown["count"], -1)
    fast, coupling = 10.0 ** live.DECADES[[30, 12]]
    angle = np.radians(shown["angles"][4])
    J, u = np.array([[-fast, coupling], [0.0, -1.0]]), np.array([np.cos(angle), np.sin(angle)])
    found = ol.theorem2(J, u, J @ u)
    assert values[12, 30] == round(100.0 * np.log10(found.sai / found.si))


def lacking(site: Path) -> list[str]:
    """What the pages of names lack: each public name on one page, with its parameters, an example and its source."""
    texts = [page.read_text() for folder in ("reference", "problems") for page in (site / folder).glob("*.html")]
    said = []
    for package in PACKAGES:
        names = public_names(package)
        for name, value in names.items():
            parts = [text.split(f'id="{package}.{name}"', 1)[1] for text in texts if f'id="{package}.{name}"' in text]
            if len(parts) != 1:
                said.append(f"{package}.{name} is on {len(parts)} pages")
                continue
            ends = [parts[0].find(f'id="{package}.{other}"') for other in names]
            part = parts[0][: min([end for end in ends if end > 0], default=None)]
            function = inspect.isroutine(value) or (inspect.isclass(value) and not issubclass(value, BaseException))
            asked = [one for one in inspect.signature(value).parameters if one[0] != "_"] if function else []
            lists = part.split("</dt>", 1)[1]
            said += [
                f"{package}.{name}: nothing of {one}" for one in asked if not re.search(rf">\*{{0,2}}{one}<", lists)
            ]
            if "doctest" not in part:
                said.append(f"{package}.{name} has no example")
            if "viewcode-link" not in part and "Source: " not in part:
                said.append(f"{package}.{name} has no source")
    return said


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_works_from_files(tmp_path):
    for name in ("sphinx", "pydata_sphinx_theme", "myst_parser", "sphinx_gallery", "sphinx_copybutton"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (make docs installs it)")
    command = [sys.executable, "-m", "docs.site", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=6 * HANGS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len([*(tmp_path / "site").rglob("*.html")]) > 50
    assert len([*(tmp_path / "source" / "learn").glob("*.ipynb")]) == 6
    assert not lacking(tmp_path / "site")
    if browser.find() is None:
        pytest.skip("no browser")
    assert not list(complaints(tmp_path / "site"))
    with browser.tab() as tab:
        for name in ("region", "theorem2"):
            tab.open(tmp_path / "site" / "live" / f"{name}.html")
            said = [tab.run(MOVED.format(value)) for value in (40, 5)]
            assert said[0] != said[1]
            assert said[0]
