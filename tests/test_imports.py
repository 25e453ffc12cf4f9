"""Every module can be the first one that a program imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clock import HANGS
from tests.test_architecture import PACKAGES, ROOT

LIBRARIES = {
    "odelab": "scipy.integrate,scipy.sparse.linalg,numba,matplotlib.pyplot",
    "netbridge": "PIL.Image,rich.progress,safetensors.torch,torch.utils.data,torchdiffeq",
    "studies": "scipy.stats,tyro",
}  # loaded once ahead of a package, because they take long; any other is loaded by each module that imports it
SCRIPT = ROOT / "tests" / "import_each.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")


def import_each(root: Path, packages) -> dict[str, str]:
    """What each module of the packages below a folder says when it is imported first and alone; "" is a success."""
    command = [sys.executable, "-P", str(SCRIPT)]
    for package in packages:
        command += [LIBRARIES.get(package, ""), package]
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, str] = {}
    for name, failure in map(json.loads, done.stdout.splitlines()):
        outcomes[name] = outcomes.get(name, "") + failure
    return outcomes


def modules(root: Path, package: str) -> set[str]:
    """The names of all modules whose files lie in a package's folder."""
    paths = [path.relative_to(root).with_suffix("") for path in (root / package).rglob("*.py")]
    return {".".join(path.parts).removesuffix(".__init__") for path in paths}


def write_package(root: Path, **files: str) -> None:
    """A package `made_up` with these modules; `__init__` is empty if it is not among them."""
    (root / "made_up").mkdir()
    for name, text in ({"__init__": ""} | files).items():
        (root / "made_up" / f"{name}.py").write_text(text)


def test_every_module_can_be_imported_first():
    outcomes = import_each(ROOT, PACKAGES)
    failures = "\n".join(f"import {name}\n{failure}" for name, failure in outcomes.items() if failure)
    assert not failures, f"these modules cannot be the first that a program imports:\n{failures}"
    assert outcomes.keys() == set().union(*(modules(ROOT, package) for package in PACKAGES))


def test_a_circle_fails_at_the_module_at_which_it_is_entered(tmp_path):
    """Whoever imports `second` first meets `first` while `second` has no name yet; the other way round it works."""
    write_package(tmp_path, first="from made_up.second import value", second="from made_up import first\nvalue = 1")
    outcomes = import_each(tmp_path, ["made_up"])
    assert outcomes["made_up"] == outcomes["made_up.first"] == ""
    assert "cannot import name 'value' from partially initialized module 'made_up.second'" in outcomes["made_up.second"]


def test_a_package_that_loads_a_module_first_makes_it_work_for_everybody(tmp_path):
    """Python runs `__init__.py` ahead of any module of the package, so nobody can enter this circle at `second`."""
    circle = {"first": "from made_up.second import value", "second": "from made_up import first\nvalue = 1"}
    write_package(tmp_path, __init__="from made_up import first", **circle)
    assert import_each(tmp_path, ["made_up"]) == dict.fromkeys(["made_up", "made_up.first", "made_up.second"], "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit", "SystemExit"),
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("import os\nos.kill(os.getpid(), 9)", "ended with code -9"),
    ],
)
def test_other_failures_are_reported_too(text, words, tmp_path):
    write_package(tmp_path, sound="", wrong=text)
    outcomes = import_each(tmp_path, ["made_up"])
    assert outcomes["made_up.sound"] == ""
    assert words in outcomes["made_up.wrong"]


def test_a_package_that_imports_a_later_one_is_refused(tmp_path):
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "__init__.py").write_text("")
    write_package(tmp_path, __init__="import above")
    outcomes = import_each(tmp_path, ["made_up", "above"])
    assert outcomes["above"] == ""
    assert "it imports above, which must not be known to it" in outcomes["made_up"]
