"""What is installed: odelab, netbridge with its networks, studies with what they read; no benchmarks, no tests."""

import ast
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.clock import HANGS

ROOT = Path(__file__).parent.parent
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> list[str]:
    """The names in a wheel built from a copy of the sources, so that nothing is written beside them."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("odelab", "netbridge", "studies", "benchmarks", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, "dist"], cwd=copy, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (built,) = (copy / "dist").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages_and_no_others(wheel):
    ours = {name for name in wheel if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in ours} == {"odelab", "netbridge", "studies"}
    for package in ("odelab", "netbridge", "studies"):
        there = {
            str(path.relative_to(ROOT))
            for path in (ROOT / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".pyc", ".resume", ".part")
        }
        assert there - ours == set()


MAY_IMPORT = {"odelab": set(), "netbridge": {"odelab"}, "studies": {"odelab", "netbridge"}}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_an_installed_package_imports_none_that_is_not_there_or_stands_above_it(package):
    ours = {"odelab", "netbridge", "studies", "benchmarks", "tests"} - MAY_IMPORT[package] - {package}
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / package).rglob("*.py")
        for name in imported(path.read_text())
        if name.split(".")[0] in ours
    }
    assert found == set()


def imported(source: str):
    """The modules that a program names in its import statements, wherever these stand."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module
