"""What is published: four wheels and one source distribution, of one version, whole."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import odelab
from release.__main__ import DISTRIBUTIONS, main
from tests.clock import HANGS

ROOT = Path(__file__).parent.parent


def test_everything_says_the_same_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {odelab.__version__}\n" in citation
    assert f"## {odelab.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("one", DISTRIBUTIONS, ids=lambda one: one.name)
def test_the_project_written_for_a_wheel_is_toml_that_says_what_it_needs(one):
    written = tomllib.loads(one.pyproject())
    assert written["project"]["name"] == one.name
    assert written["project"]["dependencies"] == list(one.needs)
    assert written["tool"]["setuptools"]["package-data"][one.package]


def test_each_requirement_of_the_checkout_is_one_of_some_wheel():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    asked = {*declared["dependencies"], *(need for name in ("net", "detect", "studies") for need in extras[name])}
    offered = {need for one in DISTRIBUTIONS for needs in (one.needs, *one.extras.values()) for need in needs}
    assert {need for need in asked if not need.startswith("odelab")} <= offered


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    main([str(folder)])
    return folder


def wheel(folder, name) -> Path:
    (found,) = folder.glob(f"{name.replace('-', '_')}-{odelab.__version__}-*.whl")
    return found


@pytest.mark.slow
def test_the_wheels_hold_all_packages_once_and_odelab_is_small(folder):
    names = [set(zipfile.ZipFile(wheel(folder, one.name)).namelist()) for one in DISTRIBUTIONS]
    ours = {name for some in names for name in some if ".dist-info/" not in name}
    assert len(ours) == sum(len([name for name in some if ".dist-info/" not in name]) for some in names)
    for package in ("odelab", "netbridge", "studies"):
        for path in (ROOT / package).rglob("*.py"):
            assert str(path.relative_to(ROOT)) in ours
    assert wheel(folder, "odelab").stat().st_size < 750_000


ALONE = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "netbridge", "studies", "matplotlib"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nothing())
sys.path.insert(0, sys.argv[1])
import odelab as ol
assert ol.__file__.startswith(sys.argv[1]), ol.__file__
print(ol.diagnose(ol.problems.robertson()).stiff, ol.solve(ol.problems.lorenz()).status)
"""


@pytest.mark.slow
def test_odelab_alone_solves_without_torch_or_matplotlib(folder, tmp_path):
    zipfile.ZipFile(wheel(folder, "odelab")).extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, str(tmp_path / "site")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert done.stdout.split() == ["True", "ok"], done.stderr[-2000:]


TOGETHER = """
import sys
sys.path.insert(0, sys.argv[1])
import netbridge as nb
assert nb.__file__.startswith(sys.argv[1]), nb.__file__
try:
    print(len(nb.pretrained()), nb.pretrained("digits/resnet32-width4-se-seed0").about["test_errors"])
except FileNotFoundError:
    nb.fetch_pretrained(sys.argv[2], ["digits/resnet32-width4-se-seed0"])
    print("fetched", len(nb.pretrained()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("zoo", [True, False], ids=["with odelab-zoo", "without"])
def test_installed_networks_are_found_and_others_are_fetched(folder, tmp_path, zoo):
    for name in ("odelab", "odelab-netbridge", *(["odelab-zoo"] if zoo else [])):
        zipfile.ZipFile(wheel(folder, name)).extractall(tmp_path / "site")
    beside = ROOT / "netbridge" / "zoo"
    done = subprocess.run(
        [sys.executable, "-I", "-c", TOGETHER, str(tmp_path / "site"), beside.as_uri()],
        cwd=tmp_path,
        env={**os.environ, "NETBRIDGE_DATA": str(tmp_path / "cache"), "ODELAB_ZOO": ""},
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    count = len(list(beside.rglob("*.safetensors")))
    assert done.stdout.split() == ([str(count), "4"] if zoo else ["fetched", "1"]), done.stderr[-2000:]


@pytest.mark.slow
def test_the_source_distribution_can_be_tested_documented_and_measured(folder):
    with tarfile.open(folder / f"odelab-{odelab.__version__}.tar.gz") as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    wanted = {name for name in listed if name.startswith(("odelab/", "netbridge/", "studies/", "tests/", "docs/"))}
    assert wanted - names == set()
    assert {"Makefile", "constraints.txt", "CHANGELOG.md", "CITATION.cff"} <= names
