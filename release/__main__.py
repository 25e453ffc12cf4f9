"""Four distributions from one checkout: `python -m release FOLDER` writes a wheel of each, and one source distribution.

odelab            solvers and measures; half a megabyte, needs NumPy, SciPy, llvmlite and numba
odelab-netbridge  networks; needs odelab and torch
odelab-zoo        the networks that come with it, which `netbridge` finds where this is installed
odelab-studies    the studies; needs the three others

The folders stay where they are: each wheel is built from a copy, with a pyproject.toml written for it. The source
distribution is the whole checkout, with tests, documentation and benchmarks.
"""

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import odelab
from netbridge.pretrained_networks import DIGESTS, ZOO, digests_of

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = odelab.__version__
EXTRAS = PROJECT["optional-dependencies"]
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
LEFT_OUT = ("__pycache__", "*.pyc", "*.resume", "*.part")


@dataclasses.dataclass(frozen=True)
class Distribution:
    """One distribution: its name, what it is, the package in it, where that lies, what it needs, and its data files."""

    name: str
    about: str
    package: str
    folder: str
    needs: tuple[str, ...] = ()
    extras: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    data: tuple[str, ...] = ("py.typed",)

    def pyproject(self) -> str:
        """The pyproject.toml of this distribution; TOML writes these values as JSON does."""
        project = {
            "name": self.name,
            "version": VERSION,
            "description": self.about,
            "readme": "README.md",
            "license": PROJECT["license"],
            "license-files": PROJECT["license-files"],
            "requires-python": PROJECT["requires-python"],
            "keywords": PROJECT["keywords"],
            "classifiers": PROJECT["classifiers"],
            "dependencies": list(self.needs),
        }
        tables = {
            "build-system": {"requires": ["setuptools>=77"], "build-backend": "setuptools.build_meta"},
            "project": project,
            "project.optional-dependencies": self.extras,
            "tool.setuptools.packages.find": {"include": [f"{self.package}*"]},
            "tool.setuptools.package-data": {self.package: list(self.data)},
        }
        lines = []
        for name, table in tables.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        return "\n".join(lines)


def same(name: str) -> str:
    """A requirement of another of the four, of the same version."""
    return f"{name}=={VERSION}"


def others(extra: str) -> tuple[str, ...]:
    """What an extra of the checkout needs beside this project itself."""
    return tuple(need for need in EXTRAS[extra] if not need.startswith("odelab"))


DISTRIBUTIONS = (
    Distribution(
        "odelab",
        PROJECT["description"],
        "odelab",
        "odelab",
        tuple(PROJECT["dependencies"]),
        {"plot": ["matplotlib>=3.9"], "net": [same("odelab-netbridge")], "studies": [same("odelab-studies")]},
    ),
    Distribution(
        "odelab-netbridge",
        "Residual networks as runs of odelab's solver: traces, spectra, step sizes, training",
        "netbridge",
        "netbridge",
        (same("odelab"), *others("net")),
        {"zoo": [same("odelab-zoo")], "detect": list(others("detect"))},
        ("py.typed", DIGESTS.name),
    ),
    Distribution("odelab-zoo", "The trained networks of netbridge", "odelab_zoo", "netbridge/zoo", data=("*/*",)),
    Distribution(
        "odelab-studies",
        "Studies of three papers on stiffness in networks, with odelab and netbridge",
        "studies",
        "studies",
        (same("odelab-netbridge[zoo,detect]"), *others("studies")),
        data=("lab/*.json", "lab/report/*.j2", "lab/report/*.css", "lab/report/*.js", "shipped/*/*", "*/shipped/*"),
    ),
)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__.split("\n")[0].split(": ", 1)[1])
    parser.add_argument("folder", type=Path, help="where to write the distributions")
    folder = parser.parse_args(arguments).folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for one in DISTRIBUTIONS:
        show(wheel(one, folder))
    show(source_distribution(folder))
    return 0


def show(file: Path) -> None:
    print(f"{file.stat().st_size / 1e6:8.2f} MB  {file.name}")


def wheel(one: Distribution, folder: Path) -> Path:
    """Build the wheel of one distribution."""
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        left_out = (*LEFT_OUT, "zoo") if one.package == "netbridge" else LEFT_OUT
        shutil.copytree(ROOT / one.folder, here / one.package, ignore=shutil.ignore_patterns(*left_out))
        if one.package == "netbridge":
            (here / one.package / DIGESTS.name).write_text(json.dumps(digests_of(ZOO), indent=0))
        if one.package == "odelab_zoo":
            (here / one.package / "__init__.py").write_text('"""The trained networks of netbridge."""\n')
        for file in ("README.md", "LICENSE"):
            shutil.copy(ROOT / file, here)
        (here / "pyproject.toml").write_text(one.pyproject())
        return built("build_wheel", here, folder)


def source_distribution(folder: Path) -> Path:
    """Build the source distribution from a copy of the files that the repository holds."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        for name in filter(None, listed.split("\0")):
            target = here / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
        return built("build_sdist", here, folder)


def built(what: str, here: Path, folder: Path) -> Path:
    """What setuptools builds from a folder."""
    done = subprocess.run([sys.executable, "-c", BUILD, what, folder], cwd=here, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"setuptools could not build {here.name}: {done.stderr[-2000:]}")
    return folder / done.stdout.split()[-1]


if __name__ == "__main__":
    sys.exit(main())
